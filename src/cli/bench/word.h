/* word.h - the words of `kiln bench`: lists of values, sweeps, expressions in braces. */
#ifndef KL_BENCHWORD_H
#define KL_BENCHWORD_H

#include "cli/cli.h"

/* A name's number for an expression; false: unknown. */
typedef bool kl_lookup(void *user, const char *name, size_t n, double *out);
/* Numbers, names, + - * / and parentheses, with the usual order.  All of n bytes. */
bool kl_number_expr(const char *s, size_t n, kl_lookup *look, void *user, double *out,
                    struct kl_msg *m);

/* Several values of one word: "128,256", "1024:65536:*2", "256:1024:+256". */
struct kl_list {
    char **v;
    size_t n;
};
bool kl_list_parse(const char *s, struct kl_list *out, struct kl_msg *m);
/* Words between commas, which are no numbers: "cold,warm".  false: one is empty. */
bool kl_words_parse(const char *s, struct kl_list *out);
void kl_list_free(struct kl_list *l);

/* --sweep NAME=LIST, or NAME,NAME=AxB,CxD: names that change together. */
struct kl_sweep {
    char **name;
    size_t nname;
    char **value; /* n values of each name: value[i * nname + k] */
    size_t n;
};
bool kl_sweep_parse(const char *s, struct kl_sweep *out, struct kl_msg *m);
void kl_sweep_free(struct kl_sweep *s);

/* What the names of all sweeps are at one point. */
struct kl_point {
    const char **name, **value;
    size_t n;
};
/* How many points there are, and point i; the first sweep changes slowest.  The arrays of *out
 * are allocated. */
size_t kl_points(const struct kl_sweep *s, size_t n);
void kl_point_at(const struct kl_sweep *s, size_t n, size_t i, struct kl_point *out);
void kl_point_free(struct kl_point *p);

/* A word with {EXPRESSION} replaced by its value, for expressions that use names of the point;
 * {T} with a type stands for it.  Other braces ({1, 2}) stay.  Allocated; NULL and a message. */
char *kl_point_expand(const struct kl_point *p, const char *word, struct kl_msg *m);

/* "4096x4096", "4096x4096:f16": true, and the word for random values of that shape.  type: of the
 * parameter, as far as known; seed: an own one for each array. */
bool kl_random_word(const char *word, kiln_dtype type, unsigned seed, char **out);

#endif
