# Elements that a kernel should have written, by type; integers that look like the pattern.
cat >k.kiln <<'K'
kernel most(i64 n, type T = f32, T y[n], const T x[n]) grid(n - 1)
{
    i64 i = program_id(0);
    y[i] = x[i];
}
kernel none(i64 n, i32 y[n], const i32 x[n]) grid(0) { y[0] = x[0]; }
kernel start(i64 n, i32 h[n] = 0, const i32 x[n]) grid(1) { h[0] = x[0]; }
K
k() { "$KILN" run k.kiln:$1 --device interp "$2" 2>&1; echo "rc $?"; }
for t in f16 bf16 f32 f64; do k most "x=ones(4,$t)"; done
k most 'x={1, 0, 1}:bool'
k most 'x=full(4,u8,0xAB)'
k most 'x={171, 171, 171, 1}:u8'
k most 'x=full(4,i32,-1414812757)'
k none 'x=ones(2,i32)'
k start 'x=ones(3,i32)'
