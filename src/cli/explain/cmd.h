/* cmd.h - between the files of `kiln explain`. */
#ifndef KL_EXPLAIN_CMD_H
#define KL_EXPLAIN_CMD_H

#include <jansson.h>

#include "cli/args.h"
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

/* The same for another command (`kiln report`): o->arg[0] is FILE[:KERNEL], the rest its values, and
 * each kernel that is explained is handed to each.  0, or an exit code with its message printed. */
typedef int kl_explain_each(void *user, struct kl_session *s, const struct kl_args *args,
                            kl_explained *e, const kiln_diags *notes);
int kl_explain_source(const struct kl_opts *o, kl_explain_each *each, void *user);

/* The name of a narrow access's cause, and of an access's direction. */
const char *kl_narrow_text(unsigned narrow);

#endif
