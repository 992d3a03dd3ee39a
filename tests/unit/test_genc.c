/* test_genc.c - the C back end against the interpreter, on the functions in tests/gen.
 *
 * A file in the folders c and run there begins with lines
 *     ; run grid=G0[,G1[,G2]] NAME=VALUE ...
 * one for each launch; the names are scalar parameters.  tests/kt compares the text that is
 * emitted for those in c; here all are compiled by gcc and clang and must give the
 * interpreter's bits. */
#define _GNU_SOURCE
#include <math.h>

#include "genc_box.h"

#include <dirent.h>

#include "gen/c/gen.h"
#include "ir/text.h"

#define FOLDER "tests/gen"

struct file {
    char name[128];
    char *text;
    size_t len;
};

static const char *only; /* part of a file's name, from the command line */

struct files {
    struct file *v;
    size_t n;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

static void read_one(struct files *l, const char *folder)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        char path[300];
        if (n < 5 || n > 100 || strcmp(e->d_name + n - 4, ".kir") != 0)
            continue;
        if (only && !strstr(e->d_name, only))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        l->v = realloc(l->v, (l->n + 1) * sizeof *l->v);
        struct file *x = &l->v[l->n++];
        memcpy(x->name, e->d_name, n + 1);
        x->text = malloc(1 << 16);
        x->len = fread(x->text, 1, (1 << 16) - 1, f);
        x->text[x->len] = 0;
        fclose(f);
    }
    closedir(d);
}

static struct files read_folders(void)
{
    struct files l = {NULL, 0};
    read_one(&l, FOLDER "/c");
    read_one(&l, FOLDER "/run");
    if (l.n)
        qsort(l.v, l.n, sizeof *l.v, by_name);
    return l;
}

static void free_files(struct files *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i].text);
    free(l->v);
}

/* The launches of a file; how many failed. */
static unsigned launch_all(struct gb *x, uint32_t k, const char *text)
{
    unsigned bad = 0;
    const kl_fn *f = x->fn.v[k].f;
    for (const char *s = text; (s = strstr(s, "; run ")) != NULL; s++) {
        int64_t grid[3];
        uint64_t scalar[GB_PARAMS];
        const char *end = strchr(s, '\n');
        gb_launch(f, s, end, grid, scalar);
        for (int wild = 0; wild < 4; wild++)
            if (!gb_run(x, k, grid, scalar, wild & 1)) {
                print_error("    in %.*s, %s data\n", (int)(end - s), s,
                            wild & 1 ? "wild" : "tame");
                bad++;
                break;
            }
    }
    return bad;
}

static void all_files(const char *cc, const char *level)
{
    struct gb x;
    char cmd[64];
    snprintf(cmd, sizeof cmd, "command -v %s >/dev/null", cc);
    if (system(cmd) != 0)
        skip();
    struct files l = read_folders();
    if (!l.n) {
        print_message("no files in " FOLDER "; run this from the root of the tree\n");
        skip();
    }
    gb_open(&x);
    static const char *at; /* the file in work */
    if (setjmp(gb_raised))
        fail_msg("%s raised: %s", at, x.env.msg);
    for (size_t i = 0; i < l.n; i++) {
        at = l.v[i].name;
        uint32_t id = kl_src_add(&x.src, l.v[i].name, l.v[i].text, (uint32_t)l.v[i].len, false);
        kl_fn *f = kl_ir_read(&x.a, &x.src, id, x.d);
        gb_add(&x, f, l.v[i].name);
    }
    assert_true(gb_compile(&x, cc, level));
    unsigned bad = 0;
    for (size_t i = 0; i < l.n; i++)
        at = l.v[i].name, bad += launch_all(&x, (uint32_t)i, l.v[i].text);
    assert_int_equal(bad, 0);
    gb_close(&x);
    free_files(&l);
}

static void gcc_best(void **state)
{
    (void)state;
    all_files("gcc", gb_level());
}

static void clang_v3(void **state)
{
    (void)state;
    all_files("clang", "x86-64-v3");
}

/* Each operation has a row in the back end's table. */
static void rows(void **state)
{
    (void)state;
    for (int op = 1; op < KL_NOP; op++) {
        const struct kl_opinfo *o = &kl_ops[op];
        const struct cop *c = &kl_cops[op];
        bool has_int = o->iexpr && strcmp(o->iexpr, "NONE") != 0;
        bool has_float = o->fexpr && strcmp(o->fexpr, "NONE") != 0;
        if (!(o->flags & KL_F_EW)) {
            if (c->how == C_NONE && op != KL_OP_param && op != KL_OP_result && op != KL_OP_yield)
                fail_msg("%s has no row in cops.def", o->name);
            continue;
        }
        assert_int_equal(c->how, C_INLINE);
        if (o->cls == KL_C_CVT)
            continue; /* by the pair of types */
        if ((has_int && !c->itext) || (has_float && !c->ftext))
            fail_msg("%s: no text for %s", o->name, has_int && !c->itext ? "integers" : "floats");
    }
}

/* Each operation stands in some file, so that it has been run. */
static void covered(void **state)
{
    (void)state;
    struct files l = read_folders();
    if (!l.n || only)
        skip();
    unsigned missing = 0;
    for (int op = 1; op < KL_NOP; op++) {
        char word[40];
        bool found = op == KL_OP_param || op == KL_OP_result;
        snprintf(word, sizeof word, " %s ", kl_ops[op].name);
        for (size_t i = 0; i < l.n && !found; i++)
            for (const char *s = l.v[i].text; (s = strstr(s, kl_ops[op].name)) != NULL; s++) {
                char before = s[-1], after = s[strlen(kl_ops[op].name)];
                found |= before == ' ' && (after == ' ' || after == '\n');
            }
        if (!found) {
            print_error("no file in " FOLDER " has %s\n", kl_ops[op].name);
            missing++;
        }
    }
    free_files(&l);
    assert_int_equal(missing, 0);
}

/* Softmax for two widths is one text: the sizes are parameters of it. */
static void sizes_are_variables(void **state)
{
    (void)state;
    static const char text[] =
        "fn f(%%x: array<f32,1> x const, %%y: array<f32,1> y written, %%n: i64 n) {\n"
        "  %%z = const 0 : i64\n  %%o = const 1 : i64\n"
        "  %%vx = view %%x, %%z [%%n] stride [%%o] : array<f32,1>\n"
        "  %%vy = view %%y, %%z [%%n] stride [%%o] : array<f32,1>\n"
        "  %%v = load %%vx[%%z:%u] : f32[%u]\n"
        "  %%e = exp %%v : f32[%u]\n"
        "  %%s = reduce add %%e axis 0 : f32[1]\n"
        "  %%b = broadcast %%s : f32[%u]\n"
        "  %%q = div %%e, %%b : f32[%u]\n"
        "  store %%vy[%%z:%u], %%q\n}\n";
    struct gb x;
    gb_open(&x);
    if (setjmp(gb_raised))
        fail_msg("raised: %s", x.env.msg);
    const char *out[2];
    for (int i = 0; i < 2; i++) {
        unsigned n = i ? 8192 : 1024;
        char *s = kl_printf(&x.a, text, n, n, n, n, n, n);
        uint32_t id = kl_src_add(&x.src, "f.kir", s, (uint32_t)strlen(s), false);
        kl_fn *f = kl_ir_read(&x.a, &x.src, id, x.d);
        kl_buf b = {.a = &x.a};
        kl_cinfo ci;
        f->src = NULL; /* no comments with source lines */
        kl_c_emit(&b, f, "f", false, &ci);
        out[i] = kl_buf_str(&b);
        assert_true(ci.nextra >= 1 && ci.extra[0] == (int64_t)n);
    }
    assert_string_equal(out[0], out[1]);
    gb_close(&x);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(covered),
        cmocka_unit_test(sizes_are_variables),
        cmocka_unit_test(gcc_best),
        cmocka_unit_test(clang_v3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
