/* test_report.c - the page of `kiln report`: escapes, hostile inputs, the data back out of it, its size,
 * contrasts, and labels of charts. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"

#define EVIL      "<img src=x onerror=alert(1)>"
#define EVIL_JSON "<img src=x onerror=alert(1)></script><!-- \\\"'&\\u202e"

/* ---- pages ---- */

static void add(struct kl_rep *r, const char *name, const char *text)
{
    struct kl_msg m;
    if (!kl_rep_add(r, name, text, strlen(text), &m))
        fail_msg("%s", m.text);
}

static char *page(struct kl_rep *r, size_t *n)
{
    struct kl_msg m;
    char *s = kl_rep_page(r, n, &m);
    if (!s)
        fail_msg("%s", m.text);
    assert_int_equal(strlen(s), *n);
    assert_true(*n < KL_REP_MOST);
    return s;
}

/* The text of <script> number i, its escapes undone by a parser of JSON. */
static json_t *data_of(const char *html, unsigned i)
{
    char tag[80];
    snprintf(tag, sizeof tag, "<script type=\"application/json\" id=\"data-%u\">", i);
    const char *s = strstr(html, tag);
    if (!s)
        fail_msg("no %s", tag);
    s += strlen(tag);
    const char *end = strstr(s, "</script>");
    assert_non_null(end);
    assert_null(memchr(s, '<', (size_t)(end - s)));
    json_t *j = json_loadb(s, (size_t)(end - s), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(j);
    return j;
}

/* What a page must never hold, wherever its texts come from. */
static void harmless(const char *html)
{
    static const char *const never[] = {"<img",        "href=\"http", "url(",   "@import",
                                        "javascript:", "<iframe",     "<object"};
    unsigned scripts = 0;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(html, never[i]))
            fail_msg("%s", never[i]);
    for (const char *s = html; (s = strstr(s, "<script")); s++, scripts++)
        assert_int_equal(strncmp(s, "<script type=\"application/json\" id=\"data-", 41), 0);
    for (const char *s = html; (s = strstr(s, "</script")); s++)
        scripts--;
    assert_int_equal(scripts, 0);
}

static const char explain[] =
    "{\"schema\": \"kiln.explain/1\", \"kernels\": [{\"kernel\": \"" EVIL_JSON
    "\", \"file\": \"" EVIL_JSON "\", \"line\": 2, \"arch\": \"" EVIL_JSON
    "\", \"ptx\": \"7.8\", \"blocks\": 4, \"threads\": 128, \"warps\": 4,"
    "\"constants\": {\"" EVIL "\": \"" EVIL "\"}, \"arrays\": [{\"name\": \"" EVIL
    "\", \"type\": \"" EVIL "\", \"shape\": [4, 5], \"bytes\": 80}], \"gpu\": {\"name\": \"" EVIL
    "\", \"label\": \"" EVIL "\", \"sms\": 4, \"memory_gbs\": 1000.0, \"fp32_tflops\": 10.0, "
    "\"copy_gbs\": 900.0}, \"moved_bytes\": 1000, \"flop\": 500,"
    "\"intensity\": 0.5, \"roofline\": {\"attainable_tflops\": 0.5, \"bound\": \"" EVIL "\"},"
    "\"floors\": [{\"from\": \"" EVIL
    "\", \"gbs\": 1000.0, \"us\": 1.0}], \"registers\": {\"from\": \"" EVIL
    "\", \"registers\": 40}, \"occupancy\": {\"blocks\": 4, \"warps\": 16, \"warps_most\": 64, "
    "\"share\": 0.25, \"limited_by\": [\"" EVIL "\", \"" EVIL EVIL EVIL "\", \"" EVIL EVIL EVIL
    "\", \"" EVIL EVIL EVIL "\"]},"
    "\"ladder\": {\"registers\": [{\"from\": 1, \"to\": 64, \"blocks\": 4}, {\"from\": 65, \"to\": "
    "255, \"blocks\": 2}],"
    "\"shared\": [{\"from\": 0, \"to\": 9999, \"blocks\": 4}], \"threads\": [{\"from\": 128, "
    "\"to\": 128, \"blocks\": 4}]},"
    "\"model\": {\"exact\": true, \"lines\": [{\"file\": \"" EVIL_JSON
    "\", \"line\": 3, \"global_load\": {\"requests\": 2, \"units\": 64,"
    "\"ideal\": 8, \"bytes\": 256}}, {\"file\": \"" EVIL
    "\", \"line\": 9}], \"accesses\": [{\"place\": {\"file\": \"" EVIL_JSON
    "\", \"line\": 3, \"source\": \"" EVIL "\"}}], \"unknown\": [{\"line\": 3, \"text\": \"" EVIL
    "\", \"count\": 2}]},"
    "\"notes\": [{\"code\": \"" EVIL "\", \"severity\": \"note\", \"text\": \"" EVIL_JSON
    "\", \"place\": {\"file\": \"" EVIL_JSON "\", \"line\": 3, \"source\": \"" EVIL
    "\"}, \"notes\": [{\"text\": \"" EVIL "\"}], \"fix\": {\"text\": \"" EVIL "\"}},"
    "{\"code\": \"K1\", \"severity\": \"error\", \"text\": \"nowhere\"}]}]}";

static const char bench[] =
    "{\"schema\": \"kiln.bench/1\", \"kiln\": \"" EVIL "\", \"build\": \"" EVIL
    "\", \"devices\": [{\"device\": \"" EVIL "\", \"name\": \"" EVIL "\", \"throttle\": \"" EVIL
    "\", \"copy_gbs\": [1.5, 2.5], \"read_gbs\": [3.5, 4.5]}], \"notes\": [\"" EVIL
    "\"], \"rows\": ["
    "{\"kernel\": \"" EVIL "\", \"setting\": \"" EVIL "\", \"shape\": \"" EVIL
    "\", \"point\": \"n=64 T=" EVIL "\", \"device\": \"" EVIL "\", \"check\": \"" EVIL
    "\", \"cold\": {\"median\": 0.125, \"ci\": [0.1, 0.2], \"noise\": 0.01, \"samples\": 5}, "
    "\"bytes\": 1000,"
    "\"flops\": null, \"gbs\": 8.25, \"copy_gbs\": 9.0},"
    "{\"kernel\": \"" EVIL "\", \"setting\": \"" EVIL
    "\", \"shape\": \"s\", \"point\": \"n=128 T=" EVIL "\", \"device\": \"" EVIL
    "\", \"cold\": {\"median\": 1e-7}, \"bytes\": 1000, \"gbs\": 1e300, \"copy_gbs\": -1, \"vs\": "
    "{\"ratio\": 0.5, \"state\": \"" EVIL "\"}},"
    "{\"kernel\": \"k\", \"shape\": \"s\", \"point\": \"n=256 T=" EVIL "\", \"device\": \"" EVIL
    "\", \"warm\": {\"median\": 2}, \"bytes\": 4000, \"gbs\": 10, \"flops\": 8000},"
    "{\"kernel\": \"k\", \"shape\": \"s\", \"point\": \"\", \"device\": \"" EVIL
    "\", \"failed\": true, \"note\": \"" EVIL "\"},"
    "{\"kernel\": \"b\", \"shape\": \"" EVIL "\", \"point\": \"\", \"device\": \"" EVIL
    "\", \"cold\": {\"median\": 2}, \"gbs\": 3}]}";

static const char check[] =
    "{\"schema\": \"kiln.check/1\", \"file\": \"" EVIL "\", \"kernel\": \"" EVIL
    "\", \"status\": \"" EVIL "\", \"checks\": [\"" EVIL "\"], \"diagnostics\": [{\"code\": \"" EVIL
    "\", \"severity\": \"" EVIL "\", \"text\": \"" EVIL "\", \"place\": {\"file\": \"" EVIL
    "\", \"line\": 1e300, \"source\": \"  " EVIL "\"}, \"notes\": [{\"text\": \"" EVIL "\"}]}]}";

static const char tune[] =
    "kiln-tune 1\n# " EVIL "\n\nkernel " EVIL "\n    device " EVIL "\n    when T=f32\n    use B=8\n"
    "    ms 0.5 default 0.75\nkernel b\n use default\n";

static void hostile(void **state)
{
    struct kl_rep r = {.title = EVIL, .date = EVIL, .commit = EVIL};
    size_t n, again;
    const char *in[] = {explain, bench, check};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        add(&r, EVIL ".json", in[i]);
    add(&r, EVIL, tune);
    r.k[0].source = strdup("one\n" EVIL "\n\x80 \xff \xe2\x80\xae </td>\n}\n");
    r.k[0].ptx = strdup("// " EVIL "\n</pre>\n");
    r.k[0].c = strdup("/* " EVIL " */\n");
    char *s = page(&r, &n);
    harmless(s);
    assert_non_null(strstr(s, "&lt;img src=x onerror=alert(1)&gt;"));
    assert_non_null(strstr(s, "nowhere"));
    assert_null(strstr(s, "\xe2\x80\xae")); /* turns the direction of text */
    char *t = page(&r, &again);
    assert_int_equal(n, again);
    assert_string_equal(s, t);
    free(t);
    for (unsigned i = 0; i < 3; i++) { /* what went in comes out */
        json_t *want = json_loads(in[i], JSON_ALLOW_NUL, NULL), *got = data_of(s, i + 1);
        assert_non_null(want);
        assert_true(json_equal(want, got));
        json_decref(want);
        json_decref(got);
    }
    json_t *paragraphs = data_of(s, 4);
    assert_int_equal(json_array_size(paragraphs), 2);
    assert_string_equal(kl_jstr(json_array_get(paragraphs, 0), "kernel"), EVIL);
    assert_string_equal(kl_jstr(json_array_get(paragraphs, 0), "ms"), "0.5 default 0.75");
    json_decref(paragraphs);
    free(s);
    kl_rep_free(&r);
}

/* Every tag is closed, in order; attributes are quoted; ids are unique. */
static void well_formed(void **state)
{
    static const char *const empty[] = {"meta", "link", "br"};
    struct kl_rep r = {0};
    char stack[64][16], name[16];
    unsigned depth = 0;
    size_t n;
    (void)state;
    add(&r, "a.json", explain);
    add(&r, "b.json", bench);
    add(&r, "c.json", check);
    add(&r, "d.tune", tune);
    char *s = page(&r, &n);
    for (char *p = strchr(s + 15, '<'); p; p = strchr(p, '<')) {
        bool close = p[1] == '/', quoted = false;
        size_t k = 0;
        for (p += 1 + close; isalnum((unsigned char)*p) && k < 15; p++)
            name[k++] = *p;
        name[k] = 0;
        assert_true(k > 0);
        for (; *p && (quoted || *p != '>'); p++)
            quoted ^= *p == '"';
        bool alone = p[-1] == '/';
        for (size_t i = 0; i < 3; i++)
            alone |= strcmp(name, empty[i]) == 0;
        if (close) {
            if (!depth || strcmp(stack[depth - 1], name) != 0)
                fail_msg("</%s> closes <%s>", name, depth ? stack[depth - 1] : "");
            depth--;
        } else if (!alone) {
            assert_true(depth < 64);
            memcpy(stack[depth++], name, sizeof name);
        }
    }
    assert_int_equal(depth, 0);
    for (char *p = s; (p = strstr(p, " id=\"")); p += 5) {
        char id[100];
        snprintf(id, sizeof id, "%.*s\"", (int)strcspn(p + 5, "\"") + 5, p);
        if (strstr(p + 5, id))
            fail_msg("%s twice", id);
    }
    free(s);
    kl_rep_free(&r);
}

/* ---- what the page says ---- */

#define KERNEL(name, more)                                                                         \
    "{\"kernel\": \"" name "\", \"file\": \"dir/a.kiln\", \"line\": 1, \"threads\": 64, "       \
    "\"moved_bytes\": 4258000, \"gpu\": {\"name\": \"G\", \"label\": \"sheet\", \"memory_gbs\": "   \
    "4800.0, \"fp32_tflops\": 50.0}, \"floors\": [{\"from\": \"measured copy\", \"gbs\": 4258.0, "   \
    "\"us\": 1.0}], \"model\": {\"exact\": true}, " more "}"

static const char two[] = "{\"schema\": \"kiln.explain/1\", \"kernels\": [" KERNEL(
    "copies",
    "\"flop\": 0, \"roofline\": null, \"notes\": [{\"code\": \"K2101\", \"severity\": \"note\", "
    "\"text\": \"of `x`\", \"place\": {\"file\": \"dir/a.kiln\", \"line\": 2, \"column\": 3, "
    "\"end_column\": 6, \"source\": \"a bcd e // f\"}, \"notes\": [{\"text\": \"help: do it\"}, "
    "{\"text\": \"expected gain: much\"}]}]") ", " KERNEL("adds", "\"flop\": 1e9, \"notes\": [], "
    "\"roofline\": {\"attainable_tflops\": 50.0, \"bound\": \"compute\", \"peak_of\": \"fp32\"}, "
    "\"occupancy\": {\"share\": 0.5, \"blocks\": 8, \"limited_by\": [\"registers\"]}") "]}";

static void has(const char *html, const char *text)
{
    if (!strstr(html, text))
        fail_msg("not on the page: %s", text);
}

/* The first screen: bounds, what was measured and checked, notes that lead to their lines. */
static void verdict(void **state)
{
    struct kl_rep r = {0};
    size_t n;
    (void)state;
    add(&r, "a.json", two);
    add(&r, "b.json",
        "{\"schema\": \"kiln.bench/1\", \"devices\": [{\"device\": \"cuda\", \"name\": \"G\", "
        "\"copy_gbs\": [900.0, 900.0], \"read_gbs\": [800.0, 900.0]}], \"peers\": [{\"file\": \"p.py\", "
        "\"name\": \"numpy\", \"version\": \"2.<1\"}, {\"file\": \"q.py\", \"name\": \"torch\", "
        "\"version\": null}], "
        "\"rows\": [{\"kernel\": \"copies/f32\", \"device\": \"cuda\", \"bytes\": 4258000, \"gbs\": "
        "2129.0, \"copy_share\": 1.25, \"shape\": \"s\", \"cold\": {\"median\": 0.002}}, "
        "{\"kernel\": \"numpy\", \"peer\": true, "
        "\"device\": \"cuda\", \"shape\": \"s\", \"cold\": {\"median\": 0.003}}, {\"kernel\": \"torch\", "
        "\"peer\": true, \"device\": \"cuda\", \"shape\": \"other\", \"cold\": {\"median\": 9}}]}");
    add(&r, "c.json",
        "{\"schema\": \"kiln.check/1\", \"file\": \"a.kiln\", \"kernel\": \"adds\", \"status\": "
        "\"findings\", \"diagnostics\": [{\"code\": \"K1301\", \"severity\": \"error\"}]}");
    char *s = page(&r, &n);
    has(s, "<h1>copies, adds</h1>");
    has(s, ", measured copy 900 GB/s, measured read 800 to 900 GB/s</li>");
    has(s, "<li>peers: numpy 2.&lt;1, torch (it names no version)</li>");
    has(s, "Above 100 %: faster than what was measured beside it");
    has(s, "<b>Bound by memory</b>: 4.1 MiB must move. On G that takes at least <b>1.00 µs</b>");
    has(s, "<b>Measured</b>: 2.00 µs, cold, 50.0% of the rate of that floor; "
           "1.50× as fast as numpy.</p>");
    has(s, "<b>Bound by arithmetic</b>: 1 GFLOP at the 50 TFLOP/s of fp32 on G take at least "
           "<b>20.0 µs</b>");
    has(s, "<b>Occupancy 50%</b>: 8 blocks of 64 threads on a multiprocessor, limited by registers");
    has(s, "<b>Checked</b>: <span class=\"bad\">findings</span>, <a href=\"#check\">1</a>");
    has(s, "No notes: no rule finds anything to change.");
    has(s, "<a href=\"#k1-n0\">K2101, line 2</a> of <code>x</code><br><b>Do:</b> do it<br><b>Gain:</b> "
           "much</li>");
    has(s, "id=\"k1-n0\"");
    has(s, "a <span class=\"at\">bcd</span> e <span class=\"dim\">// f</span>");
    free(s);
    kl_rep_free(&r);
}

/* What the executor counted, against the model. */
static void agreement(void **state)
{
    static const char form[] =
        "{\"schema\": \"kiln.explain/1\", \"kernels\": [{\"kernel\": \"k\", \"file\": \"a\", "
        "\"model\": {\"lines\": [{\"file\": \"a\", \"line\": 3, \"global_load\": {\"requests\": 4, "
        "\"units\": 64, \"ideal\": 64, \"bytes\": 2048}}]}, \"executor\": {\"lines\": [{\"file\": "
        "\"a\", \"line\": 3, \"global_load\": {\"requests\": 4, \"units\": %d, \"ideal\": 64}}]}}]}";
    (void)state;
    for (int units = 64; units < 66; units++) {
        struct kl_rep r = {0};
        size_t n;
        char *text, *s;
        assert_true(asprintf(&text, form, units) > 0);
        add(&r, "a.json", text);
        s = page(&r, &n);
        has(s, units == 64 ? "The PTX executor counted the same requests, sectors and wavefronts"
                           : "The PTX executor counted otherwise on 1 of 1 lines.");
        has(s, "<h2>In short</h2>");
        free(text);
        free(s);
        kl_rep_free(&r);
    }
}

/* Columns that no row fills are left out; checks that differ in figures are one line. */
static void columns(void **state)
{
    struct kl_rep r = {0};
    size_t n;
    (void)state;
    add(&r, "b.json",
        "{\"schema\": \"kiln.bench/1\", \"vs\": \"numpy\", \"devices\": [], \"rows\": ["
        "{\"kernel\": \"k\", \"device\": \"cpu\", \"check\": \"but for 1e-7 of it\", \"cold\": "
        "{\"median\": 2}, \"gbs\": 3, \"vs\": {\"ratio\": 0.0012, \"state\": \"SLOW\"}}, "
        "{\"kernel\": \"k\", \"device\": \"cpu\", \"check\": \"but for 3e-7 of it\", \"failed\": "
        "true, \"note\": \"broken\"}]}");
    char *s = page(&r, &n);
    has(s, ">kernel</th><th scope=\"col\" class=\"\">shape</th><th scope=\"col\" "
           "class=\"\">device</th><th scope=\"col\" class=\"n\">cold</th><th scope=\"col\" "
           "class=\"n\">GB/s</th><th scope=\"col\" class=\"n\">against numpy</th></tr>");
    has(s, "0.0012× <span class=\"warn\">SLOW</span>");
    has(s, "<td>cpu</td><td colspan=\"3\" class=\"bad\">failed: broken</td>");
    has(s, "<li>checked: k: but for 3e-7 of it, at most</li>");
    assert_null(strstr(s, "but for 1e-7 of it<"));
    free(s);
    kl_rep_free(&r);
}

/* The entry of a tune file that a kernel takes; a file that is there twice is shown once. */
static void tuned(void **state)
{
    static const char text[] = "kiln-tune 1\n\nkernel copies\n use B=8\n ms 0.5 default 0.75\n\n"
                               "kernel copies\n device cuda\n use B=16\n";
    struct kl_rep r = {0};
    size_t n;
    (void)state;
    add(&r, "a.json", two);
    add(&r, "dir/a.tune", text);
    add(&r, "a.tune", text);
    assert_int_equal(r.nin, 2);
    r.k[0].tuned = r.in[1].name;
    r.k[0].tuned_line = 7;
    char *s = page(&r, &n);
    has(s, "<td>B=8</td><td class=\"n\">500 µs</td><td class=\"n\">750 µs</td><td "
           "class=\"n\">1.50×</td><td></td><td class=\"dim\">a.tune:3</td>");
    has(s, "<td>B=16</td><td class=\"n dim\">–</td><td class=\"n dim\">–</td><td class=\"n "
           "dim\">–</td><td><b class=\"good\">used by</b> <a href=\"#k1\">copies</a></td><td "
           "class=\"dim\">a.tune:7</td>");
    has(s, "; tuned constants of <a href=\"#tune\">a.tune:7</a>");
    free(s);
    kl_rep_free(&r);
}

/* Warps and banks of pictures. */
static void pictures(void **state)
{
    struct kl_rep r = {0};
    size_t n;
    (void)state;
    add(&r, "a.json", two);
    r.k[0].tiles = json_loads(
        "{\"holders\": [{\"rows\": 2, \"cols\": 2, \"dim\": [2, 2], \"vec\": 2, \"kind\": \"load\", "
        "\"array\": \"x\", \"reg\": [[0, 1], [0, 1]], \"lane\": [[0, 0], [5, 5]], \"warp\": [[0, 0], "
        "[1, 1]], \"cta\": [[0, 0], [0, 0]]}], \"exchanges\": [{\"rows\": 1, \"cols\": 1, \"dim\": "
        "[1, 1], \"ways\": [{\"name\": \"row-major\", \"word\": [[33]], \"first\": [[3]], "
        "\"first_load\": {\"bytes\": 8, \"waves\": 9, \"ideal\": 2, \"groups\": [[1, 7], [2]]}}]}]}",
        0, NULL);
    assert_non_null(r.k[0].tiles);
    char *s = page(&r, &n);
    has(s, ">5.1</text>");
    has(s, ">warp 0</text><text class=\"tick\" x=\"98\" y=\"51\">warp 1</text>");
    has(s, "<path class=\"other\" d=\"M32 38h30M62 38h30\"/>");
    has(s, "First load of warp 0, 8 bytes a lane: <b class=\"bad\">9 wavefronts</b>, 2 at best");
    has(s, ">lanes 16–31</text>");
    has(s, ">→ 7</text>");
    free(s);
    kl_rep_free(&r);
}

/* ---- inputs ---- */

static void refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"{", "x:"},
        {"[]", "x names no schema"},
        {"{\"schema\": \"kiln.explain/2\"}", "its schema is `kiln.explain/2`"},
        {"kiln-tune 1\nms 3\n", "before the first `kernel`"},
        {"{\"schema\": \"kiln.check/1\"} x", "x:1"},
        {"kiln-tune 2", "only kiln-tune 1"},
        {"kiln-tune 10\n", "only kiln-tune 1"},
        {"kiln-tune ", "only kiln-tune 1"},
        {"{\"schema\": \"kiln.explain/1\"}", "`kernels` is missing"},
        {"{\"schema\": \"kiln.explain/1\", \"kernels\": 3}", "`kernels` is no list"},
        {"{\"schema\": \"kiln.explain/1\", \"kernels\": [null]}", "number 1 is no object"},
        {"{\"schema\": \"kiln.bench/1\", \"rows\": [{}]}", "number 1 has no text `kernel`"},
        {"{\"schema\": \"kiln.check/1\", \"diagnostics\": [3]}", "number 1 is no object"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct kl_rep r = {0};
        struct kl_msg m = {0};
        assert_false(kl_rep_add(&r, "x", bad[i].text, strlen(bad[i].text), &m));
        assert_int_equal(m.rc, KL_RC_USAGE);
        if (!strstr(m.text, bad[i].why))
            fail_msg("%s", m.text);
        kl_rep_free(&r);
    }
}

/* Schemas alone, and parts of the wrong kind. */
static void odd(void **state)
{
    static const char *const in[] = {
        "{\"schema\": \"kiln.explain/1\", \"kernels\": []}",
        "{\"schema\": \"kiln.explain/1\", \"kernels\": [{\"kernel\": \"\"}, "
        "{\"kernel\": \"k\", \"gpu\": [], "
        "\"model\": 4, \"notes\": {}}]}",
        "{\"schema\": \"kiln.explain/1\", \"kernels\": [{\"kernel\": \"k\", "
        "\"gpu\": {\"memory_gbs\": 1e308}, "
        "\"intensity\": 1e308, \"warps\": 1, \"blocks\": -1e99,"
        "\"roofline\": {\"attainable_tflops\": 1e308}, \"occupancy\": {\"warps_most\": 1e-300, "
        "\"share\": -1},"
        "\"ladder\": {\"registers\": [{\"from\": -5, \"to\": -7, \"blocks\": 1e99}], \"shared\": "
        "[{}], \"threads\": [7]}}]}",
        "{\"schema\": \"kiln.bench/1\", \"rows\": []}",
        "{\"schema\": \"kiln.bench/1\", \"devices\": [3], \"rows\": [{\"kernel\": \"k\", "
        "\"point\": \"=\"}, "
        "{\"kernel\": \"k\", \"point\": \"n=inf\", \"gbs\": 3},"
        "{\"kernel\": \"k\", \"point\": \"n=1e999\", \"gbs\": 3}, {\"kernel\": \"k\", "
        "\"point\": \"n=3\", \"gbs\": 1e-300, \"cold\": 7}, "
        "{\"kernel\": \"k\", \"point\": \"n=4\", \"gbs\": 2},"
        "{\"kernel\": \"k\", \"point\": \"n=4\", \"gbs\": 2}]}",
        "{\"schema\": \"kiln.check/1\", \"diagnostics\": [{\"severity\": \"\"}]}",
        "kiln-tune 1\n",
        "kiln-tune 1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        struct kl_rep r = {0};
        size_t n;
        add(&r, "x", in[i]);
        char *s = page(&r, &n);
        harmless(s);
        assert_null(strstr(s, "nan"));
        assert_null(strstr(s, "inf "));
        free(s);
        kl_rep_free(&r);
    }
}

/* ---- size ---- */

static char *many(size_t n)
{
    char *s = malloc(n + 1);
    assert_non_null(s);
    for (size_t i = 0; i < n; i++)
        s[i] = i % 40 == 39 ? '\n' : 'x';
    s[n] = 0;
    return s;
}

static void large(void **state)
{
    struct kl_rep r = {0};
    struct kl_msg m;
    size_t n;
    (void)state;
    add(&r, "a.json", explain);
    add(&r, "a.json", explain);
    for (int i = 0; i < 2; i++) {
        r.k[i].ptx = many(900000);
        r.k[i].c = many(4000);
    }
    char *s = page(&r, &n);
    assert_non_null(strstr(s, "<summary>PTX, 22500 lines, shortened</summary>"));
    assert_non_null(strstr(s, "of 22500 lines are left out"));
    assert_non_null(strstr(s, "<summary>C for the CPU, 100 lines</summary>"));
    assert_true(n > KL_REP_MOST / 2);
    free(s);
    /* too large by its data: refused, with the numbers */
    char *text = many(1100000), *json;
    for (char *c = text; *c; c++)
        *c = 'x';
    assert_true(asprintf(&json,
                         "{\"schema\": \"kiln.check/1\", \"diagnostics\": [], \"file\": \"%s\"}",
                         text) > 0);
    add(&r, "big.json", json);
    assert_null(kl_rep_page(&r, &n, &m));
    assert_int_equal(m.rc, KL_RC_USAGE);
    assert_non_null(strstr(m.text, "give fewer files"));
    free(text);
    free(json);
    kl_rep_free(&r);
}

/* Pictures of many kernels: fewer of each, and the page says so. */
static void many_pictures(void **state)
{
    static const char row[] = "[0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3]";
    struct kl_rep r = {0};
    char *grid = NULL, *tile = NULL;
    size_t n;
    FILE *f = open_memstream(&grid, &n);
    (void)state;
    for (int i = 0; i < 16; i++)
        fprintf(f, "%c%s", i ? ',' : '[', row);
    fclose(f);
    assert_true(asprintf(&tile,
                         "{\"rows\": 16, \"cols\": 16, \"vec\": 4, \"reg\": %s], \"lane\": %s], "
                         "\"warp\": %s], \"cta\": %s]}",
                         grid, grid, grid, grid) > 0);
    json_error_t e;
    for (int i = 0; i < 20; i++) {
        json_t *list = json_array();
        add(&r, "a.json", two);
        for (int k = 0; k < 6; k++) {
            json_t *one = json_loads(tile, 0, &e);
            if (!one)
                fail_msg("%s", e.text);
            json_array_append_new(list, one);
        }
        r.k[r.nk - 1].tiles = json_pack("{s:o}", "holders", list);
        r.k[r.nk - 1].ptx = many(4000);
    }
    char *s = page(&r, &n);
    assert_true(r.pictures > 0 && r.pictures < 6);
    has(s, " of 6 pictures are left out, so that the page stays below 1000000 bytes.");
    has(s, "<summary>PTX, 100 lines</summary>");
    assert_true(n > KL_REP_MOST - 200000);
    free(s);
    free(grid);
    free(tile);
    kl_rep_free(&r);
}

/* ---- colours ---- */

struct color {
    char name[24];
    double luminance;
};

static double channel(unsigned v)
{
    double c = v / 255.0;
    return c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

/* --NAME: #rrggbb of one :root block. */
static size_t colors(const char *css, const char *end, struct color *out)
{
    size_t n = 0;
    for (const char *s = css; (s = strstr(s, "--")) && s < end; s += 2) {
        unsigned r, g, b;
        int used = 0;
        if (sscanf(s + 2, "%23[a-z0-9-]: #%2x%2x%2x;%n", out[n].name, &r, &g, &b, &used) == 4 &&
            used)
            out[n++].luminance = 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    }
    return n;
}

static double contrast(const struct color *a, const struct color *b)
{
    double hi = fmax(a->luminance, b->luminance), lo = fmin(a->luminance, b->luminance);
    return (hi + 0.05) / (lo + 0.05);
}

static void block(const char *css, const char *end, const char *what)
{
    struct color c[64];
    size_t n = colors(css, end, c);
    unsigned texts = 0, surfaces = 0, lines = 0;
    for (size_t i = 0; i < n; i++) {
        texts += c[i].name[0] == 't';
        surfaces += c[i].name[0] == 's';
        lines += c[i].name[0] == 'l';
        for (size_t k = 0; k < n; k++) {
            double least = c[i].name[0] == 't' ? 4.5 : c[i].name[0] == 'l' ? 3 : 0;
            bool on = least > 4 ? c[k].name[0] == 's' : strcmp(c[k].name, "s-page") == 0;
            if (least > 0 && on && contrast(&c[i], &c[k]) < least)
                fail_msg("%s: %s on %s has %.2f", what, c[i].name, c[k].name,
                         contrast(&c[i], &c[k]));
        }
    }
    assert_true(texts >= 6 && surfaces >= 5 && lines >= 7);
}

static void contrasts(void **state)
{
    char *css = strdup("");
    (void)state;
    for (size_t i = 0; kl_report_css[i]; i++) {
        char *more;
        assert_true(asprintf(&more, "%s%s", css, kl_report_css[i]) >= 0);
        free(css);
        css = more;
    }
    const char *dark = strstr(css, "prefers-color-scheme: dark"),
               *end = dark ? strstr(dark, "}\n}") : NULL;
    assert_non_null(end);
    block(css, dark, "light");
    block(dark, end, "dark");
    /* no other colours than those */
    for (const char *s = strstr(end, "#"); s; s = strstr(s + 1, "#"))
        assert_false(isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2]) &&
                     isxdigit((unsigned char)s[3]));
    /* of what the test itself says */
    struct color white = {"", 1}, black = {"", 0};
    assert_true(fabs(contrast(&white, &black) - 21) < 1e-9);
    free(css);
}

/* ---- charts ---- */

static void labels(void **state)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    struct kl_plot p = {.w = 400, .h = 300, .left = 40, .right = 20, .top = 20, .bottom = 40};
    (void)state;
    p.x = (struct kl_axis){1, 1000, true, "x", NULL, 0};
    p.y = (struct kl_axis){0, 10, false, "y", NULL, 0};
    kl_plot_begin(&p, f, "id", "t", "d");
    assert_true(fabs(kl_plot_x(&p, 1) - 40) < 1e-9 && fabs(kl_plot_x(&p, 1000) - 380) < 1e-9);
    assert_true(fabs(kl_plot_x(&p, 10) - (40 + 340 / 3.0)) < 1e-9);
    assert_true(fabs(kl_plot_y(&p, 5) - 140) < 1e-9);
    for (int i = 0; i < 12; i++) /* all at one point */
        kl_plot_label(&p, 200, 150, 0, "a label");
    kl_plot_end(&p);
    fclose(f);
    assert_int_equal(p.nbox, 13); /* and the name of the axis */
    for (unsigned i = 0; i < p.nbox; i++)
        for (unsigned k = 0; k < i; k++)
            assert_false(p.box[i].x0 < p.box[k].x1 && p.box[i].x1 > p.box[k].x0 &&
                         p.box[i].y0 < p.box[k].y1 && p.box[i].y1 > p.box[k].y0);
    assert_non_null(strstr(text, ">100</text>")); /* a tick at each decade */
    free(text);
}

/* Names of lines: turned along them where there is room, cut at the right edge. */
static void names(void **state)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    struct kl_plot p = {.f = f, .w = 400, .h = 300, .left = 40, .right = 80, .top = 20, .bottom = 40};
    (void)state;
    assert_true(kl_plot_along(&p, 50, 250, 250, 50, true, "ten letter"));
    assert_false(kl_plot_along(&p, 50, 250, 90, 250, true, "ten letter"));
    unsigned taken = p.nbox;
    assert_true(taken > 4);
    for (int i = 0; i < 40 && kl_plot_along(&p, 50, 250, 250, 50, true, "ten letter"); i++)
        assert_true(i < 3); /* the line has room for few */
    kl_plot_end_name(&p, 300, 100, 120, 2, "eleven more");
    kl_plot_end_name(&p, 300, 100, 120, 2, "µµµµµµµµµµ");
    fclose(f);
    has(text, "rotate(-45.0)\">ten letter</text>");
    has(text, ">eleven mo…</text>");
    has(text, ">µµµµµµµµµµ</text>");
    free(text);
}

/* Inside <script>: nothing that ends it, turns it or ends a line unseen; and it means the same. */
static void script_text(void **state)
{
    static const char in[] = "[\"</script> \xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6 \xe2\x80\x93\"]";
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    (void)state;
    kl_html_json(f, in);
    fclose(f);
    assert_string_equal(text, "[\"\\u003c/script> \\u2028\\u202e\\u2066 \xe2\x80\x93\"]");
    json_t *a = json_loads(in, 0, NULL), *b = json_loads(text, 0, NULL);
    assert_true(a && b && json_equal(a, b));
    json_decref(a);
    json_decref(b);
    free(text);
}

static void figures(void **state)
{
    static const struct {
        double v;
        const char *text;
    } num[] = {{0, "0"},         {1234567, "1,234,567"}, {999.4, "999"}, {12.34, "12.3"},
               {1.2345, "1.23"}, {0.01324, "0.0132"},    {-1.5, "-1.50"}};
    static const struct {
        double ms;
        const char *text;
    } ms[] = {{1234, "1.23 s"},    {0.9999, "1.00 ms"}, {0.999, "999 µs"}, {12.5, "12.5 ms"},
              {0.0175, "17.5 µs"}, {2e-5, "20.0 ns"},   {-1, "–"}};
    char buf[32];
    (void)state;
    for (size_t i = 0; i < sizeof num / sizeof *num; i++)
        assert_string_equal(kl_rep_num(num[i].v, buf), num[i].text);
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++)
        assert_string_equal(kl_rep_ms(ms[i].ms, buf), ms[i].text);
    assert_string_equal(kl_rep_num((double)NAN, buf), "–");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile), cmocka_unit_test(well_formed), cmocka_unit_test(refused),
        cmocka_unit_test(odd),     cmocka_unit_test(large),       cmocka_unit_test(contrasts),
        cmocka_unit_test(labels),  cmocka_unit_test(figures),   cmocka_unit_test(verdict),
        cmocka_unit_test(columns), cmocka_unit_test(tuned),     cmocka_unit_test(pictures),
        cmocka_unit_test(names),   cmocka_unit_test(script_text),
        cmocka_unit_test(many_pictures), cmocka_unit_test(agreement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
