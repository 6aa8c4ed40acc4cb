/*
 * gpu_move.c: operators that only move data: concat, slice, pad_slice, pad, crop, transpose, expand; for elements of
 * any type.
 *
 * Each operator is one or several boxes, which are copied from a source to the destination in the order of the
 * destination's memory, by the kernels of backend/gpu/gpu_copy.c. If all rows of a box allow it, several elements are
 * moved as one of 8 bytes. A padding is zeroed first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/gpu/gpu_walk.h"
#include "op/tensor/op_concat.h"
#include "op/tensor/op_pad.h"
#include "op/tensor/op_transpose.h"

struct move {
    int64_t from, to; /* of the first element */
    struct walk w;    /* a: in the source, b: in the destination */
};

/* ---- the boxes of each operator ---- */

/* count[d] entries along axis d of the destination, from entry to[d] on; they come from entry from[d] on along axis
 * axis[d] of the source; -1: from the same entry. */
struct box {
    int src, axis[CVY_NDIM_MAX];
    int64_t from[CVY_NDIM_MAX], to[CVY_NDIM_MAX], count[CVY_NDIM_MAX];
};

static void whole_of(const cvy_shape *shape, int src, struct box *out)
{
    *out = (struct box){.src = src};
    for (int d = 0; d < shape->ndim; d++) {
        out->axis[d] = d;
        out->count[d] = shape->dim[d];
    }
}

static int concat_boxes(const cvy_node *node, struct box *box)
{
    const int axis = (int)((const cvy_concat_opts *)node->options)->axis;
    int64_t first = 0;
    for (int i = 0; i < node->nsrc; i++) {
        whole_of(cvy_node_src(node, i), i, &box[i]);
        box[i].to[axis] = first;
        first += box[i].count[axis];
    }
    return node->nsrc;
}

static int slice_boxes(const cvy_node *node, struct box *box)
{
    const cvy_slice_opts *o = node->options;
    whole_of(cvy_node_dst(node, 0), 0, box);
    box->from[o->axis] = o->first;
    return 1;
}

static int pad_slice_boxes(const cvy_node *node, struct box *box)
{
    const cvy_pad_slice_opts *o = node->options;
    whole_of(cvy_node_src(node, 0), 0, box);
    box->to[o->axis] = o->first;
    return 1;
}

static int pad_boxes(const cvy_node *node, struct box *box)
{
    const cvy_pad_opts *o = node->options;
    whole_of(cvy_node_src(node, 0), 0, box);
    for (int d = 2; d < cvy_node_src(node, 0)->ndim; d++)
        box->to[d] = cvy_ints_at(&o->before, d - 2, 0);
    return 1;
}

static int crop_boxes(const cvy_node *node, struct box *box)
{
    const cvy_pad_opts *o = node->options;
    whole_of(cvy_node_dst(node, 0), 0, box);
    for (int d = 2; d < cvy_node_src(node, 0)->ndim; d++)
        box->from[d] = cvy_ints_at(&o->before, d - 2, 0);
    return 1;
}

static int transpose_boxes(const cvy_node *node, struct box *box)
{
    const cvy_ints *order = &((const cvy_transpose_opts *)node->options)->order;
    whole_of(cvy_node_dst(node, 0), 0, box);
    for (int i = 0; i < order->count; i++)
        box->axis[i + 1] = (int)order->at[i];
    return 1;
}

static int expand_boxes(const cvy_node *node, struct box *box)
{
    const cvy_shape *src = cvy_node_src(node, 0), *dst = cvy_node_dst(node, 0);
    const int more = dst->ndim - src->ndim;
    whole_of(dst, 0, box);
    for (int d = 1; d < dst->ndim; d++)
        box->axis[d] = d <= more || src->dim[d - more] != dst->dim[d] ? -1 : d - more;
    return 1;
}

static const struct row {
    const char *op;
    int (*boxes)(const cvy_node *node, struct box *box);
    int clears, other_axes; /* the boxes do not cover the destination; its axes are others than those of the source */
} rows[] = {
    {"concat", concat_boxes, 0, 0}, {"slice", slice_boxes, 0, 0}, {"pad_slice", pad_slice_boxes, 1, 0},
    {"pad", pad_boxes, 1, 0},       {"crop", crop_boxes, 0, 0},   {"transpose", transpose_boxes, 0, 1},
    {"expand", expand_boxes, 0, 1},
};

static const struct row *row_of(const cvy_node *node)
{
    int i = 0;
    while (strcmp(rows[i].op, node->op->name) != 0)
        i++;
    return &rows[i];
}

/* ---- planning ---- */

struct call {
    int nbox, clears;
    size_t bytes; /* of the destination */
    struct {
        cvy_gpu_kernel kernel;
        int src;
        size_t each; /* bytes of an element */
        struct move move;
    } box[CVY_NODE_SRC_MAX];
};

/* The kernel that copies elements of this size. */
static cvy_status kernel_get(const cvy_kernel_ask *ask, size_t bytes, cvy_gpu_kernel *out)
{
    const cvy_dtype dtype = bytes == 1   ? CVY_DTYPE_U8
                            : bytes == 2 ? CVY_DTYPE_BF16
                            : bytes == 4 ? CVY_DTYPE_F32
                                         : CVY_DTYPE_F64;
    return cvy_gpu_copy_get(ask->space, dtype, dtype, out);
}

/* Sources keep their layout if it has no blocks. The destination gets that of a source, or the usual one if its axes
 * are others. */
static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    cvy_layout layout = cvy_layout_plain();
    cvy_gpu_kernel kernel;
    for (int i = 0; i < node->nsrc; i++) {
        ask->src[i] = cvy_gpu_unblocked(ask, i);
        if (cvy_layout_is_plain(&layout))
            layout = ask->src[i];
    }
    ask->dst[0] = row_of(node)->other_axes ? cvy_gpu_layout(cvy_node_dst(node, 0)) : layout;
    return kernel_get(ask, cvy_dtype_bytes(node->dst[0]->dtype), &kernel);
}

/* Whether the elements can be moved as pairs. */
static int halves(const struct move *m)
{
    const struct walk *w = &m->w;
    const int last = (int)w->ndim - 1;
    int even = w->a[last] == 1 && w->b[last] == 1 && w->dim[last] % 2 == 0 && m->from % 2 == 0 && m->to % 2 == 0;
    for (int d = 0; d < last; d++)
        even = even && w->a[d] % 2 == 0 && w->b[d] % 2 == 0;
    return even;
}

static void halve(struct move *m)
{
    struct walk *w = &m->w;
    const int last = (int)w->ndim - 1;
    w->dim[last] /= 2;
    w->count /= 2;
    m->from /= 2;
    m->to /= 2;
    for (int d = 0; d < last; d++) {
        w->a[d] /= 2;
        w->b[d] /= 2;
    }
}

/* The move of a box. *bytes becomes the size of its elements. */
static struct move move_of(const cvy_kernel_ask *ask, const struct box *box, size_t *bytes)
{
    const cvy_shape *dst = cvy_node_dst(ask->node, 0);
    cvy_gpu_axes axes = {.ndim = dst->ndim};
    int64_t src_step[CVY_NDIM_MAX], dst_step[CVY_NDIM_MAX];
    struct move m = {0};
    cvy_gpu_steps(cvy_node_src(ask->node, box->src), &ask->src[box->src], src_step);
    cvy_gpu_steps(dst, &ask->dst[0], dst_step);
    for (int d = 0; d < dst->ndim; d++) {
        axes.dim[d] = box->count[d];
        axes.a[d] = box->axis[d] >= 0 ? src_step[box->axis[d]] : 0;
        axes.b[d] = dst_step[d];
        m.from += box->from[d] * axes.a[d];
        m.to += box->to[d] * axes.b[d];
    }
    cvy_gpu_axes_sort(&axes, 1);
    m.w = cvy_gpu_walk_make(&axes);
    /* A slice may begin anywhere in the tensor that contains it. */
    const int sliced = cvy_layout_whole(&ask->src[box->src]) > 0 || cvy_layout_whole(&ask->dst[0]) > 0;
    for (; *bytes < 8 && !sliced && halves(&m); *bytes *= 2)
        halve(&m);
    return m;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const size_t bytes = cvy_dtype_bytes(node->dst[0]->dtype);
    struct box box[CVY_NODE_SRC_MAX];
    struct call *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    s->bytes = bytes * (size_t)cvy_shape_elems(cvy_node_dst(node, 0));
    s->clears = row_of(node)->clears;
    s->nbox = row_of(node)->boxes(node, box);
    for (int i = 0; i < s->nbox; i++) {
        s->box[i].src = box[i].src;
        s->box[i].each = bytes;
        s->box[i].move = move_of(ask, &box[i], &s->box[i].each);
        CVY_TRY(kernel_get(ask, s->box[i].each, &s->box[i].kernel));
    }
    return CVY_OK;
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    if (s->clears)
        CVY_TRY(cvy_gpu_zero(&s->box[0].kernel, dst[0], s->bytes));
    for (int i = 0; i < s->nbox; i++) {
        const struct move *m = &s->box[i].move;
        const int64_t each = (int64_t)s->box[i].each;
        CVY_TRY(cvy_gpu_copy_walk(&s->box[i].kernel, CVY_LANE_COMPUTE, &m->w,
                                  (const char *)src[s->box[i].src] + m->from * each, (char *)dst[0] + m->to * each));
    }
    return CVY_OK;
}

/* clang-format off */
#define FIELDS(of) CVY_GPU_FIELDS(of, offer, create, run, cvy_gpu_free_state)
#define SLICES .slice_src = ~0U, .slice_dst = 1, .slice_last = 1
CVY_KERNEL_DEFINE(gpu_concat) = {FIELDS("concat"), SLICES};
CVY_KERNEL_DEFINE(gpu_slice) = {FIELDS("slice"), SLICES};
CVY_KERNEL_DEFINE(gpu_pad_slice) = {FIELDS("pad_slice"), .slice_src = 1, .slice_last = 1};
CVY_KERNEL_DEFINE(gpu_pad) = {FIELDS("pad"), .slice_src = 1, .slice_last = 1};
CVY_KERNEL_DEFINE(gpu_crop) = {FIELDS("crop"), SLICES};
CVY_KERNEL_DEFINE(gpu_transpose) = {FIELDS("transpose"), SLICES};
CVY_KERNEL_DEFINE(gpu_expand) = {FIELDS("expand"), SLICES};
/* clang-format on */
