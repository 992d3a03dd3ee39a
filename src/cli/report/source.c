/* source.c - a kernel for `kiln report` straight from its source: what explain says, with the
 * text, PTX, C, and pictures of tiles. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/explain/cmd.h"
#include "cli/json.h"
#include "cli/report/report.h"

enum { PICTURES = 6, EXCHANGES = 4 }; /* of a kernel at most */

/* ---- pictures of tiles ---- */

static void corner(json_t *j, const kl_tile_corner *c)
{
    json_t *dim = json_array();
    for (uint32_t i = 0; i < c->rank; i++)
        json_array_append_new(dim, json_integer(c->dim[i]));
    json_object_set_new(j, "dim", dim);
    json_object_set_new(j, "rows", json_integer(c->rows));
    json_object_set_new(j, "cols", json_integer(c->cols));
    json_object_set_new(j, "wrapped", json_boolean(c->wrapped));
}

/* Element (r, c) of either kind of grid; -1 where there is none. */
static json_t *grid(const kl_tile_corner *c, const uint32_t (*wide)[KL_TILE_SIDE],
                    const uint8_t (*narrow)[KL_TILE_SIDE])
{
    json_t *rows = json_array();
    for (uint32_t r = 0; r < c->rows; r++) {
        json_t *row = json_array();
        for (uint32_t i = 0; i < c->cols; i++) {
            json_int_t v = narrow ? narrow[r][i] : wide[r][i];
            json_array_append_new(row,
                                  json_integer(!narrow && wide[r][i] == KL_TILE_NOBODY ? -1 : v));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *holders(const kl_tile_holders *h)
{
    json_t *j = json_object();
    corner(j, &h->corner);
    json_object_set_new(j, "place", kl_json_place(&h->place));
    json_object_set_new(j, "kind", json_string(h->kind));
    json_object_set_new(j, "array", kl_json_text(h->array));
    json_object_set_new(j, "layout", kl_json_text(h->layout));
    json_object_set_new(j, "vec", json_integer(h->vec));
    json_object_set_new(j, "copies", json_boolean(h->copies));
    json_object_set_new(j, "reg", grid(&h->corner, h->reg, NULL));
    json_object_set_new(j, "lane", grid(&h->corner, NULL, h->lane));
    json_object_set_new(j, "warp", grid(&h->corner, NULL, h->warp));
    json_object_set_new(j, "cta", grid(&h->corner, NULL, h->cta));
    return j;
}

static json_t *request(const kl_tile_request *q)
{
    json_t *j = json_object(), *groups = json_array();
    json_object_set_new(j, "bytes", json_integer(q->bytes));
    json_object_set_new(j, "waves", json_integer(q->waves));
    json_object_set_new(j, "ideal", json_integer(q->ideal));
    for (uint32_t g = 0; g < q->groups; g++) {
        json_t *row = json_array();
        for (uint32_t b = 0; b < KL_TILE_BANKS; b++)
            json_array_append_new(row, json_integer(q->words[g][b]));
        json_array_append_new(groups, row);
    }
    json_object_set_new(j, "groups", groups);
    return j;
}

static json_t *way_of(const kl_tile_exchange *x, const kl_tile_banks *b)
{
    json_t *j = json_object();
    json_object_set_new(j, "name", json_string(b->name));
    json_object_set_new(j, "chosen", json_boolean(b->chosen));
    json_object_set_new(j, "bytes", json_integer(b->bytes));
    json_object_set_new(j, "store", json_integer((json_int_t)b->store));
    json_object_set_new(j, "load", json_integer((json_int_t)b->load));
    json_object_set_new(j, "first_store", request(&b->st));
    json_object_set_new(j, "first_load", request(&b->ld));
    json_object_set_new(j, "word", grid(&x->corner, b->word, NULL));
    json_object_set_new(j, "first", grid(&x->corner, NULL, b->first));
    return j;
}

/* As it is; row-major beside it, and beside row-major the swizzle. */
static json_t *exchange(const kl_tile_exchange *x)
{
    json_t *j = json_object(), *ways = json_array();
    corner(j, &x->corner);
    json_object_set_new(j, "place", kl_json_place(&x->place));
    json_object_set_new(j, "bytes", json_integer(x->bytes));
    json_object_set_new(j, "from", kl_json_text(x->from));
    json_object_set_new(j, "to", kl_json_text(x->to));
    for (uint32_t i = 0; i < KL_TILE_WAYS; i++)
        if (x->way[i].possible && (i == 0 || x->way[i].chosen || (i == 2 && x->way[0].chosen)))
            json_array_append_new(ways, way_of(x, &x->way[i]));
    json_object_set_new(j, "ways", ways);
    return j;
}

static json_t *tiles(kl_explained *e)
{
    json_t *j = json_object(), *h = json_array(), *x = json_array();
    const kl_tile_holders *a;
    const kl_tile_exchange *b;
    for (uint32_t i = 0; i < PICTURES && (a = kl_explain_holders(e, i)); i++)
        json_array_append_new(h, holders(a));
    for (uint32_t i = 0; i < EXCHANGES && (b = kl_explain_exchange(e, i)); i++)
        json_array_append_new(x, exchange(b));
    json_object_set_new(j, "holders", h);
    json_object_set_new(j, "exchanges", x);
    return j;
}

/* ---- the kernel ---- */

struct taking {
    struct kl_rep *r;
    json_t *list;
    char *path; /* of the source */
};

/* The C of the CPU; NULL where this launch has none. */
static char *c_text(struct kl_session *s, const struct kl_args *args)
{
    const kl_tool_emit_opts o = {.stage = "c", .level = s->opt.opt_level};
    char *text = NULL, *copy = NULL;
    kiln_diags *d = NULL;
    if (!kl_tool_emit(s->mod, args->k, args->arg, args->n, &o, &text, &d))
        copy = kl_xstrndup(text, strlen(text));
    kl_tool_free(s->ctx, text);
    kiln_diags_free(d);
    return copy;
}

static int take(void *user, struct kl_session *s, const struct kl_args *args, kl_explained *e,
                const kiln_diags *notes)
{
    struct taking *t = user;
    struct kl_rep *r = t->r;
    json_t *j = kl_explain_json(e, notes);
    r->k = kl_xgrow(r->k, sizeof *r->k, r->nk);
    free(t->path);
    t->path = kl_xprintf("%s", s->path);
    r->k[r->nk++] = (struct kl_rep_kernel){.j = j,
                                           .tuned_line = e->tuned_line,
                                           .source = kl_xstrndup(s->text, s->len),
                                           .ptx = kl_xstrndup(e->ptx, e->nptx),
                                           .c = c_text(s, args),
                                           .tiles = tiles(e)};
    json_array_append(t->list, j);
    return 0;
}

/* The constants beside the source, of which its kernels from number `first` on took some. */
static int tuned(struct kl_rep *r, const struct kl_opts *o, const char *source, size_t first)
{
    struct kl_msg m;
    char *path = kl_xprintf("%s.tune", source);
    int rc = 0;
    if (!kl_opt_given(o, KL_OPT_no_tune) && !access(path, F_OK)) {
        const char *name = kl_rep_read_tune(r, path, &m);
        rc = name ? 0 : kl_fail(m.rc, "%s", m.text);
        for (size_t i = first; i < r->nk && name; i++)
            r->k[i].tuned = r->k[i].tuned_line ? name : NULL;
    }
    free(path);
    return rc;
}

int kl_rep_source(struct kl_rep *r, const struct kl_opts *o)
{
    struct taking t = {r, json_array(), NULL};
    size_t first = r->nk;
    int rc = kl_explain_source(o, take, &t);
    json_t *root = json_pack("{s:s, s:O}", "schema", "kiln.explain/1", "kernels", t.list);
    json_decref(t.list);
    char *raw = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(7)) : NULL;
    if (!raw) {
        json_decref(root);
        free(t.path);
        return rc ? rc : kl_fail(KL_RC_ENV, "out of memory");
    }
    r->in = kl_xgrow(r->in, sizeof *r->in, r->nin);
    r->in[r->nin++] = (struct kl_rep_input){KL_REP_EXPLAIN, kl_xprintf("%s", o->arg[0]),
                                            kl_xprintf("%s", raw), root};
    free(raw);
    if (!rc && t.path)
        rc = tuned(r, o, t.path, first);
    free(t.path);
    return rc;
}
