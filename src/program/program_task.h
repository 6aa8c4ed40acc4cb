/*
 * program_task.h: a task of a program, which cvy_program_add_training() or cvy_program_add_forward() has added: its
 * graphs and plans, its losses and outputs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_TASK_H
#define CVY_PROGRAM_TASK_H

#include "model/model.h"
#include "pass/pass.h"
#include "program/program_view.h"

typedef struct cvy_task_loss {
    char *name;  /* of the layer */
    char *value; /* name of its value in the graphs; NULL until a graph is made */
    int bucket;  /* in which it is reduced over ranks; -1: none; for delayed and deferred updates */
} cvy_task_loss;

typedef struct cvy_task_output {
    char *name, *value;
    void *gathered; /* rows of all micro-batches in one piece; NULL: the plan already keeps them so */
    size_t gathered_bytes;
} cvy_task_output;

/* What a training task trains, and how (program_groups.c). */
typedef struct cvy_task_training {
    char *trains;              /* patterns of variable names; NULL: all are trained */
    cvy_training_group *group; /* the first match counts */
    int ngroup;
    cvy_optimise_opts optimise;
} cvy_task_training;

/* How this rank's part of a batch is cut into micro-batches, and the graphs of them (program_plan.c). */
typedef struct cvy_task_split {
    int64_t *micro_n;  /* global samples of each micro-batch; NULL in a deterministic program */
    cvy_graph **graph; /* one for each distinct local size */
    cvy_lowered **lowered;
    int nlowered;
    int64_t first_row; /* of this rank in the global batch, or in its first micro-batch */
} cvy_task_split;

/* Scalar feeds; NULL: the task has none. */
typedef struct cvy_task_feeds {
    double *lr, *norm;
    int64_t *number; /* number of the step for the optimiser: updates done before it */
} cvy_task_feeds;

/* The times of its kernels, by cvy_program_price_task(); of the first task see cvy_program.kernel.tuning. */
typedef struct cvy_task_price {
    int is_known;
    double micro_ms, update_ms;
    int ncall, nunknown;
    double whole_ms[2]; /* of a step with two choices of kernels (program_compare.h); not above 0: unknown */
} cvy_task_price;

/* A guarded step (program_guard.c). */
typedef struct cvy_task_run {
    double begin_s;  /* clock at its start */
    int is_checking; /* the device decides on its update, and the host has not asked yet */
} cvy_task_run;

struct cvy_program_task {
    int training;
    const cvy_model *model;
    int64_t batch;     /* global */
    const char *label; /* for messages and plans; NULL: none */
    int64_t accumulate;
    cvy_task_training train;
    cvy_task_loss *loss;
    int nloss;
    cvy_task_output *output;
    int noutput;
    int nmicro;
    cvy_task_split split;
    cvy_plan *plan;
    cvy_plan *alternate;    /* a plan on the second set of gradients, if the update mode has two; else NULL */
    const cvy_plan *latest; /* of the two, the one that ran last; NULL: neither has run */
    int64_t count;          /* training steps done; the feed "step" is the sum over `shares` */
    uint64_t shares; /* of CVY_TASKS_MAX: bit j is set if task j works on the same optimiser state; its own bit too */
    cvy_task_feeds feed;
    cvy_step_time time; /* of the latest run */
    cvy_task_run run;
    int has_padding; /* 1: only the first `samples` of this rank's rows are samples (cvy_program_set_rows) */
    int64_t samples;
    const char *lost; /* after CVY_E_NUMERIC: what was not finite, "the loss" or "a gradient" */
    cvy_task_price price;
    cvy_recomputed recomputed; /* what the backward pass of a micro-batch recomputes, if memory was short */
};

/* In a pipeline a forward task has micro-batches too, so that all stages have work. Each rank cuts its own rows, so
 * that they stay consecutive. */
int cvy_program_cuts_own_rows(const cvy_program *program, const cvy_program_task *task);
/* This rank's share of a micro-batch, or the largest share of any rank. */
cvy_batch cvy_program_share(const cvy_program *program, const cvy_program_task *task, int micro, int largest);
/* All steps use the same memory, one after the other. But gradients that wait for their update stay where they are, so
 * the memory of evaluation begins after them. */
size_t cvy_program_arena_offset(const cvy_program *program, const cvy_program_task *task);
/* Destroys graphs, lowered graphs and plans. */
void cvy_program_drop_plan(cvy_program_task *task);
/* ---- program_record.c ---- */
/* For a call after each step: says once what of it is recorded. */
void cvy_program_note_records(const cvy_program *program, const cvy_program_task *task);
/* ---- program_step.c ---- */
/* The task of this number, if it is planned; otherwise NULL. */
cvy_program_task *cvy_program_find_task(const cvy_program *program, int task);
/* ---- program_groups.c ---- */
/* Copies what the options say of weights that are trained: the patterns of `trains`, and the parameter groups. */
cvy_status cvy_program_read_groups(cvy_pool *pool, const cvy_training_opts *opts, cvy_program_task *task);
/* Says whether the patterns match the name of the variable; user: the patterns. A cvy_trains_fn. */
int cvy_program_trains(void *user, const cvy_variable *v);
/* Sets what the passes read of the variables: whether they are frozen, and their factors. */
void cvy_program_set_groups(const cvy_program *program, const cvy_program_task *task);
/* Returns CVY_E_ARGUMENT if `trains` or a group matches no variable. */
cvy_status cvy_program_check_groups(const cvy_program *program, const cvy_program_task *task);
/* ---- program_output.c ---- */
/* If a task has several micro-batches, these allocate and free memory for all output rows. */
cvy_status cvy_program_allocate_outputs(cvy_program_task *task);
void cvy_program_free_outputs(cvy_program_task *task);
/* The value that an output has in the graphs; NULL: the task has no such output. */
const cvy_value *cvy_program_output_value(const cvy_program_task *task, const char *layer);
/* Returns in how many parts a task leaves its losses: one for each micro-batch in a forward task of a deterministic
 * program, else 1. cvy_program_loss_part() returns part m of loss i, or NULL. */
int cvy_program_loss_parts(const cvy_program_task *task);
const double *cvy_program_loss_part(const cvy_program_task *task, int loss, int part);

#endif
