/* rows: clang asan aarch64 */
/*
 * test_backend_lanes.c: lanes, marks, memory and faults of a device, and that the emulated one finds what is wrong:
 * missing marks and barriers, and access to memory that is not the caller's (backend/emulated/emulated.h).
 *
 * What ends the process runs in a child, whose message is read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_util.h"

#include "backend/emulated/emulated.h"

enum { N = 1000, SEEDS = 200 };

struct faulty { /* as in backend/emulated/kernels/gpu_faulty.c */
    int64_t n;
    int fault;
};

static const cvy_gpu_source source = {"gpu_faulty", ""};
static cvy_space space;

static void begin(void)
{
    cvy_emulated_reset();
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, NULL, &space));
}

static void end(void)
{
    cvy_space_close(&space);
    EXPECT_INT(cvy_emulated_done_now.allocations, 0);
}

static cvy_gpu_kernel kernel_of(const char *name)
{
    cvy_gpu_kernel kernel = {0};
    EXPECT_OK(cvy_gpu_kernel_get(&space, &source, name, CVY_DTYPE_F32, &kernel));
    return kernel;
}

static float *device_floats(int64_t n)
{
    float *data = NULL;
    EXPECT_OK(cvy_space_alloc(&space, (size_t)n * sizeof *data, 0, &data));
    return data;
}

static void free_floats(float *data, int64_t n)
{
    cvy_space_free(&space, &data, (size_t)n * sizeof *data);
}

static cvy_status fill(float *data, int64_t n, float value, int fault)
{
    const cvy_gpu_kernel kernel = kernel_of("faulty_fill");
    const struct faulty f = {n, fault};
    return CVY_GPU_LAUNCH(&kernel, cvy_gpu_blocks(n), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(data),
                          CVY_GPU_VALUE(value), CVY_GPU_VALUE(f));
}

/* ---- lanes and marks ---- */

/* A step as a program makes it: an input comes over COPY, a kernel adds it up on COMPUTE, another one adds the sum to
 * it on COMM, and the result goes back on COPY. Bit i of `missing` leaves out mark i. Returns whether the result is
 * right. */
static int run_step(uint64_t seed, int missing)
{
    float *x = device_floats(N), *sum = device_floats(N), *in = NULL, *out = NULL;
    cvy_mark *mark[3];
    int right = 1;
    cvy_emulated_setup_now.seed = seed;
    EXPECT_OK(cvy_space_alloc_host(&space, N * sizeof *in, &in));
    EXPECT_OK(cvy_space_alloc_host(&space, N * sizeof *out, &out));
    for (int i = 0; i < CVY_COUNT(mark); i++)
        EXPECT_OK(cvy_mark_create(&space, &mark[i]));
    for (int i = 0; i < N; i++)
        in[i] = (float)i;
    const cvy_lane from[] = {CVY_LANE_COPY, CVY_LANE_COMPUTE, CVY_LANE_COMM},
                   to[] = {CVY_LANE_COMPUTE, CVY_LANE_COMM, CVY_LANE_COPY};
    for (int i = 0; i < CVY_COUNT(mark); i++) {
        if (i == 0)
            EXPECT_OK(cvy_space_copy(&space, CVY_LANE_COPY, x, in, N * sizeof *in));
        else
            EXPECT_OK(space.backend->add(space.state, from[i], CVY_DTYPE_F32, N, i == 1 ? sum : x, i == 1 ? x : sum));
        EXPECT_OK(cvy_mark_put(&space, from[i], mark[i]));
        if (!(missing >> i & 1))
            EXPECT_OK(cvy_mark_await(&space, to[i], mark[i]));
    }
    EXPECT_OK(cvy_space_copy(&space, CVY_LANE_COPY, out, x, N * sizeof *in));
    EXPECT_OK(space.backend->finish(space.state, CVY_LANE_COPY));
    for (int i = 0; i < N; i++)
        right = right && out[i] == (float)(2 * i);
    EXPECT_OK(cvy_space_sync_all(&space));
    for (int i = 0; i < CVY_COUNT(mark); i++)
        cvy_mark_destroy(&space, &mark[i]);
    cvy_space_free_host(&space, &in, N * sizeof *in);
    cvy_space_free_host(&space, &out, N * sizeof *out);
    free_floats(x, N);
    free_floats(sum, N);
    return right;
}

static void missing_marks(void)
{
    int wrong = 0;
    for (int seed = 1; seed <= SEEDS; seed++)
        wrong += !run_step((uint64_t)seed * 977, 0);
    EXPECT_INT(wrong, 0);
    for (int i = 0; i < 3; i++) {
        int found = 0;
        for (int seed = 1; seed <= SEEDS; seed++)
            found += !run_step((uint64_t)seed * 977, 1 << i);
        printf("without mark %d: wrong for %d of %d seeds\n", i, found, SEEDS);
        EXPECT(100 * found > 90 * SEEDS);
    }
}

static void marks_are_reached(void)
{
    float *x = device_floats(N);
    cvy_mark *first = NULL, *second = NULL, *never = NULL;
    int reached = 0, asked = 0;
    double s = -1;
    EXPECT_OK(cvy_mark_create(&space, &first));
    EXPECT_OK(cvy_mark_create(&space, &second));
    EXPECT_OK(cvy_mark_create(&space, &never));
    EXPECT_OK(cvy_mark_reached(&space, never, 1, &reached));
    EXPECT_INT(reached, 1);
    EXPECT_OK(cvy_mark_await(&space, CVY_LANE_COMPUTE, never));
    EXPECT_OK(cvy_mark_put(&space, CVY_LANE_COMPUTE, first));
    EXPECT_OK(fill(x, N, 3, 0));
    EXPECT_OK(cvy_mark_put(&space, CVY_LANE_COMPUTE, second));
    for (reached = 0; !reached && asked < 10000; asked++)
        EXPECT_OK(cvy_mark_reached(&space, second, 0, &reached));
    EXPECT(reached);
    EXPECT_OK(cvy_mark_elapsed(&space, first, second, &s));
    EXPECT(s >= 0 && s < 10);
    /* Put again, it means the later place. */
    EXPECT_OK(fill(x, N, 4, 0));
    EXPECT_OK(cvy_mark_put(&space, CVY_LANE_COMPUTE, second));
    EXPECT_OK(cvy_mark_reached(&space, second, 1, &reached));
    EXPECT_INT(reached, 1);
    cvy_mark_destroy(&space, &first);
    cvy_mark_destroy(&space, &second);
    cvy_mark_destroy(&space, &never);
    free_floats(x, N);
}

/* ---- recordings ---- */

static float first_of(const float *data)
{
    float value = -1;
    EXPECT_OK(cvy_space_read(&space, &value, data, sizeof value));
    return value;
}

/* y = 0, y += x, x += y, z = value, recorded with value 5: doubles x, with the arguments of that time. */
static void recordings(void)
{
    float *x = device_floats(N), *y = device_floats(N), *z = device_floats(N), value = 5;
    cvy_recording *recording = NULL;
    int parts = 0;
    EXPECT_OK(fill(x, N, 1, 0));
    EXPECT_OK(space.backend->record_begin(space.state));
    EXPECT_OK(cvy_space_zero(&space, CVY_LANE_COMPUTE, y, N * sizeof *y));
    EXPECT_OK(space.backend->add(space.state, CVY_LANE_COMPUTE, CVY_DTYPE_F32, N, y, x));
    EXPECT_OK(space.backend->add(space.state, CVY_LANE_COMPUTE, CVY_DTYPE_F32, N, x, y));
    EXPECT_OK(fill(z, N, value, 0));
    EXPECT_OK(space.backend->record_end(space.state, "four pieces", &recording, &parts));
    EXPECT_INT(parts, 4);
    EXPECT(first_of(x) == 1);
    value = 6;
    for (int i = 1; i <= 3; i++) {
        EXPECT_OK(space.backend->replay(space.state, recording));
        EXPECT(i == 2 || first_of(x) == (float)(1 << i));
    }
    EXPECT(first_of(z) == 5);
    EXPECT_OK(fill(x, N, 100, 0));
    EXPECT_OK(space.backend->replay(space.state, recording));
    space.backend->recording_destroy(space.state, recording); /* what it has put stays */
    EXPECT_OK(fill(y, N, value, 0));
    EXPECT(first_of(x) == 200 && first_of(y) == 6);
    free_floats(x, N);
    free_floats(y, N);
    free_floats(z, N);
}

/* More than a piece of page-locked memory, from and to memory that is not page-locked. */
static void reads_and_writes(void)
{
    enum { MANY = 5000001 };
    float *host = NULL, *back = NULL, *x = device_floats(MANY);
    EXPECT_OK(cvy_mem_alloc(MANY * sizeof *host, &host));
    EXPECT_OK(cvy_mem_alloc(MANY * sizeof *back, &back));
    for (int i = 0; i < MANY; i++)
        host[i] = (float)i;
    EXPECT_OK(cvy_space_read(&space, back, x, MANY * sizeof *back));
    EXPECT(back[0] == 0 && back[MANY / 2] == 0 && back[MANY - 1] == 0);
    EXPECT_OK(fill(x, MANY, 7, 0));
    EXPECT_OK(cvy_space_read(&space, back, x, MANY * sizeof *back));
    EXPECT(back[0] == 7 && back[MANY - 1] == 7);
    EXPECT_OK(cvy_space_write(&space, x, host, MANY * sizeof *host));
    EXPECT_OK(cvy_space_read(&space, back, x, MANY * sizeof *back));
    EXPECT(memcmp(host, back, MANY * sizeof *host) == 0);
    EXPECT_OK(cvy_space_zero(&space, CVY_LANE_COMPUTE, x, MANY * sizeof *x));
    EXPECT_OK(cvy_space_read(&space, back, x, MANY * sizeof *back));
    EXPECT(back[0] == 0 && back[MANY - 1] == 0);
    cvy_mem_free(&host);
    cvy_mem_free(&back);
    free_floats(x, MANY);
}

/* ---- what the emulation finds ---- */

/* Runs `act` in a child, and returns whether the child ends early with a message that has both texts. */
static int ends_with(void (*act)(void), const char *text, const char *more)
{
    char said[4096] = "";
    size_t length = 0;
    int to[2], status = 0;
    fflush(stdout);
    if (pipe(to) != 0)
        return 0;
    const pid_t child = fork();
    if (child == 0) {
        dup2(to[1], STDERR_FILENO);
        close(to[0]);
        close(to[1]);
        act();
        _exit(0);
    }
    close(to[1]);
    for (ssize_t n; length + 1 < sizeof said && (n = read(to[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)n;
    close(to[0]);
    waitpid(child, &status, 0);
    const int ok = !(WIFEXITED(status) && WEXITSTATUS(status) == 0) && strstr(said, text) && strstr(said, more);
    if (!ok)
        printf("expected \"%s\" and \"%s\" of: %s\n", text, more, said);
    return ok;
}

static void host_looks(void)
{
    volatile float *x = device_floats(N);
    x[1] = 2;
}

static void kernel_writes_past(void)
{
    fill(device_floats(N - N % 16), N - N % 16, 1, 1);
    cvy_space_sync(&space);
}

static void kernel_writes_into_guard(void)
{
    float *x = device_floats(N + 1);
    fill(x, N + 1, 1, 1);
    cvy_space_sync(&space);
    free_floats(x, N + 1);
}

static void kernel_writes_before(void)
{
    float *x = device_floats(N);
    fill(x, N, 1, 2);
    cvy_space_sync(&space);
    free_floats(x, N);
}

static void free_while_used(void)
{
    float *x = device_floats(N);
    cvy_emulated_setup_now.seed = 3;
    fill(x, N, 1, 0);
    free_floats(x, N);
}

static void use_after_free(void)
{
    float *x = device_floats(N);
    cvy_gpu_kernel kernel = kernel_of("faulty_table");
    const int64_t address = (int64_t)(uintptr_t)x, by = 0;
    float *table = device_floats(2);
    cvy_space_write(&space, table, &address, sizeof address);
    free_floats(x, N);
    CVY_GPU_LAUNCH(&kernel, 1, 1, 1, 64, CVY_GPU_POINTER(table), CVY_GPU_VALUE(by));
    cvy_space_sync(&space);
}

static void free_twice(void)
{
    float *x = device_floats(N);
    free_floats(x, N);
    free_floats(x, N);
}

static void close_with_memory(void)
{
    device_floats(N);
    cvy_space_close(&space);
}

static cvy_status sum_with(int fault, float *sums)
{
    const struct faulty f = {N, fault};
    const cvy_gpu_kernel kernel = kernel_of("faulty_sum");
    const int blocks = (int)cvy_gpu_blocks(N);
    float *src = device_floats(N), *there = device_floats(blocks);
    EXPECT_OK(fill(src, N, 1, 0));
    CVY_TRY(CVY_GPU_LAUNCH(&kernel, blocks, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src), CVY_GPU_POINTER(there),
                           CVY_GPU_VALUE(f)));
    EXPECT_OK(cvy_space_read(&space, sums, there, (size_t)blocks * sizeof *sums));
    free_floats(src, N);
    free_floats(there, blocks);
    return CVY_OK;
}

static void thread_leaves_early(void)
{
    float sums[16];
    sum_with(2, sums);
}

static void record_and_wait(void)
{
    space.backend->record_begin(space.state);
    cvy_space_sync(&space);
}

static void record_mark(void)
{
    cvy_mark *mark = NULL;
    cvy_mark_create(&space, &mark);
    space.backend->record_begin(space.state);
    cvy_mark_put(&space, CVY_LANE_COMPUTE, mark);
}

static void record_host_memory(void)
{
    float *x = device_floats(N), *host = NULL;
    cvy_space_alloc_host(&space, N * sizeof *host, &host);
    space.backend->record_begin(space.state);
    cvy_space_copy(&space, CVY_LANE_COMPUTE, x, host, N * sizeof *x);
}

static void replay_after_free(void)
{
    float *x = device_floats(N);
    cvy_recording *recording = NULL;
    int parts = 0;
    space.backend->record_begin(space.state);
    fill(x, N, 1, 0);
    space.backend->record_end(space.state, "", &recording, &parts);
    free_floats(x, N);
    space.backend->replay(space.state, recording);
    cvy_space_sync(&space);
}

static void faults_end_the_process(void)
{
    EXPECT(ends_with(record_and_wait, "the host waits for a lane while work is recorded", ""));
    EXPECT(ends_with(record_mark, "a mark is put into a recording", ""));
    EXPECT(ends_with(record_host_memory, "a recording has a copy of 4000 bytes of the host's memory", ""));
    EXPECT(ends_with(replay_after_free, "was freed before the kernel ran", "faulty_fill"));
    EXPECT(ends_with(host_looks, "host code has looked at", "byte 4 of an allocation of 4000"));
    EXPECT(ends_with(kernel_writes_past, "kernel faulty_fill of gpu_faulty (f32), block 3", "byte 3968 of"));
    EXPECT(ends_with(kernel_writes_into_guard, "has written byte 4004 of an allocation of 4004 bytes", "after"));
    EXPECT(ends_with(kernel_writes_before, "has written byte -4 of an allocation of 4000 bytes", "before"));
    EXPECT(ends_with(free_while_used, "is freed while work in a lane uses it", "4000"));
    EXPECT(ends_with(use_after_free, "of a table is in no allocation", "faulty_table"));
    EXPECT(ends_with(free_twice, "which is no allocation", ""));
    EXPECT(ends_with(close_with_memory, "4000 bytes in 1 allocations", ""));
    EXPECT(ends_with(thread_leaves_early, "threads of a block have ended while", "faulty_sum"));
}

/* The sum of a block in three orders: right with a barrier; without one it depends on the order. */
static void missing_barrier(void)
{
    float good[3][16] = {{0}}, bad[3][16] = {{0}}, stale[16] = {0};
    for (int order = 0; order < 3; order++) {
        cvy_emulated_setup_now.order = order;
        EXPECT_OK(sum_with(0, good[order]));
        EXPECT_OK(sum_with(1, bad[order]));
        EXPECT(good[order][0] == 256 && good[order][3] == N - 3 * 256);
        EXPECT(bad[order][0] != 256);
    }
    EXPECT(memcmp(bad[0], bad[1], sizeof bad[0]) != 0 || isnan(bad[0][0]));
    EXPECT_OK(sum_with(3, stale));
    EXPECT(isnan(stale[0]));
}

static void order_of_blocks(void)
{
    enum { BLOCKS = 5 };
    float x[3][BLOCKS] = {{0}}, *there = device_floats(BLOCKS);
    const cvy_gpu_kernel kernel = kernel_of("faulty_blocks");
    for (int order = 0; order < 3; order++) {
        cvy_emulated_setup_now.order = order;
        EXPECT_OK(cvy_space_zero(&space, CVY_LANE_COMPUTE, there, sizeof x[0]));
        EXPECT_OK(CVY_GPU_LAUNCH(&kernel, BLOCKS, 1, 1, 64, CVY_GPU_POINTER(there)));
        EXPECT_OK(cvy_space_read(&space, x[order], there, sizeof x[0]));
    }
    EXPECT(memcmp(x[0], x[1], sizeof x[0]) != 0 && memcmp(x[0], x[2], sizeof x[0]) != 0);
    free_floats(there, BLOCKS);
}

/* ---- wrong calls ---- */

static void wrong_calls(void)
{
    float here[4] = {0}, *x = device_floats(N), *pinned = NULL, *at = here;
    const cvy_gpu_kernel kernel = kernel_of("faulty_blocks");
    const int64_t by = 0;
    EXPECT_OK(cvy_space_alloc_host(&space, sizeof here, &pinned));
    EXPECT_FAULT(cvy_space_copy(&space, CVY_LANE_COPY, x, here, sizeof here), CVY_E_INTERNAL, "nor page-locked");
    EXPECT_FAULT(cvy_space_copy(&space, CVY_LANE_COPY, here, x, sizeof here), CVY_E_INTERNAL, "nor page-locked");
    EXPECT_FAULT(cvy_space_copy(&space, CVY_LANE_COPY, x, pinned, sizeof here + 4), CVY_E_INTERNAL, "nor page-locked");
    EXPECT_FAULT(cvy_space_copy(&space, CVY_LANE_COPY, x + N - 3, pinned, sizeof here), CVY_E_INTERNAL,
                 "neither an allocation");
    EXPECT_FAULT(cvy_space_zero(&space, CVY_LANE_COPY, here, sizeof here), CVY_E_INTERNAL, "in no allocation");
    EXPECT_FAULT(CVY_GPU_LAUNCH(&kernel, 1, 1, 1, 64, CVY_GPU_POINTER(at)), CVY_E_INTERNAL,
                 "is not in memory of the device");
    at = pinned;
    EXPECT_FAULT(CVY_GPU_LAUNCH(&kernel, 1, 1, 1, 64, CVY_GPU_POINTER(at)), CVY_E_INTERNAL,
                 "page-locked memory of the host");
    EXPECT_FAULT(CVY_GPU_LAUNCH(&kernel, 1, 1, 1, 64, CVY_GPU_VALUE(by)), CVY_E_INTERNAL, "argument 0");
    EXPECT_FAULT(CVY_GPU_LAUNCH(&kernel, 1, 1, 1, 64, CVY_GPU_POINTER(x), CVY_GPU_VALUE(by)), CVY_E_INTERNAL,
                 "2 arguments");
    EXPECT_FAULT(CVY_GPU_LAUNCH(&kernel, 1, 1, 1, 257, CVY_GPU_POINTER(x)), CVY_E_INTERNAL, "257 threads");
    cvy_gpu_kernel none;
    EXPECT_FAULT(cvy_gpu_kernel_get(&space, &source, "nothing", CVY_DTYPE_F32, &none), CVY_E_INTERNAL,
                 "no kernel \"nothing\"");
    cvy_space_free_host(&space, &pinned, sizeof here);
    free_floats(x, N);
}

/* ---- injected faults ---- */

static void devices(void)
{
    cvy_space other = {0};
    cvy_emulated_setup_now.devices = 0;
    EXPECT_FAULT(cvy_space_open_def(&cvy_emulated_backend, NULL, &other), CVY_E_UNSUPPORTED,
                 "there is no device for emulated");
    cvy_emulated_setup_now.devices = 3;
    EXPECT_FAULT(cvy_space_open_def(&cvy_emulated_backend, &(cvy_place){.device = 3}, &other), CVY_E_CONFIG, "sees 3");
    for (int r = 0; r < 5; r++) {
        cvy_device about;
        EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, &(cvy_place){.device = -1, .node_rank = r}, &other));
        cvy_space_about(&other, &about);
        EXPECT_INT(about.number, r % 3);
        EXPECT_INT(about.count, 3);
        cvy_space_close(&other);
    }
}

/* Memory of one device is not memory of another. */
static void two_devices(void)
{
    cvy_space other = {0};
    float *x = device_floats(N), *y = NULL, back[4] = {0};
    cvy_emulated_setup_now.devices = 2;
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, &(cvy_place){.device = 1}, &other));
    EXPECT_OK(cvy_space_alloc(&other, sizeof back, 0, &y));
    EXPECT_FAULT(cvy_space_zero(&space, CVY_LANE_COMPUTE, y, sizeof back), CVY_E_INTERNAL, "in no allocation");
    EXPECT_OK(cvy_space_zero(&other, CVY_LANE_COMPUTE, y, sizeof back));
    EXPECT_OK(cvy_space_read(&other, back, y, sizeof back));
    cvy_space_free(&other, &y, sizeof back);
    cvy_space_close(&other);
    free_floats(x, N);
}

static void memory_is_short(void)
{
    cvy_device about;
    float *x = NULL, *y = NULL;
    cvy_emulated_setup_now.memory = 10000;
    EXPECT_OK(cvy_space_alloc(&space, 8000, 0, &x));
    cvy_space_about(&space, &about);
    EXPECT_INT(about.bytes, 10000);
    EXPECT_INT(about.bytes_left, 2000);
    EXPECT_FAULT(cvy_space_alloc(&space, 2001, 0, &y), CVY_E_MEMORY, "2000 of 10000 are free");
    cvy_space_free(&space, &x, 8000);
}

static void source_does_not_compile(void)
{
    cvy_gpu_kernel kernel;
    cvy_emulated_setup_now.no_build = "gpu_faulty";
    cvy_emulated_setup_now.words = "line 7: a word too many";
    EXPECT_INT(cvy_gpu_kernel_get(&space, &source, "faulty_fill", CVY_DTYPE_F32, &kernel), CVY_NOT_APPLICABLE);
    EXPECT(
        strstr(cvy_error_text(), "gpu_faulty (f32) does not compile for emulated device 0: line 7: a word too many"));
}

static void device_is_lost(void)
{
    float *x = device_floats(N);
    int n = 0;
    cvy_emulated_setup_now.lost_after = cvy_emulated_done_now.launches + 3;
    cvy_status status = CVY_OK;
    while (status == CVY_OK && n++ < 20) {
        status = fill(x, N, 1, 0);
        if (status == CVY_OK)
            status = cvy_space_sync(&space);
    }
    EXPECT_INT(n, 3);
    EXPECT(strstr(cvy_error_text(), "emulated device 0 is lost"));
    EXPECT(cvy_space_sync_all(&space) < 0);
    EXPECT(cvy_space_zero(&space, CVY_LANE_COPY, x, 4) < 0);
    free_floats(x, N);
}

int main(void)
{
    TEST_WITH(begin, missing_marks, end);
    TEST_WITH(begin, marks_are_reached, end);
    TEST_WITH(begin, recordings, end);
    TEST_WITH(begin, reads_and_writes, end);
    TEST_WITH(begin, faults_end_the_process, end);
    TEST_WITH(begin, missing_barrier, end);
    TEST_WITH(begin, order_of_blocks, end);
    TEST_WITH(begin, wrong_calls, end);
    TEST_WITH(begin, devices, end);
    TEST_WITH(begin, two_devices, end);
    TEST_WITH(begin, memory_is_short, end);
    TEST_WITH(begin, source_does_not_compile, end);
    TEST_WITH(begin, device_is_lost, end);
    return test_end();
}
