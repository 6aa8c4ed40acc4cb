/*
 * cmd_launch.c: see cmd_launch.h. The processes above this one are those of /proc; elsewhere there is none, and no
 * variable counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cmd_launch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"

#ifdef __APPLE__
#include <crt_externs.h>
#define environ (*_NSGetEnviron()) /* unistd.h of macOS does not declare it */
#endif

enum { UP_MAX = 16 }; /* processes between a rank and its launcher */

struct process {
    char name[64];    /* of its file, or of its script */
    char program[64]; /* of the file that runs; "" if that is not told, as for processes of other users */
    long parent, group;
};

static int is_one_of(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

/* Whether a rank's launcher on its own node is called so. The system cuts names off at 15 characters. */
static int is_launcher(const char *name)
{
    static const char *const begins[] = {"mpiexec", "mpirun",  "orterun",  "orted",  "prte",   "hydra_",
                                         "pmi_pro", "mpispaw", "slurmste", "srun",   "palsd",  "apinit",
                                         "aprun",   "jsmd",    "jsrun",    "flux-s", "psilog", "psid"};
    for (int i = 0; i < CMD_COUNT(begins); i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return 1;
    return 0;
}

static int is_shell(const char *program)
{
    static const char *const shells[] = {"sh",   "bash", "dash", "ash",  "zsh",    "ksh",
                                         "mksh", "csh",  "tcsh", "fish", "busybox"};
    return is_one_of(program, shells, CMD_COUNT(shells));
}

/* Commands that start one other command and wait for it. */
static int is_wrapper(const char *program)
{
    static const char *const wrappers[] = {"timeout",   "time", "strace",    "ltrace",      "perf",    "gdb",
                                           "catchsegv", "nsys", "apptainer", "singularity", "starter", "starter-suid"};
    return is_one_of(program, wrappers, CMD_COUNT(wrappers));
}

/* Whether a shell was given its commands as arguments: a script, or -c. A shell at which somebody types was not, and
 * has options alone: `bash --rcfile FILE -i`. */
static int has_commands(long pid)
{
    static const char *const with_value[] = {"--rcfile", "--init-file", "-o", "+o", "-O", "+O"};
    char path[64], text[4096] = "";
    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    FILE *file = cmd_open_stream(path, "r");
    const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0; /* each argument ends with a 0 */
    if (file)
        fclose(file);
    int is_value = 0;
    for (size_t at = strlen(text) + 1; at < n; at += strlen(text + at) + 1) {
        const char *word = text + at;
        const int is_option = *word == '-' || *word == '+';
        if (!is_value && (!is_option || (strncmp(word, "--", 2) != 0 && strchr(word, 'c'))))
            return 1;
        is_value = !is_value && is_one_of(word, with_value, CMD_COUNT(with_value));
    }
    return 0;
}

/* Whether the launcher's stdout is a terminal. It is between this process and the terminal, and some launchers give
 * their children a pseudo-terminal in place of a pipe. */
static int writes_to_terminal(long pid)
{
    char path[64], target[256];
    snprintf(path, sizeof path, "/proc/%ld/fd/1", pid);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0;
}

/* Reads "pid (name) state ppid pgrp ..." of a process; it is empty if there is none. */
static void read_stat(long pid, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *stat = cmd_open_stream(path, "r");
    const size_t n = stat ? fread(text, 1, room - 1, stat) : 0;
    if (stat)
        fclose(stat);
    text[n] = '\0';
}

/* Returns 0 if there is no such process. */
static int read_process(long pid, struct process *out)
{
    char path[64], text[512], file[1024];
    read_stat(pid, text, sizeof text);
    const char *begin = strchr(text, '('), *end = strrchr(text, ')');
    if (!begin || !end || sscanf(end + 1, " %*c %ld %ld", &out->parent, &out->group) != 2)
        return 0;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(end - begin - 1), begin + 1);
    snprintf(path, sizeof path, "/proc/%ld/exe", pid);
    const ssize_t length = readlink(path, file, sizeof file - 1);
    file[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(file, '/');
    snprintf(out->program, sizeof out->program, "%.63s", slash ? slash + 1 : "");
    return 1;
}

/* Whether a process has loaded an MPI library. */
static int has_mpi(long pid)
{
    char line[1024];
    int found = 0;
    snprintf(line, sizeof line, "/proc/%ld/maps", pid);
    FILE *maps = cmd_open_stream(line, "r");
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, "/libmpi") != NULL;
    if (maps)
        fclose(maps);
    return found;
}

/* The name that Slurm gives to the script of a batch job. The variables of a step that it has are those of the shell in
 * which somebody submitted it. */
static int is_batch_script(const struct process *p)
{
    return strcmp(p->name, "slurm_script") == 0;
}

/* Whether pid 1 is that of the system, so that no process is hidden outside of a namespace. 4026531836 is the number of
 * the first one, PROC_PID_INIT_INO of Linux. */
static int is_first_namespace(void)
{
    char target[64];
    const ssize_t n = readlink("/proc/self/ns/pid", target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    return strcmp(target, "pid:[4026531836]") == 0;
}

/* Looks at the processes above this one up to the launcher. An interactive shell puts each of its commands into a
 * process group of its own; a script does so after `set -m` alone, and of the wrappers only `timeout` does. */
static cmd_launch_kind look_up(cmd_launch *l)
{
    struct process p, below = {.group = (long)getpgrp()};
    cmd_launch_kind kind = CMD_LAUNCH_TASK;
    long pid = (long)getppid();
    for (int up = 0; up < UP_MAX && pid > 0 && read_process(pid, &p); up++) {
        if (is_launcher(p.name)) {
            l->launcher = pid;
            return kind == CMD_LAUNCH_TASK && is_batch_script(&below) ? CMD_LAUNCH_BATCH : kind;
        }
        const int shell = is_shell(p.program), own = p.group != below.group && strcmp(below.program, "timeout") != 0;
        if (kind == CMD_LAUNCH_TASK && (shell ? own && !has_commands(pid) : !is_wrapper(p.program))) {
            kind = shell ? CMD_LAUNCH_SHELL : has_mpi(pid) ? CMD_LAUNCH_CHILD : CMD_LAUNCH_PROGRAM;
            snprintf(l->parent, sizeof l->parent, "%s", p.name);
        }
        below = p;
        pid = p.parent;
    }
    l->is_certain = pid == 0 && is_first_namespace();
    return CMD_LAUNCH_STALE;
}

static void keep_variable(cmd_launch *l)
{
    const char *size = l->by->size ? getenv(l->by->size) : NULL, *value = size ? size : getenv(l->by->rank);
    snprintf(l->variable, sizeof l->variable, "%s=%.20s", size ? l->by->size : l->by->rank, value ? value : "");
}

const cmd_launch *cmd_launch_here(void)
{
    static cmd_launch here;
    static int is_known;
    if (!is_known) {
        is_known = 1;
        here.by = cmd_launcher_find();
        here.size = cmd_launcher_size(here.by);
        here.rank = cmd_launcher_rank(here.by);
        here.kind = here.by ? look_up(&here) : CMD_LAUNCH_ALONE;
        if (here.by)
            keep_variable(&here);
        here.has_terminal = here.launcher && writes_to_terminal(here.launcher);
    }
    return &here;
}

/* Whether the connection to the launcher, which PMI_FD names, is not there. */
static int is_pmi_closed(void)
{
    const char *fd = getenv("PMI_FD");
    return fd && fcntl(atoi(fd), F_GETFD) < 0;
}

/* The variables of Slurm's and Flux's steps without their daemons above this process, or Slurm's of one task that has
 * no PMI, let no MPI library join anything, but Open MPI does not start by them. Those of other launchers stay: their
 * daemons may have any name. */
static int count_forgotten(const cmd_launch *l, int of_steps, int all)
{
    if (l->kind == CMD_LAUNCH_SHELL || l->kind == CMD_LAUNCH_CHILD || l->kind == CMD_LAUNCH_BATCH)
        return all;
    if (l->kind == CMD_LAUNCH_STALE)
        return !l->is_certain ? 0 : is_pmi_closed() ? all : of_steps;
    const int is_slurm = !l->by || strcmp(l->by->marker, "SLURM_STEP_NUM_TASKS") == 0;
    return is_slurm && l->size <= 1 && !getenv("PMI_RANK") && !getenv("PMIX_RANK") ? of_steps : 0;
}

void cmd_launch_forget(void)
{
    static const char *const begins[] = {
        "SLURM_STEP_",    "SLURM_STEPID=", "FLUX_JOB_", "FLUX_TASK_", /* of steps */
        "PMI_",           "PMI2_",         "PMIX_",     "OMPI_COMM_WORLD_", "OMPI_MCA_orte_",   "OMPI_MCA_ess_base_",
        "OMPI_MCA_pmix=", "OMPI_MCA_ess=", "HYDI_",     "MPI_LOCALNRANKS=", "MPI_LOCALRANKID=", "PALS_",
        "PRTE_"};
    const cmd_launch *l = cmd_launch_here();
    const int n = count_forgotten(l, 4, CMD_COUNT(begins));
    for (char **at = environ; n > 0 && *at;) {
        const char *before = *at;
        char name[256];
        int matches = 0;
        for (int i = 0; i < n; i++)
            matches |= strncmp(*at, begins[i], strlen(begins[i])) == 0;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (!matches || unsetenv(name) != 0 || *at == before)
            at++;
    }
}

double cmd_launch_session_begin(void)
{
    char text[1024];
    double seconds = 0;
#if defined(__linux__)
    unsigned long long ticks = 0; /* field 22, since the start of the system; the name in field 2 may have spaces */
    struct timespec up, now;
    read_stat((long)getsid(0), text, sizeof text);
    const char *end = strrchr(text, ')');
    if (end && clock_gettime(CLOCK_BOOTTIME, &up) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
        sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks) ==
            1)
        seconds = (double)(now.tv_sec - up.tv_sec) + 1e-9 * (double)(now.tv_nsec - up.tv_nsec) +
                  (double)ticks / (double)sysconf(_SC_CLK_TCK);
#else
    (void)text;
#endif
    return seconds;
}

static int (*mpi_rank)(void);

void cmd_launch_ask_mpi(int (*rank)(void))
{
    mpi_rank = rank;
}

int cmd_launch_rank(void)
{
    if (mpi_rank)
        return mpi_rank();
    const cmd_launch *l = cmd_launch_here();
    return l->kind == CMD_LAUNCH_TASK ? l->rank : 0;
}
