/* peer.h - implementations of others beside a kernel: shared libraries and programs. */
#ifndef KL_PEER_H
#define KL_PEER_H

#include "cli/bench.h"
#include "kiln_peer.h"

enum { KL_PEER_IMPLS = 8 };

/* How long a program may take for an answer: it may compile, and does as much as a row of --timeout
 * seconds. */
#define KL_PEER_ANSWER(timeout_s) ((timeout_s) > 3 ? 10 * (timeout_s) : 30.0)

/* A program that speaks the protocol kiln.peer/1 on its standard input and output. */
struct kl_proc {
    long pid;
    int to, from;
    char *buf;
    size_t have, room;
    char *dir; /* for the arrays of the case */
    int files; /* in it */
    double answer_s; /* how long it may take for an answer */
    bool gone;       /* it has ended, or will not answer any more */
};

struct kl_peer {
    char *path;
    char *name, *version;
    void *lib; /* a shared library, or NULL: a program */
    kiln_peer_get_fn get;
    struct kl_proc proc;
    double answer_s;
    char *broken; /* why it is not asked any more */
};
/* By the first bytes of the file.  device, threads and cold_bytes are what a program is told. */
bool kl_peer_open(struct kl_peer *p, const char *path, struct kl_msg *m);
/* A program says who it is; nothing for a library. */
bool kl_peer_hello(struct kl_peer *p, const struct kl_bdev *d, struct kl_msg *m);
void kl_peer_close(struct kl_peer *p);

/* One implementation of a peer for one case. */
struct kl_peerrun {
    struct kl_peer *peer;
    size_t impl;
    char *name; /* "torch eager" */
    /* of a library: one state a copy of the arrays */
    const kiln_peer *fn;
    struct kl_bset sets;
    void **state;
};
/* What the peer does of this case: as many as *n (at most KL_PEER_IMPLS).  0 and why: nothing. */
size_t kl_peer_case(struct kl_peer *p, struct kl_bdev *d, const struct kl_args *args,
                    const char *file, size_t copies, struct kl_peerrun out[KL_PEER_IMPLS],
                    struct kl_msg *why);
/* Compute once and compare with the arrays of args. */
bool kl_peer_check(struct kl_peerrun *r, const struct kl_args *args, double *error,
                   struct kl_msg *m);
bool kl_peer_launch(struct kl_peerrun *r, size_t copy, double *host_s, struct kl_msg *m);
/* n times by a program's own clock. */
bool kl_peer_time(struct kl_peerrun *r, bool warm, size_t n, double *ms, struct kl_msg *m);
void kl_peer_drop(struct kl_peerrun *r);
/* What a peer may differ from a kernel in: the order of sums, and a last bit or two. */
struct kl_tol kl_peer_tol(enum kl_elem e);

/* ---- programs (peerproc.c) ---- */

bool kl_proc_start(struct kl_proc *p, const char *path, uint32_t threads, struct kl_msg *m);
/* A line to it and the answer, parsed by jansson (to be released); NULL and a message. */
void *kl_proc_ask(struct kl_proc *p, void *question, struct kl_msg *m);
void kl_proc_clear(struct kl_proc *p); /* remove the arrays of the last case */
void kl_proc_end(struct kl_proc *p);
bool kl_proc_write_array(struct kl_proc *p, const struct kl_arr *a, char **path, struct kl_msg *m);

#endif
