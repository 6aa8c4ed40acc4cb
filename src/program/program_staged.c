/*
 * program_staged.c: which operators of a program on a device the host computes, on copies of tensors, and why.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "backend/gpu/gpu.h"
#include "plan/plan_call.h"
#include "program/program_impl.h"

enum { OPS_MAX = 32 };

struct count {
    const char *op[OPS_MAX];
    int nop, staged, all; /* operators; calls that the host computes; all calls */
};

static void count_call(struct count *c, const cvy_call *call)
{
    int i = 0;
    c->all += cvy_call_runs_node(call);
    if (!cvy_call_is_staged(call))
        return;
    c->staged++;
    while (i < c->nop && strcmp(c->op[i], call->node->op->name) != 0)
        i++;
    if (i == OPS_MAX)
        return;
    c->op[i] = call->node->op->name;
    c->nop = CVY_MAX(c->nop, i + 1);
}

static void count_task(struct count *c, const cvy_plan *plan)
{
    const cvy_lowered *u = plan->lowered[plan->nmicro - 1];
    for (int i = 0; i < u->ncall; i++)
        count_call(c, &u->call[i]);
}

int cvy_program_name_staged(const cvy_program *p, const int *task, int ntask, cvy_text *out, int *all_out)
{
    struct count c = {.nop = 0};
    for (int k = 0; k < ntask; k++)
        count_task(&c, p->task[task[k]]->plan);
    for (int i = 0; i < c.nop; i++)
        cvy_text_add(out, "%s%s", i ? ", " : "", c.op[i]);
    *all_out = c.all;
    return c.staged;
}

static cvy_status warn(const cvy_program *p, const int *task, int ntask, cvy_text *text)
{
    int all = 0;
    cvy_gpu_name_faults(&p->context->space, text);
    for (const char *at = text->data; at && *at; at = strchr(at, '\n') + 1)
        cvy_log(p->context, CVY_LOG_WARN, "%.*s", (int)strcspn(at, "\n"), at);
    cvy_text_free(text);
    const int staged = cvy_program_name_staged(p, task, ntask, text, &all);
    if (staged > 0 && text->status == CVY_OK)
        cvy_log(p->context, CVY_LOG_WARN,
                "%s has no kernel for %d of the %d calls of a step, so the host computes them, on copies of tensors, "
                "which takes time: %s; `convoy plan --explain` says why",
                p->context->device, staged, all, text->data);
    return text->status;
}

cvy_status cvy_program_warn_of_host(const cvy_program *p, const int *task, int ntask)
{
    cvy_text text = {0};
    if (cvy_space_is_host(&p->context->space))
        return CVY_OK;
    const cvy_status status = warn(p, task, ntask, &text);
    cvy_text_free(&text);
    return status;
}
