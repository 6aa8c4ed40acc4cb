/*
 * plan_deferred.c: sorts the updates that run in the next step's forward pass.
 *
 * An all-reduce then has time until the weight is read again. The update phase is sorted by the order in which the
 * plan's own forward pass reads what the updates write. plan->update.need says before which instruction of the next
 * step each update instruction must run.
 *
 * Source: Peng et al. 2019, A generic communication scheduler for distributed DNN training acceleration
 * (ByteScheduler).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <limits.h>
#include <stdlib.h>

#include "op/comm/op_reduce.h"
#include "plan/plan_call.h"

struct needs {
    const cvy_plan *plan;
    int nvariable, nbucket;
    int *of_variable; /* by variable: the first instruction before the update phase that uses it, INT_MAX: none */
    int *of_buffer;   /* by buffer: the earliest need of the update instructions that read it */
    int *of_bucket;
    int *of_instr; /* by instruction of the update phase */
};

struct place {
    int need, at;
};

static int by_need(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->need != y->need ? (x->need > y->need) - (x->need < y->need) : (x->at > y->at) - (x->at < y->at);
}

static cvy_variable *variable_of(const cvy_plan *plan, int buffer)
{
    const cvy_buffer *b = buffer < 0 ? NULL : &plan->buffer[plan->buffer[buffer].root];
    return b && (b->region == CVY_REGION_VARIABLE || b->region == CVY_REGION_SHADOW) ? b->value->variable : NULL;
}

static void lower(int *need, int other)
{
    *need = CVY_MIN(*need, other);
}

static void note_first_use(struct needs *n, int i)
{
    const cvy_instr *instr = &n->plan->instr[i];
    for (int k = 0; k < instr->nsrc + instr->ndst; k++) {
        const cvy_variable *v =
            variable_of(n->plan, k < instr->nsrc ? instr->src_buffer[k] : instr->dst_buffer[k - instr->nsrc]);
        if (v)
            lower(&n->of_variable[v->index], i);
    }
}

/* Runs from the last instruction to the first, so the readers of a result are done before its producer. */
static void note_need(struct needs *n, int i)
{
    const cvy_plan *plan = n->plan;
    const cvy_instr *instr = &plan->instr[i];
    int *need = &n->of_instr[i - plan->update.first];
    *need = INT_MAX;
    for (int d = 0; d < instr->ndst; d++) {
        const cvy_variable *v = variable_of(plan, instr->dst_buffer[d]);
        if (v)
            lower(need, n->of_variable[v->index]);
        if (instr->dst_buffer[d] >= 0)
            lower(need, n->of_buffer[plan->buffer[instr->dst_buffer[d]].root]);
    }
    const int bucket = cvy_instr_awaits_bucket(instr);
    if (bucket >= 0)
        lower(need, n->of_bucket[bucket]);
    for (int s = 0; s < instr->nsrc; s++) {
        const cvy_buffer *b = instr->src_buffer[s] < 0 ? NULL : &plan->buffer[plan->buffer[instr->src_buffer[s]].root];
        if (!b)
            continue;
        lower(&n->of_buffer[b - plan->buffer], *need);
        if (b->bucket >= 0)
            lower(&n->of_bucket[b->bucket], *need);
    }
}

static void find_needs(struct needs *n)
{
    const cvy_plan *plan = n->plan;
    for (int i = 0; i < n->nvariable; i++)
        n->of_variable[i] = INT_MAX;
    for (int i = 0; i < plan->nbuffer; i++)
        n->of_buffer[i] = INT_MAX;
    for (int i = 0; i < n->nbucket; i++)
        n->of_bucket[i] = INT_MAX;
    for (int i = 0; i < plan->update.first; i++)
        note_first_use(n, i);
    for (int i = plan->ninstr - 1; i >= plan->update.first; i--)
        note_need(n, i);
}

static cvy_status reorder(struct needs *n, cvy_plan *plan)
{
    const int count = plan->ninstr - plan->update.first;
    struct place *place = NULL;
    cvy_instr *sorted = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *place * ((size_t)count + 1), &place));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *sorted * ((size_t)count + 1), &sorted));
    for (int i = 0; i < count; i++)
        place[i] = (struct place){n->of_instr[i], i};
    qsort(place, (size_t)count, sizeof *place, by_need);
    for (int i = 0; i < count; i++) {
        sorted[i] = plan->instr[plan->update.first + place[i].at];
        plan->update.need[i] = CVY_MIN(place[i].need, plan->update.first);
    }
    for (int i = 0; i < count; i++)
        plan->instr[plan->update.first + i] = sorted[i];
out:
    cvy_mem_free(&sorted);
    cvy_mem_free(&place);
    return status;
}

cvy_status cvy_plan_order_deferred(cvy_plan *plan)
{
    struct needs n = {.plan = plan};
    cvy_status status = CVY_OK;
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_variable *v = variable_of(plan, i);
        n.nvariable = v ? CVY_MAX(n.nvariable, v->index + 1) : n.nvariable;
        n.nbucket = CVY_MAX(n.nbucket, plan->buffer[i].bucket + 1);
    }
    CVY_TRY_OUT(cvy_mem_alloc(sizeof(int) * ((size_t)n.nvariable + 1), &n.of_variable));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof(int) * ((size_t)plan->nbuffer + 1), &n.of_buffer));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof(int) * ((size_t)n.nbucket + 1), &n.of_bucket));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof(int) * ((size_t)(plan->ninstr - plan->update.first) + 1), &n.of_instr));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof(int) * ((size_t)(plan->ninstr - plan->update.first) + 1), &plan->update.need));
    find_needs(&n);
    CVY_TRY_OUT(reorder(&n, plan));
out:
    cvy_mem_free(&n.of_variable);
    cvy_mem_free(&n.of_buffer);
    cvy_mem_free(&n.of_bucket);
    cvy_mem_free(&n.of_instr);
    return status;
}
