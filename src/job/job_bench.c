/*
 * job_bench.c: a network set up on made-up data and timed: cvy_run_bench(), and what cvy_run_time() and cvy_run_check() begin with.
 *
 * What is timed is the whole step of the plan and executor that train uses: forward, backward, sums over ranks, update. A step's time is that of the
 * slowest rank. A network of the zoo is timed as PyTorch's own benchmarks do it: SGD with momentum 0.9, batch-norm statistics over the rank's share.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_bench.h"
#include "job/job_table.h"
#include "run/run_server.h"
#include "run/run_trace.h"

#define SECONDS_DEFAULT 5.0

enum { STEPS_LEAST = 5, STEPS_MAX = 20000 }; /* where their number is not given */

/* ---- the job ---- */

/* Those options under which the studies time the network that are not given otherwise. */
static cvy_status add_bench_options(const cvy_model_def *def, const char *given, size_t length, cvy_text *text)
{
    char *flow = NULL;
    cvy_tree *ours = NULL, *theirs = NULL;
    cvy_pool *pool = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = cvy_pool_printf(pool, &flow, "{%s}", def->bench);
    if (status == CVY_OK)
        status = cvy_tree_parse_text(pool, def->name, flow, strlen(flow), &ours);
    if (status == CVY_OK)
        status = cvy_pool_printf(pool, &flow, "{%.*s}", (int)length, given);
    if (status == CVY_OK)
        status = cvy_tree_parse_text(pool, "--options", flow, strlen(flow), &theirs);
    for (int i = 0; status == CVY_OK && i < ours->count; i++)
        if (!cvy_tree_get(theirs, ours->key[i]))
            cvy_text_add(text, ", %s: %s", ours->key[i], ours->child[i]->text);
    cvy_pool_destroy(&pool);
    return status;
}

/* A network of the zoo as the job that it stands for. */
static cvy_status zoo_job(cvy_context *context, const cvy_bench_opts *o, cvy_session *s)
{
    cvy_text text = {0};
    cvy_status status = CVY_OK;
    const char *given = o->model_options ? o->model_options : "";
    const size_t skip = strspn(given, " {"), length = strcspn(given + skip, "}");
    const cvy_model_def *def = NULL;
    int64_t number = 0;
    CVY_CHECK(o->model, CVY_E_ARGUMENT, "name a network or a job to time");
    CVY_TRY(cvy_model_resolve(o->model, &def, &number));
    cvy_text_add(&text, "name: bench\nmodel: {name: %s%s%.*s", o->model, length ? ", " : "", (int)length, given + skip);
    if (def->bench)
        CVY_TRY_OUT(add_bench_options(def, given + skip, length, &text));
    cvy_text_add(&text, "}\ndata: {train: synthetic}\nbatch_norm: {group: rank}\n");
    cvy_text_add(&text, "train: {optimizer: {name: sgd, lr: 0.001, momentum: 0.9}, steps: 1}\n");
    CVY_TRY_OUT(text.status);
    const cvy_job_source source = {.size = sizeof source, .text = text.data, .sets = o->sets, .nsets = o->nsets};
    CVY_TRY_OUT(cvy_session_open_job(context, &source, s));
out:
    cvy_text_free(&text);
    return status;
}

static cvy_field field(char *name, cvy_dtype dtype, const cvy_shape *shape)
{
    return (cvy_field){name, dtype, *shape};
}

/* Images of this shape with a label. */
static void describe(cvy_bench *b, const cvy_shape *input, int64_t classes)
{
    static char x[] = "x", label[] = "label";
    b->data = (cvy_dataset_info){.nfield = 2, .nclasses = classes, .format = "made-up data"};
    b->data.field[0] = field(x, CVY_DTYPE_F32, input);
    b->data.field[1] = field(label, CVY_DTYPE_I32, &(cvy_shape){0});
}

/* What the data would be: as asked for, as the job's data are, or as the network likes them. */
static cvy_status find_data(cvy_bench *b)
{
    const cvy_bench_opts *o = &b->opts;
    const cvy_job *job = b->session.job;
    if (o->job && o->input.ndim == 0) {
        CVY_TRY(cvy_dataset_open(job->data.train, job->data.augment, 0, 1, &b->session.train));
        b->data = *cvy_dataset_describe(b->session.train);
        b->data.nclasses = o->classes > 0 ? o->classes : b->data.nclasses;
        return CVY_OK;
    }
    const cvy_model_def *def = NULL;
    int64_t number = 0;
    if (o->model)
        CVY_TRY(cvy_model_resolve(o->model, &def, &number));
    describe(b, o->input.ndim || !def ? &o->input : &def->input, o->classes > 0 ? o->classes : def ? def->classes : 10);
    return CVY_OK;
}

cvy_status cvy_bench_open(cvy_context *context, const cvy_bench_opts *opts, cvy_bench *b)
{
    const cvy_bench_opts *o = &b->opts;
    *b = (cvy_bench){.peak_flop_per_s = NAN, .loss_first = NAN, .loss_last = NAN};
    memcpy(&b->opts, opts, CVY_MIN(opts->size ? opts->size : sizeof *opts, sizeof *opts));
    cvy_mem_peak_reset();
    CVY_TRY(o->job ? cvy_session_open_job(context, o->job, &b->session) : zoo_job(context, o, &b->session));
    cvy_job *job = b->session.job;
    if (o->batch > 0)
        job->train.batch = o->batch, job->train.batch_per_rank = 0;
    if (o->dtype != CVY_DTYPE_F32)
        job->train.dtype = o->dtype;
    return cvy_comm_agree(context->comm, find_data(b));
}

void cvy_bench_close(cvy_bench *b)
{
    cvy_mem_free(&b->step_s);
    cvy_mem_free(&b->comm_s);
    cvy_mem_free(&b->hidden_s);
    cvy_mem_free(&b->busy_s);
    cvy_mem_free(&b->busy_min_s);
    cvy_mem_free(&b->slowest_s);
    cvy_mem_free(&b->node_s);
    cvy_session_close(&b->session);
}

/* ---- made-up rows ---- */

/* Values of mean 0 and variance 1; labels below the number of classes; weights 1. The same rows whatever the number of ranks. */
static void fill_feed(const cvy_bench *b, const cvy_plan_feed *feed, int64_t first_row)
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

static void fill_feeds(const cvy_bench *b)
{
    cvy_plan *plan = b->step->plan;
    for (int i = 0; i < plan->nfeed; i++)
        if (!plan->feed[i].per_step)
            fill_feed(b, &plan->feed[i], b->step->first_row);
}

/* ---- the program ---- */

cvy_status cvy_bench_make_program(cvy_bench *b, const char *kernels, const char *passes_off)
{
    cvy_session *s = &b->session;
    cvy_program_opts opts;
    cvy_training_opts training;
    CVY_TRY(cvy_job_model(s->job, &b->data, !b->opts.forward, &s->model));
    CVY_TRY(cvy_job_program_opts(s->job, NULL, &opts));
    CVY_TRY(cvy_job_training_opts(s->job, &training));
    opts.kernels = kernels ? kernels : b->opts.kernels ? b->opts.kernels : opts.kernels;
    opts.planning = b->opts.planning ? b->opts.planning : opts.planning;
    opts.passes_off = passes_off ? passes_off : b->opts.passes_off ? b->opts.passes_off : opts.passes_off;
    CVY_CHECK(b->opts.forward || opts.update.mode != CVY_UPDATE_PARAMETER_SERVER || opts.update.staleness == 0, CVY_E_CONFIG,
              "%s: bench times steps that all ranks take together: set update.staleness to 0", s->job->file);
    CVY_TRY(cvy_program_create(s->context, &opts, &s->program));
    CVY_TRY(cvy_job_batch(s->job, b->opts.forward ? s->context->comm->nranks : cvy_program_nworkers(s->program), &b->batch));
    cvy_job_group_variables(s->job, s->program);
    return b->opts.forward ? cvy_program_add_forward(s->program, s->model, b->batch, NULL, &b->number)
                           : cvy_program_add_training(s->program, s->model, b->batch, &training, &b->number);
}

cvy_status cvy_bench_plan(cvy_bench *b, const char *kernels, const char *passes_off)
{
    const double begin = cvy_clock_s();
    CVY_TRY(cvy_comm_agree(b->session.context->comm, cvy_bench_make_program(b, kernels, passes_off)));
    CVY_TRY(cvy_program_plan(b->session.program));
    b->plan_s = cvy_clock_s() - begin;
    b->step = b->session.program->step[b->number];
    if (!b->session.program->by_clock)
        fill_feeds(b);
    return CVY_OK;
}

/* ---- steps ---- */

cvy_status cvy_bench_step(cvy_bench *b, double *seconds_out)
{
    const double begin = cvy_clock_s();
    const struct cvy_job_update *update = &b->session.job->update;
    CVY_TRY(cvy_program_step(b->session.program, b->number, b->session.job->train.lr));
    if (update->mode == CVY_UPDATE_LOCAL && ++b->nstep % update->every == 0)
        CVY_TRY(cvy_program_settle(b->session.program));
    *seconds_out = cvy_clock_s() - begin;
    return CVY_OK;
}

cvy_status cvy_bench_loss(const cvy_bench *b, double *loss_out)
{
    double sum = b->opts.forward ? NAN : 0;
    for (int i = 0; i < b->step->nloss && !b->opts.forward; i++) {
        double loss = 0;
        CVY_TRY(cvy_program_loss(b->session.program, b->number, b->step->losses[i], &loss));
        sum += loss;
    }
    *loss_out = sum;
    return CVY_OK;
}

/* Steps that are not timed, and the seconds of the last. */
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

/* How many more steps, equal on all ranks; 0: enough. Without a number given, what fits into half of the time that is left, by the mean of all steps so far:
 * one step that was slow, or fast, by chance does not decide, and ranks that ask each other meet a few times only. */
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

/* Ranks leave a step together: who was busy for less time than the slowest has waited for it. */
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
    for (int64_t i = 0; i < n; i++)    /* the sum of all busy times so far */
        b->slowest_s[i] = b->busy_s[i] - b->slowest_s[i] / comm->nranks;
    return CVY_OK;
}

static cvy_status time_step(cvy_bench *b, int64_t i, int64_t node_steps_max)
{
    const cvy_plan *plan = b->step->plan;
    CVY_TRY(cvy_bench_step(b, &b->step_s[i]));
    b->comm_s[i] = b->step->time.exposed_comm;
    b->hidden_s[i] = b->step->time.hidden_comm;
    b->busy_s[i] = b->busy_min_s[i] = b->slowest_s[i] = b->step->time.total - b->step->time.exposed_comm;
    for (int k = 0; i < node_steps_max && k < plan->ninstr; k++)
        b->node_s[i * plan->ninstr + k] = plan->end_s[k] - plan->end_s[k - 1];
    return CVY_OK;
}

static cvy_status time_steps(cvy_bench *b, double warm_s, int64_t node_steps_max)
{
    cvy_comm *comm = b->session.context->comm;
    const int64_t room = b->opts.steps > 0 ? b->opts.steps : STEPS_MAX;
    double **const figures[] = {&b->step_s, &b->comm_s, &b->hidden_s, &b->busy_s, &b->busy_min_s, &b->slowest_s};
    for (int i = 0; i < CVY_COUNT(figures); i++)
        CVY_TRY(cvy_mem_alloc(sizeof(double) * (size_t)room, figures[i]));
    CVY_TRY(cvy_mem_alloc(sizeof(double) * (size_t)(CVY_MIN(room, node_steps_max) * b->step->plan->ninstr), &b->node_s));
    CVY_TRY(comm->ops->barrier(comm));
    const int64_t sent_bytes = comm->sent_bytes;
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
    b->bytes_wire = (double)(comm->sent_bytes - sent_bytes) / (double)b->steps;
    CVY_TRY(comm->ops->allreduce(comm, &b->bytes_wire, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    CVY_TRY(cvy_bench_loss(b, &b->loss_last));
    return compare_ranks(b);
}

/* The yardstick is taken before and behind the steps: the better counts, for other work on the machine can only slow it. */
cvy_status cvy_bench_measure(cvy_bench *b, int64_t node_steps_max)
{
    cvy_context *context = b->session.context;
    const cvy_dtype dtype = b->session.program->opts.dtype;
    const int by_clock = b->session.program->by_clock;
    double before = NAN, behind = NAN, warm_s = 0;
    if (!by_clock)
        CVY_TRY(cvy_bench_peak(context, dtype, &before));
    CVY_TRY(warm_up(b, &warm_s));
    CVY_TRY(time_steps(b, warm_s, node_steps_max));
    CVY_TRY(cvy_program_settle(b->session.program));       /* pipelined: an update is pending, and the peak is a program of its own */
    if (!by_clock)
        CVY_TRY(cvy_bench_peak(context, dtype, &behind));
    b->peak_flop_per_s = by_clock ? NAN : CVY_MAX(before, behind);
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

/* Views cost nothing. */
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
        n += vars->at[i]->role == CVY_ROLE_WEIGHT ? cvy_shape_elems(&vars->at[i]->shape) : 0;
    return n;
}

void cvy_bench_add_head(const cvy_bench *b, cvy_json *json)
{
    const cvy_session *s = &b->session;
    cvy_json_string(json, "model", s->model->name);
    cvy_json_int(json, "batch", b->batch);
    cvy_json_string(json, "mode", b->opts.forward ? "forward" : "train");
    cvy_json_string(json, "dtype", cvy_dtype_text(s->program->opts.dtype));
    cvy_json_string(json, "input", cvy_shape_text(&b->data.field[0].shape));
    cvy_json_int(json, "threads", s->context->threads);
    cvy_json_int(json, "ranks", s->context->comm->nranks);
    if (s->program->opts.shards)
        cvy_json_int(json, "deterministic_shards", s->program->opts.shards);
    if (s->program->by_clock)
        cvy_json_string(json, "kernels", "clock: nothing was computed, no loss");
}

void cvy_bench_add_times(const cvy_bench *b, double flop, cvy_json *json)
{
    const int64_t n = b->steps;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += b->step_s[i];
    for (int64_t i = 0; i < n; i++)
        squares += (b->step_s[i] - sum / (double)n) * (b->step_s[i] - sum / (double)n);
    const double middle = cvy_median(b->step_s, n), best = b->step_s[0];
    cvy_json_real(json, "images_per_s", (double)(b->batch * n) / sum);
    cvy_json_real(json, "images_per_s_best", (double)b->batch / best);
    cvy_json_real(json, "ms_median", 1e3 * middle);
    cvy_json_real(json, "ms_mean", 1e3 * sum / (double)n);
    cvy_json_real(json, "ms_sd", n > 1 ? 1e3 * sqrt(squares / (double)(n - 1)) : 0);
    cvy_json_real(json, "ms_best", 1e3 * best);
    cvy_json_int(json, "steps", n);
    cvy_json_real(json, "gflop", 1e-9 * flop);
    cvy_json_real(json, "gflop_per_s", 1e-9 * flop / middle);
    cvy_json_real(json, "peak_gflop_per_s", 1e-9 * b->peak_flop_per_s);
    cvy_json_real(json, "peak_share", flop / middle / b->peak_flop_per_s);
    cvy_json_string(json, "update", cvy_job_modes[b->session.job->update.mode].name);
    cvy_json_string(json, "progress", b->session.job->comm.progress);
    cvy_json_real(json, "bytes_wire", b->bytes_wire);
    cvy_json_real(json, "exposed_comm_ms", 1e3 * cvy_median(b->comm_s, n));
    cvy_json_real(json, "hidden_comm_ms", 1e3 * cvy_median(b->hidden_s, n));
    cvy_json_real(json, "wait_slowest_ms", 1e3 * cvy_median(b->slowest_s, n));
    for (int64_t i = 0; i < n; i++)
        b->busy_s[i] -= b->busy_min_s[i];
    cvy_json_real(json, "spread_ms", 1e3 * cvy_median(b->busy_s, n));
}

/* ---- bench ---- */

static cvy_status write_json(const cvy_bench *b, const cvy_work *work, double rss, double rss_max, cvy_json *json)
{
    const cvy_program *p = b->session.program;
    double predicted_ms = 0;
    int nunknown = 0;
    cvy_json_open(json, NULL, '{');
    cvy_bench_add_head(b, json);
    cvy_bench_add_times(b, work->flop, json);
    cvy_json_int(json, "parameters", count_parameters(p->vars));
    cvy_json_int(json, "macs", llround(work->macs / (double)b->batch));
    cvy_json_real(json, "loss_first", b->loss_first);
    cvy_json_real(json, "loss_last", b->loss_last);
    cvy_json_real(json, "peak_rss_bytes", rss);
    cvy_json_real(json, "peak_rss_bytes_largest_rank", rss_max);
    cvy_json_int(json, "arena_bytes", (int64_t)p->arena_bytes);
    cvy_json_real(json, "plan_s", b->plan_s);
    if (cvy_program_predict(p, b->number, &predicted_ms, &nunknown) == CVY_OK && nunknown == 0)
        cvy_json_real(json, "predicted_ms", predicted_ms);
    cvy_json_close(json, '}');
    return json->text.status;
}

static cvy_status report(const cvy_bench *b, char **json_out)
{
    cvy_comm *comm = b->session.context->comm;
    const cvy_work mine = cvy_step_work(b->step->plan);
    double sums[] = {mine.flop, mine.macs, (double)cvy_mem_peak()}, largest = sums[2];
    cvy_json json = {0};
    CVY_TRY(comm->ops->allreduce(comm, sums, CVY_COUNT(sums), CVY_DTYPE_F64, CVY_REDUCE_SUM));
    CVY_TRY(comm->ops->allreduce(comm, &largest, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    if (comm->rank != 0)
        return CVY_OK;
    const cvy_status status = write_json(b, &(cvy_work){sums[0], sums[1]}, sums[2], largest, &json);
    if (status != CVY_OK)
        cvy_text_free(&json.text);
    else
        *json_out = json.text.data;
    return status;
}

cvy_status cvy_run_bench(cvy_context *context, const cvy_bench_opts *opts, char **json_out)
{
    cvy_bench b;
    *json_out = NULL;
    cvy_status status = cvy_bench_open(context, opts, &b);
    if (status == CVY_OK)
        status = cvy_bench_plan(&b, NULL, NULL);
    if (status == CVY_OK)
        status = cvy_bench_measure(&b, 0);
    if (status == CVY_OK)
        status = cvy_comm_agree(context->comm, report(&b, json_out));
    cvy_bench_close(&b);
    return status;
}
