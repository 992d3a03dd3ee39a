/* library.h - the library's kernels with the shapes at which their code is measured and counted. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"

/* arrays: NAME:SIZES, a letter each; then /A for f32 whatever the type, /l i64, /w i32, /u u8.
 * sizes: X=12 for a letter, NAME:12 an integer argument, NAME~0.5 a floating one. */
static const struct lib_row {
    const char *file, *kernel, *tag; /* tag: of the shape, or "" */
    const char *arrays, *sizes;
    int types; /* 1: f32, 2: bf16, 3: both */
} lib_rows[] = {
    {"add", "add", "", "z:L x:L y:L", "L=268435456", 3},
    {"gelu", "erf_form", "", "y:L x:L", "L=268435456", 3},
    {"gelu", "tanh_form", "", "y:L x:L", "L=268435456", 3},
    {"saxpy", "saxpy", "", "y:L x:L", "L=268435456 a~0.5", 3},
    {"saxpy", "saxpy_fma", "", "y:L x:L", "L=268435456 a~0.5", 3},
    {"saxpy", "saxpy_stride", "", "y:L x:L", "L=268435456 a~0.5", 3},
    {"saxpy", "saxpy_stride_fma", "", "y:L x:L", "L=268435456 a~0.5", 3},
    {"softmax", "softmax", "1024", "y:RC x:RC", "R=4096 C=1024", 3},
    {"softmax", "softmax", "16384", "y:RC x:RC", "R=4096 C=16384", 3},
    {"softmax", "softmax_strided", "1024", "y:RC x:RC", "R=4096 C=1024", 3},
    {"softmax", "softmax_online", "131072", "y:RC x:RC", "R=4096 C=131072", 3},
    {"softmax", "softmax_columns", "64", "y:RC x:RC", "R=64 C=4096", 3},
    {"rowsum", "rowsum", "16384", "s:R/A x:RC", "R=4096 C=16384", 3},
    {"rowsum", "rowsum_parts", "1048576", "partial:RP/A x:RC", "R=8 C=1048576 P=8 parts:8", 3},
    {"rowsum", "rowsum_join", "", "s:R partial:RP", "R=4096 P=8", 1},
    {"rowsum", "rowsum_short", "", "s:R/A x:RC", "R=1048576 C=64", 3},
    {"layernorm", "layernorm", "8192", "y:RC x:RC gamma:C beta:C", "R=4096 C=8192", 3},
    {"rmsnorm", "rmsnorm", "8192", "y:RC x:RC gamma:C", "R=4096 C=8192", 3},
    {"transpose", "transpose", "8192", "y:CR x:RC", "R=4096 C=8192", 3},
    {"matmul", "matmul", "", "c:MN a:MK b:KN", "M=4096 N=4096 K=4096", 3},
    {"activation", "act", "", "y:L x:L", "L=268435456", 3},
    {"activation", "act_mul", "", "y:L x:L gate:L", "L=268435456", 3},
    {"activation", "act_halves", "8192", "y:RC x:RD", "R=4096 C=8192 D=16384", 3},
    {"loss", "log_softmax", "8192", "y:RC x:RC", "R=4096 C=8192", 3},
    {"loss", "cross_entropy", "32768", "loss:R/A lse:R/A x:RC label:R/l", "R=4096 C=32768", 3},
    {"loss", "cross_entropy_backward", "32768", "dx:RC x:RC label:R/l lse:R/A", "R=4096 C=32768",
     3},
    {"groupnorm", "groupnorm", "", "y:NCL x:NCL gamma:C beta:C", "N=32 C=256 L=4096 groups:32", 3},
    {"groupnorm", "batchnorm_stats", "", "mean:C/A var:C/A x:NCL", "N=32 C=256 L=4096", 3},
    {"groupnorm", "batchnorm", "", "y:NCL x:NCL mean:C/A var:C/A gamma:C beta:C",
     "N=32 C=256 L=4096", 3},
    {"norm_backward", "norm_backward", "4096",
     "dx:RC pgamma:PC/A pbeta:PC/A dy:RC x:RC gamma:C mean:R/A rstd:R/A",
     "R=4096 C=4096 P=128 parts:128", 3},
    {"norm_backward", "norm_backward_join", "4096", "s:C partial:PC/A", "P=128 C=4096", 3},
    {"pool", "pool", "", "y:NChw x:NCHW", "N=32 C=64 H=112 W=112 h=56 w=56", 3},
    {"pool", "mean_all", "", "y:NC x:NCL", "N=32 C=512 L=4096", 3},
    {"rope", "rope", "", "y:THD x:THD cosine:Sk/A sine:Sk/A", "T=4096 H=32 D=128 S=4096 k=64", 3},
    {"gemm", "gemm", "", "c:ZMN a:ZMK b:ZKN", "Z=8 M=1024 N=1024 K=1024", 3},
    {"gemm", "gemm_split", "", "partial:PMN/A a:MK b:KN", "P=4 M=256 N=256 K=16384 parts:4", 3},
    {"gemm", "gemm_join", "", "c:MN partial:PMN/A", "P=4 M=256 N=4096", 3},
    {"gemm", "gemm_grouped", "", "c:MN a:MK b:EKN first:F/l", "M=4096 N=4096 K=1024 E=8 F=9", 3},
    {"gemm", "gemm_w4", "", "c:MN a:MK w:Nk/u scale:Ns", "M=32 N=4096 K=4096 k=2048 s=128", 2},
    {"attention", "attention", "64", "o:BHLD q:BHLD k:BGLD v:BGLD", "B=4 H=16 G=16 L=2048 D=64", 3},
    {"decode", "decode_split", "", "acc:BPHD/A top:BPH/A sum_:BPH/A q:BHD k:BSGD v:BSGD len:B/w",
     "B=16 P=4 H=32 G=8 S=4096 D=128 parts:4", 3},
    {"decode", "decode_paged", "",
     "acc:BPHD/A top:BPH/A sum_:BPH/A q:BHD k:pgGD v:pgGD table:Bm/w len:B/w",
     "B=16 P=4 H=32 G=8 p=4096 g=16 m=256 D=128 parts:4", 3},
    {"decode", "decode_merge", "", "o:BHD acc:BPHD/A top:BPH/A sum_:BPH/A", "B=16 P=4 H=32 D=128",
     3},
    {"conv", "conv2d", "", "y:NOHW x:NCHW w:OCIJ bias:O",
     "N=32 C=64 H=56 W=56 O=64 I=3 J=3 PH:1 PW:1", 3},
    {"conv", "conv1d", "", "y:NOL x:NCL w:OCK bias:O", "N=32 C=256 L=4096 O=256 K=3 P:1", 3},
    {"gdn", "gdn_recurrent", "", "o:TUV q:THK k:THK v:TUV g:TU/A beta:TU/A",
     "T=4096 H=16 U=16 K=128 V=128 N:1", 3},
    {"gdn", "gdn_chunk", "", "o:TUV q:THK k:THK v:TUV g:TU/A beta:TU/A",
     "T=4096 H=16 U=16 K=128 V=128 N:1", 3},
};
enum { LIB_ROWS = sizeof lib_rows / sizeof *lib_rows, LIB_ARRAYS = 8, LIB_ARGS = 16 };

struct lib_args {
    kiln_arg arg[LIB_ARGS];
    int64_t shape[LIB_ARRAYS][4];
    char name[LIB_ARGS][24];
    size_t n;
};

/* "bf16-1024" */
static inline void lib_label(const struct lib_row *r, kiln_dtype t, char *buf, size_t n)
{
    snprintf(buf, n, "%s%s%s", kiln_dtype_name(t), *r->tag ? "-" : "", r->tag);
}

/* Arrays that nothing will touch: only what the launch's facts see of their addresses counts. */
static inline void lib_arguments(const struct lib_row *r, kiln_dtype t, struct lib_args *a,
                                 int device)
{
    int64_t size[128] = {0};
    a->n = 0;
    for (const char *s = r->sizes; *s;) {
        size_t n = strcspn(s, "=:~");
        char *end;
        if (s[n] == '=') {
            size[(unsigned char)*s] = strtoll(s + n + 1, &end, 10);
        } else {
            kiln_arg *g = &a->arg[a->n];
            snprintf(a->name[a->n], sizeof a->name[0], "%.*s", (int)n, s);
            *g = (kiln_arg){.name = a->name[a->n++], .kind = KILN_ARG_INT};
            if (s[n] == ':') {
                g->u.i = strtoll(s + n + 1, &end, 10);
            } else {
                g->kind = KILN_ARG_FLOAT;
                g->u.f = strtod(s + n + 1, &end);
            }
        }
        s = end + (*end == ' ');
    }
    unsigned k = 0;
    for (const char *s = r->arrays; *s; k++) {
        size_t n = strcspn(s, ":");
        kiln_arg *g = &a->arg[a->n];
        int32_t rank = 0;
        snprintf(a->name[a->n], sizeof a->name[0], "%.*s", (int)n, s);
        for (s += n + 1; *s && *s != ' ' && *s != '/'; s++)
            a->shape[k][rank++] = size[(unsigned char)*s];
        kiln_dtype e = t;
        if (*s == '/') {
            e = s[1] == 'A' ? KILN_F32 : s[1] == 'l' ? KILN_I64 : s[1] == 'w' ? KILN_I32 : KILN_U8;
            s += 2;
        }
        *g = (kiln_arg){.name = a->name[a->n++], .kind = KILN_ARG_TENSOR};
        g->u.tensor =
            (kiln_tensor){.data = device ? (void *)(uintptr_t)((uint64_t)(k + 1) << 40) : NULL,
                          .dtype = e,
                          .ndim = rank,
                          .shape = a->shape[k],
                          .flags = device ? KILN_TENSOR_DEVICE : 0};
        s += *s == ' ';
    }
}

#endif
