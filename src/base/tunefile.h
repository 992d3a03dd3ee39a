/* tunefile.h - the text in which tuned constants are kept (kiln-tune(5)). */
#ifndef KL_TUNEFILE_H
#define KL_TUNEFILE_H

#include "base/mem.h"

#define KL_TUNE_VERSION 1

struct kl_tunepair {
    const char *name;
    int64_t v;
    const char *type; /* of `when T=f32`; NULL: v */
    bool least;       /* `when n>=1024`: this class, and all above */
};
typedef KL_VEC(struct kl_tunepair) kl_tunepairs;

/* One paragraph. */
struct kl_tuneentry {
    const char *kernel;
    const char *source;     /* hash of the kernel; NULL: it holds whatever the kernel is */
    const char *device;     /* "cpu x86-64-v4", or the first words of it; "": any */
    kl_tunepairs when, with; /* types and classes of sizes; constants that a launch must have */
    kl_tunepairs use;        /* may be empty: the kernel's own defaults */
    double ms, of_ms;       /* what was measured, and with the defaults; 0: not said */
    uint32_t line;          /* where it begins */
};
typedef struct kl_tunefile {
    kl_arena *a;
    KL_VEC(struct kl_tuneentry) entry;
} kl_tunefile;

/* out->a must be set.  false: *why says what is wrong in *line. */
bool kl_tunefile_parse(kl_tunefile *out, const char *text, size_t n, uint32_t *line,
                       const char **why);
/* In the order of kernel, device and `when`, which is that of kl_tune_order. */
void kl_tunefile_print(kl_buf *b, const kl_tunefile *f);
/* Put an entry in, in place of one for the same kernel, device and `when`. */
void kl_tunefile_put(kl_tunefile *f, const struct kl_tuneentry *e);
/* The name of a device as a line of the file can hold it: one blank between words, no control
 * characters and no `#`, which would begin a remark. */
const char *kl_tune_device_name(kl_arena *a, const char *name);
/* Whether an entry for `device` holds on a device that is called `own`. */
bool kl_tune_device_fits(const char *device, const char *own);

#endif
