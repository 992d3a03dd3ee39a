#!/bin/sh
# lint.sh [quick] - rules of the tree that a compiler does not check: includes go to the left in
# the list of folders, file lengths, names of external symbols, no printing or exiting in the
# library, no absolute paths.  Without `quick` also clang-tidy, cppcheck and gcc -fanalyzer.
set -u
O=${O:-build}
p=0 f=0
verdict() { # verdict NAME < findings: none is good
    found=$(cat)
    if [ -z "$found" ]; then
        p=$((p + 1))
    else
        f=$((f + 1))
        echo "FAIL $1"
        echo "$found" | head -20
    fi
}

sources=$(find src tests bench examples include -name '*.[ch]' -o -name '*.def' | sort)

# A folder of src includes folders to its left only: base ir lang opt gen rt lib cli.  What lib
# offers to the command line stands in src/tool.h.
grep -nE '^ *#include "' $(find src -name '*.[ch]' | sort) |
    awk -F'[/:"]' '
        BEGIN { n = split("base ir lang opt gen rt lib cli", a, " "); for (i = 1; i <= n; i++) at[a[i]] = i }
        {
            own = $2; inc = $0; sub(/^[^"]*"/, "", inc); sub(/".*/, "", inc); top = inc; sub(/\/.*/, "", top)
            if (top in at && own in at && at[top] > at[own]) print $0
            if (own == "cli" && top in at && top != "cli" && top != "base") print $0
        }' | verdict "includes go to the left"
grep -rnE '^ *#include "' examples tests/api bench 2>/dev/null | grep -vE '"(kiln\.h|[a-z_]+\.h)"' |
    verdict "examples, API tests and benches use kiln.h only"
wc -l $sources | awk '$2 != "total" && $1 > 1500 { print $2 ": " $1 " lines" }' |
    verdict "no file above 1500 lines"
awk 'length($0) > 100 && FILENAME !~ /\.def$/ { print FILENAME ":" FNR ": " length($0) " columns" }' $sources |
    verdict "no line above 100 columns"
grep -nE '[[:space:]]+$' $sources | verdict "no blanks at ends of lines"
if [ -f "$O/libkiln.a" ]; then
    nm -g --defined-only "$O/libkiln.a" 2>/dev/null | awk '$2 ~ /[TDBR]/ { print $3 }' |
        grep -vE '^(kl|kiln)_|^(_|__)' | sort -u | verdict "external names begin with kl_ or kiln_"
    nm -g "$O/libkiln.a" 2>/dev/null | awk '$2 ~ /[BD]/ { print $3 }' | grep -v '^__' | sort -u |
        verdict "no global variables"
    nm -u "$O/libkiln.a" 2>/dev/null | awk '{ print $2 }' |
        grep -xE 'printf|puts|putchar|fprintf|fputs|perror|exit|_?abort|__assert_fail|system|popen|__printf_chk|__fprintf_chk' |
        sort -u | verdict "the library does not print, exit or abort"
fi
grep -nE '/(home|root|work|workspace)/' $sources kernels/*.kiln 2>/dev/null |
    verdict "no paths of a machine"
if [ "${1:-}" != quick ]; then
    flags="-std=c11 -Iinclude -Isrc -I$O/gen -D_POSIX_C_SOURCE=200809L"
    lib=$(find src -name '*.c' | sort)
    clang-tidy --quiet $lib -- $flags 2>/dev/null | grep -E 'warning:|error:' | verdict clang-tidy
    cppcheck --quiet --enable=warning,performance,portability --inline-suppr --std=c11 \
        --suppress=missingIncludeSystem -Iinclude -Isrc $lib 2>&1 | verdict cppcheck
    for c in $lib; do
        gcc $flags -fanalyzer -O1 -c -o /dev/null "$c" 2>&1
    done | grep -E 'warning:' | verdict "gcc -fanalyzer"
fi
echo "$p passed, $f failed, 0 skipped"
[ $f = 0 ]
