/* value.h - values as they are written on the command line and in `//!` cases. */
#ifndef KL_VALUE_H
#define KL_VALUE_H

#include "cli/cli.h"

enum { KL_DIMS = 8 };

/* A number as written: an integer, or a decimal that keeps its text so that it is rounded once. */
struct kl_number {
    bool is_int, big; /* big: from 2^63 on; i then holds the bits of the u64 */
    int64_t i;
    double f;
    char text[64];
};
bool kl_number_parse(const char *s, size_t n, struct kl_number *out);
/* The bits in type e, rounded once; false if an integer type does not hold the value. */
bool kl_number_bits(const struct kl_number *v, enum kl_elem e, uint64_t *bits);
/* The same, and a number that is too large for a float type does not fit. */
bool kl_number_fits(const struct kl_number *v, enum kl_elem e, uint64_t *bits);
bool kl_number_named(const struct kl_number *v); /* written inf or nan */

/* Generators: what is written, and how many numbers may follow shape and type. */
#define KL_GEN_MAP(X)                                                                              \
    X(zeros, 0, 0) X(ones, 0, 0) X(full, 1, 1) X(range, 0, 0)                                      \
    X(rand, 0, 1) X(randn, 0, 1) X(randint, 1, 2)

enum kl_gen {
#define KL_X(name, least, most) KL_GEN_##name,
    KL_GEN_MAP(KL_X)
#undef KL_X
    KL_NGEN
};

enum kl_value_kind {
    KL_VALUE_TEXT,  /* a number, a type, a file: what the parameter says */
    KL_VALUE_ALIAS, /* @name */
    KL_VALUE_GEN,   /* rand(4x8,f32) */
    KL_VALUE_LIST   /* {{1, 2}, {3, 4}}, or with a type behind: {1, 2}:f16 */
};

struct kl_value {
    enum kl_value_kind kind;
    const char *text; /* as given; of an alias: the name */
    enum kl_elem elem; /* generators and lists: the type if written, else KL_elem_none */
    int32_t ndim;
    int64_t shape[KL_DIMS];
    enum kl_gen gen;
    struct kl_number num[2]; /* of a generator: value, or limit and seed, or seed */
    uint32_t nnum;
    struct kl_number *item; /* of a list, in row-major order */
    size_t nitem;
};
bool kl_value_parse(const char *text, struct kl_value *out, struct kl_msg *m);
void kl_value_free(struct kl_value *v);
bool kl_shape_parse(const char *s, size_t n, int32_t *ndim, int64_t shape[KL_DIMS]);
/* Elements of a shape; false if the number, or its bytes, do not fit. */
bool kl_shape_count(int32_t ndim, const int64_t *shape, uint32_t elem_bytes, uint64_t *count);

/* Write the elements of a generator or list as type e, dense and row-major. */
bool kl_value_fill(const struct kl_value *v, enum kl_elem e, void *data, uint64_t count,
                   struct kl_msg *m);

/* Philox 4x32-10: key = (low, high word of seed), counter = (low, high word of i, 0, 0). */
void kl_philox(uint64_t seed, uint64_t i, uint32_t out[4]);

#endif
