/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_export.c: `convoy export`: writes a trained network to one file, for other programs: its weights as safetensors,
 * the whole network as ONNX, or its weights as a caffemodel. */
#include <string.h>

#include "cmd.h"
#include "files/files.h"

typedef struct verb_options {
    const char *checkpoint, *outputs, *job, *net;
    int64_t opset;
    int force, float_input;
    cmd_sets sets;
} verb_options;

static void warn(const char *notes)
{
    for (const char *note = notes, *end; note && (end = strchr(note, '\n')) != NULL; note = end + 1)
        cmd_note("convoy: warning: %.*s\n", (int)(end - note), note);
}

/* ---- safetensors ---- */

static cvy_status export_weights(const cmd_line *line)
{
    const verb_options *o = line->options;
    int64_t step = 0;
    char *notes = NULL;
    const cvy_status status = cvy_run_export(line->arg[0], o->checkpoint, line->arg[1], o->force, &step, &notes);
    if (status == CVY_OK) {
        warn(notes);
        cmd_say("%s has the weights of step %lld\n", line->arg[1], (long long)step);
    }
    cvy_text_release(&notes);
    return status;
}

/* ---- ONNX, and caffemodels ---- */

static cvy_status report(const char *file, const cvy_network *network)
{
    cvy_network_about about = cvy_network_about_default();
    const cvy_status status = cvy_network_describe(network, &about);
    if (status == CVY_OK && about.step >= 0)
        cmd_say("%s has the network of step %lld\n", file, (long long)about.step);
    else if (status == CVY_OK)
        cmd_say("%s has the network\n", file);
    return status;
}

static cvy_status export_network(const cmd_line *line)
{
    const verb_options *o = line->options;
    const cvy_job_source job = cmd_job(&o->sets, o->job, NULL);
    cvy_network_opts opts = cvy_network_opts_default();
    cvy_network_export_opts how = cvy_network_export_opts_default();
    cvy_context *context = NULL;
    cvy_network *network = NULL;
    char *notes = NULL;
    opts.checkpoint = o->checkpoint;
    opts.outputs = o->outputs;
    opts.job = o->job ? &job : NULL;
    opts.batch = 1;
    how.opset = o->opset;
    how.float_input = o->float_input;
    how.replace = o->force;
    how.net = o->net;
    cvy_status status = cvy_context_create(NULL, &context);
    if (status == CVY_OK)
        status = cvy_network_open(context, line->arg[0], &opts, &network);
    if (status == CVY_OK)
        status = cvy_network_export(network, line->arg[1], &how, &notes);
    if (status == CVY_OK) {
        warn(notes);
        status = report(line->arg[1], network);
    }
    cvy_text_release(&notes);
    cvy_network_destroy(&network);
    cvy_context_destroy(&context);
    return status;
}

/* Returns 0, or the exit code after it has printed a message. */
static int check(const cmd_line *line)
{
    const verb_options *o = line->options;
    const int is_weights = cmd_ends_with(line->arg[1], ".safetensors");
    const int is_onnx = cmd_ends_with(line->arg[1], ".onnx"), is_caffe = cmd_ends_with(line->arg[1], ".caffemodel");
    if (!is_weights && !is_onnx && !is_caffe) {
        cmd_error(
            "%s: a network is written as FILE.safetensors (its weights), FILE.onnx (all of it) or FILE.caffemodel: "
            "give the file one of these endings",
            line->arg[1]);
        return CMD_EXIT_USAGE;
    }
    if (is_caffe != (o->net != NULL)) {
        cmd_error("FILE.caffemodel needs --net NET.prototxt, and nothing else does");
        return CMD_EXIT_USAGE;
    }
    if (!is_onnx && (o->opset || o->float_input || (!is_caffe && (o->outputs || o->job)))) {
        cmd_error("--opset and --float-input are for a FILE.onnx, --outputs and --job for it or a FILE.caffemodel");
        return CMD_EXIT_USAGE;
    }
    if (o->sets.count && !o->job) {
        cmd_error("--set overrides keys of a job file: give --job too");
        return CMD_EXIT_USAGE;
    }
    return cmd_check_new(line->arg[1], o->force);
}

static int run(const cmd_line *line)
{
    const int code = check(line);
    if (code)
        return code;
    return cmd_outcome(cmd_ends_with(line->arg[1], ".safetensors") ? export_weights(line) : export_network(line));
}

static const cmd_option options[] = {
    {"--checkpoint", "best|step-N", CMD_TEXT, CMD_FIELD(checkpoint),
     "which one; if not given, the best one if the run has noted one, else the newest valid one"},
    {"--force", NULL, CMD_FLAG, CMD_FIELD(force), "replaces the file if it exists already"},
    {"--opset", "13..21", CMD_NUMBER, CMD_FIELD(opset), "FILE.onnx: the operator set of ONNX; 21 if not given"},
    {"--float-input", NULL, CMD_FLAG, CMD_FIELD(float_input),
     "FILE.onnx: pictures are read as f32, 0 .. 255, in place of u8"},
    {"--outputs", "A,B", CMD_TEXT, CMD_FIELD(outputs),
     "FILE.onnx: the layers whose outputs it gives; the network's main output if not given"},
    {"--job", "JOB.yaml", CMD_TEXT, CMD_FIELD(job),
     "FILE.onnx: the job of weights from another program; a run and a file of `convoy export` have their own"},
    {"--net", "NET.prototxt", CMD_TEXT, CMD_FIELD(net), "FILE.caffemodel: the network of Caffe that was trained"},
    CMD_OPTION_SET,
    {0},
};

const cmd_verb cmd_export = {
    .name = "export",
    .arguments = "RUN FILE.safetensors|FILE.onnx|FILE.caffemodel [--checkpoint best|step-N] [--force]",
    .summary = "writes a trained network as one file, for other programs",
    .detail = "FILE.safetensors gets the weights. Names, shapes and the order of the numbers are those of PyTorch "
              "(docs/internals/checkpoint.md). The checkpoint is checked first.\n"
              "FILE.onnx gets the whole network, as `convoy predict` applies it: the normalisation of the input is "
              "inside, so pictures go in as they are stored, 0 .. 255; dropout is left out; the batch is free "
              "(docs/guide/use-a-network.md). RUN may also be a checkpoint, or a file of `convoy export`.\n"
              "FILE.caffemodel gets the weights of a network of Caffe, --net, for Caffe and those that read its files "
              "(docs/reference/caffe-layers.md).",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 2,
    .narg_max = 2,
    .run = run,
};
