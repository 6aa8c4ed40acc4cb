/*
 * test_measure_result.c: results as JSON and as lines for people; a shorter struct of an older version is filled as far
 * as it goes, and one without its size is refused; a platform with values of another kind is refused or sound.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <math.h>
#include <string.h>

#include "base/tree_confusion.h"
#include "predict/predict.h"
#include "test_util.h"

static void fill(cvy_bench_result *r)
{
    *r = (cvy_bench_result){.size = sizeof *r, .batch = 64, .dtype = CVY_DTYPE_BF16, .threads = 2, .ranks = 3};
    strcpy(r->model, "a \"net\"");
    r->input = (cvy_shape){3, {3, 32, 32}};
    r->ms_median = 1.0 / 3;
    r->loss_first = NAN;
    r->parameters = 1234567890123;
    r->predicted_ms = NAN;
}

static void test_json(void)
{
    cvy_bench_result r;
    char *text = NULL;
    fill(&r);
    EXPECT_OK(cvy_bench_result_json(&r, &text));
    EXPECT(strncmp(text, "{\"model\": \"a \\\"net\\\"\", \"batch\": 64, \"mode\": \"train\", \"dtype\": \"bf16\"",
                   66) == 0);
    EXPECT(strstr(text, "\"ms_median\": 0.3333333333333333,") != NULL);
    EXPECT(strstr(text, "\"loss_first\": null") && strstr(text, "\"parameters\": 1234567890123,"));
    EXPECT(!strstr(text, "predicted_ms") && !strstr(text, "deterministic_shards") && !strstr(text, "kernels"));
    cvy_text_release(&text);
    r.predicted_ms = 2.5;
    r.deterministic_shards = 4;
    r.by_clock = 1;
    r.mode = CVY_BENCH_FORWARD;
    EXPECT_OK(cvy_bench_result_json(&r, &text));
    EXPECT(strstr(text, "\"predicted_ms\": 2.5}") && strstr(text, "\"deterministic_shards\": 4, \"kernels\": \"clock"));
    EXPECT(strstr(text, "\"mode\": \"forward\",") != NULL);
    cvy_text_release(&text);
    r.mode = CVY_BENCH_FORWARD_BACKWARD;
    EXPECT_OK(cvy_bench_result_json(&r, &text));
    EXPECT(strstr(text, "\"mode\": \"forward-backward\",") != NULL);
    cvy_text_release(&text);
}

static void test_lines(void)
{
    cvy_bench_result r;
    char *text = NULL;
    fill(&r);
    EXPECT_OK(cvy_bench_result_lines(&r, &text));
    EXPECT(strncmp(text, "model                       a \"net\"\nbatch                       64\n", 65) == 0);
    EXPECT(strstr(text, "\nms_median                   0.333333\n") &&
           strstr(text, "\ninput                       3x32x32\n"));
    EXPECT(strstr(text, "\nloss_first                  null\n") != NULL);
    cvy_text_release(&text);
}

static void test_size(void)
{
    cvy_bench_result r;
    cvy_bench_data_opts opts = {.size = sizeof opts, .source = "{format: synthetic, samples: 8, shape: [3, 4, 4]}"};
    cvy_bench_data_result data = {0};
    char *text = NULL;
    fill(&r);
    r.size = offsetof(cvy_bench_result, threads);
    EXPECT_OK(cvy_bench_result_json(&r, &text));
    EXPECT(strstr(text, "\"input\": \"3x32x32\", \"threads\": 0, \"ranks\": 0,") != NULL);
    cvy_text_release(&text);
    r.size = 0;
    EXPECT_FAULT(cvy_bench_result_json(&r, &text), CVY_E_ARGUMENT, "size");
    opts.seconds = 0.05;
    opts.threads = 1;
    EXPECT_FAULT(cvy_run_bench_data(&opts, &data), CVY_E_ARGUMENT, "size");
    data.size = offsetof(cvy_bench_data_result, images_per_s);
    data.images_per_s = -1; /* after the end of the caller's struct */
    EXPECT_OK(cvy_run_bench_data(&opts, &data));
    EXPECT(data.images > 0 && data.batch == 8 && data.images_per_s == -1 && strcmp(data.format, "synthetic") == 0);
}

static cvy_status read_platform(cvy_pool *pool, const char *text)
{
    const cvy_platform_opts opts = {.size = sizeof opts, .name = "platform", .text = text, .model = "lenet"};
    cvy_platform p = {.size = sizeof p};
    (void)pool;
    const cvy_status status = cvy_run_platform(&opts, &p);
    if (status == CVY_OK) {
        EXPECT(p.nodes > 0 && isfinite(p.gflop_per_s) && isfinite(p.memory_bytes_per_s));
        cvy_text_release(&p.xml);
    }
    return status;
}

/* Each kind of value in place of each value of a description of a machine. */
static void test_kinds_of_a_platform(void)
{
    confuse("{summary: s, topology: dragonfly, groups: [4, 10], chassis: [6, 3], blades: [16, 1], nodes: 4, bandwidth: "
            "5e9, latency: 3e-7, message: 3e-7, add: 2e10, memory: 3e11, cores: 68, rates: {lenet: 47}, gflop_per_s: "
            "1900}",
            read_platform);
    confuse(
        "{topology: fat_tree, down: [4, 4], up: [1, 2], parallel: [1, 1], bandwidth: 5e9, latency: 3e-7, add: 2e10, "
        "gflop_per_s: 1900}",
        read_platform);
}

int main(void)
{
    TEST(test_json);
    TEST(test_lines);
    TEST(test_size);
    TEST(test_kinds_of_a_platform);
    return test_end();
}
