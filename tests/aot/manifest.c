/* manifest.c - reads the JSON that `kiln build` says of its functions, and checks that it is as
 * documented: every member is there, of its kind, and says of each parameter what the kernel does. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "aot.h"

static bool bad(const struct aot_built *b, const char *what, const char *name)
{
    printf("FAIL %s: manifest: %s %s\n", b->key, what, name);
    return false;
}

static const char *text(const json_t *o, const char *name)
{
    return json_string_value(json_object_get(o, name));
}

static int index_of(const char *const *list, const char *s)
{
    for (int i = 0; list[i]; i++)
        if (s && strcmp(list[i], s) == 0)
            return i;
    return -1;
}

static bool one(struct aot_built *b, const json_t *o, const kiln_param_info *p, struct aot_param *out)
{
    static const char *const kinds[] = {"array", "scalar", "constant", "type", NULL};
    static const char *const from[] = {"argument", "shapes", "default", "build", NULL};
    static const int of[] = {[KILN_PARAM_TYPE] = TYPE, [KILN_PARAM_CONST] = CONSTANT,
                             [KILN_PARAM_SCALAR] = SCALAR, [KILN_PARAM_ARRAY] = ARRAY};
    const char *name = text(o, "name"), *type = text(o, "type");
    const json_t *values = json_object_get(o, "values"), *value = json_object_get(o, "value");
    int k = index_of(kinds, text(o, "kind")), f = index_of(from, text(o, "from"));
    size_t n = 4;
    if (!name || strcmp(name, p->name) != 0)
        return bad(b, "another name for", p->name);
    if (k < 0 || k != of[p->kind])
        return bad(b, "kind of", name);
    if (f < 0 || (k == ARRAY && f != 0) || (k == TYPE && f != 3) || (k == SCALAR && f > 2))
        return bad(b, "from of", name);
    *out = (struct aot_param){.name = kl_xstrndup(name, strlen(name)), .kind = k, .argument = f == 0};
    out->elem = type ? kl_elem_by_name(type, (uint32_t)strlen(type)) : KL_elem_none;
    if (!out->elem || (p->dtype && (int)p->dtype != (int)out->elem))
        return bad(b, "type of", name);
    if (k == ARRAY) {
        const json_t *w = json_object_get(o, "written"), *opt = json_object_get(o, "optional");
        n += 3;
        if (json_integer_value(json_object_get(o, "rank")) != p->rank)
            return bad(b, "rank of", name);
        if (!json_is_boolean(w) || json_is_true(w) != (p->writes != 0) || !json_is_boolean(opt) ||
            json_is_true(opt) != (p->is_optional != 0))
            return bad(b, "written or optional of", name);
        out->optional = json_is_true(opt);
    }
    if (values) {
        n++;
        out->varies = true;
        if (k != CONSTANT || !json_array_size(values) || !json_is_integer(json_array_get(values, 0)))
            return bad(b, "values of", name);
    }
    if (value) {
        n++;
        if (k != CONSTANT || f != 3 || !json_is_number(value))
            return bad(b, "value of", name);
    }
    return json_object_size(o) == n || bad(b, "other members of", name);
}

bool aot_manifest(struct aot_built *b, const kiln_kernel *k)
{
    json_error_t e;
    json_t *m = json_loads(b->manifest, JSON_REJECT_DUPLICATES, &e);
    if (!m)
        return bad(b, "is no JSON:", e.text);
    const json_t *list = json_object_get(m, "functions"), *f = json_array_get(list, 0);
    const json_t *par = json_object_get(f, "parameters");
    const char *name = text(m, "name"), *function = text(f, "function"), *kernel = text(f, "kernel");
    bool ok = true;
    if (!name || strcmp(name, b->name) != 0 || !text(m, "source") || !text(m, "kiln") ||
        !json_array_size(json_object_get(m, "targets")) || json_object_size(m) != 5)
        ok = bad(b, "members of", "the whole");
    else if (json_array_size(list) != 1 || !function || !kernel || strcmp(kernel, kiln_kernel_name(k)) != 0 ||
             json_integer_value(json_object_get(f, "variants")) < 1 || json_object_size(f) != 5 ||
             !json_is_boolean(json_object_get(f, "approximate")))
        ok = bad(b, "members of", "the function");
    else if (json_array_size(par) != kiln_kernel_param_count(k))
        ok = bad(b, "number of", "parameters");
    b->n = (uint32_t)json_array_size(par);
    b->approximate = json_is_true(json_object_get(f, "approximate"));
    for (uint32_t i = 0; i < b->n && ok; i++)
        ok = one(b, json_array_get(par, i), kiln_kernel_param(k, i), &b->p[i]);
    if (ok)
        b->function = kl_xstrndup(function, strlen(function));
    json_decref(m);
    return ok;
}
