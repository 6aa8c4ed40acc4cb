/*
 * kernel.h: what a kernel is: an offer to run one operator on given shapes, dtypes and layouts, made at planning time,
 * and a function that runs it.
 *
 * The planner goes through a graph in order. For each node it asks the kernels of the operator in the order of their
 * preference, and takes the first one that makes an offer (measured times or a plan file may name another). An offer
 * fixes the layout of every source and destination. If a source has another layout, the planner inserts a reorder. If
 * no kernel makes an offer, the operator's plain reference kernel runs, on plain layouts.
 *
 * An offer depends only on the operator, its options, shapes, dtypes, the batch and the layouts in the ask: nodes that
 * are equal in these share one offer, and are timed once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_KERNEL_H
#define CVY_KERNEL_H

#include "base/machine/base_parallel.h"
#include "graph/graph_op.h"

typedef struct cvy_kernel_ask {
    const cvy_node *node;
    const cvy_space
        *space; /* where the tensors are; NULL: the host's memory. A kernel of a device takes its lane here */
    int threads;
    /* In: results must not depend on `threads`, to the bit: sums are cut in a way that does not depend on it, or not at
     * all. A kernel that cannot do so sets `thread_dependent` and is then created for one thread. */
    int deterministic;
    /* In: the layout that each source has now. src_free[i] = 1: it is a variable whose layout is not fixed yet. The
     * offer overwrites src[i] with the layout that it needs. */
    cvy_layout src[CVY_NODE_SRC_MAX];
    int src_free[CVY_NODE_SRC_MAX];
    /* In: the value's dtype. Out: a kernel that wants bf16 of an f32 variable sets it. Then src[i] is the layout of the
     * bf16 copy, which is made once a step, and src_canonical[i] is the layout for the variable itself, if it is
     * free. */
    cvy_dtype src_dtype[CVY_NODE_SRC_MAX];
    cvy_layout src_canonical[CVY_NODE_SRC_MAX];
    /* Out: layouts of the destinations (plain on entry). dst_fixed applies to a destination that is an assigned
     * variable or a variable's gradient. */
    cvy_layout dst[CVY_NODE_DST_MAX];
    int dst_fixed[CVY_NODE_DST_MAX]; /* in: dst[i] is given: the variable's own layout; gradients and states use the
                                        weight's. A kernel that cannot write it may overwrite dst[i]; the planner then
                                        adds a reorder after it */
    size_t scratch_bytes;            /* out: scratch memory of this call, in the arena, 64-byte aligned */
    int inplace[CVY_NODE_DST_MAX];   /* out: 1 + index of the source whose memory dst[i] may take over if that source's
                                        lifetime ends here; 0: none */
    uint64_t algorithm_id; /* out: a number for the algorithm, if a library has several for one kernel; 0: it has one */
    int writes_shadow;     /* in, at create only: see the kernel's `writes_shadow` */
    int64_t part_elems;    /* in, at create only: see the kernel's `in_parts`; 0: all elements */
    const struct cvy_kernel_def *kernel; /* in: the one that is asked */
    int tf32;                            /* in: f32 factors of products may be rounded to TF32 */
    int compiles; /* in: kernels are measured, so those may be offered that a library takes a second to compile */
} cvy_kernel_ask;

enum { CVY_SLICE_LAST = 32 };

typedef struct cvy_kernel_def {
    const char *name; /* "native.relu", "onednn.conv" */
    const char *op;   /* the operator that it runs */
    int preference;   /* higher is asked first; reference counts as 0 */
    /* Bit i: source i or destination i may be a slice of the channels of another tensor (cvy_layout_slice). An offer
     * never sees slices: they are placed after kernels are chosen, and `create` finds them in the ask's layouts. */
    unsigned slice_src, slice_dst;
    int slice_last; /* slices are also allowed in channels-last layout, in multiples of CVY_SLICE_LAST channels */
    /* Set for an update that can also write the shadow copy for the next step. If the ask says so at create, it writes
     * what it assigns to dst[0] a second time, rounded to bf16, element by element in memory order, to an additional
     * destination after the node's destinations. */
    int writes_shadow;
    /* Set for an update that works element by element on one flat range. If the ask says so at create, it works on
     * part_elems elements from the pointers that run gets. */
    int in_parts;
    /* Set for a kernel on a GPU that changes none of its destinations while updates are held (cvy_gpu_hold in gpu.h).
     * If all kernels that change variables do so, the host puts an update into the lane before it knows whether the
     * gradients are finite. */
    int can_hold;
    int winograd;      /* it computes a convolution by Winograd's algorithm; "direct" excludes it */
    int bf16_products; /* ... and multiplies its transforms in bf16, whose rounding they amplify */
    int rounds;        /* its f32 results are rounded to bf16; train.precise excludes it */
    /* Set if the order of a sum depends on the number of threads, whatever the ask's `deterministic` says. */
    int thread_dependent;
    /* Returns CVY_OK for an offer, with the ask's out fields set; or CVY_NOT_APPLICABLE if it declines, with the reason
     * set by cvy_error_set (a sentence for `convoy plan --explain`). */
    cvy_status (*offer)(cvy_kernel_ask *ask);
    /* Builds what run needs, once, with the final layouts in ask. The state may stay NULL (the node's options are
     * available through ask at create only). */
    cvy_status (*create)(const cvy_kernel_ask *ask, void **state_out);
    /* src and dst have as many entries as the node, in its order, NULL if the node has NULL there. It allocates
     * nothing. */
    cvy_status (*run)(void *state, void *const *src, void *const *dst, void *scratch);
    void (*destroy)(void *state);
    int variant; /* for kernels with the same functions: which of their algorithms this one is */
} cvy_kernel_def;

#define CVY_KERNEL_DEFINE(id) const cvy_kernel_def cvy_kernel_##id##_def /* id: native_relu, onednn_conv */

const cvy_kernel_def *const *cvy_kernel_table(int *count_out);
const cvy_kernel_def *cvy_kernel_find(const char *name);

/* These convert n elements, by so many threads, for kernels that compute with bf16 values in f32. Rounding is that of
 * base_bf16.h. */
void cvy_bf16_widen(int threads, const uint16_t *from, int64_t n, float *to);
void cvy_bf16_narrow(int threads, const float *from, int64_t n, uint16_t *to);

/* A number of f32 in scratch memory, rounded up to whole lines of 64 bytes. */
static inline int64_t cvy_whole_lines(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

/* The memory format of a tensor on one side of a reorder. */
typedef struct cvy_memory_format {
    cvy_dtype dtype;
    cvy_layout layout;
} cvy_memory_format;

/* Reorders between two layouts of one shape, and between f32 and bf16. It is the only kernel without an operator. It
 * uses oneDNN if that is built in, else plain loops. */
typedef struct cvy_reorder cvy_reorder;
/* Of tensors in a space (NULL: the host's memory), which it works on by the lane COMPUTE. */
cvy_status cvy_reorder_create(const cvy_space *space, const cvy_shape *shape, const cvy_memory_format *from,
                              const cvy_memory_format *to, int threads, cvy_reorder **out);
cvy_status cvy_reorder_run(cvy_reorder *r, const void *src, void *dst); /* padding of dst becomes zero */
void cvy_reorder_destroy(cvy_reorder **r);

#endif
