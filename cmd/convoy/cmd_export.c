/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_export.c: `convoy export`: writes a run's weights to one file, for other programs. */
#include <string.h>

#include "cmd.h"

typedef struct verb_options {
    const char *checkpoint;
    int force;
} verb_options;

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    int64_t step = 0;
    char *notes = NULL;
    const cvy_status status = cvy_run_export(line->arg[0], o->checkpoint, line->arg[1], o->force, &step, &notes);
    for (char *note = notes, *end; status == CVY_OK && note && (end = strchr(note, '\n')) != NULL; note = end + 1)
        fprintf(stderr, "convoy: warning: %.*s\n", (int)(end - note), note);
    cvy_text_release(&notes);
    if (status == CVY_OK)
        printf("%s has the weights of step %lld\n", line->arg[1], (long long)step);
    return cmd_outcome(status);
}

static const cmd_option options[] = {
    {"--checkpoint", "best|step-N", CMD_TEXT, CMD_FIELD(checkpoint),
     "which one; if not given, the best one if the run has noted one, else the newest valid one"},
    {"--force", NULL, CMD_FLAG, CMD_FIELD(force), "replaces the file if it exists already"},
    {0},
};

const cmd_verb cmd_export = {
    .name = "export",
    .arguments = "RUN FILE.safetensors [--checkpoint best|step-N] [--force]",
    .summary = "writes a run's weights as one safetensors file",
    .detail = "Names, shapes and the order of the numbers are those of PyTorch (docs/internals/checkpoint.md). The "
              "checkpoint is "
              "checked first.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 2,
    .narg_max = 2,
    .run = run,
};
