/*
 * gpu_update_group.c: the updates of many weights by one launch. Most weights of a network are small, so a launch for
 * each takes longer than its work.
 *
 * When a plan is bound, the library is told which updates follow each other, and with which tensors. The first of them
 * then runs all, by a table in the device's memory; the others do nothing. Each weight has the blocks that it has
 * alone, so the bits are the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/gpu/update/gpu_update.h"

enum {
    MEMBER_WEIGHT,
    MEMBER_GRADIENT,
    MEMBER_LR,
    MEMBER_SCALE,
    MEMBER_STEP,
    MEMBER_STATE, /* three, then the average */
    MEMBER_WEIGHT_OUT = MEMBER_STATE + 4,
    MEMBER_STATE_OUT, /* three, then the average */
    MEMBER_SHADOW = MEMBER_STATE_OUT + 4,
    MEMBER_ADDRESSES
};
struct update_member {
    u64 address[MEMBER_ADDRESSES];
    i64 first; /* its first block among those of the group */
    struct update u;
};

#ifdef CVY_DEVICE

/* The weight of a block: the last one that begins at it or before it. */
INLINE int member_of(GLOBAL const struct update_member *member, int n, i64 block)
{
    int low = 0, high = n - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (member[middle].first <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

INLINE struct update_memory memory_of(GLOBAL const struct update_member *member)
{
    GLOBAL const u64 *at = member->address;
    struct update_memory m;
    m.weight = AT_ADDRESS(const float, at[MEMBER_WEIGHT]);
    m.gradient = AT_ADDRESS(const float, at[MEMBER_GRADIENT]);
    m.state0 = AT_ADDRESS(const float, at[MEMBER_STATE]);
    m.state1 = AT_ADDRESS(const float, at[MEMBER_STATE + 1]);
    m.state2 = AT_ADDRESS(const float, at[MEMBER_STATE + 2]);
    m.average = AT_ADDRESS(const float, at[MEMBER_STATE + 3]);
    m.weight_out = AT_ADDRESS(float, at[MEMBER_WEIGHT_OUT]);
    m.state0_out = AT_ADDRESS(float, at[MEMBER_STATE_OUT]);
    m.state1_out = AT_ADDRESS(float, at[MEMBER_STATE_OUT + 1]);
    m.state2_out = AT_ADDRESS(float, at[MEMBER_STATE_OUT + 2]);
    m.average_out = AT_ADDRESS(float, at[MEMBER_STATE_OUT + 3]);
    m.shadow = AT_ADDRESS(u16, at[MEMBER_SHADOW]);
    return m;
}

/* Whether the update has a trust ratio, which needs squares: all threads of a block agree on it. */
INLINE int has_trust(struct update u)
{
    return u.f >= UPDATE_LARS && u.flag;
}

/* part: two sums for each block of the group. */
KERNEL(update_group_squares)(GLOBAL const struct update_member *member, int n, GLOBAL double *part)
{
    SHARED double s[UPDATE_THREADS];
    const int k = member_of(member, n, BLOCK);
    const struct update u = member[k].u;
    const double scale = AT_ADDRESS(const double, member[k].address[MEMBER_SCALE])[0];
    const double step = (double)AT_ADDRESS(const i64, member[k].address[MEMBER_STEP])[0];
    if (has_trust(u)) {
        struct update_sums sums =
            update_squares_range(u, scale, step, memory_of(&member[k]), BLOCK - member[k].first, u.blocks);
        BLOCK_SUM(sums.weights, s);
        BLOCK_SUM(sums.others, s);
        if (THREAD == 0) {
            part[2 * BLOCK] = sums.weights;
            part[2 * BLOCK + 1] = sums.others;
        }
    }
}

KERNEL(update_group_adapted)
(GLOBAL const struct update_member *member, int n, GLOBAL const int *hold, GLOBAL const double *part)
{
    SHARED double s[UPDATE_THREADS];
    if (hold[0])
        return;
    const int k = member_of(member, n, BLOCK);
    const struct update u = member[k].u;
    const double lr = AT_ADDRESS(const double, member[k].address[MEMBER_LR])[0];
    const double scale = AT_ADDRESS(const double, member[k].address[MEMBER_SCALE])[0];
    const double step = (double)AT_ADDRESS(const i64, member[k].address[MEMBER_STEP])[0];
    double trust = 1;
    if (has_trust(u)) {
        struct update_sums sums = update_parts(u, part + 2 * member[k].first);
        BLOCK_SUM(sums.weights, s);
        BLOCK_SUM(sums.others, s);
        trust = update_trust(u, sums.weights, sums.others);
    }
    update_range(u, update_begin(u, lr, scale, step, trust), memory_of(&member[k]), BLOCK - member[k].first, u.blocks);
}

/* The same without trust ratios. */
KERNEL(update_group)(GLOBAL const struct update_member *member, int n, GLOBAL const int *hold)
{
    if (hold[0])
        return;
    const int k = member_of(member, n, BLOCK);
    const struct update u = member[k].u;
    const double lr = AT_ADDRESS(const double, member[k].address[MEMBER_LR])[0];
    const double scale = AT_ADDRESS(const double, member[k].address[MEMBER_SCALE])[0];
    const double step = (double)AT_ADDRESS(const i64, member[k].address[MEMBER_STEP])[0];
    update_range(u, update_begin(u, lr, scale, step, 1), memory_of(&member[k]), BLOCK - member[k].first, u.blocks);
}

#else
#include "optim/optim_update.h"

CVY_GPU_SOURCE_DECLARE(gpu_update_group);

enum { SMALL = 1 << 20 }; /* elements; the update of a larger weight runs alone, because it is worth a launch */

typedef struct cvy_gpu_update_group {
    cvy_space space;
    cvy_gpu_kernel update, squares;
    int n;
    int64_t blocks;
    int *hold;                   /* cvy_gpu_hold() */
    struct update_member *table; /* on the device, like part */
    double *part;                /* NULL: no weight has a trust ratio */
} cvy_gpu_update_group;

static u64 address_of(const void *data)
{
    return (u64)(uintptr_t)data;
}

static struct update_member member_of_call(const cvy_kernel_call *call, int64_t first)
{
    const cvy_gpu_update *c = call->state;
    const cvy_gpu_update_tensors t = cvy_gpu_update_tensors_of(c, call->src, call->dst);
    struct update_member m = {.first = first, .u = c->u};
    for (int i = 0; i < CVY_OPTIM_STATE; i++) /* their sources are in this order */
        m.address[MEMBER_WEIGHT + i] = address_of(call->src[i]);
    for (int i = 0; i <= CVY_GPU_UPDATE_STATES; i++) {
        m.address[MEMBER_STATE + i] = address_of(t.from[i]);
        m.address[MEMBER_STATE_OUT + i] = address_of(t.to[i]);
    }
    m.address[MEMBER_WEIGHT_OUT] = address_of(call->dst[0]);
    m.address[MEMBER_SHADOW] = address_of(t.shadow);
    return m;
}

static cvy_status write_table(cvy_gpu_update_group *g, const cvy_kernel_call *calls)
{
    const size_t bytes = (size_t)g->n * sizeof *g->table;
    struct update_member *table = NULL;
    CVY_TRY(cvy_mem_alloc(bytes, &table));
    for (int i = 0; i < g->n; i++) {
        table[i] = member_of_call(&calls[i], g->blocks);
        g->blocks += table[i].u.blocks;
    }
    cvy_status status = cvy_space_alloc(&g->space, bytes, 0, &g->table);
    if (status == CVY_OK)
        status = cvy_space_write(&g->space, g->table, table, bytes);
    cvy_mem_free(&table);
    return status;
}

static size_t part_bytes(const cvy_gpu_update_group *g)
{
    return 2 * sizeof(double) * (size_t)g->blocks;
}

static cvy_status fill(cvy_gpu_update_group *g, const cvy_kernel_call *calls)
{
    int norms = 0;
    for (int i = 0; i < g->n; i++)
        norms |= ((const cvy_gpu_update *)calls[i].state)->squares.handle != NULL;
    CVY_TRY(cvy_gpu_hold(&g->space, &g->hold));
    CVY_TRY(cvy_gpu_kernel_get(&g->space, CVY_GPU_SOURCE(gpu_update_group),
                               norms ? "update_group_adapted" : "update_group", CVY_DTYPE_F32, &g->update));
    CVY_TRY(write_table(g, calls));
    if (!norms)
        return CVY_OK;
    CVY_TRY(cvy_space_alloc(&g->space, part_bytes(g), 0, &g->part));
    return cvy_gpu_kernel_get(&g->space, CVY_GPU_SOURCE(gpu_update_group), "update_group_squares", CVY_DTYPE_F32,
                              &g->squares);
}

/* Makes a group of these calls, or leaves each alone if its kernels do not compile. */
static cvy_status make_group(const cvy_space *space, const cvy_kernel_call *calls, int n)
{
    cvy_gpu_update *leader = calls[0].state;
    cvy_gpu_update_group *g = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *g, &g));
    g->space = *space;
    g->n = n;
    const cvy_status status = fill(g, calls);
    if (status != CVY_OK) {
        cvy_gpu_update_group_free(&g);
        return status == CVY_NOT_APPLICABLE ? CVY_OK : status;
    }
    leader->group = g;
    for (int i = 1; i < n; i++)
        ((cvy_gpu_update *)calls[i].state)->led = calls[i].dst[0];
    return CVY_OK;
}

static int is_update(const cvy_kernel_call *call)
{
    return call->kernel->run == cvy_gpu_update_run;
}

/* The updates of small weights among calls that follow each other become one group. */
static cvy_status join_run(const cvy_space *space, const cvy_kernel_call *calls, int n, cvy_kernel_call *small)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if (((const cvy_gpu_update *)calls[i].state)->u.n <= SMALL)
            small[count++] = calls[i];
    return count > 1 ? make_group(space, small, count) : CVY_OK;
}

cvy_status cvy_gpu_update_join(const cvy_space *space, const cvy_kernel_call *calls, int n)
{
    cvy_kernel_call *small = NULL;
    cvy_status status = CVY_OK;
    for (int i = 0; i < n; i++)
        if (is_update(&calls[i])) {
            cvy_gpu_update *c = calls[i].state;
            cvy_gpu_update_group_free(&c->group);
            c->led = NULL;
        }
    CVY_TRY(cvy_mem_alloc(sizeof *small * ((size_t)n + 1), &small));
    for (int i = 0, end; i < n && status == CVY_OK; i = CVY_MAX(end, i + 1)) {
        for (end = i; end < n && is_update(&calls[end]);)
            end++;
        status = join_run(space, calls + i, end - i, small);
    }
    cvy_mem_free(&small);
    return status;
}

cvy_status cvy_gpu_update_group_run(const cvy_gpu_update_group *g)
{
    if (!g->part)
        return CVY_GPU_LAUNCH(&g->update, g->blocks, 1, 1, UPDATE_THREADS, CVY_GPU_POINTER(g->table),
                              CVY_GPU_VALUE(g->n), CVY_GPU_POINTER(g->hold));
    CVY_TRY(CVY_GPU_LAUNCH(&g->squares, g->blocks, 1, 1, UPDATE_THREADS, CVY_GPU_POINTER(g->table), CVY_GPU_VALUE(g->n),
                           CVY_GPU_POINTER(g->part)));
    return CVY_GPU_LAUNCH(&g->update, g->blocks, 1, 1, UPDATE_THREADS, CVY_GPU_POINTER(g->table), CVY_GPU_VALUE(g->n),
                          CVY_GPU_POINTER(g->hold), CVY_GPU_POINTER(g->part));
}

void cvy_gpu_update_group_free(cvy_gpu_update_group **group)
{
    cvy_gpu_update_group *g = *group;
    if (!g)
        return;
    if (g->table)
        cvy_space_free(&g->space, &g->table, (size_t)g->n * sizeof *g->table);
    if (g->part)
        cvy_space_free(&g->space, &g->part, part_bytes(g));
    cvy_mem_free(group);
}
#endif
