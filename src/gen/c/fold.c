/* fold.c - reductions and scans by a block, of one tile or several at once.
 *
 * A reduction reads the level before, first the operand, and writes a work buffer; within a
 * level no pair reads what another one has written.  A scan is computed in place, in the
 * buffer of its result.  Its level of distance h combines x[b - 1] with x[b .. b + h) for
 * every b that is an odd multiple of h; stretches of CHUNK elements go through all levels
 * that stay inside before the others, which keeps them in the L1 cache.  A block that is one
 * exactly associative operation runs from left to right instead: the bits are the same. */
#include "gen/c/plan.h"

enum { CHUNK = 1024 };

/* The operands as [outer][n][inner], m of them. */
struct fold {
    const struct kl_ins *in;
    uint64_t outer, n, inner;
    uint32_t m;
    kl_val res[KL_MAX_FOLD];
};

static struct fold shape_of(const kl_fn *f, kl_val v)
{
    struct fold r = {.in = kl_in(f, v), .outer = 1, .inner = 1};
    uint32_t axis = r.in->attr.redfn.axis, id = r.in->nargs > 1 ? r.in->next : v.id;
    const struct kl_type *t = kl_type_of(f, kl_arg(f, v, 0));
    for (uint32_t d = 0; d < axis; d++)
        r.outer *= t->dim[d];
    for (uint32_t d = axis + 1; d < t->rank; d++)
        r.inner *= t->dim[d];
    r.n = t->dim[axis];
    r.m = r.in->nargs;
    for (uint32_t k = 0; k < r.m; k++, id = f->ins[id].next)
        r.res[k] = (kl_val){id};
    return r;
}

static uint64_t half_of(uint64_t n)
{
    uint64_t h = 1;
    while (h * 2 < n)
        h *= 2;
    return h;
}

/* ---- planning ---- */

void kl_c_plan_fold(struct plan *p, kl_val v)
{
    static const uint32_t none[KL_MAX_FOLD] = {0};
    const kl_fn *f = p->f;
    struct fold r = shape_of(f, v);
    bool reduces = r.in->op == KL_OP_reduce_fn && r.n > 1;
    kl_c_close_nest(p); /* the block may use what it computes */
    struct step *s = kl_c_step_new(p, ST_FOLD, v);
    for (uint32_t k = 0; k < r.m; k++) {
        kl_val a = kl_arg(f, v, k);
        enum kl_elem e = (enum kl_elem)kl_type_of(f, a)->elem;
        if (reduces) {
            uint64_t room = (r.in->attr.redfn.commutative ? half_of(r.n) : (r.n + 1) / 2) * r.inner;
            if (!s->work)
                s->work = kl_new_n(p->a, uint32_t, r.m);
            s->work[k] = kl_c_buf_new(p->g, e, room);
            kl_c_touch(p, s, kl_c_buffer(p, kl_c_strip(p->g, a)), 0, false, false, false);
            kl_c_touch(p, s, s->work[k], 0, true, true, false);
            if (!gv(p, r.res[k])->one)
                kl_c_touch(p, s, kl_c_buffer(p, r.res[k]), 0, true, true, false);
        } else if (!gv(p, r.res[k])->one) {
            uint32_t b = kl_c_buffer(p, r.res[k]);
            kl_c_to_buffer(p, a, b, gv(p, v)->pos);
            kl_c_touch(p, s, b, 0, false, false, false);
            kl_c_touch(p, s, b, 0, true, false, false);
        }
    }
    kl_c_close_nest(p);
    kl_push(p->a, p->out, s);
    kl_c_plan_block(p, r.in->attr.redfn.blk, &s->sub[0], none);
}

/* ---- both ---- */

static const char *elem_type(const struct gen *g, kl_val v)
{
    return kl_c_type((enum kl_elem)kl_type_of(g->f, v)->elem);
}

static const char *elem_local(const struct gen *g, kl_val v)
{
    return kl_c_local((enum kl_elem)kl_type_of(g->f, v)->elem);
}

static kl_val param_of(const struct gen *g, const struct fold *r, uint32_t side, uint32_t k)
{
    kl_val v = {g->f->blk[r->in->attr.redfn.blk.id].first};
    for (uint32_t i = side * r->m + k; i > 0; i--)
        v.id = kl_in(g->f, v)->next;
    return v;
}

/* The operands of one side from x[k][at]. */
static void read_side(struct gen *g, const struct fold *r, uint32_t side, const char *const *x, const char *at)
{
    for (uint32_t k = 0; k < r->m; k++) {
        kl_val p = param_of(g, r, side, k);
        g->val[p.id].text = kl_c_temp(g, "t");
        kl_c_line(g, "const %s %s = %s[%s];", elem_local(g, p), g->val[p.id].text, x[k], at);
    }
}

/* What the block gives, to x[k][at]; a value that is a parameter may be overwritten by none of
 * them, as all are variables. */
static void write_out(struct gen *g, const struct fold *r, const struct step *s, const char *const *x,
                      const char *at)
{
    kl_val y = kl_last(g->f, r->in->attr.redfn.blk);
    kl_c_steps(g, &s->sub[0]);
    for (uint32_t k = 0; k < r->m; k++)
        kl_c_line(g, "%s[%s] = %s;", x[k], at, g->val[kl_arg(g->f, y, k).id].text);
}

/* ---- reductions ---- */

/* One step: pairs of what is left, folded into `to`.  The pairs of the tree lie densely; neighbours
 * do if nothing is inside of the axis. */
static void fold_pairs(struct gen *g, const struct step *s, const struct fold *r, const char **x,
                       const char **to, const char *inner)
{
    bool tree_order = r->in->attr.redfn.commutative, flat = tree_order || r->inner == 1;
    const char *i0, *at;
    if (flat) {
        kl_c_line(g, "const i64 count0 = pairs * %s;", inner);
        kl_c_line(g, "KL_SIMD");
        kl_c_open(g, "for (i64 j = 0; j < count0; j++)");
        i0 = tree_order ? "j" : "2 * j";
        at = "j";
    } else {
        kl_c_open(g, "for (i64 j = 0; j < pairs; j++)");
        kl_c_line(g, "KL_SIMD");
        kl_c_open(g, "for (i64 k = 0; k < %s; k++)", inner);
        i0 = kl_printf(g->a, "2 * j * %s + k", inner);
        at = kl_printf(g->a, "j * %s + k", inner);
    }
    read_side(g, r, 0, x, i0);
    read_side(g, r, 1, x, kl_printf(g->a, "%s + %s", i0, tree_order ? "to" : inner));
    write_out(g, r, s, to, at);
    kl_c_close(g);
    if (!flat)
        kl_c_close(g);
}

/* What has no partner passes through. */
static void pass_rest(struct gen *g, const struct fold *r, const char **x, const char **to,
                      const char *inner)
{
    bool tree_order = r->in->attr.redfn.commutative;
    if (tree_order)
        kl_c_open(g, "if (%s != %s)", x[0], to[0]);
    else
        kl_c_open(g, "if (left %% 2)");
    for (uint32_t k = 0; k < r->m; k++) {
        if (tree_order) {
            kl_c_line(g, "for (i64 k = pairs * %s; k < to; k++)", inner);
            kl_c_line(g, "    %s[k] = %s[k];", to[k], x[k]);
        } else {
            kl_c_line(g, "for (i64 k = 0; k < %s; k++)", inner);
            kl_c_line(g, "    %s[pairs * %s + k] = %s[2 * pairs * %s + k];", to[k], inner, x[k], inner);
        }
    }
    kl_c_close(g);
}

static void reduce(struct gen *g, const struct step *s, const struct fold *r)
{
    const kl_fn *f = g->f;
    const char *n = kl_c_size(g, r->n), *inner = kl_c_size(g, r->inner);
    const char *x[KL_MAX_FOLD] = {NULL}, *to[KL_MAX_FOLD] = {NULL};
    for (uint32_t k = 0; k < r->m; k++)
        if (g->val[r->res[k].id].one) {
            g->val[r->res[k].id].text = kl_c_temp(g, "s");
            kl_c_line(g, "%s %s;", elem_local(g, r->res[k]), g->val[r->res[k].id].text);
        }
    kl_c_comment(g, r->in->loc);
    if (r->outer > 1)
        kl_c_open(g, "for (i32 i = 0; i < %s; i++)", kl_c_size(g, r->outer));
    kl_c_open(g, "%s", "");
    kl_buf step = {.a = g->a};
    for (uint32_t k = 0; k < r->m; k++) {
        kl_val a = kl_arg(f, s->v, k);
        const char *from = kl_c_bufname(g, g->val[kl_c_strip(g, a).id].buf);
        x[k] = kl_c_temp(g, "x");
        to[k] = kl_c_bufname(g, s->work[k]);
        if (r->outer > 1)
            from = kl_printf(g->a, "%s + (i64)i * %s", from, kl_c_size(g, r->n * r->inner));
        kl_c_line(g, "const %s *%s = %s;", elem_type(g, a), x[k], from);
        kl_putf(&step, ", %s = %s", x[k], to[k]);
    }
    kl_c_open(g, "for (i64 left = %s, pairs; left > 1; left -= pairs%s)", n, kl_buf_str(&step));
    if (r->in->attr.redfn.commutative) {
        kl_c_line(g, "i64 half0 = 1;");
        kl_c_line(g, "while (half0 * 2 < left)");
        kl_c_line(g, "    half0 *= 2;");
        kl_c_line(g, "pairs = left - half0;");
        kl_c_line(g, "const i64 to = half0 * %s;", inner);
    } else {
        kl_c_line(g, "pairs = left / 2;");
    }
    fold_pairs(g, s, r, x, to, inner);
    pass_rest(g, r, x, to, inner);
    kl_c_close(g);
    for (uint32_t k = 0; k < r->m; k++) {
        const struct gval *o = &g->val[r->res[k].id];
        if (o->one) {
            kl_c_line(g, "%s = %s[0];", o->text, x[k]);
            continue;
        }
        kl_c_line(g, "for (i64 k = 0; k < %s; k++)", inner);
        if (r->outer > 1)
            kl_c_line(g, "    %s[(i64)i * %s + k] = %s[k];", kl_c_bufname(g, o->buf), inner, x[k]);
        else
            kl_c_line(g, "    %s[k] = %s[k];", kl_c_bufname(g, o->buf), x[k]);
    }
    kl_c_close(g);
    if (r->outer > 1)
        kl_c_close(g);
}

/* ---- scans ---- */

/* Is the block one operation that is exactly associative, on its parameters? */
static bool any_order(const struct gen *g, const struct fold *r)
{
    const kl_fn *f = g->f;
    kl_val a = param_of(g, r, 0, 0), b = {kl_in(f, a)->next}, op = {kl_in(f, b)->next};
    if (r->m > 1)
        return false;
    const struct kl_ins *in = kl_in(f, op);
    uint32_t flags = kl_ops[in->op].flags;
    bool exact = !kl_is_float((enum kl_elem)kl_type_of(f, op)->elem) || flags & KL_F_IDEM;
    return flags & KL_F_EW && flags & KL_F_ASSOC && exact && in->nargs == 2 &&
           kl_arg(f, op, 0).id + kl_arg(f, op, 1).id == a.id + b.id && kl_arg(f, op, 0).id != kl_arg(f, op, 1).id &&
           (kl_arg(f, op, 0).id == a.id || kl_arg(f, op, 0).id == b.id) &&
           kl_in(f, (kl_val){in->next})->op == KL_OP_yield && kl_arg(f, (kl_val){in->next}, 0).id == op.id;
}

static void in_order(struct gen *g, const struct step *s, const struct fold *r, const char *const *x)
{
    const char *inner = kl_c_size(g, r->inner);
    bool flat = r->inner == 1;
    kl_c_open(g, "for (i64 j = 1; j < %s; j++)", kl_c_size(g, r->n));
    if (!flat) {
        kl_c_line(g, "KL_SIMD");
        kl_c_open(g, "for (i64 k = 0; k < %s; k++)", inner);
    }
    read_side(g, r, 0, x, flat ? "j - 1" : kl_printf(g->a, "(j - 1) * %s + k", inner));
    const char *at = flat ? "j" : kl_printf(g->a, "j * %s + k", inner);
    read_side(g, r, 1, x, at);
    write_out(g, r, s, x, at);
    kl_c_close(g);
    if (!flat)
        kl_c_close(g);
}

/* Is the block a few operations, so that it may be written out twelve times? */
static bool is_small(const struct gen *g, const struct fold *r)
{
    uint32_t n = 0;
    kl_each_ins (g->f, r->in->attr.redfn.blk, v) {
        const struct kl_ins *in = kl_in(g->f, v);
        if (kl_ops[in->op].flags & KL_F_REGION)
            return false;
        n += kl_ops[in->op].flags & KL_F_EW ? 1 : 0;
    }
    return r->m == 1 && n <= 4;
}

/* The levels of distance 1, 2 and 4 on each whole group of 8, in registers; what is left over
 * at the end goes through loops. */
static void small_levels(struct gen *g, const struct step *s, const struct fold *r, const char *x)
{
    kl_val a = param_of(g, r, 0, 0), b = param_of(g, r, 1, 0), y = kl_last(g->f, r->in->attr.redfn.blk);
    const char *n = kl_c_size(g, r->n), *v[8], *type = elem_local(g, a);
    kl_c_line(g, "i64 group0 = 0;");
    kl_c_open(g, "for (; group0 + 8 <= %s; group0 += 8)", n);
    for (uint32_t i = 0; i < 8; i++) {
        v[i] = kl_c_temp(g, "t");
        kl_c_line(g, "const %s %s = %s[group0 + %u];", type, v[i], x, i);
    }
    for (uint32_t h = 1; h < 8; h *= 2)
        for (uint32_t i = 0; i < 8; i++) {
            if (!(i & h))
                continue;
            g->val[a.id].text = v[(i & ~(2 * h - 1)) + h - 1];
            g->val[b.id].text = v[i];
            kl_c_steps(g, &s->sub[0]);
            v[i] = g->val[kl_arg(g->f, y, 0).id].text;
        }
    for (uint32_t i = 1; i < 8; i++)
        kl_c_line(g, "%s[group0 + %u] = %s;", x, i, v[i]);
    kl_c_close(g);
    kl_c_open(g, "for (i64 h0 = 1; h0 < 8; h0 *= 2)");
    kl_c_open(g, "for (i64 b0 = group0 + h0; b0 < %s; b0 += 2 * h0)", n);
    kl_c_open(g, "for (i64 j = b0; j < b0 + h0 && j < %s; j++)", n);
    read_side(g, r, 0, &x, "b0 - 1");
    read_side(g, r, 1, &x, "j");
    write_out(g, r, s, &x, "j");
    kl_c_close(g);
    kl_c_close(g);
    kl_c_close(g);
}

static void levels(struct gen *g, const struct step *s, const struct fold *r, const char *const *x)
{
    const char *n = kl_c_size(g, r->n), *inner = kl_c_size(g, r->inner), *at;
    uint64_t chunk = CHUNK;
    while (chunk > 2 && r->inner > 1 && chunk * r->inner > 4 * CHUNK)
        chunk /= 2;
    bool parts = r->n > chunk, small = r->inner == 1 && r->n >= 16 && is_small(g, r);
    unsigned first = small ? 8 : 1;
    if (small)
        small_levels(g, s, r, x[0]);
    if (parts) { /* the last part is what goes across the others */
        unsigned c = (unsigned)chunk;
        kl_c_line(g, "const i64 parts0 = (%s + %u) / %u;", n, c - 1, c);
        kl_c_open(g, "for (i64 part = 0; part <= parts0; part++)");
        kl_c_line(g, "const i64 from = part < parts0 ? part * %u : 0;", c);
        kl_c_line(g, "const i64 end = part < parts0 && from + %u < %s ? from + %u : %s;", c, n, c, n);
        kl_c_line(g, "const i64 least0 = part < parts0 ? %u : %u, most0 = part < parts0 ? %u : %s;", first, c, c, n);
        kl_c_open(g, "for (i64 h0 = least0; h0 < most0; h0 *= 2)");
        kl_c_open(g, "for (i64 b0 = from + h0; b0 < end; b0 += 2 * h0)");
    } else {
        kl_c_line(g, "const i64 end = %s;", n);
        kl_c_open(g, "for (i64 h0 = %u; h0 < end; h0 *= 2)", first);
        kl_c_open(g, "for (i64 b0 = h0; b0 < end; b0 += 2 * h0)");
    }
    kl_c_line(g, "const i64 stop0 = b0 + h0 < end ? b0 + h0 : end;");
    if (r->inner == 1) {
        read_side(g, r, 0, x, "b0 - 1");
        kl_c_line(g, "KL_SIMD");
        kl_c_open(g, "for (i64 j = b0; j < stop0; j++)");
        at = "j";
    } else {
        kl_c_open(g, "for (i64 j = b0; j < stop0; j++)");
        kl_c_line(g, "KL_SIMD");
        kl_c_open(g, "for (i64 k = 0; k < %s; k++)", inner);
        read_side(g, r, 0, x, kl_printf(g->a, "(b0 - 1) * %s + k", inner));
        at = kl_printf(g->a, "j * %s + k", inner);
    }
    read_side(g, r, 1, x, at);
    write_out(g, r, s, x, at);
    for (int i = parts + (r->inner > 1); i >= -2; i--)
        kl_c_close(g);
}

static void scan(struct gen *g, const struct step *s, const struct fold *r)
{
    const char *x[KL_MAX_FOLD] = {NULL};
    kl_c_comment(g, r->in->loc);
    if (r->outer > 1)
        kl_c_open(g, "for (i32 i = 0; i < %s; i++)", kl_c_size(g, r->outer));
    else
        kl_c_open(g, "%s", "");
    for (uint32_t k = 0; k < r->m; k++) {
        const char *buf = kl_c_bufname(g, g->val[r->res[k].id].buf);
        x[k] = kl_c_temp(g, "x");
        if (r->outer > 1)
            buf = kl_printf(g->a, "%s + (i64)i * %s", buf, kl_c_size(g, r->n * r->inner));
        kl_c_line(g, "%s *const %s = %s;", elem_type(g, r->res[k]), x[k], buf);
    }
    if (any_order(g, r))
        in_order(g, s, r, x);
    else
        levels(g, s, r, x);
    kl_c_close(g);
}

void kl_c_fold(struct gen *g, const struct step *s)
{
    struct fold r = shape_of(g->f, s->v);
    if (r.n > 1) {
        if (r.in->op == KL_OP_scan)
            scan(g, s, &r);
        else
            reduce(g, s, &r);
        return;
    }
    for (uint32_t k = 0; k < r.m; k++) /* nothing to combine; tiles are copied by then */
        if (g->val[r.res[k].id].one)
            g->val[r.res[k].id].text = g->val[kl_arg(g->f, s->v, k).id].text;
}
