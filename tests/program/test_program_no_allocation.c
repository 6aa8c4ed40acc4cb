/* ranks: 1 2 */
/* rows: mpich asan onednn3 */
/*
 * test_program_no_allocation.c: after planning, a step allocates nothing: there is no malloc, free, mmap or munmap in
 * the steps 3 to 10, on any thread.
 *
 * A step must not touch a page for the first time either. The test allows less than one page fault a step, because the
 * system makes some for its own reasons (it may move pages together, for example).
 *
 * The malloc of this program and its relatives replace those of the C library and note who calls. Two libraries
 * allocate inside their calls, and their APIs offer no way to avoid it. The test wraps the calls to tell their
 * allocations apart:
 *
 * - oneDNN: dnnl_primitive_execute() makes its list of arguments for each call, which is a few small blocks. All of
 *   them must be freed again, and nothing may be mapped.
 * - MPI: collectives of a library may make their schedules (those of Open MPI do). This is not counted.
 *
 * With reference kernels and one rank neither library is called, so the count must be zero.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base_status.h"
#include "test_util.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NOT_MINE 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
#define NOT_MINE 1 /* the allocator belongs to the sanitizer, or is called differently */
#endif

#ifndef NOT_MINE

/* ---- the interposer ---- */

enum place { OURS, ONEDNN, MPI };
enum { CALLERS = 16 };
static atomic_int counting, place;               /* place: the code that the calling thread of this program is in */
static atomic_int ncall[3], balance[3], nmap[3]; /* by place; balance: blocks taken minus blocks freed */
static struct {
    const char *function;
    void *from;
} caller[CALLERS];

static void note(const char *function, int blocks, void *from)
{
    if (!atomic_load_explicit(&counting, memory_order_relaxed))
        return;
    const int where = atomic_load_explicit(&place, memory_order_relaxed), at = atomic_fetch_add(&ncall[where], 1);
    atomic_fetch_add(&balance[where], blocks);
    if (strstr(function, "map"))
        atomic_fetch_add(&nmap[where], 1);
    if (where == OURS && at < CALLERS) {
        caller[at].function = function;
        caller[at].from = from;
    }
}
#define NOTE(function, blocks) note(function, blocks, __builtin_return_address(0))

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t n)
{
    NOTE("malloc", 1);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    NOTE("calloc", 1);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    NOTE("realloc", p == NULL);
    return __libc_realloc(p, n);
}

void free(void *p)
{
    if (p)
        NOTE("free", -1);
    __libc_free(p);
}

void *memalign(size_t alignment, size_t n)
{
    NOTE("memalign", 1);
    return __libc_memalign(alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    NOTE("aligned_alloc", 1);
    return __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    NOTE("posix_memalign", 1);
    void *p = __libc_memalign(alignment, n);
    if (p)
        *out = p;
    return p ? 0 : ENOMEM;
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    NOTE("mmap", 0);
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

int munmap(void *at, size_t n)
{
    NOTE("munmap", 0);
    return (int)syscall(SYS_munmap, at, n);
}

/* ---- calls of other libraries ---- */

#define WITHIN(where, call)                                                                                            \
    do {                                                                                                               \
        atomic_store(&place, where);                                                                                   \
        const int status_ = (call);                                                                                    \
        atomic_store(&place, OURS);                                                                                    \
        return status_;                                                                                                \
    } while (0)

int dnnl_primitive_execute(const void *primitive, void *stream, int narg, const void *arg);
int dnnl_primitive_execute(const void *primitive, void *stream, int narg, const void *arg)
{
    static int (*execute)(const void *, void *, int, const void *);
    if (!execute)
        *(void **)(void *)&execute = dlsym(RTLD_NEXT, "dnnl_primitive_execute");
    WITHIN(ONEDNN, execute(primitive, stream, narg, arg));
}

int MPI_Allreduce(const void *src, void *dst, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    WITHIN(MPI, PMPI_Allreduce(src, dst, count, type, op, comm));
}

int MPI_Iallreduce(const void *src, void *dst, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    WITHIN(MPI, PMPI_Iallreduce(src, dst, count, type, op, comm, request));
}

int MPI_Isend(const void *src, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    WITHIN(MPI, PMPI_Isend(src, count, type, to, tag, comm, request));
}

int MPI_Irecv(void *dst, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    WITHIN(MPI, PMPI_Irecv(dst, count, type, from, tag, comm, request));
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
    WITHIN(MPI, PMPI_Test(request, done, status));
}

int MPI_Testall(int count, MPI_Request *request, int *done, MPI_Status *status)
{
    WITHIN(MPI, PMPI_Testall(count, request, done, status));
}

int MPI_Waitall(int count, MPI_Request *request, MPI_Status *status)
{
    WITHIN(MPI, PMPI_Waitall(count, request, status));
}

static int64_t page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static void start_counting(void)
{
    for (int i = 0; i < 3; i++) {
        atomic_store(&ncall[i], 0);
        atomic_store(&balance[i], 0);
        atomic_store(&nmap[i], 0);
    }
}

static void print_callers(void)
{
    for (int i = 0; i < ncall[OURS] && i < CALLERS; i++) {
        Dl_info info = {0};
        dladdr(caller[i].from, &info);
        printf("    %s by %s in %s\n", caller[i].function, info.dli_sname ? info.dli_sname : "?",
               info.dli_fname ? info.dli_fname : "?");
    }
}

static void interposer_counts(void)
{
    start_counting();
    atomic_store(&counting, 1);
    void *volatile p = malloc(100);
    free(p);
    p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 4096);
    atomic_store(&counting, 0);
    EXPECT_INT(ncall[OURS], 4);
    EXPECT_INT(balance[OURS], 0);
    EXPECT_INT(nmap[OURS], 2);
}

/* ---- training ---- */

static cvy_model *new_network(void)
{
    static const struct {
        const char *op, *options;
    } layers[] = {
        {"conv", "channels: 16, kernel: 3, pad: 1"},
        {"relu", NULL},
        {"lrn", "size: 3"},
        {"max_pool", "kernel: 2"},
        {"dropout", "p: 0.2"},
        {"conv", "channels: 32, kernel: 3, pad: 1, bias: false"},
        {"batch_norm", NULL},
        {"relu", NULL},
        {"avg_pool", "kernel: 2"},
        {"conv", "channels: 12, kernel: 1"},
        {"sigmoid", NULL},
        {"fc", "channels: 10"},
    };
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("steady", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 8, 8}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    for (int i = 0; i < CVY_COUNT(layers); i++)
        EXPECT_OK(cvy_model_add(m, layers[i].op, i == CVY_COUNT(layers) - 1 ? "fc" : NULL, layers[i].options,
                                i ? NULL : "x"));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

static void ten_steps(const char *kernels, int threads, const char *optimizer, int64_t accumulate, int64_t shards)
{
    const cvy_context_opts context_opts = {.size = sizeof context_opts, .threads = threads};
    const cvy_program_opts program_opts = {
        .size = sizeof program_opts, .kernels = kernels, .batch_norm_group = 3, .bucket_bytes = 4096, .shards = shards};
    const cvy_training_opts train = {
        .size = sizeof train, .optimizer = optimizer, .accumulate = accumulate, .clip_norm = 5, .weight_decay = 1e-4};
    cvy_context *context = NULL;
    cvy_model *m = new_network();
    cvy_program *p = NULL;
    int step = 0, forward = 0;
    double loss = 0;
    const void *output = NULL;
    int64_t faults = 0;
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &context_opts, &context));
    EXPECT_OK(cvy_program_create(context, &program_opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 8, &train, &step));
    EXPECT_OK(cvy_program_add_forward(p, m, 4, NULL, &forward));
    EXPECT_OK(cvy_program_plan(p));
    float *x = cvy_program_feed(p, step, "x");
    for (int64_t i = 0; i < cvy_program_rows(p, step) * 192; i++)
        x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    start_counting();
    for (int i = 1; i <= 10; i++) {
        if (i == 3)
            faults = page_faults();
        atomic_store(&counting, i >= 3);
        cvy_status status = cvy_program_step(p, step, 0.01);
        if (status == CVY_OK)
            status = cvy_program_loss(p, step, "loss", &loss);
        if (status == CVY_OK && i % 2 == 0)
            status = cvy_program_step(p, forward, 0);
        if (status == CVY_OK && i % 2 == 0)
            status = cvy_program_output(p, forward, "fc", &output, NULL);
        atomic_store(&counting, 0);
        EXPECT_INT(status, CVY_OK);
    }
    faults = page_faults() - faults;
    printf("       %-9s kernels, %d threads, %-4s, %lld micro-batches, %lld shards: calls in steps 3 to 10: %d, inside "
           "oneDNN %d, "
           "inside MPI %d; page faults %lld\n",
           kernels, threads, optimizer, (long long)accumulate, (long long)shards, ncall[OURS], ncall[ONEDNN],
           ncall[MPI], (long long)faults);
    EXPECT(faults < 8 || cvy_context_nranks(context) > 1); /* MPI has its own buffers */
    print_callers();
    EXPECT_INT(ncall[OURS], 0);
    EXPECT_INT(balance[ONEDNN], 0);
    EXPECT_INT(nmap[ONEDNN], 0);
    EXPECT(strcmp(kernels, "reference") != 0 || ncall[ONEDNN] == 0);
    EXPECT(cvy_context_nranks(context) > 1 || ncall[MPI] == 0);
    EXPECT(isfinite(loss));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    cvy_context_destroy(&context);
}

static void steady(void)
{
    ten_steps("auto", 1, "sgd", 1, 0);
    ten_steps("auto", 2, "adam", 1, 0);
    ten_steps("auto", 1, "adam", 2, 0);
    ten_steps("native", 1, "sgd", 1, 0);
    ten_steps("reference", 1, "sgd", 1, 0);
    ten_steps("auto", 2, "sgd", 1, 4);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    TEST(interposer_counts);
    TEST(steady);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}

#else

int main(void)
{
    printf("skipped: the allocator of this build cannot be watched\n");
    return 77;
}

#endif
