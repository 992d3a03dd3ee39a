# a tile that no GPU holds: the numbers are named, on the executor as on a device
cat >big.kiln <<'K'
kernel big(i64 n, f32 y[n][n], const f32 x[n][n], constexpr i64 B = 1024)
{
    y[0:B][0:B] = trans(x[0:B][0:B]);
}
K
"$KILN" run big.kiln 'x=zeros(4x4,f32)' --device sim
