/*
 * sample_graph.c: builds one sample of an operator as a graph with values and gradients.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sample/sample_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes source i. "2x3" is a real tensor of the graph's dtype; it becomes a variable, so that it gets a gradient.
 * "2:i32" is a feed. */
static cvy_status make_source(cvy_sample_graph *b, const char *text, int i)
{
    char shape_text[64], name[16];
    const char *colon = strchr(text, ':');
    cvy_dtype dtype = b->dtype;
    cvy_shape shape;
    snprintf(shape_text, sizeof shape_text, "%.*s", colon ? (int)(colon - text) : (int)strlen(text), text);
    snprintf(name, sizeof name, "src%d", i);
    CVY_TRY(cvy_shape_parse(shape_text, &shape));
    if (colon)
        CVY_TRY(cvy_dtype_parse(colon + 1, &dtype));
    b->is_fixed[i] = colon != NULL;
    if (colon)
        return cvy_graph_feed(b->graph, name, dtype, &shape, 1, &b->src[i]);
    cvy_variable *v = NULL;
    const cvy_init init = {"constant", "value: 0", 1, 1};
    CVY_TRY(cvy_vars_declare(b->vars, name, CVY_ROLE_WEIGHT, dtype, &shape, &init, &v));
    return cvy_graph_read_variable(b->graph, v, &b->src[i]);
}

int64_t cvy_sample_count(const char *src)
{
    for (const char *at = src; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (*at >= '0' && *at <= '9')
            return strtoll(at, NULL, 10);
    return 1;
}

static cvy_status add_loss(cvy_sample_graph *b, cvy_value *dst)
{
    if (b->op->flags & CVY_OP_LOSS) {
        b->loss = dst;
        return CVY_OK;
    }
    cvy_value *from[2] = {dst, NULL};
    cvy_node *node = NULL;
    CVY_TRY(cvy_graph_feed(b->graph, "weights", dst->dtype, &dst->shape, 1, &from[1]));
    CVY_TRY(
        cvy_graph_add_parsed(b->graph, &cvy_weighted_sum_op, "loss", "loss", NULL, from, 2, CVY_PHASE_MICRO, &node));
    b->loss = node->dst[0];
    return CVY_OK;
}

static int differentiable(const cvy_sample_graph *b)
{
    const int composite = b->op->build && !b->op->infer;
    return b->graph->training && (b->op->grad || composite) && !(b->sample->flags & CVY_SAMPLE_NO_GRAD);
}

static void fill_values(cvy_sample_graph *b)
{
    uint64_t state = 12345;
    const double low = b->sample->flags & CVY_SAMPLE_POSITIVE ? 0.1 : -1;
    const int64_t bound = b->sample->int_bound ? b->sample->int_bound : 2;
    for (int i = 0; i < b->graph->nvalue; i++) {
        const cvy_value *v = b->graph->value[i];
        if (v->producer)
            continue;
        const int variance = v->kind == CVY_VALUE_VARIABLE &&
                             v->variable->role != CVY_ROLE_WEIGHT; /* also states that must not be negative */
        cvy_sample_fill(&b->e.at[i], variance ? 0.1 : low, bound, &state);
        for (int64_t k = 0; (b->op->flags & CVY_OP_INDICES) && v == b->src[0] && k < b->e.at[i].elems; k++)
            cvy_set(&b->e.at[i], k,
                    floor(fabs(cvy_get(&b->e.at[i], k)) * (cvy_dtype_is_real(v->dtype) ? (double)bound : 1)));
        for (int64_t k = 0; (b->sample->flags & CVY_SAMPLE_TIES) && cvy_dtype_is_real(v->dtype) && k < b->e.at[i].elems;
             k++)
            cvy_set(&b->e.at[i], k, k == b->e.at[i].elems / 3 ? NAN : round(4 * cvy_get(&b->e.at[i], k)) / 4);
        /* Kernels read weights rounded to bf16, so the reference kernel must get the same rounded values. */
        for (int64_t k = 0; b->dtype == CVY_DTYPE_BF16 && v->dtype == CVY_DTYPE_F32 && k < b->e.at[i].elems; k++)
            cvy_set(&b->e.at[i], k, cvy_bf16_get(cvy_bf16_of((float)cvy_get(&b->e.at[i], k))));
    }
    for (int i = 0; b->sample->values && i < b->nsrc; i++) {
        const cvy_span *x = cvy_eval_of(&b->e, b->src[i]);
        for (int64_t k = 0; b->sample->values[i] && k < x->elems; k++)
            cvy_set(x, k, b->sample->values[i][k]);
    }
}

cvy_status cvy_sample_open_part(const cvy_op_def *op, const cvy_sample *sample, cvy_batch batch, cvy_dtype dtype,
                                int training, cvy_sample_graph *b)
{
    *b = (cvy_sample_graph){.op = op, .sample = sample, .dtype = dtype};
    const cvy_graph_opts opts = {
        .name = op->name, .batch = batch, .training = training, .dtype = dtype, .bn_group = 4, .seed = 7};
    CVY_TRY(cvy_vars_create(&b->vars));
    CVY_TRY(cvy_graph_create(b->vars, &opts, &b->graph));
    for (const char *at = sample->src; at && *at; b->nsrc++) {
        char text[64];
        const size_t length = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        CVY_TRY(make_source(b, text, b->nsrc));
        at += length + (at[length] == ',');
    }
    cvy_value *dst = NULL;
    if (op->infer) {
        cvy_node *node = NULL;
        CVY_TRY(cvy_graph_add_op(b->graph, op, "layer", "layer", sample->options, b->src, b->nsrc, &node));
        dst = node->dst[0];
    } else {
        cvy_tree *options = NULL;
        CVY_TRY(cvy_sample_options(b->graph->pool, sample->options, &options));
        CVY_TRY(cvy_graph_layer_op(b->graph, op, "layer", options, b->src, b->nsrc, &dst));
    }
    if (differentiable(b) && cvy_dtype_is_real(dst->dtype)) {
        CVY_TRY(add_loss(b, dst));
        CVY_TRY(cvy_pass_autodiff(b->graph, &b->loss, 1, NULL, NULL, &b->gradients));
    }
    CVY_TRY(cvy_eval_create(b->graph, &b->e));
    fill_values(b);
    return cvy_eval_run(&b->e, 1);
}

cvy_status cvy_sample_open(const cvy_op_def *op, const cvy_sample *sample, cvy_dtype dtype, int training,
                           cvy_sample_graph *b)
{
    return cvy_sample_open_part(op, sample, cvy_batch_share(cvy_sample_count(sample->src), 0, 1), dtype, training, b);
}

void cvy_sample_close(cvy_sample_graph *b)
{
    cvy_eval_destroy(&b->e);
    cvy_graph_destroy(&b->graph);
    cvy_vars_destroy(&b->vars);
}
