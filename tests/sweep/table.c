/* table.c - the kernels of the sweep and the shapes that each goes through.
 *
 * Sizes stand around what may go wrong: nothing, one, odd, prime, just below, at and just above
 * a tile, and rows that do not fill 16 bytes. */
#include <stdio.h>
#include <string.h>

#include "walk.h"

const char *const place_name[NPLACE] = {"dense",   "off by one", "pitch",  "pitch of 16 bytes",
                                        "upwards", "mirrored",   "turned", "spread"};

#define OUT(name, dims, elem) {name, dims, elem, true, false, false, 0}
#define INOUT(name, dims, elem) {name, dims, elem, true, true, false, 0}
#define IN(name, dims, elem) {name, dims, elem, false, true, false, 0}
#define MAYBE(name, dims, elem, out) {name, dims, elem, out, !out, true, 0}

enum {
    ADD, PLACES, ERF, TANH, SAXPY, SAXPY_FMA, STRIDE, STRIDE_FMA, SOFTMAX, STRIDED, ONLINE,
    COLUMNS, LAYERNORM, RMSNORM, ROWSUM, PARTS, JOIN, SHORT, TRANSPOSE, MATMUL, SCALE, COPY2, SUMS2
};
static const struct kern kerns[] = {
    [ADD] = {"add", "add",
             {OUT("z", "n", 'T'), IN("x", "n", 'T'), IN("y", "n", 'T')}, "x", .tail = 0},
    [PLACES] = {"add", "places", {OUT("place", "qB", 'l'), IN("x", "n", 'f')}, NULL, .tail = 0},
    [ERF] = {"gelu", "erf_form", {OUT("y", "n", 'T'), IN("x", "n", 'T')}, "x", .tail = 0},
    [TANH] = {"gelu", "tanh_form", {OUT("y", "n", 'T'), IN("x", "n", 'T')}, "x", .tail = 0},
    [SAXPY] = {"saxpy", "saxpy", {INOUT("y", "n", 'T'), IN("x", "n", 'T')}, "x", .scalar = "a"},
    [SAXPY_FMA] = {"saxpy", "saxpy_fma", {INOUT("y", "n", 'T'), IN("x", "n", 'T')}, "x",
                   .scalar = "a"},
    [STRIDE] = {"saxpy", "saxpy_stride", {INOUT("y", "n", 'T'), IN("x", "n", 'T')}, "x",
                .scalar = "a"},
    [STRIDE_FMA] = {"saxpy", "saxpy_stride_fma", {INOUT("y", "n", 'T'), IN("x", "n", 'T')}, "x",
                    .scalar = "a"},
    [SOFTMAX] = {"softmax", "softmax", {OUT("y", "rc", 'T'), IN("x", "rc", 'T')}, "x", .tail = 0},
    [STRIDED] = {"softmax", "softmax_strided",
             {OUT("y", "rc", 'T'), IN("x", "rc", 'T')}, "x", .tail = 0},
    [ONLINE] = {"softmax", "softmax_online",
             {OUT("y", "rc", 'T'), IN("x", "rc", 'T')}, "x", .tail = 0},
    [COLUMNS] = {"softmax", "softmax_columns",
             {OUT("y", "rc", 'T'), IN("x", "rc", 'T')}, "x", .tail = 0},
    [LAYERNORM] = {"layernorm", "layernorm",
                   {OUT("y", "rc", 'T'), IN("x", "rc", 'T'), MAYBE("gamma", "c", 'T', false),
                    MAYBE("beta", "c", 'T', false), MAYBE("mean", "r", 'A', true),
                    MAYBE("rstd", "r", 'A', true)}, "x", .tail = 1},
    [RMSNORM] = {"rmsnorm", "rmsnorm",
                 {OUT("y", "rc", 'T'), IN("x", "rc", 'T'), MAYBE("gamma", "c", 'T', false)},
                 "x", .tail = 0},
    [ROWSUM] = {"rowsum", "rowsum",
                {OUT("s", "r", 'A'), IN("x", "rc", 'T'), MAYBE("lanes", "rB", 'A', true)},
                NULL, .tail = 0},
    [PARTS] = {"rowsum", "rowsum_parts",
             {OUT("partial", "rp", 'A'), IN("x", "rc", 'T')}, NULL, .tail = 0},
    [JOIN] = {"rowsum", "rowsum_join",
             {OUT("s", "r", 'A'), IN("partial", "rp", 'A')}, NULL, .tail = 0},
    [SHORT] = {"rowsum", "rowsum_short", {OUT("s", "r", 'A'), IN("x", "rc", 'T')}, NULL, .tail = 0},
    [TRANSPOSE] = {"transpose", "transpose", {OUT("y", "cr", 'T'), IN("x", "rc", 'T')}, NULL,
                   .moves = true},
    [MATMUL] = {"matmul", "matmul",
                {OUT("c", "MN", 'T'), IN("a", "MK", 'T'), IN("b", "KN", 'T'),
                 MAYBE("bias", "N", 'T', false)}, NULL, .tail = 0},
    [SCALE] = {"strided", "scale", {OUT("y", "n", 'T'), IN("x", "n", 'T')}, "x", .tail = 0},
    [COPY2] = {"strided", "copy2", {OUT("y", "rc", 'T'), IN("x", "rc", 'T')}, "x", .moves = true},
    [SUMS2] = {"strided", "sums2", {OUT("s", "r", 'A'), IN("x", "rc", 'T')}, NULL, .tail = 0},
};

/* ---- walking ---- */

static struct kase begin(const struct walk *w, int kern, kiln_dtype t)
{
    (void)w;
    return (struct kase){.k = &kerns[kern], .t = t};
}

static void give(struct kase *c, const char *name, int64_t v)
{
    int i = 0;
    while (c->given[i].name && strcmp(c->given[i].name, name) != 0)
        i++;
    c->given[i].name = name;
    c->given[i].v = v;
}

/* With both kinds of math where the type makes a difference. */
static void emit(struct walk *w, struct kase *c)
{
    bool fast = kiln_dtype_size(c->t) == 2 &&
                (c->k->tail || strcmp(c->k->file, "softmax") == 0 ||
                 strcmp(c->k->file, "gelu") == 0 || strcmp(c->k->file, "rmsnorm") == 0);
    for (int e = 0; e < 1 + (fast && w->full); e++) {
        c->exact = e;
        c->seed = ++w->seed;
        w->sink(w->user, c, w->group);
    }
}

void sweep_lying(struct walk *w, struct kase *c)
{
    static const enum place pair[][2] = {{DENSE, DENSE}, {OFF, OFF}, {DENSE, OFF}, {OFF, DENSE}};
    for (int i = 0; i < (w->full ? 4 : 2); i++) {
        c->out = pair[i][0];
        c->in = pair[i][1];
        emit(w, c);
    }
    for (int i = 0; c->k->same && i < 2; i++) {
        c->in_place = true;
        c->out = c->in = i ? OFF : DENSE;
        emit(w, c);
    }
    c->in_place = false;
}

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static const kiln_dtype numbers[] = {KILN_F32, KILN_BF16, KILN_F16, KILN_F64,
                                     KILN_I32, KILN_U8,   KILN_I64, KILN_U32};
static const kiln_dtype floats[] = {KILN_F32, KILN_BF16, KILN_F16, KILN_F64};
static const kiln_dtype wide[] = {KILN_F32, KILN_BF16, KILN_F16, KILN_F64,
                                  KILN_I32, KILN_I64,  KILN_U32}; /* keep their type in a sum */
static const kiln_dtype any[] = {KILN_F32, KILN_U8, KILN_BF16, KILN_F64, KILN_BOOL, KILN_I64,
                                 KILN_F16};

static void lines(struct walk *w)
{
    static const int lengths[] = {0,   1,   7,    64,   65,   1023, 1025, 2,    3,    8,    15,
                                  16,  17,  31,   33,   63,   99,   100,  101,  127,  128,  129,
                                  255, 256, 257,  509,  1009, 1024, 2047, 2048, 2049, 4095, 4096,
                                  4097, 10007};
    static const int blocks[] = {64, 1024, 100, 4096};
    static const struct {
        int kern, ntype;
        const kiln_dtype *type;
    } v[] = {{ADD, COUNT(wide), wide}, {ERF, 4, floats},       {TANH, 4, floats},
             {SAXPY, 4, floats},             {SAXPY_FMA, 4, floats}, {STRIDE, 4, floats},
             {STRIDE_FMA, 4, floats}};
    for (int k = 0; k < COUNT(v); k++)
        for (int t = 0; t < (w->full ? v[k].ntype : 2); t++)
            for (int b = 0; b < (w->full ? COUNT(blocks) : 1); b++, w->group++)
                for (int i = 0; i < (w->full ? COUNT(lengths) : 7); i++) {
                    struct kase c = begin(w, v[k].kern, v[k].type[t]);
                    c.size['n'] = lengths[i];
                    give(&c, "BLOCK", blocks[b]);
                    if (v[k].kern == STRIDE || v[k].kern == STRIDE_FMA)
                        give(&c, "programs", i % 3 ? 1 + i % 5 : 13);
                    sweep_lying(w, &c);
                }
    for (int b = 0; b < (w->full ? 3 : 1); b++, w->group++)
        for (int i = 0; i < (w->full ? COUNT(lengths) : 7); i++) {
            struct kase c = begin(w, PLACES, KILN_F32);
            int64_t block = b == 2 ? 7 : blocks[b];
            c.size['n'] = lengths[i];
            c.size['B'] = block;
            c.size['q'] = (lengths[i] + block - 1) / block;
            give(&c, "BLOCK", block);
            sweep_lying(w, &c);
        }
}

static const int widths[] = {1,   5,   64,  65,  127,  1000, 0,    2,    3,    4,    7,    8,
                             15,  16,  17,  31,  32,   33,   63,   100,  128,  129,  255,  256,
                             257, 509, 511, 512, 513,  1009, 1023, 1024, 1025, 2047, 2048, 2049,
                             4095, 4096, 4099, 8192, 16383};
static const int heights[] = {3, 1, 2, 5, 0, 7};

static void rows(struct walk *w)
{
    static const int kern[] = {SOFTMAX, LAYERNORM, RMSNORM};
    for (int k = 0; k < 3; k++)
        for (int t = 0; t < (w->full ? 4 : 2); t++)
            for (int i = 0; i < (w->full ? COUNT(widths) : 6); i++, w->group++) {
                struct kase c = begin(w, kern[k], floats[t]);
                c.size['r'] = heights[i % 6];
                c.size['c'] = widths[i];
                for (unsigned s = 0; s < (kern[k] == LAYERNORM && w->full ? 3u : 1u); s++) {
                    static const unsigned skip[] = {0, 15, 6};
                    c.skip = s ? skip[s] : kern[k] == SOFTMAX ? 0 : (unsigned)i % 2;
                    sweep_lying(w, &c);
                }
            }
    /* a loop over blocks */
    static const int loops[] = {64, 1024, 100, 4096};
    static const int over[] = {ONLINE, ROWSUM};
    for (int k = 0; k < 2; k++)
        for (int t = 0; t < (w->full ? 4 + 2 * k : 2); t++)
            for (int b = 0; b < (w->full ? 4 : 1); b++, w->group++)
                for (int i = 0; i < (w->full ? COUNT(widths) : 6); i++) {
                    struct kase c = begin(w, over[k], numbers[t]);
                    c.size['r'] = heights[i % 6];
                    c.size['c'] = widths[i];
                    c.size['B'] = loops[b];
                    give(&c, "BLOCK", loops[b]);
                    c.skip = i % 2;
                    sweep_lying(w, &c);
                }
    static const int parts[] = {3, 1, 8};
    for (int t = 0; t < (w->full ? 6 : 2); t++)
        for (int b = 0; b < (w->full ? 3 : 1); b++, w->group++)
            for (int i = 0; i < (w->full ? COUNT(widths) : 6); i++) {
                struct kase c = begin(w, PARTS, numbers[t]);
                c.size['r'] = heights[i % 6];
                c.size['c'] = widths[i];
                c.size['p'] = parts[(i + b) % 3];
                give(&c, "BLOCK", loops[b]);
                give(&c, "parts", c.size['p']);
                sweep_lying(w, &c);
            }
    static const kiln_dtype sums[] = {KILN_F32, KILN_F64, KILN_I32};
    for (int t = 0; t < (w->full ? 3 : 1); t++)
        for (int i = 0; i < (w->full ? COUNT(widths) - 4 : 5); i++, w->group++) {
            struct kase c = begin(w, JOIN, sums[t]);
            c.size['r'] = heights[i % 6];
            c.size['p'] = widths[i];
            sweep_lying(w, &c);
        }
    static const int many[] = {1, 15, 65, 16, 17, 0, 63, 64, 1000};
    static const int narrow[] = {19, 64, 1, 2, 3, 4, 7, 8, 33, 100, 128, 255};
    static const int height[] = {16, 2, 64};
    for (int t = 0; t < (w->full ? 5 : 2); t++)
        for (int b = 0; b < (w->full ? 3 : 1); b++)
            for (int i = 0; i < (w->full ? COUNT(narrow) : 2); i++, w->group++)
                for (int r = 0; r < (w->full ? COUNT(many) : 3); r++) {
                    struct kase c = begin(w, SHORT, numbers[t]);
                    c.size['r'] = many[r];
                    c.size['c'] = narrow[i];
                    give(&c, "ROWS", height[b]);
                    sweep_lying(w, &c);
                }
    static const int tall[] = {5, 64, 1, 2, 3, 31, 33, 77, 128, 200};
    static const int across[] = {16, 17, 1, 0, 15, 63, 64, 65, 130};
    for (int t = 0; t < (w->full ? 4 : 2); t++)
        for (int b = 0; b < (w->full ? 2 : 1); b++)
            for (int i = 0; i < (w->full ? COUNT(tall) : 2); i++, w->group++)
                for (int r = 0; r < (w->full ? COUNT(across) : 2); r++) {
                    struct kase c = begin(w, COLUMNS, floats[t]);
                    c.size['r'] = tall[i];
                    c.size['c'] = across[r];
                    give(&c, "COLS", b ? 64 : 16);
                    sweep_lying(w, &c);
                }
}

/* ---- two dimensions, strides ---- */

static void tiles(struct walk *w)
{
    static const int edge[] = {31, 65, 64, 1, 0, 2, 7, 32, 33, 63, 100, 129};
    static const int tile[][2] = {{32, 32}, {64, 64}, {8, 24}, {16, 128}, {128, 32}};
    for (int t = 0; t < (w->full ? COUNT(any) : 2); t++)
        for (int b = 0; b < (w->full ? COUNT(tile) : 1); b++, w->group++)
            for (int i = 0; i < (w->full ? COUNT(edge) : 3); i++)
                for (int j = 0; j < (w->full ? COUNT(edge) : 3); j++) {
                    struct kase c = begin(w, TRANSPOSE, any[t]);
                    c.size['r'] = edge[i];
                    c.size['c'] = edge[j];
                    give(&c, "BM", tile[b][0]);
                    give(&c, "BN", tile[b][1]);
                    sweep_lying(w, &c);
                }
    static const int mnk[][3] = {{5, 7, 9},    {33, 17, 40}, {16, 16, 16}, {1, 1, 1},   {0, 4, 3},
                                 {4, 0, 3},    {3, 5, 0},    {17, 64, 33}, {64, 65, 8}, {31, 33, 7},
                                 {63, 31, 64}, {65, 32, 7},  {130, 70, 20}};
    static const int block[][3] = {{16, 16, 16}, {32, 16, 8}, {8, 8, 5}, {64, 64, 32}};
    static const enum place apart[] = {DENSE, OFF, PITCH, PITCH16, UPWARDS};
    for (int t = 0; t < (w->full ? 5 : 2); t++)
        for (int b = 0; b < (w->full ? 4 : 1); b++)
            for (int act = 0; act < (t < 4 ? 4 : 1); act += w->full ? 1 : 3, w->group++)
                for (int i = 0; i < (w->full ? COUNT(mnk) : 3); i++)
                    for (int p = 0; p < (w->full ? 5 : 3); p++) {
                        struct kase c = begin(w, MATMUL, numbers[t]);
                        c.size['M'] = mnk[i][0];
                        c.size['N'] = mnk[i][1];
                        c.size['K'] = mnk[i][2];
                        give(&c, "BM", block[b][0]);
                        give(&c, "BN", block[b][1]);
                        give(&c, "BK", block[b][2]);
                        give(&c, "ACT", act);
                        c.skip = i & 1;
                        c.out = apart[p];
                        c.in = apart[i % 2 ? p : 4 - p];
                        emit(w, &c);
                    }
}

static void strides(struct walk *w)
{
    static const int kern[] = {STRIDED, COPY2, SUMS2};
    static const int cols[] = {7, 64, 33, 1, 0, 16, 65, 200};
    for (int k = 0; k < 3; k++)
        for (int t = 0; t < (w->full ? 4 : 2); t++)
            for (int i = 0; i < (w->full ? COUNT(cols) : 2); i++, w->group++)
                for (int out = 0; out < NPLACE; out++)
                    for (int in = 0; in < NPLACE; in++) {
                        if (!w->full && in != out && (in + out + i) % 5)
                            continue;
                        struct kase c =
                            begin(w, kern[k], k == 1 && t < COUNT(any) ? any[t] : floats[t]);
                        c.size['r'] = heights[(i + in) % 6];
                        c.size['c'] = cols[i];
                        c.out = (enum place)out;
                        c.in = (enum place)in;
                        emit(w, &c);
                        c.in_place = in == out && kerns[kern[k]].same;
                        if (c.in_place)
                            emit(w, &c);
                    }
    static const int lengths[] = {1, 65, 257, 0, 7, 255, 256, 1009};
    static const enum place line[] = {DENSE, OFF, MIRRORED, SPREAD};
    for (int t = 0; t < (w->full ? 6 : 2); t++, w->group++)
        for (int i = 0; i < (w->full ? COUNT(lengths) : 3); i++)
            for (int out = 0; out < 4; out++)
                for (int in = 0; in < 4; in++) {
                    struct kase c = begin(w, SCALE, numbers[t]);
                    c.size['n'] = lengths[i];
                    c.out = line[out];
                    c.in = line[in];
                    c.in_place = in == out;
                    emit(w, &c);
                }
}

void enumerate(bool full, sink_fn *sink, void *user)
{
    struct walk w = {.sink = sink, .user = user, .full = full};
    lines(&w);
    rows(&w);
    tiles(&w);
    strides(&w);
    sweep_more(&w);
}

void describe(const struct kase *c, char *buf, size_t n)
{
    size_t k = (size_t)snprintf(buf, n, "%s %s", c->k->kernel, kiln_dtype_name(c->t));
    for (int i = 'A'; i <= 'z' && k < n; i++) {
        bool used = false;
        for (int a = 0; a < MAX_ARRAYS && c->k->array[a].name; a++)
            used |= strchr(c->k->array[a].dims, i) != NULL;
        if (used)
            k += (size_t)snprintf(buf + k, n - k, " %c=%lld", i, (long long)c->size[i]);
    }
    for (int i = 0; i < MAX_CONST && c->given[i].name && k < n; i++)
        k += (size_t)snprintf(buf + k, n - k, " %s=%lld", c->given[i].name,
                              (long long)c->given[i].v);
    if (k < n)
        snprintf(buf + k, n - k, ", out %s, in %s%s%s, skip %u", place_name[c->out],
                 place_name[c->in], c->in_place ? ", in place" : "",
                 c->exact ? ", exact math" : "", c->skip);
}
