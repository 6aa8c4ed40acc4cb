/*
 * onnx_export.c: writes a network as an ONNX file; onnx_write.h says how.
 *
 * Nodes that do the work of the job's data section have names that begin with CVY_ONNX_DATA. The metadata name the
 * values between them and the layers, for the reader: CVY_ONNX_META_X and CVY_ONNX_META_OUTPUT.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <limits.h>
#include <string.h>

#include "base/base_file.h"
#include "exchange/onnx/onnx_write.h"

/* ---- the graph ---- */

/* The graph of one sample, and the names of its values: that of an input, or of the first layer whose output it is. */
static cvy_status make_graph(cvy_onnx_writer *w, cvy_vars *vars)
{
    const cvy_graph_opts one = {
        .name = "onnx", .batch = {.global_n = 1, .local_n = 1, .nranks = 1}, .dtype = CVY_DTYPE_F32, .bn_group = 1};
    const cvy_model *m = w->from->model;
    const char **wanted = NULL;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *wanted * ((size_t)m->nlayer + 1), &wanted));
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *w->value * ((size_t)m->nlayer + 1), &w->value));
    for (int i = 0; i < m->nlayer; i++)
        wanted[i] = m->layer[i].output;
    while (w->first_kept < m->nlayer && !m->layer[w->first_kept].trained)
        w->first_kept++;
    CVY_TRY(cvy_model_instantiate(m, vars, &one, wanted, m->nlayer, w->value, &w->graph));
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *w->name * ((size_t)w->graph->nvalue + 1), &w->name));
    for (int i = 0; i < w->graph->nvalue; i++)
        w->name[i] = w->graph->value[i]->name;
    for (int i = m->nlayer - 1; i >= 0; i--)
        if (w->value[i]->kind == CVY_VALUE_TEMP)
            w->name[w->value[i]->index] = m->layer[i].output;
    return CVY_OK;
}

/* An output that is scaled leaves its name to the result: its own value gets another one. */
static cvy_status rename_scaled(cvy_onnx_writer *w)
{
    for (int k = 0; k < w->from->noutput; k++) {
        const cvy_value *v = cvy_onnxw_value(w, w->from->output[k].name);
        CVY_CHECK(v, CVY_E_ARGUMENT, "the network has no layer %s", w->from->output[k].name);
        if (w->from->output[k].scaling.n > 0 && strcmp(w->name[v->index], w->from->output[k].name) == 0)
            CVY_TRY(cvy_pool_printf(w->pool, (char **)(uintptr_t)&w->name[v->index], "%s:scaled", w->name[v->index]));
    }
    return CVY_OK;
}

/* The node that makes the output of a layer is called as the layer, so that a reader names its layer so, too. */
static cvy_status write_node(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_onnxop_def *op = cvy_onnxop_find(node->op->name);
    if (!op)
        CVY_ONNXW_FAIL(node, "%s", "it has no ONNX form, so the network cannot be written as an ONNX file");
    const int before = w->nnode;
    CVY_TRY(op->same ? cvy_onnxw_simple(w, node, op->same) : op->write(w, node));
    if (w->nnode > before) /* a weight that is made of another one becomes a constant */
        w->node[w->nnode - 1]->name = (char *)(uintptr_t)w->here;
    return CVY_OK;
}

static cvy_status write_nodes(cvy_onnx_writer *w)
{
    const cvy_model *m = w->from->model;
    const char **layer = NULL;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *layer * ((size_t)w->graph->nvalue + 1), &layer));
    for (int i = m->nlayer - 1; i >= 0; i--)
        layer[w->value[i]->index] = m->layer[i].output;
    for (int i = 0; i < w->graph->nnode; i++) {
        const cvy_node *node = w->graph->node[i];
        w->here = layer[node->dst[0]->index] ? layer[node->dst[0]->index] : node->name;
        CVY_TRY(write_node(w, node));
    }
    return CVY_OK;
}

/* ---- what is done to x and to outputs ---- */

static cvy_status data_node(cvy_onnx_writer *w, const char *op, const char *a, const char *b, const char *dst)
{
    CVY_TRY(CVY_ONNXW_NODE(w, op, dst, a, b));
    return cvy_pool_printf(w->pool, &w->node[w->nnode - 1]->name, CVY_ONNX_DATA "%s", dst);
}

/* The next value on the way: the last one has the name `end`. */
static cvy_status next_name(cvy_onnx_writer *w, const char *what, int number, int is_last, const char *end,
                            const char **out)
{
    *out = end;
    return is_last ? CVY_OK : cvy_pool_printf(w->pool, (char **)(uintptr_t)out, "%s:%s%d", w->here, what, number);
}

/* One number, or one for each channel of [N, C, ...]. */
static cvy_status channel_numbers(cvy_onnx_writer *w, const char *what, int number, const double *list, int64_t n,
                                  int ndim, const char **out)
{
    char name[32];
    cvy_shape shape = {.ndim = n > 1 ? ndim - 1 : 0, .dim = {n}};
    for (int d = 1; d < shape.ndim; d++)
        shape.dim[d] = 1;
    snprintf(name, sizeof name, "%s%d", what, number);
    return cvy_onnxw_reals(w, name, &shape, list, out);
}

/* sign(x) ln(1 + |x| by), with y = x by. */
static cvy_status write_log(cvy_onnx_writer *w, int i, const char *y, const char *dst)
{
    const char *one = NULL, *size = NULL, *sum = NULL, *log = NULL, *sign = NULL;
    char name[32];
    snprintf(name, sizeof name, "one%d", i);
    CVY_TRY(cvy_onnxw_real(w, name, 1, &one));
    CVY_TRY(next_name(w, "size", i, 0, NULL, &size));
    CVY_TRY(next_name(w, "sum", i, 0, NULL, &sum));
    CVY_TRY(next_name(w, "log", i, 0, NULL, &log));
    CVY_TRY(next_name(w, "sign", i, 0, NULL, &sign));
    CVY_TRY(data_node(w, "Abs", y, NULL, size));
    CVY_TRY(data_node(w, "Add", size, one, sum));
    CVY_TRY(data_node(w, "Log", sum, NULL, log));
    CVY_TRY(data_node(w, "Sign", y, NULL, sign));
    return data_node(w, "Mul", log, sign, dst);
}

static cvy_status write_step(cvy_onnx_writer *w, int i, const cvy_value_step *s, int ndim, const char *from,
                             const char *dst)
{
    const char *shift = NULL, *by = NULL, *moved = from, *scaled = NULL;
    int shifts = 0;
    for (int64_t c = 0; c < s->n; c++)
        shifts |= s->shift[c] != 0;
    CVY_TRY(channel_numbers(w, "by", i, s->by, s->n, ndim, &by));
    if (shifts) {
        CVY_TRY(channel_numbers(w, "shift", i, s->shift, s->n, ndim, &shift));
        CVY_TRY(next_name(w, "moved", i, 0, NULL, &moved));
        CVY_TRY(data_node(w, "Sub", from, shift, moved));
    }
    if (s->curve == CVY_CURVE_AFFINE)
        return data_node(w, "Mul", moved, by, dst);
    CVY_TRY(next_name(w, "scaled", i, 0, NULL, &scaled));
    CVY_TRY(data_node(w, "Mul", moved, by, scaled));
    return s->curve == CVY_CURVE_ASINH ? data_node(w, "Asinh", scaled, NULL, dst) : write_log(w, i, scaled, dst);
}

/* x of the file is as it is stored; the layers read "x:input". *inside_out: that name, or "x" if nothing is done. */
static cvy_status write_x(cvy_onnx_writer *w, const char **inside_out)
{
    const cvy_value *x = cvy_graph_find(w->graph, "x");
    const int casts = w->from->x_dtype == CVY_DTYPE_U8, nstep = w->from->nstep;
    const char *from = "x", *next = NULL;
    *inside_out = from;
    if (!x || (!casts && nstep == 0))
        return CVY_OK;
    w->here = "x";
    CVY_TRY(cvy_onnxw_name(w, "input", inside_out));
    if (casts) {
        CVY_TRY(next_name(w, "real", 0, nstep == 0, *inside_out, &next));
        CVY_TRY(data_node(w, "Cast", from, NULL, next));
        CVY_TRY(cvy_onnxw_set_int(w, "to", CVY_ONNX_FLOAT));
        from = next;
    }
    for (int i = 0; i < nstep; i++) {
        CVY_TRY(next_name(w, "step", i, i == nstep - 1, *inside_out, &next));
        CVY_TRY(write_step(w, i, &w->from->step[i], x->shape.ndim, from, next));
        from = next;
    }
    w->name[x->index] = *inside_out;
    return CVY_OK;
}

/* The numbers of a scaling: one, or one for each channel [n, 1, ...], or, if a sample has another shape, one for each
 * of its elements. */
static cvy_status scaling_numbers(cvy_onnx_writer *w, const char *what, const double *at, int64_t n,
                                  const cvy_shape *value, const char **out)
{
    cvy_shape shape = cvy_shape_make(value->ndim - 1, value->dim + 1);
    const int64_t elems = cvy_shape_elems(&shape);
    double *all = NULL;
    if (n == 1)
        return cvy_onnxw_real(w, what, at[0], out);
    if (shape.ndim > 0 && shape.dim[0] == n) {
        for (int d = 1; d < shape.ndim; d++)
            shape.dim[d] = 1;
        return cvy_onnxw_reals(w, what, &shape, at, out);
    }
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *all * (size_t)(elems + 1), &all));
    for (int64_t i = 0; i < elems; i++)
        all[i] = at[i / (elems / n) % n];
    return cvy_onnxw_reals(w, what, &shape, all, out);
}

/* Nodes between the value of a layer and the output of the file. *inside_out: that value if it is scaled, else NULL. */
static cvy_status write_output(cvy_onnx_writer *w, const cvy_export_output *out, const char **inside_out)
{
    const cvy_value *v = cvy_onnxw_value(w, out->name);
    const char *value = w->name[v->index], *std = NULL, *mean = NULL, *wide = NULL;
    *inside_out = NULL;
    w->here = out->name;
    if (out->scaling.n == 0)
        return strcmp(value, out->name) == 0 ? CVY_OK : CVY_ONNXW_NODE(w, "Identity", out->name, value);
    *inside_out = value;
    CVY_TRY(scaling_numbers(w, "std", out->scaling.std, out->scaling.n, &v->shape, &std));
    CVY_TRY(scaling_numbers(w, "mean", out->scaling.mean, out->scaling.n, &v->shape, &mean));
    CVY_TRY(cvy_onnxw_name(w, "wide", &wide));
    CVY_TRY(data_node(w, "Mul", value, std, wide));
    return data_node(w, "Add", wide, mean, out->name);
}

/* ---- the file ---- */

static int type_of(cvy_dtype dtype)
{
    return dtype == CVY_DTYPE_U8    ? CVY_ONNX_UINT8
           : dtype == CVY_DTYPE_I32 ? CVY_ONNX_INT32
           : dtype == CVY_DTYPE_I64 ? CVY_ONNX_INT64
                                    : CVY_ONNX_FLOAT;
}

/* An input or output of the file; the first dimension is free. */
static cvy_status value_info(cvy_onnx_writer *w, const char *name, int type, const cvy_shape *shape,
                             Cvy__Onnx__ValueInfoProto **out)
{
    static char batch[] = "N";
    struct {
        Cvy__Onnx__ValueInfoProto info;
        Cvy__Onnx__TypeProto type;
        Cvy__Onnx__TensorTypeProto tensor;
        Cvy__Onnx__TensorShapeProto shape;
        Cvy__Onnx__DimensionProto dim[CVY_NDIM_MAX], *at[CVY_NDIM_MAX];
    } *all = NULL;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *all, &all));
    cvy__onnx__value_info_proto__init(&all->info);
    cvy__onnx__type_proto__init(&all->type);
    cvy__onnx__tensor_type_proto__init(&all->tensor);
    cvy__onnx__tensor_shape_proto__init(&all->shape);
    all->info.name = (char *)(uintptr_t)name;
    all->info.type = &all->type;
    all->type.tensor_type = &all->tensor;
    all->tensor.elem_type = type;
    all->tensor.shape = &all->shape;
    all->shape.dim = all->at;
    all->shape.n_dim = (size_t)shape->ndim;
    for (int d = 0; d < shape->ndim; d++) {
        all->at[d] = &all->dim[d];
        cvy__onnx__dimension_proto__init(&all->dim[d]);
        if (d == 0)
            all->dim[d].dim_param = batch;
        else
            all->dim[d].dim_value = shape->dim[d];
    }
    *out = &all->info;
    return CVY_OK;
}

static cvy_status list_inputs(cvy_onnx_writer *w, Cvy__Onnx__GraphProto *g)
{
    const cvy_model *m = w->from->model;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *g->input * ((size_t)m->ninput + 1), &g->input));
    for (int i = 0; i < m->ninput; i++) {
        const cvy_value *v = cvy_graph_find(w->graph, m->input[i].name);
        const int is_x = strcmp(m->input[i].name, "x") == 0;
        CVY_TRY(value_info(w, m->input[i].name, type_of(is_x ? w->from->x_dtype : v->dtype), &v->shape,
                           &g->input[g->n_input++]));
    }
    return CVY_OK;
}

static cvy_status add_meta(cvy_onnx_writer *w, Cvy__Onnx__ModelProto *file, const char *key, const char *value)
{
    Cvy__Onnx__StringStringEntryProto *entry = NULL;
    if (!value)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *entry, &entry));
    cvy__onnx__string_string_entry_proto__init(entry);
    entry->key = (char *)(uintptr_t)key;
    entry->value = (char *)(uintptr_t)value;
    file->metadata_props[file->n_metadata_props++] = entry;
    return CVY_OK;
}

/* Writes all nodes and lists them in the file's graph. */
static cvy_status fill_graph(cvy_onnx_writer *w, Cvy__Onnx__ModelProto *file)
{
    Cvy__Onnx__GraphProto *g = file->graph;
    const char *x = NULL, *output = NULL, *inside = NULL;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof(void *) * 4, &file->metadata_props));
    CVY_TRY(rename_scaled(w));
    CVY_TRY(write_x(w, &x));
    CVY_TRY(write_nodes(w));
    CVY_TRY(list_inputs(w, g));
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *g->output * ((size_t)w->from->noutput + 1), &g->output));
    for (int k = 0; k < w->from->noutput; k++) {
        CVY_TRY(write_output(w, &w->from->output[k], &inside));
        output = k == 0 ? inside : output;
        CVY_TRY(value_info(w, w->from->output[k].name, CVY_ONNX_FLOAT,
                           &cvy_onnxw_value(w, w->from->output[k].name)->shape, &g->output[g->n_output++]));
    }
    CVY_TRY(add_meta(w, file, CVY_ONNX_META_X, strcmp(x, "x") == 0 ? NULL : x));
    CVY_TRY(add_meta(w, file, CVY_ONNX_META_OUTPUT, output));
    CVY_TRY(add_meta(w, file, CVY_ONNX_META_NETWORK, w->from->network));
    CVY_TRY(w->constants.status);
    CVY_TRY(add_meta(w, file, CVY_ONNX_META_CONSTANTS, w->constants.bytes ? w->constants.data : ""));
    g->node = w->node;
    g->n_node = (size_t)w->nnode;
    g->initializer = w->tensor;
    g->n_initializer = (size_t)w->ntensor;
    return CVY_OK;
}

/* Each operator set came with a version of the format. */
static int64_t version_of(int64_t opset)
{
    return opset >= 21 ? 10 : opset >= 19 ? 9 : opset >= 15 ? 8 : 7;
}

static cvy_status write_file(const char *path, const Cvy__Onnx__ModelProto *file)
{
    const size_t bytes = cvy__onnx__model_proto__get_packed_size(file);
    uint8_t *data = NULL;
    CVY_CHECK(bytes <= INT_MAX, CVY_E_UNSUPPORTED, "%s: the network has %zu bytes, an ONNX file at most %d", path,
              bytes, INT_MAX);
    CVY_TRY(cvy_mem_alloc(bytes + 1, &data));
    cvy__onnx__model_proto__pack(file, data);
    const cvy_status status = cvy_file_replace(path, data, bytes);
    cvy_mem_free(&data);
    return status;
}

static cvy_status write_model(cvy_onnx_writer *w, const char *path)
{
    Cvy__Onnx__ModelProto file = CVY__ONNX__MODEL_PROTO__INIT;
    Cvy__Onnx__GraphProto graph = CVY__ONNX__GRAPH_PROTO__INIT;
    Cvy__Onnx__OperatorSetIdProto opset = CVY__ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
    static char producer[] = "convoy";
    opset.version = w->opset;
    file.opset_import = opsets;
    file.n_opset_import = 1;
    file.ir_version = version_of(w->opset);
    file.producer_name = producer;
    file.producer_version = (char *)(uintptr_t)cvy_version();
    file.graph = &graph;
    graph.name = w->from->model->name && *w->from->model->name ? w->from->model->name : producer;
    CVY_TRY(fill_graph(w, &file));
    return write_file(path, &file);
}

cvy_status cvy_export_onnx(const char *path, const cvy_export *from)
{
    cvy_onnx_writer w = {.from = from, .opset = from->opset ? from->opset : CVY_ONNX_OPSET_MAX};
    cvy_vars *vars = NULL;
    cvy_status status = CVY_OK;
    CVY_CHECK(w.opset >= CVY_ONNX_OPSET_MIN && w.opset <= CVY_ONNX_OPSET_MAX, CVY_E_ARGUMENT,
              "operator set %lld of ONNX is not offered: give one from %d to %d", (long long)w.opset,
              CVY_ONNX_OPSET_MIN, CVY_ONNX_OPSET_MAX);
    CVY_TRY_OUT(cvy_pool_create(&w.pool));
    CVY_TRY_OUT(cvy_vars_create(&vars));
    for (int i = 0; i < from->ntensor; i++)
        CVY_TRY_OUT(cvy_index_add(&w.entries, from->tensor[i].name, i));
    CVY_TRY_OUT(make_graph(&w, vars));
    CVY_TRY_OUT(write_model(&w, path));
out:
    cvy_graph_destroy(&w.graph);
    cvy_vars_destroy(&vars);
    cvy_text_free(&w.constants);
    cvy_index_free(&w.tensors);
    cvy_index_free(&w.entries);
    cvy_mem_free(&w.node);
    cvy_mem_free(&w.tensor);
    cvy_pool_destroy(&w.pool);
    return status;
}
