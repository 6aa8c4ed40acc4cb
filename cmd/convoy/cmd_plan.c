/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_plan.c: `convoy plan`: shows what a job, or a step of a network, would do, without running it. */
#include "cmd_step.h"

typedef struct verb_options {
    cmd_step step; /* used for a network only */
    cmd_sets sets;
    const char *plan_file, *how;
    int explain;
    cmd_ranks ranks;
} verb_options;

/* Whether the argument is a network of the zoo, not a job file. */
static int is_network(const cmd_line *line)
{
    return line->narg && !cmd_is_file(line->arg[0]);
}

static int plan(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    const char *how = o->explain ? "explain" : o->how ? o->how : "table";
    const cvy_job_source job = cmd_job(&o->sets, line->narg ? line->arg[0] : NULL, cmd_default_job);
    char *text = NULL;
    (void)user;
    cvy_status status;
    if (is_network(line)) {
        const cvy_bench_opts network = cmd_step_opts(&o->step, &o->sets, NULL, line->arg[0], o->step.batches.at[0]);
        status = cvy_run_bench_plan(context, &network, how, &text);
    } else {
        status = cvy_run_plan(context, &job, o->plan_file, how, &text);
    }
    return cmd_print(status, &text);
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    const int count = o->step.batches.count;
    if (count > 1 || (count && !is_network(line))) {
        cmd_error(count > 1 ? "--batch lists several batches, expected one"
                            : "--batch is for a network; a job's is set by --set train.batch=N");
        return CMD_EXIT_USAGE;
    }
    if (is_network(line) && o->plan_file) {
        cmd_error("--plan is for a job, %s is a network", line->arg[0]);
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, &o->ranks, plan, NULL);
}

static const cmd_option options[] = {
    CMD_OPTION_SET,
    {"--plan", "FILE", CMD_TEXT, CMD_FIELD(plan_file), "takes the kernels from this plan.json"},
    {"--format", "table|json|text|dot|explain", CMD_CHOICE, CMD_FIELD(how),
     "a table of layers; plan.json; the graph as text or for Graphviz; the candidates of each node with their costs"},
    {"--explain", NULL, CMD_FLAG, CMD_FIELD(explain), "the same as --format explain"},
    CMD_OPTION_PLANNING,
    {"--batch", "N", CMD_NUMBERS, CMD_FIELD(step.batches), "for a network: global batch, split over the ranks"},
    {"--mode", CMD_MODE_WORDS, CMD_CHOICE, CMD_FIELD(step.mode), "for a network: " CMD_MODE_HELP},
    {"--dtype", "f32|bf16|f64", CMD_DTYPE, CMD_FIELD(step.dtype),
     "for a network: type of activations; with bf16, weights are f32"},
    {"--options", "TEXT", CMD_TEXT, CMD_FIELD(step.model_options),
     "for a network: its own options, such as 'filters: 64'"},
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_plan = {
    .name = "plan",
    .arguments = "[JOB.yaml | MODEL] [--set KEY=VALUE]... [--format table]",
    .summary = "shows layers, shapes, flop, kernels and memory of a job or network, without training",
    .detail = "The memory is exact: the arena is all that a step uses. Under mpiexec the plan is that of rank 0 of "
              "that number of ranks.\n"
              "The time of a step is predicted if its kernels have been measured: --planning measure does so and keeps "
              "the times.\n"
              "For a network the plan is that of the step which `convoy bench` would time.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_max = 1,
    .run = run,
};
