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

#include "backend/gpu/gpu.h"
#include "graph/graph_op.h"
#include "plan/plan_call.h"
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

/* The part of a gradient of which this rank has the sum. */
static cvy_part part_of(const cvy_plan *plan, const cvy_buffer *b)
{
    const cvy_dtype dtype = b->value->dtype;
    const int in_parts = plan->head.is_partitioned && b->bucket >= 0 && dtype == CVY_DTYPE_F32 &&
                         (!plan->opts.zero1 || plan->buckets->bucket[b->bucket].has_gradients);
    return in_parts ? cvy_plan_part(plan, b) : (cvy_part){0, (int64_t)(b->bytes / cvy_dtype_bytes(dtype))};
}

static int gradient_is_bad(const cvy_plan *plan, const cvy_buffer *b, const void *data)
{
    const cvy_dtype dtype = b->value->dtype;
    const cvy_part part = part_of(plan, b);
    struct span span = {.data = (const char *)data + (size_t)part.first * cvy_dtype_bytes(dtype), .dtype = dtype};
    if (dtype == CVY_DTYPE_F32 && is_outer(b->value))
        return row_is_bad(plan, b, data, part);
    return span_is_bad(plan, &span, part.end - part.first);
}

/* Whether x (source `i`) or dy is bad of a layer whose gradient is not stored. Both live until the update. */
static int factor_is_bad(const cvy_plan *plan, const cvy_instr *instr, int i)
{
    const cvy_dtype dtype = plan->lowered[instr->micro]->instance[instr->call->src[i]].dtype;
    struct span span = {.data = instr->src[i], .dtype = dtype};
    return span_is_bad(plan, &span, (int64_t)(plan->buffer[instr->src_buffer[i]].bytes / cvy_dtype_bytes(dtype)));
}

static int is_gradient(const cvy_plan *plan, int i)
{
    const cvy_buffer *b = &plan->buffer[i];
    return b->region == CVY_REGION_STEP && b->root == i && b->data && b->value &&
           b->value->kind == CVY_VALUE_ACCUMULATOR && b->value->variable;
}

/* ---- on a device: losses and all gradients are read there. No update computes its gradient itself ---- */

static cvy_status make_finite(const cvy_program_task *s, cvy_plan *plan)
{
    cvy_gpu_range *range = NULL;
    int n = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *range * ((size_t)plan->nbuffer + (size_t)s->nloss + 1), &range));
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_buffer *b = &plan->buffer[i];
        if (!is_gradient(plan, i))
            continue;
        const cvy_part part = part_of(plan, b);
        range[n++] = (cvy_gpu_range){(char *)b->data + (size_t)part.first * cvy_dtype_bytes(b->value->dtype),
                                     part.end - part.first, b->value->dtype};
    }
    for (int i = 0; i < s->nloss; i++) {
        const cvy_buffer *b = cvy_plan_step_buffer(plan, s->loss[i].value);
        if (b)
            range[n++] = (cvy_gpu_range){b->data, 1, CVY_DTYPE_F64};
    }
    const cvy_status status = cvy_gpu_finite_create(plan->opts.space, range, n, &plan->finite);
    cvy_mem_free(&range);
    return status;
}

static cvy_region region_of(const cvy_plan *plan, int buffer)
{
    while (plan->buffer[buffer].root != buffer)
        buffer = plan->buffer[buffer].root;
    return plan->buffer[buffer].region;
}

/* Whether an instruction changes nothing that outlives the step while updates are held. All reductions are complete.
 * A shadow copy that is made of a weight may be made in any case. */
static int can_hold(const cvy_plan *plan, const cvy_instr *instr)
{
    const cvy_kernel_def *kernel = cvy_call_kernel(instr->call);
    const int only_waits = cvy_instr_exchanges(instr) && cvy_instr_starts_bucket(instr) < 0 && !plan->head.barrier;
    int can = (only_waits || !cvy_instr_is_comm(instr)) && !cvy_call_is_staged(instr->call);
    for (int i = 0; i < instr->ndst && can && !(kernel && kernel->can_hold); i++) {
        const int b = instr->dst_buffer[i];
        const cvy_region region = b >= 0 ? region_of(plan, b) : CVY_REGION_ARENA;
        can = region == CVY_REGION_SHADOW ? cvy_call_reorders(instr->call) : region != CVY_REGION_VARIABLE;
    }
    return can;
}

cvy_status cvy_make_check(const cvy_program_task *s)
{
    cvy_plan *plan = s->plan;
    CVY_TRY(make_finite(s, plan));
    plan->update.can_hold = 1;
    for (int i = plan->update.first; i < plan->ninstr; i++)
        plan->update.can_hold = plan->update.can_hold && can_hold(plan, &plan->instr[i]);
    return CVY_OK;
}

static cvy_status check_on_device(cvy_plan *plan, int *finite_out)
{
    CVY_TRY(cvy_gpu_finite_start(plan->finite));
    return cvy_gpu_finite_end(plan->finite, finite_out);
}

cvy_status cvy_gradients_finite(cvy_plan *plan, int *finite_out)
{
    *finite_out = 1;
    if (!cvy_space_is_host(plan->opts.space))
        return check_on_device(plan, finite_out);
    for (int i = 0; i < plan->nbuffer && *finite_out; i++)
        *finite_out = !is_gradient(plan, i) || !gradient_is_bad(plan, &plan->buffer[i], plan->buffer[i].data);
    for (int i = 0, bad = 0; i < plan->ninstr && *finite_out; i++) {
        const cvy_node *node = plan->instr[i].call ? plan->instr[i].call->node : NULL;
        const unsigned factors = node && node->op->factors ? node->op->factors(node) : 0;
        for (int s = 0; factors >> s; s++)
            bad |= factors >> s & 1 && factor_is_bad(plan, &plan->instr[i], s);
        *finite_out = !bad;
    }
    return CVY_OK;
}
