/*
 * onnx_file.h: writes small ONNX files for tests, from a description in text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_ONNX_FILE_H
#define TEST_ONNX_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/onnx/onnx_file.h"

enum { NODES = 12, SOURCES = 16, ATTRIBUTES = 5, CONSTANTS = 8, ELEMS = 64, TEXT = 256 };

struct onnx_node {
    const char *op;
    const char *in, *out; /* names, ' ' between */
    const char *options;  /* "perm: 0 2 1; alpha: =0.5; mode: 'linear": integers, real numbers, or a text */
};

struct onnx_constant {
    const char *name;
    int is_whole, ndim;
    int64_t dim[4];
    double value[ELEMS]; /* if `step` is set, only the first is given; value i is value[0] + step * (i % period) */
    double step;
    int period;
    const char *kind; /* "PARAMETER", "BUFFER": what PyTorch's exporter says of it; NULL: nothing */
    int is_sparse; /* in the file it has the elements that are not 0, and their offsets; only the last one may be so */
};

struct onnx_graph {
    int64_t opset, batch; /* batch 0: it is free */
    int ndim;
    int64_t dim[4]; /* of a sample of the input "x" */
    struct onnx_node node[NODES];
    struct onnx_constant constant[CONSTANTS];
    const char *output, *second; /* NULL: "y", and there is no second one */
    const char *input;           /* a second input, of the same shape; NULL: there is none */
    int type;                    /* of the inputs, by ONNX's number; 0: float */
};

/* All messages of one file. */
struct onnx_messages {
    char text[128][TEXT];
    int ntext;
    Cvy__Onnx__NodeProto node[NODES], *nodes[NODES];
    char *in[NODES][SOURCES], *out[NODES][SOURCES];
    Cvy__Onnx__AttributeProto attribute[NODES][ATTRIBUTES], *attributes[NODES][ATTRIBUTES];
    int64_t ints[NODES][ATTRIBUTES][8];
    float floats[NODES][ATTRIBUTES][8];
    Cvy__Onnx__TensorProto tensor[CONSTANTS], *tensors[CONSTANTS];
    float real[CONSTANTS][ELEMS];
    int64_t whole[CONSTANTS][ELEMS];
    int64_t dims[CONSTANTS][4];
    Cvy__Onnx__SparseTensorProto sparse[CONSTANTS], *sparses[CONSTANTS];
    Cvy__Onnx__TensorProto offsets[CONSTANTS];
    int64_t offset[CONSTANTS][ELEMS], count[CONSTANTS];
    Cvy__Onnx__DimensionProto dim[5], *dim_of[5];
    Cvy__Onnx__ValueInfoProto info[CONSTANTS], *infos[CONSTANTS];
    Cvy__Onnx__StringStringEntryProto kind[CONSTANTS], *kinds[CONSTANTS];
};

/* The words of a text, in memory of the messages. */
static int onnx_words(struct onnx_messages *m, const char *text, char **out)
{
    char *copy = m->text[m->ntext++];
    int n = 0;
    snprintf(copy, TEXT, "%s", text);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        out[n++] = strcmp(word, "-") == 0 ? "" : word;
    return n;
}

/* Adds "name: 0 2 1", "name: =0.5" or "name: 'text". */
static void onnx_attribute(struct onnx_messages *m, int node, int at, const char *text)
{
    Cvy__Onnx__AttributeProto *a = &m->attribute[node][at];
    char *words[9] = {NULL};
    const int n = onnx_words(m, text, words);
    cvy__onnx__attribute_proto__init(a);
    m->attributes[node][at] = a;
    words[0][strlen(words[0]) - 1] = '\0';
    a->name = words[0];
    if (words[1][0] == '=' && n > 2) {
        a->type = CVY_ONNX_ATTRIBUTE_FLOATS;
        a->floats = m->floats[node][at];
        a->n_floats = (size_t)(n - 1);
        for (int i = 1; i < n; i++)
            a->floats[i - 1] = (float)atof(words[i] + 1);
        return;
    }
    if (words[1][0] == '=') {
        a->type = CVY_ONNX_ATTRIBUTE_FLOAT;
        a->f = (float)atof(words[1] + 1);
        return;
    }
    if (words[1][0] == '\'') {
        a->type = CVY_ONNX_ATTRIBUTE_STRING;
        a->s.data = (uint8_t *)words[1] + 1;
        a->s.len = strlen(words[1] + 1);
        return;
    }
    a->type = CVY_ONNX_ATTRIBUTE_INTS;
    a->ints = m->ints[node][at];
    a->n_ints = (size_t)(n - 1);
    for (int i = 1; i < n; i++)
        a->ints[i - 1] = a->i = atoll(words[i]);
}

static void onnx_add_node(struct onnx_messages *m, int i, const struct onnx_node *from)
{
    Cvy__Onnx__NodeProto *p = &m->node[i];
    char parts[TEXT];
    cvy__onnx__node_proto__init(p);
    m->nodes[i] = p;
    p->op_type = (char *)(uintptr_t)from->op;
    p->name = (char *)(uintptr_t)from->out;
    p->input = m->in[i];
    p->output = m->out[i];
    p->n_input = (size_t)onnx_words(m, from->in, p->input);
    p->n_output = (size_t)onnx_words(m, from->out, p->output);
    p->attribute = m->attributes[i];
    snprintf(parts, sizeof parts, "%s", from->options ? from->options : "");
    for (char *at = parts, *end; *at; at = end) {
        end = at + strcspn(at, ";");
        if (*end)
            *end++ = '\0';
        onnx_attribute(m, i, (int)p->n_attribute++, at);
    }
}

static void onnx_add_constant(struct onnx_messages *m, int i, const struct onnx_constant *from)
{
    Cvy__Onnx__TensorProto *t = &m->tensor[i];
    size_t elems = 1;
    cvy__onnx__tensor_proto__init(t);
    m->tensors[i] = t;
    for (int d = 0; d < from->ndim; d++)
        elems *= (size_t)(m->dims[i][d] = from->dim[d]);
    for (size_t k = 0; k < elems; k++) {
        const double v =
            from->period ? from->value[0] + from->step * (double)(k % (size_t)from->period) : from->value[k];
        m->real[i][k] = (float)v;
        m->whole[i][k] = (int64_t)v;
    }
    t->name = (char *)(uintptr_t)from->name;
    t->dims = m->dims[i];
    t->n_dims = (size_t)from->ndim;
    t->data_type = from->is_whole ? CVY_ONNX_INT64 : CVY_ONNX_FLOAT;
    t->n_float_data = from->is_whole ? 0 : elems;
    t->float_data = m->real[i];
    t->n_int64_data = from->is_whole ? elems : 0;
    t->int64_data = m->whole[i];
}

/* Makes a sparse tensor of constant i, which is of real numbers. */
static Cvy__Onnx__SparseTensorProto *onnx_sparse(struct onnx_messages *m, int i)
{
    Cvy__Onnx__SparseTensorProto *s = &m->sparse[i];
    Cvy__Onnx__TensorProto *values = &m->tensor[i], *offsets = &m->offsets[i];
    size_t n = 0;
    cvy__onnx__sparse_tensor_proto__init(s);
    cvy__onnx__tensor_proto__init(offsets);
    for (size_t k = 0; k < values->n_float_data; k++)
        if (m->real[i][k] != 0) {
            m->offset[i][n] = (int64_t)k;
            m->real[i][n++] = m->real[i][k];
        }
    m->count[i] = (int64_t)n;
    s->dims = m->dims[i];
    s->n_dims = values->n_dims;
    values->dims = offsets->dims = &m->count[i];
    values->n_dims = offsets->n_dims = 1;
    values->n_float_data = offsets->n_int64_data = n;
    offsets->data_type = CVY_ONNX_INT64;
    offsets->int64_data = m->offset[i];
    s->values = values;
    s->indices = offsets;
    return s;
}

/* What the exporter says of a constant. */
static void onnx_add_kind(struct onnx_messages *m, int i, const struct onnx_constant *from)
{
    cvy__onnx__value_info_proto__init(&m->info[i]);
    cvy__onnx__string_string_entry_proto__init(&m->kind[i]);
    m->infos[i] = &m->info[i];
    m->kinds[i] = &m->kind[i];
    m->info[i].name = (char *)(uintptr_t)from->name;
    m->info[i].n_metadata_props = from->kind != NULL;
    m->info[i].metadata_props = &m->kinds[i];
    m->kind[i].key = "pkg.torch.export.graph_signature.InputSpec.kind";
    m->kind[i].value = (char *)(uintptr_t)from->kind;
}

static void onnx_write(const struct onnx_graph *g, const char *path)
{
    struct onnx_messages *m = calloc(1, sizeof *m);
    Cvy__Onnx__ModelProto model = CVY__ONNX__MODEL_PROTO__INIT;
    Cvy__Onnx__GraphProto graph = CVY__ONNX__GRAPH_PROTO__INIT;
    Cvy__Onnx__OperatorSetIdProto opset = CVY__ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets = &opset;
    Cvy__Onnx__TensorShapeProto shape = CVY__ONNX__TENSOR_SHAPE_PROTO__INIT;
    Cvy__Onnx__TensorTypeProto tensor = CVY__ONNX__TENSOR_TYPE_PROTO__INIT;
    Cvy__Onnx__TypeProto type = CVY__ONNX__TYPE_PROTO__INIT;
    Cvy__Onnx__ValueInfoProto in = CVY__ONNX__VALUE_INFO_PROTO__INIT, out = CVY__ONNX__VALUE_INFO_PROTO__INIT,
                              more = CVY__ONNX__VALUE_INFO_PROTO__INIT, other = CVY__ONNX__VALUE_INFO_PROTO__INIT,
                              *ins[] = {&in, &other}, *outs[] = {&out, &more};
    for (int d = 0; d <= g->ndim; d++) {
        cvy__onnx__dimension_proto__init(&m->dim[d]);
        m->dim[d].dim_value = d ? g->dim[d - 1] : g->batch;
        m->dim_of[d] = &m->dim[d];
    }
    for (; graph.n_node < NODES && g->node[graph.n_node].op; graph.n_node++)
        onnx_add_node(m, (int)graph.n_node, &g->node[graph.n_node]);
    for (; graph.n_initializer < CONSTANTS && g->constant[graph.n_initializer].name; graph.n_initializer++)
        onnx_add_constant(m, (int)graph.n_initializer, &g->constant[graph.n_initializer]);
    if (graph.n_initializer > 0 && g->constant[graph.n_initializer - 1].is_sparse) {
        m->sparses[graph.n_sparse_initializer++] = onnx_sparse(m, (int)--graph.n_initializer);
        graph.sparse_initializer = m->sparses;
    }
    for (; graph.n_value_info < graph.n_initializer; graph.n_value_info++)
        onnx_add_kind(m, (int)graph.n_value_info, &g->constant[graph.n_value_info]);
    shape.n_dim = (size_t)g->ndim + 1;
    shape.dim = m->dim_of;
    tensor.elem_type = g->type ? g->type : CVY_ONNX_FLOAT;
    tensor.shape = &shape;
    type.tensor_type = &tensor;
    in.name = "x";
    in.type = &type;
    out.name = (char *)(uintptr_t)(g->output ? g->output : "y");
    graph.name = "small";
    graph.node = m->nodes;
    graph.initializer = m->tensors;
    graph.value_info = m->infos;
    more.name = (char *)(uintptr_t)g->second;
    other.name = (char *)(uintptr_t)g->input;
    other.type = &type;
    graph.n_input = g->input ? 2 : 1;
    graph.n_output = g->second ? 2 : 1;
    graph.input = ins;
    graph.output = outs;
    opset.version = g->opset ? g->opset : 18;
    model.ir_version = 8;
    model.graph = &graph;
    model.n_opset_import = 1;
    model.opset_import = &opsets;
    const size_t bytes = cvy__onnx__model_proto__get_packed_size(&model);
    uint8_t *data = malloc(bytes);
    cvy__onnx__model_proto__pack(&model, data);
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(data, 1, bytes, file);
        fclose(file);
    }
    free(data);
    free(m);
}

#endif
