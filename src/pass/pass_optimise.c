/*
 * pass_optimise.c: adds the update phase: clipping and an L1 norm, then one update node per variable, in the order in
 * which the gradients are ready.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "comm/comm_grid.h"
#include "pass/pass.h"

/* Adds a node of the update phase, with its options given as text. */
static cvy_status add_update(cvy_graph *g, const char *op_name, const char *name, const char *options,
                             cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    const cvy_op_def *op = cvy_op_find(op_name);
    void *parsed = NULL;
    cvy_node *node = NULL;
    CVY_CHECK(op, CVY_E_INTERNAL, "the operator %s is missing", op_name);
    if (op->options) {
        CVY_TRY(cvy_pool_alloc(g->pool, op->options_size, &parsed));
        CVY_TRY(cvy_options_parse_text(g->pool, name, op->options, options, parsed, op->options_size));
    }
    CVY_TRY(cvy_graph_add_parsed(g, op, name, "update", parsed, src, nsrc, CVY_PHASE_UPDATE, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* Adds the sum of squares of the gradients that are split over ranks, or of those that are not; in several nodes if
 * there are more gradients than sources of a node. It is added to *total, which may be NULL. */
static cvy_status add_squares(cvy_graph *g, const cvy_gradients *gradients, unsigned over, int is_split,
                              cvy_value **total)
{
    const char *what = is_split ? "split" : "whole";
    char name[48];
    for (int i = 0, nodes = 0; i < gradients->count; nodes++) {
        cvy_value *part[CVY_NODE_SRC_MAX] = {0}, *squares = NULL;
        int n = 0;
        for (; n < CVY_NODE_SRC_MAX && i < gradients->count; i++)
            if (((gradients->at[i].value->split & over) != 0) == is_split)
                part[n++] = gradients->at[i].value;
        if (n == 0)
            break;
        snprintf(name, sizeof name, "clip.norm.%s%d", what, nodes);
        CVY_TRY(add_update(g, "grad_norm2", name, NULL, part, n, &squares));
        cvy_value *const both[] = {*total, squares};
        snprintf(name, sizeof name, "clip.sum.%s%d", what, nodes);
        if (*total)
            CVY_TRY(add_update(g, "add", name, NULL, both, 2, total));
        else
            *total = squares;
    }
    return CVY_OK;
}

static cvy_status add_sum_over(cvy_graph *g, cvy_axis axis, unsigned over, cvy_value **total)
{
    char name[48], options[24];
    if (!*total)
        CVY_TRY(add_update(g, "fill", "clip.none", "value: 0, dtype: f64", NULL, 0, total));
    if (!(over & CVY_AXIS_BIT(axis)))
        return CVY_OK;
    snprintf(name, sizeof name, "clip.over.%s", cvy_axis_name(axis));
    snprintf(options, sizeof options, "axis: %s", cvy_axis_name(axis));
    return add_update(g, "allreduce", name, options, total, 1, total);
}

/* Adds the sum of squares of all gradients: first of those of which each rank of a tensor axis has a part, summed over
 * that axis, then of the others, which all its ranks have; the sum over the stages of a pipeline; and the factor by
 * which clipping scales the gradients. */
static cvy_status add_clip_norm(cvy_graph *g, const cvy_gradients *gradients, const cvy_optimise_opts *opts,
                                cvy_value **scale_out)
{
    const unsigned tensor = CVY_AXIS_BIT(CVY_AXIS_TENSOR);
    cvy_value *total = NULL;
    char options[64];
    if (opts->over & tensor) {
        CVY_TRY(add_squares(g, gradients, tensor, 1, &total));
        CVY_TRY(add_sum_over(g, CVY_AXIS_TENSOR, opts->over, &total));
    }
    CVY_TRY(add_squares(g, gradients, tensor, 0, &total));
    CVY_TRY(add_sum_over(g, CVY_AXIS_PIPELINE, opts->over, &total));
    snprintf(options, sizeof options, "max_norm: %.17g", opts->clip_norm);
    return add_update(g, "clip_scale", "clip.scale", options, &total, 1, scale_out);
}

/* The user's options, with this variable's own weight decay and learning-rate factor. */
static cvy_status update_options(cvy_graph *g, const cvy_op_def *op, const cvy_optimise_opts *opts,
                                 const cvy_variable *v, void **out)
{
    const struct {
        const char *key;
        double value;
    } own[] = {
        {"weight_decay", v->decay ? opts->weight_decay * v->decay_mult : 0.0},
        {"lr_mult", v->lr_mult},
        {"clip_weights", opts->clip_weights},
    };
    cvy_tree *map = NULL, *scalar = NULL;
    CVY_TRY(cvy_tree_new_map(g->pool, "optimizer", &map));
    for (int i = 0; opts->options && i < opts->options->count; i++)
        CVY_TRY(cvy_tree_set(g->pool, map, opts->options->key[i], opts->options->child[i]));
    for (int i = 0; i < CVY_COUNT(own); i++) {
        char number[40];
        snprintf(number, sizeof number, "%.17g", own[i].value);
        CVY_TRY(cvy_tree_new_scalar(g->pool, "optimizer", number, &scalar));
        CVY_TRY(cvy_tree_set(g->pool, map, own[i].key, scalar));
    }
    CVY_TRY(cvy_pool_alloc(g->pool, op->options_size, out));
    return cvy_options_parse(g->pool, "optimizer", op->options, map, NULL, *out, op->options_size);
}

/* Whether each rank of the tensor axis has a part of the variable. Some have a variable on one rank only. */
static int has_parts(const cvy_variable *v)
{
    return v->tile && !cvy_shape_equal(&v->tile->whole, &v->shape);
}

static cvy_status add_named(cvy_graph *g, const cvy_op_def *op, const cvy_variable *v, const char *what,
                            const void *options, cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    char name[200];
    cvy_node *node = NULL;
    snprintf(name, sizeof name, "%s.%s%s", v->name, op->name, what);
    CVY_TRY(cvy_graph_add_parsed(g, op, name, v->name, options, src, nsrc, CVY_PHASE_UPDATE, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* The learning rate of a weight that is split over ranks, for an optimiser that needs the norm of the whole weight: the
 * squares of this rank's part, their sum over the ranks, and the rate from that (optim_update.h). src: sources of the
 * update. */
static cvy_status add_rate(cvy_graph *g, const cvy_op_def *op, const cvy_variable *v, const void *options,
                           cvy_value *const *src, cvy_value **lr)
{
    char names[2][64];
    const struct cvy_allreduce_axis axis = {CVY_AXIS_TENSOR};
    snprintf(names[0], sizeof names[0], "%s_squares", op->name);
    snprintf(names[1], sizeof names[1], "%s_rate", op->name);
    const cvy_op_def *squares_of = cvy_op_find(names[0]), *rate_of = cvy_op_find(names[1]);
    CVY_CHECK(squares_of && rate_of, CVY_E_INTERNAL, "the operator %s or %s is missing", names[0], names[1]);
    cvy_value *squares = NULL;
    CVY_TRY(add_named(g, squares_of, v, "", options, src, 5, &squares));
    CVY_TRY(add_named(g, cvy_op_find("allreduce"), v, ".squares", &axis, &squares, 1, &squares));
    cvy_value *const both[] = {squares, *lr};
    return add_named(g, rate_of, v, "", options, both, 2, lr);
}

/* Replaces the gradient of a variable, and its scale, by what clipping by value and the L1 norm make of them. */
static cvy_status change_gradient(cvy_graph *g, const cvy_optimise_opts *opts, const cvy_variable *v, cvy_value *weight,
                                  cvy_value **gradient, cvy_value **scale)
{
    char name[160], options[48];
    if (opts->clip_value > 0) {
        snprintf(name, sizeof name, "%s.clip", v->name);
        snprintf(options, sizeof options, "limit: %.17g", opts->clip_value);
        CVY_TRY(add_update(g, "clip_value", name, options, gradient, 1, gradient));
    }
    if (!(opts->l1 * v->decay_mult > 0) || !v->decay)
        return CVY_OK;
    cvy_value *const src[] = {*gradient, weight, *scale};
    snprintf(name, sizeof name, "%s.l1", v->name);
    snprintf(options, sizeof options, "by: %.17g", opts->l1 * v->decay_mult);
    CVY_TRY(add_update(g, "l1_gradient", name, options, src, 3, gradient));
    snprintf(name, sizeof name, "%s.l1.one", v->name);
    return add_update(g, "fill", name, "value: 1, dtype: f64", NULL, 0, scale);
}

cvy_status cvy_pass_optimise(cvy_graph *g, const cvy_gradients *gradients, const cvy_optimise_opts *opts)
{
    const cvy_op_def *op = cvy_op_find(opts->op);
    CVY_CHECK(op && (op->flags & (CVY_OP_OPTIMIZER | CVY_OP_PRODUCT)) == CVY_OP_OPTIMIZER, CVY_E_CONFIG,
              "there is no optimizer '%s'", opts->op);
    cvy_value *lr = NULL, *step = NULL, *scale = NULL;
    CVY_TRY(cvy_graph_feed(g, "(lr)", CVY_DTYPE_F64, &(cvy_shape){0}, 1, &lr));
    CVY_TRY(cvy_graph_step_number(g, &step));
    if (opts->clip_norm > 0)
        CVY_TRY(add_clip_norm(g, gradients, opts, &scale));
    else
        CVY_TRY(add_update(g, "fill", "update.one", "value: 1, dtype: f64", NULL, 0, &scale));
    for (int i = 0; i < gradients->count; i++) {
        const cvy_variable *v = gradients->at[i].variable;
        cvy_value *weight = NULL, *value = gradients->at[i].value, *own_scale = scale;
        void *options = NULL;
        char name[160];
        cvy_node *node = NULL;
        CVY_TRY(cvy_graph_read_variable(g, gradients->at[i].variable, &weight));
        CVY_TRY(change_gradient(g, opts, v, weight, &value, &own_scale));
        CVY_TRY(update_options(g, op, opts, v, &options));
        snprintf(name, sizeof name, "%s.%s", v->name, op->name);
        cvy_value *src[] = {weight, value, lr, own_scale, step};
        if (op->flags & CVY_OP_LAYER_NORMS && v->decay && has_parts(v))
            CVY_TRY(add_rate(g, op, v, options, src, &src[2]));
        CVY_TRY(cvy_graph_add_parsed(g, op, name, v->name, options, src, 5, CVY_PHASE_UPDATE, &node));
    }
    return cvy_graph_verify(g);
}

static cvy_status run(cvy_pass_run *r)
{
    if (!r->optimise)
        return CVY_OK;
    cvy_optimise_opts opts = *r->optimise;
    opts.over = (r->stages ? CVY_AXIS_BIT(CVY_AXIS_PIPELINE) : 0) | r->split_over;
    return cvy_pass_optimise(r->graph, &r->gradients, &opts);
}

CVY_PASS_DEFINE(optimise) = {
    .name = "optimise", .help = "adds an update node for each gradient", .order = 30, .training = 1, .run = run};
