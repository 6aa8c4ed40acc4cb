/*
 * score_metrics.c: chooses and makes the metrics of a pass: see score_metrics.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_metrics.h"

#include <stdio.h>
#include <string.h>

#include "data/data_reader.h"
#include "job/job_table.h"
#include "op/loss/op_distribution.h"

struct list {
    const cvy_score_opts *opts;
    cvy_metric **metric;
    cvy_score *score;
    int *count;
};

static int is_real(cvy_dtype dtype)
{
    return dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_F64;
}

static int has_label_map(const cvy_dataset_info *data)
{
    const cvy_field *target = cvy_dataset_target(data);
    return target && !is_real(target->dtype) && target->shape.ndim > 0;
}

int cvy_score_is_yes(cvy_output_kind kind, int64_t elems, const cvy_dataset_info *data)
{
    const cvy_field *target = cvy_dataset_target(data);
    return cvy_output_is_of_yes(kind) && target && !data->target_is_input && is_real(target->dtype) &&
           cvy_shape_elems(&target->shape) == elems;
}

static int is_yes(const cvy_score_opts *o)
{
    return cvy_score_is_yes(o->kind, cvy_shape_elems(o->output), o->data);
}

/* Whether a metric that compares one target with each output, or one label with each position, fits the data. */
static int fits_target(const cvy_score_opts *o, const char *name)
{
    const cvy_metric_def *def = cvy_metric_find(name);
    const cvy_field *target = cvy_dataset_target(o->data);
    const int64_t elems = cvy_shape_elems(o->output);
    if (def->wants_labels && (is_yes(o) || o->kind == CVY_OUTPUT_VALUES))
        return is_yes(o);
    return target && def->wants_labels != is_real(target->dtype) &&
           cvy_shape_elems(&target->shape) ==
               (def->wants_labels && o->output->ndim > 0 ? elems / o->output->dim[0] : elems);
}

static cvy_status check_target(const cvy_score_opts *o, const cvy_metric_def *def, const cvy_metric *metric)
{
    const cvy_dataset_info *data = o->data;
    const cvy_field *target = cvy_dataset_target(data);
    if (is_yes(o) && def->wants_labels)
        return CVY_OK;
    CVY_CHECK(target && def->wants_labels != is_real(target->dtype), CVY_E_CONFIG,
              "%s compares %s, but the target in %s is %s; take %s", def->name,
              def->wants_labels ? "labels of classes" : "numbers", data->path ? data->path : data->format,
              !target                  ? "missing"
              : is_real(target->dtype) ? "numbers"
                                       : "labels of classes",
              def->wants_labels ? "rmse, mae or r2" : "accuracy, top_k or auc");
    CVY_CHECK(
        !def->wants_labels || o->kind != CVY_OUTPUT_VALUES, CVY_E_CONFIG,
        "%s reads logits or probabilities of classes, but the output of the network has values, which the loss "
        "compares "
        "with the numbers of the labels: take a loss on classes such as softmax_cross_entropy, or for one output bce",
        def->name);
    const int64_t wanted = cvy_metric_targets(metric), has = cvy_shape_elems(&target->shape);
    CVY_CHECK(has == wanted, CVY_E_SHAPE,
              "%s compares an output of %s with %lld target%s, but %s has %lld in each sample: let the network give an "
              "output that fits, or say train.metrics: none",
              def->name, cvy_shape_text(cvy_metric_output(metric)), (long long)wanted, wanted == 1 ? "" : "s",
              target->name, (long long)has);
    return CVY_OK;
}

/* ---- labels that do not count ---- */

cvy_status cvy_score_ignored(const cvy_job *job, const cvy_dataset_info *data, cvy_ints *out)
{
    const cvy_tree *options = job->train.nloss > 0 ? job->train.loss[0].options : NULL,
                   *given = options ? cvy_tree_get(options, "ignore_label") : NULL;
    const int is_list = given && given->kind == CVY_TREE_LIST, count = !given ? 0 : is_list ? given->count : 1;
    *out = (cvy_ints){0};
    for (int i = 0; i < count && out->count < CVY_LIST_MAX; i++)
        CVY_TRY(cvy_tree_int(is_list ? given->child[i] : given, &out->at[out->count++]));
    if (has_label_map(data) && out->count < CVY_LIST_MAX)
        out->at[out->count++] = CVY_LABEL_OUTSIDE;
    return CVY_OK;
}

/* A metric that names labels itself ignores these alone, and positions of no class. */
static cvy_status ignore_labels(const struct list *l, const cvy_tree *options, cvy_metric *metric)
{
    const int names_some = options && cvy_tree_get(options, "ignore_label");
    cvy_ints ignored;
    CVY_TRY(cvy_score_ignored(l->opts->job, l->opts->data, &ignored));
    for (int i = 0; i < ignored.count; i++)
        if (!names_some || ignored.at[i] == CVY_LABEL_OUTSIDE)
            cvy_metric_ignore(metric, ignored.at[i]);
    return CVY_OK;
}

/* ---- one metric ---- */

/* Whether the data have a weight for each position: the targets have no spectrum then, but holes. */
static int has_mask(const cvy_dataset_info *data)
{
    for (int i = 1; i < data->nfield; i++)
        if (strcmp(data->field[i].name, CVY_SAMPLE_WEIGHT) == 0 && cvy_shape_elems(&data->field[i].shape) > 1)
            return 1;
    return 0;
}

/* Whether the output is a field with enough positions for waves of several lengths. */
static int is_field(const cvy_shape *output)
{
    enum { LEAST = 4 };
    return output->ndim >= 2 && output->dim[output->ndim - 2] >= LEAST && output->dim[output->ndim - 1] >= LEAST;
}

/* title: the name of the score, which lives as long as the job. */
static cvy_status add(const struct list *l, const char *name, const char *title, const cvy_tree *options)
{
    const cvy_metric_def *def = cvy_metric_find(name);
    const cvy_shape one = {1, {1}};
    const int n = *l->count;
    CVY_CHECK(n < CVY_SCORES_MAX, CVY_E_CONFIG, "train.metrics: more than %d metrics", CVY_SCORES_MAX);
    CVY_TRY(cvy_metric_create(name, options, def && def->wants_labels && is_yes(l->opts) ? &one : l->opts->output,
                              &l->metric[n]));
    ++*l->count;
    CVY_TRY(ignore_labels(l, options, l->metric[n]));
    l->score[n] = (cvy_score){.name = title, .higher_is_better = def->higher_is_better};
    return check_target(l->opts, def, l->metric[n]);
}

/* ---- coverage ---- */

/* The job's first loss, if its output is a distribution. */
static const cvy_job_loss *distribution(const cvy_job *job)
{
    const cvy_job_loss *loss = job->train.nloss > 0 ? &job->train.loss[0] : NULL;
    const cvy_op_def *op = loss ? cvy_op_find(loss->name) : NULL;
    return op && cvy_distribution_of(op) ? loss : NULL;
}

/* Without options of its own, coverage has the levels of the job's loss. */
static cvy_status add_coverage(const struct list *l, const char *title)
{
    const cvy_job_loss *loss = distribution(l->opts->job);
    const cvy_tree *levels = loss && loss->options ? cvy_tree_get(loss->options, "levels") : NULL;
    cvy_pool *pool = NULL;
    cvy_tree *options = NULL, *copy = NULL;
    cvy_status status = CVY_OK;
    if (!levels)
        return add(l, "coverage", title, NULL);
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_tree_new_map(pool, "train.loss", &options));
    CVY_TRY_OUT(cvy_tree_copy(pool, levels, &copy));
    CVY_TRY_OUT(cvy_tree_set(pool, options, "levels", copy));
    CVY_TRY_OUT(add(l, "coverage", title, options));
out:
    cvy_pool_destroy(&pool);
    return status;
}

/* Coverage suits an output of several quantiles, or of a normal distribution. */
static int wants_coverage(const cvy_score_opts *o)
{
    const cvy_job_loss *loss = distribution(o->job);
    const cvy_field *target = cvy_dataset_target(o->data);
    int count = 0;
    return loss && !loss->output && target && is_real(target->dtype) &&
           cvy_loss_count(cvy_op_find(loss->name), loss->options, &count) == CVY_OK && count > 1 &&
           cvy_shape_elems(o->output) == count * cvy_shape_elems(&target->shape);
}

/* ---- the choice ---- */

/* Whether outputs are maps, [C, H, W] or [H, W], which have a power spectrum. */
static int is_map(const cvy_shape *output)
{
    return (output->ndim == 2 || output->ndim == 3) && output->dim[output->ndim - 2] >= 2 &&
           output->dim[output->ndim - 1] >= 2;
}

int cvy_score_imitates(const cvy_job *job, const cvy_dataset_info *data)
{
    return data->target_is_input && job->train.nturn > 0;
}

static cvy_status add_of_job(const struct list *l)
{
    const cvy_job *job = l->opts->job;
    for (int i = 0; i < job->train.nmetric; i++) {
        const cvy_job_metric *m = &job->train.metric[i];
        const int n = *l->count;
        const cvy_status status = strcmp(m->name, "coverage") == 0 && !m->options
                                      ? add_coverage(l, m->title)
                                      : add(l, m->name, m->title, m->options);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "%s: train.metrics", cvy_job_where(job, "train", "metrics"));
        l->score[n].has_own_detail = m->is_further;
    }
    return CVY_OK;
}

/* Whether the job names a metric, with any options. */
static int is_named(const cvy_job *job, const char *name)
{
    for (int i = 0; i < job->train.nmetric; i++)
        if (strcmp(job->train.metric[i].name, name) == 0)
            return 1;
    return 0;
}

static cvy_status add_calibrated(const struct list *l)
{
    static const char *const names[] = {"nll", "ece", "brier"}, *const titles[] = {"nll_calibrated", "ece_calibrated",
                                                                                   "brier_calibrated"};
    char text[48];
    cvy_pool *pool = NULL;
    cvy_tree *options = NULL;
    cvy_status status = CVY_OK;
    snprintf(text, sizeof text, "{temperature: %.17g}", l->opts->temperature);
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_tree_parse_text(pool, "calibration", text, strlen(text), &options));
    for (int i = 0; i < CVY_COUNT(names); i++)
        if (fits_target(l->opts, names[i]))
            CVY_TRY_OUT(add(l, names[i], titles[i], options));
out:
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_score_metrics(const cvy_score_opts *o, cvy_metric **metric, cvy_score *score, int *count_out)
{
    const struct list list = {o, metric, score, count_out};
    const int64_t nclasses = is_yes(o) ? 2 : o->data->nclasses;
    const int by_job = o->job->train.nmetric > 0, all = o->all, is_usual = !by_job || all;
    const int imitates = cvy_score_imitates(o->job, o->data);
    const int ranks_samples = nclasses == 2 && o->output->ndim <= 1 && /* a ROC curve ranks samples, not pixels */
                              (!is_yes(o) || cvy_shape_elems(o->output) == 1);
    *count_out = 0;
    if (o->job->train.no_metrics)
        return CVY_OK;
    CVY_TRY(add_of_job(&list));
    const struct {
        const char *name;
        int wanted;
    } fallback[] = {
        {"accuracy", nclasses > 1 && is_usual},
        {"auc", ranks_samples && is_usual},
        {"efficiency_at_fpr", ranks_samples && all},
        {"balanced_accuracy", nclasses > 1 && nclasses <= 100 && all},
        {"iou", has_label_map(o->data) && all},
        {"nll", nclasses > 1 && all},
        {"brier", nclasses > 1 && all},
        {"ece", nclasses > 1 && all},
        {"power_spectrum", imitates && is_usual && is_map(o->output)},
        {"power_spectrum_within", imitates && all && is_map(o->output)},
        {"pixel_histogram", imitates && is_usual},
        {"pixel_histogram_within", imitates && all},
        {"diversity", imitates && is_usual},
        {"rmse", nclasses == 0 && !imitates && is_usual},
        {"mae", nclasses == 0 && !imitates && all},
        {"r2", nclasses == 0 && !imitates && is_usual},
        {"spectrum_error", nclasses == 0 && !imitates && all && is_field(o->output) && !has_mask(o->data)},
    };
    for (int i = 0; i < CVY_COUNT(fallback); i++)
        if (fallback[i].wanted && !is_named(o->job, fallback[i].name) && fits_target(o, fallback[i].name))
            CVY_TRY(add(&list, fallback[i].name, fallback[i].name, NULL));
    if (is_usual && !is_named(o->job, "coverage") && wants_coverage(o))
        CVY_TRY(add_coverage(&list, "coverage"));
    return nclasses > 1 && all && o->temperature > 0 ? add_calibrated(&list) : CVY_OK;
}

cvy_status cvy_score_finish(cvy_metric *metric, cvy_score *score, cvy_comm *comm, cvy_json *detail)
{
    const int is_apart = detail && score->has_own_detail && cvy_metric_has_detail(metric);
    if (is_apart)
        cvy_json_open(detail, score->name, '{');
    CVY_TRY(cvy_metric_finish(metric, comm, &score->value, detail));
    if (is_apart)
        cvy_json_close(detail, '}');
    snprintf(score->why, sizeof score->why, "%s", cvy_metric_why(metric));
    return CVY_OK;
}
