#!/bin/sh
# check.sh - all tests, one line for each group, what failed below it, and at the end
# `N passed, N failed, N skipped`.  Called by `make check` from the root of the tree.
#
# Environment: MAKE, O (build folder, default build), RANDOM_N and RANDOM_SEED (how many random
# programs, from which seed), GROUPS_ONLY (a subset of the names below).
set -u
MAKE=${MAKE:-make}
O=${O:-build}
J=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
[ "$J" -le 4 ] || J=4
RANDOM_N=${RANDOM_N:-200}
RANDOM_SEED=${RANDOM_SEED:-1}
LOGS=$O/check
case $O in /*) KILN=$O/kiln ;; *) KILN=$(pwd)/$O/kiln ;; esac
passed=0 failed=0 skipped=0 began=$(date +%s)
mkdir -p "$LOGS"
# Nothing of the caller's Kiln settings, no cache of earlier runs.
unset KILN_CC KILN_CACHE_DIR KILN_KEEP KILN_THREADS
CACHE=$(mktemp -d) || exit 1
trap 'rm -rf "$CACHE"' EXIT
trap 'exit 130' INT TERM
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

# group NAME COMMAND...: run it, count, show failures.
group() {
    name=$1
    shift
    case " ${GROUPS_ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    log=$LOGS/$name.log t0=$(date +%s)
    "$@" >"$log" 2>&1
    rc=$?
    set -- $(count "$log")
    [ $rc = 0 ] || [ "$2" -gt 0 ] || set -- "$1" 1 "$3"     # ended badly without a count
    [ $rc != 0 ] || [ "$1" -gt 0 ] || [ "$2" -gt 0 ] || set -- 1 0 "$3"     # a build: one test
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    printf '%-18s %5d passed %4d failed %4d skipped %5d s\n' "$name" "$1" "$2" "$3" \
        $(($(date +%s) - t0))
    if [ "$2" -gt 0 ]; then
        {
            grep -nE 'FAIL|rror:|ERROR|warning:' "$log" || tail -20 "$log"
        } | head -40 | sed 's/^/    /'
        echo "    (all of it: $log)"
    fi
    return 0
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}

build() { dir=$1 target=$2; shift 2; $MAKE --no-print-directory -j"$J" O="$dir" WERROR=1 "$@" $target; }

# Each binary of a folder of tests; a crash counts as one failure.
each() {
    dir=$1
    rc=0
    for t in "$dir"/*; do
        [ -f "$t" ] && [ -x "$t" ] || continue
        echo "== $t"
        "$t" >"$LOGS/one" 2>&1
        r=$?
        cat "$LOGS/one"
        set -- $(count "$LOGS/one")
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
    [ ! -x "$1/tests/replay/safetensors" ] || # a tenth of the variants parse: more of them
        "$1/tests/replay/safetensors" -n $(($2 * 50)) tests/fuzz/seeds/*.json || rc=1
    return $rc
}

random_programs() {
    "$O/tests/random-programs" -n "$RANDOM_N" -s "$RANDOM_SEED" -j "$J"
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
    "$O/tests/aot-check" --every 101 --from 3 --launches --cc "cc -DKL_NO_V4" --jobs "$J" \
        kernels/*.kiln || rc=1
    "$O/tests/aot-check" --every 307 kernels/*.kiln || rc=1
    LD_LIBRARY_PATH="$O/tests/fakecuda" "$O/tests/aot-check" --cuda --every 211 --from 5 \
        --cc "cc -DKL_NO_V4" kernels/*.kiln || rc=1
    return $rc
}

san() { # under AddressSanitizer and UBSan: each error ends the program
    export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    rc=0
    each "$O-san/tests/unit" || rc=1
    each "$O-san/tests/api" || rc=1
    "$O-san/tests/kt" lang diag opt gen || rc=1
    replay "$O-san" 20 || rc=1
    "$O-san/tests/random-programs" -n 30 -s "$RANDOM_SEED" -j "$J" --interp || rc=1
    return $rc
}

group build build "$O" all
[ "$failed" = 0 ] || finish
group build-tests build "$O" tests
[ "$failed" = 0 ] || finish
group unit each "$O/tests/unit"
group api each "$O/tests/api"
group golden "$O/tests/kt" --kiln "$KILN"
group kernels "$O/kiln" test kernels tests/run
# the executor runs all of them below; `make check-random` compiles all for the CPU
group operations "$O/tests/random-programs" --ops --every 6 -j "$J"
group random random_programs
group replay replay "$O" 60
group sim "$O/kiln" test kernels tests/run --device sim
group sim-operations "$O/tests/random-programs" --ops --interp --sim -j "$J"
group sim-random "$O/tests/random-programs" -n "$RANDOM_N" -s "$RANDOM_SEED" --interp --sim -j "$J"
group fakecuda env LD_LIBRARY_PATH="$O/tests/fakecuda" "$O/kiln" test kernels tests/run --device cuda
group sweep each_device
group model model
group hosts hosts
group build-ahead ahead
group ulp "$O/tests/ulp-check" --sample 4099 --threads 2
group oom each "$O/tests/oom"
group surface sh tests/api/surface.sh "$O"
group install env MAKE="$MAKE" sh tests/api/install.sh "$O"
group python sh python/tests/check.sh "$O"
group lint sh tools/lint.sh quick
group build-clang build "$O-clang" all CC=clang
# gcc warns of things that only the instrumentation brings in
group build-san build "$O-san" tests SAN=address,undefined CFLAGS=-O1 WERROR=
group san san
echo "$(($(date +%s) - began)) seconds"
finish
