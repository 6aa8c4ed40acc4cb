/*
 * model_googlenet.c: GoogLeNet: nine inception modules. googlenet is the network of the paper as Caffe trains it: LRN,
 * dropout, and during training two auxiliary heads after modules 4a and 4d. googlenet-bn is torchvision's layer list:
 * batch norm instead of biases and LRN, 3x3 convolutions where the paper has 5x5, a last pooling of 2x2, and no
 * auxiliary heads unless the options ask for them. Sources: Szegedy et al. 2015, Going deeper with convolutions, table
 * 1 and section 5; Caffe's models/bvlc_googlenet; torchvision's googlenet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "model/model.h"

struct googlenet {
    double dropout, aux_weight;
    int aux;
};

static const cvy_option googlenet_opts[] = {
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(googlenet, dropout), "0.4", "0..0.95", "",
     "dropout probability of the inputs of the last layers; 0: no dropout"},
    {"aux", CVY_TYPE_BOOL, CVY_FIELD(googlenet, aux), "true", "", "",
     "auxiliary heads (aux1, aux2), in training only; their losses are added to that of the network"},
    {"aux_weight", CVY_TYPE_REAL, CVY_FIELD(googlenet, aux_weight), "0.3", "0..", "",
     "factor on the loss of an auxiliary head"},
    {0},
};

static const cvy_option googlenet_bn_opts[] = {
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(googlenet, dropout), "0", "0..0.95", "",
     "dropout probability of the inputs of the last layers; 0: no dropout"},
    {"aux", CVY_TYPE_BOOL, CVY_FIELD(googlenet, aux), "false", "", "",
     "auxiliary heads (aux1, aux2), in training only; their losses are added to that of the network"},
    {"aux_weight", CVY_TYPE_REAL, CVY_FIELD(googlenet, aux_weight), "0.3", "0..", "",
     "factor on the loss of an auxiliary head"},
    {0},
};

struct variant {
    const char *norm;
    int large, last_pool;
}; /* large: kernel size of the branch that is 5x5 in the paper */
static const struct variant caffe = {NULL, 5, 3}, torchvision = {"eps: 0.001", 3, 2};

/* Channels of a module: 1x1; 3x3 and the 1x1 before it; 5x5 and the 1x1 before it; the 1x1 after the pooling. */
struct module {
    const char *name;
    int one, three_in, three, five_in, five, pool;
};
static const struct module modules[] = {
    {"3a", 64, 96, 128, 16, 32, 32},     {"3b", 128, 128, 192, 32, 96, 64},   {"4a", 192, 96, 208, 16, 48, 64},
    {"4b", 160, 112, 224, 24, 64, 64},   {"4c", 128, 128, 256, 24, 64, 64},   {"4d", 112, 144, 288, 32, 64, 64},
    {"4e", 256, 160, 320, 32, 128, 128}, {"5a", 256, 160, 320, 32, 128, 128}, {"5b", 384, 192, 384, 48, 128, 128},
};

static cvy_status pool(cvy_model *m, const char *name, int kernel)
{
    return cvy_model_addf(m, "max_pool", name, NULL, "kernel: %d, stride: 2, ceil: true", kernel);
}

static cvy_status lrn(cvy_model *m, const struct variant *v, const char *name)
{
    return v->norm ? CVY_OK : cvy_model_add(m, "lrn", name, "size: 5, alpha: 1e-4, beta: 0.75", NULL);
}

static cvy_status stem(cvy_model *m, const struct variant *v)
{
    CVY_TRY(cvy_model_add_line(m, "conv1", NULL, v->norm, "7x7-64/2"));
    CVY_TRY(pool(m, "pool1", 3));
    CVY_TRY(lrn(m, v, "norm1"));
    CVY_TRY(cvy_model_add_line(m, "conv2", NULL, v->norm, "1x1-64 3x3-192"));
    CVY_TRY(lrn(m, v, "norm2"));
    return pool(m, "pool2", 3);
}

/* Adds a classifier after the last layer. The network then continues from that layer. */
static cvy_status aux_head(cvy_model *m, const struct variant *v, const char *name, const struct googlenet *o,
                           int64_t classes)
{
    const int first = m->nlayer;
    CVY_TRY(cvy_model_add(m, "avg_pool", cvy_labelf("%s_pool", name).text, "kernel: 5, stride: 3", NULL));
    CVY_TRY(cvy_model_add_line(m, cvy_labelf("%s_conv", name).text, NULL, v->norm, "1x1-128"));
    CVY_TRY(cvy_model_add(m, "fc", cvy_labelf("%s_fc", name).text, "channels: 1024", NULL));
    CVY_TRY(cvy_model_add(m, "relu", cvy_labelf("%s_relu", name).text, NULL, NULL));
    if (o->dropout > 0)
        CVY_TRY(cvy_model_add(m, "dropout", cvy_labelf("%s_drop", name).text, "p: 0.7", NULL));
    CVY_TRY(cvy_model_addf(m, "fc", name, NULL, "channels: %lld, init: xavier", (long long)classes));
    return cvy_model_end_aux(m, first, o->aux_weight);
}

static cvy_status inception(cvy_model *m, const struct variant *v, const struct module *i, const char *from)
{
    return cvy_model_add_line(m, cvy_labelf("inception_%s", i->name).text, from, v->norm,
                              cvy_labelf("1x1-%d | 1x1-%d 3x3-%d | 1x1-%d %dx%d-%d | max3 1x1-%d", i->one, i->three_in,
                                         i->three, i->five_in, v->large, v->large, i->five, i->pool)
                                  .text);
}

static cvy_status build(cvy_model *m, const cvy_model_ask *ask, const struct variant *v)
{
    const struct googlenet *o = ask->options;
    CVY_TRY(stem(m, v));
    cvy_label from = cvy_model_here(m);
    for (int i = 0, naux = 0; i < CVY_COUNT(modules); i++) {
        const char *name = modules[i].name;
        CVY_TRY(inception(m, v, &modules[i], from.text));
        if (strcmp(name, "3b") == 0)
            CVY_TRY(pool(m, "pool3", 3));
        if (strcmp(name, "4e") == 0)
            CVY_TRY(pool(m, "pool4", v->last_pool));
        from = cvy_model_here(m);
        if (o->aux && (strcmp(name, "4a") == 0 || strcmp(name, "4d") == 0))
            CVY_TRY(aux_head(m, v, cvy_labelf("aux%d", ++naux).text, o, ask->classes));
    }
    CVY_TRY(cvy_model_add(m, "global_avg_pool", "pool5", NULL, from.text));
    if (o->dropout > 0)
        CVY_TRY(cvy_model_addf(m, "dropout", "drop", NULL, "p: %.17g", o->dropout));
    return cvy_model_addf(m, "fc", "fc", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

static cvy_status googlenet_build(cvy_model *m, const cvy_model_ask *ask)
{
    return build(m, ask, &caffe);
}

static cvy_status googlenet_bn_build(cvy_model *m, const cvy_model_ask *ask)
{
    return build(m, ask, &torchvision);
}

/* inception_3a_2_1 is inception3a.branch2.0. A pooling is the first step of branch 4. */
static cvy_status googlenet_foreign(const cvy_model *m, cvy_names names, int at, cvy_label *out)
{
    const char *name = m->layer[at].name;
    const char *kind = strcmp(m->layer[at].op->name, "batch_norm") == 0 ? "bn" : "conv";
    char module[4];
    int branch = 0, step = 0;
    CVY_TRY(cvy_model_only_torchvision(m, names));
    if (sscanf(name, "inception_%2s_%d_%d", module, &branch, &step) == 3)
        *out = branch == 1 ? cvy_labelf("inception%s.branch1.%s", module, kind)
                           : cvy_labelf("inception%s.branch%d.%d.%s", module, branch, step - 1, kind);
    else if (sscanf(name, "aux%d_conv", &branch) == 1 && strstr(name, "_conv"))
        *out = cvy_labelf("aux%d.conv.%s", branch, kind);
    else if (branch)
        *out = cvy_labelf("aux%d.fc%d", branch, strstr(name, "_fc") ? 1 : 2);
    else if (sscanf(name, "conv%d_%d", &branch, &step) == 2)
        *out = cvy_labelf("conv%d.%s", branch + step - 1, kind);
    else
        *out = cvy_labelf("%s", name);
    return CVY_OK;
}

CVY_MODEL_DEFINE(googlenet) = {
    .name = "googlenet",
    .summary = "GoogLeNet with LRN and auxiliary heads",
    .source = "Szegedy et al. 2015",
    .options = googlenet_opts,
    .options_size = sizeof(struct googlenet),
    .bench = "dropout: 0, aux: false",
    .input = {3, {3, 224, 224}},
    .classes = 1000,
    .build = googlenet_build,
    .instead = "googlenet-bn",
};

CVY_MODEL_DEFINE(googlenet_bn) = {
    .name = "googlenet-bn",
    .summary = "GoogLeNet with batch norm, torchvision's layers",
    .source = "Szegedy et al. 2015, torchvision",
    .options = googlenet_bn_opts,
    .options_size = sizeof(struct googlenet),
    .bench = "dropout: 0, aux: false",
    .input = {3, {3, 224, 224}},
    .classes = 1000,
    .build = googlenet_bn_build,
    .foreign = googlenet_foreign,
};
