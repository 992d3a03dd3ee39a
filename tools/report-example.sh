#!/bin/sh
# report-example.sh - a page of `kiln report` from softmax, matmul and transpose, with times of this
# CPU: $O/report.html.  Takes half a minute.
set -eu
O=${O:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bench() {
    "$O/kiln" bench "$@" --device cpu --timeout 1
}
bench kernels/softmax.kiln:softmax 'x={n}x1024:f32' --sweep n=64:4096:*4 --format json -o "$tmp/softmax.json"
bench kernels/matmul.kiln:matmul 'a={n}x{n}:f32' 'b={n}x{n}:f32' --sweep n=128:512:*2 \
    --flops '2*M*N*K' --format json -o "$tmp/matmul.json"
bench kernels/transpose.kiln:transpose 'x=2048x2048:f32' --format json -o "$tmp/transpose.json"
"$O/kiln" report kernels/softmax.kiln:softmax x=4096x1024:f32 \
    kernels/matmul.kiln:matmul a=512x512:f32 b=512x512:f32 \
    kernels/transpose.kiln:transpose x=2048x2048:f32 --gpu H200 \
    --bench "$tmp/softmax.json" --bench "$tmp/matmul.json" \
    --bench "$tmp/transpose.json" --title "Softmax, matmul, transpose" -o "$O/report.html"
wc -c "$O/report.html"
