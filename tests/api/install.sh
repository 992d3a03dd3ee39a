#!/bin/sh
# install.sh BUILD - `make install` into a folder of its own: what it writes, examples built
# against that tree alone through pkg-config (shared and static) and through CMake, and
# `make uninstall`.  Run in the source folder.  Last line: N passed, N failed, N skipped.
#
# An example may need words on its command line: `install-test: WORDS` in one of its comments.
# One that ends with status 77 is skipped.
build=${1:?usage: install.sh BUILD}
case $build in /*) ;; *) build=$PWD/$build ;; esac
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAIL $1"
    [ -z "${2:-}" ] || sed 15q "$2"
}
skip() { skipped=$((skipped + 1)); echo "SKIP $1"; }
have() { command -v "$1" >/dev/null 2>&1; }
MAKE=${MAKE:-make}
unset PKG_CONFIG_PATH PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH CPATH LIBRARY_PATH MAKEFLAGS MFLAGS
export KILN_CACHE_DIR="$tmp/cache"
ver=$(awk '/^.define KILN_VERSION_(MAJOR|MINOR|PATCH) /{printf "%s%s",s,$3; s="."}' include/kiln.h)

# ---- a package's way: DESTDIR, and a LIBDIR two levels down ----
LIBDIR=/usr/lib/some-triplet
inst() { "$MAKE" --no-print-directory O="$build" DESTDIR="$1" PREFIX="$2" LIBDIR="$3" "$4" >"$tmp/log" 2>&1; }
if inst "$tmp/dest" /usr $LIBDIR install; then ok; else bad "make install DESTDIR" "$tmp/log"; fi
{
    printf '%s\n' bin/kiln include/kiln.h lib/some-triplet/libkiln.a lib/some-triplet/libkiln.so
    printf '%s\n' "lib/some-triplet/libkiln.so.${ver%%.*}" "lib/some-triplet/libkiln.so.$ver"
    printf 'lib/some-triplet/%s\n' pkgconfig/kiln.pc cmake/Kiln/KilnConfig.cmake cmake/Kiln/KilnConfigVersion.cmake
    printf 'share/%s\n' bash-completion/completions/kiln zsh/site-functions/_kiln fish/vendor_completions.d/kiln.fish
    for h in include/*.h; do echo "$h"; done
    if have scdoc; then for p in $(sh tools/man.sh --list); do echo "share/man/man${p##*.}/$p"; done; fi
} | LC_ALL=C sort -u >"$tmp/want"
(cd "$tmp/dest/usr" && find . ! -type d | sed 's,^\./,,') | LC_ALL=C sort >"$tmp/have"
if diff "$tmp/want" "$tmp/have" >"$tmp/log"; then ok; else bad "installed files" "$tmp/log"; fi
if grep -rlF "$tmp" "$tmp/dest/usr/lib/some-triplet/pkgconfig" "$tmp/dest/usr/lib/some-triplet/cmake" \
    "$tmp/dest/usr/share" >"$tmp/log"; then bad "DESTDIR is in installed files" "$tmp/log"; else ok; fi
if have readelf; then
    soname=$(readelf -d "$tmp/dest$LIBDIR/libkiln.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
    if [ "$soname" = "libkiln.so.${ver%%.*}" ] && [ -f "$tmp/dest$LIBDIR/$soname" ]; then ok; else bad "soname $soname"; fi
fi
if "$tmp/dest/usr/bin/kiln" --version >"$tmp/log" 2>&1; then ok; else bad "installed command" "$tmp/log"; fi

# ---- programs: nothing of the source folder is in sight ----
mkdir "$tmp/src"
cp examples/*.c "$tmp/src/"
for f in examples/*.cc examples/*.cpp examples/*.py; do [ ! -f "$f" ] || cp "$f" "$tmp/src/"; done
[ ! -d kernels ] || cp -r kernels "$tmp/src/"
words() { sed -n 's/.*install-test: *//p' "$1" | sed 's, *\*/$,,;1q'; }
run() { # run NAME PROGRAM WORDS...
    name=$1
    shift
    (cd "$tmp/src" && "$@") >"$tmp/log" 2>&1
    case $? in
    0) ok ;;
    77) skip "$name: $(sed 1q "$tmp/log")" ;;
    *) bad "$name" "$tmp/log" ;;
    esac
}
compiler() { case $1 in *.c) echo "cc -std=c99" ;; *) echo "c++ -std=c++17" ;; esac; }
PC=pkg-config
if ! have pkg-config; then
    skip "pkg-config is missing"
else
    export PKG_CONFIG_LIBDIR="$tmp/dest$LIBDIR/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$tmp/dest"
    if [ "$($PC --modversion kiln)" = "$ver" ]; then ok; else bad "version of kiln.pc"; fi
    for f in "$tmp"/src/*.c "$tmp"/src/*.cc "$tmp"/src/*.cpp; do
        [ -f "$f" ] || continue
        name=$(basename "$f")
        if $(compiler "$f") -D_POSIX_C_SOURCE=200809L -o "$tmp/shared" "$f" $($PC --cflags --libs kiln) -lm -ldl \
            >"$tmp/log" 2>&1; then
            run "$name, shared" env LD_LIBRARY_PATH="$tmp/dest$LIBDIR" "$tmp/shared" $(words "$f")
            if [ "$name" = trace.c ] && [ -x "$build/tests/unit/test_tracefile" ]; then
                run "trace.c, two streams" env LD_LIBRARY_PATH="$tmp/dest$LIBDIR:$build/tests/fakecuda" \
                    "$tmp/shared" cuda trace.json
                run "the time line of trace.c" "$build/tests/unit/test_tracefile" trace.json
            fi
        else
            bad "$name against the shared library" "$tmp/log"
        fi
    done
    # static: with only what pkg-config says
    mkdir "$tmp/static"
    cp "$tmp/dest$LIBDIR/libkiln.a" "$tmp/static/"
    libs=$($PC --static --libs kiln | sed "s,-L[^ ]*,-L$tmp/static,")
    if cc -o "$tmp/stat" "$tmp/src/softmax.c" $($PC --cflags kiln) $libs >"$tmp/log" 2>&1; then
        run "softmax.c, static" "$tmp/stat"
        if have readelf && readelf -d "$tmp/stat" | grep -q 'NEEDED.*libkiln'; then
            bad "the static program needs libkiln.so"
        else
            ok
        fi
    else
        bad "softmax.c with pkg-config --static" "$tmp/log"
    fi
    for l in -lm -ldl -lpthread; do # older C libraries have these apart
        case " $libs " in *" $l "*) ok ;; *) bad "kiln.pc lacks $l" ;; esac
    done
    unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
fi

# ---- Python: the package of the source folder, the installed library ----
for f in "$tmp"/src/*.py; do
    if ! have python3; then
        skip "python3 is missing"
    else
        run "$(basename "$f")" env KILN_LIBRARY="$tmp/dest$LIBDIR/libkiln.so" PYTHONPATH="$PWD/python" \
            PYTHONDONTWRITEBYTECODE=1 python3 "$f"
    fi
done

# ---- CMake, with the tree under a PREFIX, then moved ----
if inst "" "$tmp/opt/kiln" "$tmp/opt/kiln/lib" install; then ok; else bad "make install PREFIX" "$tmp/log"; fi
if ! have cmake; then
    skip "cmake is missing"
else
    mv "$tmp/opt/kiln" "$tmp/moved"
    mkdir "$tmp/cm"
    cat >"$tmp/cm/CMakeLists.txt" <<C
cmake_minimum_required(VERSION 3.13)
project(t C)
find_package(Kiln ${ver%.*} REQUIRED)
add_executable(shared $tmp/src/softmax.c)
target_link_libraries(shared PRIVATE Kiln::kiln m)
add_executable(static $tmp/src/softmax.c)
target_link_libraries(static PRIVATE Kiln::kiln_static)
find_package(Kiln 99 QUIET)
if(Kiln_FOUND)
    message(FATAL_ERROR "version 99 was found")
endif()
C
    if cmake -S "$tmp/cm" -B "$tmp/cm/b" -DCMAKE_PREFIX_PATH="$tmp/moved" >"$tmp/log" 2>&1 &&
        cmake --build "$tmp/cm/b" >"$tmp/log" 2>&1; then
        run "CMake, shared" "$tmp/cm/b/shared"
        run "CMake, static" "$tmp/cm/b/static"
    else
        bad "CMake" "$tmp/log"
    fi
    mv "$tmp/moved" "$tmp/opt/kiln"
fi

# ---- and away again ----
inst "$tmp/dest" /usr $LIBDIR uninstall && inst "" "$tmp/opt/kiln" "$tmp/opt/kiln/lib" uninstall || bad uninstall "$tmp/log"
find "$tmp/dest" "$tmp/opt" ! -type d >"$tmp/log"
if [ -s "$tmp/log" ]; then bad "uninstall leaves files" "$tmp/log"; else ok; fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
