/*
 * session_model.h: from a job and what its data are to a model with its losses, and to the options of a program.
 *
 * Before step 0, shared by all verbs: train, test, predict, bench and plan make the same network of the same job.
 */
#ifndef CVY_SESSION_MODEL_H
#define CVY_SESSION_MODEL_H

#include "data/data.h"
#include "job/job.h"
#include "program/program.h"

/**
 * cvy_job_model - the network of a job on its data's fields, with its losses
 * @data: gives the shape of x, the number of outputs (classes, or numbers in the target) and what else there is to read
 * (label, y, weight)
 * @with_losses: 0 for data without a target, which can be predicted only
 * @out: borrows texts of @job, which must outlive it
 *
 * Losses are those of train.loss; without it those that the network's own layers have, else what suits the data. A loss
 * is called "loss", or
 * "<output>_loss" where there are several. Inputs are named as the data's fields; those that nothing reads are left
 * out. There is an input "weight" (one a sample) where the data have one or data.on_bad_sample is skip: what is skipped
 * weighs nothing. Errors: CVY_E_CONFIG, CVY_E_SHAPE, CVY_E_MEMORY.
 */
cvy_status cvy_job_model(const cvy_job *job, const cvy_dataset_info *data, int with_losses, cvy_model **out);

/* Texts that the options point to live in the job's pool; plan_file may be NULL. A wrong option of the optimiser is
 * named with its place in the file. */
cvy_status cvy_job_program_opts(const cvy_job *job, const char *plan_file, cvy_program_opts *out);
cvy_status cvy_job_training_opts(const cvy_job *job, cvy_training_opts *out);
/* train.groups and what weight decay pulls at: applied to each variable before the passes see it. The job must outlive
 * the program's planning. */
void cvy_job_group_variables(const cvy_job *job, cvy_program *program);
/* After planning: CVY_E_CONFIG if a group matches no weight, which is a slip of the pen. */
cvy_status cvy_job_check_groups(const cvy_job *job, const cvy_program *program);
/* After planning: CVY_E_SHAPE if a network has fewer outputs than the data have classes; the layer is named. */
cvy_status cvy_job_check_outputs(const cvy_dataset_info *data, const cvy_program *program, int task);

#endif
