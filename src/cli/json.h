/* json.h - what commands that print JSON share. */
#ifndef KL_CLI_JSON_H
#define KL_CLI_JSON_H

#include <jansson.h>

#include "cli/cli.h"

/* NULL becomes null; what is not UTF-8 becomes `?`, byte by byte, so that columns stay right. */
json_t *kl_json_text(const char *s);
json_t *kl_json_place(const kiln_place *p);
json_t *kl_json_diag(const kiln_diag *d);

#endif
