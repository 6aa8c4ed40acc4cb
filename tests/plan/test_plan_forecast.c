/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_plan_forecast.c: the predicted time of a step against times computed by hand: 1F1B with and without latency,
 * reductions beside work, ranks that share cores, and stages that would hang.
 */
#include <string.h>

#include "base/base_mem.h"
#include "plan/plan_forecast.h"

#include "test_util.h"

static cvy_forecast_stage stage[2];

static void add(int s, cvy_forecast_kind kind, int number, int micro, double work_s, double wire_s)
{
    const int is_message = kind >= CVY_FORECAST_SEND && kind <= CVY_FORECAST_RECEIVED;
    const cvy_forecast_item item = {.kind = kind,
                                    .axis = is_message || kind == CVY_FORECAST_MEET ? CVY_COMM_PIPELINE : CVY_COMM_DATA,
                                    .work_s = work_s,
                                    .wire_s = wire_s,
                                    .peer = 1 - s,
                                    .number = number,
                                    .micro = micro};
    EXPECT_OK(cvy_forecast_add(&stage[s], &item));
}

static void forward(int s, int m, double wire_s)
{
    if (s == 1)
        add(s, CVY_FORECAST_RECEIVED, 0, m, 0, 0);
    add(s, CVY_FORECAST_WORK, 0, m, 1, 0);
    if (s == 0)
        add(s, CVY_FORECAST_SEND, 0, m, 0, wire_s);
}

static void backward(int s, int m, double wire_s)
{
    if (s == 0)
        add(s, CVY_FORECAST_RECEIVED, 1, m, 0, 0);
    add(s, CVY_FORECAST_WORK, 0, m, 2, 0);
    if (s == 1)
        add(s, CVY_FORECAST_SEND, 1, m, 0, wire_s);
}

/* Two stages, two micro-batches, forward 1 s, backward 2 s. All receives are posted first. */
static cvy_forecast_result run_1f1b(double wire_s, int cores)
{
    const cvy_forecast f = {.stage = stage, .nstages = 2, .threads = 1, .cores = cores};
    cvy_forecast_result r = {0};
    memset(stage, 0, sizeof stage);
    for (int s = 0; s < 2; s++) {
        stage[s].ranks = 1;
        for (int m = 0; m < 2; m++)
            add(s, CVY_FORECAST_RECEIVE, s == 1 ? 0 : 1, m, 0, 0);
        forward(s, 0, wire_s);
        if (s == 0)
            forward(s, 1, wire_s);
        backward(s, 0, wire_s);
        if (s == 1)
            forward(s, 1, wire_s);
        backward(s, 1, wire_s);
        for (int m = 0; m < 2; m++)
            add(s, CVY_FORECAST_SENT, s == 0 ? 0 : 1, m, 0, 0);
        add(s, CVY_FORECAST_MEET, 0, 0, 0, 0);
    }
    EXPECT_OK(cvy_forecast_run(&f, &r));
    for (int s = 0; s < 2; s++)
        cvy_mem_free(&stage[s].item);
    return r;
}

/*   s   0    1    2    3    4    5    6    7    8    9
 *   0:  F0   F1   .    .    B0   B0   .    B1   B1
 *   1:  .    F0   B0   B0   F1   B1   B1   .    .         */
static void test_1f1b(void)
{
    const cvy_forecast_result r = run_1f1b(0, 0);
    EXPECT_NEAR(r.step_s, 9, 1e-9);
    EXPECT_NEAR(r.work_s, 6, 1e-9);
    EXPECT_NEAR(r.bubble_s, 3, 1e-9);
    EXPECT_NEAR(r.exposed_s[CVY_COMM_DATA], 0, 1e-9);
}

/* Forward to stage 1 and back to stage 0 twice: F0 at 1, B0 from 1.5 + 1 to 4.5, F1 to 5.5, B1 to 7.5, back at 8. */
static void test_latency(void)
{
    EXPECT_NEAR(run_1f1b(0.5, 0).step_s, 10, 1e-9);
}

/* On one core the work of both stages, 12 s, is done one after the other, and there is always some to do. */
static void test_shared_cores(void)
{
    const cvy_forecast_result r = run_1f1b(0, 1);
    EXPECT_NEAR(r.step_s, 12, 1e-9);
    EXPECT_NEAR(run_1f1b(0, 2).step_s, 9, 1e-9);
}

/* A reduction of 2 s: the rank adds for 0.5 s, and works for 1 s while messages take 1.5 s. A second one starts at once
 * and shares the link. */
static void test_reductions(void)
{
    const cvy_forecast f = {.stage = stage, .nstages = 1, .threads = 1};
    cvy_forecast_result r = {0};
    memset(stage, 0, sizeof stage);
    stage[0].ranks = 1;
    add(0, CVY_FORECAST_START, 0, 0, 0.5, 1.5);
    add(0, CVY_FORECAST_START, 1, 0, 0, 1);
    add(0, CVY_FORECAST_WORK, 0, 0, 1, 0);
    add(0, CVY_FORECAST_WAIT, 0, 0, 0, 0);
    add(0, CVY_FORECAST_WAIT, 1, 0, 0, 0);
    add(0, CVY_FORECAST_EXCHANGE, 0, 0, 0.25, 0.5);
    EXPECT_SURVIVES_NO_MEMORY(cvy_forecast_run(&f, &r));
    EXPECT_NEAR(r.step_s, 0.5 + 1.5 + 1 + 0.75, 1e-9);
    EXPECT_NEAR(r.work_s, 1.75, 1e-9);
    EXPECT_NEAR(r.exposed_s[CVY_COMM_DATA], 2, 1e-9);
    cvy_mem_free(&stage[0].item);
}

/* Stage 0 reduces (2 s on a link of its own) while it sends a message (1 s), so both take twice as long until the
 * message is there: it needs 2 s and the reduction 3 s. Stage 1 then works for 0.5 s. */
static void test_shared_link(void)
{
    const cvy_forecast f = {.stage = stage, .nstages = 2, .threads = 1};
    cvy_forecast_result r = {0};
    memset(stage, 0, sizeof stage);
    stage[0].ranks = stage[1].ranks = 1;
    stage[1].node = 1;
    add(0, CVY_FORECAST_START, 0, 0, 0, 2);
    add(0, CVY_FORECAST_SEND, 1, 0, 0, 1);
    add(0, CVY_FORECAST_SENT, 1, 0, 0, 0);
    add(0, CVY_FORECAST_WAIT, 0, 0, 0, 0);
    add(1, CVY_FORECAST_RECEIVE, 1, 0, 0, 0);
    add(1, CVY_FORECAST_RECEIVED, 1, 0, 0, 0);
    add(1, CVY_FORECAST_WORK, 0, 0, 0.5, 0);
    for (int s = 0; s < 2; s++)
        add(s, CVY_FORECAST_MEET, 0, 0, 0, 0);
    EXPECT_OK(cvy_forecast_run(&f, &r));
    EXPECT_NEAR(r.step_s, 3, 1e-9);
    EXPECT_NEAR(r.work_s, 0.25, 1e-9);
    EXPECT_NEAR(r.exposed_s[CVY_COMM_DATA], 0.5, 1e-9);
    EXPECT_NEAR(r.bubble_s, 1 + 1.25, 1e-9);
    for (int s = 0; s < 2; s++)
        cvy_mem_free(&stage[s].item);
}

/* Before each of two meetings another stage has more work: 1 and 3 s, then 3 and 1 s. A meeting takes 0.5 s. */
static void test_meeting(void)
{
    const cvy_forecast f = {.stage = stage, .nstages = 2, .threads = 1};
    cvy_forecast_result r = {0};
    memset(stage, 0, sizeof stage);
    for (int s = 0; s < 2; s++) {
        add(s, CVY_FORECAST_WORK, 0, 0, s == 0 ? 1 : 3, 0);
        add(s, CVY_FORECAST_MEET, 0, 0, 0, 0.5);
        add(s, CVY_FORECAST_WORK, 0, 0, s == 0 ? 3 : 1, 0);
        add(s, CVY_FORECAST_MEET, 0, 0, 0, 0.5);
    }
    EXPECT_OK(cvy_forecast_run(&f, &r));
    EXPECT_NEAR(r.step_s, 7, 1e-9);
    EXPECT_NEAR(r.work_s, 4, 1e-9);
    EXPECT_NEAR(r.bubble_s, 3, 1e-9);
    for (int s = 0; s < 2; s++)
        cvy_mem_free(&stage[s].item);
}

static void test_hang(void)
{
    const cvy_forecast f = {.stage = stage, .nstages = 2, .threads = 1};
    cvy_forecast_result r = {0};
    memset(stage, 0, sizeof stage);
    for (int s = 0; s < 2; s++) { /* each waits for what the other sends later */
        add(s, CVY_FORECAST_RECEIVE, 1 - s, 0, 0, 0);
        add(s, CVY_FORECAST_RECEIVED, 1 - s, 0, 0, 0);
        add(s, CVY_FORECAST_SEND, s, 0, 0, 1);
    }
    EXPECT_FAULT(cvy_forecast_run(&f, &r), CVY_E_INTERNAL, "wait for each other for ever");
    for (int s = 0; s < 2; s++)
        cvy_mem_free(&stage[s].item);
}

int main(void)
{
    TEST(test_1f1b);
    TEST(test_latency);
    TEST(test_shared_cores);
    TEST(test_reductions);
    TEST(test_shared_link);
    TEST(test_meeting);
    TEST(test_hang);
    return test_end();
}
