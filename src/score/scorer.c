/*
 * scorer.c: a pass over a data set with forward tasks, for losses and metrics. Each sample is used once, with any
 * number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/scorer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number/base_exact.h"
#include "data/data_agrees.h"
#include "data/data_reader.h"
#include "job/job_table.h"
#include "program/program_fill.h"
#include "program/program_update.h"
#include "score/score_yes.h"

cvy_status cvy_scorer_add(cvy_session *s, cvy_dataset *data, const cvy_model *model, cvy_scorer *out)
{
    const cvy_dataset_info *info = cvy_dataset_describe(data);
    cvy_scorer scorer = {.session = s, .data = data, .step_full = -1, .step_tail = -1};
    int64_t batch = 0;
    const cvy_grid *grid = cvy_program_grid(s->program);
    CVY_TRY(cvy_job_batch(s->job, grid->ndata, &batch));
    CVY_CHECK(info->nsamples > 0, CVY_E_FORMAT, "%s: the data set is empty", info->path ? info->path : info->format);
    scorer.order = cvy_order_make(info->nsamples, batch, 1, 0, 1, 0, s->context->comm);
    scorer.order.nranks = grid->ndata;
    scorer.order.rank = grid->data_rank;
    scorer.order.shards = cvy_job_shards(s->job);
    const int64_t tail = info->nsamples % scorer.order.batch;
    if (info->nsamples >= scorer.order.batch)
        CVY_TRY(cvy_program_add_forward(s->program, model, scorer.order.batch, model->scored, &scorer.step_full));
    if (tail)
        CVY_TRY(cvy_program_add_forward(s->program, model, tail, model->scored, &scorer.step_tail));
    *out = scorer;
    return CVY_OK;
}

/* The scaling of the output that metrics see. */
static cvy_status output_scaling(const cvy_scorer *scorer, cvy_scaling *out)
{
    const cvy_session *s = scorer->session;
    const int step = scorer->step_full >= 0 ? scorer->step_full : scorer->step_tail;
    return cvy_job_output_scaling(s->job, cvy_dataset_describe(scorer->data), s->model,
                                  cvy_program_output_name(s->program, step, 0), out);
}

/* Gives the output its own units back, in a copy. */
static cvy_status undo_scaling(const cvy_scaling *scaling, int64_t rows, cvy_bytes *room, cvy_span *output)
{
    const size_t bytes = (size_t)output->elems * cvy_dtype_bytes(output->dtype);
    if (rows == 0 || scaling->n == 0 || output->elems / rows % scaling->n != 0)
        return CVY_OK;
    CVY_TRY(cvy_bytes_need(room, bytes));
    memcpy(room->data, output->data, bytes);
    output->data = room->data;
    cvy_scaling_undo(scaling, rows, output->elems / rows, output->dtype, output->data);
    return CVY_OK;
}

static cvy_status view_output(const cvy_scorer *scorer, int step, cvy_span *out)
{
    const cvy_program *p = scorer->session->program;
    const void *data = NULL;
    cvy_shape shape;
    CVY_TRY(cvy_program_output(p, step, cvy_program_output_name(p, step, 0), &data, &shape));
    *out = (cvy_span){.dtype = cvy_plan_outside_dtype(cvy_program_options(p)->dtype),
                      .ndim = shape.ndim,
                      .elems = cvy_shape_elems(&shape),
                      .data = (void *)(uintptr_t)data};
    memcpy(out->dim, shape.dim, sizeof shape.dim);
    return CVY_OK;
}

/* Metrics compare the output with the target, on the stage that makes it. */
static cvy_row_needs row_needs(const cvy_scorer *scorer, int step)
{
    const cvy_program *p = scorer->session->program;
    const cvy_dataset_info *info = cvy_dataset_describe(scorer->data);
    const int has_label_only = info->nfield == 2 && strcmp(info->field[1].name, "label") == 0;
    if (step < 0)
        return CVY_NEEDS_NUMBERS;
    const cvy_row_needs needs = cvy_program_row_needs(p, step);
    return !cvy_program_makes_output(p, step, 0)
               ? needs
               : CVY_MIN(needs, has_label_only && !info->target_is_input ? CVY_NEEDS_LABELS : CVY_NEEDS_FIELDS);
}

enum { LOSS_MAX = 16 };
enum { SKIPPED = 2 * LOSS_MAX, WEIGHTS, BELOW_0, NSUMS }; /* samples skipped; sum of weights, and of those below 0 */
struct pass {
    cvy_metric *metric[CVY_SCORES_MAX];
    int nmetric;
    cvy_exact loss[NSUMS]; /* sums, then normalisers, then those named above */
    int nloss;
    cvy_scaling scaling;                /* of the output; it points to memory of the data set or of the model */
    int is_yes;                         /* each number is a yes or no */
    cvy_score_yes yes;                  /* rows of a step */
    cvy_bytes output, weights;          /* of a step: the output in the units of the target, and the weights */
    cvy_field_part part[CVY_FIELD_MAX]; /* of the fields, that rows have */
};

/* Adds rows shard by shard, because the grouping of rows decides the bits of their sums. */
static cvy_status add_metric_rows(const struct pass *pass, const cvy_program *p, int step, cvy_metric *metric,
                                  const cvy_metric_rows *rows)
{
    int64_t first = 0, n = 0;
    for (int m = 0; cvy_program_micro_rows(p, step, m, &first, &n); m++)
        CVY_TRY(pass->is_yes ? cvy_score_yes_add(&pass->yes, metric, first, n)
                             : cvy_metric_add_part(metric, rows, first, n));
    return CVY_OK;
}

static void add_weights(struct pass *pass, const cvy_score_rows *with, int64_t n)
{
    double sum = 0, below_0 = 0;
    for (int64_t i = 0; i < n * with->weight_each; i++) {
        sum += with->weight[i];
        below_0 += with->weight[i] < 0 ? with->weight[i] : 0;
    }
    cvy_exact_add(&pass->loss[WEIGHTS], sum);
    cvy_exact_add(&pass->loss[BELOW_0], below_0);
}

static cvy_status run_step(cvy_scorer *scorer, struct pass *pass, int64_t at, const cvy_rows *rows,
                           cvy_output_fn output, void *user)
{
    cvy_session *s = scorer->session;
    const int step = cvy_order_batch(&scorer->order, at) == scorer->order.batch && scorer->step_full >= 0
                         ? scorer->step_full
                         : scorer->step_tail;
    cvy_score_rows with;
    cvy_span view;
    CVY_TRY(cvy_session_fill(s, step, cvy_dataset_describe(scorer->data), rows, pass->part));
    CVY_TRY(cvy_program_step(s->program, step, 0));
    pass->nloss = cvy_program_nlosses(s->program, step);
    for (int i = 0; i < pass->nloss; i++)
        cvy_program_add_loss(s->program, step, i, &pass->loss[i], &pass->loss[LOSS_MAX + i]);
    if (!cvy_program_makes_output(s->program, step, 0) || !cvy_grid_is_first_part(cvy_program_grid(s->program)))
        return CVY_OK;
    CVY_TRY(view_output(scorer, step, &view));
    CVY_TRY(cvy_score_rows_of(cvy_dataset_describe(scorer->data), rows, &pass->weights, &with));
    add_weights(pass, &with, rows->n);
    CVY_TRY(undo_scaling(&pass->scaling, rows->n, &pass->output, &view));
    const cvy_metric_rows metric_rows = {
        .n = rows->n, .output = &view, .target = &with.target, .weight = with.weight, .weight_each = with.weight_each};
    if (output) /* first, because it is collective, and a fault of a metric belongs to this rank only */
        CVY_TRY(output(user, rows->n, &view, &with));
    if (pass->is_yes)
        CVY_TRY(cvy_score_yes_fill(&pass->yes, &metric_rows));
    for (int i = 0; i < pass->nmetric && rows->n > 0; i++)
        CVY_TRY(add_metric_rows(pass, s->program, step, pass->metric[i], &metric_rows));
    return CVY_OK;
}

/* Of ranks that share samples the first one compares whole targets with the output, which all of them have. */
static void find_parts(const cvy_scorer *scorer, cvy_field_part part[CVY_FIELD_MAX])
{
    const cvy_program *p = scorer->session->program;
    const cvy_dataset_info *info = cvy_dataset_describe(scorer->data);
    cvy_program_parts(p, scorer->step_full >= 0 ? scorer->step_full : scorer->step_tail, info, part);
    for (int f = 1; f < info->nfield && cvy_grid_is_first_part(cvy_program_grid(p)); f++)
        part[f] = (cvy_field_part){0};
}

/* All ranks agree before each step. So every fault of one rank stops all, and no rank waits for one that has left. */
static cvy_status run_pass(cvy_scorer *scorer, struct pass *pass, cvy_output_fn output, void *user)
{
    const cvy_job *job = scorer->session->job;
    cvy_comm *comm = scorer->session->context->comm;
    cvy_loader_opts opts = {.shuffle = 0,
                            .threads = cvy_session_data_threads(scorer->session->context, scorer->session->job),
                            .depth = (int)CVY_MAX(job->data.prefetch, 1),
                            .skip_bad = job->data.on_bad_sample == CVY_BAD_SAMPLE_SKIP,
                            .needs =
                                CVY_MIN(row_needs(scorer, scorer->step_full), row_needs(scorer, scorer->step_tail)),
                            .share = cvy_order_share,
                            .share_user = &scorer->order};
    cvy_loader *loader = NULL;
    find_parts(scorer, pass->part);
    memcpy(opts.part, pass->part, sizeof opts.part);
    cvy_status mine = cvy_loader_create(scorer->data, &opts, &loader), all = CVY_OK;
    for (int64_t at = 0; at < scorer->order.last_step && all == CVY_OK; at++) {
        const cvy_rows *rows = NULL;
        cvy_watchdog_kick(scorer->session->watchdog, at, "scoring");
        if (mine == CVY_OK)
            mine = cvy_loader_get(loader, at, &rows, NULL);
        all = cvy_comm_agree(comm, mine);
        if (all == CVY_OK)
            mine = run_step(scorer, pass, at, rows, output, user);
        if (rows)
            cvy_loader_release(loader, rows);
    }
    const cvy_grid *grid = cvy_program_grid(scorer->session->program);
    if (loader && grid->stage == 0 && cvy_grid_is_first_part(grid)) /* others read the same samples */
        cvy_exact_add(&pass->loss[SKIPPED], (double)cvy_loader_nbad(loader));
    cvy_loader_destroy(&loader);
    return all == CVY_OK ? cvy_comm_agree(comm, mine) : all;
}

/* The scores of a training are those of the averages of its weights, if it makes them. */
static cvy_status score_averages(cvy_scorer *scorer, struct pass *pass, cvy_output_fn output, void *user)
{
    cvy_program *p = scorer->session->program;
    CVY_TRY(cvy_program_exchange_averages(p));
    const cvy_status status = run_pass(scorer, pass, output, user);
    if (status == CVY_E_COMM) /* the ranks cannot meet any more */
        return status;
    const cvy_status back = cvy_program_exchange_averages(p);
    return status == CVY_OK ? back : status;
}

static cvy_status finish(cvy_scorer *scorer, struct pass *pass, cvy_scores *out, cvy_json *detail)
{
    cvy_comm *comm = scorer->session->context->comm;
    const cvy_dataset_info *data = cvy_dataset_describe(scorer->data);
    double loss[CVY_COUNT(pass->loss)];
    CVY_TRY(
        comm->ops->allreduce(comm, pass->loss, CVY_COUNT(pass->loss) * CVY_EXACT_WORDS, CVY_DTYPE_I64, CVY_REDUCE_SUM));
    for (int i = 0; i < CVY_COUNT(loss); i++)
        loss[i] = cvy_exact_read(&pass->loss[i]);
    out->loss = pass->nloss ? 0 : NAN;
    out->has_loss = pass->nloss > 0;
    for (int i = 0; i < pass->nloss; i++) {
        CVY_CHECK(
            loss[LOSS_MAX + i] > 0, CVY_E_FORMAT,
            "%s: no sample counts for the loss: all weights are 0, all labels are among those that the loss ignores, "
            "or all samples are bad; use other data, or correct weights and ignore_label",
            cvy_dataset_name(data));
        out->loss += loss[i] / loss[LOSS_MAX + i];
    }
    out->nskipped = (int64_t)loss[SKIPPED];
    if (loss[BELOW_0] < 0 && !(loss[WEIGHTS] > 0) && pass->nmetric > 0)
        cvy_log(
            scorer->session->context, CVY_LOG_WARN,
            "%s: the weights of the samples sum to %g (the negative ones to %g), so scores other than the loss are not "
            "defined: use more samples, or check the signs of the weights",
            cvy_dataset_name(data), loss[WEIGHTS], loss[BELOW_0]);
    for (int i = 0; i < pass->nmetric; i++)
        CVY_TRY(cvy_score_finish(pass->metric[i], &out->at[i], comm, comm->rank == 0 ? detail : NULL));
    return CVY_OK;
}

cvy_score cvy_scores_loss(const cvy_scores *scores)
{
    return (cvy_score){.name = "loss",
                       .value = scores->loss,
                       .why = "outputs of the network, or numbers made of them, are not finite"};
}

void cvy_score_say_not_finite(const cvy_context *context, const char *where, const cvy_score *score, const char *then)
{
    cvy_log(context, CVY_LOG_WARN, "%s%s is %s: %s%s", where, score->name,
            isnan(score->value) ? "undefined" : "infinite", score->why, then);
}

static cvy_status begin(const cvy_scorer *scorer, struct pass *pass, cvy_scores *scores)
{
    const int step = scorer->step_full >= 0 ? scorer->step_full : scorer->step_tail;
    const cvy_shape sample = cvy_program_output_sample(scorer->session->program, step, 0);
    *scores = (cvy_scores){.nsamples = scorer->order.nsamples, .loss = NAN};
    CVY_TRY(output_scaling(scorer, &pass->scaling));
    pass->is_yes = cvy_score_is_yes(scorer->session->model->output_kind, cvy_shape_elems(&sample),
                                    cvy_dataset_describe(scorer->data));
    const cvy_score_opts opts = {.job = scorer->session->job,
                                 .data = cvy_dataset_describe(scorer->data),
                                 .output = &sample,
                                 .kind = scorer->session->model->output_kind,
                                 .all = scorer->all_metrics,
                                 .temperature = scorer->temperature};
    const cvy_status status = cvy_score_metrics(&opts, pass->metric, scores->at, &pass->nmetric);
    scores->count = pass->nmetric;
    return status;
}

static void end(struct pass *pass)
{
    for (int i = 0; i < CVY_COUNT(pass->metric); i++)
        cvy_metric_destroy(&pass->metric[i]);
    cvy_score_yes_free(&pass->yes);
    cvy_mem_free(&pass->output.data);
    cvy_mem_free(&pass->weights.data);
}

cvy_status cvy_scorer_names(const cvy_scorer *scorer, cvy_scores *out)
{
    struct pass pass = {0};
    const cvy_status status = begin(scorer, &pass, out);
    for (int i = 0; i < pass.nmetric && status == CVY_OK; i++)
        cvy_metric_idle(pass.metric[i], out->at[i].why);
    end(&pass);
    return status;
}

cvy_status cvy_scorer_run(cvy_scorer *scorer, cvy_scores *out, cvy_json *detail, cvy_output_fn output, void *user)
{
    const double start = cvy_clock_s();
    struct pass pass = {0};
    cvy_scores scores;
    cvy_status status = cvy_comm_agree(scorer->session->context->comm, begin(scorer, &pass, &scores));
    if (status == CVY_OK)
        status = score_averages(scorer, &pass, output, user);
    if (status == CVY_OK)
        status = finish(scorer, &pass, &scores, detail);
    end(&pass);
    scores.seconds = cvy_clock_s() - start;
    if (status == CVY_OK)
        *out = scores;
    return status;
}
