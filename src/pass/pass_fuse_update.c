/*
 * pass_fuse_update.c: lets a large fully connected layer compute the gradient of its weight in the update phase, where
 * each part of it is used at once (optim_sgd_fc.c).
 *
 * That needs a gradient that nothing else reads, such as a sum over ranks, clipping or an L1 norm. src and ddst then
 * live until the update, so they must be much smaller than the weight. In bf16 a batch must be small: with more samples
 * the products of the fused kernel, in vectors, take longer than the memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "optim/optim_sgd_fc.h"
#include "pass/pass_readers.h"

/* Elements of a weight; its size over that of src and ddst; most rows of src in bf16. */
enum { LARGE = 1 << 18, TIMES = 4, BF16_ROWS = 64 };

/* The node that makes the gradient which this update alone reads, if both can be fused; else NULL. */
static cvy_node *fusible(const cvy_readers *r, const cvy_node *update)
{
    const cvy_value *gradient = update->src[CVY_OPTIM_GRADIENT];
    cvy_node *from = gradient->producer;
    if (!cvy_pass_is_op(from, "fc_grad_weight") || from->dst[0] != gradient || gradient->is_output ||
        cvy_readers_count(r, gradient) != 1 || update->nsrc == CVY_NODE_SRC_MAX)
        return NULL;
    const cvy_fc_grad_opts *o = from->options;
    const cvy_dtype dtype = from->src[0]->dtype;
    const int64_t rows = cvy_fc_matrix_of(&o->fc, &o->src).rows, elems = cvy_shape_elems(&gradient->shape);
    const int pays = elems >= LARGE && TIMES * rows * (gradient->shape.dim[0] + gradient->shape.dim[1]) <= elems &&
                     (dtype == CVY_DTYPE_F32 || (dtype == CVY_DTYPE_BF16 && rows <= BF16_ROWS));
    return pays && rows > 0 && gradient->dtype == CVY_DTYPE_F32 &&
                   !(((const struct cvy_sgd *)update->options)->average > 0)
               ? from
               : NULL;
}

/* The node of the gradient goes, or makes the gradient of the bias alone. */
static cvy_status leave_bias(cvy_readers *r, cvy_node *from)
{
    if (from->ndst < 2 || !from->dst[1]) {
        from->dst[0] = NULL;
        cvy_readers_remove(r, from);
        return CVY_OK;
    }
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(from->graph->pool, &name, "%.*s.fc_grad_bias", (int)(strrchr(from->name, '.') - from->name),
                            from->name));
    cvy_readers_forget(r, from);
    from->op = cvy_op_find("fc_grad_bias");
    from->name = name;
    from->options = NULL;
    from->src[0] = from->src[1];
    from->dst[0] = from->dst[1];
    from->src[1] = from->dst[1] = NULL;
    from->nsrc = from->ndst = 1;
    cvy_readers_note(r, from);
    return CVY_OK;
}

static cvy_status fuse(cvy_readers *r, cvy_node *update, cvy_node *from)
{
    void *memory = NULL;
    CVY_TRY(cvy_pool_alloc(update->graph->pool, sizeof(cvy_fc_sgd_opts), &memory));
    cvy_fc_sgd_opts *options = memory;
    *options = (cvy_fc_sgd_opts){*(const struct cvy_sgd *)update->options, *(const cvy_fc_grad_opts *)from->options};
    cvy_readers_forget(r, update);
    update->op = cvy_op_find("fc_grad_sgd");
    update->options = options;
    update->src[CVY_FC_SGD_SRC] = from->src[0];
    update->src[update->nsrc++] = from->src[1];
    cvy_readers_note(r, update);
    return leave_bias(r, from);
}

cvy_status cvy_pass_fuse_update(cvy_graph *g, int *count_out)
{
    cvy_readers r;
    cvy_status status = CVY_OK;
    *count_out = 0;
    CVY_TRY(cvy_readers_create(g, &r));
    for (int n = 0; n < g->nnode && status == CVY_OK; n++) {
        cvy_node *from = cvy_pass_is_op(g->node[n], "sgd") ? fusible(&r, g->node[n]) : NULL;
        if (from)
            status = fuse(&r, g->node[n], from);
        *count_out += from && status == CVY_OK;
    }
    cvy_readers_free(&r);
    return status == CVY_OK ? cvy_graph_verify(g) : status;
}

static cvy_status run(cvy_pass_run *r)
{
    return r->optimise && r->may_fuse_updates ? cvy_pass_fuse_update(r->graph, &r->fused_updates) : CVY_OK;
}

CVY_PASS_DEFINE(fuse_update) = {.name = "fuse-update",
                                .help = "updates large fully connected weights while their gradient is computed",
                                .order = 75,
                                .training = 1,
                                .can_be_off = 1,
                                .run = run};
