/* ranks: 1 3 */
/*
 * test_metric_mask.c: metrics with a weight for each position equal those of the positions that count, written down by
 * loops, have the same bits on one rank and on three, do not look at positions of weight 0, and are undefined if
 * nothing counts.
 *
 * There are 6 samples of 3 classes on 4x5 positions: output[n][k][p] = sin(1.3 n + 2.1 k + 0.7 p), label (n n + p / 3)
 * mod 3, and targets cos(0.9 n + 1.7 k + 0.3 p) for fields. The weight of a position is (n + p) mod 3, and 0 on all of
 * sample 2. Where it is 0, the label is 99 and the target is NaN.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include "comm/mpi/comm_mpi.h"
#include "metric/metric.h"
#include "test_util.h"

enum { N = 6, K = 3, H = 4, W = 5, P = H * W };

static double output[N][K][P], field[N][K][P], mask[N][P], nothing[N][P];
static int32_t label[N][P];
static cvy_comm *all = NULL, *self = NULL;

static void make_rows(void)
{
    for (int n = 0; n < N; n++)
        for (int p = 0; p < P; p++) {
            mask[n][p] = n == 2 ? 0 : (n + p) % 3;
            label[n][p] = mask[n][p] == 0 ? 99 : (n * n + p / 3) % 3;
            for (int k = 0; k < K; k++) {
                output[n][k][p] = sin(1.3 * n + 2.1 * k + 0.7 * p);
                field[n][k][p] = mask[n][p] == 0 ? NAN : cos(0.9 * n + 1.7 * k + 0.3 * p);
            }
        }
}

/* Each rank has every third sample, one at a time. */
static double measure(const char *metric, int is_field, double (*weight)[P], cvy_comm *comm)
{
    cvy_metric *m = NULL;
    double value = -1;
    EXPECT_OK(cvy_metric_open(metric, &(cvy_shape){3, {K, H, W}}, &m));
    for (int n = comm->rank; m && n < N; n += comm->nranks) {
        const cvy_span out = {
            .dtype = CVY_DTYPE_F64, .ndim = 4, .dim = {1, K, H, W}, .elems = K * P, .data = output[n]};
        const cvy_span real = {
            .dtype = CVY_DTYPE_F64, .ndim = 4, .dim = {1, K, H, W}, .elems = K * P, .data = field[n]};
        const cvy_span map = {.dtype = CVY_DTYPE_I32, .ndim = 3, .dim = {1, H, W}, .elems = P, .data = label[n]};
        const cvy_metric_rows rows = {
            .n = 1, .output = &out, .target = is_field ? &real : &map, .weight = weight[n], .weight_each = P};
        EXPECT_OK(cvy_metric_add(m, &rows));
    }
    if (m)
        EXPECT_OK(cvy_metric_finish(m, comm, &value, NULL));
    cvy_metric_destroy(&m);
    return value;
}

static int guess_at(int n, int p)
{
    int best = 0;
    for (int k = 1; k < K; k++)
        best = output[n][k][p] > output[n][best][p] ? k : best;
    return best;
}

static double accuracy(void)
{
    double right = 0, sum = 0;
    for (int n = 0; n < N; n++)
        for (int p = 0; p < P; p++) {
            right += mask[n][p] > 0 && guess_at(n, p) == label[n][p] ? mask[n][p] : 0;
            sum += mask[n][p];
        }
    return right / sum;
}

static double nll(void)
{
    double nll = 0, sum = 0;
    for (int n = 0; n < N; n++)
        for (int p = 0; p < P; p++) {
            double total = 0;
            for (int k = 0; k < K; k++)
                total += exp(output[n][k][p]);
            nll += mask[n][p] > 0 ? mask[n][p] * (log(total) - output[n][label[n][p]][p]) : 0;
            sum += mask[n][p];
        }
    return nll / sum;
}

static double iou(void)
{
    double mean = 0;
    for (int k = 0; k < K; k++) {
        double both = 0, either = 0;
        for (int n = 0; n < N; n++)
            for (int p = 0; p < P; p++) {
                const int is = label[n][p] == k, said = guess_at(n, p) == k;
                both += is && said ? mask[n][p] : 0;
                either += is || said ? mask[n][p] : 0;
            }
        mean += both / either / K;
    }
    return mean;
}

/* Root mean squared error of the positions nearer to the border than `width`. */
static double rmse(int width)
{
    double error = 0, sum = 0;
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            for (int p = 0; p < P; p++) {
                const int r = p / W, c = p % W, far = r < H - 1 - r ? r : H - 1 - r,
                          wide = c < W - 1 - c ? c : W - 1 - c;
                const double d = output[n][k][p] - field[n][k][p], w = mask[n][p];
                if (w == 0 || (far < wide ? far : wide) >= width)
                    continue;
                error += w * d * d;
                sum += w;
            }
    return sqrt(error / sum);
}

/* The mean over the elements, each by itself; positions that never count are left out. */
static double r2(void)
{
    double mean = 0;
    int count = 0;
    for (int k = 0; k < K; k++)
        for (int p = 0; p < P; p++) {
            double sum = 0, y = 0, spread = 0, error = 0;
            for (int n = 0; n < N; n++) {
                sum += mask[n][p];
                y += mask[n][p] > 0 ? mask[n][p] * field[n][k][p] : 0;
            }
            for (int n = 0; n < N && sum > 0; n++)
                if (mask[n][p] > 0) {
                    const double d = output[n][k][p] - field[n][k][p], from = field[n][k][p] - y / sum;
                    spread += mask[n][p] * from * from;
                    error += mask[n][p] * d * d;
                }
            mean += sum > 0 ? 1 - error / spread : 0;
            count += sum > 0;
        }
    return mean / count;
}

static void expect(const char *metric, int is_field, double expected)
{
    const double one = measure(metric, is_field, mask, self), merged = measure(metric, is_field, mask, all);
    test_checks++;
    if (!(fabs(one - expected) < 1e-12)) {
        test_failures++;
        printf("%s is %.16g, expected %.16g\n", metric, one, expected);
    }
    EXPECT(merged == one);
}

static void positions_count_as_they_weigh(void)
{
    expect("accuracy", 0, accuracy());
    expect("{name: top_k, k: 1}", 0, accuracy());
    expect("nll", 0, nll());
    expect("iou", 0, iou());
    expect("rmse", 1, rmse(100));
    expect("{name: border_rmse, width: 1}", 1, rmse(1));
    expect("r2", 1, r2());
}

static void a_mask_of_everything_leaves_nothing(void)
{
    static const char *const of_labels[] = {"accuracy", "balanced_accuracy", "top_k", "nll", "brier", "ece", "iou",
                                            "dice"},
                             *const of_fields[] = {"rmse", "mae", "r2", "{name: r2, average: variance}", "border_rmse"};
    for (int i = 0; i < CVY_COUNT(of_labels); i++)
        EXPECT(isnan(measure(of_labels[i], 0, nothing, all)));
    for (int i = 0; i < CVY_COUNT(of_fields); i++)
        EXPECT(isnan(measure(of_fields[i], 1, nothing, all)));
}

static void what_is_refused(void)
{
    const cvy_span out = {.dtype = CVY_DTYPE_F64, .ndim = 4, .dim = {1, K, H, W}, .elems = K * P, .data = output[0]};
    const cvy_span map = {.dtype = CVY_DTYPE_I32, .ndim = 3, .dim = {1, H, W}, .elems = P, .data = label[0]};
    cvy_metric *m = NULL;
    EXPECT_OK(cvy_metric_open("accuracy", &(cvy_shape){3, {K, H, W}}, &m));
    cvy_metric_rows rows = {.n = 1, .output = &out, .target = &map, .weight = mask[0], .weight_each = 7};
    EXPECT_FAULT(cvy_metric_add(m, &rows), CVY_E_SHAPE, "7 weights for each sample, whose target has 20 elements");
    rows.weight_each = 1;
    rows.weight = &(double){1};
    EXPECT_FAULT(cvy_metric_add(m, &rows), CVY_E_FORMAT, "label 99, expected 0 .. 2");
    cvy_metric_destroy(&m);
    EXPECT_FAULT(cvy_metric_open("{name: coverage, levels: [0, 0.5]}", &(cvy_shape){1, {2}}, &m), CVY_E_CONFIG,
                 "level 1 is 0, expected a number between 0 and 1");
    EXPECT_FAULT(cvy_metric_open("{name: coverage, levels: [0.3]}", &(cvy_shape){1, {2}}, &m), CVY_E_CONFIG,
                 "two or more levels");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    make_rows();
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &all));
    EXPECT_OK(cvy_comm_create_self(&self));
    TEST(positions_count_as_they_weigh);
    TEST(a_mask_of_everything_leaves_nothing);
    TEST(what_is_refused);
    all->ops->destroy(all);
    self->ops->destroy(self);
    MPI_Finalize();
    return test_end();
}
