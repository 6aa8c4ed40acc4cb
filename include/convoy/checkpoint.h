/*
 * convoy/checkpoint.h: crash-safe checkpoints of a program with its own training loop.
 *
 *     status = cvy_checkpoint_read(program, "checkpoints", NULL, &found);    // CVY_END: there is none, a new run
 *     for (step = status == CVY_OK ? found.step : 0; step < last; step++) {
 *         ...
 *         opts.step = step + 1;
 *         cvy_checkpoint_write(program, &opts);                               // now and then
 *     }
 *
 * A checkpoint is a folder, step-00001234, which exists as a whole or not at all, whatever happens while it is written.
 * It holds weights, running statistics and the optimiser's state of the program, the counts of its tasks, and a text of
 * the caller. It is used only if the hashes of all its files agree. It does not depend on the numbers of ranks and of
 * stages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_CHECKPOINT_H
#define CONVOY_CHECKPOINT_H

#include <convoy/program.h>

CVY_BEGIN_DECLS

/** What to save; zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_checkpoint_opts {
    size_t size;
    /** The folder of the checkpoints, created if it does not exist; required. Only one run at a time may write into it.
     */
    const char *folder;
    /** Training steps done: names the checkpoint. One of the same step is replaced. */
    int64_t step;
    /** The caller's own state, any text without a zero byte, such as JSON; NULL: none. Rank 0's is saved. */
    const char *state;
    /** Number of newest checkpoints to keep; 0: 2. The two newest valid ones and the best one are always kept. */
    int keep;
    /** 1: it is recorded as the best one, which cvy_checkpoint_read() finds by "best". */
    int is_best;
} cvy_checkpoint_opts;
CVY_SIZED_STRUCT(cvy_checkpoint_opts)

/** What was read. Set size; the library fills the rest. */
typedef struct cvy_checkpoint_about {
    size_t size;
    /** Training steps done. */
    int64_t step;
    /** The caller's own state, or NULL; on all ranks. Released by cvy_text_release(). */
    char *state;
    /** A line for each newer checkpoint that is damaged and was skipped, or NULL. Released by cvy_text_release(). */
    char *notes;
} cvy_checkpoint_about;
CVY_SIZED_STRUCT(cvy_checkpoint_about)

/**
 * cvy_checkpoint_write - save a program's variables and the caller's state
 * @program: planned; it is flushed first
 *
 * Returns when the checkpoint is safe on the disk; rank 0 writes, and in a pipeline the first rank of each stage writes
 * the variables of its stage. Older checkpoints are deleted only then. Collective: yes (all ranks return the same
 * status). Errors: CVY_E_ARGUMENT, CVY_E_IO, CVY_E_MEMORY, CVY_E_NUMERIC (a weight is not finite), CVY_E_COMM; a fault
 * leaves the earlier checkpoints as they were.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_checkpoint_write(cvy_program *program, const cvy_checkpoint_opts *opts);

/**
 * cvy_checkpoint_read - fill a program's variables from a checkpoint
 * @program: planned, with the same variables and tasks as the one that was saved
 * @which: NULL: the newest valid one; "best"; or a name, "step-1234"
 * @about_out: its size is the caller's, the rest is written only on success
 *
 * Rank 0 reads and sends the data to all ranks. Collective: yes (all ranks return the same status). CVY_END: the
 * folder holds no checkpoint, or none is recorded as the best. Errors: CVY_E_ARGUMENT, CVY_E_FORMAT (none is valid, or
 * the named one is not), CVY_E_SHAPE (a variable differs), CVY_E_IO, CVY_E_MEMORY, CVY_E_COMM; a fault leaves the
 * program as it was.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_checkpoint_read(cvy_program *program, const char *folder, const char *which,
                                                      cvy_checkpoint_about *about_out);

CVY_END_DECLS
#endif
