/*
 * caffe_v0.c: the oldest form of Caffe's layers, `layers { layer { name: "conv1" type: "conv" num_output: 96 ... } }`.
 *
 * All fields of all types are in one message. They move into the parameters of the layer's type. A layer "padding"
 * before a convolution or a pooling becomes their `pad`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/caffe/caffe_v0.h"

#include <string.h>

typedef Cvy__Caffe__V1LayerParameter v1;

/* A field of V0 and the field of the parameters that it becomes. */
typedef struct renamed {
    const char *old, *field;
} renamed;

#define TYPE(name) CVY__CAFFE__V1_LAYER_PARAMETER__LAYER_TYPE__##name
#define WEIGHTS                                                                                                        \
    {"num_output", "num_output"}, {"biasterm", "bias_term"}, {"weight_filler", "weight_filler"},                       \
    {                                                                                                                  \
        "bias_filler", "bias_filler"                                                                                   \
    }
#define PICTURES                                                                                                       \
    {"source", "source"}, {"meanfile", "mean_file"}, {"batchsize", "batch_size"}, {"scale", "scale"},                  \
        {"cropsize", "crop_size"}, {"mirror", "mirror"},                                                               \
    {                                                                                                                  \
        "rand_skip", "rand_skip"                                                                                       \
    }

static const struct v0_type {
    const char *name;
    Cvy__Caffe__V1LayerParameter__LayerType type;
    const char *parameters; /* the field of V1 that has them; NULL: it has none */
    renamed field[12];
} types[] = {
    {"accuracy", TYPE(ACCURACY), NULL, {{0}}},
    {"bnll", TYPE(BNLL), NULL, {{0}}},
    {"concat", TYPE(CONCAT), "concat_param", {{"concat_dim", "concat_dim"}}},
    {"conv",
     TYPE(CONVOLUTION),
     "convolution_param",
     {WEIGHTS, {"pad", "pad"}, {"kernelsize", "kernel_size"}, {"group", "group"}, {"stride", "stride"}}},
    {"data", TYPE(DATA), "data_param", {PICTURES}},
    {"dropout", TYPE(DROPOUT), "dropout_param", {{"dropout_ratio", "dropout_ratio"}}},
    {"euclidean_loss", TYPE(EUCLIDEAN_LOSS), NULL, {{0}}},
    {"flatten", TYPE(FLATTEN), NULL, {{0}}},
    {"hdf5_data", TYPE(HDF5_DATA), "hdf5_data_param", {{"source", "source"}, {"batchsize", "batch_size"}}},
    {"hdf5_output", TYPE(HDF5_OUTPUT), NULL, {{0}}},
    {"im2col", TYPE(IM2COL), NULL, {{0}}},
    {"images",
     TYPE(IMAGE_DATA),
     "image_data_param",
     {PICTURES, {"shuffle_images", "shuffle"}, {"new_height", "new_height"}, {"new_width", "new_width"}}},
    {"infogain_loss", TYPE(INFOGAIN_LOSS), "infogain_loss_param", {{"source", "source"}}},
    {"innerproduct", TYPE(INNER_PRODUCT), "inner_product_param", {WEIGHTS}},
    {"lrn", TYPE(LRN), "lrn_param", {{"local_size", "local_size"}, {"alpha", "alpha"}, {"beta", "beta"}, {"k", "k"}}},
    {"multinomial_logistic_loss", TYPE(MULTINOMIAL_LOGISTIC_LOSS), NULL, {{0}}},
    {"pool",
     TYPE(POOLING),
     "pooling_param",
     {{"pool", "pool"}, {"kernelsize", "kernel_size"}, {"stride", "stride"}, {"pad", "pad"}}},
    {"relu", TYPE(RELU), NULL, {{0}}},
    {"sigmoid", TYPE(SIGMOID), NULL, {{0}}},
    {"softmax", TYPE(SOFTMAX), NULL, {{0}}},
    {"softmax_loss", TYPE(SOFTMAX_LOSS), NULL, {{0}}},
    {"split", TYPE(SPLIT), NULL, {{0}}},
    {"tanh", TYPE(TANH), NULL, {{0}}},
    {"window_data", TYPE(WINDOW_DATA), NULL, {{0}}},
};

/* Moves what the layer itself has in V1, unless it has it there already, and what its parameters have. */
static cvy_status move_all(ProtobufCMessage *from, v1 *to, const struct v0_type *type)
{
    static const char *const own[] = {"name", "blobs", "blobs_lr", "weight_decay"};
    ProtobufCMessage *parameters = NULL;
    for (int i = 0; i < CVY_COUNT(own); i++)
        CVY_TRY(cvy_caffe_move_field(from, own[i], &to->base, own[i]));
    if (!type->parameters)
        return CVY_OK;
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(to->base.descriptor, type->parameters);
    CVY_TRY(cvy_caffe_new(f->descriptor, &parameters));
    if (cvy_caffe_is_given(&to->base, f)) { /* of a text that mixes both forms */
        protobuf_c_message_free_unpacked(parameters, cvy_caffe_allocator());
        return CVY_OK;
    }
    memcpy((char *)to + f->offset, &parameters, sizeof parameters);
    for (const renamed *r = type->field; r->old; r++)
        CVY_TRY(cvy_caffe_move_field(from, r->old, parameters, r->field));
    return CVY_OK;
}

static cvy_status upgrade(const char *path, v1 *to)
{
    Cvy__Caffe__V0LayerParameter *from = to->layer;
    const char *type = from->type ? from->type : "";
    const struct v0_type *found = NULL;
    for (int i = 0; i < CVY_COUNT(types); i++)
        if (strcmp(types[i].name, type) == 0)
            found = &types[i];
    CVY_CHECK(found, CVY_E_FORMAT, "%s: line %u: layer %s has the type '%s', which no V0 layer of Caffe has", path,
              to->convoy_line, from->name ? from->name : "?", type);
    to->has_type = 1;
    to->type = found->type;
    CVY_TRY(move_all(&from->base, to, found));
    cvy__caffe__v0_layer_parameter__free_unpacked(from, cvy_caffe_allocator());
    to->layer = NULL;
    return CVY_OK;
}

/* ---- layers of padding ---- */

static int is_padding(const v1 *layer)
{
    return layer->layer && layer->layer->type && strcmp(layer->layer->type, "padding") == 0;
}

/* The layer before `before` that makes a blob; NULL: none does. */
static v1 *maker_of(const Cvy__Caffe__NetParameter *net, size_t before, const char *blob)
{
    for (size_t i = before; i-- > 0;)
        for (size_t k = 0; k < net->layers[i]->n_top; k++)
            if (strcmp(net->layers[i]->top[k], blob) == 0)
                return net->layers[i];
    return NULL;
}

static cvy_status take_padding(const char *path, Cvy__Caffe__NetParameter *net, size_t at)
{
    v1 *layer = net->layers[at];
    const char *type = layer->layer && layer->layer->type ? layer->layer->type : "";
    for (size_t k = 0; k < layer->n_bottom; k++) {
        const v1 *from = maker_of(net, at, layer->bottom[k]);
        char *bottom = NULL;
        if (!from || !is_padding(from))
            continue;
        CVY_CHECK((strcmp(type, "conv") == 0 || strcmp(type, "pool") == 0) && layer->n_bottom == 1 &&
                      from->n_bottom == 1,
                  CVY_E_FORMAT,
                  "%s: line %u: the layer of type '%s' reads %s, which a padding layer makes; only conv and pool can",
                  path, layer->convoy_line, type, layer->bottom[k]);
        CVY_TRY(cvy_caffe_strdup(from->bottom[0], &bottom));
        cvy_mem_free(&layer->bottom[k]);
        layer->bottom[k] = bottom;
        layer->layer->has_pad = 1;
        layer->layer->pad = from->layer->pad;
    }
    return CVY_OK;
}

static cvy_status remove_padding(const char *path, Cvy__Caffe__NetParameter *net)
{
    size_t kept = 0;
    int found = 0;
    for (size_t i = 0; i < net->n_layers; i++)
        found |= is_padding(net->layers[i]);
    for (size_t i = 0; found && i < net->n_layers; i++)
        if (!is_padding(net->layers[i]))
            CVY_TRY(take_padding(path, net, i));
    for (size_t i = 0; i < net->n_layers; i++)
        if (is_padding(net->layers[i]))
            cvy__caffe__v1_layer_parameter__free_unpacked(net->layers[i], cvy_caffe_allocator());
        else
            net->layers[kept++] = net->layers[i];
    net->n_layers = kept;
    return CVY_OK;
}

cvy_status cvy_caffe_upgrade_v0(const char *path, Cvy__Caffe__NetParameter *net)
{
    CVY_TRY(remove_padding(path, net));
    for (size_t i = 0; i < net->n_layers; i++)
        if (net->layers[i]->layer)
            CVY_TRY(upgrade(path, net->layers[i]));
    return CVY_OK;
}
