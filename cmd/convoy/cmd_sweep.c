/*
 * cmd_sweep.c: `convoy sweep`: a hyperparameter search over many trainings in one mpiexec. Signals and the end of the
 * allocation are handled as by `convoy train`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <time.h>

#include "cmd.h"
#include "report/report.h"
#include "sweep/sweep.h"

enum { ROWS = 20 }; /* of the ranking on the terminal */

typedef struct verb_options {
    const char *out, *walltime, *on_signal;
    int resume, retry, quiet;
    cmd_sets sets;
    cmd_ranks ranks;
} verb_options;

struct sweep {
    cvy_train_control *control;
    double end_time;
    const char *end_source;
};

static void show_line(void *user, const char *line)
{
    const verb_options *o = user;
    if (o->quiet)
        return;
    cmd_say("%s\n", line);
    fflush(stdout);
}

/* How to go on, in the same words as the search was begun with. */
static void print_next(const cmd_line *line, const char *option)
{
    const verb_options *o = line->options;
    cmd_say("convoy sweep ");
    cmd_put_word(stdout, line->arg[0]);
    cmd_say(" --out ");
    cmd_put_word(stdout, o->out);
    for (int i = 0; i < o->sets.count; i++) {
        cmd_say(" --set ");
        cmd_put_word(stdout, o->sets.word[i]);
    }
    cmd_say(" %s\n", option);
}

static void print_end(const cmd_line *line, cvy_status status, const cvy_sweep_result *r)
{
    const verb_options *o = line->options;
    char *table = NULL;
    if (cvy_sweep_table(o->out, ROWS, &table) == CVY_OK)
        cmd_say("\n%s\n", table);
    else
        cmd_note("convoy: warning: no table: %s\n", cvy_error_text());
    cvy_text_release(&table);
    if (cvy_report_sweep(o->out) != CVY_OK)
        cmd_note("convoy: warning: no page: %s\n", cvy_error_text());
    cmd_say("%s: %lld of %lld trials have a score, %lld failed\n", status == CVY_STOPPED ? "stopped" : "done",
            (long long)r->scored, (long long)r->trials, (long long)r->failed);
    if (r->best && status != CVY_STOPPED)
        cmd_say("the best is trial %lld: %s/best.yaml is its job, %s/trial-%04lld its run; %s/sweep.html shows all\n",
                (long long)r->best, o->out, o->out, (long long)r->best, o->out);
    else if (status != CVY_STOPPED)
        cmd_note("convoy: warning: no trial has a finite score, so none is the best\n");
    if (status == CVY_STOPPED) {
        cmd_say("all is saved in %s; continue with: ", o->out);
        print_next(line, "--resume");
    }
    if (r->failed) {
        cmd_say("%s/sweep.json has the errors; try failed trials again with: ", o->out);
        print_next(line, "--retry");
    }
}

static int sweep(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    const struct sweep *s = user;
    const cvy_sweep_opts opts = {.size = sizeof opts,
                                 .out = o->out,
                                 .resume = o->resume,
                                 .retry = o->retry,
                                 .sets = o->sets.word,
                                 .nsets = o->sets.count,
                                 .control = s->control,
                                 .end_time = s->end_time,
                                 .end_source = s->end_source,
                                 .line = show_line,
                                 .user = (void *)(uintptr_t)o};
    cvy_sweep_result result = {.size = sizeof result};
    const cvy_status status = cvy_run_sweep(context, line->arg[0], &opts, &result);
    if (status >= 0 && cvy_context_rank(context) == 0)
        print_end(line, status, &result);
    const int code = cmd_outcome(status);
    return code || result.scored ? code : CMD_EXIT_FAULT;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    struct sweep s = {0};
    if (!o->out) {
        cmd_error("convoy sweep needs --out: the folder for its trials");
        return CMD_EXIT_USAGE;
    }
    int code = cmd_end_time(o->walltime, (double)time(NULL), &s.end_time, &s.end_source);
    if (!code)
        code = cmd_listen(o->on_signal, &s.control); /* before MPI_Init: a signal may come at any time */
    return code ? code : cmd_on_ranks(line, &o->ranks, sweep, &s);
}

static const cmd_option options[] = {
    CMD_OPTION_SET,
    CMD_OPTION_DEVICE,
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out), "the folder of the search: each trial is a run folder in it"},
    {"--resume", NULL, CMD_FLAG, CMD_FIELD(resume), "continues the search in --out"},
    {"--retry", NULL, CMD_FLAG, CMD_FIELD(retry), "as --resume, and trains failed trials again"},
    {"--quiet", NULL, CMD_FLAG, CMD_FIELD(quiet), "prints no line for each trial, only the ranking"},
    {"--walltime", "TIME", CMD_TEXT, CMD_FIELD(walltime),
     "the allocation lasts this long from now: minutes, HH:MM:SS or D-HH:MM:SS; CONVOY_JOB_END or the scheduler's "
     "variables if not given"},
    {"--on-signal", "NAME=ACTION,...", CMD_TEXT, CMD_FIELD(on_signal),
     "what a signal does, as of convoy train: stop, save, leave or ignore"},
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_sweep = {
    .name = "sweep",
    .arguments = "SWEEP.yaml --out FOLDER [--resume | --retry] [--set KEY=VALUE]...",
    .summary = "searches the best values of a job's keys: many trainings in one mpiexec",
    .detail =
        "A sweep file names a job, values or ranges of its keys, and a score of the validation data. The ranks are "
        "split into groups, which train one trial after the other: all combinations (grid), random or Sobol points, "
        "successive halving, hyperband, or population-based training.\n"
        "After any end, --resume continues: finished trials are kept, and an unfinished one goes on from its "
        "checkpoint; --retry also trains failed ones again. Signals and the end of the allocation save all trials "
        "(exit "
        "code 75).",
    .options = options,
    .options_size = sizeof(verb_options),
    .idle_cores = CMD_WARN_IF_ALONE,
    .wants_launcher = 1,
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
