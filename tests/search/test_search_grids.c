/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_search_grids.c: the process grids of a number of ranks: each once, the data axis first, no axis without a
 * dimension or a sample; their variants and their text.
 */
#include <string.h>

#include "search/search_grids.h"

#include "test_util.h"

enum { ROOM = 64 };

static const char *text_of(const cvy_search_grid *grid)
{
    static char copy[128];
    cvy_text text = {0};
    cvy_search_grid_text(grid, &text);
    snprintf(copy, sizeof copy, "%s", text.data);
    cvy_text_free(&text);
    return copy;
}

static void test_all_products(void)
{
    const cvy_search_space space = {.nranks = 4, .ndims = 2, .batch = 64, .tensor_layers = 1};
    cvy_search_grid grid[ROOM];
    const int n = cvy_search_list_grids(&space, grid);
    EXPECT_INT(n, cvy_search_list_grids(&space, NULL));
    EXPECT_INT(n, 15); /* 2 factors of 2 on 5 axes: 5 alone, 10 pairs */
    EXPECT_TEXT(text_of(&grid[0]), "data 4");
    for (int i = 0; i < n; i++) {
        int64_t product = 1;
        for (int a = 0; a < CVY_AXES; a++)
            product *= grid[i].length[a];
        EXPECT_INT(product, 4);
        EXPECT_INT(grid[i].length[CVY_AXIS_SPACE2], 1);
        for (int k = 0; k < i; k++)
            EXPECT(memcmp(grid[i].length, grid[k].length, sizeof grid[i].length) != 0);
    }
}

static void test_limits(void)
{
    cvy_search_space space = {.nranks = 4, .ndims = 0, .batch = 2, .tensor_layers = 1};
    cvy_search_grid grid[ROOM];
    const int n = cvy_search_list_grids(&space, grid);
    EXPECT_INT(n, 5); /* of data, pipeline and tensor: not data 4, which has no sample for each rank */
    for (int i = 0; i < n; i++)
        EXPECT(grid[i].length[CVY_AXIS_DATA] <= 2 && grid[i].micro_batches <= 2);
    space.nranks = 1;
    EXPECT_INT(cvy_search_list_grids(&space, grid), 1);
    EXPECT_TEXT(text_of(&grid[0]), "data 1");
    space = (cvy_search_space){.nranks = 7, .ndims = 3, .batch = 7, .tensor_layers = 1};
    EXPECT_INT(cvy_search_list_grids(&space, grid), 6);
}

static void test_variants(void)
{
    cvy_search_space space = {.nranks = 4, .batch = 64, .tensor_layers = 1};
    cvy_search_grid grid = {.length = {2, 2, 1, 1, 1, 1}, .micro_batches = 8, .interleave = 1},
                    out[CVY_SEARCH_VARIANTS];
    EXPECT_INT(cvy_search_list_variants(&space, &grid, out), 3);
    EXPECT_TEXT(text_of(&out[0]), "data 2 x pipeline 2, 4 micro-batches");
    EXPECT_TEXT(text_of(&out[1]), "data 2 x pipeline 2, 16 micro-batches");
    EXPECT_TEXT(text_of(&out[2]), "data 2 x pipeline 2, 8 micro-batches, interleave 2");
    space.micro_batches = 8; /* the job has them, and the number of stages of a rank */
    space.interleave = 1;
    EXPECT_INT(cvy_search_list_variants(&space, &grid, out), 0);
    grid = (cvy_search_grid){.length = {4, 1, 1, 1, 1, 1}, .micro_batches = 1, .interleave = 1};
    EXPECT_INT(cvy_search_list_variants(&space, &grid, out), 0);
}

/* Each grid with a tensor axis is there twice, unless the job says which layers it splits. */
static void test_tensor_layers(void)
{
    cvy_search_space space = {.nranks = 2, .batch = 8, .micro_batches = 1};
    cvy_search_grid grid[8];
    EXPECT_INT(cvy_search_list_grids(&space, grid), 4);
    EXPECT_TEXT(text_of(&grid[1]), "tensor 2");
    EXPECT_TEXT(text_of(&grid[2]), "tensor 2 (auto)");
    space.tensor_layers = 1;
    EXPECT_INT(cvy_search_list_grids(&space, grid), 3);
}

static void test_keys(void)
{
    const cvy_search_grid grid = {.length = {2, 4, 2, 2, 1, 1}, .micro_batches = 16, .interleave = 2};
    cvy_text text = {0};
    cvy_search_grid_keys(&grid, &text);
    EXPECT_TEXT(text.data, "parallel: {pipeline: 4, interleave: 2, tensor: 2, spatial: [2, 1]}, train.accumulate: 16");
    cvy_text_free(&text);
}

int main(void)
{
    TEST(test_all_products);
    TEST(test_limits);
    TEST(test_variants);
    TEST(test_tensor_layers);
    TEST(test_keys);
    return test_end();
}
