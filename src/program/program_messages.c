/*
 * program_messages.c: checks before the first step that the stages of a pipeline never wait for each other in a circle.
 *
 * Each stage lists what its plan does with messages, in order. The first stage then plays all lists against each other:
 * a wait for a receive passes when the message is being sent, and a wait for a send when it is being received (as MPI
 * does with large messages). If no stage can go on before all have ended, the plan has a fault, which would hang.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "op/comm/op_message.h"
#include "program/program_impl.h"

typedef struct event {
    int32_t starts, waits, receives; /* as of a cvy_op_comm */
    int32_t peer, tag, micro;        /* peer: a stage */
} event;

/* The events of a plan; NULL: only counts them. */
static int64_t list_events(const cvy_plan *plan, event *out)
{
    int64_t n = 0;
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const cvy_op_comm *comm = cvy_instr_comm(instr);
        if (!comm || comm->exchange != CVY_EXCHANGE_MESSAGE)
            continue;
        const struct cvy_message_options *o = instr->call->node->options;
        if (out)
            out[n] =
                (event){comm->starts, comm->waits, comm->receives, (int32_t)o->stage, (int32_t)o->tag, instr->micro};
        n++;
    }
    return n;
}

/* The lists of all stages. */
struct game {
    const event *list; /* [nstages][room]; a list ends with an event of zeros, or after room */
    int64_t room;
    int nstages;
    int64_t *at; /* [nstages]: the next event of each */
};

static const event *event_at(const struct game *g, int stage, int64_t i)
{
    const event *e = &g->list[stage * g->room + i];
    return i < g->room && (e->starts || e->waits) ? e : NULL;
}

/* Whether the other stage has started its side of the message that this stage waits for. */
static int has_started(const struct game *g, int stage, const event *wanted)
{
    for (int64_t i = g->at[wanted->peer] - 1; i >= 0; i--) {
        const event *e = event_at(g, wanted->peer, i);
        if (e->starts && e->receives != wanted->receives && e->peer == stage && e->tag == wanted->tag &&
            e->micro == wanted->micro)
            return 1;
    }
    return 0;
}

static int can_pass(const struct game *g, int stage, const event *e)
{
    return !e->waits || has_started(g, stage, e);
}

static cvy_status play(struct game *g)
{
    for (int moved = 1; moved;) {
        moved = 0;
        for (int s = 0; s < g->nstages; s++)
            for (const event *e; (e = event_at(g, s, g->at[s])) != NULL && can_pass(g, s, e); moved = 1)
                g->at[s]++;
    }
    for (int s = 0; s < g->nstages; s++) {
        const event *e = event_at(g, s, g->at[s]);
        CVY_CHECK(!e, CVY_E_INTERNAL,
                  "the plan would hang: stage %d of the pipeline waits for ever to %s message %d of micro-batch %d %s "
                  "stage %d",
                  s + 1, e->receives ? "receive" : "send", e->tag, e->micro, e->receives ? "from" : "to", e->peer + 1);
    }
    return CVY_OK;
}

static cvy_status check_plan(const cvy_plan *plan, cvy_comm *comm)
{
    int64_t room = list_events(plan, NULL);
    event *mine = NULL, *all = NULL;
    struct game g = {.nstages = comm->nranks};
    cvy_status status = CVY_OK;
    CVY_TRY(comm->ops->allreduce(comm, &room, 1, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    if (room == 0)
        return CVY_OK;
    CVY_TRY_OUT(cvy_comm_alloc(comm, sizeof *mine * (size_t)room, &mine));
    CVY_TRY_OUT(cvy_comm_alloc(comm, sizeof *all * (size_t)room * (size_t)comm->nranks, &all));
    CVY_TRY_OUT(cvy_comm_alloc(comm, sizeof *g.at * (size_t)comm->nranks, &g.at));
    list_events(plan, mine);
    CVY_TRY_OUT(comm->ops->allgather(comm, mine, sizeof *mine * (size_t)room, all));
    g.list = all;
    g.room = room;
    status = comm->rank == 0 ? play(&g) : CVY_OK;
    status = cvy_comm_agree(comm, status);
out:
    cvy_mem_free(&mine);
    cvy_mem_free(&all);
    cvy_mem_free(&g.at);
    return status;
}

cvy_status cvy_program_check_messages(const cvy_program *p)
{
    cvy_status status = CVY_OK;
    if (p->context->comm->pretended) /* the plans of the other stages are not here; plan_forecast.c plays all of them */
        return CVY_OK;
    for (int i = 0; i < p->ntask && p->grid.pipeline && status == CVY_OK; i++)
        status = check_plan(p->task[i]->plan, p->grid.pipeline);
    return p->grid.pipeline ? cvy_comm_agree(p->context->comm, status) : CVY_OK;
}
