/* cmd_predict.c: `convoy predict`: writes the network's output for each sample, in the order of the data. */
#include "cmd.h"

typedef struct verb_options {
    const char *data, *out, *job;
    cmd_sets sets;
    cmd_ranks ranks;
} verb_options;

static int predict(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    (void)user;
    const cvy_job_source job = cmd_job(&o->sets, o->job, NULL);
    const cvy_status status = cvy_run_predict(context, line->arg[0], o->job ? &job : NULL, o->data, o->out);
    if (status == CVY_OK && cvy_context_rank(context) == 0)
        printf("predictions are in %s\n", o->out);
    return cmd_outcome(status);
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    if (!o->data || !o->out || (o->sets.count && !o->job)) {
        cmd_error(o->data && o->out ? "--set overrides keys of a job file: give --job too"
                                    : "--data SOURCE and --out FILE.npy or FILE.csv are needed");
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, &o->ranks, predict, NULL);
}

static const cmd_option options[] = {
    {"--data", "SOURCE", CMD_TEXT, CMD_FIELD(data), "a path, or a map {path: ..., format: ...}; labels are not needed"},
    {"--out", "FILE", CMD_TEXT, CMD_FIELD(out),
     "FILE.npy ([N, K] f32) or FILE.csv, a row for each sample in the order of the data"},
    {"--job", "JOB.yaml", CMD_TEXT, CMD_FIELD(job), "the job that the weights belong to; a run folder has its own"},
    CMD_OPTION_SET,
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_predict = {
    .name = "predict",
    .arguments = "RUN|WEIGHTS.safetensors --data SOURCE --out FILE.npy|FILE.csv",
    .summary = "writes a trained network's output for each sample",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
