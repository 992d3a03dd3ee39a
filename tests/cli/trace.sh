# kiln trace: the table, the time line, what a profiler hears.
here=$(dirname "$KILN")/tests
fake=$here/fakecuda
right=$here/unit/test_tracefile
[ -e "$fake/libcuda.so.1" ] && [ -x "$right" ] || { echo "the tests are not built" >&2; exit 77; }
cat >k.kiln <<'K'
kernel twice(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = 2 * x[i:4];
}
kernel add(i64 n, f32 z[n] = 0, const f32 a[n], const f32 b[n], constexpr i64 B = 4) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    z[i:B] = a[i:B] + b[i:B];
}
K
# names and how often; times are those of this machine
rows() { sed -E 's/ +[0-9.]+ (ns|us|ms|s)\b/ T/g; s/ +[0-9.]+ %/ %/; s/ % +[0-9.e+-]+$/ %/; s/^(its times|the GPU).*/\1/
    s/[0-9]+ spans/N spans/; s/: .*; open/: open/; s/(host|wait|compile|launch|else|all|copy|make|device|compare|open|fill|run).*/\1/' |
    LC_ALL=C sort -u | grep -vE '^($|bytes|wait|else|compare|all|device|open|make)'; }
chain() { "$KILN" trace k.kiln:twice --no-cache 'x={1, 2, 3, 4, 5}' "$@" --then k.kiln:add a=@y b=@x; }
for d in interp sim cpu; do
    echo "== $d"
    chain --device $d --repeat 3 --workers -o $d.json >$d.txt
    rows <$d.txt
    "$right" $d.json | sed 's/[0-9]* of workers/N of workers/'
done
echo "== cuda"
for clock in "" 1; do # the driver counts its operations, or looks at the clock
    LD_LIBRARY_PATH=$fake FAKECUDA_CLOCK=$clock chain --device cuda --repeat 3 -o cuda.json >cuda.txt
    rows <cuda.txt
    "$right" cuda.json
done
LD_LIBRARY_PATH=$fake "$KILN" trace k.kiln:add 'a={1}' 'b={2}' --device cuda -o cuda1.json >/dev/null
"$right" cuda1.json
grep -c '"cat":"memory"' cuda1.json
grep -o '"arguments":"[^"]*"' cuda1.json | sort | uniq -c
echo "== as JSON"
chain --device cpu --repeat 2 --format json -o r.json >report.json
LD_LIBRARY_PATH=$fake chain --device cuda --format json >cudareport.json
grep -E '"(schema|time_line|name|arguments|runs|timed_by)"' report.json | sort
grep -c '"ph":"X"' r.json | grep -qx 0 && echo "no time line"
grep -o '"[a-z_]*":' report.json cudareport.json | sed 's/.*"\(.*\)":/\1/' | sort -u | while read -r key; do
    grep -q "\`$key\`" "$SRC/docs/trace.md" || echo "docs/trace.md lacks $key"
done
echo "== the program of docs/trace.md"
sed -n '/^```c$/,/^```$/p' "$SRC/docs/trace.md" | sed '/^```/d' >program.c
${CC:-cc} -I"$SRC/include" -o program program.c "$here/../libkiln.a" -lm -ldl -lpthread &&
    ./program | sed 's/: .*//'
echo "== names"
mkdir 'a"b\c'
cp k.kiln 'a"b\c/k.kiln'
"$KILN" trace 'a"b\c/k.kiln:twice' 'x={1}' --device interp -o name.json >/dev/null
"$right" name.json
grep -o '"name":"source","args":{"file":"[^,]*' name.json
echo "== wrong"
bad() { "$KILN" trace "$@" 2>&1; echo "rc $?"; }
bad
bad k.kiln:twice 'x={1}' --repeat 0
bad k.kiln:twice 'x={1}' --repeat 1x
bad k.kiln:twice 'x={1}' --format csv
bad k.kiln:twice 'x={1}' -o none/t.json
bad k.kiln:twice --device interp -o unmade.json | head -3
ls unmade.json 2>&1 | sed 's/.*: //'
echo "== a profiler"
NVTX=$here/nvtx/libinjection.so
heard() { NVTX_INJECTION64_PATH=$NVTX INJECTION_WRITE_ALL=1 "$KILN" "$@" 2>&1 >/dev/null; }
heard run k.kiln:add 'a={1, 2}' 'b={3, 4}' --device interp
heard trace k.kiln:twice 'x={1, 2}' --device interp --repeat 2 --then k.kiln:add a=@y b=@x
NVTX_INJECTION64_PATH=$NVTX INJECTION_OLD=1 "$KILN" run k.kiln:twice 'x={1, 2}' --device interp 2>&1 >/dev/null
INJECTION_REFUSE=1 heard run k.kiln:twice 'x={1}' --device interp | sed "s|$here|TESTS|"
NVTX_INJECTION64_PATH=$fake/libcuda.so.1 "$KILN" run k.kiln:twice 'x={1}' --device interp 2>&1 | sed "s|$here|TESTS|"
