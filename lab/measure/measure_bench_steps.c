/*
 * measure_bench_steps.c: runs the steps of a bench and keeps how long each took, on the slowest rank and in the mean.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/machine/base_clock.h"
#include "base/machine/base_energy.h"
#include "job/job_table.h"
#include "measure/measure_bench.h"
#include "monitor/monitor_trace.h"

#define SECONDS_DEFAULT 5.0
#define ROUNDING 1e-12 /* differences of times that are smaller are those of the sums over the ranks */

enum { STEPS_LEAST = 5, STEPS_MAX = 20000 }; /* limits of the number of steps, if it is not given */
enum { WARM_UP = 2, WARM_UP_DEVICE = 6 };    /* on a device steps are recorded in the third or fourth one */
static const double LONG_S = 60;             /* steps that take this long together need not be STEPS_LEAST, but 2 */
enum { PART_STEPS = 3 };

cvy_status cvy_bench_step(cvy_bench *b, double *seconds_out)
{
    const double begin = cvy_clock_s();
    const struct cvy_job_update *update = &b->session.job->update;
    const int updates = b->opts.mode != CVY_BENCH_FORWARD_BACKWARD;
    b->time = (cvy_step_time){0};
    CVY_TRY(cvy_bench_take_turns(b));
    b->nstep++;
    if (updates && update->def->job.flush_every && b->nstep % update->def->job.flush_every(update->options) == 0)
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
        const cvy_program *p = b->session.program;
        const int task = b->turn[k].number;
        for (int i = 0; i < cvy_program_nlosses(p, task); i++) {
            double loss = 0;
            CVY_TRY(cvy_program_loss(p, task, cvy_program_loss_name(p, task, i), &loss));
            sum += own ? loss * (double)cvy_program_rows(p, task) / (double)b->batch : loss;
        }
    }
    *loss_out = sum;
    return own ? comm->ops->allreduce(comm, loss_out, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM) : CVY_OK;
}

/* Runs the steps that are not timed, and gives the seconds of the last one. One is enough if it is long: what is new in
 * it is little beside the rest. */
static cvy_status warm_up(cvy_bench *b, double *last_out)
{
    cvy_comm *comm = b->session.context->comm;
    const int64_t usual = cvy_space_is_host(&b->session.context->space) ? WARM_UP : WARM_UP_DEVICE;
    const int64_t warmup = b->opts.warmup > 0 ? b->opts.warmup : usual;
    for (int64_t i = 0; i < warmup; i++) {
        const double begin = cvy_clock_s();
        CVY_TRY(cvy_bench_step(b, last_out));
        CVY_TRY(cvy_space_sync(&b->session.context->space));
        *last_out = cvy_clock_s() - begin;
        if (i > 0)
            continue;
        CVY_TRY(cvy_bench_loss(b, &b->loss_first));
        CVY_TRY(comm->ops->allreduce(comm, last_out, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
        if (b->opts.warmup <= 0 && usual == WARM_UP && STEPS_LEAST * *last_out > LONG_S)
            break;
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
    const double wanted = b->opts.seconds > 0 ? b->opts.seconds : SECONDS_DEFAULT;
    const double left = wanted - time[0], fit = 0.5 * left / CVY_MAX(time[1], 1e-6);
    const double least = CVY_MAX(2, CVY_MIN(LONG_S / CVY_MAX(time[1], 1e-6), STEPS_LEAST));
    const int64_t room = STEPS_MAX - b->steps, missing = (int64_t)least - b->steps;
    *more_out = CVY_MIN(room, CVY_MAX(left > 0 ? (int64_t)CVY_MAX(fit, 1) : 0, missing));
    return CVY_OK;
}

/* Ranks leave a step together. A rank that was busy for less time than the slowest one has waited for it. Parameter
 * servers do not count: that they are idle says nothing. */
static cvy_status compare_ranks(cvy_bench *b)
{
    cvy_comm *comm = b->session.context->comm;
    const int64_t n = b->steps;
    for (int64_t i = 0; i < n && cvy_bench_serves(b); i++) {
        b->comm_s[i] = b->hidden_s[i] = b->busy_s[i] = b->slowest_s[i] = b->axis_s[CVY_COMM_DATA][i] = 0;
        b->busy_min_s[i] = INFINITY;
    }
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
    for (int64_t i = 0; i < n; i++) { /* until here slowest_s is the sum of the busy times of all ranks */
        const double wait = b->busy_s[i] - b->slowest_s[i] / cvy_bench_trainers(b);
        b->slowest_s[i] = wait > ROUNDING * b->busy_s[i] ? wait : 0;
        if (b->busy_s[i] - b->busy_min_s[i] <= ROUNDING * b->busy_s[i])
            b->busy_min_s[i] = b->busy_s[i];
    }
    return CVY_OK;
}

/* ---- steps on a device: the host may be one ahead, so a step takes the time between two marks ---- */

struct ends {
    const cvy_space *space;
    cvy_mark *mark[3]; /* the ends of the latest steps */
};

static void close_ends(struct ends *e)
{
    for (int i = 0; i < CVY_COUNT(e->mark); i++)
        cvy_mark_destroy(e->space, &e->mark[i]);
}

static cvy_status open_ends(const cvy_space *space, struct ends *e)
{
    cvy_status status = CVY_OK;
    *e = (struct ends){.space = space};
    for (int i = 0; i < CVY_COUNT(e->mark) && status == CVY_OK; i++)
        status = cvy_mark_create(space, &e->mark[i]);
    if (status != CVY_OK)
        close_ends(e);
    return status;
}

/* Marks where step i begins. */
static cvy_status mark_begin(const struct ends *e, int64_t i)
{
    return cvy_mark_put(e->space, CVY_LANE_COMPUTE, e->mark[i % CVY_COUNT(e->mark)]);
}

/* Waits for the end of step i, and sets its time. */
static cvy_status end_step(cvy_bench *b, const struct ends *e, int64_t i)
{
    cvy_mark *from = e->mark[i % CVY_COUNT(e->mark)], *to = e->mark[(i + 1) % CVY_COUNT(e->mark)];
    int reached;
    if (cvy_space_is_host(e->space))
        return CVY_OK;
    CVY_TRY(cvy_mark_reached(e->space, to, 1, &reached));
    CVY_TRY(cvy_mark_elapsed(e->space, from, to, &b->step_s[i]));
    b->busy_s[i] = b->busy_min_s[i] = b->slowest_s[i] = CVY_MAX(b->step_s[i] - b->comm_s[i], 0);
    return CVY_OK;
}

/* Times the instructions of further steps, because those that were timed are recorded. */
static cvy_status time_parts(cvy_bench *b)
{
    double seconds = 0;
    b->part.steps = PART_STEPS;
    for (int k = 0; k < b->nturn; k++)
        b->part.steps = CVY_MAX(b->part.steps, b->turn[k].every);
    for (int i = 0; i < CVY_STEP_PARTS; i++)
        b->part.s[i] = 0;
    CVY_TRY(cvy_program_time_instructions(b->session.program));
    for (int64_t i = 0; i < b->part.steps; i++) {
        CVY_TRY(cvy_bench_step(b, &seconds));
        cvy_bench_add_parts(b);
    }
    return CVY_OK;
}

/* ---- timed steps ---- */

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
    cvy_bench_add_parts(b);
    for (int turn = 0; i < node_steps_max && turn < b->nturn; turn++) {
        const cvy_plan *plan = cvy_bench_turn_plan(b, turn);
        double *to = b->node_s + i * ninstr + cvy_bench_ninstr(b, turn);
        for (int k = 0; k < plan->ninstr; k++)
            to[k] = plan->times.end_s[k] - plan->times.end_s[k - 1];
    }
    return CVY_OK;
}

/* The first rank of each node knows what the node has used. If one does not, the sum is unknown. */
static cvy_status add_energy(cvy_bench *b, const cvy_energy *from)
{
    cvy_comm *comm = b->session.context->comm;
    const cvy_energy to = cvy_energy_read();
    b->joules = comm->node_rank == 0 ? cvy_energy_between(from, &to) : 0;
    return comm->ops->allreduce(comm, &b->joules, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM);
}

static cvy_status time_steps(cvy_bench *b, const struct ends *ends, double warm_s, int64_t node_steps_max)
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
    const cvy_energy energy = cvy_energy_read();
    const double begin_s = cvy_clock_s();
    int64_t more = 0;
    CVY_TRY(more_steps(b, 0, warm_s, &more));
    while (more > 0) {
        const int64_t first = b->steps, end = first + more;
        CVY_TRY(mark_begin(ends, first));
        for (; b->steps < end; b->steps++) {
            CVY_TRY(time_step(b, b->steps, node_steps_max));
            CVY_TRY(mark_begin(ends, b->steps + 1));
            if (b->steps > first)
                CVY_TRY(end_step(b, ends, b->steps - 1));
        }
        CVY_TRY(end_step(b, ends, end - 1));
        const double elapsed_s = cvy_clock_s() - begin_s;
        CVY_TRY(more_steps(b, elapsed_s, elapsed_s / (double)b->steps, &more));
    }
    CVY_TRY(add_energy(b, &energy));
    b->part.steps = b->steps;
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
    const cvy_dtype dtype = cvy_program_options(b->session.program)->dtype;
    const int by_clock = cvy_program_by_clock(b->session.program);
    double before = NAN, after = NAN, warm_s = 0;
    struct ends ends;
    if (!by_clock)
        CVY_TRY(cvy_bench_peak(context, dtype, &before));
    if (node_steps_max > 0)
        CVY_TRY(cvy_program_time_instructions(b->session.program));
    CVY_TRY(warm_up(b, &warm_s));
    CVY_TRY(open_ends(&context->space, &ends));
    const cvy_status status = time_steps(b, &ends, warm_s, node_steps_max);
    close_ends(&ends);
    CVY_TRY(status);
    if (node_steps_max == 0 && !cvy_space_is_host(&context->space) && !by_clock)
        CVY_TRY(time_parts(b));
    CVY_TRY(cvy_program_flush(
        b->session.program)); /* a delayed update may be pending, and measuring the peak runs another program */
    if (!by_clock)
        CVY_TRY(cvy_bench_peak(context, dtype, &after));
    b->peak_flop_per_s = by_clock ? NAN : CVY_MAX(before, after);
    return b->opts.trace ? cvy_trace_write(b->session.program, b->number, b->opts.trace) : CVY_OK;
}
