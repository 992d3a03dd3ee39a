/* nest.c - loop nests.
 *
 * The roots of a nest become the body of the innermost loop, in order.  If accesses may leave
 * their arrays, the innermost loop is split: [from, to) is inside of all of them and runs the body
 * without tests; the rest runs the checked body.  Short loops run whole or checked.
 *
 * A reduction in any order along the innermost loop has accumulators side by side, which the
 * compiler keeps in vector registers: the loop then goes in steps of their number.  Along
 * another loop it accumulates into its result's buffer. */
#include "gen/c/gen.h"

enum { EDGE_BY_CONST = G_SPLIT };

struct emit {
    struct site s;
    struct gen *g;
    const struct step *st;
    const struct nest *n;
    kl_buf before, after; /* around the nest; around the innermost loop: pre and `fold` */
    kl_buf fold;
    uint32_t lanes;        /* 0: no accumulators */
    const kl_buf *checked; /* the checked body; NULL: none */
};

static bool along_last(const struct emit *e, const struct root *r)
{
    if (r->kind != R_RED)
        return false;
    for (uint32_t d = 0; d < r->brank; d++)
        if (r->to.x[d].c[e->n->rank - 1])
            return false;
    return true;
}

static uint32_t pow2_above(uint32_t n)
{
    uint32_t q = 1;
    while (q < n)
        q *= 2;
    return q;
}

static void choose_lanes(struct emit *e)
{
    uint32_t want = 0;
    for (uint32_t i = 0; i < e->n->root.n; i++) {
        const struct root *r = &e->n->root.v[i];
        if (!along_last(e, r))
            continue;
        uint32_t most = kl_elems[r->elem].bytes == 8 ? G_LANES / 2 : G_LANES;
        want = want && want < most ? want : most;
    }
    uint32_t n = e->n->rank ? e->n->dim[e->n->rank - 1] : 1;
    e->lanes = want && n < want ? pow2_above(n) : want;
}

/* ---- roots ---- */

static void body(struct emit *e, const char *text)
{
    kl_c_put(&e->s, e->s.rank, "%s", text);
}

static void emit_put(struct emit *e, const struct root *r)
{
    struct gen *g = e->g;
    enum kl_elem from = (enum kl_elem)kl_type_of(g->f, r->src)->elem;
    const char *x = r->v.id ? kl_c_compute(&e->s, r->v, &r->at) : kl_c_value(&e->s, r->src, &r->at);
    struct ix lin = kl_c_linear(r->brank, r->bdim, &r->to);
    const char *place = kl_c_buf_place(&e->s, r->buf, &lin);
    x = kl_c_convert(g->a, (enum kl_elem)r->elem, from, x);
    if (r->v.id && kl_c_reads_put(&e->s, r->v, &r->at)) {
        const char *t = kl_c_temp(g, "t");
        body(e, kl_printf(g->a, "const %s %s = %s;", kl_c_local(from), t, kl_c_bare(g->a, x)));
        kl_c_remember(&e->s, r->v, &r->at, t);
        x = t;
    }
    body(e, kl_printf(g->a, "%s = %s;", place, kl_c_bare(g->a, x)));
}

static void emit_store(struct emit *e, const struct root *r)
{
    struct gen *g = e->g;
    const struct kl_ins *in = kl_in(g->f, r->v);
    uint32_t k = 1u + in->attr.access.n, takes = kl_access_values(in);
    const struct acc *acc = kl_c_access(&e->s, r->v, &r->at);
    const char *x[2] = {NULL, NULL}, *cond = NULL, *in_it = kl_c_condition(&e->s, acc);
    for (uint32_t i = 0; i < takes; i++)
        x[i] = kl_c_value(&e->s, kl_arg(g->f, r->v, k++), &r->at);
    if (in->op != KL_OP_insert && in->attr.access.flags & KL_ACC_MASK)
        cond = kl_c_value(&e->s, kl_arg(g->f, r->v, k), &r->at);
    if (in_it)
        cond = cond ? kl_printf(g->a, "%s & %s", in_it, cond) : in_it;
    if (kl_is_atomic(in->op)) {
        const char *call = kl_c_atomic(g, r->v, acc->place, x[0], x[1]);
        if (r->buf) {
            struct ix lin = kl_c_linear(r->brank, r->bdim, &r->to);
            const char *to = kl_c_buf_place(&e->s, r->buf, &lin);
            body(e, cond ? kl_printf(g->a, "%s = %s ? %s : 0;", to, cond, call)
                         : kl_printf(g->a, "%s = %s;", to, call));
            return;
        }
        if (cond)
            body(e, kl_printf(g->a, "if (%s)", kl_c_bare(g->a, cond)));
        body(e, kl_printf(g->a, "%s%s;", cond ? "    " : "", call));
        return;
    }
    if (cond)
        body(e, kl_printf(g->a, "if (%s)", kl_c_bare(g->a, cond)));
    body(e, kl_printf(g->a, "%s%s = %s;", cond ? "    " : "", acc->place, kl_c_bare(g->a, x[0])));
}

/* An order-free fold: the text of op on two elements. */
static const char *fold_name(struct gen *g, const struct root *r)
{
    return kl_printf(g->a, "kl_%s_%s", kl_ops[kl_in(g->f, r->v)->attr.red.op].name,
                     kl_elems[r->elem].name);
}

static void emit_red(struct emit *e, const struct root *r)
{
    struct gen *g = e->g;
    struct site *s = &e->s;
    const char *fn = fold_name(g, r), *type = kl_c_type((enum kl_elem)r->elem);
    const char *zero = kl_c_neutral(g->a, kl_in(g->f, r->v)->attr.red.op, (enum kl_elem)r->elem);
    bool first = !s->checked;
    struct ix lin = kl_c_linear(r->brank, r->bdim, &r->to);
    const char *x = kl_c_value(s, r->src, &r->at);
    if (!along_last(e, r)) {
        const char *place = kl_c_buf_place(s, r->buf, &lin);
        body(e, kl_printf(g->a, "%s = %s(%s, %s);", place, fn, place, kl_c_bare(g->a, x)));
        if (first) {
            const char *name = kl_c_bufname(g, r->buf);
            kl_putf(&e->before, "for (i64 i = 0; i < %s; i++)\n    %s[i] = %s;\n",
                    kl_c_size(g, g->buf.v[r->buf].count), name, kl_c_bare(g->a, zero));
        }
        return;
    }
    /* the same accumulators in both bodies */
    struct map key = {.x[0].k = -1};
    const char *m = NULL;
    if (first) {
        m = kl_c_temp(g, "m");
        kl_c_put(s, s->rank - 1, "%s %s[%u];", type, m, e->lanes);
        kl_c_put(s, s->rank - 1, "for (i32 l = 0; l < %u; l++)", e->lanes);
        kl_c_put(s, s->rank - 1, "    %s[l] = %s;", m, kl_c_bare(g->a, zero));
        if (e->lanes > 1)
            kl_putf(&e->fold, "KL_FOLD%u(%s, %s)\n", e->lanes, m, fn);
        if (g->val[r->v.id].one)
            kl_putf(&e->fold, "%s = %s[0];\n", g->val[r->v.id].text, m);
        else
            kl_putf(&e->fold, "%s = %s[0];\n", kl_c_buf_place(s, r->buf, &lin), m);
        bool isnew;
        struct {
            uint64_t id;
            struct map m;
        } k = {r->v.id, key};
        *kl_map_put(&s->accs, &k, sizeof k, &isnew) = s->text.n;
        kl_push(g->a, &s->text, m);
    } else {
        struct {
            uint64_t id;
            struct map m;
        } k = {r->v.id, key};
        m = s->text.v[*kl_map_get(&s->accs, &k, sizeof k)];
    }
    body(e, kl_printf(g->a, "%s[l] = %s(%s[l], %s);", m, fn, m, kl_c_bare(g->a, x)));
}

static void emit_roots(struct emit *e, bool checked)
{
    e->s.checked = checked;
    for (uint32_t i = 0; i < e->n->root.n; i++) {
        const struct root *r = &e->n->root.v[i];
        if (r->kind == R_PUT)
            emit_put(e, r);
        else if (r->kind == R_STORE)
            emit_store(e, r);
        else
            emit_red(e, r);
    }
}

static void count_roots(struct emit *e)
{
    const kl_fn *f = e->g->f;
    for (uint32_t i = 0; i < e->n->root.n; i++) {
        const struct root *r = &e->n->root.v[i];
        if (r->kind == R_PUT && r->v.id) {
            kl_c_count_operands(&e->s, r->v, &r->at);
        } else if (r->kind == R_STORE) {
            const struct kl_ins *in = kl_in(f, r->v);
            if (in->op == KL_OP_insert)
                kl_c_count(&e->s, kl_arg(f, r->v, 1u + in->attr.access.n), &r->at);
            else
                kl_c_count_operands(&e->s, r->v, &r->at);
        } else {
            kl_c_count(&e->s, r->src, &r->at);
        }
    }
}

/* ---- loops ---- */

static const char *pragma(const struct emit *e, const kl_buf *text)
{
    const struct root *r = &e->n->root.v[0];
    if (r->kind == R_STORE && kl_is_atomic(kl_in(e->g->f, r->v)->op))
        return "/* in order */";
    bool brief = e->n->dim[e->n->rank - 1] <= 16; /* gcc unrolls it first */
    return text == e->checked || e->s.masks || brief ? "KL_EDGE" : "KL_SIMD";
}

/* The innermost loop over [from, to), in steps of the lanes if there are any. */
static void loop(struct emit *e, const kl_buf *text, const char *from, const char *to)
{
    struct gen *g = e->g;
    const char *iv = e->s.iv[e->s.rank - 1];
    if (!e->lanes) {
        kl_c_line(g, "%s", pragma(e, text));
        kl_c_open(g, "for (i32 %s = %s; %s < %s; %s++)", iv, from, iv, to, iv);
        kl_c_lines(g, text);
        kl_c_close(g);
        return;
    }
    kl_c_open(g, "for (i64 at = %s; at < %s; at += %u)", from, to, e->lanes);
    kl_c_line(g, "const i32 left = %s - at < %u ? (i32)(%s - at) : %u;", to, e->lanes, to,
              e->lanes);
    kl_c_line(g, "%s", pragma(e, text));
    kl_c_open(g, "for (i32 l = 0; l < left; l++)");
    if (e->s.uses_iv)
        kl_c_line(g, "const i32 %s = (i32)at + l;", iv);
    kl_c_lines(g, text);
    kl_c_close(g);
    kl_c_close(g);
}

/* Whole steps of the lanes from `at` on, below `to`. */
static void lane_loop(struct emit *e, const kl_buf *text, const char *to)
{
    struct gen *g = e->g;
    kl_c_open(g, "for (; at + %u <= %s; at += %u)", e->lanes, to, e->lanes);
    kl_c_line(g, "%s", pragma(e, text));
    kl_c_open(g, "for (i32 l = 0; l < %u; l++)", e->lanes);
    if (e->s.uses_iv)
        kl_c_line(g, "const i32 %s = (i32)at + l;", e->s.iv[e->s.rank - 1]);
    kl_c_lines(g, text);
    kl_c_close(g);
    kl_c_close(g);
}

/* The places of the innermost loop that are inside of all accesses: [from, to). */
static void fast_range(struct emit *e)
{
    struct gen *g = e->g;
    const char *n = kl_c_size(g, e->n->dim[e->n->rank - 1]);
    bool has_lo = false;
    kl_c_line(g, "i32 from = 0, to = %s;", n);
    for (uint32_t i = 0; i < e->s.acc.n; i++) {
        const struct acc *acc = e->s.acc.v[i];
        bool lo = acc->lo != NULL, hi = acc->hi != NULL;
        if (acc->level != e->s.rank || !acc->place)
            continue;
        for (uint32_t j = 0; j < i; j++) { /* limits that were named before */
            lo &= e->s.acc.v[j]->lo != acc->lo || !e->s.acc.v[j]->place;
            hi &= e->s.acc.v[j]->hi != acc->hi || !e->s.acc.v[j]->place;
        }
        if (lo)
            kl_c_line(g, "from = %s > from ? %s : from;", acc->lo, acc->lo);
        if (hi)
            kl_c_line(g, "to = %s < to ? %s : to;", acc->hi, acc->hi);
        has_lo |= lo;
    }
    if (has_lo)
        kl_c_line(g, "to = to < from ? from : to;");
}

static void innermost(struct emit *e, const kl_buf *fast)
{
    struct gen *g = e->g;
    const kl_buf *checked = e->checked;
    uint32_t count = e->n->dim[e->n->rank - 1];
    const char *n = kl_c_size(g, count);
    if (checked)
        fast_range(e);
    if (e->lanes) {
        bool rest = checked || count % e->lanes != 0;
        kl_c_line(g, "i64 at = %s;", checked ? "from" : "0");
        lane_loop(e, fast, checked ? "to" : n);
        if (!rest)
            return;
        if (!checked) {
            kl_c_open(g, "if (at < %s)", n);
            kl_c_line(g, "const i64 rest = at;");
            loop(e, fast, "rest", n);
            kl_c_close(g);
            return;
        }
        kl_c_line(g, "const i64 rest = at;");
        kl_c_open(g, "for (i32 part = 0; part < 2; part++)");
        kl_c_line(g, "const i64 end = part ? %s : from;", n);
        loop(e, checked, "(part ? rest : 0)", "end");
        kl_c_close(g);
    } else if (!checked) {
        loop(e, fast, "0", n);
    } else if (count < EDGE_BY_CONST) {
        kl_c_open(g, "if (from == 0 && to == %s)", n);
        loop(e, fast, "0", n);
        kl_c_close(g);
        kl_c_open(g, "else");
        loop(e, checked, "0", n);
        kl_c_close(g);
    } else {
        loop(e, fast, "from", "to");
        kl_c_open(g, "for (i32 part = 0; part < 2; part++)");
        kl_c_line(g, "const i32 end = part ? %s : from;", n);
        loop(e, checked, "part ? to : 0", "end");
        kl_c_close(g);
    }
}

/* ---- the nest ---- */

static kl_span root_loc(const struct gen *g, const struct root *r)
{
    return kl_in(g->f, r->v.id ? r->v : r->src)->loc;
}

void kl_c_nest(struct gen *g, const struct step *st)
{
    const struct nest *n = st->nest;
    struct emit e = {.g = g, .st = st, .n = n};
    e.before.a = e.after.a = e.fold.a = g->a;
    kl_c_site(&e.s, g, n);
    choose_lanes(&e);
    if (e.lanes)
        e.s.at = "at + l";
    for (uint32_t i = 0; i < n->root.n; i++) {
        const struct root *r = &n->root.v[i];
        struct gval *x = &g->val[r->v.id];
        if (r->kind == R_RED && x->one) {
            x->text = kl_c_temp(g, "s");
            kl_c_line(g, "%s %s;", kl_c_local((enum kl_elem)r->elem), x->text);
        }
    }
    count_roots(&e);
    kl_buf *inner = &e.s.pre[n->rank], fast;
    emit_roots(&e, false);
    fast = *inner;
    bool checks = false;
    for (uint32_t i = 0; i < e.s.acc.n; i++)
        checks |= n->rank && e.s.acc.v[i]->level == n->rank && e.s.acc.v[i]->inside &&
                  e.s.acc.v[i]->place;
    if (checks) {
        *inner = (kl_buf){.a = g->a};
        emit_roots(&e, true);
        e.checked = inner;
    }
    kl_span said = {0, 0};
    for (uint32_t i = 0; i < n->root.n; i++) {
        kl_span loc = root_loc(g, &n->root.v[i]);
        if (loc.beg && loc.beg != said.beg)
            kl_c_comment(g, loc);
        said = loc;
    }
    kl_c_lines(g, &e.before);
    kl_c_open(g, "%s", "");
    for (uint32_t a = 0; a < n->rank; a++) {
        kl_c_lines(g, &e.s.pre[a]);
        if (a + 1 < n->rank)
            kl_c_open(g, "for (i32 %s = 0; %s < %s; %s++)", e.s.iv[a], e.s.iv[a],
                      kl_c_size(g, n->dim[a]), e.s.iv[a]);
    }
    if (n->rank)
        innermost(&e, &fast);
    else
        kl_c_lines(g, &fast);
    kl_c_lines(g, &e.fold);
    for (uint32_t a = 0; a + 1 < n->rank; a++)
        kl_c_close(g);
    kl_c_close(g);
}
