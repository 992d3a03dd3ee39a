/* test_ptxas.c - what ptxas says of an entry: its text, stand-ins that fail, and itself if it is
 * installed. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rt/ptxas.h"

static const char text[] =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'kiln_a_b' for 'sm_90'\n"
    "ptxas info    : Function properties for kiln_a_b\n"
    "    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 2 barriers, 8 bytes cumulative stack size, 4096 bytes "
    "smem, 400 bytes cmem[0]\n"
    "ptxas info    : Compile time = 21.193 ms\n"
    "ptxas info    : Compiling entry function 'kiln_a' for 'sm_90'\n"
    "ptxas info    : Function properties for kiln_a\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 31 registers, 400 bytes cmem[0]";

static void reading(void **state)
{
    kl_ptxas p;
    (void)state;
    assert_true(kl_ptxas_read(text, "kiln_a_b", &p));
    assert_int_equal(p.registers, 255);
    assert_int_equal(p.stack, 8);
    assert_int_equal(p.spill_stores, 12);
    assert_int_equal(p.spill_loads, 16);
    assert_int_equal(p.barriers, 2);
    assert_int_equal(p.shared, 4096);
    assert_true(kl_ptxas_read(text, "kiln_a", &p)); /* not the longer name */
    assert_int_equal(p.registers, 31);
    assert_int_equal(p.barriers, 0);
    assert_int_equal(p.spill_stores, 0);
    assert_false(kl_ptxas_read(text, "kiln_", &p));
    assert_false(kl_ptxas_read("", "kiln_a", &p));
    assert_false(kl_ptxas_read("ptxas info    : Used 31 registers", "kiln_a", &p));
}

static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry kiln_a(.param .u64 p)\n{\n"
                          "    .reg .b64 %rd<2>;\n"
                          "    ld.param.u64 %rd1, [p];\n"
                          "    st.global.u64 [%rd1], %rd1;\n"
                          "    ret;\n}\n";

static kiln_status run(const char *path, uint32_t ms, kl_ptxas *out, char msg[KL_CC_MSG])
{
    const char *problem;
    kl_cache *c = kl_cache_open(&kl_alloc_libc, NULL, 0, &problem);
    assert_non_null(c);
    kiln_status s = kl_ptxas_run(c, path, ptx, sizeof ptx - 1, 80, "kiln_a", ms, out, msg);
    kl_cache_close(c);
    return s;
}

static void stand_in(char path[64], const char *script)
{
    strcpy(path, "/tmp/kiln-ptxas-XXXXXX");
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    assert_int_equal(chmod(path, 0700), 0);
}

static void failing(void **state)
{
    static const struct {
        const char *script, *what;
    } bad[] = {
        {"echo 'ptxas fatal: Unsupported'; echo more; exit 3", " failed: ptxas fatal: Unsupported"},
        {"exit 0", " says nothing about the kernel"},
        {"yes", " did not end within 300 ms"},
        {"sleep 60", " did not end within 300 ms"},
        {"kill -9 $$", " failed: "},
    };
    char path[64], msg[KL_CC_MSG], want[200];
    kl_ptxas p;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stand_in(path, bad[i].script);
        assert_int_equal(run(path, 300, &p, msg), KILN_E_TOOLCHAIN);
        snprintf(want, sizeof want, "%s%s", path, bad[i].what);
        assert_string_equal(msg, want);
        unlink(path);
    }
    assert_int_equal(run("ptxas", 300, &p, msg), KILN_E_ARG);
    assert_int_equal(run("/none/ptxas", 300, &p, msg), KILN_E_TOOLCHAIN);
    assert_string_equal(msg, "/none/ptxas cannot be started: No such file or directory");
    /* the text is where the argument says */
    stand_in(path, "for a; do case $a in *.ptx) grep -q 'entry kiln_a' $a || exit 1;; esac; done\n"
                   "echo \"Compiling entry function 'kiln_a'\"; echo 'Used 9 registers'");
    assert_int_equal(run(path, 10000, &p, msg), KILN_OK);
    assert_int_equal(p.registers, 9);
    unlink(path);
}

static void itself(void **state)
{
    const char *tool = getenv("PTXAS") ? getenv("PTXAS") : "/usr/local/cuda/bin/ptxas";
    char msg[KL_CC_MSG];
    kl_ptxas p;
    (void)state;
    if (access(tool, X_OK) != 0)
        skip();
    if (run(tool, 60000, &p, msg))
        fail_msg("%s", msg);
    assert_true(p.registers >= 2 && p.registers < 32);
    assert_int_equal(p.spill_stores, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reading), cmocka_unit_test(failing),
                                       cmocka_unit_test(itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
