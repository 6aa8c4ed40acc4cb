/*
 * cmd_simulate_node.c: what a node of `convoy simulate` is: how long its kernels take, from the times that were
 * measured here, the speed that the platform has, and the ranks and threads into which the node is divided.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_machine.h"
#include "cmd_simulate.h"
#include "predict/predict.h"

/* Kernel times are scaled by one factor, which says little about a machine that is so many times faster. */
#define FAR_FASTER 10.0

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

int cmd_find_platform(const char *name, const char **text_out)
{
    const char *names[CMD_PLATFORMS_MAX];
    int n = 0;
    *text_out = NULL;
    for (; cmd_platforms[n].name && n < CMD_COUNT(names); n++) {
        names[n] = cmd_platforms[n].name;
        if (strcmp(names[n], name) == 0)
            *text_out = cmd_platforms[n].text;
    }
    if (*text_out || cmd_is_file(name))
        return 0;
    cmd_unknown("platform", name, names, n);
    return CMD_EXIT_FAULT;
}

int cmd_simulate_platform(cmd_simulation *s)
{
    const char *text = NULL;
    const int code = cmd_find_platform(s->platform_name, &text);
    if (code)
        return code;
    const cvy_platform_opts o = {.size = sizeof o,
                                 .file = text ? NULL : s->platform_name,
                                 .name = s->platform_name,
                                 .text = text,
                                 .model = s->model[0] ? s->model : NULL,
                                 .latency_factor = s->latency_factor,
                                 .bandwidth_factor = s->bandwidth_factor};
    cvy_text_release(&s->platform.xml);
    s->platform.size = sizeof s->platform;
    const cvy_status status = cvy_run_platform(&o, &s->platform);
    if (status == CVY_OK && s->add > 0)
        s->platform.add_bytes_per_s = s->add;
    if (status == CVY_OK && !s->options->noise)
        s->noise = s->platform.noise;
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
        "plan.clock_scale=1e-9", /* the step is foreseen from times: nobody waits for them */
        "update=sync", /* the kernels of a node do not depend on the update mode, and some modes need several ranks */
        "parallel={}", "train.accumulate=1"};
    const int nwords = alone ? CMD_COUNT(words) : s->servers > 0 ? 2 : 1;
    cmd_sets sets = s->options->sets;
    const int is_file = cmd_is_file(s->network);
    for (int i = 0; i < nwords && sets.count < CMD_SETS_MAX; i++)
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

/* A node that is not simulated is replaced by one that is as far away. In a ring all partners are neighbours, so any
 * number of nodes has such a replacement; other algorithms have partners at distances that are powers of two. */
static int check_representatives(const cmd_simulation *s, const cvy_job_source *job)
{
    const int64_t n = s->options->representatives;
    char *algorithm = NULL;
    const cvy_status status = cvy_run_job_value(job, "comm.algorithm", &algorithm);
    if (status != CVY_OK)
        return cmd_outcome(status);
    const int is_ring = algorithm && strncmp(algorithm, "ring", 4) == 0;
    int fits = n == 0 || (n >= 2 && cmd_is_power_of_two(n));
    for (int i = 0; n > 0 && i < s->nranks; i++)
        fits = fits &&
               (s->row[i].ranks <= n || (is_ring ? s->row[i].ranks % n == 0 : cmd_is_power_of_two(s->row[i].ranks)));
    cvy_text_release(&algorithm);
    if (fits)
        return 0;
    cmd_error("--representatives %lld: it, and numbers of ranks above it, have to be powers of two, such as 16; with "
              "comm.algorithm: ring these numbers may be any multiples of it",
              (long long)n);
    return CMD_EXIT_USAGE;
}

/* Servers have nodes of their own. A single node trains alone. */
static int read_servers(cmd_simulation *s, const cvy_job_source *job)
{
    char *text = NULL;
    const cvy_status status = cvy_run_job_value(job, "update", &text); /* other modes have no key update.servers */
    if (status != CVY_OK)
        return cmd_outcome(status);
    const char *servers = text ? strstr(text, "servers") : NULL;
    servers = servers ? strpbrk(servers, "0123456789") : NULL;
    s->servers = servers ? strtoll(servers, NULL, 10) : 0;
    cvy_text_release(&text);
    for (int i = 0; i < s->nranks && s->servers > 0; i++)
        if (s->row[i].ranks > 1 && s->row[i].ranks <= s->servers) {
            cmd_error("--ranks %lld with update: parameter_server and %lld server%s: expected more ranks than servers, "
                      "which train nothing",
                      (long long)s->row[i].ranks, (long long)s->servers, s->servers == 1 ? "" : "s");
            return CMD_EXIT_USAGE;
        }
    return 0;
}

int cmd_simulate_grid(cmd_simulation *s)
{
    const cvy_job_source job = job_of(s);
    int code = read_axis(&job, "parallel.pipeline", &s->stages, 1);
    code = code ? code : read_axis(&job, "parallel.tensor", &s->tensor, 1);
    code = code ? code : read_axis(&job, "parallel.spatial", s->spatial, 3);
    code = code ? code : read_axis(&job, "train.accumulate", &s->micro_batches, 1);
    code = code ? code : read_servers(s, &job);
    code = code ? code : check_representatives(s, &job);
    if (code)
        return code;
    s->parts = s->stages * s->tensor * s->spatial[0] * s->spatial[1] * s->spatial[2];
    for (int i = 0; i < s->nranks; i++)
        if (s->row[i].ranks % s->parts != 0) {
            cmd_error(
                "--ranks %lld with a grid of pipeline %lld, tensor %lld and spatial %lldx%lldx%lld: the number of "
                "ranks must be a multiple of their product, %lld",
                (long long)s->row[i].ranks, (long long)s->stages, (long long)s->tensor, (long long)s->spatial[0],
                (long long)s->spatial[1], (long long)s->spatial[2], (long long)s->parts);
            return CMD_EXIT_USAGE;
        }
    return 0;
}

/* ---- the speed of a node ---- */

static double by_flop(const cmd_simulation *s, const struct node_step *step)
{
    return step->batch * s->platform.gflop_per_s / step->gflop;
}

/* What a node trains alone with so many samples. */
static double rate_of(const cmd_simulation *s, const struct node_step *alone)
{
    return s->is_measured          ? 1e3 * alone->batch / alone->ms
           : s->rate > 0           ? s->rate
           : s->platform.nrate > 0 ? cvy_platform_images_per_s(&s->platform, alone->batch)
                                   : by_flop(s, alone);
}

/* If the platform has a table of rates, a node has another speed with other samples, and so has its scale. Else the
 * scale is that of the first row: with fewer samples a node loses the speed that one thread loses here. */
static int has_table(const cmd_simulation *s)
{
    return !s->is_measured && s->rate <= 0 && s->platform.nrate > 1;
}

/* Finds the factor on the times of kernels, with which a node that trains alone reaches its rate. It belongs to the
 * machine, so neither micro-batches nor a grid change it. step: of the ranks that share samples or layers. */
static int find_scale(cmd_simulation *s, cvy_context *context, struct node_step step, double *rate_out,
                      double *scale_out)
{
    const int64_t given = s->options->rate_batch;
    struct node_step alone = step;
    if (given > 0 || s->parts > 1 || s->micro_batches > 1) {
        const int64_t batch = given > 0 ? given : (int64_t)ceil(step.batch / (double)s->parts);
        const int code = predict_node(s, context, batch, 1, &alone);
        if (code)
            return code;
    }
    *rate_out = rate_of(s, &alone);
    *scale_out = 1e3 * alone.batch / alone.ms / *rate_out;
    return 0;
}

static void warn_of_speed(const cmd_simulation *s)
{
    if (s->scale < 1 / FAR_FASTER)
        cmd_note("convoy: warning: a node of %s is taken to be %.3g times as fast as this machine (%.4g images/s by "
                 "%s, %.4g as measured here): kernels that are bound by memory or by their number do not become so "
                 "much faster; give the rate of a real node by --rate, or take --rate measured\n",
                 s->platform_name, 1 / s->scale, s->node_rate, s->rate_from, s->node_rate * s->scale);
}

static int find_first_scale(cmd_simulation *s, cvy_context *context, struct node_step step)
{
    int code = cmd_simulate_platform(s); /* again, because now the network is known */
    code = code ? code : find_scale(s, context, step, &s->node_rate, &s->scale);
    if (code)
        return code;
    s->rate_from = s->is_measured          ? "as measured here"
                   : s->rate > 0           ? "--rate"
                   : s->platform.nrate > 1 ? "the platform's table of rates"
                   : s->platform.nrate > 0 ? "the platform's rates"
                                           : "the platform's gflop_per_s";
    s->ideal_rate = 1e3 * step.batch / (step.ms * s->scale);
    warn_of_speed(s);
    return 0;
}

/* Nodes stand for others along the data axis only. There at least two must be left, or no sum would be sent. */
static int lacks_representatives(const cmd_simulation *s)
{
    const int64_t n = s->options->representatives;
    int stands_in = 0;
    for (int i = 0; i < s->nranks; i++)
        stands_in |= n > 0 && s->row[i].ranks > n;
    return stands_in && s->parts > 1 && (n < 2 * s->parts || !cmd_is_power_of_two(s->parts));
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
    else if (s->options->threads > 0 && s->options->threads * r > s->platform.cores)
        cmd_error("%lld ranks of a node with --threads %lld, but a node has %lld cores: expected at most %lld threads",
                  (long long)r, (long long)s->options->threads, (long long)s->platform.cores,
                  (long long)(s->platform.cores / r));
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

/* ---- ranks and threads of a node ---- */

int64_t cmd_simulate_threads(const cmd_simulation *s)
{
    return s->options->threads > 0 ? s->options->threads : s->platform.cores / s->node_ranks;
}

/* The time of a rank with so many threads, relative to that of one with a thread on each core of the node and the same
 * work, if one thread does the share `serial` of the work while the others wait (Amdahl 1967). */
static double thread_time(const cmd_simulation *s, double threads)
{
    return (s->serial + (1 - s->serial) / threads) / (s->serial + (1 - s->serial) / (double)s->platform.cores);
}

/* How much longer kernels take if their threads are on several NUMA domains, which they fill one after the other.
 * Kernels wait for memory in the share `memory_bound` of their time. Pages are where the thread is that writes them
 * first: spread over the domains of the rank, if all threads do so, or in one domain. The slower one counts of the
 * memory and the links between domains. */
static double socket_time(const cmd_simulation *s, double threads)
{
    const double sockets = (double)s->platform.sockets,
                 of_rank = fmax(sockets * threads / (double)s->platform.cores, 1);
    const double memory = s->platform.memory_bytes_per_s / sockets; /* of a domain */
    const double link = s->platform.socket_bytes_per_s > 0 ? s->platform.socket_bytes_per_s : memory;
    const double other = (of_rank - 1) / of_rank; /* the share of the bytes that come from another domain */
    const double slow = s->one_socket ? fmax(of_rank, memory / link) : fmax(1, other * memory / link);
    return 1 + s->memory_bound * (of_rank > 1 ? slow - 1 : 0);
}

/* Without --threads ranks share all cores, also if their number does not divide that of the cores. */
double cmd_simulate_rank_time(const cmd_simulation *s)
{
    const double cores = (double)s->platform.cores, given = (double)s->options->threads,
                 threads = given > 0 ? given : cores / (double)s->node_ranks;
    return thread_time(s, threads) * socket_time(s, threads) / socket_time(s, cores);
}

/* --serial measured: the share of the work that one thread does, from the times with one thread and with all. */
static int measure_serial(cmd_simulation *s, int64_t batch, double one_ms)
{
    cmd_cores cores;
    cvy_context *context = NULL;
    struct node_step step = {0};
    const int threads = cmd_cores_get(0, &cores) ? cmd_cores_count(&cores) : 1;
    const cvy_context_opts opts = {.size = sizeof opts, .threads = threads, .log_level = CVY_LOG_WARN};
    if (threads < 2) {
        cmd_error("--serial measured, but one core may be used here: expected two at least, or a share such as 2%%");
        return CMD_EXIT_USAGE;
    }
    const cvy_status status = cvy_context_create(&opts, &context);
    const int code = status == CVY_OK ? predict_node(s, context, batch, 0, &step) : cmd_outcome(status);
    cvy_context_destroy(&context);
    if (!code)
        s->serial = fmin(fmax((threads * step.ms / one_ms - 1) / (threads - 1), 0), 1);
    return code;
}

/* ---- the steps of all numbers of ranks ---- */

int64_t cmd_simulate_servers(const cmd_simulation *s, int64_t ranks)
{
    return ranks > 1 ? s->servers : 0;
}

/* The nodes of a row that share the batch: servers train nothing. */
static int64_t shares_of(const cmd_simulation *s, int row)
{
    const int64_t ranks = s->row[row].ranks;
    return (ranks - cmd_simulate_servers(s, ranks)) / s->parts;
}

/* All kernel times must be known before the simulation starts, also those of a smaller share. */
static int predict_shares(cmd_simulation *s, cvy_context *context, int row)
{
    const int64_t all = s->options->global_batch, n = shares_of(s, row), least = all / n;
    struct node_step step = {0};
    int code = 0;
    for (int64_t b = least; !code && b <= least + (all % n != 0); b++) {
        code = predict_node(s, context, b, 0, &step);
        code = code ? code : predict_rank(s, context, b);
    }
    double rate = 0;
    return code || !has_table(s) ? code : find_scale(s, context, step, &rate, &s->row[row].scale);
}

int cmd_simulate_predict(cmd_simulation *s, cvy_context *context)
{
    const cmd_simulate_options *o = s->options;
    const int64_t all = o->global_batch, shares = shares_of(s, 0);
    const int64_t first = all                     ? (all + shares - 1) / shares
                          : o->step.batches.count ? o->step.batches.at[0] * s->parts
                                                  : 0;
    struct node_step step = {0};
    int code = check_node_ranks(s);
    code = code ? code : predict_node(s, context, first, 0, &step);
    code = code ? code : predict_rank(s, context, (int64_t)step.batch);
    code = code ? code : find_first_scale(s, context, step);
    if (!code && o->serial && strcmp(o->serial, "measured") == 0)
        code = measure_serial(s, (int64_t)step.batch, step.ms);
    s->batch = all ? all : (int64_t)step.batch;
    for (int i = 0; !code && i < s->nranks; i++) {
        s->row[i].scale = s->scale;
        code = all ? predict_shares(s, context, i) : 0;
    }
    return code;
}
