/*
 * score_ensemble_test.c: cvy_run_test_ensemble(): the scores of an ensemble beside those of its members.
 *
 * Each member answers for a block of samples, its metrics see its own answer, and those of the ensemble see the
 * combined one. Metrics add up block by block with exact sums, so the scores do not depend on the number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/score.h>

#include <math.h>
#include <string.h>

#include "base/base_opts.h"
#include "op/loss/op_distribution.h"
#include "score/score_ensemble.h"
#include "score/score_metrics.h"

struct scored { /* the metrics of a member, or of the ensemble */
    cvy_metric *metric[CVY_SCORES_MAX];
    cvy_score score[CVY_SCORES_MAX];
    int count;
};

struct test {
    cvy_ensemble ensemble;
    struct scored *scored; /* [members + 1] */
    cvy_shape shape;       /* of a sample's output */
    int64_t elems, nclasses;
    int is_gaussian; /* the output is mean and log variance */
    int calibrated;
    float *output;    /* [block, elems] of a member; at last of the ensemble */
    double *sum;      /* [block, elems], or of classes [block, positions, max(classes, 2)] */
    double *of_class; /* [classes] of one position */
};

struct owned {
    cvy_pool *pool;
};

/* ---- combining answers ---- */

/* Logits of a position are `stride` apart. A single one stands for 0 and itself. */
static void add_position(struct test *t, const float *logit, int64_t stride, double *sum)
{
    const int64_t K = t->shape.ndim > 0 ? t->shape.dim[0] : 1, all = CVY_MAX(K, 2);
    double top = -INFINITY, total = 0;
    for (int64_t k = 0; k < all; k++) {
        t->of_class[k] = K == 1 ? (k ? logit[0] : 0) : logit[k * stride];
        top = fmax(top, t->of_class[k]);
    }
    for (int64_t k = 0; k < all; k++)
        total += t->of_class[k] = exp(t->of_class[k] - top);
    for (int64_t k = 0; k < all; k++)
        sum[k] += t->of_class[k] / total;
}

static void add_answer(struct test *t, int64_t n)
{
    const int64_t K = t->shape.ndim > 0 ? t->shape.dim[0] : 1, all = CVY_MAX(K, 2), positions = t->elems / K,
                  half = t->elems / 2;
    for (int64_t i = 0; i < n; i++) {
        const float *x = t->output + i * t->elems;
        for (int64_t p = 0; p < positions && t->nclasses > 1; p++)
            add_position(t, x + p, positions, t->sum + (i * positions + p) * all);
        for (int64_t e = 0; e < t->elems && t->nclasses <= 1; e++)
            t->sum[i * t->elems + e] +=
                t->is_gaussian && e >= half ? exp((double)x[e]) + (double)x[e - half] * (double)x[e - half] : x[e];
    }
}

/* Writes the combined answer as an output of the network: logits whose softmax is the mean probability; means; or mean
 * and log variance of the mixture. */
static void combine(struct test *t, int64_t n)
{
    const int64_t K = t->shape.ndim > 0 ? t->shape.dim[0] : 1, all = CVY_MAX(K, 2), positions = t->elems / K,
                  half = t->elems / 2;
    const double share = 1.0 / t->ensemble.nmember;
    for (int64_t i = 0; i < n; i++) {
        float *x = t->output + i * t->elems;
        for (int64_t p = 0; p < positions && t->nclasses > 1; p++) {
            const double *sum = t->sum + (i * positions + p) * all;
            for (int64_t k = 0; k < K; k++)
                x[k * positions + p] = (float)(K == 1 ? log(sum[1]) - log(sum[0]) : log(fmax(share * sum[k], 1e-300)));
        }
        for (int64_t e = 0; e < t->elems && t->nclasses <= 1; e++) {
            const double mean = share * t->sum[i * t->elems + e],
                         first = t->is_gaussian && e >= half ? share * t->sum[i * t->elems + e - half] : 0;
            x[e] = (float)(t->is_gaussian && e >= half ? log(fmax(mean - first * first, 1e-300)) : mean);
        }
    }
}

/* ---- the pass ---- */

static cvy_status add_rows(struct test *t, int which, const cvy_rows *rows, const cvy_field *field, const void *target)
{
    cvy_span output = {.dtype = CVY_DTYPE_F32,
                       .ndim = t->shape.ndim + 1,
                       .dim = {rows->n},
                       .elems = rows->n * t->elems,
                       .data = t->output};
    cvy_span labels = {.dtype = field->dtype, .ndim = field->shape.ndim + 1, .dim = {rows->n}};
    memcpy(output.dim + 1, t->shape.dim, sizeof *t->shape.dim * (size_t)t->shape.ndim);
    memcpy(labels.dim + 1, field->shape.dim, sizeof *field->shape.dim * (size_t)field->shape.ndim);
    labels.elems = cvy_span_prod(&labels, 0, labels.ndim);
    labels.data = (void *)(uintptr_t)target;
    const cvy_metric_rows all = {.n = rows->n, .output = &output, .target = &labels, .weight = rows->weight};
    for (int i = 0; i < t->scored[which].count && rows->n > 0; i++)
        CVY_TRY(cvy_metric_add(t->scored[which].metric[i], &all));
    return CVY_OK;
}

/* Targets have units of their own, as outputs have. */
static void undo_scaling(const cvy_applied *b, const cvy_rows *rows, const cvy_field *field, const void *target)
{
    const cvy_dataset_info *info = cvy_dataset_describe(b->data);
    const cvy_scaling *scaling = &info->scaling;
    if ((info->target_is_input || strcmp(field->name, "y") == 0) && scaling->n > 0 && rows->n > 0)
        cvy_scaling_undo(scaling, rows->n, cvy_shape_elems(&field->shape), field->dtype, (void *)(uintptr_t)target);
}

static cvy_status run_member(struct test *t, int m, int64_t round)
{
    cvy_applied *b = &t->ensemble.member[m];
    const int is_last = m + 1 == t->ensemble.nmember;
    const double temperature = t->calibrated ? b->network->spec.temperature : 0;
    const cvy_rows *rows = NULL;
    const cvy_field *field = NULL;
    CVY_TRY(cvy_applied_get(b, round, &rows));
    const void *target = cvy_applied_target(b, rows, &field);
    undo_scaling(b, rows, field, target);
    cvy_status status = cvy_applied_apply(b, round, rows, &t->output);
    for (int64_t i = 0; i < rows->n * t->elems && temperature > 0 && t->nclasses > 1; i++)
        t->output[i] = (float)(t->output[i] / temperature);
    if (status == CVY_OK)
        status = add_rows(t, m, rows, field, target);
    if (status == CVY_OK)
        add_answer(t, rows->n);
    if (status == CVY_OK && is_last) {
        combine(t, rows->n);
        status = add_rows(t, m + 1, rows, field, target);
    }
    cvy_loader_release(b->loader, rows);
    return status;
}

static size_t sum_elems(const struct test *t)
{
    const int64_t K = t->shape.ndim > 0 ? t->shape.dim[0] : 1;
    return (size_t)(t->ensemble.member[0].block * (t->elems / K) * CVY_MAX(K, 2));
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
    t->is_gaussian = is_gaussian(t);
    CVY_TRY(cvy_pool_alloc(e->pool, sizeof *t->scored * (size_t)(e->nmember + 1), &t->scored));
    CVY_TRY(cvy_mem_alloc(sizeof *t->output * (size_t)(e->member[0].block * t->elems), &t->output));
    CVY_TRY(cvy_mem_alloc(sizeof *t->sum * sum_elems(t), &t->sum));
    CVY_TRY(
        cvy_mem_alloc(sizeof *t->of_class * (size_t)CVY_MAX(t->shape.ndim > 0 ? t->shape.dim[0] : 1, 2), &t->of_class));
    cvy_dataset_info info = *cvy_dataset_describe(e->member[0].data);
    info.nclasses = t->nclasses;
    const cvy_score_opts opts = {.job = n->spec.job, .data = &info, .output = &t->shape, .all = 1};
    for (int m = 0; m <= e->nmember; m++)
        CVY_TRY(cvy_score_metrics(&opts, t->scored[m].metric, t->scored[m].score, &t->scored[m].count));
    CVY_CHECK(t->scored[0].count > 0, CVY_E_CONFIG, "no metric suits the output %s of %s: name one in train.metrics",
              cvy_shape_text(&t->shape), e->name[0]);
    return CVY_OK;
}

/* ---- the result ---- */

static cvy_status write_scores(struct test *t, cvy_pool *pool, cvy_ensemble_scores *out)
{
    const cvy_ensemble *e = &t->ensemble;
    const int nmetric = t->scored[0].count;
    cvy_comm *comm = e->member[0].context->comm;
    const char **member = NULL, **metric = NULL;
    double *value = NULL;
    CVY_TRY(cvy_comm_agree(comm, cvy_pool_alloc(pool, sizeof *member * (size_t)e->nmember, &member)));
    CVY_TRY(cvy_comm_agree(comm, cvy_pool_alloc(pool, sizeof *metric * (size_t)nmetric, &metric)));
    CVY_TRY(cvy_comm_agree(comm, cvy_pool_alloc(pool, sizeof *value * (size_t)(nmetric * (e->nmember + 1)), &value)));
    for (int m = 0; m <= e->nmember; m++)
        for (int i = 0; i < nmetric; i++)
            CVY_TRY(cvy_metric_finish(t->scored[m].metric[i], comm, &value[m * nmetric + i], NULL));
    for (int m = 0; m < e->nmember; m++)
        CVY_TRY(cvy_pool_strdup(pool, e->name[m], (char **)&member[m]));
    for (int i = 0; i < nmetric; i++)
        CVY_TRY(cvy_pool_strdup(pool, t->scored[0].score[i].name, (char **)&metric[i]));
    out->samples = e->member[0].nsamples;
    out->nmember = e->nmember;
    out->nmetric = nmetric;
    out->member = member;
    out->metric = metric;
    out->value = value;
    return CVY_OK;
}

static void close_test(struct test *t)
{
    for (int m = 0; m <= t->ensemble.nmember && t->scored; m++)
        for (int i = 0; i < CVY_SCORES_MAX; i++)
            cvy_metric_destroy(&t->scored[m].metric[i]);
    cvy_mem_free(&t->output);
    cvy_mem_free(&t->sum);
    cvy_mem_free(&t->of_class);
    cvy_ensemble_close(&t->ensemble);
}

cvy_status cvy_run_test_ensemble(cvy_context *context, const char *const *target, int ntarget, const char *data,
                                 int calibrated, cvy_ensemble_scores *scores_out)
{
    struct test t = {.calibrated = calibrated};
    cvy_ensemble_scores scores = {.size = sizeof scores};
    struct owned *owned = NULL;
    const cvy_ensemble_opts opts = {.target = target, .ntarget = ntarget, .calibrated = calibrated};
    CVY_TRY(CVY_RESULT_CHECK(cvy_ensemble_scores, scores_out));
    cvy_status status = target && ntarget > 0 ? cvy_mem_alloc(sizeof *owned, &owned)
                                              : cvy_error_set(CVY_E_ARGUMENT, "an ensemble needs networks");
    if (status == CVY_OK)
        status = cvy_pool_create(&owned->pool);
    status = cvy_comm_agree(context->comm, status);
    if (status == CVY_OK)
        status = cvy_ensemble_open(&t.ensemble, context, &opts);
    if (status == CVY_OK)
        status = cvy_comm_agree(context->comm, prepare(&t, data));
    if (status == CVY_OK)
        status = run(&t);
    if (status == CVY_OK)
        status = cvy_comm_agree(context->comm, write_scores(&t, owned->pool, &scores));
    scores.owned = owned;
    if (status == CVY_OK)
        cvy_result_write(scores_out, &scores, sizeof scores);
    else
        cvy_ensemble_scores_release(&scores);
    close_test(&t);
    return status;
}

void cvy_ensemble_scores_release(cvy_ensemble_scores *scores)
{
    const cvy_ensemble_scores empty = {0};
    struct owned *owned = scores->owned;
    if (owned)
        cvy_pool_destroy(&owned->pool);
    cvy_mem_free(&owned);
    cvy_result_write(scores, &empty, sizeof empty);
}
