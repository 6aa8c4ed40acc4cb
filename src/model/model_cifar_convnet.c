/*
 * model_cifar_convnet.c: Caffe's networks for CIFAR-10: three 5x5 convolutions with pooling. "quick" ends with two
 * fully connected layers; "full" ends with one, and has normalisation within channels after its first two poolings.
 * Source: Krizhevsky's cuda-convnet, in the form of Caffe's examples/cifar10.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/model.h"

static cvy_status cifar_convnet_build(cvy_model *m, const cvy_model_ask *ask)
{
    CVY_TRY(cvy_model_add(m, "conv", "conv1", "channels: 32, kernel: 5, pad: 2", NULL));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool1", "kernel: 3, stride: 2, ceil: true", NULL));
    CVY_TRY(cvy_model_add(m, "relu", "relu1", NULL, NULL));
    CVY_TRY(cvy_model_add(m, "conv", "conv2", "channels: 32, kernel: 5, pad: 2", NULL));
    CVY_TRY(cvy_model_add(m, "relu", "relu2", NULL, NULL));
    CVY_TRY(cvy_model_add(m, "avg_pool", "pool2", "kernel: 3, stride: 2, ceil: true", NULL));
    CVY_TRY(cvy_model_add(m, "conv", "conv3", "channels: 64, kernel: 5, pad: 2", NULL));
    CVY_TRY(cvy_model_add(m, "relu", "relu3", NULL, NULL));
    CVY_TRY(cvy_model_add(m, "avg_pool", "pool3", "kernel: 3, stride: 2, ceil: true", NULL));
    CVY_TRY(cvy_model_add(m, "fc", "ip1", "channels: 64", NULL));
    return cvy_model_addf(m, "fc", "ip2", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

CVY_MODEL_DEFINE(cifar_convnet) = {
    .name = "cifar-convnet",
    .summary = "CIFAR ConvNet, Caffe's quick",
    .source = "Krizhevsky 2012, cuda-convnet",
    .input = {3, {3, 32, 32}},
    .classes = 10,
    .build = cifar_convnet_build,
};

static cvy_status cifar_full_build(cvy_model *m, const cvy_model_ask *ask)
{
    CVY_TRY(cvy_model_add(m, "conv", "conv1", "channels: 32, kernel: 5, pad: 2", NULL));
    CVY_TRY(cvy_model_add(m, "max_pool", "pool1", "kernel: 3, stride: 2, ceil: true", NULL));
    CVY_TRY(cvy_model_add(m, "relu", "relu1", NULL, NULL));
    CVY_TRY(cvy_model_add(m, "lrn_within", "norm1", "size: 3, alpha: 5e-5, beta: 0.75", NULL));
    CVY_TRY(cvy_model_add(m, "conv", "conv2", "channels: 32, kernel: 5, pad: 2", NULL));
    CVY_TRY(cvy_model_add(m, "relu", "relu2", NULL, NULL));
    CVY_TRY(cvy_model_add(m, "avg_pool", "pool2", "kernel: 3, stride: 2, ceil: true", NULL));
    CVY_TRY(cvy_model_add(m, "lrn_within", "norm2", "size: 3, alpha: 5e-5, beta: 0.75", NULL));
    CVY_TRY(cvy_model_add(m, "conv", "conv3", "channels: 64, kernel: 5, pad: 2", NULL));
    CVY_TRY(cvy_model_add(m, "relu", "relu3", NULL, NULL));
    CVY_TRY(cvy_model_add(m, "avg_pool", "pool3", "kernel: 3, stride: 2, ceil: true", NULL));
    return cvy_model_addf(m, "fc", "ip1", NULL, "channels: %lld, init: xavier", (long long)ask->classes);
}

CVY_MODEL_DEFINE(cifar_full) = {
    .name = "cifar-full",
    .summary = "CIFAR network with LRN, Caffe's full",
    .source = "Krizhevsky 2012, cuda-convnet",
    .input = {3, {3, 32, 32}},
    .classes = 10,
    .build = cifar_full_build,
};
