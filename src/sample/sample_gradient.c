/*
 * sample_gradient.c: compares the gradients of a sample with finite differences.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sample/sample_gradient.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

enum { DIFFERENCED_MAX = 48 };
static const double step = 2e-5; /* of the finite differences: truncation about 1e-10, cancellation about 1e-11 */

static void complain(const cvy_sample_graph *b, cvy_sample_report *report, const char *what)
{
    report->wrong++;
    report->complain(report->user, b, what);
}

static cvy_status loss_at(cvy_sample_graph *b, cvy_span *x, int64_t i, double value, double *loss_out)
{
    cvy_set(x, i, value);
    for (int n = 0; n < b->graph->nnode && n <= b->loss->producer->index; n++)
        if (b->graph->node[n]->phase != CVY_PHASE_UPDATE)
            CVY_TRY(cvy_eval_node(&b->e, b->graph->node[n]));
    *loss_out = cvy_get(cvy_eval_of(&b->e, b->loss), 0);
    return CVY_OK;
}

/* The largest magnitude among the elements. */
static double largest(const cvy_span *x)
{
    double most = 0;
    for (int64_t i = 0; i < x->elems; i++)
        most = fmax(most, fabs(cvy_get(x, i)));
    return most;
}

static cvy_status check_gradient(cvy_sample_graph *b, const cvy_gradient *gradient, cvy_sample_report *report)
{
    cvy_value *value = NULL;
    CVY_TRY(cvy_graph_read_variable(b->graph, gradient->variable, &value));
    cvy_span *x = cvy_eval_of(&b->e, value), *d = cvy_eval_of(&b->e, gradient->value);
    const int is_given = b->sample->values != NULL; /* of any size; random ones are not above 1 */
    const double width = is_given ? largest(x) : 0, scale = fmax(is_given ? 0 : 1, largest(d));
    const int64_t count = CVY_MIN(x->elems, DIFFERENCED_MAX);
    for (int64_t k = 0; k < count; k++) {
        const int64_t i = k * x->elems / count;
        const double at = cvy_get(x, i), h = step * (width > 0 ? fmax(fabs(at), width / 1000) : 1);
        double above = 0, below = 0;
        CVY_TRY(loss_at(b, x, i, at + h, &above));
        CVY_TRY(loss_at(b, x, i, at - h, &below));
        const double numeric = (above - below) / (2 * h), exact = cvy_get(d, i),
                     rounding = is_given ? 8 * DBL_EPSILON * (fabs(above) + fabs(below)) / h : 0;
        cvy_set(x, i, at);
        report->checks++;
        if (!(fabs(numeric - exact) <= 1e-7 * scale + rounding)) {
            char text[200];
            snprintf(text, sizeof text, "gradient of %s, element %lld, is %.10g, finite differences give %.10g",
                     gradient->variable->name, (long long)i, exact, numeric);
            complain(b, report, text);
            return CVY_OK;
        }
    }
    return CVY_OK;
}

/* Of the sources of a loss, only the output has a gradient. */
static void check_complete(const cvy_sample_graph *b, cvy_sample_report *report)
{
    for (int v = 0; v < b->vars->count; v++) {
        const cvy_variable *variable = b->vars->at[v];
        int found = variable->role != CVY_ROLE_WEIGHT;
        for (int i = 0; i < b->gradients.count; i++)
            found |= b->gradients.at[i].variable == variable;
        if (!found && !((b->op->flags & CVY_OP_LOSS) && variable != b->src[0]->variable)) {
            char text[200];
            snprintf(text, sizeof text, "%s has no gradient", variable->name);
            complain(b, report, text);
        }
    }
}

cvy_status cvy_sample_check_gradients(cvy_sample_graph *b, cvy_sample_report *report)
{
    if (b->gradients.count)
        check_complete(b, report);
    for (int i = 0; i < b->gradients.count && b->dtype == CVY_DTYPE_F64 && !(b->sample->flags & CVY_SAMPLE_TIES); i++)
        CVY_TRY(check_gradient(b, &b->gradients.at[i], report));
    return CVY_OK;
}
