/*
 * plan_memory.c: finds lifetimes, shares memory in place if a kernel permits it, and plans one arena.
 *
 * The start of the arena holds the buffers that stay until the end of the step: gradients, bucket by bucket in the
 * order of backward, then other accumulators. Temporary buffers share memory if their lifetimes do not overlap; they
 * may also use the memory of gradients and accumulators before these are first written. The largest buffer is placed
 * first, each at the lowest offset that is free during its lifetime. Source: Pisarchyk and Lee 2020, Efficient memory
 * management for deep neural net inference (greedy by size).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "base/base_round.h"
#include "pass/pass.h"
#include "plan/plan_call.h"
#include "plan/plan_extents.h"

static cvy_buffer *root_of(cvy_plan *plan, int buffer)
{
    while (plan->buffer[buffer].root != buffer)
        buffer = plan->buffer[buffer].root;
    return &plan->buffer[buffer];
}

static void touch(cvy_plan *plan, int buffer, int at)
{
    if (buffer < 0)
        return;
    cvy_buffer *b = root_of(plan, buffer);
    if (b->first < 0)
        b->first = at;
    b->last = CVY_MAX(b->last, at);
}

static void find_lifetimes(cvy_plan *plan)
{
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        for (int s = 0; s < instr->nsrc; s++)
            touch(plan, instr->src_buffer[s], i);
        for (int d = 0; d < instr->ndst; d++)
            touch(plan, instr->dst_buffer[d], i);
        touch(plan, instr->scratch_buffer, i);
    }
    for (int i = 0; i < plan->nbuffer; i++) {
        cvy_buffer *b = root_of(plan, i);
        if (plan->buffer[i].value && plan->buffer[i].value->is_output && b->first >= 0)
            b->last = plan->ninstr;
    }
}

/* A destination reuses the memory of a source if the kernel allows it, no later instruction reads the source, and the
 * source is large enough. */
static void share_in_place(cvy_plan *plan)
{
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        if (!cvy_call_runs_node(instr->call))
            continue;
        for (int d = 0; d < instr->ndst; d++) {
            const int s = instr->call->ask.inplace[d] - 1;
            if (s < 0 || instr->dst_buffer[d] < 0 || instr->src_buffer[s] < 0 ||
                plan->buffer[instr->dst_buffer[d]].slice || plan->buffer[instr->src_buffer[s]].slice)
                continue;
            cvy_buffer *to = root_of(plan, instr->dst_buffer[d]), *from = root_of(plan, instr->src_buffer[s]);
            int twice = 0;
            for (int other = 0; other < instr->nsrc; other++)
                twice += instr->src_buffer[other] >= 0 && root_of(plan, instr->src_buffer[other]) == from;
            if (to == from || twice != 1 || to->region != CVY_REGION_ARENA || from->region != CVY_REGION_ARENA ||
                from->last != i || to->first != i || from->bytes < to->bytes)
                continue;
            to->root = (int)(from - plan->buffer);
            from->last = to->last;
        }
    }
}

static int by_size(const void *a, const void *b)
{
    const cvy_buffer *x = *(const cvy_buffer *const *)a, *y = *(const cvy_buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x < y ? -1 : x > y);
}

static cvy_extent extent_of(const cvy_buffer *b, int last)
{
    return (cvy_extent){b->offset, b->offset + cvy_round_to_line(b->bytes), b->first, last};
}

static cvy_status place_temporaries(cvy_plan *plan)
{
    cvy_buffer **order = NULL;
    cvy_extents placed = {0};
    int count = 0;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *order * ((size_t)plan->nbuffer + 1), &order));
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_ARENA && plan->buffer[i].root == i && plan->buffer[i].first >= 0)
            order[count++] = &plan->buffer[i];
    qsort(order, (size_t)count, sizeof *order, by_size);
    size_t end = cvy_plan_head_bytes(plan);
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_STEP)
            CVY_TRY_OUT(cvy_extents_add(&placed, extent_of(&plan->buffer[i], plan->ninstr)));
    if (end > plan->head.bytes) /* this plan never uses the other sets */
        CVY_TRY_OUT(cvy_extents_add(&placed, (cvy_extent){plan->head.bytes, end, 0, plan->ninstr}));
    for (int i = 0; i < count; i++) {
        cvy_buffer *b = order[i];
        b->offset = plan->opts.overlays   ? cvy_plan_head_bytes(plan)
                    : plan->opts.no_reuse ? end
                                          : cvy_extents_lowest(&placed, cvy_round_to_line(b->bytes), b->first, b->last);
        end = CVY_MAX(end, b->offset + cvy_round_to_line(b->bytes));
        if (!plan->opts.overlays)
            CVY_TRY_OUT(cvy_extents_add(&placed, extent_of(b, b->last)));
    }
    plan->arena_bytes = end;
out:
    cvy_mem_free(&order);
    cvy_extents_free(&placed);
    return status;
}

/* Gradients first, those of the variables that were made last before the others; then losses and statistics by name. */
static int by_variable(const void *a, const void *b)
{
    const cvy_buffer *x = *(const cvy_buffer *const *)a, *y = *(const cvy_buffer *const *)b;
    const int of_x = x->value->variable ? x->value->variable->index : -1,
              of_y = y->value->variable ? y->value->variable->index : -1;
    return of_x != of_y ? (of_x < of_y ? 1 : -1) : strcmp(x->name, y->name);
}

/* Places the values of a bucket (-1: those that are not reduced) from `end` on, and moves it. */
static void place_bucket(cvy_plan *plan, int bucket, cvy_buffer **order, size_t *end)
{
    int count = 0;
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_STEP && plan->buffer[i].bucket == bucket)
            order[count++] = &plan->buffer[i];
    qsort(order, (size_t)count, sizeof *order, by_variable);
    for (int i = 0; i < count; i++) {
        order[i]->offset = *end;
        *end += cvy_round_to_line(order[i]->bytes);
    }
}

/* Places the buckets one after the other, each as one range; then the values that are not reduced. Offsets must be
 * equal on all ranks. Within a bucket they follow the order of variables and not that of buffers: a rank without
 * samples computes no gradient and so has no reorder of it, which changes the order of its buffers. */
static cvy_status place_step_values(cvy_plan *plan)
{
    cvy_buffer **order = NULL;
    int nbucket = 0;
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_STEP)
            nbucket = CVY_MAX(nbucket, plan->buffer[i].bucket + 1);
    CVY_TRY(cvy_bucket_set_create(nbucket, &plan->buckets));
    CVY_TRY(cvy_mem_alloc(sizeof *order * ((size_t)plan->nbuffer + 1), &order));
    size_t end = 0;
    for (int n = 0; n < nbucket; n++) {
        cvy_bucket *bucket = &plan->buckets->bucket[n];
        bucket->offset = end;
        place_bucket(plan, n, order, &end);
        bucket->bytes = end - bucket->offset;
    }
    place_bucket(plan, -1, order, &end);
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_STEP && plan->buffer[i].bucket >= 0) {
            plan->buckets->bucket[plan->buffer[i].bucket].dtype = plan->buffer[i].value->dtype;
            plan->buckets->bucket[plan->buffer[i].bucket].has_gradients |= plan->buffer[i].value->variable != NULL;
            plan->buckets->bucket[plan->buffer[i].bucket].over |= plan->buffer[i].value->over;
        }
    cvy_mem_free(&order);
    plan->head.bytes = end;
    return CVY_OK;
}

/* Whether nothing is lost if the value is overwritten: a token of an all-reduce, which carries no data, or a part of an
 * accumulator that has been added already. */
static int is_spent(const cvy_value *v)
{
    const unsigned token = CVY_OP_COMM | CVY_OP_ONCE;
    return v && (v->kind == CVY_VALUE_ACCUMULATOR || (v->producer && (v->producer->op->flags & token) == token));
}

/* With delayed updates another plan's step runs between backward and update; so only accumulators may be used by both
 * phases. */
static cvy_status check_crossing(const cvy_plan *plan)
{
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_buffer *b = &plan->buffer[i];
        const int crosses = b->region == CVY_REGION_ARENA && b->root == i && b->first >= 0 &&
                            b->first < plan->update.first && b->last >= plan->update.first;
        CVY_CHECK(!crosses || is_spent(b->value), CVY_E_UNSUPPORTED,
                  "%s is computed in forward or backward and read by the update or by the caller; delayed updates can "
                  "keep only gradients and losses",
                  b->name);
    }
    return CVY_OK;
}

cvy_status cvy_plan_memory(cvy_plan *plan)
{
    find_lifetimes(plan);
    if (plan->opts.sets > 1)
        CVY_TRY(check_crossing(plan));
    for (int i = 0; plan->opts.deferred && i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_ARENA && plan->buffer[i].first >= plan->update.first) {
            plan->buffer[i].first = 0; /* it is used during the next step's forward pass */
            plan->buffer[i].last = plan->ninstr;
        }
    if (!plan->opts.no_inplace && !plan->opts.no_reuse)
        share_in_place(plan);
    CVY_TRY(place_step_values(plan));
    CVY_TRY(place_temporaries(plan));
    for (int i = 0; i < plan->feeds.count; i++) {
        const cvy_plan_feed *feed = &plan->feeds.feed[i];
        plan->feeds.bytes += cvy_round_to_line(feed->bytes);
        plan->feeds.step_bytes += feed->per_step ? cvy_round_to_line(feed->bytes) : 0;
    }
    plan->feeds.ahead_bytes = plan->opts.feeds_ahead ? plan->feeds.bytes - plan->feeds.step_bytes : 0;
    return CVY_OK;
}

CVY_PASS_DEFINE(in_place) = {.name = "in-place", .help = "a kernel may write over its source", .can_be_off = 1};
CVY_PASS_DEFINE(memory_reuse) = {
    .name = "memory-reuse", .help = "buffers whose lifetimes do not overlap share memory", .can_be_off = 1};
