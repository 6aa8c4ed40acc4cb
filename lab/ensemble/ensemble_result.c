/*
 * ensemble_result.c: see ensemble_result.h. All ranks make the same struct; rank 0 writes the file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "ensemble/ensemble_result.h"

#include <math.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_opts.h"
#include "base/number/base_moments.h"
#include "base/text/base_json.h"
#include "monitor/monitor_run_layout.h"

struct owned {
    cvy_pool *pool;
    cvy_text json;
};

/* ---- mean and spread ---- */

/* Standard deviation with the divisor members - 1; NaN for one member. */
static void find_spread(const double *value, int nmember, int nmetric, double *mean, double *spread)
{
    for (int i = 0; i < nmetric; i++) {
        cvy_moments of = {0};
        for (int m = 0; m < nmember; m++)
            cvy_moments_add(&of, value[m * nmetric + i]);
        mean[i] = of.mean;
        spread[i] = nmember > 1 ? cvy_moments_sample_std(&of) : NAN;
    }
}

/* ---- the JSON object ---- */

static void add_numbers(cvy_json *json, const char *key, const cvy_ensemble_scores *s, const double *value)
{
    cvy_json_open(json, key, '{');
    for (int i = 0; i < s->nmetric; i++)
        cvy_json_real(json, s->metric[i], value[i]);
    cvy_json_close(json, '}');
}

/* Merges the metrics of one network. Of a member only the bins of its confidence are kept, and of the ensemble all
 * details. They become members of the open object. */
static cvy_status finish_metrics(const cvy_ensemble *e, const cvy_scored *scored, int is_ensemble,
                                 const cvy_ensemble_scores *s, double *value, cvy_json *json)
{
    for (int i = 0; i < s->nmetric; i++) {
        const int has_detail = is_ensemble || strcmp(s->metric[i], "ece") == 0;
        cvy_score score = scored->score[i];
        CVY_TRY(cvy_score_finish(scored->metric[i], &score, e->member[0].context->comm, has_detail ? json : NULL));
        value[i] = score.value;
    }
    add_numbers(json, "metrics", s, value);
    return CVY_OK;
}

static void add_head(const cvy_ensemble *e, const cvy_ensemble_scores *s, cvy_json *json)
{
    const cvy_dataset_info *data = cvy_dataset_describe(e->member[0].data);
    const cvy_dataset_info *trained = &e->member[0].network->spec.data;
    cvy_json_string(json, "data", data->path && *data->path ? data->path : data->format);
    cvy_json_int(json, "samples", s->samples);
    cvy_json_bool(json, "calibrated", e->is_calibrated);
    if (!trained->class_name || trained->nclasses < 1)
        return;
    cvy_json_open(json, "classes", '[');
    for (int64_t k = 0; k < trained->nclasses; k++)
        cvy_json_string(json, NULL, trained->class_name[k]);
    cvy_json_close(json, ']');
    if (trained->nclasses == 2)
        cvy_json_string(json, "positive", trained->class_name[1]);
}

static cvy_status make_json(const cvy_ensemble *e, const cvy_scored *scored, const cvy_ensemble_scores *s,
                            double *value, double *mean, double *spread, cvy_json *json)
{
    cvy_json_open(json, NULL, '{');
    add_head(e, s, json);
    cvy_json_open(json, "members", '[');
    for (int m = 0; m < e->nmember; m++) {
        const double temperature = e->member[m].network->spec.temperature;
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "run", e->name[m]);
        if (e->is_calibrated && temperature > 0)
            cvy_json_real(json, "temperature", temperature);
        CVY_TRY(finish_metrics(e, &scored[m], 0, s, value + m * s->nmetric, json));
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
    find_spread(value, e->nmember, s->nmetric, mean, spread);
    add_numbers(json, "mean", s, mean);
    add_numbers(json, "spread", s, spread);
    CVY_TRY(finish_metrics(e, &scored[e->nmember], 1, s, value + e->nmember * s->nmetric, json));
    cvy_json_close(json, '}');
    return json->text.status;
}

/* ---- the struct ---- */

static cvy_status copy_names(cvy_pool *pool, const cvy_ensemble *e, const cvy_scored *scored, cvy_ensemble_scores *s)
{
    char **member = NULL, **metric = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *member * (size_t)e->nmember, &member));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *metric * (size_t)scored->count, &metric));
    for (int m = 0; m < e->nmember; m++)
        CVY_TRY(cvy_pool_strdup(pool, e->name[m], &member[m]));
    for (int i = 0; i < scored->count; i++)
        CVY_TRY(cvy_pool_strdup(pool, scored->score[i].name, &metric[i]));
    s->samples = e->member[0].nsamples;
    s->nmember = e->nmember;
    s->nmetric = scored->count;
    s->member = (const char *const *)member;
    s->metric = (const char *const *)metric;
    return CVY_OK;
}

static cvy_status begin(const cvy_ensemble *e, const cvy_scored *scored, cvy_ensemble_scores *out, double **value_out)
{
    struct owned *owned = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *owned, &owned));
    out->owned = owned;
    CVY_TRY(cvy_pool_create(&owned->pool));
    CVY_TRY(copy_names(owned->pool, e, scored, out));
    return cvy_pool_alloc(owned->pool, sizeof **value_out * (size_t)(scored->count * (e->nmember + 3)), value_out);
}

/* The scores are not lost if the folder cannot be written. */
static void keep_scores(const cvy_context *context, const char *folder, const cvy_text *json)
{
    char path[CVY_RUN_PATH];
    cvy_run_path(folder, CVY_ENSEMBLE_SCORES, path);
    if (cvy_file_replace(path, json->data, json->bytes) != CVY_OK)
        cvy_log(context, CVY_LOG_WARN, "%s was not renewed, it does not have these scores: %s", path, cvy_error_text());
}

cvy_status cvy_ensemble_result_make(const cvy_ensemble *e, const cvy_scored *scored, const char *folder,
                                    cvy_ensemble_scores *out)
{
    cvy_comm *comm = e->member[0].context->comm;
    cvy_json json = {0};
    double *value = NULL;
    CVY_TRY(cvy_comm_agree(comm, begin(e, scored, out, &value)));
    struct owned *owned = out->owned;
    double *mean = value + out->nmetric * (e->nmember + 1), *spread = mean + out->nmetric;
    cvy_status status = make_json(e, scored, out, value, mean, spread, &json);
    owned->json = json.text;
    if (status == CVY_OK && folder && comm->rank == 0)
        keep_scores(e->member[0].context, folder, &json.text);
    out->value = value;
    out->mean = mean;
    out->spread = spread;
    out->json = owned->json.data;
    return cvy_comm_agree(comm, status);
}

/* ---- the caller's struct ---- */

cvy_status cvy_ensemble_scores_json(const cvy_ensemble_scores *scores, char **text_out)
{
    CVY_ENTRY();
    cvy_ensemble_scores own = {0};
    *text_out = NULL;
    CVY_CHECK(scores, CVY_E_ARGUMENT, "cvy_ensemble_scores_json() needs scores");
    CVY_TRY(CVY_RESULT_CHECK(cvy_ensemble_scores, scores));
    memcpy(&own, scores, CVY_MIN(scores->size, sizeof own));
    CVY_CHECK(own.owned && own.json, CVY_E_ARGUMENT, "the scores are empty: cvy_run_test_ensemble() fills them");
    return cvy_mem_strdup(own.json, text_out);
}

void cvy_ensemble_scores_release(cvy_ensemble_scores *scores)
{
    CVY_ENTRY();
    const cvy_ensemble_scores empty = {0};
    struct owned *owned = scores->owned;
    if (owned) {
        cvy_text_free(&owned->json);
        cvy_pool_destroy(&owned->pool);
    }
    cvy_mem_free(&owned);
    cvy_result_write(scores, &empty, sizeof empty);
}
