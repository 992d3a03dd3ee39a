# Arguments that do not fit the kernel: one message each, status 2, no output file.
cat >k.kiln <<'K'
kernel add(i64 n, type T = f32, T z[n], const T x[n], const T y[n], constexpr i64 BLOCK = 4,
           constexpr i32 SMALL = 1, f32 a = 1)
    grid(cdiv(n, BLOCK))
{
    static_assert(BLOCK > 0 && BLOCK <= 4096, "BLOCK must lie between 1 and 4096");
    i64 i = program_id(0) * BLOCK;
    z[i:BLOCK] = a * (x[i:BLOCK] + y[i:BLOCK] * SMALL);
}
kernel other(f32 y[4]) grid(1) { y[0:4] = 1; }
K
k() { echo "\$ kiln run k.kiln$*"; f=k.kiln$1; shift
      "$KILN" run "$f" --device interp -o z=out.npy "$@" 2>&1; echo "rc $?"; ls out.npy 2>/dev/null; }
X='x=rand(8,f32)' Y='y=rand(8,f32)'
k '' "$X" "$Y"
k :ad "$X" "$Y"
k :add "$X" "$Y" w=3
k :add "$X" "$Y" BLOKC=3
k :add "$X" "$X"
k :add "$X" "y=rand(9,f32)"
k :add "$X" "y=rand(8,f64)"
k :add "$X" "y=rand(2x4,f32)"
k :add "$X"
k :add "$X" "$Y" n=9
k :add "$X" "$Y" n=eight
k :add "$X" "$Y" n=8.5
k :add "$X" "$Y" n=1e3000
k :add "$X" "$Y" BLOCK=0
k :add "$X" "$Y" -D BLOCK=8192
k :add "$X" "$Y" SMALL=4294967296
k :add "$Y" -D x=3
k :add "$Y" x=8
k :add "$Y" x=4x2:f32
k :add "$X" "$Y" T=float
k :add "$X" "$Y" T=f64
k :add "$X" "$Y" a=x.npy
k :add "$X" y=@z
k :add "$X" y=@w
k :add "$X" y=@
k :add "$X" "$Y" T=f23
k :add "$X" "$Y" T=i128
k :other
k :add "$X" "$Y" z=@x
k :add "$X" y=8.5
k :add "$X" y=8,2
k :add "$X" 'y=rand(8,float32)'
k :add "$X" 'y=rand(8,quad)'
k :add "$X" "$Y" y = 8
k :add "$X" "$Y" -D BLOCK 8
k :add "$X" "$Y" --y 8
for file in k k.kil k.txt; do
    "$KILN" run "$file" "$X" 2>&1
done
"$KILN" run "$X" k.kiln:add 2>&1
