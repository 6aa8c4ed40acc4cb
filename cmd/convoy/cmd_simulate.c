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

typedef cmd_simulate_options verb_options; /* for the table of options */

#define DEFAULT_PLATFORM "stampede2-like"

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
    s->row[s->nranks++].ranks = n;
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

static int read_share(const char *option, const char *text, double *out)
{
    const int code = read_real(option, text, 0, out);
    return code || *out <= 1 ? code : wrong(option, text, "a share, such as 2%");
}

int cmd_is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static int read_options(cmd_simulation *s)
{
    const cmd_simulate_options *o = s->options;
    s->latency_factor = s->bandwidth_factor = 1;
    int code = read_counts(s, o->ranks ? o->ranks : "1..1024");
    code = code ? code : read_real("--noise", o->noise, 0, &s->noise);
    if (o->serial && strcmp(o->serial, "measured") != 0)
        code = code ? code : read_share("--serial", o->serial, &s->serial);
    code = code ? code : read_share("--memory-bound", o->memory_bound, &s->memory_bound);
    s->one_socket = o->pages && strcmp(o->pages, "one") == 0;
    code = code ? code : read_real("--add", o->add, 1e3, &s->add);
    code = code ? code : read_real("--latency-factor", o->latency_factor, 1e-9, &s->latency_factor);
    code = code ? code : read_real("--bandwidth-factor", o->bandwidth_factor, 1e-9, &s->bandwidth_factor);
    s->is_measured = o->rate && strcmp(o->rate, "measured") == 0;
    if (!s->is_measured)
        code = code ? code : read_real("--rate", o->rate, 1e-9, &s->rate);
    s->node_ranks = o->node_ranks > 0 ? o->node_ranks : 1;
    if (!code && s->noise >= 1)
        code = wrong("--noise", o->noise, "a share below 100%");
    if (!code && (o->step.batches.count > 1 || (o->step.batches.count && o->global_batch))) {
        cmd_error("--batch is the batch of a node, one number; --global-batch is that of all nodes: give one of them");
        code = CMD_EXIT_USAGE;
    }
    for (int i = 0; !code && o->global_batch && i < s->nranks; i++)
        if (s->row[i].ranks > o->global_batch) {
            cmd_error("--global-batch %lld on %lld ranks: some would have no sample", (long long)o->global_batch,
                      (long long)s->row[i].ranks);
            code = CMD_EXIT_USAGE;
        }
    return code;
}

/* ---- the run ---- */

static int run_all(cmd_simulation *s)
{
    int code = cmd_simulate_begin(s);
    if (!code)
        cmd_simulate_show_head(s);
    for (int i = 0; i < s->nranks && !code; i++) {
        cvy_bench_result result;
        code = cmd_simulate_ranks(s, &s->row[i], &result);
        if (!code)
            cmd_simulate_show(s, &s->row[i], &result);
    }
    return code;
}

static int check_ranks(const cmd_simulation *s)
{
    for (int i = 0; i < s->nranks; i++)
        if (s->row[i].ranks > s->platform.nodes) {
            cmd_error("--ranks %lld, but the platform has %lld nodes: take at most so many of %s, or a larger platform",
                      (long long)s->row[i].ranks, (long long)s->platform.nodes, s->platform_name);
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
                        .platform_name = o->platform ? o->platform : DEFAULT_PLATFORM};
    const cvy_context_opts opts = {
        .size = sizeof opts, .threads = 1, .log_level = o->verbose ? CVY_LOG_DEBUG : CVY_LOG_WARN};
    cvy_context *context = NULL;
    const cmd_launch *l = cmd_launch_here();
    if (l->kind == CMD_LAUNCH_TASK && l->size > 1) {
        cmd_error("simulate is one process and makes its ranks itself: start it without %s", l->by->name);
        return CMD_EXIT_USAGE;
    }
    int code = read_options(&s);
    code = code ? code : cmd_simulate_grid(&s);
    code = code ? code : cmd_simulate_platform(&s);
    code = code ? code : cmd_simulate_find(&s);
    code = code ? code : cmd_simulate_open(&s);
    if (code)
        return code;
    const cvy_status status = cvy_context_create(&opts, &context);
    code = status == CVY_OK ? cmd_simulate_predict(&s, context) : cmd_outcome(status);
    cvy_context_destroy(&context);
    code = code ? code : check_ranks(&s);
    code = code ? code : run_all(&s);
    cmd_simulate_close(&s);
    cvy_text_release(&s.platform.xml);
    return code;
}

static const cmd_option options[] = {
    {"--platform", "NAME|FILE", CMD_TEXT, CMD_FIELD(platform),
     DEFAULT_PLATFORM " (the default), another machine that convoy knows (an unknown name lists them), or a YAML file"},
    {"--ranks", "LIST", CMD_TEXT, CMD_FIELD(ranks),
     "numbers of ranks, one per node, such as 1,8,128, or 1..1024 (which doubles, and is the default)"},
    {"--batch", "N", CMD_NUMBERS, CMD_FIELD(step.batches),
     "batch of a node; the job's or the network's own if not given"},
    {"--global-batch", "N", CMD_NUMBER, CMD_FIELD(global_batch), "strong scaling: the batch of all nodes together"},
    {"--node-ranks", "R", CMD_NUMBER, CMD_FIELD(node_ranks),
     "ranks of each node, which share its batch and add their gradients in its memory; 1 if not given"},
    {"--threads", "T", CMD_NUMBER, CMD_FIELD(threads),
     "threads of each rank, one on a core, while the other cores idle; if not given, ranks share all cores of the "
     "node"},
    {"--serial", "S%|measured", CMD_TEXT, CMD_FIELD(serial),
     "share of a step that one thread of a rank does while the others wait; 0 if not given, so that threads scale. "
     "measured: from the times with one thread and with all threads here"},
    {"--memory-bound", "S%", CMD_TEXT, CMD_FIELD(memory_bound),
     "share of a step in which kernels wait for memory, which is slower for a rank on several sockets; 0 if not given"},
    {"--pages", "spread|one", CMD_CHOICE, CMD_FIELD(pages),
     "where the memory of a rank on several sockets is: spread over them (as convoy does), or on one"},
    {"--representatives", "N", CMD_NUMBER, CMD_FIELD(representatives),
     "simulates at most N nodes, which stand for all: much faster; sums count that nodes share uplinks; N and numbers "
     "of ranks above it are powers of two; in a ring (comm.algorithm) these numbers are multiples of N"},
    {"--noise", "S%", CMD_TEXT, CMD_FIELD(noise),
     "how much the time of a step varies by rank and step: standard deviation, such as 0.5%; the platform's if not "
     "given"},
    {"--add", "BYTES/S", CMD_TEXT, CMD_FIELD(add),
     "bytes of incoming sums that a node adds a second, such as 3e9 for one thread, instead of the platform's"},
    {"--overlap", "true|false|forward", CMD_CHOICE, CMD_FIELD(overlap),
     "whether reductions overlap with the backward pass, or with the next forward pass too"},
    {"--blocking", NULL, CMD_FLAG, CMD_FIELD(blocking), "each reduction is waited for at once"},
    {"--latency-factor", "X", CMD_TEXT, CMD_FIELD(latency_factor), "factor on the platform's latency"},
    {"--bandwidth-factor", "X", CMD_TEXT, CMD_FIELD(bandwidth_factor), "factor on the platform's bandwidth"},
    {"--rate", "X|measured", CMD_TEXT, CMD_FIELD(rate),
     "images/s that a single node trains alone; the platform's if not given. measured: as many as this machine trains"},
    {"--rate-batch", "N", CMD_NUMBER, CMD_FIELD(rate_batch),
     "samples with which a single node has this rate: with fewer it loses what one thread loses here; those of a node "
     "if not given"},
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
