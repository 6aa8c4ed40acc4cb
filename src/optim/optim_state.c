/*
 * optim_state.c: what all optimisers share: their sources, and the state variables that belong to a weight.
 * The optimiser pass adds an update node for each weight before training; the node's infer calls this file. A state is
 * found by its name, so the graphs of one program (full and tail batch) share it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "optim/optim_update.h"

cvy_status cvy_node_state(cvy_node *node, const char *suffix)
{
    CVY_EXPECT(node->nsrc < CVY_NODE_SRC_MAX && node->src[0]->variable);
    const cvy_variable *weight = node->src[0]->variable;
    const cvy_init zeros = {.method = "constant"};
    cvy_variable *state = NULL;
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(node->graph->pool, &name, "%s.%s", weight->name, suffix));
    CVY_TRY(cvy_vars_declare(node->graph->vars, name, CVY_ROLE_STATE, weight->dtype, &weight->shape, &zeros, &state));
    state->of = weight;
    state->tile = weight->tile;
    CVY_TRY(cvy_graph_read_variable(node->graph, state, &node->src[node->nsrc]));
    node->nsrc++;
    return CVY_OK;
}

static cvy_status check_scalar(const cvy_node *node, int i, cvy_dtype dtype, const char *what)
{
    const cvy_value *v = node->src[i];
    CVY_CHECK(v->shape.ndim == 0 && v->dtype == dtype, CVY_E_INTERNAL, "the %s of %s must be %s scalar, got %s %s",
              what, node->name, cvy_dtype_text(dtype), cvy_dtype_text(v->dtype), cvy_shape_text(&v->shape));
    return CVY_OK;
}

static cvy_status check_sources(const cvy_node *node)
{
    const cvy_value *weight = node->src[CVY_OPTIM_WEIGHT], *gradient = node->src[CVY_OPTIM_GRADIENT];
    CVY_EXPECT(node->nsrc == CVY_OPTIM_STATE && weight->variable);
    CVY_CHECK(cvy_shape_equal(&weight->shape, &gradient->shape) && weight->dtype == gradient->dtype, CVY_E_INTERNAL,
              "variable %s is %s %s, its gradient is %s %s", weight->name, cvy_dtype_text(weight->dtype),
              cvy_shape_text(&weight->shape), cvy_dtype_text(gradient->dtype), cvy_shape_text(&gradient->shape));
    CVY_TRY(check_scalar(node, CVY_OPTIM_LR, CVY_DTYPE_F64, "learning rate"));
    CVY_TRY(check_scalar(node, CVY_OPTIM_SCALE, CVY_DTYPE_F64, "scale"));
    return check_scalar(node, CVY_OPTIM_STEP, CVY_DTYPE_I64, "step number");
}

cvy_status cvy_update_infer(cvy_node *node, const char *const *states)
{
    CVY_TRY(check_sources(node));
    CVY_TRY(cvy_node_assign(node, 0, CVY_OPTIM_WEIGHT));
    int n = 0;
    for (; states[n]; n++) {
        CVY_TRY(cvy_node_state(node, states[n]));
        CVY_TRY(cvy_node_assign(node, 1 + n, CVY_OPTIM_STATE + n));
    }
    if (!(cvy_update_average(node) > 0))
        return CVY_OK;
    CVY_TRY(cvy_node_state(node, "average"));
    cvy_vars_set_average(node->graph->vars, node->src[CVY_OPTIM_WEIGHT]->variable,
                         node->src[CVY_OPTIM_STATE + n]->variable);
    return cvy_node_assign(node, 1 + n, CVY_OPTIM_STATE + n);
}

cvy_status cvy_update_squares_infer(cvy_node *node, const char *const *states)
{
    CVY_TRY(check_sources(node));
    for (int i = 0; states[i]; i++)
        CVY_TRY(cvy_node_state(node, states[i]));
    return cvy_node_set_dst(node, 0, CVY_DTYPE_F64, &(cvy_shape){1, {2}});
}

cvy_status cvy_update_rate_infer(cvy_node *node)
{
    CVY_EXPECT(node->nsrc == 2 && cvy_shape_elems(&node->src[0]->shape) == 2 && node->src[0]->dtype == CVY_DTYPE_F64);
    CVY_TRY(check_scalar(node, 1, CVY_DTYPE_F64, "learning rate"));
    return cvy_node_set_dst(node, 0, CVY_DTYPE_F64, &(cvy_shape){0});
}

/* An option that all optimisers have. */
static double common_option(const cvy_node *update, const char *name)
{
    for (const cvy_option *row = update->op->options; row && row->name; row++)
        if (strcmp(row->name, name) == 0)
            return *(const double *)((const char *)update->options + row->offset);
    return 0;
}

double cvy_update_limit(const cvy_node *update)
{
    return common_option(update, "clip_weights");
}

double cvy_update_average(const cvy_node *update)
{
    return common_option(update, "average");
}

void cvy_update_write_average(const cvy_node *update, const cvy_span *src, const cvy_span *dst)
{
    const double decay = cvy_update_average(update);
    const int last = update->nsrc - 1, to = 1 + last - CVY_OPTIM_STATE;
    if (!(decay > 0))
        return;
    const double keep = cvy_update_average_decay(decay, *(const int64_t *)src[CVY_OPTIM_STEP].data);
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(&dst[to], i, keep * cvy_get(&src[last], i) + (1 - keep) * cvy_get(&dst[0], i));
}

/* An update reads weight, gradient and states once, and writes weight and states once. */
void cvy_update_cost(const cvy_node *node, cvy_cost *cost_out, int64_t flop_per_elem)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0)), nstate = node->nsrc - CVY_OPTIM_STATE;
    *cost_out = (cvy_cost){.flop = flop_per_elem * n, .read_elems = (2 + nstate) * n, .write_elems = (1 + nstate) * n};
}
