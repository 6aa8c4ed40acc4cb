/*
 * run_saver.h: checkpoints in the background, by all ranks together: each writer copies its part of the tensors and writes it while training goes on.
 *
 * In the step: cvy_saver_begin() where a save is due, which takes as long as the copy. Ranks tell each other before each step whether any still writes
 * (cvy_saver_is_busy, through a reduction that is there in any case); when none does, all call cvy_saver_advance(), and rank 0 commits the set, in the
 * background too. MPI is called only from the thread that trains.
 */
#ifndef CVY_RUN_SAVER_H
#define CVY_RUN_SAVER_H

#include "run/run_checkpoint.h"
#include "run/run_context.h"

typedef struct cvy_saver cvy_saver;

typedef struct cvy_saved {             /* of the save that has come to its end */
    cvy_status status;                 /* the same on all ranks, as is the record of the fault */
    int64_t step, bytes;
    int writers, copied;               /* ranks that wrote; whether all of them did so from a copy, in the background */
    double stall_s, total_s;           /* for which training stood still; until the set was safe */
} cvy_saved;

cvy_status cvy_saver_create(cvy_context *context, cvy_saver **out);
/* Joins this rank's thread; a save that is under way is not committed. */
void cvy_saver_destroy(cvy_saver **saver);
/* Of how many parts a set of so many bytes is written: at most one on each node, none too small for a file of its own. */
int cvy_saver_parts(const cvy_saver *saver, int64_t bytes);
/* Begins a save; none may be under way (cvy_saver_finish). opts: of rank 0, but for `vars`, `part` and `nparts`. split: whether every rank has all of `vars`,
 * so that nodes may share the work; else rank 0 writes. background: 0 writes before it returns. Collective. */
cvy_status cvy_saver_begin(cvy_saver *saver, const cvy_save_opts *opts, int split, int background);
/* Whether a save is under way, on all ranks alike; whether this rank still works at it. */
int cvy_saver_is_on(const cvy_saver *saver);
int cvy_saver_is_busy(const cvy_saver *saver);
/* When no rank is busy: the next stage. *ended_out: the save has come to its end, as *saved_out says. Collective. Errors: CVY_E_COMM. */
cvy_status cvy_saver_advance(cvy_saver *saver, int *ended_out, cvy_saved *saved_out);
/* Waits for the save that is under way. Collective. */
cvy_status cvy_saver_finish(cvy_saver *saver, int *ended_out, cvy_saved *saved_out);

#endif
