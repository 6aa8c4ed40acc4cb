/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_time.c: `convoy time`: shows where the time of a step goes, with one row per layer. */
#include "cmd_step.h"
#include "measure/measure.h"

typedef struct verb_options {
    cmd_step step;
    const char *net;
    cmd_sets sets;
    int json, limit;
    cmd_ranks ranks;
} verb_options;

static int time_layers(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    const char *word = o->net ? o->net : line->arg[0];
    /* an ONNX file is named like a network of the zoo */
    const int file = o->net || (cmd_is_file(word) && !cmd_ends_with(word, ".onnx"));
    cvy_job_source job = cmd_job(&o->sets, file ? word : NULL, NULL);
    if (o->net)
        job.caffe = o->net;
    cmd_step_job(&o->step, &job);
    const cvy_bench_opts opts =
        cmd_step_opts(&o->step, &o->sets, file ? &job : NULL, file ? NULL : word, o->step.batches.at[0]);
    char *text = NULL;
    (void)user;
    const cvy_status status = cvy_run_time(context, &opts, o->json ? "json" : o->limit ? "limit" : "table", &text);
    return cmd_print(status, &text);
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    if (!o->net == !line->narg) {
        cmd_error("name one network: MODEL, NET.onnx, JOB.yaml or --net NET.prototxt");
        return CMD_EXIT_USAGE;
    }
    if (o->step.batches.count > 1) {
        cmd_error("--batch lists %d batches, expected one; `convoy bench` takes lists", o->step.batches.count);
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, &o->ranks, time_layers, NULL);
}

static const cmd_option options[] = {
    CMD_OPTIONS_STEP("N", "global batch, split over the ranks"),
    {"--net", "FILE", CMD_TEXT, CMD_FIELD(net), "times this network of Caffe (.prototxt), or the one of a solver"},
    {"--limit", NULL, CMD_FLAG, CMD_FIELD(limit),
     "only the least time that this machine allows for the step, the share of it that is reached, and what is furthest "
     "from it"},
    CMD_OPTION_SET,
    CMD_OPTION_DEVICE,
    CMD_OPTION_JSON("prints one JSON object: the layers, the totals, and each instruction of the plan"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_time = {
    .name = "time",
    .arguments = "MODEL | NET.onnx | JOB.yaml | --net NET.prototxt [--batch N] [--mode MODE] [--trace FILE] [--json]",
    .summary = "shows where a step's time goes, layer by layer",
    .detail = "A row for each layer: forward, backward to the source, backward to the weights, and update, in ms "
              "(medians over the steps, rank 0); its share of the step; GFLOP/s without the update; megabytes read and "
              "written; and the kernels.\n"
              "A layer that was fused into another one has no forward time of its own. Rows called `reorder` only move "
              "data between memory formats. The totals add up layers by operator.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 0,
    .narg_max = 1,
    .run = run,
};
