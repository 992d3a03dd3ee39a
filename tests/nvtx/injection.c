/* injection.c - a profiler's library as NVTX 3 wants it, for tests: it says on standard error which
 * ranges were pushed and popped, and how deep they were.
 *
 * INJECTION_REFUSE: it does not start.  INJECTION_WRITE_ALL: it fills every place of every module,
 * as profilers do, and finds out whether the tables say how long they are.  INJECTION_OLD: it knows
 * no domains.  It serves programs that use NVIDIA's own headers as well. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void function(void);
struct callbacks {
    size_t size;
    int (*module_table)(int module, function ****table, unsigned *size);
};
struct version_info {
    size_t size;
    uint32_t version, reserved;
    void (*set_version)(uint32_t version);
};
enum { CALLBACKS = 1, VERSION_INFO = 3, CORE = 1, PUSH_A = 9, POP = 11 };
enum { CORE2 = 5, DOMAIN_PUSH = 4, DOMAIN_POP = 5, DOMAIN_CREATE_A = 12 };

/* 48 bytes; the message is the last eight, its type (1: of char) lies before it. */
struct event {
    uint16_t version, size;
    uint32_t words[7];
    int32_t message_type;
    const char *message;
};

int InitializeInjectionNvtx2(const void *(*table)(uint32_t));

static int depth, most, pushes, pops;

static int push(const char *text)
{
    fprintf(stderr, "push %s\n", text);
    pushes++;
    depth++;
    most = depth > most ? depth : most;
    return depth - 1;
}

static int pop(void)
{
    pops++;
    return --depth;
}

static char domain[64];

static void *create(const char *name)
{
    snprintf(domain, sizeof domain, "%s", name);
    return domain;
}

static int domain_push(void *in, const struct event *e)
{
    if (in != domain || e->version != 3 || e->size != 48 || e->message_type != 1)
        fputs("a wrong event\n", stderr);
    fprintf(stderr, "%s: ", domain);
    return push(e->message);
}

static int domain_pop(void *in)
{
    if (in != domain)
        fputs("a wrong domain\n", stderr);
    return pop();
}

static void never(void)
{
    fputs("a function was called that nobody should call\n", stderr);
}

__attribute__((destructor)) static void report(void)
{
    fprintf(stderr, "%d pushed, %d popped, %d deep\n", pushes, pops, most);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    const void *(*table)(uint32_t))
{
    static const unsigned want[] = {0, 16, 9, 15, 7, 16, 7};
    const struct callbacks *c = table(CALLBACKS);
    const struct version_info *v = table(VERSION_INFO);
    function ***core;
    unsigned n = 0;
    if (getenv("INJECTION_REFUSE"))
        return 0;
    if (!c || c->size < sizeof *c || !v || v->size < sizeof *v || v->version != 3 || table(2) ||
        c->module_table(0, &core, &n) || c->module_table(7, &core, &n)) {
        fputs("the tables are wrong\n", stderr);
        return 0;
    }
    v->set_version(3);
    for (int m = 1; getenv("INJECTION_WRITE_ALL") && m < 7; m++) {
        if (!c->module_table(m, &core, &n) || n != want[m] || core[0] || core[n])
            fprintf(stderr, "module %d: %u functions\n", m, n);
        for (unsigned i = 1; i < n; i++)
            *core[i] = never;
    }
    if (!c->module_table(CORE, &core, NULL))
        return 0;
    *core[PUSH_A] = (function *)push;
    *core[POP] = (function *)pop;
    if (getenv("INJECTION_OLD"))
        return 1;
    if (!c->module_table(CORE2, &core, NULL))
        return 0;
    *core[DOMAIN_CREATE_A] = (function *)create;
    *core[DOMAIN_PUSH] = (function *)domain_push;
    *core[DOMAIN_POP] = (function *)domain_pop;
    return 1;
}
