/*
 * program_tune.c: rank 0 looks up or measures kernel times, and tells all ranks which kernels it chose. Kernels decide
 * the layouts of variables, which must be the same on all ranks. While rank 0 measures, the others sleep.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/program_compare.h"
#include "program/program_impl.h"

/* A machine counts as busy if this share of the measured times varied, and so many of them. */
static const double busy_share = 0.2;
enum { BUSY_LEAST = 10 };

static void say_result(const cvy_program *p)
{
    const cvy_tuning *t = &p->kernel.tuning;
    if (t->nmeasured > 0)
        cvy_log(p->context, CVY_LOG_INFO, "planning: %d times measured in %.1f s, %d nodes changed; wisdom: %s",
                t->nmeasured, t->seconds, t->nchanged,
                p->kernel.wisdom->path ? p->kernel.wisdom->path : "not saved in a file");
    if (t->nvaried > busy_share * t->nmeasured && t->nvaried >= BUSY_LEAST)
        cvy_log(
            p->context, CVY_LOG_WARN,
            "%d of %d times of kernels varied by more than 5 %% and were measured again: other programs seem to use "
            "this machine. If the plan is slow, remove the wisdom and plan again when it is idle",
            t->nvaried, t->nmeasured);
}

/* With a given plan, times are only looked up and never measured. */
static cvy_planning planning_of(const cvy_program *p)
{
    return p->kernel.choices ? CVY_PLANNING_ESTIMATE : p->kernel.planning;
}

int cvy_program_is_turn(const cvy_program *p, int task)
{
    return p->task[task]->label && p->task[task]->batch == p->task[0]->batch;
}

static cvy_status settle(const cvy_graph *graph, cvy_keys *settled)
{
    int number = 0;
    for (int n = 0; n < graph->nnode; n++)
        if (!graph->node[n]->removed)
            CVY_TRY(cvy_keys_add(settled, graph->node[n]->name, &number));
    return CVY_OK;
}

static void add_counts(cvy_tuning *sum, const cvy_tuning *more)
{
    sum->nmeasured += more->nmeasured;
    sum->nvaried += more->nvaried;
    sum->seconds += more->seconds;
}

/* Adds what was found for a later turn. Its choices replace the earlier ones, which are among them. */
static void add_tuning(cvy_tuning *sum, cvy_tuning *more)
{
    cvy_mem_free(&sum->choices);
    sum->choices = more->choices;
    sum->nchanged = more->nchanged;
    add_counts(sum, more);
}

/* Goes back to the kernels before, if a step of the measured ones is slower as a whole. Plans without fused updates
 * take over what plans with them have found, so that simulated ranks have the kernels of a rank alone. */
static cvy_status check_whole(cvy_program *p, const cvy_plan_opts *opts, cvy_graph *graph, const char *before, int task,
                              cvy_tuning *tuning)
{
    cvy_plan_opts own = *opts;
    cvy_tuning priced = {0};
    cvy_tree *tree = NULL;
    int slower = 0;
    const int takes_over = p->kernel.stores_gradients;
    double *ms = p->task[task]->price.whole_ms, known[] = {ms[0], ms[1]};
    ms[0] = ms[1] = 0;
    if (!tuning->choices)
        return CVY_OK;
    CVY_TRY(cvy_program_compare(p, opts, graph, before, tuning->choices,
                                planning_of(p) != CVY_PLANNING_ESTIMATE && !takes_over, takes_over ? known : NULL, ms,
                                &slower));
    if (!slower)
        return CVY_OK;
    const char *text = before ? before : "{}";
    CVY_TRY(cvy_tree_parse_text(p->pool, "choices before", text, strlen(text), &tree));
    own.choices = tree;
    own.settled = NULL;
    CVY_TRY(cvy_plan_tune(graph, &own, planning_of(p), p->kernel.wisdom, &priced));
    add_counts(&priced, tuning);
    cvy_mem_free(&priced.choices);
    cvy_mem_free(&tuning->choices);
    *tuning = priced;
    tuning->nchanged = before ? p->kernel.tuning.nchanged : 0;
    return before ? cvy_mem_strdup(before, &tuning->choices) : CVY_OK;
}

/* Chooses kernels for one task. settled: the nodes of the tasks before, to which it adds those of this task. */
static cvy_status tune_task(cvy_program *p, const cvy_plan_opts *opts, cvy_make_task_graph_fn make, int task,
                            cvy_keys *settled)
{
    cvy_plan_opts own = *opts;
    cvy_tuning tuning = {0};
    cvy_tree *before = NULL;
    cvy_graph *graph = NULL;
    const char *text = task > 0 ? p->kernel.tuning.choices : NULL;
    if (task > 0) {
        if (text)
            CVY_TRY(cvy_tree_parse_text(p->pool, "choices of earlier turns", text, strlen(text), &before));
        own.choices = before;
        own.settled = settled;
    }
    CVY_TRY(make(p, task, &graph));
    cvy_status status = cvy_plan_tune(graph, &own, planning_of(p), p->kernel.wisdom, &tuning);
    if (status == CVY_OK)
        status = check_whole(p, opts, graph, text, task, &tuning);
    if (status == CVY_OK && task == 0)
        p->kernel.tuning = tuning;
    else if (status == CVY_OK)
        add_tuning(&p->kernel.tuning, &tuning);
    else
        cvy_mem_free(&tuning.choices);
    if (status == CVY_OK)
        status = settle(graph, settled);
    cvy_graph_destroy(&graph);
    return status;
}

static cvy_status tune_tasks(cvy_program *p, const cvy_plan_opts *opts, cvy_make_task_graph_fn make)
{
    const int ntask = p->kernel.choices || !cvy_program_is_turn(p, 0) ? 1 : p->ntask;
    cvy_keys settled = {0};
    cvy_status status = CVY_OK;
    for (int i = 0; i < ntask && status == CVY_OK; i++)
        if (i == 0 || cvy_program_is_turn(p, i))
            status = tune_task(p, opts, make, i, &settled);
    cvy_keys_free(&settled);
    p->kernel.tuned = status == CVY_OK;
    return status;
}

/* One rank may fuse updates with gradients, and several may not (pass_fuse_update.c). For a plan that does, the kernels
 * without it are measured too, because simulations take the times of one rank. */
static cvy_status measure_unfused(cvy_program *p, const cvy_plan_opts *opts, cvy_make_task_graph_fn make)
{
    cvy_tuning chosen = p->kernel.tuning;
    p->kernel.tuning = (cvy_tuning){0};
    p->kernel.stores_gradients = 1;
    const cvy_status status = tune_tasks(p, opts, make);
    p->kernel.stores_gradients = 0;
    add_counts(&chosen, &p->kernel.tuning);
    cvy_mem_free(&p->kernel.tuning.choices);
    p->kernel.tuning = chosen;
    return status;
}

/* If no times are known and nothing is to be measured, the order of preference decides, at no cost. */
static cvy_status tune_here(cvy_program *p, const cvy_plan_opts *opts, cvy_make_task_graph_fn make)
{
    if (!p->kernel.wisdom)
        CVY_TRY(cvy_wisdom_open(p->opts.wisdom, &p->context->space, &p->kernel.wisdom));
    if (p->kernel.wisdom->warning)
        cvy_log(p->context, CVY_LOG_WARN, "%s", p->kernel.wisdom->warning);
    if (planning_of(p) == CVY_PLANNING_ESTIMATE && p->kernel.wisdom->key.count == 0)
        return CVY_OK;
    const int known = p->kernel.wisdom->key.count;
    CVY_TRY(tune_tasks(p, opts, make));
    if (p->kernel.wisdom->key.count > known && p->kernel.fuses_updates)
        CVY_TRY(measure_unfused(p, opts, make));
    if (cvy_wisdom_save(p->kernel.wisdom) != CVY_OK) /* planning continues: it only has to be repeated next time */
        cvy_log(p->context, CVY_LOG_WARN,
                "wisdom could not be saved: %s; set CONVOY_WISDOM to a file that can be written, or to off",
                cvy_error_text());
    say_result(p);
    return CVY_OK;
}

struct tune_work {
    cvy_program *p;
    const cvy_plan_opts *opts;
    cvy_make_task_graph_fn make;  /* for cvy_program_tune() */
    cvy_make_graph_fn make_stage; /* for cvy_program_tune_stages() */
};

static cvy_status tune_work(void *user)
{
    const struct tune_work *w = user;
    return tune_here(w->p, w->opts, w->make);
}

static cvy_status parse_choices(cvy_program *p, const char *text)
{
    cvy_tree *tree = NULL;
    CVY_TRY(cvy_tree_parse_text(p->pool, "choices of rank 0", text, strlen(text), &tree));
    p->kernel.choices = tree;
    return CVY_OK;
}

/* bytes includes the NUL; 0: no choices, the order of preference decides. */
static cvy_status share_choices(cvy_program *p)
{
    cvy_comm *comm = p->context->comm;
    uint64_t bytes = p->kernel.tuning.choices ? strlen(p->kernel.tuning.choices) + 1 : 0;
    char *text = NULL;
    if (comm->nranks > 1)
        CVY_TRY(comm->ops->broadcast(comm, &bytes, sizeof bytes, 0));
    if (bytes == 0)
        return CVY_OK;
    CVY_TRY(cvy_comm_agree(comm, cvy_pool_alloc(p->pool, bytes, &text)));
    if (p->kernel.tuning.choices)
        memcpy(text, p->kernel.tuning.choices, bytes);
    if (comm->nranks > 1)
        CVY_TRY(comm->ops->broadcast(comm, text, bytes, 0));
    return cvy_comm_agree(comm, parse_choices(p, text));
}

/* The kernel clock needs the times on all ranks. Rank 0's times are used, whatever files another rank could read.
 * Format of the text: each key, a NUL, its time, a NUL. */
static cvy_status pack_times(const cvy_wisdom *w, cvy_text *out)
{
    for (int i = 0; i < w->key.count; i++) {
        cvy_text_add_bytes(out, w->key.text[i], strlen(w->key.text[i]) + 1);
        cvy_text_add(out, "%.17g", w->ms[i]);
        cvy_text_add_bytes(out, "", 1);
    }
    return out->status;
}

static cvy_status unpack_times(cvy_program *p, const char *text, size_t bytes)
{
    cvy_wisdom_close(&p->kernel.wisdom);
    CVY_TRY(cvy_wisdom_open("off", &p->context->space, &p->kernel.wisdom));
    for (const char *at = text; at < text + bytes;) {
        const char *key = at, *ms = key + strlen(key) + 1;
        CVY_TRY(cvy_wisdom_add(p->kernel.wisdom, key, strtod(ms, NULL)));
        at = ms + strlen(ms) + 1;
    }
    return CVY_OK;
}

static cvy_status share_times(cvy_program *p)
{
    cvy_comm *comm = p->context->comm;
    cvy_text packed = {0};
    char *text = NULL;
    CVY_TRY(cvy_comm_agree(comm, cvy_comm_decides(comm) ? pack_times(p->kernel.wisdom, &packed) : CVY_OK));
    uint64_t bytes = packed.bytes;
    cvy_status status = comm->ops->broadcast(comm, &bytes, sizeof bytes, 0);
    if (status == CVY_OK && !cvy_comm_decides(comm))
        status = cvy_mem_alloc(bytes + 1, &text);
    status = cvy_comm_agree(comm, status);
    if (status == CVY_OK)
        status = comm->ops->broadcast(comm, cvy_comm_decides(comm) ? packed.data : text, bytes, 0);
    if (status == CVY_OK && !cvy_comm_decides(comm))
        status = unpack_times(p, text, bytes);
    cvy_text_free(&packed);
    cvy_mem_free(&text);
    p->kernel.clock.times = p->kernel.wisdom;
    return cvy_comm_agree(comm, status);
}

cvy_status cvy_program_tune(cvy_program *p, const cvy_plan_opts *opts, cvy_make_task_graph_fn make)
{
    cvy_comm *comm = p->context->comm;
    cvy_status status = CVY_OK;
    if (comm->nranks > 1 && !comm->pretended && planning_of(p) != CVY_PLANNING_ESTIMATE)
        status = cvy_comm_while_others_sleep(comm, tune_work, &(struct tune_work){p, opts, make, NULL});
    else if (cvy_comm_decides(comm))
        status = tune_here(p, opts, make);
    CVY_TRY(cvy_comm_agree(comm, status));
    if (p->kernel.by_clock)
        CVY_TRY(share_times(p));
    return p->kernel.choices ? CVY_OK : share_choices(p);
}

/* Nothing is searched. */
cvy_status cvy_program_price(cvy_program *p, const cvy_plan_opts *opts, cvy_make_graph_fn make)
{
    cvy_plan_opts chosen = *opts;
    cvy_tree *none = NULL;
    cvy_graph *graph = NULL;
    cvy_tuning tuning = {0};
    CVY_TRY(cvy_tree_parse_text(p->pool, "no choices", "{}", 2, &none));
    chosen.choices = opts->choices ? opts->choices : none;
    CVY_TRY(make(p, &graph));
    const cvy_status status = cvy_plan_tune(graph, &chosen, p->kernel.planning, p->kernel.wisdom, &tuning);
    cvy_graph_destroy(&graph);
    cvy_mem_free(&tuning.choices);
    return status;
}

static cvy_status price_stages(cvy_program *p, const cvy_plan_opts *opts, cvy_make_graph_fn make)
{
    cvy_grid *grid = &p->grid;
    const int mine = grid->stage;
    cvy_status status = CVY_OK;
    for (grid->stage = 0; grid->stage < grid->nstages && status == CVY_OK; grid->stage++)
        status = cvy_program_price(p, opts, make);
    grid->stage = mine;
    if (status == CVY_OK && cvy_wisdom_save(p->kernel.wisdom) != CVY_OK)
        cvy_log(p->context, CVY_LOG_WARN, "wisdom could not be saved: %s", cvy_error_text());
    return status;
}

static cvy_status stage_work(void *user)
{
    const struct tune_work *w = user;
    return price_stages(w->p, w->opts, w->make_stage);
}

/* A program that is only planned for a prediction needs the times of its own stage. */
static cvy_status price_own_stage(cvy_program *p, const cvy_plan_opts *opts, cvy_make_graph_fn make)
{
    return p->kernel.wisdom && p->kernel.planning != CVY_PLANNING_ESTIMATE ? cvy_program_price(p, opts, make) : CVY_OK;
}

cvy_status cvy_program_tune_stages(cvy_program *p, const cvy_plan_opts *opts, cvy_make_graph_fn make)
{
    cvy_comm *comm = p->context->comm;
    cvy_status status = CVY_OK;
    if (comm->pretended)
        return p->grid.nstages > 1 ? price_own_stage(p, opts, make) : CVY_OK;
    if (!p->kernel.by_clock || p->grid.nstages == 1 || p->kernel.planning == CVY_PLANNING_ESTIMATE)
        return CVY_OK;
    if (comm->nranks > 1)
        status = cvy_comm_while_others_sleep(comm, stage_work, &(struct tune_work){p, opts, NULL, make});
    else
        status = price_stages(p, opts, make);
    CVY_TRY(cvy_comm_agree(comm, status));
    return share_times(p);
}

cvy_status cvy_program_predict(const cvy_program *p, int task, cvy_prediction *out)
{
    const cvy_program_task *s = p->task[task];
    const cvy_tuning *first = &p->kernel.tuning;
    const int n = p->grid.nstages;
    CVY_CHECK(p->kernel.tuned && (task == 0 || s->price.is_known), CVY_NOT_APPLICABLE, "nothing was measured");
    const double share = p->kernel.timed_share > 0 ? p->kernel.timed_share : 1;
    const double micro_ms = task ? s->price.micro_ms : first->micro_ms / share,
                 update_ms = task ? s->price.update_ms : first->update_ms;
    *out = (cvy_prediction){.ms = n > 1 ? (s->nmicro + n - 1) * p->pipeline.slowest_ms + update_ms / n
                                        : s->nmicro * micro_ms + update_ms,
                            .ncall = task ? s->price.ncall : first->ncall,
                            .nunknown = task ? s->price.nunknown : first->nunknown};
    return CVY_OK;
}
