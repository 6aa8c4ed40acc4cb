/* ranks: 2 */
/*
 * test_context_traps_mpi.c: a host program that traps every exception of floating-point numbers, in all its threads,
 * sums gradients over ranks and trains with each update mode: no trap is sprung in the library's additions, also in its
 * progress thread, and sums overflow as in a host without traps.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>
#include <mpi.h>
#include <stdlib.h>

#include "context/traps.h"

#if defined(__GLIBC__)
enum { COUNT = 1 << 17, ROWS = 32, FEATURES = 40 };

static cvy_context *context;

/* Sums whose last bits, overflow and underflow raise exceptions. */
static void reduce_with(const cvy_reducer_opts *opts, cvy_dtype dtype)
{
    cvy_reducer *r = NULL;
    int index = 0;
    snprintf(trap_doing, sizeof trap_doing, "reducer: algorithm %s, progress %s, no_node %d, wire %d, dtype %d",
             opts->algorithm ? opts->algorithm : "auto", opts->progress ? opts->progress : "poll", opts->no_node,
             (int)opts->wire, (int)dtype);
    TRAPPED_OK(cvy_reducer_create(context, opts, &r));
    TRAPPED_OK(cvy_reducer_add(r, "gradient", COUNT, dtype, &index));
    TRAPPED_OK(cvy_reducer_ready(r));
    for (int step = 0; step < 2; step++) {
        void *buffer = cvy_reducer_buffer(r, index);
        for (int i = 0; i < COUNT; i++) {
            const double x = i % 3 == 0 ? 3e38 : i % 3 == 1 ? 1e-40 : 0.1 + i * 1e-9;
            if (dtype == CVY_DTYPE_F32)
                ((float *)buffer)[i] = (float)x;
            else
                ((double *)buffer)[i] = i % 3 == 0 ? 1.7e308 : x;
        }
        TRAPPED_OK(cvy_reducer_start(r, index));
        TRAPPED_OK(cvy_reducer_progress(r));
        TRAPPED_OK(cvy_reducer_wait(r, CVY_REDUCER_ALL));
        const void *sum = cvy_reducer_sum(r, index);
        const double first = dtype == CVY_DTYPE_F32 ? ((const float *)sum)[0] : ((const double *)sum)[0];
        EXPECT(isinf(first));
    }
    cvy_reducer_destroy(&r);
}

static void sums_over_ranks(void)
{
    static const char *const algorithm[] = {NULL, "ring", "halving", "doubling", "library"};
    static const char *const progress[] = {"poll", "thread"};
    for (int i = 0; i < (int)(2 * 2 * 5); i++) {
        const cvy_reducer_opts opts = {.size = sizeof opts,
                                       .average = 1,
                                       .algorithm = algorithm[i / 4],
                                       .progress = progress[i % 2],
                                       .no_node = i / 2 % 2,
                                       .bucket_bytes = 1 << 18,
                                       .wire = i / 4 == 1 && i / 2 % 2 ? CVY_DTYPE_BF16 : CVY_DTYPE_F32};
        if (!algorithm[i / 4] && opts.no_node)
            continue; /* it would measure the algorithms first */
        reduce_with(&opts, CVY_DTYPE_F32);
        if (opts.wire == CVY_DTYPE_F32)
            reduce_with(&opts, CVY_DTYPE_F64);
    }
}

static void train_with(const cvy_program_opts *opts)
{
    static float x[ROWS * FEATURES], y[ROWS];
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer = "adam",
                                        .clip_norm = opts->update_mode == CVY_UPDATE_SYNC &&
                                                     opts->overlap != CVY_OVERLAP_FORWARD};
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int task = 0;
    snprintf(trap_doing, sizeof trap_doing, "update mode %d, wire %d, progress %s, shards %d, overlap %d",
             (int)opts->update_mode, (int)opts->reduce_wire, opts->reduce_progress ? opts->reduce_progress : "poll",
             (int)opts->shards, (int)opts->overlap);
    TRAPPED_OK(cvy_model_create("traps", &m));
    TRAPPED_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {FEATURES}}));
    TRAPPED_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    TRAPPED_OK(cvy_model_add(m, "fc", "hidden", "channels: 3000", "x"));
    TRAPPED_OK(cvy_model_add(m, "batch_norm", "norm", NULL, NULL));
    TRAPPED_OK(cvy_model_add(m, "sigmoid", "sigmoid", NULL, NULL));
    TRAPPED_OK(cvy_model_add(m, "fc", "out", "channels: 1", NULL));
    TRAPPED_OK(cvy_model_add(m, "mse", "loss", NULL, "out, y"));
    TRAPPED_OK(cvy_program_create(context, opts, &p));
    TRAPPED_OK(cvy_program_add_training(p, m, ROWS, &training, &task));
    TRAPPED_OK(cvy_program_plan(p));
    for (int i = 0; i < ROWS * FEATURES; i++)
        x[i] = (float)(i * 37 % 201 - 100) * 1e3F;
    for (int i = 0; i < ROWS; i++)
        y[i] = (float)(i % 2) / 3;
    const int64_t rows = cvy_program_rows(p, task);
    for (int i = 0; i < 3; i++) {
        if (rows > 0) {
            TRAPPED_OK(cvy_program_write_input(p, task, "x", CVY_DTYPE_F32, x, rows * FEATURES));
            TRAPPED_OK(cvy_program_write_input(p, task, "y", CVY_DTYPE_F32, y, rows));
        }
        TRAPPED_OK(cvy_program_step(p, task, 1e-3));
    }
    TRAPPED_OK(cvy_program_flush(p));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void trains_on_ranks(void)
{
    static const cvy_program_opts modes[] = {
        {.update_mode = CVY_UPDATE_SYNC},
        {.update_mode = CVY_UPDATE_SYNC, .reduce_no_node = 1, .reduce = "ring", .reduce_wire = CVY_DTYPE_BF16},
        {.update_mode = CVY_UPDATE_SYNC, .reduce_no_node = 1, .reduce = "doubling", .reduce_progress = "thread"},
        {.update_mode = CVY_UPDATE_SYNC, .overlap = CVY_OVERLAP_FORWARD},
        {.update_mode = CVY_UPDATE_SYNC, .shards = 4},
        {.update_mode = CVY_UPDATE_DELAYED},
        {.update_mode = CVY_UPDATE_LOCAL},
        {.update_mode = CVY_UPDATE_PARAMETER_SERVER, .update_servers = 1},
        {.update_mode = CVY_UPDATE_ZERO1},
        {.dtype = CVY_DTYPE_BF16},
        {.pipeline = 2},
        {.tensor = 2},
    };
    for (int i = 0; i < (int)(sizeof modes / sizeof *modes); i++) {
        cvy_program_opts opts = modes[i];
        opts.size = sizeof opts;
        opts.wisdom = "off";
        opts.seed = 1;
        train_with(&opts);
    }
}
#endif

int main(int argc, char **argv)
{
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
#if defined(__GLIBC__)
    const cvy_context_opts opts = {.size = sizeof opts, .threads = THREADS};
    if (provided >= MPI_THREAD_SERIALIZED && traps_begin()) {
        trap_in_team(FE_ALL_EXCEPT);
        TRAPPED_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context));
        TEST(sums_over_ranks);
        TEST(trains_on_ranks);
        cvy_context_destroy(&context);
        trap_in_team(0);
    }
#endif
    MPI_Finalize();
    return test_end();
}
