#!/bin/sh
# surface.sh BUILD - the header in C and C++, the symbols and the needs of libkiln.so, and the
# example's one cc line.  Run in the source folder.  Last line: N passed, N failed, N skipped.
# `surface.sh BUILD --update` rewrites the list of symbols.
build=${1:?usage: surface.sh BUILD [--update]}
here=tests/api
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $1"; }
skip() { skipped=$((skipped + 1)); echo "SKIP $1"; }

# ---- each header, alone and twice, in every language it promises ----
header() {
    tool=$1 file=$2
    shift 2
    if ! command -v "$tool" > /dev/null; then
        skip "header: no $tool"
    elif "$tool" "$@" -Iinclude -Wall -Wextra -pedantic-errors -Werror -c -o "$tmp/h.o" "$file" \
        2> "$tmp/log"; then
        ok
    else
        bad "$h: $tool $*"
        sed 10q "$tmp/log"
    fi
}
for path in include/*.h together; do
    h=$(basename "$path")
    case $h in
    together) printf '#include "%s"\n' $(cd include && ls -r ./*.h) ;;
    *) printf '#include "%s"\n#include "%s"\n' "$h" "$h" ;;
    esac > "$tmp/h.c"
    echo 'extern int none;' >> "$tmp/h.c"
    if [ "$h" = kiln.h ]; then
        printf 'extern kiln_options o;\nkiln_options o = KILN_OPTIONS_INIT;\n' >> "$tmp/h.c"
        printf 'int f(void);\nint f(void) { return kiln_version() != KILN_VERSION; }\n' >> "$tmp/h.c"
    fi
    cp "$tmp/h.c" "$tmp/h.cc"
    for std in c99 c11 c17 c2x; do
        header gcc "$tmp/h.c" -std=$std
        header clang "$tmp/h.c" -std=$std
    done
    for std in c++11 c++17 c++20; do
        header g++ "$tmp/h.cc" -std=$std
        header clang++ "$tmp/h.cc" -std=$std
    done
    header gcc "$tmp/h.c" -std=c99 -Wconversion -Wshadow -Wstrict-prototypes -Wundef -Wc++-compat
done

# ---- what the library exports: the public names and nothing else ----
if command -v nm > /dev/null; then
    nm -D --defined-only "$build/libkiln.so" | awk '{print $3}' | sed 's/@.*//' | LC_ALL=C sort \
        > "$tmp/symbols"
    [ "$2" = --update ] && cp "$tmp/symbols" $here/symbols.txt
    if diff -u $here/symbols.txt "$tmp/symbols"; then ok; else bad "exported symbols"; fi
    # each function of the header is there
    sed -n 's/^KILN_API.*[ *]\(kiln_[a-z0-9_]*\)(.*/\1/p' include/*.h | LC_ALL=C sort > "$tmp/names"
    if diff -u "$tmp/names" "$tmp/symbols"; then ok; else bad "header and library differ"; fi
    # internal names cannot clash with the host's in the static library either
    if nm --defined-only -g "$build/libkiln.a" 2> /dev/null |
        awk 'NF == 3 && $3 !~ /^(kl_|kiln_|__|_GLOBAL|DW\.)/ {print $3; n++} END {exit n > 0}'; then
        ok
    else
        bad "names without the prefix kl_ or kiln_ in libkiln.a"
    fi
else
    skip "symbols: no nm"
fi

# ---- what it needs ----
if command -v readelf > /dev/null; then
    readelf -d "$build/libkiln.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' > "$tmp/needed"
    if grep -vE '^(libc|libm|libdl|libpthread|ld-linux[-a-z0-9]*)\.so' "$tmp/needed"; then
        bad "libkiln.so needs more than libc, libm, libdl, libpthread"
    else
        ok
    fi
else
    skip "needs: no readelf"
fi

# ---- nothing that prints, ends the process or touches signals ----
if command -v nm > /dev/null; then
    banned='exit|_exit|abort|atexit|signal|sigaction|setlocale|printf|puts|putchar|perror|fork'
    banned="$banned|vfork|system|popen|setenv|putenv|unsetenv|getenv|chdir|umask|rand|srand|strtok"
    if nm -D --undefined-only "$build/libkiln.so" | awk '{print $2}' | sed 's/@.*//' |
        grep -xE "$banned"; then
        bad "libkiln.so calls what a library must not"
    else
        ok
    fi
fi

# ---- the example builds with one line and runs ----
if cc -o "$tmp/softmax" examples/softmax.c -Iinclude -L"$build" -lkiln -lm 2> "$tmp/log" &&
    LD_LIBRARY_PATH=$build KILN_CACHE_DIR="$tmp/cache" "$tmp/softmax" > "$tmp/out" 2>&1; then
    ok
else
    bad "examples/softmax.c"
    cat "$tmp/log" "$tmp/out" 2> /dev/null | sed 10q
fi

# ---- the chain of kernels, on a driver that executes PTX on the CPU ----
if cc -o "$tmp/chain" examples/chain.c -Iinclude -L"$build" -lkiln 2> "$tmp/log" &&
    LD_LIBRARY_PATH=$build:$build/tests/fakecuda "$tmp/chain" cuda 40 300 > "$tmp/out" 2>&1 &&
    LD_LIBRARY_PATH=$build "$tmp/chain" interp 40 300 >> "$tmp/out" 2>&1; then
    ok
else
    bad "examples/chain.c"
    cat "$tmp/log" "$tmp/out" 2> /dev/null | sed 10q
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
