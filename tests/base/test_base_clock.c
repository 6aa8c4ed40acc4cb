/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_clock.c: clocks: seconds never go back, and the date has the right form. */
#include "base/machine/base_clock.h"
#include "test_util.h"

static void clock_goes_on(void)
{
    char now[32];
    const double before = cvy_clock_s();
    EXPECT(cvy_clock_s() >= before);
    cvy_clock_text(now);
    EXPECT_INT(strlen(now), 20);
}

int main(void)
{
    TEST(clock_goes_on);
    return test_end();
}
