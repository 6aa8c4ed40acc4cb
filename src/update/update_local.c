/*
 * update_local.c: local updates (local SGD): each rank trains on its own share with its own gradients, and from time to
 * time all ranks take the average.
 *
 * Training steps are planned for a communicator of one rank: losses and batch-norm groups cover only the rank's own
 * samples, and nothing is reduced over ranks. All that training changes is averaged: weights, running statistics, and
 * the optimiser's states, because a momentum does not fit weights that were replaced. A rank counts in the average by
 * the weights of the samples that it has trained on since the last one. The averages go through the
 * memory of the gradients, which are no longer needed then. This is done piece by piece: a piece is packed, reduced as
 * gradients are in sync, and written back while later pieces are under way. Averages are sent as they are, never in
 * bf16. If the host cannot read the weights, page-locked memory of the host takes the place of that of the gradients.
 *
 * Source: McDonald, Hall and Mann 2010; Stich 2019, Local SGD Converges Fast and Communicates Little; Yu, Jin and Yang
 * 2019 (the momentum's average).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "comm/comm_allreduce.h"
#include "data/data.h"
#include "program/program_impl.h"

/* A window of node memory serves at most twice as many reductions as PIECES_MAX. */
enum { GRAIN = 1 << 14, PIECES_MAX = 2048 };

typedef struct cvy_local {
    cvy_comm *comm;
    cvy_comm *self;     /* this rank alone; training tasks are planned for it */
    double **loss_mean; /* for each task: its losses over all ranks */
    cvy_variable **variable;
    int64_t *at; /* start of each one in the list of all elements; one more entry: the end */
    int nvariable;
    cvy_dtype dtype;
    int64_t span, piece; /* elements of the memory for averages, and of one piece */
    cvy_bucket_set *pieces;
    cvy_stage stage;          /* on a device: its host memory is that of the averages */
    cvy_program_task *latest; /* the task that ran last since the ranks were equal; NULL: they are equal */
    double weight;            /* of the samples since then */
    double share;             /* this rank's, as a multiple of the mean over ranks: 1 if all are equal */
} cvy_local;

static cvy_local *state_of(const cvy_program *p)
{
    return p->update.state;
}

/* ---- what is averaged ---- */

static void mark_written(const cvy_plan *plan, char *written)
{
    for (int i = 0; i < plan->ninstr; i++)
        for (int d = 0; d < plan->instr[i].ndst; d++) {
            const int number = plan->instr[i].dst_buffer[d];
            const cvy_buffer *b = number >= 0 ? &plan->buffer[plan->buffer[number].root] : NULL;
            if (b && b->region == CVY_REGION_VARIABLE)
                written[b->value->variable->index] = 1;
        }
}

/* The order is that in which variables were made, which is the same on all ranks. */
static cvy_status list_variables(const cvy_program *p, cvy_local *a)
{
    const int n = p->vars->count;
    char *written = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)n + 1, &written));
    for (int i = 0; i < p->ntask; i++)
        if (p->task[i]->training)
            mark_written(p->task[i]->plan, written);
    cvy_status status = cvy_mem_alloc(sizeof(cvy_variable *) * ((size_t)n + 1), &a->variable);
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *a->at * ((size_t)n + 1), &a->at);
    for (int i = 0; i < n && status == CVY_OK; i++) {
        cvy_variable *v = p->vars->at[i];
        if (!written[i])
            continue;
        if (v->dtype != a->dtype)
            status = cvy_error_set(CVY_E_UNSUPPORTED, "local updates average %s, but training writes %s, which is %s",
                                   cvy_dtype_text(a->dtype), v->name, cvy_dtype_text(v->dtype));
        a->variable[a->nvariable] = v;
        a->at[a->nvariable + 1] = a->at[a->nvariable] + (int64_t)(v->bytes / cvy_dtype_bytes(v->dtype));
        a->nvariable++;
    }
    cvy_mem_free(&written);
    return status;
}

/* ---- setup ---- */

/* Sizes the memory for averages: the gradients' memory, as much as every rank has. */
static cvy_status measure_memory(const cvy_program *p, cvy_local *a)
{
    cvy_comm *comm = p->context->comm;
    const size_t elem = cvy_dtype_bytes(a->dtype);
    const int64_t elems = a->at[a->nvariable];
    for (int i = 0; i < p->ntask; i++)
        if (p->task[i]->training)
            a->span = CVY_MAX(a->span, (int64_t)(p->task[i]->plan->head.bytes / elem));
    CVY_TRY(comm->ops->allreduce(comm, &a->span, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    a->span = CVY_MIN(a->span, (elems + 15) / 16 * 16);
    a->piece =
        (int64_t)(cvy_allreduce_bucket_bytes((size_t)a->span * elem, (size_t)p->opts.bucket_bytes, &p->reduce.cost) /
                      elem +
                  15) /
        16 * 16;
    a->piece = CVY_MAX(a->piece, (a->span / PIECES_MAX + 15) / 16 * 16 + 16);
    return CVY_OK;
}

/* Averages are sent as they are, even if gradients are sent in bf16. */
static cvy_status connect_pieces(const cvy_program *p, cvy_local *a)
{
    const size_t elem = cvy_dtype_bytes(a->dtype);
    cvy_allreduce_opts opts = p->reduce.opts;
    opts.wire = a->dtype;
    CVY_TRY(cvy_bucket_set_create((int)((a->span + a->piece - 1) / a->piece), &a->pieces));
    for (int i = 0; i < a->pieces->n; i++) {
        const int64_t first = i * a->piece;
        a->pieces->bucket[i] = (cvy_bucket){.offset = (size_t)first * elem,
                                            .bytes = (size_t)CVY_MIN(a->piece, a->span - first) * elem,
                                            .dtype = a->dtype};
    }
    if (!cvy_space_is_host(&p->context->space))
        CVY_TRY(cvy_stage_make(&a->stage, &p->context->space, NULL, (size_t)a->span * elem));
    return cvy_bucket_set_connect(a->pieces, a->comm, &opts, a->stage.host ? a->stage.host : p->memory.arena);
}

static cvy_status create(cvy_program *p)
{
    cvy_local *a = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *a, &a));
    p->update.state = a;
    a->comm = p->context->comm;
    CVY_TRY(cvy_comm_create_self(&a->self));
    a->self->rank = a->comm->rank; /* for traces */
    return CVY_OK;
}

static void shape(const cvy_program *p, cvy_update_shape *shape)
{
    shape->comm = state_of(p)->self;
    shape->own_samples = 1;
    shape->shares_weights = 0;
}

static cvy_status make_losses(cvy_program *p, cvy_local *a)
{
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *a->loss_mean * (size_t)p->ntask, &a->loss_mean));
    for (int i = 0; i < p->ntask; i++)
        CVY_TRY(cvy_pool_alloc(p->pool, sizeof **a->loss_mean * (size_t)(p->task[i]->nloss + 1), &a->loss_mean[i]));
    return CVY_OK;
}

static cvy_status connect(cvy_program *p)
{
    cvy_comm *comm = p->context->comm;
    cvy_local *a = state_of(p);
    a->dtype = p->opts.dtype == CVY_DTYPE_F64 ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
    CVY_TRY(cvy_comm_agree(comm, make_losses(p, a)));
    CVY_TRY(cvy_comm_agree(comm, list_variables(p, a)));
    CVY_TRY(measure_memory(p, a));
    return cvy_comm_agree(comm, connect_pieces(p, a));
}

static void destroy(cvy_program *p)
{
    cvy_local *a = state_of(p);
    cvy_bucket_set_destroy(&a->pieces);
    cvy_stage_free(&a->stage);
    cvy_mem_free(&a->variable);
    cvy_mem_free(&a->at);
    if (a->self)
        a->self->ops->destroy(a->self);
    cvy_mem_free(&p->update.state);
}

/* ---- steps ---- */

static double *mean_of(const cvy_program *p, const cvy_program_task *s)
{
    int i = 0;
    while (p->task[i] != s)
        i++;
    return state_of(p)->loss_mean[i];
}

static const double *loss(const cvy_program *p, const cvy_program_task *s, int i)
{
    return &mean_of(p, s)[i];
}

/* What this rank's samples of the step weigh, as in the mean of a loss (op_loss.c). */
static double samples_weight(const cvy_program_task *s)
{
    const cvy_plan_feed *feed = cvy_plan_find_feed(s->plan, CVY_SAMPLE_WEIGHT);
    double sum = 0;
    if (!feed || !feed->data)
        return (double)s->plan->rows;
    const cvy_span weight = {.dtype = feed->dtype, .data = feed->data};
    const int64_t elems = (int64_t)(feed->row_bytes / cvy_dtype_bytes(feed->dtype));
    for (int64_t i = 0; i < s->plan->rows * elems; i++)
        sum += fabs(cvy_get(&weight, i));
    return sum / (double)elems;
}

/* Computes the mean over the samples of all ranks, for the log, and so that all ranks see a loss that is not finite. */
static cvy_status add_losses(const cvy_program *p, const cvy_program_task *s, double weight)
{
    cvy_comm *comm = p->context->comm;
    double *mean = mean_of(p, s), *total = &mean[s->nloss];
    *total = weight;
    for (int i = 0; i < s->nloss; i++) {
        const double *own = s->plan->rows > 0 ? cvy_plan_find(s->plan, s->loss[i].value, 0) : NULL;
        mean[i] = !own ? 0 : comm->nranks > 1 ? *own * weight : *own;
    }
    if (comm->nranks == 1)
        return CVY_OK;
    CVY_TRY(comm->ops->allreduce(comm, mean, s->nloss + 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    for (int i = 0; i < s->nloss && *total != 0; i++)
        mean[i] /= *total;
    return CVY_OK;
}

/* A rank without samples does not change its weights. */
static cvy_status local_step(cvy_program *p, cvy_program_task *s, double lr)
{
    (void)lr;
    s->time = (cvy_step_time){0};
    if (s->feed.norm)
        *s->feed.norm = (double)s->plan->rows;
    if (s->plan->rows > 0)
        CVY_TRY(cvy_plan_execute(s->plan, &s->time));
    state_of(p)->latest = s;
    const double begin = cvy_clock_s(), weight = samples_weight(s);
    state_of(p)->weight += weight;
    CVY_TRY(add_losses(p, s, weight));
    const double waited_s = cvy_clock_s() - begin;
    s->time.total += waited_s;
    s->time.exposed_comm += waited_s;
    return CVY_OK;
}

/* ---- averaging ---- */

struct copying {
    const cvy_local *a;
    int64_t first;
    char *piece;
    int packs;
    double factor; /* of what is copied */
};

static void copy_elems(const struct copying *c, void *to, const void *from, int64_t n)
{
    if (c->factor == 1) {
        memcpy(to, from, (size_t)n * cvy_dtype_bytes(c->a->dtype));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (c->a->dtype == CVY_DTYPE_F64)
            ((double *)to)[i] = ((const double *)from)[i] * c->factor;
        else
            ((float *)to)[i] = (float)(((const float *)from)[i] * c->factor);
}

/* The variable in which an element of the list of all elements is. */
static int find_variable(const cvy_local *a, int64_t elem)
{
    int low = 0, high = a->nvariable;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (a->at[middle] <= elem)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Copies elements first to last - 1 of a piece, which contain parts of several variables. */
static void copy_range(int64_t first, int64_t last, void *arg)
{
    const struct copying *c = arg;
    const cvy_local *a = c->a;
    const size_t elem = cvy_dtype_bytes(a->dtype);
    for (int i = find_variable(a, c->first + first); first < last; i++) {
        const int64_t in = c->first + first - a->at[i], n = CVY_MIN(last - first, a->at[i + 1] - a->at[i] - in);
        char *own = (char *)a->variable[i]->data + (size_t)in * elem, *packed = c->piece + (size_t)first * elem;
        if (c->packs)
            copy_elems(c, packed, own, n);
        else
            copy_elems(c, own, packed, n);
        first += n;
    }
}

static void scale_range(int64_t first, int64_t last, void *arg)
{
    const struct copying *c = arg;
    char *data = c->piece + (size_t)first * cvy_dtype_bytes(c->a->dtype);
    if (c->factor != 1)
        copy_elems(c, data, data, last - first);
}

/* Copies a piece between page-locked memory and the variables on the device. What is packed is there on return. */
static cvy_status copy_staged(const struct copying *c, int64_t n)
{
    const cvy_local *a = c->a;
    const size_t elem = cvy_dtype_bytes(a->dtype), at = (size_t)(c->piece - a->stage.host);
    int there = 0;
    CVY_TRY(cvy_stage_follow(&a->stage));
    for (int64_t done = 0, i = find_variable(a, c->first); done < n; i++) {
        const int64_t in = c->first + done - a->at[i], m = CVY_MIN(n - done, a->at[i + 1] - a->at[i] - in);
        char *own = (char *)a->variable[i]->data + (size_t)in * elem;
        const size_t to = at + (size_t)done * elem;
        CVY_TRY(c->packs ? cvy_stage_out(&a->stage, to, own, (size_t)m * elem)
                         : cvy_stage_in(&a->stage, own, to, (size_t)m * elem));
        done += m;
    }
    return c->packs ? cvy_stage_is_reached(&a->stage, 1, &there) : cvy_stage_await(&a->stage);
}

/* Copies between the variables and piece i of the memory. The round begins at element `round` of the list of all
 * variables. */
static cvy_status copy_piece(const cvy_program *p, int64_t round, int i, int packs)
{
    const cvy_local *a = state_of(p);
    const int64_t at = i * a->piece, first = round + at,
                  n = CVY_MIN(CVY_MIN(a->piece, a->span - at), a->at[a->nvariable] - first);
    struct copying c = {a, first, a->pieces->bucket[i].data, packs, packs ? a->share : 1.0 / p->context->comm->nranks};
    if (n <= 0)
        return CVY_OK;
    if (!a->stage.host) {
        cvy_parallel_for(p->context->threads, n, GRAIN, copy_range, &c);
        return CVY_OK;
    }
    if (packs)
        CVY_TRY(copy_staged(&c, n));
    cvy_parallel_for(p->context->threads, n, GRAIN, scale_range, &c);
    return packs ? CVY_OK : copy_staged(&c, n);
}

static cvy_status average_round(cvy_program *p, int64_t round)
{
    cvy_local *a = state_of(p);
    const int64_t left = CVY_MIN(a->span, a->at[a->nvariable] - round);
    const int npieces = (int)((left + a->piece - 1) / a->piece);
    for (int i = 0; i < npieces; i++) {
        CVY_TRY(copy_piece(p, round, i, 1));
        CVY_TRY(cvy_bucket_set_start(a->pieces, i));
        CVY_TRY(cvy_bucket_set_progress(a->pieces));
    }
    for (int i = 0; i < npieces; i++) {
        CVY_TRY(cvy_bucket_set_wait(a->pieces, i));
        CVY_TRY(copy_piece(p, round, i, 0));
    }
    return CVY_OK;
}

static cvy_status set_share(const cvy_program *p, cvy_local *a)
{
    cvy_comm *comm = p->context->comm;
    double total = a->weight;
    if (comm->nranks > 1)
        CVY_TRY(comm->ops->allreduce(comm, &total, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    a->share = total > 0 ? a->weight * comm->nranks / total : 1;
    a->weight = 0;
    return CVY_OK;
}

static cvy_status flush(cvy_program *p)
{
    cvy_local *a = state_of(p);
    cvy_program_task *s = a->latest;
    const double begin = cvy_clock_s();
    if (!s)
        return CVY_OK;
    for (int i = 0; i < a->nvariable; i++) /* first, so that after a fault nobody reads copies of other values */
        a->variable[i]->written++;
    CVY_TRY(set_share(p, a));
    for (int64_t round = 0; p->context->comm->nranks > 1 && round < a->at[a->nvariable]; round += a->span)
        CVY_TRY(average_round(p, round));
    a->latest = NULL;
    const double waited_s = cvy_clock_s() - begin;
    s->time.total += waited_s;
    s->time.exposed_comm += waited_s;
    return CVY_OK;
}

static int is_flushed(const cvy_program *p)
{
    return !state_of(p)->latest;
}

/* ---- options in a job file ---- */

typedef struct cvy_local_options {
    int64_t every;
} cvy_local_options;

static const cvy_option rows[] = {
    {"every", CVY_TYPE_INT, CVY_FIELD(cvy_local_options, every), "8", "1..", "steps",
     "steps between two averagings, in which each rank trains alone"},
    {0},
};

static int64_t flush_every(const void *options)
{
    return ((const cvy_local_options *)options)->every;
}

/* Steps are counted from the start of an epoch, and the weights are equal at the end of an epoch. */
static int flush_due(const void *options, const cvy_update_run *run, int64_t step)
{
    const int64_t in_epoch = step % run->steps_per_epoch + 1;
    return step + 1 == run->steps || in_epoch % flush_every(options) == 0 || in_epoch == run->steps_per_epoch;
}

static void describe_run(const void *options, const cvy_update_run *run, cvy_text *out)
{
    (void)run;
    cvy_text_add(out,
                 "update: local: ranks take their average, each by the weights of its samples, every %lld steps and at "
                 "each epoch's end; results depend on the number of ranks\n",
                 (long long)flush_every(options));
}

static const char *no_effect(const char *option, const char *value)
{
    (void)value;
    return strcmp(option, "reduce_wire") == 0
               ? "applies to gradients, but update: local sends averages of weights, which are not rounded"
               : NULL;
}

CVY_UPDATE_DEFINE(local) = {
    .name = "local",
    .summary =
        "each rank trains with its own gradients; every few steps, weights and optimiser state are averaged over ranks",
    .mode = CVY_UPDATE_LOCAL,
    .any_space = 1,
    .apart = 1,
    .job.options = rows,
    .job.options_size = sizeof(cvy_local_options),
    .job.flush_every = flush_every,
    .job.flush_due = flush_due,
    .job.describe_run = describe_run,
    .plan.no_effect = no_effect,
    .plan.create = create,
    .plan.shape = shape,
    .plan.connect = connect,
    .step = local_step,
    .loss = loss,
    .flush = flush,
    .is_flushed = is_flushed,
    .destroy = destroy,
};
