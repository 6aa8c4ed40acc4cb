/*
 * cmd_jobscript_launch.c: the line of a job script that starts the ranks, for each launcher.
 *
 * srun and flux run give the signal before the limit to the ranks. mpiexec hands on the signals that it gets itself. If
 * the scheduler sends it none, `timeout` does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include <string.h>

#include "cmd_jobscript.h"

typedef enum { SRUN, FLUX, MPIEXEC, UNKNOWN } launcher_kind;

static const char *launcher_of(const jobscript *s)
{
    return s->site.launcher ? s->site.launcher : s->scheduler->launcher;
}

static launcher_kind kind_of(const char *launcher)
{
    const char *slash = strrchr(launcher, '/'), *name = slash ? slash + 1 : launcher;
    if (strcmp(name, "srun") == 0)
        return SRUN;
    if (strcmp(name, "flux") == 0)
        return FLUX;
    return strncmp(name, "mpiexec", 7) == 0 || strncmp(name, "mpirun", 6) == 0 ? MPIEXEC : UNKNOWN;
}

int jobscript_check_launcher(const jobscript *s)
{
    const char *launcher = launcher_of(s);
    const launcher_kind kind = kind_of(launcher);
    const char *only = kind == SRUN ? "slurm" : kind == FLUX ? "flux" : NULL;
    if (kind == UNKNOWN)
        cmd_error("the launcher is %s, expected srun, mpiexec, mpirun, flux, or a path that ends so", launcher);
    else if (only && strcmp(only, s->scheduler->name) != 0)
        cmd_error("the launcher %s works under %s alone, and the scheduler is %s: expected mpiexec or mpirun", launcher,
                  only, s->scheduler->name);
    else
        return 0;
    return CMD_EXIT_USAGE;
}

static int is_open_mpi(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(library, &length);
    return strstr(library, "Open MPI") != NULL;
}

static void put_options(const jobscript *s)
{
    for (int i = 0; i < s->site.launcher_options; i++) {
        putchar(' ');
        cmd_put_word(s->site.launcher_option[i]);
    }
}

static void put_srun(const jobscript *s)
{
    fputs("# srun of Slurm 22.05 and later does not take over --cpus-per-task. `srun --mpi=list` has the other ways to "
          "start MPI.\n",
          stdout);
    cmd_put_word(launcher_of(s));
    cmd_say(" --mpi=%s --cpus-per-task=", s->site.mpi ? s->site.mpi : is_open_mpi() ? "pmix" : "pmi2");
    if (s->threads)
        cmd_say("%lld", (long long)s->threads);
    else
        cmd_say("$((SLURM_CPUS_ON_NODE / %lld))", (long long)s->ppn);
    fputs(" --wait=60", stdout);
    put_options(s);
    fputs(" convoy \"$@\"\n", stdout);
}

/* flux-run(1). Flux without plugins offers PMI-1, which MPICH and its relatives use; Open MPI 5 needs flux-pmix and
 * `-o pmi=pmix`. */
static void put_flux(const jobscript *s)
{
    fputs("# The signal comes before the end of the allocation, which a step without a limit of its own shares.\n",
          stdout);
    cmd_put_word(launcher_of(s));
    cmd_say(" run --nodes=%lld", (long long)s->nodes);
    if (s->threads)
        cmd_say(" --ntasks=%lld --cores-per-task=%lld -o cpu-affinity=per-task", (long long)(s->nodes * s->ppn),
                (long long)s->threads);
    else
        cmd_say(" --exclusive --tasks-per-node=%lld", (long long)s->ppn);
    cmd_say(" --signal=SIGUSR1@%llds", (long long)s->signal_s);
    if (s->site.mpi)
        cmd_say(" -o pmi=%s", s->site.mpi);
    put_options(s);
    fputs(" convoy \"$@\"\n", stdout);
}

static void put_mpiexec(const jobscript *s)
{
    char cores[24] = "CORES";
    if (s->threads)
        snprintf(cores, sizeof cores, "%lld", (long long)s->threads);
    fputs(s->scheduler->signals
              ? "# The scheduler gives USR1 to mpiexec, which hands it to the ranks. Ranks move freely over the cores "
                "of their node;\n"
              : "# No signal of the scheduler reaches the ranks, so `timeout` gives USR1 to mpiexec, which hands it to "
                "them. Ranks move freely over the cores of their node;\n",
          stdout);
    cmd_say(
        "# to tie each to its own with Open MPI, remove the next line and give mpiexec --map-by ppr:%lld:node:PE=%s "
        "--bind-to core.\n"
        "export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none "
        "HYDRA_BINDING=none\n",
        (long long)s->ppn, cores);
    if (!s->scheduler->signals)
        cmd_say("timeout --foreground --preserve-status -s USR1 $((CONVOY_JOB_END - %lld - $(date +%%s))) ",
                (long long)s->signal_s);
    cmd_put_word(launcher_of(s));
    cmd_say(" -n %lld", (long long)(s->nodes * s->ppn));
    if (!s->scheduler->places)
        cmd_say(is_open_mpi() ? " --map-by ppr:%lld:node" : " -ppn %lld", (long long)s->ppn);
    put_options(s);
    fputs(" \"$(command -v convoy)\" \"$@\"\n", stdout);
}

void jobscript_put_launch(const jobscript *s)
{
    const launcher_kind kind = kind_of(launcher_of(s));
    if (kind == SRUN)
        put_srun(s);
    else if (kind == FLUX)
        put_flux(s);
    else
        put_mpiexec(s);
}

/* The number of ranks differs from call to call, so nodes and cores are not counted by rank. */
void jobscript_put_launcher(const jobscript *s)
{
    const launcher_kind kind = kind_of(launcher_of(s));
    cmd_say("#!/bin/sh\n# Made by `convoy study --job-scripts`: launch -n RANKS COMMAND.. starts the ranks of a "
            "measurement in a job of %lld nodes.\n",
            (long long)s->nodes);
    if (kind == MPIEXEC)
        cmd_say("export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none "
                "HYDRA_BINDING=none\n");
    cmd_say("exec ");
    cmd_put_word(launcher_of(s));
    if (kind == SRUN)
        cmd_say(" --mpi=%s --cpu-bind=none --wait=60", s->site.mpi ? s->site.mpi : is_open_mpi() ? "pmix" : "pmi2");
    else if (kind == FLUX)
        cmd_say(" run --nodes=%lld --exclusive", (long long)s->nodes);
    else if (!s->scheduler->places)
        cmd_say(is_open_mpi() ? " --map-by ppr:%lld:node" : " -ppn %lld", (long long)s->ppn);
    if (kind == FLUX && s->site.mpi)
        cmd_say(" -o pmi=%s", s->site.mpi);
    put_options(s);
    cmd_say(" \"$@\"\n");
}
