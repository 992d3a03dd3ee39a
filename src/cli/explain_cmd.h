/* explain_cmd.h - between the files of `kiln explain`. */
#ifndef KL_EXPLAIN_CMD_H
#define KL_EXPLAIN_CMD_H

#include <jansson.h>

#include "cli/cli.h"
#include "explain.h"

/* One kernel: what is known and the notes about it, which the page shows last. */
struct kl_page {
    const kl_explained *e;
    kiln_diags *notes;
    const char *path, *text; /* the source file */
    bool markdown, color;
    FILE *f;
};
void kl_page_print(struct kl_page *p);

json_t *kl_explain_json(const kl_explained *e, const kiln_diags *notes);

/* The name of a narrow access's cause, and of an access's direction. */
const char *kl_narrow_text(unsigned narrow);

#endif
