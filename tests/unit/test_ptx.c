/* test_ptx.c - the GPU back end against the interpreter, on the functions in tests/gen/c and
 * tests/gen/ptx, and on those of math and bits in tests/gen/run.
 *
 * A file begins with lines
 *     ; run grid=G0[,G1[,G2]] NAME=VALUE ... [v16]
 * one for each launch; the names are scalar parameters, v16 says that this fact holds (`; registers
 * without v16`: registers are counted without it).  `; clusters`
 * says that it is for targets with clusters; on others it would take the assembler long.  The PTX
 * runs in the executor and must give the interpreter's bits, with no finding; and ptxas, where it
 * is, must take all texts for all targets. */
#define _GNU_SOURCE
#include <math.h>

#include "genc_box.h"

#include <dirent.h>

#include "gen/ptx/ptx.h"
#include "sim/sim.h"

static const char *only; /* part of a file's name, from the command line */
static const uint32_t archs[] = {80, 86, 89, 90, 100, 120};
enum { NARCH = sizeof archs / sizeof *archs };

struct file {
    char name[128];
    char *text;
    size_t len;
};

struct files {
    struct file *v;
    size_t n;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

/* Files whose names begin with `prefix`. */
static void read_some(struct files *l, const char *folder, const char *prefix)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        char path[300];
        if (n < 5 || n > 100 || strcmp(e->d_name + n - 4, ".kir") != 0)
            continue;
        if ((only && !strstr(e->d_name, only)) || strncmp(e->d_name, prefix, strlen(prefix)) != 0)
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
    if (l->n)
        qsort(l->v, l->n, sizeof *l->v, by_name);
}

static void read_folder(struct files *l, const char *folder)
{
    read_some(l, folder, "");
}

static struct files read_folders(void)
{
    struct files l = {NULL, 0};
    read_folder(&l, "tests/gen/c");
    read_folder(&l, "tests/gen/ptx");
    read_some(&l, "tests/gen/run", "math_");
    read_some(&l, "tests/gen/run", "bits_");
    return l;
}

static void free_files(struct files *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i].text);
    free(l->v);
}

/* ---- one function in the executor ---- */

struct code {
    kl_fn *f;
    const char *path, *text[2]; /* without and with v16 */
    kl_ptxinfo info[2];
    kl_sim *sim[2];
};

static bool compile(struct gb *x, struct code *c, bool v16)
{
    kl_buf b = {.a = &x->a};
    kl_ptx_opts o = {.arch = 90, .v16 = v16, .i32 = v16, .exact = true};
    if (c->text[v16])
        return true;
    kl_buf body = {.a = &x->a};
    kl_ptx_emit(&body, c->f, &o, &c->info[v16]);
    kl_ptx_prelude(&b, c->f, &o, c->info[v16].cluster > 1);
    kl_buf_put(&b, body.s, body.n);
    c->text[v16] = kl_buf_str(&b);
    uint32_t id = kl_src_add(&x->src, c->path, c->text[v16], (uint32_t)b.n, false);
    c->sim[v16] = kl_sim_parse(&x->a, &x->src, id, x->d);
    return c->sim[v16] != NULL;
}

static void show(struct gb *x)
{
    kl_buf b = {.a = &x->a};
    kl_diags_render(&b, x->d, false);
    print_error("%s\n", kl_buf_str(&b));
    kl_diags_use(x->d, NULL, NULL);
    kiln_diags_free(x->d);
    x->d = kl_diags_new(&kl_alloc_libc);
    kl_diags_use(x->d, &x->env, &x->src);
}

static bool run_one(struct gb *x, struct code *c, bool v16, const int64_t grid[3],
                    const uint64_t *scalar, unsigned how)
{
    const kl_fn *f = c->f;
    bool wild = how & 1, same = true;
    struct kl_slot slot[GB_PARAMS] = {{0}};
    char *mem[2][GB_PARAMS] = {{NULL}};
    uint64_t p[GB_PARAMS + 5] = {0};
    kl_sim_buffer buf[GB_PARAMS];
    uint32_t nbuf = 0;
    assert_true(f->nparam <= GB_PARAMS);
    gb_memory(x, f, scalar, wild, slot, mem, p);
    for (uint32_t i = 0; i < f->nparam; i++)
        if (mem[1][i])
            buf[nbuf++] = (kl_sim_buffer){mem[1][i], (size_t)GB_ELEMS * kl_elems[f->param[i].elem].bytes,
                                          f->param[i].written};
    int64_t total = grid[0] * grid[1] * grid[2];
    for (int i = 0; i < 3; i++)
        p[f->nparam + (uint32_t)i] = (uint64_t)grid[i];
    p[f->nparam + 3] = (uint64_t)total;
    p[f->nparam + 4] = 7;
    kl_launch l = {.slot = slot, .grid = {grid[0], grid[1], grid[2]}, .num_sms = 7};
    assert_int_equal(kl_interp_range(f, &l, 0, total, &x->env), KILN_OK);
    /* without i32, now and then fewer CTAs than programs: each runs several */
    uint32_t ctas = (uint32_t)(how & 2 && !v16 ? (total + 1) / 2 : total) * c->info[v16].cluster;
    kl_sim_launch sl = {.entry = c->info[v16].entry,
                        .grid = {ctas, 1, 1},
                        .block = {c->info[v16].threads, 1, 1},
                        .dynamic_shared = c->info[v16].dynamic,
                        .param = p,
                        .param_bytes = 8 * (f->nparam + 5),
                        .buffer = buf,
                        .nbuffer = nbuf};
    kl_sim_options so = {.checks = KL_SIM_CHECKS, .reverse = how & 2};
    kiln_status st = kl_sim_run(c->sim[v16], &sl, &so, NULL, NULL, x->d, &x->env);
    if (st) {
        print_error("%s: the executor says %d\n", c->path, (int)st);
        show(x);
        same = false;
    }
    return gb_same(f, c->path, v16 ? "PTX (v16)" : "PTX", mem) && same;
}

/* The launches of a file; how many failed. */
static unsigned launch_all(struct gb *x, struct code *c, const char *text)
{
    unsigned bad = 0;
    const kl_fn *f = c->f;
    for (const char *s = text; (s = strstr(s, "; run ")) != NULL; s++) {
        int64_t grid[3];
        uint64_t scalar[GB_PARAMS];
        const char *end = strchr(s, '\n');
        bool v16 = memmem(s, (size_t)(end - s), " v16", 4) != NULL;
        gb_launch(f, s, end, grid, scalar);
        for (int k = 0; k <= v16; k++) {
            if (!compile(x, c, k)) {
                print_error("%s: the executor does not take the PTX\n", c->path);
                show(x);
                return bad + 1;
            }
            for (unsigned how = 0; how < 4; how++)
                if (!run_one(x, c, k, grid, scalar, how)) {
                    print_error("    in %.*s, %s data\n", (int)(end - s), s,
                                how & 1 ? "wild" : "tame");
                    bad++;
                    break;
                }
        }
    }
    return bad;
}

static kl_fn *read_fn(struct gb *x, const struct file *file)
{
    uint32_t id = kl_src_add(&x->src, file->name, file->text, (uint32_t)file->len, false);
    kl_fn *f = kl_ir_read(&x->a, &x->src, id, x->d);
    assert_non_null(f);
    return f;
}

static void executor(void **state)
{
    (void)state;
    struct gb x;
    struct files l = read_folders();
    if (!l.n) {
        print_message("no files; run this from the root of the tree\n");
        skip();
    }
    static unsigned bad;
    static size_t i;
    bad = 0;
    for (i = 0; i < l.n; i++) {
        gb_open(&x);
        if (setjmp(gb_raised)) {
            print_error("%s raised: %s\n", l.v[i].name, x.env.msg);
            bad++;
            gb_close(&x);
            continue;
        }
        struct code c = {.f = read_fn(&x, &l.v[i]), .path = l.v[i].name};
        if (getenv("KILN_SHOW_PTX") && compile(&x, &c, getenv("KILN_SHOW_PTX")[0] == '1'))
            print_message("%s\n", c.text[getenv("KILN_SHOW_PTX")[0] == '1']);
        bad += launch_all(&x, &c, l.v[i].text) != 0;
        gb_close(&x);
    }
    print_message("%zu files, %u bad\n", l.n, bad);
    free_files(&l);
    assert_int_equal(bad, 0);
}

/* ---- ptxas ---- */

/* A function whose text is what it was for the target before, but for the head, is left out: what a
 * target takes later ones take.  The first and last target get all, and KILN_TEST_EXHAUSTIVE gives
 * all to each. */
static bool same_text(char **before, kl_buf *b)
{
    bool same = *before && strcmp(*before, kl_buf_str(b)) == 0;
    free(*before);
    *before = strdup(kl_buf_str(b));
    return same;
}

static void ptxas(void **state)
{
    (void)state;
    const char *tool = getenv("PTXAS") ? getenv("PTXAS") : "/usr/local/cuda/bin/ptxas";
    if (access(tool, X_OK) != 0)
        skip();
    struct files l = read_folders();
    char dir[] = "/tmp/ptx-XXXXXX", cmd[512];
    assert_non_null(mkdtemp(dir));
    unsigned bad = 0;
    char **before = calloc(2 * l.n + 1, sizeof *before);
    assert_non_null(before);
    for (size_t k = 0; k < NARCH && l.n; k++) {
        bool all = k == 0 || k == NARCH - 1 || getenv("KILN_TEST_EXHAUSTIVE");
        struct gb x;
        gb_open(&x);
        if (setjmp(gb_raised))
            fail_msg("raised: %s", x.env.msg);
        kl_buf b = {.a = &x.a};
        kl_ptx_opts o = {.arch = archs[k], .lines = true};
        for (size_t i = 0; i < l.n; i++) {
            kl_fn *f = read_fn(&x, &l.v[i]);
            if (i == 0)
                kl_ptx_prelude(&b, f, &o, true);
            if (archs[k] < 90 && strstr(l.v[i].text, "; clusters"))
                continue;
            for (int v = 0; v < 2; v++) {
                kl_ptxinfo info;
                o.v16 = o.i32 = v;
                o.first_file = (uint32_t)(64 * (2 * i + (size_t)v) + 1);
                o.symbol = kl_printf(&x.a, "k%zu_%d_%.*s", i, v, (int)strcspn(l.v[i].name, "."), l.v[i].name);
                kl_buf one = {.a = &x.a};
                kl_ptx_emit(&one, f, &o, &info);
                if (!same_text(&before[2 * i + (size_t)v], &one) || all)
                    kl_buf_put(&b, one.s, one.n);
            }
        }
        char path[128];
        snprintf(path, sizeof path, "%s/%u.ptx", dir, archs[k]);
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fwrite(kl_buf_str(&b), 1, b.n, out);
        fclose(out);
        snprintf(cmd, sizeof cmd, "%s -O1 -arch=sm_%u -o /dev/null %s", tool, archs[k], path);
        if (system(cmd) != 0) {
            print_error("ptxas does not take %s\n", path);
            bad++;
        }
        gb_close(&x);
    }
    for (size_t i = 0; i < 2 * l.n; i++)
        free(before[i]);
    free(before);
    free_files(&l);
    if (!bad) {
        snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
        if (system(cmd) != 0)
            print_message("cannot remove %s\n", dir);
    }
    assert_int_equal(bad, 0);
}

/* Registers and spills of the kernels in tests/gen/ptx on sm_90, beside the table there.  With -c
 * ptxas gives what the driver's assembler gives.  Registers may move a little with the assembler's
 * version; nothing may spill more than the table says.  KILN_UPDATE=1 writes it. */
static void registers(void **state)
{
    (void)state;
    static const char table[] = "tests/gen/ptx/registers.txt";
    const char *tool = getenv("PTXAS") ? getenv("PTXAS") : "/usr/local/cuda/bin/ptxas";
    if (access(tool, X_OK) != 0 || only)
        skip();
    struct files l = {NULL, 0};
    read_folder(&l, "tests/gen/ptx");
    char dir[] = "/tmp/ptx-XXXXXX", cmd[512], line[512], old[1 << 14] = "";
    assert_non_null(mkdtemp(dir));
    struct gb x;
    gb_open(&x);
    if (setjmp(gb_raised))
        fail_msg("raised: %s", x.env.msg);
    kl_buf b = {.a = &x.a}, now = {.a = &x.a};
    kl_ptx_opts o = {.arch = 90, .v16 = true, .i32 = true};
    for (size_t i = 0; i < l.n; i++) {
        kl_ptxinfo info;
        kl_fn *f = read_fn(&x, &l.v[i]);
        if (i == 0)
            kl_ptx_prelude(&b, f, &o, true);
        o.symbol = kl_printf(&x.a, "k_%.*s", (int)strcspn(l.v[i].name, "."), l.v[i].name);
        o.v16 = !strstr(l.v[i].text, "; registers without v16");
        kl_ptx_emit(&b, f, &o, &info);
    }
    snprintf(cmd, sizeof cmd, "%s/k.ptx", dir);
    FILE *out = fopen(cmd, "w");
    assert_non_null(out);
    fwrite(kl_buf_str(&b), 1, b.n, out);
    fclose(out);
    snprintf(cmd, sizeof cmd, "%s -c -v -arch=sm_90 -o /dev/null %s/k.ptx 2>&1", tool, dir);
    FILE *p = popen(cmd, "r");
    assert_non_null(p);
    char name[100] = "?";
    unsigned spilled = 0, moved = 0, spill = 0, regs;
    while (fgets(line, sizeof line, p)) {
        const char *q;
        if ((q = strstr(line, "entry function 'k_")) != NULL)
            sscanf(q + 18, "%99[^']", name);
        if ((q = strstr(line, "bytes stack frame, ")) != NULL)
            sscanf(q + 19, "%u", &spill);
        if ((q = strstr(line, "Used ")) != NULL && sscanf(q + 5, "%u", &regs) == 1)
            kl_putf(&now, "%s %u %u\n", name, regs, spill);
    }
    pclose(p);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    if (system(cmd) != 0)
        print_message("cannot remove %s\n", dir);
    if (getenv("KILN_UPDATE")) {
        out = fopen(table, "w");
        assert_non_null(out);
        fwrite(kl_buf_str(&now), 1, now.n, out);
        fclose(out);
    }
    FILE *in = fopen(table, "r");
    if (in) {
        old[fread(old, 1, sizeof old - 1, in)] = 0;
        fclose(in);
    }
    for (char *s = now.s; s && *s; s = strchr(s, '\n') + 1) {
        unsigned is = 0, was = 0, spills = 0, spilt = 0;
        int n = (int)(strchr(s, ' ') - s);
        sscanf(s + n, "%u %u", &is, &spills);
        const char *at = old;
        while (at && (strncmp(at, s, (size_t)n + 1) != 0))
            at = (at = strchr(at, '\n')) ? at + 1 : NULL;
        if (at)
            sscanf(at + n, "%u %u", &was, &spilt);
        if (is > was + 8 || was > is + 8) {
            print_error("%.*s: %u registers, the table says %u\n", n, s, is, was);
            moved++;
        }
        if (spills > spilt) {
            print_error("%.*s: %u bytes spill, the table says %u\n", n, s, spills, spilt);
            spilled++;
        } else if (spills) {
            print_message("%.*s: %u bytes spill\n", n, s, spills);
        }
    }
    gb_close(&x);
    free_files(&l);
    assert_int_equal(spilled + moved, 0);
}

/* A file NAME.ptx beside NAME.kir in tests/gen/ptx is the text of it for sm_90 with both facts. */
static void goldens(void **state)
{
    (void)state;
    struct files l = {NULL, 0};
    read_folder(&l, "tests/gen/ptx");
    unsigned bad = 0;
    for (size_t i = 0; i < l.n; i++) {
        char path[300];
        static char want[1 << 18];
        snprintf(path, sizeof path, "tests/gen/ptx/%.*s.ptx", (int)strcspn(l.v[i].name, "."), l.v[i].name);
        FILE *in = fopen(path, "r");
        if (!in)
            continue;
        want[fread(want, 1, sizeof want - 1, in)] = 0;
        fclose(in);
        struct gb x;
        gb_open(&x);
        if (setjmp(gb_raised))
            fail_msg("raised: %s", x.env.msg);
        kl_buf b = {.a = &x.a};
        kl_ptx_opts o = {.arch = 90, .v16 = true, .i32 = true};
        kl_ptxinfo info;
        kl_fn *f = read_fn(&x, &l.v[i]);
        kl_buf body = {.a = &x.a};
        kl_ptx_emit(&body, f, &o, &info);
        kl_ptx_prelude(&b, f, &o, info.cluster > 1);
        kl_buf_put(&b, body.s, body.n);
        if (getenv("KILN_UPDATE")) {
            FILE *out = fopen(path, "w");
            assert_non_null(out);
            fwrite(kl_buf_str(&b), 1, b.n, out);
            fclose(out);
        } else if (strcmp(kl_buf_str(&b), want) != 0) {
            print_error("%s: the text differs\n", path);
            bad++;
        }
        gb_close(&x);
    }
    free_files(&l);
    assert_int_equal(bad, 0);
}

/* Each operation has a row in the back end's table. */
static void rows(void **state)
{
    (void)state;
    for (int op = 1; op < KL_NOP; op++) {
        const struct kl_opinfo *o = &kl_ops[op];
        if (!(o->flags & KL_F_EW) && !kl_px_where[op])
            fail_msg("%s has no row in pops.def", o->name);
    }
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(executor),
        cmocka_unit_test(goldens),
        cmocka_unit_test(ptxas),
        cmocka_unit_test(registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
