/*
 * cmd_simulate.c: `convoy simulate`: runs a training step on a simulated machine, for several numbers of ranks in turn.
 *
 * This process computes the step time of one node from measured kernel times, and scales it to the speed of a full
 * node. Then smpirun (SimGrid) runs convoy-sim, which is this command with simulated MPI (cmd_simulate_child.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_launch.h"
#include "cmd_mpi.h"
#include "cmd_simulate.h"
#include "predict/predict.h"

/* Kernel times are scaled by one factor, which says little about a machine that is so many times faster. */
#define FAR_FASTER 10.0

typedef cmd_simulate_options verb_options; /* for the table of options */

extern const char cmd_platform_stampede2_like[], cmd_platform_stampede2_knl_like[], cmd_platform_cori_like[],
    cmd_platform_frontera_like[], cmd_platform_piz_daint_like[], cmd_platform_ethernet_1g[];

static const struct {
    const char *name, *text;
} shipped[] = {
    {"stampede2-like", cmd_platform_stampede2_like}, {"stampede2-knl-like", cmd_platform_stampede2_knl_like},
    {"cori-like", cmd_platform_cori_like},           {"frontera-like", cmd_platform_frontera_like},
    {"piz-daint-like", cmd_platform_piz_daint_like}, {"ethernet-1g", cmd_platform_ethernet_1g},
};

/* ---- the command line ---- */

static int wrong(const char *option, const char *value, const char *expected)
{
    cmd_error("%s is '%s', expected %s", option, value, expected);
    return CMD_EXIT_USAGE;
}

static int add_count(cmd_simulation *s, int64_t n)
{
    if (s->nranks == CMD_SIMULATED_COUNTS)
        return CMD_EXIT_USAGE;
    s->ranks[s->nranks++] = n;
    return 0;
}

/* "1,2,8..1024": in a range each number is twice the one before. */
static int read_counts(cmd_simulation *s, const char *text)
{
    static const char expected[] = "numbers of ranks above 0, such as 1,8,128 or 1..1024 (which doubles)";
    for (const char *at = text;;) {
        char *end = NULL;
        long long first = strtoll(at, &end, 10), last = first;
        if (end == at || first < 1 || first > INT32_MAX)
            return wrong("--ranks", text, expected);
        if (end[0] == '.' && end[1] == '.') {
            at = end + 2;
            last = strtoll(at, &end, 10);
            if (end == at || last < first || last > INT32_MAX)
                return wrong("--ranks", text, expected);
        }
        for (; first <= last; first *= 2)
            if (add_count(s, first))
                return wrong("--ranks", text, "at most 64 numbers of ranks");
        if (!*end)
            return 0;
        if (*end != ',')
            return wrong("--ranks", text, expected);
        at = end + 1;
    }
}

/* Reads a number, or a share in percent. */
static int read_real(const char *option, const char *text, double least, double *out)
{
    char *end = NULL;
    if (!text)
        return 0;
    *out = strtod(text, &end);
    const int percent = *end == '%' && !end[1];
    *out *= percent ? 0.01 : 1;
    return end == text || (*end && !percent) || !(*out >= least) || isinf(*out)
               ? wrong(option, text, least > 0 ? "a number above 0" : "a number, or a share such as 0.5%")
               : 0;
}

static int is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static int check_representatives(const cmd_simulation *s)
{
    const int64_t n = s->options->representatives;
    int fits = n == 0 || (n >= 2 && is_power_of_two(n));
    for (int i = 0; n > 0 && i < s->nranks; i++)
        fits = fits && (s->ranks[i] <= n || is_power_of_two(s->ranks[i]));
    if (fits)
        return 0;
    cmd_error("--representatives %lld: it, and numbers of ranks above it, have to be powers of two, such as 16",
              (long long)n);
    return CMD_EXIT_USAGE;
}

static int read_options(cmd_simulation *s)
{
    const cmd_simulate_options *o = s->options;
    s->latency_factor = s->bandwidth_factor = 1;
    int code = read_counts(s, o->ranks ? o->ranks : "1..1024");
    code = code ? code : read_real("--noise", o->noise, 0, &s->noise);
    code = code ? code : read_real("--add", o->add, 1e3, &s->add);
    code = code ? code : read_real("--latency-factor", o->latency_factor, 1e-9, &s->latency_factor);
    code = code ? code : read_real("--bandwidth-factor", o->bandwidth_factor, 1e-9, &s->bandwidth_factor);
    s->is_measured = o->rate && strcmp(o->rate, "measured") == 0;
    if (!s->is_measured)
        code = code ? code : read_real("--rate", o->rate, 1e-9, &s->rate);
    s->node_ranks = o->node_ranks > 0 ? o->node_ranks : 1;
    code = code ? code : check_representatives(s);
    if (!code && s->noise >= 1)
        code = wrong("--noise", o->noise, "a share below 100%");
    if (!code && (o->step.batches.count > 1 || (o->step.batches.count && o->global_batch))) {
        cmd_error("--batch is the batch of a node, one number; --global-batch is that of all nodes: give one of them");
        code = CMD_EXIT_USAGE;
    }
    for (int i = 0; !code && o->global_batch && i < s->nranks; i++)
        if (s->ranks[i] > o->global_batch) {
            cmd_error("--global-batch %lld on %lld ranks: some would have no sample", (long long)o->global_batch,
                      (long long)s->ranks[i]);
            code = CMD_EXIT_USAGE;
        }
    return code;
}

/* ---- the job ---- */

/* The job, or one with the same keys in place of that of a network of the zoo. */
static cvy_job_source job_of(const cmd_simulation *s)
{
    static const char network[] = "{name: simulate, model: lenet, data: {train: synthetic}, train: {steps: 1}}";
    const int is_file = cmd_is_file(s->network);
    cvy_job_source job = cmd_job(&s->options->sets, is_file ? s->network : NULL, NULL);
    if (!is_file) /* the grid does not depend on the network */
        job.text = network;
    return job;
}

/* ---- the node ---- */

static void fill_platform_opts(const cmd_simulation *s, cvy_platform_opts *o)
{
    const char *name = s->platform_name;
    *o = (cvy_platform_opts){.size = sizeof *o,
                             .file = name,
                             .model = s->model[0] ? s->model : NULL,
                             .latency_factor = s->latency_factor,
                             .bandwidth_factor = s->bandwidth_factor};
    for (int i = 0; i < CMD_COUNT(shipped); i++)
        if (strcmp(shipped[i].name, name) == 0) {
            o->file = NULL;
            o->name = shipped[i].name;
            o->text = shipped[i].text;
        }
}

static int find_platform(cmd_simulation *s)
{
    cvy_platform_opts o;
    fill_platform_opts(s, &o);
    cvy_text_release(&s->platform.xml);
    if (o.file && !cmd_is_file(o.file)) {
        const char *names[CMD_COUNT(shipped)];
        for (int i = 0; i < CMD_COUNT(shipped); i++)
            names[i] = shipped[i].name;
        cmd_unknown("simulate", "platform", o.file, names, CMD_COUNT(names));
        return CMD_EXIT_FAULT;
    }
    s->platform.size = sizeof s->platform;
    const cvy_status status = cvy_run_platform(&o, &s->platform);
    if (status == CVY_OK && s->add > 0)
        s->platform.add_bytes_per_s = s->add;
    return status == CVY_OK ? 0 : cmd_outcome(status);
}

/* A step on one node according to the measured kernel times. */
struct node_step {
    double batch, ms, gflop;
};

/* Finds the step of `batch` samples (0: the job's own number). It runs in this process. alone: a node that trains
 * alone, without micro-batches; else the ranks that share samples or layers, as one node. */
static int predict_node(cmd_simulation *s, cvy_context *context, int64_t batch, int alone, struct node_step *out)
{
    static const char *const words[] = {
        "update=sync", /* the kernels of a node do not depend on the update mode, and some modes need several ranks */
        "parallel={}", "train.accumulate=1"};
    cmd_sets sets = s->options->sets;
    const int is_file = cmd_is_file(s->network);
    for (int i = 0; i < (alone ? 3 : 1) && sets.count < CMD_SETS_MAX; i++)
        sets.word[sets.count++] = words[i];
    const cvy_job_source job = cmd_job(&sets, is_file ? s->network : NULL, NULL);
    cvy_bench_opts opts =
        cmd_step_opts(&s->options->step, &sets, is_file ? &job : NULL, is_file ? NULL : s->network, batch);
    cvy_bench_result r = {.size = sizeof r};
    opts.kernels = "clock";
    opts.foresee = !alone && s->parts > 1;
    opts.steps = opts.warmup = 1;
    opts.trace = NULL;
    const cvy_status status = cvy_run_bench(context, &opts, &r);
    if (status != CVY_OK) {
        const int lacks_times = strstr(cvy_error_text(), "--planning measure") != NULL;
        const int code = cmd_outcome(status);
        if (lacks_times) {
            fputs("convoy: this command measures them here, and then goes on: ", stderr);
            cmd_put_command(s->line, "--planning measure");
        }
        return code;
    }
    memcpy(s->model, r.model, sizeof s->model);
    *out = (struct node_step){.batch = (double)r.batch, .ms = r.predicted_ms, .gflop = r.gflop};
    return 0;
}

/* Reads the numbers of a key of the job, such as "2" or "[2, 2]"; numbers that are not given are 1. */
static int read_axis(const cvy_job_source *job, const char *key, int64_t *out, int n)
{
    char *text = NULL;
    const cvy_status status = cvy_run_job_value(job, key, &text);
    if (status != CVY_OK)
        return cmd_outcome(status);
    const char *at = text ? text : "";
    for (int i = 0; i < n; i++) {
        at += strcspn(at, "0123456789");
        out[i] = *at ? strtoll(at, (char **)(uintptr_t)&at, 10) : 1;
    }
    cvy_text_release(&text);
    return 0;
}

/* Reads the job's grid. */
static int find_grid(cmd_simulation *s)
{
    const cvy_job_source job = job_of(s);
    int code = read_axis(&job, "parallel.pipeline", &s->stages, 1);
    code = code ? code : read_axis(&job, "parallel.tensor", &s->tensor, 1);
    code = code ? code : read_axis(&job, "parallel.spatial", s->spatial, 3);
    code = code ? code : read_axis(&job, "train.accumulate", &s->micro_batches, 1);
    if (code)
        return code;
    s->parts = s->stages * s->tensor * s->spatial[0] * s->spatial[1] * s->spatial[2];
    for (int i = 0; i < s->nranks; i++)
        if (s->ranks[i] % s->parts != 0) {
            cmd_error(
                "--ranks %lld with a grid of pipeline %lld, tensor %lld and spatial %lldx%lldx%lld: the number of "
                "ranks must be a multiple of their product, %lld",
                (long long)s->ranks[i], (long long)s->stages, (long long)s->tensor, (long long)s->spatial[0],
                (long long)s->spatial[1], (long long)s->spatial[2], (long long)s->parts);
            return CMD_EXIT_USAGE;
        }
    return 0;
}

/* Finds the factor on the times of kernels, with which a node that trains alone reaches its rate. It belongs to the
 * machine, so neither micro-batches nor a grid change it. step: of the ranks that share samples or layers. */
static int find_scale(cmd_simulation *s, cvy_context *context, struct node_step step)
{
    struct node_step alone = step;
    int code = 0;
    if (s->parts > 1 || s->micro_batches > 1)
        code = predict_node(s, context, (int64_t)ceil(step.batch / (double)s->parts), 1, &alone);
    code = code ? code : find_platform(s);
    if (code)
        return code;
    const double by_flop = alone.batch * s->platform.gflop_per_s / alone.gflop, here = 1e3 * alone.batch / alone.ms;
    s->node_rate = s->is_measured                 ? here
                   : s->rate > 0                  ? s->rate
                   : s->platform.images_per_s > 0 ? s->platform.images_per_s
                                                  : by_flop;
    s->rate_from = s->is_measured                 ? "as measured here"
                   : s->rate > 0                  ? "--rate"
                   : s->platform.images_per_s > 0 ? "the platform's rates"
                                                  : "the platform's gflop_per_s";
    s->scale = here / s->node_rate;
    if (s->scale < 1 / FAR_FASTER)
        cmd_note(
            "convoy: warning: a node of %s is taken to be %.3g times as fast as this machine (%.4g images/s by %s, "
            "%.4g "
            "as measured here): kernels that are bound by memory or by their number do not become so much faster; give "
            "the rate of a real node by --rate, or take --rate measured\n",
            s->platform_name, 1 / s->scale, s->node_rate, s->rate_from, here);
    s->ideal_rate = 1e3 * step.batch / (step.ms * s->scale);
    return 0;
}

/* Nodes stand for others along the data axis only. There at least two must be left, or no sum would be sent. */
static int lacks_representatives(const cmd_simulation *s)
{
    const int64_t n = s->options->representatives;
    int stands_in = 0;
    for (int i = 0; i < s->nranks; i++)
        stands_in |= n > 0 && s->ranks[i] > n;
    return stands_in && s->parts > 1 && (n < 2 * s->parts || !is_power_of_two(s->parts));
}

/* The ranks of a node share its batch and its memory; a grid would need ranks that differ. */
static int check_node_ranks(const cmd_simulation *s)
{
    const int64_t r = s->node_ranks, most = s->platform.cores / 2;
    if (r > 1 && s->parts > 1)
        cmd_error("--node-ranks %lld with a grid of pipeline, tensor or spatial parts: take one of them", (long long)r);
    else if (lacks_representatives(s))
        cmd_error(
            "--representatives %lld with a grid of %lld pipeline, tensor and spatial parts: expected at least %lld, "
            "and a number of parts that is a power of two: nodes stand for others that have the same part",
            (long long)s->options->representatives, (long long)s->parts, (long long)(2 * s->parts));
    else if (r > most)
        cmd_error("--node-ranks %lld, but a node has %lld cores: expected at most %lld, so that a rank has two",
                  (long long)r, (long long)s->platform.cores, (long long)most);
    else
        return 0;
    return CMD_EXIT_USAGE;
}

/* The batch of a rank; 0 after a message. */
static int64_t share_batch(const cmd_simulation *s, int64_t batch)
{
    if (batch % s->node_ranks == 0)
        return batch / s->node_ranks;
    cmd_error("%lld samples on %lld ranks of a node, expected a multiple of them", (long long)batch,
              (long long)s->node_ranks);
    return 0;
}

/* The times of the kernels of a rank, if a node has several. */
static int predict_rank(cmd_simulation *s, cvy_context *context, int64_t batch)
{
    struct node_step rank = {0};
    const int64_t share = s->node_ranks > 1 ? share_batch(s, batch) : 0;
    return s->node_ranks == 1 ? 0 : share == 0 ? CMD_EXIT_USAGE : predict_node(s, context, share, 0, &rank);
}

/* Finds the step of the local batch of the smallest number of ranks, and from it the scale. Then it does so for the
 * other local batches: all kernel times must be known before the simulation starts. */
static int predict(cmd_simulation *s, cvy_context *context)
{
    const cmd_simulate_options *o = s->options;
    struct node_step step = {0}, other = {0};
    const int64_t shares = s->ranks[0] / s->parts;
    const int64_t first = o->global_batch         ? (o->global_batch + shares - 1) / shares
                          : o->step.batches.count ? o->step.batches.at[0] * s->parts
                                                  : 0;
    int code = check_node_ranks(s);
    code = code ? code : predict_node(s, context, first, 0, &step);
    code = code ? code : predict_rank(s, context, (int64_t)step.batch);
    s->batch = o->global_batch ? o->global_batch : (int64_t)step.batch;
    for (int i = 0; !code && o->global_batch && i < s->nranks; i++) {
        const int64_t n = s->ranks[i] / s->parts, share = o->global_batch / n;
        for (int64_t b = share; !code && b <= share + (o->global_batch % n != 0); b++)
            if ((code = predict_node(s, context, b, 0, &other)) == 0)
                code = predict_rank(s, context, b);
    }
    return code ? code : find_scale(s, context, step);
}

/* ---- the run ---- */

static int run_all(cmd_simulation *s)
{
    int code = cmd_simulate_begin(s);
    if (!code)
        cmd_simulate_show_head(s);
    for (int i = 0; i < s->nranks && !code; i++) {
        cvy_bench_result result;
        code = cmd_simulate_ranks(s, s->ranks[i], &result);
        if (!code)
            cmd_simulate_show(s, s->ranks[i], &result);
    }
    return code;
}

static int check_ranks(const cmd_simulation *s)
{
    for (int i = 0; i < s->nranks; i++)
        if (s->ranks[i] > s->platform.nodes) {
            cmd_error("--ranks %lld, but the platform has %lld nodes: take at most so many of %s, or a larger platform",
                      (long long)s->ranks[i], (long long)s->platform.nodes, s->platform_name);
            return CMD_EXIT_USAGE;
        }
    return 0;
}

static int run(const cmd_line *line)
{
    const cmd_simulate_options *o = line->options;
    cmd_simulation s = {.line = line,
                        .options = o,
                        .network = line->arg[0],
                        .platform_name = o->platform ? o->platform : shipped[0].name};
    const cvy_context_opts opts = {
        .size = sizeof opts, .threads = 1, .log_level = o->verbose ? CVY_LOG_DEBUG : CVY_LOG_WARN};
    cvy_context *context = NULL;
    const cmd_launch *l = cmd_launch_here();
    if (l->kind == CMD_LAUNCH_TASK && l->size > 1) {
        cmd_error("simulate is one process and makes its ranks itself: start it without %s", l->by->name);
        return CMD_EXIT_USAGE;
    }
    int code = read_options(&s);
    code = code ? code : find_grid(&s);
    code = code ? code : find_platform(&s);
    code = code ? code : cmd_simulate_find(&s);
    code = code ? code : cmd_simulate_open(&s);
    if (code)
        return code;
    const cvy_status status = cvy_context_create(&opts, &context);
    code = status == CVY_OK ? predict(&s, context) : cmd_outcome(status);
    cvy_context_destroy(&context);
    code = code ? code : check_ranks(&s);
    code = code ? code : run_all(&s);
    cmd_simulate_close(&s);
    cvy_text_release(&s.platform.xml);
    return code;
}

static const cmd_option options[] = {
    {"--platform", "NAME|FILE", CMD_TEXT, CMD_FIELD(platform),
     "stampede2-like (the default), stampede2-knl-like, cori-like, frontera-like, piz-daint-like, ethernet-1g, or a "
     "YAML file"},
    {"--ranks", "LIST", CMD_TEXT, CMD_FIELD(ranks),
     "numbers of ranks, one per node, such as 1,8,128, or 1..1024 (which doubles, and is the default)"},
    {"--batch", "N", CMD_NUMBERS, CMD_FIELD(step.batches),
     "batch of a node; the job's or the network's own if not given"},
    {"--global-batch", "N", CMD_NUMBER, CMD_FIELD(global_batch), "strong scaling: the batch of all nodes together"},
    {"--node-ranks", "R", CMD_NUMBER, CMD_FIELD(node_ranks),
     "ranks of each node, which share its batch and add their gradients in its memory; 1 if not given"},
    {"--representatives", "N", CMD_NUMBER, CMD_FIELD(representatives),
     "simulates at most N nodes, which stand for all: much faster; sums count that nodes share uplinks; N and numbers "
     "of ranks above it are powers of two"},
    {"--noise", "S%", CMD_TEXT, CMD_FIELD(noise),
     "how much the time of a step varies by rank and step: standard deviation, such as 0.5%; 0 if not given"},
    {"--add", "BYTES/S", CMD_TEXT, CMD_FIELD(add),
     "bytes of incoming sums that a node adds a second, such as 3e9 for one thread, instead of the platform's"},
    {"--overlap", "true|false|forward", CMD_CHOICE, CMD_FIELD(overlap),
     "whether reductions overlap with the backward pass, or with the next forward pass too"},
    {"--blocking", NULL, CMD_FLAG, CMD_FIELD(blocking), "each reduction is waited for at once"},
    {"--latency-factor", "X", CMD_TEXT, CMD_FIELD(latency_factor), "factor on the platform's latency"},
    {"--bandwidth-factor", "X", CMD_TEXT, CMD_FIELD(bandwidth_factor), "factor on the platform's bandwidth"},
    {"--rate", "X|measured", CMD_TEXT, CMD_FIELD(rate),
     "images/s that a single node trains alone; the platform's if not given. measured: as many as this machine trains"},
    {"--steps", "N", CMD_NUMBER, CMD_FIELD(step.steps), "steps that count; 2 if not given"},
    {"--warmup", "N", CMD_NUMBER, CMD_FIELD(step.warmup), "steps before them; 1 if not given"},
    {"--options", "TEXT", CMD_TEXT, CMD_FIELD(step.model_options), "the network's own options, such as 'filters: 64'"},
    {"--dtype", "f32|bf16", CMD_DTYPE, CMD_FIELD(step.dtype), "type of activations"},
    {"--planning", CMD_PLANNING_WORDS, CMD_CHOICE, CMD_FIELD(step.planning),
     "measure: kernels without a known time are timed first, on this machine"},
    CMD_OPTION_SET,
    CMD_OPTION_JSON("prints a JSON object a line for each number of ranks"),
    {"--verbose", NULL, CMD_FLAG, CMD_FIELD(verbose), "prints more about what is going on"},
    {0},
};

const cmd_verb cmd_simulate = {
    .name = "simulate",
    .arguments = "JOB.yaml | MODEL [--platform NAME|FILE] [--ranks 1..1024] [--global-batch N] [--noise 0.5%]",
    .summary = "predicts training steps on machines that you do not have",
    .detail =
        "Kernels take the times that were measured here (--planning measure), scaled to the speed of a full "
        "node. The reductions over ranks are those of a real training, on a network that SimGrid simulates.\n"
        "It shows weak scaling, unless --global-batch is given. Each number of ranks is a row: the step; its "
        "efficiency relative to a single node; and in ms the communication that is waited for (exposed) and that "
        "is hidden, the wait for the slowest rank, and the difference between slowest and fastest rank (spread).\n"
        "With parallel.pipeline, tensor or spatial a node is one rank of the grid. A row then also has the grid (p "
        "stages, t and s parts, d ranks that share the batch), the exposed communication on each axis (halo: the "
        "spatial ones), and with a pipeline the share of the step in which a node waits for other stages (bubble), as "
        "simulated and as predicted.",
    .options = options,
    .options_size = sizeof(cmd_simulate_options),
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
