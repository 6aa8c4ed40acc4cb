/*
 * test_plan_cut.c: cuts into stages: equal times, no stage empty, the narrowest of equal cuts, and too many stages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_cut.h"
#include "test_util.h"

static void choose(const double *ms, const size_t *crossing, int n, int nstages, int *first)
{
    cvy_cut_layer layer[32];
    for (int i = 0; i < n; i++)
        layer[i] = (cvy_cut_layer){.name = "layer", .ms = ms[i], .crossing = crossing ? crossing[i] : 1};
    const cvy_cut cut = {.layer = layer, .nlayer = n};
    EXPECT_OK(cvy_cut_choose(&cut, nstages, first));
    EXPECT_INT(first[0], 0);
    for (int s = 1; s < nstages; s++)
        EXPECT(first[s] > first[s - 1] && first[s] < n);
}

static void equal_times(void)
{
    static const double ms[] = {1, 1, 1, 1, 1, 1, 1, 1, 4};
    int first[4];
    choose(ms, NULL, 9, 3, first); /* 4, 4, 4 */
    EXPECT_INT(first[1], 4);
    EXPECT_INT(first[2], 8);
    choose(ms, NULL, 8, 4, first);
    for (int s = 0; s < 4; s++)
        EXPECT_INT(first[s], 2 * s);
}

static void narrowest(void)
{
    static const double ms[] = {2, 1, 0.001, 0.001, 3};
    static const size_t crossing[] = {9, 9, 5, 9, 9};
    int first[2];
    choose(ms, crossing, 5, 2, first); /* after layer 1, 2 or 3 the times are nearly equal; after 2 it is narrow */
    EXPECT_INT(first[1], 3);
}

static void every_stage_has_a_layer(void)
{
    static const double heavy[] = {10, 0, 0, 0}, none[] = {0, 0, 0, 0};
    int first[4];
    choose(heavy, NULL, 4, 4, first);
    choose(none, NULL, 4, 3, first);
}

static void too_many(void)
{
    cvy_cut_layer layer[2] = {{"a", 1, 1}, {"b", 1, 1}};
    const cvy_cut cut = {.layer = layer, .nlayer = 2};
    int first[3];
    EXPECT_FAULT(cvy_cut_choose(&cut, 3, first), CVY_E_CONFIG, "3 pipeline stages, but the network has 2 layers");
}

int main(void)
{
    TEST(equal_times);
    TEST(narrowest);
    TEST(every_stage_has_a_layer);
    TEST(too_many);
    return test_end();
}
