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
#include "measure/measure.h"
#include "measure/measure_result.h"

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
    {"forward_ms", CVY_RESULT_REAL, AT(forward_ms), 0},
    {"backward_ms", CVY_RESULT_REAL, AT(backward_ms), 0},
    {"update_ms", CVY_RESULT_REAL, AT(update_ms), 0},
    {"communication_ms", CVY_RESULT_REAL, AT(communication_ms), 0},
    {"imbalance_ms", CVY_RESULT_REAL, AT(imbalance_ms), 0},
    {"other_ms", CVY_RESULT_REAL, AT(other_ms), 0},
    {"joules_per_image", CVY_RESULT_REAL, AT(joules_per_image), 1},
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
    CVY_ENTRY();
    cvy_bench_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_bench_result, result, &r));
    return cvy_result_json(rows, &r, text_out);
}

cvy_status cvy_bench_result_lines(const cvy_bench_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_bench_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_bench_result, result, &r));
    return cvy_result_lines(rows, &r, text_out);
}

/* What a step takes according to the known times of its kernels; a turn that is taken in every so many steps counts
 * that part. NaN: a time is not known. */
static double predict(const cvy_bench *b)
{
    double sum = 0;
    for (int k = 0; k < b->nturn; k++) {
        double ms = 0;
        int nunknown = 0;
        if (cvy_program_predict(b->session.program, b->turn[k].number, &ms, &nunknown) != CVY_OK || nunknown > 0)
            return NAN;
        sum += ms / (double)b->turn[k].every;
    }
    return sum;
}

cvy_status cvy_bench_report(const cvy_bench *b, cvy_bench_result *result_out)
{
    const cvy_program *p = b->session.program;
    cvy_comm *comm = b->session.context->comm;
    const cvy_work mine = cvy_bench_work(b);
    double sums[] = {mine.flop, mine.macs, (double)cvy_mem_peak()}, largest = sums[2];
    cvy_bench_result r = {.parameters = count_parameters(p->vars),
                          .loss_first = b->loss_first,
                          .loss_last = b->loss_last,
                          .arena_bytes = (int64_t)p->memory.arena_bytes,
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
