/* cmd_export.c: `convoy export`: a run's weights as one file, for other programs. */
#include <string.h>

#include "cmd.h"

static int run(const cmd_line *line)
{
    int64_t step = 0;
    char *notes = NULL;
    const cvy_status status = cvy_run_export(line->arg[0], line->checkpoint, line->arg[1], &step, &notes);
    for (char *note = notes, *end; status == CVY_OK && note && (end = strchr(note, '\n')) != NULL; note = end + 1)
        fprintf(stderr, "convoy: warning: %.*s\n", (int)(end - note), note);
    cvy_text_release(&notes);
    if (status == CVY_OK)
        printf("%s has the weights of step %lld\n", line->arg[1], (long long)step);
    return cmd_outcome(status);
}

static const cmd_option options[] = {
    {"--checkpoint", "best|step-N", CMD_TEXT, CMD_FIELD(checkpoint), "which one; the best one if the run has noted one, else the newest sound one, if not given"},
    {0},
};

const cmd_verb cmd_export = {
    .name = "export", .arguments = "RUN FILE.safetensors [--checkpoint best|step-N]", .summary = "writes a run's weights as one safetensors file",
    .detail = "Names, shapes and order of the numbers are PyTorch's (docs/checkpoint.md); the checkpoint is checked first.",
    .options = options, .narg_min = 2, .narg_max = 2, .run = run,
};
