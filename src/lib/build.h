/* build.h - private to kiln build: texts that every generated file contains (build_text.c). */
#ifndef KL_BUILD_H
#define KL_BUILD_H

#include "lib/lib.h"

/* Pieces, NULL at the end. */
extern const char *const kl_build_header[], *const kl_build_launch[];
/* src/base/place.h, made by tools/ctext.awk */
extern const char *const kl_place_text[];

/* A text of a call for its caller, freed by kl_tool_free (tool.c). */
kiln_status kl_tool_hand_over(kiln_context *ctx, kl_buf *b, char **text);

#endif
