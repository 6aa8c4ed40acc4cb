/*
 * onnx_write.c: adds nodes, attributes and constants to an ONNX graph; see onnx_write.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/onnx/onnx_write.h"

#include <string.h>

/* ---- names ---- */

cvy_status cvy_onnxw_name(cvy_onnx_writer *w, const char *what, const char **out)
{
    return cvy_pool_printf(w->pool, (char **)(uintptr_t)out, "%s:%s", w->here, what);
}

const cvy_value *cvy_onnxw_value(const cvy_onnx_writer *w, const char *output)
{
    const int at = cvy_index_find(&w->from->model->layer_at, output);
    return at >= 0 ? w->value[at] : cvy_graph_find(w->graph, output);
}

const char *cvy_onnxw_dst(const cvy_onnx_writer *w, const cvy_node *node)
{
    return w->name[node->dst[0]->index];
}

/* ---- tensors ---- */

static cvy_status add_tensor(cvy_onnx_writer *w, const char *name, int type, const cvy_shape *shape, const void *data,
                             size_t bytes)
{
    Cvy__Onnx__TensorProto *t = NULL;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *t, &t));
    cvy__onnx__tensor_proto__init(t);
    t->name = (char *)(uintptr_t)name;
    t->data_type = type;
    t->n_dims = (size_t)shape->ndim;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *t->dims * (t->n_dims + 1), &t->dims));
    for (int i = 0; i < shape->ndim; i++)
        t->dims[i] = shape->dim[i];
    t->raw_data = (ProtobufCBinaryData){.len = bytes, .data = (uint8_t *)(uintptr_t)data};
    CVY_TRY(cvy_mem_reserve(&w->tensor, &w->tensor_room, w->ntensor, sizeof(void *)));
    CVY_TRY(cvy_index_add(&w->tensors, name, w->ntensor));
    w->tensor[w->ntensor++] = t;
    return CVY_OK;
}

static cvy_status find_values(const cvy_onnx_writer *w, const cvy_variable *v, const cvy_tensor_entry **out)
{
    const int at = cvy_index_find(&w->entries, v->name);
    CVY_CHECK(at >= 0, CVY_E_ARGUMENT, "no values are given for the variable %s", v->name);
    const cvy_tensor_entry *e = &w->from->tensor[at];
    CVY_CHECK(cvy_shape_equal(&e->shape, &v->shape) && (e->dtype == CVY_DTYPE_F32 || e->dtype == CVY_DTYPE_F64),
              CVY_E_SHAPE, "variable %s is %s of %s, expected %s of f32 or f64", v->name, cvy_shape_text(&e->shape),
              cvy_dtype_text(e->dtype), cvy_shape_text(&v->shape));
    *out = e;
    return CVY_OK;
}

cvy_status cvy_onnxw_values(cvy_onnx_writer *w, const cvy_node *node, int i, double **out)
{
    const cvy_tensor_entry *e = NULL;
    CVY_TRY(find_values(w, node->src[i]->variable, &e));
    const int64_t n = cvy_shape_elems(&e->shape);
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof **out * (size_t)(n + 1), out));
    for (int64_t k = 0; k < n; k++)
        (*out)[k] = e->dtype == CVY_DTYPE_F64 ? ((const double *)e->data)[k] : ((const float *)e->data)[k];
    return CVY_OK;
}

/* Lists a tensor whose variable no step trains. */
static void note_constant(cvy_onnx_writer *w, const cvy_variable *v, const char *name)
{
    const cvy_model *m = w->from->model;
    int is_kept = 0;
    for (int i = w->first_kept; i < m->nlayer && !is_kept; i++)
        is_kept = cvy_model_keeps(m, &m->layer[i], v->name);
    if (is_kept)
        cvy_text_add(&w->constants, "%s%s", w->constants.bytes ? " " : "", name);
}

/* The values of a variable as f32; those that are f32 already stay where they are. */
static cvy_status add_variable(cvy_onnx_writer *w, const cvy_variable *v, const char *name, const cvy_shape *shape)
{
    const cvy_tensor_entry *e = NULL;
    CVY_TRY(find_values(w, v, &e));
    note_constant(w, v, name);
    const int64_t n = cvy_shape_elems(&e->shape);
    const void *data = e->data;
    if (e->dtype == CVY_DTYPE_F64) {
        float *f = NULL;
        CVY_TRY(cvy_pool_alloc(w->pool, sizeof *f * (size_t)(n + 1), &f));
        for (int64_t i = 0; i < n; i++)
            f[i] = (float)((const double *)e->data)[i];
        data = f;
    }
    return add_tensor(w, name, CVY_ONNX_FLOAT, shape, data, (size_t)n * sizeof(float));
}

cvy_status cvy_onnxw_shaped(cvy_onnx_writer *w, const cvy_node *node, int i, const cvy_shape *shape, const char **out)
{
    const cvy_value *v = node->src[i];
    *out = v->variable ? v->variable->name : w->name[v->index];
    if (v->variable &&
        cvy_index_find(&w->from->model->layer_at, *out) >= 0) /* a variable that is called as the output of a layer */
        CVY_TRY(cvy_pool_printf(w->pool, (char **)(uintptr_t)out, "%s:values", *out));
    return !v->variable || cvy_index_find(&w->tensors, *out) >= 0 ? CVY_OK : add_variable(w, v->variable, *out, shape);
}

cvy_status cvy_onnxw_src(cvy_onnx_writer *w, const cvy_node *node, int i, const char **out)
{
    return cvy_onnxw_shaped(w, node, i, &node->src[i]->shape, out);
}

cvy_status cvy_onnxw_ints(cvy_onnx_writer *w, const char *what, const int64_t *at, int n, const char **out)
{
    const cvy_shape shape = {.ndim = 1, .dim = {n}};
    int64_t *copy = NULL;
    CVY_TRY(cvy_onnxw_name(w, what, out));
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *copy * ((size_t)n + 1), &copy));
    memcpy(copy, at, sizeof *at * (size_t)n);
    return add_tensor(w, *out, CVY_ONNX_INT64, &shape, copy, sizeof *copy * (size_t)n);
}

cvy_status cvy_onnxw_reals(cvy_onnx_writer *w, const char *what, const cvy_shape *shape, const double *at,
                           const char **out)
{
    const int64_t n = cvy_shape_elems(shape);
    float *copy = NULL;
    CVY_TRY(cvy_onnxw_name(w, what, out));
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *copy * ((size_t)n + 1), &copy));
    for (int64_t i = 0; i < n; i++)
        copy[i] = (float)at[i];
    return add_tensor(w, *out, CVY_ONNX_FLOAT, shape, copy, sizeof *copy * (size_t)n);
}

cvy_status cvy_onnxw_real(cvy_onnx_writer *w, const char *what, double value, const char **out)
{
    return cvy_onnxw_reals(w, what, &(cvy_shape){0}, &value, out);
}

cvy_status cvy_onnxw_uniform(cvy_onnx_writer *w, const char *what, int64_t n, double value, const char **out)
{
    float *copy = NULL;
    CVY_TRY(cvy_onnxw_name(w, what, out));
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *copy * (size_t)(n + 1), &copy));
    for (int64_t i = 0; i < n; i++)
        copy[i] = (float)value;
    return add_tensor(w, *out, CVY_ONNX_FLOAT, &(cvy_shape){.ndim = 1, .dim = {n}}, copy, sizeof *copy * (size_t)n);
}

/* ---- nodes ---- */

cvy_status cvy_onnxw_node(cvy_onnx_writer *w, const char *op, const char *const *src, const char *dst)
{
    Cvy__Onnx__NodeProto *p = NULL;
    size_t n = 0;
    while (src[n])
        n++;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *p, &p));
    cvy__onnx__node_proto__init(p);
    p->op_type = (char *)(uintptr_t)op;
    p->name = (char *)(uintptr_t)dst;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *p->input * (n + 1), &p->input));
    memcpy(p->input, src, sizeof *src * n);
    p->n_input = n;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *p->output, &p->output));
    p->output[0] = (char *)(uintptr_t)dst;
    p->n_output = 1;
    CVY_TRY(cvy_mem_reserve(&w->node, &w->node_room, w->nnode, sizeof(void *)));
    w->node[w->nnode++] = p;
    return CVY_OK;
}

static cvy_status add_attribute(cvy_onnx_writer *w, const char *name, int type, Cvy__Onnx__AttributeProto **out)
{
    enum { MOST = 8 }; /* no operator that is written has more */
    Cvy__Onnx__NodeProto *p = w->node[w->nnode - 1];
    Cvy__Onnx__AttributeProto *a = NULL;
    CVY_EXPECT(p->n_attribute < MOST);
    if (!p->attribute)
        CVY_TRY(cvy_pool_alloc(w->pool, sizeof(void *) * MOST, &p->attribute));
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *a, &a));
    cvy__onnx__attribute_proto__init(a);
    a->name = (char *)(uintptr_t)name;
    a->type = type;
    p->attribute[p->n_attribute++] = *out = a;
    return CVY_OK;
}

cvy_status cvy_onnxw_set_int(cvy_onnx_writer *w, const char *name, int64_t value)
{
    Cvy__Onnx__AttributeProto *a = NULL;
    CVY_TRY(add_attribute(w, name, CVY_ONNX_ATTRIBUTE_INT, &a));
    a->i = value;
    return CVY_OK;
}

cvy_status cvy_onnxw_set_real(cvy_onnx_writer *w, const char *name, double value)
{
    Cvy__Onnx__AttributeProto *a = NULL;
    CVY_TRY(add_attribute(w, name, CVY_ONNX_ATTRIBUTE_FLOAT, &a));
    a->f = (float)value;
    return CVY_OK;
}

cvy_status cvy_onnxw_set_text(cvy_onnx_writer *w, const char *name, const char *value)
{
    Cvy__Onnx__AttributeProto *a = NULL;
    CVY_TRY(add_attribute(w, name, CVY_ONNX_ATTRIBUTE_STRING, &a));
    a->s = (ProtobufCBinaryData){.len = strlen(value), .data = (uint8_t *)(uintptr_t)value};
    return CVY_OK;
}

cvy_status cvy_onnxw_set_ints(cvy_onnx_writer *w, const char *name, const int64_t *at, int n)
{
    Cvy__Onnx__AttributeProto *a = NULL;
    CVY_TRY(add_attribute(w, name, CVY_ONNX_ATTRIBUTE_INTS, &a));
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *a->ints * ((size_t)n + 1), &a->ints));
    memcpy(a->ints, at, sizeof *at * (size_t)n);
    a->n_ints = (size_t)n;
    return CVY_OK;
}

/* ---- common forms ---- */

cvy_status cvy_onnxw_simple(cvy_onnx_writer *w, const cvy_node *node, const char *op)
{
    const char *src = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    return CVY_ONNXW_NODE(w, op, cvy_onnxw_dst(w, node), src);
}

/* A 0 in the new shape keeps the dimension of the source. */
cvy_status cvy_onnxw_reshape(cvy_onnx_writer *w, const char *src, const cvy_shape *to, const char *dst)
{
    int64_t dim[CVY_NDIM_MAX] = {0};
    const char *what = strchr(dst, ':'), *shape = NULL;
    for (int i = 1; i < to->ndim; i++)
        dim[i] = to->dim[i];
    CVY_TRY(cvy_pool_printf(w->pool, (char **)(uintptr_t)&what, "%s%sshape", what ? what + 1 : "", what ? "_" : ""));
    CVY_TRY(cvy_onnxw_ints(w, what, dim, to->ndim, &shape));
    return CVY_ONNXW_NODE(w, "Reshape", dst, src, shape);
}

/* The axes are an attribute before operator set 18, of ReduceSum before 13, and a source from then on. */
cvy_status cvy_onnxw_reduce(cvy_onnx_writer *w, const char *op, const char *src, const int64_t *axes, int n, int keep,
                            const char *dst)
{
    const char *list = NULL, *what = strchr(dst, ':');
    if (w->opset < 18 && strcmp(op, "ReduceSum") != 0) {
        CVY_TRY(CVY_ONNXW_NODE(w, op, dst, src));
        CVY_TRY(cvy_onnxw_set_ints(w, "axes", axes, n));
    } else {
        CVY_TRY(cvy_pool_printf(w->pool, (char **)(uintptr_t)&what, "%s_axes", what ? what + 1 : "reduced"));
        CVY_TRY(cvy_onnxw_ints(w, what, axes, n, &list));
        CVY_TRY(CVY_ONNXW_NODE(w, op, dst, src, list));
    }
    return cvy_onnxw_set_int(w, "keepdims", keep);
}
