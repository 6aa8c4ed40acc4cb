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
typedef Cvy__Caffe__V0LayerParameter v0;
typedef cvy_status (*move_fn)(v0 *from, v1 *to);

#define MOVE(to, from)                                                                                                 \
    do {                                                                                                               \
        (to) = (from);                                                                                                 \
        (from) = NULL;                                                                                                 \
    } while (0)
#define COPY(to, field, from, old)                                                                                     \
    do {                                                                                                               \
        (to)->has_##field = (from)->has_##old;                                                                         \
        (to)->field = (from)->old;                                                                                     \
    } while (0)
/* One element of a repeated field. */
#define COPY_ONE(to, field, from, old)                                                                                 \
    do {                                                                                                               \
        if ((from)->has_##old) {                                                                                       \
            CVY_TRY(cvy_caffe_push(&(to)->field, &(to)->n_##field, sizeof *(to)->field));                              \
            (to)->field[0] = (from)->old;                                                                              \
        }                                                                                                              \
    } while (0)

static cvy_status move_conv(v0 *from, v1 *to)
{
    Cvy__Caffe__ConvolutionParameter *p = NULL;
    CVY_TRY(cvy_caffe_new(&cvy__caffe__convolution_parameter__descriptor, &p));
    to->convolution_param = p;
    COPY(p, num_output, from, num_output);
    COPY(p, bias_term, from, biasterm);
    COPY(p, group, from, group);
    COPY_ONE(p, pad, from, pad);
    COPY_ONE(p, kernel_size, from, kernelsize);
    COPY_ONE(p, stride, from, stride);
    MOVE(p->weight_filler, from->weight_filler);
    MOVE(p->bias_filler, from->bias_filler);
    return CVY_OK;
}

static cvy_status move_inner_product(v0 *from, v1 *to)
{
    Cvy__Caffe__InnerProductParameter *p = NULL;
    CVY_TRY(cvy_caffe_new(&cvy__caffe__inner_product_parameter__descriptor, &p));
    to->inner_product_param = p;
    COPY(p, num_output, from, num_output);
    COPY(p, bias_term, from, biasterm);
    MOVE(p->weight_filler, from->weight_filler);
    MOVE(p->bias_filler, from->bias_filler);
    return CVY_OK;
}

static cvy_status move_pool(v0 *from, v1 *to)
{
    Cvy__Caffe__PoolingParameter *p = NULL;
    CVY_TRY(cvy_caffe_new(&cvy__caffe__pooling_parameter__descriptor, &p));
    to->pooling_param = p;
    p->has_pool = from->has_pool;
    p->pool = (Cvy__Caffe__PoolingParameter__PoolMethod)from->pool; /* the same numbers */
    COPY(p, kernel_size, from, kernelsize);
    COPY(p, stride, from, stride);
    COPY(p, pad, from, pad);
    return CVY_OK;
}

static cvy_status move_dropout(v0 *from, v1 *to)
{
    CVY_TRY(cvy_caffe_new(&cvy__caffe__dropout_parameter__descriptor, &to->dropout_param));
    COPY(to->dropout_param, dropout_ratio, from, dropout_ratio);
    return CVY_OK;
}

static cvy_status move_lrn(v0 *from, v1 *to)
{
    CVY_TRY(cvy_caffe_new(&cvy__caffe__lrnparameter__descriptor, &to->lrn_param));
    COPY(to->lrn_param, local_size, from, local_size);
    COPY(to->lrn_param, alpha, from, alpha);
    COPY(to->lrn_param, beta, from, beta);
    COPY(to->lrn_param, k, from, k);
    return CVY_OK;
}

static cvy_status move_concat(v0 *from, v1 *to)
{
    CVY_TRY(cvy_caffe_new(&cvy__caffe__concat_parameter__descriptor, &to->concat_param));
    COPY(to->concat_param, concat_dim, from, concat_dim);
    return CVY_OK;
}

static cvy_status move_data(v0 *from, v1 *to)
{
    Cvy__Caffe__DataParameter *p = NULL;
    CVY_TRY(cvy_caffe_new(&cvy__caffe__data_parameter__descriptor, &p));
    to->data_param = p;
    MOVE(p->source, from->source);
    MOVE(p->mean_file, from->meanfile);
    COPY(p, batch_size, from, batchsize);
    COPY(p, scale, from, scale);
    COPY(p, crop_size, from, cropsize);
    COPY(p, mirror, from, mirror);
    COPY(p, rand_skip, from, rand_skip);
    return CVY_OK;
}

static cvy_status move_images(v0 *from, v1 *to)
{
    Cvy__Caffe__ImageDataParameter *p = NULL;
    CVY_TRY(cvy_caffe_new(&cvy__caffe__image_data_parameter__descriptor, &p));
    to->image_data_param = p;
    MOVE(p->source, from->source);
    MOVE(p->mean_file, from->meanfile);
    COPY(p, batch_size, from, batchsize);
    COPY(p, scale, from, scale);
    COPY(p, crop_size, from, cropsize);
    COPY(p, mirror, from, mirror);
    COPY(p, rand_skip, from, rand_skip);
    COPY(p, shuffle, from, shuffle_images);
    COPY(p, new_height, from, new_height);
    COPY(p, new_width, from, new_width);
    return CVY_OK;
}

static cvy_status move_hdf5(v0 *from, v1 *to)
{
    CVY_TRY(cvy_caffe_new(&cvy__caffe__hdf5_data_parameter__descriptor, &to->hdf5_data_param));
    MOVE(to->hdf5_data_param->source, from->source);
    COPY(to->hdf5_data_param, batch_size, from, batchsize);
    return CVY_OK;
}

static cvy_status move_infogain(v0 *from, v1 *to)
{
    CVY_TRY(cvy_caffe_new(&cvy__caffe__infogain_loss_parameter__descriptor, &to->infogain_loss_param));
    MOVE(to->infogain_loss_param->source, from->source);
    return CVY_OK;
}

#define TYPE(name) CVY__CAFFE__V1_LAYER_PARAMETER__LAYER_TYPE__##name

static const struct v0_type {
    const char *name;
    Cvy__Caffe__V1LayerParameter__LayerType type;
    move_fn move; /* NULL: it has no parameters */
} types[] = {
    {"accuracy", TYPE(ACCURACY), NULL},
    {"bnll", TYPE(BNLL), NULL},
    {"concat", TYPE(CONCAT), move_concat},
    {"conv", TYPE(CONVOLUTION), move_conv},
    {"data", TYPE(DATA), move_data},
    {"dropout", TYPE(DROPOUT), move_dropout},
    {"euclidean_loss", TYPE(EUCLIDEAN_LOSS), NULL},
    {"flatten", TYPE(FLATTEN), NULL},
    {"hdf5_data", TYPE(HDF5_DATA), move_hdf5},
    {"hdf5_output", TYPE(HDF5_OUTPUT), NULL},
    {"im2col", TYPE(IM2COL), NULL},
    {"images", TYPE(IMAGE_DATA), move_images},
    {"infogain_loss", TYPE(INFOGAIN_LOSS), move_infogain},
    {"innerproduct", TYPE(INNER_PRODUCT), move_inner_product},
    {"lrn", TYPE(LRN), move_lrn},
    {"multinomial_logistic_loss", TYPE(MULTINOMIAL_LOGISTIC_LOSS), NULL},
    {"pool", TYPE(POOLING), move_pool},
    {"relu", TYPE(RELU), NULL},
    {"sigmoid", TYPE(SIGMOID), NULL},
    {"softmax", TYPE(SOFTMAX), NULL},
    {"softmax_loss", TYPE(SOFTMAX_LOSS), NULL},
    {"split", TYPE(SPLIT), NULL},
    {"tanh", TYPE(TANH), NULL},
    {"window_data", TYPE(WINDOW_DATA), NULL},
};

static cvy_status upgrade(const char *path, v1 *to)
{
    v0 *from = to->layer;
    const char *type = from->type ? from->type : "";
    const struct v0_type *found = NULL;
    for (int i = 0; i < CVY_COUNT(types); i++)
        if (strcmp(types[i].name, type) == 0)
            found = &types[i];
    CVY_CHECK(found, CVY_E_FORMAT, "%s: line %u: layer %s has the type '%s', which no V0 layer of Caffe has", path,
              to->convoy_line, from->name ? from->name : "?", type);
    to->has_type = 1;
    to->type = found->type;
    if (!to->name)
        MOVE(to->name, from->name);
    if (to->n_blobs == 0) {
        to->n_blobs = from->n_blobs;
        from->n_blobs = 0;
        MOVE(to->blobs, from->blobs);
    }
    if (to->n_blobs_lr == 0) {
        to->n_blobs_lr = from->n_blobs_lr;
        from->n_blobs_lr = 0;
        MOVE(to->blobs_lr, from->blobs_lr);
    }
    if (to->n_weight_decay == 0) {
        to->n_weight_decay = from->n_weight_decay;
        from->n_weight_decay = 0;
        MOVE(to->weight_decay, from->weight_decay);
    }
    if (found->move)
        CVY_TRY(found->move(from, to));
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
