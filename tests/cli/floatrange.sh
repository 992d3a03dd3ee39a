# A finite number that a float type does not hold is refused, wherever it is given; inf is not.
cat >k.kiln <<'K'
kernel s(f32 y[2], f32 e = 1, f16 h = 1, f64 d = 1) grid(1) { y[0] = e; y[1] = (f32)h + (f32)d; }
kernel t(type T = f16, T e = 1, f32 y[1]) grid(1) { y[0] = (f32)e; }
kernel u(u64 y[2], u64 k = 0x8000000000000000, i64 j = -1) grid(1) { y[0] = k; y[1] = (u64)j; }
kernel c(f32 y[1], constexpr f32 C = 1) grid(1) { y[0] = C; }
kernel a(i64 n, f32 y[n], const f32 x[n]) grid(1) { y[0] = x[0]; }
kernel b(i64 n, f32 y[n], const f16 x[n]) grid(1) { y[0] = (f32)x[0]; }
K
k() { echo "\$ kiln run $*"; "$KILN" run --device interp "$@" 2>&1; echo "rc $?"; }
k k.kiln:s e=1e60
k k.kiln:s -D e=1e60
k k.kiln:s e=-1e60
k k.kiln:s h=70000
k k.kiln:s h=7e4
k k.kiln:s h=65504
k k.kiln:s h=65520
k k.kiln:s d=1e400
k k.kiln:s e=inf
k k.kiln:s e=-inf h=nan
k k.kiln:s e=3.4028235e38
k k.kiln:s e=1e-60
k k.kiln:t e=70000
k k.kiln:t e=7e4
k k.kiln:t e=1e400
k k.kiln:t e=inf
k k.kiln:t T=f8e4m3 e=448
k k.kiln:t T=f8e4m3 e=465
k k.kiln:t T=f8e4m3 e=-inf
k k.kiln:t T=f8e5m2 e=-inf
k k.kiln:u
k k.kiln:u k=18446744073709551615
k k.kiln:u k=1e19
k k.kiln:u k=-1
k k.kiln:u j=9223372036854775808
k k.kiln:c -D C=1e60
k k.kiln:a 'x=full(2,f32,1e60)'
k k.kiln:a 'x={1e60}'
k k.kiln:a 'x={1, -1e60}:f32'
k k.kiln:a 'x={inf, 1e38}'
k k.kiln:b 'x=full(2,f16,70000)'
k k.kiln:b 'x={70000}'
k k.kiln:b 'x={65504}'
