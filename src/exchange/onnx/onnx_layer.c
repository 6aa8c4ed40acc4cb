/*
 * onnx_layer.c: attributes and sources of ONNX nodes, and the layers that they become.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

/* ---- attributes ---- */

const Cvy__Onnx__AttributeProto *cvy_onnx_attribute(const cvy_onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++)
        if (strcmp(n->proto->attribute[i]->name, name) == 0)
            return n->proto->attribute[i];
    return NULL;
}

int64_t cvy_onnx_int(const cvy_onnx_node *n, const char *name, int64_t fallback)
{
    const Cvy__Onnx__AttributeProto *a = cvy_onnx_attribute(n, name);
    return a ? a->i : fallback;
}

double cvy_onnx_real(const cvy_onnx_node *n, const char *name, double fallback)
{
    const Cvy__Onnx__AttributeProto *a = cvy_onnx_attribute(n, name);
    return a ? cvy_build_decimal(a->f) : fallback;
}

int cvy_onnx_is_one_of(const cvy_onnx_node *node, const char *const *ops, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(ops[i], node->op) == 0)
            return 1;
    return 0;
}

cvy_status cvy_onnx_string(const cvy_onnx_node *n, const char *name, const char **out)
{
    const Cvy__Onnx__AttributeProto *a = cvy_onnx_attribute(n, name);
    return cvy_pool_printf(n->x->out->pool, (char **)(uintptr_t)out, "%.*s", a ? (int)a->s.len : 0,
                           a && a->s.data ? (const char *)a->s.data : "");
}

cvy_status cvy_onnx_ints(const cvy_onnx_node *n, const char *name, int source, const int64_t **out, int *n_out)
{
    const Cvy__Onnx__AttributeProto *a = name ? cvy_onnx_attribute(n, name) : NULL;
    const cvy_onnx_tensor *t = NULL;
    enum { MOST = 1 << 20 };
    CVY_ONNX_CHECK(!a || a->n_ints <= MOST, n, "%s has %zu numbers", name, a ? a->n_ints : 0);
    *out = a ? a->ints : NULL;
    *n_out = a ? (int)a->n_ints : 0;
    if (a || source < 0 || source >= n->nin)
        return CVY_OK;
    CVY_TRY(cvy_onnx_constant(n, source, &t));
    if (!t)
        return CVY_OK;
    CVY_ONNX_CHECK(t->dtype == CVY_DTYPE_I64 && t->elems <= MOST, n, "source %d should be a list of integers", source);
    *out = cvy_onnx_i64(t);
    *n_out = (int)t->elems;
    return CVY_OK;
}

/* ---- sources ---- */

cvy_status cvy_onnx_constant(const cvy_onnx_node *n, int i, const cvy_onnx_tensor **out)
{
    const cvy_onnx_value *v = cvy_onnx_source(n, i);
    CVY_ONNX_CHECK(!v || v->constant, n, "source %d (%s) depends on the input, and should be constant", i, v->name);
    *out = v ? v->constant : NULL;
    return CVY_OK;
}

cvy_status cvy_onnx_activation(const cvy_onnx_node *n, int i, const cvy_onnx_value **out)
{
    const cvy_onnx_value *v = cvy_onnx_source(n, i);
    CVY_ONNX_CHECK(v && v->layer, n, "source %d (%s) is constant, and should depend on the input", i,
                   v ? v->name : "left out");
    *out = v;
    return CVY_OK;
}

double cvy_onnx_number(const cvy_onnx_tensor *t, int64_t i)
{
    return t->dtype == CVY_DTYPE_F32   ? (double)((const float *)t->data)[i]
           : t->dtype == CVY_DTYPE_F64 ? ((const double *)t->data)[i]
                                       : (double)((const int64_t *)t->data)[i];
}

int cvy_onnx_is_real(const cvy_onnx_tensor *t)
{
    return t && cvy_dtype_is_real(t->dtype);
}

cvy_status cvy_onnx_axis(const cvy_onnx_node *n, int64_t axis, int ndim, int *out)
{
    const int named = ndim - (n->source.before > 1) - (n->source.after > 1);
    const int64_t at = axis < 0 ? axis + named : axis; /* ndim is small, so this cannot overflow */
    CVY_ONNX_CHECK(at >= 0 && at < named, n, "axis %lld of a tensor with %d dimensions", (long long)axis, named);
    CVY_ONNX_CHECK(at != n->source.at, n, "axis %lld is that of the samples, which are independent of each other",
                   (long long)axis);
    *out = cvy_onnx_layer_axis(&n->source, (int)at);
    return CVY_OK;
}

/* ---- layers ---- */

/* Some exporters begin all names with a '/'. */
static cvy_status clean(cvy_pool *pool, const char *name, size_t n, char **out)
{
    const size_t slash = n > 0 && *name == '/';
    return cvy_build_clean(pool, name + slash, n - slash, out);
}

/* "conv1.weight" names the layer conv1, and so does "net/conv1/convolution/ReadVariableOp:0" of TensorFlow. Other names
 * of constants ("onnx::Conv_193") name nothing. */
static cvy_status name_of_constant(const cvy_onnx *x, const cvy_onnx_tensor *t, char **out)
{
    static const char *const ends[] = {".weight",       ".kernel",      "/kernel", ".gamma", "/gamma", ".W",
                                       ".running_mean", "/moving_mean", ".scale",  ".shift", ".slope", ".bias"};
    static const char *const readings[] = {"/convolution", "/separable_conv", "/conv_transpose", "/depthwise/",
                                           "/MatMul",      "/Cast",           "/ReadVariableOp"};
    const size_t n = strlen(t->name);
    *out = NULL;
    for (int i = 0; i < CVY_COUNT(readings); i++) {
        const char *at = strstr(t->name, readings[i]);
        if (at && at > t->name)
            return clean(x->out->pool, t->name, (size_t)(at - t->name), out);
    }
    for (int i = 0; i < CVY_COUNT(ends); i++) {
        const size_t end = strlen(ends[i]);
        if (n > end && strcmp(t->name + n - end, ends[i]) == 0)
            return clean(x->out->pool, t->name, n - end, out);
    }
    /* a parameter of a module itself, as block.layer_scale */
    if (strchr(t->name, '.') && !strchr(t->name, ':') && !strchr(t->name, '/'))
        return clean(x->out->pool, t->name, n, out);
    return CVY_OK;
}

cvy_status cvy_onnx_input_name(cvy_onnx *x, const char *wish, const char **out)
{
    char *name = NULL;
    CVY_TRY(clean(x->out->pool, wish, strlen(wish), &name));
    return cvy_build_free_name(&x->build, name, out);
}

static cvy_status choose_name(const cvy_onnx_node *n, const cvy_onnx_layer *layer, int owner, const char **name_out,
                              const char **output_out)
{
    cvy_onnx *x = n->x;
    char *wish = NULL;
    const cvy_onnx_tensor *const named[] = {layer->weight, layer->more[0], layer->more[1], layer->more[2]};
    for (int i = 0; i < CVY_COUNT(named) && (!wish || (owner < 0 && cvy_build_is_taken(&x->build, wish))); i++)
        if (named[i])
            CVY_TRY(name_of_constant(x, named[i], &wish));
    if (!wish || (owner < 0 && cvy_build_is_taken(&x->build, wish)))
        CVY_TRY(clean(x->out->pool, n->name, strlen(n->name), &wish));
    CVY_TRY(cvy_build_free_name(&x->build, wish, output_out));
    *name_out = owner >= 0 ? x->out->model->layer[owner].name : *output_out;
    return CVY_OK;
}

static const cvy_shape *stored(const cvy_onnx_tensor *t)
{
    return t->stored ? t->stored : &t->shape;
}

/* The name of an initialiser as it is, for its variable: "mask". NULL: it is none that a variable can have, or not
 * free. Names that count ("val_3", "onnx::Add_12", "17") say nothing. */
static cvy_status bare_name(const cvy_onnx *x, const cvy_onnx_layer *layer, const char **out)
{
    const char *name = layer->weight->name, *stripped = NULL;
    const size_t n = strlen(name);
    *out = NULL;
    CVY_TRY(name_of_constant(x, layer->weight, (char **)(uintptr_t)&stripped));
    if (cvy_shape_elems(stored(layer->weight)) != layer->weight->elems)
        return CVY_OK; /* a part of the tensor, or it is repeated */
    if (layer->weight->kind == CVY_ONNX_COMPUTED || n == 0 || n > 100 || isdigit((unsigned char)*name) ||
        strncmp(name, "val_", 4) == 0 || (stripped && strcmp(stripped, name) != 0))
        return CVY_OK;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.')
            return CVY_OK;
    const cvy_variable *v = cvy_vars_find(x->build.vars, name);
    if (v ? cvy_shape_equal(&v->shape, stored(layer->weight)) &&
                cvy_build_holds(&x->build, name, layer->weight->dtype, layer->weight->data)
          : !cvy_build_is_taken(&x->build, name))
        *out = name;
    return CVY_OK;
}

static cvy_status bare_options(const cvy_onnx *x, const cvy_onnx_layer *layer, const char **out)
{
    cvy_text t = {0};
    cvy_text_add(&t, "%s", layer->options);
    cvy_onnx_list(&t, "tensor", stored(layer->weight)->dim, stored(layer->weight)->ndim);
    const cvy_status status =
        t.status == CVY_OK ? cvy_pool_strdup(x->out->pool, t.data, (char **)(uintptr_t)out) : t.status;
    cvy_text_free(&t);
    return status;
}

const cvy_shape *cvy_onnx_shape(const cvy_onnx *x, const char *output)
{
    return &cvy_build_value(&x->build, output)->shape;
}

/* "conv1 (Conv)" */
static cvy_status where_is(const cvy_onnx_node *n, char **out)
{
    return cvy_pool_printf(n->x->out->pool, out, "%s (%s)", n->name, n->op);
}

cvy_status cvy_onnx_add(const cvy_onnx_node *n, const cvy_onnx_layer *layer, const char **name_out,
                        const char **output_out)
{
    cvy_onnx *x = n->x;
    cvy_build_layer built = {.op = layer->op, .options = layer->options, .nfrom = layer->nfrom};
    const char *key = NULL;
    int owner = -1;
    memcpy(built.from, layer->from, sizeof built.from);
    if (layer->is_bare)
        CVY_TRY(bare_name(x, layer, &built.name));
    if (built.name) {
        CVY_TRY(cvy_onnx_input_name(x, n->name, &built.output));
        CVY_TRY(bare_options(x, layer, &built.options));
    } else {
        CVY_TRY(cvy_onnx_find_owner(x, layer, &key, &owner));
        CVY_TRY(choose_name(n, layer, owner, &built.name, &built.output));
    }
    CVY_TRY(where_is(n, (char **)(uintptr_t)&built.where));
    CVY_TRY(cvy_build_add(&x->build, &built));
    if (key && owner < 0)
        CVY_TRY(cvy_onnx_add_owner(x, layer, key));
    if (name_out)
        *name_out = built.name;
    if (output_out)
        *output_out = built.output;
    return CVY_OK;
}

cvy_status cvy_onnx_set_values(const cvy_onnx_node *n, const char *layer, const char *parameter, cvy_dtype dtype,
                               const void *data, int64_t elems)
{
    char *where = NULL;
    CVY_TRY(where_is(n, &where));
    return cvy_build_set(&n->x->build, where, layer, parameter, dtype, data, elems);
}

cvy_status cvy_onnx_set(const cvy_onnx_node *n, const char *layer, const char *parameter, const cvy_onnx_tensor *t)
{
    CVY_ONNX_CHECK(cvy_dtype_is_real(t->dtype), n, "%s should hold real numbers", t->name);
    CVY_TRY(cvy_onnx_settle(n, layer, parameter, t));
    return cvy_onnx_set_values(n, layer, parameter, t->dtype, t->data, t->elems);
}

/* ---- results ---- */

static cvy_onnx_value *output_of(const cvy_onnx_node *n, int i)
{
    const char *name = i < n->nout ? n->proto->output[i] : "";
    const int at = *name ? cvy_keys_find(&n->x->names, name) : -1;
    return at >= 0 ? &n->x->value[at] : NULL;
}

void cvy_onnx_turn(cvy_onnx_value *v, const int64_t *order)
{
    const cvy_shape from = v->shape;
    v->turned = order;
    for (int i = 0; i < from.ndim; i++)
        v->shape.dim[i] = from.dim[order[i]];
}

cvy_status cvy_onnx_done(const cvy_onnx_node *n, int i, const char *output)
{
    cvy_onnx_value *v = output_of(n, i);
    if (!v)
        return CVY_OK;
    v->layer = output;
    v->shape = *cvy_onnx_shape(n->x, output);
    v->whole = cvy_onnx_result_type(n);
    cvy_onnx_move(v, &n->moved);
    return CVY_OK;
}

cvy_status cvy_onnx_done_moved(const cvy_onnx_node *n, int i, const char *output, const cvy_onnx_batch *b)
{
    cvy_onnx_value *v = output_of(n, i);
    CVY_TRY(cvy_onnx_done(n, i, output));
    if (v)
        cvy_onnx_move(v, b);
    return CVY_OK;
}

cvy_status cvy_onnx_done_turned(const cvy_onnx_node *n, int i, const char *output, const int64_t *order)
{
    cvy_onnx_value *v = output_of(n, i);
    CVY_TRY(cvy_onnx_done(n, i, output));
    if (v)
        cvy_onnx_turn(v, order);
    return CVY_OK;
}

static void take_origin(cvy_onnx_tensor *t, const cvy_onnx_tensor *from)
{
    const char *name = *from->name ? from->name : from->origin;
    if (!*t->name && name && (!t->origin || from->kind > t->kind))
        t->origin = name;
    t->kind = CVY_MAX(t->kind, from->kind);
}

/* It is of the kind of what it was computed from. Lists of integers say nothing, and make no parameter a constant. */
cvy_status cvy_onnx_done_constant(const cvy_onnx_node *n, int i, cvy_onnx_tensor *t)
{
    cvy_onnx_value *v = output_of(n, i);
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && cvy_onnx_is_real(n->in[k]->constant))
            take_origin(t, n->in[k]->constant);
    if (v)
        v->constant = t;
    return CVY_OK;
}

cvy_status cvy_onnx_absorb(const cvy_onnx_node *n, const Cvy__Onnx__NodeProto *later, const char *output)
{
    cvy_onnx *x = n->x;
    const int layer = output ? cvy_index_find(&x->out->model->layer_at, output) : CVY_ONNX_NO_LAYER;
    CVY_TRY(cvy_mem_reserve(&x->moved, &x->moved_room, x->nmoved, sizeof *x->moved));
    CVY_TRY(cvy_index_add(&x->absorbed_moved, later->output[0], x->nmoved));
    x->moved[x->nmoved++] = n->moved;
    return cvy_index_add(&x->absorbed, later->output[0], layer);
}

cvy_status cvy_onnx_simple(const cvy_onnx_node *n, const char *op, const char *options)
{
    const cvy_onnx_value *from = NULL;
    const char *output = NULL;
    CVY_TRY(cvy_onnx_activation(n, 0, &from));
    CVY_TRY(cvy_onnx_step(n, op, options, from->layer, &output));
    return cvy_onnx_done(n, 0, output);
}

/* ---- memory ---- */

/* The most bytes that constants may have beside those of the file: a network that is all ConstantOfShape, as the tests
 * of ONNX have VGG-19, has 550 MiB. */
static size_t most_bytes(const cvy_onnx *x)
{
    return ((size_t)640 << 20) + 8 * x->file_bytes;
}

cvy_status cvy_onnx_take_memory(cvy_onnx *x, size_t bytes)
{
    const size_t most = most_bytes(x);
    CVY_CHECK(bytes <= most && x->made_bytes <= most - bytes, CVY_E_UNSUPPORTED,
              "%s: its constant nodes compute %zu bytes from a file of %zu bytes, the limit is %zu", x->path,
              x->made_bytes + bytes, x->file_bytes, most);
    x->made_bytes += bytes;
    return CVY_OK;
}

cvy_status cvy_onnx_take_sparse(cvy_onnx *x, const Cvy__Onnx__SparseTensorProto *from, cvy_onnx_tensor **out)
{
    const size_t most = most_bytes(x);
    cvy_onnx_tensor *t = NULL;
    CVY_TRY(cvy_pool_alloc(x->out->pool, sizeof *t, &t));
    CVY_TRY(cvy_onnx_sparse_read(x->out->pool, x->folder, from, most - CVY_MIN(most, x->made_bytes), t));
    *out = t;
    return cvy_onnx_take_memory(x, (size_t)t->elems * cvy_dtype_bytes(t->dtype));
}

cvy_status cvy_onnx_new(cvy_onnx *x, cvy_dtype dtype, const cvy_shape *shape, cvy_onnx_tensor **out)
{
    cvy_onnx_tensor *t = NULL;
    int64_t elems = 1;
    for (int d = 0; d < shape->ndim; d++) {
        CVY_CHECK(shape->dim[d] >= 0 && shape->dim[d] <= CVY_ONNX_ELEMS / CVY_MAX(elems, (int64_t)1), CVY_E_UNSUPPORTED,
                  "%s: a constant of shape %s", x->path, cvy_shape_text(shape));
        elems *= shape->dim[d];
    }
    CVY_TRY(cvy_onnx_take_memory(x, (size_t)elems * cvy_dtype_bytes(dtype)));
    CVY_TRY(cvy_pool_alloc(x->out->pool, sizeof *t, &t));
    *t = (cvy_onnx_tensor){.name = "", .dtype = dtype, .shape = *shape, .elems = elems};
    CVY_TRY(cvy_pool_alloc(x->out->pool, CVY_MAX((size_t)t->elems, 1) * cvy_dtype_bytes(dtype), &t->data));
    *out = t;
    return CVY_OK;
}
