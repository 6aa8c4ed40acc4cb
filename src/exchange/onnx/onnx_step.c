/*
 * onnx_step.c: layers that many translations add: on one source without weights, and those that move elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/onnx/onnx.h"

cvy_status cvy_onnx_step(const cvy_onnx_node *node, const char *op, const char *options, const char *from,
                         const char **output_out)
{
    return cvy_onnx_add(node, &(cvy_onnx_layer){.op = op, .options = options, .from = {from}, .nfrom = 1}, NULL,
                        output_out);
}

cvy_status cvy_onnx_step_real(const cvy_onnx_node *node, const char *op, const char *option, double value,
                              const char *from, const char **output_out)
{
    char *options = NULL;
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "%s: %.9g", option, value));
    return cvy_onnx_step(node, op, options, from, output_out);
}

void cvy_onnx_list(cvy_text *options, const char *name, const int64_t *at, int n)
{
    cvy_text_add(options, "%s%s: ", options->bytes ? ", " : "", name);
    cvy_text_add_ints(options, at, n);
}

int64_t cvy_onnx_sample_elems(const cvy_shape *shape)
{
    return cvy_shape_elems(shape) / CVY_MAX(shape->dim[0], (int64_t)1);
}

/* reshape or expand, unless the sample has this shape. */
static cvy_status to_shape(const cvy_onnx_node *node, const char *op, const char *from, const int64_t *sample, int n,
                           const char **output)
{
    cvy_text options = {0};
    cvy_shape shape = {.ndim = n + 1, .dim = {1}};
    CVY_ONNX_CHECK(n >= 0 && n < CVY_NDIM_MAX, node, "%d dimensions, at most %d", n + 1, CVY_NDIM_MAX);
    for (int i = 0; i < n; i++)
        shape.dim[i + 1] = sample[i];
    *output = from;
    if (cvy_shape_equal(&shape, cvy_onnx_shape(node->x, from)))
        return CVY_OK;
    cvy_onnx_list(&options, "shape", sample, n);
    const cvy_status status =
        options.status == CVY_OK ? cvy_onnx_step(node, op, options.data, from, output) : options.status;
    cvy_text_free(&options);
    return status;
}

cvy_status cvy_onnx_reshape(const cvy_onnx_node *node, const char *from, const int64_t *sample, int n,
                            const char **output)
{
    return to_shape(node, "reshape", from, sample, n, output);
}

cvy_status cvy_onnx_expand(const cvy_onnx_node *node, const char *from, const int64_t *sample, int n,
                           const char **output)
{
    return to_shape(node, "expand", from, sample, n, output);
}

cvy_status cvy_onnx_slice(const cvy_onnx_node *node, const char *from, int axis, int64_t first, int64_t count,
                          const char **output)
{
    char *options = NULL;
    const cvy_shape *shape = cvy_onnx_shape(node->x, from);
    if (first == 0 && count == shape->dim[axis]) {
        *output = from;
        return CVY_OK;
    }
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: %d, first: %lld, count: %lld", axis, (long long)first,
                            (long long)count));
    return cvy_onnx_step(node, "slice", options, from, output);
}

cvy_status cvy_onnx_join(const cvy_onnx_node *node, const char *op, const char *options, const char *const *from, int n,
                         const char **output)
{
    const int limit = cvy_op_find(op)->nsrc_max;
    *output = n > 0 ? from[0] : NULL;
    for (int i = 1; i < n;) {
        cvy_onnx_layer layer = {.op = op, .options = options, .from = {*output}, .nfrom = 1};
        for (; i < n && layer.nfrom < limit; i++)
            layer.from[layer.nfrom++] = from[i];
        CVY_TRY(cvy_onnx_add(node, &layer, NULL, output));
    }
    return CVY_OK;
}
