/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_index.c: the index of names: a name that was added is found, a name keeps its first number, nothing else is
 * found, and a lack of memory is reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_index.h"
#include "test_util.h"

enum { COUNT = 5000 };

static cvy_status fill(cvy_index *index, char (*names)[24])
{
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "conv%d.bias", i);
        CVY_TRY(cvy_index_add(index, names[i], 2 * i));
    }
    return CVY_OK;
}

static void finds_what_is_there(void)
{
    static char names[COUNT][24];
    cvy_index index = {0};
    int wrong = 0;
    EXPECT_INT(cvy_index_find(&index, "conv0.bias"), -1);
    EXPECT_OK(fill(&index, names));
    for (int i = 0; i < COUNT; i++) {
        char other[32];
        snprintf(other, sizeof other, "conv%d.biased", i);
        wrong += cvy_index_find(&index, names[i]) != 2 * i || cvy_index_find(&index, other) != -1;
    }
    EXPECT_INT(wrong, 0);
    EXPECT_OK(cvy_index_add(&index, "conv7.bias", 1));
    EXPECT_INT(cvy_index_find(&index, "conv7.bias"), 14);
    EXPECT_INT(cvy_index_find(&index, ""), -1);
    cvy_index_free(&index);
    EXPECT_INT(cvy_index_find(&index, "conv7.bias"), -1);
}

static cvy_status fill_and_free(void)
{
    static char names[COUNT][24];
    cvy_index index = {0};
    const cvy_status status = fill(&index, names);
    cvy_index_free(&index);
    return status;
}

static void survives_no_memory(void)
{
    EXPECT_SURVIVES_NO_MEMORY(fill_and_free());
}

/* Texts are copied and numbered in the order in which they are added. A text that exists keeps its number. */
static void numbers_texts(void)
{
    cvy_keys keys = {0};
    int number = -1, wrong = 0;
    char text[24];
    EXPECT_INT(cvy_keys_find(&keys, "0"), -1);
    for (int i = 0; i < 2 * COUNT; i++) {
        snprintf(text, sizeof text, "%d", i % COUNT);
        EXPECT_OK(cvy_keys_add(&keys, text, &number));
        wrong += number != i % COUNT || strcmp(keys.text[number], text) != 0;
    }
    EXPECT_INT(wrong, 0);
    EXPECT_INT(keys.count, COUNT);
    EXPECT_INT(cvy_keys_find(&keys, "17"), 17);
    EXPECT_INT(cvy_keys_find(&keys, "none"), -1);
    cvy_keys_free(&keys);
}

int main(void)
{
    TEST(finds_what_is_there);
    TEST(numbers_texts);
    TEST(survives_no_memory);
    return test_end();
}
