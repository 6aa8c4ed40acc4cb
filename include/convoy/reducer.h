/*
 * convoy/reducer.h: sums over ranks for a program that makes its own gradients: convoy's reductions without its networks.
 *
 *     cvy_reducer_create(context, NULL, &reducer);
 *     cvy_reducer_add(reducer, "w2", 1000, CVY_DTYPE_F32, &w2);        // in the order in which backward makes them
 *     cvy_reducer_add(reducer, "w1", 5000, CVY_DTYPE_F32, &w1);
 *     cvy_reducer_ready(reducer);
 *     cvy_context_broadcast(context, weights, weights_bytes, 0);
 *
 *     ... write cvy_reducer_buffer(reducer, w2) ...                    // each step
 *     cvy_reducer_start(reducer, w2);                                  // summed while w1 is being made
 *     ... write cvy_reducer_buffer(reducer, w1), with a cvy_reducer_progress(reducer) now and then ...
 *     cvy_reducer_start(reducer, w1);
 *     cvy_reducer_wait(reducer, CVY_REDUCER_ALL);
 *     ... update the weights from cvy_reducer_sum(reducer, w1) and w2 ...
 *
 * The library owns the buffers, so that sums are made in place, in memory that the ranks of a node share. A buffer goes round: it is written, started,
 * waited for, and may be written again; nothing else begins or ends a step. With depth 2 there are two sets of buffers, and a buffer may be started once
 * more before the wait: the sums of one step then have the whole next step to get through (the update is one step late), and a second wait ends it.
 *
 * A reducer is used by one thread at a time. While sums are under way (started, not waited for) another reducer or program of the same context refuses to
 * run; a second context has its own sums. Nor may a rank block on others by other means then, as by MPI_Barrier: they may need its part of a sum. A fault
 * of one rank in a step is not told to the others, which may wait for it: the caller should end the job, as by MPI_Abort.
 */
#ifndef CONVOY_REDUCER_H
#define CONVOY_REDUCER_H

#include <convoy/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cvy_reducer cvy_reducer;

/** In place of an index: all buffers. */
enum { CVY_REDUCER_ALL = -1 };

/** Options of a reducer; zero-initialise, set size. Equal on all ranks. */
typedef struct cvy_reducer_opts {
    size_t size;
    int64_t bucket_bytes;     /* buffers are summed together in buckets of about so many bytes, 0: by what sums cost on this network */
    const char *algorithm;    /* how they are summed: "auto" (NULL), "library" (MPI_Iallreduce), "ring", "halving", "doubling" */
    cvy_dtype wire;           /* CVY_DTYPE_BF16: f32 travels between nodes in half the bytes; CVY_DTYPE_F32 (0): as it is */
    const char *progress;     /* what moves sums between this program's calls: "poll" (NULL: nobody), "thread" (one of the reducer's own), "mpi" (the library) */
    int no_node;              /* 1: ranks of a node send messages too, and do not sum in memory that they share */
    int average;              /* 1: sums are divided by the number of ranks */
    double factor;            /* and multiplied by this, 0: 1; either costs a pass over memory that a factor in the learning rate does not */
    int depth;                /* sets of buffers, 0: 1; at most 16 */
} cvy_reducer_opts;

/** Makes a reducer without buffers on a context, which must outlive it. @opts: NULL for the defaults. Errors: CVY_E_CONFIG, CVY_E_MEMORY. Collective: no. */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_create(cvy_context *context, const cvy_reducer_opts *opts, cvy_reducer **reducer_out);
/** Destroys, with the buffers, and sets to NULL; NULL is accepted. Sums under way must have been waited for, unless the job ends. Collective: no. */
CVY_API void cvy_reducer_destroy(cvy_reducer **reducer);

/**
 * cvy_reducer_add - register a buffer, before cvy_reducer_ready()
 * @name: said in faults, unlike all others; copied
 * @count: elements, at least 1
 * @dtype: CVY_DTYPE_F32 or CVY_DTYPE_F64
 * @index_out: its number, for the calls below: 0, 1, ...
 *
 * The same calls on all ranks, in the order in which the gradients will be complete: sums begin in this order. Neighbours of one dtype share buckets.
 * Errors: CVY_E_ARGUMENT, CVY_E_MEMORY. Collective: no.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_add(cvy_reducer *reducer, const char *name, int64_t count, cvy_dtype dtype, int *index_out);

/**
 * cvy_reducer_ready - lay out and share the memory of all buffers, zeroed, and prepare their sums
 *
 * Called once, after all buffers are added. No later call allocates. With algorithm "auto" and several nodes (or no_node) the first of a context tries the
 * algorithms on the network at hand, about a second. Errors: CVY_E_DISAGREE (options or buffers differ between ranks: the first that does is named),
 * CVY_E_ARGUMENT, CVY_E_MEMORY, CVY_E_COMM. Collective: yes (all ranks return the same status).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_ready(cvy_reducer *reducer);

/**
 * cvy_reducer_buffer - where the next gradient of a buffer is to be written
 *
 * [count] of the buffer's dtype, aligned to 64 bytes, owned by the reducer. With depth 1 it is the same address in every step; else it changes with
 * cvy_reducer_start(). NULL, with a message: before cvy_reducer_ready(), or while all sets of the buffer are under way. Collective: no.
 */
CVY_API void *cvy_reducer_buffer(cvy_reducer *reducer, int index);
/**
 * cvy_reducer_sum - the sum that was waited for last, the same bits on all ranks
 *
 * Valid, and the caller's to change, until that memory is written or started again; with depth 1 it is cvy_reducer_buffer()'s. NULL, with a message: there is
 * none, or it is being summed again. Collective: no.
 */
CVY_API void *cvy_reducer_sum(cvy_reducer *reducer, int index);

/**
 * cvy_reducer_start - the gradient is complete: its sum may begin
 *
 * Buffers may be started in any order, another one on each rank. A bucket's sum begins when all its buffers, and all buckets before it, have been started.
 * Also makes progress. Errors: CVY_E_ARGUMENT (started again before it was waited for; another reducer's sums are under way; nothing has changed then),
 * CVY_E_COMM (the reducer can only be destroyed). Collective: logically.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_start(cvy_reducer *reducer, int index);
/** Pushes on the sums under way, without waiting: sums move only inside calls. Between two layers of a backward pass is a good place. Errors: CVY_E_COMM. Collective: no. */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_progress(cvy_reducer *reducer);
/**
 * cvy_reducer_wait - wait for the oldest sum of a buffer that has not been waited for
 * @index: of the buffer; CVY_REDUCER_ALL: for the whole oldest step, less what of it has been waited for already
 *
 * Errors: CVY_E_ARGUMENT (not started, or a buffer of an earlier bucket is not, so that the wait would never end; nothing has changed then), CVY_E_COMM
 * (the reducer can only be destroyed). Collective: logically.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_wait(cvy_reducer *reducer, int index);

/** Sends what rank @root has in its buffers (the next ones to be written) to all ranks. Errors: CVY_E_ARGUMENT (sums are under way), CVY_E_COMM. Collective: yes. */
CVY_API CVY_MUST_CHECK cvy_status cvy_reducer_broadcast(cvy_reducer *reducer, int root);
/** Sends @bytes of rank @root's memory to all ranks: first weights, for example. @data: the caller's on each rank. Errors: CVY_E_ARGUMENT, CVY_E_COMM. Collective: yes. */
CVY_API CVY_MUST_CHECK cvy_status cvy_context_broadcast(cvy_context *context, void *data, size_t bytes, int root);

#ifdef __cplusplus
}
#endif
#endif
