/* access.h - private to src/gen/ptx: an access to an array by the threads of a block. */
#ifndef KL_PX_ACCESS_H
#define KL_PX_ACCESS_H

#include "gen/ptx/ptx.h"

struct axis {
    uint32_t n, dim; /* size; the array's dimension */
    int64_t step;
    bool check;      /* some element may lie outside */
    bool index;      /* an index tile stands here */
    bool dead;       /* the size is no power of two: places beyond it are dead */
    opnd len;        /* step 1: b32, coordinate - lo below len is inside */
    opnd lo;         /* b32 or NULL for 0 */
    opnd ext, start; /* other steps: b64 */
    opnd bytes;      /* bytes from one element to the next, if not constant; b64, b32 under i32 */
    int64_t kbytes;  /* if bytes is NULL */
};

struct row_addr {
    uint32_t coord;
    opnd addr;
};

struct axis_in {
    uint32_t axis, coord;
    opnd p;
};

struct access {
    kl_val v;
    const struct pview *w;
    enum kl_elem e;
    uint32_t es, naxis, vec; /* vec: log2 of the elements of one move */
    const kl_layout *l;      /* NULL: one element */
    struct axis ax[KL_MAX_RANK];
    opnd ok;      /* the scalar subscripts are inside; NULL: always */
    opnd whole;   /* the whole section is inside; NULL: always */
    bool never_whole;
    opnd addr;    /* of the thread's register 0 */
    struct pindex *index; /* index tiles; NULL: none */
    KL_VEC(struct row_addr) rows;
    KL_VEC(struct axis_in) preds;
};

/* The access of v, whose tile lies as l; address: with that of register 0. */
struct access kl_px_access(struct pgen *g, kl_val v, const kl_layout *l, bool address);
/* Predicate: the element of a register is inside; NULL: always. */
opnd kl_px_inside_reg(struct pgen *g, struct access *a, uint32_t reg);
/* The address of a register's element: a register, and bytes behind it. */
opnd kl_px_place(struct pgen *g, struct access *a, uint32_t reg, int64_t *off);
opnd kl_px_and(struct pgen *g, opnd a, opnd b); /* of predicates; NULL stands for true */

#endif
