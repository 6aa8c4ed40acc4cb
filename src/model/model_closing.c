/*
 * model_closing.c: the function that closes a network: see model_closing.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/model_closing.h"

#include <string.h>

#include "context/context.h"
#include "graph/graph.h"
#include "op/pointwise/op_softmax.h"
#include "op/tensor/op_transpose.h"

/* ---- the walk from the output to the function ---- */

static int is_one_of(const cvy_layer *layer, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(layer->op->name, names[i]) == 0)
            return 1;
    return 0;
}

static int only_moves(const cvy_layer *layer)
{
    static const char *const names[] = {"flatten", "reshape", "transpose", "crop", "slice", NULL};
    return is_one_of(layer, names);
}

/* What leaves probabilities as they are, or limits them to numbers of which the logarithm is finite. */
static int keeps_probabilities(const cvy_layer *layer)
{
    static const char *const names[] = {"relu", "abs", NULL};
    enum { AT = 10000 }; /* of the range of a probability, a clamp may cut off one part of so many at each end */
    if (strcmp(layer->op->name, "clamp") != 0)
        return is_one_of(layer, names);
    const double min = layer->options ? cvy_tree_real_at(layer->options, "min") : -1,
                 max = layer->options ? cvy_tree_real_at(layer->options, "max") : 2;
    return !(min > 1.0 / AT) && !(max < 1 - 1.0 / AT); /* NaN: there is none */
}

/* What a copy of the way from the function to the output leaves out. */
static int is_left_out(const cvy_layer *layer)
{
    static const char *const names[] = {"dropout", "log", "exp", NULL};
    return is_one_of(layer, names) || keeps_probabilities(layer);
}

static cvy_closing_kind kind_of(const cvy_layer *layer)
{
    return strcmp(layer->op->name, "softmax") == 0       ? CVY_CLOSED_BY_SOFTMAX
           : strcmp(layer->op->name, "log_softmax") == 0 ? CVY_CLOSED_BY_LOG_SOFTMAX
           : strcmp(layer->op->name, "sigmoid") == 0     ? CVY_CLOSED_BY_SIGMOID
                                                         : CVY_CLOSED_BY_NOTHING;
}

/* What log or exp make of the result of the function: the first of them decides, and a second one makes new numbers. */
static cvy_closing_kind followed_by(cvy_closing_kind kind, int logs, int exps)
{
    if (logs + exps == 0)
        return kind;
    if (logs == 1 && exps == 0 && kind == CVY_CLOSED_BY_SOFTMAX)
        return CVY_CLOSED_BY_LOG_SOFTMAX;
    if (exps == 1 && logs == 0 && kind == CVY_CLOSED_BY_LOG_SOFTMAX)
        return CVY_CLOSED_BY_SOFTMAX;
    return CVY_CLOSED_BY_NOTHING;
}

/* Finds the function and the layers after it; what they do to the axis comes later. */
static cvy_closing walk(const cvy_model *m, const char *output)
{
    cvy_closing c = {.at = cvy_index_find(&m->layer_at, output)};
    int logs = 0, exps = 0, kept_at = -1; /* how many of both come after the last layer that keeps probabilities */
    while (c.at >= 0 && (only_moves(&m->layer[c.at]) || is_left_out(&m->layer[c.at]))) {
        const cvy_layer *layer = &m->layer[c.at];
        logs += strcmp(layer->op->name, "log") == 0;
        exps += strcmp(layer->op->name, "exp") == 0;
        if (kept_at < 0 && keeps_probabilities(layer))
            kept_at = logs + exps;
        if (c.nmoved == CVY_CLOSING_MOVES)
            return (cvy_closing){0};
        c.moved[c.nmoved++] = c.at;
        c.at = cvy_index_find(&m->layer_at, layer->from[0]);
    }
    if (c.at < 0)
        return (cvy_closing){0};
    c.kind = kind_of(&m->layer[c.at]);
    if (kept_at >= 0 && (kept_at != logs + exps || c.kind == CVY_CLOSED_BY_LOG_SOFTMAX)) /* these were logarithms */
        return (cvy_closing){0};
    c.kind = followed_by(c.kind, logs, exps);
    c.layer = m->layer[c.at].output;
    return c;
}

/* ---- the axis of the classes ---- */

static int64_t product(const cvy_shape *s, int first, int end)
{
    int64_t n = 1;
    for (int d = first; d < end; d++)
        n *= s->dim[d];
    return n;
}

/* The axis of the result that has the numbers of this axis of the source, with as many before it in a sample; or 0. */
static int find_axis(const cvy_shape *src, int axis, const cvy_shape *dst)
{
    const int64_t before = product(src, 1, axis);
    for (int d = 1; d < dst->ndim; d++)
        if (dst->dim[d] == src->dim[axis] && product(dst, 1, d) == before)
            return d;
    return 0;
}

static int follow(const cvy_layer *layer, const cvy_value *src, const cvy_value *dst, int axis)
{
    const char *op = layer->op->name;
    if (strcmp(op, "transpose") == 0 && dst->producer) {
        const cvy_transpose_opts *o = dst->producer->options;
        for (int k = 0; k < o->order.count; k++)
            if (o->order.at[k] == axis)
                return k + 1;
        return 0;
    }
    if (strcmp(op, "flatten") == 0 || strcmp(op, "reshape") == 0)
        return find_axis(&src->shape, axis, &dst->shape);
    return dst->shape.dim[axis] == src->shape.dim[axis] ? axis : 0; /* crop and slice may have cut classes off */
}

static cvy_status find_shapes(const cvy_model *m, cvy_closing *c)
{
    const cvy_graph_opts opts = {.name = "closing",
                                 .batch = cvy_batch_share(1, 0, 1),
                                 .training = m->layer[c->at].training_only,
                                 .dtype = CVY_DTYPE_F32};
    const char *wanted[CVY_CLOSING_MOVES + 1] = {m->layer[c->at].output};
    cvy_value *value[CVY_CLOSING_MOVES + 1];
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    cvy_status status = CVY_OK;
    for (int i = 0; i < c->nmoved; i++)
        wanted[i + 1] = m->layer[c->moved[c->nmoved - 1 - i]].output;
    CVY_TRY_OUT(cvy_vars_create(&vars));
    CVY_TRY_OUT(cvy_model_instantiate(m, vars, &opts, wanted, c->nmoved + 1, value, &g));
    if (c->kind != CVY_CLOSED_BY_SIGMOID)
        c->axis = (int)((const cvy_softmax_opts *)value[0]->producer->options)->axis;
    for (int i = 0; i < c->nmoved && c->axis > 0; i++)
        c->axis = follow(&m->layer[c->moved[c->nmoved - 1 - i]], value[i], value[i + 1], c->axis);
    const cvy_shape *whole = &value[c->nmoved]->shape;
    c->shape = cvy_shape_make(whole->ndim - 1, whole->dim + 1);
out:
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
    return status;
}

cvy_status cvy_model_closing(const cvy_model *m, const char *output, cvy_closing *out)
{
    *out = walk(m, output);
    return out->kind == CVY_CLOSED_BY_NOTHING ? CVY_OK : find_shapes(m, out);
}

/* ---- losses ---- */

cvy_closing_kind cvy_loss_applies(const cvy_op_def *loss)
{
    static const struct {
        const char *loss;
        cvy_closing_kind kind;
    } known[] = {{"softmax_cross_entropy", CVY_CLOSED_BY_SOFTMAX},
                 {"focal", CVY_CLOSED_BY_SOFTMAX},
                 {"dice", CVY_CLOSED_BY_SOFTMAX},
                 {"bce", CVY_CLOSED_BY_SIGMOID}};
    for (int i = 0; loss && i < CVY_COUNT(known); i++)
        if (strcmp(loss->name, known[i].loss) == 0)
            return known[i].kind;
    return CVY_CLOSED_BY_NOTHING;
}

/* Whether it divides numbers by their sum, as a softmax that is written as exp and a division does. */
static int makes_shares(const cvy_model *m, const cvy_layer *layer)
{
    static const char *const between[] = {"expand", "reshape", "offset", "clamp", NULL};
    if (strcmp(layer->op->name, "divide") != 0 || layer->nfrom != 2)
        return 0;
    int at = cvy_index_find(&m->layer_at, layer->from[1]);
    for (int steps = 0; at >= 0 && steps < CVY_CLOSING_MOVES && is_one_of(&m->layer[at], between); steps++)
        at = cvy_index_find(&m->layer_at, m->layer[at].from[0]);
    if (at < 0 || strcmp(m->layer[at].op->name, "reduction") != 0)
        return 0;
    const char *method = m->layer[at].options ? cvy_tree_text_at(m->layer[at].options, "method") : NULL;
    return method && strcmp(method, "sum") == 0 && strcmp(m->layer[at].from[0], layer->from[0]) == 0;
}

/* The layer of whose probabilities alone the output is made, by layers without weights, such as the sum of two
 * softmaxes; -1: there is none. */
static int made_of(const cvy_model *m, const char *output, int depth)
{
    static const char *const names[] = {"scale",   "offset",   "clamp",    "power",           "square", "sqrt", "add",
                                        "mix",     "maximum",  "multiply", "concat",          "mean",   "relu", "abs",
                                        "dropout", "avg_pool", "max_pool", "global_avg_pool", NULL};
    const int at = cvy_index_find(&m->layer_at, output);
    if (at < 0 || depth > CVY_CLOSING_MOVES)
        return -1;
    const cvy_layer *layer = &m->layer[at];
    const cvy_closing_kind kind = kind_of(layer);
    if (kind == CVY_CLOSED_BY_SOFTMAX || kind == CVY_CLOSED_BY_SIGMOID ||
        strcmp(layer->op->name, "hard_sigmoid") == 0 || makes_shares(m, layer))
        return at;
    int from = -1;
    for (int i = 0; i < layer->nfrom && (is_one_of(layer, names) || only_moves(layer)); i++) {
        from = made_of(m, layer->from[i], depth + 1);
        if (from < 0)
            return -1;
    }
    return from;
}

cvy_status cvy_model_warn_of_losses(const cvy_model *m, const cvy_context *context)
{
    for (int i = 0; i < m->nlayer; i++) {
        const cvy_layer *loss = &m->layer[i];
        cvy_closing c = {0};
        int at = -1;
        if (!(loss->op->flags & CVY_OP_LOSS) || loss->nfrom == 0 || cvy_loss_applies(loss->op) == CVY_CLOSED_BY_NOTHING)
            continue;
        CVY_TRY(cvy_model_closing(m, loss->from[0], &c));
        if (c.kind == CVY_CLOSED_BY_SOFTMAX || c.kind == CVY_CLOSED_BY_SIGMOID)
            at = c.at;
        else if (c.kind == CVY_CLOSED_BY_NOTHING)
            at = made_of(m, loss->from[0], 0);
        if (at < 0)
            continue;
        const int is_division = makes_shares(m, &m->layer[at]);
        cvy_log(context, CVY_LOG_WARN,
                "model %s: the loss %s (%s) applies %s to %s, whose numbers the %s '%s' has made already: %s", m->name,
                loss->output, loss->op->name,
                cvy_loss_applies(loss->op) == CVY_CLOSED_BY_SIGMOID ? "sigmoid" : "softmax", loss->from[0],
                is_division ? "division by their sum" : m->layer[at].op->name, m->layer[at].output,
                is_division ? "end the network with softmax, or add `log`, of which softmax gives the same again"
                            : "let it read what that layer reads");
    }
    return CVY_OK;
}

/* ---- the numbers before the function ---- */

/* Adds the copy of a layer with another source, or finds the one that was made before. */
static cvy_status copy_layer(cvy_model *m, int at, const char **from)
{
    const cvy_layer of = m->layer[at]; /* the array may move */
    char *name = NULL, *source[] = {(char *)(uintptr_t)*from};
    CVY_TRY(cvy_pool_printf(m->pool, &name, "%s_logits", of.output));
    for (int again = 2; cvy_model_knows(m, name); again++) {
        const int known = cvy_index_find(&m->layer_at, name);
        if (known >= 0 && m->layer[known].op == of.op && strcmp(m->layer[known].from[0], *from) == 0) {
            *from = m->layer[known].output;
            return CVY_OK;
        }
        CVY_TRY(cvy_pool_printf(m->pool, &name, "%s_logits%d", of.output, again));
    }
    CVY_TRY(cvy_model_add_tree(m, of.op, name, of.options, NULL, source, 1));
    m->layer[m->nlayer - 1].stage = of.stage;
    *from = m->layer[m->nlayer - 1].output;
    return CVY_OK;
}

cvy_status cvy_model_before_closing(cvy_model *m, const cvy_closing *c, const char **out)
{
    const char *from = m->layer[c->at].from[0];
    if (!m->output) /* which is the last layer, before the copies */
        CVY_TRY(cvy_pool_strdup(m->pool, cvy_model_output(m), &m->output));
    for (int i = c->nmoved - 1; i >= 0; i--)
        if (!is_left_out(&m->layer[c->moved[i]]))
            CVY_TRY(copy_layer(m, c->moved[i], &from));
    *out = from;
    return CVY_OK;
}
