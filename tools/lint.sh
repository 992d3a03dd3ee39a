#!/bin/sh
# lint.sh [quick] - rules of the tree that a compiler does not check: includes go to the left in
# the list of folders, lengths of files and lines, names of external symbols, no variables, no
# printing and no exiting in the library, no paths of a machine.  Without `quick` also
# clang-tidy, cppcheck and gcc -fanalyzer.
set -u
O=${O:-build}
p=0 f=0
rule() { # rule NAME FINDINGS: none is good
    if [ -z "$2" ]; then
        p=$((p + 1))
    else
        f=$((f + 1))
        echo "FAIL $1"
        echo "$2" | head -20
    fi
}

sources=$(find src tests bench examples include -name '*.[ch]' -o -name '*.def' -o -name '*.inc' | sort)
lib=$(find src -name '*.[ch]' | sort)

# A folder of src includes folders to its left only; cli includes base and src/tool.h, which is
# what lib offers to it beyond kiln.h.
rule "includes go to the left" "$(grep -nE '^ *#include "' $lib | awk -F/ '
    BEGIN { n = split("base ir lang opt layout gen sim model rt lib cli", a, " "); for (i = 1; i <= n; i++) at[a[i]] = i }
    {
        own = $2; inc = $0
        sub(/^[^"]*"/, "", inc); sub(/".*/, "", inc)
        top = inc; sub(/\/.*/, "", top)
        if (!(top in at) || !(own in at)) next
        if (at[top] > at[own] || (own == "cli" && top != "cli" && top != "base")) print $0
    }')"
rule "examples and benches use kiln.h only" \
    "$(grep -rnE '^ *#include "' examples bench 2>/dev/null | grep -E '"(base|ir|lang|opt|gen|model|rt|lib|cli)/|"tool.h"')"
rule "no file above 1500 lines" \
    "$(wc -l $sources | awk '$2 != "total" && $1 > 1500 { print $2 ": " $1 " lines" }')"
# 100 columns is the aim; messages are not broken. Tables may be wider.
rule "no line above 120 columns" "$(awk 'length($0) > 120 && FILENAME !~ /\.def$|kiln\.h$/ {
        print FILENAME ":" FNR ": " length($0) " columns" }' $sources)"
rule "no blanks at ends of lines" "$(grep -nE '[[:space:]]+$' $sources)"
rule "no paths of a machine" "$(grep -nE '/(home|root|work|workspace)/' \
    $(find src bench examples include kernels docs tools -type f ! -name lint.sh) ./*.md Makefile 2>/dev/null)"
if [ -f "$O/libkiln.a" ]; then
    rule "external names begin with kl_ or kiln_" "$(nm -g --defined-only "$O/libkiln.a" 2>/dev/null |
        awk '$2 ~ /[TDBRV]/ { print $3 }' | grep -vE '^(kl|kiln)_' | sort -u)"
    # env.c keeps the strings of kiln_options_from_env for the life of the process; child.c the
    # compilers that run, for a signal handler of the command
    rule "no variables in the library" "$(objdump -t "$O/libkiln.a" 2>/dev/null | awk '
        /file format/ { member = $1 }
        ($4 == ".data" || $4 == ".bss" || $5 == ".data" || $5 == ".bss") && / O / && member !~ /^(env|child)[.]o:$/ {
            print member, $NF }')"
    rule "the library does not print, exit or abort" "$(nm -u "$O/libkiln.a" 2>/dev/null |
        awk '{ print $2 }' |
        grep -xE 'printf|puts|putchar|fprintf|fputs|perror|exit|abort|__assert_fail|system|popen|__printf_chk|__fprintf_chk' |
        sort -u)"
fi
if [ "${1:-}" != quick ]; then
    flags="-std=c11 -Iinclude -Isrc -I$O/gen -D_POSIX_C_SOURCE=200809L"
    code=$(find src -name '*.c' | sort)
    rule clang-tidy "$(clang-tidy --quiet $code -- $flags 2>/dev/null | grep -E 'warning:|error:')"
    rule cppcheck "$(cppcheck --quiet --enable=warning,performance,portability --inline-suppr \
        --std=c11 --suppress=missingIncludeSystem --suppressions-list=tools/cppcheck.txt -Iinclude -Isrc $code 2>&1)"
    rule "gcc -fanalyzer" "$(for c in $code; do
        gcc $flags -fanalyzer -O1 -c -o /dev/null "$c" 2>&1
    done | grep -E 'warning:')"
fi
echo "$p passed, $f failed, 0 skipped"
[ $f = 0 ]
