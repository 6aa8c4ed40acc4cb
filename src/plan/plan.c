/*
 * plan.c: a plan as an object: it is made from lowered graphs, step by step, and destroyed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/gpu.h"
#include "plan/plan_call.h"
#include "plan/plan_record.h"
#include "plan/plan_timer.h"

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
    (void)cvy_space_sync_all(p->opts.space); /* work of a device may still use the memory of the plan */
    cvy_plan_free_records(p);
    for (int i = 0; i < p->ninstr; i++)
        cvy_instr_release(&p->instr[i]);
    cvy_bucket_set_destroy(&p->buckets);
    cvy_messages_free(&p->messages);
    cvy_plan_free_marks(p);
    cvy_gpu_finite_destroy(&p->finite);
    cvy_mark_destroy(p->opts.space, &p->feeds.copied);
    cvy_mark_destroy(p->opts.space, &p->feeds.sent);
    if (p->feeds.ahead)
        cvy_space_free(p->opts.space, &p->feeds.ahead, p->feeds.ahead_bytes);
    cvy_mem_free(&p->host_copies.of);
    if (p->feeds.host && p->feeds.tensors != p->feeds.host)
        cvy_space_free(p->opts.space, &p->feeds.tensors, CVY_MAX(p->feeds.bytes, 64));
    if (p->feeds.host)
        cvy_space_free_host(p->opts.clock ? NULL : p->opts.space, &p->feeds.host, CVY_MAX(p->feeds.bytes, 64));
    if (p->host_copies.memory)
        cvy_space_free_host(p->opts.space, &p->host_copies.memory, p->host_copies.bytes);
    cvy_mem_free(&p->lowered);
    cvy_mem_free(&p->first_row);
    cvy_mem_free(&p->buffer);
    cvy_mem_free(&p->instr);
    cvy_pool_destroy(&p->pool);
    cvy_mem_free(&p->update.need);
    cvy_mem_free(&p->fillings.filling);
    cvy_mem_free(&p->times.memory);
    cvy_mem_free(&p->times.wait);
    cvy_mem_free(&p->times.rehearsed_s);
    cvy_mem_free(plan);
}
