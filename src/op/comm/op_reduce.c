/*
 * reduce_start, reduce_wait: the reduction of a bucket of gradients. It starts in the backward pass after the last node
 * that writes into the bucket, and is waited for before the update. It is tested by tests/plan and tests/program, with
 * several numbers of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/comm/op_reduce.h"

#include "base/base_mem.h"
#include "comm/comm_messages.h"
#include "graph/graph_op.h"
#include "reduce/reduce_bucket.h"

struct reduction {
    cvy_bucket_set *buckets;
    cvy_messages *messages; /* between the stages of a pipeline, or NULL */
    int bucket, blocking;
};

static cvy_status reduce_create(const cvy_node *node, const cvy_comm_binding *binding, void **state_out)
{
    const struct cvy_reduce_options *options = node->options;
    struct reduction *r = NULL;
    CVY_CHECK(options->bucket < binding->buckets->n, CVY_E_INTERNAL, "%s belongs to bucket %lld, but the plan has %d",
              node->name, (long long)options->bucket, binding->buckets->n);
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    *r = (struct reduction){binding->buckets, binding->messages, (int)options->bucket, binding->blocking};
    *state_out = r;
    return CVY_OK;
}

static void reduce_destroy(void **state)
{
    cvy_mem_free(state);
}

static cvy_status wait_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct reduction *r = state;
    (void)src, (void)dst, (void)scratch;
    CVY_TRY(cvy_messages_settle(r->messages));
    return cvy_bucket_set_wait(r->buckets, r->bucket);
}

static cvy_status start_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct reduction *r = state;
    CVY_TRY(cvy_bucket_set_start(r->buckets, r->bucket));
    return r->blocking ? wait_run(state, src, dst, scratch) : CVY_OK;
}

static const cvy_op_comm start_comm = {.exchange = CVY_EXCHANGE_BUCKET,
                                       .starts = 1,
                                       .create = reduce_create,
                                       .run = start_run,
                                       .destroy = reduce_destroy,
                                       .axis = CVY_COMM_DATA};
static const cvy_op_comm wait_comm = {.exchange = CVY_EXCHANGE_BUCKET,
                                      .waits = 1,
                                      .create = reduce_create,
                                      .run = wait_run,
                                      .destroy = reduce_destroy,
                                      .axis = CVY_COMM_DATA};

static const cvy_option reduce_opts[] = {
    {"bucket", CVY_TYPE_INT, CVY_FIELD(cvy_reduce_options, bucket), "0", "0..", "",
     "number of the range of the gradient arena"},
    {0},
};

/* The destination is a token: it only orders the wait after the start, and carries no data. */
static cvy_status reduce_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, CVY_DTYPE_I32, &(cvy_shape){0});
}

CVY_OP_DEFINE(reduce_start) = {
    .name = "reduce_start",
    .summary = "starts the sum of one bucket of gradients over all ranks",
    .options = reduce_opts,
    .options_size = sizeof(struct cvy_reduce_options),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_ONCE | CVY_OP_HIDDEN,
    .infer = reduce_infer,
    .comm = &start_comm,
};

CVY_OP_DEFINE(reduce_wait) = {
    .name = "reduce_wait",
    .summary = "waits for the sum of one bucket",
    .options = reduce_opts,
    .options_size = sizeof(struct cvy_reduce_options),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_HIDDEN,
    .infer = reduce_infer,
    .comm = &wait_comm,
};
