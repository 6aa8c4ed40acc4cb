/* rows: clang asan */
/*
 * test_onnx_sets.c: operators of ONNX as the operator sets 1 to 10 have them, and windows with uneven padding, give the
 * expected numbers.
 *
 * The expected numbers are computed here by the definition of the ONNX operator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <unistd.h>

#include "exchange/onnx_case.h"

/* A sample is [2, 3, 4]: channel i / 12, row i / 4 % 3, column i % 4. */
#define SAMPLE .ndim = 3, .dim = {2, 3, 4}
#define OF_CHANNELS(name, ...)                                                                                         \
    {                                                                                                                  \
        name, .ndim = 1, .dim = {2}, .value = { __VA_ARGS__ }                                                          \
    }
#define OF_ROWS(name, ...)                                                                                             \
    {                                                                                                                  \
        name, .ndim = 1, .dim = {3}, .value = { __VA_ARGS__ }                                                          \
    }

/* ---- broadcast and axis ---- */

static void bias_of_channels(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] + (i / 12 ? -2 : 0.5);
}

static void product_with_rows(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] * (1 + i / 4 % 3);
}

/* rows of 4 times w with w[i, k] = 0.5 + 0.25 * ((3 i + k) % 7), and a number for each row */
static void product_and_rows(const float *x, double *y)
{
    for (int i = 0; i < 18; i++) {
        y[i] = 1 + i / 3 % 3;
        for (int k = 0; k < 4; k++)
            y[i] += x[i / 3 * 4 + k] * (0.5 + 0.25 * ((3 * k + i % 3) % 7));
    }
}

static void without_columns(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] - (1 + i % 4);
}

/* by [3, 4] that lies at the axes 2 and 3 */
static void by_positions(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] / (2 + i % 12);
}

/* x times the mean of its channel, which is [N, 2] at axis 0 */
static void times_means(const float *x, double *y)
{
    for (int c = 0; c < 2; c++) {
        double mean = 0;
        for (int i = 0; i < 12; i++)
            mean += x[c * 12 + i] / 12.;
        for (int i = 0; i < 12; i++)
            y[c * 12 + i] = x[c * 12 + i] * mean;
    }
}

/* constants: [2, 2] * [2] at axis 0 = {1, 2}, {6, 8}, whose rows are summed to a number for each channel by Slice */
static void folded_axis(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] + (i / 12 ? 8 : 6);
}

/* ---- windows ---- */

/* The window of `kernel` from `first` on over rows and columns, with a step; what is outside does not count, or counts
 * as 0 up to the `end` of the padding. */
static void pool(const float *x, const int kernel[2], const int first[2], const int step[2], const int count[2],
                 int dilation, int is_max, const int *end, double *y)
{
    for (int o = 0; o < 2 * count[0] * count[1]; o++) {
        const int c = o / (count[0] * count[1]), row = first[0] + o / count[1] % count[0] * step[0],
                  column = first[1] + o % count[1] * step[1];
        double sum = 0, most = -INFINITY;
        int n = 0;
        for (int k = 0; k < kernel[0] * kernel[1]; k++) {
            const int r = row + k / kernel[1] * dilation, q = column + k % kernel[1] * dilation;
            const int inside = r >= 0 && r < 3 && q >= 0 && q < 4;
            n += inside || (end && r < end[0] && q < end[1]);
            sum += inside ? x[c * 12 + r * 4 + q] : 0;
            most = inside ? fmax(most, x[c * 12 + r * 4 + q]) : most;
        }
        y[o] = is_max ? most : sum / n;
    }
}

/* kernel 4, pads 0 0 1 1 on 3 rows */
static void whole_window(const float *x, double *y)
{
    pool(x, (int[]){4, 4}, (int[]){0, 0}, (int[]){1, 1}, (int[]){1, 2}, 1, 0, NULL, y);
}

static void uneven_mean(const float *x, double *y)
{
    pool(x, (int[]){2, 3}, (int[]){-1, 0}, (int[]){2, 1}, (int[]){2, 4}, 1, 0, NULL, y);
}

static void counted_mean(const float *x, double *y)
{
    pool(x, (int[]){2, 3}, (int[]){-1, 0}, (int[]){2, 1}, (int[]){2, 4}, 1, 0, (int[]){3, 6}, y);
}

static void uneven_maximum(const float *x, double *y)
{
    pool(x, (int[]){3, 2}, (int[]){-2, 0}, (int[]){1, 3}, (int[]){4, 2}, 1, 1, NULL, y);
}

static void dilated_maximum(const float *x, double *y)
{
    pool(x, (int[]){2, 2}, (int[]){0, -1}, (int[]){1, 2}, (int[]){1, 2}, 2, 1, NULL, y);
}

/* ---- parts and pads ---- */

/* columns 0 and 2, and rows 2 and 0 */
static void every_second(const float *x, double *y)
{
    for (int i = 0; i < 8; i++)
        y[i] = x[i / 4 * 12 + (i / 2 % 2 ? 0 : 8) + i % 2 * 2];
}

/* columns 1 and 4 of 4: the last step goes past the end */
static void past_the_end(const float *x, double *y)
{
    for (int i = 0; i < 6; i++)
        y[i] = x[i * 4 + 1];
}

/* columns 0 and 3, with a step of 3 that does not divide 4 */
static void outer_columns(const float *x, double *y)
{
    for (int i = 0; i < 12; i++)
        y[i] = x[i / 2 * 4 + i % 2 * 3];
}

static void channels_backward(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = -x[(i + 12) % 24];
}

/* Rows and columns that pads take from the source, by the position in [5, 7] of a result of [3, 4]. */
static void from_entries(const float *x, const int row[5], const int column[7], double *y)
{
    for (int i = 0; i < 70; i++)
        y[i] = x[i / 35 * 12 + row[i / 7 % 5] * 4 + column[i % 7]];
}

static void reflected(const float *x, double *y)
{
    from_entries(x, (int[]){2, 1, 0, 1, 2}, (int[]){1, 0, 1, 2, 3, 2, 1}, y);
}

static void edged(const float *x, double *y)
{
    from_entries(x, (int[]){0, 0, 0, 1, 2}, (int[]){0, 0, 1, 2, 3, 3, 3}, y);
}

static void wrapped(const float *x, double *y)
{
    from_entries(x, (int[]){1, 2, 0, 1, 2}, (int[]){3, 0, 1, 2, 3, 0, 1}, y);
}

/* one row cropped at the beginning, one column of 1000000 at the end */
static void cropped_and_padded(const float *x, double *y)
{
    for (int i = 0; i < 20; i++)
        y[i] = i % 5 == 4 ? 1000000 : x[i / 10 * 12 + 4 + i / 5 % 2 * 4 + i % 5];
}

/* windows of 2 x 2 with a step of 2 over [3, 4] with a row before and a column after it */
static void padded_maximum(const float *x, double *y)
{
    pool(x, (int[]){2, 2}, (int[]){-1, 0}, (int[]){2, 2}, (int[]){2, 2}, 1, 1, NULL, y);
}

/* ---- sizes ---- */

/* 6 x 8: each position twice */
static void doubled(const float *x, double *y)
{
    for (int i = 0; i < 96; i++)
        y[i] = x[i / 48 * 12 + i / 16 % 3 * 4 + i / 2 % 4];
}

/* rows stay; columns at 0, 1/2, 1, .. and the last one twice */
static void linear_columns(const float *x, double *y)
{
    for (int i = 0; i < 48; i++) {
        const float *row = x + i / 8 * 4;
        const int k = i % 8 / 2;
        y[i] = i % 2 && k < 3 ? 0.5 * row[k] + 0.5 * row[k + 1] : row[k];
    }
}

/* The cubic weights of a place between two positions, a quarter from one of them, for a = -3/4. */
static void cubic_columns(const float *x, double *y)
{
    static const double w[] = {-0.10546875, 0.87890625, 0.26171875, -0.03515625};
    for (int i = 0; i < 48; i++) {
        const float *row = x + i / 8 * 4;
        const int k = i % 8 / 2, step = i % 2 ? 1 : -1;
        y[i] = 0;
        for (int t = 0; t < 4; t++) {
            const int at = k + (t - 1) * step;
            y[i] += w[t] * row[at < 0 ? 0 : at > 3 ? 3 : at];
        }
    }
}

/* ---- constants ---- */

/* {0, 3, 0, -1} for the columns */
static void sparse_columns(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] + (i % 4 == 1 ? 3 : i % 4 == 3 ? -1 : 0);
}

/* ({130, 126} - 128) / 4 for the channels */
static void dequantized(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] * (i / 12 ? -0.5 : 0.5);
}

/* (x - 3) * 1/4 */
static void dequantized_source(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = (x[i] - 3) / 4;
}

/* what is above the diagonal of [3, 4] is -inf, as a mask has it; then its exponentials */
static void masked(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = i % 4 > i / 4 % 3 ? 0 : exp((double)x[i]);
}

/* columns 1 and 2 of x, and 0 and 3 of its double */
static void chosen(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = i % 4 == 1 || i % 4 == 2 ? x[i] : 2. * x[i];
}

static void slopes_of_columns(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] < 0 ? x[i] * (0.5 + i % 4) : x[i];
}

#define PADS(name, ...)                                                                                                \
    {                                                                                                                  \
        name, 1, .ndim = 1, .dim = {8}, .value = { __VA_ARGS__ }                                                       \
    }
#define ONE(name, v)                                                                                                   \
    {                                                                                                                  \
        name, 1, .ndim = 1, .dim = {1}, .value = { v }                                                                 \
    }
#define TWO(name, ...)                                                                                                 \
    {                                                                                                                  \
        name, 1, .ndim = 1, .dim = {2}, .value = { __VA_ARGS__ }                                                       \
    }

static const struct operator_case cases[] = {
    {{SAMPLE, .opset = 6, .node = {{"Add", "x c", "y", "axis: 1;broadcast: 1"}},
      .constant = {OF_CHANNELS("c", 0.5, -2)}},
     "affine",
     24,
     bias_of_channels},
    {{SAMPLE, .opset = 1, .node = {{"Sub", "x c", "y", "axis: -3;broadcast: 1"}},
      .constant = {OF_CHANNELS("c", -0.5, 2)}},
     "scale affine scale",
     24,
     bias_of_channels},
    {{SAMPLE, .opset = 6, .node = {{"Mul", "x c", "y", "axis: 2;broadcast: 1"}}, .constant = {OF_ROWS("c", 1, 2, 3)}},
     "affine",
     24,
     product_with_rows},
    {{SAMPLE, .opset = 6, .node = {{"MatMul", "x w", "p", NULL}, {"Add", "p c", "y", "broadcast: 1;axis: 2"}},
      .constant = {{"w", .ndim = 2, .dim = {4, 3}, .value = {0.5}, .step = 0.25, .period = 7}, OF_ROWS("c", 1, 2, 3)}},
     "fc affine",
     18,
     product_and_rows},
    {{SAMPLE, .opset = 5, .node = {{"Sub", "x c", "y", "broadcast: 1"}},
      .constant = {{"c", .ndim = 1, .dim = {4}, .value = {1, 2, 3, 4}}}},
     "scale affine scale",
     24,
     without_columns},
    {{SAMPLE, .opset = 6, .node = {{"Div", "x c", "y", "broadcast: 1;axis: 2"}},
      .constant = {{"c", .ndim = 2, .dim = {3, 4}, .value = {2}, .step = 1, .period = 12}}},
     "affine",
     24,
     by_positions},
    {{SAMPLE, .opset = 6,
      .node = {{"ReduceMean", "x", "m", "axes: 2 3;keepdims: 0"}, {"Mul", "x m", "y", "broadcast: 1;axis: 0"}}},
     "global_avg_pool reshape multiply",
     24,
     times_means},
    {{SAMPLE, .opset = 6,
      .node = {{"Mul", "a b", "ab", "broadcast: 1;axis: 0"},
               {"Reshape", "ab four", "row", NULL},
               {"Slice", "row", "c", "starts: 2;ends: 4"},
               {"Add", "x c", "y", "broadcast: 1;axis: 1"}},
      .constant = {{"a", .ndim = 2, .dim = {2, 2}, .value = {1, 2, 3, 4}},
                   OF_CHANNELS("b", 1, 2),
                   {"four", 1, .ndim = 1, .dim = {1}, .value = {4}}}},
     "affine",
     24,
     folded_axis},
    {{SAMPLE, .opset = 7, .node = {{"AveragePool", "x", "y", "kernel_shape: 4 4;pads: 0 0 1 1"}}},
     "avg_pool",
     4,
     whole_window},
    {{SAMPLE, .opset = 1, .node = {{"AveragePool", "x", "y", "kernel_shape: 2 3;strides: 2 1;pads: 1 0 0 2"}}},
     "avg_pool",
     16,
     uneven_mean},
    {{SAMPLE, .node = {{"AveragePool", "x", "y", "kernel_shape: 2 3;strides: 2 1;pads: 1 0 0 2;count_include_pad: 1"}}},
     "avg_pool",
     16,
     counted_mean},
    {{SAMPLE, .opset = 8, .node = {{"MaxPool", "x", "y", "kernel_shape: 3 2;strides: 1 3;pads: 2 0 1 1"}}},
     "max_pool",
     16,
     uneven_maximum},
    {{SAMPLE, .node = {{"Add", "x c", "y", NULL}},
      .constant = {{"c", .ndim = 1, .dim = {4}, .value = {0, 3, 0, -1}, .is_sparse = 1}}},
     "affine",
     24,
     sparse_columns},
    {{SAMPLE, .node = {{"DequantizeLinear", "q s z", "w", "axis: 0"}, {"Mul", "x w", "y", NULL}},
      .constant = {{"q", 1, .ndim = 3, .dim = {2, 1, 1}, .value = {130, 126}},
                   {"s", .ndim = 1, .dim = {2}, .value = {0.25, 0.25}},
                   {"z", 1, .ndim = 1, .dim = {2}, .value = {128, 128}}}},
     "affine",
     24,
     dequantized},
    {{SAMPLE, .node = {{"DequantizeLinear", "x s z", "y", NULL}},
      .constant = {{"s", .value = {0.25}}, {"z", 1, .value = {3}}}},
     "offset scale",
     24,
     dequantized_source},
    {{SAMPLE, .node = {{"Where", "m low x", "w", NULL}, {"Exp", "w", "y", NULL}},
      .constant = {{"low", .value = {-INFINITY}},
                   {"m", 1, .ndim = 2, .dim = {3, 4}, .value = {0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1}}}},
     "affine exp",
     24,
     masked},
    {{SAMPLE, .node = {{"Add", "x x", "t", NULL}, {"Where", "m x t", "y", NULL}},
      .constant = {{"m", 1, .ndim = 1, .dim = {4}, .value = {0, 1, 1, 0}}}},
     "add affine affine add",
     24,
     chosen},
    {{SAMPLE, .node = {{"PRelu", "x s", "y", NULL}},
      .constant = {{"s", .ndim = 1, .dim = {4}, .value = {0.5, 1.5, 2.5, 3.5}}}},
     "relu clamp affine add",
     24,
     slopes_of_columns},
    {{SAMPLE, .opset = 1, .node = {{"Upsample", "x", "y", "height_scale: =2;width_scale: =2;mode: 'nearest"}}},
     "resize",
     96,
     doubled},
    {{SAMPLE, .opset = 7, .node = {{"Upsample", "x", "y", "scales: =1 =1 =2 =2"}}}, "resize", 96, doubled},
    {{SAMPLE, .opset = 7, .node = {{"Upsample", "x", "y", "scales: =1 =1 =1 =2;mode: 'linear"}}},
     "resize",
     48,
     linear_columns},
    {{SAMPLE, .opset = 10, .node = {{"Resize", "x s", "y", "mode: 'linear"}},
      .constant = {{"s", .ndim = 1, .dim = {4}, .value = {1, 1, 1, 2}}}},
     "resize",
     48,
     linear_columns},
    {{SAMPLE, .node = {{"Resize", "x - s", "y", "mode: 'cubic"}},
      .constant = {{"s", .ndim = 1, .dim = {4}, .value = {1, 1, 1, 2}}}},
     "resize",
     48,
     cubic_columns},
    {{SAMPLE, .node = {{"Slice", "x first end axes steps", "y", NULL}},
      .constant = {TWO("first", 0, -1), TWO("end", 4, -9), TWO("axes", 3, 2), TWO("steps", 2, -2)}},
     "reshape slice reshape slice slice concat",
     8,
     every_second},
    {{SAMPLE, .node = {{"Slice", "x first end axes steps", "y", NULL}},
      .constant = {ONE("first", 1), ONE("end", 9), ONE("axes", -1), ONE("steps", 3)}},
     "slice",
     6,
     past_the_end},
    {{SAMPLE, .node = {{"Slice", "x first end axes steps", "y", NULL}},
      .constant = {ONE("first", -4), ONE("end", 4), ONE("axes", 3), ONE("steps", 3)}},
     "pad_slice reshape slice reshape",
     12,
     outer_columns},
    {{SAMPLE, .node = {{"Slice", "x first end axes steps", "s", NULL}, {"Neg", "s", "y", NULL}},
      .constant = {ONE("first", -1), ONE("end", -9e15), ONE("axes", 1), ONE("steps", -1)}},
     "slice slice concat scale",
     24,
     channels_backward},
    {{SAMPLE, .opset = 2, .node = {{"Pad", "x", "y", "pads: 0 0 2 1 0 0 0 2;mode: 'reflect"}}},
     "slice slice concat slice slice slice concat",
     70,
     reflected},
    {{SAMPLE, .node = {{"Pad", "x pads", "y", "mode: 'edge"}}, .constant = {PADS("pads", 0, 0, 2, 1, 0, 0, 0, 2)}},
     "slice slice concat slice slice slice concat",
     70,
     edged},
    {{SAMPLE, .opset = 19, .node = {{"Pad", "x pads", "y", "mode: 'wrap"}},
      .constant = {PADS("pads", 0, 0, 2, 1, 0, 0, 0, 2)}},
     "slice concat slice slice concat",
     70,
     wrapped},
    {{SAMPLE, .opset = 1, .node = {{"Pad", "x", "y", "paddings: 0 0 -1 0 0 0 0 1;value: =1000000"}}},
     "slice slice scale offset concat",
     20,
     cropped_and_padded},
    {{SAMPLE, .opset = 10,
      .node = {{"Pad", "x", "p", "pads: 0 0 1 0 0 0 0 1;value: =-inf"},
               {"MaxPool", "p", "y", "kernel_shape: 2 2;strides: 2 2"}}},
     "max_pool",
     8,
     padded_maximum},
    {{SAMPLE, .opset = 11,
      .node = {{"MaxPool", "x", "y", "kernel_shape: 2 2;strides: 1 2;pads: 0 1 0 1;dilations: 2 2"}}},
     "max_pool",
     4,
     dilated_maximum},
};

static void test_sets(void)
{
    run_cases(cases, CVY_COUNT(cases));
}

static void test_no_memory(void)
{
    run_without_memory(cases, CVY_COUNT(cases));
}

int main(void)
{
    enter_folder();
    TEST(test_sets);
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
