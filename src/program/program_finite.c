/*
 * program_finite.c: checks whether the gradients of a step, summed over ranks, are finite.
 *
 * It is called between backward and update, after the last reduction. Reading all gradients would cost a VGG 2 % of its
 * step, because most of its weights are in fully connected layers. The gradient of such a weight is x^T dy. Of it, only
 * one row is read, and the bias's gradient, which is the sum of dy: a number in x or dy that is not finite shows in one
 * of the two. A product of finite numbers that overflows is not found here; the next step's loss shows it. If the
 * gradient is not stored, because its update computes it, x and dy are read instead.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdatomic.h>

#include "graph/graph_op.h"
#include "program/program_guard.h"
#include "program/program_impl.h"

enum { LARGE = 1 << 18, GRAIN = 1 << 15 }; /* in elements: a larger gradient is not read whole; work for one thread */

struct span {
    const void *data;
    cvy_dtype dtype;
    atomic_int bad;
};

static double get(const struct span *s, int64_t i)
{
    return s->dtype == CVY_DTYPE_F32    ? (double)((const float *)s->data)[i]
           : s->dtype == CVY_DTYPE_BF16 ? (double)cvy_bf16_get(((const cvy_bf16 *)s->data)[i])
                                        : ((const double *)s->data)[i];
}

/* x * 0 is 0 only if x is finite. Separate sums let the compiler use whole vectors. */
static void find_bad(int64_t first, int64_t last, void *arg)
{
    enum { WIDTH = 16 };
    struct span *s = arg;
    const float *x = s->data;
    float sum[WIDTH] = {0};
    double bad = 0;
    int64_t i = first;
    if (s->dtype == CVY_DTYPE_F32)
        for (; i + WIDTH <= last; i += WIDTH)
            for (int k = 0; k < WIDTH; k++)
                sum[k] += x[i + k] * 0.0F;
    for (; i < last; i++)
        bad += get(s, i) * 0.0;
    for (int k = 0; k < WIDTH; k++)
        bad += (double)sum[k];
    if (!(bad == 0))
        atomic_store_explicit(&s->bad, 1, memory_order_relaxed);
}

/* Whether this is the gradient of a fully connected layer's weight, and the bias has a gradient too. */
static int is_outer(const cvy_value *v)
{
    const cvy_node *node = v->producer;
    return v->shape.ndim == 2 && cvy_shape_elems(&v->shape) >= LARGE && node && node->ndst == 2 && node->dst[0] == v &&
           node->dst[1] && node->dst[1]->reduced == v->reduced;
}

/* Reads the gradients of output 0 for each input, in the part of which this rank has the sum. */
static int row_is_bad(const cvy_plan *plan, const cvy_buffer *b, const float *x, cvy_part part)
{
    const cvy_lowered *u = plan->lowered[0];
    const cvy_instance *instance = &u->instance[u->newest[b->value->index]];
    int64_t at[CVY_NDIM_MAX] = {0};
    cvy_blocking blocking;
    if (cvy_blocking_make(&instance->layout, &b->value->shape, &blocking) != CVY_OK)
        return 0;
    for (; at[1] < b->value->shape.dim[1]; at[1]++) {
        const int64_t offset = cvy_blocking_offset(&blocking, at);
        if (offset >= part.first && offset < part.end && !isfinite(x[offset]))
            return 1;
    }
    return 0;
}

static int span_is_bad(const cvy_plan *plan, struct span *span, int64_t elems)
{
    cvy_parallel_for(plan->opts.threads, elems, GRAIN, find_bad, span);
    return atomic_load_explicit(&span->bad, memory_order_relaxed);
}

static int gradient_is_bad(const cvy_plan *plan, const cvy_buffer *b, const void *data)
{
    const cvy_dtype dtype = b->value->dtype;
    const int in_parts = plan->head.is_partitioned && b->bucket >= 0 && dtype == CVY_DTYPE_F32 &&
                         (!plan->opts.zero1 || plan->buckets->bucket[b->bucket].has_gradients);
    const cvy_part part =
        in_parts ? cvy_plan_part(plan, b) : (cvy_part){0, (int64_t)(b->bytes / cvy_dtype_bytes(dtype))};
    struct span span = {.data = (const char *)data + (size_t)part.first * cvy_dtype_bytes(dtype), .dtype = dtype};
    if (dtype == CVY_DTYPE_F32 && is_outer(b->value))
        return row_is_bad(plan, b, data, part);
    return span_is_bad(plan, &span, part.end - part.first);
}

/* Whether x (source `i`) or dy is bad of a layer whose gradient is not stored. Both live until the update. */
static cvy_status check_factor(const cvy_plan *plan, const cvy_instr *instr, int i, int *bad_out)
{
    const cvy_dtype dtype = plan->lowered[instr->micro]->instance[instr->call->src[i]].dtype;
    const size_t bytes = plan->buffer[instr->src_buffer[i]].bytes;
    void *const at = instr->src[i], *data = NULL;
    CVY_TRY(cvy_space_map(plan->opts.space, at, bytes, &data));
    struct span span = {.data = data, .dtype = dtype};
    *bad_out |= span_is_bad(plan, &span, (int64_t)(bytes / cvy_dtype_bytes(dtype)));
    return cvy_space_unmap(plan->opts.space, at, bytes, 0, data);
}

cvy_status cvy_gradients_finite(const cvy_plan *plan, int *finite_out)
{
    *finite_out = 1;
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_buffer *b = &plan->buffer[i];
        if (b->region != CVY_REGION_STEP || b->root != i || !b->data || !b->value ||
            b->value->kind != CVY_VALUE_ACCUMULATOR || !b->value->variable)
            continue;
        void *data = NULL;
        CVY_TRY(cvy_space_map(plan->opts.space, b->data, b->bytes, &data));
        const int bad = gradient_is_bad(plan, b, data);
        CVY_TRY(cvy_space_unmap(plan->opts.space, b->data, b->bytes, 0, data));
        if (bad) {
            *finite_out = 0;
            return CVY_OK;
        }
    }
    for (int i = 0, bad = 0; i < plan->ninstr && *finite_out; i++) {
        const cvy_node *node = plan->instr[i].call ? plan->instr[i].call->node : NULL;
        const unsigned factors = node && node->op->factors ? node->op->factors(node) : 0;
        for (int s = 0; factors >> s; s++)
            if (factors >> s & 1)
                CVY_TRY(check_factor(plan, &plan->instr[i], s, &bad));
        *finite_out = !bad;
    }
    return CVY_OK;
}
