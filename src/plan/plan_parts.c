/*
 * plan_parts.c: whether the ranks of a node can share the update of the weights.
 *
 * The weights and the optimiser's states are then stored once per compute node, in memory that its ranks share. Each
 * rank sums one part of a bucket's gradients and updates the weights of that part. No rank sends sums or weights to
 * another; compared with a full update on every rank, this saves more than a third of the memory traffic. There is a
 * barrier before the first update, because another rank may still read the weights in its backward pass, and one after
 * the last update, before a rank reads them again.
 *
 * Source: Rajbhandari et al. 2020, ZeRO, stage 1, with shared memory instead of the all-gather of weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "optim/optim_update.h"
#include "plan/plan_call.h"

static const cvy_buffer *root_of(const cvy_plan *plan, int buffer)
{
    return buffer < 0 ? NULL : &plan->buffer[plan->buffer[buffer].root];
}

/* Whether the buffer can be reduced in parts. With ZeRO-1 (opts.zero1) only gradients are; other values are
 * all-reduced. */
static int is_summed(const cvy_plan *plan, const cvy_buffer *b)
{
    return b && b->region == CVY_REGION_STEP && b->bucket >= 0 && b->value->dtype == CVY_DTYPE_F32 &&
           (!plan->opts.zero1 || b->value->variable);
}

const cvy_buffer *cvy_instr_parted(const cvy_plan *plan, const cvy_instr *instr)
{
    const cvy_kernel_def *kernel = cvy_call_kernel(instr->call);
    if (!kernel || !kernel->in_parts || instr->nsrc <= CVY_OPTIM_GRADIENT || instr->src_buffer[CVY_OPTIM_GRADIENT] < 0)
        return NULL;
    const int number = instr->src_buffer[CVY_OPTIM_GRADIENT];
    const cvy_buffer *gradient = &plan->buffer[number];
    return gradient->root == number && is_summed(plan, gradient) ? gradient : NULL;
}

/* Whether an update writes only variables and shadow copies, in place. */
static int writes_variables_only(const cvy_plan *plan, const cvy_instr *instr)
{
    int all = 1;
    for (int d = 0; d < instr->ndst; d++) {
        const cvy_buffer *b = root_of(plan, instr->dst_buffer[d]);
        all = all && (!b || b->region == CVY_REGION_VARIABLE || b->region == CVY_REGION_SHADOW);
    }
    return all;
}

int cvy_plan_can_part(const cvy_plan *plan)
{
    int updates = 0;
    /* A sum over other axes, too, is not made in the memory that the ranks of a data axis share. With ZeRO-1 all ranks
     * over which a gradient is summed have a part of the update. */
    for (int i = 0; i < plan->nbuffer; i++)
        if (is_summed(plan, &plan->buffer[i]) &&
            (plan->buffer[i].value->is_output || (plan->buffer[i].value->over && !plan->opts.zero1)))
            return 0;
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const cvy_buffer *gradient = cvy_instr_parted(plan, instr);
        if (!instr->call || instr->call->phase != CVY_PHASE_UPDATE)
            continue;
        if (gradient && !writes_variables_only(plan, instr))
            return 0;
        for (int s = 0; s < instr->nsrc; s++)
            if (is_summed(plan, root_of(plan, instr->src_buffer[s])) && !(gradient && s == CVY_OPTIM_GRADIENT))
                return 0;
        updates += gradient != NULL;
    }
    return updates > 0;
}

void cvy_plan_each_parted(const cvy_plan *plan, void (*body)(cvy_variable *variable, void *arg), void *arg)
{
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        if (!cvy_instr_parted(plan, instr))
            continue;
        for (int d = 0; d < instr->ndst; d++) {
            const cvy_buffer *b = root_of(plan, instr->dst_buffer[d]);
            if (b && b->region == CVY_REGION_VARIABLE)
                body(b->value->variable, arg);
        }
    }
}
