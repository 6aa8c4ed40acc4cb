/*
 * job_check.c: cvy_run_check(): three training steps of the plan that would run, against the plain plan: every pass off, one kind of kernels.
 *
 * Both start from the same weights and see the same rows, so they differ by rounding only. What is held against a bound is of the first step: the loss,
 * all weights together, and all that the step changed in them: a wrong gradient that is small beside its weight shows there. The further steps are
 * reported: batch norm over few samples multiplies a difference by thousands from one step to the next, whatever the kernels.
 */
#include <math.h>
#include <string.h>

#include "job/job_bench.h"

#define STEPS 3

/* Largest relative differences that rounding explains. f32: Winograd F(4x4,3x3) loses two to three decimal digits of a layer's output (Lavin and Gray
 * 2016), and a ReLU or a maximum that falls the other way changes single elements of a gradient whole. */
struct bound { double loss, weights, change; };

static struct bound bound_of(cvy_dtype dtype)
{
    if (dtype == CVY_DTYPE_F64)
        return (struct bound){1e-10, 1e-10, 1e-7};
    return dtype == CVY_DTYPE_F32 ? (struct bound){1e-4, 1e-3, 5e-2} : (struct bound){5e-2, 1e-2, 5e-1};
}

struct outcome {                       /* of three steps */
    double loss[STEPS];
    double *before, *after;            /* all weights, one behind the other; after the first step */
    int64_t elems;
};

static int is_weight(const cvy_variable *v)
{
    return v->role == CVY_ROLE_WEIGHT;
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

/* Plans, runs and forgets the program; its weights stay in the outcome. */
static cvy_status run(cvy_bench *b, const char *kernels, const char *passes_off, struct outcome *o)
{
    cvy_comm *comm = b->session.context->comm;
    double seconds = 0;
    CVY_TRY(cvy_bench_plan(b, kernels, passes_off));
    const cvy_vars *vars = b->session.program->vars;
    CVY_TRY(cvy_comm_agree(comm, take(vars, o)));
    for (int i = 0; i < STEPS; i++) {
        CVY_TRY(cvy_bench_step(b, &seconds));
        CVY_TRY(cvy_bench_loss(b, &o->loss[i]));
        if (i == 0)
            CVY_TRY(cvy_comm_agree(comm, copy_weights(vars, o->after)));
    }
    return CVY_OK;
}

struct difference { double loss, later_loss, weights, change, worst; const char *where; };

/* |a - b| over |b|, in the Euclidean norm; 0 where both are equal. */
static double relative(double squares, double of)
{
    return squares == 0 ? 0 : sqrt(squares) / sqrt(of);
}

/* The whole network, and the single variable whose change differs most. */
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

static cvy_status write_json(const cvy_bench *b, const char *against, const struct outcome *fast, const struct outcome *plain, char **json_out)
{
    const cvy_program *p = b->session.program;
    const struct difference d = compare(p->vars, fast, plain);
    const struct bound bound = bound_of(p->opts.dtype);
    const int agrees = d.loss <= bound.loss && d.weights <= bound.weights && d.change <= bound.change;   /* NaN does not */
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_bench_add_head(b, &json);
    cvy_json_string(&json, "against", against);
    cvy_json_int(&json, "steps", STEPS);
    cvy_json_real(&json, "loss", fast->loss[STEPS - 1]);
    cvy_json_real(&json, "loss_plain", plain->loss[STEPS - 1]);
    cvy_json_real(&json, "difference_loss", d.loss);
    cvy_json_real(&json, "bound_loss", bound.loss);
    cvy_json_real(&json, "difference_later_losses", d.later_loss);
    cvy_json_real(&json, "difference_weights", d.weights);
    cvy_json_real(&json, "bound_weights", bound.weights);
    cvy_json_real(&json, "difference_change", d.change);
    cvy_json_real(&json, "bound_change", bound.change);
    cvy_json_real(&json, "difference_change_worst", d.worst);
    cvy_json_string(&json, "worst_weight", d.where);
    cvy_json_bool(&json, "agrees", agrees);
    cvy_json_close(&json, '}');
    *json_out = json.text.data;
    return json.text.status;
}

static cvy_status check(cvy_bench *b, const char *against, struct outcome *fast, struct outcome *plain, char **json_out)
{
    cvy_comm *comm = b->session.context->comm;
    CVY_CHECK(!b->opts.forward, CVY_E_ARGUMENT, "a check compares training steps: leave out the forward mode");
    b->session.job->update.mode = CVY_UPDATE_SYNC;     /* kernels are checked, step by step */
    CVY_TRY(run(b, NULL, NULL, fast));
    cvy_program_destroy(&b->session.program);
    cvy_model_destroy(&b->session.model);
    CVY_TRY(run(b, against, "all", plain));
    return cvy_comm_agree(comm, comm->rank == 0 ? write_json(b, against, fast, plain, json_out) : CVY_OK);
}

cvy_status cvy_run_check(cvy_context *context, const cvy_bench_opts *opts, const char *against, char **json_out)
{
    struct outcome fast = {0}, plain = {0};
    cvy_bench b;
    *json_out = NULL;
    cvy_status status = cvy_bench_open(context, opts, &b);
    if (status == CVY_OK && (b.opts.kernels ? strcmp(b.opts.kernels, "clock") == 0 : b.session.job->plan.kernels == CVY_JOB_KERNELS_CLOCK))
        status = cvy_error_set(CVY_E_CONFIG, "--check compares what steps compute, and with kernels: clock they compute nothing: take other kernels");
    if (status == CVY_OK)
        status = check(&b, against ? against : "direct", &fast, &plain, json_out);
    cvy_mem_free(&fast.before);
    cvy_mem_free(&fast.after);
    cvy_mem_free(&plain.before);
    cvy_mem_free(&plain.after);
    cvy_bench_close(&b);
    return status;
}
