/* rows: clang asan */
/*
 * test_caffe_layers.c: layers of Caffe become the expected layers, which give the expected numbers; what is not
 * supported is named with its line.
 *
 * The expected numbers are computed here by the definitions in Caffe's documentation. The weights are those of
 * caffemodels that the test writes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <convoy/convoy.h>

#include "caffe_text.h"
#include "exchange/exchange.h"

enum { SAMPLES = 2, SIZE = 24, C = 2, H = 3, W = 4, MOST = 512 };

static cvy_context *context;

/* Element (c, h, w) of a sample [2, 3, 4]; 0 outside. */
static double at(const float *x, int c, int h, int w)
{
    return h < 0 || h >= H || w < 0 || w >= W ? 0 : x[(c * H + h) * W + w];
}

/* ---- what the layers compute ---- */

/* Two groups of one channel, kernel 3 x 2, stride 1 and 2, padding 1 and 0, dilation 1: weights 1 .. 12, bias 0.5, -1.
 */
static void grouped_conv(const float *x, double *y)
{
    int n = 0;
    for (int k = 0; k < 2; k++)
        for (int h = 0; h < 3; h++)
            for (int w = 0; w < 2; w++) {
                double sum = k == 0 ? 0.5 : -1;
                for (int r = 0; r < 3; r++)
                    for (int s = 0; s < 2; s++)
                        sum += at(x, k, h + r - 1, 2 * w + s) * (k * 6 + r * 2 + s + 1);
                y[n++] = sum;
            }
}

/* Kernel 2 with dilation 2, no bias: weights 1 .. 8 of one filter on both channels. */
static void dilated_conv(const float *x, double *y)
{
    for (int w = 0; w < 2; w++) {
        y[w] = 0;
        for (int c = 0; c < 2; c++)
            for (int r = 0; r < 2; r++)
                for (int s = 0; s < 2; s++)
                    y[w] += at(x, c, 2 * r, w + 2 * s) * (c * 4 + r * 2 + s + 1);
    }
}

/* Kernel 2, stride 2: each position becomes 2 x 2; weights [2, 1, 2, 2] = 1 .. 8, bias 3. */
static void deconv(const float *x, double *y)
{
    for (int h = 0; h < 6; h++)
        for (int w = 0; w < 8; w++) {
            y[h * 8 + w] = 3;
            for (int c = 0; c < 2; c++)
                y[h * 8 + w] += at(x, c, h / 2, w / 2) * (c * 4 + h % 2 * 2 + w % 2 + 1);
        }
}

/* Three outputs of 24 inputs: weight[k, i] = k + i / 10, bias 1, 2, 3. */
static void product(const float *x, double *y)
{
    for (int k = 0; k < 3; k++) {
        y[k] = k + 1;
        for (int i = 0; i < SIZE; i++)
            y[k] += x[i] * (k + i / 10.);
    }
}

/* On the last two axes: weight[k, i] = i - k. */
static void product_of_axis_2(const float *x, double *y)
{
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < 2; k++) {
            y[c * 2 + k] = 0;
            for (int i = 0; i < 12; i++)
                y[c * 2 + k] += x[c * 12 + i] * (i - k);
        }
}

/* Caffe's sizes are rounded up; the divisor counts the padding, but not what is behind it. */
static void average(const float *x, double *y)
{
    int n = 0;
    for (int c = 0; c < 2; c++)
        for (int h = 0; h < 2; h++)
            for (int w = 0; w < 3; w++) {
                const int h0 = 2 * h - 1, w0 = 2 * w - 1, h1 = h0 + 3 < H + 1 ? h0 + 3 : H + 1,
                          w1 = w0 + 3 < W + 1 ? w0 + 3 : W + 1;
                double sum = 0;
                for (int i = h0; i < h1; i++)
                    for (int k = w0; k < w1; k++)
                        sum += at(x, c, i, k);
                y[n++] = sum / ((h1 - h0) * (w1 - w0));
            }
}

static void maxima(const float *x, double *y, int rows, int columns)
{
    int n = 0;
    for (int c = 0; c < 2; c++)
        for (int h = 0; h < rows; h++)
            for (int w = 0; w < columns; w++) {
                double most = -1e30;
                for (int i = 2 * h; i < 2 * h + 2 && i < H; i++)
                    for (int k = 2 * w; k < 2 * w + 2; k++)
                        most = fmax(most, at(x, c, i, k));
                y[n++] = most;
            }
}

static void maxima_up(const float *x, double *y)
{
    maxima(x, y, 2, 2);
}

static void maxima_down(const float *x, double *y)
{
    maxima(x, y, 1, 2);
}

static void means(const float *x, double *y)
{
    for (int c = 0; c < 2; c++) {
        y[c] = 0;
        for (int i = 0; i < 12; i++)
            y[c] += x[c * 12 + i] / 12.;
    }
}

static void norm_across(const float *x, double *y)
{
    for (int i = 0; i < 12; i++) {
        const double scale = 2 + 0.3 / 3 * (x[i] * x[i] + x[12 + i] * x[12 + i]);
        y[i] = x[i] * pow(scale, -0.5);
        y[12 + i] = x[12 + i] * pow(scale, -0.5);
    }
}

static void norm_within(const float *x, double *y)
{
    for (int c = 0; c < 2; c++)
        for (int h = 0; h < H; h++)
            for (int w = 0; w < W; w++) {
                double sum = 0;
                for (int i = -1; i < 2; i++)
                    for (int k = -1; k < 2; k++)
                        sum += at(x, c, h + i, w + k) * at(x, c, h + i, w + k);
                y[(c * H + h) * W + w] = at(x, c, h, w) * pow(1 + 0.5 / 9 * sum, -0.75);
            }
}

#define EACH(name, expression)                                                                                         \
    static void name(const float *x_, double *y)                                                                       \
    {                                                                                                                  \
        for (int i = 0; i < SIZE; i++) {                                                                               \
            const double x = x_[i];                                                                                    \
            const int c = i / 12, h = i / 4 % 3;                                                                       \
            (void)c, (void)h;                                                                                          \
            y[i] = (expression);                                                                                       \
        }                                                                                                              \
    }
EACH(leaky, x > 0 ? x : 0.1 * x)
EACH(prelu, x > 0 ? x : (c ? 0.75 : 0.25) * x)
EACH(elu, x > 0 ? x : 2 * expm1(x))
EACH(swish, x / (1 + exp(-2 * x)))
EACH(clip, fmin(fmax(x, -1), 2.5))
EACH(bnll, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
EACH(magnitude, fabs(x))
EACH(line, 3 + 0.5 * x)
EACH(power_3, pow(5 + 0.5 * x, 3))
EACH(power_of_2, pow(2, 1 + 0.5 * x))
EACH(log_10, log10(20 + 3 * x))
EACH(product_of_two, x *tanh(x))
EACH(weighted_sum, 0.5 * x - 2 * tanh(x))
EACH(difference, x - tanh(x))
EACH(largest, fmax(x, fmax(tanh(x), -x)))
EACH(scaled_channels, x *(c ? 3 : 2) + (c ? -1 : 1))
EACH(scaled_rows, x *(h + 1))
EACH(shifted_all, x + 0.5)
EACH(batch_norm, (x - (c ? 0.5 : -1)) / sqrt((c ? 4 : 0.25) + 1e-3) * (c ? 3 : 2) + (c ? -1 : 1))
EACH(batch_norm_alone, (x - (c ? 0.5 : -1)) / sqrt((c ? 4 : 0.25) + 1e-5))

static void slices(const float *x, double *y) /* axis 3: columns 0, 1 .. 2, 3; joined as 3, 1 .. 2 */
{
    for (int i = 0; i < 6; i++) {
        y[i * 3] = x[i * 4 + 3];
        y[i * 3 + 1] = x[i * 4 + 1];
        y[i * 3 + 2] = x[i * 4 + 2];
    }
}

static void cropped(const float *x, double *y) /* rows 1 .. 2, columns 1 .. 2 */
{
    int n = 0;
    for (int c = 0; c < 2; c++)
        for (int h = 1; h < 3; h++)
            for (int w = 1; w < 3; w++)
                y[n++] = at(x, c, h, w);
}

static void permuted(const float *x, double *y) /* [H, W, C] */
{
    int n = 0;
    for (int h = 0; h < H; h++)
        for (int w = 0; w < W; w++)
            for (int c = 0; c < C; c++)
                y[n++] = at(x, c, h, w);
}

static void twice_the_means(const float *x, double *y)
{
    means(x, y);
    y[0] *= 2;
    y[1] *= 2;
}

static void magnitudes(const float *x, double *y)
{
    y[0] = 0;
    for (int i = 0; i < SIZE; i++)
        y[0] += fabs(x[i]);
}

static void normalise(const float *x, double *y, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    for (int i = 0; i < n; i++)
        squares += (x[i] - sum / n) * (x[i] - sum / n);
    for (int i = 0; i < n; i++)
        y[i] = (x[i] - sum / n) / (sqrt(squares / n) + 1e-9);
}

static void mvn(const float *x, double *y)
{
    normalise(x, y, 12);
    normalise(x + 12, y + 12, 12);
}

static void mvn_across(const float *x, double *y)
{
    normalise(x, y, 24);
}

static void without_mean(const float *x, double *y)
{
    means(x, y + SIZE);
    for (int i = 0; i < SIZE; i++)
        y[i] = x[i] - y[SIZE + i / 12];
}

static void without_mean_across(const float *x, double *y)
{
    means(x, y + SIZE);
    for (int i = 0; i < SIZE; i++)
        y[i] = x[i] - (y[SIZE] + y[SIZE + 1]) / 2;
}

static void scaled_by_row_means(const float *x, double *y)
{
    for (int i = 0; i < SIZE; i++) {
        double sum = 0;
        for (int w = 0; w < W; w++)
            sum += x[i / W * W + w];
        y[i] = x[i] * sum / W;
    }
}

static void softmax(const float *x, double *y)
{
    for (int i = 0; i < 12; i++) {
        const double a = exp(x[i]), b = exp(x[12 + i]);
        y[i] = a / (a + b);
        y[12 + i] = b / (a + b);
    }
}

static void gated(const float *x, double *y) /* by the mean of each channel */
{
    means(x, y + 24);
    for (int i = 0; i < SIZE; i++)
        y[i] = x[i] * y[24 + i / 12];
}

/* ---- the cases ---- */

#define LAYER(type, more) "layer { name: \"a\" type: \"" type "\" bottom: \"data\" top: \"a\" " more " }\n"
#define THEN(name, type, from, more)                                                                                   \
    "layer { name: \"" name "\" type: \"" type "\" bottom: \"" from "\" top: \"" name "\" " more " }\n"
#define LEAK THEN("l", "ReLU", "a", "relu_param { negative_slope: 0.1 }")
#define BLOBS(more) "layer { name: \"a\" " more " }"
#define OLD(n, c, h, w) "num: " #n " channels: " #c " height: " #h " width: " #w " "
#define TO_12 "data: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]"

static const struct layer_case {
    const char *text, *blobs; /* blobs NULL: none */
    const char *layers;       /* operators of the model, ' ' between */
    int elems;                /* of a sample of the output */
    void (*expect)(const float *x, double *y);
} cases[] = {
    {LAYER("Convolution", "convolution_param { num_output: 2 group: 2 kernel_h: 3 kernel_w: 2 stride_w: 2 stride_h: 1 "
                          "pad_h: 1 pad_w: 0 }"),
     BLOBS("blobs { " OLD(2, 1, 3, 2) TO_12 " } blobs { " OLD(1, 1, 1, 2) " data: [0.5, -1] }"), "conv", 12,
     grouped_conv},
    {LAYER("Convolution", "convolution_param { num_output: 1 kernel_size: [2, 2] dilation: 2 bias_term: false }"),
     BLOBS("blobs { shape { dim: [1, 2, 2, 2] } double_data: [1, 2, 3, 4, 5, 6, 7, 8] }"), "conv", 2, dilated_conv},
    {LAYER("Deconvolution", "convolution_param { num_output: 1 kernel_size: 2 stride: 2 }"),
     BLOBS("blobs { shape { dim: [2, 1, 2, 2] } data: [1, 2, 3, 4, 5, 6, 7, 8] } blobs { shape { dim: 1 } data: 3 }"),
     "deconv", 48, deconv},
    {LAYER("InnerProduct", "inner_product_param { num_output: 3 }"),
     BLOBS("blobs { " OLD(1, 1, 3, 24) " data: ["
                                       "0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, "
                                       "1.6, 1.7, 1.8, 1.9, 2, 2.1, 2.2, 2.3,"
                                       "1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 2.1, 2.2, 2.3, 2.4, 2.5, "
                                       "2.6, 2.7, 2.8, 2.9, 3, 3.1, 3.2, 3.3,"
                                       "2, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.7, 2.8, 2.9, 3, 3.1, 3.2, 3.3, 3.4, 3.5, "
                                       "3.6, 3.7, 3.8, 3.9, 4, 4.1, 4.2, 4.3]"
                                       "} blobs { " OLD(1, 1, 1, 3) " data: [1, 2, 3] }"),
     "fc", 3, product},
    {LAYER("InnerProduct", "inner_product_param { num_output: 2 axis: 2 bias_term: false }"),
     BLOBS("blobs { shape { dim: [2, 12] } data: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, "
           "9, 10] }"),
     "reshape fc", 4, product_of_axis_2},
    {LAYER("InnerProduct", "inner_product_param { num_output: 2 axis: -2 bias_term: false transpose: true }"),
     BLOBS("blobs { shape { dim: [12, 2] } data: [0, -1, 1, 0, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 6, 8, 7, 9, 8, 10, 9, "
           "11, 10] }"),
     "reshape fc", 4, product_of_axis_2},
    {LAYER("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }"), NULL, "avg_pool", 12, average},
    {LAYER("Pooling", "pooling_param { kernel_size: 2 stride: 2 }"), NULL, "max_pool", 8, maxima_up},
    {LAYER("Pooling", "pooling_param { kernel_size: 2 stride: 2 round_mode: FLOOR }"), NULL, "max_pool", 4,
     maxima_down},
    {LAYER("Pooling", "pooling_param { pool: AVE global_pooling: true }"), NULL, "global_avg_pool reshape", 2, means},
    {LAYER("LRN", "lrn_param { local_size: 3 alpha: 0.3 beta: 0.5 k: 2 }"), NULL, "lrn", 24, norm_across},
    {LAYER("LRN", "lrn_param { local_size: 3 alpha: 0.5 k: 7 norm_region: WITHIN_CHANNEL }"), NULL, "lrn_within", 24,
     norm_within},
    {LAYER("ReLU", "relu_param { negative_slope: 0.1 }"), NULL, "leaky_relu", 24, leaky},
    {LAYER("PReLU", ""), BLOBS("blobs { shape { dim: 2 } data: [0.25, 0.75] }"), "prelu", 24, prelu},
    {LAYER("ELU", "elu_param { alpha: 2 }"), NULL, "elu", 24, elu},
    {LAYER("Swish", "swish_param { beta: 2 }"), NULL, "scale sigmoid multiply", 24, swish},
    {LAYER("Clip", "clip_param { min: -1 max: 2.5 }"), NULL, "clamp", 24, clip},
    {LAYER("BNLL", ""), NULL, "softplus", 24, bnll},
    {LAYER("AbsVal", ""), NULL, "abs", 24, magnitude},
    {LAYER("Power", "power_param { scale: 0.5 shift: 3 }"), NULL, "scale offset", 24, line},
    {LAYER("Power", "power_param { power: 3 scale: 0.5 shift: 5 }"), NULL, "scale offset power", 24, power_3},
    {LAYER("Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }"), NULL, "scale offset exp", 24, power_of_2},
    {LAYER("Log", "log_param { base: 10 scale: 3 shift: 20 }"), NULL, "scale offset log scale", 24, log_10},
    {LAYER("Dropout", "dropout_param { dropout_ratio: 0.75 }") LEAK, NULL, "dropout leaky_relu", 24, leaky},
    {LAYER("Split", "top: \"b\"") THEN("c", "ReLU", "b", "relu_param { negative_slope: 0.1 }"), NULL, "leaky_relu", 24,
     leaky},
    {LAYER("TanH", "") THEN("b", "Eltwise", "a", "bottom: \"data\" eltwise_param { operation: PROD }"), NULL,
     "tanh multiply", 24, product_of_two},
    {LAYER("TanH", "") THEN("b", "Eltwise", "data", "bottom: \"a\" eltwise_param { coeff: [0.5, -2] }"), NULL,
     "tanh scale scale add", 24, weighted_sum},
    {LAYER("TanH", "") THEN("b", "Eltwise", "data", "bottom: \"a\" eltwise_param { coeff: 1 coeff: -1 }"), NULL,
     "tanh subtract", 24, difference},
    {LAYER("TanH", "") THEN("n", "Power", "data", "power_param { scale: -1 }")
         THEN("b", "Eltwise", "data", "bottom: \"a\" bottom: \"n\" eltwise_param { operation: MAX }"),
     NULL, "tanh scale maximum", 24, largest},
    {LAYER("Scale", "scale_param { bias_term: true }"),
     BLOBS("blobs { shape { dim: 2 } data: [2, 3] } blobs { shape { dim: 2 } data: [1, -1] }"), "affine", 24,
     scaled_channels},
    {LAYER("Scale", "scale_param { axis: -2 }"), BLOBS("blobs { shape { dim: 3 } data: [1, 2, 3] }"), "affine", 24,
     scaled_rows},
    {LAYER("Bias", "bias_param { num_axes: 0 }"), BLOBS("blobs { data: 0.5 shape { } }"), "affine", 24, shifted_all},
    {LAYER("BatchNorm", "batch_norm_param { eps: 1e-3 }") THEN("s", "Scale", "a", "scale_param { bias_term: true }"),
     BLOBS(
         "blobs { shape { dim: 2 } data: [-2, 1] } blobs { shape { dim: 2 } data: [0.5, 8] } blobs { shape { dim: 1 } "
         "data: 2 }") "layer { name: \"s\" blobs { shape { dim: 2 } data: [2, 3] } blobs { shape { dim: 2 } data: [1, "
                      "-1] } }",
     "batch_norm", 24, batch_norm},
    {LAYER("BatchNorm", "") THEN("r", "Dropout", "a", ""),
     BLOBS("blobs { " OLD(1, 1, 1, 2) " data: [-2, 1] } blobs { " OLD(1, 1, 1, 2) " data: [0.5, 8] } blobs { " OLD(
         1, 1, 1, 1) " data: 2 }"),
     "batch_norm dropout", 24, batch_norm_alone},
    {LAYER("Pooling", "pooling_param { pool: AVE global_pooling: true }") THEN("f", "Flatten", "a", "")
         THEN("s", "Scale", "data", "bottom: \"f\" scale_param { axis: 0 }"),
     NULL, "global_avg_pool reshape flatten multiply", 24, gated},
    {LAYER("Slice", "top: \"b\" top: \"c\" slice_param { axis: 3 slice_point: 1 slice_point: 3 }")
         THEN("d", "Concat", "c", "bottom: \"b\" concat_param { axis: -1 }"),
     NULL, "slice slice slice concat", 18, slices},
    {LAYER("Pooling", "pooling_param { kernel_size: 2 stride: 2 }")
         THEN("b", "Crop", "data", "bottom: \"a\" crop_param { offset: [1, 1] }"),
     NULL, "max_pool slice slice", 8, cropped},
    {LAYER("Flatten", "flatten_param { axis: 2 }") LEAK, NULL, "reshape leaky_relu", 24, leaky},
    {LAYER("Reshape", "reshape_param { shape { dim: [0, 4, -1] } }") LEAK, NULL, "reshape leaky_relu", 24, leaky},
    {LAYER("Reshape", "reshape_param { shape { dim: [6, 2] } axis: 2 num_axes: 2 }") LEAK, NULL, "reshape leaky_relu",
     24, leaky},
    {LAYER("Permute", "permute_param { order: [0, 2, 3, 1] }"), NULL, "transpose", 24, permuted},
    {LAYER("Reduction", "reduction_param { operation: MEAN axis: 2 coeff: 2 }"), NULL, "reduction scale", 2,
     twice_the_means},
    {LAYER("Reduction", "reduction_param { operation: ASUM axis: 1 }"), NULL, "abs reduction", 1, magnitudes},
    {LAYER("MVN", ""), NULL, "instance_norm", 24, mvn},
    {LAYER("MVN", "mvn_param { normalize_variance: false }"), NULL, "reduction subtract", 24, without_mean},
    {LAYER("MVN", "mvn_param { normalize_variance: false across_channels: true eps: 1 }"), NULL, "reduction subtract",
     24, without_mean_across},
    {LAYER("Reduction", "reduction_param { operation: MEAN axis: 3 }")
         THEN("s", "Scale", "data", "bottom: \"a\" scale_param { axis: 0 }"),
     NULL, "reduction reshape multiply", 24, scaled_by_row_means},
    {LAYER("MVN", "mvn_param { across_channels: true }"), NULL, "layer_norm", 24, mvn_across},
    {LAYER("Softmax", ""), NULL, "softmax", 24, softmax},
};

static const char input[] = "input: \"data\" input_shape { dim: [5, 2, 3, 4] }\n";

static void write_case(const struct layer_case *c)
{
    cvy_text_free(&caffe_net);
    cvy_text_add(&caffe_net, "%s%s", input, c->text);
    caffe_put("layer.prototxt");
    caffe_put_model("layer.caffemodel", c->blobs ? c->blobs : "name: \"none\"", 0);
}

/* Whether the network could be read. */
static int check_layers(const struct layer_case *c)
{
    cvy_import in = {0};
    char ops[256] = "";
    EXPECT_OK(cvy_import_caffe("layer.prototxt", &(cvy_caffe_opts){.test = 1, .weights = "layer.caffemodel"}, &in));
    for (int i = 0; in.model && i < in.model->nlayer; i++)
        snprintf(ops + strlen(ops), sizeof ops - strlen(ops), "%s%s", i ? " " : "", in.model->layer[i].op->name);
    EXPECT_TEXT(ops, c->layers);
    /* the last layer of ours has the name of the last layer of the text */
    if (in.model && !strstr(c->text, "Scale\" bottom: \"a\""))
        EXPECT(strlen(cvy_model_output(in.model)) == 1);
    const int made = in.model != NULL;
    cvy_import_free(&in);
    return made;
}

static void check_numbers(const struct layer_case *c)
{
    static float x[SAMPLES * SIZE], y[SAMPLES * MOST];
    double expected[MOST];
    const cvy_network_in in = {"x", CVY_DTYPE_F32, SAMPLES * SIZE, x, {0}};
    const cvy_network_out out = {NULL, CVY_DTYPE_F32, SAMPLES * c->elems, y};
    cvy_network_opts opts = cvy_network_opts_default();
    cvy_network *network = NULL;
    opts.weights = "layer.caffemodel";
    for (int i = 0; i < SAMPLES * SIZE; i++)
        x[i] = (float)((i * 37 + i / 24) % 41) / 5 - 3.5f;
    EXPECT_OK(cvy_network_open(context, "layer.prototxt", &opts, &network));
    if (network) {
        EXPECT_OK(cvy_network_apply(network, SAMPLES, &in, 1, &out, 1));
        for (int s = 0; s < SAMPLES; s++) {
            c->expect(x + s * SIZE, expected);
            for (int i = 0; i < c->elems; i++)
                EXPECT_NEAR(y[s * c->elems + i], expected[i], 1e-5 * fmax(1, fabs(expected[i])));
        }
    }
    cvy_network_destroy(&network);
}

static void layers_give_the_expected_numbers(void)
{
    for (int i = 0; i < CVY_COUNT(cases); i++) {
        const int failures = test_failures;
        write_case(&cases[i]);
        if (check_layers(&cases[i]))
            check_numbers(&cases[i]);
        if (failures != test_failures)
            printf("that was %s", cases[i].text);
    }
    cvy_text_free(&caffe_net);
}

/* ---- losses ---- */

static const char labels[] =
    "input: \"data\" input_shape { dim: [5, 2, 3, 4] } input: \"t\" input_shape { dim: [5, %s] }\n";

static const struct {
    const char *target, *text, *printed;
} losses[] = {
    {"1, 3, 4", "type: \"SoftmaxWithLoss\"", "softmax_cross_entropy: {name: loss, from: [x, y]}"},
    {"1, 3, 4", "type: \"SoftmaxWithLoss\" loss_param { ignore_label: 255 } loss_weight: 0.5",
     "softmax_cross_entropy: {name: loss, loss_weight: 0.5, ignore_label: 255, from: [x, y]}"},
    {"1, 3, 4", "type: \"SoftmaxWithLoss\" loss_param { normalize: false }",
     "softmax_cross_entropy: {name: loss, loss_weight: 12, from: [x, y]}"},
    {"1, 3, 4", "type: \"SoftmaxWithLoss\" loss_param { normalization: FULL }",
     "softmax_cross_entropy: {name: loss, from: [x, y]}"},
    {"1", "type: \"HingeLoss\" hinge_loss_param { norm: L2 }", "hinge: {name: loss, norm: l2, from: [ip, label]}"},
    {"2, 3, 4", "type: \"EuclideanLoss\" loss_weight: 2", "mse: {name: loss, loss_weight: 24, from: [x, y]}"},
    {"2, 3, 4", "type: \"SigmoidCrossEntropyLoss\"", "bce: {name: loss, loss_weight: 24, from: [x, y]}"},
    {"2, 3, 4", "type: \"SigmoidCrossEntropyLoss\" loss_param { normalization: VALID }",
     "bce: {name: loss, from: [x, y]}"},
};

static void losses_have_the_factors_of_caffe(void)
{
    for (int i = 0; i < CVY_COUNT(losses); i++) {
        cvy_import in = {0};
        cvy_pool *pool = NULL;
        cvy_tree *tree = NULL;
        char *text = NULL;
        cvy_text_free(&caffe_net);
        cvy_text_add(&caffe_net, labels, losses[i].target);
        cvy_text_add(&caffe_net,
                     "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
                     "inner_product_param { num_output: 3 } }\n"
                     "layer { name: \"loss\" bottom: \"%s\" bottom: \"t\" top: \"loss\" %s }",
                     strstr(losses[i].text, "Hinge") ? "ip" : "data", losses[i].text);
        caffe_put("layer.prototxt");
        EXPECT_OK(cvy_import_caffe("layer.prototxt", &(cvy_caffe_opts){0}, &in));
        EXPECT_OK(cvy_pool_create(&pool));
        if (in.model)
            EXPECT_OK(cvy_model_write(in.model, pool, 1, &tree));
        if (tree)
            EXPECT_OK(cvy_tree_print_line(tree, &text));
        if (!text || !strstr(text, losses[i].printed))
            TEST_FAIL("%s gives %s, expected %s", losses[i].text, text ? text : "nothing", losses[i].printed);
        cvy_mem_free(&text);
        cvy_pool_destroy(&pool);
        cvy_import_free(&in);
    }
    cvy_text_free(&caffe_net);
}

/* ---- fillers ---- */

static const struct {
    const char *layer, *filler, *printed;
} fillers[] = {
    {"conv", "type: 'constant' value: 0.5", "init: constant, init_options: \"value: 0.5\""},
    {"conv", "value: 0.5", "init: constant, init_options: \"value: 0.5\""},
    {"conv", "type: 'uniform' min: -0.25", "init: uniform, init_options: \"min: -0.25, max: 1\""},
    {"conv", "type: 'gaussian' std: 0.01 mean: 2", "init: gaussian, init_options: \"std: 0.01, mean: 2\""},
    {"conv", "type: 'gaussian' std: 1 sparse: 3", "init: gaussian, init_options: \"std: 1, nonzero: 0.75\""},
    {"conv", "type: 'xavier'", "init: xavier, init_options: \"fan: in\""},
    {"conv", "type: 'msra' variance_norm: AVERAGE", "init: he, init_options: \"fan: average\""},
    {"conv", "type: 'positive_unitball'", "init: positive_unit_sum, init_options: \"inputs: 8\""},
    {"conv", "type: 'bilinear'", "init: bilinear, init_options: \"positions: 2\""},
    /* two groups: Caffe counts the outputs of all, [4, 1, 2, 2] */
    {"groups", "type: 'xavier'", "init: xavier, init_options: \"fan: in\""},
    {"groups", "type: 'msra' variance_norm: FAN_OUT", "init: gaussian, init_options: \"std: 0.35355339059327379\""},
    /* of [2, 4, 2, 2]; sqrt(3 / 16) */
    {"deconv", "type: 'xavier'", "init: uniform, init_options: \"min: -0.4330127018922193, max: 0.4330127018922193\""},
    /* of [24, 3], because it is transposed; sqrt(2 / 3) */
    {"turned", "type: 'msra'", "init: gaussian, init_options: \"std: 0.81649658092772603\""},
};

static void fillers_become_initialisers(void)
{
    for (int i = 0; i < CVY_COUNT(fillers); i++) {
        static const char *const kinds[][2] = {{"conv", "num_output: 4 kernel_size: 2"},
                                               {"groups", "num_output: 4 kernel_size: 2 group: 2"},
                                               {"deconv", "num_output: 4 kernel_size: 2"},
                                               {"turned", "num_output: 3 transpose: true"}};
        const char *more = NULL;
        cvy_import in = {0};
        cvy_pool *pool = NULL;
        cvy_tree *tree = NULL;
        char *text = NULL;
        for (int k = 0; k < CVY_COUNT(kinds); k++)
            if (strcmp(kinds[k][0], fillers[i].layer) == 0)
                more = kinds[k][1];
        const int turned = strstr(more, "transpose") != NULL, up = strcmp(fillers[i].layer, "deconv") == 0;
        cvy_text_free(&caffe_net);
        cvy_text_add(&caffe_net,
                     "%slayer { name: 'a' type: '%s' bottom: 'data' top: 'a' %s { %s weight_filler { %s } } }", input,
                     turned ? "InnerProduct"
                     : up   ? "Deconvolution"
                            : "Convolution",
                     turned ? "inner_product_param" : "convolution_param", more, fillers[i].filler);
        caffe_put("layer.prototxt");
        EXPECT_OK(cvy_import_caffe("layer.prototxt", &(cvy_caffe_opts){0}, &in));
        EXPECT_OK(cvy_pool_create(&pool));
        if (in.model)
            EXPECT_OK(cvy_model_write(in.model, pool, 1, &tree));
        if (tree)
            EXPECT_OK(cvy_tree_print_line(tree, &text));
        if (!text || !strstr(text, fillers[i].printed))
            TEST_FAIL("%s gives %s, expected %s", fillers[i].filler, text ? text : "nothing", fillers[i].printed);
        cvy_mem_free(&text);
        cvy_pool_destroy(&pool);
        cvy_import_free(&in);
    }
    cvy_text_free(&caffe_net);
}

/* ---- what is refused ---- */

static const struct {
    const char *text;
    cvy_status code;
    const char *message; /* a part of it */
} refused[] = {
    {"layer { name: \"a\" type: \"Convolutoin\" bottom: \"data\" top: \"a\" }\nlayer { name: \"b\" type: \"SPP\" "
     "bottom: "
     "\"a\" top: \"b\" spp_param { pyramid_height: 2 } }\nlayer { name: \"c\" type: \"ReLU\" bottom: \"b\" top: \"c\" "
     "}\n"
     "layer { name: \"d\" type: \"Python\" bottom: \"c\" top: \"d\" python_param { module: \"m\" } }",
     CVY_E_UNSUPPORTED,
     "layer.prototxt: 3 layers of Caffe are not supported: line 2: a (Convolutoin): there is no such type of layer, "
     "did "
     "you "
     "mean 'Convolution'?; line 3: b (SPP): convoy has no layer for spatial pyramid pooling; line 5: d (Python): "
     "convoy "
     "runs no Python"},
    {LAYER("Pooling", "pooling_param { pool: STOCHASTIC kernel_size: 2 }"), CVY_E_UNSUPPORTED,
     "line 2: a (Pooling): stochastic pooling is not supported"},
    {LAYER("Pooling", "pooling_param { kernel_size: 1 stride: 3 }"), CVY_E_UNSUPPORTED,
     "its last window has no position"},
    {LAYER("Pooling", "pooling_param { kernel_size: 2 pad: 2 }"), CVY_E_FORMAT, "expected a pad that is smaller"},
    {LAYER("Pooling", "pooling_param { stride: 2 }"), CVY_E_FORMAT, "line 2: a (Pooling): kernel_size is not given"},
    {LAYER("Convolution", "convolution_param { num_output: 2 kernel_size: [1, 2, 3] }"), CVY_E_FORMAT,
     "kernel_size has 3 numbers, expected 1 or 2"},
    {LAYER("Convolution", "convolution_param { num_output: 2 kernel_size: 2 kernel_h: 3 }"), CVY_E_FORMAT,
     "kernel_size is given for all dimensions, and for rows or columns"},
    {LAYER("Convolution", "convolution_param { num_output: 3 group: 2 kernel_size: 1 }"), CVY_E_FORMAT,
     "num_output 3 and group 2 on 2 channels"},
    {LAYER("Convolution", "convolution_param { num_output: 2 kernel_size: 5 }"), CVY_E_SHAPE,
     "layer.prototxt: line 2: a (Convolution)"},
    {LAYER("Convolution", "convolution_param { num_output: 2 kernel_size: 1 weight_filler { type: \"magic\" } }"),
     CVY_E_UNSUPPORTED, "the filler 'magic' is not known here"},
    {LAYER("Convolution", "convolution_param { num_output: 2 kernel_size: 1 bias_filler { type: \"uniform\" } }"),
     CVY_E_UNSUPPORTED, "the bias is filled by 'uniform'"},
    {LAYER("Dropout", "dropout_param { scale_train: false }"), CVY_E_UNSUPPORTED, "scale_train: false"},
    {LAYER("Softmax", "softmax_param { axis: 0 }"), CVY_E_UNSUPPORTED, "axis 0 is that of the samples"},
    {LAYER("Softmax", "softmax_param { axis: 4 }"), CVY_E_FORMAT, "axis 4 of a blob with 4 dimensions"},
    {LAYER("Reshape", "reshape_param { shape { dim: [1, -1] } }"), CVY_E_UNSUPPORTED,
     "it moves elements between the samples"},
    {LAYER("Slice", "top: \"b\" slice_param { slice_point: 2 }"), CVY_E_FORMAT, "top 1 gets the entries 2 .. 2 of 2"},
    {LAYER("ReLU", "loss_weight: 1"), CVY_E_UNSUPPORTED, "a loss_weight of 1 for top 0"},
    {THEN("b", "ReLU", "dta", ""), CVY_E_FORMAT,
     "line 2: b (ReLU) reads 'dta', which no earlier layer of this phase makes, did you mean 'data'?"},
    {THEN("dta", "ReLU", "dta", ""), CVY_E_FORMAT,
     "line 2: dta (ReLU) reads 'dta', which no earlier layer of this phase makes, did you mean 'data'?"},
    {LAYER("ReLU", "include { phase: TEST } exclude { stage: \"s\" }"), CVY_E_FORMAT,
     "rules to include and to exclude it"},
    {"layers { name: \"a\" type: RELU bottom: \"data\" top: \"a\" } layer { name: \"b\" }", CVY_E_FORMAT,
     "has both `layers`"},
    {"layers { layer { name: \"a\" type: \"relu\" } bottom: \"data\" top: \"a\" }", CVY_E_UNSUPPORTED,
     "upgrade_net_proto_text of Caffe 1.0"},
    {"layer { name: \"d\" type: \"Data\" top: \"other\" data_param { source: \"x\" } }" THEN("b", "ReLU", "other", ""),
     CVY_E_UNSUPPORTED, "the text does not say the shape of 'other'; give the shape of a sample"},
    {"input: \"more\"", CVY_E_FORMAT, "has 2 `input`, with 1 input_shape and 0 input_dim"},
    {"", CVY_E_FORMAT, "no layer of this phase computes anything"},
};

static void what_is_not_supported_is_named(void)
{
    for (int i = 0; i < CVY_COUNT(refused); i++) {
        cvy_import in = {0};
        cvy_text_free(&caffe_net);
        cvy_text_add(&caffe_net, "%s%s", input, refused[i].text);
        caffe_put("layer.prototxt");
        EXPECT_FAULT(cvy_import_caffe("layer.prototxt", &(cvy_caffe_opts){0}, &in), refused[i].code,
                     refused[i].message);
        EXPECT(!in.model && !in.pool && !in.tensor);
    }
    cvy_text_free(&caffe_net);
}

int main(void)
{
    EXPECT_OK(cvy_context_create(NULL, &context));
    TEST(layers_give_the_expected_numbers);
    TEST(losses_have_the_factors_of_caffe);
    TEST(fillers_become_initialisers);
    TEST(what_is_not_supported_is_named);
    cvy_context_destroy(&context);
    return test_end();
}

#else

int main(void)
{
    EXPECT_OK(CVY_OK);
    return test_end();
}

#endif
