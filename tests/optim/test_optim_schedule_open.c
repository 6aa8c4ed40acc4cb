/*
 * test_optim_schedule_open.c: schedules of the public API: from text, in samples, steps and epochs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/schedule.h>

#include "test_util.h"

static cvy_schedule_opts run(void)
{
    cvy_schedule_opts opts = cvy_schedule_opts_default();
    opts.lr = 0.1, opts.batch = 10, opts.epoch_samples = 100, opts.epochs = 4;
    return opts;
}

static void rates(void)
{
    cvy_schedule *s = NULL;
    cvy_schedule_opts opts = run();
    EXPECT_OK(cvy_schedule_open(NULL, &opts, &s));
    EXPECT_NEAR(cvy_schedule_lr(s, 0), 0.1, 1e-15);
    EXPECT_NEAR(cvy_schedule_lr(s, 399), 0.1, 1e-15);
    cvy_schedule_destroy(&s);
    EXPECT_OK(cvy_schedule_open("{name: step, every: 1 epoch, factor: 0.5, warmup: 5 steps}", &opts, &s));
    EXPECT_NEAR(cvy_schedule_lr(s, 0), 0, 1e-15);
    EXPECT_NEAR(cvy_schedule_lr(s, 25), 0.05, 1e-15);
    EXPECT_NEAR(cvy_schedule_lr(s, 100), 0.05, 1e-15);
    EXPECT_NEAR(cvy_schedule_lr(s, 350), 0.0125, 1e-15);
    cvy_schedule_destroy(&s);
    cvy_schedule_destroy(&s);
}

static void what_is_refused(void)
{
    cvy_schedule *s = NULL;
    cvy_schedule_opts opts = run();
    EXPECT_FAULT(cvy_schedule_open("cosin", &opts, &s), CVY_E_CONFIG, "cosine");
    EXPECT_FAULT(cvy_schedule_open("{name: step, evry: 1 epoch}", &opts, &s), CVY_E_CONFIG, "every");
    opts.lr = 0;
    EXPECT_FAULT(cvy_schedule_open(NULL, &opts, &s), CVY_E_ARGUMENT, "lr 0");
    opts = run(), opts.epochs = 0;
    EXPECT_FAULT(cvy_schedule_open(NULL, &opts, &s), CVY_E_ARGUMENT, "all three must be above 0");
    EXPECT_FAULT(cvy_schedule_open(NULL, NULL, &s), CVY_E_ARGUMENT, "lr 0");
}

int main(void)
{
    TEST(rates);
    TEST(what_is_refused);
    return test_end();
}
