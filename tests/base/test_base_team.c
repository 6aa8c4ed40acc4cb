/* rows: clang asan */
/*
 * test_base_team.c: a team of OpenMP has the size that was asked for or is refused with the limit: of threads, of
 * levels, and within a parallel region of the host. A program steps with a full team if OpenMP may choose a smaller
 * one, and the host's settings come back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/machine/base_team.h"
#include "test_util.h"

#if defined(_OPENMP) && CVY_HAVE_OPENMP
#include <omp.h>

enum { THREADS = 2, ROWS = 4, PIXELS = 12 };

static int count_team(void)
{
    int n = 0;
#pragma omp parallel
    {
#pragma omp master
        n = omp_get_num_threads();
    }
    return n;
}

static void dynamic_is_set_aside(void)
{
    cvy_team before;
    omp_set_dynamic(1);
    omp_set_num_threads(3);
    EXPECT_OK(cvy_team_enter(THREADS, &before));
    EXPECT_INT(omp_get_dynamic(), 0);
    EXPECT_INT(count_team(), THREADS);
    EXPECT_OK(cvy_team_count(THREADS));
    cvy_team_leave(&before);
    EXPECT_INT(omp_get_dynamic(), 1);
    EXPECT_INT(omp_get_max_threads(), 3);
    omp_set_dynamic(0);
}

static void levels(void)
{
    const char *why = "";
    cvy_team before;
    const int allowed = omp_get_max_active_levels();
    omp_set_num_threads(3);
    omp_set_max_active_levels(0);
    EXPECT_INT(cvy_team_limit(THREADS, &why), 1);
    EXPECT_INT(cvy_team_limit(1, &why), 1);
    EXPECT(why[0] == 0);
    EXPECT_FAULT(
        cvy_team_enter(THREADS, &before), CVY_E_ARGUMENT,
        "2 compute threads were asked for, and OpenMP gives a team of 1: OMP_MAX_ACTIVE_LEVELS is 0; ask for 1");
    EXPECT_INT(omp_get_max_threads(), 3);
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        EXPECT_FAULT(cvy_team_enter(THREADS, &before), CVY_E_ARGUMENT, "it is called within a parallel region");
    }
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        {
            EXPECT_OK(cvy_team_enter(THREADS, &before));
            cvy_team_leave(&before);
        }
    }
    omp_set_max_active_levels(allowed);
}

/* Steps of a network with a convolution: its backward pass waited for ever in a smaller team. */
static void program(void)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = THREADS};
    const cvy_program_opts program_opts = {.size = sizeof program_opts, .seed = 1, .wisdom = "off"};
    cvy_context *context = NULL;
    cvy_program *p = NULL;
    cvy_model *m = NULL;
    int task = 0;
    const int allowed = omp_get_max_active_levels();
    omp_set_dynamic(1);
    EXPECT_OK(cvy_context_create(&opts, &context));
    EXPECT_OK(cvy_model_create("team", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, PIXELS, PIXELS}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 8, kernel: 3, pad: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 1", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "fc, y"));
    EXPECT_OK(cvy_program_create(context, &program_opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, ROWS, NULL, &task));
    EXPECT_OK(cvy_program_plan(p));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(cvy_program_step(p, task, 0.01));
    EXPECT_INT(omp_get_dynamic(), 1);
    omp_set_dynamic(0);
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        EXPECT_FAULT(cvy_program_step(p, task, 0.01), CVY_E_ARGUMENT, "it is called within a parallel region");
    }
    EXPECT_OK(cvy_program_step(p, task, 0.01));
    omp_set_max_active_levels(allowed);
    cvy_model_destroy(&m);
    cvy_program_destroy(&p);
    cvy_context_destroy(&context);
}

/* OpenMP reads its limit when the process starts, so another process is started. */
static void limited(void)
{
    const cvy_context_opts asked = {.size = sizeof asked, .threads = THREADS}, chosen = {.size = sizeof chosen};
    cvy_context *context = NULL;
    EXPECT_FAULT(cvy_context_create(&asked, &context), CVY_E_ARGUMENT,
                 "2 compute threads were asked for, and OpenMP gives a team of 1: OMP_THREAD_LIMIT is smaller");
    EXPECT_OK(cvy_context_create(&chosen, &context));
    EXPECT_INT(cvy_context_threads(context), 1);
    cvy_context_destroy(&context);
}

static void thread_limit(const char *self)
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        setenv("OMP_THREAD_LIMIT", "1", 1);
        execl(self, self, "limited", (char *)NULL);
        _exit(1);
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_INT(status, 0);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "limited") == 0) {
        limited();
        return test_end();
    }
    thread_limit(argv[0]);
    TEST(dynamic_is_set_aside);
    TEST(levels);
    TEST(program);
    return test_end();
}

#else

int main(void)
{
    printf("convoy is built without OpenMP\n");
    return 77;
}

#endif
