/*
 * plan_address.c: where the buffers of a plan are: addresses in the arena, the memory of the feeds, and what the host
 * reads of the results, of which it has copies if it cannot read tensors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_round.h"
#include "plan/plan_bind.h"

/* ---- feeds ---- */

cvy_status cvy_plan_place_feeds(cvy_plan *plan)
{
    const size_t bytes = CVY_MAX(plan->feeds.bytes, 64);
    for (int i = 0; plan->head.alternate && i < plan->feeds.count; i++)
        plan->feeds.feed[i].data = plan->head.alternate->feeds.feed[i].data;
    if (plan->head.alternate) {
        plan->feeds.tensors = plan->head.alternate->feeds.tensors;
        return CVY_OK;
    }
    CVY_TRY(plan->opts.clock ? cvy_mem_map_pages(bytes, &plan->feeds.host)
                             : cvy_mem_alloc_pages(bytes, &plan->feeds.host));
    size_t at = 0;
    for (int i = 0; i < plan->feeds.count; i++) {
        plan->feeds.feed[i].data = plan->feeds.host + at;
        at += cvy_round_to_line(plan->feeds.feed[i].bytes);
    }
    plan->feeds.tensors = plan->feeds.host;
    return cvy_space_is_host(plan->opts.space) ? CVY_OK
                                               : cvy_space_alloc(plan->opts.space, bytes, 0, &plan->feeds.tensors);
}

cvy_status cvy_plan_push_feeds(cvy_plan *plan)
{
    const cvy_plan *owner = plan->head.alternate ? plan->head.alternate : plan;
    return cvy_space_is_host(plan->opts.space) ? CVY_OK
                                               : cvy_space_write(plan->opts.space, owner->feeds.tensors,
                                                                 owner->feeds.host, CVY_MAX(owner->feeds.bytes, 64));
}

/* ---- buffers ---- */

/* Losses, statistics and outputs: the host reads them by name. */
static int is_for_host(const cvy_buffer *b)
{
    return b->value && (b->value->is_output || (b->value->kind == CVY_VALUE_ACCUMULATOR && !b->value->variable));
}

cvy_status cvy_plan_make_copies(cvy_plan *plan)
{
    size_t at = 0;
    for (int i = 0; i < plan->nbuffer; i++)
        plan->buffer[i].host = plan->buffer[i].data;
    if (cvy_space_is_host(plan->opts.space))
        return CVY_OK;
    for (int i = 0; i < plan->nbuffer; i++)
        plan->host_copies.bytes += is_for_host(&plan->buffer[i]) ? cvy_round_to_line(plan->buffer[i].bytes) : 0;
    CVY_TRY(cvy_mem_alloc(plan->host_copies.bytes, &plan->host_copies.memory));
    for (int i = 0; i < plan->nbuffer; i++) {
        cvy_buffer *b = &plan->buffer[i];
        b->host = is_for_host(b) ? plan->host_copies.memory + at : NULL;
        at += b->host ? cvy_round_to_line(b->bytes) : 0;
    }
    return CVY_OK;
}

char *cvy_plan_in_arena(const cvy_plan *plan, void *arena, size_t offset)
{
    return (char *)arena + offset + (offset < plan->head.bytes ? plan->head.bytes * (size_t)plan->head.set : 0);
}

cvy_status cvy_plan_resolve_buffers(cvy_plan *plan, char *arena)
{
    const cvy_plan *owner = plan->head.alternate ? plan->head.alternate : plan;
    for (int i = 0; i < plan->nbuffer; i++) {
        cvy_buffer *b = &plan->buffer[i];
        const cvy_buffer *root = b;
        while (root != &plan->buffer[root->root])
            root = &plan->buffer[root->root];
        switch (root->region) {
        case CVY_REGION_ARENA:
        case CVY_REGION_STEP: b->data = cvy_plan_in_arena(plan, arena, root->offset); break;
        case CVY_REGION_SHADOW:
            b->data = root->value->variable->shadow;
            CVY_CHECK(b->data, CVY_E_INTERNAL, "the copy of variable %s has no memory", root->value->variable->name);
            break;
        case CVY_REGION_FEED:
            b->data =
                plan->feeds.tensors + ((char *)plan->feeds.feed[root->feed].data - owner->feeds.host) + root->offset;
            break;
        case CVY_REGION_VARIABLE:
            b->data = root->value->variable->data;
            CVY_CHECK(b->data, CVY_E_INTERNAL, "variable %s has no memory", root->value->variable->name);
            break;
        }
        b->data = (char *)b->data + b->at;
    }
    return CVY_OK;
}

/* ---- by name ---- */

/* The content for the host, valid until the plan runs again; NULL: the host cannot read it. */
static void *host_copy(const cvy_plan *plan, const cvy_buffer *b)
{
    if (b->host && b->host != b->data && cvy_space_read(plan->opts.space, b->host, b->data, b->bytes) != CVY_OK)
        return NULL;
    return b->host;
}

cvy_plan_feed *cvy_plan_find_feed(cvy_plan *plan, const char *name)
{
    for (int i = 0; i < plan->feeds.count; i++)
        if (strcmp(plan->feeds.feed[i].name, name) == 0)
            return &plan->feeds.feed[i];
    return NULL;
}

void *cvy_plan_find(const cvy_plan *plan, const char *value_name, int micro)
{
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_STEP && strcmp(plan->buffer[i].name, value_name) == 0)
            return host_copy(plan, &plan->buffer[i]);
    return cvy_plan_find_part(plan, value_name, micro);
}

/* The value whose memory a view shares. No instruction writes a view. */
static const cvy_value *source_of_view(const cvy_value *v)
{
    while (v && v->producer && (v->producer->op->flags & CVY_OP_VIEW))
        v = v->producer->src[0];
    return v;
}

void *cvy_plan_find_part(const cvy_plan *plan, const char *value_name, int micro)
{
    const cvy_value *wanted = source_of_view(cvy_graph_find(plan->lowered[micro]->graph, value_name));
    const char *name = wanted ? wanted->name : value_name;
    /* It searches from the end: if a reorder has made a plain copy of an output, that copy is wanted. */
    for (int i = plan->ninstr - 1; i >= 0; i--) {
        const cvy_instr *instr = &plan->instr[i];
        for (int d = 0; instr->micro == micro && d < instr->ndst; d++) {
            const cvy_buffer *b = instr->dst_buffer[d] >= 0 ? &plan->buffer[instr->dst_buffer[d]] : NULL;
            if (b && b->value && b->value->is_output && strcmp(b->value->name, name) == 0)
                return host_copy(plan, b);
        }
    }
    return NULL;
}
