/*
 * test_plan_cut.c: cuts into stages: equal times, no stage empty, the narrowest of equal cuts, too many stages, and
 * layers that are placed.
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
    cvy_cut_layer layer[2] = {{.name = "a", .ms = 1, .crossing = 1}, {.name = "b", .ms = 1, .crossing = 1}};
    const cvy_cut cut = {.layer = layer, .nlayer = 2};
    int first[3];
    EXPECT_FAULT(cvy_cut_choose(&cut, 3, first), CVY_E_CONFIG, "3 pipeline stages, but the network has 2 layers");
}

/* Times are equal, so only the places decide. */
static void placed(void)
{
    static const struct {
        int at, stage, at2, stage2;
        int first1, first2;
        const char *fault;
    } cases[] = {{1, 2, 8, 2, 1, 9, NULL},
                 {5, 1, 6, 3, 0, 0, "layer f is placed on stage 1 and layer g on stage 3"},
                 {7, 1, 8, 2, 8, 9, NULL},
                 {9, 2, 9, 2, 0, 0, "0 layers after it"},
                 {1, 3, 2, 3, 0, 0, "1 layer before it"},
                 {0, 1, 3, 4, 0, 0, "take a stage from 1 to 3"}};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    for (int c = 0; c < CVY_COUNT(cases); c++) {
        cvy_cut_layer layer[10];
        int first[3] = {0};
        for (int i = 0; i < 10; i++)
            layer[i] = (cvy_cut_layer){.name = names[i], .ms = 1, .crossing = 1};
        layer[cases[c].at].placed = cases[c].stage;
        layer[cases[c].at2].placed = cases[c].stage2;
        const cvy_cut cut = {.layer = layer, .nlayer = 10};
        if (cases[c].fault) {
            EXPECT_FAULT(cvy_cut_choose(&cut, 3, first), CVY_E_CONFIG, cases[c].fault);
            continue;
        }
        EXPECT_OK(cvy_cut_choose(&cut, 3, first));
        EXPECT_INT(first[1], cases[c].first1);
        EXPECT_INT(first[2], cases[c].first2);
    }
}

int main(void)
{
    TEST(equal_times);
    TEST(narrowest);
    TEST(every_stage_has_a_layer);
    TEST(too_many);
    TEST(placed);
    return test_end();
}
