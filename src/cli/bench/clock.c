/* clock.c - clocks: the host's monotonic one, and how fast CPU or GPU runs just now.
 *
 * NVML is loaded if it is there; what it does not say is "unknown", never guessed.  The kernel of
 * the operating system tells of the CPU by files, which virtual machines mostly lack. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bench/bench.h"

double kl_bench_now(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- NVML ---- */

struct kl_nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*device)(unsigned index, void **out);
    int (*by_uuid)(const char *uuid, void **out);
    int (*clock)(void *dev, unsigned type, unsigned *mhz);
    int (*full)(void *dev, unsigned type, unsigned *mhz);
    int (*reasons)(void *dev, unsigned long long *bits);
    int (*driver)(char *version, unsigned n);
};
enum { NVML_SM = 1 };

static const struct {
    unsigned long long bit;
    const char *name;
} reasons[] = {{0x4, "power cap"},          {0x8, "hardware slowdown"},  {0x10, "sync boost"},
               {0x20, "thermal, software"}, {0x40, "thermal, hardware"}, {0x80, "power brake"},
               {0x100, "display clocks"},   {0x2, "application clocks"}};

/* A symbol as a function: ISO C has no cast from one to the other. */
static bool find(void *lib, const char *name, void *fn)
{
    void *p = dlsym(lib, name);
    memcpy(fn, &p, sizeof p);
    return p != NULL;
}

/* NVML counts all devices of the machine, CUDA those that CUDA_VISIBLE_DEVICES names, by number or
 * by "GPU-...". */
static int open_device(const struct kl_watch *w, void **out)
{
    const struct kl_nvml *f = w->fn;
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    char word[80] = "", *end;
    for (int32_t i = 0; list && i < w->index; i++) {
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    if (list && *list)
        snprintf(word, sizeof word, "%.*s", (int)strcspn(list, ","), list);
    if (!*word)
        return getenv("CUDA_VISIBLE_DEVICES") ? 1 : f->device((unsigned)w->index, out);
    unsigned long number = strtoul(word, &end, 10);
    if (end != word && !*end)
        return f->device((unsigned)number, out);
    return f->by_uuid ? f->by_uuid(word, out) : 1;
}

static void open_nvml(struct kl_watch *w)
{
    w->nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!w->nvml)
        return;
    struct kl_nvml *f = w->fn = kl_xalloc(sizeof *f);
    unsigned mhz;
    if (!find(w->nvml, "nvmlInit_v2", &f->init) || !find(w->nvml, "nvmlShutdown", &f->shutdown) ||
        !find(w->nvml, "nvmlDeviceGetHandleByIndex_v2", &f->device) ||
        !find(w->nvml, "nvmlDeviceGetClockInfo", &f->clock) ||
        !find(w->nvml, "nvmlDeviceGetMaxClockInfo", &f->full) || f->init() != 0)
        return;
    if (!find(w->nvml, "nvmlDeviceGetCurrentClocksEventReasons", &f->reasons))
        find(w->nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", &f->reasons);
    find(w->nvml, "nvmlDeviceGetHandleByUUID", &f->by_uuid);
    if (find(w->nvml, "nvmlSystemGetDriverVersion", &f->driver) &&
        f->driver(w->driver, sizeof w->driver) != 0)
        w->driver[0] = 0;
    if (open_device(w, &w->handle) != 0) {
        w->handle = NULL;
        f->shutdown();
    }
    if (w->handle && f->full(w->handle, NVML_SM, &mhz) == 0)
        w->full_mhz = mhz;
}

/* ---- the CPU ---- */

static bool read_word(const char *path, char *out, size_t n)
{
    FILE *f = fopen(path, "r");
    bool ok = f && fgets(out, (int)n, f);
    if (f)
        fclose(f);
    if (ok)
        out[strcspn(out, "\n")] = 0;
    else
        out[0] = 0;
    return ok;
}

#define CPUFREQ "/sys/devices/system/cpu/cpu0/cpufreq/"

static void open_cpu(struct kl_watch *w)
{
    char t[64];
    read_word(CPUFREQ "scaling_governor", w->governor, sizeof w->governor);
    if (read_word("/sys/devices/system/cpu/intel_pstate/no_turbo", t, sizeof t))
        snprintf(w->turbo, sizeof w->turbo, "%s", t[0] == '0' ? "on" : "off");
    else if (read_word("/sys/devices/system/cpu/cpufreq/boost", t, sizeof t))
        snprintf(w->turbo, sizeof w->turbo, "%s", t[0] == '1' ? "on" : "off");
    if (read_word(CPUFREQ "cpuinfo_max_freq", t, sizeof t))
        w->full_mhz = strtod(t, NULL) / 1000;
}

double kl_machine_load(void)
{
    char t[64];
    return read_word("/proc/loadavg", t, sizeof t) ? strtod(t, NULL) : -1;
}

void kl_watch_open(struct kl_watch *w, kiln_device device, int32_t index)
{
    *w = (struct kl_watch){.device = device, .index = index};
    if (device == KILN_DEVICE_CUDA)
        open_nvml(w);
    else
        open_cpu(w);
}

double kl_watch_mhz(const struct kl_watch *w)
{
    char t[64];
    unsigned mhz;
    if (w->device != KILN_DEVICE_CUDA)
        return read_word(CPUFREQ "scaling_cur_freq", t, sizeof t) ? strtod(t, NULL) / 1000 : 0;
    return w->handle && w->fn->clock(w->handle, NVML_SM, &mhz) == 0 ? mhz : 0;
}

enum { NREASON = sizeof reasons / sizeof *reasons };
_Static_assert(NREASON == sizeof((struct kl_watch *)NULL)->seen / sizeof(size_t), "");

void kl_watch_look(struct kl_watch *w)
{
    unsigned long long bits = 0;
    if (!w->handle || !w->fn->reasons || w->fn->reasons(w->handle, &bits) != 0)
        return;
    w->looks++;
    for (size_t i = 0; i < NREASON; i++)
        w->seen[i] += (bits & reasons[i].bit) != 0;
}

void kl_watch_throttle(struct kl_watch *w)
{
    size_t used = 0;
    w->throttle[0] = 0;
    w->throttle_known = w->looks > 0;
    for (size_t i = 0; i < NREASON; i++)
        if (w->seen[i] && used < sizeof w->throttle)
            used += (size_t)snprintf(w->throttle + used, sizeof w->throttle - used,
                                     "%s%s in %.3g%% of the bursts", used ? ", " : "",
                                     reasons[i].name,
                                     100 * (double)w->seen[i] / (double)w->looks);
}

void kl_watch_close(struct kl_watch *w)
{
    if (w->handle)
        w->fn->shutdown();
    free(w->fn);
    if (w->nvml)
        dlclose(w->nvml);
    *w = (struct kl_watch){0};
}

/* ---- threads ---- */

/* Calls fn with the number of each thread of the process. */
static void each_thread(void (*fn)(pid_t id, void *user), void *user)
{
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        long id = strtol(e->d_name, NULL, 10);
        if (id > 0)
            fn((pid_t)id, user);
    }
    if (d)
        closedir(d);
}

static void add_cores(pid_t id, void *user)
{
    cpu_set_t one, *all = user;
    if (sched_getaffinity(id, sizeof one, &one) == 0)
        CPU_OR(all, all, &one);
}

void kl_all_cores(void *set, size_t bytes)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    each_thread(add_cores, &all);
    memcpy(set, &all, bytes < sizeof all ? bytes : sizeof all);
}

struct pin {
    cpu_set_t all;
    int core;
    unsigned done;
};

static void pin_one(pid_t id, void *user)
{
    struct pin *p = user;
    cpu_set_t one;
    for (int tries = 0; tries < CPU_SETSIZE; tries++) {
        p->core = (p->core + 1) % CPU_SETSIZE;
        if (CPU_ISSET((size_t)p->core, &p->all))
            break;
    }
    CPU_ZERO(&one);
    CPU_SET((size_t)p->core, &one);
    p->done += sched_setaffinity(id, sizeof one, &one) == 0;
}

unsigned kl_pin_threads(void)
{
    struct pin p = {.core = -1};
    kl_all_cores(&p.all, sizeof p.all);
    each_thread(pin_one, &p);
    return p.done;
}
