/* cmd_time.c: `convoy time`: where a step's time goes, a row for each layer. */
#include <string.h>

#include "cmd.h"

/* A word with a dot or a slash is a job file; another one is a network of the zoo. */
static int is_file(const char *word)
{
    return strpbrk(word, "./") != NULL;
}

static int time_layers(const cmd_line *line, cvy_context *context)
{
    const int file = is_file(line->arg[0]);
    const cvy_job_source job = cmd_job(line, file ? line->arg[0] : NULL, NULL);
    const cvy_bench_opts opts = {
        .size = sizeof opts, .job = file ? &job : NULL, .model = file ? NULL : line->arg[0], .model_options = line->model_options, .input = line->input,
        .classes = line->classes, .batch = line->batch[0], .forward = line->mode && strcmp(line->mode, "forward") == 0, .dtype = line->dtype,
        .steps = line->steps, .warmup = line->warmup, .kernels = line->kernels, .passes_off = line->passes_off, .trace = line->trace,
        .planning = line->planning,
    };
    char *text = NULL;
    const cvy_status status = cvy_run_time(context, &opts, line->json ? "json" : "table", &text);
    return cmd_print(status, &text);
}

static int run(const cmd_line *line)
{
    if (line->nset && !is_file(line->arg[0])) {
        cmd_error("--set overrides keys of a job file: give one; --options sets a network's own");
        return CMD_EXIT_USAGE;
    }
    if (line->nbatch > 1) {
        cmd_error("--batch lists %d batches, expected one; `convoy bench` takes lists", line->nbatch);
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, time_layers);
}

static const cmd_option options[] = {
    {"--options", "TEXT", CMD_TEXT, CMD_FIELD(model_options), "the network's own options, such as 'filters: 64'"},
    {"--input", "C,H,W", CMD_SHAPE, CMD_FIELD(input), "shape of a sample; the network's or the job's own if not given"},
    {"--classes", "K", CMD_NUMBER, CMD_FIELD(classes), "number of outputs"},
    {"--batch", "N", CMD_BATCHES, 0, "global batch, split over the ranks"},
    {"--mode", "train|forward", CMD_CHOICE, CMD_FIELD(mode), "whole training steps, or evaluation only"},
    {"--dtype", "f32|f64", CMD_DTYPE, CMD_FIELD(dtype), "type of weights and activations"},
    {"--steps", "N", CMD_NUMBER, CMD_FIELD(steps), "timed steps; as many as take 5 s, at least 5, if not given"},
    {"--warmup", "N", CMD_NUMBER, CMD_FIELD(warmup), "steps before them; 2 if not given"},
    {"--kernels", "auto|reference|native|onednn|direct", CMD_CHOICE, CMD_FIELD(kernels), "which kernels may be used"},
    {"--passes-off", "LIST", CMD_TEXT, CMD_FIELD(passes_off), "optimising passes to leave out, such as fuse-relu; or all"},
    {"--planning", CMD_PLANNING_WORDS, CMD_CHOICE, CMD_FIELD(planning), CMD_PLANNING_HELP},
    {"--trace", "FILE", CMD_TEXT, CMD_FIELD(trace), "writes the last step of all ranks for chrome://tracing or Perfetto"},
    CMD_OPTION_SET,
    CMD_OPTION_JSON("prints one JSON object: the layers, the totals, and each instruction of the plan"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_time = {
    .name = "time", .arguments = "MODEL | JOB.yaml [--batch N] [--mode train|forward] [--trace FILE] [--json]",
    .summary = "shows where a step's time goes, layer by layer",
    .detail = "A row for each layer: forward, backward to the source, backward to the weights and update, in ms (medians over the steps, rank 0), its share of\n"
              "the step, GFLOP/s without the update, megabytes read and written, and the kernels. A layer that was fused into another has no forward of its\n"
              "own. Rows called `reorder` only move data between layouts. The totals add up layers by operator.",
    .options = options, .narg_min = 1, .narg_max = 1, .run = run,
};
