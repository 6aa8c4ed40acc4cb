/* cmd_test.c: `convoy test`: the scores of a trained network on labelled data. */
#include <string.h>

#include <convoy/report.h>

#include "cmd.h"

/* Weights alone have no page. */
static void renew_report(const char *target)
{
    const char *dot = strrchr(target, '.');
    if ((!dot || strcmp(dot, ".safetensors") != 0) && cvy_report_write(target) != CVY_OK)
        fprintf(stderr, "convoy: warning: no report: %s\n", cvy_error_text());
}

static int test(const cmd_line *line, cvy_context *context)
{
    const cvy_job_source job = cmd_job(line, line->job, NULL);
    char *json = NULL;
    const cvy_status status = cvy_run_test(context, line->arg[0], line->job ? &job : NULL, line->data, &json);
    if (status == CVY_OK && cvy_context_rank(context) == 0)
        renew_report(line->arg[0]);
    if (line->json || status != CVY_OK)
        return cmd_print(status, &json);
    if (json)
        cmd_print_json(json);
    cvy_text_release(&json);
    return 0;
}

static int run(const cmd_line *line)
{
    if (line->nset && !line->job) {
        cmd_error("--set overrides keys of a job file: give --job too");
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, test);
}

static const cmd_option options[] = {
    {"--data", "SOURCE", CMD_TEXT, CMD_FIELD(data), "a path, or a map {path: ..., format: ...}; data.test of the job if not given"},
    {"--job", "JOB.yaml", CMD_TEXT, CMD_FIELD(job), "the job that weights belong to; a run folder has its own"},
    CMD_OPTION_SET,
    CMD_OPTION_JSON("prints everything as one JSON object"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_test = {
    .name = "test", .arguments = "RUN|WEIGHTS.safetensors [--data SOURCE]", .summary = "scores a trained network on labelled data",
    .detail = "Of a run folder the best checkpoint is taken, if one is kept, else the newest; the scores go into its test.json and its report.",
    .options = options, .narg_min = 1, .narg_max = 1, .run = run,
};
