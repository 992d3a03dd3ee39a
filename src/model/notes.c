/* notes.c - the rules: what of a model deserves a word.
 *
 * Each says at a source place what happens, why, what to do, and what it would gain at most:
 * 1 - ideal / actual of the resource that it is about.  Each place is named once a rule. */
#include <stdio.h>

#include "ir/pad.h"
#include "model/run.h"
#include "model/time.h"

static const kl_span nowhere = {0, 0};
enum { NUMBER = 32 };

struct said {
    uint32_t note; /* number of the diagnostic */
    uint32_t more; /* instances that are not shown */
};

struct noter {
    const kl_model *m;
    const kl_model_in *in;
    const struct mrun *r;
    const kl_fn *f;
    kl_diags *d;
    const kl_note_opts *o; /* NULL: none */
    kl_map said; /* (rule, place) -> index of what was said */
    KL_VEC(struct said) list;
    uint64_t sectors, apart; /* of all accesses: as warps ask for them; as they pass the L1 cache */
    bool loops;  /* the kernel has some */
};

/* Is this instance of a finding to be told?  Of those at one place the first, or all of them. */
static bool once(struct noter *n, enum kl_code code, kl_span at)
{
    const uint32_t key[2] = {(uint32_t)code, at.beg};
    bool isnew;
    uint32_t *i = kl_map_put(&n->said, key, sizeof key, &isnew);
    if (isnew) {
        *i = n->list.n;
        kl_push(n->r->a, &n->list, ((struct said){.note = n->d->list.n}));
    }
    bool all = n->o && n->o->all;
    n->list.v[*i].more += !isnew && !all;
    return isnew || all;
}

/* How many instances were left out is known when all have been looked at. */
static void count_instances(struct noter *n)
{
    for (uint32_t i = 0; i < n->list.n; i++)
        if (n->list.v[i].more)
            kl_note(n->d->list.v[n->list.v[i].note], nowhere,
                    "%u more like it in the code made of this place (--all shows each)",
                    n->list.v[i].more);
}

/* What less work for a part of the GPU, a share of it, means for the time of the kernel. */
static void time_gain(struct noter *n, struct kl_diag *g, enum kl_busy part, double share)
{
    if (!n->o || !n->o->times || share <= 0)
        return;
    kl_times then = *n->o->times;
    then.us[part] *= 1 - share;
    kl_note(g, nowhere, "%s", kl_times_text(n->r->a, n->o->times, &then));
}

/* Of an access to an array: where it is executed, and how often. */
static void instance(struct kl_diag *g, const kl_model_access *a)
{
    if (a->first)
        kl_note(g, nowhere, "executed %llu times by programs, %llu requests; the first: %s",
                (unsigned long long)a->runs, (unsigned long long)a->t.requests, a->first);
}

/* Of all accesses at the place, unless each is told by itself. */
static void sectors_gain(struct noter *n, struct kl_diag *g, const kl_model_access *of)
{
    double less = 0;
    for (uint32_t i = 0; i < n->m->access.n; i++) {
        const kl_model_access *a = &n->m->access.v[i];
        if (a == of || (a->loc.beg == of->loc.beg && !(n->o && n->o->all)))
            less += a->t.apart > a->t.ideal ? (double)(a->t.apart - a->t.ideal) : 0;
    }
    if (n->apart)
        time_gain(n, g, KL_BUSY_L2, less / (double)n->apart);
}

/* "5", "4.5" */
static const char *ratio(double x, char buf[NUMBER])
{
    snprintf(buf, NUMBER, x - (double)(uint64_t)x < 0.05 ? "%.0f" : "%.1f", x);
    return buf;
}

static const char *bytes(double x, char buf[NUMBER])
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    uint32_t u = 0;
    while (x >= 1024 && u < 4)
        x /= 1024, u++;
    snprintf(buf, NUMBER, u ? "%.1f %s" : "%.0f %s", x, unit[u]);
    return buf;
}

static double percent(uint64_t ideal, uint64_t actual)
{
    return actual ? 100.0 * (1.0 - (double)ideal / (double)actual) : 0;
}

static const char *noun(const kl_model_access *a)
{
    static const char *const word[] = {"load", "store", "atomic"};
    return word[a->dir];
}

static void gain(struct kl_diag *g, double p, const char *of)
{
    kl_note(g, nowhere, "expected gain: up to %.0f%% of %s", p, of);
}

/* ---- global memory ---- */

/* A pitch of the array, or its base, that is no multiple of a sector; 0: all are. */
static int64_t odd_pitch(const struct noter *n, const kl_model_access *a)
{
    const kl_model_param *p = &n->in->param[a->param];
    int64_t es = kl_elems[a->elem].bytes;
    for (int32_t d = 0; d + 1 < p->rank; d++)
        if (p->ext[d] > 1 && p->str[d] * es % 32)
            return p->str[d] * es;
    return 0;
}

static void misaligned(struct noter *n, const kl_model_access *a)
{
    const kl_model_param *p = &n->in->param[a->param];
    int64_t pitch = odd_pitch(n, a), es = kl_elems[a->elem].bytes;
    char is[NUMBER], best[NUMBER];
    if (!once(n, KL_K2103, a->loc))
        return;
    double r = (double)(a->t.requests ? a->t.requests : 1);
    struct kl_diag *g =
        kl_diag(n->d, KL_K2103, a->loc, "misaligned rows: %s sectors a request, %s would do",
                ratio((double)a->t.units / r, is), ratio((double)a->t.ideal / r, best));
    if (pitch) {
        int64_t up = (pitch < 0 ? -pitch : pitch) / 32 * 32 + 32;
        kl_note(g, nowhere,
                "the pitch of `%s` is %lld bytes, no multiple of 32: rows begin inside sectors",
                a->name, (long long)pitch);
        kl_note(
            g, nowhere,
            "help: allocate `%s` with a pitch of %lld elements (%lld bytes) and declare it by stride(...)",
            a->name, (long long)(up / es), (long long)up);
    } else {
        kl_note(g, nowhere, "`%s` begins %llu bytes behind a multiple of 32", a->name,
                (unsigned long long)(p->base % 32));
        kl_note(g, nowhere, "help: give an array that begins at a multiple of 32 bytes");
    }
    instance(g, a);
    gain(g, percent(a->t.ideal, a->t.units), "the sectors of this access");
    sectors_gain(n, g, a);
}

/* The section along the last dimension, where the access has one along another: x[i][j:64]. */
static const char *along_last(const struct noter *n, const kl_model_access *a)
{
    const kl_fn *f = n->f;
    uint32_t rank = kl_type_of(f, kl_arg(f, a->at, 0))->rank, axes = 0;
    const struct kl_type *t = kl_access_tile(f, a->at);
    for (uint32_t d = 0; d < rank; d++)
        axes += kl_access_step(f, a->at, d) != 0;
    if (axes != 1 || rank < 2 || t->rank != 1 || kl_access_step(f, a->at, rank - 1))
        return NULL;
    kl_buf b = {.a = f->a};
    kl_puts(&b, a->name);
    for (uint32_t d = 0; d + 1 < rank; d++)
        kl_putf(&b, "[%c]", (int)('i' + d));
    kl_putf(&b, "[%c:%u]", (int)('i' + rank - 1), t->dim[0]);
    return kl_buf_str(&b);
}

/* Does a value depend on what a program read? */
static bool from_data(const struct noter *n, kl_val v, uint32_t depth)
{
    const kl_fn *f = n->f;
    const struct kl_ins *in = kl_in(f, v);
    if (kl_ops[in->op].flags & (KL_F_READ | KL_F_REGION) || in->op == KL_OP_result || !depth)
        return true;
    for (uint32_t i = 0; i < in->nargs; i++)
        if (from_data(n, kl_arg(f, v, i), depth - 1))
            return true;
    return false;
}

static bool computed_indices(const struct noter *n, const kl_model_access *a)
{
    const kl_fn *f = n->f;
    for (uint32_t d = 0, rank = kl_type_of(f, kl_arg(f, a->at, 0))->rank; d < rank; d++)
        if (kl_access_index(f, a->at, d) && from_data(n, kl_arg(f, a->at, 1 + d), 20))
            return false;
    return true;
}

/* The step of a section along the last dimension, where elements lie side by side; 0: there is none. */
static int64_t step_along_last(const struct noter *n, const kl_model_access *a)
{
    const kl_fn *f = n->f;
    const kl_model_param *p = &n->in->param[a->param];
    uint32_t rank = kl_type_of(f, kl_arg(f, a->at, 0))->rank;
    int64_t step = rank ? kl_access_step(f, a->at, rank - 1) : 0;
    if ((uint32_t)p->rank != rank || p->str[rank - 1] != 1 || (step < 2 && step > -1))
        return 0;
    return step;
}

static void remedy(const struct noter *n, const kl_model_access *a, struct kl_diag *g)
{
    const struct kl_type *t = kl_access_tile(n->f, a->at);
    int64_t step = step_along_last(n, a);
    if (kl_access_indices(n->f, a->at) && computed_indices(n, a))
        kl_note(g, nowhere, "help: write a section instead, x[first:count:step], where one says the same");
    else if (kl_access_indices(n->f, a->at) && a->dir == KL_MODEL_ATOMIC)
        kl_note(g, nowhere, "help: sort or group the indices; what goes to one place can be folded in the "
                            "program first, and the result be added");
    else if (kl_access_indices(n->f, a->at))
        kl_note(
            g, nowhere,
            "help: sort or group the indices, or let each index fetch a whole row: x[index][0:N]");
    else if (a->contiguous && a->vec == 1 && a->lane_bytes > a->width)
        kl_note(g, nowhere,
                "help: let it move several at once: without a mask, and with what K2102 names");
    else if (step > 1)
        kl_note(g, nowhere,
                "help: a step of %lld leaves out what other sections take: declare groups of %lld as the "
                "last dimension of `%s`, load them whole, [0:%u][0:%lld], and choose in the tile",
                (long long)step, (long long)step, a->name, t->dim[t->rank - 1], (long long)step);
    else if (step == -1)
        kl_note(g, nowhere, "help: %s it forwards from a multiple on, and flip() the tile", noun(a));
    else if (!a->contiguous && along_last(n, a))
        kl_note(g, nowhere,
                "help: let lanes walk along the dimension of `%s` whose elements lie side by side, with a "
                "section like %s, and loop over the other one",
                a->name, along_last(n, a));
    else if (!a->contiguous)
        kl_note(g, nowhere,
                "help: let lanes walk along the dimension of `%s` whose elements lie side by side: "
                "it has to be the last axis of the tile",
                a->name);
    else
        kl_note(
            g, nowhere,
            "help: make the tile's last axis longer, at least 32 bytes of neighbours that begin at a "
            "multiple of 32 bytes");
}

static void uncoalesced(struct noter *n, const kl_model_access *a)
{
    char is[NUMBER], best[NUMBER], moved[NUMBER], of[NUMBER];
    if (!once(n, KL_K2101, a->loc))
        return;
    double r = (double)a->t.requests, p = percent(a->t.ideal, a->t.apart);
    struct kl_diag *g = kl_diag(
        n->d, KL_K2101, a->loc,
        "uncoalesced %s: %s sectors a request, %s would do (%.0f%% of the traffic is waste)",
        noun(a), ratio((double)a->t.units / r, is), ratio((double)a->t.ideal / r, best), p);
    const struct kl_type *t = kl_access_tile(n->f, a->at);
    if (kl_access_indices(n->f, a->at))
        kl_note(g, nowhere, "an index tile says where each element lies, and they lie apart%s",
                computed_indices(n, a) ? ": it is computed, so each is moved alone" : "");
    else if (a->contiguous && a->vec == 1 && a->lane_bytes > a->width)
        kl_note(g, nowhere,
                "each lane holds neighbours and moves them one by one: lanes are %lld bytes apart",
                (long long)a->lane_bytes);
    else if (!a->contiguous && a->lane_bytes)
        kl_note(g, nowhere, "neighbouring lanes are %lld bytes apart in `%s`",
                (long long)a->lane_bytes, a->name);
    else if (t->rank > 1)
        kl_note(g, nowhere,
                "a row of the tile is %llu bytes long, and the next one lies %lld bytes further",
                (unsigned long long)t->dim[t->rank - 1] * kl_elems[a->elem].bytes,
                (long long)a->pitch);
    else
        kl_note(g, nowhere, "the section begins or ends inside sectors");
    if (a->t.apart < a->t.units)
        kl_note(g, nowhere, "%s of them are new to the block, the others lie in its L1 cache by then",
                ratio((double)a->t.apart / r, is));
    kl_note(g, nowhere, "moves up to %s for %s of data if nothing more is cached",
            bytes(32.0 * (double)a->t.apart, moved), bytes((double)a->t.bytes, of));
    remedy(n, a, g);
    instance(g, a);
    gain(g, percent(a->t.ideal, a->t.units), "the sectors of this access");
    sectors_gain(n, g, a);
}

/* Of the instructions, the part that an access's requests are. */
static double requests_share(const struct noter *n, const kl_model_access *a)
{
    double all = (double)n->m->instructions;
    return all > (double)a->t.requests ? (double)a->t.requests / all : 0;
}

static void narrow(struct noter *n, const kl_model_access *a)
{
    static const char *const help[] = {
        [KL_NARROW_FACTS] =
            "choose such sizes, or a pitch declared by stride(...); lanes move 16 bytes once that "
            "holds for all arrays of the launch",
        [KL_NARROW_VIEW] =
            "declare the part as an array of its own, or take it by a section of the parameter",
        [KL_NARROW_START] =
            "let sections begin at multiples that the compiler sees: i * BLOCK, or x / 4 * 4",
        [KL_NARROW_MASK] =
            "declare the extents, and drop the mask: what lies outside is left out anyway",
        [KL_NARROW_SMALL] = "give a program more elements, or fewer warps: warps(...)",
        [KL_NARROW_STRIDE] =
            "declare it dense along the last dimension, stride(pitch, 1), in a kernel of its own",
        [KL_NARROW_LAYOUT] =
            "store the value without an exchange of axes before it, or transpose it in a step of its own",
    };
    if (a->narrow < KL_NARROW_FACTS || !a->contiguous ||
        (a->narrow == KL_NARROW_SMALL && a->width > 4) || !once(n, KL_K2102, a->loc))
        return;
    struct kl_diag *g =
        kl_diag(n->d, KL_K2102, a->loc, "narrow %s: %u bytes a lane, 16 could be moved at once",
                noun(a), a->width);
    static const char *const why[] = {
        [KL_NARROW_VIEW] = "nothing is known of where an array begins that the kernel makes",
        [KL_NARROW_MASK] = "a mask is looked at element by element",
        [KL_NARROW_SMALL] = "the tile has too few elements for 16 bytes in each thread",
        [KL_NARROW_STRIDE] = "a stride is a value of the launch",
        [KL_NARROW_LAYOUT] = "a thread does not hold neighbours of the last axis",
    };
    kl_note(g, nowhere, "%s",
            a->fact          ? a->fact
            : why[a->narrow] ? why[a->narrow]
                             : "a fact of the launch is missing");
    const struct kl_type *t = kl_access_tile(n->f, a->at);
    uint64_t want = 16u / kl_elems[a->elem].bytes * UINT64_C(32);
    if (a->narrow == KL_NARROW_SMALL && kl_numel(t) < want)
        kl_note(g, nowhere, "help: give a program more elements: a warp takes %llu",
                (unsigned long long)want);
    else if (a->narrow == KL_NARROW_START && a->shift)
        kl_note(g, nowhere, "help: load a wider tile from a multiple on and take its parts, t[0:R][1:C]; "
                            "or leave it: what shifted sections share comes from the caches");
    else
        kl_note(g, nowhere, "help: %s", help[a->narrow]);
    instance(g, a);
    if (a->dir == KL_MODEL_LOAD && a->t.units >= 2 * a->t.apart && a->t.requests) {
        char is[NUMBER], of[NUMBER];
        kl_note(g, nowhere,
                "%s of the %s sectors of a request are new to the block, the others lie in its L1 cache by "
                "then: they take its cycles, and nothing of memory",
                ratio((double)a->t.apart / (double)a->t.requests, is),
                ratio((double)a->t.units / (double)a->t.requests, of));
    }
    gain(g, percent(a->width, 16), "the instructions of this access (its bytes stay the same)");
    time_gain(n, g, KL_BUSY_ISSUE, requests_share(n, a) * (1 - a->width / 16.0));
}

static void access(struct noter *n, const kl_model_access *a)
{
    bool much = a->t.units * 10 >= n->sectors;
    if (a->empty && a->dir == KL_MODEL_LOAD && n->m->counted == n->m->programs &&
        once(n, KL_K2602, a->loc)) {
        struct kl_diag *g = kl_diag(n->d, KL_K2602, a->loc,
                                    "load for nothing: no element of it lies inside `%s`", a->name);
        kl_note(g, nowhere, "help: skip it for these shapes, or look at where the section begins");
        gain(g, 100, "the instructions of this access");
    }
    if (a->mask_true && a->exact && a->dir != KL_MODEL_ATOMIC && once(n, KL_K2601, a->loc)) {
        struct kl_diag *g =
            kl_diag(n->d, KL_K2601, a->loc,
                    "needless mask: it is true for every element inside `%s`", a->name);
        kl_note(g, nowhere, "so it was in all programs of this launch (%llu)",
                (unsigned long long)n->m->programs);
        kl_note(
            g, nowhere,
            "help: drop the mask where that always holds; elements outside the extents are left out "
            "without one");
        instance(g, a);
        gain(g, percent(a->width, 16),
             "the instructions of this access, if it then moves 16 bytes a lane");
    }
    if (!much || !a->t.units)
        return;
    /* Sectors that a block asks for more than once cost its L1 cache cycles, and memory nothing. */
    bool excess = a->t.apart > a->t.ideal && (a->t.apart - a->t.ideal) * 4 >= a->t.apart;
    bool odd = a->contiguous && (odd_pitch(n, a) || n->in->param[a->param].base % 32) &&
               a->t.units > a->t.ideal && a->t.units <= a->t.ideal + a->t.requests;
    if (odd)
        misaligned(n, a);
    else if (excess)
        uncoalesced(n, a);
    narrow(n, a);
}

/* ---- shared memory ---- */

static void conflict(struct noter *n, const kl_model_shared *s)
{
    uint64_t all = n->m->sload.units + n->m->sstore.units + n->m->push.units;
    char is[NUMBER], best[NUMBER];
    if (!s->t.ideal || s->t.units < 2 * s->t.ideal || s->t.units * 10 < all ||
        !once(n, KL_K2203, s->loc))
        return;
    double r = (double)s->t.requests;
    uint32_t way = (uint32_t)((double)s->worst * (double)s->t.requests / (double)s->t.ideal + 0.5);
    struct kl_diag *g = kl_diag(
        n->d, KL_K2203, s->loc, "%u-way bank conflict: %s wavefronts a request, %s would do", way,
        ratio((double)s->t.units / r, is), ratio((double)s->t.ideal / r, best));
    kl_note(g, nowhere, "a %s of %u bytes a lane, in an exchange through shared memory",
            s->push ? "store to other blocks" : s->store ? "store" : "load", s->width);
    if (s->plain)
        kl_note(g, nowhere,
                "wavefronts of this side: row-major %llu, padded %llu, swizzled %llu; taken: %s",
                (unsigned long long)s->plain, (unsigned long long)s->padded,
                (unsigned long long)s->swizzled, s->chosen);
    if (n->in->ptx->no_swizzle && s->plain)
        kl_note(
            g, nowhere,
            "help: swizzle (the default), or a padded pitch; this kernel was compiled with --no-swizzle");
    else
        kl_note(
            g, nowhere,
            "help: the compiler lays tiles out in shared memory; another tile shape or number of warps "
            "changes what lanes access together");
    kl_note(g, nowhere, "executed %llu times by programs, %llu requests", (unsigned long long)s->runs,
            (unsigned long long)s->t.requests);
    gain(g, percent(s->t.ideal, s->t.units), "the wavefronts of this access");
    double less = 0; /* of both sides of an exchange, unless each is told by itself */
    for (uint32_t i = 0; i < n->m->shared.n; i++) {
        const kl_model_shared *x = &n->m->shared.v[i];
        if (x == s || (x->loc.beg == s->loc.beg && !(n->o && n->o->all)))
            less += x->t.units > x->t.ideal ? (double)(x->t.units - x->t.ideal) : 0;
    }
    time_gain(n, g, KL_BUSY_SHARED, less / (double)all);
}

/* ---- arithmetic ---- */

static void dots(struct noter *n)
{
    for (uint32_t i = 0; i < n->m->dot.n; i++) {
        const kl_model_dot *t = &n->m->dot.v[i];
        if (t->tensor || !t->miss || !once(n, KL_K2501, t->loc))
            continue;
        struct kl_diag *g =
            kl_diag(n->d, KL_K2501, t->loc, "this product would miss tensor cores: %s", t->miss);
        kl_note(g, nowhere, "%u x %u x %u of %s onto %s", t->m, t->n, t->k, kl_elems[t->elem].name,
                kl_elems[t->acc].name);
        kl_note(
            g, nowhere,
            "this version runs every product on CUDA cores, whatever its types and sizes: to change them "
            "brings nothing today");
        kl_note(g, nowhere,
                "help: what has the form for tensor cores is f16 or bf16 operands with an f32 sum, rows a "
                "multiple of 16, columns of 8, an inner size of 16");
        kl_note(g, nowhere,
                "expected gain: none in this version; the two peaks differ by some 15 times on an H200 "
                "(datasheet: 67 against 989 TFLOP/s)");
    }
}

static bool is_division(enum kl_op op)
{
    return op == KL_OP_div || op == KL_OP_rem || op == KL_OP_cdiv || op == KL_OP_floordiv ||
           op == KL_OP_floormod;
}

static bool is_const(const kl_fn *f, kl_val v)
{
    while (kl_in(f, v)->op == KL_OP_broadcast || kl_in(f, v)->op == KL_OP_reshape)
        v = kl_arg(f, v, 0);
    return kl_in(f, v)->op == KL_OP_const;
}

static void divided(struct noter *n, kl_val v)
{
    const struct kl_ins *in = kl_in(n->f, v);
    if (!is_division((enum kl_op)in->op) || !kl_is_int((enum kl_elem)kl_type_of(n->f, v)->elem) ||
        is_const(n->f, kl_arg(n->f, v, 1)) || !once(n, KL_K2502, in->loc))
        return;
    uint32_t wide = kl_elems[kl_type_of(n->f, v)->elem].bytes == 8;
    struct kl_diag *g =
        kl_diag(n->d, KL_K2502, in->loc, "%s by a value of the launch %s",
                in->op == KL_OP_rem || in->op == KL_OP_floormod ? "remainder" : "quotient",
                n->loops ? "in an innermost loop" : "for each element");
    kl_note(
        g, nowhere,
        "it is executed %llu times in all programs; some %u instructions for each element of a thread",
        (unsigned long long)kl_model_times(n->r, v), wide ? 100 : 20);
    kl_note(
        g, nowhere,
        "help: make the divisor constexpr, %s",
        n->loops ? "count in two nested loops, or divide before the loop"
                 : "or let program_id and sections over several dimensions count, which need no quotient");
    gain(g, 100, "these instructions");
}

/* Tiles of 64-bit numbers that never need them. */
static void wide(struct noter *n, kl_val v)
{
    const struct kl_ins *in = kl_in(n->f, v);
    const struct kl_type *t = kl_type_of(n->f, v);
    const struct mval *m = &n->r->val[v.id];
    if (!(kl_ops[in->op].flags & KL_F_EW) || t->rank == 0 || t->elem != KL_i64 ||
        in->op == KL_OP_convert || !m->needed || m->fixed || !m->known ||
        n->r->most[v.id] >= UINT64_C(1) << 31 || n->m->counted != n->m->programs ||
        !once(n, KL_K2503, in->loc))
        return;
    struct kl_diag *g =
        kl_diag(n->d, KL_K2503, in->loc, "a tile of 64-bit indices in an innermost loop");
    kl_note(g, nowhere, "no number in it was above %llu in this launch: 32 bits hold it",
            (unsigned long long)n->r->most[v.id]);
    kl_note(g, nowhere, "help: compute it in i32 and convert it where it is used as an index");
    gain(g, 50, "these instructions");
}

static bool has_loop(const kl_fn *f, kl_blk b)
{
    kl_each_ins (f, b, v) {
        kl_blk own[2];
        uint16_t op = kl_in(f, v)->op;
        if (op == KL_OP_for || op == KL_OP_while)
            return true;
        for (uint32_t i = 0, n = kl_is_fold(f, v) ? 0 : kl_blocks(f, v, own); i < n; i++)
            if (has_loop(f, own[i]))
                return true;
    }
    return false;
}

/* Branches in the block of a fold: its values differ from lane to lane. */
static void part(struct noter *n, kl_blk b)
{
    const kl_fn *f = n->f;
    kl_each_ins (f, b, v) {
        const struct kl_ins *in = kl_in(f, v);
        kl_blk own[2];
        bool branch = in->op == KL_OP_if || in->op == KL_OP_for || in->op == KL_OP_while;
        bool same = in->op == KL_OP_for && is_const(f, kl_arg(f, v, 0)) &&
                    is_const(f, kl_arg(f, v, 1)) && is_const(f, kl_arg(f, v, 2));
        if (branch && !same && once(n, KL_K2701, in->loc)) {
            struct kl_diag *g = kl_diag(n->d, KL_K2701, in->loc, "lanes of a warp part at this %s",
                                        in->op == KL_OP_if ? "branch" : "loop");
            kl_note(g, nowhere, "in the function of a fold each lane has operands of its own; %s",
                    in->op == KL_OP_if ? "a warp executes both sides"
                                       : "a warp goes round as often as its slowest lane");
            kl_note(g, nowhere, "help: choose between values, c ? a : b, instead of branching");
            if (in->op == KL_OP_if)
                gain(g, 50, "the instructions behind it");
            else
                gain(g, 97, "the instructions behind it, where one lane of 32 goes round alone; how "
                            "alike lanes are is data");
        }
        for (uint32_t i = 0, k = kl_blocks(f, v, own); i < k; i++)
            part(n, own[i]);
    }
}

static void walk(struct noter *n, kl_blk b, bool inner)
{
    const kl_fn *f = n->f;
    kl_each_ins (f, b, v) {
        kl_blk own[2];
        const struct kl_ins *in = kl_in(f, v);
        if (!n->r->runs[0][v.id] && !n->r->runs[1][v.id])
            continue;
        if (kl_is_fold(f, v)) {
            part(n, in->attr.redfn.blk);
            continue;
        }
        if (in->type.id && kl_type_of(f, v)->kind == KL_T_TILE) {
            if (inner || (!n->loops && kl_type_of(f, v)->rank))
                divided(n, v);
            if (inner)
                wide(n, v);
        }
        bool loop = in->op == KL_OP_for || in->op == KL_OP_while;
        for (uint32_t i = 0, k = kl_blocks(f, v, own); i < k; i++)
            walk(n, own[i], loop ? !has_loop(f, own[k - 1]) : inner);
    }
}

/* ---- what the passes removed ---- */

static void live(const kl_fn *f, bool *is, kl_val v)
{
    if (is[v.id])
        return;
    is[v.id] = true;
    const struct kl_ins *in = kl_in(f, v);
    for (uint32_t i = 0; i < in->nargs; i++)
        live(f, is, kl_arg(f, v, i));
    if (in->op == KL_OP_result)
        live(f, is, in->attr.result.of);
    kl_blk own[2];
    for (uint32_t i = 0, n = kl_blocks(f, v, own); i < n; i++)
        if (kl_last(f, own[i]).id)
            live(f, is, kl_last(f, own[i]));
}

static void dead_loads(struct noter *n)
{
    const kl_fn *f = n->in->plain;
    if (!f)
        return;
    bool *is = kl_new_n(n->r->a, bool, f->nins);
    for (uint32_t i = 1; i < f->nins; i++) /* what cannot be removed, and all that it needs */
        if (f->ins[i].blk.id && kl_ops[f->ins[i].op].flags & (KL_F_WRITE | KL_F_PIN))
            live(f, is, (kl_val){i});
    for (uint32_t i = 1; i < f->nins; i++) {
        kl_val v = {i};
        const struct kl_ins *in = kl_in(f, v);
        if (!in->blk.id || in->op != KL_OP_load || is[i] || !once(n, KL_K2602, in->loc))
            continue;
        struct kl_diag *g =
            kl_diag(n->d, KL_K2602, in->loc, "load for nothing: what is read from `%s` is not used",
                    f->param[kl_root(f, kl_arg(f, v, 0))].name);
        kl_note(g, nowhere, "help: remove it; the compiler leaves it out");
        kl_note(g, nowhere, "expected gain: none, it is not in the code");
    }
}

/* ---- folds over padding (ir/pad.c) ---- */

static void no_gain(void *user, struct kl_diag *g)
{
    (void)user;
    kl_note(g, nowhere, "expected gain: none in time; the result is another one");
}

static void padding(struct noter *n)
{
    const kl_fn *f = n->f;
    uint8_t *out = kl_new_n(n->r->a, uint8_t, f->nins), *ran = kl_new_n(n->r->a, uint8_t, f->nins);
    for (uint32_t id = 1; id < f->nins; id++) {
        ran[id] = n->r->runs[0][id] || n->r->runs[1][id];
        if (f->ins[id].op != KL_OP_load)
            continue;
        bool row = kl_type_of(f, (kl_val){id})->rank == 1;
        for (const struct maccess *a = n->r->at[id]; a; a = a->next)
            out[id] |= (uint8_t)(a->outside | (a->mask_false && row));
    }
    kl_pad_in in = {.f = f, .a = n->r->a, .out = out, .ran = ran, .data = kl_data_of(n->r->a, f)};
    kl_pad_notes(&in, n->d, no_gain, NULL);
}

void kl_model_notes(const kl_model *m, const kl_model_in *in, const kl_note_opts *o, kl_diags *d)
{
    struct noter noter =
                     {.m = m, .in = in, .r = m->run, .f = in->f, .d = d, .o = o, .said = {.a = in->f->a}},
                 *n = &noter;
    n->sectors = m->gload.units + m->gstore.units + m->atomic.units;
    n->apart = m->gload.apart + m->gstore.apart + m->atomic.apart;
    for (uint32_t i = 0; i < m->access.n; i++)
        access(n, &m->access.v[i]);
    for (uint32_t i = 0; i < m->shared.n; i++)
        conflict(n, &m->shared.v[i]);
    dots(n);
    n->loops = has_loop(in->f, KL_BODY);
    walk(n, KL_BODY, false);
    dead_loads(n);
    count_instances(n);
    padding(n);
}
