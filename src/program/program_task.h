/*
 * program_task.h: a task of a program, which cvy_program_add_training() or cvy_program_add_forward() has added: its
 * graphs and plans, its losses and outputs.
 */
#ifndef CVY_PROGRAM_TASK_H
#define CVY_PROGRAM_TASK_H

#include "model/model.h"
#include "pass/pass.h"
#include "plan/plan.h"
#include "program/program_execute.h"

enum { CVY_TASKS_MAX = 64 }; /* of a program: bits of cvy_program_task.shares */

typedef struct cvy_task_loss {
    char *name;  /* the layer's */
    char *value; /* in the graphs; NULL until one is made */
    int bucket;  /* of its reduction over ranks, -1: none; delayed and deferred updates */
} cvy_task_loss;

typedef struct cvy_task_output {
    char *name, *value;
    void *gathered; /* of several micro-batches, one after the other; NULL: they lie so */
    size_t gathered_bytes;
} cvy_task_output;

typedef struct cvy_program_task {
    int training;
    const cvy_model *model;
    int64_t batch; /* global */
    int64_t accumulate;
    struct {
        char *trains; /* patterns of variables; NULL: all */
        cvy_optimise_opts optimise;
    } train;
    cvy_task_loss *loss;
    int nloss;
    cvy_task_output *output;
    int noutput;
    int nmicro;
    struct {
        int64_t *micro_n;  /* global samples of each micro-batch; of a deterministic program NULL */
        cvy_graph **graph; /* one for each distinct local size */
        cvy_lowered **lowered;
        int nlowered;
    } split;
    cvy_plan *plan;
    cvy_plan *alternate;    /* on the second set of gradients, if the update mode has two; else NULL */
    const cvy_plan *latest; /* of the two, the one that ran last; NULL: neither */
    int64_t first_row;      /* of this rank in the global batch, or its first micro-batch */
    int64_t count;          /* training steps done; the feed "step" is the sum over `shares` */
    uint64_t shares;        /* bit j is set if task j works on the same optimiser state; its own bit too */
    struct {
        double *lr, *norm; /* scalar feeds, NULL: the task has none */
        int64_t *number;   /* of the step */
    } feed;
    cvy_step_time time;        /* of the latest run */
    const char *lost;          /* after CVY_E_NUMERIC: what was not finite, "the loss" or "a gradient" */
    cvy_recomputed recomputed; /* in backward of a micro-batch, if memory was short */
} cvy_program_task;

/* Destroys graphs, lowered graphs and plans. */
void cvy_program_drop_plan(cvy_program_task *task);
/* ---- program_output.c ---- */
/* Of several micro-batches' outputs: memory for all rows, and filling it. */
cvy_status cvy_program_allocate_outputs(cvy_program_task *task);
void cvy_program_free_outputs(cvy_program_task *task);
void cvy_program_gather_output(const cvy_program_task *task, int output);
/* In how many parts a task leaves its losses: a forward task of a deterministic program in one for each micro-batch;
 * else 1. And part m of loss i, or NULL. */
int cvy_program_loss_parts(const cvy_program_task *task);
const double *cvy_program_loss_part(const cvy_program_task *task, int loss, int part);

#endif
