/*
 * caffe_text.h: writes networks of Caffe for the tests: texts in both forms of layers, and caffemodels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_CAFFE_TEXT_H
#define CVY_TEST_CAFFE_TEXT_H

#include "base/text/base_text.h"
#include "exchange/caffe/caffe_file.h"
#include "test_util.h"

typedef enum caffe_form { CAFFE_NEW, CAFFE_V1, CAFFE_FORMS } caffe_form;

/* A network that is being written. */
static cvy_text caffe_net;
static caffe_form caffe_write_as;

static inline void caffe_begin(caffe_form form)
{
    cvy_text_free(&caffe_net);
    caffe_write_as = form;
    cvy_text_add(&caffe_net, "name: \"net\"\n");
}

static inline void caffe_put(const char *path)
{
    FILE *file = fopen(path, "wb");
    EXPECT_OK(caffe_net.status);
    EXPECT(file && fwrite(caffe_net.data, 1, caffe_net.bytes, file) == caffe_net.bytes);
    if (file)
        fclose(file);
}

static inline void caffe_put_text(const char *path, const char *text)
{
    cvy_text_free(&caffe_net);
    cvy_text_add_bytes(&caffe_net, text, strlen(text));
    caffe_put(path);
}

/* Writes the binary form of a text of a NetParameter. cut: so many bytes are left out at the end. */
static inline void caffe_put_model(const char *path, const char *text, size_t cut)
{
    cvy_caffe_file file;
    uint8_t *bytes = NULL;
    EXPECT_OK(cvy_caffe_text_parse(path, text, strlen(text), &cvy__caffe__net_parameter__descriptor, &file));
    if (!file.message)
        return;
    const size_t n = protobuf_c_message_get_packed_size(file.message);
    EXPECT_OK(cvy_mem_alloc(n, &bytes));
    EXPECT_INT(protobuf_c_message_pack(file.message, bytes), n);
    FILE *to = fopen(path, "wb");
    EXPECT(to && fwrite(bytes, 1, n - cut, to) == n - cut);
    if (to)
        fclose(to);
    cvy_mem_free(&bytes);
    cvy_caffe_file_free(&file);
}

/* The begin of a layer up to its own fields. types: of the two forms. */
static inline void caffe_open(const char *const types[CAFFE_FORMS], const char *name, const char *bottoms,
                              const char *top)
{
    cvy_text_add(&caffe_net, caffe_write_as == CAFFE_V1 ? "layers { " : "layer { ");
    for (const char *at = bottoms; *at; at += strcspn(at, " "), at += *at == ' ')
        cvy_text_add(&caffe_net, "bottom: \"%.*s\" ", (int)strcspn(at, " "), at);
    cvy_text_add(&caffe_net, "top: \"%s\" ", top);
    cvy_text_add(&caffe_net, caffe_write_as == CAFFE_V1 ? "name: \"%s\" type: %s " : "name: \"%s\" type: \"%s\" ", name,
                 types[caffe_write_as]);
}

static inline void caffe_close(void)
{
    cvy_text_add(&caffe_net, "}\n");
}

/* Multipliers of a weight and a bias. */
static inline void caffe_rates(double weight_lr, double bias_lr, double bias_decay)
{
    if (caffe_write_as == CAFFE_NEW)
        cvy_text_add(&caffe_net, "param { lr_mult: %g decay_mult: 1 } param { lr_mult: %g decay_mult: %g } ", weight_lr,
                     bias_lr, bias_decay);
    else
        cvy_text_add(&caffe_net, "blobs_lr: %g blobs_lr: %g weight_decay: 1 weight_decay: %g ", weight_lr, bias_lr,
                     bias_decay);
}

static inline void caffe_fillers(double std, double bias)
{
    cvy_text_add(&caffe_net,
                 "weight_filler { type: \"gaussian\" std: %g } bias_filler { type: \"constant\" value: %g } ", std,
                 bias);
}

static inline void caffe_input(const char *shape_text)
{
    cvy_text_add(&caffe_net, "%s\n", shape_text);
}

typedef struct caffe_conv {
    int channels, kernel, stride, pad, group;
    double std, bias;
} caffe_conv;

static inline void caffe_add_conv(const char *name, const char *bottom, caffe_conv c)
{
    static const char *const types[] = {"Convolution", "CONVOLUTION"};
    caffe_open(types, name, bottom, name);
    caffe_rates(1, 2, 0);
    cvy_text_add(&caffe_net, "convolution_param { kernel_size: %d num_output: %d ", c.kernel, c.channels);
    if (c.stride > 1)
        cvy_text_add(&caffe_net, "stride: %d ", c.stride);
    if (c.pad > 0)
        cvy_text_add(&caffe_net, "pad: %d ", c.pad);
    if (c.group > 1)
        cvy_text_add(&caffe_net, "group: %d ", c.group);
    caffe_fillers(c.std, c.bias);
    cvy_text_add(&caffe_net, "} ");
    caffe_close();
}

static inline void caffe_add_product(const char *name, const char *bottom, int channels, double std, double bias)
{
    static const char *const types[] = {"InnerProduct", "INNER_PRODUCT"};
    caffe_open(types, name, bottom, name);
    caffe_rates(1, 2, 0);
    cvy_text_add(&caffe_net, "inner_product_param { num_output: %d ", channels);
    caffe_fillers(std, bias);
    cvy_text_add(&caffe_net, "} ");
    caffe_close();
}

static inline void caffe_add_pool(const char *name, const char *bottom, const char *method, int kernel, int stride)
{
    static const char *const types[] = {"Pooling", "POOLING"};
    caffe_open(types, name, bottom, name);
    cvy_text_add(&caffe_net, "pooling_param { pool: %s kernel_size: %d stride: %d } ", method, kernel, stride);
    caffe_close();
}

/* In place. */
static inline void caffe_add_relu(const char *name, const char *blob)
{
    static const char *const types[] = {"ReLU", "RELU"};
    caffe_open(types, name, blob, blob);
    caffe_close();
}

static inline void caffe_add_dropout(const char *name, const char *blob, double ratio)
{
    static const char *const types[] = {"Dropout", "DROPOUT"};
    caffe_open(types, name, blob, blob);
    cvy_text_add(&caffe_net, "dropout_param { dropout_ratio: %g } ", ratio);
    caffe_close();
}

static inline void caffe_add_lrn(const char *name, const char *bottom, int size, double alpha)
{
    static const char *const types[] = {"LRN", "LRN"};
    caffe_open(types, name, bottom, name);
    cvy_text_add(&caffe_net, "lrn_param { local_size: %d alpha: %g beta: 0.75 } ", size, alpha);
    caffe_close();
}

static inline void caffe_add_softmax_loss(const char *name, const char *bottoms)
{
    static const char *const types[] = {"SoftmaxWithLoss", "SOFTMAX_LOSS"};
    caffe_open(types, name, bottoms, name);
    caffe_close();
}

#endif
