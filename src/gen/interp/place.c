/* place.c - where values lie.
 *
 * Every instruction gets a position in the order of the walk; the end of a control
 * operation is a position too.  A value is live from its definition to its last use; a use
 * inside a loop that the value was defined outside of counts at the loop's end.  Values
 * that are another name of one (a reshape, the result of a loop and its parameter) form a
 * group with one place.  Groups that are not live at the same time share memory, which
 * keeps a program's tiles in the cache.  Values that are the same in all programs keep
 * their place: they are computed once. */
#include "gen/interp/run.h"

enum { ALIGN = 64 };

struct hole { /* free memory of the slab */
    uint64_t off, size;
};

struct placer {
    struct kl_run *r;
    const kl_fn *f;
    kl_arena *a;
    uint32_t pos;
    uint32_t *at, *end;     /* positions: of each instruction; behind what it owns */
    uint32_t *group;        /* the value whose place it has */
    uint32_t *first, *last; /* of groups: positions between which they are live */
    KL_VEC(struct hole) hole;
    uint64_t slab;
};

static uint64_t tile_bytes(struct placer *p, const struct kl_type *t)
{
    uint64_t n = kl_elems[t->elem].bytes;
    for (uint32_t i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(n, t->dim[i], &n) || n > SIZE_MAX / 4)
            kl_raise(p->a->env, KILN_E_NOMEM, "out of memory: a tile of more than %zu bytes",
                     SIZE_MAX / 4);
    return n;
}

static uint64_t value_bytes(struct placer *p, kl_val v)
{
    const struct kl_type *t = kl_type_of(p->f, v);
    return t->kind == KL_T_ARRAY ? sizeof(struct kl_view) : tile_bytes(p, t);
}

/* ---- names for the same value ---- */

/* The operand whose bits the result has, in the same order; 0: none. */
static kl_val same_bits(struct placer *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    if (!in->nargs)
        return (kl_val){0};
    kl_val a = kl_arg(f, v, 0);
    const struct kl_type *from = kl_type_of(f, a), *to = kl_type_of(f, v);
    bool same = false;
    switch (in->op) {
    case KL_OP_reshape: same = true; break;
    case KL_OP_convert: same = from->elem == to->elem; break;
    case KL_OP_bitcast: same = to->elem != KL_bool || from->elem == KL_bool; break;
    case KL_OP_broadcast: same = kl_numel(from) == kl_numel(to); break;
    case KL_OP_reduce: same = from->dim[in->attr.red.axis] == 1; break;
    case KL_OP_reduce_fn:
    case KL_OP_scan: same = in->nargs == 1 && from->dim[in->attr.redfn.axis] == 1; break;
    default: break;
    }
    return same ? a : (kl_val){0};
}

static bool is_fixed(struct placer *p, kl_val v)
{
    const kl_fn *f = p->f;
    const struct kl_ins *in = kl_in(f, v);
    switch (in->op) {
    case KL_OP_const:
    case KL_OP_iota:
    case KL_OP_table:
    case KL_OP_num_programs:
    case KL_OP_num_sms: return true;
    case KL_OP_param: return in->blk.id == KL_BODY.id;
    case KL_OP_program_id: return false;
    case KL_OP_view:
    case KL_OP_gather:
    case KL_OP_extract: /* findings are counted in each program */
        if (p->r->checks)
            return false;
        break;
    default: break;
    }
    if (in->blk.id != KL_BODY.id || !(kl_ops[in->op].flags & KL_F_PURE) ||
        kl_ops[in->op].flags & KL_F_REGION || in->op == KL_OP_result)
        return false;
    for (uint32_t i = 0; i < in->nargs; i++)
        if (p->r->fixed[p->group[kl_arg(f, v, i).id]] != 1)
            return false;
    return true;
}

kl_val kl_loop_carried(const kl_fn *f, kl_val loop, uint32_t k)
{
    kl_blk own[2];
    kl_blocks(f, loop, own);
    uint32_t id = f->blk[own[0].id].first;
    for (k += kl_in(f, loop)->op == KL_OP_for; k > 0; k--)
        id = f->ins[id].next;
    return (kl_val){id};
}

/* Parameters of the blocks of a loop.  Both blocks of a while have the same ones. */
static void number_params(struct placer *p, kl_val owner)
{
    const kl_fn *f = p->f;
    kl_blk own[2];
    uint32_t n = kl_blocks(f, owner, own);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t twin = i ? f->blk[own[0].id].first : 0;
        kl_each_ins(f, own[i], v) {
            if (kl_in(f, v)->op != KL_OP_param)
                break;
            p->group[v.id] = twin ? twin : v.id;
            p->first[v.id] = p->at[owner.id];
            twin = twin ? f->ins[twin].next : 0;
        }
    }
}

/* Positions, groups, and which values are fixed; in the order of the walk. */
static void number(struct placer *p, kl_blk blk)
{
    const kl_fn *f = p->f;
    kl_each_ins(f, blk, v) {
        const struct kl_ins *in = kl_in(f, v);
        p->at[v.id] = p->end[v.id] = ++p->pos;
        if (in->op == KL_OP_param && blk.id != KL_BODY.id)
            continue;
        p->group[v.id] = v.id;
        p->first[v.id] = p->pos;
        kl_val same = same_bits(p, v);
        if (in->op == KL_OP_result) {
            kl_val of = in->attr.result.of;
            if (kl_in(f, of)->op == KL_OP_if || kl_is_fold(f, of)) /* written at its end */
                p->first[v.id] = p->at[of.id];
            else
                p->group[v.id] = kl_loop_carried(f, of, in->attr.result.index).id;
        } else if (same.id) {
            p->group[v.id] = p->group[same.id];
            p->r->fixed[v.id] = 2;
        } else if (is_fixed(p, v)) {
            p->r->fixed[v.id] = 1;
        }
        kl_blk own[2];
        uint32_t n = kl_blocks(f, v, own);
        if (n)
            number_params(p, v);
        for (uint32_t i = 0; i < n; i++)
            number(p, own[i]);
        if (n)
            p->end[v.id] = ++p->pos;
    }
}

/* ---- when values are live ---- */

static void live_until(struct placer *p, uint32_t group, uint32_t pos)
{
    if (p->last[group] < pos)
        p->last[group] = pos;
}

static void find_uses(struct placer *p)
{
    const kl_fn *f = p->f;
    for (uint32_t id = 1; id < f->nins; id++) {
        const struct kl_ins *in = &f->ins[id];
        if (!in->blk.id)
            continue;
        live_until(p, p->group[id], p->at[id]);
        if (in->op == KL_OP_param && in->blk.id != KL_BODY.id)
            live_until(p, p->group[id], p->end[f->blk[in->blk.id].owner.id]);
        for (uint32_t i = 0; i < in->nargs; i++) {
            uint32_t a = kl_arg(f, (kl_val){id}, i).id, w = id;
            while (f->ins[w].blk.id != f->ins[a].blk.id) /* what holds the use, in a's block */
                w = f->blk[f->ins[w].blk.id].owner.id;
            live_until(p, p->group[a], p->end[w]); /* a loop reads its bounds to the end */
        }
    }
}

/* ---- memory ---- */

static uint64_t take(struct placer *p, uint64_t size)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < p->hole.n; i++)
        if (p->hole.v[i].size >= size &&
            (best == UINT32_MAX || p->hole.v[i].size < p->hole.v[best].size))
            best = i;
    if (best == UINT32_MAX) { /* at the end, with the hole there if there is one */
        struct hole *h = p->hole.n ? &p->hole.v[p->hole.n - 1] : NULL;
        uint64_t off = p->slab;
        if (h && h->off + h->size == p->slab)
            off = h->off, p->hole.n--;
        if (size > SIZE_MAX / 4 - off)
            kl_raise(p->a->env, KILN_E_NOMEM, "out of memory: the values of %s", p->f->name);
        p->slab = off + size;
        return off;
    }
    struct hole *h = &p->hole.v[best];
    uint64_t off = h->off;
    h->off += size, h->size -= size;
    if (!h->size) {
        memmove(h, h + 1, (p->hole.n - best - 1) * sizeof *h);
        p->hole.n--;
    }
    return off;
}

static void give(struct placer *p, uint64_t off, uint64_t size)
{
    uint32_t i = p->hole.n;
    kl_push(p->a, &p->hole, ((struct hole){0, 0}));
    struct hole *h = p->hole.v;
    for (; i > 0 && h[i - 1].off > off; i--)
        h[i] = h[i - 1];
    h[i] = (struct hole){off, size};
    for (uint32_t k = i ? i - 1 : 0, n = 2; n > 0; n--) { /* join with the neighbours */
        if (k + 1 < p->hole.n && h[k].off + h[k].size == h[k + 1].off) {
            h[k].size += h[k + 1].size;
            memmove(h + k + 1, h + k + 2, (p->hole.n - k - 2) * sizeof *h);
            p->hole.n--;
        } else {
            k++;
        }
    }
}

/* Chains of groups by position, to walk them in order. */
struct chain {
    uint32_t *head, *next;
};

static void chain_add(struct chain *c, uint32_t pos, uint32_t id)
{
    c->next[id] = c->head[pos];
    c->head[pos] = id;
}

static void lay_out(struct placer *p)
{
    const kl_fn *f = p->f;
    struct chain begin = {kl_new_n(p->a, uint32_t, p->pos + 2), kl_new_n(p->a, uint32_t, f->nins)};
    struct chain end = {kl_new_n(p->a, uint32_t, p->pos + 2), kl_new_n(p->a, uint32_t, f->nins)};
    uint64_t *size = kl_new_n(p->a, uint64_t, f->nins), *off = kl_new_n(p->a, uint64_t, f->nins);
    for (uint32_t id = f->nins; id-- > 1;) {
        const struct kl_ins *in = &f->ins[id];
        if (!in->blk.id || !in->type.id || p->group[id] != id)
            continue;
        if (in->op == KL_OP_param && f->type[in->type.id].kind == KL_T_ARRAY)
            continue; /* only views of it are used */
        size[id] = (value_bytes(p, (kl_val){id}) + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
        if (p->r->fixed[id]) {
            chain_add(&begin, 0, id);
        } else {
            chain_add(&begin, p->first[id], id);
            chain_add(&end, p->last[id], id);
        }
    }
    for (uint32_t pos = 0; pos <= p->pos; pos++) {
        for (uint32_t id = begin.head[pos]; id; id = begin.next[id])
            off[id] = take(p, size[id]);
        for (uint32_t id = end.head[pos]; id; id = end.next[id])
            give(p, off[id], size[id]);
    }
    char *slab = kl_alloc_zero(p->r->a, p->slab + ALIGN);
    slab += -(uintptr_t)slab & (ALIGN - 1);
    for (uint32_t id = 1; id < f->nins; id++)
        if (f->ins[id].blk.id && size[p->group[id]])
            p->r->place[id] = slab + off[p->group[id]];
}

void kl_place_values(struct kl_run *r)
{
    const kl_fn *f = r->f;
    struct placer p = {.r = r, .f = f, .a = r->a};
    r->place = kl_new_n(p.a, void *, f->nins);
    r->fixed = kl_new_n(p.a, uint8_t, f->nins);
    p.at = kl_new_n(p.a, uint32_t, f->nins);
    p.end = kl_new_n(p.a, uint32_t, f->nins);
    p.group = kl_new_n(p.a, uint32_t, f->nins);
    p.first = kl_new_n(p.a, uint32_t, f->nins);
    p.last = kl_new_n(p.a, uint32_t, f->nins);
    number(&p, KL_BODY);
    find_uses(&p);
    lay_out(&p);
}
