/*
 * kernel.h: what a kernel is: an offer to run one operator on given shapes, dtypes and layouts, made at planning time,
 * and a function that runs it.
 *
 * The planner goes through a graph in order. For each node it asks the kernels of the operator in the order of their
 * preference; the first that offers is taken (measured times or a plan file may name another). An offer fixes the
 * layout of every source and destination; where a source lies otherwise, the planner puts a reorder before it. Without
 * an offer the operator's plain reference kernel runs, on plain layouts.
 *
 * An offer rests on nothing but the operator, its options, shapes, dtypes, the batch and the layouts in the ask: nodes
 * that are equal in these share one, and are timed once.
 */
#ifndef CVY_KERNEL_H
#define CVY_KERNEL_H

#include "base/base_parallel.h"
#include "graph/graph_op.h"

typedef struct cvy_kernel_ask {
    const cvy_node *node;
    int threads;
    /* In: results may not depend on `threads`, to the bit: sums are cut in a way of their own, or not at all. Kernels
     * that cannot do so say `thread_dependent` and are made for one thread then. */
    int deterministic;
    /* In: the layout in which each source lies now (a variable whose layout is not fixed yet: src_free[i] = 1). The
     * offer overwrites it with what it wants. */
    cvy_layout src[CVY_NODE_SRC_MAX];
    int src_free[CVY_NODE_SRC_MAX];
    /* In: the value's dtype. A kernel that wants bf16 of an f32 variable says so; then src[i] is the layout of that
     * copy, made once a step, and src_canonical[i] the one in which a free variable itself shall lie. */
    cvy_dtype src_dtype[CVY_NODE_SRC_MAX];
    cvy_layout src_canonical[CVY_NODE_SRC_MAX];
    /* Out: layouts of the destinations (plain on entry). For a destination that is an assigned variable or a variable's
     * gradient see dst_fixed. */
    cvy_layout dst[CVY_NODE_DST_MAX];
    int dst_fixed[CVY_NODE_DST_MAX]; /* in: dst[i] is given (the variable's own layout: gradients and states use the
                                        weight's); a kernel that cannot write it may overwrite dst[i], the planner then
                                        reorders behind it */
    size_t scratch_bytes;            /* out: of this call's scratch, 64-byte aligned, arena memory */
    int inplace[CVY_NODE_DST_MAX]; /* out: 1 + index of the source whose memory dst[i] may take over if that source ends
                                      here; 0: none */
    uint64_t way; /* out: a number for the algorithm, where a library has several behind one kernel; 0: it has one */
    int rounds;   /* in, at create only: see the kernel's `rounds` */
    int64_t part_elems; /* in, at create only: see the kernel's `in_parts`; 0: all of it */
} cvy_kernel_ask;

enum { CVY_SLICE_LAST = 32 };

typedef struct cvy_kernel_def {
    const char *name; /* "native.relu", "onednn.conv" */
    const char *op;   /* the operator that it runs */
    int preference;   /* higher is asked first; reference counts as 0 */
    /* Bit i: source i, destination i may lie as a slice of the channels of another tensor (cvy_layout_slice). An offer
     * never sees that: it is settled behind the choice of kernels, and `create` finds it in the ask's layouts. */
    unsigned slice_src, slice_dst;
    int slice_last; /* so with channels last too, where positions lie further apart: in whole CVY_SLICE_LAST of channels
                     */
    /* Set for an update that, where the ask says so at create, writes what it assigns to dst[0] once more behind the
     * node's destinations, rounded to bf16, element for element as they lie: the copy that the next step reads. */
    int rounds;
    /* Set for an update that works element by element on one flat range: where the ask says so at create, on part_elems
     * elements behind the pointers that run is given. */
    int in_parts;
    int winograd; /* it computes a convolution by Winograd's algorithm: kernels "direct" leaves it out */
    /* Set where the order of a sum depends on the number of threads, whatever the ask's `deterministic` says. */
    int thread_dependent;
    /* CVY_OK: offered, ask's out fields set. CVY_NOT_APPLICABLE: declined, the reason set by cvy_error_set (a sentence
     * for `convoy plan --explain`). */
    cvy_status (*offer)(cvy_kernel_ask *ask);
    /* Builds what run needs, once, with the final layouts in ask; state may stay NULL (then run gets the node's options
     * through ask at create only). */
    cvy_status (*create)(const cvy_kernel_ask *ask, void **state_out);
    /* src, dst in the node's order, NULL where the node has NULL. Allocates nothing. */
    cvy_status (*run)(void *state, void *const *src, void *const *dst, void *scratch);
    void (*destroy)(void *state);
} cvy_kernel_def;

#define CVY_KERNEL_DEFINE(id) const cvy_kernel_def cvy_kernel_##id##_def /* id: native_relu, onednn_conv */

const cvy_kernel_def *const *cvy_kernel_table(int *count_out);
const cvy_kernel_def *cvy_kernel_find(const char *name);

/* CVY_E_UNSUPPORTED, with what is missing and what to do, where this CPU, or what the build may use of it, has no fast
 * arithmetic in bf16. */
cvy_status cvy_kernel_check_bf16(void);

/* How one tensor lies on each side of a reorder. */
typedef struct cvy_memory_format {
    cvy_dtype dtype;
    cvy_layout layout;
} cvy_memory_format;

/* Reorders between two layouts of one shape, and between f32 and bf16: the one kernel that belongs to no operator. Uses
 * oneDNN where built in, else plain loops. */
typedef struct cvy_reorder cvy_reorder;
cvy_status cvy_reorder_create(const cvy_shape *shape, const cvy_memory_format *from, const cvy_memory_format *to,
                              int threads, cvy_reorder **out);
void cvy_reorder_run(cvy_reorder *r, const void *src, void *dst); /* padding of dst becomes zero */
void cvy_reorder_destroy(cvy_reorder **r);

#endif
