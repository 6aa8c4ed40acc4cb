/* rows: mpich */
/*
 * test_backend_cuda_thread.c: a space of the backend cuda that one thread of the host has opened works in another one.
 * backend/cuda.sh runs it on the fake libraries.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>

#include "backend/gpu/gpu.h"
#include "test_util.h"

enum { N = 100 };

static cvy_space space;
static float *sum, *part;
static cvy_mark *mark;

static void make(void)
{
    EXPECT_OK(cvy_space_open("cuda", NULL, &space));
    EXPECT_OK(cvy_space_alloc(&space, N * sizeof *sum, 0, &sum));
    EXPECT_OK(cvy_space_alloc(&space, N * sizeof *part, 0, &part));
    EXPECT_OK(cvy_mark_create(&space, &mark));
}

static void put(void)
{
    EXPECT_OK(cvy_space_zero(&space, CVY_LANE_COMPUTE, sum, N * sizeof *sum));
}
static void launch(void)
{
    EXPECT_OK(space.backend->add(space.state, CVY_LANE_COMPUTE, CVY_DTYPE_F32, N, sum, part));
}
static void put_mark(void)
{
    EXPECT_OK(cvy_mark_put(&space, CVY_LANE_COMPUTE, mark));
}
static void await(void)
{
    EXPECT_OK(cvy_mark_await(&space, CVY_LANE_COPY, mark));
}
static void wait_for_mark(void)
{
    int reached = 0;
    EXPECT_OK(cvy_mark_reached(&space, mark, 1, &reached));
    EXPECT_INT(reached, 1);
}
static void sync_all(void)
{
    EXPECT_OK(cvy_space_sync_all(&space));
}
static void write_part(void)
{
    float ones[N];
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    EXPECT_OK(cvy_space_write(&space, part, ones, sizeof ones));
}
static void read_sum(void)
{
    float got[N] = {0};
    EXPECT_OK(cvy_space_read(&space, got, sum, sizeof got));
    EXPECT_INT((int)got[0], 1);
    EXPECT_INT((int)got[N - 1], 1);
}

static void *call(void *step)
{
    ((void (*)(void))(uintptr_t)step)();
    return NULL;
}

/* Each step is the first call of a new thread. */
static void each_call_in_a_thread_of_its_own(void)
{
    void (*const steps[])(void) = {write_part, put, launch, put_mark, await, wait_for_mark, sync_all, read_sum};
    for (int i = 0; i < CVY_COUNT(steps); i++) {
        pthread_t thread;
        EXPECT_INT(pthread_create(&thread, NULL, call, (void *)(uintptr_t)steps[i]), 0);
        pthread_join(thread, NULL);
    }
}

int main(void)
{
    char why[400] = "";
    const cvy_backend_def *cuda = cvy_backend_find("cuda");
    if (!cuda || cuda->count(why, sizeof why) < 1) {
        printf("skipped: no CUDA device: %s\n", why);
        return 77;
    }
    make();
    TEST(each_call_in_a_thread_of_its_own);
    cvy_mark_destroy(&space, &mark);
    cvy_space_free(&space, &sum, N * sizeof *sum);
    cvy_space_free(&space, &part, N * sizeof *part);
    cvy_space_close(&space);
    return test_end();
}
