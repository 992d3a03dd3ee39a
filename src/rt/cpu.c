/* cpu.c - which cores the process may use, and which instructions generated code may. */
#define _GNU_SOURCE
#include "rt/rt.h"

#include <sched.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

uint32_t kl_cpu_count(void)
{
    /* the kernel refuses a mask shorter than its own: grow until it fits */
    static const size_t sizes[] = {128, 1024, 8192};
    unsigned long mask[8192 / sizeof(unsigned long)];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(mask, 0, sizes[i]);
        if (sched_getaffinity(0, sizes[i], (cpu_set_t *)mask) != 0)
            continue;
        int n = CPU_COUNT_S(sizes[i], (cpu_set_t *)mask);
        if (n > 0)
            return (uint32_t)n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

#if defined(__x86_64__)

/* __builtin_cpu_supports also knows whether the system saves the wide registers; what it has
 * no name for in every compiler comes from cpuid. */
static bool level3(void)
{
    unsigned a, b, c1, c2, d;
    __builtin_cpu_init();
    if (!__get_cpuid(1, &a, &b, &c1, &d) || !__get_cpuid(0x80000001, &a, &b, &c2, &d))
        return false;
    bool movbe = c1 >> 22 & 1, f16c = c1 >> 29 & 1, lzcnt = c2 >> 5 & 1;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt") && movbe && f16c && lzcnt;
}

const char *kl_cpu_level(void)
{
    if (!level3())
        return NULL;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return "x86-64-v4";
    return "x86-64-v3";
}

#elif defined(__aarch64__)

const char *kl_cpu_level(void)
{
    return "aarch64"; /* fma is part of the base */
}

#else

const char *kl_cpu_level(void)
{
    return NULL;
}

#endif
