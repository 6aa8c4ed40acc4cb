/*
 * model_resnet.c: the residual networks for ImageNet: four stages of 64 to 512 filters. A block has two 3x3
 * convolutions with 18 and 34 layers, and is a bottleneck of 1x1, 3x3, 1x1 with 50 layers and more. A 1x1 projection is
 * used where the shape changes.
 *
 * Version 1.5, which is the usual one today, halves the image in the 3x3 convolution of a bottleneck. v1, the version
 * of the paper, halves it in the first 1x1 convolution; here it is defined as in Keras, with a bias in each
 * convolution. Sources: He et al. 2016, Deep residual learning for image recognition, table 1; torchvision (v1.5);
 * Keras applications (v1).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "model/model.h"

struct resnet {
    int version;
};
enum { V1_5, V1 };

static const cvy_option resnet_opts[] = {
    {"version", CVY_TYPE_CHOICE, CVY_FIELD(resnet, version), "v1.5", "v1.5|v1", "",
     "where a bottleneck block halves the image: in its 3x3 convolution (v1.5) or its first 1x1 (v1, with biases)"},
    {0},
};

static cvy_status conv_bn(cvy_model *m, const struct resnet *o, const char *name, const char *from, int channels,
                          int kernel, int stride)
{
    CVY_TRY(cvy_model_addf(m, "conv", name, from, "channels: %d, kernel: %d, stride: %d, pad: %d, bias: %s", channels,
                           kernel, stride, kernel / 2, o->version == V1 ? "true" : "false"));
    return cvy_model_add(m, "batch_norm", cvy_labelf("%s_bn", name).text, o->version == V1 ? "eps: 1.001e-5" : NULL,
                         NULL);
}

static cvy_status conv_bn_relu(cvy_model *m, const struct resnet *o, const char *name, const char *from, int channels,
                               int kernel, int stride)
{
    CVY_TRY(conv_bn(m, o, name, from, channels, kernel, stride));
    return cvy_model_add(m, "relu", cvy_labelf("%s_relu", name).text, NULL, NULL);
}

/* A block with `width` filters inside. A bottleneck has 4 times as many outputs. */
static cvy_status block(cvy_model *m, const struct resnet *o, const char *name, int is_bottleneck, int width,
                        int stride, int is_first)
{
    const cvy_label from = cvy_model_here(m), a = cvy_labelf("%s_a", name), b = cvy_labelf("%s_b", name),
                    c = cvy_labelf("%s_c", name);
    const int early = o->version == V1 ? stride : 1, late = o->version == V1 ? 1 : stride,
              channels = is_bottleneck ? 4 * width : width;
    if (is_bottleneck) {
        CVY_TRY(conv_bn_relu(m, o, a.text, NULL, width, 1, early));
        CVY_TRY(conv_bn_relu(m, o, b.text, NULL, width, 3, late));
        CVY_TRY(conv_bn(m, o, c.text, NULL, channels, 1, 1));
    } else {
        CVY_TRY(conv_bn_relu(m, o, a.text, NULL, width, 3, stride));
        CVY_TRY(conv_bn(m, o, b.text, NULL, channels, 3, 1));
    }
    const cvy_label main_path = cvy_model_here(m);
    cvy_label shortcut = from;
    if (is_first && (is_bottleneck || stride > 1)) {
        CVY_TRY(conv_bn(m, o, cvy_labelf("%s_short", name).text, from.text, channels, 1, stride));
        shortcut = cvy_model_here(m);
    }
    CVY_TRY(cvy_model_add(m, "add", cvy_labelf("%s_add", name).text, NULL,
                          cvy_labelf("%s, %s", main_path.text, shortcut.text).text));
    return cvy_model_add(m, "relu", name, NULL, NULL);
}

static cvy_status resnet_build(cvy_model *m, const cvy_model_ask *ask, int is_bottleneck, const int blocks[4])
{
    const struct resnet *o = ask->options;
    CVY_TRY(conv_bn_relu(m, o, "conv1", NULL, 64, 7, 2));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool1", "kernel: 3, stride: 2, pad: 1", NULL));
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < blocks[stage]; i++)
            CVY_TRY(block(m, o, cvy_labelf("block%d_%d", stage + 1, i + 1).text, is_bottleneck, 64 << stage,
                          stage > 0 && i == 0 ? 2 : 1, i == 0));
    CVY_TRY(cvy_model_add(m, "global_avg_pool", "pool", NULL, NULL));
    return cvy_model_addf(m, "fc", "fc", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

/* block2_1_a, block2_1_a_bn and block2_1_short are layer2.0.conv1, layer2.0.bn1 and layer2.0.downsample.0. */
static cvy_status resnet_foreign(const cvy_model *m, cvy_names names, int at, cvy_label *out)
{
    const char *name = m->layer[at].name;
    const int is_norm = strcmp(m->layer[at].op->name, "batch_norm") == 0;
    const cvy_tree *bias = cvy_tree_get(m->layer[0].options, "bias");
    int stage = 0, i = 0;
    char part[16] = "";
    CVY_CHECK(
        !bias || strcmp(bias->text, "true") != 0, CVY_E_UNSUPPORTED,
        "%s with version: v1 is Keras's network: %s's halves the image elsewhere and has no biases; take version: "
        "v1.5",
        m->name, cvy_names_text(names));
    if (sscanf(name, "block%d_%d_%15s", &stage, &i, part) == 3 && part[0] == 's')
        *out = cvy_labelf("layer%d.%d.downsample.%d", stage, i - 1, is_norm);
    else if (stage)
        *out = cvy_labelf("layer%d.%d.%s%d", stage, i - 1, is_norm ? "bn" : "conv", part[0] - 'a' + 1);
    else
        *out = cvy_labelf("%s", is_norm ? "bn1" : name);
    return CVY_OK;
}

#define RESNET(layers, is_bottleneck, ...)                                                                             \
    static cvy_status resnet_##layers##_build(cvy_model *m, const cvy_model_ask *ask)                                  \
    {                                                                                                                  \
        return resnet_build(m, ask, is_bottleneck, (const int[]){__VA_ARGS__});                                        \
    }
#define RESNET_DEF(layers)                                                                                             \
    {                                                                                                                  \
        .name = "resnet-" #layers, .summary = "ResNet of " #layers " layers for ImageNet",                             \
        .source = "He et al. 2016, table 1", .options = resnet_opts, .options_size = sizeof(struct resnet),            \
        .input = {3, {3, 224, 224}}, .classes = 1000, .build = resnet_##layers##_build, .foreign = resnet_foreign      \
    }

RESNET(18, 0, 2, 2, 2, 2)
RESNET(34, 0, 3, 4, 6, 3)
RESNET(50, 1, 3, 4, 6, 3)
RESNET(101, 1, 3, 4, 23, 3)
RESNET(152, 1, 3, 8, 36, 3)

CVY_MODEL_DEFINE(resnet_018) = RESNET_DEF(18);
CVY_MODEL_DEFINE(resnet_034) = RESNET_DEF(34);
CVY_MODEL_DEFINE(resnet_050) = RESNET_DEF(50);
CVY_MODEL_DEFINE(resnet_101) = RESNET_DEF(101);
CVY_MODEL_DEFINE(resnet_152) = RESNET_DEF(152);
