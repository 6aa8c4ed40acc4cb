/*
 * test_base_energy.c: RAPL's counters: the sum over the packages, one that begins again, and none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/machine/base_energy.h"
#include "test_util.h"

static void test_between(void)
{
    const cvy_energy from = {.joules = {10, 95}, .range = {100, 100}, .n = 2},
                     to = {.joules = {12, 5}, .range = {100, 100}, .n = 2}, none = {.n = 0};
    EXPECT(cvy_energy_between(&from, &from) == 0);
    EXPECT(cvy_energy_between(&from, &to) == 12);
    EXPECT(isnan(cvy_energy_between(&none, &none)));
    EXPECT(isnan(cvy_energy_between(&from, &none)));
}

int main(void)
{
    TEST(test_between);
    return test_end();
}
