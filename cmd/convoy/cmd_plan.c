/* cmd_plan.c: `convoy plan`: what a job would do, without doing it. */
#include "cmd.h"

static int plan(const cmd_line *line, cvy_context *context)
{
    const cvy_job_source job = cmd_job(line, line->narg ? line->arg[0] : NULL, cmd_default_job);
    char *text = NULL;
    const cvy_status status = cvy_run_plan(context, &job, line->plan_file, line->explain ? "explain" : line->how ? line->how : "table", &text);
    return cmd_print(status, &text);
}

static int run(const cmd_line *line)
{
    return cmd_on_ranks(line, plan);
}

static const cmd_option options[] = {
    CMD_OPTION_SET,
    {"--plan", "FILE", CMD_TEXT, CMD_FIELD(plan_file), "takes the kernels from this plan.json"},
    {"--format", "table|json|text|dot|explain", CMD_CHOICE, CMD_FIELD(how),
     "a table of layers; plan.json; the graph as text or for Graphviz; the candidates of each node and what each costs"},
    {"--explain", NULL, CMD_FLAG, CMD_FIELD(explain), "the same as --format explain"},
    CMD_OPTION_PLANNING,
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_plan = {
    .name = "plan", .arguments = "[JOB.yaml] [--set KEY=VALUE]... [--format table]",
    .summary = "shows layers, shapes, parameters, flop, kernels and memory of a job, without training",
    .detail = "Memory is exact: the arena is all that a step uses. Under mpiexec the plan is that of rank 0 of so many ranks.\n"
              "The time of a step is predicted where its kernels have been measured: --planning measure does, and keeps the times.",
    .options = options, .narg_max = 1, .run = run,
};
