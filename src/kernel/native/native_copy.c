/*
 * native_copy.c: operators that only move data: concat, slice, pad_slice, pad, crop.
 * In the step: branches that meet, shortcuts, unequal padding.
 *
 * Each is one or several boxes, copied from a place in a source to a place in the destination, row by row. A layout
 * with channels in blocks is kept where the boxes' edges fall on the blocks' edges; then a block counts as one channel
 * with longer rows.
 */
#include <string.h>

#include "kernel/native/native_common.h"
#include "op/op_concat.h"
#include "op/op_pad.h"

struct box { /* in elements of memory; dimensions as in the layout, the last one contiguous on both sides */
    int src; /* source that it is read from */
    int64_t from[CVY_NDIM_MAX], to[CVY_NDIM_MAX], count[CVY_NDIM_MAX]; /* logical */
};

struct copy {
    int threads, nbox, ndim, clear; /* clear: the boxes do not cover the destination */
    struct box box[CVY_NODE_SRC_MAX];
    int64_t block, dst_elems;
    int64_t dst_stride[CVY_NDIM_MAX], src_stride[CVY_NODE_SRC_MAX][CVY_NDIM_MAX];
    /* of the running call */
    const struct box *now;
    const float *src;
    float *dst;
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

/* Whether blocks of channels can be copied whole: a box's last block may be partial only where both tensors end with
 * it. */
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
    CVY_TRY(cvy_native_f32(node));
    const int nbox = boxes_of(node, box);
    cvy_layout layout = cvy_native_channels(ask, 0);
    for (int i = 1; i < node->nsrc && cvy_layout_is_plain(&layout); i++)
        layout = cvy_native_channels(ask, i);
    const int64_t block = cvy_layout_channel_block(&layout, node->dst[0]->shape.ndim);
    if (block > 1 && !fits_blocks(node, box, nbox, block))
        layout = cvy_layout_plain();
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = layout;
    ask->dst[0] = layout;
    return CVY_OK;
}

/* Strides of whole blocks, outermost first; returns the elements of all. */
static int64_t strides_of(const cvy_shape *shape, int64_t block, int64_t stride[CVY_NDIM_MAX])
{
    int64_t step = block;
    for (int d = shape->ndim - 1; d >= 0; d--) {
        stride[d] = step;
        step *= d == 1 ? (shape->dim[d] + block - 1) / block : shape->dim[d];
    }
    return step;
}

static cvy_status copy_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    struct copy *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->threads = ask->threads;
    s->ndim = node->dst[0]->shape.ndim;
    s->block = CVY_MAX(1, cvy_layout_channel_block(&ask->dst[0], s->ndim));
    s->nbox = boxes_of(node, s->box);
    s->dst_elems = strides_of(&node->dst[0]->shape, s->block, s->dst_stride);
    int64_t covered = 0;
    for (int i = 0; i < s->nbox; i++) {
        struct box *b = &s->box[i];
        strides_of(&node->src[b->src]->shape, s->block, s->src_stride[b->src]);
        b->from[1] /= s->block;
        b->to[1] /= s->block;
        b->count[1] = (b->count[1] + s->block - 1) / s->block;
        int64_t elems = s->block;
        for (int d = 0; d < s->ndim; d++)
            elems *= b->count[d];
        covered += elems;
    }
    s->clear = covered != s->dst_elems;
    *state_out = s;
    return CVY_OK;
}

static void copy_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Rows of the box in its row-major order; a row runs over the last dimension. */
static void copy_rows(int64_t first, int64_t end, void *arg)
{
    const struct copy *s = arg;
    const struct box *b = s->now;
    const int last = s->ndim - 1;
    const int64_t *src_stride = s->src_stride[b->src];
    for (int64_t row = first; row < end; row++) {
        int64_t rest = row, from = b->from[last] * src_stride[last], to = b->to[last] * s->dst_stride[last];
        for (int d = last - 1; d >= 0; d--) {
            from += (b->from[d] + rest % b->count[d]) * src_stride[d];
            to += (b->to[d] + rest % b->count[d]) * s->dst_stride[d];
            rest /= b->count[d];
        }
        memcpy(s->dst + to, s->src + from, (size_t)(b->count[last] * s->block) * sizeof(float));
    }
}

static void clear_range(int64_t first, int64_t end, void *arg)
{
    const struct copy *s = arg;
    memset(s->dst + first, 0, (size_t)(end - first) * sizeof(float));
}

static cvy_status copy_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct copy *s = state;
    (void)scratch;
    s->dst = dst[0];
    if (s->clear)
        cvy_parallel_for(s->threads, s->dst_elems, CVY_GRAIN, clear_range, s);
    for (int i = 0; i < s->nbox; i++) {
        const struct box *b = &s->box[i];
        int64_t rows = 1;
        for (int d = 0; d + 1 < s->ndim; d++)
            rows *= b->count[d];
        s->now = b;
        s->src = src[b->src];
        cvy_parallel_for(s->threads, rows, CVY_MAX(1, CVY_GRAIN / CVY_MAX(1, b->count[s->ndim - 1] * s->block)),
                         copy_rows, s);
    }
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_concat) = {
    .name = "native.concat",
    .op = "concat",
    .preference = 50,
    .offer = copy_offer,
    .create = copy_create,
    .run = copy_run,
    .destroy = copy_destroy,
};

CVY_KERNEL_DEFINE(native_slice) = {
    .name = "native.slice",
    .op = "slice",
    .preference = 50,
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
