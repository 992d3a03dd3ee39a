/* file.h - private to rt: descriptors, checked folders, private temporary folders. */
#ifndef KL_FILE_H
#define KL_FILE_H

#include "rt/rt.h"

bool kl_write_all(int fd, const void *p, size_t n); /* errno on failure */
bool kl_read_all(int fd, void *p, size_t n);        /* false: error or end of file */

/* ".tmp.<pid>.<64 random bits>": what stands behind a crash under such a name is known as
 * stale by its age. */
enum { KL_TMPNAME = 48 };
void kl_tmp_name(char out[KL_TMPNAME]);

/* Open a folder without following a link at its end.  It must belong to this user and be
 * writable by nobody else.  -1: *why says what is wrong. */
int kl_dir_open(int at, const char *name, const char **why);

/* A new folder that only this user can enter, inside the cache's folder, else inside /tmp,
 * where it is made exclusively.  Files in it are named relative to fd. */
typedef struct kl_privdir {
    int base, fd;
    bool own_base; /* base is /tmp, to be closed */
    char name[KL_TMPNAME];
} kl_privdir;
bool kl_privdir_make(kl_privdir *d, const kl_cache *c);
void kl_privdir_remove(kl_privdir *d); /* with what lies in it */

int kl_cache_fd(const kl_cache *c); /* -1: off */
const kl_alloc *kl_cache_alloc(const kl_cache *c);

/* Remove the files in folder `name` of base, and the folder. */
void kl_dir_clear(int base, const char *name);

/* Write NAME in folder at, atomically: a temporary file, then a rename. */
bool kl_file_replace(int at, const char *name, const void *p, size_t n, int mode);

/* ---- child.c: one child process, run to its end ---- */

typedef struct kl_child {
    const char *const *argv; /* argv[0] is an absolute path */
    int in;                  /* its standard input; -1: /dev/null */
    int cwd;                 /* its working and temporary folder; -1: / */
    bool capture_err;        /* capture standard output and error; else output alone */
    uint32_t timeout_ms;
    char *out;               /* captured bytes, always with a NUL; the rest is dropped */
    size_t nout, have;
    bool dropped, timed_out;
    int exit_code;           /* -1: ended by a signal, or not known */
    int signal;
    bool unknown;            /* the host reaps its children by itself: no exit status */
} kl_child;
/* false: it could not be started; errno says why. */
bool kl_child_run(kl_child *c);
/* Kill the process groups of all children that run now.  Async-signal-safe: for the handler of a
 * program that a signal ends. */
void kl_child_kill_all(void);

#endif
