/* ops.c - every operation by itself: one small kernel for each operation and element type, over
 * all pairs of special values and random ones.  The runner compares the targets bit by bit. */
#include <string.h>

#include "random.h"

enum { N = 6000 };

#define FMT(...) pool_fmt(&p->mem, __VA_ARGS__)

/* Types that a row exists for. */
enum { F16 = 1, BF16 = 2, F32 = 4, F64 = 8, U8 = 16, I32 = 32, U32 = 64, I64 = 128, BOOL = 256,
       I8 = 512, I16 = 1024, U16 = 2048, U64 = 4096, E4 = 8192, E5 = 16384 };
enum {
    FLT = F16 | BF16 | F32 | F64 | E4 | E5,
    INT = U8 | I32 | U32 | I64 | I8 | I16 | U16 | U64,
    NUM = FLT | INT,
    ANY = NUM | BOOL
};

static const struct {
    unsigned bit;
    kiln_dtype t;
    kiln_dtype promoted;
} types[] = {
    {F16, KILN_F16, KILN_F32},  {BF16, KILN_BF16, KILN_F32}, {F32, KILN_F32, KILN_F32},
    {F64, KILN_F64, KILN_F64},  {U8, KILN_U8, KILN_I32},     {I32, KILN_I32, KILN_I32},
    {U32, KILN_U32, KILN_U32},  {I64, KILN_I64, KILN_I64},   {BOOL, KILN_BOOL, KILN_I32},
    {I8, KILN_I8, KILN_I32},    {I16, KILN_I16, KILN_I32},   {U16, KILN_U16, KILN_I32},
    {U64, KILN_U64, KILN_U64},  {E4, KILN_F8E4M3, KILN_F32}, {E5, KILN_F8E5M2, KILN_F32},
};
enum { NTYPES = sizeof types / sizeof *types };

/* Element by element.  a, b, c are the operands; the result is of the promoted type ('p'), of
 * the operands' own type ('t'), bool ('b') or an 8-bit float ('4', '5'). */
static const struct {
    const char *text;
    unsigned types;
    char result;
} rows[] = {
    {"a + b", ANY, 'p'},          {"a - b", ANY, 'p'},           {"a * b", ANY, 'p'},
    {"a / b", NUM, 'p'},          {"a % b", INT, 'p'},           {"-a", NUM, 'p'},
    {"+a", NUM, 'p'},             {"~a", INT, 'p'},              {"!a", BOOL, 'b'},
    {"a & b", INT, 'p'},          {"a | b", INT, 'p'},           {"a ^ b", INT, 'p'},
    {"a & b", BOOL, 'b'},         {"a | b", BOOL, 'b'},          {"a ^ b", BOOL, 'b'},
    {"a && b", BOOL, 'b'},        {"a || b", BOOL, 'b'},         {"a << b", INT, 'p'},
    {"a >> b", INT, 'p'},         {"a << 31", INT, 'p'},         {"a >> 33", INT, 'p'},
    {"a == b", ANY, 'b'},         {"a != b", ANY, 'b'},          {"a < b", ANY, 'b'},
    {"a <= b", ANY, 'b'},         {"a > b", ANY, 'b'},           {"a >= b", ANY, 'b'},
    {"a < b ? a : c", ANY, 't'},  {"b == c ? a : b", ANY, 't'},  {"min(a, b)", NUM, 'p'},
    {"max(a, b)", NUM, 'p'},      {"abs(a)", NUM, 'p'},          {"clamp(a, b, c)", NUM, 'p'},
    {"cdiv(a, b)", INT, 'p'},     {"floordiv(a, b)", INT, 'p'},  {"floormod(a, b)", INT, 'p'},
    {"pow2ceil(a)", INT, 'p'},    {"fma(a, b, c)", FLT, 'p'},    {"sqrt(a)", FLT, 'p'},
    {"rsqrt(a)", FLT, 'p'},       {"exp(a)", FLT, 'p'},          {"exp2(a)", FLT, 'p'},
    {"log(a)", FLT, 'p'},         {"tanh(a)", FLT, 'p'},         {"erf(a)", FLT, 'p'},
    {"erfc(a)", FLT, 'p'},        {"sigmoid(a)", FLT, 'p'},      {"floor(a)", FLT, 'p'},
    {"ceil(a)", FLT, 'p'},        {"trunc(a)", FLT, 'p'},        {"rint(a)", FLT, 'p'},
    {"fmin(a, b)", FLT, 'p'},     {"fmax(a, b)", FLT, 'p'},      {"exp_fast(a)", FLT, 'p'},
    {"sin(a)", FLT, 'p'},         {"cos(a)", FLT, 'p'},          {"log2(a)", FLT, 'p'},
    {"log1p(a)", FLT, 'p'},       {"expm1(a)", FLT, 'p'},        {"pow(a, b)", FLT, 'p'},
    {"round(a)", FLT, 'p'},       {"fmod(a, b)", FLT, 'p'},      {"copysign(a, b)", FLT, 'p'},
    {"fmod(a, 0.75)", FLT, 'p'},  {"pow(2, a)", FLT, 'p'},       {"pow(a, 3)", FLT, 'p'},
    {"isnan(a)", FLT, 'b'},       {"isinf(a)", FLT, 'b'},        {"isfinite(a)", FLT, 'b'},
    {"umulhi(a, b)", INT, 'p'},   {"umulhi(a, 1000)", INT, 'p'}, {"popcount(a)", INT, 'p'},
    {"clz(a)", INT, 'p'},         {"ctz(a)", INT, 'p'},          {"sin_fast(a)", FLT, 'p'},
    {"pow_fast(a, b)", FLT, 'p'}, {"sqrt_fast(a)", FLT, 'p'},    {"log2_fast(a)", FLT, 'p'},
    {"a / 7", INT, 'p'},          {"a % 7", INT, 'p'},           {"a / 16", INT, 'p'},
    {"a % 16", INT, 'p'},         {"floordiv(a, 10)", INT, 'p'}, {"a * 3 + b", NUM, 'p'},
    {"a * 0.5 - b", FLT, 'p'},    {"b + (a - b)", NUM, 'p'},     {"a - a", NUM, 'p'},
    {"a * 1", NUM, 'p'},          {"a + 0", NUM, 'p'},           {"0 - a", NUM, 'p'},
    {"a * 0", NUM, 'p'},          {"a / 1", NUM, 'p'},           {"-(a - b)", NUM, 'p'},
    {"cvt_nan(f8e4m3, a)", ANY, '4'}, {"cvt_nan(f8e5m2, a)", ANY, '5'},
    {"a == a", ANY, 'b'},         {"!(a < b)", ANY, 'b'},        {"a", ANY, 't'},
    {"max(a, -0.0)", FLT, 'p'},   {"max(a, 0.0)", FLT, 'p'},     {"min(a, -0.0)", FLT, 'p'},
    {"min(a, 0.0)", FLT, 'p'},    {"fmax(a, -0.0)", FLT, 'p'},   {"fmax(a, 0.0)", FLT, 'p'},
    {"fmin(a, -0.0)", FLT, 'p'},  {"fmin(a, 0.0)", FLT, 'p'},    {"min(max(a, -1), 2)", FLT, 'p'},
    {"exp(fmin(abs(a), 80))", FLT, 'p'},                         {"exp2(fmax(fmin(a, 9), -9))", FLT, 'p'},
    {"1 / (1 + exp(-abs(a)))", FLT, 'p'},                        {"1 / fma(a, a, 1)", FLT, 'p'},
    {"b / (3 + fmin(abs(a), 5))", FLT, 'p'},                     {"exp2(min(abs(a), 9))", FLT, 'p'},
};
enum { NROWS = sizeof rows / sizeof *rows };

/* Reductions of a row of n elements, and along the first axis of an [n][3] tile. */
static const struct {
    const char *fn;
    unsigned types;
    char result; /* 'i': i32 */
} reductions[] = {
    {"sum", ANY, 'p'}, {"max", NUM, 'p'}, {"min", NUM, 'p'},    {"argmax", NUM, 'i'},
    {"argmin", NUM, 'i'}, {"prod", INT, 'p'},
    {"any", BOOL, 'b'}, {"all", BOOL, 'b'}, {"reduce", FLT, 'p'}, {"reduce_c", FLT, 'p'},
};
enum { NREDUCTIONS = sizeof reductions / sizeof *reductions };
/* Folds of rows and columns that leave every element, or carry two values. */
static const struct {
    const char *row, *column, *tail;
    unsigned types;
    bool function;
} folds[] = {
    {"cumsum(", "", "", NUM | BOOL, false},
    {"cumsum(", ", .reverse = true", "", NUM, false},
    {"cumprod(", "", "", NUM, false},
    {"scan(", "", "", NUM, true},
    {"scan(", ", .reverse = true", "", NUM, true},
    {"scan((struct pair){", "", ".v", NUM, true},
    {"scan((struct pair){", "", ".i", NUM, true},
    {"reduce((struct pair){", "", ".v", NUM, true},
    {"reduce((struct pair){", ", .commutative = true", ".i", NUM, true},
};
enum { NFOLDS = sizeof folds / sizeof *folds };
static const int lengths[] = {1, 2, 3, 5, 8, 13, 64, 100, 257, 1024, 3000};
enum { NLENGTHS = sizeof lengths / sizeof *lengths };

static const struct { int m, k, n; } dots[] = {
    {1, 1, 1}, {2, 3, 4}, {4, 16, 8}, {7, 5, 33}, {16, 16, 16}, {33, 70, 17}, {64, 65, 48},
};
enum { NDOTS = sizeof dots / sizeof *dots };

static void line(struct rprog *p, const char *text)
{
    p->line[p->nline++] = text;
}

static void array(struct rprog *p, const char *name, kiln_dtype t, int32_t rank, int64_t d0,
                  int64_t d1, bool written)
{
    struct rarray *x = &p->array[p->narray++];
    *x = (struct rarray){.name = name, .t = t, .rank = rank, .written = written, .given = true,
                         .alias = -1};
    x->ext[0] = d0;
    x->ext[1] = d1;
    x->str[0] = rank == 2 ? d1 : 1;
    x->str[1] = 1;
}

static const char *text_of(const struct rprog *p, kiln_dtype t)
{
    (void)p;
    return kiln_dtype_name(t);
}

static void elementwise(struct rprog *p, unsigned row, unsigned ty)
{
    kiln_dtype t = types[ty].t, r = rows[row].result == 'p'   ? types[ty].promoted
                                    : rows[row].result == 'b' ? KILN_BOOL
                                    : rows[row].result == '4' ? KILN_F8E4M3
                                    : rows[row].result == '5' ? KILN_F8E5M2
                                                              : t;
    const char *T = text_of(p, t);
    p->title = FMT("%s on %s", rows[row].text, T);
    line(p, FMT("kernel k(i64 n, %s y[n], const %s x0[n], const %s x1[n], const %s x2[n])",
                text_of(p, r), T, T, T));
    line(p, "    grid(cdiv(n, 1000))");
    line(p, "{");
    line(p, "    i64 i = program_id(0) * 1000;");
    line(p, "    auto a = x0[i:1000], b = x1[i:1000], c = x2[i:1000];");
    line(p, FMT("    y[i:1000] = %s;", rows[row].text));
    line(p, "}");
    array(p, "y", r, 1, N, 0, true);
    for (unsigned i = 0; i < 3; i++)
        array(p, FMT("x%u", i), t, 1, N, 0, false);
}

static void conversion(struct rprog *p, unsigned from, unsigned to)
{
    const char *f = text_of(p, types[from].t), *t = text_of(p, types[to].t);
    p->title = FMT("(%s) of %s", t, f);
    line(p, FMT("kernel k(i64 n, %s y[n], const %s x0[n])", t, f));
    line(p, "    grid(cdiv(n, 1000))");
    line(p, "{");
    line(p, "    i64 i = program_id(0) * 1000;");
    line(p, FMT("    y[i:1000] = (%s)x0[i:1000];", t));
    line(p, "}");
    array(p, "y", types[to].t, 1, N, 0, true);
    array(p, "x0", types[from].t, 1, N, 0, false);
}

static void reduction(struct rprog *p, unsigned r, unsigned ty, unsigned len)
{
    kiln_dtype t = types[ty].t, o = reductions[r].result == 'i'   ? KILN_I32
                                    : reductions[r].result == 'b' ? KILN_BOOL
                                                                  : types[ty].promoted;
    const char *T = text_of(p, t), *fn = reductions[r].fn, *tail = "";
    int n = lengths[len];
    p->title = FMT("%s on %d of %s", fn, n, T);
    if (strncmp(fn, "reduce", 6) == 0) {
        const char *P = text_of(p, types[ty].promoted);
        line(p, FMT("%s f(%s a, %s b)", P, P, P));
        line(p, "{");
        line(p, "    return a * 0.75 + b;");
        line(p, "}");
        tail = fn[6] ? ", f, .commutative = true" : ", f";
        fn = "reduce";
    }
    const char *cast = *tail ? FMT("(%s)", text_of(p, types[ty].promoted)) : "";
    line(p, FMT("kernel k(i64 m, %s y[m], %s z[3], const %s x0[m][%d], const %s x1[%d][3])",
                text_of(p, o), text_of(p, o), T, n, T, n));
    line(p, "    grid(m)");
    if ((r + ty + len) % 2) /* over the CTAs of a cluster, where there are such */
        line(p, FMT("    warps(%d) cluster(%d)", 1 << (r + len) % 5, 2 << (r + len / 2 + ty) % 4));
    line(p, "{");
    line(p, "    i64 i = program_id(0);");
    line(p, FMT("    y[i] = %s(%sx0[i][0:%d]%s);", fn, cast, n, tail));
    line(p, "    if (i == 0)");
    line(p, FMT("        z[0:3] = %s(%sx1[0:%d][0:3]%s, .axis = 0);", fn, cast, n, tail));
    line(p, "}");
    array(p, "y", o, 1, 3, 0, true);
    array(p, "z", o, 1, 3, 0, true);
    array(p, "x0", t, 2, 3, n, false);
    array(p, "x1", t, 2, n, 3, false);
    p->specials = len % 2;
}

static void fold(struct rprog *p, unsigned r, unsigned ty, unsigned len)
{
    const char *T = text_of(p, types[ty].t), *P = text_of(p, types[ty].promoted);
    bool pair = strstr(folds[r].row, "pair") != NULL, whole = strncmp(folds[r].row, "reduce", 6) != 0;
    int n = lengths[len], m = whole ? n : 1;
    const char *out = strcmp(folds[r].tail, ".i") == 0 ? "i32" : P;
    kiln_dtype o = strcmp(folds[r].tail, ".i") == 0 ? KILN_I32 : types[ty].promoted;
    p->title = FMT("%s%s%s on %d of %s", folds[r].row, folds[r].column, folds[r].tail, n, T);
    if (pair) {
        line(p, FMT("struct pair { %s v; i32 i; };", P));
        line(p, "struct pair f(struct pair a, struct pair b)");
        line(p, "{");
        line(p, "    return (struct pair){a.v - b.v, a.v < b.v ? 3 * a.i + b.i : b.i - a.i};");
        line(p, "}");
    } else if (folds[r].function) {
        line(p, FMT("%s f(%s a, %s b) { return a - b; }", P, P, P));
    }
    line(p, FMT("kernel k(i64 m, %s y[m][%d], %s z[%d][3], const %s x0[m][%d], const %s x1[%d][3])", out, m, out, m,
                T, n, T, n));
    line(p, "    grid(m)");
    line(p, "{");
    line(p, "    i64 i = program_id(0);");
    const char *f = folds[r].function ? ", f" : "";
    line(p, FMT("    y[i:1][0:%d] = %s%s(x0[i:1][0:%d])%s%s, .axis = 1%s)%s;", m, folds[r].row,
                pair ? FMT("(%s)", P) : "", n, pair ? FMT(", range(%d)}", n) : "", f, folds[r].column, folds[r].tail));
    line(p, "    if (i == 0)");
    line(p, FMT("        z[0:%d][0:3] = %s%s(x1[0:%d][0:3])%s%s, .axis = 0%s)%s;", m, folds[r].row,
                pair ? FMT("(%s)", P) : "", n, pair ? ", 2}" : "", f, folds[r].column, folds[r].tail));
    line(p, "}");
    array(p, "y", o, 2, 3, m, true);
    array(p, "z", o, 2, m, 3, true);
    array(p, "x0", types[ty].t, 2, 3, n, false);
    array(p, "x1", types[ty].t, 2, n, 3, false);
    p->specials = len % 2;
}

/* y is a plain product; of f32, z is one of tf32 numbers, or of three of them. */
static void matrix(struct rprog *p, unsigned d, unsigned ty)
{
    kiln_dtype t = types[ty].t, o = types[ty].promoted;
    const char *T = text_of(p, t), *O = text_of(p, o);
    int M = dots[d].m, K = dots[d].k, W = dots[d].n;
    p->title = FMT("dot of %dx%d and %dx%d of %s", M, K, K, W, T);
    line(p, FMT("kernel k(%s y[%d][%d], %s z[%d][%d], const %s x0[%d][%d], const %s x1[%d][%d])",
                O, M, W, O, M, W, T, M, K, T, K, W));
    line(p, "    grid(1)");
    line(p, "{");
    line(p, FMT("    auto t = dot(x0[0:%d][0:%d], x1[0:%d][0:%d]);", M, K, K, W));
    line(p, FMT("    y[0:%d][0:%d] = t;", M, W));
    line(p, FMT("    z[0:%d][0:%d] = dot(x0[0:%d][0:%d], x1[0:%d][0:%d], t + 1%s);", M, W, M, K, K,
                W, t != KILN_F32 ? "" : d % 2 ? ", .precision = tf32" : ", .precision = tf32x3"));
    line(p, "}");
    array(p, "y", o, 2, M, W, true);
    array(p, "z", o, 2, M, W, true);
    array(p, "x0", t, 2, M, K, false);
    array(p, "x1", t, 2, K, W, false);
    p->specials = false;
}

/* Of the types that only differ from others in how they are loaded, a third of the rows. */
static bool kept(unsigned ty, unsigned i)
{
    return !(types[ty].bit & (I8 | I16 | U16 | E4 | E5)) || (i + ty) % 3 == 0;
}

bool one_operation(struct rprog *p, unsigned index)
{
    memset(p, 0, sizeof *p);
    p->seed = 1000000000u + index;
    p->line = pool_get(&p->mem, 32 * sizeof *p->line);
    p->specials = p->pairs = true;
    line(p, "#pragma kiln 1");
    for (unsigned ty = 0; ty < NTYPES; ty++)
        for (unsigned r = 0; r < NROWS; r++)
            if (rows[r].types & types[ty].bit && (kept(ty, r) || strchr("t45", rows[r].result)) &&
                index-- == 0) {
                elementwise(p, r, ty);
                return true;
            }
    if (index < NTYPES * NTYPES) {
        conversion(p, index / NTYPES, index % NTYPES);
        return true;
    }
    index -= NTYPES * NTYPES;
    p->pairs = false;
    for (unsigned ty = 0; ty < NTYPES; ty++)
        for (unsigned r = 0; r < NREDUCTIONS; r++)
            for (unsigned l = 0; l < NLENGTHS; l++)
                if (reductions[r].types & types[ty].bit && kept(ty, r + l) && index-- == 0) {
                    reduction(p, r, ty, l);
                    return true;
                }
    for (unsigned ty = 0; ty < NTYPES; ty++)
        for (unsigned r = 0; r < NFOLDS; r++)
            for (unsigned l = 0; l < NLENGTHS; l++)
                if (folds[r].types & types[ty].bit && kept(ty, r + l) && index-- == 0) {
                    fold(p, r, ty, l);
                    return true;
                }
    for (unsigned ty = 0; ty < NTYPES; ty++)
        for (unsigned d = 0; d < NDOTS; d++)
            if (types[ty].bit & NUM && kept(ty, d) && index-- == 0) {
                matrix(p, d, ty);
                return true;
            }
    return false;
}
