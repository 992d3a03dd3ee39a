/* setup.h - private to src/lang: the parameters of a kernel as symbols. */
#ifndef KL_SETUP_H
#define KL_SETUP_H

#include "lang/elab.h"

enum kl_pk { KL_PK_TYPE, KL_PK_CONST, KL_PK_SCALAR, KL_PK_ARRAY, KL_PK_BAD };
enum kl_pk kl_param_kind(const kl_node *p);

/* Parts of a PARAM node; NULL where there is none.  Only an array has extents. */
static inline const kl_node *kl_param_dims(const kl_node *p) { return p->kid[1]; }
static inline const kl_node *kl_param_strides(const kl_node *p) { return p->kid[2]; }
static inline const kl_node *kl_param_default(const kl_node *p) { return p->nkid > 3 ? p->kid[3] : NULL; }

#endif
