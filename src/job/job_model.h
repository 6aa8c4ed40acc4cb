/*
 * job_model.h: from a job to what programs are made of: a model with its losses, options, parameter groups.
 */
#ifndef CVY_JOB_MODEL_H
#define CVY_JOB_MODEL_H

#include "data/data.h"
#include "job/job.h"
#include "run/run_program.h"

/* The network on the data's inputs; with_losses: and the losses of train.loss (or those that the network's own list of layers has). data: the fields and the
 * number of classes; a weight input is added where samples have weights or bad ones are skipped. */
cvy_status cvy_job_model(const cvy_job *job, const cvy_dataset_info *data, int with_losses, cvy_model **out);
/* Texts that the options point to live in the job's pool. */
cvy_status cvy_job_program_opts(const cvy_job *job, const char *plan_file, cvy_program_opts *out);
cvy_status cvy_job_training_opts(const cvy_job *job, cvy_training_opts *out);
/* train.groups: applied to each variable before the passes see it. The job must outlive the program's planning. */
void cvy_job_group_variables(const cvy_job *job, cvy_program *program);

#endif
