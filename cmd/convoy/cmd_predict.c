/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_predict.c: `convoy predict`: writes what a network says to each sample, in the order of the data. */
#include "cmd.h"

typedef struct verb_options {
    const char *data, *out, *job, *outputs, *weights;
    int probabilities, classes, header, names, no_calibration, force;
    int64_t top, passes, samples;
    cmd_sets sets;
    cmd_ranks ranks;
} verb_options;

static int predict(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    (void)user;
    const cvy_job_source job = cmd_job(&o->sets, o->job, NULL);
    cvy_predict_request request = cvy_predict_request_default();
    request.target = line->arg[0];
    request.member = line->arg + 1;
    request.nmember = line->narg - 1;
    request.passes = o->passes;
    request.no_calibration = o->no_calibration;
    request.job = o->job ? &job : NULL;
    request.data = o->data;
    request.samples = o->samples;
    request.out = o->out;
    request.top = o->top;
    request.header = o->header;
    request.names = o->names;
    request.outputs = o->outputs;
    request.weights = o->weights;
    request.what = o->classes || o->top ? CVY_PREDICT_CLASSES
                   : o->probabilities   ? CVY_PREDICT_PROBABILITIES
                                        : CVY_PREDICT_OUTPUTS;
    cmd_signals_remove_partial(o->out);
    const cvy_status status = cvy_run_predict(context, &request);
    if (status == CVY_OK && cvy_context_rank(context) == 0)
        cmd_say("predictions are in %s\n", o->out);
    return cmd_outcome(status);
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    if (o->probabilities && (o->classes || o->top)) {
        cmd_error("--classes gives their probabilities, too: leave --probabilities out");
        return CMD_EXIT_USAGE;
    }
    const int has_input = o->data || o->samples > 0;
    if (!has_input || !o->out || (o->data && o->samples) || (o->sets.count && !o->job)) {
        cmd_error(!has_input || !o->out ? "--data SOURCE (or --samples N of a generator) and --out FILE.csv, .npy, "
                                          ".h5 or .nc are needed"
                  : o->data && o->samples > 0 ? "--samples N draws samples without data: leave --data out"
                                              : "--set overrides keys of a job file: give --job too");
        return CMD_EXIT_USAGE;
    }
    /* Before the ranks meet: none of them writes a file until all of them have looked. */
    const int code = cmd_check_new(o->out, o->force);
    return code ? code : cmd_on_ranks(line, &o->ranks, predict, NULL);
}

static const cmd_option options[] = {
    {"--data", "SOURCE", CMD_TEXT, CMD_FIELD(data),
     "a path, read as the training data were; a list [a.jpg, b.jpg]; or a map {path: ..., format: ...}; labels are not "
     "needed"},
    {"--samples", "N", CMD_NUMBER, CMD_FIELD(samples),
     "instead of --data: draw N samples from a network that reads only random numbers, such as a generator"},
    {"--out", "FILE", CMD_TEXT, CMD_FIELD(out),
     "FILE.csv, FILE.npy (f32 [N, shape of an output]), FILE.h5 (a data set for each output) or FILE.nc (the same as "
     "NetCDF-4), a row for each sample in the order of the data"},
    {"--force", NULL, CMD_FLAG, CMD_FIELD(force), "replaces the file if it exists already"},
    {"--outputs", "A,B", CMD_TEXT, CMD_FIELD(outputs),
     "the layers whose outputs are written; the network's main output if not given"},
    {"--probabilities", NULL, CMD_FLAG, CMD_FIELD(probabilities), "the probability of each class, instead of logits"},
    {"--classes", NULL, CMD_FLAG, CMD_FIELD(classes),
     "the most probable class: its name and probability in a .csv file, its number (i32) in a .npy file, both in .h5 "
     "and .nc"},
    {"--top", "K", CMD_NUMBER, CMD_FIELD(top), "the K most probable classes, the best first"},
    {"--uncertainty", "N", CMD_NUMBER, CMD_FIELD(passes),
     "N passes with dropout, 2 or more: mean and standard deviation of each output; of classes the mean probabilities, "
     "their entropy, and the mutual information"},
    {"--no-calibration", NULL, CMD_FLAG, CMD_FIELD(no_calibration),
     "probabilities of the outputs as they are, without the temperature of `convoy test --calibrate`"},
    {"--names", NULL, CMD_FLAG, CMD_FIELD(names),
     "the first column of a .csv file, or the data set sample of a .h5 or .nc file, says which sample it is"},
    {"--header", NULL, CMD_FLAG, CMD_FIELD(header), "the first line of a .csv file has the names of the columns"},
    {"--job", "JOB.yaml", CMD_TEXT, CMD_FIELD(job),
     "the job of weights from another program; a run and a file of `convoy export` have their own"},
    {"--weights", "FILE.caffemodel", CMD_TEXT, CMD_FIELD(weights), "of a network of Caffe, NET.prototxt"},
    CMD_OPTION_SET,
    CMD_OPTION_CONTEXT_DEVICE,
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_predict = {
    .name = "predict",
    .arguments =
        "RUN|CHECKPOINT|WEIGHTS.safetensors|NET.onnx|NET.prototxt ... --data SOURCE --out FILE.csv|.npy|.h5|.nc",
    .summary = "writes a trained network's output for each sample",
    .detail = "Several networks, or a folder of runs, are an ensemble: the file gets the mean of their outputs and the "
              "standard deviation; of classes the mean of their probabilities, the entropy of the mean, and the mutual "
              "information of class and network, both in nats (docs/guide/use-a-network.md).",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = CMD_ARGS_MAX,
    .run = run,
};
