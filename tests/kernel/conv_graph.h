/*
 * conv_graph.h: makes a graph of one layer, usually a convolution, with all its gradients, for the tests of its
 * kernels, and copies of its values in other layouts. The source is a variable, and the gradient of the result is a
 * feed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_CONV_GRAPH_H
#define CVY_TEST_CONV_GRAPH_H

#include "kernel/kernel.h"
#include "op/graph_eval.h"
#include "pass/pass.h"

/* src is a shape such as "2x64x27x27"; options are those of the layer. The caller gives the graph's name and dtype. */
static inline cvy_status layer_graph(const char *op, const char *name, cvy_dtype dtype, const char *src,
                                     const char *options, cvy_vars *vars, cvy_graph **g)
{
    cvy_shape shape;
    cvy_variable *x = NULL;
    cvy_value *source[2] = {NULL}, *loss = NULL;
    cvy_node *node = NULL;
    cvy_gradients gradients;
    const cvy_init init = {"constant", "value: 0", 1, 1};
    CVY_TRY(cvy_shape_parse(src, &shape));
    const cvy_graph_opts opts = {
        .name = name, .batch = cvy_batch_share(shape.dim[0], 0, 1), .training = 1, .dtype = dtype, .seed = 1};
    CVY_TRY(cvy_graph_create(vars, &opts, g));
    CVY_TRY(cvy_vars_declare(vars, "x", CVY_ROLE_WEIGHT, dtype, &shape, &init, &x));
    CVY_TRY(cvy_graph_read_variable(*g, x, &source[0]));
    CVY_TRY(cvy_graph_add(*g, op, "layer", "layer", options, source, 1, &node));
    source[0] = node->dst[0];
    CVY_TRY(cvy_graph_feed(*g, "ddst", node->dst[0]->dtype, &node->dst[0]->shape, 1, &source[1]));
    CVY_TRY(cvy_graph_add_parsed(*g, &cvy_weighted_sum_op, "loss", "loss", NULL, source, 2, CVY_PHASE_MICRO, &node));
    loss = node->dst[0];
    return cvy_pass_autodiff(*g, &loss, 1, NULL, NULL, &gradients);
}

static inline cvy_status conv_graph(const char *name, cvy_dtype dtype, const char *src, const char *options,
                                    cvy_vars *vars, cvy_graph **g)
{
    return layer_graph("conv", name, dtype, src, options, vars, g);
}

/* The position of element i of a tensor with these dimensions. */
static inline void split_index(int ndim, const int64_t *dim, int64_t i, int64_t at_out[CVY_NDIM_MAX])
{
    for (int d = ndim - 1; d >= 0; i /= dim[d--])
        at_out[d] = i % dim[d];
}

/* Allocates memory for a value in this layout, and copies the plain values into it if they are given. */
static inline cvy_status copy_in_layout(const cvy_value *v, const cvy_layout *layout, const void *plain,
                                        cvy_blocking *b, void **out)
{
    cvy_reorder *reorder = NULL;
    CVY_TRY(cvy_blocking_make(layout, &v->shape, b));
    CVY_TRY(cvy_mem_alloc((size_t)b->elems * cvy_dtype_bytes(v->dtype), out));
    if (!plain)
        return CVY_OK;
    CVY_TRY(cvy_reorder_create(NULL, &v->shape, &(cvy_memory_format){v->dtype, cvy_layout_plain()},
                               &(cvy_memory_format){v->dtype, *layout}, 1, &reorder));
    cvy_reorder_run(reorder, plain, *out);
    cvy_reorder_destroy(&reorder);
    return CVY_OK;
}

#endif
