/* json.c - values, texts, places and diagnostics as JSON. */
#include "cli/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A string; what is not UTF-8 becomes `?`, byte by byte, so that columns stay right. */
json_t *kl_json_text(const char *s)
{
    json_t *j = s ? json_string(s) : json_null();
    if (j)
        return j;
    char *copy = kl_xstrndup(s, strlen(s));
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    j = json_string(copy);
    free(copy);
    return j;
}

json_t *kl_json_some(const char *s)
{
    return kl_json_text(s && *s ? s : NULL);
}

json_t *kl_json_number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *kl_json_above(double v)
{
    return v > 0 ? kl_json_number(v) : json_null();
}

json_t *kl_json_count(uint64_t v)
{
    return v <= INT64_MAX ? json_integer((json_int_t)v) : json_real((double)v);
}

void kl_json_set(json_t *o, const char *key, json_t *v)
{
    json_object_set_new(o, key, v ? v : json_null());
}

char *kl_json_dump(json_t *root, int digits)
{
    size_t flags = JSON_INDENT(1) | (digits ? JSON_REAL_PRECISION(digits) : 0);
    char *text = root ? json_dumps(root, flags) : NULL;
    json_decref(root);
    return text;
}

json_t *kl_json_place(const kiln_place *p)
{
    if (!p->file)
        return json_null();
    return json_pack("{s:o, s:I, s:I, s:I, s:o}", "file", kl_json_text(p->file), "line",
                     (json_int_t)p->line, "column", (json_int_t)p->col, "end_column",
                     (json_int_t)p->end_col, "source", kl_json_text(p->text));
}

json_t *kl_json_diag(const kiln_diag *d)
{
    static const char *const severity[] = {"note", "warning", "error"};
    json_t *notes = json_array();
    for (size_t i = 0; i < d->nnotes; i++)
        json_array_append_new(notes, json_pack("{s:o, s:o}", "text", kl_json_text(d->notes[i].text),
                                               "place", kl_json_place(&d->notes[i].place)));
    json_t *j =
        json_pack("{s:s, s:s, s:o, s:o, s:o}", "code", d->code, "severity", severity[d->severity],
                  "text", kl_json_text(d->text), "place", kl_json_place(&d->place), "notes", notes);
    if (j && d->fix)
        json_object_set_new(
            j, "fix",
            json_pack("{s:o, s:o}", "text", kl_json_text(d->fix), "place", kl_json_place(&d->fix_place)));
    return j;
}
