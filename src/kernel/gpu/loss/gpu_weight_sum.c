/*
 * gpu_weight_sum.c: weight_sum, the normaliser of a weighted loss. src/op/loss/op_loss.c has the formula.
 *
 * A block adds the elements of a sample; the samples of the blocks are then added in order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { WEIGHT_THREADS = 256 };
struct weight_sum {
    i64 samples, each;            /* each: elements that are added of a sample */
    i64 weight_each;              /* numbers of the weight for each sample */
    int target_kind, weight_kind; /* NUMBER_*; weight_kind -1: there is no weight */
    int of_weights, counts_samples, class_weights, ignored;
};

#ifdef CVY_DEVICE

INLINE double element_weight(struct weight_sum a, GLOBAL const void *target, GLOBAL const void *weight,
                             GLOBAL const double *table, i64 n, i64 e)
{
    if (a.of_weights)
        return number_at(target, a.target_kind, n * a.each + e);
    double w = 1;
    if (a.weight_kind >= 0)
        w = number_at(weight, a.weight_kind, a.weight_each == 1 ? n : n * a.weight_each + e % a.weight_each);
    if (w == 0 || a.class_weights + a.ignored == 0)
        return w;
    const double label = number_at(target, a.target_kind, n * a.each + e);
    for (int i = 0; i < a.ignored; i++)
        if (table[a.class_weights + i] == label)
            return 0;
    if (a.class_weights && !(label >= 0 && label < a.class_weights))
        return NAN;
    return a.class_weights ? w * table[(int)label] : w;
}

KERNEL(weight_sum)
(GLOBAL const void *target, GLOBAL const void *weight, GLOBAL const double *table, GLOBAL double *part,
 struct weight_sum a)
{
    SHARED double s[WEIGHT_THREADS];
    double total = 0;
    for (i64 n = BLOCK; n < a.samples; n += BLOCKS) {
        double sum = 0;
        for (i64 e = THREAD; e < a.each; e += THREADS) {
            const double w = element_weight(a, target, weight, table, n, e);
            sum += a.counts_samples ? (w != 0) : w < 0 ? -w : w;
        }
        BLOCK_SUM(sum, s);
        total += a.counts_samples ? (sum > 0) : sum / (double)a.each;
    }
    if (THREAD == 0)
        part[BLOCK] = total;
}

#else
#include "kernel/gpu/loss/gpu_loss.h"

CVY_GPU_SOURCE_DECLARE(gpu_weight_sum);

struct call {
    cvy_gpu_kernel kernel, sum;
    struct weight_sum a;
    cvy_gpu_table table;
    double share;
    int64_t blocks;
    int weight_at;
};

static int64_t blocks_of(const cvy_node *node)
{
    return CVY_MIN(node->src[0]->shape.dim[0], CVY_GPU_LOSS_BLOCKS);
}

static cvy_status kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_weight_sum), "weight_sum", CVY_DTYPE_F32, out);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel k;
    CVY_TRY(kernel(ask, &k));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->scratch_bytes = sizeof(double) * (size_t)blocks_of(ask->node);
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const struct cvy_weight_sum *o = node->options;
    const cvy_shape *target = &node->src[0]->shape;
    const int counts = o->class_weights.count || o->ignore_label.count;
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    c->weight_at = node->nsrc > 1;
    c->a = (struct weight_sum){.samples = target->dim[0],
                               .weight_each = 1,
                               .target_kind = cvy_gpu_number_kind(node->src[0]->dtype),
                               .weight_kind = -1,
                               .of_weights = o->of_weights,
                               .counts_samples = o->counts_samples,
                               .class_weights = o->class_weights.count,
                               .ignored = o->ignore_label.count};
    if (node->nsrc > 1) {
        c->a.weight_kind = cvy_gpu_number_kind(node->src[1]->dtype);
        c->a.weight_each = cvy_loss_weight_elems(&node->src[1]->shape);
    }
    /* Without labels or a mask all elements of a sample have one weight. */
    c->a.each = o->of_weights || counts || c->a.weight_each > 1 ? cvy_loss_weight_elems(target) : 1;
    c->share = o->share > 0 ? o->share : 1;
    c->blocks = blocks_of(node);
    CVY_TRY(cvy_gpu_table_of_labels(ask->space, o, &c->table));
    CVY_TRY(kernel(ask, &c->kernel));
    return cvy_gpu_loss_sum_get(ask->space, &c->sum);
}

static void destroy(void *state)
{
    struct call *c = state;
    if (c)
        cvy_gpu_table_free(&c->table);
    cvy_mem_free(&c);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const void *const table = c->table.there ? c->table.there : src[0];
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, WEIGHT_THREADS, CVY_GPU_POINTER(src[0]),
                           CVY_GPU_POINTER(src[c->weight_at]), CVY_GPU_POINTER(table), CVY_GPU_POINTER(scratch),
                           CVY_GPU_VALUE(c->a)));
    return cvy_gpu_loss_sum_run(&c->sum, scratch, c->blocks, c->share, dst[0]);
}

CVY_KERNEL_DEFINE(gpu_weight_sum) = {CVY_GPU_FIELDS("weight_sum", offer, create, run, destroy)};
#endif
