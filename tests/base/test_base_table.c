/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_table.c: a descriptor is found by its name, and entries that do not count are not found; a message for a
 * wrong name gives the nearest name, or else all names or the hint. */
#include "base/base_mem.h"
#include "base/text/base_table.h"
#include "test_util.h"

typedef struct fruit {
    const char *name;
    int colour;
} fruit;

static const fruit apple = {"apple", 1}, pear = {"pear", 2}, stone = {"stone", -1};
static const fruit *const table[] = {&apple, &pear, &stone};

static int is_fruit(const void *def)
{
    return ((const fruit *)def)->colour > 0;
}

static void finds(void)
{
    const cvy_table_query all = {.what = "thing"}, fruits = {.what = "fruit", .takes = is_fruit};
    const fruit *found = NULL;
    EXPECT_OK(cvy_table_find(table, 3, &all, "stone", &found));
    EXPECT(found == &stone);
    EXPECT_OK(cvy_table_find(table, 3, &fruits, "pear", &found));
    EXPECT(found == &pear);
    EXPECT_FAULT(cvy_table_find(table, 3, &fruits, "stone", &found), CVY_E_CONFIG, "there is no fruit 'stone'");
    EXPECT(found == &pear);
}

static void names_the_nearest(void)
{
    const cvy_table_query fruits = {.what = "fruit", .takes = is_fruit},
                          hinted = {.what = "fruit", .hint = "ask the gardener"};
    const fruit *found = NULL;
    EXPECT_FAULT(cvy_table_find(table, 3, &fruits, "aple", &found), CVY_E_CONFIG,
                 "there is no fruit 'aple', did you mean 'apple'?; there are apple, pear");
    EXPECT_FAULT(cvy_table_find(table, 3, &fruits, "melon", &found), CVY_E_CONFIG,
                 "there is no fruit 'melon'; there are apple, pear");
    EXPECT_FAULT(cvy_table_find(table, 3, &hinted, "aple", &found), CVY_E_CONFIG,
                 "there is no fruit 'aple', did you mean 'apple'?; ask the gardener");
    EXPECT_FAULT(cvy_table_find(table, 3, &hinted, "melon", &found), CVY_E_CONFIG,
                 "there is no fruit 'melon'; ask the gardener");
    cvy_mem_fail_at(1, 0);
    EXPECT_FAULT(cvy_table_find(table, 3, &fruits, "melon", &found), CVY_E_MEMORY, "");
    cvy_mem_fail_at(0, 0);
}

int main(void)
{
    TEST(finds);
    TEST(names_the_nearest);
    return test_end();
}
