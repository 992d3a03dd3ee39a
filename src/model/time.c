/* time.c - see time.h. */
#include "model/time.h"

#include <stdio.h>

const char *const kl_busy_name[KL_NBUSY] = {"memory", "L2 cache", "shared memory", "instructions"};

bool kl_times_of(const kl_model *m, const kl_chip *c, double bytes, kl_times *out)
{
    kl_sm sm;
    *out = (kl_times){{0}};
    if (m->cut || !kl_sm_find(c->cc, &sm) || c->clock <= 0 || kl_memory_rate(c) <= 0 || !sm.fp32)
        return false;
    const kl_model_work *w = &m->work;
    double clocks = c->clock * c->sms; /* of all SMs in a microsecond */
    double requests = (double)m->gload.requests + (double)m->gstore.requests +
                      (double)m->atomic.requests + (double)m->sload.requests +
                      (double)m->sstore.requests + (double)m->push.requests;
    double narrow = (double)(w->steps - w->steps64) / sm.fp32;
    double wide = sm.fp64 ? (double)w->steps64 / sm.fp64 : 0;
    out->us[KL_BUSY_MEMORY] = kl_floor_us(bytes, kl_memory_rate(c));
    out->us[KL_BUSY_L2] =
        kl_floor_us(32.0 * (double)(m->gload.apart + m->gstore.apart + m->atomic.apart), kl_l2_rate(c));
    out->us[KL_BUSY_SHARED] = (double)(m->sload.units + m->sstore.units + m->push.units) / clocks;
    double units = narrow + wide + requests / 4, issue = (double)m->instructions / 4; /* four a clock */
    out->us[KL_BUSY_ISSUE] = (units > issue ? units : issue) / clocks;
    return true;
}

double kl_times_most(const kl_times *t, enum kl_busy *which)
{
    enum kl_busy k = KL_BUSY_MEMORY;
    for (int i = 0; i < KL_NBUSY; i++)
        if (t->us[i] > t->us[k])
            k = (enum kl_busy)i;
    if (which)
        *which = k;
    return t->us[k];
}

void kl_times_saved(const kl_times *now, const kl_times *then, double *least, double *most)
{
    double all = 0, rest = 0, top = kl_times_most(now, NULL);
    for (int i = 0; i < KL_NBUSY; i++) {
        all += now->us[i];
        rest += then->us[i];
    }
    double apart = all > 0 ? 1 - rest / all : 0;
    double together = top > 0 ? 1 - kl_times_most(then, NULL) / top : 0;
    *least = apart < together ? apart : together;
    *most = apart < together ? together : apart;
}

const char *kl_times_text(kl_arena *a, const kl_times *now, const kl_times *then)
{
    double least, most;
    kl_buf b = {.a = a};
    kl_times_saved(now, then, &least, &most);
    kl_putf(&b, "of the kernel's time: ");
    if (100 * most - 100 * least >= 1)
        kl_putf(&b, "%.0f%% to %.0f%%", 100 * least, 100 * most);
    else
        kl_putf(&b, "about %.0f%%", 100 * most);
    kl_putf(&b, " (model; us busy:");
    for (int i = 0; i < KL_NBUSY; i++) {
        kl_putf(&b, "%s %s %.3g", i ? "," : "", kl_busy_name[i], now->us[i]);
        if (then->us[i] != now->us[i])
            kl_putf(&b, ", then %.3g", then->us[i]);
    }
    kl_putf(&b, ")");
    return kl_buf_str(&b);
}

void kl_tail_of(const kl_waves *w, const kl_chip *c, bool memory, double block_bytes,
                double under_way, kl_tail *out)
{
    *out = (kl_tail){0};
    if (!w->slots || !w->whole || !w->rest)
        return;
    if (!memory) {
        double mean = (double)w->blocks / c->sms;
        uint64_t most = (w->blocks + c->sms - 1) / c->sms;
        *out = (kl_tail){.known = true, .gain = 1 - mean / (double)most};
        return;
    }
    double rate = kl_memory_rate(c), one = under_way / kl_unloaded(c); /* GB/s */
    if (rate <= 0 || one <= 0 || block_bytes <= 0)
        return;
    double full = (double)w->slots * one < rate ? (double)w->slots * one : rate;
    double last = (double)w->rest * one < full ? (double)w->rest * one : full;
    out->known = true;
    out->last_us = kl_floor_us((double)w->rest * block_bytes, last);
    out->ideal_us = kl_floor_us((double)w->rest * block_bytes, full);
    double all = kl_floor_us((double)(w->slots * w->whole) * block_bytes, full) + out->last_us;
    out->gain = 1 - (all - out->last_us + out->ideal_us) / all;
}
