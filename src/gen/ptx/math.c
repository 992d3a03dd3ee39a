/* math.c - the exact functions of base/math.def as PTX, one row an instruction or two. */
#include <stdlib.h>

#include "gen/ptx/ptx.h"

enum row_kind { R_MATH, R_K, R_I, R_CMP, R_SEL, R_BC, R_CALL, R_RET };

struct row {
    uint8_t kind, type, from; /* from: of bitcasts; types of operands of comparisons in type */
    const char *name, *op, *a, *b, *c;
    double f; /* constants */
    uint64_t u;
};

#define LIT_f32(lit) .f = (double)(lit)
#define LIT_f64(lit) .f = (lit)
#define LIT_u32(lit) .u = (lit)
#define LIT_u64(lit) .u = (lit)

/* clang-format off */
static const struct row rows[] = {
#define MATH(name, t)         {R_MATH, KL_##t, 0, #name, NULL, NULL, NULL, NULL, 0, 0},
#define MATH2(name, t)        MATH(name, t)
#define K(t, v, lit)          {.kind = R_K, .type = KL_##t, .name = #v, LIT_##t(lit)},
#define I1(t, v, op, a)       {R_I, KL_##t, 0, #v, #op, #a, NULL, NULL, 0, 0},
#define I2(t, v, op, a, b)    {R_I, KL_##t, 0, #v, #op, #a, #b, NULL, 0, 0},
#define I3(t, v, op, a, b, c) {R_I, KL_##t, 0, #v, #op, #a, #b, #c, 0, 0},
#define CMP(v, op, t, a, b)   {R_CMP, KL_##t, 0, #v, #op, #a, #b, NULL, 0, 0},
#define SEL(t, v, c, a, b)    {R_SEL, KL_##t, 0, #v, NULL, #c, #a, #b, 0, 0},
#define BC(t, v, from, a)     {R_BC, KL_##t, KL_##from, #v, NULL, #a, NULL, NULL, 0, 0},
#define CALL(t, v, fn, a)     {R_CALL, KL_##t, 0, #v, #fn, #a, NULL, NULL, 0, 0},
#define RET(t, v)             {R_RET, KL_##t, 0, #v, NULL, NULL, NULL, NULL, 0, 0},
#include "base/math.def"
};
/* clang-format on */
enum { NROW = sizeof rows / sizeof *rows };

static uint32_t find(struct pgen *g, const char *fn, enum kl_elem e)
{
    for (uint32_t i = 0; i < NROW; i++)
        if (rows[i].kind == R_MATH && rows[i].type == e && strcmp(rows[i].name, fn) == 0)
            return i;
    kl_px_unsupported(g, "the function %s of %s", fn, kl_elems[e].name);
}

static enum kl_op op_by_name(const char *s)
{
    for (int i = 1; i < KL_NOP; i++)
        if (strcmp(kl_ops[i].name, s) == 0)
            return (enum kl_op)i;
    return KL_OP_none;
}

/* ---- shorter forms ----
 *
 * Half of a function's steps serve the ends of its range.  Where all elements of a thread have
 * lo <= abs(x) <= hi (signed: lo <= x <= hi), exp and exp2 have rows of their own, in others values
 * may be taken from others (MEANS), and a factor 2^n may be added to the exponent (SCALE: y is y0
 * times 2 to the n in the low bits of tb, whose bias is then 0).  The results have the same bits.
 * Quotients are in the middle of the range there, too.  Where ir/range.h knows the bounds no test
 * is made. */
struct shorter {
    const char *fn;
    float lo, hi;
    bool is_signed;
};
static const struct shorter shorters[] = {
    {"exp", 0, 87.0f, false},     {"exp2", 0, 125.0f, false}, {"erfc", 0, 9.0f, false},
    {"sigmoid", 0, 60.0f, false}, {"tanh", 0, 9.0f, false},   {"log", 0x1p-126f, 0x1.fffffep127f, true},
    {"sin", 0, 0x1.fffffep14f, false}, {"cos", 0, 0x1.fffffep14f, false},
    {"expm1", 0, 17.0f, false},   {"log2", 0x1p-126f, 0x1.fffffep127f, true},
};

static const struct means {
    const char *fn, *v, *to; /* to NULL: SCALE */
} meanings[] = {
    {"erfc", "v", "a"},   {"erfc", "y", NULL},  {"tanh", "v", "a"},
    {"log", "xn", "x"},   {"log", "kbias", "bias"}, {"log", "y", "y0"},
    {"log2", "xn", "x"},  {"log2", "kbias", "bias"}, {"log2", "y", "y0"},
    {"expm1", "v", "x"},
    {"sin", "r", "rc"},   {"sin", "rl", "rlc"}, {"sin", "q", "qc"}, {"sin", "y", "ys"},
    {"cos", "r", "rc"},   {"cos", "rl", "rlc"}, {"cos", "q", "qc"}, {"cos", "y", "ys"},
};

static const struct means *means(const char *fn, const char *v)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(meanings[i].fn, fn) == 0 && strcmp(meanings[i].v, v) == 0)
            return &meanings[i];
    return NULL;
}

static const struct shorter *shorter(const char *fn)
{
    for (size_t i = 0; i < sizeof shorters / sizeof *shorters; i++)
        if (strcmp(shorters[i].fn, fn) == 0)
            return &shorters[i];
    return NULL;
}

/* Values named so far in one expansion. */
enum { MAX_ROWS = 320 };
struct names {
    const char *name[MAX_ROWS];
    opnd v[MAX_ROWS];
    uint32_t n;
};

static opnd get(struct pgen *g, const struct names *s, const char *name)
{
    if (!name)
        return NULL;
    for (uint32_t i = s->n; i-- > 0;)
        if (strcmp(s->name[i], name) == 0)
            return s->v[i];
    kl_raise(g->a->env, KILN_E_INTERNAL, "math.def: no value %s", name);
}

static void put(struct pgen *g, struct names *s, const char *name, opnd v)
{
    KL_CHECK(g->a->env, s->n < MAX_ROWS);
    s->name[s->n] = name;
    s->v[s->n++] = v;
}

/* Which rows of a function its result needs, given what is taken from others. */
static void mark(const struct row *first, bool brief, bool *need, uint32_t n)
{
    const char *fn = first[-1].name;
    need[n] = true;
    for (uint32_t i = n + 1; i-- > 0;) {
        const struct row *r = &first[i];
        if (!need[i])
            continue;
        const struct means *m = brief && r->kind != R_RET ? means(fn, r->name) : NULL;
        const char *use[4] = {r->a, r->b, r->c, r->kind == R_RET ? r->name : NULL};
        if (m) {
            use[0] = m->to ? m->to : "y0", use[1] = m->to ? NULL : "tb";
            use[2] = use[3] = NULL;
        }
        for (int k = 0; k < 4; k++)
            for (uint32_t j = i; use[k] && j-- > 0;)
                if (strcmp(first[j].name, use[k]) == 0) {
                    need[j] = true;
                    break;
                }
    }
}

/* y0 * 2^n, n in the low bits of t. */
static opnd scale(struct pgen *g, opnd y0, opnd t)
{
    opnd b = kl_px_set(g, CL_B32, "mov.b32 $, %s", y0);
    opnd e = kl_px_set(g, CL_B32, "shl.b32 $, %s, 23", t);
    e = kl_px_set(g, CL_B32, "add.s32 $, %s, %s", e, b);
    return kl_px_set(g, CL_F32, "mov.b32 $, %s", e);
}

static bool scales(const char *fn)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (!meanings[i].to && strcmp(meanings[i].fn, fn) == 0)
            return true;
    return false;
}

/* 64-bit shifts take their count as 32 bits. */
static opnd shift64(struct pgen *g, const char *op, opnd a, opnd count)
{
    opnd n = kl_px_isreg(count) ? kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", count)
                                : kl_px_fmt(g, "%d", atoi(count));
    return kl_px_set(g, CL_B64, "%s.%s $, %s, %s", op, op[2] == 'l' ? "b64" : "u64", a, n);
}

static opnd expand(struct pgen *g, const char *fn, enum kl_elem e, opnd x, opnd y, bool brief)
{
    if (brief && (strcmp(fn, "exp") == 0 || strcmp(fn, "exp2") == 0))
        fn = fn[3] ? "exp2_mid" : "exp_mid";
    struct names s = {.n = 1, .name = {"x"}, .v = {kl_px_inreg(g, kl_px_cls(e), x)}};
    if (y)
        put(g, &s, "y", kl_px_inreg(g, kl_px_cls(e), y));
    const struct row *first = &rows[find(g, fn, e) + 1];
    bool need[MAX_ROWS] = {false};
    uint32_t n = 0;
    while (first[n].kind != R_RET)
        n++;
    KL_CHECK(g->a->env, n < MAX_ROWS);
    mark(first, brief, need, n);
    for (uint32_t i = 0; i <= n; i++) {
        const struct row *r = &first[i];
        enum kl_elem t = (enum kl_elem)r->type;
        if (!need[i])
            continue;
        if (r->kind == R_RET)
            break;
        const struct means *m = brief ? means(fn, r->name) : NULL;
        if (m) {
            opnd from = get(g, &s, m->to ? m->to : "y0");
            put(g, &s, r->name, m->to ? from : scale(g, from, get(g, &s, "tb")));
            continue;
        }
        opnd a = get(g, &s, r->a), b = get(g, &s, r->b), c = get(g, &s, r->c), v = NULL;
        switch ((enum row_kind)r->kind) {
        case R_K: {
            /* without its bias the magic number rounds to the same n */
            double f = brief && scales(fn) && strcmp(r->name, "magic") == 0 ? 0x1.8p23 : r->f;
            v = kl_px_imm(g, t, t == KL_f32   ? kl_f32_bits((float)f)
                                : t == KL_f64 ? kl_f64_bits(f)
                                              : r->u);
            break;
        }
        case R_SEL: v = kl_px_ew1(g, KL_OP_select, false, t, t, a, b, c, 0, false); break;
        case R_BC: v = kl_px_bitcast(g, t, (enum kl_elem)r->from, a); break;
        case R_CALL: v = expand(g, r->op, t, a, NULL, brief); break;
        default:
            if (kl_elems[t].bytes == 8 && (strcmp(r->op, "shl") == 0 || strcmp(r->op, "shr") == 0))
                v = shift64(g, r->op, a, b);
            else if (brief && strcmp(r->op, "div") == 0)
                v = strcmp(a, "0f3F800000") == 0 ? kl_px_short_rcp(g, b) : kl_px_short_div(g, a, b, NULL);
            else
                v = kl_px_ew1(g, op_by_name(r->op), false, t, t, a, b, c, 0, false);
            break;
        }
        put(g, &s, r->name, v);
    }
    return get(g, &s, first[n].name);
}

opnd kl_px_math(struct pgen *g, const char *fn, enum kl_elem e, opnd x, opnd y)
{
    return expand(g, fn, e, x, y, false);
}

/* ---- results of 0 ----
 *
 * Padding of a softmax is -inf, and what is far below the maximum gives 0 too.  Where a thread of
 * the warp has elements outside the range, the ones below -104.5, whose exponential is exactly 0,
 * count as 0 there, and their results are put right at the end. */
struct underflow {
    opnd *mask; /* bit i % 32 of word i / 32: element i gives 0 */
    opnd any;   /* predicate: there may be some */
};

/* The elements to go on with; falls through to the short form, or leaves for the other. */
static const opnd *exp_underflow(struct pgen *g, struct underflow *u, const opnd *in, uint32_t n,
                                 const struct shorter *sh, opnd ok, uint32_t slow)
{
    uint32_t words = (n + 31) / 32, brief = kl_px_new_label(g);
    opnd *x = kl_new_n(g->a, opnd, n);
    u->mask = kl_new_n(g->a, opnd, words);
    for (uint32_t i = 0; i < n; i++)
        x[i] = kl_px_set(g, CL_F32, "mov.f32 $, %s", kl_px_inreg(g, CL_F32, in[i]));
    for (uint32_t i = 0; i < words; i++)
        u->mask[i] = kl_px_set(g, CL_B32, "mov.b32 $, 0");
    opnd all = kl_px_set(g, CL_P, "vote.sync.all.pred $, %s, -1", ok);
    u->any = kl_px_set(g, CL_P, "not.pred $, %s", all);
    kl_px(g, "@%s bra $L%u", all, brief);
    for (uint32_t i = 0; i < n; i++) {
        opnd p = kl_px_set(g, CL_P, "setp.lt.f32 $, %s, %s", x[i],
                           kl_px_imm(g, KL_f32, kl_f32_bits(-104.5f)));
        opnd bit = kl_px_set(g, CL_B32, "selp.b32 $, %u, 0, %s", 1u << i % 32, p);
        kl_px(g, "or.b32 %s, %s, %s", u->mask[i / 32], u->mask[i / 32], bit);
        kl_px(g, "selp.f32 %s, 0f00000000, %s, %s", x[i], x[i], p);
    }
    kl_px(g, "@!%s bra $L%u", kl_px_within(g, x, n, sh->lo, sh->hi, sh->is_signed), slow);
    kl_px_label(g, brief);
    return x;
}

static void put_zeros(struct pgen *g, const struct underflow *u, uint32_t label, opnd *out,
                      uint32_t n)
{
    kl_px_label(g, label);
    for (uint32_t i = 0; i < n; i++) {
        opnd m = kl_px_set(g, CL_B32, "and.b32 $, %s, %u", u->mask[i / 32], 1u << i % 32);
        opnd p = kl_px_set(g, CL_P, "setp.ne.u32 $, %s, 0", m);
        kl_px(g, "selp.f32 %s, 0f00000000, %s, %s", out[i], out[i], p);
    }
}

bool kl_px_is_brief(const struct pgen *g, kl_val v)
{
    kl_val x = kl_arg(g->f, v, 0);
    const struct shorter *sh = kl_type_of(g->f, x)->elem == KL_f32 ? shorter(kl_ops[kl_in(g->f, v)->op].name) : NULL;
    return sh && kl_range_within(g->range[x.id], sh->is_signed ? sh->lo : -sh->hi, sh->hi);
}

void kl_px_math_n(struct pgen *g, kl_val v, enum kl_elem e, const opnd *in, opnd *out, uint32_t n)
{
    enum kl_op op = (enum kl_op)kl_in(g->f, v)->op;
    const char *fn = kl_ops[op].name;
    const struct shorter *sh = e == KL_f32 ? shorter(fn) : NULL;
    bool known = kl_px_is_brief(g, v);
    if (!sh || n < 2 || known) {
        for (uint32_t i = 0; i < n; i++)
            out[i] = expand(g, fn, e, in[i], NULL, known);
        return;
    }
    opnd ok = kl_px_within(g, in, n, sh->lo, sh->hi, sh->is_signed);
    uint32_t slow = kl_px_new_label(g), done = kl_px_new_label(g);
    struct underflow u = {0};
    if (op == KL_OP_exp)
        in = exp_underflow(g, &u, in, n, sh, ok, slow);
    else
        kl_px(g, "@!%s bra $L%u", ok, slow);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = kl_px_reg(g, CL_F32);
        kl_px(g, "mov.f32 %s, %s", out[i], expand(g, fn, e, in[i], NULL, true));
    }
    uint32_t zeros = u.mask ? kl_px_new_label(g) : done;
    if (u.mask)
        kl_px(g, "@!%s bra $L%u", u.any, done);
    kl_px(g, "bra $L%u", zeros);
    kl_px_label(g, slow);
    for (uint32_t i = 0; i < n; i++)
        kl_px(g, "mov.f32 %s, %s", out[i], expand(g, fn, e, in[i], NULL, false));
    if (u.mask)
        put_zeros(g, &u, zeros, out, n);
    kl_px_label(g, done);
}
