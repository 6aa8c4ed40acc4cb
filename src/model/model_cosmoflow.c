/*
 * model_cosmoflow.c: cosmoflow, a regression of the parameters of a universe from volumes of its matter.
 *
 * Convolutions with leaky ReLU and 2x2x2 max pooling, whose filters double each time, then three fully connected
 * layers. The defaults are those of the reference of the MLPerf HPC benchmark since its version 1.0: 5 convolutions of
 * 3x3x3, a slope of 0.3 as in Keras, outputs of 1.2 * tanh for targets that are scaled to -1 .. 1. With kernel: 2 it is
 * the reference of version 0.7. Source: Mathuriya et al. 2018, CosmoFlow: using deep learning to learn the universe at
 * scale.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/model.h"

struct cosmoflow {
    int64_t filters, depth, kernel, fc1, fc2;
    double dropout, range;
    const char *init;
};

static const cvy_option cosmoflow_opts[] = {
    {"filters", CVY_TYPE_INT, CVY_FIELD(cosmoflow, filters), "32", "1..65536", "channels",
     "filters of the first convolution; they double with each"},
    {"depth", CVY_TYPE_INT, CVY_FIELD(cosmoflow, depth), "5", "1..16", "layers", "number of convolutions"},
    {"kernel", CVY_TYPE_INT, CVY_FIELD(cosmoflow, kernel), "3", "1..", "", "positions of a filter, along each axis"},
    {"fc1", CVY_TYPE_INT, CVY_FIELD(cosmoflow, fc1), "128", "1..", "", "outputs of the first fully connected layer"},
    {"fc2", CVY_TYPE_INT, CVY_FIELD(cosmoflow, fc2), "64", "1..", "", "outputs of the second fully connected layer"},
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(cosmoflow, dropout), "0.5", "0..0.95", "",
     "probability that an output of fc1 and fc2 is zero in training"},
    {"range", CVY_TYPE_REAL, CVY_FIELD(cosmoflow, range), "1.2", "0..", "",
     "outputs are this number times tanh; 0: they have no limit"},
    {"init", CVY_TYPE_WORD, CVY_FIELD(cosmoflow, init), "he", "he|xavier", "",
     "initialiser of the weights; the reference has xavier, whose first outputs are small enough for tanh"},
    {0},
};

static cvy_status activate(cvy_model *m, const char *name)
{
    return cvy_model_add(m, "leaky_relu", cvy_labelf("%s_relu", name).text, "slope: 0.3", NULL);
}

static cvy_status dense(cvy_model *m, const struct cosmoflow *o, const char *name, int64_t outputs)
{
    CVY_TRY(cvy_model_addf(m, "fc", name, NULL, "channels: %lld, init: %s", (long long)outputs, o->init));
    CVY_TRY(activate(m, name));
    return o->dropout > 0 ? cvy_model_addf(m, "dropout", cvy_labelf("%s_drop", name).text, NULL, "p: %.17g", o->dropout)
                          : CVY_OK;
}

static cvy_status cosmoflow_build(cvy_model *m, const cvy_model_ask *ask)
{
    const struct cosmoflow *o = ask->options;
    const int is_even = o->kernel % 2 == 0;
    int64_t least = INT64_MAX;
    CVY_CHECK(ask->input->ndim >= 2, CVY_E_SHAPE, "it needs samples [C, positions...], the input is %s",
              cvy_shape_text(ask->input));
    for (int i = 1; i < ask->input->ndim; i++)
        least = CVY_MIN(least, ask->input->dim[i]);
    for (int i = 1; i <= (int)o->depth; i++) {
        const cvy_label name = cvy_labelf("conv%d", i);
        if (is_even) /* as "same" of TensorFlow: the high end has one zero more */
            CVY_TRY(cvy_model_addf(m, "pad", cvy_labelf("pad%d", i).text, NULL, "before: %lld, after: %lld",
                                   (long long)o->kernel / 2 - 1, (long long)o->kernel / 2));
        CVY_TRY(cvy_model_addf(m, "conv", name.text, NULL, "channels: %lld, kernel: %lld, pad: %lld, init: %s",
                               (long long)(o->filters << (i - 1)), (long long)o->kernel,
                               is_even ? 0 : (long long)o->kernel / 2, o->init));
        CVY_TRY(activate(m, name.text));
        if ((least /= 2) >= 1)
            CVY_TRY(cvy_model_add(m, "max_pool", cvy_labelf("pool%d", i).text, "kernel: 2", NULL));
    }
    CVY_TRY(dense(m, o, "fc1", o->fc1));
    CVY_TRY(dense(m, o, "fc2", o->fc2));
    CVY_TRY(cvy_model_addf(m, "fc", "fc3", NULL, "channels: %lld, init: xavier", (long long)ask->classes));
    if (!(o->range > 0))
        return CVY_OK;
    CVY_TRY(cvy_model_add(m, "tanh", "tanh", NULL, NULL));
    return cvy_model_addf(m, "scale", "output", NULL, "by: %.17g", o->range);
}

CVY_MODEL_DEFINE(cosmoflow) = {
    .name = "cosmoflow",
    .summary = "CosmoFlow of MLPerf HPC, a regression of parameters from volumes",
    .source = "Mathuriya et al. 2018",
    .options = cosmoflow_opts,
    .options_size = sizeof(struct cosmoflow),
    .bench = "dropout: 0",
    .input = {4, {4, 128, 128, 128}},
    .classes = 4,
    .build = cosmoflow_build,
};
