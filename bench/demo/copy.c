/* copy.c - how fast this machine copies memory: the C library's memcpy on all threads. */
#include <pthread.h>
#include <string.h>

#include "demo.h"

enum { MOST = 256 };

struct part {
    float *dst;
    const float *src;
    size_t n;
};

static void *work(void *arg)
{
    struct part *p = arg;
    memcpy(p->dst, p->src, p->n * sizeof *p->dst);
    return NULL;
}

double copy_time(float *dst, const float *src, size_t n, unsigned threads)
{
    struct part part[MOST];
    pthread_t id[MOST];
    bool started[MOST] = {false};
    unsigned t = threads < MOST ? threads : MOST;
    double begin = now();
    for (unsigned i = 0; i < t; i++) {
        size_t from = n / t * i, to = i + 1 == t ? n : n / t * (i + 1);
        part[i] = (struct part){dst + from, src + from, to - from};
        started[i] = i > 0 && pthread_create(&id[i], NULL, work, &part[i]) == 0;
    }
    for (unsigned i = 0; i < t; i++)
        if (!started[i])
            work(&part[i]);
    for (unsigned i = 0; i < t; i++)
        if (started[i])
            pthread_join(id[i], NULL);
    return now() - begin;
}
