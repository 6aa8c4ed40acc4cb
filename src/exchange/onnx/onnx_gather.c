/*
 * onnx_gather.c: Gather of constant entries or from a constant table, Expand and Tile, and blocks of positions that
 * become channels or the other way round.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

/* ---- Gather ---- */

/* Rows of a constant matrix: an embedding, whose source holds their numbers. */
static cvy_status embedding(const cvy_onnx_node *node, const cvy_onnx_tensor *table)
{
    const cvy_onnx_value *src = NULL;
    const char *name = NULL, *output = NULL;
    char *options = NULL;
    const int64_t axis = cvy_onnx_int(node, "axis", 0);
    CVY_TRY(cvy_onnx_activation(node, 1, &src));
    CVY_ONNX_CHECK(table->shape.ndim == 2 && cvy_dtype_is_real(table->dtype) && (axis == 0 || axis == -2), node,
                   "from axis %lld of a constant %s; only rows of a matrix of real numbers are supported",
                   (long long)axis, cvy_shape_text(&table->shape));
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "rows: %lld, channels: %lld", (long long)table->shape.dim[0],
                            (long long)table->shape.dim[1]));
    CVY_TRY(cvy_onnx_add(
        node,
        &(cvy_onnx_layer){.op = "embedding", .options = options, .weight = table, .from = {src->layer}, .nfrom = 1},
        &name, &output));
    CVY_TRY(cvy_onnx_set(node, name, "weight", table));
    return cvy_onnx_done(node, 0, output);
}

/* Entries of an axis, which may count from the end. */
static cvy_status take_entries(const cvy_onnx_node *node, const char *from, int axis, const cvy_onnx_tensor *index,
                               const char **output)
{
    const int64_t size = cvy_onnx_shape(node->x, from)->dim[axis];
    int64_t *at = NULL;
    CVY_TRY(cvy_onnx_take_memory(node->x, sizeof *at * (size_t)index->elems));
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *at * (size_t)index->elems, &at));
    for (int64_t i = 0; i < index->elems; i++) {
        const int64_t given = cvy_onnx_i64(index)[i];
        at[i] = given < 0 ? given + size : given;
        CVY_ONNX_CHECK(at[i] >= 0 && at[i] < size, node, "entry %lld of %lld", (long long)given, (long long)size);
    }
    return cvy_onnx_entries(node, from, axis, at, index->elems, output);
}

static cvy_status translate_gather(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = cvy_onnx_source(node, 0);
    const cvy_onnx_tensor *index = NULL;
    const char *output = NULL;
    int64_t sample[2 * CVY_NDIM_MAX];
    int axis = 0, n = 0;
    CVY_ONNX_CHECK(src, node, "%s", "it has no source");
    if (src->constant)
        return embedding(node, src->constant);
    CVY_TRY(cvy_onnx_constant(node, 1, &index));
    CVY_ONNX_CHECK(index && index->dtype == CVY_DTYPE_I64 && index->elems > 0 && src->layer, node, "%s",
                   "the second source should be constant integers");
    CVY_TRY(cvy_onnx_axis(node, cvy_onnx_int(node, "axis", 0), src->shape.ndim, &axis));
    CVY_TRY(take_entries(node, src->layer, axis, index, &output));
    for (int d = 1; d < axis; d++)
        sample[n++] = src->shape.dim[d];
    for (int d = 0; d < index->shape.ndim; d++)
        sample[n++] = index->shape.dim[d];
    for (int d = axis + 1; d < src->shape.ndim; d++)
        sample[n++] = src->shape.dim[d];
    CVY_TRY(cvy_onnx_reshape(node, output, sample, n, &output));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(gather) = {"Gather", .attributes = "axis", .translate = translate_gather};

/* ---- repetition ---- */

/* The shape may have a 1 where the source is longer, and fewer axes. */
static cvy_status translate_expand(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *to = NULL;
    int64_t sample[CVY_NDIM_MAX];
    const char *output = NULL;
    int n = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, NULL, 1, &to, &n));
    const int ndim = src->shape.ndim;
    CVY_ONNX_CHECK(n > 0 && n <= ndim, node, "a shape of %d axes for a source %s: the samples must stay first", n,
                   cvy_shape_text(&src->shape));
    CVY_ONNX_CHECK(n < ndim || to[0] == 1 || to[0] == CVY_ONNX_BATCH || to[0] == node->x->batch, node,
                   "the first axis becomes %lld; samples cannot be repeated", (long long)to[0]);
    for (int d = 1; d < ndim; d++) {
        const int64_t dim = d - ndim + n >= 0 ? to[d - ndim + n] : 1;
        CVY_ONNX_CHECK(
            dim > 0 && dim < CVY_ONNX_SIZE && (dim == 1 || src->shape.dim[d] == 1 || dim == src->shape.dim[d]), node,
            "axis %d of %s cannot get the length %lld", d, cvy_shape_text(&src->shape), (long long)dim);
        sample[d - 1] = CVY_MAX(dim, src->shape.dim[d]);
    }
    CVY_TRY(cvy_onnx_expand(node, src->layer, sample, ndim - 1, &output));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(expand) = {"Expand", .translate = translate_expand};

/* Each axis in turn: the rest of the sample gets an axis of length 1 before it, which is repeated. */
static cvy_status translate_tile(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *repeats = NULL;
    const char *output = NULL;
    int n = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, NULL, 1, &repeats, &n));
    cvy_shape shape = src->shape;
    CVY_ONNX_CHECK(n == shape.ndim && repeats[0] == 1, node,
                   "%d repetitions for %s, the first of them %lld, expected 1", n, cvy_shape_text(&shape),
                   (long long)(n ? repeats[0] : 0));
    output = src->layer;
    for (int d = 1; d < shape.ndim; d++) {
        int64_t before = 1, after = 1;
        CVY_ONNX_CHECK(repeats[d] > 0 && repeats[d] < CVY_ONNX_SIZE, node, "%lld repetitions", (long long)repeats[d]);
        if (repeats[d] == 1)
            continue;
        for (int k = 1; k < d; k++)
            before *= shape.dim[k];
        for (int k = d; k < shape.ndim; k++)
            after *= shape.dim[k];
        const int64_t once[] = {before, 1, after}, often[] = {before, repeats[d], after};
        CVY_TRY(cvy_onnx_reshape(node, output, once, 3, &output));
        CVY_TRY(cvy_onnx_expand(node, output, often, 3, &output));
        shape.dim[d] *= repeats[d];
        CVY_TRY(cvy_onnx_reshape(node, output, shape.dim + 1, shape.ndim - 1, &output));
    }
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(tile) = {"Tile", .translate = translate_tile};

/* ---- blocks ---- */

/* A reshape to five axes of a sample, a permutation of them, and a reshape to [C, H, W]. */
static cvy_status shuffle(const cvy_onnx_node *node, const char *from, const int64_t wide[5], const char *order,
                          const int64_t sample[3])
{
    const char *output = NULL;
    CVY_TRY(cvy_onnx_reshape(node, from, wide, 5, &output));
    CVY_TRY(cvy_onnx_step(node, "transpose", order, output, &output));
    CVY_TRY(cvy_onnx_reshape(node, output, sample, 3, &output));
    return cvy_onnx_done(node, 0, output);
}

static cvy_status read_block(const cvy_onnx_node *node, const cvy_onnx_value **src, int64_t *size)
{
    CVY_TRY(cvy_onnx_activation(node, 0, src));
    *size = cvy_onnx_int(node, "blocksize", 0);
    CVY_ONNX_CHECK((*src)->shape.ndim == 4 && *size > 0 && *size < (1 << 15), node, "blocks of %lld for a source %s",
                   (long long)*size, cvy_shape_text(&(*src)->shape));
    return CVY_OK;
}

static cvy_status translate_depth_to_space(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const char *mode = NULL;
    int64_t b = 0;
    CVY_TRY(read_block(node, &src, &b));
    CVY_TRY(cvy_onnx_string(node, "mode", &mode));
    const int64_t *dim = src->shape.dim, channels = dim[1] / (b * b);
    const int64_t columns_first[] = {channels, b, b, dim[2], dim[3]}, depth_first[] = {b, b, channels, dim[2], dim[3]};
    CVY_ONNX_CHECK(dim[1] % (b * b) == 0 && channels > 0, node, "%lld channels for blocks of %lld", (long long)dim[1],
                   (long long)b);
    const int crd = strcmp(mode, "CRD") == 0;
    return shuffle(node, src->layer, crd ? columns_first : depth_first,
                   crd ? "order: [1, 4, 2, 5, 3]" : "order: [3, 4, 1, 5, 2]",
                   (const int64_t[]){channels, dim[2] * b, dim[3] * b});
}
CVY_ONNX_DEFINE(depth_to_space) = {"DepthToSpace", .attributes = "blocksize mode",
                                   .translate = translate_depth_to_space};

static cvy_status translate_space_to_depth(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const char *mode = NULL;
    int64_t b = 0;
    CVY_TRY(read_block(node, &src, &b));
    CVY_TRY(cvy_onnx_string(node, "mode", &mode));
    const int64_t *dim = src->shape.dim;
    CVY_ONNX_CHECK(dim[2] % b == 0 && dim[3] % b == 0, node, "%s for blocks of %lld", cvy_shape_text(&src->shape),
                   (long long)b);
    return shuffle(node, src->layer, (const int64_t[]){dim[1], dim[2] / b, b, dim[3] / b, b},
                   strcmp(mode, "CRD") == 0 ? "order: [1, 3, 5, 2, 4]" : "order: [3, 5, 1, 2, 4]",
                   (const int64_t[]){dim[1] * b * b, dim[2] / b, dim[3] / b});
}
CVY_ONNX_DEFINE(space_to_depth) = {"SpaceToDepth", .attributes = "blocksize mode",
                                   .translate = translate_space_to_depth};
