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

/* Each run of consecutive entries is a slice, and the slices are joined. */
cvy_status cvy_onnx_entries(const cvy_onnx_node *node, const char *from, int axis, const int64_t *at, int64_t n,
                            const char **output)
{
    const char *part[CVY_ONNX_SOURCES];
    char *options = NULL;
    int parts = 0;
    for (int64_t i = 0, end = 0; i < n; i = end) {
        for (end = i + 1; end < n && at[end] == at[i] + end - i; end++)
            ;
        CVY_ONNX_CHECK(parts < CVY_ONNX_SOURCES, node, "its entries of axis %d are in more than %d places", axis,
                       CVY_ONNX_SOURCES);
        CVY_TRY(cvy_onnx_slice(node, from, axis, at[i], end - i, &part[parts++]));
    }
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: %d", axis));
    return cvy_onnx_join(node, "concat", options, part, parts, output);
}

/* The entries that are taken become those of an axis of their own, [count, step], whose first ones are a slice. What
 * the last ones need of it is padded. */
cvy_status cvy_onnx_slice_steps(const cvy_onnx_node *node, const char *from, int axis, int64_t first, int64_t count,
                                int64_t step, const char **output)
{
    int64_t split[CVY_NDIM_MAX + 1], back[CVY_NDIM_MAX];
    char *options = NULL;
    cvy_shape shape = *cvy_onnx_shape(node->x, from);
    const int64_t all = count * step, rest = CVY_MIN(shape.dim[axis] - first, all);
    int n = 0;
    if (step == 1 || count == 1)
        return cvy_onnx_slice(node, from, axis, first, count, output);
    CVY_TRY(cvy_onnx_slice(node, from, axis, first, rest, output));
    if (rest < all) {
        CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: %d, whole: %lld", axis, (long long)all));
        CVY_TRY(cvy_onnx_step(node, "pad_slice", options, *output, output));
    }
    int64_t before = 1, after = 1;
    for (int d = 1; d < shape.ndim; d++) {
        before *= d < axis ? shape.dim[d] : 1;
        after *= d > axis ? shape.dim[d] : 1;
        back[n++] = d == axis ? count : shape.dim[d];
    }
    split[0] = before * count;
    split[1] = step;
    split[2] = after;
    CVY_TRY(cvy_onnx_reshape(node, *output, split, 3, output));
    CVY_TRY(cvy_onnx_slice(node, *output, 2, 0, 1, output));
    return cvy_onnx_reshape(node, *output, back, n, output);
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
