/* parse_type.c - names of types, and C's names for them, which are errors that say what
 * to write. */
#include "lang/lang.h"
#include "lang/parse.h"

/* word: a reserved word of C, so that it cannot be a variable meant by the author. */
static const struct {
    const char *c, *kiln;
    bool word;
} c_types[] = {
    {"int", "i32", true},        {"float", "f32", true},        {"double", "f64", true},
    {"char", "i8", true},        {"long", "i64", true},         {"short", "i16", true},
    {"unsigned", "u32", true},   {"signed", "i32", true},       {"_Bool", "bool", true},
    {"_Float16", "f16", true},   {"__bf16", "bf16", true},      {"int8_t", "i8", false},
    {"int16_t", "i16", false},   {"int32_t", "i32", false},     {"int64_t", "i64", false},
    {"uint8_t", "u8", false},    {"uint16_t", "u16", false},    {"uint32_t", "u32", false},
    {"uint64_t", "u64", false},  {"size_t", "u64", false},      {"ssize_t", "i64", false},
    {"ptrdiff_t", "i64", false}, {"intptr_t", "i64", false},    {"uintptr_t", "u64", false},
    {"uint", "u32", false},      {"uchar", "u8", false},        {"ushort", "u16", false},
    {"ulong", "u64", false},     {"half", "f16", false},        {"__half", "f16", false},
    {"float16", "f16", false},   {"float16_t", "f16", false},   {"float32", "f32", false},
    {"float32_t", "f32", false}, {"float64", "f64", false},     {"float64_t", "f64", false},
    {"bfloat16", "bf16", false}, {"bfloat16_t", "bf16", false}, {"__nv_bfloat16", "bf16", false},
    {"int8", "i8", false},       {"int16", "i16", false},       {"int32", "i32", false},
    {"int64", "i64", false},     {"uint8", "u8", false},        {"uint16", "u16", false},
    {"uint32", "u32", false},    {"uint64", "u64", false},
    {"float8_e4m3fn", "f8e4m3", false}, {"float8_e5m2", "f8e5m2", false}, {"__nv_fp8_e4m3", "f8e4m3", false},
    {"__nv_fp8_e5m2", "f8e5m2", false},
};

const char *kl_p_c_type(const char *name, bool *word)
{
    for (size_t i = 0; i < sizeof c_types / sizeof *c_types; i++)
        if (strcmp(name, c_types[i].c) == 0) {
            if (word)
                *word = c_types[i].word;
            return c_types[i].kiln;
        }
    return NULL;
}

static bool is_elem(const struct kl_token *t)
{
    return t->kind == KL_TK_NAME &&
           kl_elem_by_name(t->text, (uint32_t)strlen(t->text)) != KL_elem_none;
}

/* A name that the author declared as a variable hides a type of that name, except an
 * element type's, which cannot be declared. */
bool kl_p_at_type(kl_parser *p, const struct kl_token *t)
{
    if (t->kind != KL_TK_NAME)
        return false;
    if (is_elem(t))
        return true;
    enum kl_namekind k = kl_p_lookup(p, t->text);
    return k == KL_NAME_TYPE || (k == KL_NAME_NONE && kl_p_c_type(t->text, NULL));
}

static kl_node *named(kl_parser *p, kl_span span, const char *name)
{
    kl_node *n = kl_p_node(p, KL_N_TYPE, span, NULL, 0);
    n->name = kl_intern(p->m, name, strlen(name));
    n->name_span = span;
    return n;
}

/* `unsigned long int`: any order of C's words.  kiln: the type that the first of them stands for. */
static kl_node *c_type(kl_parser *p, const char *kiln)
{
    const kl_span first = p->tok.span;
    kl_span last = first;
    const char *word;
    bool uns = false, multi = false, word_of_c = false;
    int lng = 0, shrt = 0, chr = 0, dbl = 0;
    kl_p_c_type(p->tok.text, &word_of_c);
    for (; kl_p_at(p, KL_TK_NAME); kl_p_next(p)) {
        bool is_word = false;
        word = p->tok.text;
        if (!kl_p_c_type(word, &is_word) || (multi && !(is_word && word_of_c)))
            break;
        uns |= strcmp(word, "unsigned") == 0;
        lng += strcmp(word, "long") == 0;
        shrt += strcmp(word, "short") == 0;
        chr += strcmp(word, "char") == 0;
        dbl += strcmp(word, "double") == 0;
        if (multi)
            kiln = dbl    ? "f64"
                   : chr  ? (uns ? "u8" : "i8")
                   : shrt ? (uns ? "u16" : "i16")
                   : lng  ? (uns ? "u64" : "i64")
                   : uns  ? "u32"
                          : "i32";
        last = p->tok.span;
        multi = true;
    }
    kl_span span = kl_span_join(first, last);
    KL_P_FIX(kl_p_soft(p, KL_K0116, span, "`%s` is a type of C; the Kiln type is `%s`",
                       kl_p_text(p, span), kiln),
             span, "%s", kiln);
    return named(p, span, kiln);
}

static kl_node *struct_type(kl_parser *p)
{
    kl_span beg = p->tok.span;
    kl_p_next(p);
    const char *name = kl_p_name(p, "the struct's name");
    if (!name)
        return kl_p_error(p, beg);
    kl_span all = kl_span_join(beg, p->prev);
    kl_node *n = named(p, all, name);
    n->name_span = p->prev;
    n->flags |= KL_NF_STRUCT;
    return n;
}

/* The Kiln type whose name, or whose name in C, is near; NULL if there is none. */
static const char *nearest_type(const char *name)
{
    static const char *const words[] = {
#define ELEM(name, code, bytes, kind, ctype, acc, doc) #name,
#include "base/elem.def"
        "auto", "float", "double", "unsigned", "size_t",
    };
    const char *near = kl_nearest(name, words, sizeof words / sizeof *words);
    const char *kiln = near ? kl_p_c_type(near, NULL) : NULL;
    return kiln ? kiln : near;
}

kl_node *kl_p_type(kl_parser *p)
{
    struct kl_token t = p->tok;
    if (t.kind == KL_TK_STRUCT)
        return struct_type(p);
    if (t.kind == KL_TK_AUTO || t.kind == KL_TK_VOID) {
        kl_p_next(p);
        return named(p, t.span, kl_tok_text[t.kind]);
    }
    if (t.kind != KL_TK_NAME) {
        kl_p_fail(p, KL_K0114, t.span, "expected a type, found %s", kl_p_found(p));
        return kl_p_error(p, t.span);
    }
    enum kl_namekind k = kl_p_lookup(p, t.text);
    if (is_elem(&t) || k == KL_NAME_TYPE) {
        kl_p_next(p);
        return named(p, t.span, t.text);
    }
    const char *kiln = k == KL_NAME_NONE ? kl_p_c_type(t.text, NULL) : NULL;
    if (kiln)
        return c_type(p, kiln);

    /* parsing goes on: the word stands where a type must stand */
    const char *hint = kl_foreign(t.text), *near = hint ? NULL : nearest_type(t.text);
    struct kl_diag *g;
    if (k == KL_NAME_VAR)
        g = kl_p_soft(p, KL_K0204, t.span, "`%s` is a variable, not a type", t.text);
    else if (near)
        g = kl_p_soft(p, KL_K0204, t.span, "unknown type `%s`; did you mean `%s`?",
                      kl_p_text(p, t.span), near);
    else if (p->kernel && !hint)
        g = kl_p_soft(p, KL_K0204, t.span,
                      "unknown type `%s`; declare the parameter `type %s` before it",
                      kl_p_text(p, t.span), kl_p_text(p, t.span));
    else
        g = kl_p_soft(p, KL_K0204, t.span, "unknown type `%s`", kl_p_text(p, t.span));
    if (k == KL_NAME_NONE && near)
        KL_P_FIX(g, t.span, "%s", near);
    if (k == KL_NAME_NONE && hint && g)
        kl_note(g, (kl_span){0, 0}, "%s", hint);
    kl_p_next(p);
    if (hint && is_elem(&p->tok)) { /* a word before a type */
        t = p->tok;
        kl_p_next(p);
        return named(p, t.span, t.text);
    }
    return kl_p_error(p, t.span);
}
