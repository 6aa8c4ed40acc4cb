/*
 * cmd_train.c: `convoy train`. Signals or the end of the allocation end it after a step with everything saved; the exit
 * code then is 75.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <time.h>

#include "cmd_lab.h"

typedef struct verb_options {
    const char *out, *plan_file, *walltime, *on_signal, *progress, *solver, *weights, *snapshot, *profile;
    int resume, json;
    cmd_sets sets;
    cmd_ranks ranks;
} verb_options;

struct training {
    cmd_sets sets; /* those of the profile, then those of the command line, which win */
    cmd_ranks ranks;
    int profile_ranks; /* of a node; 0: there is no profile */
    cvy_train_control *control;
    double end_time;
    const char *end_source;
    cmd_progress progress;
};

static void print_end(cvy_status status, const cvy_train_result *r)
{
    const int has_page = cmd_page_write(r->out, "no report");
    cmd_say("%s after %lld steps, %.1f s", status == CVY_STOPPED ? "stopped" : "done", (long long)r->steps, r->seconds);
    if (isfinite(r->train_loss))
        cmd_say("; train loss %.4g", r->train_loss);
    if (isfinite(r->val_loss))
        cmd_say("; validation loss %.4g", r->val_loss);
    if (status == CVY_STOPPED) {
        cmd_say("\nall is saved in %s; continue with: convoy train ... --out ", r->out);
        cmd_put_word(stdout, r->out);
        cmd_say(" --resume\n");
    } else {
        cmd_say("\nthe run is in %s: %s`convoy test ", r->out, has_page ? "report.html shows it; " : "");
        cmd_put_word(stdout, r->out);
        cmd_say("%s` scores it\n", r->has_test ? "" : " --data DATA");
    }
}

static void check_ranks(const struct training *t, const verb_options *o, const cvy_context *context)
{
    const int n = cvy_context_nranks(context);
    if (t->profile_ranks && n % t->profile_ranks != 0 && cvy_context_rank(context) == 0)
        cmd_note("convoy: warning: %s is for %d ranks on each node, and this training has %d: start it with "
                 "mpiexec -n %d\n",
                 o->profile, t->profile_ranks, n, t->profile_ranks);
}

static int train(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    struct training *t = user;
    cvy_job_source job = cmd_job(&t->sets, line->narg ? line->arg[0] : NULL, cmd_default_job);
    const cvy_train_opts opts = {.size = sizeof opts,
                                 .out = o->out,
                                 .resume = o->resume,
                                 .plan_file = o->plan_file,
                                 .control = t->control,
                                 .end_time = t->end_time,
                                 .end_source = t->end_source,
                                 .progress = cmd_progress_show,
                                 .user = &t->progress};
    if (o->solver)
        job.caffe = o->solver;
    job.caffe_weights = o->weights;
    job.caffe_state = o->snapshot;
    cvy_train_result result = {.size = sizeof result, .train_loss = NAN, .val_loss = NAN};
    check_ranks(t, o, context);
    const cvy_status status = cvy_run_train(context, &job, &opts, &result);
    cmd_progress_end(&t->progress);
    if (status >= 0 && cvy_context_rank(context) == 0)
        print_end(status, &result);
    if (o->json && status == CVY_OK && cvy_context_rank(context) == 0)
        return cmd_page_json(result.out);
    /* an allocation that is too short for a step would be asked for again and again */
    if (status == CVY_STOPPED && o->resume && result.new_steps == 0) {
        if (cvy_context_rank(context) == 0)
            cmd_error(
                "the run stopped before its first step after --resume, so running it again in the same way would not "
                "continue it either: it needs more time before its end%s%s%s, or before the signal that stops it",
                t->end_source ? " (" : "", t->end_source ? t->end_source : "", t->end_source ? ")" : "");
        return CMD_EXIT_FAULT;
    }
    return cmd_outcome(status);
}

/* What the command line says counts more than the profile. */
static int take_profile(struct training *t, const verb_options *o)
{
    int threads = 0;
    int code = o->profile ? cmd_profile_read(o->profile, &t->sets, &t->profile_ranks, &threads) : 0;
    for (int i = 0; i < o->sets.count && !code; i++)
        code = cmd_sets_add(&t->sets, o->sets.word[i]);
    t->ranks = o->ranks;
    if (t->ranks.threads == 0)
        t->ranks.threads = threads;
    return code;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    struct training t = {.progress = cmd_progress_begin(o->progress)};
    if (o->solver && line->narg) {
        cmd_error("--solver %s and the job %s: give one of them", o->solver, line->arg[0]);
        return CMD_EXIT_USAGE;
    }
    if ((o->weights || o->snapshot) && !o->solver) {
        cmd_error("--weights and --snapshot go with --solver; a job names its weights as train.init");
        return CMD_EXIT_USAGE;
    }
    if (o->resume && !o->out) {
        cmd_error("--resume needs --out: the folder of the run to continue");
        return CMD_EXIT_USAGE;
    }
    int code = take_profile(&t, o);
    code = code ? code : cmd_end_time(o->walltime, (double)time(NULL), &t.end_time, &t.end_source);
    if (!code)
        code = cmd_listen(o->on_signal, &t.control); /* before MPI_Init: a signal may come at any time */
    return code ? code : cmd_on_ranks(line, &t.ranks, train, &t);
}

static const cmd_option options[] = {
    CMD_OPTION_SET,
    CMD_OPTION_DEVICE,
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out),
     "the run folder; runs/<job>-NNN with the next free number if not given"},
    {"--resume", NULL, CMD_FLAG, CMD_FIELD(resume), "continues in --out from its newest valid checkpoint"},
    {"--solver", "FILE", CMD_TEXT, CMD_FIELD(solver),
     "trains what this solver of Caffe (.prototxt) describes, instead of a job file"},
    {"--weights", "FILE", CMD_TEXT, CMD_FIELD(weights), "with --solver: begins with the weights of this caffemodel"},
    {"--snapshot", "FILE", CMD_TEXT, CMD_FIELD(snapshot),
     "with --solver: continues from this solverstate of Caffe, and its caffemodel if --weights is not given"},
    {"--plan", "FILE", CMD_TEXT, CMD_FIELD(plan_file), "takes the kernels from this plan.json"},
    {"--profile", "FILE", CMD_TEXT, CMD_FIELD(profile),
     "takes threads, batch and keys that `convoy tune` has found, where the command line says nothing else"},
    CMD_OPTION_JSON("after the training, a line with a JSON object: what the run has reached, and its curves"),
    {"--walltime", "TIME", CMD_TEXT, CMD_FIELD(walltime),
     "the allocation lasts this long from now: minutes, HH:MM:SS or D-HH:MM:SS; CONVOY_JOB_END or the scheduler's "
     "variables if not given"},
    {"--on-signal", "NAME=ACTION,...", CMD_TEXT, CMD_FIELD(on_signal),
     "what a signal does: stop (save and end, exit code 75), save (and continue), leave (stop, but without the other "
     "ranks if they do not answer), ignore; "
     "USR1=stop,XCPU=stop,INT=stop,TERM=leave,PWR=leave,USR2=save,HUP=save if not given"},
    {"--progress", "auto|live|plain|none", CMD_CHOICE, CMD_FIELD(progress),
     "one live line, or a plain line every 30 s; auto: live on a terminal"},
    CMD_OPTION_PLANNING,
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_train = {
    .name = "train",
    .arguments = "[JOB.yaml | --solver SOLVER.prototxt] [--set KEY=VALUE]... [--out FOLDER] [--resume]",
    .summary = "trains what a job file describes, into a run folder",
    .detail = "Without a job file it trains the built-in example: HEP-CNN on generated collider events. `convoy keys` "
              "lists the keys of a job file.\n"
              "SIGTERM, SIGUSR1, SIGXCPU, Ctrl-C or the end of the allocation end the run after the current step with "
              "everything saved (exit code 75); --resume then continues as if nothing had happened. SIGUSR2 and SIGHUP "
              "save, and the run continues.",
    .options = options,
    .options_size = sizeof(verb_options),
    .idle_cores = CMD_WARN_IF_ALONE, /* on several ranks the run checks this itself */
    .wants_launcher = 1,
    .narg_max = 1,
    .run = run,
};
