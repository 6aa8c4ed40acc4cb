/*
 * test_model_foreign.c: variables of the zoo have the names of torchvision and timm: a few of each network, and each
 * name only once. Other networks are refused with a sentence.
 *
 * tests/cmd/pytorch_weights.sh compares outputs with those of these programs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_status.h"
#include "model/model.h"
#include "test_util.h"

struct pair {
    cvy_names names;
    const char *network, *options, *own, *foreign;
};

static const struct pair pairs[] = {
    {CVY_NAMES_TORCHVISION, "resnet-18", NULL, "conv1.weight", "conv1.weight"},
    {CVY_NAMES_TORCHVISION, "resnet-18", NULL, "conv1_bn.shift", "bn1.bias"},
    {CVY_NAMES_TORCHVISION, "resnet-18", NULL, "block2_1_short.weight", "layer2.0.downsample.0.weight"},
    {CVY_NAMES_TORCHVISION, "resnet-50", NULL, "block1_1_short_bn.running_var", "layer1.0.downsample.1.running_var"},
    {CVY_NAMES_TIMM, "resnet-50", NULL, "block4_3_c_bn.scale", "layer4.2.bn3.weight"},
    {CVY_NAMES_TORCHVISION, "resnet-152", NULL, "block3_36_b.weight", "layer3.35.conv2.weight"},
    {CVY_NAMES_TIMM, "resnet-34", NULL, "fc.bias", "fc.bias"},
    {CVY_NAMES_TORCHVISION, "vgg-a", NULL, "conv5_2.bias", "features.18.bias"},
    {CVY_NAMES_TORCHVISION, "vgg-13", NULL, "conv2_1.weight", "features.5.weight"},
    {CVY_NAMES_TORCHVISION, "vgg-16", "batch_norm: true", "conv1_2_bn.running_mean", "features.4.running_mean"},
    {CVY_NAMES_TORCHVISION, "vgg-19", "dropout: 0.5", "fc8.weight", "classifier.6.weight"},
    {CVY_NAMES_TIMM, "vgg-19", NULL, "fc7.weight", "pre_logits.fc2.weight"},
    {CVY_NAMES_TORCHVISION, "alexnet-v2", "dropout: 0.5", "fc6.weight", "classifier.1.weight"},
    {CVY_NAMES_TORCHVISION, "alexnet-v2", NULL, "conv5.bias", "features.10.bias"},
    {CVY_NAMES_TORCHVISION, "googlenet-bn", NULL, "conv2_2.weight", "conv3.conv.weight"},
    {CVY_NAMES_TORCHVISION, "googlenet-bn", NULL, "inception_4e_4_2_bn.scale", "inception4e.branch4.1.bn.weight"},
    {CVY_NAMES_TORCHVISION, "googlenet-bn", "aux: true", "aux2_conv_1_bn.shift", "aux2.conv.bn.bias"},
    {CVY_NAMES_TORCHVISION, "googlenet-bn", "aux: true", "aux1_fc.weight", "aux1.fc1.weight"},
    {CVY_NAMES_TORCHVISION, "googlenet-bn", "aux: true", "aux1.weight", "aux1.fc2.weight"},
    {CVY_NAMES_TIMM, "inception-v3", NULL, "stem_5.weight", "Conv2d_3b_1x1.conv.weight"},
    {CVY_NAMES_TORCHVISION, "inception-v3", NULL, "mixed_6a_2_3_bn.shift", "Mixed_6a.branch3x3dbl_3.bn.bias"},
    {CVY_NAMES_TORCHVISION, "inception-v3", NULL, "mixed_7c_3_4.weight", "Mixed_7c.branch3x3dbl_3b.conv.weight"},
    {CVY_NAMES_TORCHVISION, "inception-v3", "aux: true", "aux1.bias", "AuxLogits.fc.bias"},
};

static const struct pair refused[] = {
    {CVY_NAMES_TORCHVISION, "alexnet", NULL, "conv1.weight", "model: alexnet-v2 is"},
    {CVY_NAMES_TORCHVISION, "googlenet", NULL, "conv1_1.weight", "model: googlenet-bn is"},
    {CVY_NAMES_TIMM, "alexnet-v2", NULL, "conv1.weight", "timm has no network with the layers of alexnet-v2"},
    {CVY_NAMES_TIMM, "googlenet-bn", NULL, "fc.weight", "timm has no network"},
    {CVY_NAMES_TORCHVISION, "resnet-20", NULL, "fc.weight", "torchvision has no network with the layers of resnet-20"},
    {CVY_NAMES_TORCHVISION, "resnet-50", "version: v1", "fc.weight", "take version: v1.5"},
};

static void names(void)
{
    for (int i = 0; i < CVY_COUNT(pairs); i++) {
        const struct pair *p = &pairs[i];
        cvy_model *m = NULL;
        cvy_label name = {{0}};
        EXPECT_OK(cvy_model_zoo(p->network, p->options, NULL, 0, &m));
        EXPECT_OK(cvy_model_foreign_name(m, p->names, p->own, &name));
        EXPECT_TEXT(name.text, p->foreign);
        cvy_model_destroy(&m);
    }
}

static void other_networks(void)
{
    for (int i = 0; i < CVY_COUNT(refused); i++) {
        const struct pair *p = &refused[i];
        cvy_model *m = NULL;
        cvy_label name = {{0}};
        EXPECT_OK(cvy_model_zoo(p->network, p->options, NULL, 0, &m));
        EXPECT_FAULT(cvy_model_foreign_name(m, p->names, p->own, &name), CVY_E_UNSUPPORTED, p->foreign);
        cvy_model_destroy(&m);
    }
}

static int has_weights(const cvy_layer *layer)
{
    static const char *const ops[] = {"conv", "fc", "batch_norm"};
    for (int i = 0; i < CVY_COUNT(ops); i++)
        if (strcmp(layer->op->name, ops[i]) == 0)
            return 1;
    return 0;
}

static void each_name_once(void)
{
    static const struct {
        const char *network, *options;
    } all[] = {{"resnet-18", NULL},  {"resnet-152", NULL},          {"vgg-19", "batch_norm: true"},
               {"alexnet-v2", NULL}, {"googlenet-bn", "aux: true"}, {"inception-v3", "aux: true"}};
    for (int i = 0; i < CVY_COUNT(all); i++) {
        cvy_model *m = NULL;
        cvy_keys keys = {0};
        int layers = 0, number = 0;
        EXPECT_OK(cvy_model_zoo(all[i].network, all[i].options, NULL, 0, &m));
        for (int k = 0; m && k < m->nlayer; k++) {
            cvy_label name = {{0}};
            if (!has_weights(&m->layer[k]))
                continue;
            EXPECT_OK(cvy_model_foreign_name(m, CVY_NAMES_TORCHVISION, cvy_labelf("%s.weight", m->layer[k].name).text,
                                             &name));
            EXPECT_OK(cvy_keys_add(&keys, name.text, &number));
            layers++;
        }
        EXPECT(layers > 7);
        EXPECT_INT(keys.count, layers);
        cvy_keys_free(&keys);
        cvy_model_destroy(&m);
    }
}

int main(void)
{
    TEST(names);
    TEST(other_networks);
    TEST(each_name_once);
    return test_end();
}
