/*
 * plan.c: a plan as an object: it is made from lowered graphs, step by step, and destroyed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_call.h"

cvy_status cvy_plan_create(cvy_lowered *const *lowered, int nmicro, const cvy_plan_opts *opts, cvy_plan **out)
{
    cvy_plan *plan = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *plan, &plan));
    plan->opts = *opts;
    plan->nmicro = nmicro;
    atomic_init(&plan->at, -1);
    CVY_TRY_OUT(cvy_pool_create(&plan->pool));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *plan->lowered * (size_t)nmicro, &plan->lowered));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *plan->first_row * (size_t)nmicro, &plan->first_row));
    for (int m = 0; m < nmicro; m++) {
        plan->lowered[m] = lowered[m];
        plan->first_row[m] = plan->rows;
        plan->rows += lowered[m]->graph->batch.local_n;
    }
    CVY_TRY_OUT(cvy_plan_schedule(plan));
    if (opts->deferred)
        CVY_TRY_OUT(cvy_plan_order_deferred(plan));
    CVY_TRY_OUT(cvy_plan_memory(plan));
    *out = plan;
    return CVY_OK;
out:
    cvy_plan_destroy(&plan);
    return status;
}

void cvy_plan_destroy(cvy_plan **plan)
{
    cvy_plan *p = *plan;
    if (!p)
        return;
    for (int i = 0; i < p->ninstr; i++)
        cvy_instr_release(&p->instr[i]);
    cvy_bucket_set_destroy(&p->buckets);
    cvy_messages_free(&p->messages);
    if (p->feeds.host && p->feeds.tensors != p->feeds.host)
        cvy_space_free(p->opts.space, &p->feeds.tensors, CVY_MAX(p->feeds.bytes, 64));
    if (p->feeds.host)
        cvy_mem_free_pages(&p->feeds.host, CVY_MAX(p->feeds.bytes, 64));
    cvy_mem_free(&p->host_copies.memory);
    cvy_mem_free(&p->lowered);
    cvy_mem_free(&p->first_row);
    cvy_mem_free(&p->buffer);
    cvy_mem_free(&p->instr);
    cvy_pool_destroy(&p->pool);
    cvy_mem_free(&p->update.need);
    cvy_mem_free(&p->accumulate.adding);
    cvy_mem_free(&p->times.memory);
    cvy_mem_free(&p->times.wait);
    cvy_mem_free(&p->times.rehearsed_s);
    cvy_mem_free(plan);
}
