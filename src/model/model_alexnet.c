/*
 * model_alexnet.c: the networks of the AlexNet family: five convolutions, three fully connected layers.
 *
 * alexnet-v2 and overfeat are defined as the benchmark studies time them, without dropout. alexnet and caffenet are
 * defined as Caffe's reference models train them: two groups of channels (originally two GPUs), LRN, and dropout.
 * Weights are initialised as in the rest of the zoo (He), not by Caffe's fillers. Sources: Krizhevsky, Sutskever and
 * Hinton 2012; Krizhevsky 2014, One weird trick (v2); Sermanet et al. 2014, OverFeat, table 1 (fast model); Caffe's
 * models/bvlc_alexnet and bvlc_reference_caffenet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/model.h"

struct alexnet {
    double dropout;
};

static const cvy_option alexnet_opts[] = {
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(alexnet, dropout), "0", "0..0.95", "",
     "dropout probability of the inputs of the last layers; 0: no dropout"},
    {0},
};

static const cvy_option caffe_opts[] = {
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(alexnet, dropout), "0.5", "0..0.95", "",
     "dropout probability of the inputs of the last layers; 0: no dropout"},
    {0},
};

static cvy_status conv_relu(cvy_model *m, const char *name, const char *options)
{
    CVY_TRY(cvy_model_add(m, "conv", name, options, NULL));
    return cvy_model_add(m, "relu", NULL, NULL, NULL);
}

static cvy_status fc_relu(cvy_model *m, const char *name, int width, double dropout)
{
    CVY_TRY(cvy_model_addf(m, "fc", name, NULL, "channels: %d", width));
    CVY_TRY(cvy_model_add(m, "relu", NULL, NULL, NULL));
    return dropout > 0 ? cvy_model_addf(m, "dropout", NULL, NULL, "p: %.17g", dropout) : CVY_OK;
}

static cvy_status classifier(cvy_model *m, const cvy_model_ask *ask, int fc6, int fc7)
{
    const struct alexnet *o = ask->options;
    CVY_TRY(fc_relu(m, "fc6", fc6, o->dropout));
    CVY_TRY(fc_relu(m, "fc7", fc7, o->dropout));
    return cvy_model_addf(m, "fc", "fc8", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

static cvy_status alexnet_v2_build(cvy_model *m, const cvy_model_ask *ask)
{
    CVY_TRY(conv_relu(m, "conv1", "channels: 64, kernel: 11, stride: 4, pad: 2"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool1", "kernel: 3, stride: 2", NULL));
    CVY_TRY(conv_relu(m, "conv2", "channels: 192, kernel: 5, pad: 2"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool2", "kernel: 3, stride: 2", NULL));
    CVY_TRY(conv_relu(m, "conv3", "channels: 384, kernel: 3, pad: 1"));
    CVY_TRY(conv_relu(m, "conv4", "channels: 256, kernel: 3, pad: 1"));
    CVY_TRY(conv_relu(m, "conv5", "channels: 256, kernel: 3, pad: 1"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool5", "kernel: 3, stride: 2", NULL));
    return classifier(m, ask, 4096, 4096);
}

static cvy_status overfeat_build(cvy_model *m, const cvy_model_ask *ask)
{
    CVY_TRY(conv_relu(m, "conv1", "channels: 96, kernel: 11, stride: 4"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool1", "kernel: 2", NULL));
    CVY_TRY(conv_relu(m, "conv2", "channels: 256, kernel: 5"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool2", "kernel: 2", NULL));
    CVY_TRY(conv_relu(m, "conv3", "channels: 512, kernel: 3, pad: 1"));
    CVY_TRY(conv_relu(m, "conv4", "channels: 1024, kernel: 3, pad: 1"));
    CVY_TRY(conv_relu(m, "conv5", "channels: 1024, kernel: 3, pad: 1"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool5", "kernel: 2", NULL));
    return classifier(m, ask, 3072, 4096);
}

/* torchvision has the layers in a row, conv and ReLU and pooling, and names them by their numbers. Before each fully
 * connected layer but the last comes dropout. */
static cvy_status alexnet_v2_foreign(const cvy_model *m, cvy_names names, int at, cvy_label *out)
{
    const char *name = m->layer[at].name;
    CVY_TRY(cvy_model_only_torchvision(m, names));
    *out = name[0] == 'f' ? cvy_labelf("classifier.%d", name[2] == '8' ? 6 : 3 * (name[2] - '6') + 1)
                          : cvy_labelf("features.%d", at);
    return CVY_OK;
}

/* AlexNet normalises before it pools, CaffeNet pools before it normalises. */
static cvy_status pool_and_norm(cvy_model *m, int stage, int norm_first)
{
    for (int i = 0; i < 2; i++)
        if ((i == 0) == (norm_first != 0))
            CVY_TRY(
                cvy_model_add(m, "lrn", cvy_labelf("norm%d", stage).text, "size: 5, alpha: 1e-4, beta: 0.75", NULL));
        else
            CVY_TRY(cvy_model_add(m, "max_pool", cvy_labelf("pool%d", stage).text, "kernel: 3, stride: 2", NULL));
    return CVY_OK;
}

static cvy_status caffe_build(cvy_model *m, const cvy_model_ask *ask, int norm_first)
{
    CVY_TRY(conv_relu(m, "conv1", "channels: 96, kernel: 11, stride: 4"));
    CVY_TRY(pool_and_norm(m, 1, norm_first));
    CVY_TRY(conv_relu(m, "conv2", "channels: 256, kernel: 5, pad: 2, groups: 2"));
    CVY_TRY(pool_and_norm(m, 2, norm_first));
    CVY_TRY(conv_relu(m, "conv3", "channels: 384, kernel: 3, pad: 1"));
    CVY_TRY(conv_relu(m, "conv4", "channels: 384, kernel: 3, pad: 1, groups: 2"));
    CVY_TRY(conv_relu(m, "conv5", "channels: 256, kernel: 3, pad: 1, groups: 2"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool5", "kernel: 3, stride: 2", NULL));
    return classifier(m, ask, 4096, 4096);
}

static cvy_status alexnet_build(cvy_model *m, const cvy_model_ask *ask)
{
    return caffe_build(m, ask, 1);
}

static cvy_status caffenet_build(cvy_model *m, const cvy_model_ask *ask)
{
    return caffe_build(m, ask, 0);
}

CVY_MODEL_DEFINE(alexnet_v2) = {
    .name = "alexnet-v2",
    .summary = "AlexNet in one tower",
    .source = "Krizhevsky 2014",
    .options = alexnet_opts,
    .options_size = sizeof(struct alexnet),
    .bench = "dropout: 0",
    .input = {3, {3, 224, 224}},
    .classes = 1000,
    .build = alexnet_v2_build,
    .foreign = alexnet_v2_foreign,
};

CVY_MODEL_DEFINE(overfeat) = {
    .name = "overfeat",
    .summary = "OverFeat, the fast model",
    .source = "Sermanet et al. 2014",
    .options = alexnet_opts,
    .options_size = sizeof(struct alexnet),
    .bench = "dropout: 0",
    .input = {3, {3, 231, 231}},
    .classes = 1000,
    .build = overfeat_build,
};

CVY_MODEL_DEFINE(alexnet) = {
    .name = "alexnet",
    .summary = "AlexNet with groups and LRN, as Caffe trains it",
    .source = "Krizhevsky et al. 2012",
    .options = caffe_opts,
    .options_size = sizeof(struct alexnet),
    .bench = "dropout: 0",
    .input = {3, {3, 227, 227}},
    .classes = 1000,
    .build = alexnet_build,
    .instead = "alexnet-v2",
};

CVY_MODEL_DEFINE(caffenet) = {
    .name = "caffenet",
    .summary = "CaffeNet: AlexNet that pools before LRN",
    .source = "Jia et al. 2014, Caffe",
    .options = caffe_opts,
    .options_size = sizeof(struct alexnet),
    .bench = "dropout: 0",
    .input = {3, {3, 227, 227}},
    .classes = 1000,
    .build = caffenet_build,
    .instead = "alexnet-v2",
};
