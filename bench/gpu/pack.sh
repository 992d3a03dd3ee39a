#!/bin/sh
# pack.sh DIR - what check.sh and run.sh need, stripped, for a machine that has a GPU but not the
# headers to build Kiln.  There: cd DIR; LD_LIBRARY_PATH=lib O=b STEPS=... sh bench/gpu/check.sh OUT
#
# Environment: O (build folder, in which all programs have been made), CC.
set -eu
DIR=${1:?usage: pack.sh DIR}
O=${O:-build}
mkdir -p "$DIR/b/bench/gpu" "$DIR/lib" "$DIR/tests"
cp -r kernels bench examples include "$DIR/"
cp -r tests/run tests/sweep tests/model tests/explain "$DIR/tests/"
mkdir -p "$DIR/b/bench/peers"
for p in cublas cudnn; do
    "${CC:-cc}" -O2 -shared -fPIC -Iinclude bench/peers/$p.c -o "$DIR/b/bench/peers/$p.so" -ldl
done
for p in kiln bench/gpu/kernels bench/gpu/launch bench/gpu/latency; do
    strip -o "$DIR/b/$p" "$O/$p"
done
for p in random-programs shape-sweep device-check compile-times launches unit/test_sim_ops \
    unit/test_graph unit/test_occupancy api/test_nn api/test_nn_more api/test_order \
    api/test_rows; do
    strip -o "$DIR/b/$(basename $p)" "$O/tests/$p"
done
"${CC:-cc}" -Iinclude -O2 -o "$DIR/b/chain" examples/chain.c "$O/libkiln.a" -ldl -lpthread -lm
# libraries that may be missing there
ldd "$O/kiln" "$O/tests/unit/test_sim_ops" | awk '/jansson|cmocka/ { print $3 }' | sort -u |
    while read -r l; do cp -L "$l" "$DIR/lib/"; done
du -sh "$DIR"
