/* rows: clang asan onednn3 minimal */
/*
 * test_base_opts.c: structs of options and results with a size: older and newer callers, and invalid sizes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "base/base_opts.h"
#include "test_util.h"

typedef struct thing_opts {
    size_t size;
    int64_t first, second;
} thing_opts;

typedef struct newer_opts {
    thing_opts known;
    int64_t third;
} newer_opts;

static void options_by_size(void)
{
    thing_opts own, given = {sizeof given, 1, 2};
    EXPECT_OK(CVY_OPTS_READ(thing_opts, &given, &own));
    EXPECT(own.size == sizeof own && own.first == 1 && own.second == 2);
    EXPECT_OK(CVY_OPTS_READ(thing_opts, NULL, &own));
    EXPECT(own.size == sizeof own && own.first == 0 && own.second == 0);

    given.size = offsetof(thing_opts, second); /* an older caller: fields that it lacks get the default */
    EXPECT_OK(CVY_OPTS_READ(thing_opts, &given, &own));
    EXPECT(own.first == 1 && own.second == 0);

    newer_opts newer = {{sizeof newer, 1, 2}, 0};
    EXPECT_OK(CVY_OPTS_READ(thing_opts, &newer, &own));
    EXPECT(own.first == 1 && own.second == 2);
    newer.third = 1;
    EXPECT_FAULT(CVY_OPTS_READ(thing_opts, &newer, &own), CVY_E_ARGUMENT,
                 "a field that only a newer version has is set");
}

static void sizes_that_are_none(void)
{
    thing_opts own, given = {0, 1, 2};
    EXPECT_FAULT(CVY_OPTS_READ(thing_opts, &given, &own), CVY_E_ARGUMENT,
                 "the size of thing_opts is 0: start from thing_opts_default()");
    EXPECT_FAULT(CVY_RESULT_CHECK(thing_opts, &given), CVY_E_ARGUMENT, "the size of thing_opts is 0");
    given.size = 4;
    EXPECT_FAULT(CVY_OPTS_READ(thing_opts, &given, &own), CVY_E_ARGUMENT, "the size of thing_opts is 4, and this");
    given.size = (size_t)-1;
    EXPECT_FAULT(CVY_OPTS_READ(thing_opts, &given, &own), CVY_E_ARGUMENT, "this library's is 24");
}

static void results_by_size(void)
{
    const thing_opts own = {sizeof own, 1, 2};
    newer_opts newer = {{sizeof newer, 7, 7}, 7};
    cvy_result_write(&newer, &own, sizeof own);
    EXPECT(newer.known.size == sizeof newer && newer.known.first == 1 && newer.known.second == 2 && newer.third == 0);

    thing_opts older = {offsetof(thing_opts, second), 7, 7};
    cvy_result_write(&older, &own, sizeof own);
    EXPECT(older.size == offsetof(thing_opts, second) && older.first == 1 && older.second == 7);
    cvy_result_write(NULL, &own, sizeof own);
    EXPECT_OK(CVY_RESULT_CHECK(thing_opts, NULL));
}

int main(void)
{
    TEST(options_by_size);
    TEST(sizes_that_are_none);
    TEST(results_by_size);
    return test_end();
}
