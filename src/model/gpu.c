/* gpu.c - see gpu.h. */
#include "model/gpu.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static const kl_chip chips[] = {
#define GPU(name_, cc_, sms_, clock_, memory_, l2_, t16_, t32_, t8_, copy_, read_, latency_,        \
            unloaded_, l2_read_, source_, by)                                                      \
    {.name = name_, .cc = cc_, .sms = sms_, .clock = clock_, .memory = memory_, .l2 = l2_,         \
     .t16 = t16_, .t32 = t32_, .t8 = t8_, .copy = copy_, .read = read_, .latency = latency_,       \
     .unloaded = unloaded_, .l2_read = l2_read_, .source = source_, .measured = by, .label = "datasheet"},
#include "model/gpu.def"
};

bool kl_chip_at(size_t i, kl_chip *out)
{
    if (i >= sizeof chips / sizeof *chips)
        return false;
    *out = chips[i];
    return true;
}

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (toupper((unsigned char)*a) != toupper((unsigned char)*b))
            return false;
    return *a == *b;
}

bool kl_chip_find(const char *name, kl_chip *out)
{
    for (size_t i = 0; kl_chip_at(i, out); i++)
        if (same_name(out->name, name))
            return true;
    return false;
}

bool kl_chip_of_cc(uint32_t cc, kl_chip *out)
{
    for (size_t i = 0; kl_chip_at(i, out); i++)
        if (out->cc == cc)
            return true;
    return false;
}

/* ---- a description ---- */

static const struct key {
    const char *name;
    size_t at;
    double least, most;
} keys[] = {
    {"clock", offsetof(kl_chip, clock), 1, 1e5}, {"memory", offsetof(kl_chip, memory), 1e-3, 1e6},
    {"l2", offsetof(kl_chip, l2), 1e-3, 1e5},    {"t16", offsetof(kl_chip, t16), 0, 1e6},
    {"t32", offsetof(kl_chip, t32), 0, 1e6},     {"t8", offsetof(kl_chip, t8), 0, 1e6},
    {"copy", offsetof(kl_chip, copy), 0, 1e6},   {"read", offsetof(kl_chip, read), 0, 1e6},
    {"latency", offsetof(kl_chip, latency), 1, 1e5},
    {"unloaded", offsetof(kl_chip, unloaded), 1, 1e5},
    {"l2_read", offsetof(kl_chip, l2_read), 1e-3, 1e6},
};

static char *trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    char *end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1]))
        *--end = 0;
    return s;
}

static bool number(const char *s, double least, double most, double *out)
{
    char *end = NULL;
    *out = isdigit((unsigned char)*s) ? strtod(s, &end) : -1;
    return end && !*end && *out >= least && *out <= most;
}

__attribute__((format(printf, 2, 3))) static bool wrong(char why[KL_CHIP_WHY],
                                                          const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, KL_CHIP_WHY, fmt, ap);
    va_end(ap);
    return false;
}

static bool set(const char *key, char *value, kl_chip *out, char why[KL_CHIP_WHY])
{
    double v;
    if (strcmp(key, "name") == 0 || strcmp(key, "source") == 0) {
        *(*key == 'n' ? &out->name : &out->source) = value;
        return true;
    }
    if (strcmp(key, "cc") == 0) {
        bool ok = number(value, 1, 99, &v) && v * 10 - (double)(uint32_t)(v * 10 + 0.5) < 1e-9 &&
                  (double)(uint32_t)(v * 10 + 0.5) - v * 10 < 1e-9;
        out->cc = ok ? (uint32_t)(v * 10 + 0.5) : 0;
        return ok || wrong(why, "cc = %.40s: it is written as 9.0", value);
    }
    if (strcmp(key, "sms") == 0) {
        bool ok = number(value, 1, 10000, &v) && v == (double)(uint32_t)v;
        out->sms = ok ? (uint32_t)v : 0;
        return ok || wrong(why, "sms = %.40s: it must be a whole number from 1 to 10000", value);
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i].name) == 0) {
            if (!number(value, keys[i].least, keys[i].most, &v))
                return wrong(why, "%s = %.40s: it must be a number from %g to %g", key, value,
                             keys[i].least, keys[i].most);
            memcpy((char *)out + keys[i].at, &v, sizeof v);
            return true;
        }
    return wrong(why,
                 "there is no key `%.40s`; there are name, cc, sms, clock, memory, l2, t16, t32, t8, "
                 "copy, read, latency, unloaded, l2_read and source",
                 key);
}

bool kl_chip_parse(char *text, kl_chip *out, char why[KL_CHIP_WHY])
{
    uint32_t line = 1, nseen = 0;
    const char *seen[32];
    *out = (kl_chip){.name = "GPU", .source = "the description given", .label = "given"};
    for (char *p = text, *next; p; p = next, line++) {
        char what[KL_CHIP_WHY];
        next = strchr(p, '\n');
        if (next)
            *next++ = 0;
        p[strcspn(p, "#")] = 0;
        p = trim(p);
        if (!*p)
            continue;
        char *eq = strchr(p, '=');
        if (!eq)
            return wrong(why, "line %u: write `key = value`", line);
        *eq = 0;
        p = trim(p);
        for (uint32_t i = 0; i < nseen; i++)
            if (strcmp(seen[i], p) == 0)
                return wrong(why, "line %u: `%.40s` stands there twice", line, p);
        if (!set(p, trim(eq + 1), out, what))
            return wrong(why, "line %u: %.180s", line, what);
        if (nseen < 32)
            seen[nseen++] = p;
    }
    if (out->copy > 0 || out->read > 0 || out->latency > 0 || out->unloaded > 0 || out->l2_read > 0)
        out->measured = out->source;
    return out->cc ? out->sms || wrong(why, "sms is missing") : wrong(why, "cc is missing");
}

/* ---- figures ---- */

double kl_chip_peak(const kl_chip *c, enum kl_peak p)
{
    kl_sm sm;
    if (!kl_sm_find(c->cc, &sm))
        return 0;
    uint32_t lanes = p == KL_PEAK_FP32 ? sm.fp32 : p == KL_PEAK_FP64 ? sm.fp64 : sm.fp16;
    return (double)c->sms * lanes * 2 * c->clock * 1e-6;
}

void kl_waves_of(uint64_t blocks, uint32_t sms, uint32_t each, kl_waves *out)
{
    uint64_t slots = (uint64_t)sms * each;
    *out = (kl_waves){.blocks = blocks, .slots = slots};
    if (!slots)
        return;
    out->whole = blocks / slots;
    out->rest = blocks % slots;
    out->waves = (double)blocks / (double)slots;
    uint64_t full = out->whole + (out->rest != 0);
    out->efficiency = full ? out->waves / (double)full : 0;
    out->tail = out->rest ? 1.0 / (double)(out->whole + 1) : 0;
}

bool kl_roof_of(double flop, double bytes, double bandwidth, double peak, kl_roof *out)
{
    *out = (kl_roof){0};
    if (bytes <= 0 || bandwidth <= 0 || peak <= 0)
        return false;
    out->intensity = flop / bytes;
    out->ridge = peak * 1e12 / (bandwidth * 1e9);
    out->memory = out->intensity < out->ridge;
    out->most = out->memory ? out->intensity * bandwidth * 1e-3 : peak;
    return true;
}

double kl_floor_us(double bytes, double gbs)
{
    return gbs > 0 ? bytes / gbs * 1e-3 : 0;
}

double kl_latency(const kl_chip *c)
{
    return c->latency > 0 ? c->latency : KL_LATENCY_NS;
}

double kl_unloaded(const kl_chip *c)
{
    return c->unloaded > 0 ? c->unloaded : KL_UNLOADED * kl_latency(c);
}

double kl_memory_rate(const kl_chip *c)
{
    return c->copy > 0 ? c->copy : c->memory;
}

double kl_bytes_under_way(const kl_chip *c)
{
    return c->sms ? kl_memory_rate(c) * kl_latency(c) / c->sms : 0;
}

double kl_l2_rate(const kl_chip *c)
{
    return c->l2_read > 0 ? c->l2_read : c->clock * 1e-3 * KL_L2_PORT * c->sms;
}
