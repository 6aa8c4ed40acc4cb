/* ranks: 1 2 3 */
/*
 * own_loop.c: convoy's loader, schedule, metric and crash-safe checkpoints around a training loop of one's own.
 *
 *     mpicc own_loop.c $(pkg-config --cflags --libs convoy) -o own_loop && mpiexec -n 2 ./own_loop
 *
 * A run resumes the newest valid checkpoint. The loss must be the same whether the training takes one run or two.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw */
#include <convoy/convoy.h>
#include <convoy/mpi.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static cvy_status check(cvy_status status)
{
    if (status < 0 && fprintf(stderr, "own_loop: %s\n", cvy_error_text()))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return status;
}

enum { SAMPLES = 500, BATCH = 32, EPOCHS = 4, CLASSES = 5, SAVE_EVERY = 10 };

/* The fraction of samples, over all ranks, that the network classifies correctly. */
static double evaluate(cvy_context *context, cvy_program *program, int task, cvy_data *data)
{
    cvy_data_loader_opts opts = cvy_data_loader_opts_default();
    cvy_data_batch batch = cvy_data_batch_default();
    cvy_metric_batch rows = cvy_metric_batch_default();
    cvy_data_loader *loader = NULL;
    cvy_metric *metric = NULL;
    double value = 0;
    opts.batch = BATCH, opts.epochs = 1, opts.keep_tail = 1, opts.shuffle = "false";
    check(cvy_data_loader_create(context, data, &opts, &loader));
    check(cvy_metric_open("accuracy", &(cvy_shape){1, {CLASSES}}, &metric));
    while (check(cvy_data_loader_next(loader, &batch)) == CVY_OK) {
        check(cvy_program_fill(program, task, &batch));
        check(cvy_program_step(program, task, 0));
        rows.rows = batch.rows, rows.target = batch.field[1], rows.target_dtype = CVY_DTYPE_I32;
        check(cvy_program_output(program, task, "fc", &rows.output, NULL));
        check(cvy_metric_add_rows(metric, &rows));
    }
    check(cvy_metric_reduce(metric, context, &value));
    cvy_metric_destroy(&metric);
    cvy_data_loader_destroy(&loader);
    return value;
}

/* Trains from the newest checkpoint in `folder`, or from the start, to step `last` (-1: the end). Returns the loss. */
static double train(cvy_context *context, cvy_model *model, cvy_data *data, const char *folder, int64_t last)
{
    cvy_training_opts training = cvy_training_opts_default();
    cvy_data_loader_opts opts = cvy_data_loader_opts_default();
    cvy_schedule_opts rates = cvy_schedule_opts_default();
    cvy_checkpoint_opts save = cvy_checkpoint_opts_default();
    cvy_checkpoint_about found = cvy_checkpoint_about_default();
    cvy_data_batch batch = cvy_data_batch_default();
    cvy_program *program = NULL;
    cvy_data_loader *loader = NULL;
    cvy_schedule *schedule = NULL;
    int task = 0, forward = 0;
    double loss = 0;
    training.optimizer = "adam";
    check(cvy_program_create(context, NULL, &program));
    check(cvy_program_add_training(program, model, BATCH, &training, &task));
    check(cvy_program_add_forward(program, model, BATCH, "fc", &forward));
    check(cvy_program_plan(program));
    rates.lr = 0.01, rates.batch = BATCH, rates.epoch_samples = SAMPLES, rates.epochs = EPOCHS;
    check(cvy_schedule_open("{name: cosine, warmup: 5 steps}", &rates, &schedule));
    check(cvy_checkpoint_read(program, folder, NULL, &found)); /* CVY_END: there is none, and found.step stays 0 */
    opts.batch = BATCH, opts.epochs = EPOCHS, opts.seed = 1, opts.first_step = found.step, save.folder = folder;
    check(cvy_data_loader_create(context, data, &opts, &loader));
    while (save.step != last && check(cvy_data_loader_next(loader, &batch)) == CVY_OK) {
        check(cvy_program_fill(program, task, &batch));
        check(cvy_program_step(program, task, cvy_schedule_lr(schedule, (double)batch.step * BATCH)));
        check(cvy_program_loss(program, task, "loss", &loss));
        save.step = batch.step + 1;
        if (save.step % SAVE_EVERY == 0)
            check(cvy_checkpoint_write(program, &save));
    }
    printf("step %d: loss %.6f, accuracy %.3f\n", (int)save.step, loss, evaluate(context, program, forward, data));
    cvy_text_release(&found.notes);
    cvy_schedule_destroy(&schedule);
    cvy_data_loader_destroy(&loader);
    cvy_program_destroy(&program);
    return loss;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    return (void)about, (void)kind, (void)at, remove(path);
}

int main(int argc, char **argv)
{
    cvy_context *context = NULL;
    cvy_model *model = NULL;
    cvy_data *data = NULL;
    char folder[] = "/tmp/own_loop-XXXXXX", twice[64];
    MPI_Init(&argc, &argv);
    check(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &context));
    if (cvy_context_rank(context) == 0 && !mkdtemp(folder))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(twice, sizeof twice, "%s/twice", folder);
    check(cvy_data_open("{format: synthetic, samples: 500, shape: [1, 8, 8], classes: 5}", NULL, &data));
    check(cvy_model_zoo("linear", NULL, &(cvy_shape){3, {1, 8, 8}}, CLASSES, &model));
    check(cvy_model_add_input(model, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    check(cvy_model_add(model, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    const double whole = train(context, model, data, folder, -1);
    train(context, model, data, twice, 25); /* stops after step 25; its last checkpoint is of step 20 */
    const int failed = train(context, model, data, twice, -1) != whole ||
                       (cvy_context_rank(context) == 0 && nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS) != 0);
    cvy_data_destroy(&data);
    cvy_model_destroy(&model);
    cvy_context_destroy(&context);
    MPI_Finalize();
    return failed;
}
