/*
 * fuzz_onnx_mutate.c: mutates ONNX files as messages and not as bytes, whose lengths would be wrong after most changes:
 * operators, names, attributes, shapes and nodes are exchanged for others of the file, and numbers for extreme ones.
 * One in four mutations is that of libFuzzer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "exchange/onnx/onnx_def.h"
#include "exchange/onnx/onnx_file.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out,
                                 size_t max_size, unsigned int seed);

typedef Cvy__Onnx__GraphProto graph_proto;
typedef Cvy__Onnx__NodeProto node_proto;
typedef Cvy__Onnx__TensorProto tensor_proto;

static uint32_t state;

static size_t below(size_t n)
{
    state = state * 1664525u + 1013904223u;
    return n ? (size_t)(state >> 8) % n : 0;
}

static int64_t extreme(void)
{
    static const int64_t list[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   -1,
                                   -2,
                                   -4,
                                   7,
                                   64,
                                   1 << 20,
                                   INT32_MAX,
                                   -INT32_MAX,
                                   (int64_t)1 << 33,
                                   (int64_t)1 << 60,
                                   INT64_MAX,
                                   INT64_MIN,
                                   0x6261746368};
    return list[below(sizeof list / sizeof *list)];
}

/* A text that the message owns. */
static void set_text(char **text, const char *to)
{
    char *copy = strdup(to); /* `to` may be the old text */
    if (*text && *text != (const char *)protobuf_c_empty_string)
        free(*text);
    *text = copy;
}

static const char *any_name(const graph_proto *g)
{
    if (g->n_initializer && below(3) == 0)
        return g->initializer[below(g->n_initializer)]->name;
    if (g->n_node && below(4)) {
        const node_proto *p = g->node[below(g->n_node)];
        return p->n_output ? p->output[0] : "";
    }
    return below(8) ? g->n_input ? g->input[0]->name : "x" : "";
}

static void change_attribute(Cvy__Onnx__AttributeProto *a)
{
    static const char *const names[] = {"axis",       "axes",      "perm",     "pads",  "strides",  "kernel_shape",
                                        "dilations",  "group",     "mode",     "split", "keepdims", "starts",
                                        "ends",       "auto_pad",  "alpha",    "to",    "value",    "epsilon",
                                        "num_groups", "ceil_mode", "blocksize"};
    switch (below(5)) {
    case 0: a->i = extreme(); break;
    case 1: a->f = (float)extreme(); break;
    case 2: set_text(&a->name, names[below(sizeof names / sizeof *names)]); break;
    case 3:
        if (a->n_ints)
            a->n_ints--;
        break;
    default:
        if (a->n_ints)
            a->ints[below(a->n_ints)] = extreme();
    }
}

static void change_node(const graph_proto *g, node_proto *p)
{
    int count = 0;
    const cvy_onnx_def *const *table = cvy_onnx_table(&count);
    const size_t how = below(6);
    if (how == 0)
        set_text(&p->op_type, table[below((size_t)count)]->name);
    else if (how == 1 && p->n_output)
        set_text(&p->output[below(p->n_output)], any_name(g));
    else if (how == 2 && p->n_input > 1)
        free(p->input[--p->n_input]);
    else if (how <= 3 && p->n_input)
        set_text(&p->input[below(p->n_input)], any_name(g));
    else if (p->n_attribute)
        change_attribute(p->attribute[below(p->n_attribute)]);
}

static void change_tensor(tensor_proto *t)
{
    static const int types[] = {CVY_ONNX_FLOAT, CVY_ONNX_INT64, CVY_ONNX_DOUBLE, CVY_ONNX_INT32, CVY_ONNX_FLOAT16};
    switch (below(4)) {
    case 0:
        if (t->n_dims)
            t->dims[below(t->n_dims)] = extreme();
        break;
    case 1:
        if (t->n_int64_data)
            t->int64_data[below(t->n_int64_data)] = extreme();
        else if (t->raw_data.len >= 8)
            memcpy(t->raw_data.data + below(t->raw_data.len / 8) * 8, &(int64_t){extreme()}, 8);
        break;
    case 2:
        if (t->n_dims)
            t->n_dims--;
        break;
    default: t->data_type = types[below(sizeof types / sizeof *types)];
    }
}

static void change_graph(Cvy__Onnx__ModelProto *m)
{
    graph_proto *g = m->graph;
    const size_t how = below(10);
    if (how == 0 && m->n_opset_import) {
        m->opset_import[0]->version = (int64_t)below(24);
    } else if (how == 1 && g->n_node > 1) { /* another order */
        const size_t a = below(g->n_node), b = below(g->n_node);
        node_proto *p = g->node[a];
        g->node[a] = g->node[b];
        g->node[b] = p;
    } else if (how == 2 && g->n_input && g->input[0]->type && g->input[0]->type->tensor_type &&
               g->input[0]->type->tensor_type->shape && g->input[0]->type->tensor_type->shape->n_dim) {
        Cvy__Onnx__TensorShapeProto *shape = g->input[0]->type->tensor_type->shape;
        shape->dim[below(shape->n_dim)]->dim_value = extreme();
    } else if (how <= 4 && g->n_initializer) {
        change_tensor(g->initializer[below(g->n_initializer)]);
    } else if (how == 5 && g->n_output) {
        set_text(&g->output[0]->name, any_name(g));
    } else if (g->n_node) {
        change_node(g, g->node[below(g->n_node)]);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    state = seed;
    Cvy__Onnx__ModelProto *m = below(4) ? cvy__onnx__model_proto__unpack(NULL, size, data) : NULL;
    size_t bytes = 0;
    if (m && m->graph) {
        for (size_t n = 1 + below(3); n > 0; n--)
            change_graph(m);
        bytes = cvy__onnx__model_proto__get_packed_size(m);
        if (bytes > 0 && bytes <= max_size)
            cvy__onnx__model_proto__pack(m, data);
        else
            bytes = 0;
    }
    if (m)
        cvy__onnx__model_proto__free_unpacked(m, NULL);
    return bytes ? bytes : LLVMFuzzerMutate(data, size, max_size);
}

/* Nodes of one file after those of another one, whose constants it keeps. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out,
                                 size_t max_size, unsigned int seed)
{
    size_t bytes = 0;
    (void)seed;
    if (na + nb <= max_size) { /* joined messages are merged: lists one after the other */
        memcpy(out, a, na);
        memcpy(out + na, b, nb);
        bytes = na + nb;
    }
    return bytes;
}
