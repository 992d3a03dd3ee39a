/* declare.c - declarations of PTX: registers, shared, local and constant memory. */
#include "sim/parse.h"

enum { MAX_RANGE = 1 << 24, MAX_SHARED = 1 << 24 };

bool kl_sp_is(const char *w, uint32_t n, const char *text)
{
    return strlen(text) == n && memcmp(w, text, n) == 0;
}

/* The word behind a dot: letters, digits and underscores. */
uint32_t kl_sp_directive(struct sim_parser *s, const char **name)
{
    kl_sp_skip(s);
    *name = s->p;
    if (s->p >= s->end || *s->p != '.')
        return 0;
    s->p++;
    while (s->p < s->end && (kl_sp_letter(*s->p) || kl_sp_digit(*s->p)))
        s->p++;
    return (uint32_t)(s->p - *name);
}

bool kl_sp_integer(struct sim_parser *s, uint64_t max, uint64_t *v)
{
    const char *from = s->p;
    if (kl_sp_number(s, 8, false, v) && *v <= max)
        return true;
    kl_sp_error(s, KL_K1602, from, "a number up to %llu must stand here", (unsigned long long)max);
    return false;
}

static uint8_t type_by_name(const char *w, uint32_t n)
{
    for (uint8_t t = 1; t < PT_NTYPE; t++)
        if (kl_sp_is(w + 1, n - 1, kl_sim_types[t].name))
            return t;
    return PT_NONE;
}

/* Type words and attributes before a name: .align 16 .b8, .u64 .ptr .global .align 4 */
bool kl_sp_typed(struct sim_parser *s, uint8_t *type, uint32_t *align)
{
    const char *from = s->p, *w;
    *type = PT_NONE;
    *align = 0;
    for (uint32_t n; (n = kl_sp_directive(s, &w)) != 0;) {
        uint64_t v;
        if (kl_sp_is(w, n, ".align")) {
            if (!kl_sp_integer(s, 4096, &v))
                return false;
            if (!v || v & (v - 1)) {
                kl_sp_error(s, KL_K1602, w, "an alignment is a power of two");
                return false;
            }
            *align = *align > v && *type ? *align : (uint32_t)v;
        } else if (kl_sp_is(w, n, ".ptr") || kl_sp_is(w, n, ".global") ||
                   kl_sp_is(w, n, ".shared") || kl_sp_is(w, n, ".const") ||
                   kl_sp_is(w, n, ".local")) {
            /* what a pointer parameter points to; the .align behind is that of its target */
            while ((n = kl_sp_directive(s, &w)) != 0)
                if (kl_sp_is(w, n, ".align") && !kl_sp_integer(s, 4096, &v))
                    return false;
            break;
        } else if (type_by_name(w, n)) {
            *type = type_by_name(w, n);
        } else {
            kl_sp_error(s, KL_K1603, w, "the executor does not know `%.*s` here",
                        (int)(n > 60 ? 60 : n), w);
            return false;
        }
    }
    if (!*type || *type == PT_PRED) {
        kl_sp_error(s, KL_K1602, from, "a type must stand here");
        return false;
    }
    if (!*align)
        *align = kl_sim_types[*type].size;
    return true;
}

/* name[2][3] ; count is the number of elements, 0 for [] */
bool kl_sp_declarator(struct sim_parser *s, const char **name, uint32_t *len, uint64_t *count,
                      uint64_t max)
{
    const char *from = s->p;
    *len = kl_sp_name(s, name);
    if (!*len) {
        kl_sp_error(s, KL_K1602, from, "a name must stand here");
        return false;
    }
    *count = 1;
    while (kl_sp_char(s, '[')) {
        uint64_t v = 0;
        if (!kl_sp_char(s, ']')) {
            if (!kl_sp_integer(s, max, &v) || !kl_sp_char(s, ']'))
                return false;
        }
        *count *= v;
        if (*count > max) {
            kl_sp_error(s, KL_K1602, from, "the array is too large");
            return false;
        }
    }
    return true;
}

bool kl_sp_new_name(struct sim_parser *s, const char *name, uint32_t len, struct sim_decl x)
{
    if (kl_sp_declare(s, name, len, x) != SIM_NONE)
        return true;
    kl_sp_error(s, KL_K1604, name, "`%.*s` is declared twice", (int)(len > 60 ? 60 : len), name);
    return false;
}

/* .reg .b32 %r<9>, %a; */
bool kl_sp_reg(struct sim_parser *s)
{
    const char *w, *from = s->p;
    uint32_t n = kl_sp_directive(s, &w);
    uint8_t type = n ? type_by_name(w, n) : PT_NONE;
    if (!type) {
        kl_sp_error(s, KL_K1602, from, "a type must stand here");
        return false;
    }
    do {
        char key[PTX_MAX_NAME + 1];
        uint32_t len = kl_sp_name(s, &w);
        if (!len || len == PTX_MAX_NAME) {
            kl_sp_error(s, KL_K1602, s->p, "a name must stand here");
            return false;
        }
        struct sim_decl x = {.kind = DECL_REG, .type = type, .at = SIM_NONE};
        memcpy(key, w, len);
        if (kl_sp_char(s, '<')) {
            uint64_t v;
            if (!kl_sp_integer(s, MAX_RANGE, &v) || !kl_sp_char(s, '>'))
                return false;
            x.kind = DECL_RANGE;
            x.size = (uint32_t)v;
            key[len++] = '<';
        }
        if (kl_sp_declare(s, key, len, x) == SIM_NONE) {
            kl_sp_error(s, KL_K1604, w, "`%.*s` is declared twice", (int)(len > 60 ? 60 : len), w);
            return false;
        }
    } while (kl_sp_char(s, ','));
    return true;
}

bool kl_sp_shared(struct sim_parser *s, bool ext)
{
    struct sim_decl x = {.kind = DECL_SHARED};
    const char *name;
    uint32_t len;
    uint64_t count;
    if (!kl_sp_typed(s, &x.type, &x.align))
        return false;
    do {
        if (!kl_sp_declarator(s, &name, &len, &count, MAX_SHARED))
            return false;
        x.dynamic = count == 0;
        x.size = (uint32_t)count * kl_sim_types[x.type].size;
        if (x.dynamic && !ext)
            kl_sp_error(s, KL_K1602, name, "only .extern shared memory has no size");
        if (!kl_sp_new_name(s, name, len, x))
            return false;
    } while (kl_sp_char(s, ','));
    return true;
}

bool kl_sp_local(struct sim_parser *s)
{
    struct sim_decl x = {.kind = DECL_LOCAL};
    const char *name;
    uint32_t len;
    uint64_t count;
    if (!kl_sp_typed(s, &x.type, &x.align) || !kl_sp_declarator(s, &name, &len, &count, 1 << 20))
        return false;
    s->local_at = (s->local_at + x.align - 1) & ~(x.align - 1);
    x.at = s->local_at;
    s->local_at += (uint32_t)count * kl_sim_types[x.type].size;
    if (s->local_at > 1 << 20) {
        kl_sp_error(s, KL_K1602, name, "the local memory is too large");
        return false;
    }
    return kl_sp_new_name(s, name, len, x);
}

/* = {1, 2, {3}} or = 5, into bytes */
static bool initialiser(struct sim_parser *s, struct sim_decl *x, char *data)
{
    uint32_t size = kl_sim_types[x->type].size, at = 0, depth = 0;
    bool flt = kl_sim_types[x->type].cls == TC_FLT;
    do {
        while (kl_sp_char(s, '{'))
            depth++;
        uint64_t bits;
        kl_sp_skip(s);
        if (!kl_sp_number(s, size < 4 ? 4 : size, flt, &bits) || at + size > x->size) {
            kl_sp_error(s, KL_K1602, s->p, "a number that fits the array must stand here");
            return false;
        }
        memcpy(data + at, &bits, size);
        at += size;
        while (depth && kl_sp_char(s, '}'))
            depth--;
    } while (kl_sp_char(s, ','));
    return depth == 0;
}

bool kl_sp_variable(struct sim_parser *s, bool ext)
{
    struct sim_decl x = {.kind = DECL_VAR};
    const char *name;
    uint32_t len;
    uint64_t count;
    if (!kl_sp_typed(s, &x.type, &x.align) || !kl_sp_declarator(s, &name, &len, &count, MAX_SHARED))
        return false;
    if (ext || !count) {
        kl_sp_error(s, KL_K1603, name, "memory that another module defines is not supported");
        return false;
    }
    x.size = (uint32_t)count * kl_sim_types[x.type].size;
    /* the arena aligns to 16 */
    char *data = kl_alloc_zero(s->a, (size_t)x.size + 4096);
    data += (0 - (uintptr_t)data) & (x.align - 1);
    if (kl_sp_char(s, '=') && !initialiser(s, &x, data))
        return false;
    x.at = s->var.n;
    struct sim_var v = {data, x.size};
    kl_push(s->a, &s->var, v);
    return kl_sp_new_name(s, name, len, x);
}
