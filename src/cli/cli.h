/* cli.h - what the commands of `kiln` share. */
#ifndef KL_CLI_H
#define KL_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/elem.h"
#include "kiln.h"

enum { /* exit codes: docs/man/kiln.1.scd */
    KL_RC_OK = 0, KL_RC_FINDINGS = 1, KL_RC_USAGE = 2, KL_RC_ENV = 3, KL_RC_INTERNAL = 4
};

/* ---- commands and options (main.c) ---- */

enum kl_optid {
#define OPT(id, letter, name, argument, commands, help) KL_OPT_##id,
#include "cli/cli.def"
    KL_NOPT
};

struct kl_opts;
struct kl_cmdinfo {
    const char *name, *args, *summary, *more;
    int (*run)(const struct kl_opts *o);
};
extern const struct kl_cmdinfo kl_cmds[];
extern const unsigned kl_ncmds;

struct kl_optinfo {
    const char *name, *arg, *help; /* arg NULL: a flag */
    unsigned cmds;
    char letter; /* or 0 */
};
extern const struct kl_optinfo kl_optinfos[KL_NOPT];
bool kl_opt_of(const struct kl_optinfo *p, const struct kl_cmdinfo *c); /* c has option p */

/* A command line after parsing: options in order, then positional arguments in order. */
struct kl_opts {
    const struct kl_cmdinfo *cmd;
    struct kl_optval {
        enum kl_optid id;
        const char *val;
        size_t at; /* how many positional arguments stand before it */
    } *opt;
    size_t nopt;
    const char **arg;
    size_t narg;
    int argc; /* as given, for the report of an internal error */
    char **argv;
    bool color, color_err; /* standard output, standard error */
};

const char *kl_opt(const struct kl_opts *o, enum kl_optid id); /* the last one; NULL: not given */
bool kl_opt_given(const struct kl_opts *o, enum kl_optid id);
void kl_help_cmd(const struct kl_cmdinfo *c, FILE *f);
void kl_help_top(FILE *f);
void kl_help_man(const struct kl_cmdinfo *c, FILE *f); /* a page; NULL: the list of commands */

int kl_cmd_run(const struct kl_opts *o);
int kl_cmd_trace(const struct kl_opts *o);
int kl_cmd_check(const struct kl_opts *o);
int kl_cmd_bench(const struct kl_opts *o);
int kl_cmd_tune(const struct kl_opts *o);
int kl_cmd_emit(const struct kl_opts *o);
int kl_cmd_explain(const struct kl_opts *o);
int kl_cmd_report(const struct kl_opts *o);
int kl_cmd_build(const struct kl_opts *o);
int kl_cmd_test(const struct kl_opts *o);
int kl_cmd_data(const struct kl_opts *o);
int kl_cmd_fmt(const struct kl_opts *o);
int kl_cmd_doctor(const struct kl_opts *o);
int kl_cmd_help(const struct kl_opts *o);
int kl_cmd_completion(const struct kl_opts *o);

/* ---- messages, memory, files (util.c) ---- */

/* One message and the exit code that goes with it. */
struct kl_msg {
    int rc;
    char text[1200];
};
/* Sets the message; returns false, so that a failing function can end with it. */
bool kl_msg(struct kl_msg *m, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* "kiln: error: ..." on standard error; returns rc. */
int kl_fail(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int kl_usage(const struct kl_opts *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void kl_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What the caller proposes for a misspelt name: " (did you mean x?)" or "". */
const char *kl_did_you_mean(const char *name, const char *const *names, size_t n, char buf[128]);

void *kl_xalloc(size_t n); /* zeroed; ends the process with a message if there is no memory */
void *kl_xgrow(void *p, size_t elem, size_t n); /* room for n + 1, doubling */
char *kl_xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *kl_xstrndup(const char *s, size_t n);

/* The whole of a text file, with a NUL behind it; NULL and a message if it cannot be read. */
char *kl_read_file(const char *path, size_t *len, struct kl_msg *m);
/* Memory for an array: 64-byte aligned; checked against what the machine has left. */
void *kl_array_alloc(const char *what, uint64_t bytes, struct kl_msg *m);
const char *kl_human_bytes(uint64_t n, char buf[32]); /* "3.6 GiB" */
int kl_rc_of(kiln_status s);

/* ---- output files that appear whole or not at all (outfile.c) ---- */

struct kl_outfile {
    const char *path;
    char *tmp;   /* the name under which it is made; NULL: no name yet, or written in place */
    int fd;      /* -1: closed */
    bool direct; /* a device or a pipe: written in place */
    bool linked; /* tmp exists in the file system */
};
bool kl_outfile_open(struct kl_outfile *f, const char *path, struct kl_msg *m);
/* The permissions of the file that it replaces. */
void kl_outfile_like(struct kl_outfile *f, const char *path);
bool kl_outfile_write(struct kl_outfile *f, const void *p, size_t n, struct kl_msg *m);
bool kl_outfile_commit(struct kl_outfile *f, struct kl_msg *m);
void kl_outfile_drop(struct kl_outfile *f);
/* Ends the peers that run and removes their arrays.  Async-signal-safe. */
void kl_proc_abandon(void);
/* `kiln --peer-host LIBRARY`: a peer that is a library answers kiln bench (peerhost.c). */
int kl_peer_host(const char *path);
void kl_outfile_signals(void); /* remove temporary files when a signal ends the process */

/* ---- a context and a source (session.c) ---- */

struct kl_session {
    kiln_options opt;
    kiln_context *ctx;
    const struct kl_opts *o;
    char *path, *want; /* FILE and KERNEL; want NULL: not said */
    char *text;
    size_t len;
    kiln_module *mod;
    bool hold; /* keep the diagnostics of a source that does not compile instead of showing them */
    kiln_diags *held;
};
/* Context with the options of the command line.  device and checks as given; quiet: warnings (no
 * compiler, no cache) are not shown.  The result is an exit code; messages are printed. */
int kl_session_open(struct kl_session *s, const struct kl_opts *o, kiln_device device,
                    unsigned checks, bool quiet);
/* sms: what num_sms() gives on the devices of the host; 0: their threads. */
int kl_session_open_sms(struct kl_session *s, const struct kl_opts *o, kiln_device device,
                        unsigned checks, bool quiet, uint32_t sms);
/* Split FILE[:KERNEL], read and compile; choose the kernel. */
int kl_session_load(struct kl_session *s, const char *spec);
/* Tuned constants for its launches: of --tune FILE, or of FILE.tune beside the source if there is
 * one; says so in a line unless quiet.  device: as for kl_tool_tune.  0 or an exit code. */
int kl_session_tuned(struct kl_session *s, const char *device, bool quiet);
/* The kernel `name` of mod, or the only one; prints what there is if that fails. */
int kl_session_kernel(kiln_module *mod, const char *path, const char *name, kiln_kernel **out);
void kl_session_close(struct kl_session *s);
/* Print a list (to f) and free it. */
void kl_show_diags(kiln_diags *d, FILE *f, bool color);
/* Exit code of a failed call; shows the diagnostics.  An internal error also writes a report. */
int kl_session_fail(const struct kl_session *s, kiln_status st, kiln_diags *d);
/* "cuda:1" is device 1.  0, or an exit code with a message. */
int kl_parse_device(const char *s, kiln_device *out, int32_t *index);
int kl_check_arch(const char *s); /* NULL is fine; 0, or an exit code with a message */
const char *kl_device_text(kiln_device d); /* "on the CPU" */

#endif
