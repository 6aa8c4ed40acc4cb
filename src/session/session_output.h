/*
 * session_output.h: what the numbers of an output of a network are. Losses, scores, predictions, calibrations,
 * ensembles and descriptions ask here, so that softmax and sigmoid are applied once.
 *
 * It follows from the function that closes the network (model_closing.h) and from the loss of the output, each time a
 * network is made from its job. So files of weights need not say it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SESSION_OUTPUT_H
#define CVY_SESSION_OUTPUT_H

#include "data/data.h"
#include "job/job.h"
#include "model/model.h"

typedef struct cvy_output_meaning {
    cvy_output_kind kind;
    const char *scored; /* the layer whose numbers scores read: logits, log-probabilities or values */
    cvy_shape shape;    /* of the output for one sample, if a function closes it; else unknown: ndim 0 */
} cvy_output_meaning;

/* The meaning of an output, which may add copies of layers to the model. The losses of the job count, and those that
 * the network has itself. Errors: those of cvy_model_instantiate(). */
cvy_status cvy_job_output_meaning(const cvy_job *job, const cvy_dataset_info *data, cvy_model *m, const char *output,
                                  cvy_output_meaning *out);
/* Adds "output p: probabilities of the classes; scores read fc", of the main output of a model of cvy_job_model(). */
void cvy_model_describe_output(const cvy_model *m, cvy_text *t);
/* What a loss reads in place of an output: if it applies the function itself that closes the output, what this function
 * reads. CVY_E_CONFIG: the loss would apply softmax or sigmoid to probabilities. is_old 1: the network was trained by
 * a version that allowed it, and reads them. */
cvy_status cvy_loss_source(const cvy_op_def *loss, cvy_model *m, const char *output, int is_old, const char **out);
/* Lets the losses that the network has itself read what cvy_loss_source() says. */
cvy_status cvy_job_correct_losses(const cvy_context *context, cvy_model *m, int is_old);

/* Whether the numbers stand for classes, or each for yes. */
static inline int cvy_output_is_of_classes(cvy_output_kind kind)
{
    return kind == CVY_OUTPUT_LOGITS || kind == CVY_OUTPUT_LOG_PROBABILITIES || kind == CVY_OUTPUT_PROBABILITIES;
}
static inline int cvy_output_is_of_yes(cvy_output_kind kind)
{
    return kind == CVY_OUTPUT_YES_LOGITS || kind == CVY_OUTPUT_YES_PROBABILITIES;
}

#endif
