/* ranks: 1 2 3 */
/*
 * test_metric_open.c: metrics of the public API: if the rows are distributed over ranks, the value is that of all rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "test_util.h"

enum { ROWS = 12 };
static cvy_context *all;

static double value_of(const char *text, int nth_is_wrong)
{
    float output[ROWS][3] = {{0}};
    int32_t label[ROWS];
    double weight[ROWS], value = -1;
    cvy_metric *metric = NULL;
    const int rank = cvy_context_rank(all), nranks = cvy_context_nranks(all);
    EXPECT_OK(cvy_metric_open(text, &(cvy_shape){1, {3}}, &metric));
    for (int pass = 0; pass < 2; pass++) { /* a reduction clears it */
        for (int i = rank; i < ROWS; i += nranks) {
            label[i] = i % 3, weight[i] = i != 0;
            output[i][(i + (i % nth_is_wrong == 0)) % 3] = 1;
            cvy_metric_batch batch = cvy_metric_batch_default();
            batch.rows = 1, batch.output = output[i], batch.target = &label[i], batch.weight = &weight[i];
            batch.target_dtype = CVY_DTYPE_I32;
            EXPECT_OK(cvy_metric_add_rows(metric, &batch));
        }
        EXPECT_OK(cvy_metric_reduce(metric, all, &value));
    }
    cvy_metric_destroy(&metric);
    return value;
}

static void values_over_ranks(void)
{
    EXPECT_NEAR(value_of("accuracy", 4), 9.0 / 11, 1e-12); /* rows 0, 4, 8 are wrong, row 0 does not count */
    EXPECT_NEAR(value_of("{name: top_k, k: 3}", 4), 1, 1e-12);
}

static void what_is_refused(void)
{
    cvy_metric *metric = NULL;
    const float output[3] = {0};
    const int32_t label = 3;
    cvy_metric_batch batch = cvy_metric_batch_default();
    EXPECT_FAULT(cvy_metric_open("acuracy", &(cvy_shape){1, {3}}, &metric), CVY_E_CONFIG, "accuracy");
    EXPECT_FAULT(cvy_metric_open("{name: top_k, kk: 2}", &(cvy_shape){1, {3}}, &metric), CVY_E_CONFIG, "kk");
    EXPECT_OK(cvy_metric_open("accuracy", &(cvy_shape){1, {3}}, &metric));
    batch.rows = 1, batch.output = output, batch.target = &label, batch.target_dtype = CVY_DTYPE_I32;
    EXPECT_FAULT(cvy_metric_add_rows(metric, &batch), CVY_E_FORMAT, "label 3, expected 0 .. 2");
    batch.target_dtype = CVY_DTYPE_F32;
    EXPECT_FAULT(cvy_metric_add_rows(metric, &batch), CVY_E_CONFIG, "needs integer labels");
    batch.output = NULL;
    EXPECT_FAULT(cvy_metric_add_rows(metric, &batch), CVY_E_ARGUMENT, "needs outputs and targets");
    cvy_metric_destroy(&metric);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    TEST(values_over_ranks);
    TEST(what_is_refused);
    cvy_context_destroy(&all);
    MPI_Finalize();
    return test_end();
}
