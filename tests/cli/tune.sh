# `kiln tune` without a look at its times: what it leaves out, that what is wrong cannot win, arrays
# that are updated in place, the file, and what takes it.  Numbers of measured things become #.
cat >k.kiln <<'K'
kernel block(i64 n, constexpr i64 B = 256, i64 y[cdiv(n, B)], const f32 x[n]) grid(cdiv(n, B))
    tune(B: 128, 256, 512; warps: 2, 4)
{
    y[program_id(0)] = B + (i64)x[0];
}
kernel sum(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 256, constexpr i64 N = 3) grid(cdiv(n, B))
    tune(N: 0, 2, 3)
{
    i64 i = program_id(0) * B;
    f32 s[B] = 0;
    for (i64 k = 0; k < N; k++)
        s = max(s, abs(x[i:B]) + 0 * (f32)k);
    y[i:B] = s;
}
kernel grow(i64 n, f32 x[n], constexpr i64 B = 256) grid(cdiv(n, B))
    tune(B: 128, 256, 1024)
{
    i64 i = program_id(0) * B;
    x[i:B] = 2 * x[i:B] + 1;
}
kernel shape(i64 n, constexpr i64 B = 64, i64 y[cdiv(n, B)], const f32 x[n]) grid(cdiv(n, B))
    tune(B: 32, 64)
    requires(B < 64 || n > 0, "something")
{
    y[program_id(0)] = 1 + (i64)x[0];
}
kernel plain(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 256) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = x[i:B];
}
K
hide() {
    sed -E 's/cpu x86-64-v[0-9]/cpu LEVEL/; s/^( +)[0-9.]+ (ns|us|ms|s)\>/\1# u/; s/ +[0-9.]+ (ns|us|ms|s)\>/ # u/g
        s/pruned in [^;]*; ([0-9]+) compiled and checked in .*/pruned, \1 compiled/; s/in [0-9]+ rounds?/in # rounds/; s/after [0-9]+ rounds?/after # rounds/; s/; the time was up.*//
        s/source [0-9a-f]{16}/source HASH/; s/ms     [0-9.e-]+ default [0-9.e-]+/ms     # default #/
        /^  (default|tuned) /d; s/(use    ).*/\1.../'
}
t() { "$KILN" tune "$@" 2>&1; }
echo "== what is left out"
t k.kiln:grow x=1000:f32 --device sim --dry-run -v
t k.kiln:grow x=100000:f32 --device sim --dry-run -v -D B=64,256,131072,524288,33554432 -D warps=32
t k.kiln:sum x=1000000:f32 --device sim --dry-run -v -D N=3 -D B=256,300,33554432
t k.kiln:plain x=1000:f32 --device sim --dry-run -D B=128,256 -D warps=1,2,4,8
t k.kiln:plain x=1000:f32 --device sim --dry-run -D B=0,-1,256
cat >neg.kiln <<'K'
kernel neg(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 256) grid(cdiv(n, 256))
    requires(B < 1024, "a small B")
{
    y[program_id(0) * 256:B] = x[program_id(0) * 256:B];
}
K
t neg.kiln x=1000:f32 --device sim --dry-run -v -D B=0,-1,1024,128
ls
echo "== a wrong candidate"
t k.kiln:sum x=5000:f32 --device cpu --budget 0.2 -o wrong.tune -v | hide
grep -c 'N=0' wrong.tune
echo "== in place"
t k.kiln:grow x=70000:f32 --device cpu --budget 0.2 -o grow.tune -v | hide
hide <grow.tune
echo "== the shape of an output"
t k.kiln:shape x=640:f32 --device cpu --budget 0.2 -o shape.tune -v | hide
echo "== the file"
cat >wrong.tune <<'F'
kiln-tune 1
kernel block
    device cuda
    use B=64
kernel grow
    use B=1024
F
t k.kiln:sum 'x={n}:f32' --sweep n=1000,4000 --device cpu --budget 0.1 -o wrong.tune >/dev/null
t k.kiln:sum 'x=999:f32' --device cpu --budget 0.1 -o wrong.tune >/dev/null
hide <wrong.tune
echo "== what takes it"
r() { "$KILN" run k.kiln:block 'x=zeros(600,f32)' --device interp "$@" 2>&1 | sed 's/ *mean.*//'; }
r
cat >k.kiln.tune <<'F'
kiln-tune 1
kernel block
    when n=1024
    use B=512
F
r
r --no-tune
r -D B=128
cp k.kiln.tune other.tune
sed -i s/512/300/ other.tune
r --tune other.tune
"$KILN" bench k.kiln:block x=600:f32 --device interp --samples 3 --measure warm --format csv 2>&1 |
    head -1
cat >e.tune <<'F'
kiln-tune 1
kernel block
    device cuda sm_90 NVIDIA H200
    use B=512 warps=4
F
cp k.kiln e.kiln && mv e.tune e.kiln.tune
for g in '' '--gpu H200' '--gpu H100' --no-tune; do
    "$KILN" explain e.kiln:block x=600:f32 $g 2>&1 | grep -E '^kiln|^block' | sed 's/ *sm_90.*//'
done
sed -i 's/when/source 0123456789abcdef\n    when/' k.kiln.tune
r
sed -i 's/B=512/B 512/' k.kiln.tune
r
t k.kiln:block x=1000:f32 --device cpu
echo "rc $?"
r --tune none.tune
rm k.kiln.tune
echo "== wrong words"
for w in "k.kiln:plain x=8:f32 --device cpu" "k.kiln:block x=8:f32 --device sim" \
    "k.kiln:block x=8:f32 --budget 0 --device cpu" "k.kiln:block k.kiln:sum x=8:f32 --device cpu" \
    "k.kiln:block x=8:f32 -D T=f32,f16 --device cpu" "k.kiln:block x=8:f32 -D B=1,x --device cpu" \
    "k.kiln:block x=8:f32 --device cpu -o /dev/full" "k.kiln:block x=8:f32 --device cpu -o ." \
    "k.kiln:block x=8:f32 -D B=1:5000:+1 --device cpu" "k.kiln:block -D B=1,2 --device cpu"; do
    t $w
    echo "rc $?"
done
