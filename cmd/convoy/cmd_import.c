/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_import.c: `convoy import`: writes a solver or a network of Caffe as a job. */
#include "cmd.h"
#include "files/files.h"

typedef struct verb_options {
    const char *out;
    int force;
    cvy_shape input;
} verb_options;

/* The files that cvy_run_import() writes. */
static int check_new(const verb_options *o, int has_weights)
{
    static const char *const name[] = {"job.yaml", "weights.safetensors"};
    char path[4096];
    int code = 0;
    for (int i = 0; i < 1 + has_weights && !code; i++) {
        snprintf(path, sizeof path, "%s%s%s", o->out ? o->out : "", o->out ? "/" : "", name[i]);
        code = cmd_check_new(path, o->force);
    }
    return code;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    const cvy_import_opts opts = {.size = sizeof opts,
                                  .weights = line->narg > 1 ? line->arg[1] : NULL,
                                  .out = o->out,
                                  .replace = o->force,
                                  .input = o->input};
    char *text = NULL;
    const int code = check_new(o, opts.weights != NULL);
    if (code)
        return code;
    return cmd_print(cvy_run_import(line->arg[0], &opts, &text), &text);
}

static const cmd_option options[] = {
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out), "where the files go; the current folder if not given"},
    {"--input", "C,H,W", CMD_SHAPE, CMD_FIELD(input),
     "shape of a sample of a network, if neither its text nor its data say it"},
    {"--force", NULL, CMD_FLAG, CMD_FIELD(force), "replaces files that exist already"},
    {0},
};

const cmd_verb cmd_import = {
    .name = "import",
    .arguments = "NET.prototxt|SOLVER.prototxt [MODEL.caffemodel] [--out FOLDER]",
    .summary = "writes a solver or a network of Caffe as a job, and its weights",
    .detail =
        "job.yaml has the network, and of a solver also data and training, with comments on what was decided. With "
        "a caffemodel, weights.safetensors has its weights, and the job begins with them.\n"
        "A solver can also be trained as it is: convoy train --solver SOLVER.prototxt.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 2,
    .run = run,
};
