# `kiln bench --peer`: a shared library, programs, and what they may do wrong.
cat >k.kiln <<'K'
kernel one(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 256) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel grow(i64 n, f32 x[n]) grid(n) { i64 i = program_id(0); x[i] += 1; }
K
cat >peer.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include "kiln_peer.h"
static void *prepare(const kiln_peer_case *c, char *why, size_t n)
{
    kiln_peer_case *s = malloc(sizeof *s + 2 * sizeof *c->array);
    if (c->narray != 2 || c->array[0].dtype != KILN_F32 || c->nscalar != 2) {
        snprintf(why, n, "only f32, and %d threads", (int)c->threads);
        free(s);
        return NULL;
    }
    *s = *c;
    kiln_peer_array *a = (kiln_peer_array *)(s + 1);
    a[0] = c->array[0];
    a[1] = c->array[1];
    s->array = a;
    return s;
}
static int run(void *state, float factor)
{
    const kiln_peer_case *c = state;
    const float *x = NULL;
    float *y = NULL;
    for (int i = 0; i < 2; i++)
        if (c->array[i].writes)
            y = c->array[i].data;
        else
            x = c->array[i].data;
    for (int64_t i = 0; i < c->array[0].shape[0]; i++)
        y[i] = factor * x[i];
    return 0;
}
static int right(void *s) { return run(s, 2); }
static int wrong(void *s) { return run(s, 3); }
static int broken(void *s) { (void)s; return 7; }
const kiln_peer *kiln_peer_get(uint32_t abi, size_t i)
{
    static const kiln_peer p[] = {{sizeof *p, "right", "1", prepare, right, free},
                                  {sizeof *p, "wrong", "1", prepare, wrong, free},
                                  {sizeof *p, "broken", "1", prepare, broken, free}};
    return abi == KILN_PEER_ABI && i < 3 ? &p[i] : NULL;
}
C
export TMPDIR=$PWD
which cc >/dev/null || { echo "no C compiler" >&2; exit 77; }
cc -O1 -shared -fPIC -I"$SRC/include" peer.c -o peer.so || exit 1
echo 'int kiln_peer_nothing(void); int kiln_peer_nothing(void) { return 0; }' >none.c
cc -shared -fPIC none.c -o none.so
program() { # program NAME LINE...: answers one line to each question
    printf '#!/bin/sh\n' >$1
    name=$1
    shift
    for l; do printf "read -r q; echo '%s'\n" "$l" >>$name; done
    chmod +x $name
}
hello='{"name": "sh", "version": "1"}'
program skips "$hello" '{"skip": "not today"}'
program ends
program mute "$hello"
program noise 'Welcome!'
program nameless '{"version": 1}'
program errs "$hello" '{"error": "out of paper"}'
program few "$hello" '{"implementations": ["a"]}' '{"files": {}}'
b() { "$KILN" bench --device interp --samples 3 --measure cold,warm --format csv "$@" 2>&1 | cut -d, -f1,5-7,14,16,31-; }
b k.kiln:one 'x={n}:f32' --sweep n=1000 -D B=64,128 --peer peer.so --threads 2 |
    sed -E 's/for [0-9.e+-]+ of/for # of/'
"$KILN" bench --device interp --samples 3 --measure warm k.kiln:one x=1000:f32 --peer peer.so >/dev/null
echo "rc $?"
b k.kiln:one x=1000:f16 --peer ./peer.so --threads 2
b k.kiln:grow x=1000:f32 --peer ./peer.so
for p in skips ends mute noise nameless errs few; do
    b k.kiln:one x=1000:f32 --peer $p | tail -1
done
b k.kiln:one x=1000:f32 --peer none.so
# what numpy computes, where it is
if python3 -c 'import numpy' 2>/dev/null; then
    b k.kiln:one x=1000:f32 --peer "$SRC/bench/peers/numpy_peer.py" | tail -1
    b "$SRC/kernels/softmax.kiln:softmax" x=30x40:f32 --peer "$SRC/bench/peers/numpy_peer.py" |
        tail -2 | sed -E 's/for [0-9.e+-]+ of/for # of/'
else
    echo 'numpy,interp,1,skipped,0,,,it does not do this kernel'
    for m in cold warm; do
        echo "numpy,interp,1,$m,3,count,the kernel's result but for # of its RMS,"
    done
fi
# how a program ends: a signal, an exit status, in the middle of its work
program segv "$hello"
echo 'kill -SEGV $$' >>segv
program status "$hello" '{"implementations": ["a", "b"]}'
echo 'exit 3' >>status
for p in segv status; do
    "$KILN" bench --device interp --samples 3 --measure warm --format csv k.kiln:one x=1000:f32 --peer $p |
        cut -d, -f1,5-7,31- | tail -n +3
    "$KILN" bench --device interp --samples 3 --measure warm k.kiln:one x=1000:f32 --peer $p >/dev/null
    echo "rc $?"
done
# a library may do the same: its process is another one, and `good` behind it is still measured
cat >bad.c <<'C'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "kiln_peer.h"
static int is(const char *what) { const char *s = getenv("BAD"); return s && strcmp(s, what) == 0; }
static void crash(void)
{
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would tell it in its own way */
    raise(SIGSEGV);
}
__attribute__((constructor)) static void start(void)
{
    if (is("load"))
        crash();
}
struct work { float *y; const float *x; int64_t n; int runs; };
static void *prepare(const kiln_peer_case *c, char *why, size_t n)
{
    struct work *w = calloc(1, sizeof *w);
    for (size_t i = 0; i < c->narray; i++)
        if (c->array[i].writes)
            w->y = c->array[i].data, w->n = c->array[i].shape[0];
        else
            w->x = c->array[i].data;
    snprintf(why, n, "\033[31mred");
    return w;
}
static void *bad_prepare(const kiln_peer_case *c, char *why, size_t n)
{
    void *w = prepare(c, why, n);
    if (is("prepare"))
        crash();
    return is("skip") ? NULL : w;
}
static int good(void *p)
{
    struct work *w = p;
    for (int64_t i = 0; i < w->n; i++)
        w->y[i] = 2 * w->x[i];
    return 0;
}
static int bad(void *p)
{
    struct work *w = p;
    if (is("crash") || (is("late") && w->runs++ == 2))
        crash();
    if (is("abort"))
        abort();
    if (is("exit"))
        exit(0);
    if (is("hang"))
        for (;;)
            pause();
    if (is("noise"))
        printf("{\"ms\": [1]}\n"), fflush(stdout); /* no answer: it goes to standard error */
    if (is("close"))
        for (int i = 0; i < 64; i++)
            close(i);
    if (is("garbage"))
        for (int i = 3; i < 64; i++)
            if (write(i, "ah\n", 3) < 0)
                continue;
    if (is("overrun"))
        memset(w->y - (1 << 20), 1, 1 << 26);
    return is("error") ? 7 : good(p);
}
const kiln_peer *kiln_peer_get(uint32_t abi, size_t i)
{
    static const kiln_peer p[] = {{sizeof *p, "bad", "1", bad_prepare, bad, free},
                                  {sizeof *p, "good", "1", prepare, good, free}};
    return abi == KILN_PEER_ABI && i < 2 ? &p[i] : NULL;
}
C
cc -O1 -shared -fPIC -I"$SRC/include" bad.c -o bad.so || exit 1
rows() { cut -d, -f1,3,5-7,14,31- | grep -v ^one/; }
for bad in load prepare skip crash late abort exit noise close garbage error; do
    echo "== $bad"
    BAD=$bad "$KILN" bench --device interp --samples 3 --measure warm --format csv \
        k.kiln:one x=1000:f32 --peer bad.so 2>said 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- | rows | sed -E 's/for [0-9.e+-]+ of/for # of/'
    cat said
done
echo "== overrun" # how that ends is not known, but it ends there
BAD=overrun "$KILN" bench --device interp --samples 3 --measure warm --format csv \
    k.kiln:one x=1000:f32 --peer bad.so 2>/dev/null | cut -d, -f1,7 | grep -c -E '^(good,warm|one/f32,warm|bad,failed)$'
echo "== hang"
export KILN_PEER_TIMEOUT=1.5
BAD=hang "$KILN" bench --device interp --samples 3 --measure warm --format csv k.kiln:one x=1000:f32 \
    --peer bad.so | rows | sed -E 's/for [0-9.e+-]+ of/for # of/'
echo "== again and again"
BAD=crash "$KILN" bench --device interp --samples 3 --measure warm --format csv k.kiln:one 'x={n}:f32' \
    --sweep n=100:500:+100 --peer bad.so | rows | sed -E 's/for [0-9.e+-]+ of/for # of/'
KILN_PEER_TIMEOUT=soon "$KILN" bench --device interp k.kiln:one x=9:f32 --peer bad.so 2>&1
echo "rc $?"
echo "== kept from one run to the next"
cat >counts <<'P'
#!/bin/sh
n=0
while read -r q; do
    case $q in
    *'"hello"'*) echo '{"name": "counts", "version": "2"}' ;;
    *'"case"'*) n=$((n + 1)); [ $n -lt 3 ] || exit 7; echo '{"skip": "case '$n'"}' ;;
    esac
done
P
chmod +x counts
if python3 -c '' 2>/dev/null; then
    python3 "$SRC/bench/peers/keep.py" hold ./kept ./counts & keeper=$!
    for i in 1 2 3 4 5 6 7 8 9 10; do [ -x kept ] || sleep 0.2; done
    for i in 1 2 3 4; do
        "$KILN" bench --device interp --samples 1 --measure warm --format csv k.kiln:one x=9:f32 --peer ./kept |
            tail -1 | cut -d, -f1,7,31-
    done
    kill $keeper
    wait $keeper
    ls kept* 2>/dev/null
else
    printf '%s\n' 'counts,skipped,,case 1' 'counts,skipped,,case 2' \
        'counts,failed,,it has ended with exit status 7' 'counts,skipped,,case 1'
fi
ls -d kiln-peer-* 2>/dev/null | wc -l
