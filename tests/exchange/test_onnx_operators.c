/* rows: clang asan */
/*
 * test_onnx_operators.c: operators of ONNX files become the expected layers, which give the expected numbers; no
 * allocation that fails leaves memory behind. test_onnx_sets.c has the forms of older operator sets, test_onnx_graphs.c
 * what is not supported.
 *
 * The files are written by the test (onnx_file.h). The expected numbers are computed here by the definition of the ONNX
 * operator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <unistd.h>

#include "exchange/onnx_case.h"

static double hard_sigmoid(double x, double alpha, double beta)
{
    return fmin(fmax(alpha * x + beta, 0), 1);
}

static void transpose(const float *x, double *y)
{
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 12; i++)
            y[i * 2 + c] = x[c * 12 + i];
}

static void relu(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = fmax(x[i], 0);
}

/* [2, 3, 4] becomes [3, 2, 4], then [3, 4, 2]. */
static void two_transpositions(const float *x, double *y)
{
    for (int c = 0; c < 2; c++)
        for (int r = 0; r < 3; r++)
            for (int k = 0; k < 4; k++)
                y[(r * 4 + k) * 2 + c] = x[(c * 3 + r) * 4 + k];
}

static void first_and_last(const float *x, double *y)
{
    for (int r = 0; r < 6; r++)
        y[r] = (double)x[4 * r] + x[4 * r + 3];
}

static void last_rows(const float *x, double *y)
{
    for (int i = 0; i < 8; i++)
        y[i] = x[(i / 4 + 1) * 12 - 4 + i % 4];
}

static void two_more(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] + 2.;
}

/* windows of two rows, of which the last has one */
static void maxima_over_the_end(const float *x, double *y)
{
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < 4; k++) {
            const float *from = x + c * 12 + k;
            y[(c * 2 + 0) * 4 + k] = fmax(from[0], from[4]);
            y[(c * 2 + 1) * 4 + k] = from[8];
        }
}

/* a kernel of two rows, a stride of 2, and one row less at the beginning */
static void upward(const float *x, double *y)
{
    for (int r = 1; r < 6; r++)
        for (int k = 0; k < 4; k++)
            y[(r - 1) * 4 + k] = x[r / 2 * 4 + k] * (r % 2 ? 2. : 1.) + x[12 + r / 2 * 4 + k] * (r % 2 ? 4. : 3.);
}

static void hard_sigmoids(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = hard_sigmoid(x[i], 0.25, 0.4);
}

static void hard_swish(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] * hard_sigmoid(x[i], 1. / 6, 0.5);
}

static void silu(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] / (1 + exp(-(double)x[i]));
}

/* sigmoid(x) * x + sigmoid(x) */
static void gate_read_twice(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = (x[i] + 1) / (1 + exp(-(double)x[i]));
}

static void gelu(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = 0.5 * x[i] * (1 + erf(x[i] / sqrt(2)));
}

static void relu6(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = fmin(fmax(x[i], 0), 6);
}

static void clamp(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = fmin(fmax(x[i], -0.5), 0.75);
}

static void upper_bound(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = fmin(x[i], 0.75);
}

/* (2 - x * a[c] / b[w]) + c[h, w] - d[h], then * 3 - 1/2 */
static void arithmetic(const float *x, double *y)
{
    for (int i = 0; i < 24; i++) {
        const double a = i / 12 ? 1.5 : 0.5, b = 1 + i % 4, c = 0.25 * (i % 12), d = -1 + i / 4 % 3;
        y[i] = (2 - x[i] * a / b + c - d) * 3 - 0.5;
    }
}

/* rows of 4 times a matrix 4 x 5 with w[i, k] = 0.5 + 0.25 * ((5 i + k) % 7), and a bias of k */
static void linear(const float *x, double *y)
{
    for (int r = 0; r < 6; r++)
        for (int k = 0; k < 5; k++) {
            y[r * 5 + k] = k;
            for (int i = 0; i < 4; i++)
                y[r * 5 + k] += x[r * 4 + i] * (0.5 + 0.25 * ((5 * i + k) % 7));
        }
}

/* rows of 4 times w, and then times its transpose, with w[i, k] = 0.5 + 0.25 * ((4 i + k) % 7) */
static void tied(const float *x, double *y)
{
    for (int i = 0; i < 24; i++) {
        const float *row = x + i / 4 * 4;
        y[i] = 0;
        for (int k = 0; k < 4; k++)
            for (int j = 0; j < 4; j++)
                y[i] += row[j] * (0.5 + 0.25 * ((4 * j + k) % 7)) * (0.5 + 0.25 * ((4 * (i % 4) + k) % 7));
    }
}

/* (x / c + 1) * c */
static void divided_and_multiplied(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = (double)x[i] + 1 + i % 4;
}

/* -5 where a mask of real numbers is not 0 */
static void filled_by_reals(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = i % 4 == 1 ? (double)x[i] : -5;
}

/* all columns but the first */
static void later_columns(const float *x, double *y)
{
    for (int i = 0; i < 18; i++)
        y[i] = fmax(x[i / 3 * 4 + 1 + i % 3], 0);
}

static void mean_of_channels(const float *x, double *y)
{
    for (int i = 0; i < 12; i++)
        y[i] = 0.5 * ((double)x[i] + x[12 + i]);
}

static void mean_of_positions(const float *x, double *y)
{
    for (int c = 0; c < 2; c++) {
        y[c] = 0;
        for (int i = 0; i < 12; i++)
            y[c] += x[c * 12 + i] / 12.;
    }
}

static void sum_of_rows(const float *x, double *y)
{
    for (int r = 0; r < 6; r++)
        y[r] = (double)x[4 * r] + x[4 * r + 1] + x[4 * r + 2] + x[4 * r + 3];
}

static void maximum_of_rows(const float *x, double *y)
{
    for (int r = 0; r < 6; r++)
        y[r] = fmax(fmax(x[4 * r], x[4 * r + 1]), fmax(x[4 * r + 2], x[4 * r + 3]));
}

static void same(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i];
}

static void ten_times(const float *x, double *y)
{
    for (int k = 0; k < 10; k++)
        for (int i = 0; i < 24; i++)
            y[k * 24 + i] = x[i];
}

/* two normalisations of rows of 4, of which the first adds 1 and the second -2 */
static void two_norms(const float *x, double *y)
{
    same(x, y);
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < 6; r++) {
            double *row = y + 4 * r, mean = 0, var = 0;
            for (int i = 0; i < 4; i++)
                mean += row[i] / 4;
            for (int i = 0; i < 4; i++)
                var += (row[i] - mean) * (row[i] - mean) / 4;
            for (int i = 0; i < 4; i++)
                row[i] = (row[i] - mean) / sqrt(var + 1e-5) + (pass ? -2 : 1);
        }
}

/* x - the sum of squares of its row of 4, over the square root of 1 + |x| */
static void broadcast(const float *x, double *y)
{
    for (int i = 0; i < 24; i++) {
        double sum = 0;
        for (int k = 0; k < 4; k++)
            sum += (double)x[i / 4 * 4 + k] * x[i / 4 * 4 + k];
        y[i] = (x[i] - sum) / sqrt(1 + fabs((double)x[i]));
    }
}

static void powers(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = pow(2, -pow(exp((double)x[i] / 4), 1.5));
}

/* over axis 2 of [N, 2, 3, 4] */
static void softmax_of_columns(const float *x, double *y)
{
    for (int i = 0; i < 24; i++) {
        const int first = i / 12 * 12 + i % 4;
        double sum = 0;
        for (int k = 0; k < 3; k++)
            sum += exp((double)x[first + 4 * k]);
        y[i] = exp((double)x[i]) / sum;
    }
}

/* over all 24, as before operator set 13 */
static void softmax_of_all(const float *x, double *y)
{
    double sum = 0;
    for (int k = 0; k < 24; k++)
        sum += exp((double)x[k]);
    for (int i = 0; i < 24; i++)
        y[i] = exp((double)x[i]) / sum;
}

/* min(max(x, row 0), 2) of channel 0 */
static void extremes(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = fmin(fmax(x[i], x[i / 12 * 12 + i % 4]), 2);
}

/* columns 3, 0, 1 of each row, twice */
static void gathered(const float *x, double *y)
{
    static const int column[] = {3, 0, 1};
    for (int r = 0; r < 6; r++)
        for (int i = 0; i < 6; i++)
            y[r * 6 + i] = x[r * 4 + column[i % 3]];
}

static void euclidean(const float *x, double *y)
{
    for (int r = 0; r < 6; r++) {
        y[r] = 0;
        for (int i = 0; i < 4; i++)
            y[r] += (double)x[r * 4 + i] * x[r * 4 + i];
        y[r] = sqrt(y[r]);
    }
}

static void largest_of_windows(const float *x, double *y)
{
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < 2; k++) {
            double most = -INFINITY;
            for (int i = 0; i < 3; i++)
                for (int j = 2 * k; j < 4 && j < 2 * k + 3; j++)
                    most = fmax(most, x[c * 12 + i * 4 + j]);
            y[c * 2 + k] = most;
        }
}

static void scaled_and_shifted(const float *x, double *y)
{
    for (int i = 0; i < 24; i++)
        y[i] = x[i] * (2.0 + i % 4) + 0.5 * (i % 4);
}

static void padded_with_ones(const float *x, double *y)
{
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 18; i++)
            y[c * 18 + i] = i % 6 == 0 || i % 6 == 5 ? 1 : x[c * 12 + i / 6 * 4 + i % 6 - 1];
}

#define SAMPLE .ndim = 3, .dim = {2, 3, 4}

static const struct operator_case cases[] = {
    {{SAMPLE, .node = {{"Transpose", "x", "y", "perm: 0 2 3 1"}}}, "transpose", 24, transpose},
    {{SAMPLE, .node = {{"Transpose", "x", "p", "perm: 0 1 2 3"}, {"Relu", "p", "y", NULL}}}, "relu", 24, relu},
    {{SAMPLE, .node = {{"Transpose", "x", "p", "perm: 0 2 1 3"}, {"Transpose", "p", "y", "perm: 0 1 3 2"}}},
     "transpose",
     24,
     two_transpositions},
    {{SAMPLE, .node = {{"Relu", "x", "a", NULL},
                       {"Transpose", "a", "b", "perm: 0 2 3 1"},
                       {"Transpose", "b", "c", "perm: 0 3 1 2"},
                       {"Transpose", "b", "d", "perm: 0 3 1 2"},
                       {"Max", "c d", "y", NULL}}},
     "relu maximum",
     24,
     relu},
    {{SAMPLE, .node = {{"Transpose", "x", "p", "perm: 0 3 1 2"}, {"Relu", "p", "y", NULL}}}, "relu", 24, relu},
    {{SAMPLE,
      .node = {{"SplitToSequence", "x sizes", "s", "axis: -1"},
               {"SequenceAt", "s two", "b", NULL},
               {"SequenceAt", "s zero", "a", NULL},
               {"Add", "a b", "y", NULL}},
      .constant = {{"sizes", 1, .ndim = 1, .dim = {3}, .value = {1, 2, 1}},
                   {"zero", 1, .value = {0}},
                   {"two", 1, .value = {-1}}}},
     "slice slice add",
     6,
     first_and_last},
    {{SAMPLE, .node = {{"SplitToSequence", "x each", "s", "axis: 2"}, {"SequenceAt", "s one", "y", NULL}},
      .constant = {{"each", 1, .value = {2}}, {"one", 1, .value = {1}}}},
     "slice",
     8,
     last_rows},
    {{SAMPLE,
      .node = {{"Shape", "row", "size", NULL},
               {"Expand", "two size", "e", NULL},
               {"CastLike", "e x", "c", NULL},
               {"Add", "x c", "y", NULL}},
      .constant = {{"two", .value = {2}}, {"row", .ndim = 1, .dim = {4}, .value = {0}}}},
     "affine",
     24,
     two_more},
    {{SAMPLE, .node = {{"MaxPool", "x", "y", "kernel_shape: 2 1;strides: 2 1;pads: 0 0 1 0"}}},
     "max_pool",
     16,
     maxima_over_the_end},
    {{SAMPLE, .node = {{"ConvTranspose", "x w", "y", "strides: 2 1;pads: 1 0 0 0"}},
      .constant = {{"w", .ndim = 4, .dim = {2, 1, 2, 1}, .value = {1, 2, 3, 4}}}},
     "deconv crop",
     20,
     upward},
    {{SAMPLE, .node = {{"HardSigmoid", "x", "y", "alpha: =0.25;beta: =0.4"}}}, "hard_sigmoid", 24, hard_sigmoids},
    {{SAMPLE, .node = {{"HardSigmoid", "x", "g", "alpha: =0.16666667"}, {"Mul", "x g", "y", NULL}}},
     "hard_swish",
     24,
     hard_swish},
    {{SAMPLE, .node = {{"Sigmoid", "x", "g", NULL}, {"Mul", "g x", "y", NULL}}}, "silu", 24, silu},
    {{SAMPLE, .node = {{"Sigmoid", "x", "g", NULL}, {"Mul", "g x", "p", NULL}, {"Add", "p g", "y", NULL}}},
     "sigmoid multiply add",
     24,
     gate_read_twice},
    {{SAMPLE,
      .node = {{"Div", "x root", "a", NULL},
               {"Erf", "a", "b", NULL},
               {"Add", "b one", "c", NULL},
               {"Mul", "x c", "d", NULL},
               {"Mul", "d half", "y", NULL}},
      .constant = {{"root", .value = {1.4142135}}, {"one", .value = {1}}, {"half", .value = {0.5}}}},
     "gelu",
     24,
     gelu},
    {{SAMPLE,
      .node = {{"Mul", "x root", "a", NULL},
               {"Erf", "a", "b", NULL},
               {"Add", "one b", "c", NULL},
               {"Mul", "half c", "d", NULL},
               {"Mul", "x d", "y", NULL}},
      .constant = {{"root", .value = {0.70710678}}, {"one", .value = {1}}, {"half", .value = {0.5}}}},
     "gelu",
     24,
     gelu},
    {{SAMPLE, .node = {{"Clip", "x low high", "y", NULL}}, .constant = {{"low", .value = {0}}, {"high", .value = {6}}}},
     "relu6",
     24,
     relu6},
    {{SAMPLE, .opset = 9, .node = {{"Clip", "x", "y", "min: =-0.5;max: =0.75"}}}, "clamp", 24, clamp},
    {{SAMPLE, .node = {{"Clip", "x - high", "y", NULL}}, .constant = {{"high", .value = {0.75}}}},
     "clamp",
     24,
     upper_bound},
    {{SAMPLE,
      .node = {{"Mul", "x a", "p", NULL},
               {"Div", "p b", "q", NULL},
               {"Sub", "two q", "r", NULL},
               {"Add", "c r", "s", NULL},
               {"Sub", "s d", "t", NULL},
               {"Mul", "t three", "u", NULL},
               {"Sub", "u half", "y", NULL}},
      .constant = {{"a", .ndim = 3, .dim = {2, 1, 1}, .value = {0.5, 1.5}},
                   {"b", .ndim = 1, .dim = {4}, .value = {1, 2, 3, 4}},
                   {"two", .value = {2}},
                   {"c", .ndim = 2, .dim = {3, 4}, .value = {0}, .step = 0.25, .period = 12},
                   {"d", .ndim = 4, .dim = {1, 1, 3, 1}, .value = {-1, 0, 1}},
                   {"three", .value = {3}},
                   {"half", .value = {0.5}}}},
     "affine affine scale offset affine scale affine scale scale offset",
     24,
     arithmetic},
    {{SAMPLE, .node = {{"MatMul", "x w", "p", NULL}, {"Add", "b p", "y", NULL}},
      .constant = {{"w", .ndim = 2, .dim = {4, 5}, .value = {0.5}, .step = 0.25, .period = 7},
                   {"b", .ndim = 1, .dim = {5}, .value = {0}, .step = 1, .period = 5}}},
     "fc",
     30,
     linear},
    {{SAMPLE, .node = {{"ReduceMean", "x axes", "y", "keepdims: 0"}},
      .constant = {{"axes", 1, .ndim = 1, .dim = {1}, .value = {1}}}},
     "reduction",
     12,
     mean_of_channels},
    {{SAMPLE, .node = {{"ReduceMean", "x axes", "y", "keepdims: 1"}},
      .constant = {{"axes", 1, .ndim = 1, .dim = {2}, .value = {-1, -2}}}},
     "global_avg_pool reshape",
     2,
     mean_of_positions},
    {{SAMPLE, .opset = 11, .node = {{"ReduceSum", "x", "y", "axes: 3"}}}, "reduction reshape", 6, sum_of_rows},
    {{SAMPLE, .opset = 13, .node = {{"ReduceMax", "x", "y", "axes: -1;keepdims: 0"}}}, "reduction", 6, maximum_of_rows},
    {{SAMPLE, .batch = 2,
      .node = {{"Reshape", "x row", "r", NULL}, {"Gather", "r index", "g", "axis: 0"}, {"Relu", "g", "y", NULL}},
      .constant = {{"row", 1, .ndim = 1, .dim = {1}, .value = {-1}},
                   {"index", 1, .ndim = 2, .dim = {2, 24}, .value = {0}, .step = 1, .period = 48}}},
     "reshape relu",
     24,
     relu},
    {{SAMPLE,
      .node = {{"ReduceSumSquare", "x", "s", "axes: 3"},
               {"Sub", "x s", "d", NULL},
               {"Abs", "x", "a", NULL},
               {"Add", "a one", "p", NULL},
               {"Sqrt", "p", "r", NULL},
               {"Div", "d r", "y", NULL}},
      .constant = {{"one", .value = {1}}}},
     "square reduction reshape subtract abs offset sqrt divide",
     24,
     broadcast},
    {{SAMPLE,
      .node = {{"Div", "x four", "q", NULL},
               {"Exp", "q", "e", NULL},
               {"Pow", "e c", "p", NULL},
               {"Neg", "p", "n", NULL},
               {"Pow", "two n", "y", NULL}},
      .constant = {{"four", .value = {4}}, {"c", .value = {1.5}}, {"two", .value = {2}}}},
     "scale exp power scale scale exp",
     24,
     powers},
    {{SAMPLE, .node = {{"Softmax", "x", "y", "axis: -2"}}}, "softmax", 24, softmax_of_columns},
    {{SAMPLE, .opset = 12, .node = {{"Softmax", "x", "y", "axis: 1"}}}, "reshape softmax reshape", 24, softmax_of_all},
    {{SAMPLE,
      .node = {{"Slice", "x zero one two", "row", NULL}, {"Max", "x row", "m", NULL}, {"Min", "bound m", "y", NULL}},
      .constant = {{"zero", 1, .ndim = 1, .dim = {1}, .value = {0}},
                   {"one", 1, .ndim = 1, .dim = {1}, .value = {1}},
                   {"two", 1, .ndim = 1, .dim = {1}, .value = {2}},
                   {"bound", .value = {2}}}},
     "slice maximum clamp",
     24,
     extremes},
    {{SAMPLE, .node = {{"Gather", "x at", "g", "axis: -1"}, {"Tile", "g often", "y", NULL}},
      .constant = {{"at", 1, .ndim = 1, .dim = {3}, .value = {-1, 0, 1}},
                   {"often", 1, .ndim = 1, .dim = {4}, .value = {1, 1, 1, 2}}}},
     "slice slice concat reshape expand reshape",
     36,
     gathered},
    {{SAMPLE, .node = {{"ReduceL2", "x axes", "y", "keepdims: 0"}},
      .constant = {{"axes", 1, .ndim = 1, .dim = {1}, .value = {-1}}}},
     "square reduction sqrt",
     6,
     euclidean},
    {{SAMPLE, .node = {{"MaxPool", "x", "y", "kernel_shape: 3 3;strides: 2 2;pads: 0 0 0 1"}}},
     "max_pool",
     4,
     largest_of_windows},
    {{SAMPLE, .node = {{"Mul", "x a.scale", "s", NULL}, {"Add", "s a.shift", "y", NULL}},
      .constant = {{"a.scale", .ndim = 1, .dim = {4}, .value = {2, 3, 4, 5}},
                   {"a.shift", .ndim = 1, .dim = {4}, .value = {0, 0.5, 1, 1.5}}}},
     "affine",
     24,
     scaled_and_shifted},
    {{SAMPLE, .node = {{"Pad", "x pads value", "y", NULL}},
      .constant = {{"pads", 1, .ndim = 1, .dim = {8}, .value = {0, 0, 0, 1, 0, 0, 0, 1}}, {"value", .value = {1}}}},
     "slice scale offset concat",
     36,
     padded_with_ones},
    {{SAMPLE, .node = {{"Concat", "x x x x x x x x x x", "y", "axis: 1"}}}, "concat concat", 240, ten_times},
    {{SAMPLE,
      .node = {{"LayerNormalization", "x scale one", "p", NULL}, {"LayerNormalization", "p scale two", "y", NULL}},
      .constant = {{"scale", .ndim = 1, .dim = {4}, .value = {1, 1, 1, 1}},
                   {"one", .ndim = 1, .dim = {4}, .value = {1, 1, 1, 1}},
                   {"two", .ndim = 1, .dim = {4}, .value = {-2, -2, -2, -2}}}},
     "layer_norm layer_norm",
     24,
     two_norms},
    {{SAMPLE,
      .node = {{"MatMul", "x w.weight", "a", NULL},
               {"Transpose", "w.weight", "t", "perm: 1 0"},
               {"MatMul", "a t", "y", NULL}},
      .constant = {{"w.weight", .ndim = 2, .dim = {4, 4}, .value = {0.5}, .step = 0.25, .period = 7}}},
     "fc fc",
     24,
     tied},
    {{SAMPLE, .node = {{"Div", "x c.weight", "q", NULL}, {"Add", "q one", "r", NULL}, {"Mul", "r c.weight", "y", NULL}},
      .constant = {{"c.weight", .ndim = 1, .dim = {4}, .value = {1, 2, 3, 4}}, {"one", .value = {1}}}},
     "affine offset affine",
     24,
     divided_and_multiplied},
    {{SAMPLE, .node = {{"Cast", "m", "b", "to: 9"}, {"Where", "b five x", "y", NULL}},
      .constant = {{"m", .ndim = 1, .dim = {4}, .value = {0.5, 0, -0.25, -INFINITY}}, {"five", .value = {-5}}}},
     "affine affine",
     24,
     filled_by_reals},
    {{SAMPLE, .node = {{"Cast", "e", "end", "to: 7"}, {"Slice", "x one end axis", "s", NULL}, {"Relu", "s", "y", NULL}},
      .constant = {{"e", 1, .ndim = 1, .dim = {1}, .value = {9223372036854774784.0}},
                   {"one", 1, .ndim = 1, .dim = {1}, .value = {1}},
                   {"axis", 1, .ndim = 1, .dim = {1}, .value = {3}}}},
     "slice relu",
     18,
     later_columns},
    {{SAMPLE,
      .node = {{"Shape", "x", "none", "start: 4"},
               {"ReduceProd", "none", "p", NULL},
               {"Concat", "all p", "to", "axis: 0"},
               {"Reshape", "x to", "r", NULL},
               {"Relu", "r", "y", NULL}},
      .constant = {{"all", 1, .ndim = 1, .dim = {2}, .value = {0, 24}}}},
     "reshape relu",
     24,
     relu},
};

static void test_operators(void)
{
    run_cases(cases, CVY_COUNT(cases));
}

static void test_no_memory(void)
{
    run_without_memory(cases, CVY_COUNT(cases));
}

/* `test_onnx_operators --write FOLDER` writes the files, for the corpus of fuzz_onnx. */
static int write_files(const char *folder)
{
    char path[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(path, sizeof path, "%s/operators-%02zu", folder, i);
        onnx_write(&cases[i].graph, path);
    }
    return test_end();
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--write") == 0)
        return write_files(argv[2]);
    enter_folder();
    TEST(test_operators);
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
