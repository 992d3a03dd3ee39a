/* pool.c - threads that run ranges of programs.
 *
 * One batch at a time.  Each participant takes the next chunk from an atomic counter until
 * none is left, so that slow cores take fewer.  The caller is one of them: a batch of one
 * chunk touches no lock but the batch lock.  Workers sleep between batches and block all
 * signals, which are the host's.
 *
 * A forked child has the structure but not the threads, and its locks may be held by threads
 * that are gone; so the process id is compared before anything else is touched.
 *
 * A worker that the kernel wakes on the caller's core stands in a queue behind the caller, which
 * works on: it begins when the batch is over (seen on two cores: every second launch took twice
 * the time).  So workers may run anywhere but there. */
#define _GNU_SOURCE
#include "rt/rt.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

struct kl_pool {
    kl_alloc al;
    pid_t pid;
    uint32_t want;    /* threads, the caller among them */
    uint32_t started; /* workers; under batch */
    bool tried;       /* to start them; under batch */
    pthread_t *worker;
    cpu_set_t cores;  /* that workers may use; under batch */
    int avoided;      /* the caller's core, which they keep off; -1: none; under batch */
    pthread_mutex_t batch; /* held for a whole batch */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work, idle;
    uint64_t serial;      /* number of the batch */
    uint32_t next_thread; /* number that the next participant takes */
    uint32_t busy;        /* workers inside the batch */
    bool open;            /* there is a batch that a worker may join */
    bool stop;
    kl_pool_fn *fn;
    void *user;
    uint64_t n, chunk;

    atomic_uint_fast64_t next; /* first item that nobody took */
};

static void call(kl_pool_fn *fn, void *user, uint32_t thread, int64_t begin, int64_t end)
{
    fenv_t old;
    fegetenv(&old);
    fesetenv(FE_DFL_ENV);
    fn(user, thread, begin, end);
    fesetenv(&old);
}

static void take_chunks(kl_pool *p, uint32_t thread)
{
    fenv_t old;
    fegetenv(&old);
    fesetenv(FE_DFL_ENV);
    for (;;) {
        uint64_t at = atomic_fetch_add_explicit(&p->next, p->chunk, memory_order_relaxed);
        if (at >= p->n)
            break;
        uint64_t end = p->n - at < p->chunk ? p->n : at + p->chunk;
        p->fn(p->user, thread, (int64_t)at, (int64_t)end);
    }
    fesetenv(&old);
}

static void *worker(void *arg)
{
    kl_pool *p = arg;
    uint64_t seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stop && (!p->open || p->serial == seen))
            pthread_cond_wait(&p->work, &p->lock);
        if (p->stop)
            break;
        seen = p->serial;
        p->busy++;
        uint32_t me = p->next_thread++;
        pthread_mutex_unlock(&p->lock);
        take_chunks(p, me);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

kl_pool *kl_pool_new(const kl_alloc *al, uint32_t threads)
{
    kl_pool *p = al->fn(al->user, NULL, 0, sizeof *p);
    if (!p)
        return NULL;
    memset(p, 0, sizeof *p);
    p->al = *al;
    p->pid = getpid();
    p->avoided = -1;
    p->want = threads ? threads : kl_cpu_count();
    if (p->want > 4096)
        p->want = 4096;
    p->worker = al->fn(al->user, NULL, 0, p->want * sizeof *p->worker);
    if (!p->worker) {
        al->fn(al->user, p, sizeof *p, 0);
        return NULL;
    }
    pthread_mutex_init(&p->batch, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->idle, NULL);
    atomic_init(&p->next, 0);
    return p;
}

bool kl_pool_forked(const kl_pool *p)
{
    return p->pid != getpid();
}

void kl_pool_free(kl_pool *p)
{
    if (!p)
        return;
    if (!kl_pool_forked(p)) {
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
        for (uint32_t i = 0; i < p->started; i++)
            pthread_join(p->worker[i], NULL);
        pthread_cond_destroy(&p->work);
        pthread_cond_destroy(&p->idle);
        pthread_mutex_destroy(&p->lock);
        pthread_mutex_destroy(&p->batch);
    }
    kl_alloc al = p->al;
    al.fn(al.user, p->worker, p->want * sizeof *p->worker, 0);
    al.fn(al.user, p, sizeof *p, 0);
}

/* Start the workers, once; what cannot be started is done without.  Under batch. */
static void start(kl_pool *p)
{
    enum { STACK = 8 << 20 };
    sigset_t all, old;
    pthread_attr_t attr;
    if (p->tried || pthread_attr_init(&attr) != 0)
        return;
    p->tried = true;
    if (sched_getaffinity(0, sizeof p->cores, &p->cores) != 0)
        CPU_ZERO(&p->cores); /* more cores than a set holds: no one is kept off */
    pthread_attr_setstacksize(&attr, STACK); /* not the host's ulimit */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (p->started + 1 < p->want) {
        if (pthread_create(&p->worker[p->started], &attr, worker, p) != 0)
            break;
        p->started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

/* Best effort; a call of the system only when the caller has moved.  Under batch. */
static void keep_off(kl_pool *p)
{
    int core = sched_getcpu();
    if (core < 0 || core >= CPU_SETSIZE || core == p->avoided || CPU_COUNT(&p->cores) < 2)
        return;
    cpu_set_t rest = p->cores;
    CPU_CLR(core, &rest);
    for (uint32_t i = 0; i < p->started; i++)
        pthread_setaffinity_np(p->worker[i], sizeof rest, &rest);
    p->avoided = core;
}

void kl_pool_run(kl_pool *p, int64_t n, kl_pool_fn *fn, void *user)
{
    if (n <= 0)
        return;
    if (kl_pool_forked(p)) {
        call(fn, user, 0, 0, n);
        return;
    }
    pthread_mutex_lock(&p->batch);
    if (n > 1)
        start(p);
    if (n == 1 || p->started == 0) {
        call(fn, user, 0, 0, n);
        pthread_mutex_unlock(&p->batch);
        return;
    }
    keep_off(p);
    /* eight chunks a thread: fine enough to even out, coarse enough to stay cheap */
    uint64_t parts = ((uint64_t)p->started + 1) * 8;
    pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->user = user;
    p->n = (uint64_t)n;
    p->chunk = ((uint64_t)n + parts - 1) / parts;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->next_thread = 1;
    p->serial++;
    p->open = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    take_chunks(p, 0);
    /* all is taken: who has not come by now need not be waited for */
    pthread_mutex_lock(&p->lock);
    p->open = false;
    while (p->busy)
        pthread_cond_wait(&p->idle, &p->lock);
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_unlock(&p->batch);
}

uint32_t kl_pool_threads(const kl_pool *p)
{
    return p->want;
}
