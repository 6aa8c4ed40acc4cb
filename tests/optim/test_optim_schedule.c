/*
 * test_optim_schedule.c: learning-rate schedules against PyTorch's, the warm-up, and durations in epochs, steps and
 * samples.
 *
 * PyTorch's numbers come from torch.optim.lr_scheduler of version 2.15 on SGD with lr 0.1 and 100 steps, each of which
 * is 8 samples here: CosineAnnealingLR(100), StepLR(30, 0.1), MultiStepLR([20, 70], 0.5), ExponentialLR(0.95),
 * PolynomialLR(100, 2), OneCycleLR(0.1, 101).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "optim/optim.h"
#include "test_util.h"

enum { BATCH = 8, EPOCH = 80, TOTAL = 800 };

static cvy_status create_for(const char *text, double batch_factor, cvy_schedule **out)
{
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    cvy_status status = cvy_pool_create(&pool);
    if (status == CVY_OK && text)
        status = cvy_tree_parse_text(pool, "job.yaml", text, strlen(text), &tree);
    const cvy_schedule_run run = {
        .lr = 0.1, .batch_factor = batch_factor, .total_samples = TOTAL, .epoch_samples = EPOCH, .batch = BATCH};
    if (status == CVY_OK)
        status = cvy_schedule_create(tree, &run, out);
    cvy_pool_destroy(&pool);
    return status;
}

static cvy_status create(const char *text, cvy_schedule **out)
{
    return create_for(text, 0, out);
}

static void expect_for(const char *text, double batch_factor, double steps, double lr)
{
    cvy_schedule *s = NULL;
    EXPECT_OK(create_for(text, batch_factor, &s));
    if (!s)
        return;
    test_checks++;
    const double got = cvy_schedule_lr(s, steps * BATCH);
    if (!(fabs(got - lr) <= 1e-14)) {
        test_failures++;
        printf("%s after %g steps is %.17g, expected %.17g\n", text ? text : "(default)", steps, got, lr);
    }
    cvy_schedule_destroy(&s);
    EXPECT(s == NULL);
}

static void expect(const char *text, double steps, double lr)
{
    expect_for(text, 0, steps, lr);
}

static void schedules_equal_pytorch(void)
{
    expect("cosine", 0, 0.1);
    expect("cosine", 1, 0.09997532801828658);
    expect("cosine", 50, 0.05);
    expect("cosine", 99, 2.4671981713420017e-05);
    expect("{name: step, every: 30 steps}", 0, 0.1);
    expect("{name: step, every: 30 steps}", 29, 0.1);
    expect("{name: step, every: 3 epochs}", 30, 0.01);
    expect("{name: step, every: 240 samples}", 99, 0.0001);
    expect("{name: multi_step, at: [20 steps, 7 epochs], factor: 0.5}", 19, 0.1);
    expect("{name: multi_step, at: [20 steps, 7 epochs], factor: 0.5}", 20, 0.05);
    expect("{name: multi_step, at: [160 samples, 560 samples], factor: 0.5}", 70, 0.025);
    expect("{name: multi_step, at: 70 steps, factor: 0.5}", 99, 0.05);
    expect("{name: multi_step, at: [20 steps, 7 epochs], factor: [0.25, 0.5]}", 19, 0.1);
    expect("{name: multi_step, at: [20 steps, 7 epochs], factor: [0.25, 0.5]}", 20, 0.025);
    expect("{name: multi_step, at: [20 steps, 7 epochs], factor: [0.25, 0.5]}", 70, 0.0125);
    expect("{name: exponential, every: 1 step, factor: 0.95}", 1, 0.095);
    expect("{name: exponential, every: 1 step, factor: 0.95}", 50, 0.007694497527671311);
    expect("{name: polynomial, power: 2}", 1, 0.09801);
    expect("{name: polynomial, power: 2}", 50, 0.025);
    expect("{name: polynomial, power: 2}", 99, 1e-5);
}

/* PyTorch counts the steps of its cycle up to and including 100, which is the end of the run here. Its maximum is at
 * step 0.3 * 101 - 1. */
static void one_cycle_equals_pytorch(void)
{
    expect("one_cycle", 0, 0.004);
    expect("{name: one_cycle, rise: 0.293}", 15, 0.05380089997421008);
    expect("{name: one_cycle, rise: 0.293}", 30, 0.09997581421134295);
    expect("{name: one_cycle, rise: 0.293}", 60, 0.06025806488883263);
    expect("{name: one_cycle, rise: 0.293}", 100, 4e-07);
}

static void other_schedules(void)
{
    expect(NULL, 57, 0.1);
    expect("constant", 99, 0.1);
    expect("exponential", 10, 0.095);                           /* one epoch, factor 0.95 */
    expect("{name: inverse, gamma: 1, power: 1}", 30, 0.1 / 4); /* three epochs */
    expect("{name: inverse, every: 1 samples, gamma: 0.0001, power: 0.75}", 50,
           0.1 * pow(1.04, -0.75)); /* Caffe's LeNet rule */
    expect("{name: sigmoid, middle: 50 steps, every: 1 step, slope: -0.1}", 50, 0.05);
    expect("{name: sigmoid, middle: 50 steps, every: 1 step, slope: -0.1}", 20, 0.1 / (1 + exp(-3)));
    expect("{name: sigmoid, middle: 5 epochs, slope: 2}", 60, 0.1 / (1 + exp(-2))); /* six epochs */
    expect("{name: cosine, end: 0.1}", 100, 0.01);
    expect("{name: polynomial, end: 0.5}", 100, 0.05);
}

static void warm_up_is_linear(void)
{
    const char *text = "{name: constant, warmup: 5 epochs, warmup_from: 0.1}";
    expect(text, 0, 0.01);
    expect(text, 25, 0.055);
    expect(text, 50, 0.1);
    expect("{name: step, every: 1 epoch, factor: 0.5, warmup: 2 epochs}", 15, 0.1 * 0.5 * 0.75);
    expect("{name: constant, warmup: 20steps}", 10, 0.05);
    expect("{name: constant, warmup: 0}", 0, 0.1); /* 0 needs no unit */
}

/* Goyal et al. 2017: the rate rises from that of the base batch to that of the large batch, which the schedule then
 * multiplies. */
static void large_batches_begin_at_the_base_rate(void)
{
    const char *text = "{name: multi_step, at: 7 epochs, factor: 0.1, warmup: 5 epochs}";
    expect_for(text, 4, 0, 0.1);
    expect_for(text, 4, 25, 0.25);
    expect_for(text, 4, 50, 0.4);
    expect_for(text, 4, 70, 0.04);
    expect_for("{name: constant, warmup: 5 epochs, warmup_from: 0}", 4, 0, 0);
    expect_for("{name: constant, warmup: 5 epochs, warmup_from: 0.5}", 4, 25, 0.3);
    expect_for("{name: constant, warmup: 5 epochs}", 1, 0, 0.1);    /* the base batch itself */
    expect_for("{name: constant, warmup: 5 epochs}", 0.5, 0, 0.05); /* a smaller batch needs no warm-up */
    expect_for("{name: constant, warmup: 5 epochs}", 0.5, 25, 0.05);
    expect_for("cosine", 4, 50, 0.2);
}

static void mistakes_are_named(void)
{
    cvy_schedule *s = NULL;
    EXPECT_FAULT(create("cosinus", &s), CVY_E_CONFIG, "did you mean 'cosine'?");
    EXPECT_FAULT(create("{name: step, evry: 3}", &s), CVY_E_CONFIG, "job.yaml:1:14");
    EXPECT_FAULT(create("{name: step, evry: 3}", &s), CVY_E_CONFIG, "did you mean \"every\"?");
    EXPECT_FAULT(create("{name: step}", &s), CVY_E_CONFIG, "every");
    EXPECT_FAULT(create("{name: step, every: 3 parsecs}", &s), CVY_E_CONFIG, "not a duration");
    EXPECT_FAULT(create("{name: constant, warmup: -1 steps}", &s), CVY_E_CONFIG, "warmup is \"-1 steps\", expected");
    EXPECT_FAULT(create("{name: multi_step, at: []}", &s), CVY_E_CONFIG, "at is an empty list");
    EXPECT_FAULT(create("{name: multi_step, at: 3 steps, factor: [0.1, 0.2]}", &s), CVY_E_CONFIG,
                 "schedule: multi_step has 2 factors and 1 times, expected one factor or one for each time");
    EXPECT_FAULT(create("{name: multi_step, at: 3 steps, factor: []}", &s), CVY_E_CONFIG, "0 factors and 1 times");
    EXPECT_FAULT(create("{name: cosine, warmup: 100}", &s), CVY_E_CONFIG,
                 "job.yaml:1:24: schedule: warmup is 100, a number without a unit; write \"100 steps\", \"100 epochs\" "
                 "or \"100 samples\"");
    EXPECT_FAULT(create("{name: step, every: 30}", &s), CVY_E_CONFIG, "every is 30, a number without a unit");
    EXPECT_FAULT(create("{name: multi_step, at: [3 epochs, 60]}", &s), CVY_E_CONFIG, "at is 60, a number without");
    EXPECT_FAULT(create("{name: cosine, warmup: 5%}", &s), CVY_E_CONFIG,
                 "warmup is \"5%\", which is not a duration; expected a number of steps, epochs or samples");
    EXPECT_FAULT(create("{every: 3}", &s), CVY_E_CONFIG, "name");
    EXPECT_FAULT(create("[1, 2]", &s), CVY_E_CONFIG, "a schedule is a name");
    EXPECT(s == NULL);
}

static cvy_status create_and_destroy(void)
{
    cvy_schedule *s = NULL;
    CVY_TRY(create("{name: multi_step, at: [1 epoch, 2 epochs], warmup: 3 steps}", &s));
    cvy_schedule_destroy(&s);
    return CVY_OK;
}

static void survives_no_memory(void)
{
    EXPECT_SURVIVES_NO_MEMORY(create_and_destroy());
}

int main(void)
{
    TEST(schedules_equal_pytorch);
    TEST(one_cycle_equals_pytorch);
    TEST(other_schedules);
    TEST(warm_up_is_linear);
    TEST(large_batches_begin_at_the_base_rate);
    TEST(mistakes_are_named);
    TEST(survives_no_memory);
    return test_end();
}
