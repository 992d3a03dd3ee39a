/* fakecuda.h - what tests may ask the fake driver for.  Found with dlsym. */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include <stddef.h>

/* The nth call of the entry point `symbol` ("*": of any) from now on returns code. */
void fakecuda_fail(const char *symbol, long nth, int code);
long fakecuda_calls(const char *symbol); /* so far; NULL: all */
/* Allocations, modules, streams, events, graphs, captures and retained contexts that nobody has
 * given back. */
long fakecuda_live(void);
/* Another machine; forgets queued work and an error that a kernel left. */
void fakecuda_set(int devices, int driver, int cc, size_t memory);
void fakecuda_forget(void);    /* what nobody has given back */
void fakecuda_norun(int on);   /* launches do nothing */
long fakecuda_launches(void);  /* that were run */
void fakecuda_capture(void *stream, int on); /* as other code does, in the strictest mode */
int fakecuda_depth(void);      /* contexts pushed by the calling thread */

#endif
