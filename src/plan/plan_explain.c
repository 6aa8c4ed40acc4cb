/*
 * plan_explain.c: lists for each node of a lowered graph the kernels that could run it, their times, and why others
 * cannot: `convoy plan --explain`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "plan/plan_call.h"
#include "plan/plan_offers.h"
#include "plan/plan_tune.h"

struct explanation {
    const cvy_lowered *lowered;
    const cvy_plan_opts *opts;
    const cvy_wisdom *wisdom; /* NULL: no times */
    cvy_text text;
};

static double known_ms(const struct explanation *e, const cvy_call *call, const cvy_offer *offer)
{
    cvy_text key = {0};
    double ms = offer->ms;
    if (ms >= 0 || !e->wisdom)
        return ms;
    cvy_offer_key(e->lowered->offers, call->signature, call->node, offer, &key);
    if (key.status == CVY_OK)
        ms = cvy_wisdom_find(e->wisdom, key.data);
    cvy_text_free(&key);
    return ms;
}

static double reorder_ms(const struct explanation *e, const cvy_call *call)
{
    cvy_text key = {0};
    double ms = CVY_MS_UNKNOWN;
    cvy_reorder_key(&e->lowered->instance[call->src[0]], &e->lowered->instance[call->dst[0]], e->opts->threads, &key);
    if (e->wisdom && key.status == CVY_OK)
        ms = cvy_wisdom_find(e->wisdom, key.data);
    cvy_text_free(&key);
    return ms;
}

static void add_ms(cvy_text *t, double ms)
{
    if (ms < 0)
        cvy_text_add(t, "%12s", "-");
    else if (ms == (double)INFINITY)
        cvy_text_add(t, "%12s", "failed");
    else
        cvy_text_add(t, "%9.3f ms", ms);
}

static const char *layout_text(const cvy_layout *layout)
{
    return layout->tag[0] ? layout->tag : "plain";
}

/* "aBcd16b, ABcd16b16a > aBcd16b". */
static void add_layouts(cvy_text *t, const cvy_node *node, const cvy_kernel_ask *ask)
{
    int first = 1;
    for (int i = 0; i < node->nsrc; i++, first = 0)
        cvy_text_add(t, "%s%s", first ? "" : ", ", layout_text(&ask->src[i]));
    cvy_text_add(t, " >");
    first = 1;
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i]) {
            cvy_text_add(t, "%s %s", first ? "" : ",", layout_text(&ask->dst[i]));
            first = 0;
        }
}

/* Adds the first line of a reason. */
static void add_reason(cvy_text *t, const char *reason)
{
    cvy_text_add(t, "%.*s", (int)strcspn(reason, "\n"), reason);
}

static cvy_status add_candidate(struct explanation *e, const cvy_call *call, const cvy_kernel_def *kernel)
{
    cvy_kernel_ask in = call->offer->in;
    cvy_offer *offer = NULL;
    in.node = call->node;
    CVY_TRY(cvy_offers_ask(e->lowered->offers, call->signature, kernel, &in, &offer));
    const int taken = offer == call->offer;
    cvy_text_add(&e->text, "  %s %-34s", taken ? "*" : " ", kernel->name);
    add_ms(&e->text, offer->status == CVY_OK ? known_ms(e, call, offer) : CVY_MS_UNKNOWN);
    cvy_text_add(&e->text, "  ");
    if (offer->status != CVY_OK)
        add_reason(&e->text, offer->reason);
    else
        add_layouts(&e->text, call->node, &offer->out);
    cvy_text_add(&e->text, "\n");
    return CVY_OK;
}

static cvy_status add_call(struct explanation *e, const cvy_call *call)
{
    const cvy_node *node = call->node;
    cvy_text_add(&e->text, "%s: %s", node->name, node->op->name);
    for (int i = 0; i < node->nsrc; i++)
        cvy_text_add(&e->text, "%s %s", i ? "," : "", cvy_shape_text(&node->src[i]->shape));
    cvy_text_add(&e->text, " > %s\n", node->dst[0] ? cvy_shape_text(&node->dst[0]->shape) : "");
    for (const cvy_kernel_def *k = NULL; (k = cvy_kernel_next(node->op->name, k, &e->opts->kernels)) != NULL;)
        CVY_TRY(add_candidate(e, call, k));
    CVY_TRY(add_candidate(e, call, &cvy_kernel_plain));
    if (cvy_call_is_staged(call))
        cvy_text_add(&e->text, "    staged: the host computes it, on copies of its tensors\n");
    return CVY_OK;
}

/* For a concat whose sources are views of it, or a slice that is a view of its source. */
static void add_view(struct explanation *e, const cvy_call *call)
{
    cvy_text_add(&e->text, "%s: %s\n  * %-34s%12s  nothing is copied: the parts are already in place\n",
                 call->node->name, call->node->op->name, "(view)", "-");
}

static void add_reorder(struct explanation *e, const cvy_call *call)
{
    const cvy_instance *from = &e->lowered->instance[call->src[0]], *to = &e->lowered->instance[call->dst[0]];
    cvy_text_add(&e->text, "%s: reorder %s\n  * %-34s", from->value->name, cvy_shape_text(&from->value->shape),
                 "reorder");
    add_ms(&e->text, reorder_ms(e, call));
    cvy_text_add(&e->text, "  %s > %s\n", layout_text(&from->layout), layout_text(&to->layout));
}

static cvy_status explain(struct explanation *e)
{
    cvy_text_add(&e->text,
                 "candidates of each node, in the order of preference; * is taken\n"
                 "  %-36s%12s  layouts that it reads and writes, or why it does not apply\n",
                 "kernel", "time");
    for (int i = 0; i < e->lowered->ncall; i++) {
        const cvy_call *call = &e->lowered->call[i];
        if (cvy_call_reorders(call))
            add_reorder(e, call);
        else if (call->offer && cvy_call_is_view(call))
            add_view(e, call);
        else if (call->offer)
            CVY_TRY(add_call(e, call));
    }
    return e->text.status;
}

cvy_status cvy_plan_explain(const cvy_lowered *lowered, const cvy_plan_opts *opts, const cvy_wisdom *wisdom,
                            char **text_out)
{
    struct explanation e = {.lowered = lowered, .opts = opts, .wisdom = wisdom};
    const cvy_status status = explain(&e);
    if (status != CVY_OK)
        cvy_text_free(&e.text);
    else
        *text_out = e.text.data;
    return status;
}
