/* cmd_inspect.c: `convoy inspect`: what a file or folder holds. */
#include "cmd.h"

static int run(const cmd_line *line)
{
    char *text = NULL;
    const cvy_status status = cvy_run_inspect(line->arg[0], &text);
    return cmd_print(status, &text);
}

const cmd_verb cmd_inspect = {
    .name = "inspect", .arguments = "PATH", .summary = "says what a data set, a checkpoint, a weights file or a run folder holds",
    .narg_min = 1, .narg_max = 1, .run = run,
};
