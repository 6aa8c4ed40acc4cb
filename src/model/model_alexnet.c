/*
 * model_alexnet.c: AlexNet_v2, the one-tower variant: five convolutions, three fully connected layers. Dropout is an option, off by default, as
 * the studies time it.
 * Source: Krizhevsky 2014, One weird trick for parallelizing convolutional neural networks.
 */
#include "model/model.h"

struct alexnet { double dropout; };

static const cvy_option alexnet_opts[] = {
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(alexnet, dropout), "0", "0..0.95", "", "probability of dropping behind the first two fully connected layers"},
    {0},
};

static cvy_status conv_relu(cvy_model *m, const char *name, const char *options)
{
    CVY_TRY(cvy_model_add(m, "conv", name, options, NULL));
    return cvy_model_add(m, "relu", NULL, NULL, NULL);
}

static cvy_status fc_relu(cvy_model *m, const char *name, double dropout)
{
    CVY_TRY(cvy_model_add(m, "fc", name, "channels: 4096", NULL));
    CVY_TRY(cvy_model_add(m, "relu", NULL, NULL, NULL));
    return dropout > 0 ? cvy_model_addf(m, "dropout", NULL, NULL, "p: %.17g", dropout) : CVY_OK;
}

static cvy_status alexnet_v2_build(cvy_model *m, const void *options, const cvy_shape *input, int64_t classes)
{
    const struct alexnet *o = options;
    (void)input;
    CVY_TRY(conv_relu(m, "conv1", "channels: 64, kernel: 11, stride: 4, pad: 2"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool1", "kernel: 3, stride: 2", NULL));
    CVY_TRY(conv_relu(m, "conv2", "channels: 192, kernel: 5, pad: 2"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool2", "kernel: 3, stride: 2", NULL));
    CVY_TRY(conv_relu(m, "conv3", "channels: 384, kernel: 3, pad: 1"));
    CVY_TRY(conv_relu(m, "conv4", "channels: 256, kernel: 3, pad: 1"));
    CVY_TRY(conv_relu(m, "conv5", "channels: 256, kernel: 3, pad: 1"));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool5", "kernel: 3, stride: 2", NULL));
    CVY_TRY(fc_relu(m, "fc6", o->dropout));
    CVY_TRY(fc_relu(m, "fc7", o->dropout));
    return cvy_model_addf(m, "fc", "fc8", NULL, "channels: %lld, init: xavier", (long long)classes);
}

CVY_MODEL_DEFINE(alexnet_v2) = {
    .name = "alexnet-v2", .summary = "AlexNet in one tower", .source = "Krizhevsky 2014",
    .options = alexnet_opts, .options_size = sizeof(struct alexnet),
    .input = {3, {3, 224, 224}}, .classes = 1000, .build = alexnet_v2_build,
};
