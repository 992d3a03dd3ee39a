/* kt.h - the golden runner: shared by its parts.
 *
 * A case is a file; what it should give lies beside it (or, for pass tests, in it).  Parts
 * report through kt_pass, kt_fail and kt_skip; only failures are printed. */
#ifndef KT_H
#define KT_H

#include "base/diag.h"

struct kt {
    const char *root;   /* folder that holds src, tests, kernels, docs */
    const char *kiln;   /* absolute path of the command; NULL: command-line cases are skipped */
    const char *filter; /* NULL: all */
    bool update, verbose;
    unsigned passed, failed, skipped;
};
extern struct kt kt;

bool kt_wanted(const char *name);
void kt_pass(const char *name);
void kt_fail(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void kt_skip(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Memory and text; failures of the runner itself end it. */
void *kt_alloc(size_t n);
char *kt_join(const char *a, const char *b);
char *kt_strf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *kt_read(const char *path, size_t *len); /* NULL if there is no such file; ends in NUL */
bool kt_write(const char *path, const char *s, size_t n);

/* Paths relative to root, sorted, of files below dir whose names end in suffix. */
struct kt_list {
    char **v;
    size_t n;
};
struct kt_list kt_files(const char *dir, const char *suffix);
void kt_list_free(struct kt_list *l);

/* Compare got with the file at path (relative to root), or write it when updating. */
bool kt_golden(const char *name, const char *path, const char *got, size_t n);
/* Compare two texts; on a difference print an excerpt and return false. */
bool kt_same(const char *name, const char *what, const char *want, size_t nwant, const char *got,
             size_t ngot);

/* Run fn in the compile path: what raises ends fn and gives false with env's status set. */
struct kt_path {
    kl_env env;
    kl_arena a;
    kl_diags *d;
};
void kt_path_open(struct kt_path *p);
bool kt_path_run(struct kt_path *p, void (*fn)(struct kt_path *, void *), void *user);
void kt_path_close(struct kt_path *p);

/* `name=value` words as launch arguments (kt_args.c). */
struct kt_args {
    kiln_arg *v;
    size_t n;
    char *kernel; /* first word if it has no '='; or NULL */
    void **mem;
    size_t nmem;
};
bool kt_args_parse(struct kt_args *a, const char *text, char err[200]);
void kt_args_free(struct kt_args *a);

/* The next `//! KEY rest` line at or behind *at; the rest is copied. NULL: no more. */
char *kt_directive(const char **at, const char *const *keys, unsigned *which);

/* The parts. */
void kt_run_lang(void);
void kt_run_diag(void);
void kt_run_opt(void);
void kt_run_gen(void);
void kt_run_cli(void);
void kt_run_cover(void);

#endif
