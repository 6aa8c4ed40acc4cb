/*
 * caffe_data.c: layers that give data become inputs of the model: "x", "label" and "y", as the data of a job call them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/caffe/caffe.h"
#include "exchange/caffe/caffe_tops.h"

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

static cvy_status sample_of(const cvy_caffe_layer *layer, const char *top, const cvy_caffe_dims *d, int label,
                            cvy_shape *out)
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
              "%s: %s: the text does not say the shape of '%s'; give the shape of a sample: --input 3x32x32, or in a "
              "job model: {caffe: ..., input: 3x32x32}",
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
    if (d->guesses_channels)
        cvy_text_add(&x->build.out->notes,
                     "%s: %s: the text says the size of a picture, %lldx%lld, and not its channels: %lld are taken; an "
                     "input of 1x%lldx%lld says another number\n",
                     x->build.path, layer->where, (long long)d->at[2], (long long)d->at[3], (long long)d->at[1],
                     (long long)d->at[2], (long long)d->at[3]);
    return CVY_OK;
}

/* Adds the input for a top of a layer of data, with the name that fields of data have. */
static cvy_status name_input(cvy_caffe *x, const char *top, const char *wish, cvy_dtype dtype, const cvy_shape *sample,
                             char **name_out)
{
    CVY_TRY(cvy_pool_strdup(x->build.out->pool, wish, name_out));
    if (has_input(x, wish)) {
        CVY_TRY(cvy_build_clean(x->build.out->pool, top, strlen(top), name_out));
        CVY_TRY(cvy_build_free_name(&x->build, *name_out, (const char **)(uintptr_t)name_out));
    }
    return cvy_build_input(&x->build, *name_out, dtype, sample);
}

cvy_status cvy_caffe_add_awaited(const cvy_caffe_layer *layer, const cvy_shape *output, cvy_caffe_blob *blob)
{
    cvy_caffe *x = layer->x;
    const int label = cvy_caffe_is_label(x->net, blob->awaits);
    cvy_shape sample = {0};
    char *name = NULL;
    CVY_CHECK(
        output || label, CVY_E_UNSUPPORTED,
        "%s: %s: the text does not say the shape of '%s'; give the shape of a sample in its layer of data, such as "
        "input_param of a layer Input",
        x->build.path, layer->where, blob->awaits);
    /* labels have the positions of the output, targets also its channels */
    for (int d = label ? 2 : 1; output && d < output->ndim; d++)
        sample.dim[sample.ndim++] = output->dim[d];
    if (label && cvy_shape_elems(&sample) == 1)
        sample.ndim = 0;
    CVY_TRY(name_input(x, blob->awaits, label && sample.ndim == 0 ? "label" : "y",
                       label ? CVY_DTYPE_I32 : CVY_DTYPE_F32, &sample, &name));
    *blob = (cvy_caffe_blob){.output = name};
    return CVY_OK;
}

static cvy_status add_input(const cvy_caffe_layer *layer, size_t i, const cvy_caffe_dims *d)
{
    cvy_caffe *x = layer->x;
    const char *top = layer->p->top[i];
    const int label = cvy_caffe_is_label(x->net, top);
    const int target = !label && has_input(x, "x") && cvy_caffe_is_target(x->net, top);
    char *name = NULL;
    cvy_shape sample;
    if (!cvy_caffe_is_read(x->net, top) && (i > 0 || has_input(x, "x")))
        return CVY_OK;
    if ((label || has_input(x, "x")) && d->n == 0 && !given(x, top, label)) {
        x->blob[cvy_keys_find(&x->names, top)] = (cvy_caffe_blob){.awaits = top};
        return CVY_OK;
    }
    CVY_TRY(sample_of(layer, top, d, label, &sample));
    const char *wish = label && sample.ndim == 0 ? "label" : label || target ? "y" : "x"; /* y: a map of labels, too */
    CVY_TRY(name_input(x, top, wish, label ? CVY_DTYPE_I32 : CVY_DTYPE_F32, &sample, &name));
    return cvy_caffe_done(layer, i, name);
}

static cvy_status translate_data(const cvy_caffe_layer *layer)
{
    for (size_t i = 0; i < layer->p->n_top; i++) {
        const cvy_caffe_dims d = cvy_caffe_dims_of(layer->p, i);
        CVY_TRY(add_input(layer, i, &d));
    }
    return CVY_OK;
}
CVY_CAFFE_DEFINE(input) = {"Input", .translate = translate_data};
CVY_CAFFE_DEFINE(data) = {"Data", .translate = translate_data};
CVY_CAFFE_DEFINE(image_data) = {"ImageData", .translate = translate_data};
CVY_CAFFE_DEFINE(hdf5_data) = {"HDF5Data", .translate = translate_data};
CVY_CAFFE_DEFINE(memory_data) = {"MemoryData", .translate = translate_data};
CVY_CAFFE_DEFINE(dummy_data) = {"DummyData", .translate = translate_data};

/* Its pictures have been cut to crop_size; a job gives such windows as its data. */
CVY_CAFFE_DEFINE(window_data) = {"WindowData", .translate = translate_data};
CVY_CAFFE_DEFINE(python) = {
    "Python", .translate = translate_data,
    .declined = "convoy runs no Python, unless it gives the data, which a job takes from data.train instead: write the "
                "layer as an operator of your own"};
CVY_CAFFE_DEFINE(hdf5_output) = {
    "HDF5Output",
    .declined = "convoy writes no blobs while it trains: `convoy predict` writes the outputs of a network"};
CVY_CAFFE_DEFINE(parameter) = {"Parameter", .declined = "convoy has no variables without a layer"};
