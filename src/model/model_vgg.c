/*
 * model_vgg.c: VGG: stacks of 3x3 convolutions between poolings, then three fully connected layers. Dropout is an
 * option. It is off by default, because the studies time the networks without it. Source: Simonyan and Zisserman 2015,
 * table 1: configurations A, B (13 layers), D (16 layers) and E
 * (19 layers); with batch norm after each convolution as in torchvision.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/model.h"

struct vgg {
    double dropout;
    int batch_norm;
};

static const cvy_option vgg_opts[] = {
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(vgg, dropout), "0", "0..0.95", "",
     "dropout probability of the inputs of the last layers; 0: no dropout"},
    {"batch_norm", CVY_TYPE_BOOL, CVY_FIELD(vgg, batch_norm), "false", "", "", "batch norm after each convolution"},
    {0},
};

/* convs[s]: number of convolutions of stage s; widths double from 64 to 512. */
static cvy_status vgg_build(cvy_model *m, const cvy_model_ask *ask, const int convs[5])
{
    static const int width[] = {64, 128, 256, 512, 512};
    const struct vgg *o = ask->options;
    for (int s = 0; s < 5; s++) {
        for (int i = 1; i <= convs[s]; i++) {
            CVY_TRY(cvy_model_addf(m, "conv", cvy_labelf("conv%d_%d", s + 1, i).text, NULL,
                                   "channels: %d, kernel: 3, pad: 1", width[s]));
            if (o->batch_norm)
                CVY_TRY(cvy_model_add(m, "batch_norm", cvy_labelf("conv%d_%d_bn", s + 1, i).text, NULL, NULL));
            CVY_TRY(cvy_model_add(m, "relu", NULL, NULL, NULL));
        }
        CVY_TRY(cvy_model_add(m, "max_pool", cvy_labelf("pool%d", s + 1).text, "kernel: 2", NULL));
    }
    for (int i = 6; i <= 7; i++) {
        CVY_TRY(cvy_model_add(m, "fc", cvy_labelf("fc%d", i).text, "channels: 4096", NULL));
        CVY_TRY(cvy_model_add(m, "relu", NULL, NULL, NULL));
        if (o->dropout > 0)
            CVY_TRY(cvy_model_addf(m, "dropout", NULL, NULL, "p: %.17g", o->dropout));
    }
    return cvy_model_addf(m, "fc", "fc8", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

/* torchvision and timm have the layers before the fully connected ones in a row, and name them by their numbers. */
static cvy_status vgg_foreign(const cvy_model *m, cvy_names names, int at, cvy_label *out)
{
    static const char *const timm[] = {"pre_logits.fc1", "pre_logits.fc2", "head.fc"};
    const char *name = m->layer[at].name;
    const int i = name[0] == 'f' ? name[2] - '6' : -1;
    if (i < 0)
        *out = cvy_labelf("features.%d", at);
    else
        *out = names == CVY_NAMES_TIMM ? cvy_labelf("%s", timm[i]) : cvy_labelf("classifier.%d", 3 * i);
    return CVY_OK;
}

static cvy_status vgg_a_build(cvy_model *m, const cvy_model_ask *ask)
{
    return vgg_build(m, ask, (const int[]){1, 1, 2, 2, 2});
}

static cvy_status vgg_13_build(cvy_model *m, const cvy_model_ask *ask)
{
    return vgg_build(m, ask, (const int[]){2, 2, 2, 2, 2});
}

static cvy_status vgg_16_build(cvy_model *m, const cvy_model_ask *ask)
{
    return vgg_build(m, ask, (const int[]){2, 2, 3, 3, 3});
}

static cvy_status vgg_19_build(cvy_model *m, const cvy_model_ask *ask)
{
    return vgg_build(m, ask, (const int[]){2, 2, 4, 4, 4});
}

CVY_MODEL_DEFINE(vgg_a) = {
    .name = "vgg-a",
    .summary = "VGG with 11 weight layers",
    .source = "Simonyan and Zisserman 2015",
    .options = vgg_opts,
    .options_size = sizeof(struct vgg),
    .bench = "dropout: 0",
    .input = {3, {3, 224, 224}},
    .classes = 1000,
    .build = vgg_a_build,
    .foreign = vgg_foreign,
};

CVY_MODEL_DEFINE(vgg_13) = {
    .name = "vgg-13",
    .summary = "VGG with 13 weight layers",
    .source = "Simonyan and Zisserman 2015",
    .options = vgg_opts,
    .options_size = sizeof(struct vgg),
    .bench = "dropout: 0",
    .input = {3, {3, 224, 224}},
    .classes = 1000,
    .build = vgg_13_build,
    .foreign = vgg_foreign,
};

CVY_MODEL_DEFINE(vgg_16) = {
    .name = "vgg-16",
    .summary = "VGG with 16 weight layers",
    .source = "Simonyan and Zisserman 2015",
    .options = vgg_opts,
    .options_size = sizeof(struct vgg),
    .bench = "dropout: 0",
    .input = {3, {3, 224, 224}},
    .classes = 1000,
    .build = vgg_16_build,
    .foreign = vgg_foreign,
};

CVY_MODEL_DEFINE(vgg_19) = {
    .name = "vgg-19",
    .summary = "VGG with 19 weight layers",
    .source = "Simonyan and Zisserman 2015",
    .options = vgg_opts,
    .options_size = sizeof(struct vgg),
    .bench = "dropout: 0",
    .input = {3, {3, 224, 224}},
    .classes = 1000,
    .build = vgg_19_build,
    .foreign = vgg_foreign,
};
