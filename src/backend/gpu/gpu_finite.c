/*
 * gpu_finite.c: finds out on the device whether ranges of memory hold finite numbers only, and holds updates if not.
 *
 * One launch reads all ranges, through a table in the device's memory. Each block writes one number, so nothing has to
 * be cleared first, and no two threads write to one place. A second launch makes one number of these, which the kernels
 * of updates read (cvy_gpu_hold). So the updates can be put into the lane before the host knows the result.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { FINITE_PIECE = 8192, FINITE_BLOCKS = 1024, FINITE_THREADS = 256 };
struct finite_range {
    u64 address;
    i64 elems;
    i64 first; /* number of its first piece among the pieces of all ranges */
    i64 kind;  /* NUMBER_F32, NUMBER_F64 or NUMBER_BF16 */
};

#ifdef CVY_DEVICE

/* The exponent has all bits set. An f64 number is read as two words, the lower one first. */
INLINE int is_bad(u64 address, i64 kind, i64 i)
{
    if (kind == NUMBER_F32)
        return (AT_ADDRESS(const u32, address)[i] & 0x7f800000u) == 0x7f800000u;
    if (kind == NUMBER_F64)
        return (AT_ADDRESS(const u32, address)[2 * i + 1] & 0x7ff00000u) == 0x7ff00000u;
    return (AT_ADDRESS(const u16, address)[i] & 0x7f80u) == 0x7f80u;
}

/* The range of a piece: the last one that begins at it or before it. */
INLINE int range_of(GLOBAL const struct finite_range *range, int n, i64 piece)
{
    int low = 0, high = n - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (range[middle].first <= piece)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

KERNEL(find_bad)(GLOBAL const struct finite_range *range, int n, i64 pieces, GLOBAL int *bad_of_block)
{
    SHARED int s[FINITE_THREADS];
    int bad = 0;
    for (i64 piece = BLOCK; piece < pieces; piece += BLOCKS) {
        const int r = range_of(range, n, piece);
        const u64 address = range[r].address;
        const i64 kind = range[r].kind, from = (piece - range[r].first) * FINITE_PIECE;
        const i64 last = MIN(from + FINITE_PIECE, range[r].elems);
        for (i64 i = from + THREAD; i < last; i += THREADS)
            bad |= is_bad(address, kind, i);
    }
    BLOCK_SUM(bad, s);
    if (THREAD == 0)
        bad_of_block[BLOCK] = bad;
}

/* One block. */
KERNEL(hold_updates)(GLOBAL const int *bad_of_block, int n, GLOBAL int *hold)
{
    SHARED int s[FINITE_THREADS];
    int bad = 0;
    for (int i = THREAD; i < n; i += THREADS)
        bad |= bad_of_block[i];
    BLOCK_SUM(bad, s);
    if (THREAD == 0)
        hold[0] = bad != 0;
}

#else
#include "backend/gpu/gpu.h"

CVY_GPU_SOURCE_DECLARE(gpu_finite);

struct cvy_gpu_finite {
    cvy_space space;
    cvy_gpu_kernel find, holds;
    int n, blocks, table_entries;
    int64_t pieces;
    struct finite_range *table; /* in the space, like bad_of_block and hold */
    int *bad_of_block, *hold;
    int *found; /* copy of hold, in page-locked memory */
    cvy_mark *copied;
};

static cvy_status kind_of(cvy_dtype dtype, int64_t *kind_out)
{
    switch (dtype) {
    case CVY_DTYPE_F32: *kind_out = NUMBER_F32; return CVY_OK;
    case CVY_DTYPE_F64: *kind_out = NUMBER_F64; return CVY_OK;
    case CVY_DTYPE_BF16: *kind_out = NUMBER_BF16; return CVY_OK;
    default: return cvy_error_set(CVY_E_INTERNAL, "numbers of %s are always finite", cvy_dtype_text(dtype));
    }
}

static cvy_status write_table(cvy_gpu_finite *f, const cvy_gpu_range *ranges, int n)
{
    struct finite_range *table = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc((size_t)n * sizeof *table, &table));
    for (int i = 0; i < n && status == CVY_OK; i++) {
        if (ranges[i].elems == 0)
            continue;
        struct finite_range *to = &table[f->n++];
        *to = (struct finite_range){(u64)(uintptr_t)ranges[i].data, ranges[i].elems, f->pieces, 0};
        status = kind_of(ranges[i].dtype, &to->kind);
        f->pieces += (ranges[i].elems + FINITE_PIECE - 1) / FINITE_PIECE;
    }
    if (status == CVY_OK)
        status = cvy_space_write(&f->space, f->table, table, (size_t)f->n * sizeof *table);
    cvy_mem_free(&table);
    return status;
}

static cvy_status fill(cvy_gpu_finite *f, const cvy_gpu_range *ranges, int n)
{
    CVY_TRY(cvy_gpu_kernel_get(&f->space, CVY_GPU_SOURCE(gpu_finite), "find_bad", CVY_DTYPE_F32, &f->find));
    CVY_TRY(cvy_gpu_kernel_get(&f->space, CVY_GPU_SOURCE(gpu_finite), "hold_updates", CVY_DTYPE_F32, &f->holds));
    CVY_TRY(cvy_gpu_hold(&f->space, &f->hold));
    CVY_TRY(cvy_space_alloc(&f->space, (size_t)CVY_MAX(n, 1) * sizeof *f->table, 0, &f->table));
    CVY_TRY(cvy_space_alloc(&f->space, FINITE_BLOCKS * sizeof *f->bad_of_block, 0, &f->bad_of_block));
    CVY_TRY(cvy_space_alloc_host(&f->space, sizeof *f->found, &f->found));
    CVY_TRY(cvy_mark_create(&f->space, &f->copied));
    CVY_TRY(write_table(f, ranges, n));
    f->blocks = (int)CVY_MIN(f->pieces, FINITE_BLOCKS);
    return CVY_OK;
}

cvy_status cvy_gpu_finite_create(const cvy_space *space, const cvy_gpu_range *ranges, int n, cvy_gpu_finite **out)
{
    cvy_gpu_finite *f = NULL;
    *out = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *f, &f));
    f->space = *space;
    f->table_entries = CVY_MAX(n, 1);
    const cvy_status status = fill(f, ranges, n);
    if (status != CVY_OK)
        cvy_gpu_finite_destroy(&f);
    *out = f;
    return status == CVY_NOT_APPLICABLE ? CVY_E_UNSUPPORTED : status;
}

cvy_status cvy_gpu_finite_start(cvy_gpu_finite *f)
{
    if (!f->blocks)
        return CVY_OK;
    CVY_TRY(CVY_GPU_LAUNCH(&f->find, f->blocks, 1, 1, FINITE_THREADS, CVY_GPU_POINTER(f->table), CVY_GPU_VALUE(f->n),
                           CVY_GPU_VALUE(f->pieces), CVY_GPU_POINTER(f->bad_of_block)));
    CVY_TRY(CVY_GPU_LAUNCH(&f->holds, 1, 1, 1, FINITE_THREADS, CVY_GPU_POINTER(f->bad_of_block),
                           CVY_GPU_VALUE(f->blocks), CVY_GPU_POINTER(f->hold)));
    CVY_TRY(cvy_space_copy(&f->space, CVY_LANE_COMPUTE, f->found, f->hold, sizeof *f->found));
    return cvy_mark_put(&f->space, CVY_LANE_COMPUTE, f->copied);
}

int cvy_gpu_finite_is_done(const cvy_gpu_finite *f)
{
    int reached = 1;
    return !f->blocks || cvy_mark_reached(&f->space, f->copied, 0, &reached) != CVY_OK || reached;
}

cvy_status cvy_gpu_finite_end(cvy_gpu_finite *f, int *finite_out)
{
    int reached = 1;
    *finite_out = 1;
    if (f->blocks)
        CVY_TRY(cvy_mark_reached(&f->space, f->copied, 1, &reached));
    if (f->blocks && *f->found) {
        *finite_out = 0;
        return cvy_space_zero(&f->space, CVY_LANE_COMPUTE, f->hold, sizeof *f->hold);
    }
    return CVY_OK;
}

void cvy_gpu_finite_destroy(cvy_gpu_finite **finite)
{
    cvy_gpu_finite *f = *finite;
    if (!f)
        return;
    cvy_space_free(&f->space, &f->table, (size_t)f->table_entries * sizeof *f->table);
    cvy_space_free(&f->space, &f->bad_of_block, FINITE_BLOCKS * sizeof *f->bad_of_block);
    cvy_space_free_host(&f->space, &f->found, sizeof *f->found);
    cvy_mark_destroy(&f->space, &f->copied);
    cvy_mem_free(finite);
}
#endif
