/* more.c - kernels with more arrays and axes: their shapes are written out.
 *
 * A shape is a list of words: X=12 gives a size its letter, NAME:12 an argument of the kernel.
 * Shapes are parted by `|`; those before `||` run without --full as well. */
#include <stdlib.h>
#include <string.h>

#include "walk.h"

#define OUT(name, dims, elem) {name, dims, elem, true, false, false, 0}
#define IN(name, dims, elem) {name, dims, elem, false, true, false, 0}
#define PERHAPS(name, dims, elem) {name, dims, elem, false, true, true, 0}
#define PERHAPS_OUT(name, dims, elem) {name, dims, elem, true, false, true, 0}
#define BOTH(name, dims, elem) {name, dims, elem, true, true, true, 0}
#define INDEX(name, dims, elem, below) {name, dims, elem, false, true, false, below}
#define PERHAPS_INDEX(name, dims, elem, below) {name, dims, elem, false, true, true, below}

enum { HALF = 1, FLOAT = 2, ALL = 3 }; /* which types: 16-bit ones; f32 and f64 */

static const struct more {
    struct kern k;
    int types;
    const char *shapes;
} more[] = {
    {{"activation", "act", {OUT("y", "n", 'T'), IN("x", "n", 'T')}, "x", .tail = 2}, ALL,
     "n=65 BLOCK:64 ACT:1|n=1023 BLOCK:1024 ACT:4|n=0 ACT:1||n=1 ACT:0|n=1025 BLOCK:64 ACT:0|"
     "n=2047 ACT:2|n=2048 ACT:3|n=2049 ACT:4|n=1009 ACT:5|n=333 BLOCK:100 ACT:2|n=4096 ACT:3"},
    {{"activation", "act_mul", {OUT("y", "n", 'T'), IN("x", "n", 'T'), IN("gate", "n", 'T')}, "x",
      .tail = 2}, ALL,
     "n=65 BLOCK:64 ACT:1||n=0 ACT:1|n=1 ACT:2|n=1023 ACT:3|n=1024 ACT:4|n=1025 ACT:5|n=509 "
     "BLOCK:100 ACT:0|n=2049 BLOCK:256 ACT:1"},
    {{"activation", "act_halves", {OUT("y", "rc", 'T'), IN("x", "rd", 'T')}, NULL, .tail = 2}, ALL,
     "r=3 c=65 d=130||r=1 c=1 d=2|r=2 c=1000 d=2000 ACT:2|r=0 c=5 d=10|r=3 c=0 d=0|r=2 c=1025 "
     "d=2050|r=5 c=64 d=128 ACT:3|r=2 c=33 d=66 BLOCK:16"},
    {{"loss", "log_softmax", {OUT("y", "rc", 'T'), IN("x", "rc", 'T')}, "x", .tail = 2}, ALL,
     "r=3 c=65|r=2 c=1000||r=1 c=1|r=0 c=7|r=3 c=0|r=4 c=31|r=4 c=32|r=4 c=33|r=2 c=4099|r=1 "
     "c=8192"},
    {{"loss", "cross_entropy",
      {OUT("loss", "r", 'A'), PERHAPS_OUT("lse", "r", 'A'), IN("x", "rc", 'T'),
       INDEX("label", "r", 'l', 'c')}, NULL, .tail = 2}, ALL,
     "r=3 c=65|r=5 c=1000 BLOCK:64||r=1 c=1|r=0 c=7|r=7 c=127|r=7 c=128|r=7 c=129|r=2 c=4097|r=2 "
     "c=10007"},
    {{"loss", "cross_entropy_backward",
      {OUT("dx", "rc", 'T'), IN("x", "rc", 'T'), INDEX("label", "r", 'l', 'c'),
       IN("lse", "r", 'A'), PERHAPS("g", "r", 'A')}, "x", .tail = 2}, ALL,
     "r=3 c=65|r=5 c=1000 BLOCK:64||r=1 c=1|r=0 c=7|r=7 c=127|r=7 c=128|r=7 c=129|r=2 c=4097"},
    {{"groupnorm", "groupnorm",
      {OUT("y", "NCL", 'T'), IN("x", "NCL", 'T'), PERHAPS("gamma", "C", 'T'),
       PERHAPS("beta", "C", 'T'), PERHAPS_OUT("mean", "Ng", 'A'), PERHAPS_OUT("rstd", "Ng", 'A')},
      NULL, .tail = 2}, ALL,
     "N=2 C=6 L=65 g=3 groups:3||N=1 C=4 L=1 g=2 groups:2|N=0 C=4 L=8 g=2 groups:2|N=3 C=4 L=64 "
     "g=4 groups:4 BL:16|N=2 C=5 L=1025 g=1 groups:1|N=2 C=2 L=31 g=1 groups:1"},
    {{"groupnorm", "batchnorm_stats",
      {OUT("mean", "C", 'A'), OUT("var", "C", 'A'), IN("x", "NCL", 'T'),
       BOTH("running_mean", "C", 'A'), BOTH("running_var", "C", 'A')}, NULL, .tail = 0}, ALL,
     "N=3 C=5 L=65||N=1 C=1 L=1|N=2 C=3 L=1025|N=4 C=2 L=64 BL:16|N=2 C=0 L=7|N=5 C=3 L=33"},
    {{"groupnorm", "batchnorm",
      {OUT("y", "NCL", 'T'), IN("x", "NCL", 'T'), IN("mean", "C", 'A'), IN("var", "C", 'A'),
       PERHAPS("gamma", "C", 'T'), PERHAPS("beta", "C", 'T')}, NULL, .tail = 2}, ALL,
     "N=3 C=5 L=65||N=1 C=1 L=1|N=2 C=3 L=1025|N=4 C=2 L=64 BL:16|N=2 C=0 L=7|N=5 C=3 L=33"},
    {{"norm_backward", "norm_backward",
      {OUT("dx", "rc", 'T'), PERHAPS_OUT("pgamma", "pc", 'A'), PERHAPS_OUT("pbeta", "pc", 'A'),
       IN("dy", "rc", 'T'), IN("x", "rc", 'T'), PERHAPS("gamma", "c", 'T'),
       PERHAPS("mean", "r", 'A'), IN("rstd", "r", 'A')}, NULL, .tail = 0}, ALL,
     "r=9 c=65 p=4 parts:4||r=1 c=1 p=1 parts:1|r=13 c=301 p=3 parts:3|r=3 c=1000 p=8 parts:8|r=16 "
     "c=64 p=16 parts:16|r=5 c=1025 p=2 parts:2|r=0 c=5 p=2 parts:2"},
    {{"norm_backward", "norm_backward_join", {OUT("s", "c", 'T'), IN("partial", "pc", 'A')}, NULL,
      .tail = 0}, FLOAT,
     "p=4 c=65||p=1 c=1|p=7 c=63|p=8 c=64|p=9 c=130|p=128 c=33|p=3 c=0"},
    {{"pool", "pool", {OUT("y", "NChw", 'T'), IN("x", "NCHW", 'T')}, NULL, .tail = 0}, ALL,
     "N=2 C=3 H=9 W=11 h=4 w=5||N=1 C=1 H=2 W=2 h=1 w=1|N=1 C=2 H=8 W=130 h=4 w=65 BW:64|N=2 C=2 "
     "H=7 W=9 h=4 w=5 PH:1 PW:1 KH:3 SH:2 SW:2 MEAN:1|N=1 C=3 H=6 W=7 h=6 w=7 KH:3 SH:1 SW:1 PH:1 "
     "PW:1 MEAN:1 INCLUDE:0|N=1 C=1 H=5 W=300 h=2 w=150"},
    {{"pool", "mean_all", {OUT("y", "NC", 'T'), IN("x", "NCL", 'T')}, NULL, .tail = 0}, ALL,
     "N=2 C=3 L=65||N=1 C=1 L=1|N=2 C=2 L=4097|N=3 C=5 L=64|N=2 C=2 L=1000 BLOCK:64|N=0 C=2 L=3"},
    {{"rope", "rope",
      {OUT("y", "thD", 'T'), IN("x", "thD", 'T'), IN("cosine", "pk", 'A'), IN("sine", "pk", 'A'),
       PERHAPS_INDEX("place", "t", 'l', 'p')}, "x", .tail = 0}, ALL,
     "t=5 h=3 D=20 p=7 k=9||t=1 h=1 D=2 p=1 k=1|t=7 h=2 D=64 p=9 k=32 NEAR:1|t=3 h=2 D=65 p=8 k=31 "
     "BACK:1|t=4 h=1 D=128 p=4 k=64|t=0 h=2 D=8 p=3 k=4"},
    {{"gemm", "gemm",
      {OUT("c", "ZMN", 'T'), IN("a", "ZMK", 'T'), IN("b", "ZKN", 'T'), PERHAPS("bias", "N", 'T'),
       PERHAPS("residual", "ZMN", 'T')}, NULL, .tail = 0}, ALL,
     "Z=2 M=17 N=33 K=9 BM:16 BN:16 BK:8||Z=1 M=1 N=1 K=1|Z=3 M=5 N=7 K=0 BM:16 BN:16 BK:8|Z=0 M=4 "
     "N=4 K=4|Z=2 M=65 N=31 K=64 BM:32 BN:32 BK:16|Z=1 M=64 N=64 K=32 ACT:1|Z=1 M=40 N=70 K=33 "
     "BM:32 BN:64 BK:16 ACT:4"},
    {{"gemm", "gemm_split",
      {OUT("partial", "pMN", 'A'), IN("a", "MK", 'T'), IN("b", "KN", 'T')}, NULL, .tail = 0}, ALL,
     "M=17 N=33 K=40 p=3 parts:3 BM:16 BN:16 BK:8||M=5 N=7 K=3 p=4 parts:4 BM:16 BN:16 BK:8|M=64 "
     "N=33 K=65 p=2 parts:2|M=1 N=1 K=1 p=1 parts:1"},
    {{"gemm", "gemm_join",
      {OUT("c", "MN", 'T'), IN("partial", "pMN", 'A'), PERHAPS("bias", "N", 'T')}, NULL, .tail = 0},
     FLOAT,
     "M=5 N=65 p=3||M=1 N=1 p=1|M=3 N=129 p=8 ACT:1|M=2 N=128 p=5 ACT:4|M=0 N=5 p=2"},
    {{"gemm", "gemm_grouped",
      {OUT("c", "MN", 'T'), IN("a", "MK", 'T'), IN("b", "EKN", 'T'),
       INDEX("first", "F", '<', 'M')}, NULL, .tail = 0}, ALL,
     "M=37 N=33 K=20 E=3 F=4 BM:16 BN:16 BK:8||M=1 N=1 K=1 E=1 F=2|M=64 N=65 K=33 E=5 F=6|M=2 N=7 "
     "K=9 E=4 F=5 BM:16 BN:16 BK:8"},
    {{"moe", "moe_gemm",
      {OUT("y", "MN", 'T'), IN("a", "rK", 'T'), IN("b", "EKN", 'T'), INDEX("first", "F", '<', 'M'),
       INDEX("order", "M", 'w', 'M')}, NULL, .tail = 0}, ALL,
     "M=38 r=19 N=33 K=20 E=3 F=4 K:2 BM:16 BN:16 BK:8||M=1 r=1 N=1 K=1 E=1 F=2|M=64 r=64 N=65 K=33 "
     "E=5 F=6 ACT:4|M=0 r=0 N=3 K=5 E=2 F=3"},
    {{"sort", "sort_tiles",
      {OUT("y", "rc", 'T'), PERHAPS_OUT("place", "rc", 'w'), IN("x", "rc", 'T')}, NULL, .tail = 0},
     ALL,
     "r=3 c=65||r=1 c=1|r=2 c=130 TILE:64|r=0 c=5|r=5 c=0|r=9 c=7 DOWN:1|r=1 c=1025"},
    {{"sort", "topk_tiles",
      {OUT("v", "rk", 'T'), OUT("place", "rk", 'w'), IN("x", "rc", 'T')}, NULL, .tail = 0}, ALL,
     "r=3 c=65 k=3 K:3||r=1 c=1 k=1 K:1|r=2 c=130 k=6 TILE:64 K:2|r=7 c=5 k=5 K:5|r=1 c=1000 k=4"},
    {{"running", "run_along", {OUT("y", "ONI", 'A'), IN("x", "ONI", 'T')}, NULL, .tail = 0}, ALL,
     "O=2 N=65 I=1||O=1 N=1 I=1|O=3 N=33 I=17 OP:2|O=2 N=0 I=3|O=0 N=5 I=2|O=1 N=64 I=5 OP:1|O=2 "
     "N=1025 I=1 OP:3"},
    {{"running", "run_totals", {OUT("total", "OPI", 'A'), IN("x", "ONI", 'T')}, NULL, .tail = 0},
     ALL, "O=2 N=65 P=5 I=3 BN:16||O=1 N=4097 P=3 I=1|O=2 N=64 P=1 I=17 OP:2|O=1 N=0 P=0 I=2"},
    {{"running", "run_before", {OUT("upto", "OPI", 'A'), IN("total", "OPI", 'A')}, NULL, .tail = 0},
     FLOAT, "O=2 P=5 I=3 BP:2||O=1 P=1 I=1|O=1 P=2049 I=1|O=3 P=9 I=17 OP:3|O=0 P=3 I=1"},
    {{"gemm", "gemm_w4",
      {OUT("c", "MN", 'T'), IN("a", "MK", 'T'), IN("w", "Nk", 'u'), IN("scale", "Ns", 'T'),
       PERHAPS("bias", "N", 'T')}, NULL, .tail = 0}, HALF,
     "M=5 N=33 K=64 k=32 s=2||M=1 N=1 K=32 k=16 s=1|M=33 N=65 K=96 k=48 s=3|M=32 N=32 K=16 k=8 s=1 "
     "GROUP:16"},
    {{"attention", "attention",
      {OUT("o", "BHLD", 'T'), PERHAPS_OUT("lse", "BHL", 'A'), IN("q", "BHLD", 'T'),
       IN("k", "BGSD", 'T'), IN("v", "BGSD", 'T'), PERHAPS("slopes", "H", 'A')}, NULL, .tail = 2},
     ALL,
     "B=1 H=2 G=1 L=17 S=33 D=20 BM:16 BN:16||B=2 H=4 G=2 L=37 S=53 D=16 BM:16 BN:16 CAUSAL:1|B=1 "
     "H=1 G=1 L=1 S=1 D=1|B=1 H=2 G=2 L=64 S=65 D=64|B=1 H=2 G=1 L=9 S=5 D=4 CAUSAL:1 BM:16 BN:16|"
     "B=1 H=1 G=1 L=31 S=0 D=8 BM:16 BN:16|B=1 H=2 G=2 L=33 S=40 D=32 window:7 CAUSAL:1 BM:16 "
     "BN:16"},
    {{"decode", "decode_split",
      {OUT("acc", "BpHD", 'A'), OUT("top", "BpH", 'A'), OUT("sum_", "BpH", 'A'),
       IN("q", "BHD", 'T'), IN("k", "BSGD", 'T'), IN("v", "BSGD", 'T'),
       INDEX("len", "B", 'w', 'S')}, NULL, .tail = 2}, ALL,
     "B=2 H=4 G=2 S=37 D=20 p=3 parts:3 BN:16||B=1 H=1 G=1 S=1 D=1 p=1 parts:1|B=3 H=6 G=2 S=65 "
     "D=32 p=2 parts:2|B=2 H=2 G=2 S=130 D=64 p=4 parts:4 BN:32"},
    {{"decode", "decode_paged",
      {OUT("acc", "BpHD", 'A'), OUT("top", "BpH", 'A'), OUT("sum_", "BpH", 'A'),
       IN("q", "BHD", 'T'), IN("k", "PgGD", 'T'), IN("v", "PgGD", 'T'),
       INDEX("table", "Bm", 'w', 'P'), INDEX("len", "B", 'w', 'S')}, NULL, .tail = 2}, ALL,
     "B=2 H=4 G=2 P=7 g=4 m=5 S=20 D=20 p=2 parts:2 PAGE:4||B=1 H=2 G=1 P=3 g=16 m=2 S=32 D=16 p=1 "
     "parts:1|B=3 H=6 G=2 P=9 g=8 m=4 S=31 D=32 p=3 parts:3 PAGE:8"},
    {{"decode", "decode_merge",
      {OUT("o", "BHD", 'T'), IN("acc", "BpHD", 'A'), IN("top", "BpH", 'A'),
       IN("sum_", "BpH", 'A')}, NULL, .tail = 2}, FLOAT,
     "B=2 H=3 D=20 p=3||B=1 H=1 D=1 p=1|B=2 H=4 D=64 p=8|B=3 H=2 D=65 p=5"},
    {{"conv", "conv2d",
      {OUT("y", "NOhw", 'T'), IN("x", "NCHW", 'T'), IN("w", "OcIJ", 'T'),
       PERHAPS("bias", "O", 'T')}, NULL, .tail = 0}, ALL,
     "N=2 C=5 H=9 W=11 O=7 I=3 J=3 c=5 h=9 w=11 PH:1 PW:1 BO:4 BC:4 BW:8||N=1 C=1 H=1 W=1 O=1 I=1 "
     "J=1 c=1 h=1 w=1|N=1 C=6 H=13 W=14 O=9 I=3 J=2 c=2 h=7 w=5 groups:3 PH:2 PW:1 DH:2 DW:3 SH:2 "
     "SW:3 BO:4 BC:4|N=1 C=17 H=5 W=33 O=33 I=3 J=3 c=17 h=3 w=31 ACT:1"},
    {{"conv", "conv1d",
      {OUT("y", "NOl", 'T'), IN("x", "NCL", 'T'), IN("w", "OcK", 'T'), PERHAPS("bias", "O", 'T')},
      NULL, .tail = 0}, ALL,
     "N=2 C=5 L=33 O=7 K=3 c=5 l=33 P:1 BO:4 BC:4 BL:8||N=1 C=1 L=1 O=1 K=1 c=1 l=1|N=1 C=4 L=70 "
     "O=8 K=4 c=1 l=70 groups:4 P:3 D:2 BO:4 BC:4|N=2 C=17 L=65 O=33 K=5 c=17 l=31 S:2 ACT:1"},
    {{"gdn", "gdn_recurrent",
      {OUT("o", "tUV", 'T'), IN("q", "tHK", 'T'), IN("k", "tHK", 'T'), IN("v", "tUV", 'T'),
       IN("g", "tU", 'A'), IN("beta", "tU", 'A'), PERHAPS("h0", "NUKV", 'A'),
       PERHAPS_OUT("ht", "NUKV", 'A')}, NULL, .tail = 0}, ALL,
     "t=9 H=1 U=2 K=12 V=20 N=1||t=1 H=1 U=1 K=1 V=1 N=1|t=17 H=2 U=4 K=16 V=33 N=1 NORM:1|t=8 H=1 "
     "U=1 K=32 V=64 N=2"},
    {{"gdn", "gdn_chunk",
      {OUT("o", "tUV", 'T'), IN("q", "tHK", 'T'), IN("k", "tHK", 'T'), IN("v", "tUV", 'T'),
       IN("g", "tU", 'A'), IN("beta", "tU", 'A'), PERHAPS("h0", "NUKV", 'A'),
       PERHAPS_OUT("ht", "NUKV", 'A')}, NULL, .tail = 0}, ALL,
     "t=9 H=1 U=2 K=12 V=20 N=1 C:16||t=1 H=1 U=1 K=1 V=1 N=1 C:16|t=33 H=2 U=4 K=16 V=33 N=1 "
     "NORM:1 C:16|t=70 H=1 U=1 K=32 V=64 N=2 C:32"},
};
enum { NMORE = sizeof more / sizeof *more };

/* Names of arguments outlive the walk. */
static const char *intern(const char *s, size_t n)
{
    static char names[64][16];
    unsigned i = 0;
    while (names[i][0] && (strlen(names[i]) != n || memcmp(names[i], s, n) != 0))
        i++;
    memcpy(names[i], s, n);
    return names[i];
}

static void read_shape(struct kase *c, const char *s, const char *end)
{
    unsigned given = 0;
    while (s < end) {
        const char *stop = s + strcspn(s, "=:");
        int64_t v = strtoll(stop + 1, NULL, 10);
        if (*stop == '=') {
            c->size[(unsigned char)*s] = v;
        } else {
            c->given[given].name = intern(s, (size_t)(stop - s));
            c->given[given++].v = v;
        }
        s = stop + strcspn(stop, " |");
        s += *s == ' ';
    }
}

void sweep_more(struct walk *w)
{
    static const kiln_dtype type[] = {KILN_F32, KILN_BF16, KILN_F16, KILN_F64};
    static const int kind[] = {FLOAT, HALF, HALF, FLOAT};
    for (int k = 0; k < NMORE; k++)
        for (int t = 0; t < (w->full ? 4 : 2); t++) {
            const char *s = more[k].shapes;
            if (!(more[k].types & kind[t]))
                continue;
            for (unsigned i = 0; *s; i++) {
                size_t n = strcspn(s, "|");
                struct kase c = {.k = &more[k].k, .t = type[t]};
                read_shape(&c, s, s + n);
                c.skip = i % 3 == 1 ? 1 : i % 3 == 2 ? ~0u : 0; /* the first, or all that may be */
                sweep_lying(w, &c);
                s += n;
                if (s[0] == '|' && s[1] == '|' && !w->full)
                    break;
                s += strspn(s, "|");
            }
            w->group++;
        }
}
