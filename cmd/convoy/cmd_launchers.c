/*
 * cmd_launchers.c: the table of launchers and the variables that they set.
 *
 * The order matters, because launchers are nested: the environment of mpiexec within a job step of srun or flux has the
 * variables of both. So the variables that one launcher alone sets come first, then those of a protocol (PMI, PMIx),
 * which mpiexec and srun share, and last the variables that a batch system sets in each step.
 *
 * Read in processes that the launcher started: Open MPI 4.1 and 5.0, MPICH 4.0 and 5.0, Intel MPI 2021.
 * From documentation and sources only: the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "cmd_launchers.h"

static const cmd_launcher known[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpiexec", CMD_MPI_OPENMPI},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "jsrun", CMD_MPI_OPENMPI},
    {"HYDRA_BSTRAP_LAUNCHER", "PMI_SIZE", "PMI_RANK", "Intel MPI's mpiexec", CMD_MPI_MPICH},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MVAPICH2's mpiexec", CMD_MPI_MPICH},
    {"MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_RANK", "MVAPICH's mpiexec", CMD_MPI_MPICH},
    {"HYDI_CONTROL_FD", "PMI_SIZE", "PMI_RANK", "MPICH's mpiexec", CMD_MPI_MPICH},
    {"PALS_RANKID", "PMI_SIZE", "PALS_RANKID", "Cray's PALS (mpiexec or srun --mpi=cray_shasta)", CMD_MPI_MPICH},
    {"ALPS_APP_PE", NULL, "ALPS_APP_PE", "Cray's aprun", CMD_MPI_MPICH},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", "flux run", CMD_MPI_EITHER},
    {"PMI_SIZE", "PMI_SIZE", "PMI_RANK", "the mpiexec of MPICH or Intel MPI, or srun --mpi=pmi2", CMD_MPI_MPICH},
    {"PRTE_LAUNCHED", NULL, "PMIX_RANK", "prterun", CMD_MPI_OPENMPI},
    /* Open MPI always uses PMIx, but MPICH can be built with it. */
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "srun --mpi=pmix, or a launcher with PMIx", CMD_MPI_EITHER},
    {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun", CMD_MPI_EITHER},
};

/* Returns the value of a variable that counts processes; -1 if it is not set, or not such a number. */
static int number_of(const char *variable)
{
    const char *text = variable ? getenv(variable) : NULL;
    char *end = NULL;
    const long value = text ? strtol(text, &end, 10) : -1;
    return text && end != text && *end == '\0' && value >= 0 && value < INT_MAX ? (int)value : -1;
}

const cmd_launcher *cmd_launcher_find(void)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (getenv(known[i].marker))
            return &known[i];
    return NULL;
}

int cmd_launcher_rank(const cmd_launcher *launcher)
{
    const int rank = launcher ? number_of(launcher->rank) : 0;
    return rank > 0 ? rank : 0;
}

int cmd_launcher_size(const cmd_launcher *launcher)
{
    const int size = launcher ? number_of(launcher->size) : 0, least = launcher ? cmd_launcher_rank(launcher) + 1 : 0;
    return size > least ? size : least;
}
