/* ranks: 1 2 */
/*
 * test_context_fork.c: a process that is forked after its parent had threads or MPI is told so by every call, in which
 * it would wait for ever otherwise, and harms nothing of its parent, which trains on. A process that is forked before
 * that trains. test_context_handles.c calls every public function in such a process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"
#include "files/files.h"
#include "measure/measure.h"
#include "test_util.h"

enum { ROWS = 4, LIMIT_S = 60, STEPS = 3 };

/* A context with a program that learns a line. */
struct run {
    cvy_context *context;
    cvy_model *model;
    cvy_program *program;
    int task;
};

static void prepare(struct run *r)
{
    const cvy_program_opts opts = {.size = sizeof opts, .wisdom = "off", .seed = 3};
    const cvy_training_opts train = {.size = sizeof train, .optimizer = "sgd"};
    EXPECT_OK(cvy_model_create("line", &r->model));
    EXPECT_OK(cvy_model_add_input(r->model, "x", CVY_DTYPE_F32, &(cvy_shape){1, {3}}));
    EXPECT_OK(cvy_model_add_input(r->model, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    EXPECT_OK(cvy_model_add(r->model, "fc", "fc", "channels: 1", "x"));
    EXPECT_OK(cvy_model_add(r->model, "mse", "loss", NULL, "fc, y"));
    EXPECT_OK(cvy_program_create(r->context, &opts, &r->program));
    EXPECT_OK(cvy_program_add_training(r->program, r->model, ROWS, &train, &r->task));
    EXPECT_OK(cvy_program_plan(r->program));
}

static double step(const struct run *r)
{
    double loss = -1;
    float *x = cvy_program_feed(r->program, r->task, "x"), *y = cvy_program_feed(r->program, r->task, "y");
    for (int i = 0; i < (int)cvy_program_rows(r->program, r->task); i++) {
        for (int k = 0; k < 3; k++)
            x[3 * i + k] = (float)(i + k);
        y[i] = (float)i;
    }
    EXPECT_OK(cvy_program_step(r->program, r->task, 0.01));
    EXPECT_OK(cvy_program_loss(r->program, r->task, "loss", &loss));
    return loss;
}

static void end(struct run *r)
{
    cvy_program_destroy(&r->program);
    cvy_model_destroy(&r->model);
    cvy_context_destroy(&r->context);
}

/* Calls a function in a forked process, which must end in time and without a failed check. */
static void in_a_fork(void (*call)(void))
{
    int how = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        test_failures = 0;
        alarm(LIMIT_S);
        call();
        fflush(stdout);
        _exit(test_failures != 0);
    }
    EXPECT(child > 0 && waitpid(child, &how, 0) == child);
    EXPECT_INT(how, 0);
}

static struct run parent;
static cvy_reducer *reducer;
static int rank, nranks;
static char refusal[64]; /* how the message of a refused call goes on after the number of the process */

static void train_anew(void)
{
    const cvy_context_opts two = {.size = sizeof two, .threads = 2};
    struct run mine = {0};
    EXPECT_OK(cvy_context_create(&two, &mine.context));
    prepare(&mine);
    EXPECT(step(&mine) > step(&mine));
    end(&mine);
}

static void train_on(void)
{
    EXPECT(step(&parent) > step(&parent));
}

static void before_the_first_threads(void)
{
    in_a_fork(train_anew);
}

static void with_one_thread(void)
{
    const cvy_context_opts one = {.size = sizeof one, .threads = 1};
    EXPECT_OK(cvy_context_create(&one, &parent.context));
    prepare(&parent);
    EXPECT(step(&parent) > 0);
    in_a_fork(train_on);
    in_a_fork(train_anew);
    train_on();
    end(&parent);
}

#define REFUSED(call) EXPECT_FAULT(call, CVY_E_UNSUPPORTED, refusal)

static void refused(void)
{
    static const char source[] = "{format: synthetic, shape: [3], classes: 2, samples: 8}";
    const cvy_bench_data_opts bench = {.size = sizeof bench, .source = source, .threads = 1};
    cvy_bench_data_result result = cvy_bench_data_result_default();
    const struct run kept = parent;
    cvy_context *context = NULL;
    cvy_model *model = NULL;
    cvy_data *data = NULL;
    char *text = NULL;
    double loss = 0;
    REFUSED(cvy_context_create(NULL, &context));
    REFUSED(cvy_context_create_mpi(MPI_COMM_SELF, NULL, &context));
    REFUSED(cvy_model_create("m", &model));
    REFUSED(cvy_program_plan(parent.program));
    REFUSED(cvy_program_step(parent.program, parent.task, 0.01));
    REFUSED(cvy_program_loss(parent.program, parent.task, "loss", &loss));
    REFUSED(cvy_program_save(parent.program, "weights"));
    REFUSED(cvy_reducer_wait(reducer, 0));
    REFUSED(cvy_data_open(source, NULL, &data));
    REFUSED(cvy_run_bench_data(&bench, &result));
    REFUSED(cvy_run_new_job(source, NULL, &text));
    EXPECT(!context && !model && !data && !text);
    EXPECT(!cvy_program_feed(parent.program, parent.task, "x"));
    EXPECT(!cvy_reducer_buffer(reducer, 0));
    EXPECT_INT(cvy_context_rank(parent.context), rank); /* what the child has a copy of may be read */
    EXPECT_INT(cvy_context_nranks(parent.context), nranks);
    EXPECT_INT(cvy_context_threads(parent.context), 2);
    cvy_reducer_destroy(&reducer);
    end(&parent);
    EXPECT(reducer && parent.program == kept.program && parent.context == kept.context);
}

/* The parent's all-reduce is under way while the child is there. */
static void after_threads(void)
{
    const cvy_context_opts two = {.size = sizeof two, .threads = 2};
    int buffer = -1;
    double losses[STEPS] = {0};
    snprintf(refusal, sizeof refusal, ", was forked from process %d", (int)getpid());
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &two, &parent.context));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    EXPECT_OK(cvy_reducer_create(parent.context, NULL, &reducer));
    EXPECT_OK(cvy_reducer_add(reducer, "g", 1, CVY_DTYPE_F32, &buffer));
    EXPECT_OK(cvy_reducer_ready(reducer));
    prepare(&parent);
    for (int i = 0; i < STEPS; i++) {
        losses[i] = step(&parent);
        EXPECT(i == 0 || losses[i] < losses[i - 1]);
        *(float *)cvy_reducer_buffer(reducer, buffer) = 1;
        EXPECT_OK(cvy_reducer_start(reducer, buffer));
        in_a_fork(refused);
        EXPECT_OK(cvy_reducer_wait(reducer, buffer));
        EXPECT_NEAR(*(float *)cvy_reducer_sum(reducer, buffer), nranks, 0);
    }
    cvy_reducer_destroy(&reducer);
    end(&parent);
}

int main(int argc, char **argv)
{
    int provided = 0;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return 1;
    TEST(before_the_first_threads);
    TEST(with_one_thread);
    TEST(after_threads);
    EXPECT_INT(cvy_memory_bytes(), 0);
    MPI_Finalize();
    return test_end();
}
