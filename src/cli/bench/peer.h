/* peer.h - implementations of others beside a kernel.  Each peer is a process of its own that
 * answers lines: a program, or Kiln itself that has loaded a shared library (peerhost.c).  Whatever
 * it does, it cannot take the benchmark along. */
#ifndef KL_PEER_H
#define KL_PEER_H

#include "cli/bench/take.h"
#include "kiln_peer.h"

enum { KL_PEER_IMPLS = 8, KL_PEER_DEATHS = 3 };

/* How long it may take for an answer: it may compile, and does as much as a row of --timeout
 * seconds. */
#define KL_PEER_ANSWER(timeout_s) ((timeout_s) > 3 ? 10 * (timeout_s) : 30.0)

/* A process that speaks the protocol kiln.peer/1 on its standard input and output. */
struct kl_proc {
    long pid; /* 0: it does not run */
    int to, from;
    char *buf;
    size_t have, room;
    char *dir; /* for the arrays of the case */
    int files; /* in it */
    double answer_s; /* how long it may take for an answer */
    bool gone;       /* it has ended, or answers nothing that makes sense */
    bool stale;      /* it says that a new process shall be asked */
};

struct kl_peer {
    char *path;
    bool library;
    char *name, *version; /* NULL until it has said who it is */
    struct kl_proc proc;
    double answer_s;
    uint32_t threads;
    void *question; /* the present case, as JSON, for a process that is started again */
    int deaths;     /* how often it was started in vain or broke down */
    char *broken;   /* why it is not asked any more */
};
/* By the first bytes of the file.  Nothing is started yet. */
bool kl_peer_open(struct kl_peer *p, const char *path, struct kl_msg *m);
/* It is started and says who it is. */
bool kl_peer_hello(struct kl_peer *p, const struct kl_bdev *d, struct kl_msg *m);
void kl_peer_close(struct kl_peer *p);

/* One implementation of a peer for one case. */
struct kl_peerrun {
    struct kl_peer *peer;
    size_t impl;
    char *name;      /* "torch eager" */
    char *broken;    /* the process broke down over it: it is not asked again in this case */
    size_t copies;   /* it says that it runs over so many copies; 0: it has not said */
    bool flush;      /* it says that it flushes the cache instead */
};
/* What the peer does of this case: how many implementations, at most KL_PEER_IMPLS.  0 and why:
 * nothing.  other: a peer that was asked of the same case, whose files are taken; or NULL. */
size_t kl_peer_case(struct kl_peer *p, struct kl_bdev *d, const struct kl_args *args,
                    const char *file, const struct kl_peer *other,
                    struct kl_peerrun out[KL_PEER_IMPLS], struct kl_msg *why);
/* Compute once and compare with the arrays of args.  false with m->rc KL_RC_OK: it does not do the
 * case. */
bool kl_peer_check(struct kl_peerrun *r, const struct kl_args *args, double *error,
                   struct kl_msg *m);
/* n times by its own clock.  What launches took its host goes to host. */
bool kl_peer_time(struct kl_peerrun *r, bool warm, size_t n, double *ms, struct kl_taker *host,
                  struct kl_msg *m);
void kl_peer_drop(struct kl_peerrun *r);
/* What a peer may differ from a kernel in: the order of sums, and a last bit or two. */
struct kl_tol kl_peer_tol(enum kl_elem e);

/* ---- processes (peerproc.c) ---- */

/* argv[0] is started; its folder is made if there is none yet. */
bool kl_proc_start(struct kl_proc *p, const char *const *argv, uint32_t threads, struct kl_msg *m);
/* A line to it and the answer, parsed by jansson (to be released); NULL and a message. */
void *kl_proc_ask(struct kl_proc *p, void *question, struct kl_msg *m);
void kl_proc_stop(struct kl_proc *p);  /* the process; its folder stays */
void kl_proc_clear(struct kl_proc *p); /* remove the arrays of the last case */
void kl_proc_end(struct kl_proc *p);
/* Into the next file of the folder, whose path is to be freed.  same: a file with the same contents,
 * or NULL. */
bool kl_proc_write_array(struct kl_proc *p, const struct kl_arr *a, const char *same, char **path,
                         struct kl_msg *m);
/* A dense array as .npy. */
bool kl_array_save(const char *path, const struct kl_arr *a, struct kl_msg *m);
/* The arrays of a case lie in files 0.npy to 63.npy of its folder. */
enum { KL_PEER_FILES = 64 };

#endif
