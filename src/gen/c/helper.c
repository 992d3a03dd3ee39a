/* helper.c - steps that run on whole tiles in memory: reductions in the fixed order, places
 * of extremes, matrix products. */
#include "gen/c/gen.h"

struct fold { /* the operand as [outer][n][inner] */
    const char *x, *tmp, *type;
    uint64_t outer, n, inner;
    enum kl_elem elem;
};

static struct fold operand(struct gen *g, const struct step *s, uint32_t axis)
{
    kl_val a = kl_arg(g->f, s->v, 0);
    const struct kl_type *t = kl_type_of(g->f, a);
    struct fold r = {.outer = 1, .n = t->dim[axis], .inner = 1, .elem = (enum kl_elem)t->elem};
    for (uint32_t d = 0; d < axis; d++)
        r.outer *= t->dim[d];
    for (uint32_t d = axis + 1; d < t->rank; d++)
        r.inner *= t->dim[d];
    r.x = kl_c_bufname(g, g->val[kl_c_strip(g, a).id].buf);
    r.tmp = s->tmp[0] ? kl_c_bufname(g, s->tmp[0]) : NULL;
    r.type = kl_c_type(r.elem);
    return r;
}

/* Elements of a row as text; the product of two sizes may be large. */
static const char *row_size(struct gen *g, const struct fold *r)
{
    return kl_c_size(g, r->n * r->inner);
}

/* Row i of the operand, if there are several. */
static const char *row(struct gen *g, const struct fold *r)
{
    return r->outer == 1 ? r->x : kl_printf(g->a, "%s + (i64)i * %s", r->x, row_size(g, r));
}

/* One result: a variable, or the element of a buffer at `index`. */
static void result(struct gen *g, kl_val v, const char *index, const char *text)
{
    struct gval *x = &g->val[v.id];
    if (x->one) {
        x->text = kl_c_temp(g, "s");
        kl_c_line(g, "const %s %s = %s;", kl_c_local((enum kl_elem)kl_type_of(g->f, v)->elem),
                  x->text, text);
    } else {
        kl_c_line(g, "%s[%s] = %s;", kl_c_bufname(g, x->buf), index, text);
    }
}

static void open_rows(struct gen *g, const struct fold *r)
{
    if (r->outer > 1)
        kl_c_open(g, "for (i32 i = 0; i < %s; i++)", kl_c_size(g, r->outer));
}

static void close_rows(struct gen *g, const struct fold *r)
{
    if (r->outer > 1)
        kl_c_close(g);
}

/* Where the results of row i begin. */
static const char *result_row(struct gen *g, kl_val v, const struct fold *r)
{
    const char *name = kl_c_bufname(g, g->val[v.id].buf);
    return r->outer == 1 ? name : kl_printf(g->a, "%s + (i64)i * %s", name, kl_c_size(g, r->inner));
}

/* A helper that folds the axis before `inner` others.  Sizes are numbered as they are asked for:
 * one at a time. */
static void along_axis(struct gen *g, kl_val v, const struct fold *r, const char *fn)
{
    const char *inner = kl_c_size(g, r->inner), *n = kl_c_size(g, r->n), *from = row(g, r);
    kl_c_line(g, "kl_%s_axis_%s(%s, %s, %s, %s, %s);", fn, kl_elems[r->elem].name, result_row(g, v, r),
              from, n, inner, r->tmp);
}

/* A helper that folds a row; with scratch if the step has some. */
static void along_row(struct gen *g, kl_val v, const struct fold *r, const char *fn, const char *form)
{
    const char *n = kl_c_size(g, r->n), *from = row(g, r);
    result(g, v, "i",
           kl_printf(g->a, "kl_%s%s_%s(%s, %s%s%s)", fn, form, kl_elems[r->elem].name, from, n,
                     r->tmp ? ", " : "", r->tmp ? r->tmp : ""));
}

static void tree(struct gen *g, const struct step *s)
{
    const struct kl_ins *in = kl_in(g->f, s->v);
    struct fold r = operand(g, s, in->attr.red.axis);
    const char *fn = in->attr.red.op == KL_OP_add ? "sum" : "prod", *e = kl_elems[r.elem].name;
    if (kl_c_short_rows(g->f, s->v)) {
        const char *n = kl_c_size(g, r.n), *outer = kl_c_size(g, r.outer);
        kl_c_line(g, "kl_%s_rows_%s(%s, %s, %s, %s);", kl_ops[in->attr.red.op].name, e,
                  kl_c_bufname(g, g->val[s->v.id].buf), r.x, outer, n);
        return;
    }
    open_rows(g, &r);
    if (r.inner > 1)
        along_axis(g, s->v, &r, fn);
    else if (r.n <= 256 && (r.n & (r.n - 1)) == 0)
        result(g, s->v, "i", kl_printf(g->a, "kl_%s%u_%s(%s)", fn, (unsigned)r.n, e, row(g, &r)));
    else if (r.n <= 64)
        result(g, s->v, "i",
               kl_printf(g->a, "kl_%s_few_%s(%s, %u)", fn, e, row(g, &r), (unsigned)r.n));
    else
        along_row(g, s->v, &r, fn, (r.n & (r.n - 1)) == 0 ? "_pow2" : "");
    close_rows(g, &r);
}

static void arg(struct gen *g, const struct step *s)
{
    const struct kl_ins *in = kl_in(g->f, s->v);
    struct fold r = operand(g, s, (uint32_t)in->attr.index);
    const char *fn = kl_ops[in->op].name;
    open_rows(g, &r);
    if (r.inner > 1)
        along_axis(g, s->v, &r, fn);
    else
        along_row(g, s->v, &r, fn, "");
    close_rows(g, &r);
}

/* Planes of the operand's last axis and the result's last axis, for each of the others. */
static void turn(struct gen *g, const struct step *s)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, s->v);
    kl_val a = kl_arg(f, s->v, 0);
    const struct kl_type *from = kl_type_of(f, a), *to = kl_type_of(f, s->v);
    static const char *const iv[] = {"i", "j", "k", "l"};
    uint64_t sp[KL_MAX_RANK] = {0}, dp[KL_MAX_RANK] = {0}, src = 1, dst = 1;
    uint32_t row = 0, col = 0, depth = 0, last = 0;
    for (uint32_t d = to->rank; d-- > 0; src *= from->dim[d], dst *= to->dim[d]) {
        sp[d] = src;
        dp[d] = dst;
    }
    for (uint32_t d = 0; d < to->rank; d++) { /* the last axes that count */
        last = from->dim[d] > 1 ? d : last;
        col = to->dim[d] > 1 ? d : col;
    }
    for (uint32_t d = 0; d < to->rank; d++)
        if (f->aux[in->attr.aux.at + d] == last)
            row = d;
    kl_buf x = {.a = g->a}, y = {.a = g->a};
    kl_puts(&x, kl_c_bufname(g, g->val[kl_c_strip(g, a).id].buf));
    kl_puts(&y, kl_c_bufname(g, g->val[s->v.id].buf));
    kl_c_comment(g, in->loc);
    for (uint32_t d = 0; d < to->rank; d++) {
        if (d == row || d == col || to->dim[d] == 1)
            continue;
        kl_c_open(g, "for (i64 %s = 0; %s < %s; %s++)", iv[depth], iv[depth],
                  kl_c_size(g, to->dim[d]), iv[depth]);
        kl_putf(&x, " + %s * %s", iv[depth], kl_c_size(g, sp[f->aux[in->attr.aux.at + d]]));
        kl_putf(&y, " + %s * %s", iv[depth], kl_c_size(g, dp[d]));
        depth++;
    }
    const char *cols = kl_c_size(g, to->dim[col]), *rows = kl_c_size(g, to->dim[row]);
    const char *xpitch = kl_c_size(g, sp[f->aux[in->attr.aux.at + col]]), *ypitch = kl_c_size(g, dp[row]);
    kl_c_line(g, "kl_transpose_w%u(%s, %s, %s, %s, %s, %s);", kl_elems[to->elem].bytes, kl_buf_str(&y),
              ypitch, kl_buf_str(&x), xpitch, rows, cols);
    while (depth-- > 0)
        kl_c_close(g);
}

static void dot(struct gen *g, const struct step *s)
{
    const kl_fn *f = g->f;
    const struct kl_type *t = kl_type_of(f, s->v), *ta = kl_type_of(f, kl_arg(f, s->v, 0));
    enum kl_elem e = (enum kl_elem)t->elem;
    uint64_t batch = 1, m = t->dim[t->rank - 2], n = t->dim[t->rank - 1], k = ta->dim[ta->rank - 1];
    const char *x[3];
    for (uint32_t d = 0; d + 2 < t->rank; d++)
        batch *= t->dim[d];
    for (uint32_t i = 0; i < 3; i++) {
        kl_val a = kl_arg(f, s->v, i);
        x[i] = kl_c_bufname(g, s->tmp[i]);
        if (g->val[a.id].one) /* it has no nest of its own */
            kl_c_line(
                g, "%s[0] = %s;", x[i],
                kl_c_convert(g->a, e, (enum kl_elem)kl_type_of(f, a)->elem, g->val[a.id].text));
    }
    kl_c_comment(g, kl_in(f, s->v)->loc);
    if (batch > 1) {
        kl_c_open(g, "for (i64 i = 0; i < %s; i++)", kl_c_size(g, batch));
        x[0] = kl_printf(g->a, "%s + i * %s", x[0], kl_c_size(g, m * k));
        x[1] = kl_printf(g->a, "%s + i * %s", x[1], kl_c_size(g, k * n));
        x[2] = kl_printf(g->a, "%s + i * %s", x[2], kl_c_size(g, m * n));
    }
    const char *cols = kl_c_size(g, n), *depth = kl_c_size(g, k), *rows = kl_c_size(g, m);
    kl_c_line(g, "kl_dot_%s(%s, %s, %s, %s, %s, %s, %s, %s, %s);", kl_elems[e].name, rows, cols, depth,
              x[0], depth, x[1], cols, x[2], cols);
    if (batch > 1)
        kl_c_close(g);
    if (g->val[s->v.id].one) {
        g->val[s->v.id].text = kl_c_temp(g, "s");
        kl_c_line(g, "const %s %s = %s[0];", kl_c_local(e), g->val[s->v.id].text, x[2]);
    }
}

void kl_c_helper(struct gen *g, const struct step *s)
{
    g->loc = kl_in(g->f, s->v)->loc;
    switch (s->kind) {
    case ST_TREE: tree(g, s); return;
    case ST_ARG: arg(g, s); return;
    case ST_FOLD: kl_c_fold(g, s); return;
    case ST_TURN: turn(g, s); return;
    default: KL_CHECK(g->a->env, s->kind == ST_DOT); dot(g, s);
    }
}
