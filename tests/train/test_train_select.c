/* rows: clang asan minimal */
/*
 * test_train_select.c: a score that is not finite is never the best and counts as no progress, whether it comes first,
 * later or always, as NaN or as an infinite number: for checkpoint.best, train.stop, the last and the best score of a
 * trial of a search, and the summary of a run. It is said once, with its reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdlib.h>

#include "base/base_file.h"
#include "files/files.h"
#include "monitor/monitor_run_layout.h"
#include "sweep/sweep_search.h"
#include "test_util.h"
#include "train/trainer.h"

enum { EPOCHS = 5, SAID = 4096 };

/* A course of a score over the epochs, and what it comes to if a high value is good, and if a low one is. */
static const struct course {
    const char *name;
    double value[EPOCHS];
    double high, low, last; /* the best values and the last one; NaN: none */
    int high_epoch, low_epoch;
    const char *why;
} courses[] = {
    {"numbers", {0.5, 0.25, 0.75, 0.5, 0.5}, 0.75, 0.25, 0.5, 3, 2, NULL},
    {"NaN first", {NAN, NAN, 0.25, 0.5, 0.125}, 0.5, 0.125, 0.125, 4, 5, "undefined"},
    {"NaN later", {0.25, 0.5, 0.125, NAN, NAN}, 0.5, 0.125, NAN, 2, 3, "undefined"},
    {"NaN between", {0.25, NAN, 0.125, NAN, 0.5}, 0.5, 0.125, 0.5, 5, 3, "undefined"},
    {"always NaN", {NAN, NAN, NAN, NAN, NAN}, NAN, NAN, NAN, 0, 0, "undefined"},
    {"infinite", {INFINITY, -INFINITY, 0.5, INFINITY, -INFINITY}, 0.5, 0.5, NAN, 3, 3, "infinite"},
    {"minus infinite first", {-INFINITY, -INFINITY, 0.25, 0.5, 0.125}, 0.5, 0.125, 0.125, 4, 5, "infinite"},
    {"always infinite", {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}, NAN, NAN, NAN, 0, 0, "infinite"},
};

static char said[SAID];

static void keep_log(void *user, cvy_log_level level, const char *line)
{
    (void)user;
    if (level == CVY_LOG_WARN)
        snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", line);
}

static int same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static int times_said(const char *word)
{
    int n = 0;
    for (const char *at = said; (at = strstr(at, word)); at++)
        n++;
    return n;
}

/* ---- a training ---- */

/* Epochs after which `patience` epochs without a better finite number have passed; 0: never. */
static int expected_stop(const struct course *c, int higher, int patience)
{
    double best = NAN;
    for (int i = 0, bad = 0; i < EPOCHS; i++) {
        const double x = c->value[i];
        const int good = isfinite(x) && (isnan(best) || (higher ? x > best : x < best));
        best = good ? x : best;
        bad = good ? 0 : bad + 1;
        if (bad == patience)
            return i + 1;
    }
    return 0;
}

static void check_training(cvy_context *context, const struct course *c, int higher, int patience)
{
    char text[CVY_EARLY_STOP_TEXT];
    cvy_job job = {.checkpoint = {.best = "area"}, .train = {.stop = {.metric = "val_area", .patience = patience}}};
    cvy_trainer t = {.session = {.context = context, .job = &job}, .order = {.steps_per_epoch = 10, .last_step = 100}};
    int best_epoch = 0, stop = 0;
    said[0] = '\0';
    t.epochs = 10;
    t.state.best = t.state.stop_best = NAN;
    for (int i = 0; i < EPOCHS && !t.stop_early; i++) {
        cvy_scores scores = {.count = 1, .loss = 1};
        scores.at[0] = (cvy_score){.name = "area", .value = c->value[i], .higher_is_better = higher, .why = "REASON"};
        t.step += 10;
        t.best.is_new = 0;
        cvy_trainer_select(&t, &scores);
        if (t.best.is_new) {
            EXPECT(isfinite(c->value[i]));
            best_epoch = i + 1;
        }
        stop = t.stop_early ? i + 1 : 0;
    }
    EXPECT_INT(stop, expected_stop(c, higher, patience));
    EXPECT(isnan(t.state.best) == (best_epoch == 0) && same(t.state.best, t.state.stop_best));
    if (!stop) {
        EXPECT(same(t.state.best, higher ? c->high : c->low));
        EXPECT_INT(best_epoch, higher ? c->high_epoch : c->low_epoch);
    }
    EXPECT_INT(times_said("REASON"), c->why && (!stop || strstr(said, "REASON")));
    if (times_said("REASON"))
        EXPECT(strstr(said, "the validation area is ") && strstr(said, c->why) &&
               strstr(said, ": REASON; checkpoint.best and train.stop depend on it: such a score is never the best"));
    if (stop && cvy_trainer_stopped_early(&t, text, sizeof text))
        EXPECT(!strstr(text, "nan") && (strstr(text, "has not been finite for") != NULL) == isnan(t.state.stop_best));
    cvy_trainer_say_no_best(&t);
    EXPECT((strstr(said, "no checkpoint is marked as the best") != NULL) == isnan(t.state.best));
}

static cvy_context *context;

static void test_training(void)
{
    for (int i = 0; i < CVY_COUNT(courses); i++)
        for (int patience = 1; patience <= EPOCHS; patience++)
            for (int higher = 0; higher < 2; higher++)
                check_training(context, &courses[i], higher, patience);
}

/* A loss that is not finite is watched like a score. Scores are said one by one, also those that nothing watches. */
static void test_loss(void)
{
    cvy_job job = {.checkpoint = {.best = "loss"}, .train = {.stop = {.metric = "area", .patience = 9}}};
    cvy_trainer t = {.session = {.context = context, .job = &job}, .order = {.steps_per_epoch = 10, .last_step = 100}};
    cvy_scores scores = {.count = 2, .loss = INFINITY};
    said[0] = '\0';
    t.state.best = t.state.stop_best = NAN;
    scores.at[0] = (cvy_score){.name = "area", .value = NAN, .why = "REASON"};
    scores.at[1] = (cvy_score){.name = "other", .value = NAN, .why = "ANOTHER"};
    for (t.step = 10; t.step <= 30; t.step += 10)
        cvy_trainer_select(&t, &scores);
    EXPECT(isnan(t.state.best) && !t.best.is_new && t.state.stop_bad_epochs == 3);
    EXPECT_INT(times_said("; checkpoint.best depends on it"), 1);
    EXPECT_INT(times_said("the validation area is undefined: REASON; train.stop depends on it"), 1);
    EXPECT_INT(times_said("the validation loss is infinite"), 1);
    EXPECT_INT(times_said("the validation other is undefined: ANOTHER\n"), 1);
    EXPECT_INT(times_said("epoch 1: "), 3);
}

/* ---- what is read from the log of a run ---- */

static char folder[] = "/tmp/cvy-select-XXXXXX";

static void write_run(const struct course *c, const char *score)
{
    char path[CVY_RUN_PATH];
    cvy_json json = {0};
    cvy_run_path(folder, CVY_RUN_METRICS, path);
    FILE *file = fopen(path, "w");
    EXPECT(file != NULL);
    for (int i = 0; i < EPOCHS && file; i++) {
        cvy_json_open(&json, NULL, '{');
        cvy_json_string(&json, "kind", "epoch");
        cvy_json_int(&json, "step", 10 * (i + 1));
        cvy_json_int(&json, "epoch", i + 1);
        cvy_json_real(&json, score, c->value[i]);
        cvy_json_close(&json, '}');
        fprintf(file, "%s\n", json.text.data);
        EXPECT(isfinite(c->value[i]) || strstr(json.text.data, ": null"));
        cvy_text_free(&json.text);
        json = (cvy_json){0};
    }
    if (file)
        fclose(file);
}

static void test_search(void)
{
    for (int i = 0; i < CVY_COUNT(courses); i++)
        for (int higher = 0; higher < 2; higher++) {
            const struct course *c = &courses[i];
            cvy_sweep sweep = {.spec = {.metric = "area", .score = CVY_SWEEP_SCORE_BEST}, .higher = higher};
            double score = 0, epochs = 0;
            write_run(c, "val_area");
            EXPECT_OK(cvy_sweep_read_score(&sweep, folder, 0, &score, &epochs));
            EXPECT(same(score, higher ? c->high : c->low) && epochs == EPOCHS);
            sweep.spec.score = CVY_SWEEP_SCORE_LAST;
            EXPECT_OK(cvy_sweep_read_score(&sweep, folder, 0, &score, &epochs));
            EXPECT(same(score, c->last));
        }
}

static void write_job(const char *best)
{
    char path[CVY_RUN_PATH];
    cvy_run_path(folder, CVY_RUN_JOB, path);
    FILE *file = fopen(path, "w");
    EXPECT(file && fprintf(file, "model: lenet\ncheckpoint: {best: %s}\n", best) > 0 && fclose(file) == 0);
}

/* The summary names the score that the job asks for, also if it never was a number. */
static void test_summary(void)
{
    for (int i = 0; i < CVY_COUNT(courses); i++)
        for (int higher = 0; higher < 2; higher++) {
            const struct course *c = &courses[i];
            cvy_run_summary s = {.size = sizeof s};
            write_job(higher ? "accuracy" : "val_loss");
            write_run(c, higher ? "val_accuracy" : "val_loss");
            EXPECT_OK(cvy_run_summarize(folder, &s));
            EXPECT(strcmp(s.metric, higher ? "val_accuracy" : "val_loss") == 0 && s.best_higher == higher);
            EXPECT(same(s.best, higher ? c->high : c->low));
            EXPECT(same(s.best_epoch, isnan(s.best) ? NAN : higher ? c->high_epoch : c->low_epoch));
        }
}

int main(void)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .log_level = CVY_LOG_WARN, .log = keep_log};
    EXPECT(mkdtemp(folder) != NULL);
    EXPECT_OK(cvy_context_create(&opts, &context));
    TEST(test_training);
    TEST(test_loss);
    TEST(test_search);
    TEST(test_summary);
    cvy_context_destroy(&context);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
