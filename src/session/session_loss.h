/*
 * session_loss.h: the losses of a job as layers of its network, for session_model.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SESSION_LOSS_H
#define CVY_SESSION_LOSS_H

#include "session/session_model.h"

/* Whether a loss has an output for each class; its options begin with cvy_label_loss. */
int cvy_loss_is_of_classes(const cvy_op_def *op);
/* Sets *count_out to the number of outputs that the first loss needs, for each position if the network is one for maps;
 * 0: the network decides. */
cvy_status cvy_job_count_outputs(const cvy_job *job, const cvy_dataset_info *data, int64_t *count_out);
/* Adds the losses to the network, as `losses` says. Errors: those of cvy_job_model(). */
cvy_status cvy_job_add_losses(const cvy_job *job, const cvy_dataset_info *data, cvy_losses losses, cvy_model *m);

#endif
