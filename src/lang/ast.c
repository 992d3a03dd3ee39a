/* ast.c - names of tokens and nodes, interned strings, and the tree as text.
 *
 * The text is what `kiln emit --stage ast` shows: one node a line, kids indented,
 * `-` for a kid that is left out.  It holds no positions, so that a change of
 * layout in a source does not change it. */
#include "lang/ast.h"

const char *const kl_tok_text[KL_NTOK] = {
    [KL_TK_EOF] = "end of the file", [KL_TK_NAME] = "name",   [KL_TK_INT] = "integer",
    [KL_TK_DECIMAL] = "decimal",     [KL_TK_STRING] = "text", [KL_TK_ERROR] = "error",
#define TOK(name, text) [KL_TK_##name] = text,
#define KEY(name, text) [KL_TK_##name] = text,
#include "lang/token.def"
};

/* Lower case in the printed form, so the table is spelt by the rows themselves. */
const char *const kl_node_name[KL_NNODE] = {
#define NODE(name, doc) [KL_N_##name] = #name,
#include "lang/node.def"
};

const char *kl_intern(kl_module_ast *m, const char *s, size_t n)
{
    /* the map copies each key once and never moves the copy: it is the interned string */
    uint32_t *val = kl_map_put(&m->names, s, n, NULL);
    const char *slot = (const char *)val - offsetof(struct kl_map_slot, val);
    const void *key;
    memcpy(&key, slot + offsetof(struct kl_map_slot, key), sizeof key);
    return key;
}

/* ---- printing ---- */

static const struct {
    uint16_t bit;
    const char *word;
} flag_words[] = {
    {KL_NF_CONST, "const"},       {KL_NF_CONSTEXPR, "constexpr"}, {KL_NF_GLOBAL, "global"},
    {KL_NF_OPTIONAL, "optional"}, {KL_NF_TYPEPARAM, "type"},      {KL_NF_F32, "f32"},
    {KL_NF_LIB, "lib"},           {KL_NF_STRUCT, "struct"},       {KL_NF_UNROLL, "unroll"},
    {KL_NF_PIPELINE, "pipeline"}, {KL_NF_PAREN, "paren"},
};

/* A text in quotes, with escapes for what would break the line. */
static void put_text(kl_buf *b, const char *s)
{
    kl_puts(b, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            kl_putf(b, "\\%c", c);
        else if (c == '\n')
            kl_puts(b, "\\n");
        else if (c == '\t')
            kl_puts(b, "\\t");
        else if (c < 32 || c == 127)
            kl_putf(b, "\\x%02x", c);
        else
            kl_buf_put(b, s, 1);
    }
    kl_puts(b, "\"");
}

static bool name_is_text(const kl_node *n)
{
    return n->kind == KL_N_STRING || n->kind == KL_N_REQUIRES || n->kind == KL_N_SASSERT ||
           n->kind == KL_N_INCLUDE;
}

static void indent(kl_buf *b, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        kl_puts(b, "  ");
}

static void print(kl_buf *b, const kl_node *n, uint32_t depth)
{
    indent(b, depth);
    if (!n) {
        kl_puts(b, "-");
        return;
    }
    kl_puts(b, "(");
    for (const char *s = kl_node_name[n->kind]; *s; s++) {
        char low = (char)(*s + ('a' - 'A'));
        kl_buf_put(b, &low, 1);
    }
    if (n->name && name_is_text(n)) {
        kl_puts(b, " ");
        put_text(b, n->name);
    } else if (n->name) {
        kl_putf(b, " %s", n->name);
    }
    if (n->op)
        kl_putf(b, " %s", kl_tok_text[n->op]);
    if (n->kind == KL_N_INT || n->kind == KL_N_BOOL || (n->flags & (KL_NF_UNROLL | KL_NF_PIPELINE)))
        kl_putf(b, " %llu", (unsigned long long)n->ival);
    const char *sep = " :";
    for (size_t i = 0; i < sizeof flag_words / sizeof *flag_words; i++)
        if (n->flags & flag_words[i].bit) {
            kl_putf(b, "%s%s", sep, flag_words[i].word);
            sep = " ";
        }
    for (uint32_t i = 0; i < n->nkid; i++) {
        kl_puts(b, "\n");
        print(b, n->kid[i], depth + 1);
    }
    kl_puts(b, ")");
}

void kl_ast_print(kl_buf *b, const kl_module_ast *m)
{
    print(b, m->root, 0);
    kl_puts(b, "\n");
}

void kl_ast_print_node(kl_buf *b, const kl_node *n)
{
    print(b, n, 0);
    kl_puts(b, "\n");
}
