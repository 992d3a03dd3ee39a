/* output.c - arrays that are written to files.
 *
 * A .npy file holds one array, a .safetensors file any number; there those of larger elements come
 * first, so that each is aligned.  All files are complete before the first one gets its name. */
#include "cli/output.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/safetensors.h"

bool kl_outputs_wants(const struct kl_outputs *o, size_t stage, const char *name)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->v[i].stage == stage && strcmp(o->v[i].name, name) == 0)
            return true;
    return false;
}

static size_t file_of(struct kl_outputs *o, char *path)
{
    for (size_t i = 0; i < o->nfile; i++)
        if (strcmp(o->file[i].path, path) == 0) {
            free(path);
            return i;
        }
    o->file = kl_xgrow(o->file, sizeof *o->file, o->nfile);
    o->file[o->nfile] = (struct kl_outfile){.path = path, .fd = -1};
    return o->nfile++;
}

bool kl_outputs_add(struct kl_outputs *o, const char *text, size_t stage, struct kl_msg *m)
{
    struct kl_assign a;
    size_t len;
    const char *tensor = NULL;
    if (!kl_assign_split(text, &a))
        return kl_msg(m, KL_RC_USAGE, "-o %s: it must be NAME=FILE, as in y=y.npy", text);
    bool st = kl_st_path(a.value, &len, &tensor);
    o->v = kl_xgrow(o->v, sizeof *o->v, o->n);
    struct kl_output *p = &o->v[o->n];
    *p = (struct kl_output){.name = (char *)a.name, .stage = stage};
    p->file = file_of(o, kl_xstrndup(a.value, st ? len : strlen(a.value)));
    if (st)
        p->tensor = tensor ? kl_xstrndup(tensor, strlen(tensor)) : kl_xprintf("%s", p->name);
    o->n++;
    for (size_t i = 0; i + 1 < o->n; i++) {
        const struct kl_output *q = &o->v[i];
        bool place = q->file == p->file && (!st || strcmp(q->tensor, p->tensor) == 0);
        if (place || (q->stage == stage && strcmp(q->name, p->name) == 0))
            return kl_msg(m, KL_RC_USAGE, "-o %s: the same array or %s twice", text,
                          st ? "tensor" : "file");
    }
    if (st && strcmp(p->tensor, "__metadata__") == 0)
        return kl_msg(m, KL_RC_USAGE, "-o %s: no tensor can be called so", text);
    return true;
}

bool kl_outputs_open(struct kl_outputs *o, struct kl_msg *m)
{
    for (size_t i = 0; i < o->nfile; i++)
        if (!kl_outfile_open(&o->file[i], o->file[i].path, m))
            return false;
    return true;
}

/* ---- writing ---- */

static bool write_data(struct kl_outfile *f, const struct kl_arr *a, struct kl_msg *m)
{
    enum { ROW = 1 << 16 };
    uint32_t w = kl_elems[a->elem].bytes;
    if (a->dense)
        return kl_outfile_write(f, a->data, (size_t)(a->count * w), m);
    char *row = kl_xalloc((size_t)ROW * w); /* strided: collected in row-major order */
    bool ok = true;
    for (uint64_t i = 0; i < a->count && ok;) {
        uint64_t k = 0;
        for (; k < ROW && i < a->count; k++, i++)
            memcpy(row + k * w, kl_arr_at(a, i), w);
        ok = kl_outfile_write(f, row, (size_t)(k * w), m);
    }
    free(row);
    return ok;
}

static bool write_npy(struct kl_outfile *f, const struct kl_arr *a, struct kl_msg *m)
{
    char head[KL_NPY_HEADER];
    size_t n = kl_npy_header(a->elem, a->ndim, a->shape, head);
    return kl_outfile_write(f, head, n, m) && write_data(f, a, m);
}

static bool write_safetensors(const struct kl_outputs *o, size_t file, struct kl_msg *m)
{
    struct kl_outfile *f = &o->file[file];
    struct kl_st_tensor *t = kl_xalloc(o->n * sizeof *t);
    size_t *from = kl_xalloc(o->n * sizeof *from), count = 0, n; /* from: which output */
    uint64_t at = 0;
    for (uint32_t w = 8; w; w /= 2)
        for (size_t i = 0; i < o->n; i++) {
            const struct kl_arr *a = o->v[i].arr;
            if (o->v[i].file != file || kl_elems[a->elem].bytes != w)
                continue;
            uint64_t bytes = a->count * w;
            t[count] = (struct kl_st_tensor){.name = o->v[i].tensor,
                                             .elem = a->elem,
                                             .ndim = a->ndim,
                                             .beg = at,
                                             .end = at + bytes};
            memcpy(t[count].shape, a->shape, sizeof t->shape);
            from[count++] = i;
            at += bytes;
        }
    char *head = kl_st_header(t, count, &n);
    bool ok = kl_outfile_write(f, head, n, m);
    for (size_t i = 0; i < count && ok; i++)
        ok = write_data(f, o->v[from[i]].arr, m);
    free(head);
    free(t);
    free(from);
    return ok;
}

static void say(const struct kl_outputs *o, const struct kl_output *p, FILE *f)
{
    char shape[200];
    const struct kl_arr *a = p->arr;
    const char *type = kl_elems[a->elem].name, *path = o->file[p->file].path;
    fprintf(f, "%s%s%s[%s] -> %s", p->name, *p->name ? "  " : "", type,
            kl_shape_text(a->ndim, a->shape, shape, sizeof shape), path);
    if (p->tensor)
        fprintf(f, ":%s\n", p->tensor);
    else if (kl_npy_knows(a->elem))
        fprintf(f, "\n");
    else
        fprintf(f, " (as u%u; read it as %s:%s)\n", kl_elems[a->elem].bytes, path, type);
}

bool kl_outputs_write(struct kl_outputs *o, FILE *f, struct kl_msg *m)
{
    bool *st = kl_xalloc(o->nfile * sizeof *st + 1), ok = true;
    for (size_t i = 0; i < o->n && ok; i++) {
        if (!o->v[i].tensor)
            ok = write_npy(&o->file[o->v[i].file], o->v[i].arr, m);
        else if (!st[o->v[i].file])
            ok = st[o->v[i].file] = write_safetensors(o, o->v[i].file, m);
    }
    free(st);
    for (size_t i = 0; i < o->nfile && ok; i++) { /* all are complete: now they get their names */
        ok = kl_outfile_commit(&o->file[i], m);
        for (size_t k = 0; k < o->n && ok; k++)
            if (o->v[k].file == i)
                say(o, &o->v[k], f);
    }
    return ok;
}

void kl_outputs_free(struct kl_outputs *o)
{
    for (size_t i = 0; i < o->nfile; i++) {
        const char *path = o->file[i].path;
        kl_outfile_drop(&o->file[i]);
        free((char *)path);
    }
    for (size_t i = 0; i < o->n; i++) {
        free(o->v[i].name);
        free(o->v[i].tensor);
    }
    free(o->v);
    free(o->file);
    *o = (struct kl_outputs){0};
}
