/*
 * native_copy.c: operators that only move data: concat, slice, pad_slice, pad, crop.
 *
 * They are used for branches that join, for shortcuts, and for unequal padding. Each operator is one or several boxes,
 * which are copied row by row from a source to the destination, for any type of element. Layouts are kept. Channels
 * last is another order of the dimensions. A block of channels counts as one channel with longer rows, if the edges of
 * the boxes are at the edges of blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/native_common.h"
#include "op/tensor/op_concat.h"
#include "op/tensor/op_pad.h"

enum { LONG_ROW = 1024 }; /* elements; longer rows are not merged, so that several threads can copy them */

struct box { /* first in logical dimensions; box_to_memory_order changes it to memory order, rows last */
    int src, ndim;
    int64_t from[CVY_NDIM_MAX], to[CVY_NDIM_MAX], count[CVY_NDIM_MAX];
    int64_t src_stride[CVY_NDIM_MAX], dst_stride[CVY_NDIM_MAX];
};

struct copy {
    int threads, nbox, clear; /* clear: the boxes do not cover the destination (those of concat and slice do) */
    struct box box[CVY_NODE_SRC_MAX];
    size_t bytes, dst_bytes; /* of an element; of the destination */
    /* Of the running call. */
    const struct box *now;
    const char *src;
    char *dst;
};

/* ---- the boxes of each operator ---- */

static void whole_of(const cvy_shape *shape, int src, struct box *out)
{
    *out = (struct box){.src = src};
    memcpy(out->count, shape->dim, sizeof out->count);
}

static int concat_boxes(const cvy_node *node, struct box *box)
{
    const int axis = (int)((const cvy_concat_opts *)node->options)->axis;
    int64_t first = 0;
    for (int i = 0; i < node->nsrc; i++) {
        whole_of(&node->src[i]->shape, i, &box[i]);
        box[i].to[axis] = first;
        first += box[i].count[axis];
    }
    return node->nsrc;
}

static int slice_boxes(const cvy_node *node, struct box *box)
{
    const cvy_slice_opts *o = node->options;
    whole_of(&node->dst[0]->shape, 0, box);
    box->from[o->axis] = o->first;
    return 1;
}

static int pad_slice_boxes(const cvy_node *node, struct box *box)
{
    const cvy_pad_slice_opts *o = node->options;
    whole_of(&node->src[0]->shape, 0, box);
    box->to[o->axis] = o->first;
    return 1;
}

static int pad_boxes(const cvy_node *node, struct box *box)
{
    const cvy_pad_opts *o = node->options;
    whole_of(&node->src[0]->shape, 0, box);
    for (int d = 2; d < node->src[0]->shape.ndim; d++)
        box->to[d] = cvy_ints_at(&o->before, d - 2, 0);
    return 1;
}

static int crop_boxes(const cvy_node *node, struct box *box)
{
    const cvy_pad_opts *o = node->options;
    whole_of(&node->dst[0]->shape, 0, box);
    for (int d = 2; d < node->src[0]->shape.ndim; d++)
        box->from[d] = cvy_ints_at(&o->before, d - 2, 0);
    return 1;
}

static int boxes_of(const cvy_node *node, struct box *box)
{
    static const struct {
        const char *op;
        int (*boxes)(const cvy_node *node, struct box *box);
    } table[] = {{"concat", concat_boxes},
                 {"slice", slice_boxes},
                 {"pad_slice", pad_slice_boxes},
                 {"pad", pad_boxes},
                 {"crop", crop_boxes}};
    for (int i = 0; i < CVY_COUNT(table); i++)
        if (strcmp(table[i].op, node->op->name) == 0)
            return table[i].boxes(node, box);
    return 0;
}

/* ---- planning ---- */

/* Whether blocks of channels can be copied as a whole. The last block of a box may be partial only if both tensors end
 * with it. */
static int fits_blocks(const cvy_node *node, const struct box *box, int nbox, int64_t block)
{
    for (int i = 0; i < nbox; i++) {
        const int64_t src_end = node->src[box[i].src]->shape.dim[1], dst_end = node->dst[0]->shape.dim[1],
                      count = box[i].count[1];
        const int ends = box[i].from[1] + count == src_end && box[i].to[1] + count == dst_end;
        if (box[i].from[1] % block != 0 || box[i].to[1] % block != 0 || (count % block != 0 && !ends))
            return 0;
    }
    return 1;
}

static cvy_status copy_offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    struct box box[CVY_NODE_SRC_MAX];
    CVY_TRY(cvy_native_f32_or_bf16(node));
    const int nbox = boxes_of(node, box);
    cvy_layout layout = cvy_native_activation(ask, 0);
    for (int i = 1; i < node->nsrc && cvy_layout_is_plain(&layout); i++)
        layout = cvy_native_activation(ask, i);
    const int64_t block = cvy_layout_channel_block(&layout, node->dst[0]->shape.ndim);
    if (block > 1 && !fits_blocks(node, box, nbox, block))
        layout = cvy_layout_plain();
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = layout;
    ask->dst[0] = layout;
    return CVY_OK;
}

/* Dimension d in memory, outermost first, is dimension order[d] of the shape. */
static void order_of(const cvy_layout *layout, int ndim, int order[CVY_NDIM_MAX])
{
    const cvy_layout last = cvy_layout_channels_last(ndim);
    const int channels_last = !cvy_layout_is_plain(layout) && cvy_layout_equal(layout, &last);
    for (int d = 0; d < ndim; d++)
        order[d] = channels_last && d > 0 ? d % (ndim - 1) + 1 : d;
}

/* The extents of a shape in memory order, in whole blocks. For a slice, the channels are those of the whole tensor. */
static void extents_of(const cvy_shape *shape, const cvy_layout *layout, const int order[CVY_NDIM_MAX], int64_t block,
                       int64_t extent[CVY_NDIM_MAX])
{
    const int64_t channels = CVY_MAX(cvy_layout_whole(layout), shape->dim[1]);
    for (int d = 0; d < shape->ndim; d++)
        extent[d] = order[d] == 1 ? (channels + block - 1) / block : shape->dim[order[d]];
}

/* Changes a logical box to dimensions in memory order, and merges two dimensions if the inner one is copied whole. */
static void box_to_memory_order(struct box *b, const cvy_kernel_ask *ask, int64_t block)
{
    const cvy_shape *src = &ask->node->src[b->src]->shape, *dst = &ask->node->dst[0]->shape;
    const struct box logical = *b;
    int order[CVY_NDIM_MAX];
    int64_t src_extent[CVY_NDIM_MAX], dst_extent[CVY_NDIM_MAX], src_step = block, dst_step = block;
    order_of(&ask->dst[0], dst->ndim, order);
    extents_of(src, &ask->src[b->src], order, block, src_extent);
    extents_of(dst, &ask->dst[0], order, block, dst_extent);
    b->ndim = dst->ndim;
    for (int d = dst->ndim - 1; d >= 0; d--) {
        const int64_t unit = order[d] == 1 ? block : 1;
        b->from[d] = logical.from[order[d]] / unit;
        b->to[d] = logical.to[order[d]] / unit;
        b->count[d] = (logical.count[order[d]] + unit - 1) / unit;
        b->src_stride[d] = src_step;
        b->dst_stride[d] = dst_step;
        src_step *= src_extent[d];
        dst_step *= dst_extent[d];
    }
    for (int d = dst->ndim - 1; d > 0; d--) {
        const int64_t n = b->count[d];
        const int long_row = d == b->ndim - 1 && n * b->dst_stride[d] >= LONG_ROW;
        if (n != src_extent[d] || n != dst_extent[d] || long_row)
            continue;
        b->from[d - 1] *= n;
        b->to[d - 1] *= n;
        b->count[d - 1] *= n;
        b->src_stride[d - 1] = b->src_stride[d];
        b->dst_stride[d - 1] = b->dst_stride[d];
        src_extent[d - 1] *= n;
        dst_extent[d - 1] *= n;
        b->ndim--;
        for (int k = d; k < b->ndim; k++) {
            b->from[k] = b->from[k + 1];
            b->to[k] = b->to[k + 1];
            b->count[k] = b->count[k + 1];
            b->src_stride[k] = b->src_stride[k + 1];
            b->dst_stride[k] = b->dst_stride[k + 1];
        }
    }
}

static cvy_status copy_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const cvy_shape *dst = &node->dst[0]->shape;
    const int64_t block = CVY_MAX(1, cvy_layout_channel_block(&ask->dst[0], dst->ndim));
    struct copy *s = NULL;
    int64_t elems, covered = 0;
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->threads = ask->threads;
    s->bytes = cvy_dtype_bytes(node->dst[0]->dtype);
    s->dst_bytes = (size_t)elems * s->bytes;
    s->nbox = boxes_of(node, s->box);
    for (int i = 0; i < s->nbox; i++) {
        struct box *b = &s->box[i];
        box_to_memory_order(b, ask, block);
        int64_t part = block;
        for (int d = 0; d < b->ndim; d++)
            part *= b->count[d];
        covered += part;
    }
    s->clear = covered != elems && !cvy_layout_whole(&ask->dst[0]);
    *state_out = s;
    return CVY_OK;
}

static void copy_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Copies rows first .. end - 1 of the box, in row-major order; a row runs over the last dimension. */
static void copy_rows(int64_t first, int64_t end, void *arg)
{
    const struct copy *s = arg;
    const struct box *b = s->now;
    const int last = b->ndim - 1;
    const size_t row_bytes = (size_t)(b->count[last] * b->dst_stride[last]) * s->bytes;
    for (int64_t row = first; row < end; row++) {
        int64_t rest = row, from = b->from[last] * b->src_stride[last], to = b->to[last] * b->dst_stride[last];
        for (int d = last - 1; d >= 0; d--) {
            from += (b->from[d] + rest % b->count[d]) * b->src_stride[d];
            to += (b->to[d] + rest % b->count[d]) * b->dst_stride[d];
            rest /= b->count[d];
        }
        memcpy(s->dst + (size_t)to * s->bytes, s->src + (size_t)from * s->bytes, row_bytes);
    }
}

static void clear_range(int64_t first, int64_t end, void *arg)
{
    const struct copy *s = arg;
    memset(s->dst + first, 0, (size_t)(end - first));
}

static cvy_status copy_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct copy *s = state;
    (void)scratch;
    s->dst = dst[0];
    if (s->clear)
        cvy_parallel_for(s->threads, (int64_t)s->dst_bytes, 4 * CVY_GRAIN, clear_range, s);
    for (int i = 0; i < s->nbox; i++) {
        const struct box *b = &s->box[i];
        const int64_t row = b->count[b->ndim - 1] * b->dst_stride[b->ndim - 1];
        int64_t rows = 1;
        for (int d = 0; d + 1 < b->ndim; d++)
            rows *= b->count[d];
        s->now = b;
        s->src = src[b->src];
        cvy_parallel_for(s->threads, rows, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, row)), copy_rows, s);
    }
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_concat) = {
    .name = "native.concat",
    .op = "concat",
    .preference = 50,
    .slice_src = ~0U,
    .slice_dst = 1,
    .offer = copy_offer,
    .create = copy_create,
    .run = copy_run,
    .destroy = copy_destroy,
};

CVY_KERNEL_DEFINE(native_slice) = {
    .name = "native.slice",
    .op = "slice",
    .preference = 50,
    .slice_src = 1,
    .slice_dst = 1,
    .offer = copy_offer,
    .create = copy_create,
    .run = copy_run,
    .destroy = copy_destroy,
};

CVY_KERNEL_DEFINE(native_pad_slice) = {
    .name = "native.pad_slice",
    .op = "pad_slice",
    .preference = 50,
    .offer = copy_offer,
    .create = copy_create,
    .run = copy_run,
    .destroy = copy_destroy,
};

CVY_KERNEL_DEFINE(native_pad) = {
    .name = "native.pad",
    .op = "pad",
    .preference = 50,
    .offer = copy_offer,
    .create = copy_create,
    .run = copy_run,
    .destroy = copy_destroy,
};

CVY_KERNEL_DEFINE(native_crop) = {
    .name = "native.crop",
    .op = "crop",
    .preference = 50,
    .offer = copy_offer,
    .create = copy_create,
    .run = copy_run,
    .destroy = copy_destroy,
};
