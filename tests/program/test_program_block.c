/* ranks: 1 2 4 */
/*
 * test_program_block.c: a field that is cut into blocks with ghost cells goes into a network as it lies, and comes back
 * as blocks: the result is that of the whole field on one rank. What is in the ghost cells does not matter. Blocks that
 * do not fit are refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <math.h>
#include <stdio.h>

#include "test_util.h"

enum { HEIGHT = 11, WIDTH = 10, GHOST = 2 };

static int rank, nranks;

static double cell(int64_t y, int64_t x)
{
    return sin(0.7 * (double)y) + cos(0.3 * (double)(x * y)) + 0.1 * (double)x;
}

/* Two convolutions over a field of one channel. down, across: parts of its height and width. */
static cvy_program *make_program(cvy_context *context, int down, int across, int *task)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .seed = 5, .wisdom = "off", .spatial = {down, across}, .outputs_in_parts = 1};
    cvy_program *p = NULL;
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("field", &m));
    EXPECT_OK(cvy_model_add_input(m, "u", CVY_DTYPE_F32, &(cvy_shape){3, {1, HEIGHT, WIDTH}}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv1", "channels: 4, kernel: 3, pad: 1", "u"));
    EXPECT_OK(cvy_model_add(m, "tanh", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "conv", "closure", "channels: 1, kernel: 3, pad: 1", NULL));
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_forward(p, m, 1, "closure", task));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m);
    return p;
}

/* Applies the network to this rank's block, whose ghost cells have this value. Adds the result to the whole field. */
static void apply(cvy_program *p, int task, double ghosts, double *whole)
{
    double block[HEIGHT + 2 * GHOST][WIDTH + 2 * GHOST], out[HEIGHT + 2 * GHOST][WIDTH + 2 * GHOST];
    cvy_shape sample;
    int64_t first[3];
    EXPECT_OK(cvy_program_part(p, task, "u", &sample, first));
    const int64_t h = nranks > 1 ? (first[1] == 0 ? 5 : 6) : HEIGHT, w = nranks > 2 ? WIDTH / 2 : WIDTH;
    double *in = &block[0][0], *back = &out[0][0];
    cvy_shape whole_out;
    int64_t first_out[3];
    EXPECT_OK(cvy_program_part(p, task, "closure", &whole_out, first_out));
    EXPECT(whole_out.ndim == 3 && whole_out.dim[1] == HEIGHT && first_out[1] == first[1] && first_out[2] == first[2]);
    const cvy_shape array = {4, {1, 1, h + 2 * GHOST, w + 2 * GHOST}};
    for (int64_t i = 0; i < (h + 2 * GHOST) * (w + 2 * GHOST); i++) {
        in[i] = ghosts;
        back[i] = -7;
    }
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            in[(y + GHOST) * array.dim[3] + x + GHOST] = cell(first[1] + y, first[2] + x);
    const int64_t ghost[] = {0, 0, GHOST, GHOST};
    EXPECT_OK(cvy_program_write_block(p, task, "u", CVY_DTYPE_F64, in, &array, ghost));
    EXPECT_OK(cvy_program_step(p, task, 0));
    EXPECT_OK(cvy_program_read_block(p, task, "closure", CVY_DTYPE_F64, back, &array, ghost));
    EXPECT(back[0] == -7 && back[GHOST * array.dim[3] - 1] == -7); /* ghost cells are not written */
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            whole[(first[1] + y) * WIDTH + first[2] + x] = back[(y + GHOST) * array.dim[3] + x + GHOST];
}

static void blocks_are_the_field(cvy_context *world)
{
    int task = 0, alone_task = 0, all = nranks;
    double mine[HEIGHT * WIDTH] = {0}, sum[HEIGHT * WIDTH], expected[HEIGHT * WIDTH] = {0};
    cvy_context *alone = NULL;
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    cvy_program *p = make_program(world, nranks > 1 ? 2 : 1, nranks > 2 ? 2 : 1, &task);
    nranks = 1;
    cvy_program *q = make_program(alone, 1, 1, &alone_task);
    apply(q, alone_task, 0, expected);
    nranks = all;
    apply(p, task, NAN, mine);
    MPI_Allreduce(mine, sum, HEIGHT * WIDTH, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        EXPECT_NEAR(sum[i], expected[i], 1e-5);
    cvy_program_destroy(&q);
    cvy_program_destroy(&p);
    cvy_context_destroy(&alone);
}

/* Ranks that share a batch of one sample: those without it give and get blocks of no samples. */
static void no_samples(cvy_context *world)
{
    static double data[HEIGHT * WIDTH];
    int task = 0;
    cvy_program *p = make_program(world, 1, 1, &task);
    const int64_t rows = cvy_program_rows(p, task), ghost[] = {0, 0, 0, 0};
    const cvy_shape array = {4, {rows, 1, HEIGHT, WIDTH}};
    EXPECT(rows <= 1);
    EXPECT_OK(cvy_program_write_block(p, task, "u", CVY_DTYPE_F64, rows ? data : NULL, &array, ghost));
    EXPECT_OK(cvy_program_step(p, task, 0));
    EXPECT_OK(cvy_program_read_block(p, task, "closure", CVY_DTYPE_F64, rows ? data : NULL, &array, ghost));
    cvy_program_destroy(&p);
}

static void wrong_blocks(cvy_context *world)
{
    int task = 0;
    static double data[400];
    cvy_program *p = make_program(world, nranks > 1 ? 2 : 1, nranks > 2 ? 2 : 1, &task);
    const cvy_shape array = {4, {1, 1, 20, 20}}, flat = {2, {1, 400}};
    const int64_t ghost[] = {0, 0, 1, 1}, most[] = {0, 0, 10, 1};
    const cvy_dtype f64 = CVY_DTYPE_F64;
    EXPECT_FAULT(cvy_program_write_block(p, task, "u", f64, data, &array, ghost), CVY_E_SHAPE,
                 "the block for u is 1x1x18x18 without its ghost cells, but u has the shape 1x1x");
    EXPECT_FAULT(cvy_program_write_block(p, task, "u", f64, data, &flat, ghost), CVY_E_SHAPE, "1x400");
    EXPECT_FAULT(cvy_program_write_block(p, task, "u", f64, data, &array, most), CVY_E_SHAPE,
                 "20 cells in dimension 2");
    EXPECT_FAULT(cvy_program_write_block(p, task, "v", f64, data, &array, ghost), CVY_E_ARGUMENT, "v");
    EXPECT_FAULT(cvy_program_write_block(p, task, "u", f64, NULL, &array, ghost), CVY_E_ARGUMENT, "no data");
    EXPECT_FAULT(cvy_program_write_block(p, task, "u", f64, data, NULL, ghost), CVY_E_ARGUMENT, "no shape");
    EXPECT_FAULT(cvy_program_read_block(p, task, "u", CVY_DTYPE_I32, data, &array, ghost), CVY_E_ARGUMENT,
                 "f32 or f64");
    cvy_program_destroy(&p);
}

int main(int argc, char **argv)
{
    cvy_context *world = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD,
                                     &(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &world));
    blocks_are_the_field(world);
    no_samples(world);
    wrong_blocks(world);
    cvy_context_destroy(&world);
    MPI_Finalize();
    return test_end();
}
