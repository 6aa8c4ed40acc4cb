/*
 * caffe_weights.c: the values of a caffemodel, and the multipliers of the rates at which weights are trained.
 *
 * As in Caffe, a layer of the network gets the blobs of the layer of the same name. Layers of the network that the file
 * lacks keep their first values, for a new head; blobs of another shape are an error.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/caffe/caffe.h"

enum { LISTED = 8 };

/* ---- blobs ---- */

/* The dimensions of a blob that are longer than 1: old blobs have four, new ones as many as they need. */
static cvy_status squeezed(const char *path, const char *layer, const Cvy__Caffe__BlobProto *b, cvy_shape *out)
{
    const int64_t old[4] = {b->num, b->channels, b->height, b->width};
    const int64_t *dim = b->shape ? b->shape->dim : old;
    const size_t n = b->shape ? b->shape->n_dim : 4;
    int64_t elems = 1;
    *out = (cvy_shape){0};
    for (size_t i = 0; i < n; i++) {
        CVY_CHECK(dim[i] > 0 && elems <= CVY_BUILD_ELEMS / dim[i] && out->ndim < CVY_NDIM_MAX, CVY_E_FORMAT,
                  "%s: layer %s has a blob with the dimension %lld", path, layer, (long long)dim[i]);
        elems *= dim[i];
        if (dim[i] > 1)
            out->dim[out->ndim++] = dim[i];
    }
    const size_t have = b->n_data ? b->n_data : b->n_double_data;
    CVY_CHECK(have == (size_t)elems, CVY_E_FORMAT, "%s: layer %s has a blob of %lld elements with %zu values", path,
              layer, (long long)elems, have);
    return CVY_OK;
}

static int same_elements(const cvy_shape *blob, const cvy_shape *of, int transposed)
{
    cvy_shape want = {0};
    for (int i = 0; i < of->ndim; i++) {
        const int64_t dim = of->dim[transposed ? of->ndim - 1 - i : i];
        if (dim > 1)
            want.dim[want.ndim++] = dim;
    }
    return cvy_shape_equal(blob, &want);
}

static double value_at(const Cvy__Caffe__BlobProto *b, size_t i)
{
    return b->n_data ? (double)b->data[i] : b->double_data[i];
}

/* Batch norm keeps sums of its statistics, and the sum of their weights in blob 2. */
static cvy_status divisor_of(const char *path, const Cvy__Caffe__LayerParameter *p, double *out)
{
    CVY_CHECK(p->n_blobs > 2 && (p->blobs[2]->n_data == 1 || p->blobs[2]->n_double_data == 1), CVY_E_FORMAT,
              "%s: layer %s has no factor for its statistics", path, p->name);
    const double sum = value_at(p->blobs[2], 0);
    *out = sum == 0 ? 0 : 1 / sum;
    return CVY_OK;
}

/* The values in the order and dtype of ours. */
static cvy_status convert(cvy_pool *pool, const Cvy__Caffe__BlobProto *b, const cvy_caffe_param *param,
                          const cvy_shape *of, double factor, void **out)
{
    const size_t n = b->n_data ? b->n_data : b->n_double_data, width = b->n_data ? sizeof(float) : sizeof(double);
    const size_t rows = param->use == CVY_CAFFE_TRANSPOSED ? (size_t)of->dim[0] : 1, columns = n / rows;
    CVY_TRY(cvy_pool_alloc(pool, n * width, out));
    for (size_t i = 0; i < n; i++) {
        const size_t from = param->use == CVY_CAFFE_TRANSPOSED ? i % columns * rows + i / columns : i;
        if (b->n_data)
            ((float *)*out)[i] = factor == 1 ? b->data[from] : (float)(factor * (double)b->data[from]);
        else
            ((double *)*out)[i] = factor * b->double_data[from];
    }
    return CVY_OK;
}

static cvy_status take_blob(cvy_caffe *x, const char *path, const Cvy__Caffe__LayerParameter *from,
                            const cvy_caffe_param *param)
{
    char *name = NULL;
    cvy_shape shape;
    void *data = NULL;
    double factor = 1;
    CVY_TRY(cvy_pool_printf(x->build.out->pool, &name, "%s.%s", param->layer, param->parameter));
    const cvy_variable *v = cvy_vars_find(x->build.vars, name);
    CVY_CHECK(v, CVY_E_INTERNAL, "there is no variable %s", name);
    CVY_CHECK((size_t)param->blob < from->n_blobs, CVY_E_SHAPE,
              "%s: layer %s has %zu blobs, but the network needs blob %d, which is %s", path, from->name, from->n_blobs,
              param->blob, name);
    const Cvy__Caffe__BlobProto *b = from->blobs[param->blob];
    CVY_TRY(squeezed(path, from->name, b, &shape));
    CVY_CHECK(same_elements(&shape, &v->shape, param->use == CVY_CAFFE_TRANSPOSED), CVY_E_SHAPE,
              "%s: blob %d of layer %s is %s, but %s of the network is %s; to train the layer from its filler, give it "
              "another name",
              path, param->blob, from->name, cvy_shape_text(&shape), name, cvy_shape_text(&v->shape));
    if (param->use == CVY_CAFFE_DIVIDED)
        CVY_TRY(divisor_of(path, from, &factor));
    CVY_TRY(convert(x->build.out->pool, b, param, &v->shape, factor, &data));
    return cvy_build_set(&x->build, from->name, param->layer, param->parameter,
                         b->n_data ? CVY_DTYPE_F32 : CVY_DTYPE_F64, data, cvy_shape_elems(&v->shape));
}

/* ---- layers by their names ---- */

/* "a, b, c and 4 more"; *n counts all. */
static void list_name(cvy_text *t, const char *name, int *n)
{
    if (*n < LISTED)
        cvy_text_add(t, "%s%s", *n ? ", " : "", name);
    ++*n;
}

static void end_list(cvy_text *t, int n)
{
    if (n > LISTED)
        cvy_text_add(t, " and %d more", n - LISTED);
}

/* What a model and a network do not have in common. */
typedef struct difference {
    cvy_text lacking, unused;
    int nlacking, nunused, nmatched;
} difference;

static cvy_status note_difference(cvy_caffe *x, const char *path, difference *d)
{
    end_list(&d->lacking, d->nlacking);
    end_list(&d->unused, d->nunused);
    CVY_TRY(d->lacking.status);
    CVY_TRY(d->unused.status);
    CVY_CHECK(d->nmatched > 0 || d->nlacking == 0, CVY_E_SHAPE,
              "%s is of another network: of the %d layers of %s with weights it has none (%s); it has %s", path,
              d->nlacking, x->build.path, d->lacking.data ? d->lacking.data : "-",
              d->unused.data ? d->unused.data : "no weights");
    if (d->nlacking > 0)
        cvy_text_add(&x->build.out->notes,
                     "%s has %d of the %d layers with weights; these begin with their fillers: %s\n", path, d->nmatched,
                     d->nmatched + d->nlacking, d->lacking.data);
    if (d->nunused > 0)
        cvy_text_add(&x->build.out->notes, "layers of %s that the network does not have are left out: %s\n", path,
                     d->unused.data);
    return x->build.out->notes.status;
}

static cvy_status take_all(cvy_caffe *x, const char *path, const Cvy__Caffe__NetParameter *model, difference *d)
{
    cvy_index by_name = {0}, wanted = {0};
    cvy_status status = CVY_OK;
    for (size_t i = 0; i < model->n_layer; i++)
        if (model->layer[i]->name && model->layer[i]->n_blobs > 0)
            CVY_TRY_OUT(cvy_index_add(&by_name, model->layer[i]->name, (int)i));
    for (int i = 0; i < x->nparam; i++) {
        const cvy_caffe_param *param = &x->param[i];
        const char *name = param->of->name ? param->of->name : "";
        const int at = cvy_index_find(&by_name, name);
        const int first = cvy_index_find(&wanted, name) < 0;
        if (first && at < 0)
            list_name(&d->lacking, name, &d->nlacking);
        d->nmatched += first && at >= 0;
        CVY_TRY_OUT(cvy_index_add(&wanted, name, 0));
        if (at >= 0)
            CVY_TRY_OUT(take_blob(x, path, model->layer[at], param));
    }
    for (size_t i = 0; i < model->n_layer; i++)
        if (model->layer[i]->name && model->layer[i]->n_blobs > 0 && cvy_index_find(&wanted, model->layer[i]->name) < 0)
            list_name(&d->unused, model->layer[i]->name, &d->nunused);
    status = note_difference(x, path, d);
out:
    cvy_index_free(&by_name);
    cvy_index_free(&wanted);
    return status;
}

cvy_status cvy_caffe_read_weights(cvy_caffe *x, const char *path)
{
    cvy_caffe_file file = {0};
    difference d = {0};
    CVY_TRY(cvy_caffe_binary_read(path, &cvy__caffe__net_parameter__descriptor, &file));
    Cvy__Caffe__NetParameter *model = (Cvy__Caffe__NetParameter *)(void *)file.message;
    cvy_status status = cvy_caffe_upgrade(path, model);
    if (status == CVY_OK)
        status = take_all(x, path, model, &d);
    cvy_text_free(&d.lacking);
    cvy_text_free(&d.unused);
    cvy_caffe_file_free(&file);
    return status;
}

/* ---- multipliers ---- */

static const Cvy__Caffe__ParamSpec *spec_of(const cvy_caffe_param *param)
{
    static const Cvy__Caffe__ParamSpec usual = CVY__CAFFE__PARAM_SPEC__INIT;
    return (size_t)param->blob < param->of->n_param ? param->of->param[param->blob] : &usual;
}

static int is_trained(const cvy_caffe_param *param)
{
    return param->use != CVY_CAFFE_DIVIDED;
}

/* Whether all variables with this end of their names have the multipliers of the first one. */
static int all_alike(const cvy_caffe *x, const cvy_caffe_param *first)
{
    const Cvy__Caffe__ParamSpec *spec = spec_of(first);
    for (int i = 0; i < x->nparam; i++) {
        const Cvy__Caffe__ParamSpec *other = spec_of(&x->param[i]);
        if (is_trained(&x->param[i]) && strcmp(x->param[i].parameter, first->parameter) == 0 &&
            (other->lr_mult != spec->lr_mult || other->decay_mult != spec->decay_mult))
            return 0;
    }
    return 1;
}

static cvy_status add_group(cvy_caffe *x, const cvy_caffe_param *param, const char *layer, cvy_index *done)
{
    cvy_import *out = x->build.out;
    const Cvy__Caffe__ParamSpec *spec = spec_of(param);
    char *match = NULL;
    CVY_TRY(cvy_pool_printf(out->pool, &match, "%s.%s", layer, param->parameter));
    if (cvy_index_find(done, match) >= 0)
        return CVY_OK;
    CVY_TRY(cvy_index_add(done, match, 0));
    if (spec->lr_mult == 1 && spec->decay_mult == 1)
        return CVY_OK;
    CVY_CHECK(spec->lr_mult >= 0 && spec->decay_mult >= 0, CVY_E_FORMAT, "%s: layer %s: lr_mult %g and decay_mult %g",
              x->build.path, param->of->name ? param->of->name : "?", (double)spec->lr_mult, (double)spec->decay_mult);
    CVY_TRY(cvy_mem_reserve(&out->group, &out->group_room, out->ngroup, sizeof *out->group));
    out->group[out->ngroup++] =
        (cvy_import_group){match, CVY_CAFFE_REAL(spec->lr_mult), CVY_CAFFE_REAL(spec->decay_mult), spec->lr_mult == 0};
    return CVY_OK;
}

/* One group for all biases, say, if they are alike; otherwise one for each variable. */
cvy_status cvy_caffe_make_groups(cvy_caffe *x)
{
    cvy_index done = {0};
    cvy_status status = CVY_OK;
    for (int i = 0; i < x->nparam && status == CVY_OK; i++) {
        const cvy_caffe_param *param = &x->param[i];
        if (!is_trained(param))
            continue;
        status = add_group(x, param, all_alike(x, param) ? "*" : param->layer, &done);
    }
    cvy_index_free(&done);
    return status;
}
