/* nvtx.c - ranges for a profiler that is attached, in the way of NVTX 3.
 *
 * A profiler names its library in NVTX_INJECTION64_PATH.  A program that has something to say loads
 * it and calls its InitializeInjectionNvtx2 with a function that gives tables by number.  Table 1
 * gives, for each module of NVTX, pointers to the places where the program keeps the functions it
 * calls; the profiler writes its own there.  The places that we do not use exist because profilers
 * write to them without asking.
 *
 * A launch is two ranges of the domain `kiln`, the kernel's name and within it types and shapes: so
 * a profiler finds and sums both, and its filters name a kernel without quoting (ncu: kiln@softmax/).
 * A profiler that knows no domains gets the same without one.
 *
 * The protocol hands no pointer of ours to these functions, and a process is attached once: so the
 * places are static, in the command and not in the library. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cli/trace/trace.h"

typedef void function(void);

enum { CALLBACKS = 1, VERSION_INFO = 3, NVTX_VERSION = 3 };    /* tables */
enum { CORE = 1, CORE2 = 5, MODULES = 7, MOST = 16 };           /* modules */
enum { RANGE_PUSH_A = 9, RANGE_POP = 11 };                      /* in core */
enum { DOMAIN_PUSH = 4, DOMAIN_POP = 5, DOMAIN_CREATE_A = 12 }; /* in core2 */

/* How many functions each module has, with the unused number 0. */
static const unsigned counts[MODULES] = {0, 16, 9, 15, 7, 16, 7};

/* What is pushed in a domain. */
struct event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};
enum { MESSAGE_ASCII = 1 };
_Static_assert(sizeof(struct event) == 48, "as NVTX 3 has it");

static struct {
    bool on;
    void *domain; /* NULL: no domains */
    function *place[MODULES][MOST];
    function **table[MODULES][MOST + 1]; /* NULL, then the places, then NULL */
} nvtx;

static int module_table(int module, function ****table, unsigned *size)
{
    if (module < CORE || module >= MODULES)
        return 0;
    for (unsigned i = 1; i < counts[module]; i++)
        nvtx.table[module][i] = &nvtx.place[module][i];
    if (table)
        *table = nvtx.table[module];
    if (size)
        *size = counts[module];
    return 1;
}

static void set_version(uint32_t version)
{
    (void)version;
}

static const struct callbacks {
    size_t size;
    int (*module_table)(int module, function ****table, unsigned *size);
} callbacks = {sizeof callbacks, module_table};

static const struct version_info {
    size_t size;
    uint32_t version, reserved;
    void (*set_version)(uint32_t version);
} version_info = {sizeof version_info, NVTX_VERSION, 0, set_version};

static const void *export_table(uint32_t which)
{
    return which == CALLBACKS ? (const void *)&callbacks
           : which == VERSION_INFO ? (const void *)&version_info
                                   : NULL;
}

bool kl_nvtx_on(void)
{
    return nvtx.on;
}

/* A profiler fills in places or clears them, at its start. */
static void open_domain(void)
{
    void *(*create)(const char *);
    function *const *place = nvtx.place[CORE2];
    if (!place[DOMAIN_CREATE_A] || !place[DOMAIN_PUSH] || !place[DOMAIN_POP])
        return;
    memcpy(&create, &place[DOMAIN_CREATE_A], sizeof create);
    nvtx.domain = create("kiln");
}

bool kl_nvtx_open(const char *path, char *why, size_t n)
{
    int (*init)(const void *(*tables)(uint32_t));
    if (nvtx.on)
        return true;
    void *lib = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    void *at = lib ? dlsym(lib, "InitializeInjectionNvtx2") : NULL;
    if (!at) {
        snprintf(why, n, "%s", lib ? "it has no InitializeInjectionNvtx2" : dlerror());
        if (lib)
            dlclose(lib);
        return false;
    }
    memcpy(&init, &at, sizeof init);
    nvtx.on = init(export_table) != 0; /* the library stays: its functions are called */
    if (nvtx.on)
        open_domain();
    else
        snprintf(why, n, "it refused to start");
    return nvtx.on;
}

static void push(const char *text)
{
    struct event e = {.version = NVTX_VERSION,
                      .size = sizeof e,
                      .message_type = MESSAGE_ASCII,
                      .message = text};
    int (*in_domain)(void *, const struct event *);
    int (*plain)(const char *);
    if (nvtx.domain) {
        memcpy(&in_domain, &nvtx.place[CORE2][DOMAIN_PUSH], sizeof in_domain);
        in_domain(nvtx.domain, &e);
    } else {
        memcpy(&plain, &nvtx.place[CORE][RANGE_PUSH_A], sizeof plain);
        plain(text);
    }
}

static void pop(void)
{
    int (*in_domain)(void *);
    int (*plain)(void);
    if (nvtx.domain) {
        memcpy(&in_domain, &nvtx.place[CORE2][DOMAIN_POP], sizeof in_domain);
        in_domain(nvtx.domain);
    } else {
        memcpy(&plain, &nvtx.place[CORE][RANGE_POP], sizeof plain);
        plain();
    }
}

void kl_nvtx_hear(void *user, const kiln_trace_event *e)
{
    (void)user;
    if (e->kind != KILN_TRACE_LAUNCH ||
        !(nvtx.domain || (nvtx.place[CORE][RANGE_PUSH_A] && nvtx.place[CORE][RANGE_POP])))
        return;
    if (e->phase == KILN_TRACE_BEGIN) {
        push(e->name);
        push(*e->detail ? e->detail : "no arguments");
    } else if (e->phase == KILN_TRACE_END) {
        pop();
        pop();
    }
}
