/*
 * caffe_tops.c: the shapes of what Caffe's layers of data give, and what reads it; see caffe_tops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_status.h"
#include "exchange/caffe/caffe_tops.h"

typedef Cvy__Caffe__LayerParameter layer_parameter;
typedef cvy_caffe_dims dims;

static dims of_shape(const Cvy__Caffe__BlobShape *s)
{
    dims d = {.n = s->n_dim};
    for (size_t i = 0; i < s->n_dim && i < CVY_NDIM_MAX; i++)
        d.at[i] = s->dim[i];
    return d;
}

static dims of_input(const layer_parameter *p, size_t i)
{
    const Cvy__Caffe__InputParameter *in = p->input_param;
    if (!in || in->n_shape == 0 || (in->n_shape > 1 && i >= in->n_shape))
        return (dims){.n = 0};
    return of_shape(in->shape[in->n_shape > 1 ? i : 0]);
}

/* Element i of a list that has one entry for all tops, or one for each. */
static int64_t entry(const uint32_t *list, size_t n, size_t i)
{
    return n == 0 ? 0 : list[i < n ? i : 0];
}

static dims of_dummy(const layer_parameter *p, size_t i)
{
    const Cvy__Caffe__DummyDataParameter *d = p->dummy_data_param;
    if (!d)
        return (dims){.n = 0};
    if (d->n_shape > 0)
        return of_shape(d->shape[i < d->n_shape ? i : 0]);
    return (dims){.at = {entry(d->num, d->n_num, i), entry(d->channels, d->n_channels, i),
                         entry(d->height, d->n_height, i), entry(d->width, d->n_width, i)},
                  .n = 4};
}

static dims of_memory(const layer_parameter *p, size_t i)
{
    const Cvy__Caffe__MemoryDataParameter *m = p->memory_data_param;
    if (!m)
        return (dims){.n = 0};
    return i == 0 ? (dims){.at = {m->batch_size, m->channels, m->height, m->width}, .n = 4}
                  : (dims){.at = {m->batch_size}, .n = 1};
}

/* Pictures are resized, then cropped. */
static dims of_images(const layer_parameter *p, size_t i)
{
    const Cvy__Caffe__ImageDataParameter *d = p->image_data_param;
    const uint32_t crop = p->transform_param ? p->transform_param->crop_size : 0;
    if (!d)
        return (dims){.n = 0};
    if (i > 0)
        return (dims){.at = {d->batch_size}, .n = 1};
    const int64_t h = crop ? crop : d->new_height, w = crop ? crop : d->new_width;
    return h > 0 && w > 0 ? (dims){.at = {d->batch_size, d->is_color ? 3 : 1, h, w}, .n = 4} : (dims){.n = 0};
}

/* Pictures of a size that the text does not say, unless they are cropped. */
static dims of_cropped(const Cvy__Caffe__TransformationParameter *t, int64_t batch)
{
    const int64_t crop = t ? t->crop_size : 0;
    if (crop == 0)
        return (dims){.n = 0};
    const int is_known = t->force_color || t->force_gray || t->n_mean_value > 1;
    const int64_t channels = t->force_gray ? 1 : t->n_mean_value > 1 ? (int64_t)t->n_mean_value : 3;
    return (dims){.at = {batch, channels, crop, crop}, .n = 4, .guesses_channels = !is_known};
}

static dims of_data(const layer_parameter *p, size_t i)
{
    const int64_t batch = p->data_param ? p->data_param->batch_size : 0;
    return i == 0          ? of_cropped(p->transform_param, batch)
           : p->data_param ? (dims){.at = {batch}, .n = 1}
                           : (dims){.n = 0};
}

/* Windows of colour pictures are warped to the size of the crop. */
static dims of_windows(const layer_parameter *p, size_t i)
{
    dims d = i == 0 ? of_cropped(p->transform_param, 0) : (dims){.n = 1};
    d.guesses_channels = 0;
    return d;
}

cvy_caffe_dims cvy_caffe_dims_of(const layer_parameter *layer, size_t top)
{
    static const struct {
        const char *type;
        dims (*of)(const layer_parameter *layer, size_t top);
    } types[] = {{"Input", of_input},      {"DummyData", of_dummy},    {"MemoryData", of_memory},
                 {"ImageData", of_images}, {"WindowData", of_windows}, {"Data", of_data}};
    for (int i = 0; i < CVY_COUNT(types); i++)
        if (layer->type && strcmp(layer->type, types[i].type) == 0)
            return types[i].of(layer, top);
    return (dims){.n = 0};
}

/* ---- readers ---- */

typedef struct role { /* a type of layers, and the number of the bottom in question */
    const char *type;
    size_t bottom;
} role;

static int is_read_as(const Cvy__Caffe__NetParameter *net, const char *blob, const role *roles, int n)
{
    for (size_t k = 0; blob && k < net->n_layer; k++)
        for (int i = 0; i < n; i++) {
            const layer_parameter *p = net->layer[k];
            if (p->type && strcmp(p->type, roles[i].type) == 0 && roles[i].bottom < p->n_bottom &&
                strcmp(p->bottom[roles[i].bottom], blob) == 0)
                return 1;
        }
    return 0;
}

int cvy_caffe_is_label(const Cvy__Caffe__NetParameter *net, const char *blob)
{
    static const role roles[] = {
        {"SoftmaxWithLoss", 1},         {"Accuracy", 1},       {"HingeLoss", 1}, {"InfogainLoss", 1},
        {"MultinomialLogisticLoss", 1}, {"ContrastiveLoss", 2}};
    return is_read_as(net, blob, roles, CVY_COUNT(roles));
}

int cvy_caffe_is_target(const Cvy__Caffe__NetParameter *net, const char *blob)
{
    static const role roles[] = {{"EuclideanLoss", 1}, {"SigmoidCrossEntropyLoss", 1}};
    return is_read_as(net, blob, roles, CVY_COUNT(roles));
}

int cvy_caffe_is_read(const Cvy__Caffe__NetParameter *net, const char *blob)
{
    for (size_t k = 0; k < net->n_layer; k++)
        for (size_t i = 0; i < net->layer[k]->n_bottom; i++)
            if (strcmp(net->layer[k]->bottom[i], blob) == 0 && net->layer[k]->type &&
                strcmp(net->layer[k]->type, "Silence") != 0)
                return 1;
    return 0;
}
