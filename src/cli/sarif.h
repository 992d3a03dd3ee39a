/* sarif.h - diagnostics in the format that code scanners read (SARIF 2.1.0). */
#ifndef KL_CLI_SARIF_H
#define KL_CLI_SARIF_H

#include <jansson.h>

#include "cli/cli.h"

/* ran: the kernel was checked, whatever was found; rc: the exit status. */
json_t *kl_sarif(const kiln_diags *d, bool ran, int rc);

#endif
