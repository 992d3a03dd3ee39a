#!/bin/sh
# deps.sh build|check|lint|extra - what must be installed.  Does nothing if all is there; installs
# the missing Debian packages as root or with sudo; else prints the command to type and fails.
# extra: what some tests of `make check` need, which are skipped and counted without it.
set -u
what=${1:-build}
missing=

have() { command -v "$1" >/dev/null 2>&1; }
header() { printf '#include <%s>\n' "$1" | cc -x c -E - >/dev/null 2>&1; }
# Without a compiler a header cannot be tried: then its package is named too.
need() { missing="$missing $1"; }

have cc || need gcc
have cc && header stdlib.h || need libc6-dev
have make || need make
header xxhash.h || need libxxhash-dev
header jansson.h || need libjansson-dev
case $what in
check | lint)
    printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n' |
        cc -x c -E - >/dev/null 2>&1 || need libcmocka-dev
    header mpfr.h || need libmpfr-dev
    have clang || need clang
    printf 'int main(void) { return 0; }\n' |
        clang -x c -fsanitize=address -o /dev/null - 2>/dev/null || need libclang-rt-dev
    have c++ || need g++
    have scdoc || need scdoc
    ;;
esac
if [ "$what" = extra ]; then
    have pkg-config || need pkg-config
    have cmake || need cmake
    have zsh || need zsh
    have fish || need fish
    have groff || need groff
    have chromium || need chromium
    have qemu-aarch64 || need qemu-user
    have aarch64-linux-gnu-gcc || need "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
    have python3 || need python3
    python3 -c 'import numpy' 2>/dev/null || need python3-numpy
fi
if [ "$what" = lint ]; then
    have clang-tidy || need clang-tidy
    have clang-format || need clang-format
    have cppcheck || need cppcheck
fi
[ -z "$missing" ] && exit 0

cmd="apt-get install -y --no-install-recommends$missing"
if ! have apt-get; then
    echo "missing here (Debian's names):$missing" >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    sudo=
elif have sudo && sudo -n true 2>/dev/null; then
    sudo="sudo -n"
else
    echo "packages are missing; type:" >&2
    echo "  sudo $cmd" >&2
    exit 1
fi
echo "installing:$missing"
log=$(mktemp) || exit 1
export DEBIAN_FRONTEND=noninteractive
$sudo $cmd >"$log" 2>&1 ||
    { $sudo apt-get update >"$log" 2>&1 && $sudo $cmd >>"$log" 2>&1; } ||
    {
        tail -5 "$log" >&2
        rm -f "$log"
        echo "installing failed; type:" >&2
        echo "  sudo $cmd" >&2
        exit 1
    }
rm -f "$log"
