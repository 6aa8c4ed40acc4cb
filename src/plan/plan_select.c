/*
 * plan_select.c: chooses a kernel for each node of a graph, and the layouts of each value.
 *
 * It runs before the first step and walks the graph once, in order. A node gets the kernel that was chosen for it (by a
 * plan file or plan_tune.c). If none was chosen, or it declines, the node gets the first kernel in the order of
 * preference that makes an offer. If a kernel wants a source in another layout, a reorder is put before it. All nodes
 * that want the same layout share one reorder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "plan/plan_call.h"
#include "plan/plan_offers.h"

cvy_dtype cvy_plan_outside_dtype(cvy_dtype dtype)
{
    return dtype == CVY_DTYPE_BF16 ? CVY_DTYPE_F32 : dtype;
}

/* The value's canonical instance, which its producer or the caller writes; -1: none yet. */
static int find_canonical(const cvy_lowered *u, const cvy_value *v)
{
    int i = u->newest[v->index];
    while (i >= 0 && !u->instance[i].canonical)
        i = u->instance[i].before;
    return i;
}

/* The value's latest instance in this memory format; -1: none. */
static int find_instance(const cvy_lowered *u, const cvy_value *v, const cvy_memory_format *format)
{
    int i = u->newest[v->index];
    while (i >= 0 &&
           !(cvy_layout_equal(&u->instance[i].layout, &format->layout) && u->instance[i].dtype == format->dtype))
        i = u->instance[i].before;
    return i;
}

static cvy_status new_instance(cvy_lowered *u, cvy_value *v, const cvy_memory_format *format, int canonical,
                               int view_of, int *out)
{
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(&format->layout, &v->shape, &b));
    CVY_TRY(cvy_mem_reserve(&u->instance, &u->instance_room, u->ninstance, sizeof *u->instance));
    u->instance[u->ninstance] = (cvy_instance){.value = v,
                                               .dtype = format->dtype,
                                               .layout = format->layout,
                                               .canonical = canonical,
                                               .view_of = view_of,
                                               .elems = b.elems,
                                               .bytes = (size_t)b.elems * cvy_dtype_bytes(format->dtype),
                                               .before = u->newest[v->index]};
    u->newest[v->index] = u->ninstance;
    *out = u->ninstance++;
    return CVY_OK;
}

static cvy_status new_call(cvy_lowered *u, cvy_call_kind kind, const cvy_node *node, cvy_phase phase, cvy_call **out)
{
    CVY_TRY(cvy_mem_reserve(&u->call, &u->call_room, u->ncall, sizeof *u->call));
    cvy_call *call = &u->call[u->ncall++];
    *call =
        (cvy_call){.kind = kind, .node = node, .phase = phase, .backward = u->adds_backward, .chunk = u->adds_chunk};
    for (int i = 0; i < CVY_NODE_SRC_MAX; i++)
        call->src[i] = -1;
    for (int i = 0; i < CVY_NODE_DST_MAX; i++)
        call->dst[i] = -1;
    *out = call;
    return CVY_OK;
}

/* Optimiser states have the layout of their weight. */
static void choose_state_layout(cvy_variable *v)
{
    if (!v->layout_fixed && v->of && v->of->layout_fixed) {
        v->layout = v->of->layout;
        v->layout_fixed = 1;
    }
}

/* The layout that a source has now. *free_out: 1 if it is a variable whose layout is not fixed yet. */
static cvy_status current_layout(cvy_lowered *u, cvy_value *v, cvy_layout *layout_out, int *free_out)
{
    const int at = find_canonical(u, v);
    *free_out = 0;
    if (at >= 0) {
        *layout_out = u->instance[at].layout;
        return CVY_OK;
    }
    CVY_CHECK(!v->producer, CVY_E_INTERNAL, "value %s is read before it is made", v->name);
    if (v->kind == CVY_VALUE_VARIABLE) {
        choose_state_layout(v->variable);
        *layout_out = v->variable->layout;
        *free_out = !v->variable->layout_fixed;
    } else {
        *layout_out = cvy_layout_plain();
    }
    return CVY_OK;
}

/* Gives the canonical instance. Feeds and variables get theirs here on first use; a variable whose layout is not fixed
 * yet gets the layout `free` for good. */
static cvy_status canonical_instance(cvy_lowered *u, cvy_value *v, const cvy_layout *free, int *out)
{
    cvy_memory_format format = {v->kind == CVY_VALUE_FEED ? cvy_plan_outside_dtype(v->dtype) : v->dtype,
                                cvy_layout_plain()};
    *out = find_canonical(u, v);
    if (*out >= 0)
        return CVY_OK;
    if (v->kind == CVY_VALUE_VARIABLE) {
        if (!v->variable->layout_fixed) {
            v->variable->layout = *free;
            v->variable->layout_fixed = 1;
        }
        format.layout = v->variable->layout;
    }
    return new_instance(u, v, &format, 1, -1, out);
}

/* Gives the instance of a source in the wanted format. If there is none, a reorder is added. A variable's copy in
 * another dtype is made once, at the start of the step. */
static cvy_status source_instance(cvy_lowered *u, cvy_value *v, const cvy_memory_format *wanted, const cvy_layout *free,
                                  cvy_phase phase, int *out)
{
    int canonical = -1;
    CVY_TRY(canonical_instance(u, v, free, &canonical));
    const int have = find_instance(u, v, wanted);
    if (have >= 0) {
        *out = have;
        return CVY_OK;
    }
    cvy_call *call = NULL;
    int made = -1;
    CVY_TRY(new_instance(u, v, wanted, 0, -1, &made));
    u->instance[made].is_once = v->kind == CVY_VALUE_VARIABLE && wanted->dtype != v->dtype;
    u->instance[made].is_shadow = u->instance[made].is_once && wanted->dtype == CVY_DTYPE_BF16 &&
                                  cvy_layout_equal(&u->instance[canonical].layout, &wanted->layout);
    CVY_TRY(new_call(u, CVY_CALL_REORDER, NULL, u->instance[made].is_once ? CVY_PHASE_PREPARE : phase, &call));
    call->src[0] = canonical;
    call->dst[0] = made;
    call->nsrc = call->ndst = 1;
    *out = made;
    return CVY_OK;
}

/* Gradients of variables and assigned variables must have the layout of the variable. */
static int fixed_dst(const cvy_value *dst, cvy_layout *layout_out)
{
    if (!dst->variable || !dst->variable->layout_fixed)
        return 0;
    *layout_out = dst->variable->layout;
    return 1;
}

static cvy_status fill_ask(cvy_lowered *u, const cvy_node *node, const cvy_plan_opts *opts, cvy_kernel_ask *ask)
{
    memset(ask, 0, sizeof *ask);
    ask->node = node;
    ask->space = opts->space;
    ask->threads = opts->threads;
    ask->deterministic = opts->deterministic;
    ask->tf32 = opts->tf32;
    ask->compiles = opts->compiles;
    for (int i = 0; i < node->nsrc; i++) {
        CVY_TRY(current_layout(u, node->src[i], &ask->src[i], &ask->src_free[i]));
        ask->src_dtype[i] = node->src[i]->dtype;
    }
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            ask->dst_fixed[i] = fixed_dst(node->dst[i], &ask->dst[i]);
    return CVY_OK;
}

static int same_answer(const cvy_kernel_ask *a, const cvy_kernel_ask *b)
{
    int same = a->algorithm_id == b->algorithm_id;
    for (int i = 0; i < CVY_NODE_SRC_MAX; i++)
        same = same && cvy_layout_equal(&a->src[i], &b->src[i]) &&
               cvy_layout_equal(&a->src_canonical[i], &b->src_canonical[i]) && a->src_dtype[i] == b->src_dtype[i];
    for (int i = 0; i < CVY_NODE_DST_MAX; i++)
        same = same && cvy_layout_equal(&a->dst[i], &b->dst[i]);
    return same;
}

/* In deterministic mode a kernel is asked for an offer with one thread. If it would make the same choice with all
 * threads, it gets all of them; otherwise it runs on one. */
static cvy_status ask_kernel(cvy_lowered *u, int signature, const cvy_kernel_def *kernel, const cvy_kernel_ask *ask,
                             cvy_offer **out)
{
    cvy_kernel_ask one = *ask;
    cvy_offer *by_all = NULL;
    if (!ask->deterministic || ask->threads == 1)
        return cvy_offers_ask(u->offers, signature, kernel, ask, out);
    one.threads = 1;
    CVY_TRY(cvy_offers_ask(u->offers, signature, kernel, &one, out));
    if ((*out)->status != CVY_OK || kernel->thread_dependent)
        return CVY_OK;
    CVY_TRY(cvy_offers_ask(u->offers, signature, kernel, ask, &by_all));
    if (by_all->status == CVY_OK && same_answer(&(*out)->out, &by_all->out))
        *out = by_all;
    return CVY_OK;
}

/* Takes the picked kernel if it makes an offer (a run that was begun on another device has kernels for that one); else
 * the first one by preference that does; else the operator's plain kernel. */
static cvy_status choose(cvy_lowered *u, const cvy_node *node, const cvy_plan_opts *opts, const cvy_kernel_def *pick,
                         int *signature_out, cvy_offer **out)
{
    cvy_kernel_ask ask;
    CVY_TRY(fill_ask(u, node, opts, &ask));
    CVY_TRY(cvy_offers_signature(u->offers, node, signature_out));
    const int fits = pick && (pick == &cvy_kernel_plain || cvy_kernel_fits(pick, opts->space));
    if (fits)
        CVY_TRY(ask_kernel(u, *signature_out, pick, &ask, out));
    if (fits && (*out)->status == CVY_OK)
        return CVY_OK;
    for (const cvy_kernel_def *k = NULL; (k = cvy_kernel_next(node->op->name, k, &opts->kernels)) != NULL;) {
        CVY_TRY(ask_kernel(u, *signature_out, k, &ask, out));
        if ((*out)->status == CVY_OK)
            return CVY_OK;
    }
    CVY_CHECK(node->op->reference, CVY_E_INTERNAL, "%s: the operator %s has no kernel", node->name, node->op->name);
    return cvy_offers_ask(u->offers, *signature_out, &cvy_kernel_plain, &ask, out);
}

/* If a weight has a bf16 shadow copy and the update kernel can write it too, it does. The next step then need not make
 * the copy. */
static void add_shadow_copy(const cvy_lowered *u, cvy_call *call)
{
    const cvy_node *node = call->node;
    if (!call->kernel || !call->kernel->writes_shadow || node->src[0]->variable != node->dst[0]->variable)
        return;
    int copy = u->newest[node->src[0]->index];
    while (copy >= 0 && !u->instance[copy].is_shadow)
        copy = u->instance[copy].before;
    if (copy < 0)
        return;
    call->ask.writes_shadow = 1;
    call->dst[call->ndst++] = copy;
}

/* Adds reorders of the sources, then the call, then reorders of destinations that must have another layout. */
static cvy_status add_compute(cvy_lowered *u, const cvy_node *node, const cvy_plan_opts *opts,
                              const cvy_kernel_def *pick)
{
    cvy_offer *offer = NULL;
    int src[CVY_NODE_SRC_MAX], signature = -1;
    CVY_TRY(choose(u, node, opts, node->copy_of ? u->chosen[node->copy_of->index] : pick, &signature, &offer));
    u->chosen[node->index] = offer->kernel;
    const cvy_kernel_def *kernel = offer->kernel == &cvy_kernel_plain ? NULL : offer->kernel;
    cvy_kernel_ask ask = offer->out;
    ask.node = node;
    for (int i = 0; i < node->nsrc; i++)
        CVY_TRY(source_instance(u, node->src[i], &(cvy_memory_format){ask.src_dtype[i], ask.src[i]},
                                ask.src_dtype[i] == node->src[i]->dtype ? &ask.src[i] : &ask.src_canonical[i],
                                node->phase, &src[i]));
    cvy_call *call = NULL;
    CVY_TRY(new_call(u,
                     kernel                           ? CVY_CALL_KERNEL
                     : cvy_space_is_host(opts->space) ? CVY_CALL_REFERENCE
                                                      : CVY_CALL_STAGED,
                     node, node->phase, &call));
    const int me = u->ncall - 1;
    call->kernel = kernel;
    call->ask = ask;
    call->signature = signature;
    call->offer = offer;
    call->nsrc = node->nsrc;
    call->ndst = node->ndst;
    memcpy(call->src, src, sizeof *src * (size_t)node->nsrc);
    for (int i = 0; i < node->ndst; i++) {
        cvy_layout must;
        int made = -1;
        if (!node->dst[i])
            continue;
        const int fixed = fixed_dst(node->dst[i], &must) && !cvy_layout_equal(&must, &ask.dst[i]);
        CVY_CHECK(!fixed || node->dst[i]->kind != CVY_VALUE_VARIABLE, CVY_E_INTERNAL,
                  "%s writes variable %s in the layout '%s', but the variable has the layout '%s'", node->name,
                  node->dst[i]->variable->name, ask.dst[i].tag, must.tag);
        CVY_TRY(
            new_instance(u, node->dst[i], &(cvy_memory_format){node->dst[i]->dtype, ask.dst[i]}, !fixed, -1, &made));
        u->call[me].dst[i] = made;
        if (!fixed)
            continue;
        cvy_call *reorder = NULL;
        CVY_TRY(new_call(u, CVY_CALL_REORDER, NULL, node->phase, &reorder));
        CVY_TRY(
            new_instance(u, node->dst[i], &(cvy_memory_format){node->dst[i]->dtype, must}, 1, -1, &reorder->dst[0]));
        reorder->src[0] = made;
        reorder->nsrc = reorder->ndst = 1;
    }
    add_shadow_copy(u, &u->call[me]);
    return CVY_OK;
}

/* Whether an operator of a bucket: it orders the exchange of gradients, in whatever layout they are. */
static int is_of_bucket(const cvy_op_def *op)
{
    return op->comm && op->comm->exchange == CVY_EXCHANGE_BUCKET;
}

/* Whether a source keeps the layout that it has. */
static int keeps_layout(const cvy_node *node, int source, cvy_call_kind kind, const cvy_layout *layout)
{
    return kind == CVY_CALL_ABSENT || is_of_bucket(node->op) ||
           (source == 0 && node->op->comm && node->op->comm->takes_layout &&
            node->op->comm->takes_layout(node, layout));
}

/* Adds views, communication and nodes of a rank without samples. They have no kernel. What is sent is plain, unless the
 * operator agrees with the other ranks on another layout. */
static cvy_status add_special(cvy_lowered *u, const cvy_node *node, cvy_call_kind kind)
{
    const cvy_layout plain = cvy_layout_plain();
    cvy_layout kept = plain;
    int src[CVY_NODE_SRC_MAX];
    for (int i = 0; i < node->nsrc; i++) {
        cvy_memory_format wanted = {node->src[i]->dtype, plain};
        const int canonical = find_canonical(u, node->src[i]);
        if (canonical >= 0 && keeps_layout(node, i, kind, &u->instance[canonical].layout))
            wanted.layout = u->instance[canonical].layout;
        if (i == 0 && node->op->comm && node->op->comm->takes_layout)
            kept = wanted.layout;
        src[i] = -1;
        if (kind != CVY_CALL_ABSENT)
            CVY_TRY(source_instance(u, node->src[i], &wanted, &wanted.layout, node->phase, &src[i]));
    }
    cvy_call *call = NULL;
    CVY_TRY(new_call(u, kind, node, node->phase, &call));
    const int me = u->ncall - 1;
    call->nsrc = kind == CVY_CALL_ABSENT ? 0 : node->nsrc;
    call->ndst = node->ndst;
    for (int i = 0; i < node->nsrc; i++)
        call->src[i] = src[i];
    for (int i = 0; i < node->ndst; i++) {
        cvy_layout layout = plain;
        int made = -1;
        if (!node->dst[i])
            continue;
        if (i == 0 && node->nsrc && node->dst[0]->shape.ndim == node->src[0]->shape.ndim) /* it is not a token */
            layout = kept;
        fixed_dst(node->dst[i], &layout);
        CVY_TRY(new_instance(u, node->dst[i], &(cvy_memory_format){node->dst[i]->dtype, layout}, 1,
                             kind == CVY_CALL_VIEW ? src[0] : -1, &made));
        u->call[me].dst[i] = made;
    }
    return CVY_OK;
}

static cvy_status add_node(cvy_lowered *u, const cvy_node *node, const cvy_plan_opts *opts, const cvy_kernel_def *pick)
{
    u->adds_backward = node->backward;
    u->adds_chunk = node->chunk;
    if (node->op->comm)
        return add_special(u, node, CVY_CALL_COMM);
    if (cvy_node_batch(node).local_n == 0 && node->phase != CVY_PHASE_UPDATE)
        return add_special(u, node, CVY_CALL_ABSENT);
    if (node->op->flags & CVY_OP_VIEW)
        return add_special(u, node, CVY_CALL_VIEW);
    return add_compute(u, node, opts, pick);
}

/* The caller reads outputs in plain layout, and bf16 as f32. */
static cvy_status add_outputs(cvy_lowered *u)
{
    u->adds_backward = 0;
    for (int v = 0; v < u->graph->nvalue; v++) {
        cvy_value *value = u->graph->value[v];
        const cvy_memory_format outside = {cvy_plan_outside_dtype(value->dtype), cvy_layout_plain()};
        int at = find_canonical(u, value);
        u->adds_chunk = value->producer ? value->producer->chunk : 0;
        if (value->is_output && value->kind == CVY_VALUE_TEMP && at >= 0)
            CVY_TRY(source_instance(u, value, &outside, &outside.layout, CVY_PHASE_MICRO, &at));
    }
    return CVY_OK;
}

static cvy_status select_all(cvy_lowered *u, const cvy_plan_opts *opts, const cvy_kernel_def *const *pick)
{
    const cvy_graph *graph = u->graph;
    if (!u->offers)
        CVY_TRY(cvy_offers_create(&u->own_offers));
    u->offers = u->offers ? u->offers : u->own_offers;
    CVY_TRY(cvy_mem_alloc(sizeof *u->newest * ((size_t)graph->nvalue + 1), &u->newest));
    CVY_TRY(cvy_mem_alloc(sizeof(void *) * ((size_t)graph->nnode + 1), &u->chosen));
    for (int v = 0; v < graph->nvalue; v++)
        u->newest[v] = -1;
    for (int n = 0; n < graph->nnode; n++)
        if (!graph->node[n]->removed)
            CVY_TRY(add_node(u, graph->node[n], opts, pick[n]));
    CVY_TRY(add_outputs(u));
    return opts->no_slices ? CVY_OK : cvy_lowered_place_slices(u);
}

cvy_status cvy_lowered_select(cvy_graph *graph, const cvy_plan_opts *opts, const cvy_kernel_def *const *pick,
                              cvy_lowered **out)
{
    cvy_lowered *u = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *u, &u));
    u->graph = graph;
    u->offers = opts->offers;
    const cvy_status status = select_all(u, opts, pick);
    if (status != CVY_OK)
        cvy_lowered_destroy(&u);
    else
        *out = u;
    return status;
}

/* Another graph may have a node of this name with another operator (batch norm in evaluation); then the choice is
 * ignored. */
static cvy_status named_kernel(const cvy_node *node, const cvy_tree *choices, const cvy_kernel_def **out)
{
    const cvy_tree *choice = choices ? cvy_tree_get(choices, node->name) : NULL;
    const char *name = choice ? choice->text : NULL;
    if (!name)
        return CVY_OK;
    const cvy_kernel_def *k = strcmp(name, cvy_kernel_plain.name) == 0 ? &cvy_kernel_plain : cvy_kernel_find(name);
    CVY_CHECK(
        k, CVY_E_CONFIG,
        "the plan file names the kernel '%s' for %s, which this build does not have: plan again without this file",
        name, node->name);
    if (k == &cvy_kernel_plain || strcmp(k->op, node->op->name) == 0)
        *out = k;
    return CVY_OK;
}

cvy_status cvy_lowered_name(const cvy_graph *graph, const cvy_tree *choices, const cvy_kernel_def **pick)
{
    for (int n = 0; n < graph->nnode; n++)
        if (!graph->node[n]->removed)
            CVY_TRY(named_kernel(graph->node[n], choices, &pick[n]));
    return CVY_OK;
}

cvy_status cvy_lowered_create(cvy_graph *graph, const cvy_plan_opts *opts, cvy_lowered **out)
{
    const cvy_kernel_def **pick = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof(void *) * ((size_t)graph->nnode + 1), &pick));
    cvy_status status = cvy_lowered_name(graph, opts->choices, pick);
    if (status == CVY_OK)
        status = cvy_lowered_select(graph, opts, pick, out);
    cvy_mem_free(&pick);
    return status;
}

void cvy_lowered_destroy(cvy_lowered **lowered)
{
    cvy_lowered *u = *lowered;
    if (!u)
        return;
    for (int i = 0; i < u->ncall; i++)
        cvy_call_release(&u->call[i]);
    cvy_offers_destroy(&u->own_offers);
    cvy_mem_free(&u->newest);
    cvy_mem_free(&u->chosen);
    cvy_mem_free(&u->instance);
    cvy_mem_free(&u->call);
    cvy_mem_free(lowered);
}
