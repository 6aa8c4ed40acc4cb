/*
 * job_bench.c: cvy_run_bench(): times steps of the plan and executor that train uses, on made-up data.
 *
 * What is timed is the whole step: forward, backward, sums over ranks, update. A step's time is that of the slowest rank. A network of the zoo is
 * timed as PyTorch's own benchmarks do it: SGD with momentum 0.9, batch-norm statistics over the rank's share.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "job/job_session.h"
#include "run/run_trace.h"

#define SECONDS_DEFAULT 5.0
#define NODE_STEPS_MAX 256             /* of how many steps single instructions are remembered */

struct bench {
    cvy_session session;
    cvy_bench_opts opts;
    cvy_dataset_info data;
    cvy_program_step_info *step;
    int number;                        /* of the step in the program */
    int64_t batch, nclasses, steps, node_steps;
    double plan_s, *step_s, *comm_s, *node_s;   /* node_s: [node_steps, instructions] */
};

/* ---- the job ---- */

/* A network of the zoo as the job that it stands for. */
static cvy_status zoo_job(cvy_context *context, const cvy_bench_opts *o, cvy_session *s)
{
    cvy_text text = {0};
    const char *given = o->model_options ? o->model_options : "";
    const size_t skip = strspn(given, " {"), length = strcspn(given + skip, "}");
    CVY_CHECK(o->model, CVY_E_ARGUMENT, "name a network or a job to time");
    if (!cvy_model_find_or_explain(o->model))
        return CVY_E_CONFIG;
    cvy_text_add(&text, "name: bench\nmodel: {name: %s%s%.*s}\ndata: {train: synthetic}\nbatch_norm: {group: rank}\n", o->model, length ? ", " : "",
                 (int)length, given + skip);
    cvy_text_add(&text, "train: {optimizer: {name: sgd, lr: 0.001, momentum: 0.9}, steps: 1}\n");
    const cvy_job_source source = {.size = sizeof source, .text = text.data};
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_session_open_job(context, &source, s);
    cvy_text_free(&text);
    return status;
}

static cvy_field field(char *name, cvy_dtype dtype, const cvy_shape *shape)
{
    return (cvy_field){name, dtype, *shape};
}

/* Images of this shape with a label. */
static void describe(struct bench *b, const cvy_shape *input, int64_t classes)
{
    static char x[] = "x", label[] = "label";
    b->data = (cvy_dataset_info){.nfield = 2, .nclasses = classes, .format = "made-up data"};
    b->data.field[0] = field(x, CVY_DTYPE_F32, input);
    b->data.field[1] = field(label, CVY_DTYPE_I32, &(cvy_shape){0});
}

/* What the data would be: as asked for, as the job's data are, or as the network likes them. */
static cvy_status find_data(struct bench *b)
{
    const cvy_bench_opts *o = &b->opts;
    const cvy_job *job = b->session.job;
    if (o->job && o->input.ndim == 0) {
        CVY_TRY(cvy_dataset_open(job->data.train, job->data.augment, 0, 1, &b->session.train));
        b->data = *cvy_dataset_describe(b->session.train);
        b->data.nclasses = o->classes > 0 ? o->classes : b->data.nclasses;
        return CVY_OK;
    }
    const cvy_model_def *def = o->model ? cvy_model_find(o->model) : NULL;
    describe(b, o->input.ndim || !def ? &o->input : &def->input, o->classes > 0 ? o->classes : def ? def->classes : 10);
    return CVY_OK;
}

static cvy_status open_bench(cvy_context *context, struct bench *b)
{
    const cvy_bench_opts *o = &b->opts;
    CVY_TRY(o->job ? cvy_session_open_job(context, o->job, &b->session) : zoo_job(context, o, &b->session));
    cvy_job *job = b->session.job;
    if (o->batch > 0)
        job->train.batch = o->batch, job->train.batch_per_rank = 0;
    if (o->dtype != CVY_DTYPE_F32)
        job->train.dtype = o->dtype;
    return cvy_comm_agree(context->comm, find_data(b));
}

static cvy_status make_program(struct bench *b)
{
    cvy_session *s = &b->session;
    cvy_program_opts opts;
    cvy_training_opts training;
    CVY_TRY(cvy_job_batch(s->job, s->context->comm->nranks, &b->batch));
    CVY_TRY(cvy_job_model(s->job, &b->data, !b->opts.forward, &s->model));
    CVY_TRY(cvy_job_program_opts(s->job, NULL, &opts));
    CVY_TRY(cvy_job_training_opts(s->job, &training));
    opts.kernels = b->opts.kernels ? b->opts.kernels : opts.kernels;
    opts.passes_off = b->opts.passes_off ? b->opts.passes_off : opts.passes_off;
    CVY_TRY(cvy_program_create(s->context, &opts, &s->program));
    cvy_job_group_variables(s->job, s->program);
    return b->opts.forward ? cvy_program_add_forward(s->program, s->model, b->batch, NULL, &b->number)
                           : cvy_program_add_training(s->program, s->model, b->batch, &training, &b->number);
}

/* ---- made-up rows ---- */

/* Values of mean 0 and variance 1; labels below the number of classes; weights 1. The same rows whatever the number of ranks. */
static void fill_feed(const struct bench *b, const cvy_plan_feed *feed, int64_t first_row)
{
    const cvy_span span = {.dtype = feed->dtype, .data = feed->data};
    const cvy_rng rng = cvy_rng_make(1, feed->name, 0, 0);
    const int64_t rows = feed->shape.dim[0], elems = rows ? cvy_shape_elems(&feed->shape) / rows : 0, n = rows * elems, at = first_row * elems;
    const int is_real = feed->dtype == CVY_DTYPE_F32 || feed->dtype == CVY_DTYPE_F64;
    for (int64_t i = 0; i < n; i++) {
        if (strcmp(feed->name, "weight") == 0)
            cvy_set(&span, i, 1);
        else if (strcmp(feed->name, "sample_id") == 0)
            cvy_set(&span, i, (double)(at + i));
        else if (is_real)
            cvy_set(&span, i, ((double)cvy_rng_u32(&rng, (uint64_t)(at + i)) / 4294967296.0 - 0.5) * sqrt(12.0));
        else
            cvy_set(&span, i, (double)cvy_rng_below(&rng, (uint64_t)(at + i), (uint64_t)CVY_MAX(b->data.nclasses, 1)));
    }
}

static void fill_feeds(const struct bench *b)
{
    cvy_plan *plan = b->step->plan;
    for (int i = 0; i < plan->nfeed; i++)
        if (!plan->feed[i].per_step)
            fill_feed(b, &plan->feed[i], plan->unit[0]->graph->batch.first);
}

/* ---- timing ---- */

static cvy_status one_step(struct bench *b, double *seconds_out)
{
    const double begin = cvy_clock_s();
    CVY_TRY(cvy_program_step(b->session.program, b->number, b->session.job->train.lr));
    *seconds_out = cvy_clock_s() - begin;
    return CVY_OK;
}

/* Warm-up; from its last step the number of timed ones, if it is not given, equal on all ranks. */
static cvy_status warm_up(struct bench *b)
{
    cvy_comm *comm = b->session.context->comm;
    const int64_t warmup = b->opts.warmup > 0 ? b->opts.warmup : 2;
    double last = 0;
    for (int64_t i = 0; i < warmup; i++)
        CVY_TRY(one_step(b, &last));
    CVY_TRY(comm->ops->allreduce(comm, &last, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    const double fit = SECONDS_DEFAULT / CVY_MAX(last, 1e-6);
    b->steps = b->opts.steps > 0 ? b->opts.steps : (int64_t)CVY_MIN(CVY_MAX(ceil(fit), 5), 20000);
    b->node_steps = b->opts.per_node ? CVY_MIN(b->steps, NODE_STEPS_MAX) : 0;
    return CVY_OK;
}

static cvy_status time_steps(struct bench *b)
{
    cvy_comm *comm = b->session.context->comm;
    const cvy_plan *plan = b->step->plan;
    CVY_TRY(cvy_mem_alloc(sizeof(double) * (size_t)b->steps, &b->step_s));
    CVY_TRY(cvy_mem_alloc(sizeof(double) * (size_t)b->steps, &b->comm_s));
    CVY_TRY(cvy_mem_alloc(sizeof(double) * (size_t)(b->node_steps * plan->ninstr), &b->node_s));
    CVY_TRY(comm->ops->barrier(comm));
    for (int64_t i = 0; i < b->steps; i++) {
        CVY_TRY(one_step(b, &b->step_s[i]));
        b->comm_s[i] = b->step->time.exposed_comm;
        for (int k = 0; i < b->node_steps && k < plan->ninstr; k++)
            b->node_s[i * plan->ninstr + k] = plan->end_s[k] - plan->end_s[k - 1];
    }
    CVY_TRY(comm->ops->allreduce(comm, b->step_s, b->steps, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    return comm->ops->allreduce(comm, b->comm_s, b->steps, CVY_DTYPE_F64, CVY_REDUCE_MAX);
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts. */
static double median(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

/* Floating-point operations of this rank's step; views cost nothing. */
static double step_flop(const cvy_plan *plan)
{
    double flop = 0;
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_call *call = plan->instr[i].call;
        if (call && (call->kind == CVY_CALL_KERNEL || call->kind == CVY_CALL_REFERENCE))
            flop += (double)cvy_node_cost(call->node).flop;
    }
    return flop;
}

static double peak_rss_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? 1024.0 * (double)usage.ru_maxrss : 0;
}

static const char *instr_kernel(const cvy_instr *instr)
{
    static const char *const words[] = {"kernel", "reference", "reorder", "view", "allreduce", "reduce_start", "reduce_wait", "absent", "accumulate", "zero"};
    return instr->call && instr->call->kernel ? instr->call->kernel->name : words[instr->kind];
}

static void add_node(const struct bench *b, int i, double *column, cvy_json *json)
{
    const cvy_plan *plan = b->step->plan;
    const cvy_instr *instr = &plan->instr[i];
    const cvy_node *node = instr->call ? instr->call->node : NULL;
    const cvy_unit *unit = plan->unit[instr->micro];
    for (int64_t s = 0; s < b->node_steps; s++)
        column[s] = b->node_s[s * plan->ninstr + i];
    cvy_json_open(json, NULL, '{');
    if (!node && instr->call && instr->call->src[0] >= 0)
        cvy_json_string(json, "name", unit->loc[instr->call->src[0]].value->name);
    else
        cvy_json_string(json, "name", node ? node->name : "step");
    cvy_json_string(json, "op", node ? node->op->name : instr_kernel(instr));
    cvy_json_string(json, "kernel", instr_kernel(instr));
    cvy_json_real(json, "ms", 1e3 * median(column, b->node_steps));
    cvy_json_close(json, '}');
}

/* Medians of each instruction on rank 0, in the order of the plan. */
static cvy_status add_nodes(const struct bench *b, cvy_json *json)
{
    double *column = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *column * (size_t)b->node_steps, &column));
    cvy_json_open(json, "nodes", '[');
    for (int i = 0; i < b->step->plan->ninstr; i++)
        add_node(b, i, column, json);
    cvy_json_close(json, ']');
    cvy_mem_free(&column);
    return CVY_OK;
}

static void add_times(const struct bench *b, double flop, cvy_json *json)
{
    const int64_t n = b->steps;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += b->step_s[i];
    for (int64_t i = 0; i < n; i++)
        squares += (b->step_s[i] - sum / (double)n) * (b->step_s[i] - sum / (double)n);
    const double middle = median(b->step_s, n), best = b->step_s[0];
    cvy_json_real(json, "images_per_s", (double)(b->batch * n) / sum);
    cvy_json_real(json, "images_per_s_best", (double)b->batch / best);
    cvy_json_real(json, "ms_median", 1e3 * middle);
    cvy_json_real(json, "ms_best", 1e3 * best);
    cvy_json_real(json, "ms_sd", n > 1 ? 1e3 * sqrt(squares / (double)(n - 1)) : 0);
    cvy_json_int(json, "steps", n);
    cvy_json_real(json, "gflop", 1e-9 * flop);
    cvy_json_real(json, "gflop_per_s", 1e-9 * flop / middle);
    cvy_json_real(json, "exposed_comm_ms", 1e3 * median(b->comm_s, n));
}

static cvy_status write_json(struct bench *b, double flop, double rss, double rss_max, cvy_json *json)
{
    const cvy_session *s = &b->session;
    const cvy_program *p = s->program;
    int64_t params = 0;
    double loss = NAN;
    for (int i = 0; i < p->vars->count; i++)
        params += p->vars->at[i]->role == CVY_ROLE_WEIGHT ? cvy_shape_elems(&p->vars->at[i]->shape) : 0;
    if (!b->opts.forward)
        CVY_TRY(cvy_program_loss(p, b->number, b->step->losses[0], &loss));
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "model", s->model->name);
    cvy_json_int(json, "batch", b->batch);
    cvy_json_string(json, "mode", b->opts.forward ? "forward" : "train");
    cvy_json_string(json, "dtype", cvy_dtype_text(p->opts.dtype));
    cvy_json_string(json, "input", cvy_shape_text(&b->data.field[0].shape));
    cvy_json_int(json, "threads", s->context->threads);
    cvy_json_int(json, "ranks", s->context->comm->nranks);
    add_times(b, flop, json);
    cvy_json_real(json, "peak_rss_bytes", rss);
    cvy_json_real(json, "peak_rss_bytes_largest_rank", rss_max);
    cvy_json_int(json, "params", params);
    cvy_json_int(json, "arena_bytes", (int64_t)p->arena_bytes);
    cvy_json_real(json, "plan_s", b->plan_s);
    cvy_json_real(json, "loss", loss);
    if (b->node_steps)
        CVY_TRY(add_nodes(b, json));
    cvy_json_close(json, '}');
    return json->text.status;
}

static cvy_status report(struct bench *b, char **json_out)
{
    cvy_comm *comm = b->session.context->comm;
    double sums[] = {step_flop(b->step->plan), peak_rss_bytes()}, largest = sums[1];
    cvy_json json = {0};
    CVY_TRY(comm->ops->allreduce(comm, sums, 2, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    CVY_TRY(comm->ops->allreduce(comm, &largest, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    if (b->opts.trace)
        CVY_TRY(cvy_trace_write(b->session.program, b->number, b->opts.trace));
    if (comm->rank != 0)
        return CVY_OK;
    const cvy_status status = write_json(b, sums[0], sums[1], largest, &json);
    if (status != CVY_OK)
        cvy_text_free(&json.text);
    else
        *json_out = json.text.data;
    return status;
}

static cvy_status run_bench(struct bench *b, char **json_out)
{
    cvy_comm *comm = b->session.context->comm;
    const double begin = cvy_clock_s();
    CVY_TRY(cvy_comm_agree(comm, make_program(b)));
    CVY_TRY(cvy_program_plan(b->session.program));
    b->plan_s = cvy_clock_s() - begin;
    b->step = b->session.program->step[b->number];
    fill_feeds(b);
    CVY_TRY(warm_up(b));
    CVY_TRY(time_steps(b));
    return cvy_comm_agree(comm, report(b, json_out));
}

cvy_status cvy_run_bench(cvy_context *context, const cvy_bench_opts *opts, char **json_out)
{
    struct bench b = {0};
    memcpy(&b.opts, opts, CVY_MIN(opts->size ? opts->size : sizeof *opts, sizeof *opts));
    *json_out = NULL;
    cvy_status status = open_bench(context, &b);
    if (status == CVY_OK)
        status = run_bench(&b, json_out);
    cvy_mem_free(&b.step_s);
    cvy_mem_free(&b.comm_s);
    cvy_mem_free(&b.node_s);
    cvy_session_close(&b.session);
    return status;
}
