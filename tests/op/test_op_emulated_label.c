/* rows: clang asan */
/*
 * test_op_emulated_label.c: data that an operator cannot use, on the emulated device: a label that no class has, a
 * target out of its range, or an index of no row. A kernel of a GPU cannot refuse them, so the loss is NaN, and so is
 * the gradient of that sample only; or so is the row.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#include <math.h>

#include "backend/emulated/emulated.h"
#include "kernel/kernel.h"
#include "op/op_sample.h"

static cvy_space space;

enum { N = 4, MOST = 400 };

/* Runs the kernel of a GPU of an operator on sources that are given in f64, as many as the sample has. */
static void run(const char *op_name, const char *sources, const char *options, const double *const *values, double *out)
{
    const cvy_op_def *op = cvy_op_find(op_name);
    const cvy_sample sample = {.src = sources, .options = options, .flags = CVY_SAMPLE_POSITIVE, .int_bound = 2};
    cvy_sample_graph b;
    char name[80];
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst = NULL, *scratch = NULL, *state = NULL, *host = NULL;
    EXPECT_OK(cvy_sample_open(op, &sample, CVY_DTYPE_F32, 1, &b));
    const cvy_node *node = b.graph->node[0];
    cvy_kernel_ask ask = {.node = node, .space = &space, .threads = 1};
    snprintf(name, sizeof name, "gpu.%s", op_name);
    const cvy_kernel_def *kernel = cvy_kernel_find(name);
    EXPECT(kernel != NULL);
    EXPECT_OK(kernel->offer(&ask));
    EXPECT_OK(cvy_mem_alloc(MOST * sizeof(double), &host));
    for (int i = 0; i < node->nsrc; i++) {
        const cvy_span span = {.dtype = node->src[i]->dtype, .data = host};
        const int64_t n = cvy_shape_elems(&node->src[i]->shape);
        EXPECT(n <= MOST);
        for (int64_t k = 0; k < n; k++)
            cvy_set(&span, k, values[i][k]);
        const size_t bytes = (size_t)n * cvy_dtype_bytes(span.dtype);
        EXPECT_OK(cvy_space_alloc(&space, bytes, 0, &src[i]));
        EXPECT_OK(cvy_space_write(&space, src[i], host, bytes));
    }
    const cvy_span result = {.dtype = node->dst[0]->dtype, .data = host};
    const int64_t n = cvy_shape_elems(&node->dst[0]->shape);
    const size_t bytes = (size_t)n * cvy_dtype_bytes(result.dtype);
    EXPECT_OK(cvy_space_alloc(&space, bytes, 0, &dst));
    EXPECT_OK(cvy_space_alloc(&space, ask.scratch_bytes + 8, 0, &scratch));
    EXPECT_OK(kernel->create(&ask, &state));
    EXPECT_OK(kernel->run(state, src, &dst, scratch));
    EXPECT_OK(cvy_space_read(&space, host, dst, bytes));
    for (int64_t k = 0; k < n; k++)
        out[k] = cvy_get(&result, k);
    kernel->destroy(state);
    for (int i = 0; i < node->nsrc; i++)
        cvy_space_free(&space, &src[i],
                       (size_t)cvy_shape_elems(&node->src[i]->shape) * cvy_dtype_bytes(node->src[i]->dtype));
    cvy_space_free(&space, &dst, bytes);
    cvy_space_free(&space, &scratch, ask.scratch_bytes + 8);
    cvy_mem_free(&host);
    cvy_sample_close(&b);
}

static double x[MOST];
static const double norm[] = {N}, one[] = {1};

/* Of a loss on labels with so many classes: label 1 of the third sample is `bad`; weight: of that sample. */
static void check_labels(const char *op, int classes, double bad, double weight, const char *options, int is_bad)
{
    const double label[] = {0, 1, bad, 1}, weights[] = {1, 1, weight, 1};
    const double *const forward[] = {x, label, norm, weights}, *const backward[] = {one, x, label, norm, weights};
    char sources[80], grad[80];
    double loss[MOST], dx[MOST];
    snprintf(sources, sizeof sources, "%dx%d,%d:i32,scalar:f64,%d", N, classes, N, N);
    run(op, sources, options, forward, loss);
    EXPECT(isnan(loss[0]) == is_bad);
    snprintf(sources, sizeof sources, "scalar:f64,%dx%d,%d:i32,scalar:f64,%d", N, classes, N, N);
    snprintf(grad, sizeof grad, "%s_grad", op);
    run(grad, sources, options, backward, dx);
    for (int i = 0; i < N * classes; i++)
        EXPECT(isnan(dx[i]) == (is_bad && i / classes == 2));
}

static void labels_that_no_class_has(void)
{
    static const char *const ops[] = {"softmax_cross_entropy", "focal", "hinge"};
    static const int classes[] = {3, 90}; /* a thread for each row, and a block */
    for (int i = 0; i < CVY_COUNT(ops); i++)
        for (int c = 0; c < CVY_COUNT(classes); c++) {
            check_labels(ops[i], classes[c], 2, 1, "", 0);
            check_labels(ops[i], classes[c], classes[c], 1, "", 1);
            check_labels(ops[i], classes[c], -1, 1, "", 1);
            check_labels(ops[i], classes[c], 1e9, 1, "", 1);
            check_labels(ops[i], classes[c], -1, 0, "", 0); /* it does not count */
            check_labels(ops[i], classes[c], -1, 1, "ignore_label: -1", 0);
        }
}

static void dice_and_weights(void)
{
    double out[MOST];
    for (int is_bad = 0; is_bad < 2; is_bad++) {
        const double label[] = {0, 1, is_bad ? 3 : 2, 1};
        const double *const forward[] = {x, label, norm}, *const target[] = {label};
        run("dice", "4x3,4:i32,scalar:f64", "", forward, out);
        EXPECT(isnan(out[0]) == is_bad);
        run("weight_sum", "4:i32", "class_weights: [1, 2, 3]", target, out);
        EXPECT(is_bad ? isnan(out[0]) : out[0] == 8);
        run("weight_sum", "4:i32", "class_weights: [1, 2, 3], ignore_label: 3", target, out);
        EXPECT_NEAR(out[0], is_bad ? 5 : 8, 0);
    }
}

static void targets_out_of_range(void)
{
    double out[MOST];
    for (int is_bad = 0; is_bad < 2; is_bad++) {
        const double target[] = {0, 1, is_bad ? 1.5 : 0.5, 1}, weight[] = {1, 1, 0, 1};
        const double *const sources[] = {x, target, norm, weight};
        run("bce", "4,4,scalar:f64", "", sources, out);
        EXPECT(isnan(out[0]) == is_bad);
        run("bce", "4,4,scalar:f64,4", "", sources, out);
        EXPECT(isfinite(out[0]));
        run("mse", "4,4,scalar:f64", "", sources, out);
        EXPECT(isfinite(out[0]));
    }
}

/* The first index names a row, the second one may not. */
static void rows_that_a_table_lacks(void)
{
    static const double bad[] = {5, -1, 1e9};
    double out[MOST];
    for (int i = 0; i <= CVY_COUNT(bad); i++) {
        const double index[] = {4, i < CVY_COUNT(bad) ? bad[i] : 0};
        const double *const sources[] = {index, x};
        run("embedding", "2:i32", "rows: 5, channels: 3", sources, out);
        for (int c = 0; c < 3; c++) {
            EXPECT_NEAR(out[c], x[12 + c], 1e-6);
            EXPECT(isnan(out[3 + c]) == (i < CVY_COUNT(bad)));
        }
    }
}

int main(void)
{
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, NULL, &space));
    for (int i = 0; i < MOST; i++)
        x[i] = 0.1 + 0.8 * fabs(sin(i));
    TEST(labels_that_no_class_has);
    TEST(dice_and_weights);
    TEST(targets_out_of_range);
    TEST(rows_that_a_table_lacks);
    cvy_space_close(&space);
    return test_end();
}
