/* in.c - files that `kiln report` reads: reports of explain, bench and check, and tuned
 * constants. */
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"

/* JSON without the blanks between its parts: numbers and strings stay as they were written. */
static char *compact(const char *s)
{
    char *out = kl_xalloc(strlen(s) + 1);
    size_t n = 0;
    for (bool text = false; *s; s++) {
        if (text && *s == '\\' && s[1]) {
            out[n++] = *s++;
        } else if (*s == '"') {
            text = !text;
        } else if (!text && strchr(" \t\r\n", *s)) {
            continue;
        }
        out[n++] = *s;
    }
    return out;
}

static const char *base(const char *name) /* folders are nobody's business */
{
    return strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
}

static struct kl_rep_input *add(struct kl_rep *r, enum kl_report_kind kind, const char *name,
                                char *raw, json_t *root)
{
    name = base(name);
    r->in = kl_xgrow(r->in, sizeof *r->in, r->nin);
    struct kl_rep_input *in = &r->in[r->nin++];
    *in = (struct kl_rep_input){kind, kl_xstrndup(name, strlen(name)), raw, root};
    return in;
}

/* ---- tuned constants: `kiln-tune 1`, then paragraphs of KEY WORDS that begin with kernel ---- */

static void set_line(json_t *list, const char *s, size_t n, unsigned number)
{
    size_t k = strcspn(s, " \t\n"), to = n;
    k = k < n ? k : n;
    char key[32];
    snprintf(key, sizeof key, "%.*s", (int)(k < 31 ? k : 31), s);
    const char *v = s + k;
    while (v < s + n && (*v == ' ' || *v == '\t'))
        v++;
    while (to > (size_t)(v - s) && strchr(" \t\r", s[to - 1]))
        to--;
    if (strcmp(key, "kernel") == 0)
        json_array_append_new(list, json_pack("{s:i}", "line", (int)number));
    json_t *o = json_array_get(list, json_array_size(list) - 1);
    char *value = kl_xstrndup(v, to - (size_t)(v - s));
    json_t *text = json_string(value);
    json_object_set_new(o, key, text ? text : json_string("?"));
    free(value);
}

static bool read_tune(struct kl_rep *r, const char *name, const char *text, struct kl_msg *m)
{
    const char *s = text + strcspn(text, "\n");
    size_t v = strcspn(text + 10, " \t\r\n");
    if (v != 1 || text[10] != '1')
        return kl_msg(m, KL_RC_USAGE,
                      "%s:1: it is of version `%.*s`, and only kiln-tune 1 is known", name,
                      (int)(v < 20 ? v : 20), text + 10);
    json_t *list = json_array();
    for (unsigned number = 2; *s; number++) {
        s += *s == '\n';
        size_t n = strcspn(s, "\n"), skip = strspn(s, " \t\r");
        skip = skip < n ? skip : n;
        if (skip < n && s[skip] != '#') {
            if (!json_array_size(list) && strncmp(s + skip, "kernel", 6) != 0) {
                json_decref(list);
                return kl_msg(m, KL_RC_USAGE, "%s: a line before the first `kernel`", name);
            }
            set_line(list, s + skip, n - skip, number);
        }
        s += n;
    }
    char *dumped = json_dumps(list, JSON_COMPACT), *raw = kl_xprintf("%s", dumped ? dumped : "[]");
    free(dumped);
    for (size_t i = 0; i < r->nin; i++)
        if (r->in[i].kind == KL_REP_TUNE && strcmp(r->in[i].name, base(name)) == 0 &&
            strcmp(r->in[i].raw, raw) == 0) { /* given, and beside a source as well */
            free(raw);
            json_decref(list);
            return true;
        }
    add(r, KL_REP_TUNE, name, raw, list);
    return true;
}

/* ---- JSON ---- */

static void add_kernels(struct kl_rep *r, json_t *root)
{
    json_t *o;
    size_t i;
    json_array_foreach (json_object_get(root, "kernels"), i, o) {
        r->k = kl_xgrow(r->k, sizeof *r->k, r->nk);
        r->k[r->nk++] = (struct kl_rep_kernel){.j = json_incref(o)};
    }
}

/* The list that a report must have holds objects, and each of them that word. */
static bool check_list(const json_t *root, const char *list, const char *word, const char *name,
                       struct kl_msg *m)
{
    const json_t *all = json_object_get(root, list), *o;
    size_t i;
    if (!json_is_array(all))
        return kl_msg(m, KL_RC_USAGE, "%s: `%s` is %s", name, list,
                      all ? "no list" : "missing");
    json_array_foreach (all, i, o) {
        if (!json_is_object(o))
            return kl_msg(m, KL_RC_USAGE, "%s: `%s`: number %zu is no object", name, list, i + 1);
        if (!json_is_string(json_object_get(o, word)))
            return kl_msg(m, KL_RC_USAGE, "%s: `%s`: number %zu has no text `%s`", name, list,
                          i + 1, word);
    }
    return true;
}

bool kl_rep_add(struct kl_rep *r, const char *name, const char *text, size_t n, struct kl_msg *m)
{
    static const struct {
        const char *schema;
        enum kl_report_kind kind;
        const char *list, *word; /* which it must have */
    } schemas[] = {{"kiln.explain/1", KL_REP_EXPLAIN, "kernels", "kernel"},
                   {"kiln.bench/1", KL_REP_BENCH, "rows", "kernel"},
                   {"kiln.check/1", KL_REP_CHECK, "diagnostics", "severity"}};
    json_error_t e;
    if (strncmp(text, "kiln-tune ", 10) == 0)
        return read_tune(r, name, text, m);
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
    if (!root)
        return kl_msg(
            m, KL_RC_USAGE,
            "%s:%d: %s; a report reads JSON of explain, bench and check, and the file of tune",
            name, e.line, e.text);
    const char *schema = kl_jstr(root, "schema");
    for (size_t i = 0; i < 3; i++)
        if (strcmp(schema, schemas[i].schema) == 0) {
            if (!check_list(root, schemas[i].list, schemas[i].word, name, m)) {
                json_decref(root);
                return false;
            }
            add(r, schemas[i].kind, name, compact(text), root);
            if (schemas[i].kind == KL_REP_EXPLAIN)
                add_kernels(r, root);
            return true;
        }
    if (*schema)
        kl_msg(m, KL_RC_USAGE,
               "%s: its schema is `%.60s`; there are kiln.explain/1, kiln.bench/1 and kiln.check/1",
               name, schema);
    else
        kl_msg(m, KL_RC_USAGE,
               "%s names no schema; a report reads JSON of explain, bench and check", name);
    json_decref(root);
    return false;
}

bool kl_rep_read(struct kl_rep *r, const char *path, struct kl_msg *m)
{
    size_t n;
    char *text = kl_read_file(path, &n, m);
    if (!text)
        return false;
    bool ok = kl_rep_add(r, path, text, n, m);
    free(text);
    return ok;
}

const char *kl_rep_read_tune(struct kl_rep *r, const char *path, struct kl_msg *m)
{
    if (!kl_rep_read(r, path, m))
        return NULL;
    for (size_t i = r->nin; i-- > 0;)
        if (r->in[i].kind == KL_REP_TUNE && strcmp(r->in[i].name, base(path)) == 0)
            return r->in[i].name;
    kl_msg(m, KL_RC_USAGE, "%s: it does not begin with `kiln-tune 1`", path);
    return NULL;
}

void kl_rep_free(struct kl_rep *r)
{
    for (size_t i = 0; i < r->nin; i++) {
        free(r->in[i].name);
        free(r->in[i].raw);
        json_decref(r->in[i].root);
    }
    for (size_t i = 0; i < r->nk; i++) {
        free(r->k[i].source);
        free(r->k[i].ptx);
        free(r->k[i].c);
        json_decref(r->k[i].j);
        json_decref(r->k[i].tiles);
    }
    free(r->in);
    free(r->k);
    *r = (struct kl_rep){0};
}
