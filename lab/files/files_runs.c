/*
 * files_runs.c: a run in a few figures, from what it has left in its folder: STATUS, metrics.jsonl, job.resolved.yaml
 * and plan.json. Any of them may be missing or damaged.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "files/files_runs.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_opts.h"
#include "base/machine/base_system.h"
#include "metric/metric.h"
#include "monitor/monitor_run_layout.h"

/* ---- words ---- */

const char *cvy_run_state_text(cvy_run_state state)
{
    switch (state) {
    case CVY_RUN_STATE_RUNNING: return "running";
    case CVY_RUN_STATE_STOPPED: return "stopped";
    case CVY_RUN_STATE_FINISHED: return "finished";
    case CVY_RUN_STATE_EARLY_STOP: return "early stop";
    case CVY_RUN_STATE_FAILED: return "failed";
    case CVY_RUN_STATE_KILLED: return "killed";
    case CVY_RUN_STATE_UNKNOWN: break;
    }
    return "unknown";
}

cvy_run_duration cvy_run_duration_text(double seconds)
{
    cvy_run_duration d = {"-"};
    const long long s = isfinite(seconds) && seconds < 1e15 ? llround(seconds) : -1;
    if (s >= 86400)
        snprintf(d.at, sizeof d.at, "%lld d %02lld h", s / 86400, s % 86400 / 3600);
    else if (s >= 3600)
        snprintf(d.at, sizeof d.at, "%lld h %02lld min", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        snprintf(d.at, sizeof d.at, "%lld min %02lld s", s / 60, s % 60);
    else if (s >= 0)
        snprintf(d.at, sizeof d.at, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
    return d;
}

/* ---- figures of the metrics ---- */

static double last_of(const cvy_frame *f, const char *column)
{
    const double *y = cvy_frame_column(f, column);
    for (int64_t i = f->nrow - 1; y && i >= 0; i--)
        if (isfinite(y[i]))
            return y[i];
    return NAN;
}

static int64_t best_row(const cvy_frame *f, const char *column, int higher)
{
    const double *y = cvy_frame_column(f, column);
    int64_t best = -1;
    for (int64_t i = 0; y && i < f->nrow; i++)
        if (isfinite(y[i]) && (best < 0 || (higher ? y[i] > y[best] : y[i] < y[best])))
            best = i;
    return best;
}

/* A logged step has the rate of the steps since the one before. An epoch has its whole time, with its validation, so
 * the time begins anew from its end. */
cvy_status cvy_frame_step_seconds(cvy_pool *pool, const cvy_frame *steps, const cvy_frame *epochs, double **out)
{
    const double *rate = cvy_frame_column(steps, "images_per_s"), *samples = cvy_frame_column(steps, "samples"),
                 *step = cvy_frame_column(steps, "step"), *end = cvy_frame_column(epochs, "step"),
                 *epoch_s = cvy_frame_column(epochs, "seconds");
    double *seconds = NULL, base = 0, since = 0, before = 0, latest = 0;
    int64_t e = 0;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *seconds * ((size_t)steps->nrow + 1), &seconds));
    for (int64_t i = 0; i < steps->nrow; i++) {
        for (; step && end && epoch_s && e < epochs->nrow && end[e] < step[i]; e++) {
            base += isfinite(epoch_s[e]) ? epoch_s[e] : 0;
            since = 0;
        }
        const double taken = rate && samples ? (samples[i] - before) / rate[i] : NAN;
        before = samples && isfinite(samples[i]) ? samples[i] : before;
        since += taken > 0 && isfinite(taken) ? taken : 0;
        latest = CVY_MAX(latest, base + since); /* steps that were logged together may lie in two epochs */
        seconds[i] = rate && samples ? latest : NAN;
    }
    *out = seconds;
    return CVY_OK;
}

int cvy_run_score_is_higher_better(const char *column)
{
    char name[64];
    const cvy_metric_def *def = NULL;
    snprintf(name, sizeof name, "%s", strchr(column, '_') ? strchr(column, '_') + 1 : column);
    /* after the name of a metric there may be its options, as in top_k_5 */
    for (char *end = name + strlen(name); end && !def; end = strrchr(name, '_')) {
        *end = '\0';
        def = cvy_metric_find(name);
    }
    return def ? def->higher_is_better : 0; /* a loss, or a metric of another version */
}

/* Whether the run has logged this score, although it may have been finite in no epoch. */
static int has_logged(const cvy_frame *f, const char *column)
{
    for (int i = 0; i < f->ncol; i++)
        if (strcmp(f->name[i], column) == 0)
            return 1;
    return 0;
}

/* Finds the column of the score by which the job selects; otherwise accuracy or loss on the best data that there are.
 */
static const char *find_score(const cvy_frame *epochs, const cvy_tree *job, char column[64])
{
    static const char *const usual[] = {"val_accuracy", "val_loss", "test_accuracy", "test_loss"};
    const char *const asked[] = {cvy_tree_text_at(job, "checkpoint.best"), cvy_tree_text_at(job, "train.stop.metric")};
    for (int i = 0; i < CVY_COUNT(asked); i++) {
        if (!asked[i])
            continue;
        snprintf(column, 64, "%s%.48s", strncmp(asked[i], "val_", 4) == 0 ? "" : "val_", asked[i]);
        if (has_logged(epochs, column))
            return column;
    }
    for (int i = 0; i < CVY_COUNT(usual); i++)
        if (cvy_frame_column(epochs, usual[i]))
            return usual[i];
    return NULL;
}

/* The time of all epochs, and of the steps after the last one. */
static cvy_status take_seconds(cvy_pool *pool, const cvy_frame *steps, const cvy_frame *epochs, double *out)
{
    const double *epoch_s = cvy_frame_column(epochs, "seconds");
    double *step_s = NULL, sum = epoch_s ? 0 : NAN;
    CVY_TRY(cvy_frame_step_seconds(pool, steps, epochs, &step_s));
    for (int64_t i = 0; epoch_s && i < epochs->nrow; i++)
        sum += isfinite(epoch_s[i]) ? epoch_s[i] : 0;
    *out = steps->nrow > 0 ? fmax(sum, step_s[steps->nrow - 1]) : sum;
    return CVY_OK;
}

/* job: to find the metric that selects; NULL: not known. */
static cvy_status add_metrics(cvy_pool *pool, const cvy_frame *steps, const cvy_frame *epochs, const cvy_tree *job,
                              cvy_run_summary *s)
{
    char room[64];
    const char *column = find_score(epochs, job, room);
    const double step = fmax(last_of(steps, "step"), last_of(epochs, "step")), loss = last_of(epochs, "train_loss"),
                 *epoch = cvy_frame_column(epochs, "epoch");
    if (step > (double)s->step && step < 9e15)
        s->step = (int64_t)step;
    s->epoch = isfinite(last_of(steps, "epoch")) ? last_of(steps, "epoch") : last_of(epochs, "epoch");
    s->last_loss = isfinite(loss) ? loss : last_of(steps, "loss"); /* of a step: its batch may be small */
    s->images_per_s = cvy_frame_speed(steps);
    s->best_higher = column ? cvy_run_score_is_higher_better(column) : 0;
    const int64_t best = column ? best_row(epochs, column, s->best_higher) : -1;
    if (column)
        snprintf(s->metric, sizeof s->metric, "%s", column);
    if (best >= 0) {
        s->best = cvy_frame_column(epochs, column)[best];
        s->best_epoch = epoch ? epoch[best] : NAN;
    }
    return take_seconds(pool, steps, epochs, &s->seconds);
}

/* ---- the files ---- */

static void add_problem(cvy_run_summary *s, const char *text)
{
    const size_t n = strlen(s->why);
    snprintf(s->why + n, sizeof s->why - n, "%s%s", n ? "; " : "", text);
}

/* A file that is damaged is named. Only a lack of memory is a fault. */
static cvy_status note(cvy_run_summary *s, cvy_status status)
{
    if (status < 0 && status != CVY_E_MEMORY)
        add_problem(s, cvy_error_text());
    return status == CVY_E_MEMORY ? status : CVY_OK;
}

static cvy_status read_status(const char *run, cvy_run_summary *s)
{
    static const struct {
        const char *word;
        cvy_run_state state;
    } states[] = {{"running", CVY_RUN_STATE_RUNNING},
                  {"stopped", CVY_RUN_STATE_STOPPED},
                  {"finished", CVY_RUN_STATE_FINISHED},
                  {"failed", CVY_RUN_STATE_FAILED}};
    char path[CVY_RUN_PATH], dead[640], *text = NULL;
    size_t bytes = 0;
    cvy_run_status status;
    cvy_run_path(run, CVY_RUN_STATUS, path);
    if (!cvy_file_exists(path)) {
        add_problem(s, "there is no STATUS");
        return CVY_OK;
    }
    CVY_TRY(note(s, cvy_file_read(path, 4096, &text, &bytes)));
    if (text && !cvy_run_status_parse(text, &status))
        add_problem(s, "STATUS is damaged");
    else if (text) {
        for (int i = 0; i < CVY_COUNT(states); i++)
            if (strcmp(status.word, states[i].word) == 0)
                s->state = states[i].state;
        if (cvy_run_status_is_early(&status))
            s->state = CVY_RUN_STATE_EARLY_STOP;
        if (s->state == CVY_RUN_STATE_RUNNING && cvy_run_is_dead(run, dead, sizeof dead))
            s->state = CVY_RUN_STATE_KILLED;
        s->step = status.step;
        s->steps = status.steps;
        add_problem(s, status.why);
    }
    cvy_mem_free(&text);
    return CVY_OK;
}

static cvy_status read_tree(cvy_pool *pool, const char *run, const char *name, cvy_run_summary *s, cvy_tree **out)
{
    char path[CVY_RUN_PATH];
    cvy_tree *tree = NULL;
    cvy_run_path(run, name, path);
    if (cvy_file_exists(path))
        CVY_TRY(note(s, cvy_tree_parse_file(pool, path, &tree)));
    *out = tree && tree->kind == CVY_TREE_MAP ? tree : NULL;
    return CVY_OK;
}

static int count_at(const cvy_tree *map, const char *path)
{
    const double n = cvy_tree_real_at(map, path);
    return n >= 1 && n < 1e9 ? (int)n : 0;
}

static cvy_status read_plan(cvy_pool *pool, const char *run, cvy_run_summary *s)
{
    cvy_tree *plan = NULL;
    CVY_TRY(read_tree(pool, run, CVY_RUN_PLAN, s, &plan));
    s->ranks = count_at(plan, "machine.ranks");
    s->nodes = count_at(plan, "machine.nodes");
    if (!s->nodes) /* a plan of version 0.1.0 */
        s->nodes = s->ranks == 1 ? 1 : count_at(plan, "sums.nodes");
    return CVY_OK;
}

static void read_change(const char *run, cvy_run_summary *s)
{
    static const char *const files[] = {CVY_RUN_STATUS, CVY_RUN_METRICS, CVY_RUN_JOB, CVY_RUN_TEST};
    char path[CVY_RUN_PATH];
    struct stat about;
    for (int i = 0; i < CVY_COUNT(files); i++) {
        cvy_run_path(run, files[i], path);
        if (stat(path, &about) != 0)
            continue;
        const struct timespec changed = cvy_file_changed(&about);
        s->changed = fmax(s->changed, (double)changed.tv_sec + 1e-9 * (double)changed.tv_nsec);
    }
}

/* How far the run goes, in epochs, and how long that takes at the mean speed so far. */
static void look_ahead(const cvy_tree *job, cvy_run_summary *s)
{
    const double epochs = cvy_tree_real_at(job, "train.epochs");
    s->epochs = epochs > 0 ? epochs : s->step > 0 && s->steps > 0 ? s->epoch / (double)s->step * (double)s->steps : NAN;
    s->left_s = NAN;
    if (s->state == CVY_RUN_STATE_RUNNING && s->step > 0 && s->steps >= s->step)
        s->left_s = s->seconds / (double)s->step * (double)(s->steps - s->step);
}

static cvy_status read_files(cvy_pool *pool, const char *run, cvy_run_summary *s)
{
    char path[CVY_RUN_PATH];
    cvy_tree *job = NULL;
    cvy_frame steps = {0}, epochs = {0};
    cvy_status status = CVY_OK;
    CVY_TRY(read_status(run, s));
    CVY_TRY(read_tree(pool, run, CVY_RUN_JOB, s, &job));
    CVY_TRY(read_plan(pool, run, s));
    cvy_run_path(run, CVY_RUN_METRICS, path);
    if (cvy_file_exists(path))
        status = note(s, cvy_frames_read(path, &steps, &epochs, NULL));
    if (status == CVY_OK)
        status = add_metrics(pool, &steps, &epochs, job, s);
    look_ahead(job, s);
    read_change(run, s);
    cvy_frame_free(&steps);
    cvy_frame_free(&epochs);
    return status;
}

/* It allocates nothing, so that a lack of memory cannot hide a run. */
int cvy_run_is_folder(const char *path)
{
    char file[CVY_RUN_PATH], text[1500];
    cvy_run_status status;
    if (strlen(path) + 32 > CVY_RUN_PATH)
        return 0;
    cvy_run_path(path, CVY_RUN_JOB, file);
    if (cvy_file_exists(file))
        return 1;
    cvy_run_path(path, CVY_RUN_STATUS, file);
    const int fd = cvy_file_open(file, O_RDONLY, 0, NULL);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return cvy_run_status_parse(text, &status);
}

cvy_status cvy_run_summary_read(const char *run, cvy_run_summary *out)
{
    cvy_pool *pool = NULL;
    cvy_run_summary s = {
        .epoch = NAN, .epochs = NAN, .best = NAN, .best_epoch = NAN, .last_loss = NAN, .seconds = NAN, .left_s = NAN};
    CVY_CHECK(strlen(run) < sizeof s.folder, CVY_E_IO, "%s: the name is longer than %zu bytes", run,
              sizeof s.folder - 1);
    CVY_CHECK(cvy_run_is_folder(run), CVY_E_IO, "%s: not the folder of a run: it has no " CVY_RUN_JOB, run);
    snprintf(s.folder, sizeof s.folder, "%s", run);
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = read_files(pool, run, &s);
    cvy_pool_destroy(&pool);
    if (status == CVY_OK)
        *out = s;
    return status;
}

cvy_status cvy_run_summarize(const char *run, cvy_run_summary *summary_out)
{
    CVY_ENTRY();
    cvy_run_summary s;
    CVY_TRY(CVY_RESULT_CHECK(cvy_run_summary, summary_out));
    CVY_CHECK(run, CVY_E_ARGUMENT, "cvy_run_summarize() needs a run folder");
    CVY_TRY(cvy_run_summary_read(run, &s));
    cvy_result_write(summary_out, &s, sizeof s);
    return CVY_OK;
}

/* ---- scores, for inspect ---- */

static void add_scores_of_epoch(const cvy_frame *epochs, cvy_text *t)
{
    static const char *const parts[] = {"train_", "val_", "test_"};
    const int64_t last = epochs->nrow - 1;
    const double *epoch = cvy_frame_column(epochs, "epoch");
    int n = 0;
    for (int p = 0; p < CVY_COUNT(parts) && last >= 0; p++)
        for (int i = 0; i < epochs->ncol; i++) {
            const char *name = epochs->name[i];
            const size_t length = strlen(parts[p]);
            if (strncmp(name, parts[p], length) != 0 || !isfinite(epochs->at[i][last]))
                continue;
            if (n++ == 0)
                cvy_text_add(t, "scores after epoch %g:", epoch ? epoch[last] : NAN);
            cvy_text_add(t, "%s %.*s %s %.6g", n > 1 ? "," : "", (int)length - 1, name, name + length,
                         epochs->at[i][last]);
        }
    cvy_text_add(t, n ? "\n" : "");
}

static void add_test(const cvy_tree *test, cvy_text *t)
{
    const cvy_tree *metrics = cvy_tree_at(test, "metrics");
    const char *of = cvy_tree_text_at(test, "checkpoint"), *loss = cvy_tree_text_at(test, "loss");
    if (!test)
        return;
    cvy_text_add(t, "test.json%s%s:", of ? ", " : "", of ? of : "");
    cvy_text_add(t, " loss %.6g", loss ? cvy_tree_real_at(test, "loss") : NAN);
    for (int i = 0; metrics && metrics->kind == CVY_TREE_MAP && i < metrics->count; i++)
        cvy_text_add(t, ", %s %.6g", metrics->key[i], cvy_tree_real_or_nan(metrics->child[i]));
    cvy_text_add(t, "\n");
}

static cvy_status add_scores(cvy_pool *pool, const char *run, cvy_run_summary *s, cvy_text *t)
{
    char path[CVY_RUN_PATH];
    cvy_frame steps = {0}, epochs = {0};
    cvy_tree *test = NULL;
    cvy_status status = CVY_OK;
    cvy_run_path(run, CVY_RUN_METRICS, path);
    if (cvy_file_exists(path))
        status = note(s, cvy_frames_read(path, &steps, &epochs, NULL));
    add_scores_of_epoch(&epochs, t);
    if (s->metric[0] && !isfinite(s->best))
        cvy_text_add(t, "best %s: none, it was finite in no epoch\n", s->metric);
    else if (s->metric[0])
        cvy_text_add(t, "best %s: %.6g, after epoch %g\n", s->metric, s->best, s->best_epoch);
    if (status == CVY_OK)
        status = read_tree(pool, run, CVY_RUN_TEST, s, &test);
    add_test(test, t);
    cvy_frame_free(&steps);
    cvy_frame_free(&epochs);
    return status;
}

static void add_state(const cvy_run_summary *s, cvy_text *t)
{
    cvy_text_add(t, "%s at step %lld of %lld", cvy_run_state_text(s->state), (long long)s->step, (long long)s->steps);
    if (isfinite(s->epoch) && isfinite(s->epochs))
        cvy_text_add(t, ", epoch %.4g of %.4g", s->epoch, s->epochs);
    if (isfinite(s->seconds))
        cvy_text_add(t, ", %s", cvy_run_duration_text(s->seconds).at);
    if (isfinite(s->left_s))
        cvy_text_add(t, ", %s left", cvy_run_duration_text(s->left_s).at);
    if (s->ranks)
        cvy_text_add(t, ", %d rank%s", s->ranks, s->ranks == 1 ? "" : "s");
    if (s->ranks && s->nodes)
        cvy_text_add(t, " on %d node%s", s->nodes, s->nodes == 1 ? "" : "s");
    if (isfinite(s->images_per_s))
        cvy_text_add(t, ", %.4g samples/s", s->images_per_s);
    cvy_text_add(t, "\n");
}

cvy_status cvy_run_scores_text(const char *run, cvy_text *text)
{
    cvy_pool *pool = NULL;
    cvy_run_summary s;
    CVY_TRY(cvy_run_summary_read(run, &s));
    CVY_TRY(cvy_pool_create(&pool));
    add_state(&s, text);
    const cvy_status status = add_scores(pool, run, &s, text);
    if (s.why[0])
        cvy_text_add(text, "%s\n", s.why);
    cvy_pool_destroy(&pool);
    return status;
}
