/*
 * score_evaluate.c: cvy_run_test(): the scores of a trained network on labelled data, as JSON and as the run's
 * test.json (schema: lab/report/report_page.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_handle.h"
#include "monitor/monitor_run_layout.h"
#include "score/score_fields.h"
#include "score/score_result.h"
#include "score/score_run.h"
#include "score/score_worst.h"

enum { SCATTER_MAX = 2000 }; /* points of truth against prediction; more points show nothing new */

struct collected { /* used on rank 0: all rows, each with output, then target */
    float *rows;
    int64_t n, room, row_elems;
};

static cvy_status collect(void *user, const float *rows, int64_t n, int64_t row_elems)
{
    struct collected *c = user;
    CVY_CHECK(c->n + n <= c->room, CVY_E_INTERNAL, "more rows than the data set has samples");
    c->row_elems = row_elems;
    memcpy(c->rows + c->n * row_elems, rows, sizeof *rows * (size_t)(n * row_elems));
    c->n += n;
    return CVY_OK;
}

static void add_metrics(const cvy_scores *scores, cvy_json *json)
{
    cvy_json_open(json, "metrics", '{');
    for (int i = 0; i < scores->count; i++)
        cvy_json_real(json, scores->at[i].name, scores->at[i].value);
    cvy_json_close(json, '}');
}

static void add_classes(const cvy_scoring *s, cvy_json *json)
{
    if (!s->class_name || s->nclasses < 1)
        return;
    cvy_json_open(json, "classes", '[');
    for (int64_t i = 0; i < s->nclasses; i++)
        cvy_json_string(json, NULL, s->class_name[i]);
    cvy_json_close(json, ']');
    if (s->nclasses == 2)
        cvy_json_string(json, "positive", s->class_name[1]);
}

/* Adds points of truth against prediction: every `stride`th of the `width` numbers from `first` on of all rows. */
static void add_points(const struct collected *c, const char *name, int64_t first, int64_t width, int64_t stride,
                       cvy_json *json)
{
    const int64_t elems = c->row_elems / 2;
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "name", name);
    for (int which = 0; which < 2; which++) {
        cvy_json_open(json, which ? "prediction" : "truth", '[');
        for (int64_t i = 0; i < c->n * width; i += stride)
            cvy_json_real(json, NULL, c->rows[i / width * c->row_elems + (which ? 0 : elems) + first + i % width]);
        cvy_json_close(json, ']');
    }
    cvy_json_close(json, '}');
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The points of a field are thinned by a stride without a common divisor with its size, so that they are not all from
 * the same columns. */
static void add_field_points(const struct collected *c, const cvy_fields *f, cvy_json *json)
{
    char name[32];
    int64_t stride = CVY_MAX(1, c->n * f->stride / SCATTER_MAX);
    while (common_divisor(stride, f->stride) > 1)
        stride++;
    for (int64_t k = 0; k < CVY_MIN(f->channels, 8); k++) {
        cvy_fields_name(f, k, name, sizeof name);
        add_points(c, name, k * f->stride, f->stride, stride, json);
    }
}

/* Adds points of truth against prediction, for each output or each channel of a field, thinned evenly. */
static void add_regression(const cvy_scoring *s, const struct collected *c, int64_t output_elems,
                           const cvy_fields *fields, cvy_json *json)
{
    if (s->nclasses > 0 || c->row_elems != 2 * output_elems)
        return;
    cvy_json_open(json, "regression", '[');
    if (fields)
        add_field_points(c, fields, json);
    for (int64_t k = 0; !fields && k < CVY_MIN(output_elems, 8); k++) {
        char name[24];
        snprintf(name, sizeof name, "y%lld", (long long)k);
        add_points(c, name, k, 1, CVY_MAX(1, c->n / SCATTER_MAX), json);
    }
    cvy_json_close(json, ']');
}

/* Adds the scores on rank 0. The details of the metrics are in the object already. */
static void add_scores(const cvy_scoring *s, const cvy_scores *scores, cvy_json *json)
{
    const cvy_dataset_info *info = cvy_dataset_describe(s->session.test);
    const char *path = s->checkpoint.path;
    cvy_json_string(json, "checkpoint", path ? cvy_file_base_name(path) : "weights");
    cvy_json_string(json, "data", info->path && *info->path ? info->path : info->format);
    cvy_json_int(json, "samples", scores->nsamples);
    if (cvy_scoring_role(s))
        cvy_json_string(json, "role", cvy_scoring_role(s));
    if (scores->nskipped > 0) {
        cvy_json_int(json, "skipped", scores->nskipped);
        cvy_log(s->session.context, CVY_LOG_WARN, "%lld of the %lld samples are bad and were skipped",
                (long long)scores->nskipped, (long long)scores->nsamples);
    }
    cvy_json_real(json, "loss", scores->loss);
    if (s->temperature > 0)
        cvy_json_real(json, "temperature", s->temperature);
    cvy_json_real(json, "seconds", scores->seconds);
    add_metrics(scores, json);
    add_classes(s, json);
}

/* The scores took a pass over the data, so they are not lost if the run's folder cannot be written. */
static void keep_scores(const cvy_scoring *s, const cvy_text *json)
{
    char path[CVY_RUN_PATH];
    cvy_run_path(s->run, CVY_RUN_TEST, path);
    if (cvy_file_replace(path, json->data, json->bytes) != CVY_OK)
        cvy_log(s->session.context, CVY_LOG_WARN, "%s was not renewed, it does not have these scores: %s", path,
                cvy_error_text());
}

static cvy_status finish(cvy_scoring *s, const cvy_scores *scores, const struct collected *c, int64_t output_elems,
                         cvy_json *json, char **json_out)
{
    cvy_fields fields;
    const int has_fields = cvy_fields_find(s, output_elems, &fields) && c->row_elems == 2 * output_elems;
    const int imitates = cvy_score_imitates(s->session.job, cvy_dataset_describe(s->session.test));
    add_scores(s, scores, json);
    if (!imitates)
        add_regression(s, c, output_elems, has_fields ? &fields : NULL, json);
    if (has_fields)
        CVY_TRY(imitates ? cvy_fields_add_generated(&fields, c->rows, c->n, json)
                         : cvy_fields_add(s, &fields, c->rows, c->n, json));
    CVY_TRY(cvy_worst_add(s, c->rows, c->n, c->row_elems, output_elems, json));
    cvy_json_close(json, '}');
    CVY_TRY(json->text.status);
    if (s->run)
        keep_scores(s, &json->text);
    *json_out = json->text.data;
    json->text = (cvy_text){0};
    return CVY_OK;
}

/* Warns of each score that is not finite, and of the loss. */
static void say_not_finite(const cvy_scoring *s, const cvy_scores *scores)
{
    const cvy_dataset_info *data = cvy_dataset_describe(s->session.test);
    char where[CVY_RUN_PATH];
    snprintf(where, sizeof where, "%s: the ", data->path && *data->path ? data->path : data->format);
    for (int i = 0; i < scores->count + scores->has_loss; i++) {
        const cvy_score score = i < scores->count ? scores->at[i] : cvy_scores_loss(scores);
        if (!isfinite(score.value))
            cvy_score_say_not_finite(s->session.context, where, &score, "");
    }
}

cvy_status cvy_run_test(cvy_context *context, const char *target, const cvy_job_source *job, const char *data,
                        cvy_test_result *result_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_scoring s = {0};
    cvy_gathered gathered = {0};
    cvy_scores scores;
    struct collected collected = {0};
    cvy_json json = {0};
    char *text = NULL;
    CVY_TRY(cvy_test_result_check(result_out));
    CVY_CHECK(target, CVY_E_ARGUMENT, "cvy_run_test() needs a run or a file of weights");
    cvy_test_result_clear(result_out);
    cvy_json_open(&json, NULL, '{');
    cvy_status status = cvy_scoring_open(context, target, job, data, &s);
    if (status == CVY_OK) {
        s.scorer.all_metrics = 1;
        s.scorer.temperature = s.temperature;
        status = cvy_gathered_begin(&s, collect, &collected, &gathered);
        collected.room = s.scorer.order.nsamples;
        if (status == CVY_OK && context->comm->rank == 0)
            status = cvy_mem_alloc(sizeof *collected.rows *
                                       (size_t)(collected.room * (gathered.output_elems + gathered.target_elems)),
                                   &collected.rows);
        status = cvy_comm_agree(context->comm, status);
    }
    if (status == CVY_OK)
        status = cvy_scorer_run(&s.scorer, &scores, &json, cvy_gathered_add, &gathered);
    if (status == CVY_OK)
        say_not_finite(&s, &scores);
    if (status == CVY_OK)
        status = cvy_comm_agree(
            context->comm,
            context->comm->rank == 0 ? finish(&s, &scores, &collected, gathered.output_elems, &json, &text) : CVY_OK);
    if (status == CVY_OK)
        status = cvy_comm_agree(context->comm, text ? cvy_test_result_make(&text, result_out) : CVY_OK);
    cvy_mem_free(&text);
    cvy_text_free(&json.text);
    cvy_mem_free(&collected.rows);
    cvy_gathered_end(&gathered);
    cvy_scoring_close(&s);
    return status;
}
