/*
 * checkpoint.h: checkpoint sets. A set is a folder with the whole state of a run. It appears whole or not at all, and
 * it is used only after its hashes have been checked.
 *
 * Sets are written after a step's update, by the ranks that write (checkpoint_saver.h; data-parallel state is equal on
 * all ranks). They are read before step 0 of a resumed run, of `test` and of `predict`. The files are described in
 * docs/internals/checkpoint.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CHECKPOINT_H
#define CVY_CHECKPOINT_H

#include "base/text/base_text.h"
#include "checkpoint/checkpoint_manifest.h"
#include "comm/comm_grid.h"
#include "format/format.h"

/* The key, in the metadata of a file of weights, of the description of the network (network/network_spec.h). */
#define CVY_META_NETWORK "convoy.network"

typedef struct cvy_checkpoint {               /* a valid set; zero-initialise it, end it with cvy_checkpoint_close */
    cvy_pool *pool;                           /* owns everything below */
    const char *path;                         /* "runs/a-001/checkpoints/step-00001234" */
    const char **weights_path, **states_path; /* its weights*.safetensors and state*.safetensors */
    int nweights, nstates;
    int64_t step;
    const char *state_json; /* as given to cvy_checkpoint_save */
    const cvy_tree *state;  /* the same, parsed */
    const char *plan_json;  /* NULL if the set has none */
    const char **message;   /* one line for each newer set that was skipped, with the reason: for the caller's log */
    int nmessage;
} cvy_checkpoint;

/* The input of a save. Texts and names are copied. */
typedef struct cvy_save_opts {
    const char *dir;      /* folder of the sets, created if it is missing; used by one run at a time */
    int64_t step;         /* steps done; names the set */
    const cvy_vars *vars; /* roles WEIGHT and STATISTIC go to weights*.safetensors, STATE to state*.safetensors, all in
                             plain layout */
    const cvy_vars
        *pending; /* reduced gradients that are not applied yet, to pending.safetensors; NULL: there are none */
    const char *state_json; /* a JSON object: step, samples, position in the data, best metric, seed, and whatever else
                               the caller needs to continue */
    const char *plan_json;  /* the plan's choices, or NULL */
    const char *network;    /* for the metadata of the weights, under CVY_META_NETWORK: what else is needed to use them,
                               or NULL */
    int keep;               /* number of newest sets to keep; at least two valid ones are always kept; 0 keeps all */
    const char *protect;    /* name ("step-00001234") of one more set to keep, or NULL; the best set is always kept */
    int must_be_finite;     /* the save fails if any number is not finite */
    int is_best;            /* it is recorded as the best set after it is complete */
    int part, nparts;       /* index of this writer and number of writers; the tensors are split over them */
    const cvy_grid *grid;   /* NULL, or a pipeline: each stage writes the variables that it holds */
} cvy_save_opts;

/* A save in progress. The calls below are made in this order. Errors: CVY_E_IO (path and errno named), CVY_E_MEMORY,
 * CVY_E_NUMERIC (a number is not finite). */
typedef struct cvy_save cvy_save;
enum { CVY_SAVE_FILES = 5 }; /* maximum that one part writes */
cvy_status cvy_save_create(const cvy_save_opts *opts, cvy_save **out);
/* Memory for the copies. It grows when it is too small; its owner frees it with cvy_mem_free_pages. It is kept from
 * save to save, because the first touch of new pages costs more than the copy. */
typedef struct cvy_save_room {
    void *data;
    size_t bytes;
} cvy_save_room;
/* Copies the variables, so that they may change while they are written. Without this call they must not change until
 * the write is done. The room must stay until then. CVY_E_MEMORY leaves the save unchanged. */
cvy_status cvy_save_copy(cvy_save *save, cvy_save_room *room);
cvy_status cvy_save_make_folder(const cvy_save *save); /* part 0, before any part writes */
cvy_status cvy_save_write(
    cvy_save *save); /* each part, in any thread: writes and syncs its files under temporary names */
int cvy_save_files(const cvy_save *save, cvy_manifest_file file[CVY_SAVE_FILES]); /* returns their number */
/* Called by part 0 after all parts are written, with the files of all parts. It writes the manifest, renames the
 * folder, updates `latest`, and only then deletes older sets. A set of the same step is replaced. An error that begins
 * with "step-N is saved, but" occurred after the set was complete; after any other error the set is removed. */
cvy_status cvy_save_commit(cvy_save *save, const cvy_manifest_file *file, int count);
/* Called by part 0 instead of commit: removes what was written, and adds that to the error text. */
cvy_status cvy_save_give_up(cvy_save *save, cvy_status status);
void cvy_save_destroy(cvy_save **save);
/* Size of a set's tensors in bytes. */
int64_t cvy_save_bytes(const cvy_vars *vars);

/* All of the above in one call, with one writer. */
cvy_status cvy_checkpoint_save(const cvy_save_opts *opts);

/**
 * cvy_checkpoint_find - find and verify a set
 * @dir: the folder of sets
 * @which: NULL: the newest valid one (damaged ones are skipped, see out->message); "best"; or a name, "step-1234"
 * or "step-00001234"
 * @out: the set; its messages are filled in on errors too, so close it in any case
 *
 * The size and hash of every file are checked. Errors: CVY_END if there is no set at all (with "best": no best one);
 * CVY_E_FORMAT if no set, or not the named one, is valid; CVY_E_IO.
 */
cvy_status cvy_checkpoint_find(const char *dir, const char *which, cvy_checkpoint *out);
/* Finds the best set, or the newest valid one if none is noted as the best. If the best one is damaged, that is an
 * error. Otherwise as cvy_checkpoint_find(). */
cvy_status cvy_checkpoint_find_best(const char *dir, cvy_checkpoint *out);
void cvy_checkpoint_close(cvy_checkpoint *c);
/* Sends what rank 0 has found to all ranks. Only rank 0 opens files. Collective; an error of rank 0 is returned on all
 * ranks. */
cvy_status cvy_checkpoint_share(cvy_comm *comm, cvy_status found, cvy_checkpoint *c);
/* Copies a text of rank 0, which may be NULL, into the pool of every other rank. Collective. */
cvy_status cvy_checkpoint_share_text(cvy_comm *comm, cvy_pool *pool, const char **text);

/* Fills vars (allocated) from the set, bit for bit. Rank 0 of comm reads and broadcasts; with comm NULL this process
 * reads alone. Collective, with the same status on all ranks. The set must have every variable with its shape and
 * dtype; otherwise CVY_E_SHAPE or CVY_E_FORMAT names the variable and nothing is changed. with_state: optimiser states
 * are read too, and then the set must not hold a tensor that vars lacks. */
cvy_status cvy_checkpoint_load(const cvy_checkpoint *c, cvy_comm *comm, cvy_vars *vars, int with_state);
/* The same for the pending gradients, which must match exactly. With `of_grid` they are those of a rank's
 * place in a grid, the set may hold others, and comm has the ranks of the data axis, of which the first one reads. */
cvy_status cvy_checkpoint_load_pending(const cvy_checkpoint *c, cvy_comm *comm, cvy_vars *pending, int of_grid);

/* Fills variables with values in memory, f32 or f64, by name. Values of variables that are not there are left out.
 * CVY_E_SHAPE: one has another shape. */
cvy_status cvy_weights_set(const cvy_tensor_entry *entry, int count, const cvy_vars *vars);
/* Fills all weights and statistics from any safetensors file; real dtypes are converted. The file may have more
 * tensors. CVY_E_SHAPE or CVY_E_FORMAT: one is missing or differs; then nothing is changed. */
cvy_status cvy_weights_load(const char *path, cvy_vars *vars);

/* Writes weights and statistics alone (for exchange with other programs). */
cvy_status cvy_weights_save(const char *path, const cvy_vars *vars);

/* Records a saved step as the best. `test` and `predict` then use it, and it is kept. CVY_E_ARGUMENT if there is no
 * such set. */
cvy_status cvy_checkpoint_mark_best(const char *dir, int64_t step);

#endif
