/*
 * onnx_several.c: Sum, Mean, Max and Min of any number of tensors, and joined tensors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

/* The sources that depend on the input, and the number of constants. */
struct sources {
    const char *from[CVY_ONNX_SOURCES];
    int n, constants;
};

static cvy_status sort_sources(const cvy_onnx_node *node, struct sources *out)
{
    const cvy_onnx_value *first = NULL;
    *out = (struct sources){.n = 0};
    for (int i = 0; i < node->nin; i++) {
        const cvy_onnx_value *v = cvy_onnx_source(node, i);
        CVY_ONNX_CHECK(v, node, "source %d is left out", i);
        out->constants += v->constant != NULL;
        if (v->constant)
            continue;
        first = first ? first : v;
        CVY_TRY(cvy_onnx_aligned(node, first, v));
        out->from[out->n++] = v->layer;
    }
    CVY_ONNX_CHECK(out->n > 0, node, "%s", "it has no source that depends on the input");
    return CVY_OK;
}

/* The number that a constant source is. */
static cvy_status number_of(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *t, double *out)
{
    CVY_ONNX_CHECK(cvy_onnx_is_uniform(t, out) && t->elems == 1 && t->shape.ndim <= cvy_onnx_shape(node->x, from)->ndim,
                   node, "a constant of shape %s; only one number is supported", cvy_shape_text(&t->shape));
    return CVY_OK;
}

static cvy_status translate_sums(const cvy_onnx_node *node)
{
    struct sources src;
    const char *output = NULL;
    double all = 0, one = 0;
    CVY_TRY(sort_sources(node, &src));
    CVY_TRY(cvy_onnx_join(node, "add", NULL, src.from, src.n, &output));
    for (int i = 0; i < node->nin; i++)
        if (node->in[i]->constant) {
            CVY_TRY(number_of(node, output, node->in[i]->constant, &one));
            all += one;
        }
    if (all != 0)
        CVY_TRY(cvy_onnx_step_real(node, "offset", "by", all, output, &output));
    if (strcmp(node->op, "Mean") == 0 && node->nin > 1)
        CVY_TRY(cvy_onnx_step_real(node, "scale", "by", 1.0 / node->nin, output, &output));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(sum) = {"Sum", .translate = translate_sums};
CVY_ONNX_DEFINE(mean) = {"Mean", .translate = translate_sums};

/* The least of sources is the largest of the negative ones, with its sign changed. A number is a bound. */
static cvy_status translate_extremes(const cvy_onnx_node *node)
{
    const int is_max = strcmp(node->op, "Max") == 0;
    struct sources src;
    const char *output = NULL;
    CVY_TRY(sort_sources(node, &src));
    for (int i = 0; i < src.n && !is_max && src.n > 1; i++)
        CVY_TRY(cvy_onnx_step_real(node, "scale", "by", -1, src.from[i], &src.from[i]));
    CVY_TRY(cvy_onnx_join(node, "maximum", NULL, src.from, src.n, &output));
    if (!is_max && src.n > 1)
        CVY_TRY(cvy_onnx_step_real(node, "scale", "by", -1, output, &output));
    for (int i = 0; i < node->nin; i++)
        if (node->in[i]->constant) {
            double bound = 0;
            CVY_TRY(number_of(node, output, node->in[i]->constant, &bound));
            CVY_ONNX_CHECK(fabs(bound) < 1e38, node, "a bound of %g", bound);
            CVY_TRY(cvy_onnx_step_real(node, "clamp", is_max ? "min" : "max", bound, output, &output));
        }
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(max) = {"Max", .translate = translate_extremes};
CVY_ONNX_DEFINE(min) = {"Min", .translate = translate_extremes};

static cvy_status translate_concat(const cvy_onnx_node *node)
{
    const cvy_onnx_value *first = NULL;
    const char *from[CVY_ONNX_SOURCES], *output = NULL;
    char *options = NULL;
    int axis = 0;
    for (int i = 0; i < node->nin; i++) {
        const cvy_onnx_value *v = cvy_onnx_source(node, i);
        CVY_ONNX_CHECK(v, node, "source %d is left out", i);
        if (!first && v->layer)
            first = v;
    }
    CVY_ONNX_CHECK(first, node, "%s", "it has no source that depends on the input");
    CVY_TRY(cvy_onnx_axis(node, cvy_onnx_int(node, "axis", 1), first->shape.ndim, &axis));
    for (int i = 0; i < node->nin; i++) {
        const cvy_onnx_value *v = node->in[i];
        const int ndim = v->constant ? v->constant->shape.ndim : v->shape.ndim;
        CVY_ONNX_CHECK(ndim == first->shape.ndim, node, "sources of %d and %d axes", first->shape.ndim, ndim);
        from[i] = v->layer;
        CVY_ONNX_CHECK(
            !v->constant || (node->source.at == 0 && cvy_onnx_batch_dim(&node->source) == 1), node,
            "a constant of shape %s beside a source that has the samples on axis %d, or merged with others, is "
            "not supported",
            cvy_shape_text(&v->constant->shape), node->source.at);
        if (v->constant)
            CVY_TRY(cvy_onnx_repeat_constant(node, v->constant, &from[i]));
    }
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: %d", axis));
    CVY_TRY(cvy_onnx_join(node, "concat", axis == 1 ? NULL : options, from, node->nin, &output));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(concat) = {"Concat", .attributes = "axis", .translate = translate_concat};
