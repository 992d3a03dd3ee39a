/* safetensors.c - reading and writing .safetensors files.
 *
 * A file is the length of its header (8 bytes, little-endian), the header, a JSON object
 * {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [BEGIN, END]}, ...} with offsets from
 * the end of the header on, and the data.  "__metadata__" may hold texts.  Read strictly: every
 * tensor has the bytes of its shape, and all together they fill the file without holes and
 * overlaps, as the format demands; so a file that was cut or damaged is refused. */
#include "cli/safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum { MOST_HEADER = 100000000 }; /* the format's own limit */

static const struct {
    const char *name;
    enum kl_elem elem;
} types[] = {
    {"BOOL", KL_bool}, {"I8", KL_i8},   {"U8", KL_u8},     {"I16", KL_i16},
    {"U16", KL_u16},   {"I32", KL_i32}, {"U32", KL_u32},   {"I64", KL_i64},
    {"U64", KL_u64},   {"F16", KL_f16}, {"BF16", KL_bf16}, {"F32", KL_f32},
    {"F64", KL_f64},   {"F8_E4M3", KL_f8e4m3}, {"F8_E5M2", KL_f8e5m2},
};
enum { NTYPES = sizeof types / sizeof *types };

#define FAIL(msg, nmsg, ...) (snprintf((msg), (nmsg), __VA_ARGS__), false)

/* A name for messages: what could confuse a terminal is left out, long ones are cut. */
static const char *shown(const char *name, char buf[64])
{
    size_t n = 0;
    for (; *name && n < 48; name++)
        buf[n++] = (char)((unsigned char)*name < ' ' || *name == 127 ? '?' : *name);
    snprintf(buf + n, 64 - n, "%s", *name ? "..." : "");
    return buf;
}

/* ---- one tensor ---- */

static bool read_shape(const json_t *shape, struct kl_st_tensor *t, char *msg, size_t nmsg)
{
    char name[64];
    uint64_t count = 1;
    size_t n = json_array_size(shape);
    for (size_t i = 0; i < n; i++) {
        const json_t *e = json_array_get(shape, i);
        int64_t v = json_is_integer(e) ? json_integer_value(e) : -1;
        if (v < 0)
            return FAIL(msg, nmsg, "`%s`: its shape is no list of numbers", shown(t->name, name));
        if (i < KL_NPY_DIMS)
            t->shape[i] = v;
        if (__builtin_mul_overflow(count, (uint64_t)v, &count) || count > INT64_MAX)
            count = UINT64_MAX / 2; /* more than any file holds, unless another extent is 0 */
    }
    for (size_t i = 0; i < n; i++)
        if (json_integer_value(json_array_get(shape, i)) == 0)
            count = 0;
    t->ndim = n > INT32_MAX ? INT32_MAX : (int32_t)n;
    if (t->elem && (count > INT64_MAX / 8 || t->end - t->beg != count * kl_elems[t->elem].bytes))
        return FAIL(msg, nmsg, "`%s`: its shape does not need the %llu bytes that its offsets give",
                    shown(t->name, name), (unsigned long long)(t->end - t->beg));
    return true;
}

static bool read_tensor(const json_t *o, struct kl_st_tensor *t, uint64_t size, char *msg,
                        size_t nmsg)
{
    char name[64];
    shown(t->name, name);
    const json_t *type = json_object_get(o, "dtype"), *shape = json_object_get(o, "shape");
    const json_t *at = json_object_get(o, "data_offsets");
    if (!json_is_string(type) || !json_is_array(shape) || !json_is_array(at))
        return FAIL(msg, nmsg, "`%s` lacks `%s`, or it is of another kind", name,
                    !json_is_string(type)   ? "dtype"
                    : !json_is_array(shape) ? "shape"
                                            : "data_offsets");
    if (json_object_size(o) != 3)
        return FAIL(msg, nmsg, "`%s` has entries beside dtype, shape and data_offsets", name);
    const json_t *b = json_array_get(at, 0), *e = json_array_get(at, 1);
    if (json_array_size(at) != 2 || !json_is_integer(b) || !json_is_integer(e) ||
        json_integer_value(b) < 0 || json_integer_value(e) < json_integer_value(b))
        return FAIL(msg, nmsg, "`%s`: its data_offsets are not a begin and an end", name);
    t->beg = (uint64_t)json_integer_value(b);
    t->end = (uint64_t)json_integer_value(e);
    if (t->end > size)
        return FAIL(msg, nmsg, "`%s`: its data ends at byte %llu, and the file has %llu", name,
                    (unsigned long long)t->end, (unsigned long long)size);
    snprintf(t->type, sizeof t->type, "%s", json_string_value(type));
    for (int i = 0; i < NTYPES; i++)
        if (strcmp(json_string_value(type), types[i].name) == 0)
            t->elem = types[i].elem;
    return read_shape(shape, t, msg, nmsg);
}

/* ---- the header ---- */

struct place {
    uint64_t beg, end;
    size_t of;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->beg != y->beg)
        return x->beg < y->beg ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* No byte belongs to two tensors, and each to one. */
static bool check_places(const struct kl_st *s, uint64_t size, char *msg, size_t nmsg)
{
    struct place *p = kl_xalloc((s->n + 1) * sizeof *p);
    uint64_t at = 0;
    char a[64], b[64];
    bool ok = true;
    for (size_t i = 0; i < s->n; i++)
        p[i] = (struct place){s->v[i].beg, s->v[i].end, i};
    if (s->n)
        qsort(p, s->n, sizeof *p, by_place);
    for (size_t i = 0; i < s->n && ok; i++) {
        if (p[i].beg < at)
            ok = FAIL(msg, nmsg, "`%s` and `%s` share bytes", shown(s->v[p[i - 1].of].name, a),
                      shown(s->v[p[i].of].name, b));
        else if (p[i].beg > at)
            ok = FAIL(msg, nmsg, "bytes %llu to %llu of the data belong to no tensor",
                      (unsigned long long)at, (unsigned long long)p[i].beg);
        at = p[i].end;
    }
    if (ok && at != size)
        ok = FAIL(msg, nmsg, "the file is too long: its tensors have %llu bytes, %llu are there",
                  (unsigned long long)at, (unsigned long long)size);
    free(p);
    return ok;
}

static bool read_meta(const json_t *o, struct kl_st *s, char *msg, size_t nmsg)
{
    const char *key;
    json_t *v;
    if (!json_is_object(o))
        return FAIL(msg, nmsg, "__metadata__ is no object");
    s->meta = kl_xalloc((json_object_size(o) + 1) * 2 * sizeof *s->meta);
    json_object_foreach((json_t *)o, key, v) {
        if (!json_is_string(v))
            return FAIL(msg, nmsg, "__metadata__ holds something else than texts");
        s->meta[2 * s->nmeta] = kl_xstrndup(key, strlen(key));
        s->meta[2 * s->nmeta + 1] = kl_xstrndup(json_string_value(v), json_string_length(v));
        s->nmeta++;
    }
    return true;
}

static bool read_all(const json_t *root, uint64_t size, struct kl_st *s, char *msg, size_t nmsg)
{
    const char *key;
    char name[64];
    json_t *v;
    if (!json_is_object(root))
        return FAIL(msg, nmsg, "malformed header: it is no JSON object");
    s->v = kl_xalloc((json_object_size(root) + 1) * sizeof *s->v);
    json_object_foreach((json_t *)root, key, v) {
        if (strcmp(key, "__metadata__") == 0) {
            if (!read_meta(v, s, msg, nmsg))
                return false;
            continue;
        }
        struct kl_st_tensor *t = &s->v[s->n++];
        t->name = kl_xstrndup(key, strlen(key));
        if (!json_is_object(v))
            return FAIL(msg, nmsg, "`%s` is no object", shown(key, name));
        if (!read_tensor(v, t, size, msg, nmsg))
            return false;
    }
    return check_places(s, size, msg, nmsg);
}

bool kl_st_parse(const void *buf, size_t len, uint64_t file_size, struct kl_st *out, char *msg,
                 size_t nmsg)
{
    const unsigned char *b = buf;
    uint64_t n = 0;
    json_error_t err;
    memset(out, 0, sizeof *out);
    if (len < 8)
        return FAIL(msg, nmsg, file_size ? "it is not a .safetensors file" : "the file is empty");
    if (len > 8 && b[8] != '{')
        return FAIL(msg, nmsg, "it is not a .safetensors file");
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)b[i] << (8 * i);
    if (n > MOST_HEADER)
        return FAIL(msg, nmsg, "a header of %llu bytes is not believable", (unsigned long long)n);
    if (n > len - 8)
        return FAIL(msg, nmsg, "the file ends inside its header");
    if (n < 2)
        return FAIL(msg, nmsg, "it is not a .safetensors file");
    json_t *root = json_loadb((const char *)b + 8, (size_t)n, JSON_REJECT_DUPLICATES, &err);
    if (!root)
        return FAIL(msg, nmsg, "malformed header: byte %d: %.120s", err.position, err.text);
    out->offset = 8 + n;
    bool ok = read_all(root, file_size - out->offset, out, msg, nmsg);
    json_decref(root);
    if (!ok)
        kl_st_free(out);
    return ok;
}

void kl_st_free(struct kl_st *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].name);
    for (size_t i = 0; i < 2 * s->nmeta; i++)
        free(s->meta[i]);
    free(s->v);
    free(s->meta);
    *s = (struct kl_st){0};
}

/* ---- files ---- */

/* "a, b, c", or the first ones of many. */
static void list_names(const struct kl_st *s, char *buf, size_t n)
{
    char one[64];
    size_t used = 0;
    buf[0] = 0;
    for (size_t i = 0; i < s->n && used < n; i++) {
        bool more = used > n - 80;
        used += (size_t)snprintf(buf + used, n - used, "%s%s", i ? ", " : "",
                                 more ? "..." : shown(s->v[i].name, one));
        if (more)
            return;
    }
}

static const struct kl_st_tensor *find(const struct kl_st *s, const char *name)
{
    for (size_t i = 0; name && i < s->n; i++)
        if (strcmp(s->v[i].name, name) == 0)
            return &s->v[i];
    return NULL;
}

static const struct kl_st_tensor *choose(const struct kl_st *s, const char *name, const char *like,
                                         char *msg, size_t nmsg)
{
    char list[400], a[64], near[128];
    const struct kl_st_tensor *t = find(s, name ? name : like);
    if (!s->n)
        snprintf(msg, nmsg, "it holds no tensors");
    if (t || !s->n)
        return t;
    if (!name && s->n == 1)
        return s->v;
    list_names(s, list, sizeof list);
    if (!name) {
        snprintf(msg, nmsg, "it holds several tensors; choose with FILE:NAME: %s", list);
    } else {
        const char **names = kl_xalloc(s->n * sizeof *names);
        for (size_t i = 0; i < s->n; i++)
            names[i] = s->v[i].name;
        kl_did_you_mean(name, names, s->n, near);
        snprintf(msg, nmsg, "it holds no `%s`%s (it holds %s)", shown(name, a), near, list);
        free(names);
    }
    return NULL;
}

static bool fill(const struct kl_st *s, const struct kl_st_tensor *t, struct kl_npyfile *out,
                 char *msg, size_t nmsg)
{
    struct kl_npy *h = &out->head;
    char name[64];
    int64_t step = 1;
    if (!t->elem)
        return FAIL(msg, nmsg, "`%s`: element type %s is not supported", shown(t->name, name),
                    t->type);
    if (t->ndim > KL_NPY_DIMS)
        return FAIL(msg, nmsg, "`%s`: more than %d dimensions", shown(t->name, name), KL_NPY_DIMS);
    *h = (struct kl_npy){.elem = t->elem,
                         .bytes = kl_elems[t->elem].bytes,
                         .ndim = t->ndim,
                         .offset = s->offset + t->beg,
                         .size = t->end - t->beg};
    snprintf(h->descr, sizeof h->descr, "%s", t->type);
    for (int32_t d = t->ndim; d-- > 0;) { /* an extent of 0 counts as 1 in strides */
        h->shape[d] = t->shape[d];
        h->stride[d] = step;
        if (__builtin_mul_overflow(step, t->shape[d] ? t->shape[d] : 1, &step) ||
            step > INT64_MAX / 8)
            return FAIL(msg, nmsg, "`%s`: its shape describes more than memory can hold",
                        shown(t->name, name));
    }
    return true;
}

bool kl_st_open(const char *path, const char *name, const char *like, struct kl_npyfile *out,
                char *msg, size_t nmsg)
{
    struct kl_st s;
    if (!kl_npy_map(path, out, msg, nmsg))
        return false;
    if (!kl_st_parse(out->block, out->blocklen, out->blocklen, &s, msg, nmsg)) {
        kl_npy_close(out);
        return false;
    }
    const struct kl_st_tensor *t = choose(&s, name, like, msg, nmsg);
    bool ok = t && fill(&s, t, out, msg, nmsg) && kl_npy_settle(out, msg, nmsg);
    if (!ok)
        kl_npy_close(out);
    kl_st_free(&s);
    return ok;
}

bool kl_st_list(const char *path, struct kl_st *out, char *msg, size_t nmsg)
{
    struct kl_npyfile f;
    if (!kl_npy_map(path, &f, msg, nmsg))
        return false;
    bool ok = kl_st_parse(f.block, f.blocklen, f.blocklen, out, msg, nmsg);
    kl_npy_close(&f);
    return ok;
}

/* ---- writing ---- */

static const char *type_name(enum kl_elem e)
{
    for (int i = 0; i < NTYPES; i++)
        if (types[i].elem == e)
            return types[i].name;
    return "";
}

static void *need(void *p)
{
    if (!p) {
        kl_fail(KL_RC_ENV, "out of memory");
        exit(KL_RC_ENV);
    }
    return p;
}

char *kl_st_header(const struct kl_st_tensor *t, size_t count, size_t *n)
{
    json_t *root = need(json_object());
    for (size_t i = 0; i < count; i++) {
        json_t *shape = need(json_array());
        for (int32_t d = 0; d < t[i].ndim; d++)
            json_array_append_new(shape, json_integer(t[i].shape[d]));
        json_t *o = need(json_pack("{s:s, s:o, s:[I, I]}", "dtype", type_name(t[i].elem), "shape",
                                   shape, "data_offsets", (json_int_t)t[i].beg,
                                   (json_int_t)t[i].end));
        if (json_object_set_new(root, t[i].name, o))
            need(NULL);
    }
    char *text = need(json_dumps(root, JSON_COMPACT));
    size_t len = strlen(text), padded = (len + 7) / 8 * 8; /* so that data is aligned */
    char *all = kl_xalloc(8 + padded + 1);
    for (int i = 0; i < 8; i++)
        all[i] = (char)(padded >> (8 * i));
    memcpy(all + 8, text, len + 1);
    memset(all + 8 + len, ' ', padded - len);
    free(text);
    json_decref(root);
    *n = 8 + padded;
    return all;
}

bool kl_st_path(const char *text, size_t *len, const char **name)
{
    static const char tail[] = ".safetensors";
    const char *at = strstr(text, tail);
    for (; at; at = strstr(at + 1, tail)) {
        const char *end = at + sizeof tail - 1;
        if (*end && *end != ':')
            continue;
        *len = (size_t)(end - text);
        *name = *end && end[1] ? end + 1 : NULL;
        return true;
    }
    return false;
}
