/*
 * allreduce: a blocking all-reduce along one axis of the grid: of batch-norm statistics, normalisers of losses, the
 * norm of all gradients, and partial sums of layers that are split over ranks.
 *
 *     dst  = sum of src over the ranks of the axis
 *     dsrc = ddst: all ranks have the whole gradient of the sum
 *
 * The MPI library adds small tensors. Large ones use the algorithm of a bucket, which is faster: over two ranks of a
 * node Open MPI 4.1 took 60 ms for the 51 MB of a layer of hep-cnn, and a bucket takes 15. In deterministic mode, and
 * on simulated nodes (the simulator's collectives say nothing about those of other libraries), all sums use it. NCCL
 * adds tensors of a device where it can. It is tested by tests/plan and tests/program, with several numbers of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "comm/comm_grid.h"
#include "graph/graph_grad.h"
#include "op/comm/op_stage.h"
#include "reduce/reduce_bucket.h"

enum { LARGE_BYTES = 64 << 10 };

struct allreduce {
    cvy_comm *comm;
    cvy_bucket_set *buckets; /* progress is made on them while this waits; NULL: none can be active */
    cvy_bucket_set *before;  /* buckets whose exchanges must have begun before this one: those of the plan */
    cvy_messages *messages;  /* those that must have been sent */
    cvy_request *request;    /* NULL: the MPI library adds */
    cvy_nccl *nccl;          /* of comm, if it was asked */
    cvy_nccl_exchange *sum;  /* by which NCCL adds in place of the host; NULL: it does not */
    cvy_stage stage;         /* its host memory is what is reduced; NULL: the tensor itself is */
    float *wide;             /* of a bf16 tensor: the values that are summed; NULL: the tensor has another dtype */
    int64_t elems;
    cvy_dtype dtype;
};

static void allreduce_destroy(void **state)
{
    struct allreduce *a = *state;
    if (a && a->request)
        a->comm->reduce->destroy(&a->request);
    if (a) {
        cvy_nccl_exchange_destroy(&a->sum);
        cvy_nccl_close(&a->nccl);
        cvy_stage_free(&a->stage);
        cvy_mem_free(&a->wide);
    }
    cvy_mem_free(state);
}

static cvy_comm *comm_of(const cvy_comm_binding *binding, int axis)
{
    return axis == CVY_AXIS_DATA ? binding->comm : binding->grid ? binding->grid[CVY_AXIS_BIT(axis)] : NULL;
}

static cvy_status try_nccl(struct allreduce *a, const cvy_comm_binding *binding)
{
    const cvy_nccl_sum sum = {.kind = CVY_NCCL_ALL,
                              .from = binding->src[0].data,
                              .data = binding->dst[0].data,
                              .count = a->elems,
                              .dtype = a->dtype};
    if (!cvy_nccl_may(binding->space, a->comm, binding->reduce))
        return CVY_OK;
    CVY_TRY(cvy_nccl_open(a->comm, binding->space, &a->nccl));
    return cvy_nccl_why(a->nccl) ? CVY_OK : cvy_nccl_sum_create(a->nccl, &sum, NULL, &a->sum);
}

static cvy_status prepare(struct allreduce *a, const cvy_comm_binding *binding)
{
    const size_t bytes = (size_t)a->elems * cvy_dtype_bytes(a->dtype);
    const int by_bucket = binding->deterministic || a->comm->simulated_cores > 0 || bytes >= LARGE_BYTES;
    CVY_TRY(try_nccl(a, binding));
    if (a->sum)
        return CVY_OK;
    if (!cvy_space_is_host(binding->space))
        CVY_TRY(cvy_stage_make(&a->stage, binding->space, NULL, bytes));
    if (a->dtype == CVY_DTYPE_BF16)
        CVY_TRY(cvy_mem_alloc(sizeof *a->wide * (size_t)a->elems, &a->wide));
    void *sum = a->wide ? a->wide : a->stage.host ? (void *)a->stage.host : binding->dst[0].data;
    return by_bucket && a->comm->nranks > 1
               ? a->comm->reduce->create(a->comm, binding->reduce, sum, a->elems, a->wide ? CVY_DTYPE_F32 : a->dtype,
                                         NULL, &a->request)
               : CVY_OK;
}

static cvy_status allreduce_create(const cvy_node *node, const cvy_comm_binding *binding, void **state_out)
{
    const struct cvy_allreduce_axis *o = node->options;
    const cvy_span *dst = &binding->dst[0];
    struct allreduce *a = NULL;
    CVY_CHECK(comm_of(binding, o->axis), CVY_E_INTERNAL, "%s: the plan has no axis %s", node->name,
              cvy_axis_name((cvy_axis)o->axis));
    CVY_TRY(cvy_mem_alloc(sizeof *a, &a));
    *a = (struct allreduce){.comm = comm_of(binding, o->axis),
                            .before = binding->buckets,
                            .messages = binding->messages,
                            .elems = dst->elems,
                            .dtype = dst->dtype};
    a->buckets = binding->progresses ? binding->buckets : NULL;
    const cvy_status status = prepare(a, binding);
    void *state = a;
    if (status != CVY_OK)
        allreduce_destroy(&state);
    else
        *state_out = a;
    return status;
}

static cvy_status progress(void *buckets)
{
    return cvy_bucket_set_progress(buckets);
}

/* Starts the request and waits until it is done, with progress on the buckets. */
static cvy_status finish(const struct allreduce *a)
{
    int done = 0;
    CVY_TRY(a->comm->reduce->start(a->request));
    for (int round = 0; !done; round++) {
        CVY_TRY(a->comm->reduce->test(a->request, &done));
        if (!done && a->buckets)
            CVY_TRY(cvy_bucket_set_progress(a->buckets));
        if (!done)
            CVY_TRY(a->comm->ops->rest(a->comm, round));
    }
    return CVY_OK;
}

static cvy_status reduce_wide(const struct allreduce *a, void *sum, cvy_dtype dtype)
{
    const cvy_comm_ops *ops = a->comm->ops;
    if (a->request)
        return finish(a);
    return a->buckets ? ops->allreduce_progressing(a->comm, sum, a->elems, dtype, CVY_REDUCE_SUM, progress, a->buckets)
                      : ops->allreduce(a->comm, sum, a->elems, dtype, CVY_REDUCE_SUM);
}

/* bf16 values are summed in f32. */
static cvy_status reduce(const struct allreduce *a, void *sum)
{
    cvy_bf16 *narrow = sum;
    if (!a->wide)
        return reduce_wide(a, sum, a->dtype);
    for (int64_t i = 0; i < a->elems; i++)
        a->wide[i] = cvy_bf16_get(narrow[i]);
    CVY_TRY(reduce_wide(a, a->wide, CVY_DTYPE_F32));
    for (int64_t i = 0; i < a->elems; i++)
        narrow[i] = cvy_bf16_of(a->wide[i]);
    return CVY_OK;
}

static cvy_status allreduce_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct allreduce *a = state;
    const size_t bytes = (size_t)a->elems * cvy_dtype_bytes(a->dtype);
    (void)scratch;
    if (a->sum) {
        CVY_TRY(cvy_messages_settle(a->messages));
        CVY_TRY(cvy_nccl_start(a->sum));
        return cvy_nccl_await(a->sum);
    }
    if (a->stage.host) {
        CVY_TRY(cvy_op_stage_out(&a->stage, src[0], bytes, a->comm, a->buckets, a->messages));
        CVY_TRY(cvy_bucket_set_settle(a->before));
        CVY_TRY(reduce(a, a->stage.host));
        CVY_TRY(cvy_stage_in(&a->stage, dst[0], 0, bytes));
        return cvy_stage_await(&a->stage);
    }
    if (src[0] != dst[0] && !cvy_comm_simulates_copy(a->comm, bytes))
        memcpy(dst[0], src[0], bytes);
    return reduce(a, dst[0]);
}

static cvy_comm_axis axis_of(const cvy_node *node)
{
    return cvy_comm_axis_of(((const struct cvy_allreduce_axis *)node->options)->axis);
}

static const cvy_op_comm allreduce_comm = {
    .exchange = CVY_EXCHANGE_SUM,
    .create = allreduce_create,
    .run = allreduce_run,
    .destroy = allreduce_destroy,
    .axis_of = axis_of,
};

static const cvy_option allreduce_opts[] = {
    {"axis", CVY_TYPE_CHOICE, CVY_FIELD(cvy_allreduce_axis, axis), "data", "data|pipeline|tensor|space0|space1|space2",
     "", "axis of the grid, in the order of cvy_axis"},
    {0},
};

static cvy_status allreduce_infer(cvy_node *node)
{
    CVY_CHECK(cvy_dtype_is_real(node->src[0]->dtype), CVY_E_INTERNAL, "allreduce takes real numbers, got %s",
              cvy_dtype_text(node->src[0]->dtype));
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0)));
    const struct cvy_allreduce_axis *o = node->options;
    if (o->axis == CVY_AXIS_TENSOR) /* the sum over all samples */
        node->dst[0]->shares_samples = 0;
    return CVY_OK;
}

static cvy_status allreduce_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    return ddst ? cvy_grad_add(g, fwd->src[0], ddst) : CVY_OK;
}

CVY_OP_DEFINE(allreduce) = {
    .name = "allreduce",
    .summary = "sum over ranks",
    .options = allreduce_opts,
    .options_size = sizeof(struct cvy_allreduce_axis),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_FOLLOWS | CVY_OP_HIDDEN,
    .infer = allreduce_infer,
    .grad = allreduce_grad,
    .comm = &allreduce_comm,
};
