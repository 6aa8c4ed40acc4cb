/* ranks: 1 2 3 */
/* rows: mpich mpi asan */
/*
 * test_context_mpi.c: contexts over MPI leak nothing: every communicator and datatype that the library makes is freed,
 * every file descriptor is closed and every byte is freed, with every update mode.
 *
 * In this program the functions below replace those of MPI (MPI's profiling interface) and count.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>

#include "base/base_status.h"
#include "test_util.h"

static _Atomic int communicators, datatypes;
static int nranks;

static int counted(int code, const MPI_Comm *made)
{
    communicators += code == MPI_SUCCESS && *made != MPI_COMM_NULL;
    return code;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    return counted(PMPI_Comm_dup(comm, made), made);
}

int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *made)
{
    return counted(PMPI_Comm_split(comm, colour, key, made), made);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    return counted(PMPI_Comm_split_type(comm, type, key, info, made), made);
}

int MPI_Comm_free(MPI_Comm *comm)
{
    communicators--;
    return PMPI_Comm_free(comm);
}

int MPI_Type_commit(MPI_Datatype *type)
{
    datatypes++;
    return PMPI_Type_commit(type);
}

int MPI_Type_free(MPI_Datatype *type)
{
    datatypes--;
    return PMPI_Type_free(type);
}

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static cvy_model *new_network(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("life", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 8, kernel: 3, pad: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

/* Trains a few steps and then destroys everything. */
static void one_life(cvy_program_opts opts)
{
    cvy_context *team = NULL;
    cvy_program *p = NULL;
    cvy_model *m = new_network();
    int step = 0;
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &team));
    EXPECT(communicators > 0);
    opts.size = sizeof opts, opts.seed = 1, opts.wisdom = "off";
    EXPECT_OK(cvy_program_create(team, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 7, NULL, &step));
    EXPECT_OK(cvy_program_plan(p));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(cvy_program_step(p, step, 0.01));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    cvy_context_destroy(&team);
}

static void all_is_given_back(void)
{
    const struct {
        const char *what;
        cvy_program_opts opts;
        int ranks; /* fewest ranks that it needs */
    } lives[] = {
        {"sync", {0}, 1},
        {"by messages", {.reduce_no_node = 1}, 1},
        {"delayed", {.update_mode = CVY_UPDATE_DELAYED}, 1},
        {"zero1", {.update_mode = CVY_UPDATE_ZERO1}, 2},
        {"server", {.update_mode = CVY_UPDATE_PARAMETER_SERVER, .update_servers = 1}, 2},
    };
    one_life(
        (cvy_program_opts){.size = sizeof(cvy_program_opts)}); /* MPI opens files at the first use of some functions */
    for (int i = 0; i < CVY_COUNT(lives); i++) {
        if (lives[i].ranks > nranks)
            continue;
        one_life(lives[i].opts);
        const int files = open_files();
        one_life(lives[i].opts);
        printf("       %s: %d communicators, %d datatypes, %d files more\n", lives[i].what, communicators, datatypes,
               open_files() - files);
        EXPECT_INT(communicators, 0);
        EXPECT_INT(datatypes, 0);
        EXPECT_INT(open_files(), files);
        EXPECT_INT(cvy_memory_bytes(), 0);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    TEST(all_is_given_back);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
