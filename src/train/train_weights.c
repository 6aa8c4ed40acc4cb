/*
 * train_weights.c: counts the weights of the samples of an epoch that are negative, as those of event generators may
 * be, and the steps in which no sample counts, so that the log says how the loss is divided.
 *
 * It runs after each step, on this rank's rows, and adds the ranks at the end of an epoch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

/* The weights of the rows, one for each; NULL: this rank does not have them, or another rank counts the same rows.
 * Weights of positions are never negative. */
static const float *weights_of(const cvy_trainer *t, const cvy_rows *rows)
{
    const cvy_program *p = t->session.program;
    const cvy_dataset_info *info = cvy_dataset_describe(t->session.train);
    if (!cvy_grid_is_first_part(cvy_program_grid(p)) || !cvy_program_has_input(p, t->task.latest, CVY_SAMPLE_WEIGHT))
        return NULL;
    for (int f = 1; f < info->nfield; f++)
        if (strcmp(info->field[f].name, CVY_SAMPLE_WEIGHT) == 0)
            return cvy_shape_elems(&info->field[f].shape) == 1 ? rows->field[f] : NULL;
    return NULL;
}

/* Whether the first loss of the latest step had nothing to divide by. */
static int is_empty(const cvy_trainer *t)
{
    const cvy_program *p = t->session.program;
    return cvy_program_nlosses(p, t->task.latest) > 0 && cvy_program_loss_norm(p, t->task.latest, 0) == 0;
}

void cvy_trainer_note_weights(cvy_trainer *t, const cvy_rows *rows)
{
    struct cvy_weights_seen *seen = &t->weights.seen;
    const float *weight = weights_of(t, rows);
    for (int64_t i = 0; weight && i < rows->n; i++) {
        seen->count++;
        seen->below_0 += weight[i] < 0;
        seen->sum += (double)weight[i];
        seen->sum_below_0 += weight[i] < 0 ? (double)weight[i] : 0;
    }
    const cvy_grid *grid = cvy_program_grid(t->session.program);
    seen->empty_steps += grid->data_rank == 0 && cvy_grid_is_first_part(grid) && is_empty(t);
}

static void say_negative(cvy_trainer *t, int64_t epoch, const struct cvy_weights_seen *all)
{
    char text[400];
    snprintf(
        text, sizeof text,
        "epoch %lld: %.0f of %.0f weights of samples are negative (their sum is %g, that of all weights %g): a loss "
        "is divided by the sum of the magnitudes, a score by the sum of the weights",
        (long long)epoch, all->below_0, all->count, all->sum_below_0, all->sum);
    cvy_trainer_say(t, text);
    if (all->sum <= 0)
        cvy_log(
            t->session.context, CVY_LOG_WARN,
            "the weights of the training samples sum to %g, so the loss falls without limit as predictions get worse: "
            "check the signs of the weights",
            all->sum);
}

cvy_status cvy_trainer_say_weights(cvy_trainer *t, int64_t epoch)
{
    struct cvy_weights_seen all = t->weights.seen;
    cvy_comm *comm = t->session.context->comm;
    CVY_TRY(comm->ops->allreduce(comm, &all, sizeof all / sizeof(double), CVY_DTYPE_F64, CVY_REDUCE_SUM));
    t->weights.seen = (struct cvy_weights_seen){0};
    if (all.below_0 > 0 && !t->weights.said_below_0)
        say_negative(t, epoch, &all);
    if (all.empty_steps > 0 && !t->weights.said_empty)
        cvy_log(
            t->session.context, CVY_LOG_WARN,
            "in %.0f step%s of epoch %lld no sample counted (all weights are 0, or all labels are ignored): the loss "
            "of such a step is 0, and it has no gradient",
            all.empty_steps, all.empty_steps == 1 ? "" : "s", (long long)epoch);
    t->weights.said_below_0 |= all.below_0 > 0;
    t->weights.said_empty |= all.empty_steps > 0;
    return CVY_OK;
}
