/*
 * sweep_state.c: sweep.json: what a search has done so far, and what its tables and its page show.
 *
 * The file is replaced as a whole after each change. It has the parts of the sweep file that decide what the search is,
 * so that a resumed search is compared with it, and for each trial its values, its state and its scores.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "base/text/base_json.h"
#include "monitor/monitor_metrics_read.h"
#include "monitor/monitor_run_layout.h"
#include "sweep/sweep.h"

static const char *const state_word[] = {"waiting", "running", "finished", "failed"};

static void state_path(const char *folder, const char *name, char path[CVY_SWEEP_PATH])
{
    snprintf(path, CVY_SWEEP_PATH, "%s/%s", folder, name);
}

void cvy_sweep_trial_path(const char *folder, int trial, char path[CVY_SWEEP_PATH])
{
    snprintf(path, CVY_SWEEP_PATH, "%s/trial-%04d", folder, trial + 1);
}

/* ---- writing ---- */

static void add_trial(const cvy_sweep *s, int number, int rank, cvy_json *json)
{
    const cvy_trial *trial = &s->trial[number];
    cvy_json_open(json, NULL, '{');
    cvy_json_int(json, "trial", number + 1);
    cvy_json_string(json, "state", state_word[trial->state]);
    if (rank > 0)
        cvy_json_int(json, "rank", rank);
    cvy_json_int(json, "bracket", trial->bracket + 1);
    cvy_json_open(json, "values", '[');
    for (int k = 0; k < s->spec.nkey; k++)
        cvy_json_string(json, NULL, trial->value[k]);
    cvy_json_close(json, ']');
    cvy_json_open(json, "scores", '[');
    for (int i = 0; i < trial->nscores; i++)
        cvy_json_real(json, NULL, trial->score[i]);
    cvy_json_close(json, ']');
    cvy_json_real(json, "epochs", trial->epochs);
    cvy_json_real(json, "seconds", trial->seconds);
    if (trial->tries > 0) {
        cvy_json_int(json, "tries", trial->tries);
        cvy_json_int(json, "step", trial->step);
    }
    if (trial->error)
        cvy_json_string(json, "error", trial->error);
    cvy_json_close(json, '}');
}

static void add_head(const cvy_sweep *s, cvy_json *json)
{
    static const char *const scores[] = {"last", "best"};
    char metric[160];
    snprintf(metric, sizeof metric, "val_%s", s->spec.metric);
    cvy_json_int(json, "version", 1);
    cvy_json_string(json, "sweep", cvy_file_base_name(s->spec.file));
    cvy_json_string(json, "metric", metric);
    cvy_json_string(json, "goal", s->higher ? "max" : "min");
    cvy_json_string(json, "score", scores[s->spec.score]);
    cvy_json_open(json, "search", '{');
    for (int i = 0; i < CVY_COUNT(s->spec.part); i++)
        cvy_json_string(json, cvy_sweep_parts[i], s->spec.part[i]);
    cvy_json_close(json, '}');
    cvy_json_open(json, "keys", '[');
    for (int k = 0; k < s->spec.nkey; k++) {
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "key", s->spec.key[k].name);
        cvy_json_bool(json, "list", s->spec.key[k].nvalues > 0);
        cvy_json_bool(json, "log", s->spec.key[k].kind == CVY_SWEEP_LOG_UNIFORM);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

cvy_status cvy_sweep_save(const cvy_sweep *s, const char *folder)
{
    char path[CVY_SWEEP_PATH];
    int *order = NULL, *rank = NULL;
    cvy_json json = {0};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *order * (size_t)s->ntrials, &order));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *rank * (size_t)s->ntrials, &rank));
    const int nranked = cvy_sweep_rank(s, order);
    for (int i = 0; i < nranked; i++)
        rank[order[i]] = i + 1;
    cvy_json_open(&json, NULL, '{');
    add_head(s, &json);
    cvy_json_open(&json, "trials", '[');
    for (int i = 0; i < s->ntrials; i++) {
        cvy_text_add(&json.text, "%s", "");
        add_trial(s, i, rank[i], &json);
    }
    cvy_json_close(&json, ']');
    cvy_json_close(&json, '}');
    cvy_text_add(&json.text, "\n");
    CVY_TRY_OUT(json.text.status);
    state_path(folder, CVY_SWEEP_STATE, path);
    CVY_TRY_OUT(cvy_file_replace(path, json.text.data, json.text.bytes));
out:
    cvy_text_free(&json.text);
    cvy_mem_free(&rank);
    cvy_mem_free(&order);
    return status;
}

/* ---- reading ---- */

static cvy_status read_tree(cvy_pool *pool, const char *folder, const cvy_tree **root_out, const cvy_tree **trials_out)
{
    char path[CVY_SWEEP_PATH];
    cvy_tree *root = NULL;
    state_path(folder, CVY_SWEEP_STATE, path);
    CVY_CHECK(cvy_file_exists(path), CVY_E_IO, "%s holds no " CVY_SWEEP_STATE ": it is not the folder of a search",
              folder);
    CVY_TRY(cvy_tree_parse_file(pool, path, &root));
    const cvy_tree *trials = root->kind == CVY_TREE_MAP ? cvy_tree_get(root, "trials") : NULL;
    CVY_CHECK(trials && trials->kind == CVY_TREE_LIST, CVY_E_FORMAT, "%s: there is no list of trials", path);
    *root_out = root;
    *trials_out = trials;
    return CVY_OK;
}

static int find_state(const cvy_tree *node)
{
    const char *text = cvy_tree_text_at(node, "state");
    for (int i = 0; text && i < CVY_COUNT(state_word); i++)
        if (strcmp(text, state_word[i]) == 0)
            return i;
    return -1;
}

/* The last step in the log of a trial; 0: none. */
static int64_t last_step(const char *folder, int number)
{
    char run[CVY_SWEEP_PATH], path[CVY_RUN_PATH];
    cvy_frame steps = {0}, epochs = {0};
    cvy_sweep_trial_path(folder, number, run);
    cvy_run_path(run, CVY_RUN_METRICS, path);
    const cvy_status status = cvy_file_exists(path) ? cvy_frames_read(path, &steps, &epochs, NULL) : CVY_END;
    const double *step = cvy_frame_column(&steps, "step");
    const double last = status == CVY_OK && step && steps.nrow ? step[steps.nrow - 1] : 0;
    cvy_frame_free(&steps);
    cvy_frame_free(&epochs);
    return isfinite(last) ? (int64_t)last : 0;
}

/* A trial that was running when the search was killed goes on. But a trial whose fault ends all ranks, such as a hang,
 * would end the search each time. It is given up if it comes no further. */
static cvy_status judge_tries(cvy_sweep *s, const char *folder, int number)
{
    cvy_trial *trial = &s->trial[number];
    const int64_t step = last_step(folder, number);
    char *text = NULL;
    if (step > trial->step)
        trial->tries = 0;
    trial->step = CVY_MAX(step, trial->step);
    if (trial->tries < CVY_SWEEP_TRIES)
        return CVY_OK;
    CVY_TRY(
        cvy_pool_printf(s->spec.pool, &text,
                        "the search was killed or ended %d times while this trial ran, each time before a step after "
                        "step %lld was logged",
                        CVY_SWEEP_TRIES, (long long)trial->step));
    trial->error = text;
    trial->state = CVY_TRIAL_FAILED;
    trial->tries = 0;
    return CVY_OK;
}

static cvy_status load_trial(cvy_sweep *s, int number, const cvy_tree *node)
{
    cvy_trial *trial = &s->trial[number];
    const cvy_tree *scores = cvy_tree_get(node, "scores");
    const int state = find_state(node), nrungs = s->bracket[trial->bracket].nrungs;
    const char *error = cvy_tree_text_at(node, "error");
    char *copy = NULL;
    CVY_CHECK(state >= 0 && scores && scores->kind == CVY_TREE_LIST && scores->count <= nrungs, CVY_E_FORMAT,
              "%s: trial %d has no state, or no list of at most %d scores", cvy_tree_where(node), number + 1, nrungs);
    trial->state = state == CVY_TRIAL_RUNNING ? CVY_TRIAL_WAITING : (cvy_trial_state)state;
    trial->nscores = scores->count;
    for (int i = 0; i < scores->count; i++)
        trial->score[i] = cvy_tree_real_or_nan(scores->child[i]);
    const double epochs = cvy_tree_real_at(node, "epochs"), seconds = cvy_tree_real_at(node, "seconds");
    trial->epochs = isfinite(epochs) ? epochs : 0;
    trial->seconds = isfinite(seconds) ? seconds : 0;
    if (error)
        CVY_TRY(cvy_pool_strdup(s->spec.pool, error, &copy));
    trial->error = copy;
    const double tries = cvy_tree_real_at(node, "tries"), step = cvy_tree_real_at(node, "step");
    trial->tries = tries >= 1 && tries < 1e6 ? (int64_t)tries : 0;
    trial->step = step >= 0 && step < 9e15 ? (int64_t)step : 0;
    return CVY_OK;
}

static cvy_status compare(const cvy_sweep *s, const char *folder, const cvy_tree *root, const cvy_tree *trials)
{
    const cvy_tree *parts = cvy_tree_get(root, "search");
    for (int i = 0; i < CVY_COUNT(s->spec.part); i++) {
        const cvy_tree *node = cvy_tree_get(parts, cvy_sweep_parts[i]);
        const char *then = node && node->text ? node->text : "";
        CVY_CHECK(strcmp(then, s->spec.part[i]) == 0, CVY_E_CONFIG,
                  "%s holds another search: its %s is \"%s\", that of %s is \"%s\"; resume with the file as it was, or "
                  "name another folder with --out",
                  folder, cvy_sweep_parts[i], then, s->spec.file, s->spec.part[i]);
    }
    CVY_CHECK(trials->count == s->ntrials, CVY_E_CONFIG,
              "%s holds another search: it has %d trials, and %s has %d; name another folder with --out", folder,
              trials->count, s->spec.file, s->ntrials);
    return CVY_OK;
}

cvy_status cvy_sweep_load(cvy_sweep *s, const char *folder)
{
    const cvy_tree *root = NULL, *trials = NULL;
    cvy_pool *pool = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(read_tree(pool, folder, &root, &trials));
    CVY_TRY_OUT(compare(s, folder, root, trials));
    for (int i = 0; i < s->ntrials; i++) {
        CVY_TRY_OUT(load_trial(s, i, trials->child[i]));
        if (s->trial[i].tries > 0)
            CVY_TRY_OUT(judge_tries(s, folder, i));
    }
out:
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_sweep_read_score(const cvy_sweep *s, const char *run, int64_t epochs, double *score_out,
                                double *epochs_out)
{
    char path[CVY_RUN_PATH], column[160];
    cvy_frame steps = {0}, rows = {0};
    cvy_run_path(run, CVY_RUN_METRICS, path);
    snprintf(column, sizeof column, "val_%s", s->spec.metric);
    const cvy_status status = cvy_frames_read(path, &steps, &rows, NULL);
    const double *score = cvy_frame_column(&rows, column), *epoch = cvy_frame_column(&rows, "epoch");
    *score_out = NAN;
    *epochs_out = 0;
    for (int64_t i = 0; i < rows.nrow && epoch && status == CVY_OK; i++) {
        if (epochs > 0 && epoch[i] > (double)epochs)
            continue;
        *epochs_out = epoch[i];
        const double x = score ? score[i] : NAN;
        if (s->spec.score == CVY_SWEEP_SCORE_LAST || !(isfinite(*score_out)) ||
            (isfinite(x) && (s->higher ? x > *score_out : x < *score_out)))
            *score_out = x;
    }
    cvy_frame_free(&steps);
    cvy_frame_free(&rows);
    return status;
}

/* ---- the best trial ---- */

cvy_status cvy_sweep_write_best(const cvy_sweep *s, const char *folder, int best)
{
    char run[CVY_SWEEP_PATH], job[CVY_RUN_PATH], path[CVY_SWEEP_PATH], *data = NULL;
    size_t bytes = 0;
    cvy_text text = {0};
    cvy_sweep_trial_path(folder, best, run);
    cvy_run_path(run, CVY_RUN_JOB, job);
    CVY_TRY(cvy_file_read(job, 16 << 20, &data, &bytes));
    cvy_text_add(&text, "# The best of %d trials of %s: %s with val_%s ", s->ntrials, cvy_file_base_name(s->spec.file),
                 cvy_file_base_name(run), s->spec.metric);
    cvy_text_add_score(&text, cvy_sweep_score(s, best));
    cvy_text_add(&text, "\n");
    for (int k = 0; k < s->spec.nkey; k++)
        cvy_text_add(&text, "#   %s: %s\n", s->spec.key[k].name, s->trial[best].value[k]);
    cvy_text_add_bytes(&text, data, bytes);
    cvy_mem_free(&data);
    state_path(folder, CVY_SWEEP_BEST, path);
    const cvy_status status = text.status == CVY_OK ? cvy_file_replace(path, text.data, text.bytes) : text.status;
    cvy_text_free(&text);
    return status;
}

/* ---- summaries ---- */

static cvy_status copy_text(cvy_pool *pool, const char *text, const char **out)
{
    char *copy = NULL;
    CVY_TRY(cvy_pool_strdup(pool, text ? text : "", &copy));
    *out = copy;
    return CVY_OK;
}

static cvy_status read_row(cvy_pool *pool, const cvy_tree *node, int nkey, cvy_sweep_row *row)
{
    const cvy_tree *values = cvy_tree_get(node, "values"), *scores = cvy_tree_get(node, "scores");
    const int state = find_state(node);
    const double rank = cvy_tree_real_at(node, "rank"), bracket = cvy_tree_real_at(node, "bracket");
    CVY_CHECK(values && values->kind == CVY_TREE_LIST && values->count == nkey && state >= 0 && scores &&
                  scores->kind == CVY_TREE_LIST,
              CVY_E_FORMAT, "%s: a trial has no state, no scores, or not %d values", cvy_tree_where(node), nkey);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *row->value * (size_t)CVY_MAX(nkey, 1), &row->value));
    for (int k = 0; k < nkey; k++)
        CVY_TRY(copy_text(pool, values->child[k]->text, &row->value[k]));
    row->state = state_word[state];
    row->rank = rank >= 1 && rank <= CVY_SWEEP_TRIALS_MAX ? (int)rank : 0;
    row->bracket = bracket >= 1 && bracket <= CVY_SWEEP_TRIALS_MAX ? (int)bracket : 1;
    row->score = row->rank && scores->count ? cvy_tree_real_or_nan(scores->child[scores->count - 1]) : NAN;
    row->epochs = cvy_tree_real_at(node, "epochs");
    row->seconds = cvy_tree_real_at(node, "seconds");
    row->error = cvy_tree_text_at(node, "error");
    return row->error ? copy_text(pool, row->error, &row->error) : CVY_OK;
}

static int is_row_before(const cvy_sweep_row *a, const cvy_sweep_row *b)
{
    if (!a->rank != !b->rank)
        return a->rank != 0;
    return a->rank != b->rank ? a->rank < b->rank : a->trial < b->trial;
}

static cvy_status read_rows(cvy_pool *pool, const cvy_tree *trials, cvy_sweep_summary *out)
{
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->row * (size_t)CVY_MAX(trials->count, 1), &out->row));
    for (int i = 0; i < trials->count; i++) {
        cvy_sweep_row row = {.trial = i + 1};
        CVY_TRY(read_row(pool, trials->child[i], out->nkey, &row));
        out->nranked += row.rank > 0;
        out->nfailed += row.error != NULL;
        int at = out->nrows++;
        for (; at > 0 && is_row_before(&row, &out->row[at - 1]); at--)
            out->row[at] = out->row[at - 1];
        out->row[at] = row;
    }
    return CVY_OK;
}

cvy_status cvy_sweep_summary_read(cvy_pool *pool, const char *folder, cvy_sweep_summary *out)
{
    const cvy_tree *root = NULL, *trials = NULL;
    *out = (cvy_sweep_summary){0};
    CVY_TRY(read_tree(pool, folder, &root, &trials));
    const cvy_tree *keys = cvy_tree_get(root, "keys");
    const char *goal = cvy_tree_text_at(root, "goal");
    CVY_CHECK(keys && keys->kind == CVY_TREE_LIST && keys->count <= CVY_SWEEP_KEYS_MAX, CVY_E_FORMAT,
              "%s: there is no list of keys", cvy_tree_where(root));
    CVY_TRY(copy_text(pool, cvy_tree_text_at(root, "sweep"), &out->name));
    CVY_TRY(copy_text(pool, cvy_tree_text_at(root, "metric"), &out->metric));
    CVY_TRY(copy_text(pool, cvy_tree_text_at(root, "search.search"), &out->search));
    CVY_TRY(copy_text(pool, cvy_tree_text_at(root, "score"), &out->score_of));
    out->higher = goal && strcmp(goal, "max") == 0;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->key * (size_t)CVY_MAX(keys->count, 1), &out->key));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->is_log * (size_t)CVY_MAX(keys->count, 1), &out->is_log));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->is_list * (size_t)CVY_MAX(keys->count, 1), &out->is_list));
    for (int k = 0; k < keys->count; k++) {
        const char *log = cvy_tree_text_at(keys->child[k], "log"), *list = cvy_tree_text_at(keys->child[k], "list");
        CVY_TRY(copy_text(pool, cvy_tree_text_at(keys->child[k], "key"), &out->key[out->nkey]));
        out->is_list[out->nkey] = list && strcmp(list, "true") == 0;
        out->is_log[out->nkey++] = log && strcmp(log, "true") == 0;
    }
    return read_rows(pool, trials, out);
}
