/*
 * search.c: predicts grids and sorts them; see search.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_handle.h"
#include "comm/pretend/comm_pretend.h"
#include "program/program_update.h"
#include "session/session_model.h"

#define TIE 0.03      /* predictions are not better than this */
enum { REFINED = 3 }; /* so many of the best pipelines are tried with other numbers of micro-batches */
/* Grids are rehearsed for this time, as long as they are predicted to take at most so many times the best one. */
#define REHEARSAL_S 30
#define REHEARSED_UP_TO 3

/* The work of a search. */
struct search {
    const cvy_search_opts *o;
    cvy_search_space space;
    cvy_network network;  /* with what was measured here */
    int64_t memory_limit; /* 0: none */
    cvy_model *model;
    cvy_wisdom *wisdom;
    cvy_search *out;
    int rehearses;
    double rehearsal_s; /* of all rehearsals together */
};

/* ---- one rank ---- */

void cvy_search_apply(const cvy_search_grid *g, cvy_job *job)
{
    job->program.pipeline = g->length[CVY_AXIS_PIPELINE];
    job->program.tensor = g->length[CVY_AXIS_TENSOR];
    memcpy(job->program.spatial, &g->length[CVY_AXIS_SPACE0], sizeof job->program.spatial);
    if (g->shares_samples)
        job->program.tensor_layers = "auto";
    job->program.interleave = g->interleave;
    job->train.accumulate = g->micro_batches;
}

/* The rank of a stage that has most to do: shares grow with the number of the part, and inner parts of a spatial axis
 * have two neighbours. */
static int busiest_rank_of(const cvy_grid *grid, int stage)
{
    int at[CVY_AXES];
    for (int a = 0; a < CVY_AXES; a++)
        at[a] = grid->length[a] - (a >= CVY_AXIS_SPACE0 && grid->length[a] > 2 ? 2 : 1);
    at[CVY_AXIS_PIPELINE] = stage;
    return cvy_grid_rank(grid, at);
}

static cvy_status make_program(const struct search *s, cvy_context *context, const cvy_job *job, const char *choices,
                               cvy_program **out, int64_t *batch_out)
{
    cvy_program_opts opts;
    cvy_training_opts training;
    cvy_program *p = NULL;
    int task = 0;
    opts = cvy_job_program_opts(job, NULL);
    CVY_TRY(cvy_job_training_opts(job, &training));
    CVY_TRY(cvy_program_create(context, &opts, &p));
    *out = p;
    if (s->wisdom)
        cvy_program_use_wisdom(p, s->wisdom);
    if (choices)
        CVY_TRY(cvy_program_take_plan(p, "the kernels of the first stage", choices));
    CVY_TRY(cvy_job_batch(job, cvy_program_nworkers(p), batch_out));
    cvy_job_group_variables(job, p);
    CVY_TRY(cvy_program_add_training(p, s->model, *batch_out, &training, &task));
    return cvy_program_prepare(p);
}

/* The kernels that a program has chosen, in the form of a plan file, for the other stages of its grid. */
static cvy_status keep_choices(const cvy_program *p, char **out)
{
    return *out ? CVY_OK : cvy_mem_printf(out, "{\"choices\": %s}", cvy_program_chosen(p));
}

/* Plans a rank and appends what it does. A plan that does not fit is known too: its memory counts. */
static cvy_status predict_rank(struct search *s, const cvy_job *job, int rank, char **choices, cvy_search_candidate *c,
                               cvy_forecast_stage *stage)
{
    const cvy_search_opts *o = s->o;
    cvy_comm *comm = NULL;
    cvy_program *p = NULL;
    CVY_TRY(cvy_comm_create_pretended(&s->network, o->nranks, rank, &comm));
    cvy_context context = cvy_context_for_planning(o->context, comm);
    context.threads = o->threads;
    cvy_status status = cvy_handle_add(&context, CVY_HANDLE_CONTEXT);
    if (status == CVY_OK)
        status = make_program(s, &context, job, *choices, &p, &c->batch);
    const int64_t need = p && (status == CVY_OK || status == CVY_E_MEMORY) ? cvy_program_need(p) : 0;
    if (need > 0)
        c->need_bytes = CVY_MAX(c->need_bytes, need + c->other_bytes);
    if (status == CVY_OK && s->rehearses) {
        status = cvy_program_rehearse(p, 0);
        s->rehearsal_s += cvy_program_task_plan(p, 0)->times.rehearsal_s;
    }
    if (status == CVY_OK)
        status = cvy_program_forecast(p, 0, &s->network, stage, &c->basis);
    if (status == CVY_OK)
        status = keep_choices(p, choices);
    cvy_program_destroy(&p);
    cvy_handle_remove(&context);
    comm->ops->destroy(comm);
    return status;
}

/* ---- one grid ---- */

/* Tells a plan that exceeds the limit from a lack of memory of this process. */
static int is_too_large(const struct search *s, const cvy_search_candidate *c)
{
    return s->memory_limit > 0 && c->need_bytes > s->memory_limit;
}

static cvy_status predict_stages(struct search *s, const cvy_job *job, cvy_search_candidate *c, cvy_forecast *f)
{
    cvy_comm *comm = NULL;
    cvy_grid grid;
    char *choices = NULL;
    cvy_status status = CVY_OK, fits = CVY_OK;
    CVY_TRY(cvy_comm_create_pretended(&s->network, s->o->nranks, 0, &comm));
    status = cvy_grid_arrange(comm, c->grid.length, &grid);
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *f->stage * (size_t)grid.nstages, &f->stage);
    if (status == CVY_OK)
        f->nstages = grid.nstages;
    for (int i = 0; i < f->nstages && status == CVY_OK; i++) {
        status = predict_rank(s, job, busiest_rank_of(&grid, i), &choices, c, &f->stage[i]);
        if (status == CVY_E_MEMORY && is_too_large(s, c)) { /* the other stages may need more */
            fits = status;
            status = CVY_OK;
        }
    }
    cvy_mem_free(&choices);
    comm->ops->destroy(comm);
    return status == CVY_OK ? fits : status;
}

/* Samples of a batch and of what is left after whole batches. */
static int64_t batch_and_tail(int64_t nsamples, int64_t batch)
{
    return nsamples == INT64_MAX || nsamples < batch ? CVY_MIN(nsamples, batch) : batch + nsamples % batch;
}

/* A training has more tasks than its step: the last batch of an epoch, and validation. They share the memory of the
 * step, except for their inputs. */
static int64_t other_inputs(const struct search *s, const cvy_search_grid *grid)
{
    const cvy_dataset_info *data = s->o->data;
    const int64_t batch = s->space.batch, ndata = grid->length[CVY_AXIS_DATA];
    int64_t samples = batch_and_tail(s->o->nscored, batch), bytes = 0;
    if (s->o->job->data.tail == CVY_TAIL_KEEP && data->nsamples > batch)
        samples += data->nsamples % batch;
    for (int i = 0; i < data->nfield; i++)
        bytes += cvy_shape_elems(&data->field[i].shape) * (int64_t)sizeof(float);
    return (samples + ndata - 1) / ndata * bytes;
}

static cvy_status predict(struct search *s, cvy_search_candidate *c)
{
    cvy_job job = *s->o->job;
    cvy_forecast f = {.threads = s->o->threads, .cores = s->o->cores};
    cvy_search_apply(&c->grid, &job);
    c->other_bytes = other_inputs(s, &c->grid);
    if (s->memory_limit > 0)
        job.program.memory_limit = CVY_MAX(s->memory_limit - c->other_bytes, 1);
    cvy_status status = cvy_job_translate(predict_stages(s, &job, c, &f));
    if (status == CVY_OK)
        status = cvy_forecast_run(&f, &c->time);
    if (status == CVY_OK)
        c->samples_per_s = (double)c->batch / c->time.step_s;
    cvy_forecast_free(&f);
    return status;
}

/* Predicts a grid, and keeps the reason if it cannot be used. */
static cvy_status try_grid(struct search *s, const cvy_search_grid *grid)
{
    cvy_search *out = s->out;
    CVY_TRY(cvy_mem_reserve(&out->at, &out->room, out->n, sizeof *out->at));
    cvy_search_candidate *c = &out->at[out->n++];
    *c = (cvy_search_candidate){.grid = *grid, .number = out->n};
    c->status = predict(s, c);
    if (c->status == CVY_OK)
        return CVY_OK;
    snprintf(c->why, sizeof c->why, "%s", cvy_error_text());
    return c->status == CVY_E_MEMORY && !is_too_large(s, c) ? c->status : CVY_OK;
}

/* ---- all grids ---- */

static int order_of(const cvy_search_candidate *c)
{
    return c->status == CVY_OK ? 0 : c->status == CVY_E_MEMORY ? 1 : 2;
}

static int best_first(const void *a, const void *b)
{
    const cvy_search_candidate *x = a, *y = b;
    if (order_of(x) != order_of(y))
        return order_of(x) - order_of(y);
    if (x->status == CVY_E_MEMORY && x->need_bytes != y->need_bytes)
        return x->need_bytes < y->need_bytes ? -1 : 1;
    return x->samples_per_s != y->samples_per_s ? (x->samples_per_s > y->samples_per_s ? -1 : 1) : 0;
}

/* A grid that is hardly faster than a simpler one comes after it. */
static void sort(cvy_search *found)
{
    int simplest = 0;
    if (found->n > 0)
        qsort(found->at, (size_t)found->n, sizeof *found->at, best_first);
    for (int i = 1; i < found->n && found->at[i].samples_per_s > (1 - TIE) * found->at[0].samples_per_s; i++)
        simplest = found->at[i].number < found->at[simplest].number ? i : simplest;
    if (simplest > 0) {
        const cvy_search_candidate first = found->at[simplest];
        memmove(&found->at[1], &found->at[0], sizeof first * (size_t)simplest);
        found->at[0] = first;
    }
}

static cvy_status try_all(struct search *s)
{
    const int n = cvy_search_list_grids(&s->space, NULL);
    cvy_search_grid *grid = NULL, variant[CVY_SEARCH_VARIANTS], best[REFINED];
    int nbest = 0;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *grid * ((size_t)n + 1), &grid));
    cvy_search_list_grids(&s->space, grid);
    for (int i = 0; i < n && status == CVY_OK; i++)
        status = try_grid(s, &grid[i]);
    cvy_mem_free(&grid);
    sort(s->out);
    for (int i = 0; i < s->out->n && nbest < REFINED; i++)
        if (s->out->at[i].grid.length[CVY_AXIS_PIPELINE] > 1 && order_of(&s->out->at[i]) < 2)
            best[nbest++] = s->out->at[i].grid;
    for (int i = 0; i < nbest && status == CVY_OK; i++)
        for (int k = cvy_search_list_variants(&s->space, &best[i], variant); k > 0 && status == CVY_OK; k--)
            status = try_grid(s, &variant[k - 1]);
    sort(s->out);
    return status;
}

static void scale(cvy_forecast_result *t, double factor)
{
    t->step_s *= factor;
    t->work_s *= factor;
    t->bubble_s *= factor;
    for (int a = 0; a < CVY_COMM_AXES; a++)
        t->exposed_s[a] *= factor;
}

/* A grid that cannot be rehearsed, because this process has too little memory, keeps its sum of single times. */
static cvy_status rehearse(struct search *s, cvy_search_candidate *c)
{
    cvy_search_candidate again = {.grid = c->grid, .number = c->number};
    const cvy_status status = predict(s, &again);
    if (status == CVY_NOT_APPLICABLE)
        return CVY_OK;
    CVY_TRY(status);
    again.is_rehearsed = 1;
    *c = again;
    return CVY_OK;
}

/* Rehearses the best grids, and corrects the others by the mean ratio that this has shown. */
static cvy_status rehearse_best(struct search *s)
{
    cvy_search *found = s->out;
    double before_s = 0, after_s = 0;
    s->rehearses = 1;
    for (int i = 0; i < found->n && order_of(&found->at[i]) == 0 && s->rehearsal_s < REHEARSAL_S; i++) {
        cvy_search_candidate *c = &found->at[i];
        const double predicted_s = c->time.step_s;
        if (i > 0 && found->at[0].samples_per_s > REHEARSED_UP_TO * c->samples_per_s)
            break;
        CVY_TRY(rehearse(s, c));
        before_s += c->is_rehearsed ? predicted_s : 0;
        after_s += c->is_rehearsed ? c->time.step_s : 0;
    }
    for (int i = 0; i < found->n && before_s > 0; i++) {
        cvy_search_candidate *c = &found->at[i];
        if (c->is_rehearsed || order_of(c) != 0)
            continue;
        scale(&c->time, after_s / before_s);
        c->samples_per_s *= before_s / after_s;
    }
    sort(found);
    return CVY_OK;
}

static cvy_status try_given(struct search *s)
{
    const cvy_job *job = s->o->job;
    cvy_search_grid grid = {.micro_batches = job->train.accumulate, .interleave = job->program.interleave};
    cvy_job_grid(job, grid.length);
    CVY_TRY(cvy_grid_check(grid.length, s->o->nranks));
    grid.length[CVY_AXIS_DATA] = s->o->nranks;
    for (int a = 0; a < CVY_AXES; a++)
        grid.length[CVY_AXIS_DATA] /= a == CVY_AXIS_DATA ? 1 : grid.length[a];
    return try_grid(s, &grid);
}

static cvy_status open_space(struct search *s)
{
    const cvy_job *job = s->o->job;
    const cvy_shape *sample = &s->o->data->field[0].shape;
    const int64_t per_rank = job->train.batch_per_rank;
    s->space = (cvy_search_space){
        .nranks = s->o->nranks,
        .ndims = CVY_MIN(CVY_MAX(sample->ndim - 1, 0), 3),
        .batch = per_rank > 0 ? per_rank * s->o->nranks : job->train.batch,
        .micro_batches = /* deterministic training has its shards */
        s->o->micro_batches > 0                                                          ? s->o->micro_batches
        : cvy_tree_at(job->given, "train.accumulate") != NULL || cvy_job_shards(job) > 0 ? job->train.accumulate
                                                                                         : 0,
        .interleave = cvy_tree_at(job->given, "parallel.interleave") ? job->program.interleave : 0,
        .tensor_layers = job->program.tensor_layers != NULL};
    s->network = s->o->network;
    s->memory_limit = s->o->memory_limit > 0 ? s->o->memory_limit : job->program.memory_limit;
    if (strcmp(job->program.planning, "estimate") != 0)
        CVY_TRY(cvy_search_measure_copy(&s->network.copy_s));
    return cvy_wisdom_open(job->program.wisdom, &s->o->context->space, &s->wisdom);
}

cvy_status cvy_search_run(const cvy_search_opts *o, cvy_search *out)
{
    cvy_search found = {0};
    struct search s = {.o = o, .out = &found};
    CVY_CHECK(o->nranks >= 1, CVY_E_ARGUMENT, "a search over the grids of %d ranks, expected at least 1", o->nranks);
    cvy_status status = cvy_job_model(o->job, o->context, o->data, CVY_LOSSES_NEEDED, &s.model);
    if (status == CVY_OK)
        status = open_space(&s);
    if (status == CVY_OK)
        status = o->only_given ? try_given(&s) : try_all(&s);
    if (status == CVY_OK && strcmp(o->job->program.planning, "estimate") != 0)
        status = rehearse_best(&s);
    cvy_wisdom_close(&s.wisdom);
    cvy_model_destroy(&s.model);
    if (status != CVY_OK)
        cvy_search_free(&found);
    else
        *out = found;
    return status;
}

void cvy_search_free(cvy_search *s)
{
    cvy_mem_free(&s->at);
    *s = (cvy_search){0};
}

cvy_status cvy_search_best(const cvy_search *s, const cvy_search_opts *o, const cvy_search_candidate **out)
{
    const cvy_search_candidate *c = s->n > 0 ? &s->at[0] : NULL;
    cvy_text grid = {0}, room = {0}, need = {0};
    CVY_CHECK(c, CVY_E_CONFIG, "a batch of the job has fewer samples than each grid of %d ranks needs", o->nranks);
    if (c->status == CVY_OK) {
        *out = c;
        return CVY_OK;
    }
    const int64_t limit = o->memory_limit > 0 ? o->memory_limit : o->job->program.memory_limit;
    cvy_search_bytes_text(limit, &room);
    cvy_search_bytes_text(c->need_bytes, &need);
    cvy_search_grid_text(&c->grid, &grid);
    const cvy_status status =
        c->status == CVY_E_MEMORY
            ? cvy_error_set(
                  CVY_E_MEMORY,
                  "no grid of %d ranks fits into %s a rank: the least memory is %s, with %s; take more ranks, "
                  "a smaller batch or more memory",
                  o->nranks, room.data, need.data, grid.data)
            : cvy_error_set(c->status, "no grid of %d ranks can be used; %s: %s", o->nranks, grid.data, c->why);
    cvy_text_free(&room);
    cvy_text_free(&need);
    cvy_text_free(&grid);
    return status;
}
