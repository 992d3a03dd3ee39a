/* tell.c - findings of the interpreter as diagnostics: what, where, how often, what to do. */
#include "gen/interp/run.h"

const char *kl_subscripts(kl_arena *a, const int64_t *x, uint32_t n)
{
    kl_buf b = {.a = a};
    for (uint32_t i = 0; i < n; i++)
        x[i] == INT64_MAX ? kl_puts(&b, "[]") : kl_putf(&b, "[%lld]", (long long)x[i]);
    return kl_buf_str(&b);
}

const char *kl_program_text(const struct kl_run *r, int64_t p)
{
    const int64_t *g = r->l->grid;
    long long x = p % g[0], y = p / g[0] % g[1], z = p / g[0] / g[1];
    if (g[2] > 1)
        return kl_printf(r->a, "(%lld, %lld, %lld)", x, y, z);
    if (g[1] > 1)
        return kl_printf(r->a, "(%lld, %lld)", x, y);
    return kl_printf(r->a, "%lld", x);
}

/* "24 elements in 1 of 4 programs, first in program 3, lane 232 of 256" */
void kl_tell_where(const struct kl_run *r, const struct kl_finding *g, struct kl_diag *e,
                   bool lanes)
{
    const kl_fn *f = r->f;
    int64_t programs = r->l->grid[0] * r->l->grid[1] * r->l->grid[2];
    kl_buf b = {.a = r->a};
    if (lanes)
        kl_putf(&b, "%llu element%s in ", (unsigned long long)g->count, g->count == 1 ? "" : "s");
    kl_putf(&b, "%lld of %lld program%s; first in program %s", (long long)g->programs,
            (long long)programs, programs == 1 ? "" : "s", kl_program_text(r, g->program));
    if (lanes) {
        const struct kl_ins *in = kl_in(f, g->val);
        bool access = kl_ops[in->op].attr == KL_A_ACCESS;
        const struct kl_type *t = access ? kl_access_tile(f, g->val) : kl_type_of(f, g->val);
        if (t->rank)
            kl_putf(&b, ", lane %llu of %llu", (unsigned long long)g->lane,
                    (unsigned long long)kl_numel(t));
    }
    kl_note(e, (kl_span){0, 0}, "%s", kl_buf_str(&b));
}

/* Where a parameter is declared. */
static kl_span param_loc(const kl_fn *f, uint32_t root)
{
    kl_each_ins(f, KL_BODY, v)
    {
        if (kl_in(f, v)->op == KL_OP_param && kl_in(f, v)->attr.index == root)
            return kl_in(f, v)->loc;
    }
    return (kl_span){0, 0};
}

/* An access as words. */
struct telling {
    const char *name; /* of the array */
    const char *verb, *at, *ext;
    bool inner; /* through a view of a view: subscripts are its own, not the parameter's */
    bool atomic, write;
    uint32_t n; /* subscripts */
};

static struct telling words_of(const struct kl_run *r, const struct kl_finding *g)
{
    const kl_fn *f = r->f;
    const struct kl_ins *in = kl_in(f, g->val);
    struct telling t = {.atomic = kl_is_atomic(in->op),
                        .write = in->op == KL_OP_store || in->op == KL_OP_insert};
    t.n = in->op == KL_OP_view ? 0 : in->op == KL_OP_gather ? 1 : in->attr.access.n;
    t.name = g->root < f->nparam && f->param[g->root].name ? f->param[g->root].name : "?";
    t.verb = t.atomic ? "atomic reaches" : t.write ? "store writes" : "load reads";
    t.at = kl_subscripts(r->a, g->at, t.n);
    t.ext = kl_subscripts(r->a, g->ext, t.n);
    t.inner = t.n && g->root < f->nparam &&
              kl_in(f, kl_arg(f, kl_arg(f, g->val, 0), 0))->op == KL_OP_view;
    return t;
}

/* "y[3]", "[3] of a view of y" */
static const char *element_text(const struct kl_run *r, const struct telling *t)
{
    return kl_printf(r->a, "%s%s%s%s", t->inner ? "" : t->name, t->at, t->inner ? " of a view of " : "",
                     t->inner ? t->name : "");
}

static long long elements_of(const struct kl_run *r, uint32_t root)
{
    return (long long)(r->mem[root].last - r->mem[root].first + 1);
}

static struct kl_diag *tell_view(const struct kl_run *r, const struct kl_finding *g,
                                 const struct telling *t, kl_diags *d)
{
    if (!t->n)
        return kl_diag(d, g->code, g->loc,
                       "a view of %s is not inside its parent: it covers elements %lld to %lld, "
                       "the parent %lld to %lld",
                       t->name, (long long)g->span[0], (long long)g->span[1], (long long)g->outer[0],
                       (long long)g->outer[1]);
    return kl_diag(d, g->code, g->loc,
                   "%s outside %s: %s of a view with extents %s is element %lld of an array "
                   "of %lld",
                   t->verb, t->name, t->at, t->ext, (long long)g->off, elements_of(r, g->root));
}

static struct kl_diag *tell_access(const struct kl_run *r, const struct kl_finding *g,
                                   const struct telling *t, kl_diags *d)
{
    switch (g->code) {
    case KL_K1201:
    case KL_K1202:
        return kl_diag(d, g->code, g->loc, "%s outside %s%s: %s%s, the extents are %s", t->verb,
                       t->inner ? "a view of " : "", t->name, t->inner ? "" : t->name, t->at, t->ext);
    case KL_K1203:
        return kl_diag(d, g->code, g->loc, "%s outside %s: element %lld of an array of %lld", t->verb,
                       t->name, (long long)g->off, elements_of(r, g->root));
    case KL_K1204: return tell_view(r, g, t, d);
    case KL_K1303:
        return kl_diag(d, g->code, g->loc, "store writes %s more than once, with different values",
                       element_text(r, t));
    case KL_K1205:
        return kl_diag(d, g->code, g->loc, "%s outside a tile: %s, the sizes are %s",
                       t->write                                     ? "assignment writes"
                       : kl_in(r->f, g->val)->op == KL_OP_gather ? "gather reads"
                                                                    : "subscript reads",
                       t->at, t->ext);
    default:
        return kl_diag(d, g->code, g->loc, "%s %s, which nothing wrote", t->atomic ? "atomic reads" : t->verb,
                       element_text(r, t));
    }
}

/* What to do about it. */
static void help(const struct kl_run *r, const struct kl_finding *g, const struct telling *t,
                 struct kl_diag *e)
{
    const kl_span none = {0, 0};
    bool outside = g->code == KL_K1201 || g->code == KL_K1202;
    if (g->code == KL_K1401) {
        kl_note(e, param_loc(r->f, g->root), "%s came into the launch without a value", t->name);
        kl_note(e, none, "%s", kl_no_value_help(r->a, t->name));
    }
    if (t->atomic && outside)
        kl_note(e, none, "nothing happens there; if that is meant, write a mask");
    else if (g->code == KL_K1201)
        kl_note(e, none,
                "it reads 0; if that is meant, write load(..., 0), a mask, or test inside(...)");
    else if (g->code == KL_K1202)
        kl_note(e, none, "it is not written; if that is meant, write a mask or test inside(...)");
    else if (g->code == KL_K1203)
        kl_note(e, none,
                "%s is declared without an extent: declare one, and elements past it "
                "read 0 and are not written",
                t->name);
}

static void tell(struct kl_run *r, const struct kl_finding *g, kl_diags *d)
{
    switch (g->code) {
    case KL_K1301:
    case KL_K1302: kl_tell_race(r, g, d); return;
    case KL_K1304: kl_tell_order(r, g, d); return;
    case KL_K1601:
    case KL_K1607: kl_tell_arith(r, g, d); return;
    case KL_K1701: kl_tell_loop(r, g, d); return;
    case KL_K2702: kl_tell_padding(r, g, d); return;
    default: break;
    }
    struct telling t = words_of(r, g);
    struct kl_diag *e = tell_access(r, g, &t, d);
    kl_tell_where(r, g, e, t.n || g->code != KL_K1204);
    help(r, g, &t, e);
}

void kl_report(struct kl_run *r, kl_diags *d)
{
    for (uint32_t i = 0; i < r->found.n; i++)
        tell(r, &r->found.v[i], d);
    if (r->unseen)
        kl_diag(d, KL_K1305, (kl_span){0, 0}, "races were not looked for: the arrays that are written "
                                              "have too many elements");
}
