/*
 * cmd_ranks.c: starts MPI and the context for the verbs that run on ranks.
 *
 * Only one rank knows of an error inside a step, while the others wait for it in an all-reduce. So the hook
 * abort_all_ranks() ends all ranks. The same is true if an exchange fails: then MPI must not even be finalised, because
 * messages may still be on their way to memory that has been freed. The library makes all ranks agree on every other
 * error, and it is printed once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <convoy/mpi.h>

#include "cmd_launch.h"
#include "cmd_machine.h"
#include "cmd_mpi.h"

/* True between MPI_Init and MPI_Finalize. */
static int in_mpi;
static int is_starting; /* MPI_Init has not returned */

static void abort_all_ranks(void *user, cvy_status status, const char *text)
{
    int rank = 0, nranks = 1;
    (void)user;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (nranks == 1 && status != CVY_E_COMM)
        return; /* the call returns this error and the caller prints it; an error of the watchdog (E_COMM) would not
                 * return */
    const struct timespec until_read = {
        .tv_nsec = 300000000}; /* launchers such as Hydra drop output that is on its way when they kill the job */
    fflush(stdout);
    cmd_note("convoy: error: rank %d: %s\n", rank, text);
    nanosleep(&until_read, NULL);
    in_mpi = 0;
    MPI_Abort(MPI_COMM_WORLD, CMD_EXIT_FAULT);
}

void cmd_mpi_check(int rc, const char *doing)
{
    char reason[MPI_MAX_ERROR_STRING] = "", text[MPI_MAX_ERROR_STRING + 128];
    int length = 0;
    if (rc == MPI_SUCCESS)
        return;
    MPI_Error_string(rc, reason, &length);
    snprintf(text, sizeof text, "MPI fails while the command %s: %s", doing, reason);
    abort_all_ranks(NULL, CVY_E_COMM, text);
}

/* The rank for messages, in each process of simulated ranks its own; after the end of MPI the last one. */
static int rank_of_mpi(void)
{
    static int rank;
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (!is_over)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* Several tasks of a launcher that are each alone would do the same work several times. Returns the exit code; one of
 * them prints the message, or two if they do not know how many they are. */
static int check_launch(void)
{
    const cmd_launch *l = cmd_launch_here();
    const char *given = getenv("CONVOY_MPI"); /* it decides in an installation that has several builds */
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int nranks = 1, length = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    MPI_Get_library_version(library, &length);
    if (nranks != 1 || l->size <= 1 || l->kind != CMD_LAUNCH_TASK)
        return 0;
    if (l->rank == 0 || (l->rank == 1 && !l->by->size))
        cmd_error("%s started %s%d processes (%s), but each of them is alone: convoy is built with another MPI library "
                  "(%.*s). Start it with that library's mpiexec"
                  " (or srun --mpi=pmix, srun --mpi=pmi2), or build convoy with the MPI of this launcher: cmake "
                  "-DMPI_C_COMPILER=...%s%.20s%s",
                  l->by->name, l->by->size ? "" : "at least ", l->size, l->variable, (int)strcspn(library, "\n,"),
                  library, given && *given ? "; CONVOY_MPI=" : "", given ? given : "",
                  given && *given ? " may have chosen the wrong build: unset it" : "");
    return CMD_EXIT_FAULT;
}

/* Doctor, and train on several ranks, check this themselves. Open MPI binds each rank to one core if there are few
 * ranks, and the other cores are idle. The launcher is a process above this one, and its mask still has all cores. */
static void warn_of_idle_cores(const cmd_line *line)
{
    const cmd_launch *l = cmd_launch_here();
    cmd_cores mine, all;
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0, nranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (line->verb->idle_cores == CMD_WARN_NEVER || (line->verb->idle_cores == CMD_WARN_IF_ALONE && nranks > 1))
        return;
    (void)cmd_cores_get(0, &mine); /* it is empty if the system does not tell */
    const char *const doing = "compares the cores of the ranks";
    cmd_mpi_check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node), doing);
    cmd_mpi_check(MPI_Allreduce(MPI_IN_PLACE, &mine, (int)sizeof mine, MPI_BYTE, MPI_BOR, node), doing);
    MPI_Comm_free(&node);
    if (rank == 0 && l->launcher && l->by->family == CMD_MPI_OPENMPI && cmd_cores_get(l->launcher, &all) &&
        cmd_cores_count(&mine) > 0 && cmd_cores_count(&mine) < cmd_cores_count(&all))
        cmd_note("convoy: warning: mpiexec binds the ranks of this node to %d of its %d cores; start it with --bind-to "
                 "none to use all\n",
                 cmd_cores_count(&mine), cmd_cores_count(&all));
}

/* Why the variables of a launcher do not count: "PMI_SIZE=2 is in the environment, as .. sets it, but ..". */
static void put_why_alone(const cmd_launch *l, char *text, size_t room)
{
    char why[128] = "no launcher is among the processes above this one";
    if (l->kind == CMD_LAUNCH_BATCH)
        snprintf(why, sizeof why, "the script of a batch job has started this process");
    else if (l->kind != CMD_LAUNCH_STALE)
        snprintf(why, sizeof why, "the %s %s has started this process",
                 l->kind == CMD_LAUNCH_SHELL   ? "interactive shell"
                 : l->kind == CMD_LAUNCH_CHILD ? "MPI program"
                                               : "program",
                 l->parent);
    snprintf(text, room, "%s is in the environment, as %s sets it, but %s", l->variable, l->by->name, why);
}

static void warn_of_variables(const cmd_launch *l)
{
    char why[512];
    put_why_alone(l, why, sizeof why);
    cmd_note(
        "convoy: warning: %s, and MPI knows of one rank: for more ranks start convoy by the mpiexec or srun of its "
        "own MPI library; unset %.*s if it is left over\n",
        why, (int)strcspn(l->variable, "="), l->variable);
}

/* A job script that calls convoy without a launcher trains on one node, and all other nodes are idle. */
static void warn_of_one_process(const cmd_line *line)
{
    static const char *const counts[] = {"SLURM_NTASKS", "PBS_NP"};
    const cmd_launch *l = cmd_launch_here();
    int nranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (!line->verb->wants_launcher || nranks > 1)
        return;
    if (l->by && l->size > 1)
        warn_of_variables(l);
    for (int i = 0; i < CMD_COUNT(counts) && !l->by; i++) {
        const char *tasks = getenv(counts[i]);
        if (tasks && atoi(tasks) > 1)
            cmd_note("convoy: warning: this job has %d tasks (%s), but nothing has started more than this one process: "
                     "start convoy with srun or mpiexec\n",
                     atoi(tasks), counts[i]);
    }
}

/* ---- the start: the run's own watchdog starts with the job; until the ranks have a context, a timer checks that all
 * of them arrive ---- */

enum { START_S = 600 };

static char timeout_text[1024];
static volatile sig_atomic_t has_start_timer;

/* What in the environment may keep MPI from starting. A rank of an MPI program that starts convoy passes on what makes
 * the MPI library take convoy for that rank. */
static void put_hindrance(char *text, size_t room)
{
    const cmd_launch *l = cmd_launch_here();
    char why[512];
    *text = '\0';
    if (l->kind == CMD_LAUNCH_TASK)
        snprintf(text, room,
                 "; %s has started it (%s): `convoy info` names the MPI library whose mpiexec, or srun "
                 "--mpi=pmix or --mpi=pmi2, starts it",
                 l->by->name, l->variable);
    else if (l->by) {
        put_why_alone(l, why, sizeof why);
        snprintf(text, room, "; %s: remove it and its like with `env -u` if they are left over", why);
    }
}

static void on_start_timeout(int signal_number)
{
    (void)signal_number;
    if (!has_start_timer)
        return; /* somebody else sent it */
    (void)!write(STDERR_FILENO, timeout_text, strlen(timeout_text));
    _exit(CMD_EXIT_FAULT); /* the launcher then ends the other ranks */
}

static void start_timer_begin(void)
{
    const char *given = getenv("CONVOY_START_TIMEOUT");
    const int seconds = given && atoi(given) > 0 ? atoi(given) : START_S;
    char hindrance[640] = "";
    if (has_start_timer)
        return; /* simulated ranks share one process */
    if (cmd_launch_here()->kind != CMD_LAUNCH_TASK)
        put_hindrance(hindrance, sizeof hindrance);
    snprintf(timeout_text, sizeof timeout_text,
             "convoy: error: rank %d: not all ranks have started within %d s (CONVOY_START_TIMEOUT)%s\n",
             cmd_launch_rank(), seconds, hindrance);
    has_start_timer = cmd_timer_start(seconds, on_start_timeout);
}

static void stop_start_timer(void)
{
    if (has_start_timer)
        cmd_timer_stop();
    has_start_timer = 0;
}

int cmd_on_comm(const cmd_line *line, MPI_Comm comm, const cmd_ranks *ranks, cmd_body_fn body, void *user)
{
    const cvy_context_opts opts = {.size = sizeof opts,
                                   .threads = (int)ranks->threads,
                                   .device = ranks->device,
                                   .log_level = ranks->verbose ? CVY_LOG_DEBUG : CVY_LOG_WARN,
                                   .fatal = abort_all_ranks};
    cvy_context *context = NULL;
    cmd_outcome_set_abort(abort_all_ranks);
    const cvy_status status = cvy_context_create_mpi(comm, &opts, &context);
    stop_start_timer();
    const int code = status == CVY_OK ? body(line, context, user) : cmd_outcome(status);
    cvy_context_destroy(&context);
    return code;
}

struct work {
    const cmd_numbers *threads;
    const cmd_ranks *ranks;
    cmd_body_fn body;
    void *user;
};

static int run_in_world(const cmd_line *line, void *work)
{
    const struct work *w = work;
    warn_of_idle_cores(line);
    warn_of_one_process(line);
    int code = 0;
    for (int i = 0; i == 0 || i < w->threads->count; i++) {
        cmd_ranks ranks = *w->ranks;
        ranks.threads = w->threads->at[i];
        const int one = cmd_on_comm(line, MPI_COMM_WORLD, &ranks, w->body, w->user);
        code = one ? one : code;
    }
    return code;
}

int cmd_on_ranks(const cmd_line *line, const cmd_ranks *ranks, cmd_body_fn body, void *user)
{
    const cmd_numbers threads = {.at = {ranks->threads}, .count = 1};
    return cmd_on_ranks_each(line, &threads, ranks, body, user);
}

int cmd_on_ranks_each(const cmd_line *line, const cmd_numbers *threads, const cmd_ranks *ranks, cmd_body_fn body,
                      void *user)
{
    struct work work = {threads, ranks, body, user};
    return cmd_in_mpi(line, run_in_world, &work);
}

static void say_no_start(const char *how)
{
    char hindrance[640];
    put_hindrance(hindrance, sizeof hindrance);
    cmd_error("MPI does not start%s%s", how, hindrance);
}

/* Runs if a library calls exit() in the middle of the work. The launcher then ends the other ranks. MPICH's launcher
 * takes this rank's exit code for that of the job. */
static void on_unexpected_exit(void)
{
    if (is_starting)
        say_no_start(": its library has ended this process");
    if (!in_mpi)
        return;
    cmd_note("convoy: error: rank %d: a library called exit() while convoy was working\n", cmd_launch_rank());
    _exit(CMD_EXIT_FAULT);
}

int cmd_in_mpi(const cmd_line *line, int (*body)(const cmd_line *line, void *user), void *user)
{
    int provided = 0;
    cmd_launch_forget();
    cvy_mpi_prepare();
    start_timer_begin();
    atexit(on_unexpected_exit);
    is_starting = 1;
    const int started = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    is_starting = 0;
    if (started != MPI_SUCCESS) {
        say_no_start("");
        return CMD_EXIT_FAULT;
    }
    in_mpi = 1;
    cmd_launch_ask_mpi(rank_of_mpi);
    cmd_listen_again();
    /* Open MPI 4 takes an error of a collective operation that is under way to the handler of MPI_COMM_WORLD, not to
     * that of the library's communicator. The default handler would end the job without the name of the rank. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (body != run_in_world)
        stop_start_timer(); /* ranks of a sweep may wait long for those that work */
    const int split = check_launch(), code = split ? split : body(line, user);
    fflush(stdout);
    in_mpi = 0;
    MPI_Finalize();
    return code;
}
