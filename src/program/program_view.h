/*
 * program_view.h: what other folders know of a program, and do with it, besides convoy/program.h.
 *
 * The structs of a program and of its tasks are in program_impl.h, which only src/program and src/update include.
 * Everybody else asks here. What a function returns by pointer belongs to the program: it is valid until the program is
 * destroyed, and what comes from a plan, until the program is planned again. A task is known by its number; it must
 * exist, and for all functions but cvy_program_about() and cvy_program_nlosses() it must be planned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_VIEW_H
#define CVY_PROGRAM_VIEW_H

#include <convoy/program.h>

#include "base/text/base_json.h"
#include "comm/comm_grid.h"
#include "context/context.h"
#include "graph/graph.h"
#include "pass/pass.h"
#include "plan/plan.h"
#include "plan/plan_tune.h"
#include "program/program_execute.h"

typedef struct cvy_program_task cvy_program_task;
typedef struct cvy_exact cvy_exact; /* base_exact.h */

enum { CVY_TASKS_MAX = 64 }; /* of a program */

/* ---- what a program is: program_view.c ---- */

cvy_context *cvy_program_context(const cvy_program *program);
/* The options that the program was made with; 0 and NULL where the caller has set none. */
const cvy_program_opts *cvy_program_options(const cvy_program *program);
/* The process grid, with this rank's place in it. */
const cvy_grid *cvy_program_grid(const cvy_program *program);
/* All variables of the program: weights, running statistics, the optimiser's state. Those of other stages of a pipeline
 * have no memory here. */
cvy_vars *cvy_program_vars(const cvy_program *program);
/* Whether it is planned and has its memory, so that tasks can run. */
int cvy_program_is_ready(const cvy_program *program);
/* Whether the ranks of a node have one copy of the weights in shared memory, as opts.share_weights asks for. */
int cvy_program_shares_weights(const cvy_program *program);
/* CVY_E_ARGUMENT: there is no such task, or it cannot run yet. */
cvy_status cvy_program_check_planned(const cvy_program *program, int task);
/* Whether kernels compute nothing and wait for their measured times instead. */
int cvy_program_by_clock(const cvy_program *program);
/* Whether a thread of the program's own calls MPI to make reductions progress. */
int cvy_program_has_thread(const cvy_program *program);
/* The first layer of this rank's stage in a pipeline of several stages. */
const char *cvy_program_first_layer(const cvy_program *program);
/* The kernels that were chosen, as the JSON object `choices` of a plan file; "{}": none is named. */
const char *cvy_program_chosen(const cvy_program *program);

/* ---- what a task is: program_view.c ---- */

/* Tasks have the numbers 0 .. ntasks - 1, in the order in which they were added. */
int cvy_program_ntasks(const cvy_program *program);
typedef struct cvy_task_about { /* a task as it was added */
    const char *kind;           /* "training", "forward", "forward-backward" */
    const char *label;          /* what messages call it; NULL: nothing */
    int64_t batch;              /* global */
    const char *trains;         /* patterns of the variables that it trains; NULL: all */
    const char *optimizer;      /* NULL: a forward task */
} cvy_task_about;
cvy_task_about cvy_program_about(const cvy_program *program, int task);
/* The plan of the task on this rank, and with it its feeds, its instructions and its graphs. An update mode with two
 * sets of gradients has a second plan of the same instructions: latest_plan() is the one that ran last. */
cvy_plan *cvy_program_task_plan(const cvy_program *program, int task);
const cvy_plan *cvy_program_latest_plan(const cvy_program *program, int task);
/* Whether the task reads an input of this name on this rank. */
int cvy_program_has_input(const cvy_program *program, int task, const char *input);
/* Finds the rows of a micro-batch among this rank's rows of the task. Returns 0 after the last micro-batch. */
int cvy_program_micro_rows(const cvy_program *program, int task, int micro, int64_t *first_out, int64_t *n_out);
/* Whether two training tasks update the same state of an optimiser: both train the same weights in the same way. */
int cvy_program_share_state(const cvy_program *program, int task, int other);
/* The next weight that a training task trains on this rank; NULL after the last one. *at: 0 at first. */
const cvy_variable *cvy_program_next_trained(const cvy_program *program, int task, int *at);

/* ---- what a step has left: program_view.c, program_output.c ---- */

/* Asks for the time of each instruction, plan->times.end_s, from now on. On the host they are always there. */
cvy_status cvy_program_time_instructions(const cvy_program *program);
/* The times of the latest step of the task. */
const cvy_step_time *cvy_program_time(const cvy_program *program, int task);
/* After CVY_E_NUMERIC: what was not finite, "the loss" or "a gradient". */
const char *cvy_program_lost(const cvy_program *program, int task);
int cvy_program_nlosses(const cvy_program *program, int task);
const char *cvy_program_loss_name(const cvy_program *program, int task, int loss);
/* All losses of the task, as cvy_program_loss() gives them; [nlosses]. */
cvy_status cvy_program_losses(const cvy_program *program, int task, double *value_out);
/* What the sum of a loss over the samples of the global batch is divided by: their number, or the sum of their
 * weights. */
double cvy_program_loss_norm(const cvy_program *program, int task, int loss);
/* Adds this rank's share of a loss of a forward task times its normaliser to *sum, and of the normaliser to *norm. The
 * quotient of the sums over all ranks is the loss. The additions do not depend on the number of ranks if the program is
 * deterministic. */
void cvy_program_add_loss(const cvy_program *program, int task, int loss, cvy_exact *sum, cvy_exact *norm);
/* The layer of an output; NULL after the last one. */
const char *cvy_program_output_name(const cvy_program *program, int task, int output);
/* Whether the stage of this rank makes the output. */
int cvy_program_makes_output(const cvy_program *program, int task, int output);
/* The shape of an output for one sample. */
cvy_shape cvy_program_output_sample(const cvy_program *program, int task, int output);

/* ---- what a program does at this moment: program_now.c, for another thread ---- */

/* Writes what the program does, as in ", stage 2 of 4, node conv1, in an allreduce"; "" between steps. Returns 1 if it
 * waits for other ranks. */
int cvy_program_now(const cvy_program *program, char *text, size_t room);
/* A number that grows while a rank that serves others is at work; 0 in update modes without such ranks. */
long long cvy_program_progress(const cvy_program *program);

/* ---- before it is planned ---- */

typedef void (*cvy_group_fn)(void *user, cvy_variable *v);
/* Sets a function that is called for each new variable before the passes see it. It assigns parameter groups. */
void cvy_program_group_variables(cvy_program *program, cvy_group_fn group, void *user);
/* Takes the kernels and reductions of an earlier plan from its JSON text, unless another plan was given. Deterministic
 * programs ignore it, because they choose by a fixed rule. name: of the text, for messages. */
cvy_status cvy_program_take_plan(cvy_program *program, const char *name, const char *text);
/* Makes the program read and add to these times, instead of opening the file of opts.wisdom. They are borrowed. */
void cvy_program_use_wisdom(cvy_program *program, cvy_wisdom *wisdom);
/* Dropout is active in forward tasks, too, for samples of what the network could have answered. Its masks depend on the
 * seed, on the feed "sample_id" and on cvy_program_set_updates() of the task. */
void cvy_program_keep_dropout(cvy_program *program, int keeps);
/* With kernels "clock": the grid of ranks for which this rank finds the times of all parts; [CVY_AXES] lengths, 0: 1.
 */
void cvy_program_foresee(cvy_program *program, const int64_t *length);
/* Places a layer on a stage, from 1, as the user wants it, with the same layers on all ranks. The name is copied. In a
 * program of one stage it has no effect. CVY_E_CONFIG: there is no such stage, or the layer is placed on another one;
 * that the model has the layer is checked when the layers are cut. */
cvy_status cvy_program_set_stage(cvy_program *program, const char *layer, int64_t stage);

/* ---- planning ---- */

/* Plans without taking memory, as `convoy plan` needs it. cvy_program_plan() calls this and then
 * cvy_program_allocate(). */
cvy_status cvy_program_prepare(cvy_program *program);
cvy_status cvy_program_allocate(cvy_program *program);
/* Bytes of tensor memory that a planned program needs: arena, variables, feeds; 0: it is not planned. */
int64_t cvy_program_need(const cvy_program *program);
typedef struct cvy_memory_use { /* bytes on this rank, of a program that is planned */
    int64_t arena, head;        /* activations and gradients of a step; the part of them that is gradients and losses */
    int64_t weights, copies, statistics, states, feeds; /* copies: of weights, in bf16; states: this rank's part */
    int state_parts;                                    /* ranks that have a part of them; 1: each rank has all */
    int64_t total, workspace;         /* workspace: of the kernel that needs most; a part of the arena */
    const cvy_recomputed *recomputed; /* in backward, to stay within the limit; NULL: nothing was needed */
} cvy_memory_use;
/* task: [ntask], those that a step takes one after the other. */
cvy_memory_use cvy_program_memory_use(const cvy_program *program, const int *task, int ntask);
/* Adds the operators of these tasks that the host computes on copies of tensors of a device, as in "my_op, resize".
 * Returns the number of their calls; *all_out: that of all calls that run operators. */
int cvy_program_name_staged(const cvy_program *program, const int *task, int ntask, cvy_text *out, int *all_out);
/* Into how many recordings the steps of these tasks would go (plan_record.h), with how many of all their instructions;
 * 0: the space has none. */
int cvy_program_count_records(const cvy_program *program, const int *task, int ntask, int *instr_out, int *all_out);
/* Names them in a warning, and kernels of the device that do not compile. Does nothing on the host. */
cvy_status cvy_program_warn_of_host(const cvy_program *program, const int *task, int ntask);
/* Takes memory for a task of a program whose other ranks do not exist, and times each of its instructions: afterwards
 * plan->times.rehearsed_s. CVY_NOT_APPLICABLE: there is not enough memory. */
cvy_status cvy_program_rehearse(cvy_program *program, int task);
typedef struct cvy_prediction {
    double ms;           /* of a step, without communication */
    int ncall, nunknown; /* calls of kernels; those without a measured time */
} cvy_prediction;
/* Predicts the time of a step from the known kernel times. It works on rank 0, for the first task and for those that
 * cvy_program_price_task() knows, and returns CVY_NOT_APPLICABLE if nothing was ever measured. */
cvy_status cvy_program_predict(const cvy_program *program, int task, cvy_prediction *out);
/* Finds the times of the kernels of a task that is planned, by measurement if planning is and there is one rank. Call
 * it on rank 0. */
cvy_status cvy_program_price_task(cvy_program *program, int task);
/* Adds lines about the stages, the predicted share of idle time, and the layers that a tensor axis splits; with a data
 * axis only, at most that an earlier plan has more stages. */
void cvy_program_describe_grid(const cvy_program *program, int task, cvy_text *out);
/* The predicted share of a step in which a rank waits for other stages, mean over the ranks; 0 with one stage. It
 * counts forward and backward only. */
double cvy_program_bubble(const cvy_program *program, int task);

/* ---- running: program_step.c ---- */

/* cvy_program_step() in two parts. Between them a device may compute, and the host fills the feeds of the next step:
 * when step_begin() returns, those of this step have been taken. Losses and outputs can be read after step_end(). The
 * second part is called if and only if the first one has succeeded. is_done: whether step_end() would not wait. */
cvy_status cvy_program_step_begin(cvy_program *program, int task, double learning_rate);
int cvy_program_step_is_done(const cvy_program *program, int task);
cvy_status cvy_program_step_end(cvy_program *program, int task);
/* Between the two parts of a step: sends the rows that have been filled for the next step of this task to the device,
 * while it computes. They must stay as they are until that step begins. can_send: whether the task has memory there. */
int cvy_program_can_send(const cvy_program *program, int task);
cvy_status cvy_program_send_feeds(cvy_program *program, int task);

/* Sets the numbers of this rank's samples in the next steps, for messages. The array is borrowed. NULL: the numbers are
 * not known. */
void cvy_program_name_samples(cvy_program *program, const int64_t *sample);
/* Sets the number of updates that this task's optimiser state has had, for a resumed run. */
void cvy_program_set_updates(cvy_program *program, int task, int64_t updates);
/* Writes the number of steps that each task has done; returns the number of tasks. cvy_program_set_steps() restores
 * them. */
int cvy_program_steps(const cvy_program *program, int64_t steps_out[CVY_TASKS_MAX]);
void cvy_program_set_steps(cvy_program *program, const int64_t steps[CVY_TASKS_MAX]);
/* The bytes that this rank has sent so far, along all axes of the grid. */
int64_t cvy_program_sent_bytes(const cvy_program *program);

/* ---- names of weights: program_groups.c ---- */

/* Whether a name matches one of the patterns, which commas or spaces separate. */
int cvy_names_match(const char *patterns, const char *name);
/* Of n groups of weights, of which a weight belongs to the first that matches: the first group that gets no weight, or
 * -1. match: the patterns of group k. *hidden_by_out: the group before it that takes what it matches; -1: it matches
 * none. */
typedef const char *(*cvy_group_match_fn)(const void *groups, int k);
int cvy_groups_idle(const cvy_vars *vars, cvy_group_match_fn match, const void *groups, int n, int *hidden_by_out);

#endif
