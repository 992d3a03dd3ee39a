/* text.c - lines of PTX, registers, immediates. */
#include "gen/ptx/ptx.h"

static const struct {
    const char *prefix, *type, *decl;
} classes[CL_N] = {
    [CL_P] = {"%p", "pred", "pred"},  [CL_B16] = {"%h", "b16", "b16"},
    [CL_B32] = {"%r", "b32", "b32"},  [CL_B64] = {"%rd", "b64", "b64"},
    [CL_F32] = {"%f", "f32", "f32"},  [CL_F64] = {"%fd", "f64", "f64"},
};

void kl_px_unsupported(struct pgen *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *what = kl_vprintf(g->a, fmt, ap);
    va_end(ap);
    kl_raise(g->a->env, KILN_E_UNSUPPORTED, "the GPU back end: %s", what);
}

uint32_t kl_px_file(const struct pgen *g, uint32_t i)
{
    return i + (g->o->first_file ? g->o->first_file : 1);
}

static void line_of(struct pgen *g)
{
    if (!g->o->lines || !g->f->src || !g->loc.beg || g->to != &g->body || g->loc.beg == g->loc_beg)
        return;
    g->loc_beg = g->loc.beg;
    kiln_place at = kl_src_place(g->f->src, g->a, g->loc);
    if (!at.file)
        return;
    uint32_t i = 0;
    while (i < g->files.n && strcmp(g->files.v[i], at.file) != 0)
        i++;
    if (i == g->files.n)
        kl_push(g->a, &g->files, at.file);
    if (at.line == g->line && at.col == g->col && i + 1 == g->file)
        return;
    g->line = at.line;
    g->col = at.col;
    g->file = i + 1;
    kl_putf(g->to, "\t.loc %u %u %u\n", kl_px_file(g, i), at.line, at.col);
}

void kl_px(struct pgen *g, const char *fmt, ...)
{
    va_list ap;
    line_of(g);
    va_start(ap, fmt);
    const char *s = kl_vprintf(g->a, fmt, ap);
    va_end(ap);
    kl_px_trace_write(g, s);
    kl_putf(g->to, "\t%s;\n", s);
}

void kl_px_label(struct pgen *g, uint32_t label)
{
    kl_px_trace_label(g, label);
    kl_putf(g->to, "$L%u:\n", label);
}

opnd kl_px_fmt(struct pgen *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    opnd s = kl_vprintf(g->a, fmt, ap);
    va_end(ap);
    return s;
}

opnd kl_px_reg(struct pgen *g, enum cls c)
{
    return kl_px_fmt(g, "%s%u", classes[c].prefix, g->nreg[c]++);
}

const char *kl_px_b(enum cls c)
{
    return classes[c].type;
}

enum cls kl_px_cls(enum kl_elem e)
{
    switch (e) {
    case KL_bool: return CL_P;
    case KL_f16:
    case KL_bf16:
    case KL_i16:
    case KL_u16: return CL_B16;
    case KL_f32: return CL_F32;
    case KL_f64: return CL_F64;
    case KL_i64:
    case KL_u64: return CL_B64;
    default: return CL_B32;
    }
}

uint32_t kl_px_bytes(enum cls c)
{
    static const uint8_t n[CL_N] = {4, 2, 4, 8, 4, 8};
    return n[c];
}

bool kl_px_isreg(opnd v)
{
    return v[0] == '%';
}

opnd kl_px_int(struct pgen *g, int64_t v)
{
    return kl_px_fmt(g, "%lld", (long long)v);
}

opnd kl_px_imm(struct pgen *g, enum kl_elem e, uint64_t bits)
{
    switch (e) {
    case KL_f32: return kl_px_fmt(g, "0f%08X", (unsigned)bits);
    case KL_f64: return kl_px_fmt(g, "0d%016llX", (unsigned long long)bits);
    case KL_u32:
    case KL_f16:
    case KL_bf16:
    case KL_u16: return kl_px_fmt(g, "%llu", (unsigned long long)bits);
    case KL_u64: return kl_px_fmt(g, "%lluU", (unsigned long long)bits);
    default:
        if (bits == (uint64_t)INT64_MIN)
            return "0x8000000000000000";
        return kl_px_int(g, (int64_t)bits);
    }
}

opnd kl_px_inreg(struct pgen *g, enum cls c, opnd v)
{
    if (kl_px_isreg(v))
        return v;
    if (c == CL_P) {
        opnd p = kl_px_reg(g, CL_P);
        kl_px(g, "setp.ne.s32 %s, %s, 0", p, v);
        return p;
    }
    opnd r = kl_px_reg(g, c);
    kl_px(g, "mov.%s %s, %s", classes[c].type, r, v);
    if (g->tracer && (c == CL_B32 || c == CL_B64))
        kl_px_trace_define(g, r, kl_px_fmt(g, "mov.%s %s, %s", classes[c].type, r, v));
    return r;
}

/* '$' in s becomes the name. */
static opnd with_name(struct pgen *g, const char *s, opnd name)
{
    kl_buf b = {.a = g->a};
    for (const char *at; (at = strchr(s, '$')) != NULL; s = at + 1) {
        kl_buf_put(&b, s, (size_t)(at - s));
        kl_puts(&b, name);
    }
    kl_puts(&b, s);
    return kl_buf_str(&b);
}

opnd kl_px_set(struct pgen *g, enum cls c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *s = kl_vprintf(g->a, fmt, ap);
    va_end(ap);
    opnd r = kl_px_reg(g, c), text = with_name(g, s, r);
    kl_px(g, "%s", text);
    if (c == CL_P || c == CL_B32 || c == CL_B64)
        kl_px_trace_define(g, r, text);
    return r;
}

opnd kl_px_once(struct pgen *g, enum cls c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *s = kl_vprintf(g->a, fmt, ap);
    va_end(ap);
    bool isnew;
    uint32_t *at = kl_map_put(&g->cache, s, strlen(s), &isnew);
    if (!isnew)
        return g->cached.v[*at];
    *at = g->cached.n;
    opnd r = kl_px_reg(g, c);
    kl_push(g->a, &g->cached, r);
    kl_buf *to = g->to;
    g->to = &g->pro;
    opnd text = with_name(g, s, r);
    kl_px(g, "%s", text);
    g->to = to;
    if (c == CL_P || c == CL_B32 || c == CL_B64)
        kl_px_trace_define(g, r, text);
    return r;
}

/* One register, or a list of them in braces. */
opnd kl_px_list(struct pgen *g, const opnd *v, uint32_t n)
{
    kl_buf b = {.a = g->a};
    if (n == 1)
        return v[0];
    for (uint32_t i = 0; i < n; i++)
        kl_putf(&b, "%s%s", i ? ", " : "{", v[i] ? v[i] : "");
    kl_puts(&b, "}");
    return kl_buf_str(&b);
}

/* Between b32 and other classes of at most 32 bits: for shuffles and packing. */
opnd kl_px_as32(struct pgen *g, enum cls c, opnd v)
{
    switch (c) {
    case CL_P: return kl_px_set(g, CL_B32, "selp.b32 $, 1, 0, %s", kl_px_inreg(g, c, v));
    case CL_B16: v = kl_px_inreg(g, c, v); return kl_px_set(g, CL_B32, "mov.b32 $, {%s, %s}", v, v);
    case CL_F32: return kl_px_set(g, CL_B32, "mov.b32 $, %s", v);
    default: return kl_px_inreg(g, c, v);
    }
}

opnd kl_px_from32(struct pgen *g, enum cls c, opnd v)
{
    opnd low, high;
    switch (c) {
    case CL_P: return kl_px_set(g, CL_P, "setp.ne.s32 $, %s, 0", v);
    case CL_B16:
        low = kl_px_reg(g, CL_B16), high = kl_px_reg(g, CL_B16);
        kl_px(g, "mov.b32 {%s, %s}, %s", low, high, v);
        return low;
    case CL_F32: return kl_px_set(g, CL_F32, "mov.b32 $, %s", v);
    default: return v;
    }
}
