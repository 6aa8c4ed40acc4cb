/*
 * convoy/reducer.h: all-reduce of gradients for a program that computes its own: convoy's reductions without its
 * networks.
 *
 *     cvy_reducer_create(context, NULL, &reducer);
 *     cvy_reducer_add(reducer, "w2", 1000, CVY_DTYPE_F32, &w2);        // in the order in which backward makes them
 *     cvy_reducer_add(reducer, "w1", 5000, CVY_DTYPE_F32, &w1);
 *     cvy_reducer_ready(reducer);
 *     cvy_context_broadcast(context, weights, weights_bytes, 0);
 *
 *     ... write cvy_reducer_buffer(reducer, w2) ...                    // each step
 *     cvy_reducer_start(reducer, w2);                                  // reduced while w1 is being computed
 *     ... write cvy_reducer_buffer(reducer, w1), with a cvy_reducer_progress(reducer) now and then ...
 *     cvy_reducer_start(reducer, w1);
 *     cvy_reducer_wait(reducer, CVY_REDUCER_ALL);
 *     ... update the weights from cvy_reducer_sum(reducer, w1) and w2 ...
 *
 * The library owns the buffers, so that it can reduce in place, in memory that the ranks of a node share. Each buffer
 * goes through a cycle of its own: it is written, started and waited for, and may then be written again; nothing else
 * begins or ends a step. With depth 2 there are two sets of buffers, and a buffer may be started once more before the
 * wait: the all-reduce of one step can then take the whole next step (the update is one step late), and a second wait
 * ends it.
 *
 * A reducer is used by one thread at a time. While an all-reduce is under way (started, not waited for), another
 * reducer or program of the same context refuses to run; reducers of another context are independent. A rank must not
 * block on other ranks by other means during that time, for example in MPI_Barrier: they may need its part of the
 * all-reduce. A fault of one rank in a step is not reported to the others, which may wait for it: the caller should end
 * the job, for example by MPI_Abort.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_REDUCER_H
#define CONVOY_REDUCER_H

#include <convoy/base.h>

CVY_BEGIN_DECLS

/** Buffers whose sums over all ranks are made in the background. */
typedef struct cvy_reducer cvy_reducer;

/** In place of an index: all buffers. */
enum { CVY_REDUCER_ALL = -1 };

/** Options of a reducer; zero-initialise, set size. They must be equal on all ranks. Strings are borrowed for the call.
 */
typedef struct cvy_reducer_opts {
    size_t size;
    /** Buffers are reduced together in buckets of about this many bytes; 0: chosen by the cost of an all-reduce on this
     * network. */
    int64_t bucket_bytes;
    /** Algorithm of the all-reduce: "auto" (NULL), "library" (MPI_Iallreduce), "ring", "halving" or "doubling". */
    const char *algorithm;
    /** Type of f32 buffers in messages between nodes: CVY_DTYPE_F32 (0), or CVY_DTYPE_BF16, which is half the bytes,
     * rounded. */
    cvy_dtype wire;
    /** What makes reductions progress between the caller's calls: "poll" (NULL: nothing) or "thread" (a progress
     * thread of the reducer). */
    const char *progress;
    /** 1: ranks of a node reduce by messages, as between nodes, and not in shared memory. */
    int no_node;
    /** 1: sums are divided by the number of ranks. */
    int average;
    /** Sums are also multiplied by this; 0: 1. Both `average` and `factor` cost a pass over memory, which a factor in
     * the learning rate does not. */
    double factor;
    /** Sets of buffers, at most 16; 0: 1. */
    int depth;
} cvy_reducer_opts;
CVY_SIZED_STRUCT(cvy_reducer_opts)

/**
 * cvy_reducer_create - make a reducer without buffers
 * @context: must outlive the reducer
 * @opts: NULL for the defaults
 * @reducer_out: the reducer; the caller destroys it
 *
 * Collective: no. Errors: CVY_E_ARGUMENT (size), CVY_E_CONFIG, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_create(cvy_context *context, const cvy_reducer_opts *opts,
                                                     cvy_reducer **reducer_out);
/** Destroys the reducer with its buffers and sets the pointer to NULL; NULL is accepted. Every reduction that was
 * started must have been waited for, unless the job ends. Collective: no. */
CVY_API void cvy_reducer_destroy(cvy_reducer **reducer);

/**
 * cvy_reducer_add - register a buffer, before cvy_reducer_ready()
 * @name: for messages; unique; copied
 * @count: number of elements, at least 1
 * @dtype: CVY_DTYPE_F32 or CVY_DTYPE_F64
 * @index_out: the buffer's number, for the calls below: 0, 1, ...
 *
 * Make the same calls on all ranks, in the order in which the gradients will be complete: reductions begin in this
 * order. Neighbours of one dtype share buckets. Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_add(cvy_reducer *reducer, const char *name, int64_t count,
                                                  cvy_dtype dtype, int *index_out);

/**
 * cvy_reducer_ready - lay out and share the memory of all buffers, fill it with zeros, and prepare the reductions
 *
 * Called once, after all buffers are added. No later call allocates. With algorithm "auto" and several nodes (or
 * no_node) the first such call of a context measures the algorithms on this network, which takes about a second.
 * Collective: yes (all ranks return the same status). Errors: CVY_E_DISAGREE (options or buffers differ between ranks:
 * the first difference is named), CVY_E_ARGUMENT, CVY_E_MEMORY, CVY_E_COMM.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_ready(cvy_reducer *reducer);

/**
 * cvy_reducer_buffer - where the next gradient of a buffer is to be written
 *
 * [count] of the buffer's dtype, aligned to 64 bytes; the reducer owns it. With depth 1 it is the same address in every
 * step; otherwise it changes with cvy_reducer_start(). Returns NULL, with an error text, before cvy_reducer_ready() and
 * while all sets of the buffer are under way. Collective: no.
 */
CVY_API void *cvy_reducer_buffer(cvy_reducer *reducer, int index);
/**
 * cvy_reducer_sum - the sum that was waited for last; it has the same bits on all ranks
 *
 * [count] of the buffer's dtype; the reducer owns it. The caller may change it; it is valid until that memory is
 * written or started again. With depth 1 it is the memory of cvy_reducer_buffer(). Returns NULL, with an error text, if
 * there is no sum or its memory is being reduced again. Collective: no.
 */
CVY_API void *cvy_reducer_sum(cvy_reducer *reducer, int index);

/**
 * cvy_reducer_start - tell that a gradient is complete: its reduction may begin
 *
 * Buffers may be started in any order, which may differ between ranks. A bucket's all-reduce begins when all its
 * buffers, and those of all buckets before it, have been started. The call also makes progress. Collective: logically.
 * Errors: CVY_E_ARGUMENT (started again before it was waited for, or a reduction of another reducer is under way;
 * nothing has changed then), CVY_E_COMM (the reducer can only be destroyed then).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_start(cvy_reducer *reducer, int index);
/** Makes progress with the reductions under way, without waiting. With progress "poll" they advance only inside calls
 * of the reducer; between two layers of a backward pass is a good place for this one. Collective: no. Errors:
 * CVY_E_ARGUMENT (before cvy_reducer_ready()), CVY_E_COMM. */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_progress(cvy_reducer *reducer);
/**
 * cvy_reducer_wait - wait for the oldest reduction of a buffer that has not been waited for
 * @index: number of the buffer; CVY_REDUCER_ALL: all buffers of the oldest step that have not been waited for
 *
 * Collective: logically. Errors: CVY_E_ARGUMENT (it, or a buffer of an earlier bucket, has not been started, so that
 * the wait would never end; nothing has changed then), CVY_E_COMM (the reducer can only be destroyed then).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_wait(cvy_reducer *reducer, int index);

/** Sends @bytes bytes at @data from rank @root to all ranks, for example the first weights. The caller owns @data.
 * Collective: yes. Errors: CVY_E_ARGUMENT, CVY_E_COMM. */
CVY_API CVY_MUST_CHECK cvy_status cvy_context_broadcast(cvy_context *context, void *data, size_t bytes, int root);

CVY_END_DECLS
#endif
