/* cmd_plan.c: `convoy plan`: what a job, or a step of a network, would do, without doing it. */
#include "cmd.h"

/* Names a network of the zoo in place of a job file. */
static int is_network(const cmd_line *line)
{
    return line->narg && !cmd_is_file(line->arg[0]);
}

static int plan(const cmd_line *line, cvy_context *context)
{
    const char *how = line->explain ? "explain" : line->how ? line->how : "table";
    const cvy_job_source job = cmd_job(line, line->narg ? line->arg[0] : NULL, cmd_default_job);
    char *text = NULL;
    cvy_status status;
    if (is_network(line)) {
        const cvy_bench_opts network = cmd_bench_opts(line, NULL, line->arg[0], line->batch[0]);
        status = cvy_run_bench_plan(context, &network, how, &text);
    } else {
        status = cvy_run_plan(context, &job, line->plan_file, how, &text);
    }
    return cmd_print(status, &text);
}

static int run(const cmd_line *line)
{
    if (line->nbatch > 1 || (line->nbatch && !is_network(line))) {
        cmd_error(line->nbatch > 1 ? "--batch lists several batches, expected one" : "--batch is for a network; a job's is set by --set train.batch=N");
        return CMD_EXIT_USAGE;
    }
    if (is_network(line) && line->plan_file) {
        cmd_error("--plan is for a job, %s is a network", line->arg[0]);
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, plan);
}

static const cmd_option options[] = {
    CMD_OPTION_SET,
    {"--plan", "FILE", CMD_TEXT, CMD_FIELD(plan_file), "takes the kernels from this plan.json"},
    {"--format", "table|json|text|dot|explain", CMD_CHOICE, CMD_FIELD(how),
     "a table of layers; plan.json; the graph as text or for Graphviz; the candidates of each node and what each costs"},
    {"--explain", NULL, CMD_FLAG, CMD_FIELD(explain), "the same as --format explain"},
    CMD_OPTION_PLANNING,
    {"--batch", "N", CMD_BATCHES, 0, "of a network: global batch, split over the ranks"},
    {"--mode", "train|forward", CMD_CHOICE, CMD_FIELD(mode), "of a network: a whole training step, or evaluation only"},
    {"--dtype", "f32|bf16|f64", CMD_DTYPE, CMD_FIELD(dtype), "of a network: type of activations; with bf16, weights are f32"},
    {"--options", "TEXT", CMD_TEXT, CMD_FIELD(model_options), "of a network: its own options, such as 'filters: 64'"},
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_plan = {
    .name = "plan", .arguments = "[JOB.yaml | MODEL] [--set KEY=VALUE]... [--format table]",
    .summary = "shows layers, shapes, parameters, flop, kernels and memory of a job or network, without training",
    .detail = "Memory is exact: the arena is all that a step uses. Under mpiexec the plan is that of rank 0 of so many ranks.\n"
              "The time of a step is predicted where its kernels have been measured: --planning measure does, and keeps the times.\n"
              "Of a network it is the step that `convoy bench` would time.",
    .options = options, .narg_max = 1, .run = run,
};
