/*
 * allreduce: a blocking all-reduce of a small tensor: batch-norm statistics and the normalisers of losses; the norm of
 * all gradients over the stages of a pipeline.
 *
 * The MPI library adds in an order of its own. In deterministic mode the sum uses the algorithm of a bucket instead. It
 * is tested by tests/plan and tests/program, with several numbers of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_mem.h"
#include "graph/graph_op.h"
#include "reduce/reduce_bucket.h"

struct allreduce_options {
    int over; /* 0: the ranks that share the samples; 1: the stages of a pipeline */
};

struct allreduce {
    cvy_comm *comm;
    cvy_bucket_set *buckets; /* progress is made on them while this waits; NULL: none can be active */
    cvy_request *request;    /* NULL: the MPI library adds */
    const cvy_space *space;
    void *copy; /* copy of the tensor in host memory, which is reduced; NULL: the tensor itself is reduced */
    int64_t elems;
    cvy_dtype dtype;
};

static void allreduce_destroy(void **state)
{
    struct allreduce *a = *state;
    if (a && a->request)
        a->comm->reduce->destroy(&a->request);
    if (a)
        cvy_mem_free(&a->copy);
    cvy_mem_free(state);
}

static cvy_status allreduce_create(const cvy_node *node, const cvy_comm_binding *binding, void **state_out)
{
    const struct allreduce_options *o = node->options;
    const cvy_span *dst = &binding->dst[0];
    struct allreduce *a = NULL;
    cvy_status status = CVY_OK;
    CVY_CHECK(!o->over || binding->pipeline, CVY_E_INTERNAL, "%s: the plan has no pipeline", node->name);
    CVY_TRY(cvy_mem_alloc(sizeof *a, &a));
    *a = (struct allreduce){.comm = o->over ? binding->pipeline : binding->comm,
                            .space = binding->space,
                            .elems = dst->elems,
                            .dtype = dst->dtype};
    a->buckets = binding->progresses ? binding->buckets : NULL;
    if (!cvy_space_is_host(a->space))
        status = cvy_mem_alloc((size_t)dst->elems * cvy_dtype_bytes(dst->dtype), &a->copy);
    if (status == CVY_OK && binding->deterministic && a->comm->nranks > 1)
        status = a->comm->reduce->create(a->comm, binding->reduce, a->copy ? a->copy : dst->data, dst->elems,
                                         dst->dtype, NULL, &a->request);
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

static cvy_status reduce(const struct allreduce *a, void *sum)
{
    const cvy_comm_ops *ops = a->comm->ops;
    if (a->request)
        return cvy_comm_finish(a->comm, a->request);
    return a->buckets
               ? ops->allreduce_progressing(a->comm, sum, a->elems, a->dtype, CVY_REDUCE_SUM, progress, a->buckets)
               : ops->allreduce(a->comm, sum, a->elems, a->dtype, CVY_REDUCE_SUM);
}

static cvy_status allreduce_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct allreduce *a = state;
    const size_t bytes = (size_t)a->elems * cvy_dtype_bytes(a->dtype);
    (void)scratch;
    if (a->copy) {
        CVY_TRY(cvy_space_read(a->space, a->copy, src[0], bytes));
        CVY_TRY(reduce(a, a->copy));
        return cvy_space_write(a->space, dst[0], a->copy, bytes);
    }
    if (src[0] != dst[0])
        memcpy(dst[0], src[0], bytes);
    return reduce(a, dst[0]);
}

static cvy_comm_axis axis_of(const cvy_node *node)
{
    const struct allreduce_options *o = node->options;
    return o->over ? CVY_COMM_PIPELINE : CVY_COMM_DATA;
}

static const cvy_op_comm allreduce_comm = {
    .role = CVY_COMM_NO_BUCKET,
    .create = allreduce_create,
    .run = allreduce_run,
    .destroy = allreduce_destroy,
    .axis_of = axis_of,
};

static const cvy_option allreduce_opts[] = {
    {"over", CVY_TYPE_CHOICE, CVY_FIELD(allreduce_options, over), "data", "data|stages", "", "which ranks"},
    {0},
};

static cvy_status allreduce_infer(cvy_node *node)
{
    CVY_CHECK(node->src[0]->dtype == CVY_DTYPE_F64, CVY_E_INTERNAL, "allreduce takes f64, got %s",
              cvy_dtype_text(node->src[0]->dtype));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

CVY_OP_DEFINE(allreduce) = {
    .name = "allreduce",
    .summary = "sum over ranks",
    .options = allreduce_opts,
    .options_size = sizeof(struct allreduce_options),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_HIDDEN,
    .infer = allreduce_infer,
    .comm = &allreduce_comm,
};
