/*
 * test_pass.c: the table of passes: which ones can be switched off, the message for a wrong name, and the order in
 * which they run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "pass/pass.h"
#include "test_util.h"

static void names_are_checked(void)
{
    EXPECT_OK(cvy_passes_check(NULL));
    EXPECT_OK(cvy_passes_check(""));
    EXPECT_OK(cvy_passes_check("all"));
    EXPECT_OK(cvy_passes_check("fuse-add, slices overlap"));
    EXPECT_FAULT(cvy_passes_check("slices, fuse"), CVY_E_CONFIG,
                 "there is no pass 'fuse' to switch off; the passes are fuse-add, fuse-batch-norm, fuse-relu, "
                 "fuse-update, in-place, memory-reuse, overlap, recompute, slices, or all");
    EXPECT_FAULT(cvy_passes_check("autodiff"), CVY_E_CONFIG, "there is no pass 'autodiff' to switch off");
}

static void names_switch_off(void)
{
    EXPECT(cvy_pass_is_on(NULL, "slices"));
    EXPECT(!cvy_pass_is_on("all", "slices"));
    EXPECT(!cvy_pass_is_on("overlap,slices", "slices"));
    EXPECT(cvy_pass_is_on("overlap slices", "fuse-relu"));
    EXPECT(cvy_pass_is_on("fuse-add", "fuse"));
    EXPECT(cvy_pass_is_on("fuse-batch-norm", "norm"));
}

/* No two passes that run have the same position. */
static void order_is_total(void)
{
    int count = 0;
    const cvy_pass_def *const *table = cvy_pass_table(&count);
    EXPECT(count > 0);
    for (int i = 0; i < count; i++) {
        EXPECT(table[i]->help && (table[i]->run != NULL) == (table[i]->order > 0));
        EXPECT(table[i]->run || table[i]->can_be_off);
        for (int k = 0; k < i; k++)
            EXPECT(!table[i]->run || table[i]->order != table[k]->order);
    }
}

int main(void)
{
    TEST(names_are_checked);
    TEST(names_switch_off);
    TEST(order_is_total);
    return test_end();
}
