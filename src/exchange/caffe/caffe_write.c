/*
 * caffe_write.c: writes weights as a caffemodel.
 *
 * The text of the network says which variable is which blob of which layer, so the file has Caffe's names and shapes,
 * and the pairs of BatchNorm and Scale are two layers again. Each layer has its name, its type and its blobs, by which
 * Caffe and others find them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_file.h"
#include "exchange/caffe/caffe.h"

#define FILE_BYTES_MAX ((size_t)INT32_MAX) /* the limit of protocol buffers */

typedef struct writer {
    const char *path;
    const cvy_tensor_entry *tensor;
    cvy_index at; /* numbers of tensors by their names */
    cvy_text *notes;
    Cvy__Caffe__NetParameter *model;
} writer;

static cvy_status find_tensor(const cvy_caffe *x, const writer *w, const cvy_caffe_param *param,
                              const cvy_tensor_entry **out)
{
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(x->build.out->pool, &name, "%s.%s", param->layer, param->parameter));
    const int at = cvy_index_find(&w->at, name);
    const cvy_variable *v = cvy_vars_find(x->build.vars, name);
    *out = at >= 0 ? &w->tensor[at] : NULL;
    CVY_CHECK(!*out || (v && cvy_shape_equal(&v->shape, &(*out)->shape)), CVY_E_SHAPE,
              "%s: %s is %s in the trained network and %s in %s", w->path, name, cvy_shape_text(&(*out)->shape),
              v ? cvy_shape_text(&v->shape) : "nothing", x->build.path);
    return CVY_OK;
}

static cvy_status new_blob(Cvy__Caffe__LayerParameter *layer, Cvy__Caffe__BlobProto **out)
{
    Cvy__Caffe__BlobProto *blob = NULL;
    CVY_TRY(cvy_caffe_push(&layer->blobs, &layer->n_blobs, sizeof(void *)));
    CVY_TRY(cvy_caffe_new(&cvy__caffe__blob_proto__descriptor, &blob));
    layer->blobs[layer->n_blobs - 1] = *out = blob;
    return cvy_caffe_new(&cvy__caffe__blob_shape__descriptor, &blob->shape);
}

static cvy_status set_shape(Cvy__Caffe__BlobProto *blob, const cvy_caffe_param *param, const cvy_shape *of)
{
    for (int i = 0; i < of->ndim; i++) {
        CVY_TRY(cvy_caffe_push(&blob->shape->dim, &blob->shape->n_dim, sizeof *blob->shape->dim));
        blob->shape->dim[i] = of->dim[param->use == CVY_CAFFE_TRANSPOSED ? of->ndim - 1 - i : i];
    }
    return CVY_OK;
}

/* The values in Caffe's order: a transposed matrix is turned back. */
static cvy_status set_values(Cvy__Caffe__BlobProto *blob, const cvy_caffe_param *param, const cvy_tensor_entry *t)
{
    const size_t n = (size_t)cvy_shape_elems(&t->shape), width = cvy_dtype_bytes(t->dtype);
    const size_t columns = param->use == CVY_CAFFE_TRANSPOSED ? (size_t)t->shape.dim[1] : n, rows = n / columns;
    char *data = NULL;
    CVY_TRY(cvy_mem_alloc(n * width, &data));
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++)
            memcpy(data + (rows > 1 ? k * rows + i : k) * width, (const char *)t->data + (i * columns + k) * width,
                   width);
    if (t->dtype == CVY_DTYPE_F64) {
        blob->double_data = (double *)(void *)data;
        blob->n_double_data = n;
    } else {
        blob->data = (float *)(void *)data;
        blob->n_data = n;
    }
    return CVY_OK;
}

static cvy_status add_blob(Cvy__Caffe__LayerParameter *layer, const cvy_caffe_param *param, const cvy_tensor_entry *t)
{
    Cvy__Caffe__BlobProto *blob = NULL;
    CVY_TRY(new_blob(layer, &blob));
    CVY_TRY(set_shape(blob, param, param->has_shape ? &param->shape : &t->shape));
    return set_values(blob, param, t);
}

/* The sum of the weights of batch norm's statistics: they are means already. */
static cvy_status add_factor(Cvy__Caffe__LayerParameter *layer)
{
    static const float one = 1;
    const cvy_tensor_entry factor = {.name = "", .dtype = CVY_DTYPE_F32, .shape = {1, {1}}, .data = &one};
    return add_blob(layer, &(cvy_caffe_param){.use = CVY_CAFFE_AS_IS}, &factor);
}

static cvy_status new_layer(writer *w, const Cvy__Caffe__LayerParameter *of, Cvy__Caffe__LayerParameter **out)
{
    Cvy__Caffe__LayerParameter *layer = NULL;
    CVY_TRY(cvy_caffe_push(&w->model->layer, &w->model->n_layer, sizeof(void *)));
    CVY_TRY(cvy_caffe_new(&cvy__caffe__layer_parameter__descriptor, &layer));
    w->model->layer[w->model->n_layer - 1] = *out = layer;
    CVY_TRY(cvy_caffe_strdup(of->name ? of->name : "", &layer->name));
    return cvy_caffe_strdup(of->type ? of->type : "", &layer->type);
}

/* The parameters of one layer, which are next to each other: [first, end). */
static cvy_status add_layer(cvy_caffe *x, writer *w, int first, int end)
{
    const Cvy__Caffe__LayerParameter *of = x->param[first].of;
    Cvy__Caffe__LayerParameter *layer = NULL;
    for (int i = first; i < end; i++) {
        const cvy_tensor_entry *t = NULL;
        CVY_TRY(find_tensor(x, w, &x->param[i], &t));
        if (!t) {
            cvy_text_add(w->notes, "layer %s is not in the file: the trained network does not have it\n", of->name);
            return w->notes->status;
        }
        if (!layer)
            CVY_TRY(new_layer(w, of, &layer));
        CVY_TRY(add_blob(layer, &x->param[i], t));
    }
    return x->param[first].use == CVY_CAFFE_DIVIDED ? add_factor(layer) : CVY_OK;
}

static cvy_status fill_model(cvy_caffe *x, void *user)
{
    writer *w = user;
    CVY_TRY(cvy_caffe_new(&cvy__caffe__net_parameter__descriptor, &w->model));
    CVY_TRY(cvy_caffe_strdup(x->net->name ? x->net->name : "", &w->model->name));
    for (int first = 0, end = 0; first < x->nparam; first = end) {
        while (end < x->nparam && x->param[end].of == x->param[first].of)
            end++;
        CVY_TRY(add_layer(x, w, first, end));
    }
    CVY_CHECK(w->model->n_layer > 0, CVY_E_SHAPE,
              "%s: the trained network has none of the layers with weights of %s: it is another network", w->path,
              x->build.path);
    return CVY_OK;
}

static cvy_status pack(const writer *w)
{
    uint8_t *bytes = NULL;
    const size_t n = protobuf_c_message_get_packed_size(&w->model->base);
    CVY_CHECK(n <= FILE_BYTES_MAX, CVY_E_UNSUPPORTED, "%s would have %zu bytes, the limit is %zu", w->path, n,
              FILE_BYTES_MAX);
    CVY_TRY(cvy_mem_alloc(n, &bytes));
    protobuf_c_message_pack(&w->model->base, bytes);
    const cvy_status status = cvy_file_replace(w->path, bytes, n);
    cvy_mem_free(&bytes);
    return status;
}

cvy_status cvy_export_caffemodel(const char *path, const cvy_export *from, cvy_text *notes)
{
    writer w = {.path = path, .tensor = from->tensor, .notes = notes};
    const cvy_caffe_input input = {.sample = from->input};
    const cvy_caffe_opts opts = {.input = &input, .ninput = 1};
    cvy_import in = {0};
    cvy_status status = CVY_OK;
    for (int i = 0; i < from->ntensor; i++)
        CVY_TRY_OUT(cvy_index_add(&w.at, from->tensor[i].name, i));
    CVY_TRY_OUT(cvy_caffe_visit(from->net, &opts, &in, fill_model, &w));
    status = pack(&w);
out:
    if (w.model)
        protobuf_c_message_free_unpacked(&w.model->base, cvy_caffe_allocator());
    cvy_import_free(&in);
    cvy_index_free(&w.at);
    return status;
}
