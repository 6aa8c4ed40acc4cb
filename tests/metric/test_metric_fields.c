/* ranks: 1 4 */
/*
 * test_metric_fields.c: iou, dice, accuracy, border_rmse and spectrum_error of maps equal the numbers of scikit-learn
 * and NumPy, have the same bits on one rank and on several ranks, one of which has no rows, and refuse what does not
 * fit.
 *
 * scikit-learn 1.9 computed iou and dice (jaccard_score and f1_score for each class, with the weights of the
 * positions), the formula of DeepCAM's reference in Python those of per_sample, NumPy border_rmse and spectrum_error
 * (by its fft2), from these formulas. There are 12 samples of 3 classes on 5x6 positions: output[n][k][p] = sin(1.3 n
 * + 2.1 k + 0.7 p), label (n n + p / 3) mod 3, or 9, which is ignored, if (n + p) mod 11 is 0; the weight of a sample
 * is 1 + n mod 3, and 0 for n = 4. Targets of fields are cos(0.9 n + 1.7 k + 0.3 p).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>
#include <stdio.h>

#include "comm/mpi/comm_mpi.h"
#include "metric/metric.h"
#include "test_util.h"

enum { N = 12, K = 3, H = 5, W = 6, P = H * W };

static double output[N][K][P], field[N][K][P], weight[N];
static int32_t label[N][P];
static cvy_comm *all = NULL, *self = NULL;

static void make_rows(void)
{
    for (int n = 0; n < N; n++) {
        for (int p = 0; p < P; p++) {
            for (int k = 0; k < K; k++) {
                output[n][k][p] = sin(1.3 * n + 2.1 * k + 0.7 * p);
                field[n][k][p] = cos(0.9 * n + 1.7 * k + 0.3 * p);
            }
            label[n][p] = (n + p) % 11 == 0 ? 9 : (n * n + p / 3) % 3;
        }
        weight[n] = n == 4 ? 0 : 1 + n % 3;
    }
}

/* Measures the rows first .. end - 1, one at a time. On all ranks, rank 0 has none, and the last one has the rest. */
static double measure(const char *metric, int is_field, cvy_comm *comm, cvy_json *detail)
{
    const int first = comm->nranks == 1 || comm->rank == 0 ? 0 : (comm->rank - 1) * 3,
              end = comm->rank == comm->nranks - 1 ? N
                    : comm->rank == 0              ? 0
                                                   : comm->rank * 3;
    cvy_metric *m = NULL;
    double value = -1;
    EXPECT_OK(cvy_metric_open(metric, &(cvy_shape){3, {K, H, W}}, &m));
    for (int n = first; m && n < end; n++) {
        const cvy_span out = {
            .dtype = CVY_DTYPE_F64, .ndim = 4, .dim = {1, K, H, W}, .elems = K * P, .data = output[n]};
        const cvy_span real = {
            .dtype = CVY_DTYPE_F64, .ndim = 4, .dim = {1, K, H, W}, .elems = K * P, .data = field[n]};
        const cvy_span map = {.dtype = CVY_DTYPE_I32, .ndim = 3, .dim = {1, H, W}, .elems = P, .data = label[n]};
        EXPECT_OK(cvy_metric_add(
            m, &(cvy_metric_rows){.n = 1, .output = &out, .target = is_field ? &real : &map, .weight = weight + n}));
    }
    if (m)
        EXPECT_OK(cvy_metric_finish(m, comm, &value, detail));
    cvy_metric_destroy(&m);
    return value;
}

static void expect(const char *metric, int is_field, double expected)
{
    const double one = measure(metric, is_field, self, NULL), merged = measure(metric, is_field, all, NULL);
    EXPECT_NEAR(one, expected, 1e-13);
    EXPECT(merged == one);
}

static void values(void)
{
    expect("{name: iou, ignore_label: 9}", 0, 0.20071383240126495);
    expect("{name: iou, ignore_label: 9, leave_out: [0]}", 0, 0.17487266553480474);
    expect("{name: dice, ignore_label: 9}", 0, 0.33162193167259024);
    expect("{name: iou, ignore_label: 9, per_sample: true}", 0, 0.2447946908508406);
    expect("{name: dice, ignore_label: 9, per_sample: true}", 0, 0.3299599231698866);
    expect("{name: accuracy, ignore_label: 9}", 0, 0.32833333333333331);
    expect("rmse", 1, 1.0020133851000648);
    expect("{name: border_rmse, width: 1}", 1, 1.0045647889034055);
    expect("{name: border_rmse, width: 2}", 1, 1.0090128527791078);
    /* The transform is in f32: an error of 1e-6 of the power is 4e-6 dB. */
    const double one = measure("spectrum_error", 1, self, NULL);
    EXPECT_NEAR(one, 3.1817600497200433, 1e-5);
    EXPECT(measure("spectrum_error", 1, all, NULL) == one);
}

/* The numbers of a list in the detail of a metric. */
static void expect_detail(const char *metric, int is_field, const char *key, int count, const double *expected)
{
    cvy_json json = {0};
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    cvy_json_open(&json, NULL, '{');
    measure(metric, is_field, self, &json);
    cvy_json_close(&json, '}');
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_tree_parse_text(pool, "json", json.text.data, json.text.bytes, &tree));
    const cvy_tree *list = cvy_tree_get(tree, key);
    EXPECT(list && list->count == count);
    for (int i = 0; list && i < list->count; i++) {
        double value = NAN;
        if (!isnan(expected[i]))
            EXPECT_OK(cvy_tree_real(list->child[i], &value));
        else
            EXPECT(cvy_tree_is_null(list->child[i]));
        EXPECT(isnan(expected[i]) || fabs(value - expected[i]) < 1e-8);
    }
    cvy_pool_destroy(&pool);
    cvy_text_free(&json.text);
}

static void details(void)
{
    const double iou[] = {0.252396166134, 0.136842105263, 0.212903225806},
                 dice[] = {0.40306122449, 0.240740740741, 0.351063829787};
    const double channel[] = {1.00243447507, 1.00915175969, 0.994399477505};
    const double distance[] = {1.0045647889, 1.01697034205, 0.898312439949},
                 no_rest[] = {1.0045647889, 1.01697034205, 0.898312439949, NAN, NAN};
    expect_detail("{name: iou, ignore_label: 9}", 0, "iou_by_class", 3, iou);
    expect_detail("{name: dice, ignore_label: 9}", 0, "dice_by_class", 3, dice);
    expect_detail("rmse", 1, "rmse_by_output", 3, channel);
    expect_detail("{name: border_rmse, width: 2}", 1, "rmse_by_distance", 3, distance);
    expect_detail("{name: border_rmse, width: 4}", 1, "rmse_by_distance", 5, no_rest);
}

/* A class that neither occurs nor is predicted is not in the mean; a position with a NaN is predicted as no class. */
static void classes_that_do_not_occur(void)
{
    double logits[3][4] = {{1, 1, NAN, 1}, {0, 0, 0, 2}, {-1, -1, -1, -1}};
    int32_t labels[4] = {0, 0, 0, 1};
    const cvy_span out = {.dtype = CVY_DTYPE_F64, .ndim = 3, .dim = {1, 3, 4}, .elems = 12, .data = logits};
    const cvy_span map = {.dtype = CVY_DTYPE_I32, .ndim = 2, .dim = {1, 4}, .elems = 4, .data = labels};
    cvy_metric *m = NULL;
    double value = 0;
    EXPECT_OK(cvy_metric_open("iou", &(cvy_shape){2, {3, 4}}, &m));
    EXPECT_OK(cvy_metric_add(m, &(cvy_metric_rows){.n = 1, .output = &out, .target = &map}));
    EXPECT_OK(cvy_metric_finish(m, self, &value, NULL));
    EXPECT_NEAR(value, (2.0 / 3 + 1) / 2, 1e-15);
    cvy_metric_destroy(&m);
    EXPECT_OK(cvy_metric_open("{name: iou, per_sample: true}", &(cvy_shape){2, {3, 4}}, &m));
    EXPECT_OK(cvy_metric_add(m, &(cvy_metric_rows){.n = 1, .output = &out, .target = &map}));
    EXPECT_OK(cvy_metric_finish(m, self, &value, NULL));
    EXPECT_NEAR(value, (2.0 / 3 + 1 + 1) / 3, 1e-15);
    cvy_metric_destroy(&m);
}

static void what_is_refused(void)
{
    cvy_metric *m = NULL;
    EXPECT_FAULT(cvy_metric_open("{name: iou, leave_out: 3}", &(cvy_shape){3, {3, 4, 4}}, &m), CVY_E_CONFIG,
                 "class 3, expected 0 .. 2");
    EXPECT_FAULT(cvy_metric_open("{name: dice, leave_out: [0, 1, 0, 2]}", &(cvy_shape){3, {3, 4, 4}}, &m), CVY_E_CONFIG,
                 "names all 3 classes");
    EXPECT_FAULT(cvy_metric_open("border_rmse", &(cvy_shape){1, {3}}, &m), CVY_E_CONFIG,
                 "needs outputs with positions");
    EXPECT_FAULT(cvy_metric_open("spectrum_error", &(cvy_shape){2, {3, 1}}, &m), CVY_E_SHAPE,
                 "compares fields [H, W] or [C, .., H, W], but the output of a sample is 3x1");
    EXPECT(m == NULL);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    make_rows();
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &all));
    EXPECT_OK(cvy_comm_create_self(&self));
    TEST(values);
    TEST(details);
    TEST(classes_that_do_not_occur);
    TEST(what_is_refused);
    all->ops->destroy(all);
    self->ops->destroy(self);
    MPI_Finalize();
    return test_end();
}
