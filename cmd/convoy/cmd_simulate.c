/*
 * cmd_simulate.c: `convoy simulate`: runs a training step on a simulated machine, for several numbers of ranks in turn.
 *
 * This process computes the step time of one node from measured kernel times, and scales it to the speed of a full
 * node. Then smpirun (SimGrid) runs convoy-sim, which is this command with simulated MPI, as `bench --kernels clock` on
 * that number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd_bench.h"
#include "cmd_machine.h"
#include "cmd_mpi.h"

#define TIMES "times.json"
enum { COUNTS_MAX = 64, WORDS_MAX = 512, PATH_ROOM = 1024 };

extern const char cmd_platform_stampede2[], cmd_platform_cori[], cmd_platform_ethernet[];

static const struct {
    const char *name, *text;
} shipped[] = {
    {"stampede2-like", cmd_platform_stampede2},
    {"cori-like", cmd_platform_cori},
    {"ethernet-1g", cmd_platform_ethernet},
};

typedef struct verb_options {
    cmd_step step;
    cmd_sets sets;
    const char *platform, *ranks, *noise, *overlap, *latency_factor, *bandwidth_factor, *rate;
    int64_t global_batch;
    int blocking, json, verbose;
} verb_options;

struct simulation {
    const verb_options *options;
    const char *network; /* of the zoo, or a job file */
    int64_t ranks[COUNTS_MAX];
    int nranks;
    double noise, latency_factor, bandwidth_factor, rate;
    const char *overlap;
    char folder[64], sim[PATH_ROOM];
    cvy_platform platform;
    char model[128];
    int64_t stages, tensor, spatial[3]; /* the axes of the grid but that of data; 1: it is not used */
    int64_t parts;                      /* their product: the ranks that share samples or layers */
    int64_t batch;                      /* of these ranks together; with --global-batch the global batch */
    double scale, node_rate;            /* factor on kernel times; images/s of one node alone */
    const char *rate_from;
};

/* ---- the command line ---- */

static int wrong(const char *option, const char *value, const char *expected)
{
    cmd_error("%s is '%s', expected %s", option, value, expected);
    return CMD_EXIT_USAGE;
}

static int add_count(struct simulation *s, int64_t n)
{
    if (s->nranks == COUNTS_MAX)
        return CMD_EXIT_USAGE;
    s->ranks[s->nranks++] = n;
    return 0;
}

/* "1,2,8..1024": in a range each number is twice the one before. */
static int read_counts(struct simulation *s, const char *text)
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

static int read_options(struct simulation *s)
{
    const verb_options *o = s->options;
    s->latency_factor = s->bandwidth_factor = 1;
    int code = read_counts(s, o->ranks ? o->ranks : "1..1024");
    code = code ? code : read_real("--noise", o->noise, 0, &s->noise);
    code = code ? code : read_real("--latency-factor", o->latency_factor, 1e-9, &s->latency_factor);
    code = code ? code : read_real("--bandwidth-factor", o->bandwidth_factor, 1e-9, &s->bandwidth_factor);
    code = code ? code : read_real("--rate", o->rate, 1e-9, &s->rate);
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

/* ---- the node ---- */

static void fill_platform_opts(const struct simulation *s, cvy_platform_opts *o)
{
    const char *name = s->options->platform ? s->options->platform : shipped[0].name;
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

static int find_platform(struct simulation *s)
{
    cvy_platform_opts o;
    fill_platform_opts(s, &o);
    cvy_text_release(&s->platform.xml);
    if (o.file && !cmd_is_file(o.file)) {
        cmd_error("there is no platform '%s': take stampede2-like, cori-like or ethernet-1g, or name a file", o.file);
        return CMD_EXIT_FAULT;
    }
    s->platform.size = sizeof s->platform;
    const cvy_status status = cvy_run_platform(&o, &s->platform);
    return status == CVY_OK ? 0 : cmd_outcome(status);
}

/* Finds what a step of `batch` samples takes on one node according to the measured kernel times. It runs in this
 * process. *ms_out: ms per step; *gflop_out: GFLOP per step; *batch_out: the batch. */
static int predict_node(struct simulation *s, cvy_context *context, int64_t batch, double *ms_out, double *gflop_out,
                        double *batch_out)
{
    cmd_sets sets = s->options->sets;
    const int is_file = cmd_is_file(s->network);
    if (sets.count < CMD_SETS_MAX)
        sets.word[sets.count++] = "update=sync"; /* the kernels of a node do not depend on the update mode, and some
                                                  * modes need several ranks */
    const cvy_job_source job = cmd_job(&sets, is_file ? s->network : NULL, NULL);
    cvy_bench_opts opts =
        cmd_step_opts(&s->options->step, &sets, is_file ? &job : NULL, is_file ? NULL : s->network, batch);
    cvy_bench_result r = {.size = sizeof r};
    opts.kernels = "clock";
    opts.foresee = s->parts > 1;
    opts.steps = opts.warmup = 1;
    opts.trace = NULL;
    const cvy_status status = cvy_run_bench(context, &opts, &r);
    if (status != CVY_OK)
        return cmd_outcome(status);
    memcpy(s->model, r.model, sizeof s->model);
    *ms_out = r.predicted_ms;
    *gflop_out = r.gflop;
    *batch_out = (double)r.batch;
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
static int find_grid(struct simulation *s)
{
    static const char network[] = "{name: simulate, model: lenet, data: {train: synthetic}, train: {steps: 1}}";
    const int is_file = cmd_is_file(s->network);
    cvy_job_source job = cmd_job(&s->options->sets, is_file ? s->network : NULL, NULL);
    if (!is_file) /* the grid does not depend on the network */
        job.text = network;
    int code = read_axis(&job, "parallel.pipeline", &s->stages, 1);
    code = code ? code : read_axis(&job, "parallel.tensor", &s->tensor, 1);
    code = code ? code : read_axis(&job, "parallel.spatial", s->spatial, 3);
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

/* Computes the step time for the local batch of the smallest number of ranks, and from it the scale factor. Then it
 * does so for the other local batches: all kernel times must be known before the simulation starts. */
static int predict(struct simulation *s, cvy_context *context)
{
    const verb_options *o = s->options;
    double ms = 0, gflop = 0, batch = 0;
    const int64_t shares = s->ranks[0] / s->parts;
    const int64_t first = o->global_batch         ? (o->global_batch + shares - 1) / shares
                          : o->step.batches.count ? o->step.batches.at[0] * s->parts
                                                  : 0;
    int code = predict_node(s, context, first, &ms, &gflop, &batch);
    s->batch = o->global_batch ? o->global_batch : (int64_t)batch;
    for (int i = 0; !code && o->global_batch && i < s->nranks; i++) {
        double other_ms = 0, other_gflop = 0, other_batch = 0;
        const int64_t n = s->ranks[i] / s->parts, share = o->global_batch / n;
        for (int64_t b = share; !code && b <= share + (o->global_batch % n != 0); b++)
            code = predict_node(s, context, b, &other_ms, &other_gflop, &other_batch);
    }
    code = code ? code : find_platform(s);
    if (code)
        return code;
    const double by_flop = batch * s->platform.gflop_per_s / gflop;
    s->node_rate = s->rate > 0 ? s->rate : s->platform.images_per_s > 0 ? s->platform.images_per_s : by_flop;
    s->rate_from = s->rate > 0                    ? "--rate"
                   : s->platform.images_per_s > 0 ? "the platform's rates"
                                                  : "the platform's gflop_per_s";
    s->scale = 1e3 * batch / s->node_rate / ms;
    return 0;
}

/* ---- the simulator ---- */

static int write_text(const struct simulation *s, const char *name, const char *text)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    FILE *file = fopen(path, "w");
    const int bad = !file || fputs(text, file) < 0;
    if ((file && fclose(file)) || bad) {
        cmd_error("%s cannot be written", path);
        return CMD_EXIT_FAULT;
    }
    return 0;
}

static int write_hosts(const struct simulation *s, int64_t ranks)
{
    const size_t room = (size_t)ranks * 24 + 1;
    char *text = malloc(room);
    size_t n = 0;
    for (int64_t i = 0; text && i < ranks; i++)
        n += (size_t)snprintf(text + n, room - n, "node%lld\n", (long long)i);
    const int code = text ? write_text(s, "hosts", text) : CMD_EXIT_FAULT;
    free(text);
    return code;
}

struct words {
    char text[32][PATH_ROOM];
    const char *at[WORDS_MAX];
    int ntext, n;
};

static void add(struct words *w, const char *word)
{
    if (w->n < WORDS_MAX - 1)
        w->at[w->n++] = word;
}

static void add_text(struct words *w, const char *fmt, const char *a, double b)
{
    char *text = w->text[w->ntext++];
    if (a)
        snprintf(text, PATH_ROOM, fmt, a);
    else
        snprintf(text, PATH_ROOM, fmt, b);
    add(w, text);
}

static void add_pair(struct words *w, const char *option, const char *value)
{
    if (value) {
        add(w, option);
        add(w, value);
    }
}

/* Simulated time passes only in messages, waits and the time that the platform's file charges. The time that the
 * simulation itself takes is not counted. */
static void add_simgrid(const struct simulation *s, struct words *w, int64_t ranks)
{
    static const char *const fixed[] = {
        "--log=root.thres:critical",
        "--cfg=smpi/privatization:no",
        "--cfg=smpi/simulate-computation:no",
        "--cfg=smpi/grow-injected-times:no",
        "--cfg=smpi/bw-factor:0:1",
        "--cfg=smpi/lat-factor:0:1",
        "--cfg=network/crosstraffic:no",
        "--cfg=smpi/wtime:0",
        "--cfg=smpi/test:1e-7",
        "--cfg=smpi/shared-malloc-blocksize:2097152",
        "--cfg=contexts/stack-size:256",
        "--cfg=smpi/host-speed:1Gf",
    };
    add(w, "smpirun");
    add(w, "-np");
    add_text(w, "%.0f", NULL, (double)ranks);
    add(w, "-platform");
    add_text(w, "%s/platform.xml", s->folder, 0);
    add(w, "-hostfile");
    add_text(w, "%s/hosts", s->folder, 0);
    for (int i = 0; i < CMD_COUNT(fixed); i++)
        add(w, fixed[i]);
    if (s->platform.message_s > 0) {
        add_text(w, "--cfg=smpi/os:0:%.9g:0", NULL, s->platform.message_s);
        add_text(w, "--cfg=smpi/ois:0:%.9g:0", NULL, s->platform.message_s);
        add_text(w, "--cfg=smpi/or:0:%.9g:0", NULL, s->platform.message_s);
    }
    add(w, s->sim);
    add_text(w, "@%s/words", s->folder, 0);
}

static void add_bench(const struct simulation *s, struct words *w, int64_t ranks)
{
    const verb_options *o = s->options;
    const int is_file = cmd_is_file(s->network);
    add(w, "bench");
    if (is_file)
        add(w, s->network);
    else
        add_pair(w, "--model", s->network);
    add_pair(w, "--options", o->step.model_options);
    add(w, "--batch");
    add_text(w, "%.0f", NULL, (double)(o->global_batch ? s->batch : s->batch * (ranks / s->parts)));
    add_pair(w, "--threads", "1");
    add_pair(w, "--kernels", "clock");
    add(w, "--warmup");
    add_text(w, "%.0f", NULL, o->step.warmup ? (double)o->step.warmup : 1);
    add(w, "--steps");
    add_text(w, "%.0f", NULL, o->step.steps ? (double)o->step.steps : 2);
    add_pair(w, "--dtype", o->step.dtype == CVY_DTYPE_BF16 ? "bf16" : NULL);
    for (int i = 0; i < o->sets.count; i++)
        add_pair(w, "--set", o->sets.word[i]);
    add(w, "--set");
    add_text(w, "plan.clock_scale=%.12g", NULL, s->scale);
    add(w, "--set");
    add_text(w, "plan.clock_noise=%.12g", NULL, s->noise);
    if (o->overlap) {
        add(w, "--set");
        add_text(w, "comm.overlap=%s", o->overlap, 0);
    }
    add_pair(w, "--set", o->blocking ? "comm.blocking=true" : NULL);
}

/* smpirun splits words at blanks, so the arguments of the ranks are in a file. */
static int write_words(const struct simulation *s, const struct words *w)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/words", s->folder);
    FILE *file = fopen(path, "w");
    for (int i = 0; file && i < w->n; i++)
        fwrite(w->at[i], 1, strlen(w->at[i]) + 1, file);
    const int bad = !file || ferror(file);
    if ((file && fclose(file)) || bad) {
        cmd_error("%s cannot be written", path);
        return CMD_EXIT_FAULT;
    }
    return 0;
}

/* ---- the simulation is a process group: a signal that ends this process ends the group too ---- */

static volatile sig_atomic_t child_group, ended_by;

static void end_child(int signal)
{
    ended_by = signal;
    if (child_group > 0)
        kill(-child_group, signal);
}

static void pass_signals_on(void)
{
    const struct sigaction act = {.sa_handler = end_child};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
}

/* The child's stderr goes to the file `stderr`. Its rank 0 writes the result to the file `result` (cmd_bench.c).
 * Returns 1 if there is a result. */
static int run_child(const struct simulation *s, const struct words *w, cvy_bench_result *result_out, int *status_out)
{
    char stderr_path[PATH_ROOM], path[PATH_ROOM];
    *status_out = -1;
    snprintf(stderr_path, sizeof stderr_path, "%s/stderr", s->folder);
    snprintf(path, sizeof path, "%s/" CMD_RESULT_FILE, s->folder);
    remove(path);
    setenv(CMD_RESULT_VARIABLE, path, 1);
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        const int dev_null = open("/dev/null", O_WRONLY),
                  stderr_file = open(stderr_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(dev_null, STDOUT_FILENO);
        dup2(stderr_file, STDERR_FILENO);
        execvp(w->at[0], (char *const *)(uintptr_t)w->at);
        _exit(127);
    }
    if (child > 0)
        setpgid(child, child); /* parent and child both call it, so the order does not matter */
    child_group = child;
    if (ended_by)
        end_child(ended_by);
    while (child > 0 && waitpid(child, status_out, 0) < 0 && errno == EINTR)
        continue;
    child_group = 0;
    FILE *file = fopen(path, "r");
    const int found =
        file && fread(result_out, sizeof *result_out, 1, file) == 1 && result_out->size == sizeof *result_out;
    if (file)
        fclose(file);
    return found;
}

/* Prints the first error that a rank reported, or else the first line of the output. */
static void print_reason(const struct simulation *s, int64_t ranks, int status)
{
    char path[PATH_ROOM], line[PATH_ROOM] = "", first[PATH_ROOM] = "";
    snprintf(path, sizeof path, "%s/stderr", s->folder);
    FILE *stderr_file = fopen(path, "r");
    int found = 0;
    while (stderr_file && !found && fgets(line, sizeof line, stderr_file)) {
        line[strcspn(line, "\n")] = 0;
        found = strstr(line, "convoy: error: ") != NULL;
        if (!first[0] || found)
            snprintf(first, sizeof first, "%s",
                     found ? strstr(line, "convoy: error: ") + strlen("convoy: error: ") : line);
    }
    if (stderr_file)
        fclose(stderr_file);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        cmd_error("smpirun does not start: install SimGrid (Debian: libsimgrid-dev)");
    else if (ended_by)
        cmd_error("ended by a signal (%s)", strsignal(ended_by));
    else
        cmd_error("the simulation of %lld ranks fails: %s", (long long)ranks, first[0] ? first : "it printed nothing");
}

static int simulate(const struct simulation *s, int64_t ranks, cvy_bench_result *result_out)
{
    static struct words w;
    int status = 0;
    w.n = w.ntext = 0;
    if (write_hosts(s, ranks))
        return CMD_EXIT_FAULT;
    add_bench(s, &w, ranks);
    if (write_words(s, &w))
        return CMD_EXIT_FAULT;
    w.n = 0;
    add_simgrid(s, &w, ranks);
    w.at[w.n] = NULL;
    if (run_child(s, &w, result_out, &status))
        return 0;
    print_reason(s, ranks, status);
    return CMD_EXIT_FAULT;
}

/* ---- the table ---- */

/* An axis on which no rank waits has no time. */
static double or_zero(double ms)
{
    return isnan(ms) ? 0 : ms;
}

static int is_spatial(const struct simulation *s)
{
    return s->spatial[0] * s->spatial[1] * s->spatial[2] > 1;
}

/* "p2 t2 s2x1 d4": the axes that are used, and the ranks that are left for data. */
static const char *grid_text(const struct simulation *s, int ranks, char *text, size_t room)
{
    size_t n = 0;
    text[0] = 0;
    if (s->stages > 1)
        n += (size_t)snprintf(text + n, room - n, "p%lld ", (long long)s->stages);
    if (s->tensor > 1)
        n += (size_t)snprintf(text + n, room - n, "t%lld ", (long long)s->tensor);
    if (is_spatial(s))
        n += (size_t)snprintf(text + n, room - n, "s%lldx%lld", (long long)s->spatial[0], (long long)s->spatial[1]);
    if (s->spatial[2] > 1)
        n += (size_t)snprintf(text + n, room - n, "x%lld", (long long)s->spatial[2]);
    snprintf(text + n, room - n, "%sd%lld", is_spatial(s) ? " " : "", (long long)(ranks / s->parts));
    return text;
}

static void show_grid_json(const struct simulation *s, const cvy_bench_result *r)
{
    printf(", \"pipeline\": %d, \"micro_batches\": %d, \"tensor\": %lld, \"spatial\": [%lld, %lld, %lld], "
           "\"exposed_data_ms\": %.9g, \"exposed_pipeline_ms\": %.9g, \"exposed_tensor_ms\": %.9g, "
           "\"exposed_halo_ms\": %.9g",
           r->pipeline, r->micro_batches, (long long)s->tensor, (long long)s->spatial[0], (long long)s->spatial[1],
           (long long)s->spatial[2], or_zero(r->exposed_data_ms), or_zero(r->exposed_pipeline_ms),
           or_zero(r->exposed_tensor_ms), or_zero(r->exposed_spatial_ms));
    if (s->stages > 1)
        printf(", \"bubble\": %.6g, \"bubble_predicted\": %.6g", r->bubble, r->bubble_predicted);
}

/* The columns of the axes that are used. */
static void show_grid(const struct simulation *s, const cvy_bench_result *r)
{
    char grid[96];
    if (s->parts <= 1)
        return;
    if (s->options->json) {
        show_grid_json(s, r);
        return;
    }
    printf(" %16s %9.3f", grid_text(s, r->ranks, grid, sizeof grid), or_zero(r->exposed_data_ms));
    if (s->stages > 1)
        printf(" %9.3f", or_zero(r->exposed_pipeline_ms));
    if (s->tensor > 1)
        printf(" %9.3f", or_zero(r->exposed_tensor_ms));
    if (is_spatial(s))
        printf(" %9.3f", or_zero(r->exposed_spatial_ms));
    if (s->stages > 1)
        printf(" %9.1f %9.1f", 100 * r->bubble, 100 * r->bubble_predicted);
}

static void show_grid_head(const struct simulation *s)
{
    if (s->parts > 1)
        printf(" %16s %9s", "grid", "data");
    if (s->stages > 1)
        printf(" %9s", "pipeline");
    if (s->tensor > 1)
        printf(" %9s", "tensor");
    if (is_spatial(s))
        printf(" %9s", "halo");
    if (s->stages > 1)
        printf(" %9s %9s", "bubble %", "predicted");
}

static void show(const struct simulation *s, int64_t ranks, const cvy_bench_result *r)
{
    const double ms = r->ms_mean, rate = 1e3 * (double)r->batch / ms;
    const double efficiency = 100 * rate / ((double)ranks * s->node_rate);
    if (s->options->json)
        printf("{\"model\": \"%s\", \"ranks\": %lld, \"batch\": %lld, \"step_ms\": %.9g, \"images_per_s\": %.9g, "
               "\"efficiency\": %.6g, \"exposed_comm_ms\": %.9g,"
               " \"hidden_comm_ms\": %.9g, \"wait_slowest_ms\": %.9g, \"spread_ms\": %.9g, \"clock_scale\": %.9g, "
               "\"node_images_per_s\": %.9g",
               s->model, (long long)ranks, (long long)r->batch, ms, rate, efficiency, r->exposed_comm_ms,
               r->hidden_comm_ms, r->wait_slowest_ms, r->spread_ms, s->scale, s->node_rate);
    else
        printf("%7lld %9lld %10.3f %10.1f %10.1f %9.3f %9.3f %9.3f %9.3f", (long long)ranks, (long long)r->batch, ms,
               efficiency, rate, r->exposed_comm_ms, r->hidden_comm_ms, r->wait_slowest_ms, r->spread_ms);
    show_grid(s, r);
    printf("%s\n", s->options->json ? "}" : "");
    fflush(stdout);
}

static void show_head(const struct simulation *s)
{
    if (s->options->json)
        return;
    printf("%s on %s: %s\n", s->model, s->options->platform ? s->options->platform : shipped[0].name,
           s->platform.summary);
    printf("a node alone trains %.1f images/s (%s): measured kernel times x %.4g; noise %.3g %%; %lld samples %s\n\n",
           s->node_rate, s->rate_from, s->scale, 100 * s->noise, (long long)s->batch,
           s->options->global_batch ? "in all"
           : s->parts > 1           ? "for the nodes that share them"
                                    : "a node");
    printf("%7s %9s %10s %10s %10s %9s %9s %9s %9s", "ranks", "batch", "step ms", "% of ideal", "images/s", "exposed",
           "hidden", "slowest", "spread");
    show_grid_head(s);
    printf("\n");
}

/* ---- the run ---- */

static int find_sim(struct simulation *s)
{
    const char *named = getenv("CONVOY_SIM");
    const size_t n = cmd_self(s->sim, sizeof s->sim - 16);
    if (named)
        snprintf(s->sim, sizeof s->sim, "%s", named);
    else
        snprintf(s->sim + n, 8, "-sim");
    if (access(s->sim, R_OK) == 0)
        return 0;
    cmd_error("%s does not exist: this convoy was built without SimGrid (Debian: simgrid, libsimgrid-dev); install it "
              "and build again",
              s->sim);
    return CMD_EXIT_FAULT;
}

static int run_all(struct simulation *s)
{
    char rate[32];
    int code = 0;
    for (int i = 0; i < s->nranks; i++)
        if (s->ranks[i] > s->platform.nodes) {
            cmd_error("--ranks %lld, but the platform has %lld nodes: take at most so many of %s, or a larger platform",
                      (long long)s->ranks[i], (long long)s->platform.nodes,
                      s->options->platform ? s->options->platform : shipped[0].name);
            return CMD_EXIT_USAGE;
        }
    snprintf(rate, sizeof rate, "%.9g", s->platform.add_bytes_per_s);
    setenv("CONVOY_SIMULATED_ADD", rate, 1);
    snprintf(rate, sizeof rate, "%lld", (long long)s->platform.cores);
    setenv("CONVOY_SIMULATED_CORES", rate, 1);
    code = write_text(s, "platform.xml", s->platform.xml);
    if (!code)
        show_head(s);
    for (int i = 0; i < s->nranks && !code; i++) {
        cvy_bench_result result;
        code = simulate(s, s->ranks[i], &result);
        if (!code)
            show(s, s->ranks[i], &result);
    }
    return code;
}

static void clean(const struct simulation *s)
{
    static const char *const names[] = {"platform.xml",  "hosts", "words",      "stderr",
                                        CMD_RESULT_FILE, TIMES,   TIMES ".lock"};
    char path[PATH_ROOM];
    for (int i = 0; i < CMD_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", s->folder, names[i]);
        remove(path);
    }
    rmdir(s->folder);
}

/* The simulated ranks find the kernel times in the file of measured times. If the user keeps none, one that lasts as
 * long as this command takes its place. */
static void keep_times(const struct simulation *s)
{
    const char *file = getenv("CONVOY_WISDOM");
    char path[PATH_ROOM];
    if (!file || strcmp(file, "off") != 0)
        return;
    snprintf(path, sizeof path, "%s/" TIMES, s->folder);
    setenv("CONVOY_WISDOM", path, 1);
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    struct simulation s = {.options = o, .network = line->arg[0]};
    const char *tmp = getenv("TMPDIR");
    const cvy_context_opts opts = {
        .size = sizeof opts, .threads = 1, .log_level = o->verbose ? CVY_LOG_DEBUG : CVY_LOG_WARN};
    cvy_context *context = NULL;
    const char *by = NULL;
    if (cmd_launched(&by) > 1) {
        cmd_error("simulate is one process and makes its ranks itself: start it without %s", by);
        return CMD_EXIT_USAGE;
    }
    int code = read_options(&s);
    code = code ? code : find_grid(&s);
    code = code ? code : find_platform(&s);
    code = code ? code : find_sim(&s);
    if (code)
        return code;
    snprintf(s.folder, sizeof s.folder, "%.40s/convoy-sim.XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    if (!mkdtemp(s.folder)) {
        cmd_error("%s cannot be created", s.folder);
        return CMD_EXIT_FAULT;
    }
    keep_times(&s);
    const cvy_status status = cvy_context_create(&opts, &context);
    code = status == CVY_OK ? predict(&s, context) : cmd_outcome(status);
    cvy_context_destroy(&context);
    if (!code) {
        pass_signals_on();
        code = run_all(&s);
    }
    clean(&s);
    cvy_text_release(&s.platform.xml);
    return code;
}

static const cmd_option options[] = {
    {"--platform", "NAME|FILE", CMD_TEXT, CMD_FIELD(platform),
     "stampede2-like (the default), cori-like, ethernet-1g, or a YAML file"},
    {"--ranks", "LIST", CMD_TEXT, CMD_FIELD(ranks),
     "numbers of ranks, one per node, such as 1,8,128, or 1..1024 (which doubles, and is the default)"},
    {"--batch", "N", CMD_NUMBERS, CMD_FIELD(step.batches),
     "batch of a node; the job's or the network's own if not given"},
    {"--global-batch", "N", CMD_NUMBER, CMD_FIELD(global_batch), "strong scaling: the batch of all nodes together"},
    {"--noise", "S%", CMD_TEXT, CMD_FIELD(noise),
     "how much the time of a step varies by rank and step: standard deviation, such as 0.5%; 0 if not given"},
    {"--overlap", "true|false|forward", CMD_CHOICE, CMD_FIELD(overlap),
     "whether reductions overlap with the backward pass, or with the next forward pass too"},
    {"--blocking", NULL, CMD_FLAG, CMD_FIELD(blocking), "each reduction is waited for at once"},
    {"--latency-factor", "X", CMD_TEXT, CMD_FIELD(latency_factor), "factor on the platform's latency"},
    {"--bandwidth-factor", "X", CMD_TEXT, CMD_FIELD(bandwidth_factor), "factor on the platform's bandwidth"},
    {"--rate", "X", CMD_TEXT, CMD_FIELD(rate), "images/s that a single node trains; the platform's if not given"},
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
        "efficiency relative to a single node; and in ms the exposed communication, the overlapped "
        "communication, the wait for the slowest rank and the skew between the ranks.\n"
        "With parallel.pipeline, tensor or spatial a node is one rank of the grid. A row then also has the grid (p "
        "stages, t and s parts, d ranks that share the batch), the exposed communication on each axis (halo: the "
        "spatial ones), and with a pipeline the share of the step in which a node waits for other stages (bubble), as "
        "simulated and as predicted.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
