/*
 * plan_slices.c: concat and slice of channels without a copy. A branch writes directly into the memory of its concat,
 * and its gradient is read directly from the gradient of the concat.
 *
 * It runs before the first step, after the kernels are chosen. In memory samples are outermost, then channels (or
 * blocks of channels). A range of channels is therefore one piece of each sample: an ordinary tensor, but with the
 * sample stride of a wider one (cvy_layout_slice). With channels last it is one piece of each position. Kernels say
 * which of their tensors may be such slices. If such kernels write and read all sources of a concat, the sources become
 * views of its result. If only such kernels read the result of a slice, it becomes a view of its source. All others
 * stay copies.
 *
 * Slices could also be offered to kernels while they are chosen. But the producer is chosen before the concat, and a
 * kernel that declines would cost reorders or a slower kernel. Here the choice and the measured times do not depend on
 * slices, and no slice is ever reordered.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/pass.h"
#include "plan/plan_call.h"

/* A place is one source of one call: call * CVY_NODE_SRC_MAX + source. */
struct slices {
    cvy_lowered *u;
    int *writer; /* by instance: the call that writes it, -1: none */
    int *first;  /* by instance: 1 + a place that reads it, 0: none reads it */
    int *next;   /* by place: 1 + the next place that reads the same instance, 0: end */
};

static cvy_status note_calls(struct slices *s)
{
    const cvy_lowered *u = s->u;
    CVY_TRY(cvy_mem_alloc(sizeof *s->writer * ((size_t)u->ninstance + 1), &s->writer));
    CVY_TRY(cvy_mem_alloc(sizeof *s->first * ((size_t)u->ninstance + 1), &s->first));
    CVY_TRY(cvy_mem_alloc(sizeof *s->next * ((size_t)u->ncall * CVY_NODE_SRC_MAX + 1), &s->next));
    for (int l = 0; l < u->ninstance; l++)
        s->writer[l] = -1;
    for (int c = 0; c < u->ncall; c++) {
        const cvy_call *call = &u->call[c];
        for (int i = 0; i < call->ndst; i++)
            if (call->dst[i] >= 0)
                s->writer[call->dst[i]] = c;
        for (int i = 0; i < call->nsrc; i++)
            if (call->src[i] >= 0) {
                const int place = c * CVY_NODE_SRC_MAX + i;
                s->next[place] = s->first[call->src[i]];
                s->first[call->src[i]] = place + 1;
            }
    }
    return CVY_OK;
}

/* ---- which kernels can work on a slice ---- */

static int takes_slices(const cvy_kernel_def *kernel, unsigned which, int i, const cvy_instance *instance)
{
    const cvy_layout last = cvy_layout_channels_last(instance->value->shape.ndim);
    return (which >> i & 1) && (kernel->slice_last || !cvy_layout_equal(&instance->layout, &last));
}

static int readers_take_slices(const struct slices *s, int instance, const cvy_call *but)
{
    for (int at = s->first[instance]; at > 0; at = s->next[at - 1]) {
        const cvy_call *reader = &s->u->call[(at - 1) / CVY_NODE_SRC_MAX];
        const int i = (at - 1) % CVY_NODE_SRC_MAX;
        if (reader != but && (!cvy_call_kernel(reader) ||
                              !takes_slices(reader->kernel, reader->kernel->slice_src, i, &s->u->instance[instance])))
            return 0;
    }
    return 1;
}

static int writer_takes_slices(const struct slices *s, int instance)
{
    const cvy_call *writer = s->writer[instance] >= 0 ? &s->u->call[s->writer[instance]] : NULL;
    for (int i = 0; cvy_call_kernel(writer) && i < writer->ndst; i++)
        if (writer->dst[i] == instance)
            return takes_slices(writer->kernel, writer->kernel->slice_dst, i, &s->u->instance[instance]);
    return 0;
}

/* The number of channels of which slices of such a tensor must be a multiple; 0: it cannot be sliced. */
static int64_t slice_block(const cvy_instance *base)
{
    const int ndim = base->value->shape.ndim;
    const cvy_layout last = cvy_layout_channels_last(ndim), is = cvy_layout_slice(&base->layout, 1),
                     as = cvy_layout_slice(&last, 1);
    return ndim > 2 && cvy_layout_equal(&is, &as) ? CVY_SLICE_LAST : cvy_layout_channel_block(&base->layout, ndim);
}

/* Whether `part` can become a view of `base` from channel `first` on: it has memory of its own, the same layout and
 * dtype, and consists of whole blocks of channels. */
static int may_be_part(const cvy_instance *part, const cvy_instance *base, int64_t first)
{
    const int64_t block = slice_block(base);
    const cvy_layout as = cvy_layout_slice(&base->layout, 1), is = cvy_layout_slice(&part->layout, 1);
    return block > 0 && first % block == 0 && part->value->shape.dim[1] % block == 0 &&
           base->value->shape.dim[1] % block == 0 && part->view_of < 0 && cvy_layout_whole(&part->layout) == 0 &&
           cvy_layout_equal(&as, &is) && part->dtype == base->dtype && part->value->kind == CVY_VALUE_TEMP &&
           !part->value->is_output;
}

/* ---- placing ---- */

static void update_calls(struct slices *s, int instance)
{
    const cvy_layout layout = s->u->instance[instance].layout;
    cvy_call *writer = &s->u->call[s->writer[instance]];
    for (int i = 0; i < writer->ndst; i++)
        if (writer->dst[i] == instance)
            writer->ask.dst[i] = layout;
    for (int at = s->first[instance]; at > 0; at = s->next[at - 1])
        s->u->call[(at - 1) / CVY_NODE_SRC_MAX].ask.src[(at - 1) % CVY_NODE_SRC_MAX] = layout;
}

static cvy_status place(struct slices *s, int part, int base, int64_t first)
{
    const cvy_instance *of = &s->u->instance[base];
    cvy_instance *instance = &s->u->instance[part];
    const int64_t whole = cvy_layout_whole(&of->layout);
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(&of->layout, &of->value->shape, &b));
    instance->layout = cvy_layout_slice(&of->layout, whole > 0 ? whole : of->value->shape.dim[1]);
    instance->elems = b.elems;
    instance->bytes = of->bytes;
    instance->view_of = base;
    instance->view_at = (size_t)(first / b.dim_block[1] * b.stride[1]) * cvy_dtype_bytes(instance->dtype);
    update_calls(s, part);
    return CVY_OK;
}

static cvy_status place_slice(struct slices *s, cvy_call *call)
{
    const cvy_instance *base = &s->u->instance[call->src[0]], *part = &s->u->instance[call->dst[0]];
    int64_t first = 0;
    if (call->node->op->copies.cuts(call->node, &first) != 1 || base->value->kind != CVY_VALUE_TEMP ||
        !may_be_part(part, base, first) || !readers_take_slices(s, call->dst[0], NULL))
        return CVY_OK;
    cvy_call_become_view(call);
    return place(s, call->dst[0], call->src[0], first);
}

static int sources_fit(const struct slices *s, const cvy_call *call)
{
    int64_t first = 0;
    for (int i = 0; i < call->nsrc; i++) {
        const cvy_instance *part = &s->u->instance[call->src[i]];
        for (int j = 0; j < i; j++)
            if (call->src[j] == call->src[i])
                return 0;
        if (!may_be_part(part, &s->u->instance[call->dst[0]], first) || !writer_takes_slices(s, call->src[i]) ||
            !readers_take_slices(s, call->src[i], call) || s->u->call[s->writer[call->src[i]]].phase != call->phase)
            return 0;
        first += part->value->shape.dim[1];
    }
    return 1;
}

static cvy_status place_concat(struct slices *s, cvy_call *call)
{
    int64_t first = 0;
    if (call->node->op->copies.joins(call->node) != 1 || !sources_fit(s, call))
        return CVY_OK;
    cvy_call_become_view(call);
    for (int i = 0; i < call->nsrc; i++) {
        CVY_TRY(place(s, call->src[i], call->dst[0], first));
        first += s->u->instance[call->src[i]].value->shape.dim[1];
    }
    return CVY_OK;
}

/* Slices are placed from first to last, so that a slice of a slice becomes a view of the whole tensor. Concats are
 * placed from last to first for the same reason; those of the forward pass come before those that backward
 * recomputes. */
static cvy_status place_all(struct slices *s)
{
    cvy_lowered *u = s->u;
    CVY_TRY(note_calls(s));
    for (int c = 0; c < u->ncall; c++)
        if (cvy_call_kernel(&u->call[c]) && u->call[c].node->op->copies.cuts)
            CVY_TRY(place_slice(s, &u->call[c]));
    for (int backward = 0; backward < 2; backward++)
        for (int c = u->ncall - 1; c >= 0; c--)
            if (cvy_call_kernel(&u->call[c]) && u->call[c].node->op->copies.joins &&
                u->call[c].node->backward == backward)
                CVY_TRY(place_concat(s, &u->call[c]));
    return CVY_OK;
}

cvy_status cvy_lowered_place_slices(cvy_lowered *lowered)
{
    struct slices s = {.u = lowered};
    const cvy_status status = place_all(&s);
    cvy_mem_free(&s.writer);
    cvy_mem_free(&s.first);
    cvy_mem_free(&s.next);
    return status;
}

CVY_PASS_DEFINE(slices) = {
    .name = "slices", .help = "branches of a concat of channels are written into its memory", .can_be_off = 1};
