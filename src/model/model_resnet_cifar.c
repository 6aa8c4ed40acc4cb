/*
 * model_resnet_cifar.c: the residual networks for CIFAR: 6n + 2 layers in three stages of 16, 32 and 64 filters, identity shortcuts that pad
 * channels with zeros and take every second position (option A).
 * Source: He et al. 2016, Deep residual learning for image recognition, section 4.2.
 */
#include "model/model.h"

static cvy_status conv_bn(cvy_model *m, const char *name, const char *from, int channels, int stride)
{
    char bn[64];
    snprintf(bn, sizeof bn, "%s_bn", name);
    CVY_TRY(cvy_model_addf(m, "conv", name, from, "channels: %d, kernel: 3, stride: %d, pad: 1, bias: false", channels, stride));
    return cvy_model_add(m, "batch_norm", bn, NULL, NULL);
}

/* The identity of a block that halves the image and doubles the channels: every second position, zeros for the new channels. */
static cvy_status shortcut(cvy_model *m, const char *block, const char *from, int channels, char *name_out, size_t size)
{
    char sub[56];
    snprintf(sub, sizeof sub, "%s_sub", block);
    snprintf(name_out, size, "%s_short", block);
    CVY_TRY(cvy_model_add(m, "avg_pool", sub, "kernel: 1, stride: 2", from));
    return cvy_model_addf(m, "pad_slice", name_out, NULL, "first: %d, whole: %d", channels / 4, channels);
}

static cvy_status block(cvy_model *m, const char *name, const char *from, int channels, int stride)
{
    char a[48], b[48], relu[48], other[64], both[160];
    snprintf(a, sizeof a, "%s_a", name);
    snprintf(b, sizeof b, "%s_b", name);
    snprintf(relu, sizeof relu, "%s_a_relu", name);
    CVY_TRY(conv_bn(m, a, from, channels, stride));
    CVY_TRY(cvy_model_add(m, "relu", relu, NULL, NULL));
    CVY_TRY(conv_bn(m, b, NULL, channels, 1));
    char main_path[64];
    snprintf(main_path, sizeof main_path, "%s", cvy_model_last(m));
    snprintf(other, sizeof other, "%s", from);
    if (stride != 1)
        CVY_TRY(shortcut(m, name, from, channels, other, sizeof other));
    snprintf(both, sizeof both, "%s, %s", main_path, other);
    snprintf(a, sizeof a, "%s_add", name);
    CVY_TRY(cvy_model_add(m, "add", a, NULL, both));
    return cvy_model_add(m, "relu", name, NULL, NULL);
}

static cvy_status resnet_build(cvy_model *m, int n, int64_t classes)
{
    CVY_TRY(conv_bn(m, "conv1", NULL, 16, 1));
    CVY_TRY(cvy_model_add(m, "relu", "relu1", NULL, NULL));
    for (int stage = 0; stage < 3; stage++)
        for (int i = 0; i < n; i++) {
            char name[32], from[64];
            snprintf(name, sizeof name, "block%d_%d", stage + 1, i + 1);
            snprintf(from, sizeof from, "%s", cvy_model_last(m));
            CVY_TRY(block(m, name, from, 16 << stage, stage > 0 && i == 0 ? 2 : 1));
        }
    CVY_TRY(cvy_model_add(m, "global_avg_pool", "pool", NULL, NULL));
    return cvy_model_addf(m, "fc", "fc", NULL, "channels: %lld", (long long)classes);
}

#define RESNET_BUILD(layers)                                                                                              \
    static cvy_status resnet_##layers##_build(cvy_model *m, const void *options, const cvy_shape *input, int64_t classes) \
    {                                                                                                                     \
        (void)options, (void)input;                                                                                       \
        return resnet_build(m, ((layers)-2) / 6, classes);                                                                \
    }
#define RESNET_DEF(layers)                                                                                            \
    {.name = "resnet-" #layers, .summary = "CIFAR ResNet of " #layers " layers", .source = "He et al. 2016, section 4.2", \
     .input = {3, {3, 32, 32}}, .classes = 10, .build = resnet_##layers##_build}

RESNET_BUILD(20)
RESNET_BUILD(32)
RESNET_BUILD(44)
RESNET_BUILD(56)
RESNET_BUILD(110)

CVY_MODEL_DEFINE(resnet_20) = RESNET_DEF(20);
CVY_MODEL_DEFINE(resnet_32) = RESNET_DEF(32);
CVY_MODEL_DEFINE(resnet_44) = RESNET_DEF(44);
CVY_MODEL_DEFINE(resnet_56) = RESNET_DEF(56);
CVY_MODEL_DEFINE(resnet_110) = RESNET_DEF(110);
