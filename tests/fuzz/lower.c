/* lower.c - fuzz target: what parses is checked, and each of its kernels is bound to arrays,
 * lowered, verified and sent through all passes, without a crash, a hang or an internal error.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc \
 *           -D_POSIX_C_SOURCE=200809L tests/fuzz/lower.c src/base/[mde]*.c src/base/math.c \
 *           src/lang/[a-z]*.c src/ir/[a-z]*.c src/opt/[a-z]*.c build/gen/embedded.c -lm
 *     ./a.out -timeout=20 -rss_limit_mb=2000 -max_len=3000 CORPUS kernels tests/run
 *
 * Sources change word by word, so that most still parse: a word is replaced by another one of
 * the file or of a list, removed, repeated, or a run of words is copied elsewhere. */
#include <stdio.h>
#include <stdlib.h>

#include "lang/lang.h"
#include "opt/pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

static const char *read_embedded(void *user, kl_arena *a, const char *from, const char *name,
                                 bool system, uint32_t *len, const char **fullname)
{
    (void)user, (void)a, (void)from;
    *fullname = name;
    return system ? kl_embedded(name, len) : NULL;
}

/* Every array of the kernel is given with small extents drawn from seed; scalars are left to
 * deduction, or given. */
static void one_kernel(kl_arena *a, kl_module_ast *m, const kl_node *k, uint32_t seed, kl_diags *d)
{
    const kl_node *params = k->kid[0];
    kiln_arg *arg = kl_new_n(a, kiln_arg, params->nkid + 1);
    int64_t(*shape)[KL_MAX_DIMS] = kl_alloc_zero(a, sizeof *shape * (params->nkid + 1));
    size_t n = 0;
    int64_t same = seed % 9;
    for (uint32_t i = 0; i < params->nkid; i++) {
        const kl_node *p = params->kid[i];
        bool isarray = p->nkid > 1 && p->kid[1], isfloat = p->kid && p->kid[0] && p->kid[0]->name &&
                                                            strchr(p->kid[0]->name, 'f');
        seed = seed * 1664525u + 1013904223u;
        arg[n].name = p->name;
        if (p->flags & KL_NF_TYPEPARAM || (!isarray && seed >> 24 & 3)) {
            continue;
        } else if (!isarray) {
            arg[n].kind = isfloat ? KILN_ARG_FLOAT : KILN_ARG_INT;
            if (isfloat)
                arg[n].u.f = (double)same;
            else
                arg[n].u.i = same;
        } else if (p->flags & KL_NF_OPTIONAL && seed >> 20 & 1) {
            continue;
        } else {
            uint32_t rank = p->kid[1]->nkid;
            enum kl_elem el = p->kid[0] && p->kid[0]->name
                                  ? kl_elem_by_name(p->kid[0]->name, (uint32_t)strlen(p->kid[0]->name))
                                  : KL_elem_none;
            for (uint32_t r = 0; r < rank && r < KL_MAX_DIMS; r++)
                shape[i][r] = p->kid[1]->kid[r] && p->kid[1]->kid[r]->kind == KL_N_INT
                                  ? (int64_t)p->kid[1]->kid[r]->ival
                                  : same;
            arg[n].kind = KILN_ARG_TENSOR;
            arg[n].u.tensor.dtype = (kiln_dtype)(el ? el : KL_f32);
            arg[n].u.tensor.ndim = (int32_t)rank;
            arg[n].u.tensor.shape = shape[i];
        }
        n++;
    }
    kl_bound bound;
    if (!kl_bind(a, m, k, arg, n, KL_BIND_SHAPES_ONLY, 2, &bound, d))
        return;
    kl_fn *f = kl_lower(a, m, &bound, d);
    if (!f)
        return;
    const char *bad = kl_ir_verify(f, a);
    if (bad)
        kl_raise(a->env, KILN_E_INTERNAL, "unsound IR: %s", bad);
    kl_pipeline pipe = {.level = 2, .check = true};
    kl_run_passes(f, &pipe, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jmp_buf jb;
    kl_env env = {.al = &kl_alloc_libc, .fail = &jb};
    kl_arena a = {.env = &env};
    kl_includer inc = {read_embedded, NULL};
    kl_diags *d = kl_diags_new(&kl_alloc_libc);
    if (!d)
        return 0;
    if (setjmp(jb) == 0) {
        kl_diags_use(d, &env, NULL);
        kl_module_ast *m = kl_parse(&a, "fuzz.kiln", (const char *)data, size, &inc, d);
        kl_check(m, d);
        bool sound = !d->nerr;
        for (uint32_t i = 0; sound && i < m->kernels.n; i++)
            one_kernel(&a, m, m->kernels.v[i], kl_hash(data, size) + i, d);
        kl_buf said = {.a = &a};
        kl_diags_render(&said, d, false);
    } else if (env.status == KILN_E_INTERNAL) {
        fprintf(stderr, "%s\n", env.msg);
        abort();
    }
    kl_diags_use(d, NULL, NULL);
    kl_arena_free(&a);
    kiln_diags_free(d);
    return 0;
}

/* ---- mutation by words ---- */

static const char *const words[] = {
    "0", "1", "2", "3", "4", "8", "-1", "1.5", "0.1", "inf", "nan", "true", "9223372036854775807", "1e39",
    "18446744073709551615", "i8", "i16", "u16", "u64", "f8e4m3", "f8e5m2", "cvt_nan(", "cvt_sat(",
    "bool", "u8", "i32", "u32", "i64", "f16", "bf16", "f32", "f64", "auto", "void", "T", "type", "const",
    "constexpr", "optional", "global", "x", "y", "n", "i", "a", "b", "s", "+", "-", "*", "/", "%", "<<", ">>",
    "&", "|", "^", "&&", "||", "!", "~", "<", ">", "<=", "==", "!=", "=", "+=", "<<=", "++", "?", ":", ";", ",",
    "(", ")", "[", "]", "{", "}", "if (", "else", "for (", "while (", "do", "break;", "continue;", "return",
    "return;", "sum(", "max(", "reduce(", "dot(", "range(", "full(", "reshape(", "trans(", "permute(", "cat(",
    "flip(", "broadcast(", "exp(", "fma(", "clamp(", "abs(", "load(", "store(", "inside(", "coord(", "size(",
    "given(", "cdiv(", "pow2ceil(", "bitcast(", "argmax(", "any(", ".axis = 1", ".axis = 0", ".mask =",
    "[0:4]", "[:]", "[3:4:-1]", "[0]", "program_id(0)", "num_programs(0)", "(i32)", "(f32)", "(bf16)", "(T)",
    "stride(", "requires(", "grid(", "kernel", "#pragma unroll\n", "&x[0]", "sizeof(T)", "acc(T)",
};

static bool word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

/* The word of text that begins at or behind at: its length; 0 at the end. */
static size_t next_word(const char *s, size_t size, size_t *at)
{
    while (*at < size && (s[*at] == ' ' || s[*at] == '\n'))
        ++*at;
    size_t e = *at;
    while (e < size && word_char(s[e]))
        e++;
    return e > *at ? e - *at : *at < size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    enum { MAX = 2000 };
    static size_t at[MAX], len[MAX];
    const char *s = (const char *)data;
    size_t n = 0, out = 0;
    char *r = malloc(2 * max + 256);
    if (!r)
        return size;
    for (size_t p = 0; n < MAX && (len[n] = next_word(s, size, &p)); p += len[n++])
        at[n] = p;
    uint32_t rnd = seed | 1;
#define RND(k) ((rnd = rnd * 1103515245u + 12345u), (rnd >> 12) % (uint32_t)(k))
    size_t i = n ? RND(n) : 0, j = n ? RND(n) : 0, run = 1 + RND(6);
    const char *w = words[RND(sizeof words / sizeof *words)];
    size_t beg = n ? at[i] : 0, end = n ? at[i] + len[i] : 0;
    switch (n ? RND(6) : 0) {
    case 0: break;                                              /* insert a word of the list */
    case 1: w = ""; break;                                      /* remove */
    case 2: break;                                              /* replace by one of the list */
    default: w = NULL;                                          /* by a run of the file */
    }
    bool insert = RND(3) == 0;
    memcpy(r, s, insert ? end : beg);
    out = insert ? end : beg;
    r[out++] = ' ';
    if (w) {
        size_t k = strlen(w);
        memcpy(r + out, w, k);
        out += k;
    } else {
        size_t last = j + run < n ? j + run : n - 1, k = at[last] + len[last] - at[j];
        k = k > 200 ? len[j] : k;
        memcpy(r + out, s + at[j], k);
        out += k;
    }
    r[out++] = ' ';
    memcpy(r + out, s + end, size - end);
    out += size - end;
    if (out > max)
        out = max;
    memcpy(data, r, out);
    free(r);
    return out;
}
