/*
 * cmd_simulate_child.c: runs the simulator: smpirun (SimGrid) with convoy-sim, as `bench --kernels clock` on a number
 * of ranks. What it reads and writes is in a folder of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd_machine.h"
#include "cmd_simulate.h"
#include "measure/measure.h"

#define TIMES "times.json"
enum { WORDS_MAX = 512 };

int cmd_simulate_find(cmd_simulation *s)
{
    const char *named = getenv("CONVOY_SIM");
    const size_t n = cmd_self(s->sim, sizeof s->sim - 16);
    if (named)
        snprintf(s->sim, sizeof s->sim, "%s", named);
    else
        snprintf(s->sim + n, 8, "-sim");
    if (access(s->sim, R_OK) == 0)
        return 0;
    cmd_error("%s does not exist: build all of convoy (cmake --build; scripts/demo.sh builds a part), after SimGrid is "
              "installed (Debian: libsimgrid-dev)",
              s->sim);
    return CMD_EXIT_FAULT;
}

/* The simulated ranks find the kernel times in the file of measured times. If the user keeps none, one that lasts as
 * long as this command takes its place. */
static void keep_times(const cmd_simulation *s)
{
    const char *file = getenv("CONVOY_WISDOM");
    char path[CMD_SIMULATE_PATH];
    if (!file || strcmp(file, "off") != 0)
        return;
    snprintf(path, sizeof path, "%s/" TIMES, s->folder);
    setenv("CONVOY_WISDOM", path, 1);
}

int cmd_simulate_open(cmd_simulation *s)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(s->folder, sizeof s->folder, "%.40s/convoy-sim.XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    if (!mkdtemp(s->folder)) {
        cmd_error("%s cannot be created", s->folder);
        return CMD_EXIT_FAULT;
    }
    keep_times(s);
    return 0;
}

/* ---- what the simulator reads ---- */

static int write_text(const cmd_simulation *s, const char *name, const char *text)
{
    char path[CMD_SIMULATE_PATH];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    FILE *file = cmd_open_stream(path, "w");
    const int bad = !file || fputs(text, file) < 0;
    if ((file && fclose(file)) || bad) {
        cmd_error("%s cannot be written", path);
        return CMD_EXIT_FAULT;
    }
    return 0;
}

/* The nodes that are really simulated. */
static int64_t simulated(const cmd_simulation *s, int64_t ranks)
{
    const int64_t most = s->options->representatives;
    return most > 0 && ranks > most ? most : ranks;
}

/* Whether the nodes that add the same gradients, which are neighbours (comm_grid.h), are below several switches. */
static int spans_switches(const cmd_simulation *s, int64_t ranks)
{
    return ranks / s->stages > s->platform.switch_nodes;
}

/* Nodes that stand for others are below switches of their own, if there are enough: what links share is counted for all
 * nodes (platform.shared_bandwidth), and must not be counted twice. The tensor and spatial parts of a layer are
 * neighbours, and stay so. */
static int write_hosts(const cmd_simulation *s, int64_t ranks)
{
    const int64_t count = simulated(s, ranks), each = ranks / count, parts = s->parts / s->stages,
                  below = s->platform.switch_nodes;
    const int has_room = below >= parts && count / parts * below <= s->platform.nodes;
    const int64_t apart = each > 1 && has_room && spans_switches(s, ranks) ? below : parts * each;
    const int64_t places = apart / parts; /* of which each group has another: routes depend on the place */
    const size_t room = (size_t)count * 24 + 1;
    char *text = malloc(room);
    size_t n = 0;
    for (int64_t i = 0; text && i < count; i++)
        n += (size_t)snprintf(text + n, room - n, "node%lld\n",
                              (long long)(i / parts * apart + i / parts % places * parts + i % parts));
    const int code = text ? write_text(s, "hosts", text) : CMD_EXIT_FAULT;
    free(text);
    return code;
}

struct words {
    char text[32][CMD_SIMULATE_PATH];
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
        snprintf(text, CMD_SIMULATE_PATH, fmt, a);
    else
        snprintf(text, CMD_SIMULATE_PATH, fmt, b);
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
static void add_simgrid(const cmd_simulation *s, struct words *w, int64_t ranks)
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
    add_text(w, "%.0f", NULL, (double)simulated(s, ranks));
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

static void add_bench(const cmd_simulation *s, struct words *w, const cmd_simulated *row)
{
    const int64_t ranks = row->ranks, servers = cmd_simulate_servers(s, ranks);
    const cmd_simulate_options *o = s->options;
    const int is_file = cmd_is_file(s->network);
    add(w, "bench");
    if (is_file)
        add(w, s->network);
    else
        add_pair(w, "--model", s->network);
    add_pair(w, "--options", o->step.model_options);
    add(w, "--batch");
    add_text(w, "%.0f", NULL,
             (double)(o->global_batch ? s->batch : s->batch * ((ranks - servers) / s->parts)) *
                 ((double)simulated(s, ranks) / (double)(s->node_ranks * ranks)));
    add_pair(w, "--threads", "1");
    add_pair(w, "--kernels", "clock");
    add(w, "--warmup");
    add_text(w, "%.0f", NULL, o->step.warmup ? (double)o->step.warmup : 1);
    add(w, "--steps");
    add_text(w, "%.0f", NULL, o->step.steps ? (double)o->step.steps : 2);
    add_pair(w, "--dtype", o->step.dtype == CVY_DTYPE_BF16 ? "bf16" : NULL);
    for (int i = 0; i < o->sets.count; i++)
        add_pair(w, "--set", o->sets.word[i]);
    add_pair(w, "--set", servers < s->servers ? "update=sync" : NULL);
    add(w, "--set");
    add_text(w, "plan.clock_scale=%.12g", NULL, row->scale * cmd_simulate_rank_time(s));
    add(w, "--set");
    add_text(w, "plan.clock_noise=%.12g", NULL, s->noise);
    if (o->overlap) {
        add(w, "--set");
        add_text(w, "comm.overlap=%s", o->overlap, 0);
    }
    add_pair(w, "--set", o->blocking ? "comm.blocking=true" : NULL);
}

/* smpirun splits words at blanks, so the arguments of the ranks are in a file. */
static int write_words(const cmd_simulation *s, const struct words *w)
{
    char path[CMD_SIMULATE_PATH];
    snprintf(path, sizeof path, "%s/words", s->folder);
    FILE *file = cmd_open_stream(path, "w");
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

/* The child's stderr goes to the file `stderr`. Its rank 0 writes the result to the file `result` (cmd_bench.c).
 * Returns 1 if there is a result. */
static int run_child(const cmd_simulation *s, const struct words *w, cvy_bench_result *result_out, int *status_out)
{
    char stderr_path[CMD_SIMULATE_PATH], path[CMD_SIMULATE_PATH];
    *status_out = -1;
    snprintf(stderr_path, sizeof stderr_path, "%s/stderr", s->folder);
    snprintf(path, sizeof path, "%s/" CMD_RESULT_FILE, s->folder);
    remove(path);
    setenv(CMD_RESULT_VARIABLE, path, 1);
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        const int dev_null = open("/dev/null", O_WRONLY),
                  stderr_file = cmd_open(stderr_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
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
    FILE *file = cmd_open_stream(path, "r");
    const int found =
        file && fread(result_out, sizeof *result_out, 1, file) == 1 && result_out->size == sizeof *result_out;
    if (file)
        fclose(file);
    return found;
}

/* Prints the first error that a rank reported, or else the first line of the output. */
static void print_reason(const cmd_simulation *s, int64_t ranks, int status)
{
    char path[CMD_SIMULATE_PATH], line[CMD_SIMULATE_PATH] = "", first[CMD_SIMULATE_PATH] = "";
    snprintf(path, sizeof path, "%s/stderr", s->folder);
    FILE *stderr_file = cmd_open_stream(path, "r");
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

int cmd_simulate_begin(const cmd_simulation *s)
{
    char number[32];
    snprintf(number, sizeof number, "%.9g", s->platform.add_bytes_per_s);
    setenv("CONVOY_SIMULATED_ADD", number, 1);
    snprintf(number, sizeof number, "%.9g", s->platform.memory_bytes_per_s);
    setenv("CONVOY_SIMULATED_MEMORY", number, 1);
    snprintf(number, sizeof number, "%lld", (long long)cmd_simulate_threads(s));
    setenv("CONVOY_SIMULATED_CORES", number, 1);
    snprintf(number, sizeof number, "%lld", (long long)s->node_ranks);
    setenv("CONVOY_SIMULATED_RANKS", number, 1);
    cmd_signals_on_end(end_child);
    return write_text(s, "platform.xml", s->platform.xml);
}

int cmd_simulate_ranks(const cmd_simulation *s, const cmd_simulated *row, cvy_bench_result *result_out)
{
    const int64_t ranks = row->ranks;
    static struct words w;
    char number[32];
    int status = 0;
    snprintf(number, sizeof number, "%lld", (long long)(ranks / simulated(s, ranks)));
    setenv("CONVOY_SIMULATED_NODES", number, 1);
    w.n = w.ntext = 0;
    snprintf(number, sizeof number, "%.9g", cvy_platform_share(&s->platform, ranks / s->stages));
    setenv("CONVOY_SIMULATED_SHARE", number, 1);
    if (write_hosts(s, ranks))
        return CMD_EXIT_FAULT;
    add_bench(s, &w, row);
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

void cmd_simulate_close(const cmd_simulation *s)
{
    static const char *const names[] = {"platform.xml",  "hosts", "words",      "stderr",
                                        CMD_RESULT_FILE, TIMES,   TIMES ".lock"};
    char path[CMD_SIMULATE_PATH];
    for (int i = 0; i < CMD_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", s->folder, names[i]);
        remove(path);
    }
    rmdir(s->folder);
}
