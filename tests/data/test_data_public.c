/* ranks: 1 2 3 */
/*
 * test_data_public.c: data sets and loaders of the public API: every sample once in an epoch over all ranks, the same
 * batches after a later start, tails, parts, and what is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "test_util.h"

enum { SAMPLES = 50, BATCH = 8 };
static const char source[] = "{format: synthetic, samples: 50, shape: [3], classes: 2}";
static cvy_context *all;

static cvy_data_loader *new_loader(cvy_data *data, int64_t first_step, int keep_tail)
{
    cvy_data_loader_opts opts = cvy_data_loader_opts_default();
    cvy_data_loader *loader = NULL;
    opts.batch = BATCH, opts.epochs = 2, opts.seed = 3, opts.first_step = first_step, opts.keep_tail = keep_tail;
    EXPECT_OK(cvy_data_loader_create(all, data, &opts, &loader));
    return loader;
}

static void an_epoch_has_every_sample_once(void)
{
    cvy_data *data = NULL;
    cvy_data_batch batch = cvy_data_batch_default();
    int seen[SAMPLES] = {0}, total[SAMPLES] = {0};
    int64_t steps = 0;
    EXPECT_OK(cvy_data_open(source, NULL, &data));
    cvy_data_loader *loader = new_loader(data, 0, 1);
    EXPECT_INT(cvy_data_loader_steps(loader), 7);
    cvy_status status;
    while ((status = cvy_data_loader_next(loader, &batch)) == CVY_OK) {
        EXPECT_INT(batch.step, steps++);
        EXPECT_INT(batch.epoch, batch.step / 7);
        EXPECT_INT(batch.batch, batch.step % 7 == 6 ? 2 : BATCH);
        for (int64_t i = 0; i < batch.rows; i++) {
            seen[batch.sample[i]]++;
            EXPECT(batch.weight[i] == 1);
            EXPECT(((const int32_t *)batch.field[1])[i] == batch.sample[i] % 2);
        }
    }
    EXPECT_INT(status, CVY_END);
    EXPECT_INT(steps, 14);
    MPI_Allreduce(seen, total, SAMPLES, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < SAMPLES; i++)
        EXPECT_INT(total[i], 2);
    cvy_data_loader_destroy(&loader);
    loader = new_loader(data, 0, 0);
    EXPECT_INT(cvy_data_loader_steps(loader), 6); /* the tail is left out */
    cvy_data_loader_destroy(&loader);
    cvy_data_destroy(&data);
}

static void a_later_start_gives_the_same_batches(void)
{
    cvy_data *data = NULL;
    cvy_data_batch early = cvy_data_batch_default(), late = cvy_data_batch_default();
    EXPECT_OK(cvy_data_open(source, NULL, &data));
    cvy_data_loader *whole = new_loader(data, 0, 1), *rest = new_loader(data, 9, 1);
    for (int i = 0; i < 9; i++)
        EXPECT_OK(cvy_data_loader_next(whole, &early));
    while (cvy_data_loader_next(whole, &early) == CVY_OK) {
        EXPECT_OK(cvy_data_loader_next(rest, &late));
        EXPECT(late.step == early.step && late.rows == early.rows);
        for (int64_t i = 0; i < early.rows; i++)
            EXPECT_INT(late.sample[i], early.sample[i]);
    }
    EXPECT_INT(cvy_data_loader_next(rest, &late), CVY_END);
    cvy_data_loader_destroy(&rest);
    cvy_data_loader_destroy(&whole);
    cvy_data_destroy(&data);
}

static void sets_are_described_and_split(void)
{
    cvy_data *data = NULL, *part = NULL, *rest = NULL;
    cvy_data_about about = cvy_data_about_default();
    const char *name = NULL;
    cvy_dtype dtype = CVY_DTYPE_U8;
    cvy_shape shape = {0};
    EXPECT_OK(cvy_data_open(source, NULL, &data));
    EXPECT_OK(cvy_data_describe(data, &about));
    EXPECT(about.samples == SAMPLES && about.classes == 2 && about.fields == 2);
    EXPECT_TEXT(about.format, "synthetic");
    EXPECT_OK(cvy_data_field(data, 0, &name, &dtype, &shape));
    EXPECT_TEXT(name, "x");
    EXPECT(dtype == CVY_DTYPE_F32 && shape.ndim == 1 && shape.dim[0] == 3);
    EXPECT_INT(cvy_data_field(data, 2, &name, NULL, NULL), CVY_END);
    EXPECT_OK(cvy_data_split(data, 0.2, 1, 1, &part));
    EXPECT_OK(cvy_data_split(data, 0.2, 1, 0, &rest));
    EXPECT_OK(cvy_data_describe(part, &about));
    EXPECT_INT(about.samples, 10);
    EXPECT_OK(cvy_data_describe(rest, &about));
    EXPECT_INT(about.samples, 40);
    cvy_data_destroy(&part);
    cvy_data_destroy(&rest);
    cvy_data_destroy(&data);
}

static void batches_fill_the_feeds(void)
{
    cvy_data *data = NULL;
    cvy_model *model = NULL;
    cvy_program *program = NULL;
    cvy_data_batch batch = cvy_data_batch_default();
    int train = 0, forward = 0;
    EXPECT_OK(cvy_data_open(source, NULL, &data));
    EXPECT_OK(cvy_model_create("m", &model));
    EXPECT_OK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){1, {3}}));
    EXPECT_OK(cvy_model_add_input(model, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(model, "fc", "out", "channels: 2", "x"));
    EXPECT_OK(cvy_model_add(model, "softmax_cross_entropy", "loss", NULL, "out, label"));
    EXPECT_OK(cvy_program_create(all, NULL, &program));
    EXPECT_OK(cvy_program_add_training(program, model, BATCH, NULL, &train));
    EXPECT_OK(cvy_program_add_forward(program, model, BATCH, "out", &forward));
    EXPECT_OK(cvy_program_plan(program));
    cvy_data_loader *loader = new_loader(data, 5, 1);
    EXPECT_OK(cvy_data_loader_next(loader, &batch));
    EXPECT_OK(cvy_program_fill(program, train, &batch));
    const int32_t *label = cvy_program_feed(program, train, "label");
    for (int64_t i = 0; i < batch.rows; i++)
        EXPECT_INT(label[i], batch.sample[i] % 2);
    EXPECT_OK(cvy_data_loader_next(loader, &batch)); /* the tail: two samples */
    EXPECT_FAULT(cvy_program_fill(program, train, &batch), CVY_E_ARGUMENT, "give loader and task the same batch");
    EXPECT_OK(cvy_program_fill(program, forward, &batch));
    EXPECT_FAULT(cvy_program_fill(program, 9, &batch), CVY_E_ARGUMENT, "task 9 is not planned");
    cvy_data_loader_destroy(&loader);
    cvy_program_destroy(&program);
    cvy_model_destroy(&model);
    cvy_data_destroy(&data);
}

static void what_is_refused(void)
{
    cvy_data *data = NULL;
    cvy_data_loader *loader = NULL;
    cvy_data_loader_opts opts = cvy_data_loader_opts_default();
    EXPECT_FAULT(cvy_data_open("{format: synthetik}", NULL, &data), CVY_E_CONFIG, "synthetic");
    EXPECT_FAULT(cvy_data_open("/nowhere", NULL, &data), CVY_E_IO, "/nowhere");
    EXPECT_OK(cvy_data_open(source, NULL, &data));
    EXPECT_FAULT(cvy_data_split(data, 1.5, 1, 1, &data), CVY_E_ARGUMENT, "a share of 1.5");
    EXPECT_FAULT(cvy_data_loader_create(all, data, &opts, &loader), CVY_E_ARGUMENT, "batches of 0 samples");
    opts.batch = BATCH, opts.shuffle = "sometimes";
    EXPECT_FAULT(cvy_data_loader_create(all, data, &opts, &loader), CVY_E_ARGUMENT, "shuffle is 'sometimes'");
    cvy_data_destroy(&data);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    TEST(an_epoch_has_every_sample_once);
    TEST(a_later_start_gives_the_same_batches);
    TEST(sets_are_described_and_split);
    TEST(batches_fill_the_feeds);
    TEST(what_is_refused);
    cvy_context_destroy(&all);
    MPI_Finalize();
    return test_end();
}
