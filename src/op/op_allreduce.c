/*
 * allreduce, reduce_start, reduce_wait: communication as operators. In the step: batch-norm statistics and losses' normalisers (allreduce,
 * blocking, in forward), gradients (a bucket's sum is started in backward and waited for before the update).
 * They have no kernel of their own: the planner binds them to the context's communicator. Tested by tests/plan, at several rank counts.
 */
#include "graph/graph_op.h"
#include "op/op_reduce.h"

static cvy_status allreduce_infer(cvy_node *node)
{
    CVY_CHECK(node->src[0]->dtype == CVY_DTYPE_F64, CVY_E_INTERNAL, "allreduce takes f64, got %s", cvy_dtype_text(node->src[0]->dtype));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

CVY_OP_DEFINE(allreduce) = {
    .name = "allreduce", .summary = "sum over all ranks",
    .nsrc_min = 1, .nsrc_max = 1, .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_HIDDEN,
    .infer = allreduce_infer,
};

static const cvy_option reduce_opts[] = {
    {"bucket", CVY_TYPE_INT, CVY_FIELD(cvy_reduce_options, bucket), "0", "0..", "", "number of the range of the gradient arena"},
    {0},
};

/* The destination is a token: it carries the order, no data. */
static cvy_status reduce_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, CVY_DTYPE_I32, &(cvy_shape){0});
}

CVY_OP_DEFINE(reduce_start) = {
    .name = "reduce_start", .summary = "starts the sum of one bucket of gradients over all ranks",
    .options = reduce_opts, .options_size = sizeof(struct cvy_reduce_options),
    .nsrc_min = 1, .nsrc_max = 1, .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_ONCE | CVY_OP_HIDDEN,
    .infer = reduce_infer,
};

CVY_OP_DEFINE(reduce_wait) = {
    .name = "reduce_wait", .summary = "waits for the sum of one bucket",
    .options = reduce_opts, .options_size = sizeof(struct cvy_reduce_options),
    .nsrc_min = 1, .nsrc_max = 1, .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_HIDDEN,
    .infer = reduce_infer,
};
