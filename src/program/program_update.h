/*
 * program_update.h: what a way to update is: how ranks bring their gradients into the weights, and when.
 *
 * One file (or folder) of src/update defines one update mode with CVY_UPDATE_DEFINE; tools/make_registry.sh finds it. A
 * program knows no mode by name: it plans by the mode's shape and calls its functions. A mode keeps its state in
 * program->update.state.
 */
#ifndef CVY_PROGRAM_UPDATE_H
#define CVY_PROGRAM_UPDATE_H

#include <convoy/program.h>

#include "base/base_option.h"
#include "comm/comm.h"
#include "graph/graph.h"
#include "program/program_task.h"

/* What planning needs to know of a mode. The program fills it for `sync`; cvy_update_def.shape changes what differs. */
typedef struct cvy_update_shape {
    cvy_comm *comm;      /* the communicator that training tasks are planned for */
    int nworkers;        /* ranks that have samples in training tasks: the first so many */
    int gradient_sets;   /* 2: each training task has two plans, on two sets of gradients */
    int deferred;        /* the update runs inside the next step: plans say when each weight is needed */
    int own_samples;     /* a training task is planned as if this rank's samples were the whole batch */
    int halves;          /* a gradient reduction is cut in two: a reduce-scatter, and an all-gather of weights */
    int state_parts;     /* of how many parts of the optimiser's state a rank keeps at most one; 1: all of it */
    int state_elsewhere; /* this rank writes no or little optimiser state: its memory is mapped, not allocated */
    int shares_memory;   /* ranks of a node may have gradients in shared memory */
    int shares_weights;  /* ... and weights too */
    int newest_first;    /* of the reductions under way, the one that started last moves first */
    int64_t shards;      /* deterministic: a step is computed in so many shards; 0: it is not */
    cvy_part own_shards; /* those of this rank, each one of its micro-batches */
} cvy_update_shape;

/* Gradients that have been made and are not applied yet. */
typedef struct cvy_pending {
    cvy_program_task *task;
    cvy_plan *plan; /* NULL: none are */
    double lr;
    int64_t number; /* of the step that made them, for the optimiser */
} cvy_pending;

/* A training run, for functions that decide what happens in which step. */
typedef struct cvy_update_run {
    int64_t steps, steps_per_epoch;
    const cvy_tree *optimizer; /* its options, or NULL */
} cvy_update_run;

/* Of a mode in which workers run steps without waiting for each other, from one synchronisation to the next. All
 * workers leave after the same step: one that all know, or the one that next_sync() tells. A worker that cannot go on
 * leaves earlier, and all synchronise soon. */
typedef struct cvy_update_async {
    int (*is_on)(const cvy_program *p);
    int (*serves)(const cvy_program *p);                                  /* this rank does not train */
    void (*request_sync)(cvy_program *p);                                 /* all synchronise soon */
    int64_t (*next_sync)(const cvy_program *p);                           /* after which step; 0: not known */
    cvy_status (*leave)(cvy_program *p, int64_t steps_done);              /* of a worker */
    cvy_status (*serve)(cvy_program *p, int64_t *steps_done);             /* until all workers have left; in and out */
    void (*staleness)(const cvy_program *p, double *mean, int64_t *most); /* steps ahead of the slowest, so far */
} cvy_update_async;

/* An option of the program that does not go with a mode. */
typedef struct cvy_update_conflict {
    const char *option; /* a field of cvy_program_opts */
    const char *value;  /* as text; NULL: of update.mode, the mode's name */
    const char *why;    /* "rounds what is sent ...: take f32" */
} cvy_update_conflict;

/* Functions that are NULL have nothing to do. */
typedef struct cvy_update_def {
    const char *name, *summary;
    int mode;                                       /* the value of cvy_update.mode; -1: another option asks for it */
    int (*asked_for)(const cvy_program_opts *opts); /* by options other than update.mode; goes before it */
    unsigned many_ranks : 1;                        /* with one rank `sync` takes its place: the results are the same */
    unsigned flush_before_forward : 1;              /* weights are not up to date between steps */
    unsigned saves_on_root : 1;                     /* save() makes variables complete on rank 0 only */
    unsigned no_replicas : 1;                       /* ranks need not have equal weights after a flush */
    unsigned any_space : 1;                         /* it goes with backends whose tensors the host cannot read */

    /* -- what a job says of it -- */
    const cvy_option *options; /* of a struct of options_size bytes; NULL: none */
    size_t options_size;
    /* Interprets texts among the options; on a fault *key_out names the one at fault. */
    cvy_status (*read_options)(void *options, const char **key_out);
    void (*fill)(const void *options, cvy_update *out); /* options of the program, besides the mode */
    int64_t (*flush_every)(const void *options);        /* steps between two flushes, at most */
    /* Whether a flush is due after step `step` (from 0), and whether the step's update is applied at once, as in sync.
     */
    int (*flush_due)(const void *options, const cvy_update_run *run, int64_t step);
    int (*in_sync)(const void *options, const cvy_update_run *run, int64_t step);
    void (*describe_run)(const void *options, const cvy_update_run *run, cvy_text *out); /* lines, or nothing */

    /* -- planning, in this order -- */
    /* The first option that does not go with the mode; 0: none. Job files are checked by it too. */
    int (*conflict)(const cvy_program_opts *opts, cvy_update_conflict *out);
    /* Why an option that is given has no effect; NULL: it has. */
    const char *(*no_effect)(const char *option, const char *value);
    cvy_status (*check)(const cvy_program *p); /* what conflict() cannot see; also for one rank */
    cvy_status (*create)(cvy_program *p);
    void (*shape)(const cvy_program *p, cvy_update_shape *shape);
    cvy_status (*check_task)(const cvy_program *p, const cvy_optimise_opts *optimise); /* of each training task */
    cvy_status (*planned)(cvy_program *p); /* plans are made; there is no memory yet */
    cvy_status (*prepare)(cvy_program *p); /* the arena is there; plans are not bound yet */
    cvy_status (*connect)(cvy_program *p); /* plans are bound, variables have memory. Collective */

    /* -- running -- */
    cvy_status (*step)(cvy_program *p, cvy_program_task *task, double lr); /* of a training task */
    cvy_status (*forward)(cvy_program *p, cvy_program_task *task);         /* of others; NULL: executes the plan */
    const double *(*loss)(const cvy_program *p, const cvy_program_task *task, int loss); /* over all ranks; NULL:
                                                                                          * the plan's */
    cvy_status (*flush)(cvy_program *p);     /* brings the weights of all ranks up to date. Collective */
    int (*is_flushed)(const cvy_program *p); /* NULL: always */
    /* For a fault that all ranks have: reductions that are under way end, their update is not done. Collective. */
    cvy_status (*abandon)(cvy_program *p);

    /* -- checkpoints -- */
    /* Brings variables to where they are saved from; *pending_out: gradients that are pending, as variables in the
     * arena: save them before the next step, and destroy them. Collective. */
    cvy_status (*save)(cvy_program *p, cvy_vars **pending_out);
    const cvy_pending *(*pending)(const cvy_program *p);
    /* As if the task had been run and its update were pending; the variables are to be filled. On all ranks. */
    cvy_status (*resume)(cvy_program *p, int task, double lr, int64_t number, cvy_vars **pending_out);
    void (*release)(cvy_program *p); /* after save, and after variables were loaded: what other ranks keep */

    /* -- watching -- */
    void (*waits_for)(const cvy_program *p, char *text, size_t room); /* for the watchdog's thread */
    long long (*progress)(const cvy_program *p);                      /* grows while this rank is alive */
    void (*describe)(const cvy_program *p, int task, cvy_text *out);  /* what it means for a task: a line, or nothing */
    const cvy_update_async *async;

    void (*destroy)(cvy_program *p); /* after the plans */
} cvy_update_def;

#define CVY_UPDATE_DEFINE(id) const cvy_update_def cvy_update_##id##_def

/* All modes, sorted by id (generated); NULL: there is none of this name. */
const cvy_update_def *const *cvy_update_table(int *count_out);
const cvy_update_def *cvy_update_find(const char *name);

/* The mode of this number; NULL: there is none. */
const cvy_update_def *cvy_update_by_mode(int mode);

/* ---- of a program ---- */
/* Which mode the options ask for; checks them, makes its state and shape. */
cvy_status cvy_program_open_update(cvy_program *p);
int cvy_program_nworkers(const cvy_program *p);
int cvy_program_is_flushed(const cvy_program *p);
cvy_status cvy_program_abandon(cvy_program *p);
/* Variables to where they are saved from, and gradients that are pending or NULL. Collective. */
cvy_status cvy_program_collect(cvy_program *p, cvy_vars **pending_out);
void cvy_program_release(cvy_program *p);
/* What is pending, or NULL. */
const cvy_pending *cvy_program_pending(const cvy_program *p);
/* As if the task had been run and its update were pending. CVY_E_CONFIG if the mode applies updates at once. */
cvy_status cvy_program_resume_pending(cvy_program *p, int task, double lr, int64_t number, cvy_vars **pending_out);
void cvy_program_describe_update(const cvy_program *p, int task, cvy_text *out);
/* The mode's functions, if workers do not wait for each other in this program; else NULL. */
const cvy_update_async *cvy_program_async(const cvy_program *p);

#endif
