# `kiln bench` without a look at its times: what stands in the report, comparing, wrong words.
# Numbers of measured things become #.
cat >k.kiln <<'K'
kernel one(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 256) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel two(i64 n, type T = f32, T y[n], const T x[n], const T w[n], constexpr i64 B = 256)
    grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B] + w[i:B];
}
kernel most(i64 n, f32 y[n], const f32 x[n]) grid(n - 1) { i64 i = program_id(0); y[i] = x[i]; }
kernel grow(i64 n, f32 x[n]) grid(n) { i64 i = program_id(0); x[i] += 1; }
K
hide() {
    sed -E 's/^device  .*/device .../; /^ +last-level cache/d; /^ +L2 cache/d; /^note: CPU/d
        s/[0-9]+ copies/# copies/; s/\[[^]]*\]/[#]/g; s/[0-9.]+%/#%/g
        s/[0-9.]+x/#x/; s/(SAME|FAST|SLOW|AMBG)/STATE/
        s/[0-9.]+ (ns|us|ms|s)\>/# u/g; s/( 3) +[0-9.]+/\1 #/; s/  +/  /g'
}
b() { "$KILN" bench "$@" --samples 3 --device interp 2>&1; }
echo "== rows"
b k.kiln:one x=1000:f32 --measure cold,warm | sed 's/1000x/1000/' | hide
echo "rc $?"
b k.kiln:one k.kiln:two x=1000:f32 --measure warm -D B=128,256 | hide
b k.kiln:one 'x={n}:{T}' --sweep n=64:256:*2 --sweep T=f32,i32 --measure warm --format csv |
    cut -d, -f1-7,14
b k.kiln:grow x=100:f32 --measure cold --flops 'n*1' --format json |
    grep -E '"(kernel|shape|check|samples|stop|flops|bytes|schema)"'
echo "== files"
b k.kiln:one x=1000:f32 --measure warm --save a.json -o a.txt
head -c 6 a.txt
echo
b k.kiln:one x=1000:f32 --measure warm --baseline a.json --format csv | cut -d, -f1-3,10 |
    sed 's/,[0-9.]*$/,#/'
b k.kiln:one x=999:f32 --measure warm --baseline a.json | grep 'not in'
# as if it had been a thousand times faster
"$KILN" bench k.kiln:one x=1000:f32 --samples 30 --measure warm --device interp --save a.json \
    --format csv >/dev/null
sed -E '/"(median|min|p95)"/s/: [0-9.e-]+/: 1e-9/; /"ci"/,/\]/s/^( *)[0-9.e-]+/\11e-9/
    /"sorted"/,/\]/s/^( *)[0-9.e-]+/\11e-9/' a.json >fast.json
"$KILN" bench k.kiln:one x=1000:f32 --samples 30 --measure warm --device interp \
    --baseline fast.json --fail-on 5% | tail -1
"$KILN" bench k.kiln:one x=1000:f32 --samples 30 --measure warm --device interp \
    --baseline fast.json --fail-on 5% >/dev/null
echo "rc $?"
# with a limit, what cannot be compared does not pass
"$KILN" bench k.kiln:one x=999:f32 --samples 3 --measure warm --device interp \
    --baseline fast.json --fail-on 5% | tail -1
"$KILN" bench k.kiln:one x=999:f32 --samples 3 --measure warm --device interp \
    --baseline fast.json --fail-on 5% >/dev/null
echo "rc $?"
echo "== wrong results"
b k.kiln:most x=1000:f32 --measure warm | grep FAILED
b k.kiln:most x=1000:f32 --measure warm >/dev/null
echo "rc $?"
b k.kiln:one x=1000:f32 --measure warm --verify k.kiln:most | grep -c FAILED
echo "== wrong words"
w() { "$KILN" bench --device interp "$@" 2>&1 | sed "s/; \`.*//"; }
w
w k.kiln:one x=8:f32 nothing=3
w k.kiln:one x=8:f32 --measure hot
w k.kiln:one x=8:f32 --measure 1:10
w k.kiln:one x=8:f32 --measure cold,1:10:+1
w k.kiln:one x=8:f32 --device 1:10
w k.kiln:one x=8:f32 --measure ceilings
w k.kiln:one x=8:f32 -D B=1:10
w k.kiln:one x=8:f32 --tol soon --verify k.kiln:one
w k.kiln:one x=8:f32 --verify k.kiln:nothing
w k.kiln:one x=8:f32 --samples 2.5
w k.kiln:one x=8:f32 --timeout long
w k.kiln:one x=8:f32 --measure ,
w k.kiln:one x=8:f32 --device cpu,
w k.kiln:one 'x={n}:f32' --sweep n=1:10
w k.kiln:one 'x={n}:f32' --sweep n=1:20000:+1
w k.kiln:one 'x={n}:f32' --sweep 'n=1:2^63:*2'
w k.kiln:one x=8:f32 --sweep n
w k.kiln:one 'x={n*T}:f32' --sweep n=8 --sweep T=f32
w k.kiln:one x=8:f32 --flops 'q*2'
w k.kiln:one x=8:f32 --fail-on 5%
w k.kiln:one x=8:f32 --fail-on much --vs k.kiln:two
w k.kiln:one x=8:f32 --samples 0
w k.kiln:one x=8:f32 --format html
w k.kiln:one x=8:f32 --baseline none.json
w k.kiln:one x=8:f32 --baseline k.kiln
echo '{"schema": "kiln.bench/1", "rows": 4}' >rows.json
w k.kiln:one x=8:f32 --baseline rows.json
base() { # TIMES: of a row
    echo '{"schema": "kiln.bench/1", "rows": [{"kernel": "one/f32", "setting": "", "shape": "8",
        "point": "", "device": "interp", "warm": '"$1"'}]}' >rows.json
    "$KILN" bench --device interp k.kiln:one x=8:f32 --baseline rows.json --fail-on 5 2>&1
    echo "rc $?"
}
base '{"median": 1, "min": 1, "ci": [1, 1], "samples": 3, "sorted": ["a", null, -1]}'
base '{"median": 1, "min": 1, "ci": [1], "samples": 3}'
base '{"median": "1", "min": 1, "ci": [1, 1], "samples": 3}'
base '7'
# another machine than now
echo '{"schema": "kiln.bench/1", "devices": [{"device": "interp", "name": "Abacus"}], "rows": [
    {"kernel": "one/f32", "setting": "", "shape": "8", "point": "", "device": "interp",
     "warm": {"median": 1, "min": 1, "ci": [1, 1], "samples": 9}}]}' >rows.json
b k.kiln:one x=8:f32 --measure warm --baseline rows.json | grep Abacus | sed 's/this is .*:/this is #:/'
sed 's/Abacus/'"$(b k.kiln:one x=8:f32 --measure warm --format json | sed -n 's/.*"name": "\(.*\)",/\1/p' | head -1)"'/
    s/"warm"/"copy_gbs": 1e9, "warm"/' rows.json >same.json
b k.kiln:one x=8:f32 --measure warm,ceilings --baseline same.json | grep -o 'in same.json it was.*'
echo '{"schema": "kiln.bench/1", "rows": [3]}' >rows.json
w k.kiln:one x=8:f32 --baseline rows.json
echo '{"schema": "kiln.bench/1", "rows": [{"kernel": 3}]}' >rows.json
w k.kiln:one x=8:f32 --baseline rows.json
w k.kiln:one x=8:f32 --peer none.py
w k.kiln:one x=8:f32 --peer ./k.kiln
w k.kiln:one x=8x8:f32
w k.kiln:one
w k.kiln:one x=8:f32 --device cpu,gpu
# no copy stands beside a launch that moves nothing
echo 'kernel none() grid(1) {}' >none.kiln
"$KILN" bench none.kiln --device interp --samples 2 --measure warm,ceilings | grep -E -c "^none|copy"
