# kiln run ... --then: several kernels, arrays of earlier ones by name.
fake=$(dirname "$KILN")/tests/fakecuda
[ -e "$fake/libcuda.so.1" ] || { echo "no fake driver is built" >&2; exit 77; }
cat >k.kiln <<'K'
kernel twice(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = 2 * x[i:4];
}
kernel add(i64 n, f32 z[n], const f32 a[n], const f32 b[n], constexpr i64 B = 4) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    z[i:B] = a[i:B] + b[i:B];
}
kernel total(i64 n, f32 s[1], const f32 x[n], constexpr i64 B = 8) grid(1)
{
    s[0] = sum(x[0:B]);
}
K
run() { "$KILN" run "$@" --no-cache; echo "rc $?"; }
# every device gives the same
for d in interp sim cpu; do
    run k.kiln:twice --device $d 'x={1, 2, 3, 4, 5}' --then k.kiln:add a=@y b=@x -o z=$d.npy --then k.kiln:total x=@z
done
cmp interp.npy sim.npy
cmp interp.npy cpu.npy
# on a GPU each array goes there once, and what was written comes back once: x, y, z, s; y, z, s
LD_LIBRARY_PATH=$fake FAKECUDA_REPORT=cuMemcpy "$KILN" run k.kiln:twice --device cuda --no-cache \
    'x={1, 2, 3, 4, 5}' --then k.kiln:add a=@y b=@x -o z=cuda.npy --then k.kiln:total x=@z 2>&1
cmp interp.npy cuda.npy
# an error on the device names the kernel that was at fault; no file appears
FAKECUDA_FAIL=cuLaunchKernel:2:700 LD_LIBRARY_PATH=$fake "$KILN" run k.kiln:twice --device cuda --no-cache \
    'x={1, 2, 3, 4, 5}' --then k.kiln:add a=@y b=@x -o z=no.npy 2>&1
echo "rc $?"
# the latest array of a name; in place; words of each kernel are its own
run k.kiln:twice --device interp 'x={1, 2, 3}' --then k.kiln:twice x=@y --then k.kiln:twice x=@y -o y=y.npy
"$KILN" data show y.npy
run k.kiln:twice --device interp 'x={1, 2, 3}' --then k.kiln:twice x=@y y=@y --then k.kiln:add a=@y b=@y z=@y -D B=2
run k.kiln:twice --device interp 'x={1, 2, 3}' -o y=1.safetensors --then k.kiln:twice x=@y -o y=1.safetensors:second
"$KILN" data show 1.safetensors
# another file, and verifying the last one
cat >l.kiln <<'K'
kernel quarter(i64 n, f32 y[n], const f32 x[n])
{
    for (i64 i = 0; i < n; i++)
        y[i] = x[i] / 4;
}
kernel same(i64 n, f32 y[n], const f32 x[n])
{
    for (i64 i = 0; i < n; i++)
        y[i] = x[i] * 0.25;
}
K
run k.kiln:twice --device interp 'x={1, 2, 3}' --then l.kiln:quarter x=@y --verify same
run k.kiln:twice --device interp 'x={1, 2, 3}' --then l.kiln:quarter x=@y y=@y --verify same 2>&1
# what is wrong is found before anything runs, and no file appears
run k.kiln:twice 'x={1, 2, 3}' -o y=no.npy --then k.kiln:add a=@y b=@q 2>&1
run k.kiln:twice 'x={1, 2, 3}' -o y=no.npy --then k.kiln:add a=@y 'b={1, 2}' 2>&1
run k.kiln:twice 'x={1, 2, 3}' -o y=no.npy --then k.kiln:none x=@y 2>&1
run k.kiln:twice 'x={1, 2, 3}' -o y=no.npy --then missing.kiln x=@y 2>&1
run k.kiln:twice 'x={1, 2, 3}' --then k.kiln:twice x=@y -o x=no.npy 2>&1
run --then k.kiln:twice 'x={1, 2, 3}' 2>&1
"$KILN" run k.kiln:twice 'x={1, 2, 3}' --then 2>&1; echo "rc $?"
run k.kiln:twice x=@y 2>&1
# timing shows each kernel
"$KILN" run k.kiln:twice --device interp 'x={1, 2, 3}' --then k.kiln:twice x=@y --time | sed -n 's/^time.*/time/p; s/^twice:/&/p'
test -e no.npy || echo 'no file appeared'
