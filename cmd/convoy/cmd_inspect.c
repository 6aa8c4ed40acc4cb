/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_inspect.c: `convoy inspect`: prints what a file or folder holds. */
#include "cmd.h"
#include "files/files.h"

typedef struct verb_options {
    int verify, stats;
} verb_options;

/* Returns exit code 1 if anything is damaged. */
static int verify(const char *path)
{
    char *text = NULL;
    int damaged = 0;
    const cvy_status status = cvy_run_verify(path, &damaged, &text);
    const int code = cmd_print(status, &text);
    return code ? code : damaged ? CMD_EXIT_FAULT : 0;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    char *text = NULL;
    if (o->verify)
        return verify(line->arg[0]);
    return cmd_print(cvy_run_inspect(line->arg[0], o->stats, &text), &text);
}

static const cmd_option options[] = {
    {"--verify", NULL, CMD_FLAG, CMD_FIELD(verify),
     "for checkpoints and weights: checks every hash of every set and names what is damaged; exit code 1 if anything "
     "is"},
    {"--stats", NULL, CMD_FLAG, CMD_FIELD(stats),
     "for a data set: reads all of it, and so finds what is damaged; samples of each class, mean, standard deviation "
     "and range of each channel"},
    {0},
};

const cmd_verb cmd_inspect = {
    .name = "inspect",
    .arguments = "PATH [--verify] [--stats]",
    .summary = "says what a data set, a checkpoint, a weights file or a run folder holds",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
