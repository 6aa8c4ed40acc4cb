/*
 * model_inception.c: Inception v3 and v4 for images of 299 x 299: filters factored into rows and columns, batch norm
 * everywhere. v3 is torchvision's layer list (the one of the paper; by option with the auxiliary head after the last 17
 * x 17 module). v4 is the network of the paper. Sources: Szegedy et al. 2016, Rethinking the Inception architecture for
 * computer vision; Szegedy et al. 2017, Inception-v4, figures 3 to 9.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
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
