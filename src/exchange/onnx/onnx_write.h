/*
 * onnx_write.h: what the parts of the ONNX writer share: the file that is made, and how a node of ours adds nodes to
 * it.
 *
 * The writer goes through the nodes of a graph for evaluation, which has no dropout and has batch norm in its form for
 * inference. The table of operators (CVY_ONNXOP_DEFINE) has a function for each that has an ONNX form. All that is made
 * is in a pool; weights are not copied.
 *
 * Names: a value is called as the output of its layer, an initialiser as our variable. What the writer adds has a name
 * "<layer>:<what>", which no layer has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONNX_WRITE_H
#define CVY_ONNX_WRITE_H

#include "exchange/exchange.h"
#include "exchange/onnx/onnx_def.h"
#include "exchange/onnx/onnx_file.h"
#include "graph/graph_op.h"

typedef struct cvy_onnx_writer {
    cvy_pool *pool;
    const cvy_export *from;
    int64_t opset;
    cvy_graph *graph;
    const char **name; /* [graph->nvalue]: in the file */
    cvy_value **value; /* [layers of the model]: their outputs in the graph */
    Cvy__Onnx__NodeProto **node;
    Cvy__Onnx__TensorProto **tensor;
    int nnode, node_room, ntensor, tensor_room;
    cvy_index tensors;  /* initialisers by name */
    cvy_index entries;  /* from->tensor by name */
    int first_kept;     /* the first layer of the model not all of whose parameters are trained */
    cvy_text constants; /* names of the tensors that are not trained, ' ' between */
    const char *here;   /* the layer that is written; it begins the names of what is added for it */
} cvy_onnx_writer;

/* ---- names ---- */
/* The name of source i of a node. For a variable, this adds its initialiser, in its own shape. */
cvy_status cvy_onnxw_src(cvy_onnx_writer *w, const cvy_node *node, int i, const char **out);
/* The same for a variable in another shape of the same size. */
cvy_status cvy_onnxw_shaped(cvy_onnx_writer *w, const cvy_node *node, int i, const cvy_shape *shape, const char **out);
/* The values of source i, a variable; in the pool. */
cvy_status cvy_onnxw_values(cvy_onnx_writer *w, const cvy_node *node, int i, double **out);
/* The value of an input or of a layer's output; NULL: there is none. */
const cvy_value *cvy_onnxw_value(const cvy_onnx_writer *w, const char *output);
/* The name of the node's result. */
const char *cvy_onnxw_dst(const cvy_onnx_writer *w, const cvy_node *node);
/* A name for a value between the nodes that a layer becomes. */
cvy_status cvy_onnxw_name(cvy_onnx_writer *w, const char *what, const char **out);

/* ---- constants: their name is "<layer>:<what>", and the values are copied ---- */
cvy_status cvy_onnxw_ints(cvy_onnx_writer *w, const char *what, const int64_t *at, int n, const char **out);
cvy_status cvy_onnxw_reals(cvy_onnx_writer *w, const char *what, const cvy_shape *shape, const double *at,
                           const char **out);
cvy_status cvy_onnxw_real(cvy_onnx_writer *w, const char *what, double value, const char **out);
/* n numbers that are all the same. */
cvy_status cvy_onnxw_uniform(cvy_onnx_writer *w, const char *what, int64_t n, double value, const char **out);

/* ---- nodes ---- */
/* Adds a node with one result. Sources end with NULL. */
cvy_status cvy_onnxw_node(cvy_onnx_writer *w, const char *op, const char *const *src, const char *dst);
#define CVY_ONNXW_NODE(w, op, dst, ...) cvy_onnxw_node(w, op, (const char *const[]){__VA_ARGS__, NULL}, dst)
/* Attributes of the node that was added last. Names are literals. */
cvy_status cvy_onnxw_set_int(cvy_onnx_writer *w, const char *name, int64_t value);
cvy_status cvy_onnxw_set_real(cvy_onnx_writer *w, const char *name, double value);
cvy_status cvy_onnxw_set_text(cvy_onnx_writer *w, const char *name, const char *value);
cvy_status cvy_onnxw_set_ints(cvy_onnx_writer *w, const char *name, const int64_t *at, int n);

/* One node on source 0 alone. */
cvy_status cvy_onnxw_simple(cvy_onnx_writer *w, const cvy_node *node, const char *op);
/* The source with the shape of a sample in place of its own; the batch stays free. */
cvy_status cvy_onnxw_reshape(cvy_onnx_writer *w, const char *src, const cvy_shape *to, const char *dst);
/* A reduction over these axes, which stay with length 1 if keep is set. op: ReduceMean, ReduceSum or ReduceMax. */
cvy_status cvy_onnxw_reduce(cvy_onnx_writer *w, const char *op, const char *src, const int64_t *axes, int n, int keep,
                            const char *dst);

/* CVY_E_UNSUPPORTED with the layer and its operator. */
#define CVY_ONNXW_FAIL(node, fmt, ...)                                                                                 \
    CVY_FAIL(CVY_E_UNSUPPORTED, "layer %s (%s): " fmt, (node)->layer, (node)->op->name, __VA_ARGS__)

#endif
