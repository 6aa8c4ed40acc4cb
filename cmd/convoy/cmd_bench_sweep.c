/*
 * cmd_bench_sweep.c: `convoy bench --sweep`: measures how many ranks with how many threads are fastest on these nodes.
 * It also tries whether one core of each rank is better used for communication (comm.progress: thread) than for
 * computing.
 *
 * One mpiexec starts as many ranks as a node has cores. For each split of the cores, R ranks per node take part in a
 * communicator of their own and share the node's cores as threads; the other ranks sleep. If there is no launcher, this
 * process replaces itself by mpiexec before MPI_Init.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd_bench.h"
#include "cmd_launch.h"
#include "cmd_machine.h"
#include "cmd_mpi.h"
#include "measure/measure.h"

#define RESULTS_MAX 256

struct sweep {
    const cmd_line *line;
    const cmd_bench_options *options;
    cvy_bench_result result[RESULTS_MAX];
    int count;
};

/* ---- start ---- */

/* Replaces this process by mpiexec with one rank per core. Returns 0 if one process is enough, or an exit code if
 * mpiexec does not start. */
static int launch(const cmd_line *line)
{
    enum { WORDS_MAX = 1024 };
    static const char *const unbound[] = {"OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy",
                                          "HYDRA_BINDING"};
    const char *launcher = getenv("CONVOY_MPIEXEC") ? getenv("CONVOY_MPIEXEC") : "mpiexec", *word[WORDS_MAX + 8];
    char self[1024], cores[16];
    cmd_cores mine;
    const size_t n = cmd_self(self, sizeof self);
    int count = 0;
    if (n == 0 || line->argc > WORDS_MAX || !cmd_cores_get(0, &mine) || cmd_cores_count(&mine) < 2)
        return 0;
    snprintf(cores, sizeof cores, "%d", cmd_cores_count(&mine));
    const char *const head[] = {launcher, "-n", cores, self};
    for (int i = 0; i < CMD_COUNT(head); i++)
        word[count++] = head[i];
    for (int i = 1; i < line->argc; i++)
        word[count++] = line->argv[i];
    word[count] = NULL;
    for (int i = 0; i < CMD_COUNT(unbound); i++) /* ranks must not be bound: the sweep sets their cores itself */
        setenv(unbound[i], "none", 0);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0); /* Open MPI counts cores; we count hardware threads */
    execvp(launcher, (char *const *)word);
    cmd_error(
        "%s does not start: start the ranks of the sweep yourself, one per core: mpiexec -n %s convoy bench --sweep "
        "..., or name a launcher in"
        " CONVOY_MPIEXEC",
        launcher, cores);
    return CMD_EXIT_FAULT;
}

static const char counting[] = "counts the cores of each node"; /* for cmd_mpi_check() */

/* ---- ranks that sleep ---- */

/* A barrier that sleeps and does not spin: waiting ranks leave the cores to the working ones. */
static void wait_for_all(MPI_Comm all)
{
    const char *const waiting = "waits for the end of a split";
    const struct timespec nap = {.tv_nsec = 2000000};
    MPI_Request request;
    int done = 0;
    cmd_mpi_check(MPI_Ibarrier(all, &request), waiting);
    for (;;) {
        cmd_mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), waiting);
        if (done)
            return;
        nanosleep(&nap, NULL);
    }
}

/* Lets every rank use all cores that the launcher gave to the node's ranks. Returns their number, the minimum over all
 * nodes. */
static int share_cores(MPI_Comm node)
{
    cmd_cores mine;
    int cores = 1;
    if (cmd_cores_get(0, &mine)) {
        cmd_mpi_check(MPI_Allreduce(MPI_IN_PLACE, &mine, (int)sizeof mine, MPI_BYTE, MPI_BOR, node), counting);
        if (cmd_cores_bind(&mine))
            cores = cmd_cores_count(&mine);
    }
    cmd_mpi_check(MPI_Allreduce(MPI_IN_PLACE, &cores, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), counting);
    return cores;
}

/* ---- results ---- */

static void add_result(void *user, const cvy_bench_result *r)
{
    struct sweep *s = user;
    if (s->count < RESULTS_MAX)
        s->result[s->count++] = *r;
    cmd_bench_row(s->options, r);
}

/* Images/s by the median step. */
static double speed(const cvy_bench_result *r)
{
    return 1e3 * (double)r->batch / r->ms_median;
}

/* Prints the fastest split for each network and batch. */
static void print_best(const struct sweep *s)
{
    for (int i = 0; i < s->count; i++) {
        const cvy_bench_result *first = &s->result[i], *best = first;
        int seen = 0;
        for (int k = 0; k < s->count; k++) {
            const cvy_bench_result *r = &s->result[k];
            const int same = strcmp(r->model, first->model) == 0 && r->batch == first->batch;
            seen |= same && k < i;
            best = same && speed(r) > speed(best) ? r : best;
        }
        if (seen)
            continue;
        if (s->options->json)
            cmd_say("{\"model\": \"%s\", \"batch\": %lld, \"best_ranks\": %d, \"best_threads\": %d, "
                    "\"best_progress\": \"%s\", \"images_per_s\": %.6g}\n",
                    best->model, (long long)best->batch, best->ranks, best->threads, best->progress, speed(best));
        else
            cmd_say("best for %s, batch %lld: %d rank%s of %d thread%s%s, %.2f images/s by the median step\n",
                    best->model, (long long)best->batch, best->ranks, best->ranks > 1 ? "s" : "", best->threads,
                    best->threads > 1 ? "s" : "",
                    strcmp(best->progress, "thread") == 0 ? " and one for communication (comm.progress: thread)" : "",
                    speed(best));
    }
}

/* ---- the sweep ---- */

static int bench(const cmd_line *line, cvy_context *context, void *sweep)
{
    return cmd_bench_each(line, line->options, context, add_result, sweep);
}

struct node_position {
    int node_rank, node_size, nodes;
};

/* Runs one split: nranks ranks on each node take part. progress_key: a job key that sets comm.progress; NULL keeps the
 * setting of the command line. */
static int try_split(struct sweep *s, struct node_position position, int nranks, int threads, const char *progress_key)
{
    const int takes_part = position.node_rank < nranks;
    cmd_bench_options options = *s->options;
    cmd_line line = *s->line;
    MPI_Comm part = MPI_COMM_NULL;
    int code = 0, rank = 0;
    line.options = &options;
    if (progress_key)
        options.sets.word[options.sets.count++] = progress_key;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cmd_mpi_check(MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, rank, &part), "splits the ranks");
    if (takes_part) {
        code = cmd_on_comm(&line, part, &(cmd_ranks){.threads = threads, .verbose = options.verbose}, bench, s);
        MPI_Comm_free(&part);
    }
    wait_for_all(MPI_COMM_WORLD);
    return code;
}

/* Whether the sweep may set comm.progress: not if the command line sets a key of comm. */
static int may_set_progress(const cmd_sets *sets)
{
    for (int i = 0; i < sets->count; i++)
        if (strncmp(sets->word[i], "comm", 4) == 0)
            return 0;
    return sets->count < CMD_SETS_MAX;
}

static int try_all(struct sweep *s, struct node_position position, int cores)
{
    int code = 0;
    for (int n = 1; n <= position.node_size && n <= cores; n++) {
        if (cores % n)
            continue;
        const int threads = cores / n, one = try_split(s, position, n, threads, NULL);
        code = one ? one : code;
        if (threads > 1 && n * position.nodes > 1 && may_set_progress(&s->options->sets)) {
            const int with_thread = try_split(s, position, n, threads - 1, "comm.progress=thread");
            code = with_thread ? with_thread : code;
        }
    }
    return code;
}

static int sweep(const cmd_line *line, void *user)
{
    static struct sweep s;
    struct node_position position = {.node_size = 1};
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0;
    (void)user;
    s = (struct sweep){.line = line, .options = line->options};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cmd_mpi_check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node), counting);
    MPI_Comm_rank(node, &position.node_rank);
    MPI_Comm_size(node, &position.node_size);
    position.nodes = position.node_rank == 0;
    cmd_mpi_check(MPI_Allreduce(MPI_IN_PLACE, &position.nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), counting);
    cmd_mpi_check(MPI_Allreduce(MPI_IN_PLACE, &position.node_size, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), counting);
    const int cores = share_cores(node);
    if (rank == 0 && !s.options->json)
        cmd_bench_head();
    int code = try_all(&s, position, cores);
    if (rank == 0)
        print_best(&s);
    if (s.count > 0 && !cmd_bench_is_list(s.options))
        code = 0; /* some splits are impossible: they were reported and left out */
    /* rank 0 is in every split */
    cmd_mpi_check(MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD), "agrees on the exit code");
    MPI_Comm_free(&node);
    return code;
}

int cmd_bench_sweep(const cmd_line *line)
{
    const cmd_launch *l = cmd_launch_here();
    const int is_started = l->kind == CMD_LAUNCH_TASK || l->kind == CMD_LAUNCH_PROGRAM;
    const int code = is_started ? 0 : launch(line);
    return code ? code : cmd_in_mpi(line, sweep, NULL);
}
