# --verify: against kernels of the same file and of another, and against arrays.
cat >k.kiln <<'K'
kernel third(i64 n, type T = f32, T y[n], const T x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = x[i:4] / 3;
}
kernel exact(i64 n, type T = f32, f64 y[n], const T x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = (f64)x[i:4] / 3;
}
kernel wrong(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = x[i:4] * 0.3333;
}
kernel two(i64 n, f32 y[n], f32 z[n], const f32 x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = x[i:4] / 3;
    z[i:4] = x[i:4];
}
kernel twice(i64 n, f32 x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    x[i:4] *= 2;
}
kernel twice_reference(i64 n, f32 x[n]) grid(n)
{
    i64 i = program_id(0);
    x[i] = x[i] + x[i];
}
K
sed 's/exact/elsewhere/' k.kiln >other.kiln
k() { echo "\$ kiln run k.kiln:$*"; f=k.kiln:$1; shift; "$KILN" run "$f" --device interp "$@" 2>&1; echo "rc $?"; }
X='x=randn(100,f32,3)'
k third "$X" -o y=y.npy --verify exact
k third "$X" -o y=y.npy --verify exact --tol 1ulp
k third "$X" -o y=y.npy --verify exact --tol 0.25ulp
k third "$X" -o y=y.npy --verify other.kiln:elsewhere --verify third --tol 0
k third "$X" -o y=z.npy --verify y.npy
k wrong "$X" -o y=z.npy --verify y.npy
k wrong "$X" -o y=z.npy --verify y.npy --tol 1e-3
k wrong "$X" -o y=z.npy --verify y.npy --tol 1e-5
k third 'x=randn(100,bf16,3)' -o y=z.npy --verify exact
k third 'x={1, inf, nan, -inf}' --verify 'exact'
k two "$X" -o y=y2.npy --verify y.npy
k two "$X" --verify y.npy
k two "$X" --verify y=y.npy
k two "$X" --verify third
k twice "$X" -o x=x2.npy --verify twice_reference
# what cannot be used
k third "$X" --verify nothing
k third "$X" --verify nothing.npy
k third "$X" --verify nothing.kiln:third
k third 'x=randn(99,f32,3)' --verify y.npy
k third "$X" --verify x=y.npy
k third "$X" --verify exact --tol 2apples
