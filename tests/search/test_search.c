/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_search.c: the search over process grids in one process: what fits, what does not and why, the job's own grid,
 * the choice, and that nothing is left in memory.
 */
#include <string.h>

#include "search/search.h"

#include "test_util.h"

static cvy_context *context;
static cvy_job *job;
static cvy_dataset_info data;

static const char text[] = "model: {layers: [{conv: {name: c1, channels: 8, kernel: 3, pad: 1}}, relu, "
                           "{conv: {name: c2, channels: 8, kernel: 3, pad: 1}}, relu, {fc: {channels: 4}}]}\n"
                           "data: {train: synthetic}\n"
                           "train: {batch: 8, steps: 1, optimizer: sgd}\n"
                           "plan: {wisdom: \"off\"}\n";

static cvy_status parse(const char *const *sets, int nsets)
{
    cvy_job_destroy(&job);
    return cvy_job_parse_text("job", text, sets, nsets, &job);
}

static cvy_search_opts opts_for(int nranks)
{
    return (cvy_search_opts){.context = context,
                             .job = job,
                             .data = &data,
                             .nranks = nranks,
                             .network = cvy_network_of_node(nranks),
                             .threads = 1};
}

static const cvy_search_candidate *find(const cvy_search *s, const char *grid)
{
    for (int i = 0; i < s->n; i++) {
        cvy_text name = {0};
        cvy_search_grid_text(&s->at[i].grid, &name);
        const int same = strcmp(name.data, grid) == 0;
        cvy_text_free(&name);
        if (same)
            return &s->at[i];
    }
    return NULL;
}

static void test_all_grids(void)
{
    static const char *const sets[] = {
        "model.layers=[{conv: {name: c1, channels: 4, kernel: 3, pad: 1}}, relu, {fc: {channels: 4}}]"};
    const cvy_search_candidate *best = NULL, *tensor;
    cvy_search found = {0};
    EXPECT_OK(parse(sets, 1));
    const cvy_search_opts o = opts_for(5);
    EXPECT_OK(cvy_search_run(&o, &found));
    EXPECT_OK(cvy_search_best(&found, &o, &best));
    EXPECT(best == &found.at[0]);
    for (int i = 1; i < found.n && found.at[i].status == CVY_OK; i++)
        EXPECT(found.at[i].samples_per_s <= 1.02 * best->samples_per_s && found.at[i].need_bytes > 0);
    EXPECT(find(&found, "data 5") && find(&found, "data 5")->status == CVY_OK);
    tensor = find(&found, "tensor 5");
    EXPECT(tensor && tensor->status != CVY_OK && strstr(tensor->why, "would all compute the same"));
    /* on two ranks a rank of the tensor grid has half of the weights */
    cvy_search_free(&found);
    EXPECT_OK(parse(NULL, 0));
    const cvy_search_opts again = opts_for(2);
    EXPECT_OK(cvy_search_run(&again, &found));
    tensor = find(&found, "tensor 2");
    EXPECT(tensor && tensor->status == CVY_OK && tensor->time.exposed_s[CVY_COMM_TENSOR] > 0);
    EXPECT(find(&found, "spatial 2x1") && find(&found, "spatial 2x1")->status == CVY_OK);
    cvy_search_free(&found);
}

static void test_memory(void)
{
    const cvy_search_candidate *best = NULL;
    cvy_search found = {0};
    EXPECT_OK(parse(NULL, 0));
    cvy_search_opts o = opts_for(2);
    o.memory_limit = 1000;
    EXPECT_OK(cvy_search_run(&o, &found));
    EXPECT_FAULT(cvy_search_best(&found, &o, &best), CVY_E_MEMORY, "the least memory is");
    for (int i = 1; i < found.n && found.at[i].status == CVY_E_MEMORY; i++)
        EXPECT(found.at[i].need_bytes >= found.at[0].need_bytes);
    cvy_search_free(&found);
}

static void test_own_grid(void)
{
    static const char *const sets[] = {"parallel.pipeline=2", "train.accumulate=4"};
    cvy_search found = {0};
    EXPECT_OK(parse(sets, 2));
    cvy_search_opts o = opts_for(4);
    o.only_given = 1;
    EXPECT_OK(cvy_search_run(&o, &found));
    EXPECT_INT(found.n, 1);
    EXPECT(find(&found, "data 2 x pipeline 2, 4 micro-batches"));
    EXPECT(found.at[0].status == CVY_OK && found.at[0].time.bubble_s > 0);
    cvy_search_free(&found);
    o.nranks = 3;
    EXPECT_FAULT(cvy_search_run(&o, &found), CVY_E_CONFIG, "must be a multiple");
}

int main(void)
{
    EXPECT_OK(cvy_context_create(NULL, &context));
    data = (cvy_dataset_info){.nfield = 2, .nclasses = 4, .format = "synthetic data"};
    data.field[0] = (cvy_field){(char[]){"x"}, CVY_DTYPE_F32, {.ndim = 3, .dim = {3, 8, 8}}};
    data.field[1] = (cvy_field){(char[]){"label"}, CVY_DTYPE_I32, {0}};
    TEST(test_all_grids);
    TEST(test_memory);
    TEST(test_own_grid);
    cvy_job_destroy(&job);
    cvy_context_destroy(&context);
    EXPECT_INT(cvy_memory_bytes(), 0);
    return test_end();
}
