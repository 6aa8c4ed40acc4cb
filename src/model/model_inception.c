/*
 * model_inception.c: Inception v3 and v4 for images of 299 x 299: filters factored into rows and columns, batch norm
 * everywhere. v3 is torchvision's layer list (the one of the paper; by option with the auxiliary head after the last 17
 * x 17 module). v4 is the network of the paper. Sources: Szegedy et al. 2016, Rethinking the Inception architecture for
 * computer vision; Szegedy et al. 2017, Inception-v4, figures 3 to 9.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "model/model.h"

#define NORM "eps: 0.001"

struct inception {
    double dropout, aux_weight;
    int aux;
};

static const cvy_option inception_v3_opts[] = {
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(inception, dropout), "0", "0..0.95", "",
     "dropout probability of the inputs of the last layers; 0: no dropout"},
    {"aux", CVY_TYPE_BOOL, CVY_FIELD(inception, aux), "false", "", "",
     "auxiliary heads (aux1, aux2), in training only; their losses are added to that of the network"},
    {"aux_weight", CVY_TYPE_REAL, CVY_FIELD(inception, aux_weight), "0.4", "0..", "",
     "factor on the loss of an auxiliary head"},
    {0},
};

static const cvy_option inception_v4_opts[] = {
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(inception, dropout), "0", "0..0.95", "",
     "dropout probability of the inputs of the last layers; 0: no dropout"},
    {0},
};

struct module {
    const char *name, *line;
};

/* from: the source of the first module; NULL: the layer that was added last. */
static cvy_status add_modules(cvy_model *m, const struct module *module, int count, const char *from)
{
    for (int i = 0; i < count; i++)
        CVY_TRY(cvy_model_add_line(m, module[i].name, i == 0 ? from : NULL, NORM, module[i].line));
    return CVY_OK;
}

static cvy_status classifier(cvy_model *m, const cvy_model_ask *ask)
{
    const struct inception *o = ask->options;
    CVY_TRY(cvy_model_add(m, "global_avg_pool", "pool", NULL, NULL));
    if (o->dropout > 0)
        CVY_TRY(cvy_model_addf(m, "dropout", "drop", NULL, "p: %.17g", o->dropout));
    return cvy_model_addf(m, "fc", "fc", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

/* ---- v3 ---- */

static const struct module v3_begin[] = {
    {"stem", "3x3-32/2v 3x3-32v 3x3-64 max3/2v 1x1-80v 3x3-192v max3/2v"},
    {"mixed_5b", "1x1-64 | 1x1-48 5x5-64 | 1x1-64 3x3-96 3x3-96 | avg3 1x1-32"},
    {"mixed_5c", "1x1-64 | 1x1-48 5x5-64 | 1x1-64 3x3-96 3x3-96 | avg3 1x1-64"},
    {"mixed_5d", "1x1-64 | 1x1-48 5x5-64 | 1x1-64 3x3-96 3x3-96 | avg3 1x1-64"},
    {"mixed_6a", "3x3-384/2v | 1x1-64 3x3-96 3x3-96/2v | max3/2v"},
    {"mixed_6b", "1x1-192 | 1x1-128 1x7-128 7x1-192 | 1x1-128 7x1-128 1x7-128 7x1-128 1x7-192 | avg3 1x1-192"},
    {"mixed_6c", "1x1-192 | 1x1-160 1x7-160 7x1-192 | 1x1-160 7x1-160 1x7-160 7x1-160 1x7-192 | avg3 1x1-192"},
    {"mixed_6d", "1x1-192 | 1x1-160 1x7-160 7x1-192 | 1x1-160 7x1-160 1x7-160 7x1-160 1x7-192 | avg3 1x1-192"},
    {"mixed_6e", "1x1-192 | 1x1-192 1x7-192 7x1-192 | 1x1-192 7x1-192 1x7-192 7x1-192 1x7-192 | avg3 1x1-192"},
};

static const struct module v3_end[] = {
    {"mixed_7a", "1x1-192 3x3-320/2v | 1x1-192 1x7-192 7x1-192 3x3-192/2v | max3/2v"},
    {"mixed_7b", "1x1-320 | 1x1-384 1x3-384 & 3x1-384 | 1x1-448 3x3-384 1x3-384 & 3x1-384 | avg3 1x1-192"},
    {"mixed_7c", "1x1-320 | 1x1-384 1x3-384 & 3x1-384 | 1x1-448 3x3-384 1x3-384 & 3x1-384 | avg3 1x1-192"},
};

static cvy_status v3_aux_head(cvy_model *m, const struct inception *o, int64_t classes)
{
    const int first = m->nlayer;
    CVY_TRY(cvy_model_add(m, "avg_pool", "aux1_pool1", "kernel: 5, stride: 3", NULL));
    CVY_TRY(cvy_model_add_line(m, "aux1_conv", NULL, NORM, "1x1-128 5x5-768v"));
    CVY_TRY(cvy_model_add(m, "global_avg_pool", "aux1_pool2", NULL, NULL));
    CVY_TRY(cvy_model_addf(m, "fc", "aux1", NULL, "channels: %lld, init: xavier", (long long)classes));
    return cvy_model_end_aux(m, first, o->aux_weight);
}

static cvy_status inception_v3_build(cvy_model *m, const cvy_model_ask *ask)
{
    const struct inception *o = ask->options;
    CVY_TRY(add_modules(m, v3_begin, CVY_COUNT(v3_begin), NULL));
    const cvy_label from = cvy_model_here(m);
    if (o->aux)
        CVY_TRY(v3_aux_head(m, o, ask->classes));
    CVY_TRY(add_modules(m, v3_end, CVY_COUNT(v3_end), from.text));
    return classifier(m, ask);
}

/* The names of torchvision, which timm has taken over: of the steps of the stem, and of the step BRANCH_STEP of these
 * modules. */
static const char *const v3_stem_names[] = {"Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", NULL,
                                            "Conv2d_3b_1x1", "Conv2d_4a_3x3"};
static const struct {
    const char *modules, *place, *name;
} v3_names[] = {
    {"5b 5c 5d", "1_1", "branch1x1"},
    {"5b 5c 5d", "2_1", "branch5x5_1"},
    {"5b 5c 5d", "2_2", "branch5x5_2"},
    {"5b 5c 5d", "3_1", "branch3x3dbl_1"},
    {"5b 5c 5d", "3_2", "branch3x3dbl_2"},
    {"5b 5c 5d", "3_3", "branch3x3dbl_3"},
    {"5b 5c 5d", "4_2", "branch_pool"},
    {"6a", "1_1", "branch3x3"},
    {"6a", "2_1", "branch3x3dbl_1"},
    {"6a", "2_2", "branch3x3dbl_2"},
    {"6a", "2_3", "branch3x3dbl_3"},
    {"6b 6c 6d 6e", "1_1", "branch1x1"},
    {"6b 6c 6d 6e", "2_1", "branch7x7_1"},
    {"6b 6c 6d 6e", "2_2", "branch7x7_2"},
    {"6b 6c 6d 6e", "2_3", "branch7x7_3"},
    {"6b 6c 6d 6e", "3_1", "branch7x7dbl_1"},
    {"6b 6c 6d 6e", "3_2", "branch7x7dbl_2"},
    {"6b 6c 6d 6e", "3_3", "branch7x7dbl_3"},
    {"6b 6c 6d 6e", "3_4", "branch7x7dbl_4"},
    {"6b 6c 6d 6e", "3_5", "branch7x7dbl_5"},
    {"6b 6c 6d 6e", "4_2", "branch_pool"},
    {"7a", "1_1", "branch3x3_1"},
    {"7a", "1_2", "branch3x3_2"},
    {"7a", "2_1", "branch7x7x3_1"},
    {"7a", "2_2", "branch7x7x3_2"},
    {"7a", "2_3", "branch7x7x3_3"},
    {"7a", "2_4", "branch7x7x3_4"},
    {"7b 7c", "1_1", "branch1x1"},
    {"7b 7c", "2_1", "branch3x3_1"},
    {"7b 7c", "2_2", "branch3x3_2a"},
    {"7b 7c", "2_3", "branch3x3_2b"},
    {"7b 7c", "3_1", "branch3x3dbl_1"},
    {"7b 7c", "3_2", "branch3x3dbl_2"},
    {"7b 7c", "3_3", "branch3x3dbl_3a"},
    {"7b 7c", "3_4", "branch3x3dbl_3b"},
    {"7b 7c", "4_2", "branch_pool"},
};

static cvy_status v3_foreign(const cvy_model *m, cvy_names names, int at, cvy_label *out)
{
    const char *name = m->layer[at].name;
    const char *kind = strcmp(m->layer[at].op->name, "batch_norm") == 0 ? "bn" : "conv";
    char module[4], place[4];
    int step = 0;
    (void)names;
    if (sscanf(name, "stem_%d", &step) == 1 && step >= 1 && step <= CVY_COUNT(v3_stem_names))
        *out = cvy_labelf("%s.%s", v3_stem_names[step - 1], kind);
    else if (sscanf(name, "aux1_conv_%d", &step) == 1)
        *out = cvy_labelf("AuxLogits.conv%d.%s", step - 1, kind);
    else if (sscanf(name, "mixed_%2s_%3s", module, place) == 2)
        for (int i = 0; i < CVY_COUNT(v3_names); i++) {
            if (strstr(v3_names[i].modules, module) && strcmp(v3_names[i].place, place) == 0)
                *out = cvy_labelf("Mixed_%s.%s.%s", module, v3_names[i].name, kind);
        }
    else
        *out = cvy_labelf("%s", strcmp(name, "aux1") == 0 ? "AuxLogits.fc" : name);
    return CVY_OK;
}

/* ---- v4 ---- */

#define V4_A "avg3 1x1-96 | 1x1-96 | 1x1-64 3x3-96 | 1x1-64 3x3-96 3x3-96"
#define V4_B "avg3 1x1-128 | 1x1-384 | 1x1-192 1x7-224 7x1-256 | 1x1-192 1x7-192 7x1-224 1x7-224 7x1-256"
#define V4_C "avg3 1x1-256 | 1x1-256 | 1x1-384 1x3-256 & 3x1-256 | 1x1-384 1x3-448 3x1-512 3x1-256 & 1x3-256"

static const struct module v4[] = {
    {"stem1", "3x3-32/2v 3x3-32v 3x3-64"},
    {"stem2", "max3/2v | 3x3-96/2v"},
    {"stem3", "1x1-64 3x3-96v | 1x1-64 7x1-64 1x7-64 3x3-96v"},
    {"stem4", "3x3-192/2v | max3/2v"},
    {"a1", V4_A},
    {"a2", V4_A},
    {"a3", V4_A},
    {"a4", V4_A},
    {"reduce_a", "3x3-384/2v | 1x1-192 3x3-224 3x3-256/2v | max3/2v"},
    {"b1", V4_B},
    {"b2", V4_B},
    {"b3", V4_B},
    {"b4", V4_B},
    {"b5", V4_B},
    {"b6", V4_B},
    {"b7", V4_B},
    {"reduce_b", "1x1-192 3x3-192/2v | 1x1-256 1x7-256 7x1-320 3x3-320/2v | max3/2v"},
    {"c1", V4_C},
    {"c2", V4_C},
    {"c3", V4_C},
};

static cvy_status inception_v4_build(cvy_model *m, const cvy_model_ask *ask)
{
    CVY_TRY(add_modules(m, v4, CVY_COUNT(v4), NULL));
    return classifier(m, ask);
}

CVY_MODEL_DEFINE(inception_v3) = {
    .name = "inception-v3",
    .summary = "Inception v3",
    .source = "Szegedy et al. 2016",
    .options = inception_v3_opts,
    .options_size = sizeof(struct inception),
    .bench = "dropout: 0, aux: false",
    .input = {3, {3, 299, 299}},
    .classes = 1000,
    .build = inception_v3_build,
    .foreign = v3_foreign,
};

CVY_MODEL_DEFINE(inception_v4) = {
    .name = "inception-v4",
    .summary = "Inception v4",
    .source = "Szegedy et al. 2017",
    .options = inception_v4_opts,
    .options_size = sizeof(struct inception),
    .bench = "dropout: 0",
    .input = {3, {3, 299, 299}},
    .classes = 1000,
    .build = inception_v4_build,
};
