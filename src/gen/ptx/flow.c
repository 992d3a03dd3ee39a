/* flow.c - for, while, if.  Conditions are the same for all threads, so branches are uniform
 * (but inside a reduction's block).  What is carried has registers of its own. */
#include "gen/ptx/ptx.h"

static const char *uni(const struct pgen *g)
{
    return g->in_block ? "" : ".uni";
}

static uint32_t count(const struct pval *v)
{
    return v->l ? kl_layout_nreg(v->l) : 1;
}

static void move(struct pgen *g, enum cls c, opnd to, opnd from)
{
    if (c == CL_P && !kl_px_isreg(from))
        from = kl_px_inreg(g, c, from);
    if (strcmp(to, from) != 0)
        kl_px(g, "mov.%s %s, %s", kl_px_b(c), to, from);
}

/* Registers for a carried value or a result of type t under layout l. */
static struct pval fresh(struct pgen *g, enum cls c, const kl_layout *l)
{
    return kl_px_new(g, l, c);
}

/* Moves the values from[] into to[]: all are read before any is written. */
static void assign(struct pgen *g, const kl_val *from, struct pval *to, const enum cls *c, uint32_t n)
{
    struct pval *v = kl_new_n(g->a, struct pval, n + 1);
    for (uint32_t i = 0; i < n; i++)
        v[i] = kl_px_in(g, from[i], to[i].l);
    kl_map at = {.a = g->a}; /* targets by name: (i, k) */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < count(&to[i]); k++)
            *kl_map_put(&at, to[i].r[k], strlen(to[i].r[k]), NULL) = i << 16 | k;
    for (uint32_t i = 0; i < n; i++) {
        /* a source that is a target elsewhere must be saved first */
        bool clash = false;
        for (uint32_t k = 0; k < count(&to[i]) && !clash; k++) {
            opnd x = kl_px_at(&v[i], k);
            const uint32_t *p = kl_map_get(&at, x, strlen(x));
            clash = p && *p != (i << 16 | k);
        }
        if (!clash)
            continue;
        struct pval s = fresh(g, c[i], to[i].l);
        for (uint32_t k = 0; k < count(&s); k++)
            move(g, c[i], s.r[k], kl_px_at(&v[i], k));
        v[i] = s;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < count(&to[i]); k++)
            move(g, c[i], to[i].r[k], kl_px_at(&v[i], k));
}

static const kl_val *yields(const kl_fn *f, kl_blk b)
{
    return &f->args[kl_in(f, kl_last(f, b))->args];
}

static kl_val behind(const kl_fn *f, kl_val v)
{
    return (kl_val){kl_in(f, v)->next};
}

static kl_val first_of(const kl_fn *f, kl_blk b)
{
    return (kl_val){f->blk[b.id].first};
}

static void set_params(struct pgen *g, kl_val p, const struct pval *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, p = behind(g->f, p))
        g->val[p.id] = v[i];
}

/* Carried values and results: the registers are the same. */
static struct pval *carried(struct pgen *g, kl_val v, uint32_t n, enum cls *c)
{
    struct pval *r = kl_new_n(g->a, struct pval, n + 1);
    kl_val q = behind(g->f, v);
    for (uint32_t i = 0; i < n; i++, q = behind(g->f, q)) {
        c[i] = kl_px_vcls(g, q);
        r[i] = fresh(g, c[i], g->lay[q.id]);
        g->val[q.id] = r[i];
    }
    return r;
}

/* The end of a block: what its values are moved to. */
static void end_block(struct pgen *g, kl_blk b, struct pval *to, const enum cls *c, uint32_t n)
{
    kl_val outer = g->at;
    g->at = kl_last(g->f, b);
    assign(g, yields(g->f, b), to, c, n);
    g->at = outer;
}

static void end_loop(struct pgen *g, kl_blk b, const struct pending *head)
{
    kl_val outer = g->at;
    g->at = kl_last(g->f, b);
    kl_px_end_loop(g, head);
    g->at = outer;
}

static void emit_for(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t n = kl_nresults(f, v);
    enum cls *c = kl_new_n(g->a, enum cls, n + 1);
    kl_blk body = in->attr.loop.blk;
    kl_val iv = first_of(f, body);
    enum cls ic = kl_px_vcls(g, iv);
    const char *t = ic == CL_B64 ? "s64" : "s32";
    struct pval *r = carried(g, v, n, c);
    assign(g, &f->args[in->args + 3], r, c, n);
    opnd i = kl_px_reg(g, ic), hi = kl_px_scalar(g, kl_arg(f, v, 1));
    opnd step = kl_px_scalar(g, kl_arg(f, v, 2));
    move(g, ic, i, kl_px_scalar(g, kl_arg(f, v, 0)));
    uint32_t top = kl_px_new_label(g), end = kl_px_new_label(g);
    opnd none = kl_px_set(g, CL_P, "setp.ge.%s $, %s, %s", t, i, hi);
    kl_px(g, "@%s bra%s $L%u", none, uni(g), end);
    struct pending before = g->p, head = kl_px_enter_loop(g);
    kl_px_label(g, top);
    struct pval ivv = {.r = kl_new_n(g->a, opnd, 1)};
    ivv.r[0] = i;
    g->val[iv.id] = ivv;
    set_params(g, behind(f, iv), r, n);
    kl_px_block(g, body);
    end_block(g, body, r, c, n);
    end_loop(g, body, &head);
    kl_val outer = g->at;
    g->at = kl_last(f, body); /* for the trace: each time round */
    /* the next value may wrap: then the loop ends (it was below hi) */
    opnd left = kl_px_set(g, ic, "sub.%s $, %s, %s", t, hi, i);
    kl_px(g, "add.%s %s, %s, %s", t, i, i, step);
    opnd more = kl_px_set(g, CL_P, "setp.gt.%s $, %s, %s", ic == CL_B64 ? "u64" : "u32", left, step);
    kl_px(g, "@%s bra%s $L%u", more, uni(g), top);
    g->at = outer;
    kl_px_label(g, end);
    g->p.dirty |= before.dirty;
    g->p.far |= before.far;
    g->p.read |= before.read;
    g->p.write |= before.write;
}

static void emit_while(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t n = kl_nresults(f, v);
    enum cls *c = kl_new_n(g->a, enum cls, n + 1);
    struct pval *r = carried(g, v, n, c);
    assign(g, &f->args[in->args], r, c, n);
    uint32_t top = kl_px_new_label(g), end = kl_px_new_label(g);
    struct pending head = kl_px_enter_loop(g);
    kl_px_label(g, top);
    set_params(g, first_of(f, in->attr.blk[0]), r, n);
    kl_px_block(g, in->attr.blk[0]);
    /* results are the carried values as they were when the condition failed */
    opnd go = kl_px_inreg(g, CL_P, kl_px_scalar(g, yields(f, in->attr.blk[0])[0]));
    kl_px(g, "@!%s bra%s $L%u", go, uni(g), end);
    struct pending mid = g->p;
    set_params(g, first_of(f, in->attr.blk[1]), r, n);
    kl_px_block(g, in->attr.blk[1]);
    end_block(g, in->attr.blk[1], r, c, n);
    end_loop(g, in->attr.blk[1], &head);
    kl_px(g, "bra%s $L%u", uni(g), top);
    kl_px_label(g, end);
    g->p = mid;
    g->p.dirty |= 0x80;
    g->since.n = 0;
}

static void emit_if(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    uint32_t n = kl_nresults(f, v);
    enum cls *c = kl_new_n(g->a, enum cls, n + 1);
    struct pval *r = carried(g, v, n, c);
    opnd cond = kl_px_inreg(g, CL_P, kl_px_scalar(g, kl_arg(f, v, 0)));
    uint32_t other = kl_px_new_label(g), end = kl_px_new_label(g);
    struct pending before = g->p, left[2];
    bool has_else = n || f->blk[in->attr.blk[1].id].first != f->blk[in->attr.blk[1].id].last;
    kl_px(g, "@!%s bra%s $L%u", cond, uni(g), has_else ? other : end);
    for (int k = 0; k < 2; k++) {
        if (k == 0 || has_else) {
            kl_px_block(g, in->attr.blk[k]);
            end_block(g, in->attr.blk[k], r, c, n);
        }
        left[k] = g->p;
        g->p = before;
        g->p.dirty |= 0x80; /* the list of accesses no longer is complete */
        if (k == 0 && has_else) {
            kl_px(g, "bra%s $L%u", uni(g), end);
            kl_px_label(g, other);
        }
    }
    kl_px_label(g, end);
    g->p = (struct pending){.dirty = left[0].dirty | left[1].dirty,
                            .far = left[0].far | left[1].far,
                            .read = left[0].read | left[1].read,
                            .write = left[0].write | left[1].write};
    if (g->p.read | g->p.write)
        g->p.dirty |= 0x80;
    else
        g->p.dirty &= 0x7f;
}

void kl_px_flow(struct pgen *g, kl_val v)
{
    if (g->clog2 && !g->in_block) /* once, and not in a branch */
        kl_px_cluster_open(g);
    g->nested++;
    switch (kl_in(g->f, v)->op) {
    case KL_OP_for: emit_for(g, v); break;
    case KL_OP_while: emit_while(g, v); break;
    default: emit_if(g, v); break;
    }
    g->nested--;
}
