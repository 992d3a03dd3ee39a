/* gpu.h - GPUs as explain sees them: what they have, how a grid fills them, how fast they could be. */
#ifndef KL_MODEL_GPU_H
#define KL_MODEL_GPU_H

#include "model/occupancy.h"

typedef struct kl_chip {
    const char *name, *source, *measured; /* measured: where copy and read come from, or NULL */
    uint32_t cc, sms;
    double clock;        /* MHz */
    double memory;       /* GB/s by the datasheet; 0: not known, as with what follows */
    double l2;           /* MiB */
    double t16, t32, t8; /* tensor units, TFLOP/s */
    double copy, read;   /* GB/s, measured */
    double latency;      /* ns under load, measured; 0: assumed */
    double unloaded;     /* ns without, measured; 0: a part of the other one is assumed */
    double l2_read;      /* GB/s from the L2 cache, measured */
    const char *label;   /* of the figures: "datasheet", "given", "driver" */
} kl_chip;

bool kl_chip_at(size_t i, kl_chip *out); /* rows of gpu.def; false past the last */
bool kl_chip_find(const char *name, kl_chip *out); /* in small letters, too */
/* The first row of a capability. */
bool kl_chip_of_cc(uint32_t cc, kl_chip *out);
/* A description: lines `key = value`, # comments.  Keys: name, cc (9.0), sms, clock, memory, l2, t16,
 * t32, t8, copy, read, latency, unloaded, l2_read, source, in the units above; cc and sms must be there.  The text
 * is cut up, and strings lie in it.  false: why says what is wrong, with the number of the line. */
enum { KL_CHIP_WHY = 200 };
bool kl_chip_parse(char *text, kl_chip *out, char why[KL_CHIP_WHY]);

/* TFLOP/s of the units for an element type outside the tensor units; 0: not known. */
enum kl_peak { KL_PEAK_FP32, KL_PEAK_FP64, KL_PEAK_FP16 };
double kl_chip_peak(const kl_chip *c, enum kl_peak p);

/* How blocks fill the multiprocessors, each of which holds so many. */
typedef struct kl_waves {
    uint64_t blocks, slots; /* slots: a full wave */
    uint64_t whole, rest;   /* full waves; blocks of the last one that is not full */
    double waves, efficiency;
    double tail;            /* most that the last wave costs: 1 / (whole + 1); 0: no rest */
} kl_waves;
void kl_waves_of(uint64_t blocks, uint32_t sms, uint32_t each, kl_waves *out);

/* Roofline. */
typedef struct kl_roof {
    double intensity; /* FLOP / B */
    double ridge;     /* where memory and arithmetic meet */
    double most;      /* TFLOP/s */
    bool memory;      /* below the ridge */
} kl_roof;
/* bandwidth in GB/s, peak in TFLOP/s; false: one of them is not known, or no byte moves. */
bool kl_roof_of(double flop, double bytes, double bandwidth, double peak, kl_roof *out);
double kl_floor_us(double bytes, double gbs);

/* Nanoseconds of a load from memory that is busy: measured, or this one, which is assumed.  With it a
 * B200 needs 40 KiB under way on each SM, and an H200 33 with the measured one; NVIDIA names "more than
 * 32" for Hopper and "more than 40" for Blackwell (GTC 2025, CUDA techniques to maximize memory
 * bandwidth). */
enum { KL_LATENCY_NS = 800 };
double kl_latency(const kl_chip *c);
/* The same of memory that has nothing else to do; not measured: this part of the other one. */
#define KL_UNLOADED 0.6
double kl_unloaded(const kl_chip *c);
/* GB/s of memory: of the measured copy, or else the datasheet's. */
double kl_memory_rate(const kl_chip *c);
/* Bytes that an SM must have under way for memory to be busy: that rate x latency / SMs. */
double kl_bytes_under_way(const kl_chip *c);

/* GB/s from the L2 cache to the SMs: measured, or else 64 bytes a clock for each SM, which is what
 * the ports could carry and more than any L2 cache was seen to give.  0: the clock is not known. */
enum { KL_L2_PORT = 64 };
double kl_l2_rate(const kl_chip *c);

#endif
