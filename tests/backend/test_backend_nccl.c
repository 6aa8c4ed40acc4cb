/* rows: mpich */
/*
 * test_backend_nccl.c: what NCCL exchanges: sums, parts and gathers of buckets of lengths that ranks do not divide, in
 * f32, f64 and rounded to bf16; sums from one tensor to another; messages; what a sum costs; the host that goes on, and
 * sums that the watchdog breaks off. backend/nccl.sh runs it on two and more ranks, on the fake libraries: with the
 * argument "abort" the sums of rank 1 do not begin.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "context/context.h"
#include "convoy/mpi.h"
#include "reduce/reduce_bucket.h"
#include "test_util.h"

enum { SETS = 5, ELEMS_MAX = 70000 };

static cvy_context *context;
static const int64_t elems[SETS] = {1, 15, 40, 1003, ELEMS_MAX}; /* the last one needs several chunks of the fake */

/* A set with one bucket for each length, of whole numbers, whose sums are exact in any order. */
static cvy_bucket_set *make_set(cvy_bucket_kind kind, cvy_dtype dtype, cvy_dtype wire, void *memory,
                                const cvy_bucket_set *parts)
{
    const cvy_allreduce_opts opts = {.no_node = 1, .halves = 1, .wire = wire};
    cvy_bucket_set *set = NULL;
    size_t at = 0;
    EXPECT_OK(cvy_bucket_set_create(SETS, &set));
    set->space = &context->space;
    for (int i = 0; i < SETS; i++) {
        const size_t bytes = (size_t)elems[i] * cvy_dtype_bytes(dtype);
        set->bucket[i] = (cvy_bucket){.offset = at, .bytes = bytes, .dtype = dtype, .kind = kind, .has_gradients = 1};
        if (parts)
            set->bucket[i].part = parts->bucket[i].part;
        at += (bytes + 63) / 64 * 64;
    }
    EXPECT_OK(cvy_bucket_set_connect(set, context->comm, &opts, memory));
    for (int i = 0; i < SETS; i++)
        EXPECT(set->bucket[i].sum);
    return set;
}

static double *values_of(int64_t n)
{
    static double values[ELEMS_MAX];
    for (int64_t i = 0; i < n; i++)
        values[i] = (double)(i % 1000 + context->comm->rank);
    return values;
}

static void fill(const cvy_bucket *b)
{
    static float narrow[ELEMS_MAX];
    const double *values = values_of(cvy_bucket_elems(b));
    for (int64_t i = 0; i < cvy_bucket_elems(b); i++)
        narrow[i] = (float)values[i];
    EXPECT_OK(
        cvy_space_write(&context->space, b->data, b->dtype == CVY_DTYPE_F64 ? (const void *)values : narrow, b->bytes));
}

static void exchange(cvy_bucket_set *set)
{
    for (int i = 0; i < SETS; i++)
        EXPECT_OK(cvy_bucket_set_start(set, i));
    EXPECT_OK(cvy_bucket_set_progress(set));
    for (int i = 0; i < SETS; i++)
        EXPECT_OK(cvy_bucket_set_wait(set, i));
    EXPECT_INT(set->nactive, 0);
}

/* The elements of the part are sums; rounded: each number and each sum was rounded to bf16. */
static void check(const cvy_bucket *b, cvy_part part, int rounded)
{
    static double got[ELEMS_MAX];
    const int n = context->comm->nranks, others = n * (n - 1) / 2;
    const double within = rounded ? 2.0 * n / 512 : 0;
    int64_t wrong = 0;
    EXPECT_OK(cvy_space_read(&context->space, got, b->data, b->bytes));
    for (int64_t i = part.first; i < part.end; i++) {
        const double value = b->dtype == CVY_DTYPE_F64 ? got[i] : (double)((const float *)(const void *)got)[i];
        const double sum = (double)(n * (i % 1000) + others);
        wrong += !(fabs(value - sum) <= within * sum);
    }
    EXPECT_INT(wrong, 0);
}

static void *make_memory(size_t *bytes)
{
    void *memory = NULL;
    *bytes = sizeof(double) * 2 * ELEMS_MAX;
    EXPECT_OK(cvy_space_alloc(&context->space, *bytes, 0, &memory));
    return memory;
}

static void sums_of(cvy_dtype dtype, cvy_dtype wire)
{
    size_t bytes;
    const int rounded = wire == CVY_DTYPE_BF16;
    void *memory = make_memory(&bytes);
    cvy_bucket_set *all = make_set(CVY_BUCKET_ALLREDUCE, dtype, wire, memory, NULL),
                   *parts = make_set(CVY_BUCKET_PART, dtype, wire, memory, NULL),
                   *gather = make_set(CVY_BUCKET_GATHER, dtype, wire, memory, parts);
    EXPECT(!all->copies && !parts->copies && !gather->copies);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < SETS; i++)
            fill(&all->bucket[i]);
        exchange(all);
        for (int i = 0; i < SETS; i++)
            check(&all->bucket[i], (cvy_part){0, elems[i]}, rounded);
        for (int i = 0; i < SETS; i++)
            fill(&parts->bucket[i]);
        exchange(parts);
        for (int i = 0; i < SETS; i++)
            check(&parts->bucket[i], parts->bucket[i].part, rounded);
        exchange(gather);
        for (int i = 0; i < SETS; i++)
            check(&gather->bucket[i], (cvy_part){0, elems[i]}, rounded);
    }
    cvy_bucket_set_destroy(&gather);
    cvy_bucket_set_destroy(&parts);
    cvy_bucket_set_destroy(&all);
    cvy_space_free(&context->space, &memory, bytes);
}

static void sums(void)
{
    sums_of(CVY_DTYPE_F32, CVY_DTYPE_F32);
    sums_of(CVY_DTYPE_F64, CVY_DTYPE_F32);
    sums_of(CVY_DTYPE_F32, CVY_DTYPE_BF16);
}

/* What is rounded differs from what is not. */
static void narrow(void)
{
    size_t bytes;
    float value = 1.0F + 1.0F / 512;
    void *memory = make_memory(&bytes);
    cvy_bucket_set *set = make_set(CVY_BUCKET_ALLREDUCE, CVY_DTYPE_F32, CVY_DTYPE_BF16, memory, NULL);
    const cvy_bucket *b = &set->bucket[0];
    EXPECT_OK(cvy_space_write(&context->space, b->data, &value, sizeof value));
    EXPECT_OK(cvy_bucket_set_start(set, 0));
    EXPECT_OK(cvy_bucket_set_wait(set, 0));
    EXPECT_OK(cvy_space_read(&context->space, &value, b->data, sizeof value));
    EXPECT(value == (float)context->comm->nranks);
    cvy_bucket_set_destroy(&set);
    cvy_space_free(&context->space, &memory, bytes);
}

/* The device has no memory for the bf16 copy, and each of two sums is told so. A smaller one gets its own. */
static void no_room_for_narrow(void)
{
    const int64_t count[] = {(int64_t)1 << 36, (int64_t)1 << 35, 100};
    size_t bytes;
    void *memory = make_memory(&bytes);
    cvy_nccl *nccl = NULL;
    EXPECT_OK(cvy_nccl_open(context->comm, &context->space, &nccl));
    for (int i = 0; i < CVY_COUNT(count); i++) {
        const cvy_nccl_sum sum = {CVY_NCCL_ALL, NULL, memory, count[i], CVY_DTYPE_F32, 1};
        cvy_nccl_exchange *x = NULL;
        EXPECT_INT(cvy_nccl_sum_create(nccl, &sum, NULL, &x), i < 2 ? CVY_E_MEMORY : CVY_OK);
        cvy_nccl_exchange_destroy(&x);
    }
    cvy_nccl_close(&nccl);
    cvy_space_free(&context->space, &memory, bytes);
}

/* A sum of bf16 from one tensor to another, which leaves the first one as it is. */
static void from_one_to_another(void)
{
    enum { N = 100 };
    size_t bytes;
    cvy_bf16 value[N], sum[N];
    cvy_nccl *nccl = NULL;
    cvy_nccl_exchange *x = NULL;
    void *memory = make_memory(&bytes);
    cvy_bf16 *from = memory, *to = from + ELEMS_MAX;
    const cvy_nccl_sum opts = {CVY_NCCL_ALL, from, to, N, CVY_DTYPE_BF16, 0};
    for (int i = 0; i < N; i++)
        value[i] = cvy_bf16_of((float)(i % 16 + context->comm->rank));
    EXPECT_OK(cvy_space_write(&context->space, from, value, sizeof value));
    EXPECT_OK(cvy_nccl_open(context->comm, &context->space, &nccl));
    EXPECT(!cvy_nccl_why(nccl));
    EXPECT_OK(cvy_nccl_sum_create(nccl, &opts, NULL, &x));
    EXPECT_OK(cvy_nccl_start(x));
    EXPECT_OK(cvy_nccl_await(x));
    EXPECT_OK(cvy_space_read(&context->space, sum, to, sizeof sum));
    const int n = context->comm->nranks;
    for (int i = 0; i < N; i++)
        EXPECT(cvy_bf16_get(sum[i]) == (float)(n * (i % 16) + n * (n - 1) / 2));
    EXPECT_OK(cvy_space_read(&context->space, sum, from, sizeof sum));
    EXPECT(memcmp(sum, value, sizeof sum) == 0);
    cvy_nccl_exchange_destroy(&x);
    cvy_nccl_close(&nccl);
    cvy_space_free(&context->space, &memory, bytes);
}

/* Each rank sends to both neighbours of a ring at once, what the device makes before, and the device uses what comes. A
 * piece of the fake has several chunks. */
static void messages(void)
{
    enum { BYTES = 100000, SMALL = 1000 };
    size_t bytes;
    const cvy_space *space = &context->space;
    const cvy_comm *comm = context->comm;
    const int left = (comm->rank + comm->nranks - 1) % comm->nranks, right = (comm->rank + 1) % comm->nranks;
    cvy_nccl *nccl = NULL;
    cvy_nccl_exchange *x = NULL;
    unsigned char *pinned = NULL;
    void *memory = make_memory(&bytes);
    char *mine = memory, *from_left = mine + BYTES, *from_right = from_left + BYTES;
    const cvy_nccl_piece piece[] = {
        {mine, BYTES, right, 0}, {from_left, BYTES, left, 1}, {mine, SMALL, left, 0}, {from_right, SMALL, right, 1}};
    EXPECT_OK(cvy_space_alloc_host(space, 3 * BYTES, &pinned));
    EXPECT_OK(cvy_nccl_open(context->comm, space, &nccl));
    EXPECT_OK(cvy_nccl_swap_create(nccl, piece, comm->nranks > 2 ? 4 : 2, &x));
    for (int step = 0; step < 5; step++) {
        int wrong = 0;
        for (int i = 0; i < BYTES; i++)
            pinned[i] = (unsigned char)(i + 7 * comm->rank + step);
        EXPECT_OK(cvy_space_copy(space, CVY_LANE_COMPUTE, mine, pinned, BYTES));
        EXPECT_OK(cvy_nccl_start(x));
        EXPECT_OK(cvy_nccl_await(x));
        EXPECT_OK(cvy_space_copy(space, CVY_LANE_COMPUTE, pinned + BYTES, from_left, 2 * BYTES));
        EXPECT_OK(cvy_space_sync(space));
        for (int i = 0; i < BYTES; i++)
            wrong += pinned[BYTES + i] != (unsigned char)(i + 7 * left + step);
        for (int i = 0; i < SMALL && comm->nranks > 2; i++)
            wrong += pinned[2 * BYTES + i] != (unsigned char)(i + 7 * right + step);
        EXPECT_INT(wrong, 0);
    }
    cvy_nccl_exchange_destroy(&x);
    cvy_nccl_close(&nccl);
    cvy_space_free_host(space, &pinned, 3 * BYTES);
    cvy_space_free(space, &memory, bytes);
}

static void cost(void)
{
    cvy_nccl *nccl = NULL;
    cvy_comm_cost cost = {0, 0};
    EXPECT_OK(cvy_nccl_open(context->comm, &context->space, &nccl));
    EXPECT_OK(cvy_nccl_measure(nccl, 0, &cost));
    EXPECT(cost.alpha_s > 0 && cost.beta_s > 0 && cost.beta_s < 1);
    cvy_nccl_close(&nccl);
}

static atomic_int may_fail;

static void *break_off(void *arg)
{
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    cvy_nccl_abort();
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    atomic_store(&may_fail, 1);
    cvy_nccl_let_fail();
    return arg;
}

/* The host waits for the device, which waits for a rank that does not come. Broken off, it goes on when the watchdog
 * has reported it, and to an error only, because what the device holds is wrong. */
static void broken_off(void)
{
    size_t bytes;
    pthread_t thread;
    void *memory = make_memory(&bytes);
    cvy_bucket_set *set = make_set(CVY_BUCKET_ALLREDUCE, CVY_DTYPE_F32, CVY_DTYPE_F32, memory, NULL);
    EXPECT_INT(cvy_nccl_is_used(), 1);
    EXPECT_OK(cvy_bucket_set_start(set, 3));
    EXPECT_OK(cvy_bucket_set_wait(set, 3));
    EXPECT_INT(pthread_create(&thread, NULL, break_off, NULL), 0);
    EXPECT_INT(cvy_space_sync_all(&context->space), CVY_E_COMM);
    EXPECT_INT(atomic_load(&may_fail), 1);
    pthread_join(thread, NULL);
    EXPECT_INT(cvy_nccl_is_used(), 0);
    EXPECT_INT(cvy_bucket_set_start(set, 0), CVY_E_COMM);
    EXPECT(strstr(cvy_error_text(), "the watchdog has broken off what devices exchange by NCCL") != NULL);
    cvy_bucket_set_destroy(&set);
    cvy_space_free(&context->space, &memory, bytes);
}

int main(int argc, char **argv)
{
    char why[400] = "";
    const cvy_backend_def *cuda = cvy_backend_find("cuda");
    if (!cuda || cuda->count(why, sizeof why) < 1 || argc != 2) {
        printf("skipped: backend/nccl.sh runs it on the fake libraries\n");
        return 77;
    }
    MPI_Init(&argc, &argv);
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .device = "cuda"};
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context));
    if (strcmp(argv[1], "abort") == 0)
        TEST(broken_off);
    if (strcmp(argv[1], "sums") == 0) {
        TEST(sums);
        TEST(narrow);
        TEST(no_room_for_narrow);
        TEST(from_one_to_another);
        TEST(messages);
        TEST(cost);
    }
    cvy_context_destroy(&context);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
