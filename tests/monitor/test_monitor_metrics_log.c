/* rows: clang asan */
/*
 * test_monitor_metrics_log.c: lines are appended whole; a resumed run removes the lines that it will write again; a
 * full disk loses lines and nothing else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base_file.h"
#include "monitor/monitor_metrics_log.h"
#include "test_util.h"

static char path[] = "/tmp/cvy-metrics-XXXXXX";

static void set_up(void)
{
    const int fd = mkstemp(path);
    EXPECT(fd >= 0 && close(fd) == 0);
}

static void tear_down(void)
{
    EXPECT_INT(unlink(path), 0);
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
    EXPECT_OK(cvy_file_read(path, 1 << 20, &text, &bytes));
    EXPECT_TEXT(text, expected);
    cvy_mem_free(&text);
}

static void resume_cuts(void)
{
    cvy_metrics_log *log = NULL;
    EXPECT_OK(cvy_metrics_log_open(path, -1, &log));
    EXPECT_OK(add(log, "step", "step", 10));
    EXPECT_OK(add(log, "epoch", "epoch", 1));
    EXPECT_OK(add(log, "step", "step", 20));
    EXPECT_OK(add(log, "epoch", "epoch", 2));
    EXPECT_INT(cvy_metrics_log_close(&log), 0);
    EXPECT(log == NULL);
    content("{\"kind\": \"step\", \"step\": 10}\n{\"kind\": \"epoch\", \"epoch\": 1}\n{\"kind\": \"step\", \"step\": "
            "20}\n{\"kind\": \"epoch\", \"epoch\": 2}\n");

    EXPECT_OK(cvy_metrics_log_open(path, 15, &log));
    EXPECT_OK(add(log, "step", "step", 16));
    EXPECT_INT(cvy_metrics_log_close(&log), 0);
    content("{\"kind\": \"step\", \"step\": 10}\n{\"kind\": \"epoch\", \"epoch\": 1}\n{\"kind\": \"step\", \"step\": "
            "16}\n");

    EXPECT_INT(truncate(path, 30), 0); /* killed in the middle of a line */
    EXPECT_OK(cvy_metrics_log_open(path, 15, &log));
    EXPECT_OK(add(log, "step", "step", 11));
    EXPECT_INT(cvy_metrics_log_close(&log), 0);
    content("{\"kind\": \"step\", \"step\": 10}\n{\"kind\": \"step\", \"step\": 11}\n");

    EXPECT_OK(cvy_metrics_log_open(path, -1, &log));
    EXPECT_INT(cvy_metrics_log_close(&log), 0);
    content("");
    char below[64]; /* a file is not a folder */
    snprintf(below, sizeof below, "%s/metrics.jsonl", path);
    EXPECT_INT(cvy_metrics_log_open(below, 3, &log), CVY_E_IO);
    EXPECT(log == NULL);
    EXPECT_OK(add(NULL, "step", "step", 1));
}

static void full_disk(void)
{
    struct rlimit before, tight;
    cvy_metrics_log *log = NULL;
    EXPECT_OK(cvy_metrics_log_open(path, -1, &log));
    EXPECT_OK(add(log, "step", "step", 10));
    EXPECT_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    tight = (struct rlimit){.rlim_cur = 40, .rlim_max = before.rlim_max};
    EXPECT_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const cvy_status first = add(log, "step", "step", 20), second = add(log, "step", "step", 30);
    EXPECT_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_INT(first, CVY_E_IO);
    EXPECT_INT(second, CVY_OK);
    EXPECT_INT(cvy_metrics_log_lost(log), 2);
    EXPECT_OK(add(log, "step", "step", 40));
    content("{\"kind\": \"step\", \"step\": 10}\n{\"kind\": \"step\", \"step\": 40}\n");
    EXPECT_INT(cvy_metrics_log_close(&log), 0);
}

int main(void)
{
    set_up();
    TEST(resume_cuts);
    TEST(full_disk);
    tear_down();
    return test_end();
}
