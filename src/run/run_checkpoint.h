/*
 * run_checkpoint.h: checkpoint sets: all of a run's state in a folder that is there whole or not at all, and that is believed only after its hashes agree.
 *
 * In the step: after a step's update, on rank 0 (data-parallel state is equal on all ranks); before step 0 of a resumed run, of `test` and `predict`.
 * The files are described in docs/checkpoint.md.
 */
#ifndef CVY_RUN_CHECKPOINT_H
#define CVY_RUN_CHECKPOINT_H

#include "format/format.h"

typedef struct cvy_checkpoint {        /* a set that was found sound; zero-initialise, end with cvy_checkpoint_close */
    cvy_pool *pool;                    /* all below lives here */
    const char *path;                  /* "runs/a-001/checkpoints/step-00001234" */
    const char *weights_path;          /* its weights.safetensors */
    int64_t step;
    const char *state_json;            /* as given to cvy_checkpoint_save */
    const cvy_tree *state;             /* the same, parsed */
    const char *plan_json;             /* NULL if the set has none */
    const char **message;              /* why newer sets were passed over, a line each: for the caller's log */
    int nmessage;
} cvy_checkpoint;

/**
 * cvy_checkpoint_save - write the set of one step
 * @dir: the folder of sets, made if it is not there; one writer at a time
 * @step: steps done; names the set
 * @vars: roles WEIGHT and STATISTIC go to weights.safetensors, STATE to state.safetensors, all in plain layout
 * @pending: sums of gradients that are not applied yet, to pending.safetensors; NULL: none are
 * @state_json: a JSON object: step, samples, epoch, place in the data, schedule, best metric, seed, ... (whatever the caller needs to go on)
 * @plan_json: the plan's choices, or NULL
 * @keep: number of newest sets that stay; at least two sound ones always do; 0 keeps all
 * @protect: name ("step-00001234") of one more set that stays, or NULL; the one of cvy_checkpoint_mark_best() stays in any case
 *
 * Written aside, each file fsynced, the manifest last, then the folder is renamed, its parent fsynced, `latest` replaced, and only then older
 * sets are deleted. A set of the same step is replaced. Collective: no; call it on rank 0.
 * Errors: CVY_E_IO (path and errno named; what was written aside is removed, sets that were there are untouched), CVY_E_MEMORY. A fault that
 * begins with "step-N is saved, but" came after the set was complete.
 */
cvy_status cvy_checkpoint_save(const char *dir, int64_t step, const cvy_vars *vars, const cvy_vars *pending, const char *state_json, const char *plan_json,
                               int keep, const char *protect);

/**
 * cvy_checkpoint_find - find and verify a set
 * @dir: the folder of sets
 * @which: NULL: the newest sound one (damaged ones are passed over, see out->message); "best"; or a name, "step-1234" or "step-00001234"
 * @out: the set; its messages are filled in on a fault too, so close it in any case
 *
 * Every file's size and hash is checked. Errors: CVY_END where there is no set at all (with "best": no best one); CVY_E_FORMAT where none is sound,
 * or the named one is not; CVY_E_IO.
 */
cvy_status cvy_checkpoint_find(const char *dir, const char *which, cvy_checkpoint *out);
void cvy_checkpoint_close(cvy_checkpoint *c);

/* Fills vars (allocated) from the set, bit by bit. Every variable must be there with its shape and dtype, else CVY_E_SHAPE or CVY_E_FORMAT names it and
 * nothing is changed. with_state: optimiser states too, and then the set may hold nothing that vars lacks. */
cvy_status cvy_checkpoint_load(const cvy_checkpoint *c, cvy_vars *vars, int with_state);
/* The same of the pending sums, which must be just these. */
cvy_status cvy_checkpoint_load_pending(const cvy_checkpoint *c, cvy_vars *pending);

/* Fills weights and statistics from any safetensors file, real dtypes converted. partial: takes what agrees in name and shape (at least one), else all must.
 * report (may be NULL) gets a line for each variable that was not found, was found with another shape, and each tensor that was not used. */
cvy_status cvy_weights_load(const char *path, cvy_vars *vars, int partial, cvy_text *report);

/* Writes weights and statistics alone (for exchange with other programs). */
cvy_status cvy_weights_save(const char *path, const cvy_vars *vars);

/* Notes a saved step as the best; tests and predictions take it, and it is kept. CVY_E_ARGUMENT if there is no such set. */
cvy_status cvy_checkpoint_mark_best(const char *dir, int64_t step);

#endif
