# Arrays from generators and lists, of every type; the numbers are the same on every machine.
cat >copy.kiln <<'K'
kernel copy(i64 n, type T = f32, T y[n], const T x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = x[i:4];
}
kernel copy2(i64 m, i64 n, type T = f32, T y[m][n], const T x[m][n]) grid(m)
{
    i64 i = program_id(0);
    for (i64 j = 0; j < n; j++)
        y[i][j] = x[i][j];
}
K
k() { echo "x=$1"; "$KILN" run copy.kiln:${2:-copy} --device interp "x=$1" 2>&1 || echo "rc $?"; }
for t in f16 bf16 f32 f64 f8e4m3 f8e5m2; do
    k "rand(9,$t)"
    k "rand(5,$t,123456789012)"
    k "randn(9,$t)"
done
for t in bool u8 i32 u32 i64 i8 i16 u16 u64; do
    k "randint(9,$t,2,7)"
    k "ones(3,$t)"
done
k "range(9,i32)"
k "range(9,f16)"
k "zeros(0,f32)"
k "full(3,f32,0.1)"
k "full(3,bf16,0.1)"
k "full(3,-inf)"
k "full(2,i64,-9223372036854775808)"
k "{1, 2.5, nan, -inf, 0x10}"
k "{1, 0}:bool"
k "{448, 1.1, nan, -0.001, 464.0}:f8e4m3"
k "{57344, inf, 1e-5}:f8e5m2"
k "{18446744073709551615, 0xffffffffffffffff, 1e19}:u64"
k "full(2,i8,-128)"
k "{ {1, 2}, {3, 4}, {5, 6} }:i32" copy2
k "randn(2x3)" copy2
# wrong ones
k "rand(9,i32)"
k "{465.0}:f8e4m3"
k "{inf}:f8e4m3"
k "{65536}:f8e5m2"
k "{128}:i8"
k "{18446744073709551616}:u64"
k "full(2,i64,9223372036854775808)"
k "full(3,u8,256)"
k "{1, 2.5}:i32"
k "{{1, 2}, {3}}" copy2
k "rnad(4)"
k "rand(4"
k "full(3)"
k "randint(3,i32,0)"
k "rand(4x,f32)"
