/*
 * model_hep_cnn.c: the network of the collider studies: five 3x3 convolutions with ReLU and 2x2 pooling, global average
 * pooling, one fully connected layer. Source: Kurth et al. 2017, Deep learning at 15PF, section III-A.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "model/model.h"

struct hep_cnn {
    int64_t filters, depth;
};

static const cvy_option hep_cnn_opts[] = {
    {"filters", CVY_TYPE_INT, CVY_FIELD(hep_cnn, filters), "128", "1..", "channels", "filters of each convolution"},
    {"depth", CVY_TYPE_INT, CVY_FIELD(hep_cnn, depth), "5", "1..16", "layers", "number of convolutions"},
    {0},
};

static cvy_status hep_cnn_build(cvy_model *m, const cvy_model_ask *ask)
{
    const struct hep_cnn *o = ask->options;
    int64_t least = INT64_MAX;
    for (int i = 1; i < ask->input->ndim; i++)
        least = CVY_MIN(least, ask->input->dim[i]);
    for (int64_t i = 1; i <= o->depth; i++) {
        char name[24];
        snprintf(name, sizeof name, "conv%lld", (long long)i);
        CVY_TRY(cvy_model_addf(m, "conv", name, NULL, "channels: %lld, kernel: 3, pad: 1", (long long)o->filters));
        CVY_TRY(cvy_model_add(m, "relu", NULL, NULL, NULL));
        if ((least /= 2) >= 1)
            CVY_TRY(cvy_model_add(m, "max_pool", NULL, "kernel: 2", NULL));
    }
    CVY_TRY(cvy_model_add(m, "global_avg_pool", "pool", NULL, NULL));
    return cvy_model_addf(m, "fc", "fc", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

CVY_MODEL_DEFINE(hep_cnn) = {
    .name = "hep-cnn",
    .summary = "HEP-CNN, classifier of collider events",
    .source = "Kurth et al. 2017",
    .options = hep_cnn_opts,
    .options_size = sizeof(struct hep_cnn),
    .input = {3, {3, 224, 224}},
    .classes = 2,
    .build = hep_cnn_build,
};
