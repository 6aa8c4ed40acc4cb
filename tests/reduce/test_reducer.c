/* ranks: 1 2 3 */
/* rows: mpich mpi asan */
/*
 * test_reducer.c: the public reducer: sums over all ranks in any order in which each rank starts and waits, step after
 * step, with buckets of any size and every algorithm; sums one step late with two sets of buffers; and messages for
 * misuse.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdlib.h>

#include "base/base_mem.h"
#include "test_util.h"

enum { BUFFERS = 7, STEPS = 6, ALL = CVY_REDUCER_ALL };

static cvy_context *all, *alone;

static const struct {
    const char *name;
    int64_t count;
    cvy_dtype dtype;
} kind[BUFFERS] = {
    {"head.weight", 5, CVY_DTYPE_F32},     {"head.bias", 3001, CVY_DTYPE_F32}, {"loss", 1, CVY_DTYPE_F64},
    {"body.weight", 40000, CVY_DTYPE_F32}, {"body.bias", 16, CVY_DTYPE_F32},   {"moments", 777, CVY_DTYPE_F64},
    {"stem", 9000, CVY_DTYPE_F32},
};

/* Small whole numbers, whose sums are exact in f32 and in bf16. */
static double value(int rank, int step, int buffer, int64_t i)
{
    return (double)((rank * 5 + step * 3 + buffer + i) % 17 - 6);
}

static double get(const void *data, cvy_dtype dtype, int64_t i)
{
    return dtype == CVY_DTYPE_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void fill(cvy_reducer *r, const cvy_context *context, int step, int buffer)
{
    void *data = cvy_reducer_buffer(r, buffer);
    EXPECT(data != NULL);
    for (int64_t i = 0; data && i < kind[buffer].count; i++)
        if (kind[buffer].dtype == CVY_DTYPE_F64)
            ((double *)data)[i] = value(cvy_context_rank(context), step, buffer, i);
        else
            ((float *)data)[i] = (float)value(cvy_context_rank(context), step, buffer, i);
}

static void check(cvy_reducer *r, const cvy_context *context, int step, int buffer, double factor)
{
    const void *data = cvy_reducer_sum(r, buffer);
    int64_t wrong = 0;
    EXPECT(data != NULL);
    for (int64_t i = 0; data && i < kind[buffer].count; i++) {
        double sum = 0;
        for (int rank = 0; rank < cvy_context_nranks(context); rank++)
            sum += value(rank, step, buffer, i);
        wrong += fabs(get(data, kind[buffer].dtype, i) - sum * factor) > 1e-6 * fabs(sum);
    }
    EXPECT_INT(wrong, 0);
}

static cvy_reducer *new_reducer(cvy_context *context, const cvy_reducer_opts *opts)
{
    cvy_reducer *r = NULL;
    EXPECT_OK(cvy_reducer_create(context, opts, &r));
    for (int b = 0; b < BUFFERS; b++) {
        int index = -1;
        EXPECT_OK(cvy_reducer_add(r, kind[b].name, kind[b].count, kind[b].dtype, &index));
        EXPECT_INT(index, b);
    }
    EXPECT_OK(cvy_reducer_ready(r));
    return r;
}

/* Every rank starts the buffers in its own order, which changes with each step. */
static void start_all(cvy_reducer *r, const cvy_context *context, int step)
{
    const int rank = cvy_context_rank(context);
    for (int i = 0; i < BUFFERS; i++) {
        const int b = ((rank + step) % 2 ? BUFFERS - 1 - i : i + rank + step) % BUFFERS;
        fill(r, context, step, b);
        EXPECT_OK(cvy_reducer_start(r, b));
        EXPECT_OK(cvy_reducer_progress(r));
    }
}

/* ---- sums ---- */

/* In even steps all buffers are waited for at once, in odd ones buffer by buffer, in another order on each rank. */
static void run_steps(cvy_context *context, const cvy_reducer_opts *opts, double factor)
{
    cvy_reducer *r = new_reducer(context, opts);
    int64_t allocations = 0;
    for (int step = 0; step < STEPS; step++) {
        start_all(r, context, step);
        if (step % 2 == 0)
            EXPECT_OK(cvy_reducer_wait(r, ALL));
        for (int i = 0; i < BUFFERS; i++) {
            const int b = (i * 3 + cvy_context_rank(context)) % BUFFERS;
            if (step % 2 != 0)
                EXPECT_OK(cvy_reducer_wait(r, b));
            EXPECT(cvy_reducer_sum(r, b) == cvy_reducer_buffer(r, b));
            check(r, context, step, b, factor);
        }
        allocations = step == 0 ? cvy_mem_count() : allocations;
    }
    EXPECT_INT(cvy_mem_count(), allocations); /* a step allocates nothing */
    cvy_reducer_destroy(&r);
    EXPECT(r == NULL);
}

static void sums(void)
{
    static const struct {
        const char *algorithm;
        int no_node;
        int64_t bucket_bytes;
        cvy_dtype wire;
    } ways[] = {
        {NULL, 0, 0, CVY_DTYPE_F32},          {"auto", 0, 1, CVY_DTYPE_F32},     {NULL, 0, 20000, CVY_DTYPE_F32},
        {"ring", 1, 0, CVY_DTYPE_F32},        {"halving", 1, 1, CVY_DTYPE_F32},  {"doubling", 1, 9000, CVY_DTYPE_F32},
        {"library", 1, 40000, CVY_DTYPE_F32}, {"halving", 1, 0, CVY_DTYPE_BF16},
    };
    run_steps(alone, NULL, 1);
    for (int i = 0; i < CVY_COUNT(ways); i++) {
        const cvy_reducer_opts opts = {.size = sizeof opts,
                                       .algorithm = ways[i].algorithm,
                                       .no_node = ways[i].no_node,
                                       .bucket_bytes = ways[i].bucket_bytes,
                                       .wire = ways[i].wire};
        run_steps(all, &opts, 1);
    }
}

/* Two successive ranks are a node: sums go through shared memory within a node and by messages between nodes. */
static void nodes(void)
{
    cvy_context *context = NULL;
    setenv("CONVOY_NODE_RANKS", "2", 1);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &context));
    unsetenv("CONVOY_NODE_RANKS");
    run_steps(context,
              &(cvy_reducer_opts){.size = sizeof(cvy_reducer_opts), .algorithm = "halving", .bucket_bytes = 9000}, 1);
    run_steps(context,
              &(cvy_reducer_opts){.size = sizeof(cvy_reducer_opts), .algorithm = "ring", .wire = CVY_DTYPE_BF16}, 1);
    cvy_context_destroy(&context);
}

static void averages(void)
{
    const double n = cvy_context_nranks(all);
    run_steps(all, &(cvy_reducer_opts){.size = sizeof(cvy_reducer_opts), .average = 1}, 1 / n);
    run_steps(all, &(cvy_reducer_opts){.size = sizeof(cvy_reducer_opts), .average = 1, .factor = 0.5}, 0.5 / n);
    run_steps(alone, &(cvy_reducer_opts){.size = sizeof(cvy_reducer_opts), .factor = -3}, -3);
}

/* A buffer whose wait is done goes on to the next step while others are still in this one. */
static void ahead(void)
{
    cvy_reducer *r = new_reducer(all, &(cvy_reducer_opts){.size = sizeof(cvy_reducer_opts), .bucket_bytes = 1});
    start_all(r, all, 0);
    EXPECT_OK(cvy_reducer_wait(r, 0));
    check(r, all, 0, 0, 1);
    fill(r, all, 1, 0);
    EXPECT_OK(cvy_reducer_start(r, 0));
    EXPECT_OK(cvy_reducer_wait(r, ALL)); /* step 0, without the buffer that was waited for */
    for (int b = 1; b < BUFFERS; b++)
        check(r, all, 0, b, 1);
    EXPECT_OK(cvy_reducer_wait(r, 0));
    check(r, all, 1, 0, 1);
    cvy_reducer_destroy(&r);
}

/* With depth 2, a step waits for its sums after the next step was started. At the end, the last wait follows at
 * once. */
static void one_step_late(int no_node)
{
    const cvy_reducer_opts opts = {
        .size = sizeof opts, .depth = 2, .bucket_bytes = 9000, .no_node = no_node, .algorithm = "halving"};
    cvy_reducer *r = new_reducer(all, &opts);
    int waited = 0;
    for (int step = 0; step < 3 * STEPS; step++) {
        start_all(r, all, step);
        for (const int late = step < 2 * STEPS; waited + late <= step; waited++) {
            EXPECT_OK(cvy_reducer_wait(r, ALL));
            for (int b = 0; b < BUFFERS; b++)
                check(r, all, waited, b, 1);
        }
    }
    EXPECT_INT(waited, 3 * STEPS);
    cvy_reducer_destroy(&r);
}

static void pipelines(void)
{
    one_step_late(0);
    one_step_late(1);
}

/* ---- broadcasts ---- */

static void broadcasts(void)
{
    const int root = cvy_context_nranks(all) - 1;
    double weights[5];
    for (int i = 0; i < 5; i++)
        weights[i] = i + 10 * cvy_context_rank(all);
    EXPECT_OK(cvy_context_broadcast(all, weights, sizeof weights, root));
    EXPECT_NEAR(weights[4], 4 + 10 * root, 0);
    EXPECT_OK(cvy_context_broadcast(all, NULL, 0, 0));
    EXPECT_FAULT(cvy_context_broadcast(all, weights, sizeof weights, root + 1), CVY_E_ARGUMENT, "there is no rank");
    EXPECT_FAULT(cvy_context_broadcast(all, NULL, 8, 0), CVY_E_ARGUMENT, "no memory");
}

/* ---- misuse ---- */

static void bad_descriptions(void)
{
    const size_t size = sizeof(cvy_reducer_opts);
    cvy_reducer *r = NULL;
    int index = -1;
    EXPECT_FAULT(cvy_reducer_create(all, &(cvy_reducer_opts){.size = size, .algorithm = "rink"}, &r), CVY_E_CONFIG,
                 "ring");
    EXPECT_FAULT(cvy_reducer_create(all, &(cvy_reducer_opts){.size = size, .progress = "mpi"}, &r), CVY_E_CONFIG,
                 "take poll");
    EXPECT_FAULT(cvy_reducer_create(all, &(cvy_reducer_opts){.size = size, .wire = CVY_DTYPE_U8}, &r), CVY_E_CONFIG,
                 "u8");
    EXPECT_FAULT(cvy_reducer_create(all, &(cvy_reducer_opts){.size = size, .depth = 17}, &r), CVY_E_CONFIG, "17 sets");
    EXPECT_FAULT(cvy_reducer_create(all, &(cvy_reducer_opts){.size = size, .bucket_bytes = -1}, &r), CVY_E_CONFIG,
                 "buckets of -1");
    EXPECT_FAULT(cvy_reducer_create(all, &(cvy_reducer_opts){.size = size, .factor = NAN}, &r), CVY_E_CONFIG, "factor");
    EXPECT(r == NULL);
    EXPECT_OK(cvy_reducer_create(all, NULL, &r));
    EXPECT_FAULT(cvy_reducer_ready(r), CVY_E_ARGUMENT, "without buffers");
    EXPECT_FAULT(cvy_reducer_add(r, "", 1, CVY_DTYPE_F32, &index), CVY_E_ARGUMENT, "has no name");
    EXPECT_FAULT(cvy_reducer_add(r, "w", 0, CVY_DTYPE_F32, &index), CVY_E_ARGUMENT, "'w' has 0 elements");
    EXPECT_FAULT(cvy_reducer_add(r, "w", 1, CVY_DTYPE_BF16, &index), CVY_E_ARGUMENT, "bf16");
    EXPECT_FAULT(cvy_reducer_add(r, "w", INT64_MAX, CVY_DTYPE_F32, &index), CVY_E_MEMORY, "'w'");
    EXPECT_OK(cvy_reducer_add(r, "w", 4, CVY_DTYPE_F32, &index));
    EXPECT_FAULT(cvy_reducer_add(r, "w", 4, CVY_DTYPE_F32, &index), CVY_E_ARGUMENT, "named 'w'");
    EXPECT(cvy_reducer_buffer(r, 0) == NULL);
    EXPECT_FAULT(cvy_reducer_start(r, 0), CVY_E_ARGUMENT, "before cvy_reducer_ready");
    EXPECT_FAULT(cvy_reducer_progress(r), CVY_E_ARGUMENT, "before cvy_reducer_ready");
    EXPECT_OK(cvy_reducer_ready(r));
    EXPECT_FAULT(cvy_reducer_ready(r), CVY_E_ARGUMENT, "once");
    EXPECT_FAULT(cvy_reducer_add(r, "v", 4, CVY_DTYPE_F32, &index), CVY_E_ARGUMENT, "too late");
    EXPECT(cvy_reducer_buffer(r, 0) != NULL); /* the second ready did no harm */
    EXPECT(cvy_reducer_sum(r, 0) == NULL);
    EXPECT_FAULT(cvy_reducer_start(r, 1), CVY_E_ARGUMENT, "no buffer 1");
    EXPECT_FAULT(cvy_reducer_wait(r, -2), CVY_E_ARGUMENT, "no buffer -2");
    cvy_reducer_destroy(&r);
    cvy_reducer_destroy(&r);
}

/* Each call is refused and changes nothing: the sums are right in the end. */
static void bad_steps(void)
{
    cvy_reducer *r = new_reducer(all, &(cvy_reducer_opts){.size = sizeof(cvy_reducer_opts), .bucket_bytes = 1}),
                *other = new_reducer(all, NULL);
    cvy_program *program = NULL;
    EXPECT_FAULT(cvy_reducer_wait(r, 3), CVY_E_ARGUMENT,
                 "'body.weight' (buffer 3) is waited for, but has not been started");
    EXPECT_FAULT(cvy_reducer_wait(r, ALL), CVY_E_ARGUMENT,
                 "'head.weight' (buffer 0) is waited for, but has not been started");
    for (int b = 0; b < BUFFERS; b++)
        if (b != 1) {
            fill(r, all, 0, b);
            EXPECT_OK(cvy_reducer_start(r, b));
        }
    EXPECT_FAULT(cvy_reducer_start(r, 4), CVY_E_ARGUMENT, "'body.bias' (buffer 4) was started");
    EXPECT(cvy_reducer_buffer(r, 4) == NULL);
    EXPECT(cvy_reducer_sum(r, 4) == NULL);
    EXPECT_FAULT(cvy_reducer_wait(r, 4), CVY_E_ARGUMENT, "begins after 'head.bias' (buffer 1)");
    EXPECT_FAULT(cvy_reducer_wait(r, ALL), CVY_E_ARGUMENT, "'head.bias' (buffer 1)");
    EXPECT_FAULT(cvy_reducer_start(other, 0), CVY_E_ARGUMENT, "are in progress on this context");
    EXPECT_OK(cvy_program_create(all, NULL, &program));
    EXPECT_FAULT(cvy_program_plan(program), CVY_E_ARGUMENT, "are in progress on this context");
    cvy_program_destroy(&program);
    fill(r, all, 0, 1);
    EXPECT_OK(cvy_reducer_start(r, 1));
    EXPECT_OK(cvy_reducer_wait(r, ALL));
    EXPECT_FAULT(cvy_reducer_wait(r, ALL), CVY_E_ARGUMENT, "has not been started");
    for (int b = 0; b < BUFFERS; b++)
        check(r, all, 0, b, 1);
    start_all(other, all, 1); /* now it is allowed */
    EXPECT_OK(cvy_reducer_wait(other, ALL));
    check(other, all, 1, 6, 1);
    cvy_reducer_destroy(&other);
    cvy_reducer_destroy(&r);
}

/* The last rank differs. All ranks are told what differs and where, and the reducer can still be destroyed. */
static void expect_disagreement(const cvy_reducer_opts *opts, const char *name, int64_t count, int more,
                                const char *part)
{
    cvy_reducer *r = NULL;
    int index = 0;
    EXPECT_OK(cvy_reducer_create(all, opts, &r));
    EXPECT_OK(cvy_reducer_add(r, "first", 10, CVY_DTYPE_F32, &index));
    EXPECT_OK(cvy_reducer_add(r, name, count, CVY_DTYPE_F32, &index));
    if (more)
        EXPECT_OK(cvy_reducer_add(r, "third", 30, CVY_DTYPE_F64, &index));
    EXPECT_FAULT(cvy_reducer_ready(r), CVY_E_DISAGREE, part);
    EXPECT(cvy_reducer_buffer(r, 0) == NULL);
    cvy_reducer_destroy(&r);
}

static void disagreements(void)
{
    const int last = cvy_context_rank(all) == cvy_context_nranks(all) - 1;
    const cvy_reducer_opts odd = {.size = sizeof odd, .depth = 2};
    if (cvy_context_nranks(all) == 1)
        return;
    expect_disagreement(
        NULL, last ? "zweiter" : "second", 20, 1,
        "buffer 1 of a reducer is 'zweiter', 20 elements of f32 here, but 'second', 20 elements of f32 on rank 0");
    expect_disagreement(NULL, "second", last ? 21 : 20, 1, "buffer 1 of a reducer is 'second', 21");
    expect_disagreement(NULL, "second", 20, last,
                        "buffer 2 of a reducer is 'third', 30 elements of f64 here, but not there on rank 0");
    expect_disagreement(NULL, "second", 20, !last, "buffer 2 of a reducer is not there here, but 'third'");
    expect_disagreement(last ? &odd : NULL, "second", 20, 1, "depth 2");
}

static cvy_status live_once(void)
{
    cvy_reducer *r = NULL;
    int index = 0;
    cvy_status status = cvy_reducer_create(alone, NULL, &r);
    for (int b = 0; b < BUFFERS && status == CVY_OK; b++)
        status = cvy_reducer_add(r, kind[b].name, kind[b].count, kind[b].dtype, &index);
    if (status == CVY_OK)
        status = cvy_reducer_ready(r);
    cvy_reducer_destroy(&r);
    return status;
}

static void no_memory(void)
{
    EXPECT_SURVIVES_NO_MEMORY(live_once());
}

/* The last rank runs out of memory at some allocation. Every rank is told, and no rank is left waiting. */
static void no_memory_on_one_rank(void)
{
    const int last = cvy_context_rank(all) == cvy_context_nranks(all) - 1;
    for (int no_node = 0; no_node < 2; no_node++) {
        const cvy_reducer_opts opts = {.size = sizeof opts, .algorithm = "ring", .no_node = no_node, .bucket_bytes = 1};
        cvy_status status = CVY_E_MEMORY;
        int failed = 0;
        for (int k = 1; status != CVY_OK && k < 1000; k++) {
            cvy_reducer *r = NULL;
            int index = 0;
            EXPECT_OK(cvy_reducer_create(all, &opts, &r));
            for (int b = 0; b < BUFFERS; b++)
                EXPECT_OK(cvy_reducer_add(r, kind[b].name, kind[b].count, kind[b].dtype, &index));
            cvy_mem_fail_at(last ? k : 0, 1);
            status = cvy_reducer_ready(r);
            cvy_mem_fail_at(0, 0);
            failed += status == CVY_E_MEMORY && (last || strstr(cvy_error_text(), "rank "));
            cvy_reducer_destroy(&r);
        }
        EXPECT_INT(status, CVY_OK);
        EXPECT(failed >= 5);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    TEST(sums);
    TEST(nodes);
    TEST(averages);
    TEST(ahead);
    TEST(pipelines);
    TEST(broadcasts);
    TEST(bad_descriptions);
    TEST(bad_steps);
    TEST(disagreements);
    TEST(no_memory);
    TEST(no_memory_on_one_rank);
    cvy_context_destroy(&alone);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
