/* print.c - IR as text.
 *
 * Values are numbered in the order in which the text names them, so that the text does
 * not depend on ids and can be compared.  docs/ir.md has the grammar; read.c reads it
 * back.  The printer also serves messages about damaged IR: it survives operands that
 * do not exist, and says so by %?. */
#include "ir/ir.h"
#include "ir/text.h"

struct printer {
    kl_buf *b;
    const kl_fn *f;
    uint32_t *num; /* number + 1; 0: not seen yet */
    uint32_t next, depth;
};

/* ---- constants and types ---- */

/* A finite double, exactly: decimal when it is a small multiple of 1/8, else C's %a form
 * (printf's own would follow the locale). */
static void put_double(kl_buf *b, double x)
{
    uint64_t bits = kl_f64_bits(x), man = bits & ((UINT64_C(1) << 52) - 1);
    int exp = (int)(bits >> 52 & 2047);
    const char *sign = bits >> 63 ? "-" : "";
    double a = x < 0 ? -x : x, eighths = a * 8;
    if (a < 1e6 && eighths == (double)(uint64_t)eighths) {
        uint64_t m = (uint64_t)eighths * 125; /* thousandths */
        if (m % 1000 == 0)
            kl_putf(b, "%s%u.0", sign, (unsigned)(m / 1000));
        else if (m % 100 == 0)
            kl_putf(b, "%s%u.%u", sign, (unsigned)(m / 1000), (unsigned)(m % 1000 / 100));
        else if (m % 10 == 0)
            kl_putf(b, "%s%u.%02u", sign, (unsigned)(m / 1000), (unsigned)(m % 1000 / 10));
        else
            kl_putf(b, "%s%u.%03u", sign, (unsigned)(m / 1000), (unsigned)(m % 1000));
        return;
    }
    if (exp == 0) { /* subnormal: normalise */
        exp = 1;
        while (!(man >> 52))
            man <<= 1, exp--;
        man &= (UINT64_C(1) << 52) - 1;
    }
    char hex[16];
    int n = 0;
    for (; man; man = man << 4 & ((UINT64_C(1) << 52) - 1))
        hex[n++] = "0123456789abcdef"[man >> 48];
    kl_putf(b, "%s0x1%s%.*sp%+d", sign, n ? "." : "", n, hex, exp - 1023);
}

void kl_put_const(kl_buf *b, enum kl_elem e, uint64_t bits)
{
    switch (kl_elems[e].kind) {
    case KL_KIND_BOOL: kl_puts(b, bits ? "true" : "false"); return;
    case KL_KIND_SINT: kl_putf(b, "%lld", (long long)bits); return;
    case KL_KIND_FLT: break;
    default: kl_putf(b, "%llu", (unsigned long long)bits); return;
    }
    double d = kl_elem_double(e, bits);
    if (d != d)
        kl_putf(b, "nan(0x%llx)", (unsigned long long)bits);
    else if (d - d != 0)
        kl_puts(b, d < 0 ? "-inf" : "inf");
    else
        put_double(b, d);
}

void kl_put_type(kl_buf *b, const struct kl_type *t)
{
    if (t->kind == KL_T_ARRAY) {
        kl_putf(b, "array<%s,%u>", kl_elems[t->elem].name, t->rank);
        return;
    }
    kl_puts(b, kl_elems[t->elem < KL_NELEM ? t->elem : 0].name);
    for (uint32_t i = 0; i < t->rank && i < KL_MAX_RANK; i++)
        kl_putf(b, "[%u]", t->dim[i]);
}

/* ---- values ---- */

static void name_it(struct printer *p, kl_val v)
{
    if (v.id && v.id < p->f->nins && !p->num[v.id])
        p->num[v.id] = ++p->next;
}

static void put_val(struct printer *p, kl_val v)
{
    if (v.id && v.id < p->f->nins && p->num[v.id])
        kl_putf(p->b, "%%%u", p->num[v.id] - 1);
    else
        kl_puts(p->b, "%?");
}

static void put_arg(struct printer *p, kl_val v, uint32_t i)
{
    put_val(p, i < kl_in(p->f, v)->nargs ? kl_arg(p->f, v, i) : (kl_val){0});
}

static void put_args(struct printer *p, kl_val v, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        kl_puts(p->b, i > from ? ", " : "");
        put_arg(p, v, i);
    }
}

static void put_typ(struct printer *p, kl_typ t)
{
    if (t.id && t.id < p->f->ntype)
        kl_put_type(p->b, &p->f->type[t.id]);
    else
        kl_puts(p->b, "?");
}

static void indent(struct printer *p)
{
    for (uint32_t i = 0; i < p->depth; i++)
        kl_puts(p->b, "  ");
}

/* ---- instructions ---- */

static void put_block(struct printer *p, kl_blk blk);

/* (%3: i64, %4: f32[8]) */
static void put_params(struct printer *p, kl_blk blk)
{
    uint32_t n = 0;
    kl_puts(p->b, "(");
    kl_each_ins(p->f, blk, v) {
        if (kl_in(p->f, v)->op != KL_OP_param)
            break;
        name_it(p, v);
        kl_puts(p->b, n++ ? ", " : "");
        put_val(p, v);
        kl_puts(p->b, ": ");
        put_typ(p, kl_in(p->f, v)->type);
    }
    kl_puts(p->b, ") ");
}

/* %4[%1][%2:8:2]: sizes come from the tile that the access gives or takes */
static void put_access(struct printer *p, kl_val v, const struct kl_type *tile)
{
    const struct kl_ins *in = kl_in(p->f, v);
    uint32_t d = 0;
    put_arg(p, v, 0);
    for (uint32_t i = 0; i < in->attr.access.n; i++) {
        int64_t step = in->attr.access.at + i < p->f->naux ? p->f->aux[in->attr.access.at + i] : 0;
        kl_puts(p->b, "[");
        put_arg(p, v, 1 + i);
        if (1 + i < in->nargs && kl_access_index(p->f, v, i)) {
            d++;
        } else if (step) {
            kl_putf(p->b, ":%u", tile && d < tile->rank ? tile->dim[d] : 0);
            d++;
        }
        if (step && step != 1)
            kl_putf(p->b, ":%lld", (long long)step);
        kl_puts(p->b, "]");
    }
}

static void put_memory(struct printer *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    uint32_t k = 1u + in->attr.access.n, takes = kl_access_values(in), how = in->attr.access.how;
    const struct kl_type *tile = NULL;
    if (!takes || k < in->nargs)
        tile = kl_access_tile(p->f, v);
    if (in->op == KL_OP_atomic)
        kl_putf(p->b, "%s ", KL_HOW_RMW(how) < KL_NRMW ? kl_rmw_names[KL_HOW_RMW(how)] : "?");
    if (kl_is_atomic(in->op) && KL_HOW_ORDER(how) != KL_RELAXED)
        kl_putf(p->b, "%s ", kl_order_names[KL_HOW_ORDER(how)]);
    if (kl_is_atomic(in->op) && KL_HOW_SCOPE(how) != KL_SC_DEVICE)
        kl_putf(p->b, "%s ", KL_HOW_SCOPE(how) < KL_NSCOPE ? kl_reach_names[KL_HOW_SCOPE(how)] : "?");
    put_access(p, v, tile);
    for (; takes && k < in->nargs; takes--) {
        kl_puts(p->b, ", ");
        put_arg(p, v, k++);
    }
    if (in->attr.access.flags & KL_ACC_FILL) {
        kl_puts(p->b, " fill ");
        put_arg(p, v, k++);
    }
    if (in->attr.access.flags & KL_ACC_MASK) {
        kl_puts(p->b, " mask ");
        put_arg(p, v, k);
    }
    if (in->attr.access.flags & KL_ACC_EVICT)
        kl_puts(p->b, in->attr.access.flags & KL_ACC_EVICT_FIRST ? " evict_first" : " evict_last");
}

static void put_region(struct printer *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    kl_blk own[2] = {{0}, {0}};
    uint32_t n = kl_blocks(p->f, v, own);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            kl_puts(p->b, in->op == KL_OP_if ? " else " : " do ");
        if (in->op != KL_OP_if)
            put_params(p, own[i]);
        put_block(p, own[i]);
    }
}

/* What stands between the name and the type. */
static void put_operands(struct printer *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    switch (kl_ops[in->op].attr) {
    case KL_A_BITS:
        kl_puts(p->b, " ");
        kl_put_const(p->b, (enum kl_elem)kl_type_of(p->f, v)->elem, in->attr.bits);
        return;
    case KL_A_INDEX:
        if (in->nargs == 0) {
            kl_putf(p->b, " %lld", (long long)in->attr.index);
            return;
        }
        kl_puts(p->b, " ");
        put_args(p, v, 0, in->nargs);
        kl_putf(p->b, " axis %lld", (long long)in->attr.index);
        return;
    case KL_A_ACCESS:
        kl_puts(p->b, " ");
        put_memory(p, v);
        return;
    case KL_A_AUX:
        kl_puts(p->b, in->nargs ? " " : "");
        put_args(p, v, 0, in->nargs);
        for (uint32_t i = 0; i < in->attr.aux.n; i++)
            kl_putf(p->b, "%s%lld", i ? ", " : " (", (long long)p->f->aux[in->attr.aux.at + i]);
        kl_puts(p->b, in->attr.aux.n ? ")" : " ()");
        return;
    case KL_A_RED:
        kl_putf(p->b, " %s ", in->attr.red.op < KL_NOP ? kl_ops[in->attr.red.op].name : "?");
        put_args(p, v, 0, in->nargs);
        kl_putf(p->b, " axis %u", in->attr.red.axis);
        return;
    case KL_A_REDFN:
        kl_puts(p->b, " ");
        put_args(p, v, 0, in->nargs);
        kl_putf(p->b, " axis %u%s", in->attr.redfn.axis,
                in->attr.redfn.commutative ? " commutative" : "");
        return;
    case KL_A_LOOP:
        kl_puts(p->b, " ");
        put_args(p, v, 0, 3);
        if (in->attr.loop.unroll)
            kl_putf(p->b, " unroll %u", in->attr.loop.unroll);
        if (in->attr.loop.pipeline)
            kl_putf(p->b, " pipeline %u", in->attr.loop.pipeline);
        if (in->nargs > 3) {
            kl_puts(p->b, " carry ");
            put_args(p, v, 3, in->nargs);
        }
        return;
    default: break;
    }
    if (in->op == KL_OP_view) {
        uint32_t r = kl_type_of(p->f, v)->rank;
        kl_puts(p->b, " ");
        put_args(p, v, 0, 2);
        kl_puts(p->b, " [");
        put_args(p, v, 2, 2 + r);
        kl_puts(p->b, "] stride [");
        put_args(p, v, 2 + r, 2 + 2 * r);
        kl_puts(p->b, "]");
    } else if (in->nargs) {
        kl_puts(p->b, " ");
        put_args(p, v, 0, in->nargs);
    }
}

static void put_ins(struct printer *p, kl_val v)
{
    const struct kl_ins *in = kl_in(p->f, v);
    const struct kl_opinfo *row = &kl_ops[in->op < KL_NOP ? in->op : 0];
    indent(p);
    if (row->flags & KL_F_REGION && !in->type.id) { /* its results stand on its left */
        uint32_t n = 0;
        for (uint32_t id = in->next; id && p->f->ins[id].op == KL_OP_result;
             id = p->f->ins[id].next, n++) {
            name_it(p, (kl_val){id});
            kl_puts(p->b, n ? ", " : "");
            put_val(p, (kl_val){id});
        }
        kl_puts(p->b, n ? " = " : "");
    } else if (in->type.id) {
        name_it(p, v);
        put_val(p, v);
        kl_puts(p->b, " = ");
    }
    kl_puts(p->b, row->name);
    if (row->flags & KL_F_FAST && in->attr.bits & 1)
        kl_puts(p->b, ".fast");
    put_operands(p, v);
    if (in->type.id) {
        kl_puts(p->b, " : ");
        put_typ(p, in->type);
    }
    if (row->flags & KL_F_REGION) {
        kl_puts(p->b, " ");
        put_region(p, v);
    }
    kl_puts(p->b, "\n");
}

static void put_body(struct printer *p, kl_blk blk)
{
    p->depth++;
    kl_each_ins(p->f, blk, v) {
        uint16_t op = kl_in(p->f, v)->op;
        if (op == KL_OP_result) { /* named by its owner, unless it stands in a wrong place */
            if (!p->num[v.id])
                put_ins(p, v);
        } else if (op != KL_OP_param || !p->num[v.id]) {
            put_ins(p, v);
        }
    }
    p->depth--;
}

static void put_block(struct printer *p, kl_blk blk)
{
    kl_puts(p->b, "{\n");
    put_body(p, blk);
    indent(p);
    kl_puts(p->b, "}");
}

/* fn name(%0: array<f32,2> x const, %1: i64 n) may_alias warps=4 { ... } */
static void put_head(struct printer *p)
{
    const kl_fn *f = p->f;
    uint32_t n = 0;
    bool lines = f->nparam > 4; /* a parameter a line */
    for (uint32_t i = 0; i < f->nparam; i++)
        lines |= f->param[i].use == KL_P_ARRAY;
    kl_putf(p->b, "fn %s(", f->name);
    kl_each_ins(f, KL_BODY, v) {
        if (kl_in(f, v)->op != KL_OP_param)
            break;
        if (n >= f->nparam)
            break;
        const struct kl_param *q = &f->param[n];
        name_it(p, v);
        kl_puts(p->b, n ? lines ? ",\n    " : ", " : "");
        put_val(p, v);
        kl_puts(p->b, ": ");
        put_typ(p, kl_in(f, v)->type);
        kl_putf(p->b, " %s", q->name && *q->name ? q->name : "_");
        if (q->decl != n)
            kl_putf(p->b, " decl=%u", q->decl);
        kl_putf(p->b, "%s%s", q->isconst ? " const" : "", q->written ? " written" : "");
        n++;
    }
    kl_putf(p->b, ")%s%s", f->may_alias ? " may_alias" : "", f->fast ? " fast" : "");
    if (f->warps)
        kl_putf(p->b, " warps=%d", (int)f->warps);
    if (f->stages)
        kl_putf(p->b, " stages=%d", (int)f->stages);
    if (f->cluster)
        kl_putf(p->b, " cluster=%d", (int)f->cluster);
    kl_puts(p->b, " ");
}

void kl_ir_print(kl_buf *b, const kl_fn *f)
{
    struct printer p = {.b = b, .f = f, .num = kl_new_n(b->a, uint32_t, f->nins)};
    put_head(&p);
    put_block(&p, KL_BODY);
    kl_puts(b, "\n");
}
