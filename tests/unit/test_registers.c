/* test_registers.c - registers and spills of the library's kernels on sm_90.
 *
 * The kernels of tests/library.h go through ptxas in one text, with -c: as the driver assembles,
 * for linking.  What it says stands beside tests/gen/ptx/library.txt: name, registers, bytes that
 * spill.  Nothing may spill more than the table says, and registers move by 8 at most.
 * KILN_UPDATE=1 writes the table. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "../library.h"
#include "tool.h"

enum { MOST = 200 };
static const char table[] = "tests/gen/ptx/library.txt";

struct count {
    char name[100];
    unsigned registers, spill;
};

/* The text of a kernel behind its head, with the entry under another name. */
static void put_body(FILE *out, const char *text, const char *kernel, const char *name)
{
    char old[100];
    size_t n = (size_t)snprintf(old, sizeof old, "kiln_%s", kernel);
    const char *at = strstr(text, ".visible"), *next;
    assert_non_null(at);
    for (; (next = strstr(at, old)) != NULL; at = next + n) {
        fwrite(at, 1, (size_t)(next - at), out);
        fputs(name, out);
    }
    fputs(at, out);
}

static void write_all(FILE *out)
{
    static char text[1 << 16];
    static const kiln_dtype types[] = {KILN_F32, KILN_BF16};
    kiln_options o = KILN_OPTIONS_INIT;
    kiln_context *ctx;
    bool head = false;
    o.device = KILN_DEVICE_INTERP;
    assert_int_equal(kiln_context_create(&o, &ctx, NULL), KILN_OK);
    for (size_t i = 0; i < LIB_ROWS; i++)
        for (int t = 0; t < 2; t++) {
            const struct lib_row *r = &lib_rows[i];
            if (!(r->types & 1 << t))
                continue;
            char path[200], label[60], name[200], *ptx;
            struct lib_args a;
            kiln_module *m;
            const kl_tool_emit_opts e = {.stage = "ptx"};
            snprintf(path, sizeof path, "kernels/%s.kiln", r->file);
            lib_label(r, types[t], label, sizeof label);
            snprintf(name, sizeof name, "k_%s_%s", r->kernel, label);
            for (char *c = name; *c; c++)
                *c = *c == '-' ? '_' : *c;
            FILE *f = fopen(path, "rb");
            if (!f)
                fail_msg("no %s; run this from the root of the tree", path);
            size_t len = fread(text, 1, sizeof text, f);
            fclose(f);
            assert_int_equal(kiln_compile(ctx, path, text, len, &m, NULL), KILN_OK);
            lib_arguments(r, types[t], &a, 0);
            assert_int_equal(kl_tool_emit(m, kiln_module_kernel(m, r->kernel), a.arg, a.n, &e,
                                          &ptx, NULL),
                             KILN_OK);
            if (!head) { /* the version that clusters need: some of the texts have them */
                const char *rest = strchr(ptx, '\n');
                assert_non_null(rest);
                fputs(".version 8.1", out);
                fwrite(rest, 1, (size_t)(strstr(ptx, ".visible") - rest), out);
            }
            head = true;
            put_body(out, ptx, r->kernel, name);
            kl_tool_free(ctx, ptx);
            kiln_module_free(m);
        }
    kiln_context_free(ctx);
}

/* What ptxas says of each entry. */
static size_t read_said(FILE *p, struct count *v)
{
    char line[512], name[100] = "?";
    unsigned spill = 0;
    size_t n = 0;
    while (fgets(line, sizeof line, p)) {
        const char *q;
        if ((q = strstr(line, "entry function 'k_")) != NULL)
            sscanf(q + 18, "%99[^']", name);
        if ((q = strstr(line, "bytes stack frame, ")) != NULL)
            sscanf(q + 19, "%u", &spill);
        if ((q = strstr(line, "Used ")) != NULL && n < MOST) {
            memcpy(v[n].name, name, sizeof name);
            v[n].spill = spill;
            sscanf(q + 5, "%u", &v[n++].registers);
        }
    }
    return n;
}

static int by_name(const void *a, const void *b)
{
    const struct count *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void library(void **state)
{
    static struct count now[MOST], old[MOST];
    const char *tool = getenv("PTXAS") ? getenv("PTXAS") : "/usr/local/cuda/bin/ptxas";
    char path[] = "/tmp/kiln-ptx-XXXXXX", cmd[512];
    unsigned bad = 0, spills = 0;
    (void)state;
    if (access(tool, X_OK) != 0)
        skip();
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *out = fdopen(fd, "w");
    write_all(out);
    fclose(out);
    snprintf(cmd, sizeof cmd, "%s -c -v -arch=sm_90 -o /dev/null %s 2>&1", tool, path);
    FILE *p = popen(cmd, "r");
    assert_non_null(p);
    size_t n = read_said(p, now), nold = 0;
    assert_int_equal(pclose(p), 0);
    unlink(path);
    assert_true(n > LIB_ROWS);
    qsort(now, n, sizeof *now, by_name);
    if (getenv("KILN_UPDATE")) {
        out = fopen(table, "w");
        assert_non_null(out);
        for (size_t i = 0; i < n; i++)
            fprintf(out, "%s %u %u\n", now[i].name, now[i].registers, now[i].spill);
        fclose(out);
    }
    FILE *in = fopen(table, "r");
    assert_non_null(in);
    while (nold < MOST && fscanf(in, "%99s %u %u", old[nold].name, &old[nold].registers,
                                 &old[nold].spill) == 3)
        nold++;
    fclose(in);
    for (size_t i = 0; i < n; i++) {
        const struct count *w = bsearch(&now[i], old, nold, sizeof *old, by_name);
        spills += now[i].spill != 0;
        if (!w) {
            print_error("%s is not in the table\n", now[i].name);
            bad++;
        } else if (now[i].registers > w->registers + 8 || w->registers > now[i].registers + 8 ||
                   now[i].spill > w->spill) {
            print_error("%s: %u registers, %u bytes spill; the table says %u and %u\n",
                        now[i].name, now[i].registers, now[i].spill, w->registers, w->spill);
            bad++;
        }
    }
    print_message("%zu kernels, %u of them spill\n", n, spills);
    assert_int_equal(n, nold);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(library)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
