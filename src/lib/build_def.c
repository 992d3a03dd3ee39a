/* build_def.c - values that -D gives: one, a list, or a range. */
#include "lib/build.h"

#include <stdlib.h>

static const char *number(const char *p, kiln_arg *out)
{
    char *end;
    size_t n = strcspn(p, ",:!");
    enum kl_elem e = kl_elem_by_name(p, (uint32_t)n);
    if (e)
        *out = (kiln_arg){.kind = KILN_ARG_TYPE, .u.type = (kiln_dtype)e};
    else if ((n == 4 && !strncmp(p, "true", 4)) || (n == 5 && !strncmp(p, "false", 5)))
        *out = (kiln_arg){.kind = KILN_ARG_INT, .u.i = *p == 't'};
    else {
        *out = (kiln_arg){.kind = KILN_ARG_INT, .u.i = strtoll(p, &end, 0)};
        if (end == p)
            return NULL;
        if (end != p + n) {
            *out = (kiln_arg){.kind = KILN_ARG_FLOAT, .u.f = strtod(p, &end)};
            if (end != p + n)
                return NULL;
        }
    }
    return p + n;
}

static void put_value(struct build *b, struct def *d, kiln_arg v)
{
    if (d->n == MAX_VALUES)
        kl_build_fail(b, "-D %s: there are more than %d values", d->name, MAX_VALUES);
    v.name = d->name;
    d->v[d->n++] = v;
}

/* "f32,bf16", "1024", "256!", "128:65536:*2", "1:4", "0:256:64" */
void kl_build_read_def(struct build *b, struct def *d, const char *text)
{
    const char *p = text;
    for (;;) {
        kiln_arg v, to;
        const char *q = *p ? number(p, &v) : NULL;
        if (q && *q == ':') {
            int64_t step = 1;
            bool times = false;
            q = number(q + 1, &to);
            if (q && *q == ':') {
                char *end;
                times = q[1] == '*';
                step = strtoll(q + 1 + times, &end, 0);
                q = end;
            }
            if (!q || v.kind != KILN_ARG_INT || to.kind != KILN_ARG_INT || step < 1 + times ||
                (times && v.u.i < 1) || to.u.i < v.u.i)
                q = NULL;
            for (int64_t i = v.u.i; q && i <= to.u.i;) {
                put_value(b, d, (kiln_arg){.kind = KILN_ARG_INT, .u.i = i});
                if (times ? __builtin_mul_overflow(i, step, &i)
                          : __builtin_add_overflow(i, step, &i))
                    break;
            }
            d->list = true;
        } else if (q) {
            put_value(b, d, v);
        }
        if (q && strcmp(q, "!") == 0 && d->n == 1 && !d->list) {
            d->fixed = true;
            q++;
        }
        if (!q || (*q && *q != ','))
            kl_build_fail(
                b, "-D %s=%s is no list of types or numbers, such as f32,bf16 or 128:65536:*2",
                d->name, text);
        if (!*q)
            break;
        p = q + 1;
    }
    d->list |= d->n > 1;
}

struct def *kl_build_def(struct build *b, const char *name)
{
    for (size_t i = 0; i < b->o->ndefine; i++)
        if (strcmp(b->def[i].name, name) == 0)
            return &b->def[i];
    return NULL;
}
