# The page of kiln report in Chromium (tests/browser/page.py): it asks for nothing, says nothing, every
# text can be read in both schemes, no text of a chart lies on another one or is cut, the keyboard
# comes everywhere, tables and headings are in order, and it is not wider than a narrow screen.  It is
# parsed as it was written.  A page with planted faults shows that each would be seen.
command -v chromium >/dev/null || { echo "no chromium" >&2; exit 77; }
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }
export HOME=$PWD
page() { timeout 100 python3 "$SRC/tests/browser/page.py" "$@"; echo "rc $?"; }
tags() { for t in section table tr td th svg text path div details figure ul li p; do
    printf '%s %s\n' $t "$(grep -o "<$t[ >]" "$1" | wc -l)"; done; }
cat >k.kiln <<'K'
kernel scale(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 512) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B]; // <img src="http://planted.invalid/a.png" onerror=alert(1)> </pre></td> & "'
}
K
cat >k.kiln.tune <<'K'
kiln-tune 1
kernel scale
    use B=1024 warps=2
    ms 0.01 default 0.02
K
cp "$SRC/tests/explain/bad/conflict.kiln" .
# a sweep of a kernel and two peers whose lines end at one height, and points that lie on each other
{
    echo '{"schema": "kiln.bench/1", "vs": "scale", "devices": [{"device": "cuda", "name": "H200", "copy_gbs": [900, 4200]}], "notes": ["<script>alert(1)</script>"], "rows": ['
    for n in 1024 4096 16384; do for k in scale/f32 '<img src=x onerror=alert(1)>' 'a peer with a name that is longer than its place'; do
        echo "{\"kernel\": \"$k\", \"shape\": \"$n\", \"point\": \"n=$n\", \"device\": \"cuda\", \"bytes\": $((8 * n)), \"flops\": $n, \"gbs\": 8$n.0, \"gflops\": 1$n.5, \"copy_gbs\": 900, \"cold\": {\"median\": 0.001, \"ci\": [0.0009, 0.0012], \"noise\": 0.1, \"samples\": 9}, \"vs\": {\"ratio\": 0.0051, \"state\": \"SLOW\"}},"
    done; done
    echo '{"kernel": "k", "shape": "s", "device": "cuda", "failed": true, "note": "it crashed"}]}'
} >bench.json
"$KILN" check k.kiln x='rand(64,f32)' --format json >c.json 2>/dev/null
"$KILN" report k.kiln x=4096:f32 conflict.kiln x=256x256:f32 --no-swizzle --gpu H200 --registers none \
    c.json --bench bench.json -o a.html 2>/dev/null || exit 1
"$KILN" explain k.kiln x=4096:f32 --gpu A100 --registers none --format json >e.json 2>/dev/null
sed 's/"registers": null/"registers": 40/; s/"occupancy": null/"occupancy": {"blocks": 16, "warps": 64, "warps_most": 64, "share": 1.0, "limited_by": ["warps"]}/' e.json >o.json
"$KILN" report o.json -o o.html || exit 1
page a.html
page o.html 390:dark
cat >bad.html <<'H'
<!DOCTYPE html><html><head><title>bad</title><style>.k:focus-visible { outline: none }</style></head><body>
<h1>x</h1><h3 id="a">jump</h3><p id="a" style="color: #999">grey</p><a href="#none">nowhere</a>
<table><thead><tr><th>a</th><td>b</td></tr></thead><tbody><tr><td>1</td></tr></tbody></table>
<a class="k" href="#a">no outline</a><div tabindex="0" style="position: fixed; left: -500px">off</div>
<div style="width: 3000px">wide</div>
<svg class="chart" viewBox="0 0 100 100" width="100" height="100"><text x="10" y="20">over</text>
<text x="12" y="22">lap</text><text x="90" y="50">cut here</text><text transform="translate(80 20) rotate(-30)">turned</text></svg>
<svg class="tile" viewBox="0 0 100 100" width="100" height="100"><path class="on" style="fill: #222" d="M0 0h50v30h-50Z"/><text x="5" y="15">dark</text></svg>
<img src="http://planted.invalid/a.png" alt=""><script>console.log("planted")</script></body></html>
H
page bad.html 390:light
timeout 60 chromium --headless=new --no-sandbox --disable-gpu --no-first-run --disable-sync \
    --disable-background-networking --disable-component-update --disable-extensions \
    --user-data-dir="$PWD/profile" --host-resolver-rules="MAP * ~NOTFOUND" --dump-dom "file://$PWD/a.html" >dom 2>err ||
    { echo "chromium: status $?"; tail -3 err; }
tags a.html >want
tags dom >got
diff want got && echo "parsed as written"
