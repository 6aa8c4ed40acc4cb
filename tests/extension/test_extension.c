/* ranks: 1 2 */
/*
 * test_extension.c: loads a library of operators through the C interface, trains with its layer, and leaves no memory
 * behind; calls in the wrong order or with wrong arguments are refused, and a faulty library changes nothing.
 *
 * CVY_TEST_EXTENSION names the library that tests/CMakeLists.txt builds from twist.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "base/base_mem.h"
#include "context/context.h"
#include "test_util.h"

static const char *library;

static void add_layers(cvy_model *m)
{
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {3}}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 3, kernel: 3", "x"));
    EXPECT_OK(cvy_model_add(m, "twist", "bend", "gain: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "fc, y"));
}

/* A library that one rank cannot load is on none. */
static void test_missing_on_one_rank(cvy_context *context)
{
    if (cvy_context_nranks(context) == 1)
        return;
    EXPECT_FAULT(cvy_context_load_library(context, cvy_context_rank(context) == 1 ? "/nowhere/x.so" : library),
                 CVY_E_IO, "library /nowhere/x.so: it cannot be opened");
    EXPECT(context->extensions.nop == 0 && context->extensions.nfile == 0);
}

static void test_training(cvy_context *context)
{
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int task = -1;
    EXPECT_OK(cvy_context_load_library(context, library));
    EXPECT(context->extensions.nop == 1 && context->extensions.nfile == 1);
    EXPECT_OK(cvy_context_load_library(context, library)); /* it is there already */
    EXPECT(context->extensions.nop == 1 && context->extensions.nfile == 1);
    EXPECT_OK(cvy_model_create("bent", &m));
    EXPECT_FAULT(cvy_model_add(m, "twist", NULL, NULL, "x"), CVY_E_CONFIG, "there is no layer type 'twist'");
    EXPECT_OK(cvy_model_use_context(m, context));
    EXPECT_OK(cvy_model_use_context(m, context));
    add_layers(m);
    const cvy_program_opts opts = {.size = sizeof opts, .seed = 1};
    const cvy_training_opts training = {.size = sizeof training};
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 8, &training, &task));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m); /* the program does not need it */
    double first = 0, loss = 0;
    for (int step = 0; step < 20; step++) {
        const int64_t rows = cvy_program_rows(p, task), row = cvy_program_first_row(p, task);
        float *x = cvy_program_feed(p, task, "x"), *y = cvy_program_feed(p, task, "y");
        for (int64_t i = 0; i < rows * 32; i++)
            x[i] = (float)((row * 32 + i) * 7 % 11) / 11 - 0.5f;
        for (int64_t i = 0; i < rows * 3; i++)
            y[i] = (float)((row * 3 + i) % 5) / 5;
        EXPECT_OK(cvy_program_step(p, task, 0.05));
        EXPECT_OK(cvy_program_loss(p, task, "loss", &loss));
        first = step == 0 ? loss : first;
    }
    EXPECT(loss < 0.9 * first);
    cvy_program_destroy(&p);
}

static void test_wrong_calls(cvy_context *context)
{
    cvy_context *other = NULL;
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int task = -1;
    EXPECT_FAULT(cvy_context_load_library(NULL, library), CVY_E_ARGUMENT, "context is NULL");
    EXPECT_FAULT(cvy_context_load_library(context, NULL), CVY_E_ARGUMENT, "a library needs a path");
    EXPECT_FAULT(cvy_context_load_library(context, "/nowhere/x.so"), CVY_E_IO,
                 "library /nowhere/x.so: it cannot be opened");
    EXPECT_OK(cvy_context_create(NULL, &other));
    EXPECT_OK(cvy_context_load_library(other, library));
    EXPECT_OK(cvy_model_create("bent", &m));
    EXPECT_OK(cvy_model_use_context(m, other));
    EXPECT_FAULT(cvy_model_use_context(m, context), CVY_E_ARGUMENT, "uses the libraries of another context already");
    add_layers(m);
    EXPECT_OK(cvy_program_create(context, NULL, &p));
    EXPECT_FAULT(cvy_program_add_training(p, m, 8, NULL, &task), CVY_E_ARGUMENT,
                 "model bent uses the libraries of another context than that of the program");
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    cvy_context_destroy(&other);
}

static void test_check_op(cvy_context *context)
{
    cvy_operators_result r = cvy_operators_result_default();
    const cvy_operators_opts only = {.size = sizeof only, .only = "bend"}, empty = {0};
    EXPECT_OK(cvy_run_check_operators(context, library, NULL, &r));
    EXPECT(r.operators == 1 && r.checks == 6 && r.failed == 0);
    EXPECT_FAULT(cvy_run_check_operators(context, library, &only, &r), CVY_E_ARGUMENT,
                 "has no operator 'bend'; it has twist");
    EXPECT_FAULT(cvy_run_check_operators(context, library, &empty, &r), CVY_E_ARGUMENT,
                 "the size of cvy_operators_opts is 0");
}

/* Each allocation of loading fails once; then loading works. */
static void test_memory(void)
{
    cvy_extensions x = {0};
    cvy_status status = CVY_E_MEMORY;
    const int64_t before = cvy_memory_bytes();
    for (int64_t k = 1; status == CVY_E_MEMORY && k < 200; k++) {
        cvy_mem_fail_at(k, 0);
        status = cvy_extensions_load(&x, library, NULL);
        cvy_mem_fail_at(0, 0);
        EXPECT(status == CVY_OK || (x.nop == 0 && x.nfile == 0));
    }
    EXPECT(status == CVY_OK && x.nop == 1);
    cvy_extensions_unload(&x);
    EXPECT(cvy_memory_bytes() == before);
}

int main(int argc, char **argv)
{
    cvy_context *context = NULL;
    library = getenv("CVY_TEST_EXTENSION");
    if (!library) {
        printf("no library of operators was built\n");
        return 77;
    }
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &context));
    test_missing_on_one_rank(context);
    test_training(context);
    test_wrong_calls(context);
    test_check_op(context);
    test_memory();
    cvy_context_destroy(&context);
    MPI_Finalize();
    return test_end();
}
