/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_selftest.c: `convoy selftest`: whether the installed copy works on the ranks, processors, network and files of
 * this job. */
#include <stdlib.h>
#include <unistd.h>

#include "cmd.h"
#include "health/health.h"

typedef struct verb_options {
    const char *out, *only;
    int64_t nranks, seconds, limit;
    int json;
    cmd_ranks ranks;
} verb_options;

static void print_line(void *user, const char *line)
{
    (void)user;
    cmd_say("%s\n", line);
    fflush(stdout); /* a later check may hang */
}

static int print_end(const verb_options *o, const cvy_selftest_result *result)
{
    char *text = NULL;
    if (o->json)
        return cmd_print(cvy_selftest_result_json(result, &text), &text);
    cmd_say("selftest: %d check%s passed, %d failed, %d skipped, %.0f s\n", result->passed,
            result->passed == 1 ? "" : "s", result->failed, result->skipped, result->seconds);
    return 0;
}

static int selftest(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    const cvy_selftest_opts opts = {.size = sizeof opts,
                                    .out = o->out,
                                    .ranks = o->nranks,
                                    .only = o->only,
                                    .kernel_s = (double)o->seconds,
                                    .limit_s = (double)o->limit,
                                    .control = user,
                                    .line = o->json ? NULL : print_line};
    cvy_selftest_result result;
    const cvy_status status = cvy_run_selftest(context, &opts, &result);
    alarm(0); /* the check of signals has set off the timer of SIGTERM */
    int code = cmd_outcome(status);
    if (status == CVY_STOPPED && cvy_context_rank(context) == 0)
        cmd_note("convoy: the self-test was stopped by a signal\n");
    if (status == CVY_OK && cvy_context_rank(context) == 0)
        code = print_end(o, &result);
    if (code == 0 && result.failed)
        code = CMD_EXIT_FAULT;
    cvy_selftest_result_release(&result);
    return code;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    cvy_train_control *control = NULL;
    const int code = cmd_listen(NULL, &control);
    return code ? code : cmd_on_ranks(line, &o->ranks, selftest, control);
}

static const cmd_option options[] = {
    {"--ranks", "N", CMD_NUMBER, CMD_FIELD(nranks),
     "fails if the launcher has not started exactly N ranks, as with the mpiexec of another MPI"},
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out),
     "where files are tried: the folder of future runs, or the nearest one above it that exists; the current one "
     "if not given"},
    {"--only", "CHECK,...", CMD_TEXT, CMD_FIELD(only), "runs only these checks"},
    {"--seconds", "S", CMD_NUMBER, CMD_FIELD(seconds),
     "for the comparison of kernels, the longest check, at most; 20 if not given"},
    {"--limit", "S", CMD_NUMBER, CMD_FIELD(limit),
     "a check that takes longer hangs, and the job is ended; 60 if not given"},
    CMD_OPTION_JSON("prints one JSON object at the end, in place of lines"),
    CMD_OPTION_CONTEXT_DEVICE,
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_selftest = {
    .name = "selftest",
    .arguments = "[--ranks N] [--out FOLDER] [--only CHECK,...] [--json]",
    .summary = "checks that the installed copy works here: kernels, sums, training, files, signals",
    .detail =
        "Start it in a job, as a training would be started: mpiexec -n N convoy selftest --ranks N, or srun. It needs "
        "no "
        "files and takes about half a minute. It prints a line for each check: ok, FAILED with what to do, or skipped "
        "with the reason. The exit code is 0 if no check failed. With --device the kernels of that device are compared "
        "with the "
        "reference kernels, and the losses of a training with those of the host.\n"
        "Checks: ranks, versions, system, clocks, kernels, node-memory, reductions, groups, training, deterministic, "
        "updates, files, checkpoint, data, signals.",
    .options = options,
    .options_size = sizeof(verb_options),
    .idle_cores = CMD_WARN_NEVER,
    .wants_launcher = 1,
    .run = run,
};
