/* read.c - IR from text.
 *
 * A recursive-descent reader of the form that print.c writes (grammar in docs/ir.md).
 * White space and `;` comments mean nothing.  Value names are any word behind %, each
 * defined once.  What is read is verified: text that parses but is not sound is refused
 * in the same way, so a reader's caller always holds sound IR. */
#include "ir/reader.h"

/* ---- types and values ---- */

static enum kl_elem read_elem(struct reader *r)
{
    enum kl_elem e = r->kind == T_WORD ? kl_elem_by_name(r->s, r->n) : KL_elem_none;
    if (!e)
        kl_rd_fail(r, "an element type is missing");
    kl_rd_next(r);
    return e;
}

kl_typ kl_rd_type(struct reader *r)
{
    if (kl_rd_accept(r, "array")) {
        kl_rd_expect(r, "<");
        enum kl_elem e = read_elem(r);
        kl_rd_expect(r, ",");
        uint32_t rank = kl_rd_u32(r, KL_MAX_DIMS);
        kl_rd_expect(r, ">");
        return kl_array(r->f, e, rank);
    }
    enum kl_elem e = read_elem(r);
    uint32_t dim[KL_MAX_RANK], rank = 0;
    while (kl_rd_accept(r, "[")) {
        if (rank < KL_MAX_RANK)
            dim[rank++] = kl_rd_u32(r, UINT32_MAX);
        else
            kl_rd_fail(r, "a tile has at most %d axes", KL_MAX_RANK);
        kl_rd_expect(r, "]");
    }
    return kl_tile(r->f, e, rank, dim);
}

kl_val kl_rd_val(struct reader *r)
{
    if (r->kind != T_VAL)
        kl_rd_fail(r, "a value is missing");
    const uint32_t *id = kl_map_get(&r->names, r->s, r->n);
    if (!id)
        kl_rd_fail(r, "%.*s is not defined before this place", (int)r->n, r->s);
    kl_rd_next(r);
    return (kl_val){*id};
}

void kl_rd_vals(struct reader *r, struct vals *list)
{
    do {
        kl_val v = kl_rd_val(r);
        kl_push(r->a, &list->v, v);
    } while (kl_rd_accept(r, ","));
}

void kl_rd_define(struct reader *r, struct name at, kl_val v)
{
    bool isnew;
    uint32_t *id = kl_map_put(&r->names, at.s, at.n, &isnew);
    if (!isnew || at.n < 2) {
        r->s = at.s, r->n = at.n;
        kl_rd_fail(r, at.n < 2 ? "a value needs a name" : "%.*s is defined twice", (int)at.n, at.s);
    }
    *id = v.id;
}

/* ---- the function ---- */

static void read_head(struct reader *r)
{
    kl_build b = {.f = r->f, .blk = KL_BODY};
    kl_rd_expect(r, "(");
    while (r->kind == T_VAL) {
        struct kl_param p = {.decl = (uint16_t)r->f->nparam};
        struct name at = {r->s, r->n};
        kl_rd_next(r);
        kl_rd_expect(r, ":");
        kl_typ t = kl_rd_type(r);
        p.use = r->f->type[t.id].kind == KL_T_ARRAY ? KL_P_ARRAY : KL_P_SCALAR;
        p.elem = r->f->type[t.id].elem;
        p.rank = r->f->type[t.id].rank;
        if (r->kind != T_WORD)
            kl_rd_fail(r, "the name of the parameter is missing");
        p.name = kl_strndup(r->a, r->s, r->n);
        kl_rd_next(r);
        for (;;) {
            if (kl_rd_accept(r, "const"))
                p.isconst = true;
            else if (kl_rd_accept(r, "written"))
                p.written = true;
            else if (kl_rd_accept(r, "decl"))
                kl_rd_expect(r, "="), p.decl = (uint16_t)kl_rd_u32(r, UINT16_MAX);
            else
                break;
        }
        kl_param_add(r->f, p);
        kl_rd_define(r, at, kl_block_param(&b, t));
        if (!kl_rd_accept(r, ","))
            break;
    }
    kl_rd_expect(r, ")");
    for (;;) {
        if (kl_rd_accept(r, "may_alias"))
            r->f->may_alias = true;
        else if (kl_rd_accept(r, "fast"))
            r->f->fast = true;
        else if (kl_rd_accept(r, "warps"))
            kl_rd_expect(r, "="), r->f->warps = (int32_t)kl_rd_u32(r, INT32_MAX);
        else if (kl_rd_accept(r, "stages"))
            kl_rd_expect(r, "="), r->f->stages = (int32_t)kl_rd_u32(r, INT32_MAX);
        else if (kl_rd_accept(r, "cluster"))
            kl_rd_expect(r, "="), r->f->cluster = (int32_t)kl_rd_u32(r, INT32_MAX);
        else
            break;
    }
}

kl_fn *kl_ir_read(kl_arena *a, const kl_srcmap *src, uint32_t file, kl_diags *d)
{
    const struct kl_file *in = &src->files.v[file];
    struct reader r = {.a = a, .d = d, .text = in->text, .p = in->text,
                       .end = in->text + in->len, .base = in->base, .names = {.a = a}};
    kl_rd_next(&r);
    kl_rd_expect(&r, "fn");
    if (r.kind != T_WORD)
        kl_rd_fail(&r, "the name of the function is missing");
    r.f = kl_fn_new(a, kl_strndup(a, r.s, r.n));
    r.f->src = src;
    kl_rd_next(&r);
    read_head(&r);
    kl_rd_expect(&r, "{");
    kl_build b = {.f = r.f, .blk = KL_BODY};
    kl_rd_stmts(&r, &b);
    kl_rd_expect(&r, "}");
    if (r.kind != T_EOF)
        kl_rd_fail(&r, "the text goes on behind the function");

    kl_val where;
    const char *wrong = kl_ir_verify_at(r.f, a, &where);
    if (wrong) { /* the caret goes to the instruction */
        kl_span at = kl_in(r.f, where)->loc;
        r.s = in->text + (at.beg ? at.beg - in->base : 0);
        r.n = at.end - at.beg;
        kl_rd_fail(&r, "%s", wrong);
    }
    return r.f;
}
