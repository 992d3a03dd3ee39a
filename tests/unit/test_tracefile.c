/* test_tracefile.c - the time line of `kiln trace`: order, JSON, the table; with the name of a file,
 * whether that is a time line as it should be. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace/trace.h"

/* ---- what makes a time line a right one ---- */

struct track {
    long long pid, tid;
    long long last;           /* where the latest span began, ns */
    long long open[32], nopen; /* where the open ones end */
    bool named;
};
struct tracks {
    struct track v[64];
    size_t n;
};

static struct track *track(struct tracks *t, const json_t *e)
{
    long long pid = json_integer_value(json_object_get(e, "pid"));
    long long tid = json_integer_value(json_object_get(e, "tid"));
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].pid == pid && t->v[i].tid == tid)
            return &t->v[i];
    if (t->n == 64)
        return NULL;
    t->v[t->n] = (struct track){.pid = pid, .tid = tid};
    return &t->v[t->n++];
}

static long long ns(const json_t *e, const char *key)
{
    const json_t *v = json_object_get(e, key);
    return json_is_number(v) ? (long long)(json_number_value(v) * 1000 + 0.5) : -1;
}

static const char *str(const json_t *e, const char *key)
{
    const char *s = json_string_value(json_object_get(e, key));
    return s ? s : "";
}

/* Keys; times do not go back; spans nest on each track, and on the device they do not overlap. */
static const char *span(struct tracks *t, const json_t *e)
{
    struct track *k = track(t, e);
    long long ts = ns(e, "ts"), end = ts + ns(e, "dur");
    if (!k || ts < 0 || end < ts || !*str(e, "cat") || !json_is_string(json_object_get(e, "name")) ||
        !json_is_object(json_object_get(e, "args")))
        return "a span lacks something";
    if (!k->named)
        return "a span on a track without a name";
    if (ts < k->last)
        return "times go back";
    k->last = ts;
    while (k->nopen && k->open[k->nopen - 1] <= ts)
        k->nopen--;
    if (k->nopen && (k->pid == 2 || k->open[k->nopen - 1] < end))
        return k->pid == 2 ? "spans overlap on a stream" : "spans overlap without nesting";
    if (k->nopen == 32)
        return "spans are nested too deeply";
    k->open[k->nopen++] = end;
    return NULL;
}

/* Perfetto takes a thread 0, and one with the number of its process, for the main thread, and would
 * lay both onto one track. */
static const char *thread_number(const json_t *e)
{
    long long pid = json_integer_value(json_object_get(e, "pid"));
    long long tid = json_integer_value(json_object_get(e, "tid"));
    return tid == 0 ? "a span on thread 0" : tid == pid && pid != 1 ? "a main thread not of the host"
                                                                    : NULL;
}

/* What is found by its name is one thing: no call of the host, and no worker's part, is named like
 * work. */
static const char *called_like(const json_t *all, const json_t *e)
{
    const json_t *o;
    size_t i;
    long long pid = json_integer_value(json_object_get(e, "pid"));
    if (pid == 3 || (strcmp(str(e, "cat"), "kernel") != 0 && pid != 2))
        return NULL;
    json_array_foreach(all, i, o) {
        long long other = json_integer_value(json_object_get(o, "pid"));
        if (strcmp(str(o, "ph"), "X") == 0 && strcmp(str(o, "name"), str(e, "name")) == 0 &&
            (other == 3 || (other == 1 && strcmp(str(o, "cat"), "kernel") != 0)))
            return "a call or a worker is named like what runs";
    }
    return NULL;
}

/* Buffers: some bytes at a time that does not go back, in the end none if all were freed. */
static const char *counter(long long *last, const json_t *e)
{
    const json_t *bytes = json_object_get(json_object_get(e, "args"), "bytes");
    long long ts = ns(e, "ts"), before = *last;
    *last = ts;
    return strcmp(str(e, "name"), "buffers") != 0 || !json_is_integer(bytes) ||
                   json_integer_value(bytes) < 0 || json_object_size(json_object_get(e, "args")) != 1
               ? "a counter that counts nothing"
           : ts < 0 || ts < before ? "a counter goes back in time"
                                   : NULL;
}

/* Each end of a flow lies at the beginning of a span of its track; both are there, once. */
static const char *flow(const json_t *all, const json_t *e)
{
    const json_t *o;
    size_t i, there = 0, other = 0;
    long long id = json_integer_value(json_object_get(e, "id"));
    bool from = strcmp(str(e, "ph"), "s") == 0;
    if (!id || (!from && strcmp(str(e, "bp"), "e") != 0))
        return "a flow lacks something";
    json_array_foreach(all, i, o) {
        bool same = json_integer_value(json_object_get(o, "pid")) ==
                        json_integer_value(json_object_get(e, "pid")) &&
                    json_integer_value(json_object_get(o, "tid")) ==
                        json_integer_value(json_object_get(e, "tid"));
        there += same && strcmp(str(o, "ph"), "X") == 0 && ns(o, "ts") == ns(e, "ts") &&
                 json_integer_value(json_object_get(json_object_get(o, "args"), "id")) == id;
        other += strcmp(str(o, "ph"), from ? "f" : "s") == 0 &&
                 json_integer_value(json_object_get(o, "id")) == id;
    }
    return there != 1 ? "an end of a flow lies nowhere" : other != 1 ? "half a flow" : NULL;
}

static const char *wrong(const json_t *root)
{
    static struct tracks t;
    const json_t *all = json_object_get(root, "traceEvents"), *e;
    const char *why = NULL;
    long long counted = 0;
    size_t i;
    t.n = 0;
    if (!json_is_array(all))
        return "no array of events";
    json_array_foreach(all, i, e) {
        const char *ph = str(e, "ph");
        if (why)
            break;
        if (!json_is_integer(json_object_get(e, "pid")) ||
            !json_is_integer(json_object_get(e, "tid")))
            return "an event of nobody";
        if (strcmp(ph, "M") != 0 && (why = thread_number(e)))
            break;
        if (strcmp(ph, "X") == 0)
            why = (why = span(&t, e)) ? why : called_like(all, e);
        else if (strcmp(ph, "s") == 0 || strcmp(ph, "f") == 0)
            why = flow(all, e);
        else if (strcmp(ph, "C") == 0)
            why = counter(&counted, e);
        else if (strcmp(ph, "M") != 0)
            why = "an unknown kind of event";
        else if (strcmp(str(e, "name"), "thread_name") == 0)
            track(&t, e)->named = true;
    }
    return why;
}

static size_t count(const json_t *root, const char *ph, const char *cat, int pid)
{
    const json_t *e;
    size_t i, n = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), i, e)
        n += strcmp(str(e, "ph"), ph) == 0 && (!cat || strcmp(str(e, "cat"), cat) == 0) &&
             (!pid || json_integer_value(json_object_get(e, "pid")) == pid);
    return n;
}

static int check_file(const char *path)
{
    json_error_t err;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &err);
    const char *why = root ? wrong(root) : err.text;
    if (why)
        fprintf(stderr, "%s: %s\n", path, why);
    else
        printf("right: %zu kernels on the device, %zu of the host, %zu of workers, %zu copies on "
               "the device, %zu flows\n",
               count(root, "X", "kernel", 2), count(root, "X", "kernel", 1),
               count(root, "X", "kernel", 3), count(root, "X", "copy", 2),
               count(root, "s", NULL, 0));
    json_decref(root);
    return why != NULL;
}

/* ---- invented ones ---- */

static void tell(struct kl_tracer *t, kiln_trace_kind kind, kiln_trace_place place,
                 uint64_t thread, const char *name, uint64_t begin, uint64_t end, uint64_t id)
{
    kiln_trace_event e = {.size = sizeof e,
                          .kind = kind,
                          .phase = place == KILN_TRACE_HOST ? KILN_TRACE_END : KILN_TRACE_SPAN,
                          .place = place,
                          .name = name,
                          .detail = "x=4:f32",
                          .begin_ns = begin,
                          .end_ns = end,
                          .id = id,
                          .thread = place == KILN_TRACE_DEVICE ? 0 : thread,
                          .stream = place == KILN_TRACE_DEVICE ? thread : 0,
                          .bytes = kind == KILN_TRACE_COPY || kind == KILN_TRACE_KERNEL ? 4096 : 0,
                          .error_ns = place == KILN_TRACE_DEVICE ? 1500 : 0};
    kl_tracer_hear(t, &e);
}

static void invent(struct kl_tracer *t)
{
    kl_tracer_init(t);
    t->thread = 77;
    t->begin = 1000000;
    t->end = 2000000;
    t->device = "A \"GPU\"";
    /* told at their ends, so inner ones first */
    tell(t, KILN_TRACE_LOWER, KILN_TRACE_HOST, 77, "k", 1000100, 1000200, 0);
    tell(t, KILN_TRACE_PASSES, KILN_TRACE_HOST, 77, "k", 1000200, 1000300, 0);
    tell(t, KILN_TRACE_COMPILER, KILN_TRACE_HOST, 77, "k", 1000300, 1100000, 0);
    tell(t, KILN_TRACE_LAUNCH, KILN_TRACE_HOST, 77, "k", 1000100, 1101000, 1);
    tell(t, KILN_TRACE_LAUNCH, KILN_TRACE_HOST, 77, "k", 1101000, 1102000, 2);
    tell(t, KILN_TRACE_LAUNCH, KILN_TRACE_HOST, 78, "other", 1100500, 1102500, 3);
    tell(t, KILN_TRACE_COPY, KILN_TRACE_HOST, 77, "upload", 1103000, 1104000, 4);
    tell(t, KILN_TRACE_WAIT, KILN_TRACE_HOST, 77, "kiln_sync", 1104000, 1400000, 0);
    tell(t, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE, 0, "k", 1110000, 1120000, 1);
    tell(t, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE, 0, "k", 1120000, 1150000, 2);
    tell(t, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE, 1, "other", 1115000, 1125000, 3);
    tell(t, KILN_TRACE_COPY, KILN_TRACE_DEVICE, 0, "upload", 1150000, 1154096, 4);
    /* nothing took any time: what was told last lies around */
    tell(t, KILN_TRACE_BIND, KILN_TRACE_HOST, 77, "k", 1500000, 1500000, 0);
    tell(t, KILN_TRACE_LAUNCH, KILN_TRACE_HOST, 77, "k", 1500000, 1500000, 5);
    kl_tracer_order(t);
}

static json_t *load(const struct kl_tracer *t)
{
    json_error_t err;
    size_t n;
    char *text = kl_tracer_json(t, &n);
    assert_int_equal(strlen(text), n);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &err);
    if (!root)
        fail_msg("%s at %d: %s", err.text, err.position, text);
    free(text);
    return root;
}

static void order_and_flows(void **state)
{
    struct kl_tracer t;
    (void)state;
    invent(&t);
    json_t *root = load(&t);
    const char *why = wrong(root);
    if (why)
        fail_msg("%s", why);
    assert_int_equal(count(root, "X", NULL, 0), 14);
    assert_int_equal(count(root, "X", "kernel", 2), 3);
    assert_int_equal(count(root, "s", NULL, 1), 4);
    assert_int_equal(count(root, "f", NULL, 2), 4);
    assert_int_equal(t.v[0].self, 1101000 - 1000100 - (1100000 - 1000100));
    assert_int_equal(t.v[t.n - 1].kind, KILN_TRACE_BIND);
    assert_int_equal(t.v[t.n - 2].kind, KILN_TRACE_LAUNCH);
    json_decref(root);
    kl_tracer_free(&t);
}

/* Streams and workers have tracks of their own, in the order of their numbers. */
static void tracks(void **state)
{
    struct kl_tracer t;
    long long before = 0;
    const json_t *e;
    size_t i, n = 0;
    (void)state;
    kl_tracer_init(&t);
    t.thread = 77;
    t.begin = 0;
    t.end = 100;
    tell(&t, KILN_TRACE_SOURCE, KILN_TRACE_HOST, 77, "a.kiln", 0, 5, 0);
    for (uint64_t k = 0; k < 5; k++) {
        tell(&t, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE, k, "k", 10 + k, 50, k + 1);
        tell(&t, KILN_TRACE_KERNEL, KILN_TRACE_WORKER, k, "k", 60 + k, 90, 0);
    }
    kl_tracer_order(&t);
    json_t *root = load(&t);
    if (wrong(root))
        fail_msg("%s", wrong(root));
    json_array_foreach(json_object_get(root, "traceEvents"), i, e) {
        const char *name = str(json_object_get(e, "args"), "name");
        if (strcmp(str(e, "name"), "thread_name") != 0)
            continue;
        static const char *const want[] = {"main",     "default stream", "stream 1", "stream 2",
                                           "stream 3", "stream 4",       "worker 0", "worker 1",
                                           "worker 2", "worker 3",       "worker 4"};
        assert_true(n < 11);
        assert_string_equal(name, want[n++]);
        long long tid = json_integer_value(json_object_get(e, "tid"));
        assert_true(tid > before);
        before = tid;
    }
    assert_int_equal(n, 11);
    assert_int_equal(count(root, "X", "source", 1), 1);
    json_decref(root);
    kl_tracer_free(&t);
}

/* How many bytes lie in buffers, after each call that changes it. */
static void buffers(void **state)
{
    static const struct {
        const char *name;
        uint64_t bytes;
        kiln_status status;
    } call[] = {{"kiln_buffer_alloc", 1000, KILN_OK},
                {"kiln_buffer_alloc", 1 << 30, KILN_E_NOMEM},
                {"kiln_host_alloc", 77, KILN_OK},
                {"kiln_buffer_alloc", 24, KILN_OK},
                {"kiln_buffer_free", 1000, KILN_OK},
                {"kiln_buffer_free", 24, KILN_OK}};
    static const long long want[][2] = {{6, 1000}, {36, 1024}, {40, 24}, {50, 0}};
    struct kl_tracer t;
    const json_t *e;
    size_t i, n = 0;
    (void)state;
    kl_tracer_init(&t);
    t.thread = 7;
    t.begin = 0;
    t.end = 100;
    for (uint64_t k = 0; k < 6; k++) {
        kiln_trace_event m = {.size = sizeof m,
                              .kind = KILN_TRACE_MEMORY,
                              .phase = KILN_TRACE_END,
                              .place = KILN_TRACE_HOST,
                              .name = call[k].name,
                              .detail = "",
                              .begin_ns = 10 * k,
                              .end_ns = 10 * k + 6,
                              .thread = 7,
                              .bytes = call[k].bytes,
                              .status = call[k].status};
        kl_tracer_hear(&t, &m);
    }
    tell(&t, KILN_TRACE_LAUNCH, KILN_TRACE_HOST, 7, "k", 70, 72, 1);
    tell(&t, KILN_TRACE_KERNEL, KILN_TRACE_DEVICE, 0, "k", 75, 80, 1);
    kl_tracer_order(&t);
    json_t *root = load(&t);
    if (wrong(root))
        fail_msg("%s", wrong(root));
    json_array_foreach(json_object_get(root, "traceEvents"), i, e)
        if (strcmp(str(e, "ph"), "C") == 0) {
            assert_true(n < 4);
            assert_int_equal(ns(e, "ts"), want[n][0]);
            assert_int_equal(json_integer_value(json_object_get(json_object_get(e, "args"), "bytes")),
                             want[n][1]);
            n++;
        }
    assert_int_equal(n, 4);
    json_decref(root);
    kl_tracer_free(&t);
}

/* The checks see what is wrong: each time one thing is. */
static void checks_see(void **state)
{
    static const struct {
        kiln_trace_place place;
        uint64_t begin, end, id;
        const char *why;
    } bad[] = {
        {KILN_TRACE_DEVICE, 1119000, 1121000, 9, "spans overlap on a stream"},
        {KILN_TRACE_HOST, 1101500, 1103500, 9, "spans overlap without nesting"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct kl_tracer t;
        invent(&t);
        tell(&t, KILN_TRACE_KERNEL, bad[i].place, bad[i].place == KILN_TRACE_HOST ? 77 : 0, "k",
             bad[i].begin, bad[i].end, bad[i].id);
        kl_tracer_order(&t);
        json_t *root = load(&t);
        assert_non_null(wrong(root));
        assert_string_equal(wrong(root), bad[i].why);
        json_decref(root);
        kl_tracer_free(&t);
    }
}

static void hostile_names(void **state)
{
    static const char *const name[][2] = {
        {"a\"b\\c", "a\"b\\c"},
        {"</script>\n\t\r\x01\x1b[2J\x7f", "</script>\n\t\r\x01\x1b[2J\x7f"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xff\xc3(\xed\xa0\x80\xc0\x80\xf5", "\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                                              "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"end\xe2\x82", "end\xef\xbf\xbd\xef\xbf\xbd"},
        {"", ""},
        {"%s%n", "%s%n"},
    };
    struct kl_tracer t;
    (void)state;
    kl_tracer_init(&t);
    t.begin = 0;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        tell(&t, KILN_TRACE_WAIT, KILN_TRACE_HOST, 1, name[i][0], 10 * i, 10 * i + 5, 0);
    t.device = name[3][0];
    t.end = 100;
    kl_tracer_order(&t);
    json_t *root = load(&t);
    const json_t *e;
    size_t i, k = 0;
    assert_null(wrong(root));
    json_array_foreach(json_object_get(root, "traceEvents"), i, e)
        if (strcmp(str(e, "ph"), "X") == 0)
            assert_string_equal(str(e, "name"), name[k++][1]);
    assert_int_equal(k, sizeof name / sizeof *name);
    /* and in the table nothing moves the cursor */
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    for (i = 0; i < t.n; i++)
        t.v[i].kind = KILN_TRACE_KERNEL;
    kl_tracer_table(&t, f);
    fclose(f);
    assert_non_null(strstr(text, "</script>?????[2J?"));
    assert_null(strpbrk(text, "\x1b\x01\r\x7f"));
    free(text);
    json_decref(root);
    kl_tracer_free(&t);
}

static void nothing_happened(void **state)
{
    struct kl_tracer t;
    char *text = NULL;
    size_t n;
    (void)state;
    kl_tracer_init(&t);
    t.end = t.begin;
    kl_tracer_order(&t);
    json_t *root = load(&t);
    assert_null(wrong(root));
    json_decref(root);
    FILE *f = open_memstream(&text, &n);
    kl_tracer_table(&t, f);
    fclose(f);
    assert_non_null(strstr(text, "none ran"));
    free(text);
    kl_tracer_free(&t);
}

static void the_table(void **state)
{
    static const char want[] =
        "kernels (by GPU events)        runs      total       mean        min        max    share     GB/s\n"
        "k                                 2   40.00 us   20.00 us   10.00 us   30.00 us   80.0 %   0.2048\n"
        "other                             1   10.00 us   10.00 us   10.00 us   10.00 us   20.0 %   0.4096\n"
        "\n"
        "copies                       number      total       mean        min        max    share     GB/s\n"
        "upload                            1   4.096 us   4.096 us   4.096 us   4.096 us  100.0 %        1\n"
        "bytes: upload 4.0 KiB\n"
        "\n"
        "host                          times      total       mean        min        max    share\n"
        "wait for the device               1   296.0 us   296.0 us   296.0 us   296.0 us   29.6 %\n"
        "compile: compiler, assembler      1   99.70 us   99.70 us   99.70 us   99.70 us   10.0 %\n"
        "launch: the call                  4   4.000 us   1.000 us       0 ns   2.000 us    0.4 %\n"
        "copy: the calls                   1   1.000 us   1.000 us   1.000 us   1.000 us    0.1 %\n"
        "compile: lower to IR              1     100 ns     100 ns     100 ns     100 ns    0.0 %\n"
        "compile: passes                   1     100 ns     100 ns     100 ns     100 ns    0.0 %\n"
        "launch: check arguments           1       0 ns       0 ns       0 ns       0 ns    0.0 %\n"
        "else                                  599.1 us                                        59.9 %\n"
        "all                                   1.000 ms\n"
        "\n"
        "the GPU was busy for 44.10 us of the 44.10 us between its first and last work (100.0 %)\n"
        "its times stand on the host's clock to 1.500 us; lengths are its own, to about 1 us\n";
    struct kl_tracer t;
    char *text = NULL;
    size_t n;
    (void)state;
    invent(&t);
    FILE *f = open_memstream(&text, &n);
    kl_tracer_table(&t, f);
    fclose(f);
    assert_string_equal(text, want);
    free(text);
    kl_tracer_free(&t);
}

static char *table_of(const struct kl_tracer *t)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    kl_tracer_table(t, f);
    fclose(f);
    return text;
}

/* One kernel with two shapes has two rows, and a long name is cut so that columns stay. */
static void shapes_and_names(void **state)
{
    static const char want[] =
        "kernels                                                        runs      total       mean   "
        "     min        max    share     GB/s\n"
        "softmax x=2048x1000:f32 y=2048x1000:f32                           2   30.00 us   15.00 us   "
        "10.00 us   20.00 us   75.0 %      200\n"
        "a_kernel_with_a_name_that_no_table_has_room_for_as_long_a...      1   5.000 us   5.000 us   "
        "5.000 us   5.000 us   12.5 %\n"
        "softmax x=8x1000:f32 y=8x1000:f32                                 1   5.000 us   5.000 us   "
        "5.000 us   5.000 us   12.5 %\n";
    kiln_trace_event e = {.size = sizeof e,
                          .kind = KILN_TRACE_KERNEL,
                          .phase = KILN_TRACE_END,
                          .place = KILN_TRACE_HOST,
                          .thread = 7};
    struct kl_tracer t;
    (void)state;
    kl_tracer_init(&t);
    t.thread = 7;
    t.begin = 0;
    t.end = 100000;
    for (uint64_t i = 0; i < 4; i++) {
        static const uint64_t length[] = {10000, 20000, 5000, 5000};
        e.name = i == 3 ? "a_kernel_with_a_name_that_no_table_has_room_for_as_long_as_it_is_\xc3\xa9"
                        : "softmax";
        e.detail = i == 3   ? "x=1:f32"
                   : i == 2 ? "x=8x1000:f32 y=8x1000:f32"
                            : "x=2048x1000:f32 y=2048x1000:f32";
        e.bytes = i < 2 ? 3000000 : 0;
        e.begin_ns = 20000 * i;
        e.end_ns = 20000 * i + length[i];
        kl_tracer_hear(&t, &e);
    }
    kl_tracer_order(&t);
    char *text = table_of(&t);
    assert_memory_equal(text, want, strlen(want));
    free(text);
    kl_tracer_free(&t);
}

/* The numbers of the report are those of the time line. */
static void sums(void **state)
{
    struct kl_tracer t;
    const json_t *r, *e;
    size_t i, k;
    double shares = 0;
    long long host = 0;
    (void)state;
    invent(&t);
    json_t *line = load(&t);
    char *text = kl_tracer_report(&t, "a\xff.json");
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_string_equal(str(root, "time_line"), "a?.json");
    assert_string_equal(str(root, "timed_by"), "events");
    assert_int_equal(json_array_size(json_object_get(root, "kernels")), 2);
    json_array_foreach(json_object_get(root, "kernels"), i, r) {
        long long total = 0, runs = 0, most = 0;
        json_array_foreach(json_object_get(line, "traceEvents"), k, e)
            if (strcmp(str(e, "cat"), "kernel") == 0 && strcmp(str(e, "name"), str(r, "name")) == 0) {
                runs++;
                total += ns(e, "dur");
                most = ns(e, "dur") > most ? ns(e, "dur") : most;
            }
        assert_int_equal(json_integer_value(json_object_get(r, "runs")), runs);
        assert_int_equal(json_integer_value(json_object_get(r, "total_ns")), total);
        assert_int_equal(json_integer_value(json_object_get(r, "max_ns")), most);
        shares += json_real_value(json_object_get(r, "share"));
    }
    assert_true(shares > 0.999999 && shares < 1.000001);
    json_array_foreach(json_object_get(root, "host"), i, r)
        host += json_integer_value(json_object_get(r, "total_ns"));
    assert_int_equal(host + json_integer_value(json_object_get(root, "else_ns")), t.end - t.begin);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "gpu"), "busy_ns")),
                     44096);
    free(text);
    json_decref(root);
    json_decref(line);
    kl_tracer_free(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_flows), cmocka_unit_test(checks_see),
        cmocka_unit_test(hostile_names),   cmocka_unit_test(nothing_happened),
        cmocka_unit_test(the_table),       cmocka_unit_test(tracks),
        cmocka_unit_test(shapes_and_names), cmocka_unit_test(sums),
        cmocka_unit_test(buffers),
    };
    if (argc > 1)
        return check_file(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
