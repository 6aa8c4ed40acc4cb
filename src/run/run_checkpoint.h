/*
 * run_checkpoint.h: checkpoint sets: all of a run's state in a folder that is there whole or not at all, and that is believed only after its hashes agree.
 *
 * In the step: behind a step's update, on the ranks that write (run_saver.h; data-parallel state is equal on all ranks); before step 0 of a resumed run,
 * of `test` and `predict`.
 * The files are described in docs/checkpoint.md.
 */
#ifndef CVY_RUN_CHECKPOINT_H
#define CVY_RUN_CHECKPOINT_H

#include "comm/comm.h"
#include "format/format.h"
#include "run/run_manifest.h"

typedef struct cvy_checkpoint {        /* a set that was found sound; zero-initialise, end with cvy_checkpoint_close */
    cvy_pool *pool;                    /* all below lives here */
    const char *path;                  /* "runs/a-001/checkpoints/step-00001234" */
    const char **weights_path, **states_path;  /* its weights*.safetensors and state*.safetensors */
    int nweights, nstates;
    int64_t step;
    const char *state_json;            /* as given to cvy_checkpoint_save */
    const cvy_tree *state;             /* the same, parsed */
    const char *plan_json;             /* NULL if the set has none */
    const char **message;              /* why newer sets were passed over, a line each: for the caller's log */
    int nmessage;
} cvy_checkpoint;

/* What a save is given; texts and names are taken over. */
typedef struct cvy_save_opts {
    const char *dir;                   /* of sets, made if it is not there; one run at a time */
    int64_t step;                      /* steps done; names the set */
    const cvy_vars *vars;              /* roles WEIGHT and STATISTIC go to weights*.safetensors, STATE to state*.safetensors, all in plain layout */
    const cvy_vars *pending;           /* sums of gradients that are not applied yet, to pending.safetensors; NULL: none are */
    const char *state_json;            /* a JSON object: step, samples, place in the data, best metric, seed, ... (whatever the caller needs to go on) */
    const char *plan_json;             /* the plan's choices, or NULL */
    int keep;                          /* newest sets that stay; at least two sound ones always do; 0 keeps all */
    const char *protect;               /* name ("step-00001234") of one more set that stays, or NULL; the best one stays in any case */
    int must_be_finite;                /* a number that is not makes the save fail */
    int is_best;                       /* noted as the best once it is there */
    int part, nparts;                  /* which of the writers this is, the tensors are split over them */
} cvy_save_opts;

/* A save at work, in the order of its calls. Errors: CVY_E_IO (path and errno named), CVY_E_MEMORY, CVY_E_NUMERIC (a number is not finite). */
typedef struct cvy_save cvy_save;
enum { CVY_SAVE_FILES = 5 };           /* that one part writes at most */
cvy_status cvy_save_create(const cvy_save_opts *opts, cvy_save **out);
/* Memory for copies, grown where it is short; its owner frees it by cvy_mem_free_pages. Pages that are touched for the first time cost more than the copy. */
typedef struct cvy_save_room { void *data; size_t bytes; } cvy_save_room;
/* What lies in the variables now is what will be written, whatever becomes of them; without it they must stay as they are until the write is done. The room
 * must stay until then. CVY_E_MEMORY leaves the save as it was. */
cvy_status cvy_save_copy(cvy_save *save, cvy_save_room *room);
cvy_status cvy_save_make_folder(const cvy_save *save);         /* part 0, before any part writes */
cvy_status cvy_save_write(cvy_save *save);                     /* each part, in any thread: its files, aside and synced */
int cvy_save_files(const cvy_save *save, cvy_manifest_file file[CVY_SAVE_FILES]);      /* how many they are */
/* Part 0, when all parts are written, with the files of all: manifest, rename, `latest`, and only then older sets are deleted. A set of the same step is
 * replaced. A fault that begins with "step-N is saved, but" came after the set was complete; any other leaves nothing of it behind. */
cvy_status cvy_save_commit(cvy_save *save, const cvy_manifest_file *file, int count);
/* Part 0, instead: removes what was written, and says so in the fault's text. */
cvy_status cvy_save_give_up(cvy_save *save, cvy_status status);
void cvy_save_destroy(cvy_save **save);
/* Bytes of a set's tensors. */
int64_t cvy_save_bytes(const cvy_vars *vars);

/* All of it at once, by one writer. */
cvy_status cvy_checkpoint_save(const cvy_save_opts *opts);

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
/* What rank 0 has found, on all ranks but for its files, which only rank 0 opens. Collective; rank 0's fault is one of all. */
cvy_status cvy_checkpoint_share(cvy_comm *comm, cvy_status found, cvy_checkpoint *c);

/* Fills vars (allocated) from the set, bit by bit; rank 0 of comm reads, all get it; NULL: this process alone. Collective, with the same status on all ranks. Every variable must be there with its shape and dtype, else CVY_E_SHAPE or CVY_E_FORMAT names it and
 * nothing is changed. with_state: optimiser states too, and then the set may hold nothing that vars lacks. */
cvy_status cvy_checkpoint_load(const cvy_checkpoint *c, cvy_comm *comm, cvy_vars *vars, int with_state);
/* The same of the pending sums, which must be just these. */
cvy_status cvy_checkpoint_load_pending(const cvy_checkpoint *c, cvy_comm *comm, cvy_vars *pending);

/* Fills weights and statistics from any safetensors file, real dtypes converted. partial: takes what agrees in name and shape (at least one), else all must.
 * report (may be NULL) gets a line for each variable that was not found, was found with another shape, and each tensor that was not used. */
cvy_status cvy_weights_load(const char *path, cvy_vars *vars, int partial, cvy_text *report);

/* Writes weights and statistics alone (for exchange with other programs). */
cvy_status cvy_weights_save(const char *path, const cvy_vars *vars);

/* Notes a saved step as the best; tests and predictions take it, and it is kept. CVY_E_ARGUMENT if there is no such set. */
cvy_status cvy_checkpoint_mark_best(const char *dir, int64_t step);

#endif
