/*
 * test_study.c: study files: their cases in order, --quick, and mistakes; the words of commands; commands that
 * print much, fail or take too long; result files that were cut off.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/tree_confusion.h"
#include "study/study_file.h"
#include "test_util.h"

static cvy_pool *pool;
static const cvy_study_paths paths = {.out = "out"};
static char folder[] = "/tmp/test-study-XXXXXX";

static const char study[] = "title: A\n"
                            "experiments:\n"
                            "  a:\n"
                            "    framework: [convoy, other]\n"
                            "    batch: [16, 32]\n"
                            "    model: resnet-50\n"
                            "    repeats: 2\n"
                            "    quick: {batch: 8, repeats: 1}\n"
                            "figures:\n"
                            "- {title: F, of: a, x: batch, lines: framework, panels: [model]}\n";

/* The last axis changes fastest, and the framework faster than all others. */
static void test_cases(void)
{
    static const char *const want[] = {
        "a framework=convoy batch=16 model=resnet-50", "a framework=other batch=16 model=resnet-50",
        "a framework=convoy batch=32 model=resnet-50", "a framework=other batch=32 model=resnet-50"};
    cvy_study_spec spec;
    cvy_case *c = NULL;
    int n = 0;
    EXPECT_OK(cvy_study_read(pool, "s.yaml", study, 0, &spec));
    EXPECT_OK(cvy_study_cases(&spec, &c, &n));
    EXPECT(n == 4);
    for (int i = 0; i < n; i++)
        EXPECT(strcmp(c[i].key, want[i]) == 0);
    EXPECT(spec.experiment[0].repeats == 2 && spec.nfigure == 1 && spec.figure[0].npanels == 1);
    EXPECT(strcmp(cvy_case_value(&c[2], "batch"), "32") == 0 && !cvy_case_value(&c[2], "threads"));
    EXPECT_OK(cvy_study_read(pool, "s.yaml", study, 1, &spec));
    EXPECT_OK(cvy_study_cases(&spec, &c, &n));
    EXPECT(n == 2 && spec.experiment[0].repeats == 1);
    EXPECT(strcmp(c[0].key, "a framework=convoy batch=8 model=resnet-50") == 0);
}

static void test_mistakes(void)
{
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"title: A\n", "experiments"},
        {"title: A\nexperiments: {}\n", "experiments is a map"},
        {"title: A\nexperiments: {a: {bacth: 3}}\n", "there is no axis 'bacth', did you mean 'batch'?"},
        {"title: A\nexperiments: {a: {batch: []}}\n", "batch has no values"},
        {"title: A\nexperiments: {a: {batch: [1, 1]}}\n", "the value 1 twice"},
        {"title: A\nexperiments: {a: {batch: 1, repeats: 0}}\n", "repeats"},
        {"title: A\nexperiments: {a: {batch: 1, quick: {model: x}}}\n", "replaces nothing"},
        {"title: A\nexperimnets: {a: {batch: 1}}\n", "did you mean \"experiments\"?"},
        {"title: A\nexperiments: {a: {batch: 1}}\nfigures: [{title: F, of: b, x: batch}]\n", "no experiment 'b'"},
        {"title: A\nexperiments: {a: {batch: 1}}\nprepare: {../x: [true]}\n",
         "'../x' is not in the folder of the study"},
        {"title: A\nexperiments: {a: {batch: 1}}\nprepare: {/tmp/x: [true]}\n", "'/tmp/x' is not in the folder"},
        {"title: A\nexperiments: {a: {batch: 1}}\nprepare: {a/../../x: [true]}\n", "is not in the folder of the study"},
        {"title: A\nexperiments: {a: {batch: 1}}\njobs: {../x: {model: lenet}}\n", "the name of a job has no slash"},
        {"title: A\nexperiments: {a: {batch: 1}}\nfigures: [{title: F, of: a, x: modle}]\n", "has no axis 'modle'"},
    };
    cvy_study_spec spec;
    for (int i = 0; i < CVY_COUNT(wrong); i++)
        EXPECT_FAULT(cvy_study_read(pool, "s.yaml", wrong[i].text, 0, &spec), CVY_E_CONFIG, wrong[i].message);
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    confuse_file(path, text);
}

/* Values, defaults, the launcher, keys of the job, and variables of the environment. */
static void test_commands(void)
{
    static const char *const want[] = {
        "env",   "OMP_PLACES=cores",   "mpiexec", "-n", "2", "me", "-b", "16", "-m", "train", "x16",
        "--set", "train.accumulate=4", NULL};
    static const char text[] = "title: A\nexperiments: {a: {batch: 16, ranks: 2, train.accumulate: 4, env.OMP_PLACES: "
                               "cores}}\n";
    cvy_study_spec spec;
    cvy_framework f;
    cvy_case *c = NULL;
    const char *const *word = NULL;
    int n = 0;
    unsetenv("CONVOY_MPIEXEC");
    write_file("good.yaml", "command: [\"{launch}\", \"{program}\", -b, \"{batch}\", -m, \"{mode}\", \"x{batch}\"]\n"
                            "set: [--set, \"{key}={value}\"]\nversion: [echo, \"good 1.0\"]\n");
    write_file("plain.yaml", "command: [\"{program}\", \"{batch}\"]\nversion: [sh, -c, \"echo why >&2; exit 1\"]\n");
    EXPECT_OK(cvy_study_read(pool, "s.yaml", text, 0, &spec));
    EXPECT_OK(cvy_study_cases(&spec, &c, &n));
    EXPECT_OK(cvy_framework_open(pool, folder, "me", &paths, "good", NULL, &f));
    EXPECT(f.found && strcmp(f.found, "good 1.0") == 0);
    EXPECT_OK(cvy_case_command(pool, &f, &c[0], 1, &word));
    for (int i = 0; i < CVY_COUNT(want); i++)
        EXPECT(want[i] ? word[i] && strcmp(word[i], want[i]) == 0 : !word[i]);
    EXPECT_OK(cvy_framework_open(pool, folder, "me", &paths, "plain", NULL, &f));
    EXPECT(!f.found && strcmp(f.missing, "why") == 0);
    EXPECT_FAULT(cvy_case_command(pool, &f, &c[0], 1, &word), CVY_E_UNSUPPORTED, "cannot be told ranks, which is 2");
    EXPECT_FAULT(cvy_framework_open(pool, folder, "me", &paths, "goood", NULL, &f), CVY_E_CONFIG, "are good, plain");
}

/* Results name no absolute path of the machine. */
static void test_shown_words(void)
{
    static const char *const given[] = {"cifar=/data/cifar", "near=some/cifar"};
    static const struct {
        const char *word, *shown;
    } words[] = {
        {"/opt/bin/convoy", "convoy"},
        {"/opt/frameworks/train.py", "frameworks/train.py"},
        {"/venv/bin/python3.11", "python3"},
        {"/mpi/bin/mpiexec", "mpiexec"},
        {"/home/me/out/jobs/a.yaml", "jobs/a.yaml"},
        {"data={train: /data/cifar/train, val: /data/cifar/test}", "data={train: ${cifar}/train, val: ${cifar}/test}"},
        {"some/cifar", "some/cifar"},
        {"--json", "--json"},
        {"", ""},
    };
    const cvy_framework f = {.program = "/opt/bin/convoy",
                             .folder = "/opt/frameworks",
                             .paths = {.out = "/home/me/out", .given = given, .ngiven = CVY_COUNT(given)}};
    setenv("CONVOY_MPIEXEC", "/mpi/bin/mpiexec", 1);
    setenv("CONVOY_PYTHON", "/venv/bin/python3.11", 1);
    for (int i = 0; i < CVY_COUNT(words); i++) {
        const char *shown = NULL;
        EXPECT_OK(cvy_case_shown_word(pool, &f, words[i].word, &shown));
        EXPECT(shown && strcmp(shown, words[i].shown) == 0);
    }
    unsetenv("CONVOY_MPIEXEC");
    unsetenv("CONVOY_PYTHON");
}

/* NAME:VARIANT is NAME.yaml with another value of {variant}; a description without one has no variants. */
static void test_variants(void)
{
    static const struct {
        const char *name, *word;
    } good[] = {{"varied", "a"}, {"varied:b-like", "b-like"}, {"varied:some/file.yaml", "some/file.yaml"}};
    cvy_study_spec spec;
    cvy_framework f;
    cvy_case *c = NULL;
    const char *const *word = NULL;
    int n = 0;
    write_file("varied.yaml", "command: [\"{program}\", \"{variant}\"]\nvariant: a\nversion: [echo, 1]\n");
    write_file("same.yaml", "command: [\"{program}\"]\nversion: [echo, 1]\n");
    EXPECT_OK(cvy_study_read(pool, "s.yaml", "title: A\nexperiments: {a: {ranks: 1}}\n", 0, &spec));
    EXPECT_OK(cvy_study_cases(&spec, &c, &n));
    for (int i = 0; i < CVY_COUNT(good); i++) {
        EXPECT_OK(cvy_framework_read(pool, folder, "me", &paths, good[i].name, &f));
        EXPECT_OK(cvy_case_command(pool, &f, &c[0], 1, &word));
        EXPECT(strcmp(f.name, good[i].name) == 0 && strcmp(word[1], good[i].word) == 0 && !word[2]);
    }
    EXPECT_FAULT(cvy_framework_read(pool, folder, "me", &paths, "same:b", &f), CVY_E_CONFIG, "has no variants");
    EXPECT_FAULT(cvy_framework_read(pool, folder, "me", &paths, "vary:b", &f), CVY_E_CONFIG, "no framework 'vary'");
}

/* A framework that has words for a device gets it; one that has none computes on the host, and nowhere else. */
static void test_devices(void)
{
    static const char text[] = "title: A\nexperiments: {a: {device: [host, 'cuda:1']}}\n";
    static const char *const want[][5] = {{"me", "--device", "host", NULL}, {"me", "--device", "cuda:1", NULL}};
    cvy_study_spec spec;
    cvy_framework f;
    cvy_case *c = NULL;
    const char *const *word = NULL;
    int n = 0;
    write_file("anywhere.yaml", "command: [\"{program}\"]\ndevice: [--device, \"{device}\"]\nversion: [echo, 1]\n");
    write_file("on-host.yaml", "command: [\"{program}\"]\nversion: [echo, 1]\n");
    EXPECT_OK(cvy_study_read(pool, "s.yaml", text, 0, &spec));
    EXPECT_OK(cvy_study_cases(&spec, &c, &n));
    EXPECT(n == 2);
    EXPECT_OK(cvy_framework_read(pool, folder, "me", &paths, "anywhere", &f));
    for (int k = 0; k < n; k++) {
        EXPECT_OK(cvy_case_command(pool, &f, &c[k], 1, &word));
        for (int i = 0; want[k][i]; i++)
            EXPECT(word[i] && strcmp(word[i], want[k][i]) == 0);
    }
    EXPECT_OK(cvy_framework_read(pool, folder, "me", &paths, "on-host", &f));
    EXPECT_OK(cvy_case_command(pool, &f, &c[0], 1, &word));
    EXPECT(strcmp(word[0], "me") == 0 && !word[1]);
    EXPECT_FAULT(cvy_case_command(pool, &f, &c[1], 1, &word), CVY_E_UNSUPPORTED,
                 "on-host cannot be told device, which is cuda:1 here");
}

static void test_processes(void)
{
    static const char *const much[] = {"sh", "-c", "yes 0123456789 | head -c 5000000; echo end; echo bad >&2; exit 3",
                                       NULL};
    static const char *const slow[] = {"sh", "-c", "trap '' TERM; sleep 60 & wait", NULL};
    static const char *const none[] = {"/nowhere/program", NULL};
    static volatile int stop = 1;
    cvy_process_result r;
    EXPECT_OK(cvy_process_run(much, 60, NULL, &r));
    EXPECT(r.code == 3 && !r.timed_out && strcmp(r.err, "bad\n") == 0);
    EXPECT(strlen(r.out) > 500000 && strcmp(r.out + strlen(r.out) - 4, "end\n") == 0);
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
    EXPECT_OK(cvy_process_run(none, 60, NULL, &r));
    EXPECT(r.code == 127 && strstr(r.err, "/nowhere/program: "));
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
    EXPECT_OK(cvy_process_run(slow, 0.2, NULL, &r));
    EXPECT(r.timed_out && r.code != 0 && r.seconds < 30);
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
    EXPECT_OK(cvy_process_run((const char *const[]){"sleep", "60", NULL}, 60, &stop, &r));
    EXPECT(r.stopped && r.seconds < 30);
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
}

/* If SIGCHLD is ignored, or no child is to be waited for, nobody learns the exit code: it is not 0 by guess. */
static void test_exit_code_unknown(void)
{
    static const char *const bad[] = {"false", NULL}, *const killed[] = {"sh", "-c", "echo part; kill -9 $$", NULL};
    struct sigaction ignored = {.sa_handler = SIG_IGN}, no_wait = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT},
                     before;
    cvy_process_result r;
    sigaction(SIGCHLD, &ignored, &before);
    EXPECT_FAULT(cvy_process_run(bad, 60, NULL, &r), CVY_E_UNSUPPORTED, "ignores SIGCHLD");
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
    sigaction(SIGCHLD, &no_wait, NULL);
    EXPECT_FAULT(cvy_process_run(killed, 60, NULL, &r), CVY_E_UNSUPPORTED, "cannot be known");
    EXPECT_TEXT(r.out, "part\n");
    sigaction(SIGCHLD, &before, NULL);
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
}

/* Nothing of this program's masks and dispositions is handed down, but what nohup has ignored. */
static void test_signals_of_processes(void)
{
    static const char *const look[] = {"sed", "-n", "s/^Sig\\(Blk\\|Ign\\):.*\\(.....\\)$/\\2/p", "/proc/self/status",
                                       NULL};
    sigset_t set, before;
    cvy_process_result r;
    if (access("/proc/self/status", R_OK) != 0)
        return;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &before);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXCPU, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    EXPECT_OK(cvy_process_run(look, 60, NULL, &r));
    EXPECT_TEXT(r.out, "00000\n00001\n");
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXCPU, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
}

/* A line that a kill has cut off is dropped; any other damage is an error. */
static void test_results(void)
{
    static const char good[] = "{\"key\": \"a b=1\", \"repeat\": 1, \"experiment\": \"a\", \"case\": {\"b\": \"1\"}, "
                               "\"machine\": \"m\", \"result\": {\"images_per_s\": 5}}";
    cvy_study_results r;
    char *path = NULL, *job = NULL, *data = NULL;
    size_t bytes = 0;
    EXPECT_OK(cvy_study_results_read(pool, folder, &r));
    EXPECT(r.n == 0);
    EXPECT_OK(cvy_study_results_path(pool, folder, CVY_STUDY_ALL, 0, &path));
    EXPECT_OK(cvy_study_results_add(path, good));
    EXPECT_OK(cvy_study_results_add(path, good));
    EXPECT_OK(cvy_file_read(path, 1 << 20, &data, &bytes));
    FILE *file = fopen(path, "w");
    EXPECT(file && fwrite(data, 1, bytes - 10, file) == bytes - 10 && fclose(file) == 0);
    cvy_mem_free(&data);
    EXPECT_OK(cvy_study_results_read(pool, folder, &r));
    EXPECT(r.n == 1 && cvy_tree_real_at(r.line[0].result, "images_per_s") == 5);
    EXPECT_OK(cvy_study_results_mend(path));
    EXPECT_OK(cvy_study_results_add(path, good));
    EXPECT_OK(cvy_study_results_path(pool, folder, CVY_STUDY_ALL, 4, &job)); /* each job of a batch system has a file */
    EXPECT(strstr(job, "results-nodes-4.jsonl") != NULL);
    EXPECT_OK(cvy_study_results_add(job, good));
    EXPECT_OK(cvy_study_results_read(pool, folder, &r));
    EXPECT(r.n == 3);
    EXPECT_OK(cvy_study_results_add(path, "{\"key\": 3}"));
    EXPECT_FAULT(cvy_study_results_read(pool, folder, &r), CVY_E_FORMAT, "results.jsonl, line 3");
}

/* Members of a line have kinds. */
static void test_result_kinds(void)
{
    static const struct {
        const char *values, *rest, *message;
    } wrong[] = {
        {"[\"a\"]", "", "results-kinds.jsonl, line 1: \"case\" is a list, expected a map of axes and values"},
        {"\"b=1\"", "", "\"case\" is a single value, expected a map"},
        {"null", "", "\"case\" is a single value, expected a map"},
        {"{\"b\": [1, 2]}", "", "\"case\" has a list for the axis b, expected one value"},
        {"{\"b\": {\"c\": 1}}", "", "\"case\" has a map for the axis b, expected one value"},
        {"{\"b\": 1}", ", \"environment\": [1]", "\"environment\" is a list, expected a map"},
        {"{\"b\": 1}", ", \"result\": [5]", "\"result\" is a list, expected a map"},
    };
    cvy_study_results r;
    char *other = NULL, *line = NULL;
    EXPECT_OK(cvy_pool_printf(pool, &other, "%s/kinds", folder));
    EXPECT_OK(cvy_file_make_folder(other));
    for (int i = 0; i < CVY_COUNT(wrong); i++) {
        EXPECT_OK(cvy_pool_printf(pool, &line,
                                  "{\"key\": \"a\", \"repeat\": 1, \"experiment\": \"a\", \"case\": %s, \"machine\": "
                                  "\"m\", \"error\": \"why\"%s}\n",
                                  wrong[i].values, wrong[i].rest));
        write_file("kinds/results-kinds.jsonl", line);
        EXPECT_FAULT(cvy_study_results_read(pool, other, &r), CVY_E_FORMAT, wrong[i].message);
    }
}

static cvy_status read_study(cvy_pool *own, const char *text)
{
    cvy_study_spec spec;
    cvy_case *c = NULL;
    int n = 0;
    CVY_TRY(cvy_study_read(own, "s.yaml", text, 1, &spec));
    return cvy_study_cases(&spec, &c, &n);
}

static cvy_status read_result(cvy_pool *own, const char *text)
{
    cvy_study_results r;
    char *other = NULL, *line = NULL;
    CVY_TRY(cvy_pool_printf(own, &other, "%s/confused", folder));
    CVY_TRY(cvy_file_make_folder(other));
    CVY_TRY(cvy_pool_printf(own, &line, "%s\n", text));
    write_file("confused/results.jsonl", line);
    CVY_TRY(cvy_study_results_read(own, other, &r));
    for (int i = 0; i < r.n; i++) { /* what pages rely on */
        EXPECT(r.line[i].repeat >= 1);
        for (int k = 0; k < r.line[i].values->count; k++)
            EXPECT(r.line[i].values->key[k] && r.line[i].values->child[k]->kind == CVY_TREE_SCALAR);
    }
    return CVY_OK;
}

static cvy_status read_framework(cvy_pool *own, const char *text)
{
    cvy_framework f;
    char *line = NULL;
    CVY_TRY(cvy_pool_printf(own, &line, "%s\n", text));
    write_file("kinds.yaml", line);
    return cvy_framework_read(own, folder, "me", &paths, "kinds", &f);
}

/* Each kind of value in place of each value of a study, of a result and of a framework. */
static void test_confusion(void)
{
    confuse("{title: A, question: q, experiments: {a: {batch: [1, 2], model: lenet, repeats: 2, quick: {batch: 1}}}, "
            "figures: "
            "[{title: F, of: a, x: batch, lines: model}], jobs: {j: {model: lenet}}, prepare: {x: [a, b]}}",
            read_study);
    confuse("{\"key\": \"a\", \"repeat\": 1, \"experiment\": \"a\", \"case\": {\"b\": \"1\"}, \"machine\": \"m\", "
            "\"environment\": "
            "{\"cpu\": \"c\", \"cores\": 2}, \"result\": {\"images_per_s\": 5, \"curve\": {\"loss\": [1, 2]}}}",
            read_result);
    confuse("{summary: s, install: i, command: [c, \"{batch}\"], set: [a], arg: [b], ignores: [c], version: [c, "
            "--version], "
            "predicted: false, exact: true, cores: true, most_ranks: 4}",
            read_framework);
}

int main(void)
{
    EXPECT(mkdtemp(folder) != NULL);
    EXPECT_OK(cvy_pool_create(&pool));
    TEST(test_cases);
    TEST(test_mistakes);
    TEST(test_commands);
    TEST(test_shown_words);
    TEST(test_variants);
    TEST(test_devices);
    TEST(test_processes);
    TEST(test_exit_code_unknown);
    TEST(test_signals_of_processes);
    TEST(test_results);
    TEST(test_result_kinds);
    TEST(test_confusion);
    cvy_pool_destroy(&pool);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
