/* json.h - what commands that print JSON share: values of Jansson with one policy for what JSON
 * cannot say (no UTF-8, no finite number), and a writer for what is too long to be a tree. */
#ifndef KL_CLI_JSON_H
#define KL_CLI_JSON_H

#include <jansson.h>

#include "cli/cli.h"

/* NULL becomes null; what is not UTF-8 becomes `?`, byte by byte, so that columns stay right. */
json_t *kl_json_text(const char *s);
json_t *kl_json_some(const char *s); /* as kl_json_text; "" becomes null, too */
json_t *kl_json_number(double v);    /* NaN and infinities become null */
json_t *kl_json_above(double v);     /* as kl_json_number; null if it is not above 0: not known */
json_t *kl_json_count(uint64_t v);
/* Takes v; no key is left out: NULL (no memory, no value) becomes null. */
void kl_json_set(json_t *o, const char *key, json_t *v);
/* The text of a file, indented, reals with so many digits (0: as few as read back the same); the
 * caller frees it.  Takes root.  NULL: root is NULL, or no memory. */
char *kl_json_dump(json_t *root, int digits);
json_t *kl_json_place(const kiln_place *p);
json_t *kl_json_diag(const kiln_diag *d);

/* ---- the writer (jsonwrite.c) ---- */

/* Starts as zeros.  Commas come by themselves. */
struct kl_jsonwrite {
    char *s;
    size_t n, cap;
    bool comma, line;
};

void kl_jsonwrite_open(struct kl_jsonwrite *w, char bracket);
void kl_jsonwrite_close(struct kl_jsonwrite *w, char bracket);
/* What follows, a value or a bracket, begins a line. */
void kl_jsonwrite_line(struct kl_jsonwrite *w);
void kl_jsonwrite_key(struct kl_jsonwrite *w, const char *key);
/* What is no UTF-8 (file names may hold anything) becomes U+FFFD. */
void kl_jsonwrite_string(struct kl_jsonwrite *w, const char *s);
void kl_jsonwrite_strings(struct kl_jsonwrite *w, const char *a, const char *b, const char *c);
void kl_jsonwrite_count(struct kl_jsonwrite *w, uint64_t v);
/* v / 1000 with all three decimals. */
void kl_jsonwrite_thousandths(struct kl_jsonwrite *w, uint64_t v);
/* So many digits; 0: as few as give the same number when read.  NaN and infinities are null. */
void kl_jsonwrite_real(struct kl_jsonwrite *w, double v, int digits);
/* The end of it, with a newline; the caller frees the text. */
char *kl_jsonwrite_text(struct kl_jsonwrite *w, size_t *n);

#endif
