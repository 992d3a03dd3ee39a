/* kiln_nn.h - the kernel library as plain C functions.  C99 and later, valid as C++.
 *
 *     kiln_nn_create(ctx, &nn, NULL);
 *     kiln_nn_softmax(nn, stream, &y, &x, &diags);
 *
 * Each function picks a kernel of kernels/ and its constants for the shapes given, and launches it
 * on the context's device (kiln_launch: streams, host and device arrays, capture into graphs).  The
 * kernels' files state formulas, orders of summation and error bounds; here stand shapes and types.
 *
 * Tensors are kiln_tensor: outputs first, then inputs; NULL where "or NULL" is said.  Unless stated
 * otherwise all have one element type (T) of f32, f16, bf16, f64, and the sums run in A: f32, for
 * f64 f64.  Rows lie along the last axis; leading axes ([..][cols]) are taken as one where strides
 * allow.  An output may be the same memory as an input where "in place" is said, else it must not
 * share an element with any.
 *
 * Workspace.  Nothing is allocated on a device: a function that needs room for partial results has a
 * companion ..._workspace that tells how many bytes, and takes them as `work` (memory of the kind
 * the arrays have: of the device, if they are there; aligned to 256 bytes).
 *
 * Errors.  A status as of kiln_launch; shapes and types that do not fit are KILN_E_ARG, reported with
 * the names used here before anything runs.  A tensor's shape and strides are read during the call;
 * its memory must live until the stream has come past.
 *
 * Threads.  A kiln_nn may be used from several threads; its first use of a kernel compiles it once. */
#ifndef KILN_NN_H
#define KILN_NN_H

#include "kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_nn kiln_nn;

/* Nothing is compiled yet.  The context must outlive it. */
KILN_API kiln_status kiln_nn_create(kiln_context *ctx, kiln_nn **out, kiln_diags **diags);
KILN_API void kiln_nn_free(kiln_nn *nn); /* before its context; NULL is fine */
/* The module of a file of kernels/ ("softmax"), compiled if need be, for launches of one's own with
 * kiln_launch.  It belongs to nn.  Tiles, warps and clusters that `kiln tune` found for a GPU come with
 * the library (kernels/NAME.kiln.tune) and are taken on that GPU: they may change the order of sums, and
 * so the last bits, but are the same for the same library, GPU, types and sizes.  kiln_module_tune
 * replaces them, with length 0 by the kernels' own. */
KILN_API kiln_status kiln_nn_module(kiln_nn *nn, const char *file, kiln_module **out,
                                    kiln_diags **diags);

/* ---- rows ----
 *
 * A row is held as a whole up to the length that the device has room for: on a GPU from sm_90 on 262144
 * columns (f64: half), on others 32768; on the CPU softmax 65536, norms any.  Longer ones are walked
 * in blocks, which reads them again and rounds sums in another order. */

/* y, x: [..][cols]; in place.  A row of -inf, or with NaN or +inf, gives NaN.  cols up to 2^31. */
KILN_API kiln_status kiln_nn_softmax(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                     const kiln_tensor *x, kiln_diags **diags);
KILN_API kiln_status kiln_nn_log_softmax(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                         const kiln_tensor *x, kiln_diags **diags);
/* loss, lse (or NULL): A [rows]; x: T [rows][cols]; label: i32 or i64 [rows].  Rows whose label is
 * `ignore` have loss 0; a label outside 0 .. cols - 1 otherwise gives NaN. */
KILN_API kiln_status kiln_nn_cross_entropy(kiln_nn *nn, kiln_stream *s, const kiln_tensor *loss,
                                           const kiln_tensor *lse, const kiln_tensor *x,
                                           const kiln_tensor *label, double smoothing,
                                           int64_t ignore, kiln_diags **diags);
/* dx: T [rows][cols]; lse: A [rows] of the forward pass; g: A [rows], gradient of loss, or NULL: 1. */
KILN_API kiln_status kiln_nn_cross_entropy_backward(kiln_nn *nn, kiln_stream *s,
                                                    const kiln_tensor *dx, const kiln_tensor *x,
                                                    const kiln_tensor *label,
                                                    const kiln_tensor *lse, const kiln_tensor *g,
                                                    double smoothing, int64_t ignore,
                                                    kiln_diags **diags);

typedef enum kiln_nn_reduce_op {
    KILN_NN_SUM = 1, KILN_NN_MEAN = 2, KILN_NN_MAX = 3, KILN_NN_MIN = 4,
    KILN_NN_PROD = 5 /* kiln_nn_running alone */
} kiln_nn_reduce_op;
/* y = op of x over `axis` (negative: from the end).  x: any rank up to 6, T; y: the same without the
 * axis, or with it as 1; A for sum and mean, T for max and min (NaN wins).  An axis of length 0 gives
 * 0, NaN, -inf, +inf. */
KILN_API size_t kiln_nn_reduce_workspace(const kiln_nn *nn, const kiln_tensor *x, int axis);
KILN_API kiln_status kiln_nn_reduce(kiln_nn *nn, kiln_stream *s, kiln_nn_reduce_op op,
                                    const kiln_tensor *y, const kiln_tensor *x, int axis,
                                    void *work, size_t work_bytes, kiln_diags **diags);

/* ---- norms ---- */

/* y, x: [..][cols]; gamma, beta: [cols] or NULL; mean, rstd: A [rows] or NULL.  In place. */
KILN_API kiln_status kiln_nn_layernorm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                       const kiln_tensor *mean, const kiln_tensor *rstd,
                                       const kiln_tensor *x, const kiln_tensor *gamma,
                                       const kiln_tensor *beta, double eps, kiln_diags **diags);
KILN_API kiln_status kiln_nn_rmsnorm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                     const kiln_tensor *x, const kiln_tensor *gamma, double eps,
                                     kiln_diags **diags);
/* dx, dy, x: [rows][cols]; dgamma, dbeta: [cols] or NULL; mean: A [rows], NULL for RMS norm. */
KILN_API size_t kiln_nn_norm_backward_workspace(const kiln_nn *nn, const kiln_tensor *x);
KILN_API kiln_status kiln_nn_norm_backward(kiln_nn *nn, kiln_stream *s, const kiln_tensor *dx,
                                           const kiln_tensor *dgamma, const kiln_tensor *dbeta,
                                           const kiln_tensor *dy, const kiln_tensor *x,
                                           const kiln_tensor *gamma, const kiln_tensor *mean,
                                           const kiln_tensor *rstd, void *work, size_t work_bytes,
                                           kiln_diags **diags);
/* y, x: [N][C][..], the places behind as one where strides allow; gamma, beta: [C] or NULL; mean,
 * rstd: A [N][groups] or NULL.  In place is not possible. */
KILN_API kiln_status kiln_nn_groupnorm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                       const kiln_tensor *mean, const kiln_tensor *rstd,
                                       const kiln_tensor *x, const kiln_tensor *gamma,
                                       const kiln_tensor *beta, int64_t groups, double eps,
                                       kiln_diags **diags);
/* mean, var, running_* (or NULL): A [C]; x: [N][C][..].  running = running + momentum (new - running),
 * the variance there unbiased. */
KILN_API kiln_status kiln_nn_batchnorm_stats(kiln_nn *nn, kiln_stream *s, const kiln_tensor *mean,
                                             const kiln_tensor *var,
                                             const kiln_tensor *running_mean,
                                             const kiln_tensor *running_var, const kiln_tensor *x,
                                             double momentum, kiln_diags **diags);
KILN_API kiln_status kiln_nn_batchnorm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                       const kiln_tensor *x, const kiln_tensor *mean,
                                       const kiln_tensor *var, const kiln_tensor *gamma,
                                       const kiln_tensor *beta, double eps, kiln_diags **diags);

/* ---- element by element ---- */

typedef enum kiln_nn_activation {
    KILN_NN_NONE = 0, KILN_NN_GELU = 1, KILN_NN_GELU_TANH = 2, KILN_NN_RELU = 3, KILN_NN_SILU = 4,
    KILN_NN_SIGMOID = 5, KILN_NN_TANH = 6
} kiln_nn_activation;
/* y = act(x), times gate unless NULL.  All of one shape, dense.  In place. */
KILN_API kiln_status kiln_nn_act(kiln_nn *nn, kiln_stream *s, kiln_nn_activation act,
                                 const kiln_tensor *y, const kiln_tensor *x,
                                 const kiln_tensor *gate, kiln_diags **diags);
/* y: [..][cols]; x: [..][2 cols]: act(first half) * second half (SILU: SwiGLU). */
KILN_API kiln_status kiln_nn_act_halves(kiln_nn *nn, kiln_stream *s, kiln_nn_activation act,
                                        const kiln_tensor *y, const kiln_tensor *x,
                                        kiln_diags **diags);
/* dx = dy act'(x), times gate unless NULL; dgate (or NULL) = dy act(x).  All of one shape, dense.  dx in
 * place of dy.  relu has slope 0 at 0. */
KILN_API kiln_status kiln_nn_act_backward(kiln_nn *nn, kiln_stream *s, kiln_nn_activation act,
                                          const kiln_tensor *dx, const kiln_tensor *dgate,
                                          const kiln_tensor *dy, const kiln_tensor *x,
                                          const kiln_tensor *gate, kiln_diags **diags);
/* y = x / (1 - p) where element i is kept, else 0; the mask follows from seed and i alone.  The gradient
 * is the same function of dy.  0 <= p < 1; dense; in place. */
KILN_API kiln_status kiln_nn_dropout(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                     const kiln_tensor *x, double p, int64_t seed,
                                     kiln_diags **diags);
/* y, x: [tokens][heads][D]; cosine, sine: A [places][R / 2], R <= D; place: i32 or i64 [tokens], or
 * NULL: token t has place t.  near: pairs are neighbours; back: turned the other way.  In place. */
KILN_API kiln_status kiln_nn_rope(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                  const kiln_tensor *x, const kiln_tensor *cosine,
                                  const kiln_tensor *sine, const kiln_tensor *place, int near,
                                  int back, kiln_diags **diags);
/* The same with angles place theta^(-2i / turned), made in the kernel; turned: the elements of a head
 * that are turned, even (0: all D).  Without place token t has place begin + t. */
KILN_API kiln_status kiln_nn_rope_theta(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                        const kiln_tensor *x, int64_t turned, double theta,
                                        const kiln_tensor *place, int64_t begin, int near,
                                        int back, kiln_diags **diags);
/* y[j][i] = x[i][j]; any element type. */
KILN_API kiln_status kiln_nn_transpose(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                       const kiln_tensor *x, kiln_diags **diags);

/* Axis d of y is axis axis[d] of x (NULL: the same order).  Up to 6 axes, any strides in both (0 in x
 * repeats), any element type. */
KILN_API kiln_status kiln_nn_permute(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                     const kiln_tensor *x, const int *axis, kiln_diags **diags);

/* ---- by index ----
 *
 * idx, p: i32 or i64; rows of any element type unless sums are made.  A number outside the table reads
 * as zeros, and is dropped where it writes.  Elements of a row lie side by side, rows any number of
 * elements apart (of an output not over each other); idx, p and arrays of one axis are dense. */

/* y: [..][cols], one row a number of idx [..]: w[idx]; w: [rows][cols].  The number `padding` (-1: none)
 * gives zeros. */
KILN_API kiln_status kiln_nn_embedding(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                       const kiln_tensor *idx, const kiln_tensor *w,
                                       int64_t padding, kiln_diags **diags);
/* dw: A [rows][cols], set to 0 first; dy: T [..][cols].  By atomics: last bits depend on their order. */
KILN_API kiln_status kiln_nn_embedding_gradient(kiln_nn *nn, kiln_stream *s, const kiln_tensor *dw,
                                                const kiln_tensor *idx, const kiln_tensor *dy,
                                                int64_t padding, kiln_diags **diags);
/* y[i] = x[p[i]].  y: [n][cols]; p: [n]; x: [rows][cols]. */
KILN_API kiln_status kiln_nn_take(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                  const kiln_tensor *p, const kiln_tensor *x, kiln_diags **diags);
/* y[p[i]] = x[i]; rows that p does not name stay; p names none twice.  y: [rows][cols]; x: [n][cols]. */
KILN_API kiln_status kiln_nn_put(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                 const kiln_tensor *p, const kiln_tensor *x, kiln_diags **diags);
/* y[r] = sum of x[i] where p[i] = r.  y: [rows][cols] of A (of integers i32 or i64), set to 0 first.
 * segment_sum wants p ascending, and has less to add by atomics. */
KILN_API kiln_status kiln_nn_scatter_add(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                         const kiln_tensor *p, const kiln_tensor *x,
                                         kiln_diags **diags);
KILN_API kiln_status kiln_nn_segment_sum(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                         const kiln_tensor *p, const kiln_tensor *x,
                                         kiln_diags **diags);
/* y[r] = max(y[r], x[i] where p[i] = r).  y: [rows]; p, x: [n]; i32, u32, i64, u64, f32,
 * f64 (NaN wins, -0 < +0; a NaN in y loses its sign). */
KILN_API kiln_status kiln_nn_scatter_max(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                         const kiln_tensor *p, const kiln_tensor *x,
                                         kiln_diags **diags);
/* y[i] = x[i][p[i]].  y, p: [n]; x: [n][cols]. */
KILN_API kiln_status kiln_nn_pick(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                  const kiln_tensor *p, const kiln_tensor *x, kiln_diags **diags);
/* h[b] = how many elements of x are b; x: integers of any shape, dense or with strides that let it be
 * walked as one axis; h: i32, u32, i64 or u64 [bins].  Others are dropped. */
KILN_API kiln_status kiln_nn_histogram(kiln_nn *nn, kiln_stream *s, const kiln_tensor *h,
                                       const kiln_tensor *x, kiln_diags **diags);
/* The same of equal intervals of lo .. hi; x: floats; hi itself counts in the last one, NaN nowhere. */
KILN_API kiln_status kiln_nn_histogram_floats(kiln_nn *nn, kiln_stream *s, const kiln_tensor *h,
                                              const kiln_tensor *x, double lo, double hi,
                                              kiln_diags **diags);

/* ---- running sums ----
 *
 * y: f32 or f64 (of f64: f64); of integers i32, u32, i64 or u64, which wrap. */

/* y and x: of one shape up to 8 axes, any strides that let the axes on either side be walked as one;
 * along `axis` (negative: from the end), from its end with reverse. */
KILN_API kiln_status kiln_nn_cumsum(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                    const kiln_tensor *x, int axis, int reverse,
                                    kiln_diags **diags);
/* All elements of x in order, over many programs.  Dense. */
KILN_API size_t kiln_nn_prefix_sum_workspace(const kiln_nn *nn, const kiln_tensor *x);
KILN_API kiln_status kiln_nn_prefix_sum(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                        const kiln_tensor *x, void *work, size_t work_bytes,
                                        kiln_diags **diags);
/* The sum, product (as sums: y above), greatest or least (y: T; NaN wins, -0 < +0) so far along `axis`,
 * from its end with reverse; anew where head (bool, as x) is set, unless that is NULL.  x: integers and
 * floats of 16 bits and more; y and x as for kiln_nn_cumsum; an axis of any length, over many programs.
 * In place. */
KILN_API size_t kiln_nn_running_workspace(const kiln_nn *nn, const kiln_tensor *x, int axis);
KILN_API kiln_status kiln_nn_running(kiln_nn *nn, kiln_stream *s, kiln_nn_reduce_op op,
                                     const kiln_tensor *y, const kiln_tensor *x,
                                     const kiln_tensor *head, int axis, int reverse, void *work,
                                     size_t work_bytes, kiln_diags **diags);
/* SUM and MAX of it along the last axis: workspace as for kiln_nn_running with axis -1. */
KILN_API kiln_status kiln_nn_segmented_flags(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                             const kiln_tensor *x, const kiln_tensor *head,
                                             void *work, size_t work_bytes, kiln_diags **diags);
KILN_API kiln_status kiln_nn_cummax(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                    const kiln_tensor *x, void *work, size_t work_bytes,
                                    kiln_diags **diags);
/* Anew at each first[s] (i64 [segments + 1], ascending); y, x: [n]; what lies before first[0] or
 * from the last one on is not written. */
KILN_API kiln_status kiln_nn_segmented_offsets(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                               const kiln_tensor *x, const kiln_tensor *first,
                                               kiln_diags **diags);
/* ---- order ---- */

/* place: i32, the lowest place of the largest (least: smallest) element along `axis`; v: T, that element,
 * or NULL.  NaN wins, -0 < +0.  x: up to 8 axes, any type.  place, v: as x without the
 * axis, or with it as 1; dense.  An axis of length 0 gives 0. */
KILN_API kiln_status kiln_nn_argmax(kiln_nn *nn, kiln_stream *s, const kiln_tensor *place,
                                    const kiln_tensor *v, const kiln_tensor *x, int axis,
                                    int least, kiln_diags **diags);
/* The K largest of each row, largest first, NaN last, equal ones by place.  v: T [..][K]; place: i32
 * [..][K]; x: [..][cols], cols below 2^31; any numbers, any strides. */
KILN_API size_t kiln_nn_topk_workspace(const kiln_nn *nn, const kiln_tensor *x, int64_t k);
KILN_API kiln_status kiln_nn_topk(kiln_nn *nn, kiln_stream *s, const kiln_tensor *v,
                                  const kiln_tensor *place, const kiln_tensor *x, void *work,
                                  size_t work_bytes, kiln_diags **diags);
/* y: T and place: i32, either or both; x: [..][cols], as above.  Ascending, stable, NaN last.  y in
 * place.  Rows of up to 4096 elements need no workspace. */
KILN_API size_t kiln_nn_sort_workspace(const kiln_nn *nn, const kiln_tensor *x);
KILN_API kiln_status kiln_nn_sort(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                  const kiln_tensor *place, const kiln_tensor *x, void *work,
                                  size_t work_bytes, kiln_diags **diags);

/* ---- matrix products ---- */

/* How f32 is multiplied: as it is; rounded to 11 bits (tf32); as three such products, nearly as
 * exact as f32.  docs/language.md has the bounds.  Floats of 16 bits are not changed by it. */
typedef enum kiln_nn_precision {
    KILN_NN_IEEE = 0, KILN_NN_TF32 = 1, KILN_NN_TF32X3 = 2
} kiln_nn_precision;
typedef struct kiln_nn_epilogue { /* all zero: none; NULL may be passed for it */
    const kiln_tensor *bias;      /* [N] */
    const kiln_tensor *residual;  /* as c, added last */
    kiln_nn_activation act;
    kiln_nn_precision precision;  /* of the products */
} kiln_nn_epilogue;
/* c = act(alpha a b + beta c0 + bias) + residual.  c: [M][N] or [Z][M][N]; a: [M][K] or [Z][M][K];
 * b: [K][N] or [Z][K][N]; c0: as c, or NULL.  Any strides: a transposed operand is a tensor whose
 * strides say so.  A batch stride of 0 shares an operand.  c, c0, bias, residual may be of another
 * float type than a and b. */
KILN_API kiln_status kiln_nn_gemm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c,
                                  const kiln_tensor *a, const kiln_tensor *b, double alpha,
                                  const kiln_tensor *c0, double beta, const kiln_nn_epilogue *e,
                                  kiln_diags **diags);
/* Long K, few tiles: K is split over programs, whose sums meet in `work`.  Dense; alpha 1. */
KILN_API size_t kiln_nn_gemm_split_workspace(const kiln_nn *nn, const kiln_tensor *a,
                                             const kiln_tensor *b);
KILN_API kiln_status kiln_nn_gemm_split(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c,
                                        const kiln_tensor *a, const kiln_tensor *b,
                                        const kiln_nn_epilogue *e, void *work, size_t work_bytes,
                                        kiln_diags **diags);
/* Rows first[e] .. first[e + 1] - 1 of a times b[e].  c: [M][N]; a: [M][K]; b: [E][K][N];
 * first: i64 [E + 1]; dense. */
KILN_API kiln_status kiln_nn_gemm_grouped(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c,
                                          const kiln_tensor *a, const kiln_tensor *b,
                                          const kiln_tensor *first, kiln_nn_activation act,
                                          kiln_diags **diags);
/* Weights of 4 bits: w: u8 [N][K / 2], the lower half first; scale: [N][K / group]; a weight is
 * scale (q - 8).  c: [M][N]; a: [M][K]; dense. */
KILN_API kiln_status kiln_nn_gemm_w4(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c,
                                     const kiln_tensor *a, const kiln_tensor *w,
                                     const kiln_tensor *scale, const kiln_nn_epilogue *e,
                                     kiln_diags **diags);
/* Integers of 8 bits.  c: [M][N], i32: the sums themselves; f32, f16, bf16: act(sum row[m] col[n] +
 * bias[n]), where row, col (f32) and bias (as c) may be NULL.  a: [M][K]; b: [K][N], both i8 or both u8,
 * any strides; c dense.  Sums are exact for K up to 131071 (u8: 33025), and wrap beyond. */
KILN_API kiln_status kiln_nn_gemm_i8(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c,
                                     const kiln_tensor *a, const kiln_tensor *b,
                                     const kiln_tensor *row, const kiln_tensor *col,
                                     const kiln_tensor *bias, kiln_nn_activation act,
                                     kiln_diags **diags);

/* ---- mixture of experts ---- */

/* weight: A, expert: i32 [tokens][K], the K largest of logit: T [tokens][E], largest first, equal ones by
 * number; weights are those of the softmax over all experts, with normalise divided by their sum.
 * E up to 8192. */
KILN_API kiln_status kiln_nn_moe_route(kiln_nn *nn, kiln_stream *s, const kiln_tensor *weight,
                                       const kiln_tensor *expert, const kiln_tensor *logit,
                                       int normalise, kiln_diags **diags);
/* Pairs p = t K + j of expert [tokens][K] grouped by expert, ascending p in each group: those of e stand
 * at places first[e] .. first[e + 1] - 1 (i64 [E + 1]); order[place] = p, place[p]: i32.  An expert
 * outside 0 .. E - 1 is dropped: place -1, and order ends with -1. */
KILN_API size_t kiln_nn_moe_group_workspace(const kiln_nn *nn, const kiln_tensor *expert,
                                            int64_t experts);
KILN_API kiln_status kiln_nn_moe_group(kiln_nn *nn, kiln_stream *s, const kiln_tensor *first,
                                       const kiln_tensor *order, const kiln_tensor *place,
                                       const kiln_tensor *expert, void *work, size_t work_bytes,
                                       kiln_diags **diags);
/* act of each row times its expert's matrix b[e] ([E][K'][N]).  With order, a is [tokens][K'], whose rows
 * are read through it, without a copy; without, a is [pairs][K'] grouped already.  With weight and place
 * ([tokens][K]), c is [tokens][N], the rows times weight added for j ascending, and workspace is needed;
 * without, c is [pairs][N] grouped.  So a block's first product takes order, its last one weight and
 * place.  Dense. */
KILN_API size_t kiln_nn_moe_gemm_workspace(const kiln_nn *nn, const kiln_tensor *a,
                                           const kiln_tensor *b, const kiln_tensor *order,
                                           const kiln_tensor *place);
KILN_API kiln_status kiln_nn_moe_gemm(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c,
                                      const kiln_tensor *a, const kiln_tensor *b,
                                      const kiln_tensor *first, const kiln_tensor *order,
                                      const kiln_tensor *weight, const kiln_tensor *place,
                                      kiln_nn_activation act, void *work, size_t work_bytes,
                                      kiln_diags **diags);
/* The same in one launch and without workspace: c: A [tokens][N], set to 0 first, gets weight ([tokens][K],
 * or as one axis) times act(row) by atomics: last bits depend on their order.  a: [tokens][K'], or with
 * grouped [pairs][K']; order tells the pairs either way. */
KILN_API kiln_status kiln_nn_moe_gemm_add(kiln_nn *nn, kiln_stream *s, const kiln_tensor *c,
                                          const kiln_tensor *a, const kiln_tensor *b,
                                          const kiln_tensor *first, const kiln_tensor *order,
                                          const kiln_tensor *weight, int grouped,
                                          kiln_nn_activation act, kiln_diags **diags);

/* ---- convolution ---- */

typedef struct kiln_nn_conv {
    int64_t stride[2], pad[2], dilation[2]; /* rows, columns; 0 in stride or dilation means 1 */
    int64_t groups;                         /* 0 means 1 */
    const kiln_tensor *bias;                /* [O] or NULL */
    kiln_nn_activation act;
} kiln_nn_conv;
/* y: [N][O][OH][OW]; x: [N][C][H][W]; w: [O][C / groups][KH][KW]; any strides (channels last too);
 * OH = (H + 2 pad - dilation (KH - 1) - 1) / stride + 1.  p NULL: all defaults. */
KILN_API kiln_status kiln_nn_conv2d(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                    const kiln_tensor *x, const kiln_tensor *w,
                                    const kiln_nn_conv *p, kiln_diags **diags);
/* y: [N][O][OL]; x: [N][C][L]; w: [O][C / groups][K]; entry 1 of stride, pad, dilation is not used. */
KILN_API kiln_status kiln_nn_conv1d(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                    const kiln_tensor *x, const kiln_tensor *w,
                                    const kiln_nn_conv *p, kiln_diags **diags);

typedef struct kiln_nn_pool_params {
    int64_t window[2], stride[2], pad[2]; /* stride 0: the window's */
    int mean;                             /* else the largest */
    int inside_only;                      /* a mean divides by the places inside x */
    int64_t dilation[2];                  /* 0: 1 */
} kiln_nn_pool_params;
/* y: [N][C][OH][OW]; x: [N][C][H][W]; any strides; OH as for kiln_nn_conv2d. */
KILN_API kiln_status kiln_nn_pool(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                                  const kiln_tensor *x, const kiln_nn_pool_params *p,
                                  kiln_diags **diags);

/* ---- attention ---- */

typedef struct kiln_nn_attn {
    double scale;               /* 0: 1/sqrt(D) */
    int causal;                 /* query i sees the keys up to place i + S - L */
    int64_t window;             /* > 0: only that many of them */
    const kiln_tensor *slopes;  /* ALiBi: A [H], or NULL */
} kiln_nn_attn;
/* o, q: [B][H][L][D]; k, v: [B][G][S][D], H a multiple of G; lse: A [B][H][L] or NULL; dense.
 * D up to 256.  A query that sees no key gives 0.  p NULL: all defaults. */
KILN_API kiln_status kiln_nn_attention(kiln_nn *nn, kiln_stream *s, const kiln_tensor *o,
                                       const kiln_tensor *lse, const kiln_tensor *q,
                                       const kiln_tensor *k, const kiln_tensor *v,
                                       const kiln_nn_attn *p, kiln_diags **diags);
/* One query a sequence.  o, q: [B][H][D]; k, v: [B][S][G][D], or with `table` pages
 * [pages][P][G][D], page i of sequence b being table[b][i] (i32 [B][most]); len: i32 [B]; dense. */
KILN_API size_t kiln_nn_decode_workspace(const kiln_nn *nn, const kiln_tensor *q,
                                         const kiln_tensor *k);
KILN_API kiln_status kiln_nn_decode(kiln_nn *nn, kiln_stream *s, const kiln_tensor *o,
                                    const kiln_tensor *q, const kiln_tensor *k,
                                    const kiln_tensor *v, const kiln_tensor *len,
                                    const kiln_tensor *table, double scale, void *work,
                                    size_t work_bytes, kiln_diags **diags);

typedef struct kiln_nn_gdn {
    double scale;                /* 0: 1/sqrt(K) */
    int64_t sequences;           /* 0: 1, or what cu says; equal lengths without cu */
    const kiln_tensor *cu;       /* i64 [N + 1], or NULL */
    const kiln_tensor *h0, *ht;  /* A [N][HV][K][V], or NULL */
    int last;                    /* states are [N][HV][V][K] */
    int linear;                  /* g holds exp(g) */
    int norm;                    /* q and k are divided by their length first */
    int recurrent;               /* token by token: slow, for comparison */
} kiln_nn_gdn;
/* Gated DeltaNet.  o, v: [tokens][HV][V]; q, k: [tokens][H][K]; g, beta: A [tokens][HV]; dense. */
KILN_API kiln_status kiln_nn_gated_deltanet(kiln_nn *nn, kiln_stream *s, const kiln_tensor *o,
                                            const kiln_tensor *q, const kiln_tensor *k,
                                            const kiln_tensor *v, const kiln_tensor *g,
                                            const kiln_tensor *beta, const kiln_nn_gdn *p,
                                            kiln_diags **diags);

#ifdef __cplusplus
}
#endif
#endif
