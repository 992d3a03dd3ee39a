/* nn.h - what the functions of kiln_nn.h share.
 *
 * A function is a few lines: kl_nn_begin, one line an argument, kl_nn_launch.  What goes wrong on the way is
 * kept in the call and reported at its end, so the lines need no tests of their own.  Only kiln.h is
 * used to launch; the kernels are those of kernels/, embedded. */
#ifndef KL_NN_H
#define KL_NN_H

#include "kiln_nn.h"
#include "lib/lib.h"

enum { NN_ARGS = 32, NN_TENSORS = 12, NN_RANK = 6 };

struct nn {
    kiln_nn *nn;
    kiln_stream *stream;
    const char *what; /* the function, for messages */
    kiln_module *mod;
    kiln_arg arg[NN_ARGS];
    uint32_t n;
    int64_t shape[NN_TENSORS][NN_RANK], stride[NN_TENSORS][NN_RANK]; /* of reshaped tensors */
    uint32_t ntensor;
    kiln_status st;
    struct kl_call call;
    bool open; /* call is begun */
    kiln_diags **diags;
};

/* file: of kernels/, without the ending. */
void kl_nn_begin(struct nn *c, kiln_nn *nn, kiln_stream *s, const char *what, const char *file,
              kiln_diags **diags);
/* The kernels launched from now on are of another file. */
void kl_nn_file(struct nn *c, const char *file);
/* ACT as kernels/gemm.kiln numbers it. */
void kl_nn_gemm_act(struct nn *c, kiln_nn_activation act);
/* Launch kernel of the file with the arguments so far; further kernels may follow. */
void kl_nn_launch(struct nn *c, const char *kernel);
/* Forget the arguments. */
void kl_nn_next(struct nn *c);
kiln_status kl_nn_end(struct nn *c);
/* An error of the caller, said once.  false. */
bool kl_nn_fail(struct nn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Arguments of the kernel.  A tensor that is NULL is left out; t must otherwise have `rank` axes. */
void kl_nn_int(struct nn *c, const char *name, int64_t v);
/* A constant for want of a tuned one (kernels/NAME.kiln.tune, kiln_module_tune). */
void kl_nn_prefer(struct nn *c, const char *name, int64_t v);
void kl_nn_float(struct nn *c, const char *name, double v);
void kl_nn_type(struct nn *c, const char *name, kiln_dtype t);
void kl_nn_tensor(struct nn *c, const char *name, const kiln_tensor *t, int rank);
/* The same under the user's name in messages. */
void kl_nn_need(struct nn *c, const char *user, const char *name, const kiln_tensor *t, int rank);
/* Leading axes as one: [rows][cols]; trailing axes as one: [N][C][L]. */
void kl_nn_rows(struct nn *c, const char *name, const kiln_tensor *t);
void kl_nn_places(struct nn *c, const char *name, const kiln_tensor *t);
/* [outer][n][inner] around an axis (kl_nn_axis_of), with its strides under the kernel's names; back:
 * the axis the other way about. */
void kl_nn_axis(struct nn *c, const char *name, const kiln_tensor *t, int axis, bool back,
                const char *const stride[3]);
/* A negative axis counts from the end.  false: t has no such axis. */
bool kl_nn_axis_of(const kiln_tensor *t, int *axis);
/* x is given and has the axis, which is counted from the front then.  false: it is said why not. */
bool kl_nn_along(struct nn *c, const kiln_tensor *x, int *axis);
/* y can hold sums of x.  false: it is said which types can. */
bool kl_nn_sums(struct nn *c, const kiln_tensor *y, const kiln_tensor *x);
/* All elements as one axis, whose strides must allow it; the stride goes under the kernel's name. */
void kl_nn_line(struct nn *c, const char *name, const kiln_tensor *t, const char *stride);
/* All elements as one axis; t must be dense. */
void kl_nn_flat(struct nn *c, const char *name, const kiln_tensor *t);
/* Memory of the caller as a dense array. */
void kl_nn_work(struct nn *c, const char *name, void *p, size_t bytes, kiln_dtype t, int rank,
             const int64_t *shape, const kiln_tensor *like);

int64_t kl_nn_stride(const kiln_tensor *t, int axis); /* in elements, also where strides is NULL */
bool kl_nn_dense(const kiln_tensor *t);
/* The longest row of x that a program holds in a tile; longer ones are walked in blocks, where sums
 * have another order.  A GPU holds it in the registers of a block of threads, on sm_90 and later of a
 * cluster of blocks. */
int64_t kl_nn_whole(const struct nn *c, const kiln_tensor *x, int64_t on_cpu);
int64_t kl_nn_count(const kiln_tensor *t, int from, int to); /* elements of axes from .. to - 1 */
static inline kiln_dtype kl_nn_acc(kiln_dtype t)
{
    return t == KILN_F64 ? KILN_F64 : KILN_F32;
}
static inline int64_t kl_nn_pow2(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}
static inline int64_t kl_nn_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t kl_nn_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t kl_nn_cdiv(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}
/* Threads of a GPU run the kernels, or their stand-in. */
bool kl_nn_gpu(const struct nn *c);
/* Programs that fill the device once. */
int64_t kl_nn_wave(const kiln_nn *nn);

#endif
