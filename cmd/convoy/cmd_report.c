/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_report.c: `convoy report`: writes the report page of a run again, or a page that compares several runs. */
#include "cmd.h"

typedef struct verb_options {
    const char *out;
} verb_options;

static int compare(const cmd_line *line, const char *path)
{
    const cvy_status status = cvy_report_compare(line->arg, line->narg, path);
    if (status == CVY_OK)
        printf("the page is %s\n", path);
    return cmd_outcome(status);
}

/* A search keeps its state in this file. */
static int is_sweep(const char *folder)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/sweep.json", folder);
    FILE *file = fopen(path, "r");
    if (file)
        fclose(file);
    return file != NULL;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    const int sweeps = line->narg == 1 && is_sweep(line->arg[0]);
    if (line->narg > 1)
        return compare(line, o->out ? o->out : "comparison.html");
    if (o->out) {
        cmd_error("--out names the page of several runs; the page of one is %s/report.html", line->arg[0]);
        return CMD_EXIT_USAGE;
    }
    const cvy_status status = sweeps ? cvy_report_sweep(line->arg[0]) : cvy_report_write(line->arg[0]);
    if (status == CVY_OK)
        printf("the page is %s/%s.html\n", line->arg[0], sweeps ? "sweep" : "report");
    return cmd_outcome(status);
}

static const cmd_option options[] = {
    {"--out", "FILE", CMD_TEXT, CMD_FIELD(out), "with several runs: the page; comparison.html if not given"},
    {0},
};

const cmd_verb cmd_report = {
    .name = "report",
    .arguments = "RUN | RUN RUN... [--out FILE.html]",
    .summary = "writes the page of a run or a sweep again, or one page that compares runs",
    .detail =
        "The page of a run is RUN/report.html, that of a sweep SWEEP/sweep.html.\n"
        "The page of several runs, up to eight, lays their losses, scores and learning rates over each other, over "
        "epochs and over time. A table has the keys of the jobs that differ, and the scores.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = CMD_ARGS_MAX,
    .run = run,
};
