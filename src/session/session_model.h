/*
 * session_model.h: makes a model with its losses from a job and a description of its data, and the options of a
 * program.
 *
 * It is used before step 0 and by all verbs, so that train, test, predict, bench and plan make the same network from
 * the same job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SESSION_MODEL_H
#define CVY_SESSION_MODEL_H

#include "data/data.h"
#include "job/job.h"
#include "model/model.h"
#include "program/program_view.h"

/* Which losses a network of a job gets. */
typedef enum cvy_losses {
    CVY_LOSSES_NONE,      /* it is only applied */
    CVY_LOSSES_NEEDED,    /* it is trained */
    CVY_LOSSES_SCORED,    /* it is scored by its loss, and any version of convoy may have trained it */
    CVY_LOSSES_IF_TARGET, /* as for training; none if the data have no target and neither network nor job has a loss */
} cvy_losses;

/**
 * cvy_job_model - the network of a job on the fields of its data, with its losses
 * @context: layers may name the operators of its libraries; it must outlive @out. NULL: only convoy's own
 * @data: gives the shape of x, the number of outputs (classes, or numbers in the target) and the other fields (label,
 * y, weight)
 * @out: borrows texts of @job, which must outlive it
 *
 * The losses are those of train.loss. Without it they are the loss layers of the network, and if it has none, a loss
 * that suits the data. A loss is called "loss", or "<output>_loss" if there are several. Inputs have the names of the
 * data's fields, and those that no layer reads are left out. There is an input "weight" (one number for each sample)
 * if the data have one or data.on_bad_sample is skip: a skipped sample has weight 0. The model says what its main
 * output is (session_output.h); a loss that would apply softmax or sigmoid to probabilities is refused. Errors:
 * CVY_E_CONFIG, CVY_E_SHAPE, CVY_E_MEMORY.
 */
cvy_status cvy_job_model(const cvy_job *job, const cvy_context *context, const cvy_dataset_info *data,
                         cvy_losses losses, cvy_model **out);
/* The name of the field that a loss compares with the output if the job names none; NULL: there is none. */
const char *cvy_main_target(const cvy_dataset_info *data);
/* Loads the libraries that the job names. Only for a job that the user has named: their code runs at once. */
cvy_status cvy_job_load_libraries(cvy_job *job, cvy_extensions *extensions);

/* A forward pass of a network without a loss: the results are all outputs that no layer reads. Logs that nothing can be
 * trained, and by what it could; who: the job or the file. Errors: those of cvy_program_add_forward(). */
cvy_status cvy_job_add_forward(const char *who, const cvy_model *model, int64_t batch, cvy_program *program,
                               int *task_out);
/* Sets *out to the scaling of an output of the network: that of y if it is compared with y, otherwise none (n 0). It
 * points to memory of @data or of @m. */
cvy_status cvy_job_output_scaling(const cvy_job *job, const cvy_dataset_info *data, cvy_model *m, const char *output,
                                  cvy_scaling *out);

/* The options point to texts in the job's pool. The error for a wrong option of the optimiser names its place in the
 * job file. */
cvy_status cvy_job_training_opts(const cvy_job *job, cvy_training_opts *out);
/* Changes the options of the job into those of a turn of train.turns, which count from 0. */
cvy_status cvy_job_turn_opts(const cvy_job *job, int turn, cvy_training_opts *opts);
/* The learning rate of a turn where that of the job is train.lr: before the schedule. */
double cvy_job_turn_lr(const cvy_job *job, int turn);
/* Applies train.groups, and the choice of weights that decay, to each variable before the passes run. The job must live
 * until the program is planned. */
void cvy_job_group_variables(const cvy_job *job, cvy_program *program);
/* Call it after planning. Returns CVY_E_CONFIG if a group matches no weight, which is probably a typing error. */
cvy_status cvy_job_check_groups(const cvy_job *job, const cvy_program *program);
/* Call it after planning. Returns CVY_E_SHAPE, and names the layer, if a network has fewer outputs than the data have
 * classes. */
cvy_status cvy_job_check_outputs(const cvy_dataset_info *data, const cvy_program *program, int task);

#endif
