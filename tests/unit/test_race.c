/* test_race.c - races between programs against a plain search of all pairs: in any order of the
 * programs the same pairs of places, with acquire and release none that is ordered; sums of floats
 * in two orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/elem.h"
#include "base/race.h"
#include "base/sums.h"

enum { PROGRAMS = 5, STEPS = 6, BYTES = 12, SITES = 6, RUNS = 3000 };

static uint32_t seed;
static uint32_t below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

struct step {
    enum kl_touch touch;
    uint32_t at, bytes, site;
    bool acquire, release;
};

/* An access of a run, and which earlier ones of the run came before it. */
struct event {
    struct step s;
    uint32_t program;
};

static struct step plan[PROGRAMS][STEPS];
static _Alignas(8) char memory[BYTES];

static bool writes(enum kl_touch t)
{
    return t == KL_TOUCH_WRITE || t == KL_TOUCH_ATOMIC;
}

static bool atomic(enum kl_touch t)
{
    return t == KL_TOUCH_ATOMIC || t == KL_TOUCH_ATOMIC_READ;
}

static bool conflict(const struct event *a, const struct event *b)
{
    return a->program != b->program && a->s.at < b->s.at + b->s.bytes &&
           b->s.at < a->s.at + a->s.bytes && (writes(a->s.touch) || writes(b->s.touch)) &&
           !(atomic(a->s.touch) && atomic(b->s.touch));
}

/* [kind: both write, one reads][site][site] */
typedef bool pairs[2][SITES][SITES];

static void note(pairs p, const struct kl_race_hit *h)
{
    bool reads = !(writes(h->now) && writes(h->then));
    p[reads][h->site][h->old_site] = p[reads][h->old_site][h->site] = true;
}

static pairs found;

static void hit(void *user, const struct kl_race_hit *h)
{
    (void)user;
    assert_int_not_equal(h->program, h->old_program);
    assert_true(writes(h->now) || writes(h->then));
    assert_false(atomic(h->now) && atomic(h->then));
    note(found, h);
}

/* Small elements may lie in a larger one: all is counted in bytes. */
static void make_plan(bool synced)
{
    for (uint32_t p = 0; p < PROGRAMS; p++)
        for (uint32_t k = 0; k < STEPS; k++) {
            struct step *s = &plan[p][k];
            s->touch = (enum kl_touch)below(4);
            s->bytes = atomic(s->touch) ? 4 : 1u << below(3);
            s->at = below(BYTES / s->bytes) * s->bytes;
            s->site = below(SITES);
            s->acquire = synced && atomic(s->touch) && below(2);
            s->release = synced && s->touch == KL_TOUCH_ATOMIC && below(2);
        }
}

static void shuffle(uint32_t *order)
{
    for (uint32_t i = 0; i < PROGRAMS; i++)
        order[i] = i;
    for (uint32_t i = PROGRAMS; i-- > 1;) {
        uint32_t j = below(i + 1), x = order[i];
        order[i] = order[j], order[j] = x;
    }
}

static void run(kl_env *env, const uint32_t *order, bool synced)
{
    kl_arena a = {.env = env};
    struct kl_race_mem m = {memory, memory, memory + BYTES, 1, true, false};
    struct kl_race_span *span;
    struct kl_race q;
    uint32_t n;
    assert_true(kl_race_spans(&a, &m, 1, &span, &n));
    assert_int_equal(n, 1);
    kl_race_open(&q, &a, PROGRAMS, hit);
    q.synced = synced;
    memset(found, 0, sizeof found);
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        kl_race_program(&q, order[i]);
        for (uint32_t k = 0; k < STEPS; k++) {
            const struct step *s = &plan[order[i]][k];
            if (atomic(s->touch))
                kl_race_sync(&q, memory + s->at, true, s->touch == KL_TOUCH_ATOMIC, s->acquire,
                             s->release);
            kl_race_touch(&q, span, memory + s->at, s->bytes, 0, 1, s->touch, s->site, 0);
        }
    }
    kl_arena_free(&a);
}

static void in_any_order(void **state)
{
    kl_env env = {.al = &kl_alloc_libc};
    jmp_buf jump;
    env.fail = &jump;
    (void)state;
    if (setjmp(jump))
        fail();
    for (uint32_t r = 0; r < RUNS; r++) {
        pairs want = {{{false}}};
        uint32_t order[PROGRAMS];
        make_plan(false);
        for (uint32_t p = 0; p < PROGRAMS * STEPS; p++)
            for (uint32_t q = 0; q < PROGRAMS * STEPS; q++) {
                struct event a = {plan[p / STEPS][p % STEPS], p / STEPS};
                struct event b = {plan[q / STEPS][q % STEPS], q / STEPS};
                bool reads = !(writes(a.s.touch) && writes(b.s.touch));
                if (conflict(&a, &b))
                    want[reads][a.s.site][b.s.site] = want[reads][b.s.site][a.s.site] = true;
            }
        for (int turn = 0; turn < 3; turn++) {
            shuffle(order);
            run(&env, order, false);
            assert_memory_equal(found, want, sizeof want);
        }
    }
}

/* Before: program order, and a release whose value an acquire reads, through changes between. */
static void in_order_of_atomics(void **state)
{
    enum { N = PROGRAMS * STEPS };
    static bool before[N][N];
    kl_env env = {.al = &kl_alloc_libc};
    jmp_buf jump;
    uint32_t volatile races = 0;
    env.fail = &jump;
    (void)state;
    if (setjmp(jump))
        fail();
    for (uint32_t r = 0; r < RUNS; r++) {
        uint32_t order[PROGRAMS];
        struct event e[N];
        pairs possible = {{{false}}};
        bool any = false, told = false;
        make_plan(true);
        shuffle(order);
        for (uint32_t i = 0; i < N; i++)
            e[i] = (struct event){plan[order[i / STEPS]][i % STEPS], order[i / STEPS]};
        memset(before, 0, sizeof before);
        for (uint32_t j = 0; j < N; j++)
            for (uint32_t i = j; i-- > 0;) {
                bool same = e[i].program == e[j].program;
                bool handed = e[i].s.release && e[j].s.acquire && e[i].s.at == e[j].s.at;
                if (!same && !handed)
                    continue;
                before[i][j] = true;
                for (uint32_t k = 0; k < i; k++)
                    before[k][j] |= before[k][i];
            }
        for (uint32_t j = 0; j < N; j++)
            for (uint32_t i = 0; i < j; i++) {
                if (before[i][j] || !conflict(&e[i], &e[j]))
                    continue;
                bool reads = !(writes(e[i].s.touch) && writes(e[j].s.touch));
                any = true;
                possible[reads][e[i].s.site][e[j].s.site] = true;
                possible[reads][e[j].s.site][e[i].s.site] = true;
            }
        run(&env, order, true);
        for (int k = 0; k < 2; k++)
            for (int a = 0; a < SITES; a++)
                for (int b = 0; b < SITES; b++) {
                    told |= found[k][a][b];
                    assert_false(found[k][a][b] && !possible[k][a][b]);
                }
        assert_int_equal(told, any);
        races += any;
    }
    assert_true(races > RUNS / 20);
}

/* A hand-over of one place that all is ordered by, and one without the release. */
static void handed_over(void **state)
{
    kl_env env = {.al = &kl_alloc_libc};
    jmp_buf jump;
    env.fail = &jump;
    (void)state;
    if (setjmp(jump))
        fail();
    for (int good = 0; good < 2; good++) {
        kl_arena a = {.env = &env};
        struct kl_race_mem m = {memory, memory, memory + BYTES, 4, true, false};
        struct kl_race_span *span;
        struct kl_race q;
        uint32_t n;
        kl_race_spans(&a, &m, 1, &span, &n);
        assert_int_equal(span->shift, 2);
        kl_race_open(&q, &a, 3, hit);
        q.synced = true;
        memset(found, 0, sizeof found);
        for (uint32_t p = 0; p < 3; p++) {
            kl_race_program(&q, p);
            kl_race_sync(&q, memory, true, true, true, good);
            kl_race_touch(&q, span, memory, 4, 0, 1, KL_TOUCH_ATOMIC, 1, 0);
            kl_race_touch(&q, span, memory + 4, 4, 0, 1, KL_TOUCH_WRITE, 2, 0);
            kl_race_sync(&q, memory, true, true, true, good);
            kl_race_touch(&q, span, memory, 4, 0, 1, KL_TOUCH_ATOMIC, 1, 0);
        }
        assert_int_equal(found[0][2][2], !good);
        kl_arena_free(&a);
    }
}

/* Arrays that overlap are one span, with a unit that fits both; hidden ones are none. */
static void spans(void **state)
{
    static _Alignas(8) char mem[64];
    kl_env env = {.al = &kl_alloc_libc};
    jmp_buf jump;
    env.fail = &jump;
    (void)state;
    if (setjmp(jump))
        fail();
    kl_arena a = {.env = &env};
    struct kl_race_mem m[] = {{mem, mem, mem + 16, 4, false, false},
                              {mem + 10, mem + 10, mem + 20, 2, true, false},
                              {mem + 24, mem + 24, mem + 40, 8, false, false},
                              {mem + 40, mem + 40, mem + 64, 8, true, true}};
    struct kl_race_span *s;
    uint32_t n;
    assert_true(kl_race_spans(&a, m, 4, &s, &n));
    assert_int_equal(n, 2);
    struct kl_race_span *x = kl_race_span_of(s, n, mem + 5);
    assert_non_null(x);
    assert_ptr_equal(x->lo, mem);
    assert_ptr_equal(x->hi, mem + 20);
    assert_int_equal(x->shift, 1);
    assert_non_null(x->cell);
    assert_null(kl_race_span_of(s, n, mem + 30)->cell);
    assert_null(kl_race_span_of(s, n, mem + 50));
    m[1].hi = (const char *)((uintptr_t)mem + ((size_t)1 << 40)); /* only counted */
    assert_false(kl_race_spans(&a, m, 4, &s, &n));
    kl_arena_free(&a);
}

static void sums(void **state)
{
    static const float value[] = {1e8f, 1, -1e8f, 1};
    kl_env env = {.al = &kl_alloc_libc};
    jmp_buf jump;
    env.fail = &jump;
    (void)state;
    if (setjmp(jump))
        fail();
    for (int exact = 0; exact < 2; exact++) {
        kl_arena a = {.env = &env};
        struct kl_sums q = {.a = &a};
        float s = 0;
        for (uint32_t p = 0; p < 4; p++) {
            float v = exact ? (float)p : value[p];
            struct kl_sum x = {kl_f32_bits(s), kl_f32_bits(v), memory, p, 1, 0, 7, false};
            kl_sums_add(&q, &x);
            s += v;
        }
        uint32_t n;
        const struct kl_sum_order *o = kl_sums_orders(&q, &n);
        assert_int_equal(n, !exact);
        if (!exact) {
            assert_int_equal(o->site, 7);
            assert_int_equal(o->bits[0], kl_f32_bits(1)); /* 1e8 + 1 is 1e8 */
            assert_int_equal(o->bits[1], kl_f32_bits(0)); /* -1e8 + 1 is -1e8 */
        }
        kl_arena_free(&a);
    }
}

/* ---- rows: all of a block at once, or element by element ---- */

enum { ROW = 300, HITS = 4096 };
static _Alignas(8) char row_memory[4 * ROW];
struct said {
    struct kl_race_hit h[HITS];
    uint32_t n;
};

static void say(void *user, const struct kl_race_hit *h)
{
    struct said *x = user;
    if (x->n < HITS)
        x->h[x->n] = *h;
    x->n++;
}

static void rows(void **state)
{
    (void)state;
    static struct said said[2];
    kl_env env = {.al = &kl_alloc_libc};
    uint32_t hits = 0, quiet = 0;
    for (uint32_t turn = 0; turn < 400; turn++) {
        kl_arena a[2] = {{.env = &env}, {.env = &env}};
        struct kl_race_mem m = {row_memory, row_memory, row_memory + sizeof row_memory, 4, true, false};
        struct kl_race_span *span[2];
        struct kl_race q[2];
        uint32_t n;
        bool synced = below(2), tidy = below(2);
        for (int k = 0; k < 2; k++) {
            assert_true(kl_race_spans(&a[k], &m, 1, &span[k], &n));
            kl_race_open(&q[k], &a[k], PROGRAMS, say);
            q[k].user = &said[k];
            q[k].synced = synced;
            said[k].n = 0;
        }
        for (uint32_t p = 0; p < PROGRAMS; p++) {
            for (int k = 0; k < 2; k++)
                kl_race_program(&q[k], p);
            for (uint32_t i = 0; i < STEPS; i++) {
                uint32_t at = tidy ? p * 64 - below(2) * (p > 0) * below(4) : below(ROW - 100);
                uint32_t len = 1 + below(tidy ? 44 : 100), site = below(SITES), lane = below(9);
                enum kl_touch touch = below(8) ? (enum kl_touch)below(2) : KL_TOUCH_ATOMIC;
                bool back = !below(8);
                char *from = row_memory + 4 * (back ? at + len - 1 : at);
                if (tidy && below(2))
                    len = 32, at = p * 64, back = false, from = row_memory + 4 * at;
                for (int k = 0; k < 2; k++) {
                    if (touch == KL_TOUCH_ATOMIC)
                        kl_race_sync(&q[k], row_memory, true, true, site & 1, site & 2);
                    for (uint32_t j = 0; j < (k ? len : 1); j++)
                        kl_race_touch(&q[k], span[k], from + (back ? -4 : 4) * (int64_t)j, 4, back ? -4 : 4,
                                      k ? 1 : len, touch, site, lane + j);
                }
            }
        }
        assert_int_equal(said[0].n, said[1].n);
        for (uint32_t i = 0; i < said[0].n && i < HITS; i++)
            assert_memory_equal(&said[0].h[i], &said[1].h[i], offsetof(struct kl_race_hit, at));
        hits += said[0].n > 0, quiet += said[0].n == 0;
        uint32_t closed = 0;
        for (uint32_t b = 0; b < ROW / KL_RACE_BLOCK; b++)
            closed += !span[0]->block[b].open && span[0]->block[b].all.w;
        quiet += closed > 2; /* some were never looked at one by one */
        /* after both are cleared nothing is known */
        for (int k = 0; k < 2; k++) {
            kl_race_clear(span[k]);
            assert_int_equal(kl_race_cell(span[k], row_memory)->w, 0);
            kl_arena_free(&a[k]);
        }
    }
    assert_in_range(hits, 20, 399);
    assert_in_range(quiet, 20, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_any_order), cmocka_unit_test(in_order_of_atomics),
        cmocka_unit_test(handed_over),  cmocka_unit_test(spans),
        cmocka_unit_test(sums),         cmocka_unit_test(rows),
    };
    seed = 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
