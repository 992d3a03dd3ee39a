#!/bin/sh
# check.sh - all tests, one line for each group, what failed below it, and at the end
# `N passed, N failed, N skipped`.  Called by `make check` from the root of the tree.
#
# Groups run side by side, as many as there are processors (LANES): each lane takes the next one of
# the list below.  Most groups use one processor, so that none is idle; builds use all.
#
# Environment: MAKE, O (build folder, default build), RANDOM_N and RANDOM_SEED (how many random
# programs, from which seed), GROUPS_ONLY (a subset of the names below), LANES.
set -u
MAKE=${MAKE:-make}
O=${O:-build}
J=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
[ "$J" -le 4 ] || J=4
RANDOM_N=${RANDOM_N:-200}
RANDOM_SEED=${RANDOM_SEED:-1}
LOGS=$O/check
case $O in /*) KILN=$O/kiln ;; *) KILN=$(pwd)/$O/kiln ;; esac
LANES=${LANES:-$J}
began=$(date +%s) lane=0
mkdir -p "$LOGS"
rm -rf "$LOGS/taken"
mkdir "$LOGS/taken"
: >"$LOGS/counts"
# Nothing of the caller's Kiln settings, no cache of earlier runs.
unset KILN_CC KILN_CACHE_DIR KILN_KEEP KILN_THREADS
CACHE=$(mktemp -d) || exit 1
lanes=
trap 'rm -rf "$CACHE"' EXIT
trap 'trap - EXIT; [ -z "$lanes" ] || kill $lanes 2>/dev/null; rm -rf "$CACHE"; exit 130' INT TERM
export KILN_CACHE_DIR="$CACHE/cache"

# Add up what the logs of a group say: our own last lines, and cmocka's.  Prints "P F S".
count() {
    awk '
        /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 }
        /^\[  PASSED  \] [0-9]+ test/ { p += $4 }
        /^\[  FAILED  \] [0-9]+ test/ { f += $4 }
        /^\[  SKIPPED \] [0-9]+ test/ { s += $4 }
        END { print p + 0, f + 0, s + 0 }' "$1"
}

# Seconds of processor time of all that this shell has waited for, of all processors.  `times` in a
# subshell would tell the subshell's own: hence the file.
cpu() {
    times >"$LOGS/times.$lane"
    cpu=$(awk 'NR == 2 { gsub("s", ""); n = split($0, t, /[m ]/); for (i = 1; i < n; i += 2)
               c += 60 * t[i] + t[i + 1]; printf "%d", c }' "$LOGS/times.$lane")
}

# group NAME COMMAND...: run it, count, show failures.  All that is said goes out at once, since
# another lane may speak too.
group() {
    name=$1
    shift
    case " ${GROUPS_ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    cpu
    log=$LOGS/$name.log t0=$(date +%s) cpu0=$cpu
    "$@" >"$log" 2>&1
    rc=$?
    cpu
    set -- $(count "$log")
    [ $rc = 0 ] || [ "$2" -gt 0 ] || set -- "$1" 1 "$3"     # ended badly without a count
    [ $rc != 0 ] || [ "$1$2$3" != 000 ] || set -- 1 0 0     # a build: one test
    echo "$1 $2 $3 $((cpu - cpu0))" >>"$LOGS/counts"
    said=$(printf '%-18s %5d passed %4d failed %4d skipped %5d s %5d s cpu' "$name" "$1" "$2" \
        "$3" $(($(date +%s) - t0)) $((cpu - cpu0)))
    [ "$2" = 0 ] || said="$said
$({ grep -nE 'FAIL|rror:|ERROR|warning:|WARNING: Th' "$log" || tail -20 "$log"; } | head -40 | sed 's/^/    /')
    (all of it: $log)"
    printf '%s\n' "$said"
    [ "$2" = 0 ]
}

finish() {
    awk -v s=$(($(date +%s) - began)) '{ p += $1; f += $2; k += $3; c += $4 }
        END { printf "%d seconds, %d of processor time\n%d passed, %d failed, %d skipped\n", s, c,
              p, f, k; exit f > 0 }' "$LOGS/counts"
    exit
}

# A lane: the first item that no lane has taken, until there is none.
work() {
    lane=$1
    shift
    for item; do
        mkdir "$LOGS/taken/$item" 2>/dev/null && "do_$item"
    done
}

build() { dir=$1 target=$2; shift 2; $MAKE --no-print-directory -j"$J" O="$dir" WERROR=1 "$@" $target; }

# Each of these test programs; a crash counts as one failure.
each() {
    rc=0
    for t in "$@"; do
        [ -f "$t" ] && [ -x "$t" ] || continue
        echo "== $t"
        "$t" >"$LOGS/one.$lane" 2>&1
        r=$?
        cat "$LOGS/one.$lane"
        set -- $(count "$LOGS/one.$lane")
        [ $r = 0 ] || rc=1
        if [ $r != 0 ] && [ "$2" = 0 ]; then
            echo "FAIL $t ended with status $r"
            echo "0 passed, 1 failed, 0 skipped"
        fi
    done
    return $rc
}

replay() { # replay FOLDER VARIANTS: fuzz targets on the sources of the tree and variants of them
    rc=0
    for t in parse case compile fmt; do
        echo "== $t"
        "$1/tests/replay/$t" -n "$2" kernels/*.kiln tests/run/*.kiln tests/diag/*.kiln \
            tests/lang/*.kiln || rc=1
    done
    [ ! -x "$1/tests/replay/npy" ] || "$1/tests/replay/npy" -n "$2" tests/*.c || rc=1
    [ ! -x "$1/tests/replay/tune" ] || "$1/tests/replay/tune" -n $(($2 * 50)) tests/fuzz/seeds/*.tune || rc=1
    [ ! -x "$1/tests/replay/safetensors" ] || # a tenth of the variants parse: more of them
        "$1/tests/replay/safetensors" -n $(($2 * 50)) tests/fuzz/seeds/*.json || rc=1
    return $rc
}

model() { # what kernels ask of memory: the model against the executor, line by line
    rc=0
    "$O/tests/model-agree" kernels/*.kiln tests/run/*.kiln tests/explain/bad/*.kiln \
        --random 200 "$RANDOM_SEED" || rc=1
    "$O/tests/model-agree" --no-swizzle kernels/transpose.kiln tests/explain/bad/*.kiln || rc=1
    return $rc
}

each_device() { # kernels over shapes: a choice; `shape-sweep --full` is all of them
    rc=0
    for d in sim cpu cuda; do
        echo "== $d"
        LD_LIBRARY_PATH="$O/tests/fakecuda" "$O/tests/shape-sweep" --device $d || rc=1
    done
    return $rc
}

hosts() { # threads, errors, two devices
    rc=0
    for d in sim cpu cuda cuda:1; do
        echo "== $d"
        FAKECUDA_DEVICES=2 FAKECUDA_MEMORY=67108864 LD_LIBRARY_PATH="$O/tests/fakecuda" \
            "$O/tests/device-check" --device $d || rc=1
    done
    return $rc
}

ahead() { # kernels built ahead of time: a few; `make check-build` is all of them
    rc=0
    "$O/tests/aot-check" --every 101 --from 3 --launches --cc "cc -DKL_NO_V4" --jobs 1 \
        kernels/*.kiln || rc=1
    "$O/tests/aot-check" --every 307 kernels/*.kiln || rc=1
    LD_LIBRARY_PATH="$O/tests/fakecuda" "$O/tests/aot-check" --cuda --every 211 --from 5 \
        --cc "cc -DKL_NO_V4" kernels/*.kiln || rc=1
    return $rc
}

tsan() { # what several threads do to the library, under ThreadSanitizer
    export TSAN_OPTIONS=halt_on_error=0:exitcode=66
    rc=0
    for d in sim cpu cuda; do
        echo "== $d"
        LD_LIBRARY_PATH="$O-tsan/tests/fakecuda" "$O-tsan/tests/device-check" --device $d \
            --part threads --turns 8 || rc=1
    done
    each "$O-tsan/tests/unit/test_trace" || rc=1 # listeners of eight threads
    return $rc
}

san() { # under AddressSanitizer and UBSan: each error ends the program
    export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    export PTXAS=/nonexistent KILN_TEST_LEVEL=-O0 # other programs' work, done in `unit`
    rc=0
    each "$O-san/tests/unit"/* "$O-san/tests/api"/* || rc=1
    "$O-san/tests/kt" lang diag opt gen || rc=1
    replay "$O-san" 20 || rc=1
    "$O-san/tests/random-programs" -n 30 -s "$RANDOM_SEED" -j 1 --interp || rc=1
    return $rc
}

do_san() {
    # clang's warnings are the second opinion; gcc would warn of what the instrumentation brings in
    group build-san build "$O-san" "all tests" CC=clang SAN=address,undefined \
        CFLAGS="-O1 -Wno-double-promotion" || return
    group san san
    # gcc evaluates arguments from the last, clang from the first: no text may depend on it
    group order sh tests/aot/order.sh "$KILN" "$O-san/kiln" kernels/attention.kiln \
        kernels/gemm.kiln tests/run/*.kiln
}
do_tsan() {
    group build-tsan build "$O-tsan" \
        "$O-tsan/tests/device-check $O-tsan/tests/unit/test_trace $O-tsan/tests/fakecuda/libcuda-fake.so" SAN=thread CFLAGS=-O1 \
        WERROR= && group tsan tsan
}
do_unit() { group unit each "$O"/tests/unit/*; }
do_api() { group api each "$O"/tests/api/*; }
# With passes under the compilers at their best; without passes the back end alone is under test.
printf '#!/bin/sh\nexec /usr/bin/cc "$@" -O1\n' >"$CACHE/plain-cc"
chmod +x "$CACHE/plain-cc"
random_programs() {
    KILN_TEST_PLAIN_CC=$CACHE/plain-cc "$O/tests/random-programs" "$@" -j 1
}
do_random() { group random random_programs -n "$RANDOM_N" -s "$RANDOM_SEED"; }
do_kernels() { group kernels "$O/kiln" test kernels tests/run; }
# the executor runs all of them below; `make check-random` compiles all for the CPU
do_operations() { group operations random_programs --ops --every 6; }
do_golden() { group golden "$O/tests/kt" --kiln "$KILN"; }
do_replay() { group replay replay "$O" 60; }
do_sweep() { group sweep each_device; }
do_sim_operations() { group sim-operations "$O/tests/random-programs" --ops --interp --sim -j 1; }
do_sim() { group sim "$O/kiln" test kernels tests/run --device sim; }
do_sim_random() {
    group sim-random "$O/tests/random-programs" -n "$RANDOM_N" -s "$RANDOM_SEED" --interp --sim -j 1
}
do_fakecuda() {
    group fakecuda env LD_LIBRARY_PATH="$O/tests/fakecuda" "$O/kiln" test kernels tests/run \
        --device cuda
}
do_hosts() { group hosts hosts; }
do_ulp() { group ulp "$O/tests/ulp-check" --sample 4099 --threads 1; }
do_oom() { group oom each "$O"/tests/oom/*; }
do_surface() { group surface sh tests/api/surface.sh "$O"; }
do_install() { group install env MAKE="$MAKE" sh tests/api/install.sh "$O"; }
do_python() { group python sh python/tests/check.sh "$O"; }
do_errors() { group errors "$O/tests/kernel-errors" --device interp; }
do_model() { group model model; }
do_ahead() { group build-ahead ahead; }
ncu() { # kiln explain beside the counters of ncu, with a stand-in for it
    if command -v python3 >/dev/null; then
        python3 tests/explain/test_ncu.py "$O"
    else
        echo "skip: python3 is missing"
        echo "0 passed, 0 failed, 1 skipped"
    fi
}
do_ncu() { group ncu ncu; }
do_lint() { group lint sh tools/lint.sh quick; }

group build build "$O" all && group build-tests build "$O" tests || finish
# what takes long comes first, so that the lanes end together
n=1
while [ $n -le "$LANES" ]; do
    work $n san random unit tsan kernels operations api golden replay sweep sim_operations fakecuda sim \
        hosts errors ahead model ncu oom sim_random install ulp surface python lint &
    lanes="$lanes $!"
    n=$((n + 1))
done
wait
finish
