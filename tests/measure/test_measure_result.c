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
    EXPECT(strstr(text, "\"predicted_ms\": 2.5") && strstr(text, "\"deterministic_shards\": 4, \"kernels\": \"clock"));
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
    confuse(
        "{summary: s, topology: dragonfly, groups: [4, 10], chassis: [6, 3], blades: [16, 1], nodes: 4, bandwidth: "
        "5e9, latency: 3e-7, message: 3e-7, add: 2e10, memory: 3e11, cores: 68, sockets: 2, socket_bandwidth: 6e10, "
        "noise: 0.01, rates: {lenet: 47, alexnet: {1: 10, 8: 40}}, gflop_per_s: 1900}",
        read_platform);
    confuse(
        "{topology: fat_tree, down: [4, 4], up: [1, 2], parallel: [1, 1], bandwidth: 5e9, latency: 3e-7, add: 2e10, "
        "gflop_per_s: 1900}",
        read_platform);
}

static cvy_status read_rates(const char *rates, cvy_platform *out)
{
    char text[512];
    const cvy_platform_opts opts = {.size = sizeof opts, .name = "platform", .text = text, .model = "lenet"};
    snprintf(text, sizeof text,
             "{topology: star, nodes: 2, bandwidth: 5e9, latency: 3e-7, add: 2e10, gflop_per_s: 1900, rates: %s}",
             rates);
    *out = (cvy_platform){.size = sizeof *out};
    const cvy_status status = cvy_run_platform(&opts, out);
    if (status == CVY_OK)
        cvy_text_release(&out->xml);
    return status;
}

/* 1 sample takes 40 ms, 9 samples take 120 ms: 10 ms for each further one. Above the table the speed is that of its
 * last row. */
static void test_rates_of_a_platform(void)
{
    static const struct {
        const char *rates, *message;
    } wrong[] = {
        {"{lenet: {8: 40, 1: 10}}", "ascending order"},
        {"{lenet: {0: 40}}", "ascending order"},
        {"{lenet: {a: 40}}", "ascending order"},
        {"{lenet: {1: 10, 2: 40}}", "less time than 1"},
        {"{lenet: {1: 0}}", "above 0"},
        {"{lenet: {}}", "expected 1 .. 32"},
        {"{other: {1: -5}}", "above 0"}, /* also of a network that is not simulated */
    };
    cvy_platform p;
    EXPECT_OK(read_rates("{lenet: {1: 25, 9: 75}}", &p));
    EXPECT_NEAR(cvy_platform_images_per_s(&p, 1), 25, 1e-12);
    EXPECT_NEAR(cvy_platform_images_per_s(&p, 0.5), 25, 1e-12);
    EXPECT_NEAR(cvy_platform_images_per_s(&p, 4), 4 / 0.07, 1e-9);
    EXPECT_NEAR(cvy_platform_images_per_s(&p, 9), 75, 1e-12);
    EXPECT_NEAR(cvy_platform_images_per_s(&p, 100), 75, 1e-12);
    EXPECT_OK(read_rates("{lenet: 47}", &p));
    EXPECT_NEAR(cvy_platform_images_per_s(&p, 3), 47, 1e-12);
    EXPECT_OK(read_rates("{other: 47}", &p));
    EXPECT(cvy_platform_images_per_s(&p, 3) == 0);
    for (int i = 0; i < CVY_COUNT(wrong); i++)
        EXPECT_FAULT(read_rates(wrong[i].rates, &p), CVY_E_CONFIG, wrong[i].message);
}

/* Of the 32 first nodes 4 are below the second switch, so 4 messages share 20 uplinks; of 49 nodes 21 are, one too
 * many.
 */
static void test_shared_uplinks(void)
{
    const cvy_platform_opts opts = {.size = sizeof opts,
                                    .name = "platform",
                                    .text = "{topology: fat_tree, down: [28, 38], up: [1, 20], parallel: [1, 1], "
                                            "bandwidth: 5e9, latency: 3e-7, add: 2e10, gflop_per_s: 1900}"};
    static const struct {
        int64_t nodes;
        double share;
    } want[] = {{1, 1}, {28, 1}, {29, 1}, {32, 1}, {48, 1}, {49, 0.5}, {56, 0.5}, {1024, 0.5}};
    cvy_platform p = {.size = sizeof p};
    EXPECT_OK(cvy_run_platform(&opts, &p));
    for (int i = 0; i < CVY_COUNT(want); i++)
        EXPECT_NEAR(cvy_platform_share(&p, want[i].nodes), want[i].share, 1e-12);
    cvy_text_release(&p.xml);
}

int main(void)
{
    TEST(test_json);
    TEST(test_lines);
    TEST(test_size);
    TEST(test_kinds_of_a_platform);
    TEST(test_rates_of_a_platform);
    TEST(test_shared_uplinks);
    return test_end();
}
