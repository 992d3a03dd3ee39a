#!/bin/sh
# tune.sh [OUT] - `kiln tune` for what is worth most in the library, on a machine with an NVIDIA GPU:
# the cases of tune_cases.txt, in its order, until the time is up.  OUT (default: tune-gpu) receives
#
#     kernels/FILE.kiln.tune   what was found, beside what the library has: to be copied over kernels/
#     CASE.TYPE.txt            what was said, candidate by candidate
#     table.txt                default and tuned time, their ratio, and what became of the candidates
#
# Environment: O (build folder), DEVICE (a number, or a device of kiln), BUDGET (seconds to measure for
# each search, default 1), SECONDS_LEFT (for all of it, default 190), ONLY (some of the names of the
# cases), CASES (another file), MORE (options for all searches), KEPT (the files beside whose entries those
# found are put, default kernels).
set -u
OUT=${1:-tune-gpu}
O=${O:-build}
DEVICE=${DEVICE:-0}
case $DEVICE in [0-9]*) DEVICE=cuda:$DEVICE ;; esac
KILN=${KILN:-$O/kiln}
CASES=${CASES:-bench/gpu/tune_cases.txt}
SECONDS_LEFT=${SECONDS_LEFT:-190}
KEPT=${KEPT:-kernels}
began=$(date +%s)
mkdir -p "$OUT/kernels" || exit 1
failed=0
left() { echo $((SECONDS_LEFT - $(date +%s) + began)); }

# What one search said, as a line of the table.
row() {
    awk -v name="$1" -v type="$2" -v s="$3" '
        function cut(t) { sub(/^ +/, "", t); sub(/ +$/, "", t); return t }
        / candidates with the default/ {
            total = $1; alive = $0; sub(/.*; /, "", alive); sub(/ left.*/, "", alive)
            n = split($0, part, /: /)
            list = n > 1 ? part[2] : ""
            sub(/; .*/, "", list)
            n = split(list, part, /, /)
            for (i = 1; i <= n; i++) {
                k = part[i]; sub(/ .*/, "", k)
                # found out behind the compiler, the rest before
                if (part[i] ~ /out of registers|wrong result|failed at the launch|not compiled/) late = late ", " part[i]
                else { early = early ", " part[i]; pruned += k }
            }
        }
        /^  pruned in/ {
            prune = $3; compiled = $5; code = $10
        }
        /^  measured in/ { rounds = $3; measured = $5; sub(/;$/, "", measured); over = /time was up/ ? "*" : "" }
        /^  default  / { def = $2 " " $3 }
        /^  tuned  / {
            if (/default stays/) { tuned = "-"; ratio = "1"; how = "default" }
            else { tuned = $2 " " $3; sub(/,$/, "", tuned); ratio = $4; how = $0
                   sub(/^[^)]*\)  /, "", how); sub(/  \(last bits.*/, "", how); bits = /last bits/ ? " (other bits)" : "" }
        }
        END {
            if (!total || tuned == "") { printf "%-20s %-5s failed: see %s.%s.txt\n", name, type, name, type; exit }
            printf "%-20s %-5s %9s %9s %7s  %-30s %4d %4d %4d %4d%s  %5.1f %5.1f %5.1f %5d  %s%s\n", name, type, def == "" ? "-" : def,
                tuned, ratio, how bits, total, pruned, compiled, alive, over, prune, code, measured, s, substr(early, 3), late
        }' "$4"
}

# search NAME TYPE ABOVE WORDS
search() {
    file=$(expr "$4" : 'kernels/\([a-z0-9_]*\.kiln\)') || return 0
    label=$(echo "$1" | tr / -) at=$OUT/$(echo "$1" | tr / -).$2
    now=$(left)
    [ "$now" -gt 3 ] || { rest="$rest $1"; return 0; }
    [ "$now" -lt 60 ] || now=60
    to=$OUT/kernels/$file.tune
    [ -e "$to" ] || [ ! -e "$KEPT/$file.tune" ] || cp "$KEPT/$file.tune" "$to"
    more=${MORE:-}
    [ "$3" = - ] || more="$more --above $3"
    t=$(date +%s)
    # shellcheck disable=SC2086 # words
    timeout "$now" "$KILN" tune $(echo "$4" | sed "s/{T}/$2/g") $more --device "$DEVICE" \
        --budget "${BUDGET:-1}" -v -o "$to" >"$at.txt" 2>"$at.err" </dev/null
    rc=$?
    if [ $rc = 124 ] && [ "$now" -lt 60 ]; then # the last one
        rest="$rest $1"
        return 0
    fi
    if [ $rc != 0 ]; then
        failed=1
        printf '%-20s %-5s exit %d: %s\n' "$label" "$2" $rc "$(grep -m 1 error "$at.err" || echo 'too little time')"
        return 0
    fi
    row "$label" "$2" $(($(date +%s) - t)) "$at.txt"
    grep warning "$at.err"
    return 0
}

: >"$OUT/table.tmp"
{
    echo "cand: candidates with the default; prun: left out before the compiler; comp: compiled; timed"
    echo "(*: the time was up before all was known well); then seconds: pruning, code and results, times, all"
    printf '%-20s %-5s %9s %9s %7s  %-30s %4s %4s %4s %5s %5s %5s %5s %5s  %s\n' case type default tuned ratio \
        setting cand prun comp timed prune code times all 'left out'
    rest=
    while read -r name types above words; do
        case " ${ONLY:-$name} " in *" $name "*) ;; *) continue ;; esac
        case $name in '' | '#'*) continue ;; esac
        for type in $(echo "$types" | tr , ' '); do
            search "$name" "$type" "$above" "$words"
        done
    done <"$CASES"
    [ -z "$rest" ] || echo "no time was left; the rest: ONLY=\"$(echo "$rest" | tr ' ' '\n' | uniq | xargs)\" sh bench/gpu/tune.sh $OUT"
    echo "$(($(date +%s) - began)) s; entries: $(cat "$OUT"/kernels/*.tune 2>/dev/null | grep -c '^kernel '), of which" \
        "$(cat "$OUT"/kernels/*.tune 2>/dev/null | grep -c 'use    default') keep the default"
    echo "to keep them: cp $OUT/kernels/*.tune kernels/ && make && build/tests/api/test_tune"
} >>"$OUT/table.tmp" 2>&1 &
pid=$!
# the table as it grows
tail -n +1 -f "$OUT/table.tmp" 2>/dev/null &
shown=$!
wait $pid
sleep 1
kill $shown 2>/dev/null
cat "$OUT/table.tmp" >>"$OUT/table.txt"
grep -qE ' exit [0-9]+: | failed: see ' "$OUT/table.tmp" && failed=1
rm "$OUT/table.tmp"
exit $failed
