/* file.c - see file.h.  Everything is relative to folder descriptors that were checked once,
 * so that a path that changes underneath cannot lead elsewhere. */
#define _GNU_SOURCE
#include "rt/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool kl_write_all(int fd, const void *p, size_t n)
{
    const char *s = p;
    while (n) {
        ssize_t k = write(fd, s, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            if (k == 0)
                errno = ENOSPC;
            return false;
        }
        s += k;
        n -= (size_t)k;
    }
    return true;
}

bool kl_read_all(int fd, void *p, size_t n)
{
    char *s = p;
    while (n) {
        ssize_t k = read(fd, s, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        s += k;
        n -= (size_t)k;
    }
    return true;
}

void kl_tmp_name(char out[KL_TMPNAME])
{
    uint64_t r = 0;
    if (getrandom(&r, sizeof r, GRND_NONBLOCK) != (ssize_t)sizeof r) {
        /* only early at boot; names are made exclusively, so that a poor number costs a retry */
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        r = (uint64_t)t.tv_nsec * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)out;
    }
    snprintf(out, KL_TMPNAME, ".tmp.%ld.%016" PRIx64, (long)getpid(), r);
}

int kl_dir_open(int at, const char *name, const char **why)
{
    struct stat st;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        *why =
            errno == ELOOP || errno == ENOTDIR ? "it is a link or not a folder" : strerror(errno);
        return -1;
    }
    *why = NULL;
    if (fstat(fd, &st) < 0)
        *why = strerror(errno);
    else if (!S_ISDIR(st.st_mode))
        *why = "it is not a folder";
    else if (st.st_uid != geteuid())
        *why = "it belongs to another user";
    else if (st.st_mode & 022)
        *why = "others may write into it";
    if (!*why)
        return fd;
    close(fd);
    return -1;
}

static bool privdir_in(kl_privdir *d, int base)
{
    for (int tries = 0; tries < 16; tries++) {
        const char *why;
        kl_tmp_name(d->name);
        if (mkdirat(base, d->name, 0700) < 0) {
            if (errno == EEXIST)
                continue;
            return false;
        }
        d->base = base;
        d->fd = kl_dir_open(base, d->name, &why);
        if (d->fd >= 0)
            return true;
        unlinkat(base, d->name, AT_REMOVEDIR);
        return false;
    }
    return false;
}

bool kl_privdir_make(kl_privdir *d, const kl_cache *c)
{
    int base = kl_cache_fd(c);
    d->own_base = false;
    if (base >= 0 && privdir_in(d, base))
        return true;
    base = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return false;
    d->own_base = true;
    if (privdir_in(d, base))
        return true;
    int e = errno;
    close(base);
    errno = e;
    return false;
}

static void clear_fd(int fd)
{
    DIR *dir = fdopendir(fd); /* takes fd */
    if (!dir) {
        close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(dirfd(dir), e->d_name, 0) < 0)
            unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
    closedir(dir);
}

void kl_dir_clear(int base, const char *name)
{
    const char *why;
    int fd = kl_dir_open(base, name, &why);
    if (fd >= 0)
        clear_fd(fd);
    unlinkat(base, name, AT_REMOVEDIR);
}

void kl_privdir_remove(kl_privdir *d)
{
    clear_fd(d->fd);
    unlinkat(d->base, d->name, AT_REMOVEDIR);
    if (d->own_base)
        close(d->base);
}

bool kl_file_replace(int at, const char *name, const void *p, size_t n, int mode)
{
    char tmp[KL_TMPNAME];
    kl_tmp_name(tmp);
    int fd = openat(at, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return false;
    bool ok = kl_write_all(fd, p, n);
    if (close(fd) < 0) /* where a full disk may show on some file systems */
        ok = false;
    if (ok && renameat(at, tmp, at, name) == 0)
        return true;
    int e = errno;
    unlinkat(at, tmp, 0);
    errno = e;
    return false;
}
