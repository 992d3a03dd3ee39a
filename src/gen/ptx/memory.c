/* memory.c - loads and stores.
 *
 * If the whole section of an access is inside, its moves are not masked.  Loads of a tile are all
 * issued before anything is unpacked. */
#include "gen/ptx/access.h"

/* ---- moves of a vector ---- */

struct chunk {
    uint32_t n; /* registers of the move */
    opnd r[4];
};

struct shape_of_move {
    enum cls c;       /* of the registers that move */
    const char *type; /* in the instruction */
    uint32_t n;
};

static struct shape_of_move move_shape(enum kl_elem e, uint32_t vec)
{
    uint32_t es = kl_elems[e].bytes, bytes = es << vec;
    enum cls c = kl_px_cls(e);
    if (es == 1)
        return vec ? (struct shape_of_move){CL_B32, "b32", bytes / 4}
                   : (struct shape_of_move){CL_B32, kl_elems[e].kind == KL_KIND_SINT ? "s8" : "u8", 1};
    if (es == 2)
        return vec ? (struct shape_of_move){CL_B32, "b32", bytes / 4}
                   : (struct shape_of_move){CL_B16, "b16", 1};
    return (struct shape_of_move){c, kl_px_b(c), 1u << vec};
}

static const char *vector_suffix(uint32_t n)
{
    return n == 1 ? "" : n == 2 ? ".v2" : ".v4";
}

/* Elements (registers of class of e) packed as a move wants them. */
static struct chunk pack(struct pgen *g, enum kl_elem e, uint32_t vec, const opnd *x)
{
    struct shape_of_move m = move_shape(e, vec);
    struct chunk c = {.n = m.n};
    uint32_t es = kl_elems[e].bytes;
    for (uint32_t i = 0; i < m.n; i++) {
        if (es == 2 && vec) {
            opnd hi = kl_px_inreg(g, CL_B16, x[2 * i + 1]);
            opnd lo = kl_px_inreg(g, CL_B16, x[2 * i]);
            c.r[i] = kl_px_set(g, CL_B32, "mov.b32 $, {%s, %s}", lo, hi);
        } else if (es == 1) {
            opnd b[4];
            uint32_t n = vec ? 4 : 1;
            for (uint32_t k = 0; k < n; k++)
                b[k] = e == KL_bool ? kl_px_set(g, CL_B32, "selp.b32 $, 1, 0, %s", kl_px_inreg(g, CL_P, x[n * i + k]))
                                    : kl_px_inreg(g, CL_B32, x[n * i + k]);
            c.r[i] = b[0];
            if (vec) {
                opnd lo = kl_px_set(g, CL_B32, "prmt.b32 $, %s, %s, 64", b[0], b[1]);
                opnd hi = kl_px_set(g, CL_B32, "prmt.b32 $, %s, %s, 64", b[2], b[3]);
                c.r[i] = kl_px_set(g, CL_B32, "prmt.b32 $, %s, %s, 21520", lo, hi);
            }
        } else {
            c.r[i] = kl_px_inreg(g, m.c, x[i]);
        }
    }
    return c;
}

static void unpack(struct pgen *g, enum kl_elem e, uint32_t vec, const struct chunk *c, opnd *x)
{
    uint32_t es = kl_elems[e].bytes;
    for (uint32_t i = 0; i < c->n; i++) {
        if (es == 2 && vec) {
            x[2 * i] = kl_px_reg(g, CL_B16), x[2 * i + 1] = kl_px_reg(g, CL_B16);
            kl_px(g, "mov.b32 {%s, %s}, %s", x[2 * i], x[2 * i + 1], c->r[i]);
        } else if (es == 1) {
            for (uint32_t k = 0; k < (vec ? 4u : 1u); k++) {
                opnd b = vec ? kl_px_set(g, CL_B32, "bfe.%s $, %s, %u, 8",
                                         kl_elems[e].kind == KL_KIND_SINT ? "s32" : "u32", c->r[i], 8 * k)
                             : c->r[i];
                x[(vec ? 4 : 1) * i + k] = e == KL_bool ? kl_px_set(g, CL_P, "setp.ne.u32 $, %s, 0", b) : b;
            }
        } else {
            x[i] = c->r[i];
        }
    }
}

/* What the second-level cache is told: a word of the instruction and an operand of it.  It takes
 * PTX 7.4; sm_80 and sm_86 are written for drivers that know less, and go without. */
struct hint {
    const char *word, *operand;
};

static struct hint cache_hint(struct pgen *g, const struct kl_ins *in)
{
    uint8_t flags = in->attr.access.flags;
    if (!(flags & KL_ACC_EVICT) || g->o->arch < 89)
        return (struct hint){"", ""};
    opnd p = kl_px_once(g, CL_B64, "createpolicy.fractional.L2::evict_%s.b64 $, 0f3F800000",
                        flags & KL_ACC_EVICT_FIRST ? "first" : "last");
    return (struct hint){".L2::cache_hint", kl_px_fmt(g, ", %s", p)};
}

static const char *load_op(struct pgen *g, const struct access *a)
{
    return g->f->may_alias || g->f->param[a->w->root].written ? "ld.global" : "ld.global.nc";
}

/* A scalar that others may be writing: one thread reads it for all. */
opnd kl_px_read_once(struct pgen *g, enum kl_elem e, opnd x)
{
    uint32_t which;
    enum cls c = kl_px_cls(e);
    opnd one = kl_px_first(g, NULL);
    if (g->clog2) {
        uint32_t bytes = kl_px_push_bytes(c);
        opnd to = kl_px_push_region(g, bytes, &which), r;
        kl_px_push_expect(g, which, bytes);
        for (uint32_t i = 0; i < g->ctas; i++)
            kl_px_push(g, c, which, to, kl_px_int(g, i), 0, &x, 1, one);
        kl_px_push_wait(g, which);
        r = kl_px_ld_shared(g, c, to, 0);
        kl_px_region_read(g, which);
        return r;
    }
    opnd at = kl_px_region(g, 16, &which);
    kl_px_st_shared(g, c, at, 0, x, one);
    kl_px_barrier(g);
    kl_px_region_read(g, which);
    return kl_px_ld_shared(g, c, at, 0);
}

/* ---- the moves of one access ---- */

struct moves {
    struct access a;
    struct shape_of_move m;
    struct chunk *c;
    uint32_t n; /* chunks */
    bool store, has_mask;
    struct pval mask;
    struct hint hint;
    const char *op;      /* up to the type: ld.global.nc.v4 */
    opnd one;            /* predicate of the threads that move at all; NULL: all */
    bool masked, split;  /* some move has a predicate; if the whole section is inside, others run */
    uint32_t slow, done; /* split: labels */
};

/* Chunk i where p holds; NULL: always. */
static void move(struct pgen *g, struct moves *x, uint32_t i, opnd p)
{
    int64_t off;
    opnd at = kl_px_place(g, &x->a, i << x->a.vec, &off);
    const char *r = kl_px_list(g, x->c[i].r, x->c[i].n), *type = x->m.type;
    const char *when = p ? kl_px_fmt(g, "@%s ", p) : "";
    if (x->store)
        kl_px(g, "%s%s.%s [%s+%lld], %s%s", when, x->op, type[0] == 's' ? "u8" : type, at, (long long)off,
              r, x->hint.operand);
    else
        kl_px(g, "%s%s.%s %s, [%s+%lld]%s", when, x->op, type, r, at, (long long)off, x->hint.operand);
}

/* The moves of a section that is inside as a whole.  A few addresses serve both ways, the masked one,
 * too.  All of them are alive at the branch, so that many are found where they are used, in either. */
static void move_whole(struct pgen *g, struct moves *x)
{
    enum { FEW = 4 };
    uint32_t shared = 0;
    if (x->split) {
        x->slow = kl_px_new_label(g), x->done = kl_px_new_label(g);
        for (uint32_t i = 0; i < x->n && (x->a.index || x->n <= FEW); i++) {
            int64_t off;
            kl_px_place(g, &x->a, i << x->a.vec, &off);
        }
        shared = x->a.rows.n;
        kl_px(g, "@!%s bra $L%u", x->a.whole, x->slow);
    }
    if (x->split || !x->masked)
        for (uint32_t i = 0; i < x->n; i++)
            move(g, x, i, x->one);
    if (x->split) {
        kl_px(g, "bra.uni $L%u", x->done);
        kl_px_label(g, x->slow);
        x->a.rows.n = shared;
    }
}

static void move_masked(struct pgen *g, struct moves *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        opnd p = kl_px_inside_reg(g, &x->a, i << x->a.vec);
        if (x->has_mask)
            p = kl_px_and(g, p, kl_px_inreg(g, CL_P, kl_px_at(&x->mask, i)));
        move(g, x, i, kl_px_and(g, p, x->one));
    }
}

/* ---- load ---- */

/* The elements that are not loaded. */
static void fill_in(struct pgen *g, struct moves *x, const struct pval *fill)
{
    uint32_t each = 1u << x->a.vec;
    struct chunk f = {0};
    opnd *e = kl_new_n(g->a, opnd, each);
    for (uint32_t i = 0; i < x->n; i++) {
        if (i == 0 || fill->l) {
            for (uint32_t k = 0; k < each; k++)
                e[k] = kl_px_at(fill, (i << x->a.vec) + k);
            if (x->a.e == KL_bool && !kl_px_isreg(e[0]))
                f = (struct chunk){x->m.n, {e[0][0] == '0' ? "0" : x->a.vec ? "16843009" : "1"}};
            else
                f = pack(g, x->a.e, x->a.vec, e);
            for (uint32_t k = 1; k < f.n && x->a.e == KL_bool && !kl_px_isreg(e[0]); k++)
                f.r[k] = f.r[0];
        }
        for (uint32_t k = 0; k < x->m.n; k++)
            kl_px(g, "mov.%s %s, %s", kl_px_b(x->m.c), x->c[i].r[k], f.r[k]);
    }
}

void kl_px_load(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const kl_layout *l = g->lay[v.id];
    struct moves x = {.a = kl_px_access(g, v, l, true), .has_mask = in->attr.access.flags & KL_ACC_MASK};
    struct access *a = &x.a;
    uint32_t at = 1 + in->attr.access.n, nreg = l ? kl_layout_nreg(l) : 1;
    struct pval fill = {.r = kl_new_n(g->a, opnd, 1)};
    fill.r[0] = kl_px_imm(g, a->e, 0);
    if (in->attr.access.flags & KL_ACC_FILL)
        fill = kl_px_in(g, kl_arg(f, v, at++), l);
    if (x.has_mask) {
        x.mask = kl_px_in(g, kl_arg(f, v, at), l);
        a->vec = 0;
    }
    kl_px_order(g, v); /* what changes layouts is done, and passes no barrier behind this */
    x.n = nreg >> a->vec;
    x.m = move_shape(a->e, a->vec);
    x.c = kl_new_n(g->a, struct chunk, x.n);
    for (uint32_t i = 0; i < x.n; i++) {
        x.c[i].n = x.m.n;
        for (uint32_t k = 0; k < x.m.n; k++)
            x.c[i].r[k] = kl_px_reg(g, x.m.c);
    }
    bool once = !l && (f->may_alias || f->param[a->w->root].written);
    x.one = once ? kl_px_first(g, NULL) : NULL;
    x.masked = x.has_mask || a->whole || a->never_whole || once;
    /* Behind a reduction its operand mostly is alive in registers still: then the assembler must
     * be free to load a part and use it, which it is within a piece of straight code only. */
    bool late = g->folded && !g->nested && (g->clog2 || g->threads >= 512);
    x.split = !x.has_mask && a->whole && !a->never_whole && x.n > 2 && !late;
    x.hint = cache_hint(g, in);
    x.op = kl_px_fmt(g, "%s%s%s", load_op(g, a), x.hint.word, vector_suffix(x.m.n));
    move_whole(g, &x);
    if (x.masked) {
        fill_in(g, &x, &fill);
        move_masked(g, &x);
    }
    kl_px_trace_access(g, v, l, a->vec, once);
    if (x.split)
        kl_px_label(g, x.done);
    opnd *r = kl_new_n(g->a, opnd, nreg);
    for (uint32_t i = 0; i < x.n; i++)
        unpack(g, a->e, a->vec, &x.c[i], r + ((size_t)i << a->vec));
    if (once)
        r[0] = kl_px_read_once(g, a->e, r[0]);
    g->val[v.id] = (struct pval){.l = l, .r = r};
}

/* ---- store ---- */

void kl_px_store(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    const kl_layout *l = g->lay[v.id];
    struct pval val = kl_px_in(g, kl_arg(f, v, 1 + in->attr.access.n), l);
    struct moves x = {.store = true, .has_mask = in->attr.access.flags & KL_ACC_MASK};
    struct access *a = &x.a;
    if (x.has_mask)
        x.mask = kl_px_in(g, kl_arg(f, v, 2 + in->attr.access.n), l);
    x.a = kl_px_access(g, v, l, true);
    kl_px_order(g, v);
    if (x.has_mask)
        a->vec = 0;
    x.one = kl_px_first(g, l);
    x.n = (l ? kl_layout_nreg(l) : 1) >> a->vec;
    x.m = move_shape(a->e, a->vec);
    x.c = kl_new_n(g->a, struct chunk, x.n);
    uint32_t each = 1u << a->vec;
    opnd *e = kl_new_n(g->a, opnd, each);
    for (uint32_t i = 0; i < x.n; i++) {
        for (uint32_t k = 0; k < each; k++)
            e[k] = kl_px_at(&val, (i << a->vec) + k);
        x.c[i] = pack(g, a->e, a->vec, e);
    }
    x.masked = x.has_mask || a->whole || a->never_whole;
    x.split = !x.has_mask && a->whole && !a->never_whole && x.n > 2;
    x.hint = cache_hint(g, in);
    x.op = kl_px_fmt(g, "st.global%s%s", x.hint.word, vector_suffix(x.m.n));
    move_whole(g, &x);
    if (x.masked)
        move_masked(g, &x);
    kl_px_trace_access(g, v, l, a->vec, true);
    if (x.split)
        kl_px_label(g, x.done);
}
