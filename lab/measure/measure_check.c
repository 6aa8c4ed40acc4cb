/*
 * measure_check.c: cvy_run_check(): compares three training steps of the plan that would run with the plain plan, which
 * has all passes off and one kind of kernels.
 *
 * Both start from the same weights and use the same rows, so they differ by rounding only. Bounds are checked for the
 * first step: the loss, all weights together, and all changes that the step made to the weights. A wrong gradient may
 * be small compared with its weight, but it shows in the change. The later steps are only reported: with batch norm
 * over few samples a difference grows by a factor of thousands from one step to the next, with any kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "measure/measure_bench.h"
#include "plan/plan_offers.h"

#define STEPS 3

/* Largest relative differences that rounding explains. f32: Winograd F(4x4,3x3) loses two to three decimal digits of a
 * layer's output (Lavin and Gray 2016). A ReLU or a maximum that decides differently changes whole elements of a
 * gradient. */
struct bound {
    double loss, weights, change;
};

static struct bound bound_of(cvy_dtype dtype)
{
    if (dtype == CVY_DTYPE_F64)
        return (struct bound){1e-10, 1e-10, 1e-7};
    return dtype == CVY_DTYPE_F32 ? (struct bound){1e-4, 1e-3, 5e-2} : (struct bound){5e-2, 1e-2, 5e-1};
}

struct outcome { /* the result of the steps of one plan */
    double loss[STEPS];
    double *before, *after; /* all weights, concatenated: before the first step, and after it */
    int64_t elems;
    char *kernels; /* text: how many nodes each library runs */
};

/* A weight of this rank: others have the parts of a tensor axis, and other stages. */
static int is_weight(const cvy_variable *v)
{
    return v->role == CVY_ROLE_WEIGHT && !v->elsewhere;
}

static cvy_status copy_weights(const cvy_vars *vars, double *to)
{
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        const int64_t n = cvy_shape_elems(&v->shape);
        cvy_span span = {.dtype = v->dtype};
        if (!is_weight(v))
            continue;
        CVY_TRY(cvy_mem_alloc((size_t)n * cvy_dtype_bytes(v->dtype), &span.data));
        const cvy_status status = cvy_variable_read(v, span.data);
        for (int64_t k = 0; k < n && status == CVY_OK; k++)
            to[k] = cvy_get(&span, k);
        cvy_mem_free(&span.data);
        CVY_TRY(status);
        to += n;
    }
    return CVY_OK;
}

static cvy_status take(const cvy_vars *vars, struct outcome *o)
{
    o->elems = 0;
    for (int i = 0; i < vars->count; i++)
        o->elems += is_weight(vars->at[i]) ? cvy_shape_elems(&vars->at[i]->shape) : 0;
    CVY_TRY(cvy_mem_alloc((size_t)o->elems * sizeof *o->before, &o->before));
    CVY_TRY(cvy_mem_alloc((size_t)o->elems * sizeof *o->after, &o->after));
    return copy_weights(vars, o->before);
}

/* Counts the nodes that the kernels of each library run, as in "onednn 3, reference 9". */
static cvy_status count_kernels(const cvy_program *p, char **out)
{
    int count = 0, reference = 0;
    const cvy_library_def *const *table = cvy_library_table(&count);
    const cvy_lowered *u = cvy_program_task_plan(p, 0)->lowered[0];
    cvy_text t = {0};
    for (int l = 0; l < count; l++) {
        int n = 0;
        for (int i = 0; i < u->ncall; i++)
            n += u->call[i].offer && cvy_kernel_library(u->call[i].offer->kernel) == table[l];
        if (n)
            cvy_text_add(&t, "%s%s %d", t.bytes ? ", " : "", table[l]->name, n);
    }
    for (int i = 0; i < u->ncall; i++)
        reference += u->call[i].offer && u->call[i].offer->kernel == &cvy_kernel_plain;
    if (reference)
        cvy_text_add(&t, "%sreference %d", t.bytes ? ", " : "", reference);
    *out = t.data;
    return t.status;
}

/* Plans the program and runs its steps; copies of its weights go to the outcome. */
static cvy_status run(cvy_bench *b, const char *kernels, const char *passes_off, struct outcome *o)
{
    cvy_comm *comm = b->session.context->comm;
    double seconds = 0;
    CVY_TRY(cvy_bench_plan(b, kernels, passes_off));
    CVY_CHECK(!b->is_applied, CVY_E_CONFIG,
              "%s: a check compares training steps, and the network has no loss: give one, and data with a target "
              "(train.loss, data.train)",
              b->session.job->file);
    const cvy_vars *vars = cvy_program_vars(b->session.program);
    CVY_TRY(cvy_comm_agree(comm, take(vars, o)));
    CVY_TRY(cvy_comm_agree(comm, count_kernels(b->session.program, &o->kernels)));
    for (int i = 0; i < STEPS; i++) {
        CVY_TRY(cvy_bench_step(b, &seconds));
        CVY_TRY(cvy_bench_loss(b, &o->loss[i]));
        if (i == 0)
            CVY_TRY(cvy_comm_agree(comm, copy_weights(vars, o->after)));
    }
    return CVY_OK;
}

struct difference {
    double loss, later_loss, weights, change, worst;
    const char *where;
};

/* |a - b| / |b| in the Euclidean norm, from the sums of squares; 0 if both are equal. */
static double relative(double squares, double of)
{
    return squares == 0 ? 0 : sqrt(squares) / sqrt(of);
}

/* Compares the whole network, and finds the variable whose change differs most. */
static struct difference compare(const cvy_vars *vars, const struct outcome *fast, const struct outcome *plain)
{
    struct difference d = {.where = ""};
    double weights[2] = {0}, change[2] = {0};
    int64_t at = 0;
    d.loss = fabs(fast->loss[0] - plain->loss[0]) / fabs(plain->loss[0]);
    for (int i = 1; i < STEPS; i++)
        d.later_loss = fmax(d.later_loss, fabs(fast->loss[i] - plain->loss[i]) / fabs(plain->loss[i]));
    for (int i = 0; i < vars->count; i++) {
        double own[2] = {0};
        const int64_t end = at + (is_weight(vars->at[i]) ? cvy_shape_elems(&vars->at[i]->shape) : 0);
        for (; at < end; at++) {
            const double error = fast->after[at] - plain->after[at], moved = plain->after[at] - plain->before[at];
            weights[0] += error * error;
            weights[1] += plain->after[at] * plain->after[at];
            own[0] += error * error;
            own[1] += moved * moved;
        }
        change[0] += own[0];
        change[1] += own[1];
        if (relative(own[0], own[1]) > d.worst) {
            d.worst = relative(own[0], own[1]);
            d.where = vars->at[i]->name;
        }
    }
    d.weights = relative(weights[0], weights[1]);
    d.change = relative(change[0], change[1]);
    return d;
}

static const cvy_column columns[] = {
    CVY_BENCH_HEAD_COLUMNS(cvy_check_result),
    CVY_COLUMN(cvy_check_result, TEXT, against),
    CVY_COLUMN(cvy_check_result, TEXT, kernels),
    CVY_COLUMN(cvy_check_result, TEXT, kernels_plain),
    CVY_COLUMN(cvy_check_result, INT, steps),
    CVY_COLUMN(cvy_check_result, REAL, loss),
    CVY_COLUMN(cvy_check_result, REAL, loss_plain),
    CVY_COLUMN(cvy_check_result, REAL, difference_loss),
    CVY_COLUMN(cvy_check_result, REAL, bound_loss),
    CVY_COLUMN(cvy_check_result, REAL, difference_later_losses),
    CVY_COLUMN(cvy_check_result, REAL, difference_weights),
    CVY_COLUMN(cvy_check_result, REAL, bound_weights),
    CVY_COLUMN(cvy_check_result, REAL, difference_change),
    CVY_COLUMN(cvy_check_result, REAL, bound_change),
    CVY_COLUMN(cvy_check_result, REAL, difference_change_worst),
    CVY_COLUMN(cvy_check_result, TEXT, worst_weight),
    CVY_COLUMN(cvy_check_result, BOOL, agrees),
    {0},
};

cvy_status cvy_check_result_json(const cvy_check_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_check_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_check_result, result, &r));
    return cvy_row_json_text(columns, &r, text_out);
}

cvy_status cvy_check_result_lines(const cvy_check_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_check_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_check_result, result, &r));
    return cvy_row_lines_text(columns, &r, text_out);
}

static cvy_status report(const cvy_bench *b, const char *against, const struct outcome *fast,
                         const struct outcome *plain, cvy_check_result *result_out)
{
    const cvy_program *p = b->session.program;
    const struct difference d = compare(cvy_program_vars(p), fast, plain);
    const struct bound bound = bound_of(cvy_program_options(p)->dtype);
    cvy_bench_result head = {.size = sizeof head};
    cvy_bench_fill_head(b, &head);
    cvy_check_result r = {
        .batch = head.batch,
        .mode = head.mode,
        .dtype = head.dtype,
        .input = head.input,
        .threads = head.threads,
        .ranks = head.ranks,
        .deterministic_shards = head.deterministic_shards,
        .by_clock = head.by_clock,
        .steps = STEPS,
        .loss = fast->loss[STEPS - 1],
        .loss_plain = plain->loss[STEPS - 1],
        .difference_loss = d.loss,
        .bound_loss = bound.loss,
        .difference_later_losses = d.later_loss,
        .difference_weights = d.weights,
        .bound_weights = bound.weights,
        .difference_change = d.change,
        .bound_change = bound.change,
        .difference_change_worst = d.worst,
        .agrees = d.loss <= bound.loss && d.weights <= bound.weights && d.change <= bound.change, /* false for NaN */
    };
    memcpy(r.model, head.model, sizeof r.model);
    snprintf(r.against, sizeof r.against, "%s", against);
    snprintf(r.kernels, sizeof r.kernels, "%s", fast->kernels ? fast->kernels : "");
    snprintf(r.kernels_plain, sizeof r.kernels_plain, "%s", plain->kernels ? plain->kernels : "");
    snprintf(r.worst_weight, sizeof r.worst_weight, "%s", d.where);
    CVY_TRY(CVY_RESULT_CHECK(cvy_check_result, result_out));
    cvy_result_write(result_out, &r, sizeof r);
    return CVY_OK;
}

static cvy_status check(cvy_bench *b, const char *against, struct outcome *fast, struct outcome *plain,
                        cvy_check_result *result_out)
{
    cvy_comm *comm = b->session.context->comm;
    CVY_CHECK(b->opts.mode == CVY_BENCH_TRAIN, CVY_E_ARGUMENT, "a check compares training steps: leave out the mode %s",
              cvy_bench_mode_text(b->opts.mode));
    cvy_job_update_in_sync(b->session.job); /* the check compares kernels step by step, so updates must be in sync */
    CVY_TRY(run(b, NULL, NULL, fast));
    cvy_program_destroy(&b->session.program);
    cvy_model_destroy(&b->session.model);
    CVY_TRY(run(b, against, "all", plain));
    return cvy_comm_agree(comm, comm->rank == 0 ? report(b, against, fast, plain, result_out) : CVY_OK);
}

cvy_status cvy_run_check(cvy_context *context, const cvy_bench_opts *opts, const char *against,
                         cvy_check_result *result_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    struct outcome fast = {0}, plain = {0};
    cvy_bench b;
    cvy_status status = cvy_bench_open(context, opts, &b);
    cvy_kernels kernels = {0}, plain_kernels;
    if (status == CVY_OK)
        status = b.opts.kernels ? cvy_kernels_parse(b.opts.kernels, &kernels) : CVY_OK;
    if (status == CVY_OK && !b.opts.kernels)
        kernels = cvy_job_kernels(b.session.job);
    if (status == CVY_OK && (status = cvy_kernels_parse(against ? against : "direct", &plain_kernels)) != CVY_OK)
        status = cvy_error_prefix(status, "the plain plan's kernels");
    if (status == CVY_OK && (kernels.by_clock || plain_kernels.by_clock))
        status = cvy_error_set(
            CVY_E_CONFIG,
            "--check compares what steps compute, and with kernels: clock they compute nothing: take other kernels");
    if (status == CVY_OK)
        status = check(&b, against ? against : "direct", &fast, &plain, result_out);
    cvy_mem_free(&fast.before);
    cvy_mem_free(&fast.after);
    cvy_mem_free(&fast.kernels);
    cvy_mem_free(&plain.before);
    cvy_mem_free(&plain.after);
    cvy_mem_free(&plain.kernels);
    cvy_bench_close(&b);
    return status;
}
