/* ranks: 1 2 3 */
/* rows: mpich mpi asan */
/*
 * test_checkpoint_program.c: checkpoints of the public API: a program that reads one continues as the program that
 * wrote it, with its optimiser's state; damaged sets are skipped; the list of a folder; and what is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "test_util.h"

enum { BATCH = 6 };
static cvy_context *all;
static char folder[] = "/tmp/test_checkpoint_program-XXXXXX";

static cvy_program *new_program(const char *optimizer, cvy_update_mode mode, int tasks)
{
    cvy_program *program = NULL;
    cvy_model *model = NULL;
    cvy_program_opts opts = cvy_program_opts_default();
    cvy_training_opts training = cvy_training_opts_default();
    int task = 0;
    training.optimizer = optimizer;
    opts.update_mode = mode;
    EXPECT_OK(cvy_model_create("m", &model));
    EXPECT_OK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){1, {4}}));
    EXPECT_OK(cvy_model_add_input(model, "y", CVY_DTYPE_F32, &(cvy_shape){1, {2}}));
    EXPECT_OK(cvy_model_add(model, "fc", "out", "channels: 2", "x"));
    EXPECT_OK(cvy_model_add(model, "mse", "loss", NULL, "out, y"));
    EXPECT_OK(cvy_program_create(all, &opts, &program));
    for (int i = 0; i < tasks; i++)
        EXPECT_OK(cvy_program_add_training(program, model, BATCH, &training, &task));
    EXPECT_OK(cvy_program_plan(program));
    cvy_model_destroy(&model);
    return program;
}

/* Runs one step and returns its loss. */
static double one_step(cvy_program *program, int step)
{
    float *x = cvy_program_feed(program, 0, "x"), *y = cvy_program_feed(program, 0, "y");
    const int64_t rows = cvy_program_rows(program, 0), first = cvy_program_first_row(program, 0);
    double loss = 0;
    for (int64_t i = 0; i < rows * 4; i++)
        x[i] = (float)((first * 4 + i + step) % 7);
    for (int64_t i = 0; i < rows * 2; i++)
        y[i] = (float)((first * 2 + i + step) % 5);
    EXPECT_OK(cvy_program_step(program, 0, 0.05));
    EXPECT_OK(cvy_program_loss(program, 0, "loss", &loss));
    return loss;
}

static void goes_on(cvy_update_mode mode, const char *name)
{
    char path[96];
    double whole[6] = {0};
    cvy_checkpoint_opts opts = cvy_checkpoint_opts_default();
    cvy_checkpoint_about found = cvy_checkpoint_about_default();
    cvy_program *first = new_program("adam", mode, 1), *second = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    EXPECT_INT(cvy_checkpoint_read(first, path, NULL, &found), CVY_END);
    for (int i = 0; i < 3; i++)
        one_step(first, i);
    opts.folder = path, opts.step = 3, opts.state = "mine: \"3\"\nand more", opts.is_best = 1;
    EXPECT_OK(cvy_checkpoint_write(first, &opts));
    second = new_program("adam", mode, 1);
    EXPECT_OK(cvy_checkpoint_read(second, path, NULL, &found));
    EXPECT_INT(found.step, 3);
    EXPECT_TEXT(found.state, opts.state);
    EXPECT(found.notes == NULL);
    cvy_text_release(&found.state);
    for (int i = 3; i < 6; i++)
        whole[i] = one_step(first, i);
    EXPECT_OK(cvy_program_flush(first)); /* only one program of a context may have pending sums */
    for (int i = 3; i < 6; i++)
        EXPECT(one_step(second, i) == whole[i]);
    EXPECT_OK(cvy_program_flush(second));
    EXPECT_OK(cvy_checkpoint_read(second, path, "best", &found));
    EXPECT_INT(found.step, 3);
    cvy_text_release(&found.state);
    cvy_program_destroy(&first);
    cvy_program_destroy(&second);
}

static void every_mode_goes_on(void)
{
    goes_on(CVY_UPDATE_SYNC, "sync");
    goes_on(CVY_UPDATE_DELAYED, "delayed");
    goes_on(CVY_UPDATE_LOCAL, "local");
    goes_on(CVY_UPDATE_ZERO1, "zero1");
}

static void a_damaged_set_is_passed_over(void)
{
    char path[96], file[160];
    cvy_checkpoint_opts opts = cvy_checkpoint_opts_default();
    cvy_checkpoint_about found = cvy_checkpoint_about_default();
    cvy_program *program = new_program("adam", CVY_UPDATE_SYNC, 1);
    snprintf(path, sizeof path, "%s/damaged", folder);
    opts.folder = path;
    for (opts.step = 1; opts.step <= 2; opts.step++)
        EXPECT_OK(cvy_checkpoint_write(program, &opts));
    snprintf(file, sizeof file, "%s/step-00000002/weights.safetensors", path);
    if (cvy_context_rank(all) == 0)
        EXPECT(truncate(file, 20) == 0);
    EXPECT_OK(cvy_checkpoint_read(program, path, NULL, &found));
    EXPECT_INT(found.step, 1);
    EXPECT(found.state == NULL);
    EXPECT(cvy_context_rank(all) != 0 || (found.notes && strstr(found.notes, "step-00000002")));
    cvy_text_release(&found.notes);
    EXPECT_FAULT(cvy_checkpoint_read(program, path, "step-2", &found), CVY_E_FORMAT, "step-00000002");
    cvy_program_destroy(&program);
}

static void what_is_refused(void)
{
    char path[96];
    cvy_checkpoint_opts opts = cvy_checkpoint_opts_default();
    cvy_checkpoint_about found = cvy_checkpoint_about_default();
    cvy_program *program = new_program("sgd", CVY_UPDATE_SYNC, 1), *other = new_program("sgd", CVY_UPDATE_SYNC, 2);
    EXPECT_FAULT(cvy_checkpoint_write(program, &opts), CVY_E_ARGUMENT, "a checkpoint needs a folder");
    snprintf(path, sizeof path, "%s/refused", folder);
    opts.folder = path, opts.step = -1;
    EXPECT_FAULT(cvy_checkpoint_write(program, &opts), CVY_E_ARGUMENT, "of step -1");
    opts.step = 1;
    EXPECT_OK(cvy_checkpoint_write(program, &opts));
    EXPECT_FAULT(cvy_checkpoint_read(other, path, NULL, &found), CVY_E_SHAPE, "1 tasks, and this one has 2");
    cvy_program_destroy(&program);
    cvy_program_destroy(&other);
}

int main(int argc, char **argv)
{
    char clean[96];
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    if (cvy_context_rank(all) == 0 && !mkdtemp(folder))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    TEST(every_mode_goes_on);
    TEST(a_damaged_set_is_passed_over);
    TEST(what_is_refused);
    snprintf(clean, sizeof clean, "rm -r %s", folder);
    EXPECT(cvy_context_rank(all) != 0 || system(clean) == 0);
    cvy_context_destroy(&all);
    MPI_Finalize();
    return test_end();
}
