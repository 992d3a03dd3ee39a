# kiln check: findings, a clean kernel, JSON, cases, sources with errors.
cat >k.kiln <<'K'
kernel scale(i64 n, f32 y[], const f32 x[], constexpr i64 B = 256) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel fine(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 256) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel sum(i64 n, f32 y[n], const f32 x[n]) grid(n)
{
    i64 i = program_id(0);
    y[i] += x[i];
}
//! test two
//! kernel fine
//! input x = {1, 2}
//! output y = {2, 4}
K
printf 'kernel k(f32 x[4]) grid(1) { x[0:4] = y; }\n' >bad.kiln
printf 'kernel k(f32 x[4]) grid(1) { x[0:4] = 1; }\n' >plain.kiln
printf 'kernel k(f32 x[4], f32 a) grid(1) { x[0:4] = a; }\n' >scalar.kiln
printf 'kernel k(i64 n, f32 y[n], const f32 x[n]) grid(n) { y[program_id(0)] = x[program_id(0)]; }\n' >array.kiln
printf 'kernel k(f32 x[4], i64 n = 5) grid(1) { x[0:4] = 1; x[n] = x[n - 2]; f32 t = x[1]; }\n' >wrong.kiln
k() { echo "\$ kiln check $*"; "$KILN" check "$@" 2>&1; echo "rc $?"; }
k k.kiln:fine 'x=rand(1000)'
k k.kiln:scale 'x=rand(1000)' 'y=zeros(1000)' n=1000
k k.kiln:scale 'x=rand(1000)' 'y=zeros(1024)' n=1000 --format json
k k.kiln:fine 'x=rand(1000)' --format=json
k k.kiln:scale 'x=rand(1000)' n=1000
k k.kiln:sum 'x=rand(3)'
k k.kiln
k plain.kiln
k scalar.kiln
k array.kiln
k wrong.kiln
k bad.kiln
k bad.kiln --format json
k k.kiln:fine
k k.kiln:fine --format json
k k.kiln:fine 'x=rand(1000)' -o out.txt
cat out.txt
k k.kiln:scale 'x=rand(1000)' 'y=zeros(1024)' n=1000 --format sarif -o out.sarif --color always
grep -c '"ruleId"' out.sarif
k k.kiln -o out.txt
cat out.txt
k k.kiln:fine nope=1 -o none.txt
[ -e none.txt ] || echo no file
