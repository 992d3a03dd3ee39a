# -o writes .npy; what was written reads back; the bytes are pinned.
cat >k.kiln <<'K'
kernel scale(i64 m, i64 n, type T = f32, T y[m][n], const T x[m][n], f32 a = 2) grid(m)
{
    i64 i = program_id(0);
    for (i64 j = 0; j < n; j++)
        y[i][j] = a * x[i][j];
}
kernel transposed(i64 m, i64 n, i64 r = n, i64 c = 1, f32 y[m][n], const f32 x[m][n] stride(r, c)) grid(m)
{
    i64 i = program_id(0);
    for (i64 j = 0; j < n; j++)
        y[i][j] = x[i][j];
}
K
run() { "$KILN" run --device interp "$@"; }
run k.kiln:scale 'x={{1, 2, 3}, {4, 5, 6}}' -o y=y.npy
od -An -c y.npy | head -8
od -An -tf4 -j128 y.npy
run k.kiln:scale x=y.npy a=0.5
run k.kiln:scale x=y.npy -o y=h.npy -D a=0.25 T=f32
cmp y.npy h.npy | sed 's/,.*//'
# bf16 travels as u2
run k.kiln:scale 'x={{1, 2, 3}}:bf16' -o y=b.npy
od -An -tx2 -j128 b.npy
run k.kiln:scale x=b.npy:bf16 -o y=c.npy
run k.kiln:scale x=c.npy:bf16
# 8-bit floats as u1; what NumPy calls V1 needs a type
run k.kiln:scale 'x={{1, 2, 448, nan}}:f8e4m3' a=0.5 -o y=e.npy
od -An -tx1 -j128 e.npy
run k.kiln:scale x=e.npy:f8e4m3
run k.kiln:scale x=e.npy:f8e5m2
printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|V1', 'fortran_order': False, 'shape': (1, 3), }" >v.npy
printf '\070\100\376' >>v.npy
run k.kiln:scale x=v.npy:f8e4m3
run k.kiln:scale x=v.npy 2>&1
# an existing file is replaced whole, its neighbours stay, nothing else appears
run k.kiln:scale 'x=zeros(1x1)' -o y=y.npy
ls -A | grep -v "^[.]\(out\|err\)$"
# column order keeps its strides
printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }" >f.npy
run k.kiln:scale 'x={{1, 2, 3}, {4, 5, 6}}' a=1 -o y=t.npy >/dev/null
od -An -v -tf4 -j128 t.npy >/dev/null
dd if=t.npy bs=1 skip=128 2>/dev/null >>f.npy
run k.kiln:transposed x=f.npy
# devices are written in place
run k.kiln:scale 'x={{1}}' -o y=/dev/null
test -c /dev/null && echo "/dev/null is still there"
echo "== strides that a parameter declares"
cat >s.kiln <<'K'
kernel turn(i64 m, i64 n, i64 p, f32 y[m][n][p] stride(p, m * p, 1), const f32 x[m][n][p],
            constexpr i64 P = pow2ceil(p)) grid(m, n)
{
    i64 i = program_id(0), j = program_id(1);
    y[i][j][0:P] = x[i][j][0:P];
}
kernel holes(i64 n, f32 y[n] stride(2), const f32 x[n]) grid(n)
{
    i64 i = program_id(0);
    y[i] = x[i];
}
K
for d in interp cpu sim; do
    "$KILN" run s.kiln:turn 'x=range(2x3x5,f32)' -o y=s.npy --device $d && "$KILN" data show s.npy | head -8
done
"$KILN" run s.kiln:holes 'x=range(4,f32)' 2>&1
