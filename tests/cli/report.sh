# kiln report: pages of sources and files; what is wrong with an argument; the same bytes twice.
cp "$SRC/tests/explain/bad/conflict.kiln" .
cat >k.kiln <<'K'
// <img src=x onerror=alert(1)> </script><!--
kernel scale(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 512) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B]; // <img src=x onerror=alert(1)> </pre></td> & "'
}
K
cp k.kiln '<img src=x onerror=alert(1)>.kiln'
cat >bench.json <<'J'
{"schema": "kiln.bench/1", "devices": [{"device": "cuda", "name": "NVIDIA H200", "driver": 12080, "copy_gbs": [4100.5, 4200.5]}],
 "rows": [{"kernel": "scale/f32", "shape": "4096", "point": "n=4096", "device": "cuda", "cold": {"median": 0.0125, "ci": [0.012, 0.013]},
           "bytes": 32768, "gbs": 2600.0, "copy_gbs": 4200.5},
          {"kernel": "scale/f32", "shape": "8192", "point": "n=8192", "device": "cuda", "cold": {"median": 0.0135}, "bytes": 65536, "gbs": 2700}]}
J
k() { echo "\$ kiln report $*"; "$KILN" report "$@" 2>&1; echo "rc $?"; }
k
k x=4:f32
k k.kiln
k k.kiln x=4:q -o a.html
k missing.json
k k.kiln x=4096:f32 --bench k.kiln
echo '{"schema": "kiln.run/1"}' >other.json
k other.json -o a.html
# of the right schema, and still no report
for j in '"kiln.explain/1", "kernels": 3' '"kiln.explain/1", "kernels": [3]' '"kiln.explain/1"' \
    '"kiln.bench/1", "rows": 4' '"kiln.bench/1", "rows": [{"kernel": 1}]' \
    '"kiln.check/1", "diagnostics": {}'; do
    echo "{\"schema\": $j}" >wrong.json
    k wrong.json -o a.html
done
printf 'kiln-tune 2\nkernel scale\n' >two.tune
k two.tune -o a.html
k k.kiln x=4096:f32 -o missing/a.html
ls a.html 2>/dev/null
r() { "$KILN" report "$@" --registers none --gpu H200; }
# a page of two sources with values of their own, and of times; hostile text
r './<img src=x onerror=alert(1)>.kiln' x=4096:f16 conflict.kiln -D B=32 x=256x256:f32 --bench bench.json -o a.html
r './<img src=x onerror=alert(1)>.kiln' x=4096:f16 conflict.kiln -D B=32 x=256x256:f32 --bench bench.json >b.html
cmp a.html b.html && echo same
for s in '<img' '<script>' 'http-equiv' 'src="' 'url(' ' on[a-z]*="'; do grep -c "$s" a.html; done | tr '\n' ' '; echo
grep -c '<script type="application/json" id="data-[123]">' a.html
grep -o 'T = f16\|B = 32\|<details class="code"><summary>[A-Za-z ]*\|banks of shared memory</b>: [0-9]* wavefronts to store, [0-9]* to load\|figcaption>Roofline of [A-Z0-9a-z]*' a.html
# the notes stand below the line that they are about
r conflict.kiln x=256x256:f32 --no-swizzle | grep -A2 'src">.*trans(x' | sed 's/<[^>]*>/ /g' | grep -o 'K2203.*request, [0-9]* would do'
# files: what explain says is on the page, with the measured time of the row that moves the same bytes
"$KILN" explain k.kiln x=4096:f32 --gpu H200 --registers none --format json -o e.json
"$KILN" check k.kiln x='rand(64,f32)' --format json >c.json
cat >race.kiln <<'K'
kernel race(i64 n, f32 y[n], const f32 x[n]) grid(4) { y[0:4] = x[program_id(0):4]; }
K
"$KILN" check race.kiln x='rand(16,f32)' --format json >race.json
"$KILN" report race.json | sed -n '/"check"/,/<\/section/p' | sed 's/<[^>]*>/ /g' | grep -o 'findings .*races\|error K1301.*y\[0\]'
printf 'kiln-tune 1\n\nkernel scale\n    device cuda\n    use B=256\n' >t.tune
"$KILN" report e.json c.json bench.json t.tune --date 2026-01-31 --commit abc --title 'A & B' -o f.html
grep -o '^<title>[^<]*</title>\|<dt>\(date\|commit\)</dt><dd>[^<]*\|<td>B=256</td>\|class="good">clean\|measured, cold</dt><dd>[^<]*' f.html | sed 's/<[^>]*>/ /g'
grep -c 'The source is not in the report' f.html
# JSON comes out as it went in, but for blanks
sed -n 's/.*<script[^>]*id="data-3">\(.*\)<\/script>.*/\1/p' f.html >got
tr -d ' \n' <bench.json | sed 's/NVIDIAH200/NVIDIA H200/' >want; echo >>want
cmp got want && echo "as it went in"
# FILE.tune beside the source: its constants are taken, and the page has it with the entry that was
cp k.kiln tuned.kiln
cat >tuned.kiln.tune <<'T'
kiln-tune 1

kernel scale
    device cuda sm_80
    use B=2048

kernel scale
    device cuda sm_90
    when T=f32
    use B=1024
    ms 0.01 default 0.02
T
tuned() { sed 's/<[^>]*>/ /g' "$1" | grep -o ', B = [0-9]*\|cuda sm_.*tune:.*'; }
r tuned.kiln x=4096:f32 -o g.html 2>&1 | sed 's/([0-9]* entr/(N entr/'
tuned g.html
grep -c 'id="tune"' g.html
r tuned.kiln x=4096:f16 -o g.html 2>/dev/null && tuned g.html
r tuned.kiln x=4096:f32 --no-tune -o g.html && tuned g.html
grep -c 'id="tune"' g.html
r tuned.kiln x=4096:f32 tuned.kiln.tune -o g.html 2>/dev/null && grep -c 'on this page\|used by' g.html
echo "kiln-tune 3" >tuned.kiln.tune
k tuned.kiln x=4096:f32 --registers none -o g.html
# the words of the busiest banks add up to the wavefronts that the layouts were chosen by
sums() { awk '
    function end() { if (want != "") { n++; if (want != sum) { print want " wavefronts, drawn " sum }; hot += want > best } want = "" }
    /class="req"/ { end(); want = $0; sub(/ wavefront.*/, "", want); sub(/.*>/, "", want); best = $0
        sub(/ at best.*/, "", best); sub(/.* /, "", best); want += 0; best += 0; sum = 0 }
    /→ [0-9]/ { at = $0; sub(/.*→ /, "", at); sum += at + 0 }
    END { end(); print n " accesses, " hot " with conflicts" }' "$1"; }
r conflict.kiln x=256x256:f32 --no-swizzle -o w.html && sums w.html
r "$SRC/kernels/attention.kiln:attention" q=1x1x128x64:bf16 k=1x1x128x64:bf16 v=1x1x128x64:bf16 --no-tune -o w.html && sums w.html
