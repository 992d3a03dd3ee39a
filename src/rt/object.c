/* object.c - load a compiled object and find its kernels.
 *
 * The bytes that were checked are the bytes that run: they are copied into sealed memory and
 * loaded from there, which also works where home folders are mounted noexec.  The loader
 * knows libraries by name, and /proc/self/fd/N comes again when N does: so the
 * descriptor stays open until the object is closed, and a kernel is believed only if
 * the object exports the whole key under the key's name. */
#define _GNU_SOURCE
#include "rt/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

struct kl_object {
    kl_alloc al;
    void *handle;
    int fd; /* the sealed memory; -1: none */
};

/* Is all that the loader will map there?  It believes the headers, and a file cut short (a full
 * disk, a compiler that was killed) would end the process with SIGBUS. */
static bool whole(const void *so, size_t n)
{
    ElfW(Ehdr) h;
    ElfW(Phdr) p;
    if (n < sizeof h)
        return false;
    memcpy(&h, so, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_type != ET_DYN ||
        h.e_phentsize != sizeof p || h.e_phoff > n || h.e_phnum > (n - h.e_phoff) / sizeof p ||
        h.e_shoff > n || (uint64_t)h.e_shnum * h.e_shentsize > n - h.e_shoff)
        return false;
    for (uint32_t i = 0; i < h.e_phnum; i++) {
        memcpy(&p, (const char *)so + h.e_phoff + i * sizeof p, sizeof p);
        if (p.p_offset > n || p.p_filesz > n - p.p_offset)
            return false;
    }
    return h.e_phnum > 0;
}

static int sealed(const void *so, size_t n)
{
    /* newer systems want to be told that it is not a program to execute; older ones refuse
     * the flag */
    int fd = memfd_create("kiln object", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("kiln object", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (kl_write_all(fd, so, n) &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
        return fd;
    close(fd);
    return -1;
}

static void close_both(kl_object *o)
{
    if (o->handle)
        dlclose(o->handle);
    if (o->fd >= 0)
        close(o->fd);
    o->handle = NULL;
    o->fd = -1;
}

/* Load by name.  What lacks the key is not ours. */
static bool try_name(kl_object *o, const char *name, const uint8_t key[32], char msg[512])
{
    o->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!o->handle) {
        const char *e = dlerror();
        snprintf(msg, 512, "the compiled object does not load: %.400s", e ? e : "no reason given");
        return false;
    }
    if (kl_object_kernel(o, key))
        return true;
    snprintf(msg, 512, "the compiled object is not the one that was asked for (%.200s)", name);
    return false;
}

/* A file by name is trusted only if nobody else can have changed it and it has these bytes. */
static bool same_file(const kl_alloc *al, const char *path, const void *so, size_t n)
{
    struct stat st;
    bool same = false;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        !(st.st_mode & 022) && (uint64_t)st.st_size == n) {
        void *p = al->fn(al->user, NULL, 0, n);
        same = p && kl_read_all(fd, p, n) && memcmp(p, so, n) == 0;
        if (p)
            al->fn(al->user, p, n, 0);
    }
    close(fd);
    return same;
}

static bool load_sealed(kl_object *o, const void *so, size_t n, const uint8_t key[32],
                        char msg[512])
{
    char name[64];
    o->fd = sealed(so, n);
    if (o->fd < 0)
        return false;
    snprintf(name, sizeof name, "/proc/self/fd/%d", o->fd);
    if (try_name(o, name, key, msg))
        return true;
    close_both(o);
    return false;
}

/* A file of its own name in a private folder, gone again once it is mapped. */
static bool load_private(kl_object *o, const void *so, size_t n, kl_cache *c, const uint8_t key[32],
                         char msg[512])
{
    kl_privdir d;
    char name[4096], link[64], hex[65];
    if (!kl_privdir_make(&d, c)) {
        snprintf(msg, 512, "no private folder can be made: %s", strerror(errno));
        return false;
    }
    kl_hex(hex, key, 32);
    bool ok = kl_file_replace(d.fd, hex, so, n, 0600);
    if (!ok)
        snprintf(msg, 512, "the compiled object cannot be stored: %s", strerror(errno));
    snprintf(link, sizeof link, "/proc/self/fd/%d", d.fd);
    ssize_t k = ok ? readlink(link, name, sizeof name - sizeof hex - 1) : -1;
    if (k > 0) {
        snprintf(name + k, sizeof name - (size_t)k, "/%s", hex);
        ok = try_name(o, name, key, msg);
        if (!ok)
            close_both(o);
    }
    kl_privdir_remove(&d);
    return ok && k > 0;
}

kiln_status kl_object_load(const kl_alloc *al, const void *so, size_t n, kl_cache *c,
                           const char *kept, const uint8_t key[32], kl_object **out, char msg[512])
{
    *out = NULL;
    msg[0] = 0;
    if (!whole(so, n)) {
        snprintf(msg, 512, "the compiled object is not whole (%zu bytes)", n);
        return KILN_E_TOOLCHAIN;
    }
    kl_object *o = al->fn(al->user, NULL, 0, sizeof *o);
    if (!o)
        return KILN_E_NOMEM;
    *o = (kl_object){.al = *al, .fd = -1};
    if (kept && same_file(al, kept, so, n)) {
        if (try_name(o, kept, key, msg)) {
            *out = o;
            return KILN_OK;
        }
        close_both(o);
    }
    if (load_sealed(o, so, n, key, msg) || load_private(o, so, n, c, key, msg)) {
        *out = o;
        return KILN_OK;
    }
    al->fn(al->user, o, sizeof *o, 0);
    return KILN_E_TOOLCHAIN;
}

kl_kernel_fn *kl_object_kernel(const kl_object *o, const uint8_t key[32])
{
    char hex[17], name[32];
    kl_hex(hex, key, 8);
    snprintf(name, sizeof name, "kiln_key_%s", hex);
    const void *have = dlsym(o->handle, name);
    if (!have || memcmp(have, key, 32) != 0)
        return NULL;
    snprintf(name, sizeof name, "k_%s", hex);
    /* POSIX promises that this conversion works; C says it by a union only */
    union {
        void *p;
        kl_kernel_fn *fn;
    } u = {dlsym(o->handle, name)};
    return u.fn;
}

void kl_object_free(kl_object *o)
{
    if (!o)
        return;
    close_both(o);
    kl_alloc al = o->al;
    al.fn(al.user, o, sizeof *o, 0);
}
