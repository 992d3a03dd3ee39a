/* gpu.c - see gpu.h. */
#include "model/gpu.h"

#include <ctype.h>
#include <stdlib.h>

static const kl_chip chips[] = {
#define GPU(name_, cc_, sms_, clock_, memory_, l2_, t16_, t32_, t8_, copy_, read_, source_, by)     \
    {.name = name_, .cc = cc_, .sms = sms_, .clock = clock_, .memory = memory_, .l2 = l2_,         \
     .t16 = t16_, .t32 = t32_, .t8 = t8_, .copy = copy_, .read = read_, .source = source_,         \
     .measured = by},
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
};

struct piece {
    const char *s;
    size_t n;
};

static struct piece trim(const char *s, const char *end)
{
    while (s < end && isspace((unsigned char)*s))
        s++;
    while (end > s && isspace((unsigned char)end[-1]))
        end--;
    return (struct piece){s, (size_t)(end - s)};
}

static bool is(struct piece p, const char *word)
{
    return p.n == strlen(word) && memcmp(p.s, word, p.n) == 0;
}

static bool number(const char *s, double least, double most, double *out)
{
    char *end;
    *out = isdigit((unsigned char)*s) ? strtod(s, &end) : -1;
    return *out >= least && *out <= most && !*end;
}

static const char *set(kl_arena *a, struct piece key, const char *value, kl_chip *out)
{
    double v;
    if (is(key, "name") || is(key, "source")) {
        *(is(key, "name") ? &out->name : &out->source) = value;
        return NULL;
    }
    if (is(key, "cc")) {
        if (!number(value, 1, 99, &v) || v * 10 != (double)(uint32_t)(v * 10 + 0.5))
            return kl_printf(a, "cc = %.40s: it is written as 9.0", value);
        out->cc = (uint32_t)(v * 10 + 0.5);
        return NULL;
    }
    if (is(key, "sms")) {
        if (!number(value, 1, 10000, &v) || v != (double)(uint32_t)v)
            return kl_printf(a, "sms = %.40s: it must be a whole number from 1 to 10000", value);
        out->sms = (uint32_t)v;
        return NULL;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is(key, keys[i].name)) {
            if (!number(value, keys[i].least, keys[i].most, &v))
                return kl_printf(a, "%s = %.40s: it must be a number from %g to %g", keys[i].name,
                                 value, keys[i].least, keys[i].most);
            memcpy((char *)out + keys[i].at, &v, sizeof v);
            return NULL;
        }
    return kl_printf(a, "there is no key `%.*s`; there are name, cc, sms, clock, memory, l2, t16, "
                        "t32, t8, copy, read and source",
                     key.n > 40 ? 40 : (int)key.n, key.s);
}

const char *kl_chip_parse(kl_arena *a, const char *text, size_t n, kl_chip *out)
{
    const char *end = text + n;
    uint32_t line = 1;
    *out = (kl_chip){.name = "GPU", .source = "the description given"};
    for (const char *p = text; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        const char *hash = memchr(p, '#', (size_t)(stop - p));
        struct piece l = trim(p, hash ? hash : stop);
        p = stop + 1;
        if (!l.n)
            continue;
        const char *eq = memchr(l.s, '=', l.n), *why;
        if (!eq)
            return kl_printf(a, "line %u: write `key = value`", line);
        struct piece v = trim(eq + 1, l.s + l.n);
        why = set(a, trim(l.s, eq), kl_strndup(a, v.s, v.n), out);
        if (why)
            return kl_printf(a, "line %u: %s", line, why);
    }
    if (out->copy > 0 || out->read > 0)
        out->measured = out->source;
    return !out->cc ? "cc is missing" : !out->sms ? "sms is missing" : NULL;
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

double kl_bytes_under_way(const kl_chip *c)
{
    return c->sms ? c->memory * KL_LATENCY_NS / c->sms : 0;
}
