/* debug.h - assert and print: what lowering and the library agree on.
 *
 * A kernel that uses them has one parameter more than its source: an array of i64, written with
 * ordinary atomics and stores, so that every back end has it without knowing.  It begins with
 * KL_DEBUG_HEAD words; records of print follow. */
#ifndef KL_DEBUG_H
#define KL_DEBUG_H

#include "lang/lang.h"

enum { /* words of the head */
    KL_DEBUG_FAILED,  /* how many programs failed an assertion; the first one fills in the rest */
    KL_DEBUG_WHERE,   /* begin and end of the call in the source, 32 bits each */
    KL_DEBUG_PROGRAM, /* three */
    KL_DEBUG_ELEMENT = KL_DEBUG_PROGRAM + 3, /* the first that failed, in row-major order; -1 */
    KL_DEBUG_SHAPE,   /* two: four sizes of 32 bits, 0 behind the last */
    KL_DEBUG_USED = KL_DEBUG_SHAPE + 2, /* words behind the head that prints asked for */
    KL_DEBUG_PRINTS,  /* how many prints there were */
    KL_DEBUG_HEAD = 16
};
enum { KL_DEBUG_ASSERT = 1, KL_DEBUG_PRINT = 2 };
enum { /* words of a record of print, before its values */
    KL_PRINT_WHERE, KL_PRINT_SIZE, KL_PRINT_PROGRAM, KL_PRINT_HEAD = KL_PRINT_PROGRAM + 3
};
enum { KL_DEBUG_BUFFER = 1 << 16, KL_PRINT_MOST = 256 }; /* words of records; elements of a tile */

/* What a kernel uses (KL_DEBUG_...), after kl_check. */
unsigned kl_debug_uses(const kl_node *kernel);
/* Words of its array; 0: it has none.  The parameter is the last one. */
uint32_t kl_debug_words(const kl_node *kernel);
/* The call of assert or print at a place of the source; NULL: none. */
const kl_node *kl_debug_call(const kl_module_ast *m, uint64_t where);

#endif
