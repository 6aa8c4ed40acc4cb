/* rows: clang asan */
/*
 * test_onnx_einsum.c: Einsum of ONNX becomes products of matrices, sums and transpositions, and ScatterND slices that
 * are joined. They give the expected numbers, wherever the samples are, and what they cannot become is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <unistd.h>

#include "exchange/onnx_case.h"

/* A sample is [2, 3, 4]: x[c][i][j] is x[c * 12 + i * 4 + j]. */
#define SAMPLE .ndim = 3, .dim = {2, 3, 4}

/* ---- what is expected ---- */

/* y[c][i][k] = sum of x[c][i][j] * x[c][k][j] */
static void scores(const float *x, double *y)
{
    for (int o = 0; o < 18; o++) {
        y[o] = 0;
        for (int j = 0; j < 4; j++)
            y[o] += (double)x[o / 9 * 12 + o / 3 % 3 * 4 + j] * x[o / 9 * 12 + o % 3 * 4 + j];
    }
}

/* y[k][i][c] = sum of x[c][i][j] * w[j][k], w[j][k] = 1 + j * 2 + k */
static void channels_last(const float *x, double *y)
{
    for (int o = 0; o < 12; o++) {
        y[o] = 0;
        for (int j = 0; j < 4; j++)
            y[o] += x[o % 2 * 12 + o / 2 % 3 * 4 + j] * (1. + j * 2 + o / 6);
    }
}

/* y[c][i][k] = sum of x[c][i][j] * w[c][j][k], w = 1 + c * 8 + j * 2 + k */
static void by_channel(const float *x, double *y)
{
    for (int o = 0; o < 12; o++) {
        y[o] = 0;
        for (int j = 0; j < 4; j++)
            y[o] += x[o / 6 * 12 + o / 2 % 3 * 4 + j] * (1. + o / 6 * 8 + j * 2 + o % 2);
    }
}

/* by {2, -1} for the channels */
static void factors(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] * (i / 12 ? -1. : 2.);
}

/* y[j][c] = sum of x[c][i][j] over i */
static void column_sums(const float *x, double *y)
{
    for (int o = 0; o < 8; o++)
        y[o] = (double)x[o % 2 * 12 + o / 2] + x[o % 2 * 12 + 4 + o / 2] + x[o % 2 * 12 + 8 + o / 2];
}

/* y[c] = sum of x[c][i][j] * x[c][i][j] */
static void squares(const float *x, double *y)
{
    for (int c = 0; c < 2; c++) {
        y[c] = 0;
        for (int i = 0; i < 12; i++)
            y[c] += (double)x[c * 12 + i] * x[c * 12 + i];
    }
}

/* y[i][k] = sum of x[0][i][j] * x[0][k][j] + the same of channel 1: the sums over c and j */
static void all_scores(const float *x, double *y)
{
    double of_channel[18];
    scores(x, of_channel);
    for (int o = 0; o < 9; o++)
        y[o] = of_channel[o] + of_channel[o + 9];
}

/* by the diagonal {1, 6, 11, 16} of [4, 4] */
static void by_diagonal(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] * (1. + i % 4 * 5);
}

/* x W and then by W turned, W[j][k] = 1 + j * 4 + k, all divided by 100 */
static void there_and_back(const float *x, double *y)
{
    for (int row = 0; row < 6; row++) {
        double once[4] = {0};
        for (int i = 0; i < 16; i++)
            once[i % 4] += x[row * 4 + i / 4] * (1. + i) / 100;
        for (int j = 0; j < 4; j++) {
            y[row * 4 + j] = 0;
            for (int k = 0; k < 4; k++)
                y[row * 4 + j] += once[k] * (1. + j * 4 + k) / 100;
        }
    }
}

/* y[k][i] = sum of x[c][i][j] * w[c][j][k] over c and j, w as by_channel has it */
static void over_channels(const float *x, double *y)
{
    double each[12];
    by_channel(x, each);
    for (int o = 0; o < 6; o++)
        y[o] = each[o % 3 * 2 + o / 3] + each[6 + o % 3 * 2 + o / 3];
}

/* channel 1 is minus what it was */
static void second_negated(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = i / 12 ? -(double)x[i] : x[i];
}

/* row 1 of channel 0 is {5, 6, 7, 8} */
static void row_replaced(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = i / 4 == 1 ? 1 + i : x[i];
}

/* with the rows t0, t1, t2 of a channel: t0 + t0 + t2, t1, t2 + t1 */
static void rows_added(const float *x, double *y)
{
    for (int i = 0; i < 24; i++) {
        const int row = i / 4 % 3;
        y[i] = row == 0 ? (double)x[i] + x[i] + x[i + 8] : row == 2 ? (double)x[i] + x[i - 4] : (double)x[i];
    }
}

/* rows t1, t2, 7 and t0 of a channel */
static void into_constant(const float *x, double *y)
{
    for (int i = 0; i < 32; i++) {
        const int row = i / 4 % 4, from = row == 3 ? 0 : row + 1;
        y[i] = row == 2 ? 7 : x[i / 16 * 12 + from * 4 + i % 4];
    }
}

/* by {1, 20, 3, 40} */
static void by_scattered(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] * (i % 2 ? 10. : 1.) * (1 + i % 4);
}

#define COUNTED(name, n, ...)                                                                                          \
    {                                                                                                                  \
        name, .ndim = n, .dim = {__VA_ARGS__}, .value = {1}, .step = 1, .period = 16                                   \
    }

#define WHOLE(name, n, v)                                                                                              \
    {                                                                                                                  \
        name, 1, .ndim = n, .dim = {1, 1}, .value = { v }                                                              \
    }

static const struct operator_case cases[] = {
    {{SAMPLE, .node = {{"Einsum", "x x", "y", "equation: 'bhid,bhjd->bhij"}}}, "transpose matmul", 18, scores},
    {{SAMPLE, .node = {{"Einsum", "x w", "y", "equation: 'ncij,jk->nkic"}}, .constant = {COUNTED("w", 2, 4, 2)}},
     "transpose fc transpose",
     12,
     channels_last},
    {{SAMPLE, .node = {{"Einsum", "x w", "y", "equation: '...ij,...jk->...ik"}},
      .constant = {COUNTED("w", 3, 2, 4, 2)}},
     "constant affine matmul",
     12,
     by_channel},
    {{SAMPLE, .node = {{"Einsum", "w x", "y", "equation: 'c,bcij->bcij"}},
      .constant = {{"w", .ndim = 1, .dim = {2}, .value = {2, -1}}}},
     "affine",
     24,
     factors},
    {{SAMPLE, .node = {{"Einsum", "x", "y", "equation: 'bcij->bjc"}}}, "reduction transpose", 8, column_sums},
    {{SAMPLE, .node = {{"Einsum", "x x", "y", "equation: 'bcij,bcij->bc"}}},
     "reshape reshape matmul reshape",
     2,
     squares},
    {{SAMPLE, .node = {{"Einsum", "x x", "y", "equation: 'bcij,bckj->bik"}}},
     "transpose reshape transpose reshape matmul",
     9,
     all_scores},
    /* samples and channels share an axis, as heads do */
    {{SAMPLE,
      .node = {{"Reshape", "x heads", "h", NULL},
               {"Einsum", "h h", "s", "equation: 'bij,bkj->bik"},
               {"Reshape", "s apart", "y", NULL}},
      .constant = {{"heads", 1, .ndim = 1, .dim = {3}, .value = {-1, 3, 4}},
                   {"apart", 1, .ndim = 1, .dim = {4}, .value = {-1, 2, 3, 3}}}},
     "transpose matmul",
     18,
     scores},
    /* the samples are on the second axis, and in the result on the last one */
    {{SAMPLE,
      .node = {{"Transpose", "x", "t", "perm: 1 0 2 3"},
               {"Einsum", "w t", "e", "equation: 'cjk,cbij->kib"},
               {"Transpose", "e", "y", "perm: 2 0 1"}},
      .constant = {COUNTED("w", 3, 2, 4, 2)}},
     "transpose reshape fc transpose",
     6,
     over_channels},
    {{SAMPLE, .node = {{"Einsum", "w", "d", "equation: 'ii->i"}, {"Mul", "x d", "y", NULL}},
      .constant = {COUNTED("w", 2, 4, 4)}},
     "affine",
     24,
     by_diagonal},
    {{SAMPLE,
      .node = {{"Transpose", "x", "t", "perm: 1 0 2 3"},
               {"Slice", "t one two zero", "s", NULL},
               {"Neg", "s", "n", NULL},
               {"ScatterND", "t index n", "u", NULL},
               {"Transpose", "u", "y", "perm: 1 0 2 3"}},
      .constant = {WHOLE("one", 1, 1), WHOLE("two", 1, 2), WHOLE("zero", 1, 0), WHOLE("index", 2, -1)}},
     "slice scale reshape reshape concat slice slice concat reshape",
     24,
     second_negated},
    /* the batch is 1, and the indices name it */
    {{SAMPLE, .batch = 1, .node = {{"ScatterND", "x index u", "y", "reduction: 'none"}},
      .constant = {{"index", 1, .ndim = 2, .dim = {1, 3}, .value = {0, 0, 1}},
                   {"u", .ndim = 2, .dim = {1, 4}, .value = {5, 6, 7, 8}}}},
     "reshape constant affine concat slice slice slice concat reshape",
     24,
     row_replaced},
    {{SAMPLE, .opset = 16,
      .node = {{"Transpose", "x", "t", "perm: 2 0 1 3"},
               {"ScatterND", "t index t", "u", "reduction: 'add"},
               {"Transpose", "u", "y", "perm: 1 2 0 3"}},
      .constant = {{"index", 1, .ndim = 2, .dim = {3, 1}, .value = {0, 2, 0}}}},
     "transpose reshape reshape constant concat slice slice slice concat add slice slice concat add reshape transpose",
     24,
     rows_added},
    {{SAMPLE,
      .node = {{"Transpose", "x", "t", "perm: 2 0 1 3"},
               {"ScatterND", "sevens index t", "u", NULL},
               {"Transpose", "u", "y", "perm: 1 2 0 3"}},
      .constant = {{"index", 1, .ndim = 2, .dim = {3, 1}, .value = {3, 0, 1}},
                   {"sevens", .ndim = 4, .dim = {4, 1, 2, 4}, .value = {7}, .period = 1}}},
     "transpose constant affine reshape concat slice slice slice concat reshape transpose",
     32,
     into_constant},
    {{SAMPLE, .node = {{"ScatterND", "four index u", "c", NULL}, {"Mul", "x c", "y", NULL}},
      .constant = {{"four", .ndim = 1, .dim = {4}, .value = {1, 2, 3, 4}},
                   {"index", 1, .ndim = 2, .dim = {2, 1}, .value = {-1, 1}},
                   {"u", .ndim = 1, .dim = {2}, .value = {40, 20}}}},
     "affine",
     24,
     by_scattered},
    /* one square matrix in both directions */
    {{SAMPLE, .node = {{"MatMul", "x w", "m", NULL}, {"Einsum", "m w", "y", "equation: 'bcik,jk->bcij"}},
      .constant = {{"w", .ndim = 2, .dim = {4, 4}, .value = {0.01}, .step = 0.01, .period = 16}}},
     "fc fc",
     24,
     there_and_back},
};

static const struct {
    const char *equation, *second; /* source; NULL: there is none */
    const char *message;           /* a part of it */
} refused[] = {
    {"bcij->cij", NULL, "it sums over the samples"},
    {"bcij,bcij", "x", "it sums over the samples"},
    {"bcij,kcij->bkcij", "x", "axis 0 of source 1 is that of its samples, and has another label"},
    {"bcij,bjic->bc", "x", "the axis j of its sources has the lengths 4 and 2"},
    {"bcij->bccij", NULL, "axis 2 of the result has the label of another one"},
    {"bcij->bk", NULL, "axis 1 of the result is in no source"},
    {"b...->b", NULL, "its result leaves out the axes of the ellipsis"},
    {"b...->b...c...", NULL, "a letter or one ellipsis is expected at ..."},
    {"b,ij->b", "w", "term b for source 0 of shape 1x2x3x4"},
    {"bcij", "w", "does not have a term for each of 2 sources"},
    {"bcij,bj->bci", "w", "axis 0 of the constant of shape 4x4 is that of the samples"},
    {"bcij1->bci", NULL, "is expected at 1"},
    {"bcij,jk,kl->bcil", "w w", "3 sources, one of which depends on the input"},
    {"bcij,jj->bci", "n", "a diagonal of source 1 of shape 4x1"},
    {"bcij,jk->bcik", "n", "its constant should hold real numbers"},
};

#define INDEX(name, ...)                                                                                               \
    {                                                                                                                  \
        name, 1, .ndim = 2, .dim = {2, 1}, .value = { __VA_ARGS__ }                                                    \
    }

/* "t" is [2, N, 3, 4] */
static const struct {
    const char *in, *options;
    struct onnx_constant index;
    const char *message;
} scattered[] = {
    {"x index x", NULL, INDEX("index", 0, 1), "its indices name entries of the axes 0 to 0, and axis 0 is that of the"},
    {"t index t", "reduction: 'mul", INDEX("index", 0, 1), "reduction mul is not supported; none and add are"},
    {"t index t", NULL, INDEX("index", 1, 1), "index 1 names the same place as another one"},
    {"t index t", NULL, INDEX("index", 0, 2), "index 1 names entry 2 of axis 0, which has 2"},
    {"t index t", NULL, INDEX("index", 0, -9e18), "of axis 0, which has 2"},
    {"t index w", NULL, INDEX("index", 0, 1), "updates of shape 4x4, expected 2x1x3x4 for data of shape 2x1x3x4"},
    {"t index x", NULL, INDEX("index", 0, 1), "the samples are on axis 1 of the data and on axis 0 of the updates"},
    {"w index t", NULL, INDEX("index", 0, 1), "data of shape 4x4; they must be the same for all samples"},
    {"t x t", NULL, INDEX("index", 0, 1), "source 1 (x) depends on the input, and should be constant"},
    {"t w t", NULL, INDEX("index", 0, 1), "for data of shape 2x1x3x4; they should be integers"},
    {"t - t", NULL, INDEX("index", 0, 1), "source 1 is left out"},
    {"w index w", NULL, INDEX("index", 0, 1), "updates of shape 4x4, expected 2x4 for data of shape 4x4"},
    {"t none t", NULL, {"none", 1, .ndim = 2, .dim = {2, 0}}, "indices of shape 2x0"},
    {"t deep t", NULL, {"deep", 1, .ndim = 2, .dim = {1, 5}}, "indices of shape 1x5 for data of shape 2x1x3x4"},
};

static void test_scatter_refused(void)
{
    for (int i = 0; i < CVY_COUNT(scattered); i++) {
        const struct onnx_graph graph = {SAMPLE,
                                         .node = {{"Transpose", "x", "t", "perm: 1 0 2 3"},
                                                  {"ScatterND", scattered[i].in, "u", scattered[i].options},
                                                  {"Mul", "t u", "m", NULL},
                                                  {"Transpose", "m", "y", "perm: 1 0 2 3"}},
                                         .constant = {COUNTED("w", 2, 4, 4), scattered[i].index}};
        onnx_write(&graph, "small.onnx");
        EXPECT_FAULT(read_small(), CVY_E_UNSUPPORTED, scattered[i].message);
    }
}

static void test_numbers(void)
{
    run_cases(cases, CVY_COUNT(cases));
}

static void test_refused(void)
{
    for (int i = 0; i < CVY_COUNT(refused); i++) {
        char in[TEXT], options[TEXT];
        snprintf(in, sizeof in, "x %s", refused[i].second ? refused[i].second : "");
        snprintf(options, sizeof options, "equation: '%s", refused[i].equation);
        const struct onnx_graph graph = {
            SAMPLE, .node = {{"Einsum", in, "y", options}},
            .constant = {COUNTED("w", 2, 4, 4), {"n", 1, .ndim = 2, .dim = {4, 1}, .value = {1, 2, 3, 4}}}};
        onnx_write(&graph, "small.onnx");
        EXPECT_FAULT(read_small(), CVY_E_UNSUPPORTED, refused[i].message);
    }
}

/* A diagonal of the input, which has two axes of one length. */
static void test_diagonal(void)
{
    const struct onnx_graph graph = {
        .ndim = 3, .dim = {3, 3, 4}, .node = {{"Einsum", "x", "y", "equation: 'biij->bij"}}};
    onnx_write(&graph, "small.onnx");
    EXPECT_FAULT(read_small(), CVY_E_UNSUPPORTED, "source 0 has a label twice, and diagonals are supported");
}

/* Two nodes read one tensor of another shape than their layers need: it stays one, with its name. */
static void test_shared(void)
{
    static const struct onnx_graph graphs[] = {
        {SAMPLE,
         .node = {{"Einsum", "x gain", "f", "equation: 'bcij,c->bcij"},
                  {"Einsum", "gain f", "y", "equation: 'c,bcij->bcij"}},
         .constant = {{"gain", .ndim = 1, .dim = {2}, .value = {2, -1}}}},
        {SAMPLE,
         .node = {{"Einsum", "x gain", "f", "equation: 'bcij,jkl->bcikl"},
                  {"Einsum", "x gain", "g", "equation: 'bcij,jkl->bcikl"},
                  {"Add", "f g", "y", NULL}},
         .constant = {COUNTED("gain", 3, 4, 2, 2)}},
    };
    for (int i = 0; i < CVY_COUNT(graphs); i++) {
        cvy_import import = {0};
        onnx_write(&graphs[i], "small.onnx");
        EXPECT_OK(cvy_import_onnx("small.onnx", &import));
        EXPECT_INT(import.ntensor, 1);
        if (import.ntensor == 1 && i == 0)
            EXPECT_TEXT(import.tensor[0].name, "gain");
        cvy_import_free(&import);
    }
}

static void test_no_memory(void)
{
    run_without_memory(cases, CVY_COUNT(cases));
}

int main(void)
{
    enter_folder();
    TEST(test_numbers);
    TEST(test_refused);
    TEST(test_diagonal);
    TEST(test_scatter_refused);
    TEST(test_shared);
    TEST(test_no_memory);
    leave_folder();
    return test_end();
}

#else

int main(void)
{
    EXPECT_OK(CVY_OK);
    return test_end();
}

#endif
