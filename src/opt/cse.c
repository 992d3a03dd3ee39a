/* cse.c - merge equal operations.
 *
 * What: an operation without effect whose operands, type and attributes equal those of
 * one that is visible here is replaced by it.  Loads too, if no write that may touch the
 * same array lies between.
 *
 * How: one walk in program order with a hash table.  An entry is made when an operation
 * is met and taken out when its block ends, so that the table holds what is visible.
 * Memory is a clock: each write notes its time for its array; a load's entry is good
 * while its time is later than the last write.  A loop's body may run again after writes
 * at its end, so all writes of a loop count as made at its head too.
 *
 * Why not numbers for values that are equal after any path (GVN): control flow is
 * structured, and an operation in a branch is no earlier occurrence of one behind it.
 *
 *     %3 = load %1[%2:8] : f32[8]
 *     for ... { %7 = load %1[%2:8] : f32[8]     ; equal to %3 unless the loop
 *               store %1[%2:8], %9 }            ; writes, as here, at its end
 *
 * Must hold: an operation is replaced only by one visible where it stands; fast and
 * exact forms are different; so are loads with and without a mask.  Reductions by a block
 * are equal if their blocks compute the same step by step. */
#include "opt/util.h"

struct entry {
    kl_val v;
    uint32_t hash, next; /* in the chain of its bucket; 0 ends */
    uint64_t time;
};

struct cse {
    kl_fn *f;
    kl_val *repl;
    kl_val *twin; /* while two blocks are compared: what a value of the second is in the first */
    uint32_t *bucket, mask;
    KL_VEC(struct entry) e; /* [0] unused; a stack: blocks push and pop */
    uint64_t clock, any_write, write[64];
    bool changed;
};

/* ---- equality ---- */

/* aux entries of an attribute */
static uint32_t aux_of(const struct kl_ins *in, uint32_t *at)
{
    switch (kl_ops[in->op].attr) {
    case KL_A_ACCESS: return *at = in->attr.access.at, in->attr.access.n;
    case KL_A_AUX: return *at = in->attr.aux.at, in->attr.aux.n;
    default: return 0;
    }
}

/* The attribute without what says where aux entries lie. */
static uint64_t attr_of(const struct kl_ins *in)
{
    union kl_attr a = in->attr;
    if (kl_ops[in->op].attr == KL_A_ACCESS)
        return (uint64_t)a.access.n << 8 | a.access.flags;
    if (kl_ops[in->op].attr == KL_A_AUX)
        return a.aux.n;
    if (kl_ops[in->op].attr == KL_A_REDFN) /* the block is compared by itself */
        return (uint64_t)a.redfn.axis << 1 | a.redfn.commutative;
    return a.bits;
}

static bool swapped(const struct kl_ins *in, kl_val a, kl_val b)
{
    return kl_ops[in->op].flags & KL_F_COMM && a.id > b.id;
}

static uint32_t hash_of(const kl_fn *f, const struct kl_ins *in)
{
    uint32_t at = 0, n = aux_of(in, &at), h;
    uint64_t key[3] = {(uint64_t)in->op << 32 | in->type.id, attr_of(in), in->nargs};
    h = kl_hash(key, sizeof key);
    if (n)
        h = h * 31 + kl_hash(f->aux + at, n * sizeof *f->aux);
    const kl_val *a = f->args + in->args;
    if (in->nargs == 2 && swapped(in, a[0], a[1])) {
        kl_val two[2] = {a[1], a[0]};
        return h * 31 + kl_hash(two, sizeof two);
    }
    return in->nargs ? h * 31 + kl_hash(a, in->nargs * sizeof *a) : h;
}

/* Operations, types and attributes; not operands and blocks. */
static bool alike(const kl_fn *f, const struct kl_ins *x, const struct kl_ins *y)
{
    uint32_t ax = 0, ay = 0, n = aux_of(x, &ax);
    return x->op == y->op && x->type.id == y->type.id && x->nargs == y->nargs &&
           attr_of(x) == attr_of(y) && aux_of(y, &ay) == n &&
           (n == 0 || memcmp(f->aux + ax, f->aux + ay, n * sizeof *f->aux) == 0);
}

/* Do two straight-line blocks without effects compute the same? */
static bool same_block(struct cse *c, kl_blk a, kl_blk b)
{
    const kl_fn *f = c->f;
    uint32_t x = f->blk[a.id].first, y = f->blk[b.id].first;
    for (; x && y; x = f->ins[x].next, y = f->ins[y].next) {
        const struct kl_ins *p = &f->ins[x], *q = &f->ins[y];
        if (!alike(f, p, q) || kl_ops[p->op].flags & KL_F_REGION || p->op == KL_OP_result)
            return false;
        for (uint32_t i = 0; i < p->nargs; i++) {
            kl_val u = f->args[p->args + i], v = f->args[q->args + i];
            if (u.id != (c->twin[v.id].id ? c->twin[v.id].id : v.id))
                return false;
        }
        c->twin[y] = (kl_val){x};
    }
    return x == y; /* both at their ends */
}

static bool equal(struct cse *c, const struct kl_ins *x, const struct kl_ins *y)
{
    const kl_fn *f = c->f;
    const kl_val *a = f->args + x->args, *b = f->args + y->args;
    if (!alike(f, x, y))
        return false;
    if (kl_ops[x->op].attr == KL_A_REDFN && !same_block(c, y->attr.redfn.blk, x->attr.redfn.blk))
        return false;
    if (x->nargs == 2 && kl_ops[x->op].flags & KL_F_COMM &&
        a[0].id == b[1].id && a[1].id == b[0].id)
        return true;
    return x->nargs == 0 || memcmp(a, b, x->nargs * sizeof *a) == 0;
}

/* ---- memory ---- */

static void wrote(struct cse *c, uint64_t roots)
{
    if (!roots)
        return;
    c->any_write = ++c->clock;
    for (uint32_t i = 0; i < 64; i++)
        if (roots >> i & 1)
            c->write[i] = c->clock;
}

/* When the array that a load reads was last written. */
static uint64_t last_write(const struct cse *c, kl_val load)
{
    if (c->f->may_alias)
        return c->any_write;
    uint64_t read = kl_effect(c->f, load).read, t = 0;
    for (uint32_t i = 0; i < 64; i++)
        if (read >> i & 1 && c->write[i] > t)
            t = c->write[i];
    return t;
}

/* ---- the walk ---- */

static bool mergeable(const struct kl_ins *in)
{
    uint16_t flags = kl_ops[in->op].flags;
    return flags & (KL_F_PURE | KL_F_READ) && !(flags & KL_F_PIN) && in->op != KL_OP_result &&
           in->type.id; /* several results stay together */
}

/* An earlier equal operation, or 0; then v is entered. */
static kl_val look_up(struct cse *c, kl_val v)
{
    const struct kl_ins *in = kl_in(c->f, v);
    bool load = kl_ops[in->op].flags & KL_F_READ;
    uint32_t h = hash_of(c->f, in), *head = &c->bucket[h & c->mask];
    uint64_t since = load ? last_write(c, v) : 0;
    for (uint32_t i = *head; i; i = c->e.v[i].next) {
        const struct entry *e = &c->e.v[i];
        if (e->hash == h && (!load || e->time > since) && equal(c, in, kl_in(c->f, e->v)))
            return e->v;
    }
    struct entry e = {v, h, *head, ++c->clock};
    kl_push(c->f->a, &c->e, e);
    *head = c->e.n - 1;
    return (kl_val){0};
}

static void walk(struct cse *c, kl_blk blk)
{
    kl_fn *f = c->f;
    uint32_t mark = c->e.n;
    for (uint32_t id = f->blk[blk.id].first, next; id; id = next) {
        kl_val v = {id};
        struct kl_ins *in = kl_in(f, v);
        next = in->next;
        for (uint32_t i = 0; i < in->nargs; i++) {
            kl_val *a = &f->args[in->args + i];
            if (c->repl[a->id].id)
                *a = c->repl[a->id];
        }
        kl_blk own[2];
        uint32_t n = kl_blocks(f, v, own);
        if (in->op == KL_OP_for || in->op == KL_OP_while)
            wrote(c, kl_effect(f, v).write);
        for (uint32_t i = 0; i < n; i++)
            walk(c, own[i]);
        if (kl_ops[in->op].flags & KL_F_WRITE)
            wrote(c, kl_effect(f, v).write);
        if (!mergeable(in))
            continue;
        kl_val same = look_up(c, v);
        if (same.id) {
            c->repl[id] = same;
            kl_remove(f, v);
            c->changed = true;
        }
    }
    while (c->e.n > mark) { /* what this block defined is no longer visible */
        const struct entry *e = &c->e.v[--c->e.n];
        c->bucket[e->hash & c->mask] = e->next;
    }
}

bool kl_opt_cse(kl_fn *f, const struct kl_target *t)
{
    (void)t;
    struct cse c = {.f = f, .repl = kl_new_n(f->a, kl_val, f->nins),
                    .twin = kl_new_n(f->a, kl_val, f->nins)};
    uint32_t size = 64;
    while (size < f->nins)
        size *= 2;
    c.bucket = kl_new_n(f->a, uint32_t, size);
    c.mask = size - 1;
    struct entry unused = {0};
    kl_push(f->a, &c.e, unused);
    walk(&c, KL_BODY);
    return c.changed;
}
