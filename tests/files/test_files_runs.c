/* rows: clang asan minimal */
/*
 * test_files_runs.c: the list of runs below a folder has the figures of each run's files; damaged files are named,
 * foreign folders are passed over, and a lack of memory is reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/tree_confusion.h"
#include "files/files.h"
#include "files/files_runs.h"
#include "test_util.h"

static char root[] = "/tmp/cvy-runs-XXXXXX";

static void begin(void)
{
    strcpy(root + strlen(root) - 6, "XXXXXX");
    EXPECT(mkdtemp(root) != NULL);
}

static void end(void)
{
    EXPECT_OK(cvy_file_remove_tree(root));
}

static const char *path_of(const char *name)
{
    static char path[2048];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void put(const char *run, const char *file, const char *text)
{
    char name[1024];
    EXPECT_OK(cvy_file_make_folder(path_of(run)));
    snprintf(name, sizeof name, "%s/%s", run, file);
    confuse_file(path_of(name), text);
}

#define AT " at 2026-01-31T12:00:00Z"

static const char job[] = "model: lenet\ntrain: {epochs: 4, batch: 64, stop: {metric: top_k, patience: 2}}\n";
static const char plan[] = "{\"machine\": {\"nodes\": \"2\", \"ranks\": \"8\"}, \"layers\": []}";
static const char old_plan[] = "{\"machine\": {\"ranks\": \"8\"}, \"sums\": {\"ranks\": 8, \"nodes\": 4}}";

/* Two epochs of 10 steps in 30 s and 20 s, then 5 steps of 64 samples at 100 samples/s. */
static const char metrics[] =
    "{\"kind\": \"step\", \"step\": 10, \"epoch\": 1, \"samples\": 640, \"loss\": 2.5, \"images_per_s\": 32}\n"
    "{\"kind\": \"epoch\", \"step\": 10, \"epoch\": 1, \"train_loss\": 2.6, \"val_loss\": 2.4, \"val_top_k\": 0.75, "
    "\"val_accuracy\": 0.5, \"seconds\": 30}\n"
    "{\"kind\": \"step\", \"step\": 20, \"epoch\": 2, \"samples\": 1280, \"loss\": 1.5, \"images_per_s\": 32}\n"
    "{\"kind\": \"epoch\", \"step\": 20, \"epoch\": 2, \"train_loss\": 1.6, \"val_loss\": 1.75, \"val_top_k\": 0.625, "
    "\"val_accuracy\": 0.625, \"seconds\": 20}\n"
    "{\"kind\": \"step\", \"step\": 25, \"epoch\": 2.5, \"samples\": 1600, \"loss\": 1.25, \"images_per_s\": 100}\n"
    "{\"kind\": \"step\", \"step\": 26, \"ep";

static void put_run(const char *name, const char *status)
{
    put(name, "STATUS", status);
    put(name, "job.resolved.yaml", job);
    put(name, "metrics.jsonl", metrics);
    put(name, "plan.json", plan);
}

static const cvy_run_summary *find(const cvy_run_list_result *r, const char *name)
{
    for (int i = 0; i < r->nruns; i++)
        if (strcmp(r->run[i].folder, path_of(name)) == 0)
            return &r->run[i];
    TEST_FAIL("%s is not in the list", name);
    return &r->run[0];
}

static void has_the_figures(void)
{
    put_run("a", "stopped step 25 of 40" AT "\n");
    cvy_run_summary s = {.size = sizeof s};
    EXPECT_OK(cvy_run_summarize(path_of("a"), &s));
    EXPECT_INT(s.state, CVY_RUN_STATE_STOPPED);
    EXPECT_TEXT(s.why, "");
    EXPECT_INT(s.step, 25);
    EXPECT_INT(s.steps, 40);
    EXPECT_NEAR(s.epoch, 2.5, 0);
    EXPECT_NEAR(s.epochs, 4, 0);
    EXPECT_TEXT(s.metric, "val_top_k");
    EXPECT_NEAR(s.best, 0.75, 0);
    EXPECT_NEAR(s.best_epoch, 1, 0);
    EXPECT_NEAR(s.last_loss, 1.6, 0);                /* of the last epoch that has ended, not of the last batch */
    EXPECT_NEAR(s.images_per_s, 1600 / 43.2, 1e-12); /* 1280 / 32 + 320 / 100 s */
    EXPECT_NEAR(s.seconds, 53.2, 1e-12);             /* 30 + 20 + 320 / 100 */
    EXPECT(isnan(s.left_s));
    EXPECT_INT(s.nodes, 2);
    EXPECT_INT(s.ranks, 8);
    EXPECT(s.changed > 1.7e9);
    put("a", "plan.json", old_plan);
    EXPECT_OK(cvy_run_summarize(path_of("a"), &s));
    EXPECT_INT(s.nodes, 4);
    /* without a metric in the job: accuracy, for which more is better; then loss, for which less is */
    put("a", "job.resolved.yaml", "train: {steps: 40}\n");
    EXPECT_OK(cvy_run_summarize(path_of("a"), &s));
    EXPECT_TEXT(s.metric, "val_accuracy");
    EXPECT_NEAR(s.best, 0.625, 0);
    EXPECT_NEAR(s.epochs, 4, 1e-12);
    put("a", "job.resolved.yaml", "checkpoint: {best: loss}\n");
    EXPECT_OK(cvy_run_summarize(path_of("a"), &s));
    EXPECT_TEXT(s.metric, "val_loss");
    EXPECT_NEAR(s.best, 1.75, 0);
    EXPECT_NEAR(s.best_epoch, 2, 0);
}

static void has_the_states(void)
{
    static const struct {
        const char *status;
        cvy_run_state state;
        const char *why;
    } rows[] = {
        {"finished step 40 of 40" AT "\n", CVY_RUN_STATE_FINISHED, ""},
        {"finished step 25 of 40" AT ": early stop: why\n", CVY_RUN_STATE_EARLY_STOP, "early stop: why"},
        {"failed step 25 of 40" AT ": no room\n", CVY_RUN_STATE_FAILED, "no room"},
        {"stopped step 25 of 40" AT, CVY_RUN_STATE_STOPPED, ""},
        {"running step 0 of 40" AT "\n", CVY_RUN_STATE_KILLED, ""}, /* nobody holds the folder */
        {"running", CVY_RUN_STATE_UNKNOWN, "STATUS is damaged"},
        {"", CVY_RUN_STATE_UNKNOWN, "STATUS is damaged"},
        {"running step x of 40" AT "\n", CVY_RUN_STATE_UNKNOWN, "STATUS is damaged"},
        {"walking step 1 of 40" AT "\n", CVY_RUN_STATE_UNKNOWN, "STATUS is damaged"},
    };
    cvy_run_summary s = {.size = sizeof s};
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        put_run("a", rows[i].status);
        put("a", "lock", "");
        EXPECT_OK(cvy_run_summarize(path_of("a"), &s));
        if (s.state != rows[i].state)
            TEST_FAIL("\"%s\" is %s", rows[i].status, cvy_run_state_text(s.state));
        EXPECT_TEXT(s.why, rows[i].why);
    }
    put_run("a", "running step 0 of 50" AT "\n");
    const int fd = open(path_of("a/lock"), O_RDWR);
    EXPECT(fd >= 0 && flock(fd, LOCK_EX) == 0);
    EXPECT_OK(cvy_run_summarize(path_of("a"), &s));
    EXPECT_INT(s.state, CVY_RUN_STATE_RUNNING);
    EXPECT_INT(s.step, 25);             /* of the log, which is newer than STATUS */
    EXPECT_NEAR(s.left_s, 53.2, 1e-12); /* half of the steps are done */
    close(fd);
}

static void passes_over_others(void)
{
    cvy_run_list_result r;
    char long_name[700], *text = NULL;
    put_run("b", "finished step 25 of 25" AT "\n");
    put_run("deep/er/a", "stopped step 25 of 40" AT "\n");
    put_run("b/inner", "finished step 25 of 25" AT "\n"); /* within a run */
    put_run(".hidden/a", "finished step 25 of 25" AT "\n");
    put("foreign", "STATUS", "all is well\n");
    put("foreign", "metrics.jsonl", metrics);
    put("foreign/STATUS-of", "x", "");
    EXPECT_OK(cvy_file_make_folder(path_of("folder/STATUS")));
    put("damaged", "job.resolved.yaml", "train: {epochs: [\n");
    put("damaged", "STATUS", "\xff\xfe");
    put("damaged", "plan.json", "{\"machine\": ");
    put("damaged", "metrics.jsonl", "not json\n{\"kind\": \"step\"}\n");
    EXPECT_OK(cvy_file_make_folder(path_of("odd/job.resolved.yaml")));
    EXPECT_INT(symlink("..", path_of("deep/up")), 0);
    EXPECT_INT(symlink("b", path_of("link")), 0);
    snprintf(long_name, sizeof long_name, "%0200d/%0200d/%0150d", 0, 0, 0);
    put_run(long_name, "finished step 1 of 1" AT "\n");
    EXPECT_OK(cvy_run_list(root, &r));
    EXPECT_INT(r.nruns, 5);
    EXPECT_INT(find(&r, "b")->state, CVY_RUN_STATE_FINISHED);
    EXPECT_INT(find(&r, "link")->state, CVY_RUN_STATE_FINISHED);
    EXPECT_INT(find(&r, "deep/er/a")->state, CVY_RUN_STATE_STOPPED);
    EXPECT_INT(find(&r, "odd")->state, CVY_RUN_STATE_UNKNOWN);
    const cvy_run_summary *damaged = find(&r, "damaged");
    EXPECT_INT(damaged->state, CVY_RUN_STATE_UNKNOWN);
    EXPECT(strstr(damaged->why, "STATUS is damaged") && strstr(damaged->why, "job.resolved.yaml") &&
           strstr(damaged->why, "plan.json"));
    EXPECT_INT(damaged->ranks, 0);
    EXPECT(isnan(damaged->last_loss));
    EXPECT_INT(r.nunreadable, 1);
    EXPECT(strstr(r.unreadable[0], "longer than") != NULL);
    EXPECT_OK(cvy_run_list_result_lines(&r, &text));
    EXPECT(strstr(text, " val_top_k 0.75 (1) ") && strstr(text, "\n    STATUS is damaged; ") &&
           strstr(text, "not readable: "));
    cvy_text_release(&text);
    EXPECT_OK(cvy_run_list_result_json(&r, &text));
    EXPECT(strstr(text, "/deep/er/a\", \"state\": \"stopped\", \"why\": \"\", \"step\": 25, \"steps\": 40,") != NULL);
    cvy_text_release(&text);
    cvy_run_list_result_release(&r);
    EXPECT(r.nruns == 0 && !r.run);
    cvy_run_list_result_release(&r);
}

static void refuses(void)
{
    cvy_run_list_result r;
    cvy_run_summary s = {.size = sizeof s};
    EXPECT_FAULT(cvy_run_list(path_of("nowhere"), &r), CVY_E_IO, "no such folder");
    EXPECT_FAULT(cvy_run_summarize(root, &s), CVY_E_IO, "not the folder of a run");
    s.size = 0;
    EXPECT_FAULT(cvy_run_summarize(root, &s), CVY_E_ARGUMENT, "size");
    put_run("a", "finished step 25 of 25" AT "\n");
    s = (cvy_run_summary){.size = offsetof(cvy_run_summary, epoch), .epoch = -1};
    EXPECT_OK(cvy_run_summarize(path_of("a"), &s));
    EXPECT(s.step == 25 && s.epoch == -1);
}

static void survives_no_memory(void)
{
    cvy_run_list_result r;
    put_run("a", "finished step 25 of 25" AT "\n");
    put_run("sub/b", "finished step 25 of 25" AT "\n");
    EXPECT_SURVIVES_NO_MEMORY(cvy_run_list(root, &r));
    EXPECT_INT(r.nruns, 2);
    cvy_run_list_result_release(&r);
    EXPECT_INT(cvy_memory_bytes(), 0);
}

static cvy_status list_runs(void)
{
    cvy_run_list_result r;
    char *text = NULL;
    CVY_TRY(cvy_run_list(root, &r));
    EXPECT_OK(cvy_run_list_result_json(&r, &text));
    cvy_text_release(&text);
    cvy_run_list_result_release(&r);
    return CVY_OK;
}

static cvy_status read_plan(cvy_pool *pool, const char *text)
{
    (void)pool;
    put("a", "plan.json", text);
    return list_runs();
}

static cvy_status read_job(cvy_pool *pool, const char *text)
{
    (void)pool;
    put("a", "job.resolved.yaml", text);
    return list_runs();
}

/* Puts each kind of value in place of each word of a file that is no YAML: a word begins after `before` and ends at one
 * of `ends`. */
static void confuse_words(const char *file, const char *text, const char *before, const char *ends)
{
    for (const char *at = text; at; at = strstr(at, before)) {
        at += at == text ? 0 : strlen(before);
        for (int i = 0; i < CVY_COUNT(confusion); i++) {
            char other[2048];
            snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, confusion[i], at + strcspn(at, ends));
            put("a", file, other);
            EXPECT_OK(list_runs());
        }
    }
    put("a", file, text);
}

/* Each kind of value in place of each value of the files of a run. */
static void has_values_of_all_kinds(void)
{
    static const char status[] = "stopped step 25 of 40" AT ": why it stopped\n";
    put_run("a", status);
    confuse_words("STATUS", status, " ", " \n");
    confuse_words("metrics.jsonl", metrics, ": ", ",}");
    confuse(plan, read_plan);
    confuse(job, read_job);
}

static void prints_durations(void)
{
    EXPECT_TEXT(cvy_run_duration_text(0.43).at, "0.4 s");
    EXPECT_TEXT(cvy_run_duration_text(59.4).at, "59 s");
    EXPECT_TEXT(cvy_run_duration_text(200).at, "3 min 20 s");
    EXPECT_TEXT(cvy_run_duration_text(3725).at, "1 h 02 min");
    EXPECT_TEXT(cvy_run_duration_text(183600).at, "2 d 03 h");
    EXPECT_TEXT(cvy_run_duration_text(NAN).at, "-");
    EXPECT_TEXT(cvy_run_duration_text(1e300).at, "-");
}

int main(void)
{
    TEST_WITH(begin, has_the_figures, end);
    TEST_WITH(begin, has_the_states, end);
    TEST_WITH(begin, passes_over_others, end);
    TEST_WITH(begin, refuses, end);
    TEST_WITH(begin, survives_no_memory, end);
    TEST_WITH(begin, has_values_of_all_kinds, end);
    TEST(prints_durations);
    return test_end();
}
