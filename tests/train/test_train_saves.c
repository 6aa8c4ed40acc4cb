/*
 * test_train_saves.c: the log sums up the cost of checkpoints only if they blocked training for at least a second and
 * 1 % of the run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"
#include "train/trainer.h"

static void limits(void)
{
    static const struct {
        double stall_s, run_s;
        int expected;
    } rows[] = {
        {0.05, 0.2, 0},  /* a short run: the share is large, the time is not */
        {0.99, 2, 0},    /* just below a second */
        {1, 2, 1},       /* a second of a short run */
        {5, 86400, 0},   /* a long run: the share is small */
        {900, 86400, 1}, /* just above 1 % */
        {1, 100, 1},     /* both limits exactly */
        {0, 0, 0},
    };
    for (int i = 0; i < CVY_COUNT(rows); i++)
        if (cvy_saves_are_noticeable(rows[i].stall_s, rows[i].run_s) != rows[i].expected)
            TEST_FAIL("%g s of %g s are judged wrong", rows[i].stall_s, rows[i].run_s);
}

int main(void)
{
    TEST(limits);
    return test_end();
}
