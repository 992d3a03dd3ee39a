/* value.c - element-wise operations: templates of pops.def, casts, choice. */
#include "gen/ptx/ptx.h"


/* Operations outside the element-wise ones, and where they are written. */
const char *const kl_px_where[KL_NOP] = {
#define POP(name, file) [KL_OP_##name] = file,
#include "gen/ptx/pops.def"
};

/* Four tables, as a row of one cannot be put together from several lists. */
static const char *const texts[KL_NOP][4] = {
#define PEW(name, ...) [KL_OP_##name] = {__VA_ARGS__},
#include "gen/ptx/pops.def"
};
static const char *const positive[KL_NOP][2] = {
#define PALT(name, ...) [KL_OP_##name] = {__VA_ARGS__},
#include "gen/ptx/pops.def"
};
static const char *const wide[KL_NOP][2] = {
#define PWIDE(name, ...) [KL_OP_##name] = {__VA_ARGS__},
#include "gen/ptx/pops.def"
};
static const char *const fast_text[KL_NOP] = {
#define PFAST(name, text) [KL_OP_##name] = text,
#include "gen/ptx/pops.def"
};

const char *const *kl_px_texts(enum kl_op op)
{
    return texts[op];
}

/* ---- templates ---- */

struct temps {
    opnd r[4][10]; /* x p r w */
};

static opnd temp(struct pgen *g, struct temps *t, char kind, char digit, enum cls own)
{
    static const char kinds[] = "xprw";
    const enum cls c[4] = {own, CL_P, CL_B32, CL_B64};
    uint32_t k = (uint32_t)(strchr(kinds, kind) - kinds), i = (uint32_t)(digit - '0');
    if (!t->r[k][i])
        t->r[k][i] = kl_px_reg(g, c[k]);
    return t->r[k][i];
}

static const char *type_name(enum kl_elem e, char kind)
{
    bool w = kl_elems[e].bytes == 8;
    switch (kind) {
    case 's': return w ? "s64" : "s32";
    case 'u': return w ? "u64" : "u32";
    case 'B': return w ? "b64" : "b32";
    case 'n': return w ? "64" : "32";
    default: break;
    }
    if (kl_is_float(e))
        return w ? "f64" : "f32";
    return type_name(e, kl_elems[e].kind == KL_KIND_UINT ? 'u' : 's');
}

static void expand(struct pgen *g, const char *s, enum kl_elem e, opnd d, const opnd arg[3])
{
    struct temps t = {{{NULL}}};
    kl_buf b = {.a = g->a};
    enum cls own = kl_px_cls(e);
    for (; *s; s++) {
        if (*s == ';') {
            kl_px(g, "%s", kl_buf_str(&b));
            b.n = 0;
            s += s[1] == ' ';
        } else if (*s != '$') {
            kl_buf_put(&b, s, 1);
        } else if (*++s == 'd') {
            kl_puts(&b, d);
        } else if (*s >= 'a' && *s <= 'c') {
            kl_puts(&b, arg[*s - 'a']);
        } else if (strchr("xprw", *s)) {
            kl_puts(&b, temp(g, &t, s[0], s[1], own));
            s++;
        } else {
            kl_puts(&b, type_name(e, *s));
        }
    }
    kl_px(g, "%s", kl_buf_str(&b));
}

static opnd select(struct pgen *g, enum cls c, opnd p, opnd a, opnd b)
{
    if (c != CL_P)
        return kl_px_set(g, c, "selp.%s $, %s, %s, %s", kl_px_b(c), a, b, kl_px_inreg(g, CL_P, p));
    opnd q = kl_px_inreg(g, CL_P, p), x = kl_px_inreg(g, CL_P, a), y = kl_px_inreg(g, CL_P, b);
    opnd t = kl_px_set(g, CL_P, "and.pred $, %s, %s", q, x);
    opnd n = kl_px_set(g, CL_P, "not.pred $, %s", q);
    opnd u = kl_px_set(g, CL_P, "and.pred $, %s, %s", n, y);
    return kl_px_set(g, CL_P, "or.pred $, %s, %s", t, u);
}

/* e: type of the operands (of b and c for select). */
opnd kl_px_ew1(struct pgen *g, enum kl_op op, bool fast, enum kl_elem e, enum kl_elem to, opnd a,
               opnd b, opnd c, uint64_t bconst, bool isconst)
{
    const opnd arg[3] = {a, b, c};
    enum cls own = kl_px_cls(e);
    if (op == KL_OP_select)
        return select(g, own, a, b, c);
    if (op == KL_OP_convert || op == KL_OP_convert_nan || op == KL_OP_bitcast) {
        opnd r;
        if (op == KL_OP_convert)
            kl_px_convert_n(g, to, e, &a, &r, 1);
        else if (op == KL_OP_convert_nan)
            r = kl_px_f8_of_f32(g, to, true, kl_px_inreg(g, CL_F32, a));
        else
            r = kl_px_bitcast(g, to, e, a);
        return r;
    }
    if (own == CL_P) { /* and, or, xor */
        b = kl_px_inreg(g, CL_P, b);
        a = kl_px_inreg(g, CL_P, a);
        return kl_px_set(g, CL_P, "%s.pred $, %s, %s", kl_ops[op].name, a, b);
    }
    bool uns = kl_elems[e].kind == KL_KIND_UINT;
    const char *s = texts[op][kl_is_float(e) ? (e == KL_f64 ? 3 : 2) : uns];
    if (fast && e == KL_f32 && fast_text[op]) {
        s = fast_text[op];
        g->approximate = true;
    }
    if (!kl_is_float(e)) {
        int64_t k = (int64_t)bconst;
        if (isconst && positive[op][uns] && k != 0 && (uns || k > 0))
            s = positive[op][uns];
        if (kl_elems[e].bytes == 8 && wide[op][uns])
            s = wide[op][uns];
    }
    if (op == KL_OP_fmod)
        return kl_px_fmod(g, e, a, b);
    if (!s)
        return kl_px_math(g, kl_ops[op].name, e, a, b);
    opnd d = kl_px_reg(g, kl_ops[op].cls == KL_C_CMP ? CL_P : own);
    expand(g, s, e, d, arg);
    return d;
}

/* ---- casts ---- */

static opnd to_f32(struct pgen *g, enum kl_elem from, opnd x)
{
    switch (from) {
    case KL_bool: return kl_px_set(g, CL_F32, "selp.f32 $, 0f3F800000, 0f00000000, %s", kl_px_inreg(g, CL_P, x));
    case KL_f16: return kl_px_set(g, CL_F32, "cvt.f32.f16 $, %s", kl_px_inreg(g, CL_B16, x));
    case KL_bf16: {
        opnd z = kl_px_once(g, CL_B16, "mov.b16 $, 0");
        return kl_px_set(g, CL_F32, "mov.b32 $, {%s, %s}", z, kl_px_inreg(g, CL_B16, x));
    }
    case KL_f8e4m3:
    case KL_f8e5m2: return kl_px_f32_of_f8(g, from, x);
    case KL_f32: return x;
    case KL_f64: return kl_px_set(g, CL_F32, "cvt.rn.f32.f64 $, %s", x);
    case KL_i64: return kl_px_set(g, CL_F32, "cvt.rn.f32.s64 $, %s", x);
    case KL_u64: return kl_px_set(g, CL_F32, "cvt.rn.f32.u64 $, %s", x);
    case KL_u32:
    case KL_u8: return kl_px_set(g, CL_F32, "cvt.rn.f32.u32 $, %s", x);
    case KL_u16: return kl_px_set(g, CL_F32, "cvt.rn.f32.u16 $, %s", x);
    case KL_i16: return kl_px_set(g, CL_F32, "cvt.rn.f32.s16 $, %s", x);
    default: return kl_px_set(g, CL_F32, "cvt.rn.f32.s32 $, %s", x);
    }
}

static opnd to_f64(struct pgen *g, enum kl_elem from, opnd x)
{
    switch (from) {
    case KL_bool:
        return kl_px_set(g, CL_F64, "selp.f64 $, 0d3FF0000000000000, 0d0000000000000000, %s",
                         kl_px_inreg(g, CL_P, x));
    case KL_f64: return x;
    case KL_i64: return kl_px_set(g, CL_F64, "cvt.rn.f64.s64 $, %s", x);
    case KL_u64: return kl_px_set(g, CL_F64, "cvt.rn.f64.u64 $, %s", x);
    case KL_u32:
    case KL_u8: return kl_px_set(g, CL_F64, "cvt.rn.f64.u32 $, %s", x);
    case KL_i32:
    case KL_i8: return kl_px_set(g, CL_F64, "cvt.rn.f64.s32 $, %s", x);
    default: return kl_px_set(g, CL_F64, "cvt.f64.f32 $, %s", to_f32(g, from, x));
    }
}

/* A 32-bit register (sign- or zero-extended) of any integer, bool or smaller type. */
static opnd to_b32(struct pgen *g, enum kl_elem from, opnd x)
{
    switch (from) {
    case KL_bool: return kl_px_set(g, CL_B32, "selp.b32 $, 1, 0, %s", kl_px_inreg(g, CL_P, x));
    case KL_i64:
    case KL_u64: return kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", x);
    case KL_i16: return kl_px_set(g, CL_B32, "cvt.s32.s16 $, %s", x);
    case KL_u16: return kl_px_set(g, CL_B32, "cvt.u32.u16 $, %s", x);
    default: return x;
    }
}

static opnd narrow(struct pgen *g, enum kl_elem to, opnd x) /* wraps a b32 */
{
    switch (to) {
    case KL_u8:
    case KL_f8e4m3:
    case KL_f8e5m2: return kl_px_set(g, CL_B32, "and.b32 $, %s, 255", x);
    case KL_i8: return kl_px_set(g, CL_B32, "cvt.s32.s8 $, %s", x);
    case KL_i16:
    case KL_u16: return kl_px_set(g, CL_B16, "cvt.u16.u32 $, %s", x);
    default: return x;
    }
}

/* Float to integer: the hardware saturates; NaN gives 0 only from f32 to 32 bits. */
static opnd float_to_int(struct pgen *g, enum kl_elem to, enum kl_elem from, opnd x)
{
    static const struct {
        const char *lo, *hi;
    } small[KL_NELEM] = {[KL_i8] = {"-128", "127"}, [KL_u8] = {"0", "255"},
                         [KL_i16] = {"-32768", "32767"}, [KL_u16] = {"0", "65535"}};
    if (from != KL_f64)
        x = to_f32(g, from, x), from = KL_f32;
    const char *f = from == KL_f64 ? "f64" : "f32";
    x = kl_px_inreg(g, kl_px_cls(from), x);
    if (kl_elems[to].bytes == 8) {
        opnd r = kl_px_set(g, CL_B64, "cvt.rzi.%s.%s $, %s", to == KL_i64 ? "s64" : "u64", f, x);
        opnd n = kl_px_set(g, CL_P, "setp.nan.%s $, %s, %s", f, x, x);
        return kl_px_set(g, CL_B64, "selp.b64 $, 0, %s, %s", r, n);
    }
    opnd r = kl_px_set(g, CL_B32, "cvt.rzi.%s.%s $, %s", to == KL_u32 ? "u32" : "s32", f, x);
    if (from == KL_f64) {
        opnd n = kl_px_set(g, CL_P, "setp.nan.f64 $, %s, %s", x, x);
        r = kl_px_set(g, CL_B32, "selp.b32 $, 0, %s, %s", r, n);
    }
    if (small[to].lo) {
        r = kl_px_set(g, CL_B32, "max.s32 $, %s, %s", r, small[to].lo);
        r = kl_px_set(g, CL_B32, "min.s32 $, %s, %s", r, small[to].hi);
        if (to == KL_i16 || to == KL_u16)
            r = narrow(g, to, r);
    }
    return r;
}

static opnd convert(struct pgen *g, enum kl_elem to, enum kl_elem from, opnd x)
{
    if (to == from)
        return x;
    if (kl_px_cls(from) != CL_P)
        x = kl_px_inreg(g, kl_px_cls(from), x);
    switch (to) {
    case KL_f32: return to_f32(g, from, x);
    case KL_f64: return to_f64(g, from, x);
    case KL_f16: return kl_px_set(g, CL_B16, "cvt.rn.f16.f32 $, %s", to_f32(g, from, x));
    case KL_bf16: return kl_px_set(g, CL_B16, "cvt.rn.bf16.f32 $, %s", to_f32(g, from, x));
    case KL_f8e4m3:
    case KL_f8e5m2: return kl_px_f8_of_f32(g, to, false, kl_px_inreg(g, CL_F32, to_f32(g, from, x)));
    case KL_bool:
        if (from == KL_f64)
            return kl_px_set(g, CL_P, "setp.neu.f64 $, %s, 0d0000000000000000", x);
        if (kl_is_float(from))
            return kl_px_set(g, CL_P, "setp.neu.f32 $, %s, 0f00000000", to_f32(g, from, x));
        if (kl_elems[from].bytes == 8)
            return kl_px_set(g, CL_P, "setp.ne.s64 $, %s, 0", x);
        return kl_px_set(g, CL_P, "setp.ne.s32 $, %s, 0", to_b32(g, from, x));
    default: break;
    }
    if (kl_is_float(from))
        return float_to_int(g, to, from, x);
    if (kl_elems[to].bytes < 8)
        return narrow(g, to, to_b32(g, from, x));
    if (kl_elems[from].bytes == 8)
        return x;
    bool sign = kl_elems[from].kind == KL_KIND_SINT;
    return kl_px_set(g, CL_B64, "cvt.%s $, %s", sign ? "s64.s32" : "u64.u32", to_b32(g, from, x));
}

/* Casts of a thread's elements: to smaller floats two at a time. */
void kl_px_convert_n(struct pgen *g, enum kl_elem to, enum kl_elem from, const opnd *in, opnd *out,
                     uint32_t n)
{
    uint32_t i = 0;
    if (to != from && (to == KL_f16 || to == KL_bf16))
        for (; i + 2 <= n; i += 2) {
            opnd lo = to_f32(g, from, from == KL_bool ? in[i] : kl_px_inreg(g, kl_px_cls(from), in[i]));
            opnd hi = to_f32(g, from, from == KL_bool ? in[i + 1] : kl_px_inreg(g, kl_px_cls(from), in[i + 1]));
            opnd two = kl_px_set(g, CL_B32, "cvt.rn.%s.f32 $, %s, %s", to == KL_f16 ? "f16x2" : "bf16x2", hi, lo);
            out[i] = kl_px_reg(g, CL_B16), out[i + 1] = kl_px_reg(g, CL_B16);
            kl_px(g, "mov.b32 {%s, %s}, %s", out[i], out[i + 1], two);
        }
    if (to != from && (to == KL_f8e4m3 || to == KL_f8e5m2) && kl_px_has_f8(g))
        for (; i + 2 <= n; i += 2) {
            opnd x[2];
            for (uint32_t k = 0; k < 2; k++) {
                x[k] = from == KL_bool ? in[i + k] : kl_px_inreg(g, kl_px_cls(from), in[i + k]);
                x[k] = kl_px_inreg(g, CL_F32, to_f32(g, from, x[k]));
            }
            kl_px_f8_pair(g, to, x[0], x[1], out + i);
        }
    for (; i < n; i++)
        out[i] = convert(g, to, from, in[i]);
}

opnd kl_px_bitcast(struct pgen *g, enum kl_elem to, enum kl_elem from, opnd x)
{
    enum cls c = kl_px_cls(to), d = kl_px_cls(from);
    if (kl_elems[to].bytes == 1)
        return to == KL_bool ? convert(g, KL_bool, KL_u8, kl_px_inreg(g, d, x))
                             : narrow(g, to, from == KL_bool ? to_b32(g, from, x) : kl_px_inreg(g, d, x));
    if (c == d)
        return x;
    return kl_px_set(g, c, "mov.%s $, %s", kl_elems[to].bytes == 8 ? "b64" : "b32", kl_px_inreg(g, d, x));
}

/* ---- whole values ---- */

enum cls kl_px_vcls(const struct pgen *g, kl_val v)
{
    return kl_px_cls((enum kl_elem)kl_type_of(g->f, v)->elem);
}

struct pval kl_px_new(struct pgen *g, const kl_layout *l, enum cls c)
{
    uint32_t n = l ? kl_layout_nreg(l) : 1;
    struct pval v = {.l = l, .r = kl_new_n(g->a, opnd, n)};
    for (uint32_t i = 0; i < n; i++)
        v.r[i] = kl_px_reg(g, c);
    return v;
}

struct pval kl_px_in(struct pgen *g, kl_val v, const kl_layout *l)
{
    struct pval *x = &g->val[v.id];
    if (!x->l || x->l == l)
        return *x;
    return kl_px_to(g, x, kl_px_vcls(g, v), l);
}

opnd kl_px_scalar(struct pgen *g, kl_val v)
{
    KL_CHECK(g->a->env, !g->val[v.id].l);
    return g->val[v.id].r[0];
}

/* Divisions of a thread's elements; a common divisor is inverted once. */
static void divide(struct pgen *g, opnd *x, const struct pval *y, bool fast, struct divide how, opnd *r,
                   uint32_t n)
{
    opnd *d = kl_new_n(g->a, opnd, n), rec = NULL;
    for (uint32_t i = 0; i < n; i++) {
        x[i] = kl_px_inreg(g, CL_F32, x[i]);
        d[i] = kl_px_at(y, i);
    }
    if (!fast) {
        kl_px_guarded_div(g, x, d, how, r, n);
        return;
    }
    g->approximate = true;
    for (uint32_t i = 0; i < n; i++) {
        if (!rec || y->l)
            rec = kl_px_set(g, CL_F32, "rcp.approx%s.f32 $, %s", how.tame ? ".ftz" : "", kl_px_inreg(g, CL_F32, d[i]));
        r[i] = how.unit ? rec : kl_px_set(g, CL_F32, "mul.rn.f32 $, %s, %s", x[i], rec);
    }
}

void kl_px_ew(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    enum kl_op op = (enum kl_op)in->op;
    const kl_layout *l = g->in_block ? NULL : g->lay[v.id];
    uint32_t n = l ? kl_layout_nreg(l) : 1;
    struct pval a[3] = {{0}};
    for (uint32_t i = 0; i < in->nargs; i++)
        a[i] = kl_px_in(g, kl_arg(f, v, i), l);
    enum kl_elem e = (enum kl_elem)kl_type_of(f, kl_arg(f, v, op == KL_OP_select ? 1 : 0))->elem;
    enum kl_elem to = (enum kl_elem)kl_type_of(f, v)->elem;
    bool fast = (kl_ops[op].flags & KL_F_FAST) && in->attr.bits && !g->o->exact;
    const struct kl_ins *b = in->nargs > 1 ? kl_in(f, kl_arg(f, v, 1)) : NULL;
    bool isconst = b && b->op == KL_OP_const;
    opnd *r = kl_new_n(g->a, opnd, n);
    opnd *x = kl_new_n(g->a, opnd, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] = kl_px_at(&a[0], i);
    if (op == KL_OP_convert)
        kl_px_convert_n(g, to, e, x, r, n);
    else if (in->nargs == 1 && !texts[op][2] && op != KL_OP_bitcast && op != KL_OP_convert_nan && kl_is_float(e) &&
             !(fast && e == KL_f32 && fast_text[op]))
        kl_px_math_n(g, v, e, x, r, n);
    else if (op == KL_OP_div && e == KL_f32 && n >= 2)
        divide(g, x, &a[1], fast, kl_px_divide(g, v, !a[1].l), r, n);
    else
        for (uint32_t i = 0; i < n; i++)
            r[i] = kl_px_ew1(g, op, fast, e, to, x[i], in->nargs > 1 ? kl_px_at(&a[1], i) : NULL,
                             in->nargs > 2 ? kl_px_at(&a[2], i) : NULL, isconst ? b->attr.bits : 0,
                             isconst);
    g->val[v.id] = (struct pval){.l = l, .r = r};
}
