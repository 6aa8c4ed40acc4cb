/*
 * plan_run.c: what the instructions of a plan run: kernels, reference kernels and reorders, and the plan's own
 * additions, zeroing and barriers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "extension/extension.h"
#include "plan/plan_bind.h"

/* ---- the plain kernels of operators ---- */

struct reference {
    const cvy_node *node;
    int threads; /* that a user's function may use; 0: the operator is one of convoy's */
    cvy_span src[CVY_NODE_SRC_MAX], dst[CVY_NODE_DST_MAX];
};

/* A tensor that is not plain is passed as one flat row, padding included. Only elementwise operators and updates get
 * such tensors. */
static cvy_span make_span(const cvy_instance *instance)
{
    cvy_span span = {.dtype = instance->dtype, .ndim = instance->value->shape.ndim, .elems = instance->elems};
    memcpy(span.dim, instance->value->shape.dim, sizeof span.dim);
    if (!cvy_layout_is_plain(&instance->layout)) {
        span.ndim = 1;
        span.dim[0] = instance->elems;
    }
    return span;
}

static cvy_status reference_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct reference *r = state;
    (void)scratch;
    for (int i = 0; i < r->node->nsrc; i++)
        r->src[i].data = src[i];
    for (int i = 0; i < r->node->ndst; i++)
        r->dst[i].data = dst[i];
    return r->threads ? cvy_extension_run(r->node, r->src, r->dst, r->threads)
                      : r->node->op->reference(r->node, r->src, r->dst);
}

static cvy_status reference_create(const cvy_plan_opts *opts, const cvy_lowered *u, const cvy_call *call,
                                   void **state_out)
{
    struct reference *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    r->node = call->node;
    r->threads = !cvy_extension_op_of(call->node->op) ? 0 : opts->deterministic ? 1 : CVY_MAX(opts->threads, 1);
    for (int i = 0; i < call->nsrc; i++)
        if (call->src[i] >= 0)
            r->src[i] = make_span(&u->instance[call->src[i]]);
    for (int i = 0; i < call->ndst; i++)
        if (call->dst[i] >= 0)
            r->dst[i] = make_span(&u->instance[call->dst[i]]);
    *state_out = r;
    return CVY_OK;
}

/* ---- instructions of the plan itself ---- */

static cvy_status reorder_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    cvy_reorder_run(state, src[0], dst[0]);
    return CVY_OK;
}

cvy_status cvy_barrier_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_plan *plan = state;
    cvy_comm *comm = plan->opts.comm;
    (void)src, (void)dst, (void)scratch;
    if (!plan->head.barrier)
        return CVY_OK;
    comm->node_memory->barrier_enter(comm, plan->head.barrier);
    for (int round = 0; !comm->node_memory->barrier_test(comm, plan->head.barrier); round++) {
        CVY_TRY(cvy_bucket_set_progress(plan->buckets));
        CVY_TRY(comm->ops->rest(comm, round));
    }
    return CVY_OK;
}

cvy_status cvy_noop_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)state, (void)src, (void)dst, (void)scratch;
    return CVY_OK;
}

enum { ADDED_AT_ONCE = 1 << 15 }; /* elements that one thread adds at a time */

static void add_range(const struct cvy_adding *a, const void *part, void *sum, int64_t first, int64_t end)
{
    const double *y = part;
    const float *x = part;
    double *sums = sum;
    float *narrow = sum;
    if (a->dtype == CVY_DTYPE_F32)
        for (int64_t i = first; i < end; i++)
            narrow[i] += x[i];
    else
        for (int64_t i = first; i < end; i++)
            sums[i] += y[i];
}

/* It does not use cvy_parallel_for(), which flushes denormals to zero. All-reduces keep denormals, and sums over shards
 * must be the same on any number of ranks. */
cvy_status cvy_accumulate_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct cvy_adding *a = state;
    const int64_t npieces = (a->elems + ADDED_AT_ONCE - 1) / ADDED_AT_ONCE;
    (void)scratch;
    if (a->threads <= 1 || npieces < 2) {
        add_range(a, src[0], dst[0], 0, a->elems);
        return CVY_OK;
    }
#pragma omp parallel for num_threads(a->threads)
    for (int64_t p = 0; p < npieces; p++)
        add_range(a, src[0], dst[0], p * ADDED_AT_ONCE, CVY_MIN((p + 1) * ADDED_AT_ONCE, a->elems));
    return CVY_OK;
}

cvy_status cvy_zero_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)src, (void)scratch;
    memset(dst[0], 0, (size_t)(uintptr_t)state);
    return CVY_OK;
}

/* ---- the state of a call ---- */

cvy_status cvy_call_ready(const cvy_plan_opts *opts, const cvy_lowered *u, cvy_call *call)
{
    if (call->state)
        return CVY_OK;
    switch (call->kind) {
    case CVY_CALL_KERNEL: {
        const cvy_status status = call->kernel->create ? call->kernel->create(&call->ask, &call->state) : CVY_OK;
        return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s (%s)", call->node->name, call->kernel->name);
    }
    case CVY_CALL_REFERENCE: return reference_create(opts, u, call, &call->state);
    case CVY_CALL_REORDER: {
        const cvy_instance *from = &u->instance[call->src[0]], *to = &u->instance[call->dst[0]];
        cvy_reorder *reorder = NULL;
        CVY_TRY(cvy_reorder_create(&from->value->shape, &(cvy_memory_format){from->dtype, from->layout},
                                   &(cvy_memory_format){to->dtype, to->layout}, opts->threads, &reorder));
        call->state = reorder;
        return CVY_OK;
    }
    default: return CVY_OK;
    }
}

void cvy_call_release(cvy_call *call)
{
    cvy_reorder *reorder = call->state;
    if (!call->state)
        return;
    switch (call->kind) {
    case CVY_CALL_KERNEL:
        if (call->kernel->destroy)
            call->kernel->destroy(call->state);
        break;
    case CVY_CALL_REORDER: cvy_reorder_destroy(&reorder); break;
    case CVY_CALL_REFERENCE: cvy_mem_free(&call->state); break;
    default: break;
    }
    call->state = NULL;
}

cvy_run_fn cvy_call_run(const cvy_call *call)
{
    switch (call->kind) {
    case CVY_CALL_KERNEL: return call->kernel->run;
    case CVY_CALL_REFERENCE: return reference_run;
    case CVY_CALL_REORDER: return reorder_run;
    default: return NULL;
    }
}
