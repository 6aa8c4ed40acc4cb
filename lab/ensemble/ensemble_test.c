/*
 * ensemble_test.c: cvy_run_test_ensemble(): the scores of an ensemble beside those of its members.
 *
 * Each member answers for a block of samples, its metrics see its own answer, and those of the ensemble see the
 * combined one. Metrics add up block by block with exact sums, so the scores do not depend on the number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "ensemble/ensemble_result.h"
#include "op/loss/op_distribution.h"
#include "score/score_rows.h"
#include "score/score_yes.h"

struct test {
    cvy_ensemble ensemble;
    cvy_scored *scored; /* [members + 1] */
    cvy_shape shape;    /* of a sample's output */
    int64_t elems, nclasses;
    int64_t K, all, positions; /* outputs of a position; classes of a position, of which a single logit has two */
    int is_gaussian;           /* the output is mean and log variance */
    int is_yes;                /* each number of the output is a yes or no */
    cvy_score_yes yes;         /* rows of a block */
    float *output;             /* [block, elems] of a member; at last of the ensemble */
    double *sum;               /* [block, elems], or of classes [block, positions, max(classes, 2)] */
    double *of_class;          /* [classes] of one position */
    cvy_bytes weights;         /* of a batch */
};

/* ---- combining answers ---- */

/* Logits of a position are `stride` apart. A single one stands for 0 and itself. */
static void add_position(struct test *t, const float *logit, int64_t stride, double *sum)
{
    const int64_t K = t->K, all = t->all;
    double top = -INFINITY, total = 0;
    for (int64_t k = 0; k < all; k++) {
        t->of_class[k] = K == 1 ? (k ? logit[0] : 0) : logit[k * stride];
        top = CVY_MAX(t->of_class[k], top); /* not fmax(): score_ensemble.c */
    }
    for (int64_t k = 0; k < all; k++)
        total += t->of_class[k] = exp(t->of_class[k] - top);
    for (int64_t k = 0; k < all; k++)
        sum[k] += t->of_class[k] / total;
}

static void add_answer(struct test *t, int64_t n)
{
    const int64_t all = t->all, positions = t->positions, half = t->elems / 2;
    for (int64_t i = 0; i < n; i++) {
        const float *x = t->output + i * t->elems;
        for (int64_t p = 0; p < positions && t->nclasses > 1; p++)
            add_position(t, x + p, positions, t->sum + (i * positions + p) * all);
        for (int64_t e = 0; e < t->elems && t->nclasses <= 1; e++)
            t->sum[i * t->elems + e] += t->is_yes ? cvy_sigmoid(x[e])
                                        : t->is_gaussian && e >= half
                                            ? exp((double)x[e]) + (double)x[e - half] * (double)x[e - half]
                                            : x[e];
    }
}

/* Writes the combined answer as an output of the network: logits whose softmax is the mean probability; means; or mean
 * and log variance of the mixture. */
static void combine(struct test *t, int64_t n)
{
    const int64_t K = t->K, all = t->all, positions = t->positions, half = t->elems / 2;
    const double share = 1.0 / t->ensemble.nmember;
    for (int64_t i = 0; i < n; i++) {
        float *x = t->output + i * t->elems;
        for (int64_t p = 0; p < positions && t->nclasses > 1; p++) {
            const double *sum = t->sum + (i * positions + p) * all;
            for (int64_t k = 0; k < K; k++)
                x[k * positions + p] = (float)(K == 1 ? log(fmax(sum[1], 1e-300)) - log(fmax(sum[0], 1e-300))
                                                      : log(fmax(share * sum[k], 1e-300)));
        }
        for (int64_t e = 0; e < t->elems && t->nclasses <= 1; e++) {
            const double mean = share * t->sum[i * t->elems + e],
                         first = t->is_gaussian && e >= half ? share * t->sum[i * t->elems + e - half] : 0;
            x[e] = (float)(t->is_yes                     ? log(fmax(mean, 1e-300)) - log1p(-fmin(mean, 1 - 1e-16))
                           : t->is_gaussian && e >= half ? log(fmax(mean - first * first, 1e-300))
                                                         : mean);
        }
    }
}

/* ---- the pass ---- */

static cvy_status add_rows(struct test *t, int which, int64_t n, const cvy_score_rows *with)
{
    cvy_span output = {
        .dtype = CVY_DTYPE_F32, .ndim = t->shape.ndim + 1, .dim = {n}, .elems = n * t->elems, .data = t->output};
    memcpy(output.dim + 1, t->shape.dim, sizeof *t->shape.dim * (size_t)t->shape.ndim);
    const cvy_metric_rows all = {
        .n = n, .output = &output, .target = &with->target, .weight = with->weight, .weight_each = with->weight_each};
    if (t->is_yes)
        CVY_TRY(cvy_score_yes_fill(&t->yes, &all));
    for (int i = 0; i < t->scored[which].count && n > 0; i++)
        CVY_TRY(t->is_yes ? cvy_score_yes_add(&t->yes, t->scored[which].metric[i], 0, n)
                          : cvy_metric_add(t->scored[which].metric[i], &all));
    return CVY_OK;
}

static cvy_status run_member(struct test *t, int m, int64_t round)
{
    cvy_applied *b = &t->ensemble.member[m];
    const int is_last = m + 1 == t->ensemble.nmember;
    const double temperature = t->ensemble.is_calibrated ? b->network->spec.temperature : 0;
    const cvy_rows *rows = NULL;
    cvy_score_rows with;
    CVY_TRY(cvy_applied_get(b, round, &rows));
    cvy_status status = cvy_score_rows_of(cvy_dataset_describe(b->data), rows, &t->weights, &with);
    if (status == CVY_OK)
        status = cvy_applied_apply(b, round, rows, &t->output);
    for (int64_t i = 0; status == CVY_OK && i < rows->n * t->elems && temperature > 0 && t->nclasses > 1; i++)
        t->output[i] = (float)(t->output[i] / temperature);
    if (status == CVY_OK)
        status = add_rows(t, m, rows->n, &with);
    if (status == CVY_OK)
        add_answer(t, rows->n);
    if (status == CVY_OK && is_last) {
        combine(t, rows->n);
        status = add_rows(t, m + 1, rows->n, &with);
    }
    cvy_loader_release(b->loader, rows);
    return status;
}

static size_t sum_elems(const struct test *t)
{
    return (size_t)(t->ensemble.member[0].block * t->positions * t->all);
}

static cvy_status run(struct test *t)
{
    cvy_comm *comm = t->ensemble.member[0].context->comm;
    cvy_status mine = CVY_OK;
    for (int64_t round = 0; round < cvy_applied_rounds(&t->ensemble.member[0]); round++) {
        memset(t->sum, 0, sizeof *t->sum * sum_elems(t));
        for (int m = 0; m < t->ensemble.nmember && mine == CVY_OK; m++)
            mine = run_member(t, m, round);
        CVY_TRY(cvy_comm_agree(comm, mine));
    }
    return CVY_OK;
}

/* ---- opening ---- */

static int is_gaussian(const struct test *t)
{
    const cvy_job *job = t->ensemble.member[0].network->spec.job;
    const cvy_op_def *op = job->train.nloss > 0 ? cvy_op_find(job->train.loss[0].name) : NULL;
    const cvy_distribution_def *def = op ? cvy_distribution_of(op) : NULL;
    return def && def->is_log_variance;
}

static cvy_status prepare(struct test *t, const char *data)
{
    cvy_ensemble *e = &t->ensemble;
    const cvy_network *n = e->member[0].network;
    CVY_TRY(cvy_ensemble_open_data(e, data, 1));
    t->shape = n->output[0].shape;
    t->elems = cvy_shape_elems(&t->shape);
    t->nclasses = n->spec.data.nclasses;
    t->K = t->shape.ndim > 0 ? t->shape.dim[0] : 1;
    t->all = CVY_MAX(t->K, 2);
    t->positions = t->elems / t->K;
    t->is_gaussian = is_gaussian(t);
    CVY_TRY(cvy_pool_alloc(e->pool, sizeof *t->scored * (size_t)(e->nmember + 1), &t->scored));
    CVY_TRY(cvy_mem_alloc(sizeof *t->output * (size_t)(e->member[0].block * t->elems), &t->output));
    CVY_TRY(cvy_mem_alloc(sizeof *t->sum * sum_elems(t), &t->sum));
    CVY_TRY(cvy_mem_alloc(sizeof *t->of_class * (size_t)t->all, &t->of_class));
    cvy_dataset_info info = *cvy_dataset_describe(e->member[0].data);
    info.nclasses = t->nclasses;
    const cvy_score_opts opts = {
        .job = n->spec.job, .data = &info, .output = &t->shape, .kind = n->output[0].kind, .all = 1};
    t->is_yes = cvy_score_is_yes(opts.kind, t->elems, &info);
    for (int m = 0; m <= e->nmember; m++)
        CVY_TRY(cvy_score_metrics(&opts, t->scored[m].metric, t->scored[m].score, &t->scored[m].count));
    CVY_CHECK(t->scored[0].count > 0, CVY_E_CONFIG, "no metric suits the output %s of %s: name one in train.metrics",
              cvy_shape_text(&t->shape), e->name[0]);
    return CVY_OK;
}

static void close_test(struct test *t)
{
    for (int m = 0; m <= t->ensemble.nmember && t->scored; m++)
        for (int i = 0; i < CVY_SCORES_MAX; i++)
            cvy_metric_destroy(&t->scored[m].metric[i]);
    cvy_mem_free(&t->output);
    cvy_mem_free(&t->weights.data);
    cvy_score_yes_free(&t->yes);
    cvy_mem_free(&t->sum);
    cvy_mem_free(&t->of_class);
    cvy_ensemble_close(&t->ensemble);
}

static cvy_status test_ensemble(struct test *t, cvy_context *context, const cvy_ensemble_opts *opts, const char *data,
                                cvy_ensemble_scores *scores)
{
    const char *folder = opts->ntarget == 1 && cvy_ensemble_is_folder(opts->target[0]) ? opts->target[0] : NULL;
    CVY_TRY(cvy_ensemble_open(&t->ensemble, context, opts));
    CVY_TRY(cvy_comm_agree(context->comm, prepare(t, data)));
    CVY_TRY(run(t));
    return cvy_ensemble_result_make(&t->ensemble, t->scored, folder, scores);
}

int cvy_is_ensemble(const char *path)
{
    CVY_ENTRY();
    return cvy_ensemble_is_folder(path);
}

cvy_status cvy_run_test_ensemble(cvy_context *context, const char *const *target, int ntarget, const char *data,
                                 int calibrated, cvy_ensemble_scores *scores_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    struct test t = {0};
    cvy_ensemble_scores scores = {.size = sizeof scores};
    const cvy_ensemble_opts opts = {
        .target = target, .ntarget = ntarget, .calibrated = calibrated, .gives = CVY_GIVES_SCORED};
    CVY_TRY(CVY_RESULT_CHECK(cvy_ensemble_scores, scores_out));
    CVY_CHECK(target && ntarget > 0, CVY_E_ARGUMENT,
              "cvy_run_test_ensemble() got %d targets, expected one or more: runs, or a folder of runs", ntarget);
    const cvy_status status = test_ensemble(&t, context, &opts, data, &scores);
    if (status == CVY_OK)
        cvy_result_write(scores_out, &scores, sizeof scores);
    else
        cvy_ensemble_scores_release(&scores);
    close_test(&t);
    return status;
}
