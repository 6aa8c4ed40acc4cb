/*
 * train_grid.c: `parallel: auto`: takes the process grid that is predicted to be the fastest, and says after the first
 * steps how far the prediction was off.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "session/session_strategy.h"
#include "train/trainer.h"

enum { WARM_UP = 2 }; /* steps that do not count: they touch memory for the first time */

/* The micro-batches decide groups of batch norm, so a resumed run keeps them. */
static cvy_status read_micro_batches(const cvy_trainer *t, int64_t *out)
{
    const cvy_tree *state = t->opts && t->opts->resume ? t->folder.resume.state : NULL,
                   *node = state ? cvy_tree_get(state, "accumulate") : NULL;
    return node ? cvy_tree_int(node, out) : CVY_OK;
}

cvy_status cvy_trainer_choose_grid(cvy_trainer *t)
{
    cvy_session *s = &t->session;
    const cvy_dataset *scored = s->val ? s->val : s->test;
    cvy_strategy_run run = {.data = cvy_dataset_describe(s->train)};
    run.nscored = scored ? cvy_dataset_describe(scored)->nsamples : 0;
    CVY_TRY(cvy_comm_agree(s->context->comm, read_micro_batches(t, &run.micro_batches)));
    return cvy_session_choose_grid(s, &run, &t->forecast.step_s);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the steps that were noted. */
static void compare(cvy_trainer *t)
{
    const double predicted_s = t->forecast.step_s;
    double *taken = t->forecast.taken_s;
    char text[160];
    cvy_json json = {0};
    qsort(taken, (size_t)t->forecast.n, sizeof *taken, by_value);
    const double step_s = taken[t->forecast.n / 2], off = predicted_s / step_s - 1;
    snprintf(text, sizeof text, "parallel: auto: a step takes %.3g ms, and %.3g ms were predicted (%.0f %% too %s)",
             1e3 * step_s, 1e3 * predicted_s, 100 * fabs(off), off > 0 ? "much" : "little");
    cvy_trainer_say(t, text);
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "kind", "forecast");
    cvy_json_int(&json, "step", t->step);
    cvy_json_real(&json, "seconds_step", step_s);
    cvy_json_real(&json, "seconds_predicted", predicted_s);
    cvy_json_close(&json, '}');
    cvy_trainer_write_line(t, &json);
    t->forecast.step_s = 0;
}

void cvy_trainer_compare_forecast(cvy_trainer *t, const cvy_step_time *time, int is_full)
{
    if (t->forecast.step_s <= 0)
        return;
    if (is_full && t->step > t->first_step + WARM_UP)
        t->forecast.taken_s[t->forecast.n++] = time->total;
    if (t->forecast.n == CVY_COUNT(t->forecast.taken_s) || (t->forecast.n > 0 && t->step == t->order.last_step))
        compare(t);
}
