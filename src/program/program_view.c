/*
 * program_view.c: answers to what other folders ask of a program and of its tasks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_timer.h"
#include "program/program_impl.h"

/* ---- a program ---- */

cvy_context *cvy_program_context(const cvy_program *p)
{
    return p->context;
}

const cvy_program_opts *cvy_program_options(const cvy_program *p)
{
    return &p->opts;
}

const cvy_grid *cvy_program_grid(const cvy_program *p)
{
    return &p->grid;
}

cvy_vars *cvy_program_vars(const cvy_program *p)
{
    return p->vars;
}

int cvy_program_is_ready(const cvy_program *p)
{
    return p->allocated;
}

int cvy_program_shares_weights(const cvy_program *p)
{
    return p->memory.node_shared != NULL;
}

int cvy_program_by_clock(const cvy_program *p)
{
    return p->kernel.by_clock;
}

int cvy_program_has_thread(const cvy_program *p)
{
    return p->reduce.opts.progress == CVY_PROGRESS_THREAD;
}

const char *cvy_program_first_layer(const cvy_program *p)
{
    return p->pipeline.layer.text[p->pipeline.first[p->grid.stage]];
}

const char *cvy_program_chosen(const cvy_program *p)
{
    return p->kernel.tuning.choices ? p->kernel.tuning.choices : "{}";
}

int cvy_program_ntasks(const cvy_program *p)
{
    return p->ntask;
}

/* ---- a task ---- */

cvy_task_about cvy_program_about(const cvy_program *p, int task)
{
    const cvy_program_task *s = p->task[task];
    return (cvy_task_about){.kind = !s->training             ? "forward"
                                    : p->opts.gradients_only ? "forward-backward"
                                                             : "training",
                            .label = s->label,
                            .batch = s->batch,
                            .trains = s->train.trains,
                            .optimizer = s->train.optimise.op};
}

cvy_plan *cvy_program_task_plan(const cvy_program *p, int task)
{
    return p->task[task]->plan;
}

const cvy_plan *cvy_program_latest_plan(const cvy_program *p, int task)
{
    return p->task[task]->latest ? p->task[task]->latest : p->task[task]->plan;
}

int cvy_program_has_input(const cvy_program *p, int task, const char *input)
{
    return cvy_plan_find_feed(p->task[task]->plan, input) != NULL;
}

int cvy_program_micro_rows(const cvy_program *p, int task, int micro, int64_t *first_out, int64_t *n_out)
{
    const cvy_plan *plan = p->task[task]->plan;
    if (micro >= plan->nmicro)
        return 0;
    *first_out = plan->first_row[micro];
    *n_out = plan->lowered[micro]->graph->batch.local_n;
    return 1;
}

int cvy_program_share_state(const cvy_program *p, int task, int other)
{
    return p->task[task]->shares >> other & 1;
}

const cvy_variable *cvy_program_next_trained(const cvy_program *p, int task, int *at)
{
    const cvy_graph *g = p->task[task]->split.graph[0];
    while (*at < g->nnode) {
        const cvy_node *node = g->node[(*at)++];
        if (!node->removed && node->op->flags & CVY_OP_OPTIMIZER)
            return node->src[0]->variable;
    }
    return NULL;
}

cvy_status cvy_program_time_instructions(const cvy_program *p)
{
    for (int i = 0; i < p->ntask; i++) {
        CVY_TRY(cvy_plan_time_instructions(p->task[i]->plan));
        if (p->task[i]->alternate)
            CVY_TRY(cvy_plan_time_instructions(p->task[i]->alternate));
    }
    return CVY_OK;
}

const cvy_step_time *cvy_program_time(const cvy_program *p, int task)
{
    return &p->task[task]->time;
}

const char *cvy_program_lost(const cvy_program *p, int task)
{
    return p->task[task]->lost;
}

int cvy_program_steps(const cvy_program *p, int64_t steps_out[CVY_TASKS_MAX])
{
    for (int i = 0; i < p->ntask; i++)
        steps_out[i] = p->task[i]->count;
    return p->ntask;
}

void cvy_program_set_steps(cvy_program *p, const int64_t steps[CVY_TASKS_MAX])
{
    for (int i = 0; i < p->ntask; i++)
        p->task[i]->count = steps[i];
}
