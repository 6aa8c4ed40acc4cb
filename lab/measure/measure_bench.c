/*
 * measure_bench.c: sets up a network on synthetic data and times it: cvy_run_bench(), and the first part of
 * cvy_run_time() and cvy_run_check(). measure_bench_steps.c runs the steps, measure_bench_result.c makes figures of
 * them.
 *
 * It times the whole step with the plan and executor that train uses: forward, backward, all-reduce, update; or a part
 * of it (cvy_bench_mode). The time of a step is that of the slowest rank. A built-in network is timed as PyTorch's own
 * benchmarks do it: SGD with momentum 0.9, and batch-norm statistics over the rank's local batch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "base/machine/base_machine.h"
#include "base/number/base_rng.h"
#include "job/job_table.h"
#include "measure/measure_bench.h"
#include "model/model_import.h"
#include "op/loss/op_loss.h"
#include "program/program_fill.h"
#include "program/program_tune.h"
#include "session/session_strategy.h"

/* ---- the data ---- */

static cvy_field field(char *name, cvy_dtype dtype, const cvy_shape *shape)
{
    return (cvy_field){name, dtype, *shape};
}

/* Describes data with images of this shape and a label, or a map of labels; classes 0: without labels. */
static void describe(cvy_bench *b, const cvy_shape *input, int64_t classes, int is_map)
{
    static char x[] = "x", label[] = "label", y[] = "y";
    const cvy_shape one = {0}, map = cvy_shape_make(input->ndim - 1, input->dim + 1);
    b->data = (cvy_dataset_info){.nfield = classes > 0 ? 2 : 1, .nclasses = classes, .format = "synthetic data"};
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
    /* a network of others takes labels that are all 0, if it or the caller has a loss */
    const int has_loss = !job->import || cvy_model_has_loss(job->import->model) || job->train.nloss > 0;
    const int64_t classes = def ? def->classes : !own ? 10 : has_loss;
    describe(b, o->input.ndim || !own ? &o->input : own, o->classes > 0 ? o->classes : classes, def && def->is_map);
    return CVY_OK;
}

/* Keeps the grid of the job for the program, and gives the job a grid of one rank. */
static void foresee_grid(cvy_bench *b)
{
    cvy_job *job = b->session.job;
    cvy_job_grid(job, b->foreseen);
    for (int a = CVY_AXIS_PIPELINE; a < CVY_AXES && b->opts.batch == 0 && job->train.batch_per_rank == 0; a++)
        job->train.batch *= b->foreseen[a];
    job->program.pipeline = job->program.tensor = 1;
    memset(job->program.spatial, 0, sizeof job->program.spatial);
}

cvy_status cvy_bench_open(cvy_context *context, const cvy_bench_opts *opts, cvy_bench *b)
{
    const cvy_bench_opts *o = &b->opts;
    *b = (cvy_bench){.peak_flop_per_s = NAN, .loss_first = NAN, .loss_last = NAN};
    CVY_TRY(cvy_comm_agree(context->comm, CVY_OPTS_READ(cvy_bench_opts, opts, &b->opts)));
    CVY_CHECK((unsigned)o->mode <= CVY_BENCH_FORWARD_BACKWARD, CVY_E_ARGUMENT,
              "opts.mode is %d, and there is no such mode", (int)o->mode);
    cvy_mem_peak_reset();
    b->session.kernels = o->kernels;
    CVY_TRY(o->job ? cvy_session_open_job(context, o->job, &b->session)
                   : cvy_bench_open_network(context, o, &b->session));
    cvy_job *job = b->session.job;
    if (o->batch > 0)
        job->train.batch = o->batch, job->train.batch_per_rank = 0;
    if (o->foresee)
        foresee_grid(b);
    if (o->dtype != CVY_DTYPE_F32)
        job->program.dtype = o->dtype;
    if (o->planning) /* an unknown word is refused when the program is made */
        job->program.planning = o->planning;
    return cvy_comm_agree(context->comm, find_data(b));
}

/* The search measures kernels and links, which are not those of the ranks for which the clock stands. */
static cvy_status check_auto(const cvy_bench *b)
{
    cvy_kernels kernels = cvy_job_kernels(b->session.job);
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
    const cvy_strategy_run run = {.data = &b->data};
    double step_s = 0;
    cvy_session *s = &b->session;
    if (b->has_grid)
        return CVY_OK;
    b->has_grid = 1;
    CVY_TRY(cvy_comm_agree(s->context->comm, check_auto(b)));
    CVY_TRY(cvy_session_choose_grid(s, &run, &step_s));
    if (step_s > 0 && s->notes.status == CVY_OK)
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

/* Whether a loss with a range of targets reads the feed, or something computed, as its target. */
static int has_range(const cvy_plan *plan, const char *feed, double *min_out, double *max_out)
{
    const cvy_graph *g = plan->lowered[0]->graph;
    const cvy_value *value = cvy_graph_find(g, feed);
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        const cvy_loss_each_def *each = node->op->build == cvy_loss_each_build ? node->op->family : NULL;
        if (node->removed || !each || each->target_min >= each->target_max ||
            (node->src[1] != value && !node->src[1]->producer))
            continue;
        *min_out = each->target_min;
        *max_out = each->target_max;
        return 1;
    }
    return 0;
}

/* Fills values with mean 0 and variance 1, targets in the range that their loss has, labels below the number of
 * classes, indices of 0, and weights of 1. The rows are the same for any number of ranks. */
static void fill_feed(const cvy_bench *b, const cvy_plan *plan, const cvy_plan_feed *feed, int64_t first_row)
{
    const cvy_span span = {.dtype = feed->dtype, .data = feed->data};
    const cvy_rng rng = cvy_rng_make(1, feed->name, 0, 0);
    cvy_tile tile;
    const cvy_shape part = cvy_feed_part(feed, &tile);
    const int64_t elems = cvy_shape_elems(&part), whole = cvy_shape_elems(&tile.whole), n = feed->shape.dim[0] * elems;
    const int is_real = feed->dtype == CVY_DTYPE_F32 || feed->dtype == CVY_DTYPE_F64,
              is_zero = is_index(plan, feed->name);
    double min = -sqrt(3), max = sqrt(3);
    (void)has_range(plan, feed->name, &min, &max);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (first_row + i / elems) * whole + cvy_tile_index(&tile, &part, i % elems);
        if (is_zero)
            cvy_set(&span, i, 0);
        else if (strcmp(feed->name, CVY_SAMPLE_WEIGHT) == 0)
            cvy_set(&span, i, 1);
        else if (strcmp(feed->name, "sample_id") == 0)
            cvy_set(&span, i, (double)at);
        else if (is_real)
            cvy_set(&span, i, min + (max - min) * ((double)cvy_rng_u32(&rng, (uint64_t)at) / 4294967296.0));
        else
            cvy_set(&span, i, (double)cvy_rng_below(&rng, (uint64_t)at, (uint64_t)CVY_MAX(b->data.nclasses, 1)));
    }
}

static void fill_feeds(const cvy_bench *b)
{
    for (int k = 0; k < b->nturn; k++) {
        const cvy_plan *plan = cvy_bench_turn_plan(b, k);
        const int64_t first = cvy_program_first_row(b->session.program, b->turn[k].number);
        for (int i = 0; i < plan->feeds.count; i++)
            if (!plan->feeds.feed[i].per_step)
                fill_feed(b, plan, &plan->feeds.feed[i], first);
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
    opts->update_mode = 0; /* the default, with which gradients_only goes */
    opts->update_servers = opts->update_staleness = 0;
    opts->overlap = opts->overlap == CVY_OVERLAP_FORWARD ? CVY_OVERLAP_BACKWARD : opts->overlap;
    opts->gradients_only = 1;
    return CVY_OK;
}

/* A network without a loss, on data without a target, is applied. */
static cvy_status choose_mode(cvy_bench *b)
{
    const cvy_session *s = &b->session;
    const int is_trained = cvy_model_has_loss(s->model);
    CVY_CHECK(
        is_trained || b->opts.mode != CVY_BENCH_FORWARD_BACKWARD, CVY_E_CONFIG,
        "%s: the network has no loss, so there is no backward pass: take the mode forward, or give a loss and data "
        "with a target (train.loss, data.train)",
        s->job->file);
    b->is_applied = !is_trained && !cvy_dataset_target(&b->data);
    if (!is_trained)
        b->opts.mode = CVY_BENCH_FORWARD;
    return CVY_OK;
}

static cvy_status make_program(cvy_bench *b, const char *kernels, const char *passes_off)
{
    cvy_session *s = &b->session;
    cvy_program_opts opts;
    cvy_training_opts training;
    const cvy_losses losses = b->opts.mode == CVY_BENCH_FORWARD ? CVY_LOSSES_NONE : CVY_LOSSES_IF_TARGET;
    CVY_TRY(cvy_job_model(s->job, s->context, &b->data, losses, &s->model));
    CVY_TRY(choose_mode(b));
    const int forward = b->opts.mode == CVY_BENCH_FORWARD;
    opts = cvy_job_program_opts(s->job, NULL);
    CVY_TRY(cvy_job_training_opts(s->job, &training));
    opts.kernels = kernels ? kernels : b->opts.kernels ? b->opts.kernels : opts.kernels;
    opts.planning = b->opts.planning ? b->opts.planning : opts.planning;
    opts.passes_off = passes_off ? passes_off : b->opts.passes_off ? b->opts.passes_off : opts.passes_off;
    if (b->opts.mode == CVY_BENCH_FORWARD_BACKWARD)
        CVY_TRY(leave_out_update(s->job, &opts));
    CVY_CHECK(forward || opts.update_staleness == 0, CVY_E_CONFIG,
              "%s: bench times steps that all ranks take together: set update.staleness to 0", s->job->file);
    CVY_TRY(cvy_job_translate(cvy_program_create(s->context, &opts, &s->program)));
    cvy_program_foresee(s->program, b->foreseen);
    CVY_TRY(cvy_job_batch(s->job, forward ? s->context->comm->nranks : cvy_program_nworkers(s->program), &b->batch));
    cvy_job_group_variables(s->job, s->program);
    if (b->takes_turns && !forward && s->job->train.nturn > 0)
        return cvy_bench_add_turns(b, &training);
    CVY_TRY(cvy_job_translate(b->is_applied ? cvy_job_add_forward(b->opts.model ? b->opts.model : s->job->file,
                                                                  s->model, b->batch, s->program, &b->number)
                              : forward
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
    CVY_TRY(cvy_program_warn_of_host(b->session.program, &b->number, 1));
    if (!cvy_program_by_clock(b->session.program))
        fill_feeds(b);
    return CVY_OK;
}

/* ---- bench ---- */

cvy_status cvy_run_bench(cvy_context *context, const cvy_bench_opts *opts, cvy_bench_result *result_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_bench b;
    cvy_status status = cvy_bench_open(context, opts, &b);
    b.takes_turns = 1;
    if (status == CVY_OK)
        status = cvy_bench_plan(&b, NULL, NULL);
    if (status == CVY_OK)
        status = cvy_bench_measure(&b, 0);
    if (status == CVY_OK)
        status = cvy_comm_agree(context->comm, cvy_bench_report(&b, result_out));
    cvy_bench_close(&b);
    return status;
}
