/*
 * caffe_data.c: layers that give data become inputs of the model: "x", "label" and "y", as the data of a job call them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/caffe/caffe.h"

typedef Cvy__Caffe__LayerParameter layer_parameter;

/* The dimensions of top i, with the batch; ndim 0: the text does not say them. */
typedef struct dims {
    int64_t at[CVY_NDIM_MAX];
    size_t n;
} dims;

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
    return (dims){{entry(d->num, d->n_num, i), entry(d->channels, d->n_channels, i), entry(d->height, d->n_height, i),
                   entry(d->width, d->n_width, i)},
                  4};
}

static dims of_memory(const layer_parameter *p, size_t i)
{
    const Cvy__Caffe__MemoryDataParameter *m = p->memory_data_param;
    if (!m)
        return (dims){.n = 0};
    return i == 0 ? (dims){{m->batch_size, m->channels, m->height, m->width}, 4} : (dims){{m->batch_size}, 1};
}

/* Pictures are resized, then cropped. */
static dims of_images(const layer_parameter *p, size_t i)
{
    const Cvy__Caffe__ImageDataParameter *d = p->image_data_param;
    const uint32_t crop = p->transform_param ? p->transform_param->crop_size : 0;
    if (!d)
        return (dims){.n = 0};
    if (i > 0)
        return (dims){{d->batch_size}, 1};
    const int64_t h = crop ? crop : d->new_height, w = crop ? crop : d->new_width;
    return h > 0 && w > 0 ? (dims){{d->batch_size, d->is_color ? 3 : 1, h, w}, 4} : (dims){.n = 0};
}

/* A data base holds pictures of a size that the text does not say. */
static dims of_data(const layer_parameter *p, size_t i)
{
    return i > 0 && p->data_param ? (dims){{p->data_param->batch_size}, 1} : (dims){.n = 0};
}

static dims unknown(const layer_parameter *p, size_t i)
{
    (void)p;
    (void)i;
    return (dims){.n = 0};
}

/* ---- inputs of the model ---- */

static int is_read(const cvy_caffe *x, const char *top)
{
    for (size_t k = 0; k < x->net->n_layer; k++)
        for (size_t i = 0; i < x->net->layer[k]->n_bottom; i++)
            if (strcmp(x->net->layer[k]->bottom[i], top) == 0 && x->net->layer[k]->type &&
                strcmp(x->net->layer[k]->type, "Silence") != 0)
                return 1;
    return 0;
}

static int is_label(const cvy_caffe *x, const char *top)
{
    return cvy_caffe_is_read_by(x, top, " SoftmaxWithLoss Accuracy HingeLoss InfogainLoss MultinomialLogisticLoss ",
                                1) ||
           cvy_caffe_is_read_by(x, top, " ContrastiveLoss ", 2);
}

static int is_target(const cvy_caffe *x, const char *top)
{
    return cvy_caffe_is_read_by(x, top, " EuclideanLoss SigmoidCrossEntropyLoss ", 1);
}

static int has_input(const cvy_caffe *x, const char *name)
{
    const cvy_model *m = x->build.out->model;
    for (int i = 0; i < m->ninput; i++)
        if (strcmp(m->input[i].name, name) == 0)
            return 1;
    return 0;
}

/* The shape that the caller gives; one without a name is that of x. */
static const cvy_caffe_input *given(const cvy_caffe *x, const char *top, int label)
{
    for (int i = 0; i < x->opts->ninput; i++)
        if (x->opts->input[i].top ? strcmp(x->opts->input[i].top, top) == 0 : !label && !has_input(x, "x"))
            return &x->opts->input[i];
    return NULL;
}

static cvy_status sample_of(const cvy_caffe_layer *layer, const char *top, const dims *d, int label, cvy_shape *out)
{
    cvy_caffe *x = layer->x;
    const cvy_caffe_input *in = given(x, top, label);
    int64_t elems = 1;
    *out = (cvy_shape){0};
    if (in) {
        *out = in->sample;
        return CVY_OK;
    }
    CVY_CHECK(d->n > 0 || label, CVY_E_UNSUPPORTED,
              "%s: %s: the text does not say the shape of '%s'; give the shape of a sample: model: {caffe: ..., input: "
              "3x32x32}",
              x->build.path, layer->where, top);
    CVY_CHECK(d->n <= CVY_NDIM_MAX, CVY_E_UNSUPPORTED, "%s: %s: '%s' has %zu dimensions, the limit is %d",
              x->build.path, layer->where, top, d->n, CVY_NDIM_MAX);
    for (size_t i = 1; i < d->n; i++) {
        CVY_CHECK(d->at[i] > 0, CVY_E_FORMAT, "%s: %s: dimension %zu of '%s' is %lld", x->build.path, layer->where, i,
                  top, (long long)d->at[i]);
        CVY_CHECK(d->at[i] <= CVY_BUILD_ELEMS / elems, CVY_E_FORMAT,
                  "%s: %s: dimension %zu of '%s' is %lld, which is too large", x->build.path, layer->where, i, top,
                  (long long)d->at[i]);
        elems *= d->at[i];
        if (!label || d->at[i] > 1) /* a label is a number, or a map of positions */
            out->dim[out->ndim++] = d->at[i];
    }
    if (x->batch == 0 && d->n > 0)
        x->batch = CVY_MAX(d->at[0], 0);
    return CVY_OK;
}

static cvy_status add_input(const cvy_caffe_layer *layer, size_t i, const dims *d)
{
    cvy_caffe *x = layer->x;
    const char *top = layer->p->top[i];
    const int label = is_label(x, top), target = !label && has_input(x, "x") && is_target(x, top);
    const char *wish = label ? "label" : target ? "y" : "x";
    char *name = NULL;
    cvy_shape sample;
    if (!is_read(x, top) && (i > 0 || has_input(x, "x")))
        return CVY_OK;
    CVY_TRY(sample_of(layer, top, d, label, &sample));
    CVY_TRY(cvy_pool_strdup(x->build.out->pool, wish, &name));
    if (has_input(x, wish)) {
        CVY_TRY(cvy_build_clean(x->build.out->pool, top, strlen(top), &name));
        CVY_TRY(cvy_build_free_name(&x->build, name, (const char **)(uintptr_t)&name));
    }
    CVY_TRY(cvy_build_input(&x->build, name, label ? CVY_DTYPE_I32 : CVY_DTYPE_F32, &sample));
    return cvy_caffe_done(layer, i, name);
}

static cvy_status add_inputs(const cvy_caffe_layer *layer, dims (*dims_of)(const layer_parameter *p, size_t i))
{
    for (size_t i = 0; i < layer->p->n_top; i++) {
        const dims d = dims_of(layer->p, i);
        CVY_TRY(add_input(layer, i, &d));
    }
    return CVY_OK;
}

static cvy_status translate_input(const cvy_caffe_layer *layer)
{
    return add_inputs(layer, of_input);
}
CVY_CAFFE_DEFINE(input) = {"Input", .translate = translate_input};

static cvy_status translate_data(const cvy_caffe_layer *layer)
{
    return add_inputs(layer, of_data);
}
CVY_CAFFE_DEFINE(data) = {"Data", .translate = translate_data};

static cvy_status translate_image_data(const cvy_caffe_layer *layer)
{
    return add_inputs(layer, of_images);
}
CVY_CAFFE_DEFINE(image_data) = {"ImageData", .translate = translate_image_data};

static cvy_status translate_hdf5_data(const cvy_caffe_layer *layer)
{
    return add_inputs(layer, unknown);
}
CVY_CAFFE_DEFINE(hdf5_data) = {"HDF5Data", .translate = translate_hdf5_data};

static cvy_status translate_memory_data(const cvy_caffe_layer *layer)
{
    return add_inputs(layer, of_memory);
}
CVY_CAFFE_DEFINE(memory_data) = {"MemoryData", .translate = translate_memory_data};

static cvy_status translate_dummy_data(const cvy_caffe_layer *layer)
{
    return add_inputs(layer, of_dummy);
}
CVY_CAFFE_DEFINE(dummy_data) = {"DummyData", .translate = translate_dummy_data};

CVY_CAFFE_DEFINE(window_data) = {
    "WindowData", .declined = "convoy cuts no windows out of pictures: cut them before, and give them as ImageData"};
CVY_CAFFE_DEFINE(hdf5_output) = {
    "HDF5Output",
    .declined = "convoy writes no blobs while it trains: `convoy predict` writes the outputs of a network"};
CVY_CAFFE_DEFINE(parameter) = {"Parameter", .declined = "convoy has no variables without a layer"};
