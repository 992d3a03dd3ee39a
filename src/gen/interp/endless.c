/* endless.c - loops that do not end.
 *
 * What a round of a while loop does depends on its carried values and on memory, and no other
 * program runs meanwhile.  If both are as they were some rounds before, the loop goes round for
 * ever.  The state is compared with a copy that is renewed at each power of two (Brent), so that
 * a cycle of any length is found.  A loop whose state goes on changing is given up after MOST
 * rounds, or much work. */
#include "gen/interp/run.h"

enum { FIRST = 64, MOST = 1 << 26 };
static const uint64_t most_work = UINT64_C(1) << 34; /* element-operations */

struct kl_carried *kl_carried_of(struct kl_run *r, kl_val loop)
{
    const kl_fn *f = r->f;
    struct kl_carried *c = kl_new(r->a, struct kl_carried);
    size_t all = 0;
    c->n = kl_in(f, loop)->nargs;
    c->v = kl_alloc_zero(r->a, (c->n + 1) * sizeof *c->v);
    for (uint32_t i = 0; i < c->n; i++) {
        kl_val p = kl_loop_carried(f, loop, i);
        const struct kl_type *t = kl_type_of(f, p);
        c->v[i].at = r->place[p.id];
        c->v[i].bytes = kl_numel(t) * kl_elems[t->elem].bytes;
        all += c->v[i].bytes;
    }
    c->copy = kl_alloc_zero(r->a, all + 1);
    return c;
}

static void copy_state(const struct kl_carried *c)
{
    char *to = c->copy;
    for (uint32_t i = 0; i < c->n; to += c->v[i++].bytes)
        memcpy(to, c->v[i].at, c->v[i].bytes);
}

static bool same_state(const struct kl_carried *c)
{
    const char *to = c->copy;
    for (uint32_t i = 0; i < c->n; to += c->v[i++].bytes)
        if (memcmp(to, c->v[i].at, c->v[i].bytes) != 0)
            return false;
    return true;
}

static bool found(struct kl_run *r, const struct kl_step *s, bool waits, uint64_t rounds)
{
    bool isnew;
    struct kl_finding *g = kl_found(r, s, KL_K1701, UINT32_MAX, 0, &isnew);
    if (isnew) {
        g->waits = waits;
        g->bits[0] = r->wild;
        g->bits[1] = rounds;
    }
    r->endless = true;
    return false;
}

bool kl_found_wrap(struct kl_run *r, const struct kl_step *s)
{
    return found(r, s, false, 0);
}

/* Does the loop read memory that another program could change? */
static bool reads(const kl_fn *f, kl_val loop)
{
    return kl_effect(f, loop).read != 0;
}

bool kl_do_while_checked(struct kl_run *r, const struct kl_step *s)
{
    const struct kl_carried *c = s->u.region.carried;
    uint64_t rounds = 0, renew = FIRST, changes = r->changes, before = r->spent;
    kl_run_moves(&s->u.region.start);
    for (;;) {
        if (!kl_run_steps(r, s->u.region.blk[0]))
            return false;
        if (!*(const kl_m_bool *)s->u.region.cond)
            return true;
        if (!kl_run_steps(r, s->u.region.blk[1]))
            return false;
        if (++rounds < FIRST)
            continue;
        if (rounds == renew) {
            copy_state(c);
            changes = r->changes;
            renew *= 2;
        } else if (changes == r->changes && same_state(c)) {
            return found(r, s, reads(r->f, s->val), rounds);
        }
        if (rounds == MOST || r->spent - before > most_work) {
            r->wild = true;
            return found(r, s, false, rounds);
        }
    }
}

void kl_tell_loop(struct kl_run *r, const struct kl_finding *g, kl_diags *d)
{
    kl_span none = {0, 0};
    struct kl_diag *x = kl_diag(d, g->code, g->loc, "this loop does not end");
    kl_tell_where(r, g, x, false);
    if (g->waits)
        kl_note(x, none, "it waits for memory to change, and a program may not wait for another: "
                         "nothing promises that the other runs%s",
                g->again ? " (found with the programs run from the last to the first)" : "");
    else if (g->bits[0])
        kl_note(x, none, "it was given up after %llu rounds", (unsigned long long)g->bits[1]);
    else if (kl_in(r->f, g->val)->op == KL_OP_for)
        kl_note(x, none, "its variable passes the largest value of its type and starts again below");
    else
        kl_note(x, none, "after a round everything is as it was before one");
}
