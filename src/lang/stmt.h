/* stmt.h - private to src/lang: what the files of statements share. */
#ifndef KL_STMT_H
#define KL_STMT_H

#include "lang/elab.h"

/* stmt.c */
const char *kl_assigned_name(const kl_node *n);          /* what a statement assigns, or NULL */
bool kl_assigns(const kl_node *n, const char *name);     /* somewhere inside */
/* A copy of the first n slots, until e->saved is set back. */
struct kl_varstate *kl_save_vars(kl_elab *e, uint32_t n);
typedef void kl_body_fn(kl_elab *e, const void *user);
/* if (cond) then(user); else other(user); with the slots of both joined */
void kl_branch(kl_elab *e, kl_value cond, kl_body_fn *then, kl_body_fn *other, const void *user);
kl_value kl_flag_is_clear(kl_elab *e, uint32_t var, kl_span s);
void kl_set_flag(kl_elab *e, uint32_t var);
/* A condition as a bool scalar; false: reported. */
bool kl_condition(kl_elab *e, const kl_node *n, const char *of, kl_value *out);

/* loop.c */
void kl_while_loop(kl_elab *e, const kl_node *cond, const kl_node *step, const kl_node *body,
                   const char *what, bool isdo, kl_span loc);
void kl_for(kl_elab *e, const kl_node *n);

/* table.c */
void kl_declare_table(kl_elab *e, const kl_node *v, const kl_node *type);

/* decl.c */
/* A constant of a declared type (`auto`: its own); false: reported. */
bool kl_const_value(kl_elab *e, const kl_node *init, const kl_node *type, const char *name, kl_value *out);
void kl_declare(kl_elab *e, const kl_node *n);
void kl_assign(kl_elab *e, const kl_node *n);

#endif
