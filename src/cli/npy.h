/* npy.h - reading and writing .npy files. */
#ifndef KL_NPY_H
#define KL_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elem.h"

enum { KL_NPY_DIMS = 8, KL_NPY_HEADER = 512 };

struct kl_npy {
    enum kl_elem elem; /* KL_elem_none: |V2, which needs a view */
    char descr[16];    /* as written: "<f4" */
    uint32_t bytes;    /* of one element */
    int32_t ndim;
    int64_t shape[KL_NPY_DIMS], stride[KL_NPY_DIMS]; /* strides in elements */
    bool fortran;
    uint64_t offset, size; /* of the data in the file, in bytes */
};

/* Parse what precedes the data.  buf holds the first len bytes of a file of file_size bytes; a
 * header that does not end inside buf is an error.  The data must fill the rest of the file
 * exactly.  On failure msg says why, without the file's name. */
bool kl_npy_parse(const void *buf, size_t len, uint64_t file_size, struct kl_npy *out,
                  char *msg, size_t nmsg);
/* Look at the elements as another type of the same size: for bf16, which .npy does not know. */
bool kl_npy_view(struct kl_npy *n, enum kl_elem as, char *msg, size_t nmsg);

struct kl_npyfile {
    struct kl_npy head;
    void *data;  /* element [0,...,0], aligned for its type; a private copy that may be written */
    void *block; /* what to unmap, or to free if copied */
    size_t blocklen;
    bool copied;
};
bool kl_npy_open(const char *path, struct kl_npyfile *out, char *msg, size_t nmsg);
/* The parts of it that other formats use: map a regular file that is not empty; and, with head
 * filled in, point data at the elements, copied if they are not aligned. */
bool kl_npy_map(const char *path, struct kl_npyfile *out, char *msg, size_t nmsg);
bool kl_npy_settle(struct kl_npyfile *out, char *msg, size_t nmsg);
void kl_npy_close(struct kl_npyfile *f);

/* The header of a dense row-major array; returns its length, a multiple of 64.  Types that .npy
 * does not know are written as unsigned integers of their size. */
size_t kl_npy_header(enum kl_elem e, int32_t ndim, const int64_t *shape, char out[KL_NPY_HEADER]);
bool kl_npy_knows(enum kl_elem e); /* false: written as an unsigned integer */

#endif
