/*
 * sweep_state.c: sweep.json: what a search has done so far.
 *
 * The file is replaced as a whole after each change. It has the parts of the sweep file that decide what the search is,
 * so that a resumed search is compared with it, and for each trial its values, its state and its scores. The rest,
 * such as the generations of a population, is only shown: decisions are made again from the scores.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_json.h"
#include "monitor/monitor_metrics_read.h"
#include "monitor/monitor_run_layout.h"
#include "sweep/sweep_search.h"

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

static void add_values(const cvy_sweep *s, const char *const *value, cvy_json *json)
{
    cvy_json_open(json, "values", '[');
    for (int k = 0; k < s->spec.nkey; k++)
        cvy_json_string(json, NULL, value[k]);
    cvy_json_close(json, ']');
}

static void add_generations(const cvy_sweep *s, const cvy_trial *trial, cvy_json *json)
{
    cvy_json_open(json, "generations", '[');
    for (int i = 0; i <= trial->rung; i++) {
        const cvy_generation *g = &trial->generation[i];
        cvy_json_open(json, NULL, '{');
        cvy_json_int(json, "epochs", s->bracket[trial->bracket].epochs[i]);
        if (i < trial->nscores)
            cvy_json_real(json, "score", trial->score[i]);
        if (g->parent >= 0)
            cvy_json_int(json, "parent", g->parent + 1);
        add_values(s, g->value, json);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

static void add_trial(const cvy_sweep *s, int number, int rank, cvy_json *json)
{
    const cvy_trial *trial = &s->trial[number];
    cvy_json_open(json, NULL, '{');
    cvy_json_int(json, "trial", number + 1);
    cvy_json_string(json, "state", state_word[trial->state]);
    if (rank > 0)
        cvy_json_int(json, "rank", rank);
    cvy_json_int(json, "bracket", trial->bracket + 1);
    add_values(s, trial->value, json);
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
    if (trial->generation)
        add_generations(s, trial, json);
    cvy_json_close(json, '}');
}

static void add_head(const cvy_sweep *s, cvy_json *json)
{
    static const char *const scores[] = {"last", "best"};
    char metric[CVY_SWEEP_METRIC + 8];
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
    if (s->spec.search == CVY_SWEEP_POPULATION)
        cvy_json_int(json, "copied", s->copied);
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
    int *order = NULL, *rank = NULL, nranked = 0;
    cvy_json json = {0};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *order * (size_t)s->ntrials, &order));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *rank * (size_t)s->ntrials, &rank));
    CVY_TRY_OUT(cvy_sweep_rank(s, order, &nranked));
    for (int i = 0; i < nranked; i++)
        rank[order[i]] = i + 1;
    cvy_json_open(&json, NULL, '{');
    add_head(s, &json);
    cvy_json_open(&json, "trials", '[');
    for (int i = 0; i < s->ntrials; i++)
        add_trial(s, i, rank[i], &json);
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

cvy_status cvy_sweep_state_read(cvy_pool *pool, const char *folder, const cvy_tree **root_out,
                                const cvy_tree **trials_out)
{
    char path[CVY_SWEEP_PATH];
    cvy_tree *root = NULL;
    state_path(folder, CVY_SWEEP_STATE, path);
    CVY_CHECK(cvy_file_exists(path), CVY_E_IO, "%s holds no " CVY_SWEEP_STATE ": it is not the folder of a search",
              folder);
    CVY_TRY(cvy_tree_parse_file(pool, path, &root));
    const cvy_tree *trials = root->kind == CVY_TREE_MAP ? cvy_tree_get(root, "trials") : NULL;
    CVY_CHECK(trials && trials->kind == CVY_TREE_LIST, CVY_E_FORMAT,
              "%s: there is no list of trials: the file is damaged, or no state of a search", path);
    *root_out = root;
    *trials_out = trials;
    return CVY_OK;
}

int cvy_sweep_state_of(const cvy_tree *node)
{
    const char *text = cvy_tree_text_at(node, "state");
    for (int i = 0; text && i < CVY_COUNT(state_word); i++)
        if (strcmp(text, state_word[i]) == 0)
            return i;
    return -1;
}

static double last_of(const cvy_frame *rows)
{
    const double *step = cvy_frame_column(rows, "step");
    return step && rows->nrow ? step[rows->nrow - 1] : 0;
}

/* The last step in the log of a trial; 0: none. */
static int64_t last_step(const char *folder, int number)
{
    char run[CVY_SWEEP_PATH], path[CVY_RUN_PATH];
    cvy_frame steps = {0}, epochs = {0};
    cvy_sweep_trial_path(folder, number, run);
    cvy_run_path(run, CVY_RUN_METRICS, path);
    const cvy_status status = cvy_file_exists(path) ? cvy_frames_read(path, &steps, &epochs, NULL) : CVY_END;
    const double last = status == CVY_OK ? fmax(last_of(&steps), last_of(&epochs)) : 0;
    cvy_frame_free(&steps);
    cvy_frame_free(&epochs);
    return last >= 0 && last < 9e15 ? (int64_t)last : 0;
}

/* A trial that was running when the search was killed goes on. But a trial whose fault ends all ranks, such as a hang,
 * would end the search each time. It is given up if it comes no further. */
static cvy_status judge_tries(cvy_sweep *s, const char *folder, int number)
{
    cvy_trial *trial = &s->trial[number];
    const int64_t step = last_step(folder, number);
    char text[256];
    if (step > trial->step)
        trial->tries = 0;
    trial->step = CVY_MAX(step, trial->step);
    if (trial->tries < CVY_SWEEP_TRIES)
        return CVY_OK;
    snprintf(text, sizeof text,
             "the search was killed or ended %d times while this trial ran, each time before a step after step %lld "
             "was logged; --retry tries it again",
             CVY_SWEEP_TRIES, (long long)trial->step);
    return cvy_sweep_note_failure(s, number, text);
}

/* A number from 0 to below 2^53, or 0. */
static double number_at(const cvy_tree *node, const char *key)
{
    const double x = cvy_tree_real_at(node, key);
    return x > 0 && x < 0x1p53 ? x : 0;
}

/* Processes of an earlier start may survive the kill of rank 0 for a while, and still train this trial. */
static cvy_status await_end(const char *folder, int number)
{
    enum { TRIES = 10 }; /* each one waits for some seconds */
    char run[CVY_SWEEP_PATH], *warning = NULL;
    cvy_status status = CVY_OK;
    cvy_sweep_trial_path(folder, number, run);
    for (int i = 0; i < TRIES && cvy_file_is_folder(run); i++) {
        int lock = -1;
        status = cvy_run_lock(run, &lock, &warning);
        cvy_mem_free(&warning);
        cvy_run_unlock(run, &lock);
        if (status != CVY_E_IO)
            break;
    }
    return status == CVY_OK
               ? status
               : cvy_error_prefix(status, "trial %d was running when the search was killed, and still runs",
                                  number + 1);
}

static cvy_status load_trial(cvy_sweep *s, int number, const cvy_tree *node)
{
    cvy_trial *trial = &s->trial[number];
    const cvy_tree *scores = cvy_tree_get(node, "scores");
    const int state = cvy_sweep_state_of(node), nrungs = s->bracket[trial->bracket].nrungs;
    const char *error = cvy_tree_text_at(node, "error");
    char *copy = NULL;
    CVY_CHECK(state >= 0 && scores && scores->kind == CVY_TREE_LIST && scores->count <= nrungs, CVY_E_FORMAT,
              "%s: trial %d has no state, or no list of at most %d scores: the file is damaged", cvy_tree_where(node),
              number + 1, nrungs);
    CVY_CHECK(state != CVY_TRIAL_FINISHED || scores->count > 0, CVY_E_FORMAT,
              "%s: trial %d is finished and has no score: the file is damaged", cvy_tree_where(node), number + 1);
    CVY_CHECK((state != CVY_TRIAL_WAITING && state != CVY_TRIAL_RUNNING) || scores->count < nrungs, CVY_E_FORMAT,
              "%s: trial %d has all its scores and is not finished: the file is damaged", cvy_tree_where(node),
              number + 1);
    trial->state = state == CVY_TRIAL_RUNNING ? CVY_TRIAL_WAITING : (cvy_trial_state)state;
    trial->nscores = scores->count;
    for (int i = 0; i < scores->count; i++)
        trial->score[i] = cvy_tree_real_or_nan(scores->child[i]);
    trial->epochs = number_at(node, "epochs");
    trial->seconds = number_at(node, "seconds");
    if (error)
        CVY_TRY(cvy_pool_strdup(s->spec.pool, error, &copy));
    trial->error = copy;
    trial->tries = (int64_t)number_at(node, "tries");
    trial->step = (int64_t)number_at(node, "step");
    return CVY_OK;
}

static cvy_status compare_parts(const cvy_sweep *s, const char *folder, const cvy_tree *root)
{
    const cvy_tree *parts = cvy_tree_get(root, "search");
    for (int i = 0; parts && i < CVY_COUNT(s->spec.part); i++) {
        const char *then = cvy_tree_text_at(parts, cvy_sweep_parts[i]);
        CVY_CHECK(strcmp(then ? then : "", s->spec.part[i]) == 0, CVY_E_CONFIG,
                  "%s holds another search: its %s is \"%s\", that of %s is \"%s\"; resume with the files and --set as "
                  "they were, or name another folder with --out",
                  folder, cvy_sweep_parts[i], then ? then : "", s->spec.file, s->spec.part[i]);
    }
    CVY_CHECK(parts, CVY_E_FORMAT, "%s: its " CVY_SWEEP_STATE " does not say which search it is: the file is damaged",
              folder);
    return CVY_OK;
}

/* The same file gives the same trials, unless another version of the library makes other points. The values of a
 * population change. */
static cvy_status compare_trials(const cvy_sweep *s, const char *folder, const cvy_tree *trials)
{
    CVY_CHECK(trials->count == s->ntrials, CVY_E_CONFIG,
              "%s holds another search: it has %d trials, and %s has %d; name another folder with --out", folder,
              trials->count, s->spec.file, s->ntrials);
    for (int i = 0; i < s->ntrials && s->spec.search != CVY_SWEEP_POPULATION; i++) {
        const cvy_tree *values = cvy_tree_get(trials->child[i], "values");
        for (int k = 0; values && k < CVY_MIN(values->count, s->spec.nkey); k++) {
            const char *then = values->child[k]->text;
            CVY_CHECK(then && strcmp(then, s->trial[i].value[k]) == 0, CVY_E_CONFIG,
                      "%s holds another search: its trial %d has %s %s, and this version of convoy gives it %s; resume "
                      "with the version that began it, or name another folder with --out",
                      folder, i + 1, s->spec.key[k].name, then ? then : "", s->trial[i].value[k]);
        }
    }
    return CVY_OK;
}

cvy_status cvy_sweep_load(cvy_sweep *s, const char *folder)
{
    const cvy_tree *root = NULL, *trials = NULL;
    cvy_pool *pool = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_sweep_state_read(pool, folder, &root, &trials));
    CVY_TRY_OUT(compare_parts(s, folder, root));
    CVY_TRY_OUT(compare_trials(s, folder, trials));
    s->copied = (int)CVY_MIN(number_at(root, "copied"), s->bracket[0].nrungs - 1);
    for (int i = 0; i < s->ntrials; i++) {
        if (cvy_sweep_state_of(trials->child[i]) == CVY_TRIAL_RUNNING)
            CVY_TRY_OUT(await_end(folder, i));
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
    char path[CVY_RUN_PATH], column[CVY_SWEEP_METRIC + 8];
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
        if (s->spec.score == CVY_SWEEP_SCORE_LAST || !isfinite(*score_out) ||
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
    if (s->spec.search == CVY_SWEEP_POPULATION)
        cvy_text_add(&text, "# These are the values at its end; " CVY_SWEEP_STATE " has those of each generation.\n");
    cvy_text_add_bytes(&text, data, bytes);
    cvy_mem_free(&data);
    state_path(folder, CVY_SWEEP_BEST, path);
    const cvy_status status = text.status == CVY_OK ? cvy_file_replace(path, text.data, text.bytes) : text.status;
    cvy_text_free(&text);
    return status;
}
