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
                             : cvy_space_alloc_host(plan->opts.space, bytes, &plan->feeds.host));
    for (size_t rows = 0, at = 0; rows < 2; rows++) /* first what is given once a step */
        for (int i = 0; i < plan->feeds.count; i++)
            if (plan->feeds.feed[i].per_step == !rows) {
                plan->feeds.feed[i].data = plan->feeds.host + at;
                at += cvy_round_to_line(plan->feeds.feed[i].bytes);
            }
    plan->feeds.tensors = plan->feeds.host;
    if (cvy_space_is_host(plan->opts.space))
        return CVY_OK;
    CVY_TRY(cvy_mark_create(plan->opts.space, &plan->feeds.copied));
    CVY_TRY(cvy_mark_create(plan->opts.space, &plan->feeds.sent));
    if (plan->feeds.ahead_bytes)
        CVY_TRY(cvy_space_alloc(plan->opts.space, plan->feeds.ahead_bytes, 0, &plan->feeds.ahead));
    return cvy_space_alloc(plan->opts.space, bytes, 0, &plan->feeds.tensors);
}

static cvy_plan *feeds_owner(const cvy_plan *plan)
{
    return plan->head.alternate ? plan->head.alternate : (cvy_plan *)(uintptr_t)plan;
}

void *cvy_plan_feed_tensor(const cvy_plan *plan, const void *feed_data)
{
    const cvy_plan_feeds *feeds = &feeds_owner(plan)->feeds;
    return feeds->tensors + ((const char *)feed_data - feeds->host);
}

/* The lane COPY need not wait for the copy from `ahead` to `tensors` in the latest step: the host has waited for the
 * mark `copied`, which is put after it. */
cvy_status cvy_plan_send_feeds(cvy_plan *plan)
{
    cvy_plan_feeds *feeds = &feeds_owner(plan)->feeds;
    CVY_TRY(cvy_space_copy(plan->opts.space, CVY_LANE_COPY, feeds->ahead, feeds->host + feeds->step_bytes,
                           feeds->ahead_bytes));
    feeds->is_ahead = 1;
    return cvy_mark_put(plan->opts.space, CVY_LANE_COPY, feeds->sent);
}

cvy_status cvy_plan_push_feeds(cvy_plan *plan)
{
    cvy_plan_feeds *feeds = &feeds_owner(plan)->feeds;
    const cvy_space *space = plan->opts.space;
    size_t bytes = CVY_MAX(feeds->bytes, 64);
    if (cvy_space_is_host(space))
        return CVY_OK;
    if (feeds->is_ahead) {
        CVY_TRY(cvy_mark_await(space, CVY_LANE_COMPUTE, feeds->sent));
        CVY_TRY(cvy_space_copy(space, CVY_LANE_COMPUTE, feeds->tensors + feeds->step_bytes, feeds->ahead,
                               feeds->ahead_bytes));
        bytes = feeds->step_bytes;
        feeds->is_ahead = 0;
    }
    if (bytes > 0)
        CVY_TRY(cvy_space_copy(space, CVY_LANE_COMPUTE, feeds->tensors, feeds->host, bytes));
    return cvy_mark_put(space, CVY_LANE_COMPUTE, feeds->copied);
}

cvy_status cvy_plan_await_feeds(cvy_plan *plan)
{
    const cvy_plan *owner = feeds_owner(plan);
    int reached;
    return cvy_space_is_host(plan->opts.space) ? CVY_OK
                                               : cvy_mark_reached(plan->opts.space, owner->feeds.copied, 1, &reached);
}

/* ---- buffers ---- */

/* Losses, statistics and outputs: the host reads them by name. */
static int is_for_host(const cvy_buffer *b)
{
    return b->value && (b->value->is_output || (b->value->kind == CVY_VALUE_ACCUMULATOR && !b->value->variable));
}

/* The last instruction that writes the memory of a buffer, of which it may be a part or which may be a part of it. */
static int last_write(const cvy_plan *plan, int buffer)
{
    int root = buffer, last = 0;
    while (root != plan->buffer[root].root)
        root = plan->buffer[root].root;
    for (int i = 0; i < plan->ninstr; i++)
        for (int d = 0; d < plan->instr[i].ndst; d++) {
            int at = plan->instr[i].dst_buffer[d];
            while (at >= 0 && at != plan->buffer[at].root)
                at = plan->buffer[at].root;
            if (at == root)
                last = i;
        }
    return last;
}

cvy_status cvy_plan_make_copies(cvy_plan *plan)
{
    size_t at = 0;
    for (int i = 0; i < plan->nbuffer; i++)
        plan->buffer[i].host = plan->buffer[i].data;
    if (cvy_space_is_host(plan->opts.space))
        return CVY_OK;
    cvy_plan_host_copies *copies = &plan->host_copies;
    for (int i = 0; i < plan->nbuffer; i++) {
        copies->bytes += is_for_host(&plan->buffer[i]) ? cvy_round_to_line(plan->buffer[i].bytes) : 0;
        copies->count += is_for_host(&plan->buffer[i]);
    }
    copies->bytes = CVY_MAX(copies->bytes, 64);
    CVY_TRY(cvy_space_alloc_host(plan->opts.space, copies->bytes, &copies->memory));
    CVY_TRY(cvy_mem_alloc(sizeof *copies->of * ((size_t)copies->count + 1), &copies->of));
    copies->count = 0;
    for (int i = 0; i < plan->nbuffer; i++) {
        cvy_buffer *b = &plan->buffer[i];
        b->host = is_for_host(b) ? copies->memory + at : NULL;
        at += b->host ? cvy_round_to_line(b->bytes) : 0;
        if (b->host)
            copies->of[copies->count++] = (struct cvy_host_copy){.buffer = i, .last_write = last_write(plan, i)};
    }
    return CVY_OK;
}

void cvy_plan_outdate_copies(cvy_plan *plan, int instr)
{
    for (int i = 0; i < plan->host_copies.count; i++)
        if (plan->host_copies.of[i].last_write == instr)
            plan->host_copies.of[i].is_fresh = 0;
}

char *cvy_plan_in_arena(const cvy_plan *plan, void *arena, size_t offset)
{
    return (char *)arena + offset + (offset < plan->head.bytes ? plan->head.bytes * (size_t)plan->head.set : 0);
}

cvy_status cvy_plan_resolve_buffers(cvy_plan *plan, char *arena)
{
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
            b->data = (char *)cvy_plan_feed_tensor(plan, plan->feeds.feed[root->feed].data) + root->offset;
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

static struct cvy_host_copy *copy_of(const cvy_plan *plan, const cvy_buffer *b)
{
    for (int i = 0; i < plan->host_copies.count; i++)
        if (&plan->buffer[plan->host_copies.of[i].buffer] == b)
            return &plan->host_copies.of[i];
    return NULL;
}

cvy_status cvy_plan_fetch(cvy_plan *plan, const char *value_name)
{
    const cvy_buffer *b = cvy_plan_step_buffer(plan, value_name);
    struct cvy_host_copy *copy = b ? copy_of(plan, b) : NULL;
    if (!copy)
        return CVY_OK;
    copy->is_fresh = 1;
    return cvy_space_copy(plan->opts.space, CVY_LANE_COMPUTE, b->host, b->data, b->bytes);
}

/* The content for the host, valid until the plan runs again; NULL: the host cannot read it. */
static void *host_copy(const cvy_plan *plan, const cvy_buffer *b)
{
    struct cvy_host_copy *copy = copy_of(plan, b);
    if (!copy || copy->is_fresh)
        return b->host;
    if (cvy_space_read(plan->opts.space, b->host, b->data, b->bytes) != CVY_OK)
        return NULL;
    copy->is_fresh = 1;
    return b->host;
}

cvy_plan_feed *cvy_plan_find_feed(cvy_plan *plan, const char *name)
{
    for (int i = 0; i < plan->feeds.count; i++)
        if (strcmp(plan->feeds.feed[i].name, name) == 0)
            return &plan->feeds.feed[i];
    return NULL;
}

const cvy_buffer *cvy_plan_step_buffer(const cvy_plan *plan, const char *value_name)
{
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_STEP && strcmp(plan->buffer[i].name, value_name) == 0)
            return &plan->buffer[i];
    return NULL;
}

void *cvy_plan_find(const cvy_plan *plan, const char *value_name, int micro)
{
    const cvy_buffer *b = cvy_plan_step_buffer(plan, value_name);
    return b ? host_copy(plan, b) : cvy_plan_find_part(plan, value_name, micro);
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
