/* cmd_bench.c: `convoy bench`: times training or forward steps on made-up data. */
#include <string.h>

#include "cmd.h"

static int bench(const cmd_line *line, cvy_context *context)
{
    const cvy_job_source job = cmd_job(line, line->narg ? line->arg[0] : NULL, NULL);
    const cvy_bench_opts opts = {
        .size = sizeof opts, .job = line->narg ? &job : NULL, .model = line->model, .model_options = line->model_options, .input = line->input,
        .classes = line->classes, .batch = line->batch, .forward = line->mode && strcmp(line->mode, "forward") == 0, .dtype = line->dtype,
        .steps = line->steps, .warmup = line->warmup, .kernels = line->kernels, .passes_off = line->passes_off, .trace = line->trace,
        .per_node = line->nodes,
    };
    char *json = NULL;
    const cvy_status status = cvy_run_bench(context, &opts, &json);
    if (line->json || status != CVY_OK)
        return cmd_print(status, &json);
    if (json)
        cmd_print_json(json);
    cvy_text_release(&json);
    return 0;
}

static int run(const cmd_line *line)
{
    if (!line->model == !line->narg) {
        cmd_error("give a job file, or --model with a network of the zoo (`convoy models` lists them)");
        return CMD_EXIT_USAGE;
    }
    if (line->nset && !line->narg) {
        cmd_error("--set overrides keys of a job file: give one; --options sets a network's own");
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, bench);
}

static const cmd_option options[] = {
    {"--model", "NAME", CMD_TEXT, CMD_FIELD(model), "a network of the zoo, in place of a job file"},
    {"--options", "TEXT", CMD_TEXT, CMD_FIELD(model_options), "the network's own options, such as 'filters: 64'"},
    {"--input", "C,H,W", CMD_SHAPE, CMD_FIELD(input), "shape of a sample; the network's or the job's own if not given"},
    {"--classes", "K", CMD_NUMBER, CMD_FIELD(classes), "number of outputs"},
    {"--batch", "N", CMD_NUMBER, CMD_FIELD(batch), "global batch, split over the ranks"},
    {"--mode", "train|forward", CMD_CHOICE, CMD_FIELD(mode), "whole training steps, or evaluation only"},
    {"--dtype", "f32|f64", CMD_DTYPE, CMD_FIELD(dtype), "type of weights and activations"},
    {"--steps", "N", CMD_NUMBER, CMD_FIELD(steps), "timed steps; as many as take 5 s, at least 5, if not given"},
    {"--warmup", "N", CMD_NUMBER, CMD_FIELD(warmup), "steps before them; 2 if not given"},
    {"--kernels", "auto|reference|native|onednn", CMD_CHOICE, CMD_FIELD(kernels), "which kernels may be used"},
    {"--passes-off", "LIST", CMD_TEXT, CMD_FIELD(passes_off), "optimising passes to leave out: fuse-relu, in-place, memory-reuse, overlap, or all"},
    {"--nodes", NULL, CMD_FLAG, CMD_FIELD(nodes), "also the time of each instruction of the plan, on rank 0"},
    {"--trace", "FILE", CMD_TEXT, CMD_FIELD(trace), "writes the last step of all ranks for chrome://tracing or Perfetto"},
    CMD_OPTION_SET,
    CMD_OPTION_JSON("prints one JSON object in one line"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_bench = {
    .name = "bench", .arguments = "JOB.yaml | --model NAME [--batch N] [--mode train|forward] [--json]",
    .summary = "times training or forward steps on made-up data",
    .detail = "The plan and the executor are those of `convoy train`; a step includes all gradients, the sums over ranks and the update.\n"
              "images_per_s counts the global batch, over all timed steps; a step takes as long as its slowest rank.",
    .options = options, .narg_max = 1, .run = run,
};
