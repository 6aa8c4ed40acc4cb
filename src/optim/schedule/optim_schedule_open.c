/*
 * optim_schedule_open.c: schedules of the public API, made from text and from the caller's description of the run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "optim/optim.h"

static cvy_status open_text(const char *text, const cvy_schedule_run *run, cvy_pool *pool, cvy_schedule **out)
{
    cvy_tree *tree = NULL;
    if (text)
        CVY_TRY(cvy_tree_parse_text(pool, "schedule", text, strlen(text), &tree));
    return cvy_schedule_create(tree, run, out);
}

cvy_status cvy_schedule_open(const char *schedule, const cvy_schedule_opts *opts, cvy_schedule **schedule_out)
{
    CVY_ENTRY();
    cvy_schedule_opts o;
    cvy_pool *pool = NULL;
    CVY_TRY(CVY_OPTS_READ(cvy_schedule_opts, opts, &o));
    CVY_CHECK(isfinite(o.lr) && o.lr > 0, CVY_E_ARGUMENT, "a schedule with lr %g, expected a base rate above 0", o.lr);
    CVY_CHECK(o.batch > 0 && o.epoch_samples > 0 && isfinite(o.epochs) && o.epochs > 0, CVY_E_ARGUMENT,
              "a schedule for batches of %lld, epochs of %lld samples and %g epochs: all three must be above 0",
              (long long)o.batch, (long long)o.epoch_samples, o.epochs);
    CVY_CHECK(isfinite(o.batch_factor) && o.batch_factor >= 0, CVY_E_ARGUMENT,
              "a schedule with batch_factor %g, expected a factor above 0, or 0 for none", o.batch_factor);
    const cvy_schedule_run run = {.lr = o.lr,
                                  .batch_factor = o.batch_factor,
                                  .total_samples = o.epochs * (double)o.epoch_samples,
                                  .epoch_samples = (double)o.epoch_samples,
                                  .batch = (double)o.batch};
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = open_text(schedule, &run, pool, schedule_out);
    cvy_pool_destroy(&pool);
    return status;
}
