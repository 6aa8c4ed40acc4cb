/*
 * plan_json.c: prints a plan as JSON, for plan.json of a run, `convoy plan` and the report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_call.h"

static void add_layer(const cvy_lowered *u, const cvy_call *call, cvy_json *json)
{
    const cvy_node *node = call->node;
    const cvy_cost cost = cvy_node_cost(node);
    int64_t params = 0;
    for (int i = 0; i < node->nsrc; i++)
        if (node->src[i]->kind == CVY_VALUE_VARIABLE && node->src[i]->variable->role == CVY_ROLE_WEIGHT &&
            !node->backward && node->phase == CVY_PHASE_MICRO)
            params += cvy_shape_elems(&node->src[i]->shape);
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "name", node->name);
    cvy_json_string(json, "layer", node->layer);
    cvy_json_string(json, "op", node->op->name);
    cvy_json_string(json, "phase",
                    node->phase == CVY_PHASE_UPDATE    ? "update"
                    : node->phase == CVY_PHASE_PREPARE ? "prepare"
                    : node->backward                   ? "backward"
                                                       : "forward");
    cvy_json_string(json, "out_shape", node->dst[0] ? cvy_shape_text(&node->dst[0]->shape) : "");
    cvy_json_int(json, "params", params);
    cvy_json_int(json, "flop", cost.flop);
    cvy_json_string(json, "kernel",
                    call->kernel               ? call->kernel->name
                    : cvy_call_runs_node(call) ? "reference"
                                               : "plan");
    cvy_json_string(json, "layout",
                    call->dst[0] >= 0 && u->instance[call->dst[0]].layout.tag[0] ? u->instance[call->dst[0]].layout.tag
                                                                                 : "plain");
    cvy_json_close(json, '}');
}

static void add_memory(const cvy_plan *plan, cvy_json *json)
{
    const cvy_vars *vars = plan->lowered[0]->graph->vars;
    size_t weights = 0, states = 0;
    for (int i = 0; i < vars->count; i++) {
        *(vars->at[i]->role == CVY_ROLE_STATE ? &states : &weights) += cvy_variable_bytes(vars->at[i]);
    }
    cvy_json_open(json, "memory", '{');
    cvy_json_int(json, "arena_bytes", (int64_t)plan->arena_bytes);
    cvy_json_int(json, "gradient_bytes", (int64_t)plan->head.bytes);
    cvy_json_int(json, "weight_bytes", (int64_t)weights);
    cvy_json_int(json, "state_bytes", (int64_t)states);
    cvy_json_int(json, "feed_bytes", (int64_t)cvy_plan_feed_bytes(plan));
    cvy_json_int(json, "total_bytes", (int64_t)(plan->arena_bytes + weights + states + cvy_plan_feed_bytes(plan)));
    cvy_json_close(json, '}');
}

void cvy_plan_json(const cvy_plan *plan, cvy_json *json)
{
    const cvy_lowered *u = plan->lowered[plan->nmicro - 1];
    int64_t params = 0, reorders = 0;
    for (int i = 0; i < u->graph->vars->count; i++)
        params += u->graph->vars->at[i]->role == CVY_ROLE_WEIGHT ? cvy_shape_elems(&u->graph->vars->at[i]->shape) : 0;
    for (int i = 0; i < plan->ninstr; i++)
        reorders += cvy_call_reorders(plan->instr[i].call);
    cvy_json_string(json, "graph", u->graph->name);
    cvy_json_int(json, "rows", plan->rows);
    cvy_json_int(json, "micro_batches", plan->nmicro);
    cvy_json_int(json, "params", params);
    cvy_json_int(json, "instructions", plan->ninstr);
    cvy_json_int(json, "reorders", reorders);
    cvy_json_int(json, "buckets", plan->buckets->n);
    add_memory(plan, json);
    cvy_json_open(json, "layers", '[');
    for (int i = 0; i < u->ncall; i++)
        if (u->call[i].node)
            add_layer(u, &u->call[i], json);
    cvy_json_close(json, ']');
}
