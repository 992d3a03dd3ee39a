# The CPU back end from the command line: the same bits, cache, kept files, times.
test -x /usr/bin/cc || { echo "no C compiler" >&2; exit 77; }
"$KILN" doctor >doc || { echo "kernels cannot be compiled here" >&2; exit 77; }
cat >k.kiln <<'K'
kernel add(i64 n, type T = f32, T z[n], const T x[n], const T y[n], constexpr i64 B = 64)
    grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    z[i:B] = x[i:B] + y[i:B];
}
//! test one
//! input x = {1, 2, 3}
//! input y = {1, 2, 3}
//! output z = {2, 4, 6}
K
run() { "$KILN" run k.kiln 'x=randn(1000,f32,1)' 'y=randn(1000,f32,2)' "$@"; }
run --device interp -o z=i.npy
run --device cpu -o z=c.npy --threads 2
cmp i.npy c.npy && echo same
figures() { sed -E 's/[0-9][0-9.e+-]*/N/g'; }
run --time --no-cache | figures
run --time --cache-dir cache --threads 1 | tail -1 | sed 's/.*, cache/cache/'
run --time --cache-dir cache --threads 1 | tail -1 | sed 's/.*, cache/cache/'
run --keep kept --no-cache >/dev/null
ls kept | sed 's/.*\././' | sort -u
"$KILN" test -v k.kiln
printf '//! test nothing\nkernel k(f32 x[4]) grid(1) { x[0:4] = 1; }\n' >nothing.kiln
"$KILN" test nothing.kiln
