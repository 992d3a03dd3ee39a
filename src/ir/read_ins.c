/* read_ins.c - instructions of IR text, with the blocks that they own. */
#include "ir/reader.h"

static void read_block(struct reader *r, kl_blk blk)
{
    if (++r->depth > 200)
        kl_rd_fail(r, "blocks are nested too deep");
    kl_build b = {.f = r->f, .blk = blk};
    kl_rd_expect(r, "{");
    kl_rd_stmts(r, &b);
    kl_rd_expect(r, "}");
    r->depth--;
}

static void read_params(struct reader *r, kl_blk blk)
{
    kl_build b = {.f = r->f, .blk = blk};
    kl_rd_expect(r, "(");
    while (r->kind == T_VAL) {
        struct name at = {r->s, r->n};
        kl_rd_next(r);
        kl_rd_expect(r, ":");
        kl_rd_define(r, at, kl_block_param(&b, kl_rd_type(r)));
        if (!kl_rd_accept(r, ","))
            break;
    }
    kl_rd_expect(r, ")");
}

/* ---- accesses ---- */

/* Operands of load, store, inside, extract, insert and atomics; counts go to dim, to be compared. */
struct access { struct vals arg; union kl_attr attr; uint32_t dim[KL_MAX_DIMS], rank; };

/* One of the words that may stand here, or `none`. */
static uint32_t read_choice(struct reader *r, const char *const *words, uint32_t n, uint32_t none)
{
    for (uint32_t i = 0; i < n; i++)
        if (kl_rd_accept(r, words[i]))
            return i;
    return none;
}

static uint8_t read_how(struct reader *r, uint32_t op)
{
    uint32_t rmw = 0, order, scope;
    if (op == KL_OP_atomic && (rmw = read_choice(r, kl_rmw_names, KL_NRMW, KL_NRMW)) == KL_NRMW)
        kl_rd_fail(r, "add, min, max, and, or, xor, xchg or cas is missing");
    order = read_choice(r, kl_order_names, KL_NORDER, KL_RELAXED);
    scope = read_choice(r, kl_reach_names, KL_NSCOPE, KL_SC_DEVICE);
    return KL_HOW(rmw, order, scope);
}

static void read_access(struct reader *r, struct access *x, uint32_t op)
{
    int64_t step[KL_MAX_DIMS];
    uint32_t n = 0, sections = 0;
    const struct kl_type *index = NULL;
    if (kl_is_atomic((uint16_t)op))
        x->attr.access.how = read_how(r, op);
    kl_val v = kl_rd_val(r);
    kl_push(r->a, &x->arg.v, v);
    while (kl_rd_accept(r, "[")) {
        if (n == KL_MAX_DIMS)
            kl_rd_fail(r, "an access has at most %d subscripts", KL_MAX_DIMS);
        v = kl_rd_val(r);
        kl_push(r->a, &x->arg.v, v);
        step[n] = 0;
        const struct kl_type *t = kl_type_of(r->f, v);
        if (t->kind == KL_T_TILE && t->rank) {
            index = t;
            x->dim[x->rank++] = t->dim[0];
        } else if (kl_rd_accept(r, ":")) {
            x->dim[x->rank++] = kl_rd_u32(r, UINT32_MAX);
            step[n] = 1;
            sections++;
            if (kl_rd_accept(r, ":") && (step[n] = kl_rd_int(r)) == 0)
                kl_rd_fail(r, "a step of 0");
        }
        n++;
        kl_rd_expect(r, "]");
    }
    x->attr.access.at = kl_aux_add(r->f, step, n);
    x->attr.access.n = (uint16_t)n;
    if (index && !sections) { /* their shape is that of the tile */
        x->rank = index->rank;
        memcpy(x->dim, index->dim, sizeof index->dim);
    }
    const struct kl_ins in = {.op = (uint16_t)op, .attr = x->attr};
    for (uint32_t i = kl_access_values(&in); i > 0; i--) {
        kl_rd_expect(r, ",");
        v = kl_rd_val(r);
        kl_push(r->a, &x->arg.v, v);
    }
    if (kl_rd_accept(r, "fill")) {
        v = kl_rd_val(r);
        kl_push(r->a, &x->arg.v, v);
        x->attr.access.flags |= KL_ACC_FILL;
    }
    if (kl_rd_accept(r, "mask")) {
        v = kl_rd_val(r);
        kl_push(r->a, &x->arg.v, v);
        x->attr.access.flags |= KL_ACC_MASK;
    }
    if (kl_rd_accept(r, "evict_first"))
        x->attr.access.flags |= KL_ACC_EVICT_FIRST;
    else if (kl_rd_accept(r, "evict_last"))
        x->attr.access.flags |= KL_ACC_EVICT_LAST;
}

/* The counts of the sections must be the sizes of the tile. */
static void check_counts(struct reader *r, const struct access *x, const struct kl_type *t)
{
    if (t->kind != KL_T_TILE || t->rank != x->rank ||
        memcmp(t->dim, x->dim, x->rank * sizeof *x->dim) != 0)
        kl_rd_fail(r, "the sections do not give the sizes of the tile");
}

/* ---- instructions ---- */

static uint32_t find_op(struct reader *r, bool *fast)
{
    uint32_t n = r->n;
    *fast = n > 5 && memcmp(r->s + n - 5, ".fast", 5) == 0;
    n -= *fast ? 5 : 0;
    for (uint32_t op = 1; r->kind == T_WORD && op < KL_NOP; op++)
        if (strlen(kl_ops[op].name) == n && memcmp(kl_ops[op].name, r->s, n) == 0)
            return op;
    kl_rd_fail(r, "`%.*s` is not an operation", (int)r->n, r->s);
}

struct pending { /* a statement while it is read */
    uint32_t op;
    struct vals arg;
    union kl_attr attr;
    struct access x;
    struct name lit; /* const: the text of its value */
    uint64_t litbits;
    bool isbits;
};

static void read_literal(struct reader *r, struct pending *q)
{
    q->lit = (struct name){r->s, r->n};
    if (kl_rd_is(r, "nan") || kl_rd_is(r, "bits")) { /* bits as they are */
        bool nan = kl_rd_is(r, "nan");
        kl_rd_next(r);
        q->isbits = true;
        q->litbits = UINT64_MAX; /* plain nan: the default one of the type */
        if (kl_rd_is(r, "(") || !nan) {
            kl_rd_expect(r, "(");
            if (!kl_rd_parse_u64(r->s, r->n, &q->litbits))
                kl_rd_fail(r, "bits are missing");
            kl_rd_next(r);
            kl_rd_expect(r, ")");
        }
        return;
    }
    if (r->kind != T_NUM && r->kind != T_WORD)
        kl_rd_fail(r, "a constant is missing");
    kl_rd_next(r);
}

static void finish_literal(struct reader *r, struct pending *q, kl_typ type)
{
    enum kl_elem e = (enum kl_elem)r->f->type[type.id].elem;
    bool ok = r->f->type[type.id].kind == KL_T_TILE;
    if (q->isbits && q->litbits == UINT64_MAX)
        q->litbits = kl_convert(e, KL_f64, UINT64_C(0x7ff8) << 48);
    if (q->isbits)
        ok = ok && kl_is_float(e) && kl_canon(e, q->litbits) == q->litbits;
    else
        ok = ok && kl_rd_const(q->lit.s, q->lit.n, e, &q->litbits);
    if (!ok) {
        r->s = q->lit.s, r->n = q->lit.n;
        kl_rd_fail(r, "%.*s is not a constant of type %s", (int)r->n, r->s, kl_elems[e].name);
    }
    q->attr.bits = q->litbits;
}

/* What stands between the name and the type; mirrors put_operands of print.c. */
static void read_operands(struct reader *r, struct pending *q)
{
    const struct kl_opinfo *row = &kl_ops[q->op];
    switch (row->attr) {
    case KL_A_BITS: read_literal(r, q); return;
    case KL_A_INDEX:
        if (!*row->sig) {
            q->attr.index = kl_rd_int(r);
            return;
        }
        kl_rd_vals(r, &q->arg);
        kl_rd_expect(r, "axis");
        q->attr.index = kl_rd_u32(r, KL_MAX_RANK);
        return;
    case KL_A_ACCESS:
        read_access(r, &q->x, q->op);
        q->arg = q->x.arg;
        q->attr = q->x.attr;
        return;
    case KL_A_AUX: {
        KL_VEC(int64_t) p = {0};
        if (!kl_rd_is(r, "("))
            kl_rd_vals(r, &q->arg);
        kl_rd_expect(r, "(");
        while (r->kind == T_NUM && p.n < UINT16_MAX) {
            int64_t x = kl_rd_int(r);
            kl_push(r->f->a, &p, x);
            if (!kl_rd_accept(r, ","))
                break;
        }
        kl_rd_expect(r, ")");
        q->attr.aux.at = kl_aux_add(r->f, p.v, p.n);
        q->attr.aux.n = (uint16_t)p.n;
        return;
    }
    case KL_A_RED: {
        bool fast;
        q->attr.red.op = (uint16_t)find_op(r, &fast);
        kl_rd_next(r);
        kl_rd_vals(r, &q->arg);
        kl_rd_expect(r, "axis");
        q->attr.red.axis = (uint8_t)kl_rd_u32(r, KL_MAX_RANK);
        return;
    }
    case KL_A_REDFN:
        kl_rd_vals(r, &q->arg);
        kl_rd_expect(r, "axis");
        q->attr.redfn.axis = (uint8_t)kl_rd_u32(r, KL_MAX_RANK);
        q->attr.redfn.commutative = kl_rd_accept(r, "commutative");
        q->attr.redfn.blk = kl_blk_new(r->f);
        return;
    case KL_A_LOOP:
        kl_rd_vals(r, &q->arg);
        if (q->arg.v.n != 3)
            kl_rd_fail(r, "a loop has lo, hi, step");
        if (kl_rd_accept(r, "unroll"))
            q->attr.loop.unroll = kl_rd_u32(r, (1u << 20) - 1) & ((1u << 20) - 1);
        if (kl_rd_accept(r, "pipeline"))
            q->attr.loop.pipeline = kl_rd_u32(r, (1u << 12) - 1) & ((1u << 12) - 1);
        if (kl_rd_accept(r, "carry"))
            kl_rd_vals(r, &q->arg);
        q->attr.loop.blk = kl_blk_new(r->f);
        return;
    case KL_A_BLOCKS:
        if (r->kind == T_VAL)
            kl_rd_vals(r, &q->arg);
        q->attr.blk[0] = kl_blk_new(r->f);
        q->attr.blk[1] = kl_blk_new(r->f);
        return;
    default: break;
    }
    if (r->kind == T_VAL)
        kl_rd_vals(r, &q->arg);
    if (q->op == KL_OP_view) {
        for (int i = 0; i < 2; i++) { /* extents, strides */
            if (i > 0)
                kl_rd_expect(r, "stride");
            kl_rd_expect(r, "[");
            if (!kl_rd_is(r, "]"))
                kl_rd_vals(r, &q->arg);
            kl_rd_expect(r, "]");
        }
    }
}

/* Refuse what kl_emit takes for a broken invariant. */
static void check_operands(struct reader *r, const struct pending *q, kl_typ type)
{
    const struct kl_opinfo *row = &kl_ops[q->op];
    uint32_t n = q->arg.v.n;
    if (n > 4000)
        kl_rd_fail(r, "%u operands are too many", n);
    if (row->res == KL_R_SAME && n == 0)
        kl_rd_fail(r, "%s needs operands", row->name);
    if (row->flags & KL_F_EW && n != row->nargs)
        kl_rd_fail(r, "%s has %u operands, needs %u", row->name, n, row->nargs);
    for (uint32_t i = 0; i < n && row->flags & KL_F_EW; i++)
        if (kl_type_of(r->f, q->arg.v.v[i])->kind != KL_T_TILE)
            kl_rd_fail(r, "operand %u of %s is not a tile", i, row->name);
    if (row->attr == KL_A_ACCESS && row->res == KL_R_GIVEN)
        check_counts(r, &q->x, &r->f->type[type.id]);
    if (q->op == KL_OP_store || q->op == KL_OP_insert || q->op == KL_OP_atomic_store)
        check_counts(r, &q->x, kl_type_of(r->f, q->arg.v.v[1 + q->x.attr.access.n]));
}

static void read_regions(struct reader *r, struct pending *q)
{
    kl_blk own[2] = {{0}, {0}};
    uint32_t n = 1;
    if (q->op == KL_OP_for)
        own[0] = q->attr.loop.blk;
    else if (kl_ops[q->op].attr == KL_A_REDFN)
        own[0] = q->attr.redfn.blk;
    else
        own[0] = q->attr.blk[0], own[1] = q->attr.blk[1], n = 2;
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            kl_rd_expect(r, q->op == KL_OP_if ? "else" : "do");
        if (q->op != KL_OP_if)
            read_params(r, own[i]);
        read_block(r, own[i]);
    }
}

static void read_results(struct reader *r, kl_build *b, kl_val v, const struct names *left)
{
    const struct kl_ins *in = kl_in(r->f, v);
    kl_val y = in->op == KL_OP_if ? kl_last(r->f, in->attr.blk[0]) : v;
    uint32_t skip = in->op == KL_OP_for ? 3 : 0, n = y.id ? kl_in(r->f, y)->nargs : 0;
    if (n < skip || n - skip != left->v.n)
        kl_rd_fail(r, "%u names for %u results", left->v.n, n < skip ? 0 : n - skip);
    for (uint32_t i = 0; i < left->v.n; i++)
        kl_rd_define(r, left->v.v[i],
               kl_result(b, v, i, kl_in(r->f, kl_arg(r->f, y, skip + i))->type));
}

/* Of a fold of several tiles: the type of each follows from its operand. */
static void read_folds(struct reader *r, kl_build *b, kl_val v, const struct names *left)
{
    uint32_t n = kl_in(r->f, v)->nargs, axis = kl_in(r->f, v)->attr.redfn.axis;
    if (n != left->v.n)
        kl_rd_fail(r, "%u names for %u results", left->v.n, n);
    for (uint32_t i = 0; i < n; i++) {
        struct kl_type t = *kl_type_of(r->f, kl_arg(r->f, v, i));
        if (t.kind != KL_T_TILE || axis >= t.rank)
            kl_rd_fail(r, "operand %u has no axis %u", i, axis);
        if (kl_in(r->f, v)->op == KL_OP_reduce_fn)
            t.dim[axis] = 1;
        kl_rd_define(r, left->v.v[i],
               kl_result(b, v, i, kl_tile(r->f, (enum kl_elem)t.elem, t.rank, t.dim)));
    }
}

static void read_stmt(struct reader *r, kl_build *b)
{
    struct names left = {0};
    struct pending q = {0};
    const char *beg = r->s;
    if (r->kind == T_VAL) {
        do {
            if (r->kind != T_VAL)
                kl_rd_fail(r, "a name is missing");
            struct name at = {r->s, r->n};
            kl_push(r->a, &left.v, at);
            kl_rd_next(r);
        } while (kl_rd_accept(r, ","));
        kl_rd_expect(r, "=");
    }
    bool fast;
    q.op = find_op(r, &fast);
    const struct kl_opinfo *row = &kl_ops[q.op];
    if (q.op == KL_OP_param || q.op == KL_OP_result)
        kl_rd_fail(r, "`%s` is not written as an instruction", row->name);
    if (fast && !(row->flags & KL_F_FAST))
        kl_rd_fail(r, "%s has no fast form", row->name);
    kl_rd_next(r);
    q.attr.bits = fast;
    read_operands(r, &q);

    kl_typ type = {0};
    bool several = row->attr == KL_A_REDFN && q.arg.v.n > 1;
    if (row->res != KL_R_NONE && !several) {
        kl_rd_expect(r, ":");
        type = kl_rd_type(r);
        if (q.op == KL_OP_const)
            finish_literal(r, &q, type);
    }
    check_operands(r, &q, type);
    if (row->flags & KL_F_REGION)
        read_regions(r, &q);

    uint32_t off = r->base + (uint32_t)(beg - r->text);
    b->loc = (kl_span){off, r->base + (uint32_t)(r->s - r->text)};
    while (b->loc.end > off + 1 && (unsigned char)r->text[b->loc.end - 1 - r->base] <= ' ')
        b->loc.end--;
    kl_val v = kl_emit(b, (enum kl_op)q.op, type, q.arg.v.v, q.arg.v.n, q.attr);
    if (type.id && kl_in(r->f, v)->type.id != type.id) {
        kl_buf t = {.a = r->a};
        kl_put_type(&t, kl_type_of(r->f, v));
        kl_rd_fail(r, "%s gives %s here", row->name, kl_buf_str(&t));
    }
    if (several) {
        read_folds(r, b, v, &left);
    } else if (row->res == KL_R_NONE && row->flags & KL_F_REGION) {
        read_results(r, b, v, &left);
    } else {
        if (left.v.n != (type.id != 0))
            kl_rd_fail(r, type.id ? "%s has one result" : "%s has no result", row->name);
        if (left.v.n)
            kl_rd_define(r, left.v.v[0], v);
    }
}

void kl_rd_stmts(struct reader *r, kl_build *b)
{
    while (r->kind == T_VAL || r->kind == T_WORD)
        read_stmt(r, b);
}
