/* kt.c - golden runner: options, files, comparing, counting.
 *
 * kt [--update] [--filter SUBSTR] [--root DIR] [--kiln PATH] [-v] [PART...]
 *
 * Parts: lang diag opt gen cli cover; all of them without a name.  --update writes what the
 * cases give as the new goldens: look at the difference before it is committed.  The last
 * line is `N passed, N failed, N skipped`; the exit status is 1 if anything failed. */
#include "kt.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct kt kt;

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"lang", kt_run_lang}, {"diag", kt_run_diag}, {"opt", kt_run_opt},
    {"gen", kt_run_gen},   {"cli", kt_run_cli},   {"cover", kt_run_cover},
};
enum { NPARTS = sizeof parts / sizeof *parts };

bool kt_wanted(const char *name)
{
    return !kt.filter || strstr(name, kt.filter);
}

void kt_pass(const char *name)
{
    kt.passed++;
    if (kt.verbose)
        printf("ok   %s\n", name);
}

void kt_fail(const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("FAIL %s: ", name);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    kt.failed++;
}

void kt_skip(const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("skip %s: ", name);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    kt.skipped++;
}

void *kt_alloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);
    if (!p) {
        fputs("kt: out of memory\n", stderr);
        exit(4);
    }
    return p;
}

char *kt_strf(const char *fmt, ...)
{
    va_list ap, aq;
    va_start(ap, fmt);
    va_copy(aq, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *s = kt_alloc((size_t)(n < 0 ? 0 : n) + 1);
    vsnprintf(s, (size_t)(n < 0 ? 0 : n) + 1, fmt, aq);
    va_end(aq);
    va_end(ap);
    return s;
}

char *kt_join(const char *a, const char *b)
{
    return kt_strf("%s/%s", a, b);
}

char *kt_read(const char *path, size_t *len)
{
    char *full = path[0] == '/' ? kt_strf("%s", path) : kt_join(kt.root, path);
    FILE *f = fopen(full, "rb");
    free(full);
    if (!f)
        return NULL;
    size_t n = 0, cap = 4096;
    char *s = kt_alloc(cap + 1);
    for (size_t got; (got = fread(s + n, 1, cap - n, f)) > 0;) {
        n += got;
        if (n == cap) {
            char *t = kt_alloc(2 * cap + 1);
            memcpy(t, s, n);
            free(s);
            s = t;
            cap *= 2;
        }
    }
    fclose(f);
    s[n] = 0;
    if (len)
        *len = n;
    return s;
}

bool kt_write(const char *path, const char *s, size_t n)
{
    char *full = path[0] == '/' ? kt_strf("%s", path) : kt_join(kt.root, path);
    FILE *f = fopen(full, "wb");
    bool ok = f && fwrite(s, 1, n, f) == n;
    if (f && fclose(f) != 0)
        ok = false;
    if (!ok)
        printf("kt: cannot write %s: %s\n", full, strerror(errno));
    free(full);
    return ok;
}

/* ---- folders ---- */

static void list_add(struct kt_list *l, char *path)
{
    if ((l->n & (l->n - 1)) == 0) { /* full at 0 and at powers of two */
        char **v = kt_alloc((l->n ? 2 * l->n : 1) * sizeof *v);
        if (l->n)
            memcpy(v, l->v, l->n * sizeof *v);
        free(l->v);
        l->v = v;
    }
    l->v[l->n++] = path;
}

static void walk(struct kt_list *l, const char *dir, const char *suffix)
{
    char *full = kt_join(kt.root, dir);
    DIR *d = opendir(full);
    free(full);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        char *path = kt_join(dir, e->d_name), *at = kt_join(kt.root, path);
        struct stat st;
        size_t n = strlen(path), m = strlen(suffix);
        if (stat(at, &st) == 0 && S_ISDIR(st.st_mode))
            walk(l, path, suffix);
        else if (n > m && strcmp(path + n - m, suffix) == 0)
            list_add(l, kt_strf("%s", path));
        free(at);
        free(path);
    }
    closedir(d);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct kt_list kt_files(const char *dir, const char *suffix)
{
    struct kt_list l = {0};
    walk(&l, dir, suffix);
    if (l.n)
        qsort(l.v, l.n, sizeof *l.v, by_name);
    return l;
}

void kt_list_free(struct kt_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
}

/* ---- comparing ---- */

static size_t line_end(const char *s, size_t n, size_t at)
{
    while (at < n && s[at] != '\n')
        at++;
    return at;
}

static void show_lines(char mark, const char *s, size_t n, size_t at, unsigned lines)
{
    for (; lines && at < n; lines--) {
        size_t e = line_end(s, n, at);
        printf("    %c %.*s\n", mark, (int)(e - at > 200 ? 200 : e - at), s + at);
        at = e + 1;
    }
    if (at >= n)
        printf("    %c (end)\n", mark);
}

bool kt_same(const char *name, const char *what, const char *want, size_t nwant, const char *got,
             size_t ngot)
{
    if (nwant == ngot && memcmp(want, got, ngot) == 0)
        return true;
    size_t i = 0, beg = 0;
    unsigned line = 1;
    for (; i < nwant && i < ngot && want[i] == got[i]; i++)
        if (want[i] == '\n') {
            line++;
            beg = i + 1;
        }
    kt_fail(name, "%s differs from line %u on (- expected, + got)", what, line);
    show_lines('-', want, nwant, beg, 8);
    show_lines('+', got, ngot, beg, 8);
    return false;
}

bool kt_golden(const char *name, const char *path, const char *got, size_t n)
{
    size_t nwant = 0;
    char *want = kt_read(path, &nwant);
    bool ok;
    if (kt.update) {
        ok = (want && nwant == n && memcmp(want, got, n) == 0) || kt_write(path, got, n);
        if (!ok)
            kt_fail(name, "cannot update %s", path);
    } else if (!want) {
        kt_fail(name, "no golden file %s (--update makes it)", path);
        ok = false;
    } else {
        ok = kt_same(name, path, want, nwant, got, n);
    }
    free(want);
    return ok;
}

/* ---- the compile path ---- */

void kt_path_open(struct kt_path *p)
{
    memset(p, 0, sizeof *p);
    p->env.al = &kl_alloc_libc;
    p->a.env = &p->env;
    p->d = kl_diags_new(&kl_alloc_libc);
    if (!p->d) {
        fputs("kt: out of memory\n", stderr);
        exit(4);
    }
}

bool kt_path_run(struct kt_path *p, void (*fn)(struct kt_path *, void *), void *user)
{
    jmp_buf fail;
    p->env.fail = &fail;
    kl_diags_use(p->d, &p->env, NULL);
    if (setjmp(fail))
        return false;
    fn(p, user);
    return true;
}

void kt_path_close(struct kt_path *p)
{
    kl_arena_free(&p->a);
    kiln_diags_free(p->d);
}

char *kt_directive(const char **at, const char *const *keys, unsigned *which)
{
    for (const char *p = *at; *p;) {
        const char *e = strchr(p, '\n');
        if (!e)
            e = p + strlen(p);
        *at = *e ? e + 1 : e;
        if (strncmp(p, "//! ", 4) == 0)
            for (unsigned k = 0; keys[k]; k++) {
                size_t n = strlen(keys[k]);
                if (strncmp(p + 4, keys[k], n) == 0 && (p[4 + n] == ' ' || p + 4 + n == e)) {
                    const char *r = p + 4 + n;
                    while (r < e && *r == ' ')
                        r++;
                    *which = k;
                    return kt_strf("%.*s", (int)(e - r), r);
                }
            }
        p = *at;
    }
    return NULL;
}

static void usage(void)
{
    fputs("kt [--update] [--filter SUBSTR] [--root DIR] [--kiln PATH] [-v] [PART...]\nparts:",
          stderr);
    for (unsigned i = 0; i < NPARTS; i++)
        fprintf(stderr, " %s", parts[i].name);
    fputc('\n', stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    bool chosen[NPARTS] = {0}, any = false;
    kt.root = ".";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--update") == 0) {
            kt.update = true;
        } else if (strcmp(argv[i], "-v") == 0) {
            kt.verbose = true;
        } else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc) {
            kt.filter = argv[++i];
        } else if (strcmp(argv[i], "--root") == 0 && i + 1 < argc) {
            kt.root = argv[++i];
        } else if (strcmp(argv[i], "--kiln") == 0 && i + 1 < argc) {
            kt.kiln = argv[++i];
        } else {
            unsigned p = 0;
            while (p < NPARTS && strcmp(argv[i], parts[p].name) != 0)
                p++;
            if (p == NPARTS)
                usage();
            chosen[p] = any = true;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (unsigned p = 0; p < NPARTS; p++)
        if (!any || chosen[p])
            parts[p].run();
    printf("%u passed, %u failed, %u skipped\n", kt.passed, kt.failed, kt.skipped);
    return kt.failed != 0;
}
