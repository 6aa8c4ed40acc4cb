/*
 * program_update.h: what an update mode is: it decides how and when ranks bring their gradients into the weights.
 *
 * One file (or folder) of src/update defines one update mode with CVY_UPDATE_DEFINE; tools/make_registry.sh finds it. A
 * program knows no mode by name: it plans by the mode's shape and calls its functions. A mode keeps its state in
 * program->update.state.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_UPDATE_H
#define CVY_PROGRAM_UPDATE_H

#include <convoy/program.h>

#include "base/text/base_option.h"
#include "comm/comm.h"
#include "graph/graph.h"
#include "pass/pass.h"
#include "program/program_view.h"

/* What planning needs to know of a mode. The program fills it for `sync`; cvy_update_def.shape changes what differs. */
typedef struct cvy_update_shape {
    cvy_comm *comm;      /* the communicator that training tasks are planned for */
    int nworkers;        /* the ranks 0 .. nworkers - 1 have samples in training tasks */
    int gradient_sets;   /* 2: each training task has two plans, on two sets of gradients */
    int deferred;        /* the update runs inside the next step: plans say when each weight is needed */
    int own_samples;     /* a training task is planned as if this rank's samples were the whole batch */
    int halves;          /* a gradient reduction is cut in two: a reduce-scatter, and an all-gather of weights */
    int state_parts;     /* the optimiser's state has so many parts, and a rank keeps at most one; 1: it keeps all */
    int state_elsewhere; /* this rank writes little or no optimiser state: its memory is mapped, not allocated */
    int no_update;       /* a training task ends with its gradients: it has no optimiser */
    int own_losses;      /* in a pipeline: steps leave losses on their stages; see cvy_program_share_losses() */
    int shares_memory;   /* ranks of a node may have gradients in shared memory */
    int shares_weights;  /* ... and weights too */
    int newest_first;    /* the reduction under way that started last makes progress first */
    int64_t shards;      /* deterministic: number of shards of a step; 0: not deterministic */
    cvy_part own_shards; /* those that this rank computes, each as one of its micro-batches */
} cvy_update_shape;

/* Gradients that have been made and are not applied yet. */
typedef struct cvy_pending {
    cvy_program_task *task;
    cvy_plan *plan; /* NULL: no gradients are pending */
    double lr;
    int64_t number; /* of the step that made them, for the optimiser */
} cvy_pending;

/* A training run, for functions that decide what happens in which step. */
typedef struct cvy_update_run {
    int64_t steps, steps_per_epoch;
    const cvy_tree *optimizer; /* its options, or NULL */
} cvy_update_run;

/* For a mode in which workers run steps without waiting for each other, from one synchronisation to the next. All
 * workers leave after the same step: one that all know, or the one that next_sync() tells. A worker that cannot
 * continue leaves earlier, and all workers synchronise soon. */
typedef struct cvy_update_async {
    int (*is_on)(const cvy_program *p);
    int (*serves)(const cvy_program *p);                                  /* this rank does not train */
    void (*request_sync)(cvy_program *p);                                 /* asks all ranks to synchronise soon */
    int64_t (*next_sync)(const cvy_program *p);                           /* after this step; 0: not known */
    cvy_status (*leave)(cvy_program *p, int64_t steps_done);              /* of a worker */
    cvy_status (*serve)(cvy_program *p, int64_t *steps_done);             /* in and out; ends when all have left */
    void (*staleness)(const cvy_program *p, double *mean, int64_t *most); /* steps ahead of the slowest, so far */
} cvy_update_async;

/* An option of the program that a mode does not support. */
typedef struct cvy_update_conflict {
    const char *option; /* a field of cvy_program_opts */
    const char *value;  /* as text; NULL: the name of update_mode */
    const char *why;    /* "rounds what is sent ...: take f32" */
} cvy_update_conflict;

/* Its configuration in a job file. */
typedef struct cvy_update_job_def {
    unsigned has_program_keys : 1; /* its keys are the program's options of the section `update` */
    const cvy_option *options;     /* fields of a struct of options_size bytes; NULL: none */
    size_t options_size;
    /* Interprets options that are texts. If one is wrong, *key_out names it. */
    cvy_status (*read_options)(void *options, const char **key_out);
    int64_t (*flush_every)(const void *options); /* most steps between two flushes */
    /* Whether a flush is due after step `step` (from 0), and whether its update is applied at once, as in sync. */
    int (*flush_due)(const void *options, const cvy_update_run *run, int64_t step);
    int (*in_sync)(const void *options, const cvy_update_run *run, int64_t step);
    void (*describe_run)(const void *options, const cvy_update_run *run, cvy_text *out); /* adds lines, or nothing */
} cvy_update_job_def;

/* What it does while a program is planned, in this order. */
typedef struct cvy_update_plan_def {
    /* Returns whether an option conflicts with the mode, and which one. Job files are checked by it too. */
    int (*conflict)(const cvy_program_opts *opts, cvy_update_conflict *out);
    /* Why a given option has no effect; NULL: it has one. */
    const char *(*no_effect)(const char *option, const char *value);
    cvy_status (*check)(const cvy_program *p); /* what conflict() cannot see; called for one rank too */
    cvy_status (*create)(cvy_program *p);
    void (*shape)(const cvy_program *p, cvy_update_shape *shape);
    cvy_status (*check_task)(const cvy_program *p, const cvy_optimise_opts *optimise); /* for each training task */
    cvy_status (*planned)(cvy_program *p); /* plans are made; there is no memory yet */
    cvy_status (*prepare)(cvy_program *p); /* the arena exists; plans are not bound yet */
    cvy_status (*connect)(cvy_program *p); /* plans are bound, variables have memory. Collective */
} cvy_update_plan_def;

/* What it does for checkpoints. */
typedef struct cvy_update_save_def {
    /* Brings variables to the ranks that save them. *pending_out: the pending gradients, as variables in the arena, or
     * NULL; save them before the next step, then destroy them. Collective. */
    cvy_status (*begin)(cvy_program *p, cvy_vars **pending_out);
    const cvy_pending *(*pending)(const cvy_program *p);
    /* Restores the state in which the task has been run and its update is pending. The caller fills the variables. All
     * ranks call it. */
    cvy_status (*resume)(cvy_program *p, int task, double lr, int64_t number, cvy_vars **pending_out);
    /* After begin(), and after variables were loaded: releases memory of what other ranks keep. */
    void (*release)(cvy_program *p);
} cvy_update_save_def;

/* What it tells of itself while it runs. */
typedef struct cvy_update_watch_def {
    void (*waits_for)(const cvy_program *p, char *text, size_t room); /* called by the watchdog's thread */
    long long (*progress)(const cvy_program *p);                      /* grows while this rank is alive */
    /* Adds a line about the effect of the mode on a task, or nothing. */
    void (*describe)(const cvy_program *p, int task, cvy_text *out);
    const cvy_update_async *async;
} cvy_update_watch_def;

/* A function that is NULL has nothing to do. */
typedef struct cvy_update_def {
    const char *name, *summary;
    int mode;                                       /* the value of update_mode; -1: another option selects it */
    int (*asked_for)(const cvy_program_opts *opts); /* by options other than update_mode; it takes precedence */
    unsigned many_ranks : 1;                        /* with one rank, `sync` replaces it: the results are the same */
    unsigned flush_before_forward : 1;              /* weights are not up to date between steps */
    unsigned saves_on_root : 1;                     /* save.begin() makes variables complete on rank 0 only */
    unsigned no_replicas : 1;                       /* ranks need not have equal weights after a flush */
    unsigned any_space : 1;                         /* it also works on backends whose tensors the host cannot read */
    unsigned apart : 1;       /* workers make steps, or means of weights, by themselves: no step is one of all ranks */
    unsigned takes_turns : 1; /* after step() each rank has the new weights, so another training task may follow */
    unsigned fuses_updates : 1; /* step() runs a whole plan: a kernel may make a gradient and use it at once */
    int meets_in;               /* steps after whose end all ranks have made the gradients of the first of them: 1, or 2
                                   if they are reduced during the next step; 0: a rank never waits for that */

    cvy_update_job_def job;
    cvy_update_plan_def plan;
    cvy_update_save_def save;
    cvy_update_watch_def watch;

    /* -- running -- */
    cvy_status (*step)(cvy_program *p, cvy_program_task *task, double lr); /* runs a training task */
    /* What is left of that step when the host has prepared the next one: it waits for the losses. NULL: nothing is. */
    cvy_status (*end)(cvy_program *p, cvy_program_task *task);
    cvy_status (*forward)(cvy_program *p, cvy_program_task *task); /* runs another task; NULL: the plan is executed */
    /* The loss over all ranks. NULL: the plan's loss is used. */
    const double *(*loss)(const cvy_program *p, const cvy_program_task *task, int loss);
    cvy_status (*flush)(cvy_program *p);     /* brings the weights of all ranks up to date. Collective */
    int (*is_flushed)(const cvy_program *p); /* NULL: always */
    /* For a fault that all ranks have: reductions that are under way are completed, but their update is not done.
     * Collective. */
    cvy_status (*abandon)(cvy_program *p);

    void (*destroy)(cvy_program *p); /* after the plans */
} cvy_update_def;

#define CVY_UPDATE_DEFINE(id) const cvy_update_def cvy_update_##id##_def

/* All modes, sorted by id (generated). cvy_update_find() returns NULL if there is none of this name. */
const cvy_update_def *const *cvy_update_table(int *count_out);
const cvy_update_def *cvy_update_find(const char *name);

/* The mode with this value of update_mode; NULL: there is none. */
const cvy_update_def *cvy_update_by_mode(int mode);

/* ---- of a program ---- */
/* Finds the mode that the options ask for, checks them, and makes the mode's state and shape. */
cvy_status cvy_program_open_update(cvy_program *p);
/* The mode: what it is called, and what can be said of it. */
const cvy_update_def *cvy_program_update(const cvy_program *p);
int cvy_program_nworkers(const cvy_program *p);
int cvy_program_is_flushed(const cvy_program *p);
cvy_status cvy_program_abandon(cvy_program *p);
/* Brings variables to the ranks that save them; *pending_out: the pending gradients, or NULL. Collective. */
cvy_status cvy_program_collect(cvy_program *p, cvy_vars **pending_out);
void cvy_program_release(cvy_program *p);
/* The pending gradients, or NULL. */
const cvy_pending *cvy_program_pending(const cvy_program *p);
/* The number of the task that made them; -1: none is pending. */
int cvy_program_pending_task(const cvy_program *p);
/* Restores the state in which the task has been run and its update is pending. CVY_E_CONFIG if the mode applies updates
 * at once. */
cvy_status cvy_program_resume_pending(cvy_program *p, int task, double lr, int64_t number, cvy_vars **pending_out);
void cvy_program_describe_update(const cvy_program *p, int task, cvy_text *out);
/* ---- program_average.c: running averages of the weights ---- */
/* CVY_E_CONFIG: the optimiser averages the weights, and in this mode not every rank has all averages. */
cvy_status cvy_program_check_average(const cvy_program *p, const cvy_optimise_opts *optimise);
/* Exchanges weights and averages, so that the program computes with the averages; the next call exchanges them back. A
 * program without averages is left as it is. Collective; no step is under way. */
cvy_status cvy_program_exchange_averages(cvy_program *p);
/* The mode's functions for workers that do not wait for each other; NULL if they wait in this program. */
const cvy_update_async *cvy_program_async(const cvy_program *p);

#endif
