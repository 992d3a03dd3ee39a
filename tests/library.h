/* library.h - the library's kernels with the shapes at which their code is measured and counted. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kiln.h"

enum { LIB_ARRAYS = 5, LIB_ARGS = 10 };

/* Sizes are letters: R rows, C columns, S a short row, P parts, L a line, M N K of a product. */
static const struct lib_row {
    const char *file, *kernel;
    struct {
        const char *name, *dims;
        int acc; /* f32 whatever the type */
    } array[LIB_ARRAYS];
    int64_t cols; /* C, or 4096 */
    const char *scalar;
    int sums; /* only of f32 */
} lib_rows[] = {
    {"add", "add", {{"z", "L", 0}, {"x", "L", 0}, {"y", "L", 0}}, 0, NULL, 0},
    {"gelu", "erf_form", {{"y", "L", 0}, {"x", "L", 0}}, 0, NULL, 0},
    {"gelu", "tanh_form", {{"y", "L", 0}, {"x", "L", 0}}, 0, NULL, 0},
    {"saxpy", "saxpy", {{"y", "L", 0}, {"x", "L", 0}}, 0, "a", 0},
    {"saxpy", "saxpy_fma", {{"y", "L", 0}, {"x", "L", 0}}, 0, "a", 0},
    {"saxpy", "saxpy_stride", {{"y", "L", 0}, {"x", "L", 0}}, 0, "a", 0},
    {"saxpy", "saxpy_stride_fma", {{"y", "L", 0}, {"x", "L", 0}}, 0, "a", 0},
    {"softmax", "softmax", {{"y", "RC", 0}, {"x", "RC", 0}}, 1024, NULL, 0},
    {"softmax", "softmax", {{"y", "RC", 0}, {"x", "RC", 0}}, 16384, NULL, 0},
    {"softmax", "softmax_strided", {{"y", "RC", 0}, {"x", "RC", 0}}, 1024, NULL, 0},
    {"softmax", "softmax_online", {{"y", "RC", 0}, {"x", "RC", 0}}, 131072, NULL, 0},
    {"softmax", "softmax_columns", {{"y", "SC", 0}, {"x", "SC", 0}}, 4096, NULL, 0},
    {"rowsum", "rowsum", {{"s", "R", 1}, {"x", "RC", 0}}, 16384, NULL, 0},
    {"rowsum", "rowsum_parts", {{"partial", "RP", 1}, {"x", "RC", 0}}, 1 << 20, NULL, 0},
    {"rowsum", "rowsum_join", {{"s", "R", 1}, {"partial", "RP", 1}}, 0, NULL, 1},
    {"rowsum", "rowsum_short", {{"s", "R", 1}, {"x", "RS", 0}}, 0, NULL, 0},
    {"layernorm", "layernorm",
     {{"y", "RC", 0}, {"x", "RC", 0}, {"gamma", "C", 0}, {"beta", "C", 0}}, 8192, NULL, 0},
    {"rmsnorm", "rmsnorm", {{"y", "RC", 0}, {"x", "RC", 0}, {"gamma", "C", 0}}, 8192, NULL, 0},
    {"transpose", "transpose", {{"y", "CR", 0}, {"x", "RC", 0}}, 8192, NULL, 0},
    {"matmul", "matmul", {{"c", "MN", 0}, {"a", "MK", 0}, {"b", "KN", 0}}, 0, NULL, 0},
};
enum { LIB_ROWS = sizeof lib_rows / sizeof *lib_rows };

/* "bf16-1024" */
static inline void lib_label(const struct lib_row *r, kiln_dtype t, char *buf, size_t n)
{
    snprintf(buf, n, r->cols ? "%s-%lld" : "%s", kiln_dtype_name(t), (long long)r->cols);
}

/* Arrays that nothing will touch: only what the launch's facts see of their addresses counts. */
static inline size_t lib_arguments(const struct lib_row *r, kiln_dtype t, kiln_arg *arg,
                                    int64_t shape[][2], int device)
{
    size_t n = 0;
    for (; n < LIB_ARRAYS && r->array[n].name; n++) {
        const char *dims = r->array[n].dims;
        for (int d = 0; dims[d]; d++)
            shape[n][d] = dims[d] == 'L' ? 1 << 28 : dims[d] == 'C' ? r->cols
                        : dims[d] == 'S' ? 64 : dims[d] == 'P' ? 8 : 4096;
        arg[n] = (kiln_arg){.name = r->array[n].name, .kind = KILN_ARG_TENSOR};
        arg[n].u.tensor = (kiln_tensor){
            .data = device ? (void *)(uintptr_t)((uint64_t)(n + 1) << 40) : NULL,
            .dtype = r->array[n].acc ? KILN_F32 : t,
            .ndim = (int32_t)strlen(dims),
            .shape = shape[n],
            .flags = device ? KILN_TENSOR_DEVICE : 0};
    }
    if (r->scalar) {
        arg[n] = (kiln_arg){.name = r->scalar, .kind = KILN_ARG_FLOAT};
        arg[n++].u.f = 0.5;
    }
    return n;
}

#endif
