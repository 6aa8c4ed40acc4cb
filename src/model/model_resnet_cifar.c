/*
 * model_resnet_cifar.c: the residual networks for CIFAR; the name has the number of layers: "resnet-110".
 *
 * 6n + 2 layers: three stages of n blocks; a block has two 3x3 convolutions with 16, 32 or 64 filters. Identity
 * shortcuts pad channels with zeros and take every second position (option A). 9n + 2 layers: three stages of n
 * bottlenecks of 1x1, 3x3, 1x1, with 64, 128 and 256 outputs. Batch norm and ReLU come before each convolution, so that
 * there are only sums between the first layer and the last. Sources: He et al. 2016, Deep residual learning for image
 * recognition, section 4.2; He et al. 2016, Identity mappings in deep residual networks, and its authors' code
 * (resnet-1k-layers) for the first unit of a stage, whose shortcut is a projection after the common batch norm and
 * ReLU.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "model/model.h"

#define LAYERS_MAX 20000

struct resnet_cifar {
    int block;
};
enum { AUTO, BASIC, BOTTLENECK };

static const cvy_option resnet_cifar_opts[] = {
    {"block", CVY_TYPE_CHOICE, CVY_FIELD(resnet_cifar, block), "auto", "auto|basic|bottleneck", "",
     "basic needs N = 6n + 2, bottleneck N = 9n + 2; if both fit, auto takes basic up to 110 layers, as the papers do"},
    {0},
};

static cvy_status conv(cvy_model *m, const char *name, const char *from, int channels, int kernel, int stride)
{
    return cvy_model_addf(m, "conv", name, from, "channels: %d, kernel: %d, stride: %d, pad: %d, bias: false", channels,
                          kernel, stride, kernel / 2);
}

static cvy_status add(cvy_model *m, const char *block, const cvy_label *a, const cvy_label *b)
{
    return cvy_model_add(m, "add", cvy_labelf("%s_add", block).text, NULL, cvy_labelf("%s, %s", a->text, b->text).text);
}

/* ---- basic blocks, ReLU after the sum ---- */

static cvy_status conv_bn(cvy_model *m, const char *name, const char *from, int channels, int stride)
{
    CVY_TRY(conv(m, name, from, channels, 3, stride));
    return cvy_model_add(m, "batch_norm", cvy_labelf("%s_bn", name).text, NULL, NULL);
}

/* The shortcut of a block that halves the image and doubles the channels: it takes every second position, and the new
 * channels are zero. */
static cvy_status identity(cvy_model *m, const char *block, const char *from, int channels)
{
    CVY_TRY(cvy_model_add(m, "avg_pool", cvy_labelf("%s_sub", block).text, "kernel: 1, stride: 2", from));
    return cvy_model_addf(m, "pad_slice", cvy_labelf("%s_short", block).text, NULL, "first: %d, whole: %d",
                          channels / 4, channels);
}

static cvy_status basic_block(cvy_model *m, const char *name, int channels, int stride)
{
    const cvy_label from = cvy_model_here(m);
    CVY_TRY(conv_bn(m, cvy_labelf("%s_a", name).text, NULL, channels, stride));
    CVY_TRY(cvy_model_add(m, "relu", cvy_labelf("%s_a_relu", name).text, NULL, NULL));
    CVY_TRY(conv_bn(m, cvy_labelf("%s_b", name).text, NULL, channels, 1));
    const cvy_label main_path = cvy_model_here(m);
    cvy_label shortcut = from;
    if (stride != 1) {
        CVY_TRY(identity(m, name, from.text, channels));
        shortcut = cvy_model_here(m);
    }
    CVY_TRY(add(m, name, &main_path, &shortcut));
    return cvy_model_add(m, "relu", name, NULL, NULL);
}

static cvy_status basic_body(cvy_model *m, int64_t n)
{
    CVY_TRY(conv_bn(m, "conv1", NULL, 16, 1));
    CVY_TRY(cvy_model_add(m, "relu", "relu1", NULL, NULL));
    for (int stage = 0; stage < 3; stage++)
        for (int i = 0; i < n; i++)
            CVY_TRY(basic_block(m, cvy_labelf("block%d_%d", stage + 1, i + 1).text, 16 << stage,
                                stage > 0 && i == 0 ? 2 : 1));
    return CVY_OK;
}

/* ---- bottlenecks, batch norm and ReLU before the convolutions ---- */

static cvy_status bn_relu(cvy_model *m, const char *name)
{
    CVY_TRY(cvy_model_add(m, "batch_norm", cvy_labelf("%s_bn", name).text, NULL, NULL));
    return cvy_model_add(m, "relu", cvy_labelf("%s_relu", name).text, NULL, NULL);
}

static cvy_status bottleneck(cvy_model *m, const char *name, int width, int stride, int is_first)
{
    cvy_label shortcut = cvy_model_here(m);
    const cvy_label a = cvy_labelf("%s_a", name), b = cvy_labelf("%s_b", name), c = cvy_labelf("%s_c", name);
    CVY_TRY(bn_relu(m, a.text));
    const cvy_label active = cvy_model_here(m);
    CVY_TRY(conv(m, a.text, NULL, width, 1, stride));
    CVY_TRY(bn_relu(m, b.text));
    CVY_TRY(conv(m, b.text, NULL, width, 3, 1));
    CVY_TRY(bn_relu(m, c.text));
    CVY_TRY(conv(m, c.text, NULL, 4 * width, 1, 1));
    const cvy_label main_path = cvy_model_here(m);
    if (is_first) {
        CVY_TRY(conv(m, cvy_labelf("%s_short", name).text, active.text, 4 * width, 1, stride));
        shortcut = cvy_model_here(m);
    }
    return add(m, name, &main_path, &shortcut);
}

static cvy_status bottleneck_body(cvy_model *m, int64_t n)
{
    CVY_TRY(conv(m, "conv1", NULL, 16, 3, 1));
    for (int stage = 0; stage < 3; stage++)
        for (int i = 0; i < n; i++)
            CVY_TRY(bottleneck(m, cvy_labelf("block%d_%d", stage + 1, i + 1).text, 16 << stage,
                               stage > 0 && i == 0 ? 2 : 1, i == 0));
    return bn_relu(m, "last");
}

/* ---- which depths exist ---- */

static int is_depth(int64_t layers, int block)
{
    const int basic = layers >= 8 && layers <= LAYERS_MAX && (layers - 2) % 6 == 0,
              bottle = layers >= 11 && layers <= LAYERS_MAX && (layers - 2) % 9 == 0;
    return block == BASIC ? basic : block == BOTTLENECK ? bottle : basic || bottle;
}

/* The next depth from `layers` on, upwards (step 1) or downwards (-1), that is not the name of another network; 0:
 * none. */
static int64_t next_depth(int64_t layers, int step, int block)
{
    for (int64_t n = CVY_MIN(layers, LAYERS_MAX); n >= 8 && n <= LAYERS_MAX; n += step)
        if (is_depth(n, block) && !cvy_model_find(cvy_labelf("resnet-%lld", (long long)n).text))
            return n;
    return 0;
}

static cvy_status bad_depth(int64_t layers, int block)
{
    static const char *const rule[] = {"6n + 2 (basic blocks) or 9n + 2 (bottlenecks)", "6n + 2 with block: basic",
                                       "9n + 2 with block: bottleneck"};
    const int64_t below = next_depth(layers, -1, block), above = next_depth(CVY_MAX(layers, 8), 1, block);
    const int64_t nearest = !below || (above && above - layers < layers - below) ? above : below;
    return cvy_error_set(CVY_E_CONFIG,
                         "there is no ResNet of %lld layers for CIFAR: N is %s, 8 to %d; the nearest is resnet-%lld "
                         "(for ImageNet: resnet-50, -101 and -152)",
                         (long long)layers, rule[block], LAYERS_MAX, (long long)nearest);
}

static cvy_status resnet_build(cvy_model *m, const cvy_model_ask *ask)
{
    const int block = ((const struct resnet_cifar *)ask->options)->block;
    const int64_t layers = ask->number;
    if (!is_depth(layers, block))
        return bad_depth(layers, block);
    const int is_basic = block == BASIC ||
                         (block == AUTO && is_depth(layers, BASIC) && (layers <= 110 || !is_depth(layers, BOTTLENECK)));
    CVY_TRY(is_basic ? basic_body(m, (layers - 2) / 6) : bottleneck_body(m, (layers - 2) / 9));
    CVY_TRY(cvy_model_add(m, "global_avg_pool", "pool", NULL, NULL));
    return cvy_model_addf(m, "fc", "fc", NULL, "channels: %lld", (long long)ask->classes);
}

CVY_MODEL_DEFINE(resnet_cifar) = {
    .name = "resnet-N",
    .summary = "CIFAR ResNet of N layers, with any other N",
    .source = "He et al. 2016, section 4.2, and Identity mappings",
    .numbers =
        "6n + 2 (basic blocks: 20, 32, 44, 56, 110, 1202, 5000) or 9n + 2 (pre-activation bottlenecks: 164, 1001)",
    .options = resnet_cifar_opts,
    .options_size = sizeof(struct resnet_cifar),
    .input = {3, {3, 32, 32}},
    .classes = 10,
    .build = resnet_build,
};
