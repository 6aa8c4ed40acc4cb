/*
 * measure_bench_result.c: makes the figures of a bench of what its steps have taken, and writes them as lines and as
 * JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "base/machine/base_machine.h"
#include "base/number/base_moments.h"
#include "measure/measure_bench.h"

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
        if (!cvy_call_runs_node(call))
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
    r->dtype = cvy_program_options(s->program)->dtype;
    r->input = b->data.field[0].shape;
    r->threads = s->context->threads;
    r->ranks = s->context->comm->nranks;
    r->nodes = s->context->comm->nnodes;
    r->deterministic_shards = cvy_program_options(s->program)->shards;
    r->by_clock = cvy_program_by_clock(s->program);
    r->pipeline = cvy_program_grid(s->program)->nstages;
    r->micro_batches = cvy_bench_turn_plan(b, 0)->nmicro;
    if (!cvy_space_is_host(&s->context->space)) {
        cvy_device device;
        cvy_space_about(&s->context->space, &device);
        snprintf(r->device, sizeof r->device, "%s %s", s->context->device, device.name);
    }
}

/* With one axis only, exposed_comm_ms says all. An axis on which no rank ever waited is left out. */
static void fill_axes(const cvy_bench *b, cvy_bench_result *r)
{
    const cvy_grid *grid = cvy_program_grid(b->session.program);
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
    const cvy_moments step = cvy_moments_of_f64(b->step_s, n);
    const double middle = cvy_median(b->step_s, n), best = b->step_s[0];
    r->images_per_s = (double)b->batch / step.mean;
    r->images_per_s_best = (double)b->batch / best;
    r->images_per_s_node = r->images_per_s / b->session.context->comm->nnodes;
    r->images_per_s_rank = r->images_per_s / b->session.context->comm->nranks;
    r->ms_median = 1e3 * middle;
    r->ms_mean = 1e3 * step.mean;
    r->ms_sd = 1e3 * cvy_moments_sample_std(&step);
    r->ms_best = 1e3 * best;
    r->steps = n;
    r->gflop = 1e-9 * flop;
    r->gflop_per_s = 1e-9 * flop / middle;
    r->peak_gflop_per_s = 1e-9 * b->peak_flop_per_s;
    r->peak_share = flop / middle / b->peak_flop_per_s;
    snprintf(r->update, sizeof r->update, "%s",
             b->opts.mode == CVY_BENCH_FORWARD_BACKWARD ? "none" : b->session.job->update.def->name);
    snprintf(r->progress, sizeof r->progress, "%s", b->session.job->program.reduce_progress);
    r->bytes_wire = b->bytes_wire;
    r->exposed_comm_ms = 1e3 * cvy_median(b->comm_s, n);
    r->hidden_comm_ms = 1e3 * cvy_median(b->hidden_s, n);
    r->wait_slowest_ms = 1e3 * cvy_median(b->slowest_s, n);
    for (int64_t i = 0; i < n; i++)
        b->busy_s[i] -= b->busy_min_s[i];
    r->spread_ms = 1e3 * cvy_median(b->busy_s, n);
    fill_axes(b, r);
}

static const cvy_column columns[] = {
    CVY_BENCH_HEAD_COLUMNS(cvy_bench_result),
    CVY_COLUMN(cvy_bench_result, REAL, images_per_s),
    CVY_COLUMN(cvy_bench_result, REAL, images_per_s_node),
    CVY_COLUMN(cvy_bench_result, REAL, images_per_s_rank),
    CVY_COLUMN(cvy_bench_result, REAL, images_per_s_best),
    CVY_COLUMN(cvy_bench_result, INT, nodes),
    CVY_COLUMN(cvy_bench_result, REAL, ms_median),
    CVY_COLUMN(cvy_bench_result, REAL, ms_mean),
    CVY_COLUMN(cvy_bench_result, REAL, ms_sd),
    CVY_COLUMN(cvy_bench_result, REAL, ms_best),
    CVY_COLUMN(cvy_bench_result, COUNT, steps),
    CVY_COLUMN(cvy_bench_result, REAL, gflop),
    CVY_COLUMN(cvy_bench_result, REAL, gflop_per_s),
    CVY_COLUMN(cvy_bench_result, REAL, peak_gflop_per_s),
    CVY_COLUMN(cvy_bench_result, REAL, peak_share),
    CVY_COLUMN(cvy_bench_result, TEXT, update),
    CVY_COLUMN(cvy_bench_result, TEXT, progress),
    CVY_COLUMN(cvy_bench_result, REAL, bytes_wire),
    CVY_COLUMN(cvy_bench_result, REAL, exposed_comm_ms),
    CVY_COLUMN(cvy_bench_result, REAL, hidden_comm_ms),
    CVY_COLUMN(cvy_bench_result, REAL, wait_slowest_ms),
    CVY_COLUMN(cvy_bench_result, REAL, spread_ms),
    CVY_COLUMN(cvy_bench_result, INT, pipeline),
    CVY_COLUMN(cvy_bench_result, INT, micro_batches),
    CVY_COLUMN(cvy_bench_result, REAL, exposed_data_ms, .is_optional = 1),
    CVY_COLUMN(cvy_bench_result, REAL, exposed_pipeline_ms, .is_optional = 1),
    CVY_COLUMN(cvy_bench_result, REAL, exposed_tensor_ms, .is_optional = 1),
    CVY_COLUMN(cvy_bench_result, REAL, exposed_spatial_ms, .is_optional = 1),
    CVY_COLUMN(cvy_bench_result, REAL, bubble, .is_optional = 1),
    CVY_COLUMN(cvy_bench_result, REAL, bubble_predicted, .is_optional = 1),
    CVY_COLUMN(cvy_bench_result, COUNT, parameters), /* from here on the rows belong to `bench` only */
    CVY_COLUMN(cvy_bench_result, REAL, forward_ms),
    CVY_COLUMN(cvy_bench_result, REAL, backward_ms),
    CVY_COLUMN(cvy_bench_result, REAL, update_ms),
    CVY_COLUMN(cvy_bench_result, REAL, communication_ms),
    CVY_COLUMN(cvy_bench_result, REAL, imbalance_ms),
    CVY_COLUMN(cvy_bench_result, REAL, other_ms),
    CVY_COLUMN(cvy_bench_result, REAL, joules_per_image, .is_optional = 1),
    CVY_COLUMN(cvy_bench_result, COUNT, macs),
    CVY_COLUMN(cvy_bench_result, REAL, loss_first),
    CVY_COLUMN(cvy_bench_result, REAL, loss_last),
    CVY_COLUMN(cvy_bench_result, REAL, peak_rss_bytes),
    CVY_COLUMN(cvy_bench_result, REAL, peak_rss_bytes_largest_rank),
    CVY_COLUMN(cvy_bench_result, COUNT, arena_bytes),
    CVY_COLUMN(cvy_bench_result, REAL, plan_s),
    CVY_COLUMN(cvy_bench_result, REAL, predicted_ms, .is_optional = 1),
    CVY_COLUMN(cvy_bench_result, TEXT, device, .is_optional = 1),
    CVY_COLUMN(cvy_bench_result, REAL, device_peak_bytes, .is_optional = 1),
    {0},
};

void cvy_bench_add_times(const cvy_bench_result *result, cvy_json *json)
{
    cvy_column until[CVY_COUNT(columns)];
    int n = 0;
    while (strcmp(columns[n].key, "parameters") != 0)
        n++;
    memcpy(until, columns, (size_t)n * sizeof *columns);
    until[n] = (cvy_column){0};
    cvy_row_json(until, result, json);
}

cvy_status cvy_bench_result_json(const cvy_bench_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_bench_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_bench_result, result, &r));
    return cvy_row_json_text(columns, &r, text_out);
}

cvy_status cvy_bench_result_lines(const cvy_bench_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_bench_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_bench_result, result, &r));
    return cvy_row_lines_text(columns, &r, text_out);
}

/* What a step takes according to the known times of its kernels; a turn that is taken in every so many steps counts
 * that part. NaN: a time is not known. */
static double predict(const cvy_bench *b)
{
    double sum = 0;
    for (int k = 0; k < b->nturn; k++) {
        cvy_prediction step;
        if (cvy_program_predict(b->session.program, b->turn[k].number, &step) != CVY_OK || step.nunknown > 0)
            return NAN;
        sum += step.ms / (double)b->turn[k].every;
    }
    return sum;
}

cvy_status cvy_bench_report(const cvy_bench *b, cvy_bench_result *result_out)
{
    const cvy_program *p = b->session.program;
    cvy_comm *comm = b->session.context->comm;
    const cvy_work mine = cvy_bench_work(b);
    double sums[] = {mine.flop, mine.macs, (double)cvy_mem_peak()}, largest = sums[2];
    const cvy_memory_use use = cvy_program_memory_use(p, &b->number, 1);
    cvy_bench_result r = {.parameters = count_parameters(cvy_program_vars(p)),
                          .loss_first = b->loss_first,
                          .loss_last = b->loss_last,
                          .arena_bytes = use.arena,
                          .device_peak_bytes = cvy_space_is_host(&b->session.context->space) ? NAN : (double)use.total,
                          .plan_s = b->plan_s,
                          .predicted_ms = NAN};
    CVY_TRY(comm->ops->allreduce(comm, sums, CVY_COUNT(sums), CVY_DTYPE_F64, CVY_REDUCE_SUM));
    CVY_TRY(comm->ops->allreduce(comm, &largest, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    cvy_bench_fill_head(b, &r);
    cvy_bench_fill_times(b, sums[0], &r);
    CVY_TRY(cvy_bench_fill_parts(b, &r));
    if (comm->rank != 0)
        return CVY_OK;
    r.joules_per_image = b->joules / (double)(b->batch * b->steps);
    r.macs = llround(sums[1] / (double)b->batch);
    r.peak_rss_bytes = sums[2];
    r.peak_rss_bytes_largest_rank = largest;
    for (int k = 1; k < b->nturn; k++) /* the first task has been priced when it was planned */
        CVY_TRY(cvy_program_price_task(b->session.program, b->turn[k].number));
    r.predicted_ms = predict(b);
    CVY_TRY(CVY_RESULT_CHECK(cvy_bench_result, result_out));
    cvy_result_write(result_out, &r, sizeof r);
    return CVY_OK;
}
