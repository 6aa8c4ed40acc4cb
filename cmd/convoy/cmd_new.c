/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_new.c: `convoy new`: prints a job for a data set. */
#include "cmd.h"
#include "files/files.h"

typedef struct verb_options {
    const char *task;
} verb_options;

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    char *text = NULL;
    return cmd_print(cvy_run_new_job(line->arg[0], o->task, &text), &text);
}

static const cmd_option options[] = {
    {"--for", "classify|regress|segment", CMD_CHOICE, CMD_FIELD(task),
     "what to learn: a class for each sample, numbers, or a class for each position; what the data have if not given"},
    {0},
};

const cmd_verb cmd_new = {
    .name = "new",
    .arguments = "DATA [--for TASK]",
    .summary = "prints a job with comments that trains a network on a data set",
    .detail =
        "DATA is a path, or a map such as '{path: table.csv, label: species}'. If it is a folder with train and val "
        "or test in it, these are used.\n"
        "The job has a network that suits size and number of the samples, batch, augmentation, normalisation and "
        "a split for validation: convoy new DATA >job.yaml",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
