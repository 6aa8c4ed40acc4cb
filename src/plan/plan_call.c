/*
 * plan_call.c: what calls and instructions do, by their kinds and operators.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_call.h"

#include "op/comm/op_reduce.h"

typedef struct kind_def {
    const char *name;
    unsigned is_comm : 1;  /* it waits for other ranks or starts an exchange */
    unsigned computes : 1; /* it takes compute time, for which a clock waits */
    unsigned no_host : 1;  /* on a device it only puts work into the lane COMPUTE */
    int passes;            /* cvy_instr_passes() */
} kind_def;

static const kind_def kinds[] = {
    [CVY_CALL_KERNEL] = {"kernel", .computes = 1, .no_host = 1},
    [CVY_CALL_REFERENCE] = {"reference", .computes = 1},
    [CVY_CALL_STAGED] = {"staged", .computes = 1},
    [CVY_CALL_REORDER] = {"reorder", .computes = 1, .no_host = 1},
    [CVY_CALL_VIEW] = {.name = "view"},
    [CVY_CALL_COMM] = {"comm", .is_comm = 1},
    [CVY_CALL_ABSENT] = {.name = "absent"},
    /* it reads two numbers and writes one */
    [CVY_CALL_ACCUMULATE] = {"accumulate", .computes = 1, .no_host = 1, .passes = 3},
    [CVY_CALL_ZERO] = {"zero", .computes = 1, .no_host = 1, .passes = 1},
    [CVY_CALL_BARRIER] = {"barrier", .is_comm = 1},
};

/* ---- calls ---- */

int cvy_call_runs_node(const cvy_call *call)
{
    return call && (call->kind == CVY_CALL_KERNEL || call->kind == CVY_CALL_REFERENCE || call->kind == CVY_CALL_STAGED);
}

const cvy_kernel_def *cvy_call_kernel(const cvy_call *call)
{
    return call && call->kind == CVY_CALL_KERNEL ? call->kernel : NULL;
}

int cvy_call_is_staged(const cvy_call *call)
{
    return call && call->kind == CVY_CALL_STAGED;
}

int cvy_call_reorders(const cvy_call *call)
{
    return call && call->kind == CVY_CALL_REORDER;
}

int cvy_call_is_timed(const cvy_call *call)
{
    return cvy_call_runs_node(call) || cvy_call_reorders(call);
}

int cvy_call_makes_shadow(const cvy_lowered *u, const cvy_call *call)
{
    return cvy_call_reorders(call) && u->instance[call->dst[0]].is_shadow;
}

int cvy_call_is_view(const cvy_call *call)
{
    return call && call->kind == CVY_CALL_VIEW;
}

void cvy_call_become_view(cvy_call *call)
{
    call->kind = CVY_CALL_VIEW;
}

/* ---- instructions ---- */

const char *cvy_instr_text(const cvy_instr *instr)
{
    return instr->kind == CVY_CALL_BARRIER    ? "barrier of the node's ranks"
           : instr->call && instr->call->node ? instr->call->node->name
                                              : kinds[instr->kind].name;
}

const char *cvy_instr_runs_by(const cvy_instr *instr)
{
    const cvy_kernel_def *kernel = cvy_call_kernel(instr->call);
    return kernel ? kernel->name : cvy_instr_comm(instr) ? instr->call->node->op->name : kinds[instr->kind].name;
}

int cvy_instr_computes(const cvy_instr *instr)
{
    return kinds[instr->kind].computes;
}

int cvy_instr_needs_no_host(const cvy_instr *instr)
{
    return kinds[instr->kind].no_host;
}

int cvy_instr_is_comm(const cvy_instr *instr)
{
    return kinds[instr->kind].is_comm;
}

const cvy_op_comm *cvy_instr_comm(const cvy_instr *instr)
{
    return instr->kind == CVY_CALL_COMM ? instr->call->node->op->comm : NULL;
}

/* The bucket of an operator that exchanges one; -1: it exchanges something else. */
static int bucket_of(const cvy_instr *instr, const cvy_op_comm *comm)
{
    return comm && comm->exchange == CVY_EXCHANGE_BUCKET
               ? (int)((const struct cvy_reduce_options *)instr->call->node->options)->bucket
               : -1;
}

int cvy_instr_starts_bucket(const cvy_instr *instr)
{
    const cvy_op_comm *comm = cvy_instr_comm(instr);
    return comm && comm->starts ? bucket_of(instr, comm) : -1;
}

int cvy_instr_awaits_bucket(const cvy_instr *instr)
{
    const cvy_op_comm *comm = cvy_instr_comm(instr);
    return comm && comm->waits ? bucket_of(instr, comm) : -1;
}

int cvy_instr_exchanges(const cvy_instr *instr)
{
    return instr->kind == CVY_CALL_BARRIER || bucket_of(instr, cvy_instr_comm(instr)) >= 0;
}

int cvy_instr_zeroes(const cvy_instr *instr)
{
    return instr->kind == CVY_CALL_ZERO;
}

int cvy_instr_passes(const cvy_instr *instr)
{
    return kinds[instr->kind].passes;
}

/* A rehearsal runs something else in place of the operator, which has made no state then. */
void cvy_instr_release(cvy_instr *instr)
{
    const cvy_op_comm *comm = cvy_instr_comm(instr);
    if (comm && instr->state && instr->run == comm->run)
        comm->destroy(&instr->state);
}
