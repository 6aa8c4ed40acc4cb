/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_plan.c: `convoy plan`: shows what a job, or a step of a network, would do, without running it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_step.h"
#include "predict/predict.h"

typedef struct verb_options {
    cmd_step step; /* used for a network only */
    cmd_sets sets;
    const char *plan_file, *how;
    int explain;
    cmd_ranks ranks;
    int json; /* of the search over grids, like the fields below */
    const char *nranks, *memory, *link;
    int64_t node_ranks, shown;
} verb_options;

/* ---- grids ---- */

/* Reads a number with a unit out of a list: its name and what it stands for. Returns the end of the text, or NULL. */
struct unit {
    const char *name;
    double factor;
};

static const char *read_quantity(const char *text, const struct unit *units, double *out)
{
    char *end = NULL;
    const double number = strtod(text, &end);
    size_t n = 0;
    if (end == text || !(number > 0))
        return NULL;
    end += strspn(end, " ");
    while (isalpha((unsigned char)end[n]) || end[n] == '/')
        n++;
    for (const struct unit *u = units; u->name; u++)
        if (strlen(u->name) == n && strncmp(u->name, end, n) == 0) {
            *out = number * u->factor;
            return end + n;
        }
    return NULL;
}

static int read_memory(const char *text, int64_t *out)
{
    static const struct unit units[] = {{"", 1},
                                        {"K", 1024.0},
                                        {"KiB", 1024.0},
                                        {"M", 1048576.0},
                                        {"MiB", 1048576.0},
                                        {"G", 1073741824.0},
                                        {"GiB", 1073741824.0},
                                        {"T", 1099511627776.0},
                                        {"TiB", 1099511627776.0},
                                        {0}};
    double bytes = 0;
    const char *end = text ? read_quantity(text, units, &bytes) : "";
    *out = (int64_t)bytes;
    if (end && !*end && bytes < 9e18)
        return 0;
    cmd_error("--memory is '%s', expected the memory of a rank, such as 16G", text);
    return CMD_EXIT_USAGE;
}

static int read_link(const char *text, double *latency_s, double *bytes_per_s)
{
    static const struct unit times[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {0}};
    static const struct unit rates[] = {{"mbit", 1e6 / 8}, {"gbit", 1e9 / 8}, {"MB/s", 1e6}, {"GB/s", 1e9}, {0}};
    const char *end = text ? read_quantity(text, times, latency_s) : NULL;
    end = end && *end == ',' ? read_quantity(end + 1, rates, bytes_per_s) : NULL;
    if (!text || (end && !*end))
        return 0;
    cmd_error("--link is '%s', expected latency and bandwidth between nodes, such as 50us,1gbit or 1us,12GB/s", text);
    return CMD_EXIT_USAGE;
}

static int read_grids(const verb_options *o, cvy_grids_opts *out)
{
    char *end = NULL;
    *out = (cvy_grids_opts){.size = sizeof *out,
                            .node_ranks = o->node_ranks,
                            .threads = o->ranks.threads,
                            .shown = o->shown,
                            .json = o->json};
    out->ranks = strtoll(o->nranks, &end, 10);
    if (*end || end == o->nranks || out->ranks < 1 || out->ranks > 100000) {
        cmd_error("--ranks is '%s', expected the number of ranks that the job will have, at least 1", o->nranks);
        return CMD_EXIT_USAGE;
    }
    const int code = read_memory(o->memory, &out->memory_bytes);
    return code ? code : read_link(o->link, &out->latency_s, &out->bytes_per_s);
}

/* Whether the argument is a network, of the zoo or of an ONNX file, and no job file. */
static int is_network(const cmd_line *line)
{
    return line->narg && (!cmd_is_file(line->arg[0]) || cmd_ends_with(line->arg[0], ".onnx"));
}

static int plan(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    const cvy_grids_opts *grids = user;
    const char *how = o->explain ? "explain" : o->how ? o->how : "table";
    cvy_job_source job = cmd_job(&o->sets, line->narg ? line->arg[0] : NULL, cmd_default_job);
    char *text = NULL;
    cvy_status status;
    cmd_step_job(&o->step, &job);
    if (grids) {
        const cvy_bench_opts what = cmd_step_opts(&o->step, &o->sets, is_network(line) ? NULL : &job,
                                                  is_network(line) ? line->arg[0] : NULL, o->step.batches.at[0]);
        status = cvy_run_plan_grids(context, &what, grids, &text);
    } else if (is_network(line)) {
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
    if (o->step.input.ndim > 0 && !is_network(line) && !(line->narg && cmd_ends_with(line->arg[0], ".prototxt"))) {
        cmd_error("--input is for a network; the samples of a job have the shape of its data");
        return CMD_EXIT_USAGE;
    }
    if (is_network(line) && o->plan_file) {
        cmd_error("--plan is for a job, %s is a network", line->arg[0]);
        return CMD_EXIT_USAGE;
    }
    if (!o->nranks && (o->memory || o->link || o->node_ranks || o->shown || o->json)) {
        cmd_error("--memory, --link, --node-ranks, --shown and --json are of the search over grids: give --ranks too");
        return CMD_EXIT_USAGE;
    }
    cvy_grids_opts grids;
    const int code = o->nranks ? read_grids(o, &grids) : 0;
    return code ? code : cmd_on_ranks(line, &o->ranks, plan, o->nranks ? &grids : NULL);
}

static const cmd_option options[] = {
    CMD_OPTION_SET,
    CMD_OPTION_DEVICE,
    {"--plan", "FILE", CMD_TEXT, CMD_FIELD(plan_file), "takes the kernels from this plan.json"},
    {"--format", "table|json|text|dot|explain", CMD_CHOICE, CMD_FIELD(how),
     "a table of layers; plan.json; the graph as text or for Graphviz; the candidates of each node with their costs"},
    {"--explain", NULL, CMD_FLAG, CMD_FIELD(explain), "the same as --format explain"},
    CMD_OPTION_PLANNING,
    {"--batch", "N", CMD_NUMBERS, CMD_FIELD(step.batches), "for a network: global batch, split over the ranks"},
    {"--input", "C,H,W", CMD_SHAPE, CMD_FIELD(step.input),
     "for a network: shape of a sample; for one of Caffe (.prototxt) if neither its text nor its data say it"},
    {"--mode", CMD_MODE_WORDS, CMD_CHOICE, CMD_FIELD(step.mode), "for a network: " CMD_MODE_HELP},
    {"--dtype", "f32|bf16|f64", CMD_DTYPE, CMD_FIELD(step.dtype),
     "for a network: type of activations; with bf16, weights are f32"},
    {"--options", "TEXT", CMD_TEXT, CMD_FIELD(step.model_options),
     "for a network: its own options, such as 'filters: 64'"},
    {"--ranks", "N", CMD_TEXT, CMD_FIELD(nranks),
     "the search: predicts the grids of N ranks, which need not exist, and shows the best"},
    {"--memory", "SIZE", CMD_TEXT, CMD_FIELD(memory), "with --ranks: the memory of a rank, such as 16G"},
    {"--link", "TIME,RATE", CMD_TEXT, CMD_FIELD(link),
     "with --ranks: latency and bandwidth between nodes, such as 50us,1gbit or 1us,12GB/s; without it all ranks are on "
     "a "
     "node like this one"},
    {"--node-ranks", "K", CMD_NUMBER, CMD_FIELD(node_ranks), "with --ranks: ranks of each node; 1 with --link"},
    {"--shown", "K", CMD_NUMBER, CMD_FIELD(shown), "with --ranks: grids in the table; 8 if not given"},
    CMD_OPTION_JSON("with --ranks: prints all grids as a JSON object"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_plan = {
    .name = "plan",
    .arguments = "[JOB.yaml | MODEL | NET.onnx] [--set KEY=VALUE]... [--format table] [--ranks N [--memory 16G] "
                 "[--link 50us,1gbit]]",
    .summary = "shows layers, shapes, flop, kernels and memory of a job or network, without training",
    .detail =
        "The memory is exact: the arena is all that a step uses. Under mpiexec the plan is that of rank 0 of "
        "that number of ranks.\n"
        "The time of a step is predicted if its kernels have been measured: --planning measure does so and keeps "
        "the times.\n"
        "For a network the plan is that of the step which `convoy bench` would time.\n"
        "With --ranks N the plans of N ranks are made in this one process, on every process grid (data x pipeline x "
        "tensor x spatial) or on the one that the job has. A table shows step time and memory of the best, what "
        "the time is made of, and why other grids cannot be used. `parallel: auto` in a job takes the best grid.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_max = 1,
    .run = run,
};
