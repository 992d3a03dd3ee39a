/* markdown.c - docs/ops.md, from the rows of ops.def.  A test compares the file with this. */
#include "ir/ir.h"

static void put_cell(kl_buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '|')
            kl_puts(b, "\\");
        kl_buf_put(b, s, 1);
    }
}

static void put_code(kl_buf *b, const char *s)
{
    if (!s)
        return;
    kl_puts(b, "`");
    put_cell(b, s);
    kl_puts(b, "`");
}

static void put_flags(kl_buf *b, uint16_t flags)
{
    static const struct { uint16_t bit; const char *name; } name[] = {
        {KL_F_COMM, "commutative"}, {KL_F_ASSOC, "associative"}, {KL_F_IDEM, "idempotent"},
        {KL_F_FAST, "fast form"}, {KL_F_READ, "reads operand 0"}, {KL_F_WRITE, "writes operand 0"},
        {KL_F_REGION, "owns blocks"}, {KL_F_PIN, "stays in place"}, {KL_F_TERM, "ends a block"},
    };
    const char *sep = "";
    for (uint32_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (flags & name[i].bit) {
            kl_putf(b, "%s%s", sep, name[i].name);
            sep = ", ";
        }
}

static void put_ew(kl_buf *b, uint8_t cls, const char *title, const char *text)
{
    kl_putf(b, "\n### %s\n\n%s\n\n", title, text);
    kl_puts(b, "| operation | operands | on integers | on floats | properties | |\n"
               "|---|---|---|---|---|---|\n");
    for (uint32_t op = 1; op < KL_NOP; op++) {
        const struct kl_opinfo *row = &kl_ops[op];
        if (!(row->flags & KL_F_EW) || row->cls != cls)
            continue;
        kl_putf(b, "| **%s** | %s | ", row->name,
                row->nargs == 1 ? "a" : row->nargs == 2 ? "a, b" : "a, b, c");
        put_code(b, row->iexpr);
        kl_puts(b, " | ");
        put_code(b, row->fexpr);
        kl_puts(b, " | ");
        put_flags(b, row->flags);
        kl_puts(b, " | ");
        put_cell(b, row->doc);
        kl_puts(b, " |\n");
    }
}

static void put_sig(kl_buf *b, const char *sig)
{
    const char *sep = "";
    for (; *sig; sig++) {
        if (*sig == '*') {
            kl_puts(b, " ...");
            continue;
        }
        const char *s = *sig == 'A'   ? "array"
                        : *sig == 'T' ? "tile"
                        : *sig == 'I' ? "i64"
                        : *sig == 'B' ? "bool"
                        : *sig == 'S' ? "scalar"
                                      : "others";
        kl_putf(b, "%s%s", sep, s);
        sep = ", ";
    }
}

void kl_ops_markdown(kl_buf *b)
{
    static const struct { uint8_t cls; const char *title, *text; } group[] = {
        {KL_C_NUM, "Arithmetic",
         "On i32, u32, i64, u64, f32 and f64; the result has the operands' type."},
        {KL_C_INT, "Integers", "On i32, u32, i64 and u64."},
        {KL_C_BIT, "Bits", "On bool and the integers."},
        {KL_C_CMP, "Comparisons", "On the types of arithmetic; the result is bool."},
        {KL_C_SEL, "Choice", "a is bool; b, c and the result are of any one type."},
        {KL_C_CVT, "Conversions", "From any type to any type."},
        {KL_C_FLT, "Functions of floats", "On f32 and f64."},
    };
    static const char *const result[] = {"", "as written", "as operand 0"};
    static const char *const attr[] = {"", "value", "index", "access", "axes", "operation, axis",
                                       "axis, block", "block, unroll", "two blocks",
                                       "index, owner"};
    kl_puts(b, "# Operations\n\n"
               "Generated from `src/ir/ops.def` by `kl_ops_markdown`; a test compares. "
               "[ir.md](ir.md) has the form of the text and the rules that hold for all.\n\n"
               "## Element by element\n\n"
               "All operands and the result have one shape. The meaning is the C expression on "
               "each element; integers wrap, nothing traps, and `FN(name)` is the function "
               "`kl_<name>_<type>` of `src/ir/meaning.h` or `src/base/math.h`. Where a fast form "
               "exists, `name.fast` may differ on a GPU within a published bound.\n");
    for (uint32_t i = 0; i < sizeof group / sizeof group[0]; i++)
        put_ew(b, group[i].cls, group[i].title, group[i].text);
    kl_puts(b, "\n## Others\n\n"
               "| operation | operands | result | attribute | properties | |\n"
               "|---|---|---|---|---|---|\n");
    for (uint32_t op = 1; op < KL_NOP; op++) {
        const struct kl_opinfo *row = &kl_ops[op];
        if (row->flags & KL_F_EW)
            continue;
        kl_putf(b, "| **%s** | ", row->name);
        put_sig(b, row->sig);
        kl_putf(b, " | %s | %s | ", result[row->res], attr[row->attr]);
        put_flags(b, row->flags);
        kl_puts(b, " | ");
        put_cell(b, row->doc);
        kl_puts(b, " |\n");
    }
}
