/*
 * gpu_matmul.c: matmul and its gradients on a GPU. The sources have any layout without blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/gpu/conv/gpu_product.h"

enum { AXES = 4 }; /* before the last two, at most */

/* Matrix `item` of dst [m, n] is a sum of `sums` products of a matrix of a [m, k] and one of b [k, n]. Both numbers
 * count the axes before the last two: those that are summed, and the others. */
struct matrices {
    int m, n, k, tiles_m, tiles_n;
    int sums, axes;
    i64 a_row, a_column, b_row, b_column;
    int dim[AXES], is_summed[AXES];
    i64 a_by[AXES], b_by[AXES];
};

#ifdef CVY_DEVICE

KERNEL(matmul)(GLOBAL const act *a, GLOBAL const act *b, GLOBAL act *dst, struct matrices s)
{
    SHARED float at[CVY_STEP][ROOM], bt[CVY_STEP][ROOM];
    const int tile = BLOCK / s.tiles_m, item = tile / s.tiles_n, m0 = BLOCK % s.tiles_m * CVY_TILE,
              n0 = tile % s.tiles_n * CVY_TILE;
    /* Neighbouring threads read neighbouring elements: those of a row, or those of a column. */
    const int a_by_rows = s.a_column == 1, b_by_rows = s.b_column == 1;
    float sum[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            sum[i][j] = 0;
    for (int number = 0; number < s.sums; number++) {
        int of_item = item, of_sum = number;
        i64 a_first = 0, b_first = 0;
        for (int d = s.axes - 1; d >= 0; d--) {
            const int left = s.is_summed[d] ? of_sum : of_item, place = left % s.dim[d];
            a_first += place * s.a_by[d];
            b_first += place * s.b_by[d];
            if (s.is_summed[d])
                of_sum = left / s.dim[d];
            else
                of_item = left / s.dim[d];
        }
        for (int k0 = 0; k0 < s.k; k0 += CVY_STEP) {
            for (int e = THREAD; e < CVY_STEP * CVY_TILE; e += THREADS) {
                const int narrow = e % CVY_STEP, wide = e / CVY_STEP;
                const int ak = a_by_rows ? narrow : e / CVY_TILE, am = a_by_rows ? wide : e % CVY_TILE;
                const int bk = b_by_rows ? e / CVY_TILE : narrow, bn = b_by_rows ? e % CVY_TILE : wide;
                at[ak][am] = m0 + am < s.m && k0 + ak < s.k
                                 ? GET(a, a_first + (m0 + am) * s.a_row + (k0 + ak) * s.a_column)
                                 : 0.0f;
                bt[bk][bn] = n0 + bn < s.n && k0 + bk < s.k
                                 ? GET(b, b_first + (k0 + bk) * s.b_row + (n0 + bn) * s.b_column)
                                 : 0.0f;
            }
            BARRIER();
            ADD_PRODUCTS(sum, at, bt);
            BARRIER();
        }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (m0 + ROW_OF(i) < s.m && n0 + COLUMN_OF(j) < s.n)
                SET(dst, ((i64)item * s.m + m0 + ROW_OF(i)) * s.n + n0 + COLUMN_OF(j), sum[i][j]);
}

#else
#include "op/tensor/op_matmul.h"

CVY_GPU_SOURCE_DECLARE(gpu_matmul);

struct matmul {
    cvy_gpu_kernel kernel;
    struct matrices s;
    int64_t blocks;
};

static cvy_status matmul_kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    CVY_CHECK(ask->node->src[1]->dtype == act && ask->node->dst[0]->dtype == act, CVY_NOT_APPLICABLE,
              "this kernel needs one dtype of sources and result");
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_matmul), "matmul", act, out);
}

/* The strides of a source, and the same for a layout without blocks in place of any other. */
static cvy_status strides_of(const cvy_shape *shape, cvy_layout *layout, cvy_blocking *out)
{
    if (cvy_blocking_make(layout, shape, out) == CVY_OK && out->nblock == 0)
        return CVY_OK;
    *layout = cvy_layout_plain();
    return cvy_blocking_make(layout, shape, out);
}

static cvy_status matrices_of(const cvy_node *node, cvy_layout *a_layout, cvy_layout *b_layout, struct matrices *out,
                              int64_t *blocks_out)
{
    const cvy_matmul_opts *o = node->options; /* of matmul_grad: its first member */
    const cvy_matmul m = cvy_matmul_make(node);
    const int last = m.naxes + 1;
    cvy_blocking a, b;
    CVY_TRY(strides_of(&node->src[0]->shape, a_layout, &a));
    CVY_TRY(strides_of(&node->src[1]->shape, b_layout, &b));
    const int64_t tiles_m = (m.m + CVY_TILE - 1) / CVY_TILE, tiles_n = (m.p + CVY_TILE - 1) / CVY_TILE;
    _Static_assert(AXES >= CVY_NDIM_MAX - 2, "room for all axes");
    CVY_CHECK(
        CVY_MAX(CVY_MAX(m.m, m.p), CVY_MAX(m.k, m.sums)) <= INT32_MAX / 2 && m.items * tiles_m * tiles_n <= INT32_MAX,
        CVY_NOT_APPLICABLE, "this kernel counts up to 2^30; there are %lld matrices of %lld x %lld x %lld products",
        (long long)m.items, (long long)m.m, (long long)m.p, (long long)m.k);
    *out = (struct matrices){.m = (int)m.m,
                             .n = (int)m.p,
                             .k = (int)m.k,
                             .tiles_m = (int)tiles_m,
                             .tiles_n = (int)tiles_n,
                             .sums = (int)m.sums,
                             .axes = m.naxes,
                             .a_row = a.stride[o->transpose_a ? last : last - 1],
                             .a_column = a.stride[o->transpose_a ? last - 1 : last],
                             .b_row = b.stride[o->transpose_b ? last : last - 1],
                             .b_column = b.stride[o->transpose_b ? last - 1 : last]};
    for (int d = 0; d < m.naxes; d++) {
        out->dim[d] = (int)m.dim[d];
        out->is_summed[d] = m.is_summed[d];
        out->a_by[d] = m.a_stride[d] ? a.stride[d] : 0;
        out->b_by[d] = m.b_stride[d] ? b.stride[d] : 0;
    }
    *blocks_out = m.items * tiles_m * tiles_n;
    return CVY_OK;
}

static cvy_status matmul_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    struct matrices s;
    int64_t blocks = 0;
    CVY_TRY(matmul_kernel(ask, &kernel));
    ask->dst[0] = cvy_layout_plain();
    return matrices_of(ask->node, &ask->src[0], &ask->src[1], &s, &blocks);
}

static cvy_status matmul_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct matmul *s = NULL, made;
    cvy_layout a = ask->src[0], b = ask->src[1];
    CVY_TRY(matmul_kernel(ask, &made.kernel));
    CVY_TRY(matrices_of(ask->node, &a, &b, &made.s, &made.blocks));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = made;
    *state_out = s;
    return CVY_OK;
}

static cvy_status matmul_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct matmul *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, s->blocks, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->s));
}

CVY_KERNEL_DEFINE(gpu_matmul) = {CVY_GPU_FIELDS("matmul", matmul_offer, matmul_create, matmul_run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_matmul_grad) = {
    CVY_GPU_FIELDS("matmul_grad", matmul_offer, matmul_create, matmul_run, cvy_gpu_free_state)};
#endif
