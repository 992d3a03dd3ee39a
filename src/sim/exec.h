/* exec.h - the execution functions of ptx.def, and what the parser asks of its rows. */
#ifndef KL_SIM_EXEC_H
#define KL_SIM_EXEC_H

#include "sim/module.h"

#define P1(...)
#define P2(...)
#define P3(...)
#define PX(id, opt, kind, sig, fn) sim_exec kl_sim_##fn;
#include "sim/ptx.def"
sim_exec kl_sim_x_mov_pred, kl_sim_x_pack, kl_sim_x_unpack, kl_sim_x_clock;
sim_exec kl_sim_x_adjusted; /* .ftz, .sat and rounding around a plain operation */

/* What follows from the row's own words: space, operation, wrapping. */
void kl_sim_finish_form(struct sim_ins *i, const struct sim_row *row);
/* NULL, or why the executor does not take this combination of words and operands. */
const char *kl_sim_check_form(const struct sim_ins *i, const struct sim_opnd *o);

/* A faster function for a frequent conversion between registers of just its types. */
sim_exec *kl_sim_fast_cvt(const struct sim_ins *i, const struct sim_opnd *o);

/* Operations of atom, red and redux, in mode. */
enum { ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_EXCH, ATOM_INC, ATOM_DEC,
       ATOM_CAS, ATOM_N };

#define EXEC(name)                                                                                 \
    void kl_sim_x_##name(struct sim_warp *w, const struct sim_ins *i, uint32_t mask)

#endif
