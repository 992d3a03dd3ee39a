/* safetensors.h - reading and writing .safetensors files. */
#ifndef KL_SAFETENSORS_H
#define KL_SAFETENSORS_H

#include "cli/npy.h"

struct kl_st_tensor {
    char *name;
    char type[16];     /* as written: "F32"; cut if it is longer */
    enum kl_elem elem; /* KL_elem_none: a type that Kiln does not have */
    int32_t ndim;      /* more than KL_NPY_DIMS: shape is not filled */
    int64_t shape[KL_NPY_DIMS];
    uint64_t beg, end; /* bytes of its data, from .offset of the file */
};

struct kl_st {
    struct kl_st_tensor *v; /* in the order of the file's header */
    size_t n;
    uint64_t offset;         /* of the data in the file */
    char **meta;             /* key, value, key, value ... */
    size_t nmeta;            /* pairs */
};

/* Parse a header: buf holds the first len bytes of a file of file_size bytes, the header among
 * them.  All offsets of the result lie inside the file, and no two tensors overlap.  On failure
 * msg says why, without the file's name, and nothing has to be freed. */
bool kl_st_parse(const void *buf, size_t len, uint64_t file_size, struct kl_st *out, char *msg,
                 size_t nmsg);
void kl_st_free(struct kl_st *s);

/* One tensor as an array.  name NULL: the one called `like`, or the only one. */
bool kl_st_open(const char *path, const char *name, const char *like, struct kl_npyfile *out,
                char *msg, size_t nmsg);
/* Only the header. */
bool kl_st_list(const char *path, struct kl_st *out, char *msg, size_t nmsg);

/* The header of a file with these tensors, whose beg and end are set; allocated, of *n bytes. */
char *kl_st_header(const struct kl_st_tensor *t, size_t count, size_t *n);

/* FILE.safetensors or FILE.safetensors:NAME?  Then where the path ends, and the name or NULL. */
bool kl_st_path(const char *text, size_t *len, const char **name);

#endif
