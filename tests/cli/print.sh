# print() of a kernel on standard error with the number of its program, on each device that the
# tests have; a failed assertion ends the command.
cat >say.kiln <<'K'
kernel say(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 4), 2)
{
    i64 p = program_id(0);
    auto v = x[p * 4:4];
    print("v = {}, m = {}", v, reshape(v > 2, 2, 2));
    print("{} {} {}", (u64)0 - 1, (f64)v[1] / 4, (bf16)v[2]);
    assert(v < 6, "below six");
    y[p * 4:4] = v; // kiln: allow K1301 programs of a column write the same
}
K
for d in interp cpu sim; do
    echo "$d"
    "$KILN" run say.kiln 'x=range(4)' -o y=- --device $d --threads 1 2>&1
    echo "rc $?"
    "$KILN" run say.kiln 'x=range(8)' -o y=- --device $d --threads 1 2>&1 | sed 's/program ([0-9, ]*)/program P/'
done
"$KILN" check say.kiln 'x=range(4)' 2>&1
