/*
 * program_now.c: what a program does at this moment, for the watchdog, whose thread reads it while a step runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdatomic.h>
#include <stdio.h>

#include "program/program_impl.h"

/* The ranks over which a bucket is summed. over: its axes besides the data axis. */
static const char *sum_of(const cvy_plan *plan, unsigned over)
{
    if (!plan->opts.grid)
        return "all ranks";
    if (over & CVY_AXES_SPACE)
        return "the ranks that share samples";
    return over & CVY_AXIS_BIT(CVY_AXIS_PIPELINE) ? "all stages" : "the ranks of this stage";
}

/* Writes what a plan does now, as ", node conv1": the message or the reduction that it waits for, or else the node.
 * Writes nothing between steps. Returns 1 if it waits for other ranks. */
static int say_instr(const cvy_plan *plan, char *text, size_t room)
{
    const int bucket = atomic_load_explicit(&plan->buckets->waits, memory_order_relaxed) - 1,
              at = atomic_load_explicit(&plan->at, memory_order_relaxed);
    char message[128];
    if (bucket >= 0 && bucket < plan->buckets->n)
        return snprintf(text, room, ", wait for the sum of bucket %d over %s", bucket,
                        sum_of(plan, plan->buckets->bucket[bucket].over)) > 0;
    if (at < 0 || at >= plan->ninstr)
        return 0;
    const cvy_instr *instr = &plan->instr[at];
    const int is_message = cvy_instr_message(instr, message, sizeof message);
    snprintf(text, room, "%s%s", is_message ? ", " : ", node ", is_message ? message : cvy_instr_text(instr));
    return is_message || cvy_instr_is_comm(instr);
}

/* The plan that runs, if one does: between steps none is at an instruction. */
static int say_running(const cvy_program *p, char *text, size_t room)
{
    int waits = 0;
    text[0] = 0;
    for (int i = 0; i < 2 * p->ntask && !text[0]; i++) {
        const cvy_plan *plan = i % 2 ? p->task[i / 2]->alternate : p->task[i / 2]->plan;
        waits = plan ? say_instr(plan, text, room) : 0;
    }
    return waits;
}

/* The collective in which this rank waits, on any axis of the process grid; NULL: none. */
static const char *collective_of(const cvy_program *p)
{
    const cvy_grid *grid = &p->grid;
    const char *collective = atomic_load_explicit(&p->context->comm->collective, memory_order_relaxed);
    for (int s = 0; s < CVY_AXIS_SETS && !collective; s++)
        collective = grid->over[s] ? atomic_load_explicit(&grid->over[s]->collective, memory_order_relaxed) : NULL;
    return collective;
}

int cvy_program_now(const cvy_program *p, char *text, size_t room)
{
    const cvy_grid *grid = &p->grid;
    const char *collective = collective_of(p);
    char waits[96] = "", running[160], stage[48] = "";
    const int awaits = say_running(p, running, sizeof running);
    if (grid->nstages > 1)
        snprintf(stage, sizeof stage, ", stage %d of %d", grid->stage + 1, grid->nstages);
    if (p->update.def->watch.waits_for)
        p->update.def->watch.waits_for(p, waits, sizeof waits);
    snprintf(text, room, "%s%s%s%s%s", stage, running, collective ? ", in " : "", collective ? collective : "", waits);
    return awaits || collective;
}

long long cvy_program_progress(const cvy_program *p)
{
    return p->update.def->watch.progress ? p->update.def->watch.progress(p) : 0;
}
