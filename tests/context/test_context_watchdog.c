/* ranks: 2 3 */
/* rows: mpich mpi asan */
/* lane: clock */
/*
 * test_context_watchdog.c: if a rank does not come, the ranks that wait for it in a step, a reduction or another
 * collective call say which one, where it is, in which call they wait, and in which call and step all have met last. It
 * is said to the log or to the function that may end the job. If the rank comes after all, everything goes on.
 *
 * The last rank waits, outside the library, for a message that rank 0 sends when it has been told.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base_file.h"
#include "test_util.h"

enum { ROWS = 6, ROOM = 1024, TAG = 3 };
#define LIMIT_S 0.1

static int rank, nranks;
static char told[ROOM]; /* what rank 0 was told */
static int is_expected; /* a rank does not come */

/* Other ranks may be slow on a busy machine: only what names the last rank alone is taken. */
static void hear(const char *text)
{
    char missing[64];
    snprintf(missing, sizeof missing, "(watchdog_s is %g): rank %d on ", LIMIT_S, nranks - 1);
    if (rank != 0 || !is_expected || !strstr(text, missing))
        return;
    is_expected = 0;
    snprintf(told, sizeof told, "%s", text);
    MPI_Send(&rank, 1, MPI_INT, nranks - 1, TAG, MPI_COMM_WORLD);
}

static void hear_log(void *user, cvy_log_level level, const char *line)
{
    (void)user;
    EXPECT_INT(level, CVY_LOG_ERROR);
    hear(line);
}

static void hear_fatal(void *user, cvy_status status, const char *text)
{
    (void)user;
    EXPECT_INT(status, CVY_E_COMM);
    hear(text);
}

/* The last rank does not come until rank 0 has been told. */
static void begin_absence(void)
{
    int from = -1;
    is_expected = 1;
    told[0] = 0;
    if (rank == nranks - 1)
        MPI_Recv(&from, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void end_absence(const char *waits, const char *met)
{
    char begin[ROOM], end[ROOM];
    const size_t length = strlen(told);
    snprintf(begin, sizeof begin, " s in %s (watchdog_s", waits);
    snprintf(end, sizeof end, met[0] ? "last met in %s" : "%s", met);
    if (rank == 0 && (strncmp(told, "rank 0 on ", 10) != 0 || !strstr(told, begin) || length < strlen(end) ||
                      strcmp(told + length - strlen(end), end) != 0))
        TEST_FAIL("expected \"..%s..%s\", got \"%s\"", begin, end, told);
}

/* Stands for that of the C library. The context asks for the name while it starts the watchdog; there, too, a rank may
 * be late. */
static int is_late;

int gethostname(char *name, size_t bytes)
{
    struct utsname about;
    if (is_late)
        usleep(50000);
    snprintf(name, bytes, "%s", uname(&about) == 0 ? about.nodename : "?");
    return 0;
}

static cvy_context *context;

static void open_context(cvy_log_fn log, cvy_fatal_fn fatal)
{
    const cvy_context_opts opts = {
        .size = sizeof opts, .threads = 1, .log = log, .fatal = fatal, .watchdog_s = LIMIT_S};
    is_late = rank == nranks - 1;
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context));
    is_late = 0;
}

static void skip_a_step(cvy_update_mode mode, const char *met)
{
    const cvy_program_opts opts = {.size = sizeof opts, .wisdom = "off", .update_mode = mode};
    const cvy_training_opts train = {.size = sizeof train, .optimizer = "sgd"};
    const cvy_checkpoint_opts save = {.size = sizeof save, .folder = "set", .step = 3};
    cvy_model *model = NULL;
    cvy_program *program = NULL;
    int task = -1;
    open_context(hear_log, NULL);
    EXPECT_OK(cvy_model_create("line", &model));
    EXPECT_OK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){1, {3}}));
    EXPECT_OK(cvy_model_add_input(model, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    EXPECT_OK(cvy_model_add(model, "fc", "fc", "channels: 1", "x"));
    EXPECT_OK(cvy_model_add(model, "mse", "loss", NULL, "fc, y"));
    EXPECT_OK(cvy_program_create(context, &opts, &program));
    EXPECT_OK(cvy_program_add_training(program, model, ROWS, &train, &task));
    begin_absence();
    EXPECT_OK(cvy_program_plan(program));
    end_absence("an allreduce of cvy_program_plan()", "cvy_context_create_mpi()");
    for (int i = 0; i < 2; i++)
        EXPECT_OK(cvy_program_step(program, task, 0.1));
    begin_absence();
    EXPECT_OK(cvy_program_step(program, task, 0.1));
    end_absence("cvy_program_step() at step 3", met);
    EXPECT_OK(cvy_program_flush(program));
    begin_absence();
    EXPECT_OK(cvy_checkpoint_write(program, &save));
    end_absence("an allreduce of cvy_checkpoint_write() at step 3",
                mode == CVY_UPDATE_SYNC ? "cvy_program_step() at step 3" : "");
    cvy_program_destroy(&program);
    cvy_model_destroy(&model);
    cvy_context_destroy(&context);
}

static void skips_a_step(void)
{
    skip_a_step(CVY_UPDATE_SYNC, "cvy_program_step() at step 2");
    skip_a_step(CVY_UPDATE_DELAYED, "cvy_program_step() at step 1");
}

/* Also with a progress thread, while this rank only waits for it. */
static void skips_a_reduction(const char *progress)
{
    const cvy_reducer_opts opts = {.size = sizeof opts, .progress = progress};
    cvy_reducer *reducer = NULL;
    int buffer = -1;
    open_context(NULL, hear_fatal);
    EXPECT_OK(cvy_reducer_create(context, &opts, &reducer));
    EXPECT_OK(cvy_reducer_add(reducer, "g", 1, CVY_DTYPE_F32, &buffer));
    EXPECT_OK(cvy_reducer_ready(reducer));
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            begin_absence();
        *(float *)cvy_reducer_buffer(reducer, buffer) = 1;
        EXPECT_OK(cvy_reducer_start(reducer, buffer));
        EXPECT_OK(cvy_reducer_wait(reducer, buffer));
        EXPECT_NEAR(*(float *)cvy_reducer_sum(reducer, buffer), nranks, 0);
    }
    end_absence("cvy_reducer_wait() at step 3", "cvy_reducer_wait() at step 2");
    cvy_reducer_destroy(&reducer);
    cvy_context_destroy(&context);
}

static void skips_reductions(void)
{
    skips_a_reduction("poll");
    skips_a_reduction("thread");
}

static void wrong_limits(void)
{
    cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .watchdog_s = -1};
    EXPECT_FAULT(cvy_context_create(&opts, &context), CVY_E_ARGUMENT, "watchdog_s is -1, expected seconds");
    opts.watchdog_s = NAN;
    EXPECT_FAULT(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context), CVY_E_ARGUMENT, "watchdog_s is");
    opts.watchdog_s = rank == 0 ? 0 : 60;
    EXPECT_FAULT(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context), CVY_E_DISAGREE, "0 to 60 s on other ranks");
    opts.watchdog_s = 60;
    EXPECT_OK(cvy_context_create(&opts, &context)); /* one rank waits for no other */
    cvy_context_destroy(&context);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/test-context-XXXXXX";
    int provided = 0;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank == 0)
        EXPECT(mkdtemp(folder));
    MPI_Bcast(folder, sizeof folder, MPI_BYTE, 0, MPI_COMM_WORLD);
    EXPECT(chdir(folder) == 0);
    TEST(skips_a_step);
    TEST(skips_reductions);
    TEST(wrong_limits);
    EXPECT_INT(cvy_memory_bytes(), 0);
    MPI_Finalize();
    if (rank == 0)
        EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
