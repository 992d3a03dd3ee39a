#!/bin/sh
# ncu.sh [OUT] - on a machine with an H200 and Nsight Compute: the counters of every library kernel and
# of the eight slow kernels beside what `kiln explain` says of them, and the slow kernels' times beside
# those of their remedies.
#
# Needs kiln and tests/launches (O: where), or the folder that pack.sh made; python3, ncu.  OUT
# (default: bench-gpu) receives explain-h200.md, which is a page for bench/results; ncu.csv, the raw
# table; ncu-raw.tgz, all that the page is made of.  `python3 bench/gpu/ncu.py report FOLDER` makes the
# page anew from what that holds.  Each step has a limit, and what one loses the others do not.
# Environment: O, STEPS (some of: explain count time), WORK (what steps leave for one another), and
# what ncu.py names.
set -u
OUT=${1:-bench-gpu}
export O=${O:-build}
STEPS=${STEPS:-explain count time}
WORK=${WORK:-$O/ncu-work}
here=$(dirname "$0")
failed=0
mkdir -p "$OUT" "$WORK/cache" || exit 1
export KILN_CACHE_DIR="${KILN_CACHE_DIR:-$(cd "$WORK/cache" && pwd)}"
if [ -s "$OUT/machine.txt" ]; then
    cp "$OUT/machine.txt" "$WORK/"
elif command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >"$WORK/machine.txt"
fi

# After each step the page is made of what there is.
part() { # part NAME SECONDS
    case " $STEPS " in *" $1 "*) ;; *) return ;; esac
    echo "== $1, $(date +%H:%M:%S)"
    timeout -k 10 "$2" python3 "$here/ncu.py" "$1" "$WORK" 2>&1 || failed=1
    [ -s "$WORK/explain.json" ] || return
    python3 "$here/ncu.py" report "$WORK" >"$OUT/explain-h200.md" || failed=1
    [ ! -s "$WORK/ncu.csv" ] || cp "$WORK/ncu.csv" "$OUT/"
    tar czf "$OUT/ncu-raw.tgz" -C "$WORK" --exclude cache .
}

part explain 110
part count "$((${SECONDS_NCU:-200} + 30))"
part time 80
echo "== done, $(date +%H:%M:%S)"
if [ -s "$OUT/explain-h200.md" ]; then
    if [ -s "$WORK/ncu.csv" ] && [ "$STEPS" != time ]; then
        awk '/^## The model/ { on = 1; next } /^##/ { on = 0 } on && /^\|/' "$OUT/explain-h200.md"
        echo "$(grep -c '\*\*not known\*\*' "$OUT/explain-h200.md") differences without a reason; the first:"
        grep '\*\*not known\*\*' "$OUT/explain-h200.md" | head -12
    else
        awk '/^## Eight/ { on = 1; next } /^##/ { on = 0 } on && /^\|/' "$OUT/explain-h200.md"
    fi
fi
exit $failed
