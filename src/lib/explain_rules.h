/* explain_rules.h - between the files of src/lib that explain a launch. */
#ifndef KL_EXPLAIN_RULES_H
#define KL_EXPLAIN_RULES_H

#include "explain.h"

/* Rules K23xx and K24xx as notes; at: the kernel's name. */
void kl_explain_rules(const kl_explained *e, kl_span at, kl_diags *d);

/* Bytes that the loads of one program ask for, each once. */
uint64_t kl_explain_under_way(const kl_fn *f);

#endif
