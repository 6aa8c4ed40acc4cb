/*
 * plan_run.c: what the instructions of a plan run: kernels, reference kernels and reorders, and the plan's own
 * additions, zeroing and barriers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_round.h"
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

static void reference_fill(struct reference *r, const cvy_plan_opts *opts, const cvy_lowered *u, const cvy_call *call)
{
    r->node = call->node;
    r->threads = !cvy_extension_op_of(call->node->op) ? 0 : opts->deterministic ? 1 : CVY_MAX(opts->threads, 1);
    for (int i = 0; i < call->nsrc; i++)
        if (call->src[i] >= 0)
            r->src[i] = make_span(&u->instance[call->src[i]]);
    for (int i = 0; i < call->ndst; i++)
        if (call->dst[i] >= 0)
            r->dst[i] = make_span(&u->instance[call->dst[i]]);
}

static cvy_status reference_create(const cvy_plan_opts *opts, const cvy_lowered *u, const cvy_call *call,
                                   void **state_out)
{
    struct reference *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    reference_fill(r, opts, u, call);
    *state_out = r;
    return CVY_OK;
}

/* ---- the same for tensors on a device: the host computes on copies ---- */

struct staged {
    struct reference reference;
    const cvy_space *space;
    char *memory; /* page-locked: the sources, then the destinations */
    size_t bytes, src_at[CVY_NODE_SRC_MAX], dst_at[CVY_NODE_DST_MAX];
};

static size_t span_bytes(const cvy_span *span)
{
    return (size_t)span->elems * cvy_dtype_bytes(span->dtype);
}

static void staged_destroy(struct staged **s)
{
    if (*s)
        cvy_space_free_host((*s)->space, &(*s)->memory, (*s)->bytes);
    cvy_mem_free(s);
}

static cvy_status staged_create(const cvy_plan_opts *opts, const cvy_lowered *u, const cvy_call *call, void **state_out)
{
    struct staged *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->space = opts->space;
    reference_fill(&s->reference, opts, u, call);
    for (int i = 0; i < call->nsrc; i++) {
        s->src_at[i] = s->bytes;
        s->bytes += call->src[i] >= 0 ? cvy_round_to_line(span_bytes(&s->reference.src[i])) : 0;
    }
    for (int i = 0; i < call->ndst; i++) {
        s->dst_at[i] = s->bytes;
        s->bytes += call->dst[i] >= 0 ? cvy_round_to_line(span_bytes(&s->reference.dst[i])) : 0;
    }
    s->bytes = CVY_MAX(s->bytes, 64);
    const cvy_status status = cvy_space_alloc_host(s->space, s->bytes, &s->memory);
    if (status != CVY_OK)
        staged_destroy(&s);
    *state_out = s;
    return status;
}

/* Copies of one address are one copy: an update writes the variable that it reads. */
static cvy_status staged_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct staged *s = state;
    void *src_copy[CVY_NODE_SRC_MAX] = {NULL}, *dst_copy[CVY_NODE_DST_MAX] = {NULL};
    const int nsrc = s->reference.node->nsrc, ndst = s->reference.node->ndst;
    for (int i = 0; i < nsrc; i++) {
        for (int j = 0; j < i && src[i] && !src_copy[i]; j++)
            src_copy[i] = src[j] == src[i] ? src_copy[j] : NULL;
        if (!src[i] || src_copy[i])
            continue;
        src_copy[i] = s->memory + s->src_at[i];
        CVY_TRY(cvy_space_copy(s->space, CVY_LANE_COMPUTE, src_copy[i], src[i], span_bytes(&s->reference.src[i])));
    }
    for (int i = 0; i < ndst; i++) {
        for (int j = 0; j < nsrc && dst[i] && !dst_copy[i]; j++)
            dst_copy[i] = src[j] == dst[i] ? src_copy[j] : NULL;
        if (dst[i] && !dst_copy[i])
            dst_copy[i] = s->memory + s->dst_at[i];
    }
    CVY_TRY(cvy_space_sync(s->space));
    CVY_TRY(reference_run(&s->reference, src_copy, dst_copy, scratch));
    for (int i = 0; i < ndst; i++)
        if (dst[i])
            CVY_TRY(cvy_space_copy(s->space, CVY_LANE_COMPUTE, dst[i], dst_copy[i], span_bytes(&s->reference.dst[i])));
    return CVY_OK;
}

/* ---- instructions of the plan itself ---- */

static cvy_status reorder_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return cvy_reorder_run(state, src[0], dst[0]);
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

static void add_range(const struct cvy_filling *a, const void *part, void *sum, int64_t first, int64_t end)
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
    const struct cvy_filling *a = state;
    const int64_t npieces = (a->elems + ADDED_AT_ONCE - 1) / ADDED_AT_ONCE;
    (void)scratch;
    if (!cvy_space_is_host(a->space))
        return a->space->backend->add(a->space->state, CVY_LANE_COMPUTE, a->dtype, a->elems, dst[0], src[0]);
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
    const struct cvy_filling *f = state;
    (void)src, (void)scratch;
    return cvy_space_zero(f->space, CVY_LANE_COMPUTE, dst[0], f->bytes);
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
    case CVY_CALL_STAGED: return staged_create(opts, u, call, &call->state);
    case CVY_CALL_REORDER: {
        const cvy_instance *from = &u->instance[call->src[0]], *to = &u->instance[call->dst[0]];
        cvy_reorder *reorder = NULL;
        CVY_TRY(cvy_reorder_create(opts->space, &from->value->shape, &(cvy_memory_format){from->dtype, from->layout},
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
    struct staged *staged = call->state;
    if (!call->state)
        return;
    switch (call->kind) {
    case CVY_CALL_KERNEL:
        if (call->kernel->destroy)
            call->kernel->destroy(call->state);
        break;
    case CVY_CALL_REORDER: cvy_reorder_destroy(&reorder); break;
    case CVY_CALL_REFERENCE: cvy_mem_free(&call->state); break;
    case CVY_CALL_STAGED: staged_destroy(&staged); break;
    default: break;
    }
    call->state = NULL;
}

cvy_run_fn cvy_call_run(const cvy_call *call)
{
    switch (call->kind) {
    case CVY_CALL_KERNEL: return call->kernel->run;
    case CVY_CALL_REFERENCE: return reference_run;
    case CVY_CALL_STAGED: return staged_run;
    case CVY_CALL_REORDER: return reorder_run;
    default: return NULL;
    }
}
