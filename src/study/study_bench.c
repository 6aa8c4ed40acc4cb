/*
 * study_bench.c: sets up a network on synthetic data and times it: cvy_run_bench(), and the first part of
 * cvy_run_time() and cvy_run_check().
 *
 * It times the whole step with the plan and executor that train uses: forward, backward, all-reduce, update; or a part
 * of it (cvy_bench_mode). The time of a step is that of the slowest rank. A built-in network is timed as PyTorch's own
 * benchmarks do it: SGD with momentum 0.9, and batch-norm statistics over the rank's local batch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_opts.h"
#include "base/machine/base_machine.h"
#include "base/number/base_rng.h"
#include "exchange/exchange.h"
#include "job/job_table.h"
#include "monitor/monitor_trace.h"
#include "program/program_fill.h"
#include "program/program_tune.h"
#include "search/search.h"
#include "study/study.h"
#include "study/study_result.h"

#define SECONDS_DEFAULT 5.0

enum { STEPS_LEAST = 5, STEPS_MAX = 20000 }; /* limits of the number of steps, if it is not given */

/* ---- the data ---- */

static cvy_field field(char *name, cvy_dtype dtype, const cvy_shape *shape)
{
    return (cvy_field){name, dtype, *shape};
}

/* Describes data with images of this shape and a label, or a map of labels. */
static void describe(cvy_bench *b, const cvy_shape *input, int64_t classes, int is_map)
{
    static char x[] = "x", label[] = "label", y[] = "y";
    const cvy_shape one = {0}, map = cvy_shape_make(input->ndim - 1, input->dim + 1);
    b->data = (cvy_dataset_info){.nfield = 2, .nclasses = classes, .format = "synthetic data"};
    b->data.field[0] = field(x, CVY_DTYPE_F32, input);
    b->data.field[1] = field(is_map ? y : label, CVY_DTYPE_I32, is_map ? &map : &one);
}

/* Decides the shape of the data: as the options say, as the job's data, or as the network prefers. */
static cvy_status find_data(cvy_bench *b)
{
    const cvy_bench_opts *o = &b->opts;
    const cvy_job *job = b->session.job;
    if (o->job && o->input.ndim == 0) {
        CVY_TRY(cvy_dataset_open(job->data.train, job->data.steps, 0, 1, &b->session.train));
        b->data = *cvy_dataset_describe(b->session.train);
        b->data.nclasses = o->classes > 0 ? o->classes : b->data.nclasses;
        return CVY_OK;
    }
    const cvy_model_def *def = NULL;
    const cvy_shape *own = job->import ? &job->import->model->input[0].sample_shape : NULL;
    int64_t number = 0;
    if (o->model && !own) {
        CVY_TRY(cvy_model_resolve(o->model, &def, &number));
        own = &def->input;
    }
    /* any network takes labels that are all 0 */
    const int64_t classes = def ? def->classes : own ? 1 : 10;
    describe(b, o->input.ndim || !own ? &o->input : own, o->classes > 0 ? o->classes : classes, def && def->is_map);
    return CVY_OK;
}

/* A word that is none is refused when the program is made. */
static void set_planning(const cvy_bench_opts *o, cvy_job *job)
{
    cvy_planning planning;
    if (o->planning && cvy_planning_parse(o->planning, &planning) == CVY_OK)
        job->plan.planning = (int)planning;
}

/* Keeps the grid of the job for the program, and gives the job a grid of one rank. */
static void foresee_grid(cvy_bench *b)
{
    cvy_job *job = b->session.job;
    cvy_job_grid(job, b->foreseen);
    for (int a = CVY_AXIS_PIPELINE; a < CVY_AXES && b->opts.batch == 0 && job->train.batch_per_rank == 0; a++)
        job->train.batch *= b->foreseen[a];
    job->parallel.pipeline = job->parallel.tensor = 1;
    job->parallel.spatial.count = 0;
}

cvy_status cvy_bench_open(cvy_context *context, const cvy_bench_opts *opts, cvy_bench *b)
{
    const cvy_bench_opts *o = &b->opts;
    *b = (cvy_bench){.peak_flop_per_s = NAN, .loss_first = NAN, .loss_last = NAN};
    CVY_TRY(cvy_comm_agree(context->comm, CVY_OPTS_READ(cvy_bench_opts, opts, &b->opts)));
    CVY_CHECK((unsigned)o->mode <= CVY_BENCH_FORWARD_BACKWARD, CVY_E_ARGUMENT,
              "opts.mode is %d, and there is no such mode", (int)o->mode);
    cvy_mem_peak_reset();
    CVY_TRY(o->job ? cvy_session_open_job(context, o->job, &b->session)
                   : cvy_bench_open_network(context, o, &b->session));
    cvy_job *job = b->session.job;
    if (o->batch > 0)
        job->train.batch = o->batch, job->train.batch_per_rank = 0;
    if (o->foresee)
        foresee_grid(b);
    if (o->dtype != CVY_DTYPE_F32)
        job->train.dtype = o->dtype;
    set_planning(o, job);
    return cvy_comm_agree(context->comm, find_data(b));
}

/* The search measures kernels and links, which are not those of the ranks for which the clock stands. */
static cvy_status check_auto(const cvy_bench *b)
{
    cvy_kernels kernels = b->session.job->plan.kernels;
    if (b->session.job->parallel.strategy != CVY_PARALLEL_AUTO)
        return CVY_OK;
    if (b->opts.kernels)
        CVY_TRY(cvy_kernels_parse(b->opts.kernels, &kernels));
    CVY_CHECK(!kernels.by_clock, CVY_E_CONFIG,
              "%s: parallel is auto, which is not for the kernel clock: find a grid with convoy plan --ranks N --link "
              "TIME,RATE, and name it: --set \"parallel={pipeline: 2}\"",
              cvy_job_where(b->session.job, NULL, "parallel"));
    return CVY_OK;
}

cvy_status cvy_bench_choose_grid(cvy_bench *b)
{
    const cvy_search_run_info run = {.data = &b->data};
    cvy_search_choice choice;
    cvy_session *s = &b->session;
    if (b->has_grid)
        return CVY_OK;
    b->has_grid = 1;
    CVY_TRY(cvy_comm_agree(s->context->comm, check_auto(b)));
    CVY_TRY(cvy_search_choose(s->context, s->job, &run, &s->notes, &choice));
    if (choice.step_s > 0 && s->notes.status == CVY_OK)
        cvy_log(s->context, CVY_LOG_INFO, "%.*s", (int)strcspn(s->notes.data, "\n"), s->notes.data);
    return CVY_OK;
}

void cvy_bench_close(cvy_bench *b)
{
    cvy_mem_free(&b->step_s);
    cvy_mem_free(&b->comm_s);
    cvy_mem_free(&b->hidden_s);
    cvy_mem_free(&b->busy_s);
    cvy_mem_free(&b->busy_min_s);
    cvy_mem_free(&b->slowest_s);
    cvy_mem_free(&b->bubble_s);
    for (int a = 0; a < CVY_COMM_AXES; a++)
        cvy_mem_free(&b->axis_s[a]);
    cvy_mem_free(&b->node_s);
    cvy_session_close(&b->session);
}

/* ---- synthetic rows ---- */

/* Whether a table is looked up with the numbers of a feed. */
static int is_index(const cvy_plan *plan, const char *feed)
{
    const cvy_graph *g = plan->lowered[0]->graph;
    const cvy_value *value = cvy_graph_find(g, feed);
    for (int n = 0; n < g->nnode; n++)
        if ((g->node[n]->op->flags & CVY_OP_INDICES) && g->node[n]->src[0] == value)
            return 1;
    return 0;
}

/* Fills values with mean 0 and variance 1, labels below the number of classes, indices of 0, and weights of 1. The rows
 * are the same for any number of ranks. */
static void fill_feed(const cvy_bench *b, const cvy_plan *plan, const cvy_plan_feed *feed, int64_t first_row)
{
    const cvy_span span = {.dtype = feed->dtype, .data = feed->data};
    const cvy_rng rng = cvy_rng_make(1, feed->name, 0, 0);
    cvy_tile tile;
    const cvy_shape part = cvy_feed_part(feed, &tile);
    const int64_t elems = cvy_shape_elems(&part), whole = cvy_shape_elems(&tile.whole), n = feed->shape.dim[0] * elems;
    const int is_real = feed->dtype == CVY_DTYPE_F32 || feed->dtype == CVY_DTYPE_F64,
              is_zero = is_index(plan, feed->name);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (first_row + i / elems) * whole + cvy_tile_index(&tile, &part, i % elems);
        if (is_zero)
            cvy_set(&span, i, 0);
        else if (strcmp(feed->name, "weight") == 0)
            cvy_set(&span, i, 1);
        else if (strcmp(feed->name, "sample_id") == 0)
            cvy_set(&span, i, (double)at);
        else if (is_real)
            cvy_set(&span, i, ((double)cvy_rng_u32(&rng, (uint64_t)at) / 4294967296.0 - 0.5) * sqrt(12.0));
        else
            cvy_set(&span, i, (double)cvy_rng_below(&rng, (uint64_t)at, (uint64_t)CVY_MAX(b->data.nclasses, 1)));
    }
}

static void fill_feeds(const cvy_bench *b)
{
    for (int k = 0; k < b->nturn; k++) {
        const cvy_program_task *task = cvy_bench_task(b, k);
        for (int i = 0; i < task->plan->feeds.count; i++)
            if (!task->plan->feeds.feed[i].per_step)
                fill_feed(b, task->plan, &task->plan->feeds.feed[i], task->split.first_row);
    }
}

/* ---- the program ---- */

/* Without an update all update modes are the same. */
static cvy_status leave_out_update(const cvy_job *job, cvy_program_opts *opts)
{
    CVY_CHECK(
        opts->shards == 0, CVY_E_CONFIG,
        "%s: deterministic training has no steps of forward-backward, because its shards are summed over the ranks: "
        "set deterministic to false",
        job->file);
    opts->update_mode = CVY_UPDATE_SYNC;
    opts->update_servers = opts->update_staleness = 0;
    opts->overlap_forward = 0;
    opts->gradients_only = 1;
    return CVY_OK;
}

static cvy_status make_program(cvy_bench *b, const char *kernels, const char *passes_off)
{
    cvy_session *s = &b->session;
    const int forward = b->opts.mode == CVY_BENCH_FORWARD;
    cvy_program_opts opts;
    cvy_training_opts training;
    CVY_TRY(cvy_job_model(s->job, s->context, &b->data, !forward, &s->model));
    CVY_TRY(cvy_job_program_opts(s->job, NULL, &opts));
    CVY_TRY(cvy_job_training_opts(s->job, &training));
    opts.kernels = kernels ? kernels : b->opts.kernels ? b->opts.kernels : opts.kernels;
    opts.planning = b->opts.planning ? b->opts.planning : opts.planning;
    opts.passes_off = passes_off ? passes_off : b->opts.passes_off ? b->opts.passes_off : opts.passes_off;
    if (b->opts.mode == CVY_BENCH_FORWARD_BACKWARD)
        CVY_TRY(leave_out_update(s->job, &opts));
    CVY_CHECK(forward || opts.update_staleness == 0, CVY_E_CONFIG,
              "%s: bench times steps that all ranks take together: set update.staleness to 0", s->job->file);
    CVY_TRY(cvy_job_translate(cvy_program_create(s->context, &opts, &s->program)));
    memcpy(s->program->pipeline.foreseen, b->foreseen, sizeof b->foreseen);
    CVY_TRY(cvy_job_batch(s->job, forward ? s->context->comm->nranks : cvy_program_nworkers(s->program), &b->batch));
    cvy_job_group_variables(s->job, s->program);
    if (b->takes_turns && !forward && s->job->train.nturn > 0)
        return cvy_bench_add_turns(b, &training);
    CVY_TRY(cvy_job_translate(forward
                                  ? cvy_program_add_forward(s->program, s->model, b->batch, NULL, &b->number)
                                  : cvy_program_add_training(s->program, s->model, b->batch, &training, &b->number)));
    b->turn[0] = (struct cvy_bench_turn){.number = b->number, .every = 1, .lr_mult = 1};
    b->nturn = 1;
    return CVY_OK;
}

cvy_status cvy_bench_make_program(cvy_bench *b, const char *kernels, const char *passes_off)
{
    return cvy_bench_name_option(&b->opts, make_program(b, kernels, passes_off));
}

cvy_status cvy_bench_plan(cvy_bench *b, const char *kernels, const char *passes_off)
{
    const double begin = cvy_clock_s();
    CVY_TRY(cvy_bench_choose_grid(b));
    CVY_TRY(cvy_comm_agree(b->session.context->comm, cvy_bench_make_program(b, kernels, passes_off)));
    CVY_TRY(cvy_job_translate(cvy_program_plan(b->session.program)));
    b->plan_s = cvy_clock_s() - begin;
    b->step = b->session.program->task[b->number];
    if (!b->session.program->kernel.by_clock)
        fill_feeds(b);
    return CVY_OK;
}

/* ---- steps ---- */

cvy_status cvy_bench_step(cvy_bench *b, double *seconds_out)
{
    const double begin = cvy_clock_s();
    const struct cvy_job_update *update = &b->session.job->update;
    const int updates = b->opts.mode != CVY_BENCH_FORWARD_BACKWARD;
    b->time = (cvy_step_time){0};
    CVY_TRY(cvy_bench_take_turns(b));
    b->nstep++;
    if (updates && update->def->flush_every && b->nstep % update->def->flush_every(update->options) == 0)
        CVY_TRY(cvy_program_flush(b->session.program));
    *seconds_out = cvy_clock_s() - begin;
    return CVY_OK;
}

cvy_status cvy_bench_loss(const cvy_bench *b, double *loss_out)
{
    cvy_comm *comm = b->session.context->comm;
    const int forward = b->opts.mode == CVY_BENCH_FORWARD, own = b->opts.mode == CVY_BENCH_FORWARD_BACKWARD;
    double sum = forward ? NAN : 0;
    for (int k = 0; k < b->nturn && !forward; k++) {
        const cvy_program_task *task = cvy_bench_task(b, k);
        for (int i = 0; i < task->nloss; i++) {
            double loss = 0;
            CVY_TRY(cvy_program_loss(b->session.program, b->turn[k].number, task->loss[i].name, &loss));
            sum += own ? loss * (double)task->plan->rows / (double)b->batch : loss;
        }
    }
    *loss_out = sum;
    return own ? comm->ops->allreduce(comm, loss_out, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM) : CVY_OK;
}

/* Runs the steps that are not timed, and gives the seconds of the last one. */
static cvy_status warm_up(cvy_bench *b, double *last_out)
{
    const int64_t warmup = b->opts.warmup > 0 ? b->opts.warmup : 2;
    for (int64_t i = 0; i < warmup; i++) {
        CVY_TRY(cvy_bench_step(b, last_out));
        if (i == 0)
            CVY_TRY(cvy_bench_loss(b, &b->loss_first));
    }
    return CVY_OK;
}

/* Decides how many more steps to time, the same number on all ranks; 0: enough. If no number is given, it is as many as
 * fit into half of the remaining time, by the mean of all steps so far. So one step that is slow or fast by chance has
 * little effect, and the ranks need only a few all-reduces to agree. */
static cvy_status more_steps(cvy_bench *b, double elapsed_s, double mean_s, int64_t *more_out)
{
    cvy_comm *comm = b->session.context->comm;
    double time[2] = {elapsed_s, mean_s};
    *more_out = b->steps ? 0 : b->opts.steps;
    if (b->opts.steps > 0)
        return CVY_OK;
    CVY_TRY(comm->ops->allreduce(comm, time, CVY_COUNT(time), CVY_DTYPE_F64, CVY_REDUCE_MAX));
    const double left = SECONDS_DEFAULT - time[0], fit = 0.5 * left / CVY_MAX(time[1], 1e-6);
    const int64_t room = STEPS_MAX - b->steps, missing = STEPS_LEAST - b->steps;
    *more_out = CVY_MIN(room, CVY_MAX(left > 0 ? (int64_t)CVY_MAX(fit, 1) : 0, missing));
    return CVY_OK;
}

/* Ranks leave a step together. A rank that was busy for less time than the slowest one has waited for it. */
static cvy_status compare_ranks(cvy_bench *b)
{
    cvy_comm *comm = b->session.context->comm;
    const int64_t n = b->steps;
    CVY_TRY(comm->ops->allreduce(comm, b->step_s, n, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    CVY_TRY(comm->ops->allreduce(comm, b->comm_s, n, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    CVY_TRY(comm->ops->allreduce(comm, b->hidden_s, n, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    CVY_TRY(comm->ops->allreduce(comm, b->busy_s, n, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    CVY_TRY(comm->ops->allreduce(comm, b->busy_min_s, n, CVY_DTYPE_F64, CVY_REDUCE_MIN));
    CVY_TRY(comm->ops->allreduce(comm, b->slowest_s, n, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    for (int a = 0; a < CVY_COMM_AXES; a++)
        CVY_TRY(comm->ops->allreduce(comm, b->axis_s[a], n, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    CVY_TRY(comm->ops->allreduce(comm, b->bubble_s, n, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    for (int64_t i = 0; i < n; i++)
        b->bubble_s[i] /= comm->nranks;
    for (int64_t i = 0; i < n; i++) /* until here slowest_s is the sum of the busy times of all ranks */
        b->slowest_s[i] = b->busy_s[i] - b->slowest_s[i] / comm->nranks;
    return CVY_OK;
}

static cvy_status time_step(cvy_bench *b, int64_t i, int64_t node_steps_max)
{
    const int ninstr = cvy_bench_ninstr(b, b->nturn);
    CVY_TRY(cvy_bench_step(b, &b->step_s[i]));
    b->comm_s[i] = b->time.exposed_comm;
    b->hidden_s[i] = b->time.hidden_comm;
    b->busy_s[i] = b->busy_min_s[i] = b->slowest_s[i] = b->time.total - b->time.exposed_comm;
    for (int a = 0; a < CVY_COMM_AXES; a++)
        b->axis_s[a][i] = cvy_step_time_axis(&b->time, (cvy_comm_axis)a);
    b->bubble_s[i] = b->time.bubble;
    b->own.total += b->time.total;
    b->own.exposed_comm += b->time.exposed_comm;
    b->own.bubble += b->time.bubble;
    for (int turn = 0; i < node_steps_max && turn < b->nturn; turn++) {
        const cvy_plan *plan = cvy_bench_task(b, turn)->plan;
        double *to = b->node_s + i * ninstr + cvy_bench_ninstr(b, turn);
        for (int k = 0; k < plan->ninstr; k++)
            to[k] = plan->times.end_s[k] - plan->times.end_s[k - 1];
    }
    return CVY_OK;
}

static cvy_status time_steps(cvy_bench *b, double warm_s, int64_t node_steps_max)
{
    cvy_comm *comm = b->session.context->comm;
    const int64_t room = b->opts.steps > 0 ? b->opts.steps : STEPS_MAX;
    double **const figures[] = {&b->step_s,     &b->comm_s,    &b->hidden_s, &b->busy_s,
                                &b->busy_min_s, &b->slowest_s, &b->bubble_s};
    for (int i = 0; i < CVY_COUNT(figures); i++)
        CVY_TRY(cvy_mem_alloc(sizeof(double) * (size_t)room, figures[i]));
    for (int a = 0; a < CVY_COMM_AXES; a++)
        CVY_TRY(cvy_mem_alloc(sizeof(double) * (size_t)room, &b->axis_s[a]));
    CVY_TRY(cvy_mem_alloc(sizeof(double) * (size_t)(CVY_MIN(room, node_steps_max) * cvy_bench_ninstr(b, b->nturn)),
                          &b->node_s));
    CVY_TRY(comm->ops->barrier(comm));
    const int64_t sent_bytes = cvy_program_sent_bytes(b->session.program);
    const double begin_s = cvy_clock_s();
    int64_t more = 0;
    CVY_TRY(more_steps(b, 0, warm_s, &more));
    while (more > 0) {
        for (int64_t end = b->steps + more; b->steps < end; b->steps++)
            CVY_TRY(time_step(b, b->steps, node_steps_max));
        const double elapsed_s = cvy_clock_s() - begin_s;
        CVY_TRY(more_steps(b, elapsed_s, elapsed_s / (double)b->steps, &more));
    }
    b->node_steps = CVY_MIN(b->steps, node_steps_max);
    b->bytes_wire = (double)(cvy_program_sent_bytes(b->session.program) - sent_bytes) / (double)b->steps;
    CVY_TRY(comm->ops->allreduce(comm, &b->bytes_wire, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    CVY_TRY(cvy_bench_loss(b, &b->loss_last));
    return compare_ranks(b);
}

/* The matrix product is timed before and after the steps, and the better result counts, because other work on the
 * machine can only make it slower. */
cvy_status cvy_bench_measure(cvy_bench *b, int64_t node_steps_max)
{
    cvy_context *context = b->session.context;
    const cvy_dtype dtype = b->session.program->opts.dtype;
    const int by_clock = b->session.program->kernel.by_clock;
    double before = NAN, after = NAN, warm_s = 0;
    if (!by_clock)
        CVY_TRY(cvy_bench_peak(context, dtype, &before));
    CVY_TRY(warm_up(b, &warm_s));
    CVY_TRY(time_steps(b, warm_s, node_steps_max));
    CVY_TRY(cvy_program_flush(
        b->session.program)); /* a delayed update may be pending, and measuring the peak runs another program */
    if (!by_clock)
        CVY_TRY(cvy_bench_peak(context, dtype, &after));
    b->peak_flop_per_s = by_clock ? NAN : CVY_MAX(before, after);
    return b->opts.trace ? cvy_trace_write(b->session.program, b->number, b->opts.trace) : CVY_OK;
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cvy_median(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

int cvy_node_multiplies(const cvy_node *node)
{
    if (node->backward || node->phase != CVY_PHASE_MICRO)
        return 0;
    for (int i = 0; i < node->nsrc; i++) {
        const cvy_value *v = node->src[i];
        if (v && v->kind == CVY_VALUE_VARIABLE && v->variable->role == CVY_ROLE_WEIGHT && v->shape.ndim >= 2)
            return 1;
    }
    return 0;
}

/* Views do no work. */
cvy_work cvy_step_work(const cvy_plan *plan)
{
    cvy_work work = {0};
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_call *call = plan->instr[i].call;
        if (!call || (call->kind != CVY_CALL_KERNEL && call->kind != CVY_CALL_REFERENCE))
            continue;
        const double flop = (double)cvy_node_cost(call->node).flop;
        work.flop += flop;
        work.macs += cvy_node_multiplies(call->node) ? 0.5 * flop : 0;
    }
    return work;
}

static int64_t count_parameters(const cvy_vars *vars)
{
    int64_t n = 0;
    for (int i = 0; i < vars->count; i++)
        if (vars->at[i]->role == CVY_ROLE_WEIGHT)
            n += cvy_shape_elems(vars->at[i]->tile ? &vars->at[i]->tile->whole : &vars->at[i]->shape);
    return n;
}

void cvy_bench_fill_head(const cvy_bench *b, cvy_bench_result *r)
{
    const cvy_session *s = &b->session;
    snprintf(r->model, sizeof r->model, "%s", s->job->import && b->opts.model ? b->opts.model : s->model->name);
    r->batch = b->batch;
    r->mode = b->opts.mode;
    r->dtype = s->program->opts.dtype;
    r->input = b->data.field[0].shape;
    r->threads = s->context->threads;
    r->ranks = s->context->comm->nranks;
    r->nodes = s->context->comm->nnodes;
    r->deterministic_shards = s->program->opts.shards;
    r->by_clock = s->program->kernel.by_clock;
    r->pipeline = s->program->pipeline.grid.nstages;
    r->micro_batches = b->step->nmicro;
}

/* With one axis only, exposed_comm_ms says all. An axis on which no rank ever waited is left out. */
static void fill_axes(const cvy_bench *b, cvy_bench_result *r)
{
    const cvy_grid *grid = &b->session.program->pipeline.grid;
    double *const to[] = {[CVY_COMM_DATA] = &r->exposed_data_ms,
                          [CVY_COMM_PIPELINE] = &r->exposed_pipeline_ms,
                          [CVY_COMM_TENSOR] = &r->exposed_tensor_ms,
                          [CVY_COMM_SPATIAL] = &r->exposed_spatial_ms};
    const int64_t n = b->steps;
    double step_s = 0, bubble_s = 0;
    for (int64_t i = 0; i < n; i++) {
        step_s += b->step_s[i];
        bubble_s += b->bubble_s[i];
    }
    for (int a = 0; a < CVY_COMM_AXES; a++) {
        const double ms = 1e3 * cvy_median(b->axis_s[a], n);
        *to[a] = grid->ndata < grid->all->nranks && ms > 0 ? ms : NAN;
    }
    r->bubble = grid->nstages > 1 ? bubble_s / step_s : NAN;
    r->bubble_predicted = grid->nstages > 1 ? cvy_program_bubble(b->session.program, b->number) : NAN;
}

void cvy_bench_fill_times(const cvy_bench *b, double flop, cvy_bench_result *r)
{
    const int64_t n = b->steps;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += b->step_s[i];
    for (int64_t i = 0; i < n; i++)
        squares += (b->step_s[i] - sum / (double)n) * (b->step_s[i] - sum / (double)n);
    const double middle = cvy_median(b->step_s, n), best = b->step_s[0];
    r->images_per_s = (double)(b->batch * n) / sum;
    r->images_per_s_best = (double)b->batch / best;
    r->images_per_s_node = r->images_per_s / b->session.context->comm->nnodes;
    r->images_per_s_rank = r->images_per_s / b->session.context->comm->nranks;
    r->ms_median = 1e3 * middle;
    r->ms_mean = 1e3 * sum / (double)n;
    r->ms_sd = n > 1 ? 1e3 * sqrt(squares / (double)(n - 1)) : 0;
    r->ms_best = 1e3 * best;
    r->steps = n;
    r->gflop = 1e-9 * flop;
    r->gflop_per_s = 1e-9 * flop / middle;
    r->peak_gflop_per_s = 1e-9 * b->peak_flop_per_s;
    r->peak_share = flop / middle / b->peak_flop_per_s;
    snprintf(r->update, sizeof r->update, "%s",
             b->opts.mode == CVY_BENCH_FORWARD_BACKWARD ? "none" : b->session.job->update.def->name);
    snprintf(r->progress, sizeof r->progress, "%s", b->session.job->comm.progress);
    r->bytes_wire = b->bytes_wire;
    r->exposed_comm_ms = 1e3 * cvy_median(b->comm_s, n);
    r->hidden_comm_ms = 1e3 * cvy_median(b->hidden_s, n);
    r->wait_slowest_ms = 1e3 * cvy_median(b->slowest_s, n);
    for (int64_t i = 0; i < n; i++)
        b->busy_s[i] -= b->busy_min_s[i];
    r->spread_ms = 1e3 * cvy_median(b->busy_s, n);
    fill_axes(b, r);
}

/* ---- bench ---- */

#define AT(field) offsetof(cvy_bench_result, field)

static const cvy_result_row rows[] = {
    CVY_BENCH_HEAD_ROWS(cvy_bench_result),
    {"images_per_s", CVY_RESULT_REAL, AT(images_per_s), 0},
    {"images_per_s_node", CVY_RESULT_REAL, AT(images_per_s_node), 0},
    {"images_per_s_rank", CVY_RESULT_REAL, AT(images_per_s_rank), 0},
    {"images_per_s_best", CVY_RESULT_REAL, AT(images_per_s_best), 0},
    {"nodes", CVY_RESULT_INT, AT(nodes), 0},
    {"ms_median", CVY_RESULT_REAL, AT(ms_median), 0},
    {"ms_mean", CVY_RESULT_REAL, AT(ms_mean), 0},
    {"ms_sd", CVY_RESULT_REAL, AT(ms_sd), 0},
    {"ms_best", CVY_RESULT_REAL, AT(ms_best), 0},
    {"steps", CVY_RESULT_COUNT, AT(steps), 0},
    {"gflop", CVY_RESULT_REAL, AT(gflop), 0},
    {"gflop_per_s", CVY_RESULT_REAL, AT(gflop_per_s), 0},
    {"peak_gflop_per_s", CVY_RESULT_REAL, AT(peak_gflop_per_s), 0},
    {"peak_share", CVY_RESULT_REAL, AT(peak_share), 0},
    {"update", CVY_RESULT_TEXT, AT(update), 0},
    {"progress", CVY_RESULT_TEXT, AT(progress), 0},
    {"bytes_wire", CVY_RESULT_REAL, AT(bytes_wire), 0},
    {"exposed_comm_ms", CVY_RESULT_REAL, AT(exposed_comm_ms), 0},
    {"hidden_comm_ms", CVY_RESULT_REAL, AT(hidden_comm_ms), 0},
    {"wait_slowest_ms", CVY_RESULT_REAL, AT(wait_slowest_ms), 0},
    {"spread_ms", CVY_RESULT_REAL, AT(spread_ms), 0},
    {"pipeline", CVY_RESULT_INT, AT(pipeline), 0},
    {"micro_batches", CVY_RESULT_INT, AT(micro_batches), 0},
    {"exposed_data_ms", CVY_RESULT_REAL, AT(exposed_data_ms), 1},
    {"exposed_pipeline_ms", CVY_RESULT_REAL, AT(exposed_pipeline_ms), 1},
    {"exposed_tensor_ms", CVY_RESULT_REAL, AT(exposed_tensor_ms), 1},
    {"exposed_spatial_ms", CVY_RESULT_REAL, AT(exposed_spatial_ms), 1},
    {"bubble", CVY_RESULT_REAL, AT(bubble), 1},
    {"bubble_predicted", CVY_RESULT_REAL, AT(bubble_predicted), 1},
    {"parameters", CVY_RESULT_COUNT, AT(parameters), 0}, /* from here on the rows belong to `bench` only */
    {"macs", CVY_RESULT_COUNT, AT(macs), 0},
    {"loss_first", CVY_RESULT_REAL, AT(loss_first), 0},
    {"loss_last", CVY_RESULT_REAL, AT(loss_last), 0},
    {"peak_rss_bytes", CVY_RESULT_REAL, AT(peak_rss_bytes), 0},
    {"peak_rss_bytes_largest_rank", CVY_RESULT_REAL, AT(peak_rss_bytes_largest_rank), 0},
    {"arena_bytes", CVY_RESULT_COUNT, AT(arena_bytes), 0},
    {"plan_s", CVY_RESULT_REAL, AT(plan_s), 0},
    {"predicted_ms", CVY_RESULT_REAL, AT(predicted_ms), 1},
    {0},
};

void cvy_bench_add_times(const cvy_bench_result *result, cvy_json *json)
{
    cvy_result_row until[CVY_COUNT(rows)];
    int n = 0;
    while (strcmp(rows[n].name, "parameters") != 0)
        n++;
    memcpy(until, rows, (size_t)n * sizeof *rows);
    until[n] = (cvy_result_row){0};
    cvy_result_add(until, result, json);
}

cvy_status cvy_bench_result_json(const cvy_bench_result *result, char **text_out)
{
    cvy_bench_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_bench_result, result, &r));
    return cvy_result_json(rows, &r, text_out);
}

cvy_status cvy_bench_result_lines(const cvy_bench_result *result, char **text_out)
{
    cvy_bench_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_bench_result, result, &r));
    return cvy_result_lines(rows, &r, text_out);
}

static cvy_status report(const cvy_bench *b, cvy_bench_result *result_out)
{
    const cvy_program *p = b->session.program;
    cvy_comm *comm = b->session.context->comm;
    const cvy_work mine = cvy_bench_work(b);
    double sums[] = {mine.flop, mine.macs, (double)cvy_mem_peak()}, largest = sums[2], predicted_ms = 0;
    cvy_bench_result r = {.parameters = count_parameters(p->vars),
                          .loss_first = b->loss_first,
                          .loss_last = b->loss_last,
                          .arena_bytes = (int64_t)p->memory.arena_bytes,
                          .plan_s = b->plan_s,
                          .predicted_ms = NAN};
    int nunknown = 0;
    CVY_TRY(comm->ops->allreduce(comm, sums, CVY_COUNT(sums), CVY_DTYPE_F64, CVY_REDUCE_SUM));
    CVY_TRY(comm->ops->allreduce(comm, &largest, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    if (comm->rank != 0)
        return CVY_OK;
    cvy_bench_fill_head(b, &r);
    cvy_bench_fill_times(b, sums[0], &r);
    r.macs = llround(sums[1] / (double)b->batch);
    r.peak_rss_bytes = sums[2];
    r.peak_rss_bytes_largest_rank = largest;
    if (b->nturn == 1 && cvy_program_predict(p, b->number, &predicted_ms, &nunknown) == CVY_OK && nunknown == 0)
        r.predicted_ms = predicted_ms;
    CVY_TRY(CVY_RESULT_CHECK(cvy_bench_result, result_out));
    cvy_result_write(result_out, &r, sizeof r);
    return CVY_OK;
}

cvy_status cvy_run_bench(cvy_context *context, const cvy_bench_opts *opts, cvy_bench_result *result_out)
{
    cvy_bench b;
    cvy_status status = cvy_bench_open(context, opts, &b);
    b.takes_turns = 1;
    if (status == CVY_OK)
        status = cvy_bench_plan(&b, NULL, NULL);
    if (status == CVY_OK)
        status = cvy_bench_measure(&b, 0);
    if (status == CVY_OK)
        status = cvy_comm_agree(context->comm, report(&b, result_out));
    cvy_bench_close(&b);
    return status;
}
