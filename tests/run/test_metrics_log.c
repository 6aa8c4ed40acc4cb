/*
 * test_metrics_log.c: lines are appended whole, a resumed run cuts what it will write again, a full disk loses lines and nothing else.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/run_metrics_log.h"

static char path[] = "/tmp/cvy-metrics-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    const int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

static cvy_status add(cvy_metrics_log *log, const char *kind, const char *key, int64_t value)
{
    cvy_json line = {0};
    cvy_json_open(&line, NULL, '{');
    cvy_json_string(&line, "kind", kind);
    cvy_json_int(&line, key, value);
    cvy_json_close(&line, '}');
    const cvy_status status = cvy_metrics_log_add(log, &line);
    cvy_text_free(&line.text);
    return status;
}

static void content(const char *expected)
{
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(cvy_file_read(path, 1 << 20, &text, &bytes), CVY_OK);
    assert_string_equal(text, expected);
    cvy_mem_free(&text);
}

static void resume_cuts(void **state)
{
    (void)state;
    cvy_metrics_log *log = NULL;
    assert_int_equal(cvy_metrics_log_open(path, -1, &log), CVY_OK);
    assert_int_equal(add(log, "step", "step", 10), CVY_OK);
    assert_int_equal(add(log, "epoch", "epoch", 1), CVY_OK);
    assert_int_equal(add(log, "step", "step", 20), CVY_OK);
    assert_int_equal(add(log, "epoch", "epoch", 2), CVY_OK);
    cvy_metrics_log_close(&log);
    assert_null(log);
    content("{\"kind\": \"step\", \"step\": 10}\n{\"kind\": \"epoch\", \"epoch\": 1}\n{\"kind\": \"step\", \"step\": 20}\n{\"kind\": \"epoch\", \"epoch\": 2}\n");

    assert_int_equal(cvy_metrics_log_open(path, 15, &log), CVY_OK);
    assert_int_equal(add(log, "step", "step", 16), CVY_OK);
    cvy_metrics_log_close(&log);
    content("{\"kind\": \"step\", \"step\": 10}\n{\"kind\": \"epoch\", \"epoch\": 1}\n{\"kind\": \"step\", \"step\": 16}\n");

    assert_int_equal(truncate(path, 30), 0);      /* killed in the middle of a line */
    assert_int_equal(cvy_metrics_log_open(path, 15, &log), CVY_OK);
    assert_int_equal(add(log, "step", "step", 11), CVY_OK);
    cvy_metrics_log_close(&log);
    content("{\"kind\": \"step\", \"step\": 10}\n{\"kind\": \"step\", \"step\": 11}\n");

    assert_int_equal(cvy_metrics_log_open(path, -1, &log), CVY_OK);
    cvy_metrics_log_close(&log);
    content("");
    char below[64];                               /* a file is no folder */
    snprintf(below, sizeof below, "%s/metrics.jsonl", path);
    assert_int_equal(cvy_metrics_log_open(below, 3, &log), CVY_E_IO);
    assert_null(log);
    assert_int_equal(add(NULL, "step", "step", 1), CVY_OK);
}

static void full_disk(void **state)
{
    (void)state;
    struct rlimit before, tight;
    cvy_metrics_log *log = NULL;
    assert_int_equal(cvy_metrics_log_open(path, -1, &log), CVY_OK);
    assert_int_equal(add(log, "step", "step", 10), CVY_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    tight = (struct rlimit){.rlim_cur = 40, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const cvy_status first = add(log, "step", "step", 20), second = add(log, "step", "step", 30);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(first, CVY_E_IO);
    assert_int_equal(second, CVY_OK);
    assert_int_equal(cvy_metrics_log_lost(log), 2);
    assert_int_equal(add(log, "step", "step", 40), CVY_OK);
    content("{\"kind\": \"step\", \"step\": 10}\n{\"kind\": \"step\", \"step\": 40}\n");
    cvy_metrics_log_close(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(resume_cuts), cmocka_unit_test(full_disk)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
