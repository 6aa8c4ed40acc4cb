/* ranks: 1 2 3 */
/*
 * test_metric_ranks.c: metrics merged over ranks equal those of one rank that has all rows, and rankings equal them to
 * the bit; a rank may have no rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include "comm/mpi/comm_mpi.h"
#include "metric/metric.h"
#include "test_util.h"

enum { N = 41, K = 3 };

static double logits[N * K], weight[N];
static int32_t label[N];

static void make_rows(void)
{
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < K; k++)
            logits[i * K + k] = nearbyint(2 * sin(1.3 * i + 2.1 * k));
        label[i] = i * i % K;
        weight[i] = 1 + i % 4 * 0.3;
    }
}

static double measure(const char *name, cvy_comm *comm, int first, int end)
{
    cvy_metric *m = NULL;
    double value = -1;
    EXPECT_OK(cvy_metric_create(name, NULL, &(cvy_shape){1, {K}}, &m));
    for (int i = first; i < end; i += 5) {
        const int n = CVY_MIN(5, end - i);
        const cvy_span output = {
            .dtype = CVY_DTYPE_F64, .ndim = 2, .dim = {n, K}, .elems = n * K, .data = logits + i * K};
        const cvy_span target = {.dtype = CVY_DTYPE_I32, .ndim = 1, .dim = {n}, .elems = n, .data = label + i};
        EXPECT_OK(
            cvy_metric_add(m, &(cvy_metric_rows){.n = n, .output = &output, .target = &target, .weight = weight + i}));
    }
    EXPECT_OK(cvy_metric_finish(m, comm, &value, NULL));
    cvy_metric_destroy(&m);
    return value;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"accuracy", "top_k", "balanced_accuracy", "nll", "brier",
                                        "ece",      "auc",   "efficiency_at_fpr"};
    cvy_comm *all = NULL, *self = NULL;
    MPI_Init(&argc, &argv);
    make_rows();
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &all));
    EXPECT_OK(cvy_comm_create_self(&self));
    for (int i = 0; i < CVY_COUNT(names); i++) {
        const double whole = measure(names[i], self, 0, N);
        /* Shares are uneven on purpose: rank 0 has no rows, and the last rank has all the rest. */
        const int first = all->rank == 0 ? 0 : (all->rank - 1) * 7, end = all->rank == all->nranks - 1 ? N
                                                                          : all->rank == 0             ? 0
                                                                                                       : all->rank * 7;
        const double merged = measure(names[i], all, first, end);
        if (i < 6)
            EXPECT_NEAR(merged, whole, 1e-13);
        else
            EXPECT(merged == whole);
        EXPECT(whole > 0 && whole <= (i == 3 || i == 4 ? 10 : 1));
    }
    all->ops->destroy(all);
    self->ops->destroy(self);
    MPI_Finalize();
    return test_end();
}
