#!/bin/sh
# check.sh [OUT] - on a machine with an NVIDIA GPU: is everything right there, and what does it cost
# the host?  One line a step; a failing step does not stop the others.
#
# Needs programs that `make all tests` and bench/gpu/run.sh build (O: where), or the folder that
# pack.sh made.  OUT (default: bench-gpu) receives the log of each step.  Environment: O, DEVICE,
# JOBS, STEPS (some of: cases sweep random ops insns nn graphs occupancy hosts memcheck
# racecheck synccheck initcheck host; and only where they are named ncu and bad, see ncu.sh, and
# nvtx, see nvtx.sh), RANDOM_N (5000), EVERY (8: the sanitizer takes one case of the small sweep in
# so many), SECONDS_STEP (150), SANITIZER, SECONDS_NCU (200).
set -u
OUT=${1:-bench-gpu}
O=${O:-build}
DEVICE=${DEVICE:-0}
STEPS=${STEPS:-cases sweep random ops insns nn graphs occupancy hosts memcheck racecheck synccheck initcheck host}
SECONDS_STEP=${SECONDS_STEP:-150}
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 4)
JOBS=${JOBS:-$((cores > 12 ? 12 : cores))}
mkdir -p "$OUT" || exit 1
failed=0

# Where a program of the tests lies: in a build folder, or packed.
prog() {
    for p in "$O/tests/unit/$1" "$O/tests/$1" "$O/$1"; do
        [ -f "$p" ] && [ -x "$p" ] && { echo "$p"; return; }
    done
    echo "$1-is-missing"
}

# step NAME SECONDS COMMAND...: run it, keep its log, say how it ended.
step() {
    name=$1 most=$2
    case $name in test_*) name=nn ;; esac
    case " $STEPS " in *" $name "*) ;; *) return ;; esac
    name=$1
    shift 2
    t=$(date +%s)
    timeout "$most" "$@" >"$OUT/$name.log" 2>&1
    rc=$?
    t=$(($(date +%s) - t))
    case $rc in
    0) how=ok ;;
    124) how="OUT OF TIME" ;;
    *) how="FAILED ($rc)" ;;
    esac
    [ $rc = 0 ] || failed=1
    # our programs end with N passed, ...; cmocka counts by itself; the sanitizer has a summary
    said=$(awk '/ passed, [0-9]+ failed/ { p += $1; f += $3; k += $5; n = 1 }
                /^\[  PASSED  \]/ { p += $4; n = 1 }
                /^\[  FAILED  \] [0-9]+ test/ { f += $4; n = 1 }
                /ERROR SUMMARY|SUMMARY:/ { s = "; " $0 }
                END { if (n) printf "%d passed, %d failed, %d skipped%s", p, f, k, s }' \
        "$OUT/$name.log")
    printf '%-10s %-12s %4d s  %s\n' "$name" "$how" "$t" "$said"
    [ $rc = 0 ] || grep -aE 'FAIL|rror|=====.*(Invalid|Race|Barrier|Uninit)' "$OUT/$name.log" |
        head -6 | cut -c1-300 | sed 's/^/    /'
}

sanitize() { # sanitize TOOL [OPTION...]: a choice of all kernels, each array in memory of its own
    tool=$1
    shift
    step "$tool" 60 "${SANITIZER:-compute-sanitizer}" --tool "$tool" --error-exitcode 9 "$@" \
        "$(prog shape-sweep)" --device "cuda:$DEVICE" --host-arrays --repeat 1 --every "${EVERY:-8}"
}

sources=kernels
[ -d tests/run ] && sources="kernels tests/run"
{
    command -v nvidia-smi >/dev/null &&
        nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    [ -x "$O/kiln" ] && "$O/kiln" doctor
} >"$OUT/machine.txt" 2>&1
sed -n 1p "$OUT/machine.txt"

# What goes to the driver's assembler, which may end the process, has passed the executor.
step cases "$SECONDS_STEP" "$O/kiln" test $sources --device "cuda:$DEVICE"
step sweep "$SECONDS_STEP" "$(prog shape-sweep)" --device "cuda:$DEVICE" --full -j "$JOBS"
step random "$SECONDS_STEP" "$(prog random-programs)" -n "${RANDOM_N:-5000}" --interp --sim --cuda \
    --batch 100 -j "$JOBS"
step ops "$SECONDS_STEP" "$(prog random-programs)" --ops --interp --sim --cuda --batch 50 -j "$JOBS"
step insns 60 env KILN_TEST_DEVICE=1 "$(prog test_sim_ops)"
for t in test_nn test_nn_more test_order test_rows; do
    step "$t" 90 env KILN_TEST_DEVICE=1 "$(prog $t)"
done
step graphs 60 env KILN_TEST_DEVICE=1 "$(prog test_graph)"
# blocks that fit on a multiprocessor: the rule of `kiln explain` against the driver's answer
step occupancy "$SECONDS_STEP" env KILN_TEST_DEVICE=1 "$(prog test_occupancy)"
step hosts 60 "$(prog device-check)" --device "cuda:$DEVICE" --threads 16 --turns 60
sanitize memcheck
sanitize racecheck
sanitize synccheck
sanitize initcheck
step host "$SECONDS_STEP" env STEPS=host DEVICE="$DEVICE" O="$O" sh bench/gpu/run.sh "$OUT"
# the counters of Nsight Compute beside `kiln explain`; the slow kernels' times beside their remedies'
SECONDS_NCU=${SECONDS_NCU:-200}
step ncu "$((SECONDS_NCU + 170))" env STEPS="explain count" SECONDS_NCU="$SECONDS_NCU" O="$O" \
    DEVICE="cuda:$DEVICE" sh bench/gpu/ncu.sh "$OUT"
case " $STEPS " in *" ncu "*) grep -E '^ +[0-9.]+ s  (explain:|part |ncu |not |[0-9]+ metrics)|FAILED|^\| ' "$OUT/ncu.log" |
    cut -c1-150 ;; esac
step bad 100 env STEPS=time O="$O" DEVICE="cuda:$DEVICE" sh bench/gpu/ncu.sh "$OUT"
case " $STEPS " in *" bad "*) sed -n '/^| /p' "$OUT/bad.log" ;; esac
# does a profiler see the ranges that kiln pushes around its launches?
step nvtx 240 env O="$O" DEVICE="$DEVICE" sh bench/gpu/nvtx.sh "$OUT"
case " $STEPS " in *" nvtx "*) cat "$OUT/nvtx.log" ;; esac
exit $failed
