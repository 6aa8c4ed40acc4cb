/* cmd_pack.c: `convoy pack`: any data source as few large files with checksums and an index. */
#include "cmd.h"

static int run(const cmd_line *line)
{
    char *report = NULL;
    const cvy_status status = cvy_run_pack(line->arg[0], line->arg[1], line->skip_bad, &report);
    return cmd_print(status, &report);
}

static const cmd_option options[] = {
    {"--skip-bad", NULL, CMD_FLAG, CMD_FIELD(skip_bad), "leaves damaged samples out and counts them; else they are errors"},
    {0},
};

const cmd_verb cmd_pack = {
    .name = "pack", .arguments = "SOURCE FOLDER [--skip-bad]", .summary = "writes a data set as few large files with checksums and an index",
    .detail = "SOURCE is a path (a folder of pictures by class, CIFAR binary files, IDX, .npy) or a map {path: ..., format: ..., options}.\n"
              "A packed set reads fastest, and many ranks may open it at once.",
    .options = options, .narg_min = 2, .narg_max = 2, .run = run,
};
