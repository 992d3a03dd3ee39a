# kiln emit: stages, passes, and what it needs to know.
cat >k.kiln <<'K'
kernel scale(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 4) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = (1 + 1) * x[i:B];
}
K
k() { echo "\$ kiln emit $*"; "$KILN" emit "$@" 2>&1; echo "rc $?"; }
k k.kiln --stage ast
k k.kiln n=10
k k.kiln 'x=zeros(10,f16)' -D B=8
k k.kiln n=10 --opt 1 --stop-after simplify
k k.kiln n=10 --print-after dce
"$KILN" emit k.kiln n=10 --print-after all | grep '^;'
k k.kiln n=10 --skip simplify --skip cse --skip unroll --skip licm --skip dce
k k.kiln n=10 --skip nothing
k k.kiln
k k.kiln 'x=zeros(100000000x100000000)'
"$KILN" emit k.kiln n=10 --stage c >c1 && "$KILN" emit k.kiln 'x=zeros(10)' --stage c >c2 && cmp c1 c2 && grep -c . c1 >/dev/null && echo "C is the same"
"$KILN" emit k.kiln x=10:f32 --stage c >c3 && cmp c1 c3 && echo "and so for a shape"
k k.kiln x=10,2
echo "# from 2^27 programs on, a CTA may run several"
cat >many.kiln <<'K'
kernel many(i64 p, i32 out[1]) grid(1, p) { if (program_id(1) == 0) out[0] = 1; }
K
for p in 134217727 134217728; do
    "$KILN" emit many.kiln p=$p --stage ptx | awk -v p=$p '/nctaid/ { n++ } /div.u64/ { d++ }
        END { print p ": " n + 0 " loops over programs, " d + 0 " long divisions" }'
done
