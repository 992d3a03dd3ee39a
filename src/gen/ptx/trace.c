/* trace.c - see trace.h.
 *
 * Addresses and predicates of shared memory are computed from the thread's number by few
 * instructions.  Each definition of an integer register is computed here as well, for all threads
 * of a program at once, as far as it depends on nothing else; so the wavefronts of an access are
 * counted from the very text that is emitted, whoever emits it. */
#include <stdlib.h>

#include "gen/ptx/trace.h"

#include "gen/ptx/ptx.h"

/* The least that an operation has executed where it branches to a label. */
struct reach {
    kl_val at;
    uint64_t steps;
    bool placed;
};

struct tracer {
    kl_ptx_trace *out;
    kl_map label; /* -> index of its reach */
    KL_VEC(struct reach) reach;
    uint32_t n;               /* threads of all CTAs */
    kl_map at;                /* register -> index of its values */
    KL_VEC(uint64_t *) value; /* NULL: it has been written again, and is not known */
    uint32_t plan, repeat, stride;
    bool part; /* elements named by extract, insert or gather, by registers of l */
    const kl_layout *l;
    opnd skip; /* who jumped over what is put out; NULL: nobody */
};

static bool on(const struct pgen *g)
{
    return g->tracer != NULL;
}

static uint64_t *values_of(struct pgen *g, const char *name, size_t n)
{
    const uint32_t *i = kl_map_get(&g->tracer->at, name, n);
    return i ? g->tracer->value.v[*i] : NULL;
}

static void set_values(struct pgen *g, opnd name, uint64_t *v)
{
    struct tracer *t = g->tracer;
    bool isnew;
    uint32_t *i = kl_map_put(&t->at, name, strlen(name), &isnew);
    if (isnew) {
        *i = t->value.n;
        kl_push(g->a, &t->value, v);
    } else {
        t->value.v[*i] = v;
    }
}

void kl_px_trace_begin(struct pgen *g)
{
    if (!g->o->trace)
        return;
    struct tracer *t = g->tracer = kl_new(g->a, struct tracer);
    t->out = g->o->trace;
    memset(t->out, 0, sizeof *t->out);
    t->out->warps = g->warps;
    t->out->ctas = g->ctas;
    t->out->steps = kl_new_n(g->a, uint64_t, g->f->nins);
    t->label.a = g->a;
    t->n = g->threads * g->ctas;
    t->at.a = g->a;
    t->repeat = 1;
    uint64_t *v = kl_new_n(g->a, uint64_t, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        v[i] = i % g->threads;
    set_values(g, g->tid, v);
}

void kl_px_trace_zero(struct pgen *g, opnd name)
{
    if (on(g))
        set_values(g, name, kl_new_n(g->a, uint64_t, g->tracer->n));
}

/* ---- definitions ---- */

enum calc {
    C_MOV,
    C_AND,
    C_OR,
    C_XOR,
    C_SHL,
    C_SHR,
    C_ADD,
    C_SUB,
    C_MUL,
    C_MAD,
    C_POPC,
    C_EQ,
    C_NE,
    C_LT,
    C_GE
};

static const struct {
    const char *text; /* up to the type */
    uint8_t calc, nargs;
} calcs[] = {
    {"mov", C_MOV, 1},     {"and", C_AND, 2},    {"or", C_OR, 2},      {"xor", C_XOR, 2},
    {"shl", C_SHL, 2},     {"shr", C_SHR, 2},    {"add", C_ADD, 2},    {"sub", C_SUB, 2},
    {"mul.lo", C_MUL, 2},  {"mad.lo", C_MAD, 3}, {"popc", C_POPC, 1},  {"setp.eq", C_EQ, 2},
    {"setp.ne", C_NE, 2},  {"setp.lt", C_LT, 2}, {"setp.ge", C_GE, 2}, {"cvt.u64", C_MOV, 1},
    {"cvt.u32", C_MOV, 1},
};
static const char *const types[] = {".u32 ", ".b32 ", ".s32 ", ".pred ", ".u64 ", ".b64 ", ".s64 "};
enum { WIDE = 4 }; /* types from here on have 64 bits */

static uint64_t calculate(enum calc c, bool is_signed, uint64_t a, uint64_t b, uint64_t d)
{
    switch (c) {
    case C_MOV: return a;
    case C_AND: return a & b;
    case C_OR: return a | b;
    case C_XOR: return a ^ b;
    case C_SHL: return b > 63 ? 0 : a << b;
    case C_SHR: return b > 63 ? 0 : a >> b;
    case C_ADD: return a + b;
    case C_SUB: return a - b;
    case C_MUL: return a * b;
    case C_MAD: return a * b + d;
    case C_POPC: return (uint64_t)__builtin_popcountll(a);
    case C_EQ: return a == b;
    case C_NE: return a != b;
    case C_LT: return is_signed ? (int64_t)a < (int64_t)b : a < b;
    case C_GE: return is_signed ? (int64_t)a >= (int64_t)b : a >= b;
    }
    return 0;
}

/* An operand of a text that begins at s and ends at a comma or NUL: its values, one for each
 * thread, or one for all.  false: not known. */
static bool operand(struct pgen *g, const char **s, uint64_t **v, uint64_t *k)
{
    while (**s == ' ')
        ++*s;
    size_t n = strcspn(*s, ", ");
    const char *from = *s;
    *s += n + (from[n] == ',');
    *v = NULL;
    if (*from == '%') {
        if (n == 15 && memcmp(from, "%cluster_ctarank", 15) == 0)
            return false;
        *v = values_of(g, from, n);
        return *v != NULL;
    }
    if (!n || (*from != '-' && (*from < '0' || *from > '9'))) {
        *k = 0; /* the size of region 0: a multiple of 16, which moves all banks alike */
        return n == 15 && memcmp(from, "KL_REGION_BYTES", n) == 0;
    }
    char *end;
    *k = (uint64_t)strtoll(from, &end, 0);
    return end == from + n;
}

/* What a definition computes, and of which type; false: something that is not followed. */
static bool find_calc(const char *text, uint32_t *calc, uint32_t *type)
{
    for (uint32_t c = 0; c < sizeof calcs / sizeof *calcs; c++) {
        size_t n = strlen(calcs[c].text);
        if (strncmp(text, calcs[c].text, n) != 0)
            continue;
        for (uint32_t k = 0; k < sizeof types / sizeof *types; k++)
            if (strncmp(text + n, types[k], strlen(types[k])) == 0) {
                *calc = c;
                *type = k;
                return true;
            }
    }
    return false;
}

void kl_px_trace_define(struct pgen *g, opnd r, const char *text)
{
    if (!on(g))
        return;
    struct tracer *t = g->tracer;
    uint64_t *v, *arg[3] = {NULL}, k[3] = {0};
    uint32_t c, type;
    if (strstr(text, "%cluster_ctarank")) {
        v = kl_new_n(g->a, uint64_t, t->n);
        for (uint32_t i = 0; i < t->n; i++)
            v[i] = i / g->threads;
        set_values(g, r, v);
        return;
    }
    const char *s = strchr(text, ',');
    if (!s || !find_calc(text, &c, &type))
        return;
    s++;
    for (uint32_t i = 0; i < calcs[c].nargs; i++)
        if (!operand(g, &s, &arg[i], &k[i]))
            return;
    bool sign = types[type][1] == 's', narrow = type < WIDE || !strncmp(text, "cvt.u32", 7);
    if (*s || (sign && calcs[c].calc == C_SHR))
        return;
    v = kl_new_n(g->a, uint64_t, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        uint64_t x[3] = {0};
        for (uint32_t j = 0; j < 3; j++) {
            x[j] = arg[j] ? arg[j][i] : k[j];
            if (sign && type < WIDE)
                x[j] = (uint64_t)(int64_t)(int32_t)(uint32_t)x[j];
        }
        v[i] = calculate((enum calc)calcs[c].calc, sign, x[0], x[1], x[2]);
        if (narrow)
            v[i] = (uint32_t)v[i];
    }
    set_values(g, r, v);
}

/* ---- how many instructions ---- */

/* Behind a branch that is always taken, until a label. */
#define NOWHERE (UINT64_C(1) << 40)

static struct reach *reach_of(struct pgen *g, uint32_t label)
{
    struct tracer *t = g->tracer;
    bool isnew;
    uint32_t *i = kl_map_put(&t->label, &label, sizeof label, &isnew);
    if (isnew) {
        *i = t->reach.n;
        kl_push(g->a, &t->reach, ((struct reach){.at = g->at, .steps = NOWHERE}));
    }
    return &t->reach.v[*i];
}

/* Counted is the shortest way through what an operation puts out, without copies of registers; blocks
 * of the IR count each alone, and a loop within an operation once, or as often as is known. */
static void step(struct pgen *g, const char *text)
{
    struct tracer *t = g->tracer;
    if (g->to == &g->pro || !g->at.id)
        return;
    uint16_t op = kl_in(g->f, g->at)->op;
    uint64_t *n = &t->out->steps[g->at.id];
    if (strncmp(text, "mov.", 4) != 0) /* ptxas knows how to do without */
        *n += t->repeat;
    const char *bra = strstr(text, "bra"), *to = bra ? strstr(bra, "$L") : NULL;
    if (!to || op == KL_OP_for || op == KL_OP_while || op == KL_OP_if || op == KL_OP_yield)
        return;
    struct reach *r = reach_of(g, (uint32_t)strtoul(to + 2, NULL, 10));
    if (r->placed)
        return;
    r->steps = *n < r->steps ? *n : r->steps;
    if (*text != '@')
        *n = NOWHERE;
}

void kl_px_trace_label(struct pgen *g, uint32_t label)
{
    if (!on(g) || !g->at.id)
        return;
    struct reach *r = reach_of(g, label);
    uint64_t *n = &g->tracer->out->steps[r->at.id];
    r->placed = true;
    *n = r->steps < *n ? r->steps : *n;
}

/* An instruction that was not put out to define a register: what it writes is no longer what was
 * known of it. */
void kl_px_trace_write(struct pgen *g, const char *text)
{
    if (!on(g))
        return;
    step(g, text);
    const char *s = text;
    if (*s == '@')
        s += strcspn(s, " ");
    while (*s == ' ')
        s++;
    s += strcspn(s, " ");
    while (*s == ' ')
        s++;
    size_t n = strcspn(s, ", ");
    uint32_t *i = *s == '%' ? kl_map_get(&g->tracer->at, s, n) : NULL;
    if (i)
        g->tracer->value.v[*i] = NULL;
}

/* ---- accesses ---- */

static const char *file_of(const struct pgen *g)
{
    return g->file ? g->files.v[g->file - 1] : NULL;
}

void kl_px_trace_access(struct pgen *g, kl_val v, const kl_layout *l, uint32_t vec, bool once)
{
    if (on(g))
        kl_push(g->a, &g->tracer->out->access,
                ((kl_ptx_access){v, l, (uint8_t)vec, (uint8_t)kl_px_access_vec(g, v), once,
                                 file_of(g), g->line}));
}

/* All lanes read, also beyond an axis. */
void kl_px_trace_table(struct pgen *g, kl_val v, const kl_layout *l, uint32_t bytes)
{
    if (!on(g))
        return;
    kl_ptx_table t = {.at = v, .file = file_of(g), .line = g->line};
    for (uint32_t cta = 0; cta < g->ctas; cta++)
        for (uint32_t warp = 0; warp < g->warps; warp++)
            for (uint32_t reg = 0; reg < kl_layout_nreg(l); reg++) {
                uint64_t addr[32];
                for (uint32_t i = 0; i < 32; i++)
                    addr[i] = (uint64_t)kl_layout_at(l, kl_place(reg, i, warp, cta)) * bytes;
                kl_count k = kl_sectors(addr, UINT32_MAX, bytes);
                t.requests++;
                t.lanes += 32;
                t.bytes += UINT64_C(32) * bytes;
                t.units += k.units;
                t.ideal += k.ideal;
            }
    kl_push(g->a, &g->tracer->out->table, t);
}

void kl_px_trace_barrier(struct pgen *g)
{
    if (!on(g) || !g->at.id)
        return;
    kl_ptx_trace *o = g->tracer->out;
    if (o->barrier.n && o->barrier.v[o->barrier.n - 1].at.id == g->at.id)
        o->barrier.v[o->barrier.n - 1].n++;
    else
        kl_push(g->a, &o->barrier, ((kl_ptx_barrier){g->at, 1}));
}

static kl_ptx_shared *record(struct pgen *g, bool store, bool push, bool known, uint32_t width)
{
    kl_ptx_trace *o = g->tracer->out;
    for (uint32_t i = o->shared.n; i-- > 0;) {
        kl_ptx_shared *s = &o->shared.v[i];
        if (s->at.id != g->at.id)
            break;
        if (s->store == store && s->push == push && s->known == known && s->width == width && s->line == g->line &&
            s->plan == g->tracer->plan && s->file == file_of(g))
            return s;
    }
    kl_push(g->a, &o->shared,
            ((kl_ptx_shared){.at = g->at,
                             .file = file_of(g),
                             .line = g->line,
                             .store = store,
                             .push = push,
                             .known = known,
                             .width = (uint8_t)width,
                             .plan = g->tracer->plan}));
    return &o->shared.v[o->shared.n - 1];
}

void kl_px_trace_shared(struct pgen *g, bool store, uint32_t width, opnd addr, int64_t off,
                        opnd pred)
{
    if (!on(g))
        return;
    struct tracer *t = g->tracer;
    uint64_t *at = values_of(g, addr, strlen(addr)), *p = NULL;
    bool known = at != NULL;
    if (pred)
        known &= (p = values_of(g, pred, strlen(pred))) != NULL;
    uint64_t *skip = t->skip ? values_of(g, t->skip, strlen(t->skip)) : NULL;
    known &= skip || !t->skip;
    kl_ptx_shared *s = record(g, store, false, known, width);
    if (!known && t->part) {
        s->part = true;
        s->l = t->l;
    }
    if (!known) {
        s->requests += (uint64_t)t->out->warps * t->out->ctas * t->repeat;
        return;
    }
    /* a step that is a multiple of a bank's width turns the banks, no more */
    uint32_t steps = t->stride % 4 ? t->repeat : 1, times = t->repeat / steps;
    for (uint32_t k = 0; k < steps; k++)
        for (uint32_t w = 0; w < t->n; w += 32) {
            uint32_t a[32], active = 0;
            for (uint32_t i = 0; i < 32; i++) {
                a[i] = (uint32_t)(at[w + i] + (uint64_t)off + (uint64_t)k * t->stride);
                active |= (uint32_t)((!p || p[w + i]) && (!skip || !skip[w + i])) << i;
            }
            if (!active)
                continue;
            kl_count c = kl_wavefronts(a, active, width);
            s->requests += times;
            s->lanes += (uint64_t)times * (uint32_t)__builtin_popcount(active);
            s->units += times * c.units;
            s->ideal += times * c.ideal;
            s->worst = c.units > s->worst ? (uint32_t)c.units : s->worst;
        }
}

void kl_px_trace_push(struct pgen *g, uint32_t width, opnd at, opnd cta, int64_t off, opnd pred)
{
    if (!on(g))
        return;
    struct tracer *t = g->tracer;
    const char *name = cta;
    uint64_t *to, one = 0, *addr = values_of(g, at, strlen(at));
    uint64_t *p = pred ? values_of(g, pred, strlen(pred)) : NULL;
    uint64_t *skip = t->skip ? values_of(g, t->skip, strlen(t->skip)) : NULL;
    bool known = operand(g, &name, &to, &one) && addr && (p || !pred) && (skip || !t->skip);
    kl_ptx_shared *s = record(g, true, true, known, width);
    if (!known) {
        s->requests += (uint64_t)t->out->warps * t->out->ctas;
        return;
    }
    for (uint32_t w = 0; w < t->n; w += 32) {
        uint32_t a[32], rank[32], left = 0;
        for (uint32_t i = 0; i < 32; i++) {
            a[i] = (uint32_t)(addr[w + i] + (uint64_t)off);
            rank[i] = (uint32_t)(to ? to[w + i] : one);
            left |= (uint32_t)((!p || p[w + i]) && (!skip || !skip[w + i])) << i;
        }
        s->requests += left != 0;
        while (left) { /* each block's memory has banks of its own */
            uint32_t part = 0, first = rank[__builtin_ctz(left)];
            for (uint32_t i = 0; i < 32; i++)
                part |= (left >> i & (rank[i] == first)) << i;
            left &= ~part;
            kl_count c = kl_wavefronts(a, part, width);
            s->lanes += (uint32_t)__builtin_popcount(part);
            s->units += c.units;
            s->ideal += c.ideal;
            s->worst = c.units > s->worst ? (uint32_t)c.units : s->worst;
        }
    }
}

void kl_px_trace_skip(struct pgen *g, opnd p)
{
    if (on(g))
        g->tracer->skip = p;
}

void kl_px_trace_part(struct pgen *g, bool part, const kl_layout *l)
{
    if (!on(g))
        return;
    g->tracer->part = part;
    g->tracer->l = l;
}

void kl_px_trace_repeat(struct pgen *g, uint32_t times, uint32_t stride)
{
    if (!on(g))
        return;
    g->tracer->repeat = times;
    g->tracer->stride = stride;
}

/* ---- changes of layout ---- */

static uint64_t waves(const kl_side *s, uint32_t ctas)
{
    return (uint64_t)s->waves * s->requests * ctas;
}

void kl_px_trace_plan(struct pgen *g, const kl_conv *c, uint32_t max_bytes)
{
    if (!on(g))
        return;
    if (!c) {
        g->tracer->plan = 0;
        return;
    }
    static const uint32_t flags[KL_PTX_NHOW] = {KL_CONV_NO_SWIZZLE, KL_CONV_PAD_ONLY, 0};
    kl_ptx_plan p = {.at = g->at,
                     .chosen = c->shared.swizzle == KL_SWZ_PLAIN ? KL_PTX_PLAIN
                               : c->shared.swizzle == KL_SWZ_PAD ? KL_PTX_PADDED
                                                                 : KL_PTX_SWIZZLED};
    for (uint32_t i = 0; i < KL_PTX_NHOW; i++) {
        kl_conv *other = kl_new(g->a, kl_conv);
        kl_conv_plan(other, &c->src, &c->dst, c->bytes, max_bytes, flags[i] | KL_CONV_NO_SHUFFLE);
        if (other->kind != KL_CONV_SHARED)
            continue;
        p.st[i] = waves(&other->shared.st, g->ctas);
        p.ld[i] = waves(&other->shared.ld, g->ctas);
        p.way[i] = other;
    }
    kl_push(g->a, &g->tracer->out->plan, p);
    g->tracer->plan = g->tracer->out->plan.n;
}
