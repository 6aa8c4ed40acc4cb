/*
 * model_small.c: linear and lenet, the smallest networks, for a first try and for tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/model.h"

static cvy_status linear_build(cvy_model *m, const cvy_model_ask *ask)
{
    return cvy_model_addf(m, "fc", "fc", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

CVY_MODEL_DEFINE(linear) = {
    .name = "linear",
    .summary = "one fully connected layer",
    .source = "linear or logistic regression",
    .input = {3, {3, 32, 32}},
    .classes = 10,
    .build = linear_build,
};

static cvy_status lenet_build(cvy_model *m, const cvy_model_ask *ask)
{
    CVY_TRY(cvy_model_add(m, "conv", "conv1", "channels: 20, kernel: 5, init: xavier", NULL));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool1", "kernel: 2", NULL));
    CVY_TRY(cvy_model_add(m, "conv", "conv2", "channels: 50, kernel: 5, init: xavier", NULL));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool2", "kernel: 2", NULL));
    CVY_TRY(cvy_model_add(m, "fc", "ip1", "channels: 500, init: xavier", NULL));
    CVY_TRY(cvy_model_add(m, "relu", "relu1", NULL, NULL));
    return cvy_model_addf(m, "fc", "ip2", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

CVY_MODEL_DEFINE(lenet) = {
    .name = "lenet",
    .summary = "LeNet as Caffe trains it on MNIST",
    .source = "LeCun et al. 1998",
    .input = {3, {1, 28, 28}},
    .classes = 10,
    .build = lenet_build,
};
