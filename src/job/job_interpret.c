/*
 * job_interpret.c: interprets what one row alone cannot express: durations, groups, and keys that exclude or need each
 * other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/text/base_table.h"
#include "comm/comm_grid.h"
#include "job/job_table.h"

/* ---- the grid of ranks ---- */

void cvy_job_grid(const cvy_job *job, int64_t *length_out)
{
    const cvy_program_opts *o = &job->program;
    for (int a = 0; a < CVY_AXES; a++)
        length_out[a] = 1;
    length_out[CVY_AXIS_PIPELINE] = o->pipeline;
    length_out[CVY_AXIS_TENSOR] = o->tensor;
    for (int i = 0; i < CVY_COUNT(o->spatial) && CVY_AXIS_SPACE0 + i < CVY_AXES; i++)
        length_out[CVY_AXIS_SPACE0 + i] = CVY_MAX(o->spatial[i], 1);
}

/* ---- durations ---- */

static cvy_status interpret_checkpoint(cvy_job *job)
{
    struct cvy_job_checkpoint *c = &job->checkpoint;
    if (cvy_duration_parse(c->every_text, &c->every) != CVY_OK)
        return cvy_error_prefix(CVY_E_CONFIG, "%s: checkpoint.every", cvy_job_where(job, "checkpoint", "every"));
    CVY_CHECK(c->every.amount > 0, CVY_E_CONFIG, "%s: checkpoint.every is \"%s\", expected more than 0",
              cvy_job_where(job, "checkpoint", "every"), c->every_text ? c->every_text : "");
    CVY_CHECK(!c->best || job->data.val, CVY_E_CONFIG,
              "%s: checkpoint.best is %s, but there is no validation data to find it on; give data.val, such as 10%%",
              cvy_job_where(job, "checkpoint", "best"), c->best);
    return CVY_OK;
}

static cvy_status interpret_watchdog(cvy_job *job)
{
    cvy_duration timeout = {0};
    const int is_time =
        cvy_duration_parse(job->watchdog.timeout_text, &timeout) == CVY_OK && timeout.unit == CVY_DURATION_SECONDS;
    CVY_CHECK(is_time && (timeout.amount == 0 || timeout.amount >= 1), CVY_E_CONFIG,
              "%s: watchdog.timeout is \"%s\", expected a number of s, min or h: at least 1 s, or 0 s, which is off",
              cvy_job_where(job, "watchdog", "timeout"), job->watchdog.timeout_text ? job->watchdog.timeout_text : "");
    job->watchdog.timeout_s = timeout.amount;
    return CVY_OK;
}

static cvy_status interpret_mlperf(cvy_job *job)
{
    struct cvy_job_mlperf *m = &job->log.mlperf;
    const cvy_tree *tree = job->log.mlperf_tree;
    if (cvy_tree_is_null(tree))
        return CVY_OK;
    CVY_CHECK(tree->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: log.mlperf: expected a map, such as {benchmark: cosmoflow}", cvy_tree_where(tree));
    CVY_TRY(cvy_options_parse(job->pool, "log.mlperf", cvy_job_mlperf_rows, tree, NULL, m, sizeof *m));
    CVY_CHECK(m->benchmark, CVY_E_CONFIG, "%s: log.mlperf: benchmark is empty, expected a name such as cosmoflow",
              cvy_tree_where(tree));
    CVY_CHECK(!m->also || m->also->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: log.mlperf: also: expected a map {key: value}", cvy_tree_where(tree));
    return CVY_OK;
}

static cvy_status interpret_log(cvy_job *job)
{
    CVY_TRY(interpret_mlperf(job));
    CVY_CHECK(!job->log.tensorboard || CVY_HAVE_PROTOBUF_C, CVY_E_CONFIG,
              "%s: log.tensorboard: this build of convoy cannot write event files: build it with protobuf-c",
              cvy_job_where(job, "log", "tensorboard"));
    return CVY_OK;
}

/* ---- data ---- */

static cvy_status check_source(const char *key, const cvy_tree *source)
{
    CVY_CHECK(!source || source->kind != CVY_TREE_LIST || source->count > 0, CVY_E_CONFIG,
              "%s: data.%s is an empty list, expected sources: paths or maps {path: ...}", cvy_tree_where(source), key);
    return CVY_OK;
}

static cvy_status interpret_shuffle(cvy_job *job)
{
    struct cvy_job_data *d = &job->data;
    static const char *const words[] = {
        [CVY_SHUFFLE_NONE] = "false", [CVY_SHUFFLE_ALL] = "true", [CVY_SHUFFLE_WINDOW] = "window"};
    const char *text = cvy_bool_word(d->shuffle_text ? d->shuffle_text : "");
    d->shuffle_text = text;
    d->shuffle = -1;
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strcmp(text, words[i]) == 0)
            d->shuffle = i;
    CVY_CHECK(d->shuffle >= 0, CVY_E_CONFIG, "%s: data.shuffle is \"%s\", expected true, false or window",
              cvy_job_where(job, "data", "shuffle"), text);
    CVY_CHECK(d->window == 0 || d->shuffle == CVY_SHUFFLE_WINDOW, CVY_E_CONFIG,
              "%s: data.window goes with data.shuffle: window, which is %s", cvy_job_where(job, "data", "window"),
              text);
    CVY_CHECK(
        d->balance == CVY_BALANCE_NONE || d->shuffle == CVY_SHUFFLE_ALL, CVY_E_CONFIG,
        "%s: data.balance: class draws samples from everywhere, so it goes with data.shuffle: true only, which is %s",
        cvy_job_where(job, "data", "balance"), text);
    return CVY_OK;
}

static cvy_status interpret_threads(cvy_job *job)
{
    struct cvy_job_data *d = &job->data;
    const char *text = d->threads_text ? d->threads_text : "";
    d->threads = -1;
    CVY_CHECK(strcmp(text, "auto") == 0 ||
                  (cvy_text_int(text, &d->threads) == CVY_OK && d->threads >= 0 && d->threads <= 1024),
              CVY_E_CONFIG, "%s: data.threads is \"%s\", expected auto or a number 0 .. 1024",
              cvy_job_where(job, "data", "threads"), text);
    return CVY_OK;
}

/* Gives the word of data.sandbox to each source that has none of its own. Readers of other formats ignore it. */
static cvy_status put_sandbox(cvy_job *job, cvy_tree **source)
{
    cvy_tree *at = *source, *word = NULL, *map = NULL;
    if (!at || (at->kind == CVY_TREE_SCALAR && !at->text))
        return CVY_OK;
    cvy_tree *several = at->kind == CVY_TREE_LIST ? at : at->kind == CVY_TREE_MAP ? cvy_tree_get(at, "sources") : NULL;
    if (several) {
        for (int i = 0; several->kind == CVY_TREE_LIST && i < several->count; i++)
            CVY_TRY(put_sandbox(job, &several->child[i]));
        return CVY_OK;
    }
    if (at->kind == CVY_TREE_MAP && cvy_tree_get(at, "sandbox"))
        return CVY_OK;
    CVY_TRY(cvy_tree_new_scalar(job->pool, "data.sandbox", job->data.sandbox, &word));
    if (at->kind == CVY_TREE_MAP)
        return cvy_tree_set(job->pool, at, "sandbox", word);
    CVY_TRY(cvy_tree_new_map(job->pool, at->file, &map));
    map->line = at->line;
    map->column = at->column;
    CVY_TRY(cvy_tree_set(job->pool, map, "path", at));
    CVY_TRY(cvy_tree_set(job->pool, map, "sandbox", word));
    *source = map;
    return CVY_OK;
}

static cvy_status interpret_sandbox(cvy_job *job)
{
    struct cvy_job_data *d = &job->data;
    const cvy_tree **source[] = {&d->train, &d->val, &d->test};
    static const char *const words[] = {"auto", "true", "false"};
    int known = 0;
    d->sandbox = cvy_bool_word(d->sandbox);
    for (int i = 0; i < CVY_COUNT(words); i++)
        known |= strcmp(d->sandbox, words[i]) == 0;
    CVY_CHECK(known, CVY_E_CONFIG, "%s: data.sandbox is \"%s\", expected auto, true or false",
              cvy_job_where(job, "data", "sandbox"), d->sandbox);
    for (int i = 0; i < CVY_COUNT(source) && strcmp(d->sandbox, "auto") != 0; i++) {
        cvy_tree *tree = (cvy_tree *)*source[i];
        if (source[i] == &d->val && d->val_share > 0)
            continue;
        CVY_TRY(put_sandbox(job, &tree));
        *source[i] = tree;
    }
    return CVY_OK;
}

static cvy_status interpret_data(cvy_job *job)
{
    const struct cvy_job_data *d = &job->data;
    CVY_TRY(check_source("train", d->train));
    CVY_TRY(check_source("val", d->val));
    CVY_TRY(check_source("test", d->test));
    CVY_TRY(interpret_shuffle(job));
    CVY_TRY(interpret_threads(job));
    CVY_CHECK(!d->augment || d->augment->kind == CVY_TREE_LIST, CVY_E_CONFIG,
              "%s: data.augment is not a list, expected one such as [mirror]", cvy_tree_where(d->augment));
    CVY_TRY(cvy_job_interpret_normalize(job));
    CVY_TRY(cvy_job_interpret_split(job));
    return interpret_sandbox(job);
}

static cvy_status check_model(const cvy_job *job)
{
    CVY_CHECK(job->model->kind != CVY_TREE_LIST, CVY_E_CONFIG,
              "%s: model is a list, expected a name or a map; write layers: [...] in the map",
              cvy_tree_where(job->model));
    return CVY_OK;
}

cvy_status cvy_job_interpret(cvy_job *job)
{
    CVY_TRY(check_model(job));
    CVY_TRY(cvy_job_interpret_libraries(job));
    CVY_TRY(interpret_data(job));
    CVY_TRY(cvy_job_interpret_train(job));
    CVY_TRY(interpret_checkpoint(job));
    CVY_TRY(cvy_job_interpret_program(job));
    CVY_TRY(cvy_job_interpret_update(job));
    CVY_TRY(interpret_watchdog(job));
    CVY_TRY(interpret_log(job));
    return cvy_job_interpret_deterministic(job);
}

cvy_status cvy_job_batch(const cvy_job *job, int nranks, int64_t *batch_out)
{
    const struct cvy_job_train *t = &job->train;
    const int64_t batch = t->batch > 0 ? t->batch : t->batch_per_rank * nranks;
    CVY_CHECK(batch >= nranks, CVY_E_CONFIG,
              "%s: train.batch is %lld, but there are %d ranks; take a larger batch or fewer ranks", job->file,
              (long long)batch, nranks);
    *batch_out = batch;
    return CVY_OK;
}

/* linear: Goyal et al. 2017, arXiv:1706.02677. sqrt: it keeps the variance of a step (Krizhevsky 2014,
 * arXiv:1404.5997). */
double cvy_job_lr_factor(const cvy_job *job, int64_t batch)
{
    const struct cvy_job_train *t = &job->train;
    if (t->lr_rule == CVY_LR_NONE)
        return 0;
    const double times = (double)batch / (double)t->base_batch;
    return t->lr_rule == CVY_LR_LINEAR ? times : sqrt(times);
}
