/* diag.h - source positions and diagnostics.
 *
 * A source map holds the files of one compile in one space of 32-bit offsets,
 * so that a span names file and place.  Offset 0 is "nowhere".  A diagnostic
 * resolves its places when it is made: the list outlives the sources. */
#ifndef KL_DIAG_H
#define KL_DIAG_H

#include "base/mem.h"

typedef struct kl_span {
    uint32_t beg, end; /* end is past the last byte; {0, 0}: none */
} kl_span;

struct kl_file {
    const char *name, *text;
    uint32_t len, base; /* offset of text[0] in the map */
    bool lib;           /* embedded in the library: its names may be shadowed */
};

typedef struct kl_srcmap {
    kl_arena *a;
    KL_VEC(struct kl_file) files;
} kl_srcmap;

/* Adds a file and returns its index.  name and text must outlive the map. */
uint32_t kl_src_add(kl_srcmap *m, const char *name, const char *text, uint32_t len, bool lib);
const struct kl_file *kl_src_file(const kl_srcmap *m, uint32_t off); /* NULL: nowhere */
/* Line and column of a span; the line's text is copied into a. */
kiln_place kl_src_place(const kl_srcmap *m, kl_arena *a, kl_span s);

static inline kl_span kl_span_join(kl_span a, kl_span b)
{
    if (!a.beg || !b.beg)
        return a.beg ? a : b;
    return (kl_span){a.beg < b.beg ? a.beg : b.beg, a.end > b.end ? a.end : b.end};
}

/* ---- diagnostics ---- */

enum kl_code {
    KL_DIAG_none = 0,
#define DIAG(code, sev, title, page) KL_##code,
#include "base/diag.def"
    KL_NDIAG
};

struct kl_diaginfo {
    const char *code, *title, *page;
    uint8_t sev;
};
extern const struct kl_diaginfo kl_diaginfos[KL_NDIAG];

struct kl_diag {
    kiln_diag pub; /* what the API shows; notes point into note.v */
    kl_arena *a;
    const kl_srcmap *src;
    KL_VEC(kiln_diag_note) note;
};

enum { KL_MAX_ERRORS = 20 };

/* The list that an API call hands back.  It owns its arena and its env. */
struct kiln_diags {
    kl_env env;
    kl_alloc al;
    kl_arena a;
    const kl_srcmap *src; /* where spans of new diagnostics lie; NULL between compiles */
    KL_VEC(struct kl_diag *) list;
    uint32_t nerr, nwarn;
    struct kl_diag *sink; /* takes notes of diagnostics past the limit */
};
typedef struct kiln_diags kl_diags;

/* NULL if there is no memory. */
kl_diags *kl_diags_new(const kl_alloc *al);
/* Add one; severity comes from the table.  Never NULL: past KL_MAX_ERRORS errors the
 * result is a sink that is not listed.  Raises through d->env, which is set to the
 * env of the running API call by kl_diags_use. */
struct kl_diag *kl_diag(kl_diags *d, enum kl_code code, kl_span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
struct kl_diag *kl_note(struct kl_diag *d, kl_span span, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Propose to replace span (empty: insert there) by text. */
struct kl_diag *kl_fix(struct kl_diag *d, kl_span span, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Route failures of allocation in the list to env's guard for this call. */
void kl_diags_use(kl_diags *d, kl_env *env, const kl_srcmap *src);

void kl_diags_render(kl_buf *b, const kl_diags *d, bool color);
void kl_diag_render(kl_buf *b, const kiln_diag *d, bool color);

/* The nearest of n names to `name` for "did you mean"; NULL if none is near. */
const char *kl_nearest(const char *name, const char *const *names, uint32_t n);

#endif
