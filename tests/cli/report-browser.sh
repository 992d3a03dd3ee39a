# The page of kiln report in Chromium: it asks for nothing, says nothing, is parsed as it was written,
# and is not wider than a narrow screen.  A page with planted faults shows that each would be seen.
command -v chromium >/dev/null || { echo "no chromium" >&2; exit 77; }
export HOME=$PWD
b() { # b PAGE: document, console and requests in dom, console, asked
    rm -rf profile net
    timeout 60 chromium --headless=new --no-sandbox --disable-gpu --no-first-run --disable-sync \
        --disable-background-networking --disable-component-update --disable-extensions \
        --allow-file-access-from-files --user-data-dir="$PWD/profile" \
        --host-resolver-rules="MAP * ~NOTFOUND" --log-net-log="$PWD/net" --enable-logging=stderr \
        --dump-dom "file://$PWD/$1" >dom 2>err || { echo "chromium: status $?"; tail -3 err; }
    grep -c 'CONSOLE' err >console
    # what the browser itself asks its maker for is not the page's
    grep -o '"url":"https*://[^"]*"' net | grep -v '"url":"https*://[a-z0-9.]*\.google\(apis\)*\.com/' |
        sort -u | wc -l | tr -d ' ' >asked
}
tags() { for t in section table tr td th svg text path div details figure ul li p; do
    printf '%s %s\n' $t "$(grep -o "<$t[ >]" "$1" | wc -l)"; done; }
cat >k.kiln <<'K'
kernel scale(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 512) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B]; // <img src="http://planted.invalid/a.png" onerror=alert(1)> </pre></td> & "'
}
K
cp "$SRC/tests/explain/bad/conflict.kiln" .
"$KILN" report k.kiln x=4096:f32 conflict.kiln x=256x256:f32 --gpu H200 --registers none -o a.html || exit 1
b a.html
echo "console $(cat console), requests $(cat asked)"
tags a.html >want
tags dom >got
diff want got && echo "parsed as written"
cat >wide.html <<'H'
<!DOCTYPE html><title>wait</title><iframe src="a.html" width="400" height="800" style="border:0"
onload="document.title='width '+this.contentDocument.documentElement.scrollWidth"></iframe>
H
b wide.html
w=$(sed -n 's/.*<title>width \([0-9]*\).*/\1/p' dom)
[ "${w:-9999}" -le 400 ] && echo "no wider than 400" || echo "width '$w'"
cat >bad.html <<'H'
<!DOCTYPE html><title>bad</title><img src="http://planted.invalid/a.png"><script>console.log("planted")</script>
<table><div>misplaced</div></table>
H
b bad.html
echo "planted: console $(cat console), requests $(cat asked)"
