/*
 * checkpoint_saver.h: background checkpoints. Each writer copies its part of the tensors and writes the copy while
 * training continues.
 *
 * cvy_saver_begin() is called when a save is due and takes as long as the copy. Before each step the ranks exchange
 * whether any of them is still writing (cvy_saver_is_busy, in the reduction that controls the run). When no rank is,
 * all call cvy_saver_advance(), and rank 0 commits the set, again in the background. Only the training thread calls
 * MPI.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CHECKPOINT_SAVER_H
#define CVY_CHECKPOINT_SAVER_H

#include "checkpoint/checkpoint.h"
#include "context/context.h"

typedef struct cvy_saver cvy_saver;

typedef struct cvy_saved { /* describes the save that has ended */
    cvy_status status;     /* the same on all ranks, as is the error text */
    int64_t step, bytes;
    int writers, copied;     /* number of ranks that wrote; 1 if all of them wrote from a copy, in the background */
    double stall_s, total_s; /* time for which training was blocked; time until the set was complete */
} cvy_saved;

cvy_status cvy_saver_create(cvy_context *context, cvy_saver **out);
/* Joins this rank's thread. A save in progress is not committed. */
void cvy_saver_destroy(cvy_saver **saver);
/* Number of parts in which a set of this size is written: at most one on each node, and none too small for its own
 * file.
 */
int cvy_saver_parts(const cvy_saver *saver, int64_t bytes);
/* Begins a save; no other may be in progress (cvy_saver_finish). opts: those of rank 0 are used, except `vars`, `part`
 * and `nparts`. split: every rank has all of `vars`, so that nodes may share the work; otherwise rank 0 writes.
 * background: 0 writes before it returns. Collective. */
cvy_status cvy_saver_begin(cvy_saver *saver, const cvy_save_opts *opts, int split, int background);
/* Whether a save is in progress (the same on all ranks); whether this rank is still writing. */
int cvy_saver_is_on(const cvy_saver *saver);
int cvy_saver_is_busy(const cvy_saver *saver);
/* Starts the next stage; no rank may be busy. *ended_out: the save has ended, and *saved_out describes it. Collective.
 * Errors: CVY_E_COMM. */
cvy_status cvy_saver_advance(cvy_saver *saver, int *ended_out, cvy_saved *saved_out);
/* Waits for the save in progress. Collective. */
cvy_status cvy_saver_finish(cvy_saver *saver, int *ended_out, cvy_saved *saved_out);

#endif
