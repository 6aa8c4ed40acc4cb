/*
 * convoy/schedule.h: learning-rate schedules for a program with its own training loop, described as in a job file.
 *
 *     cvy_schedule_opts opts = cvy_schedule_opts_default();
 *     opts.lr = 0.1, opts.batch = 128, opts.epoch_samples = 50000, opts.epochs = 10;
 *     cvy_schedule_open("{name: cosine, warmup: 1 epoch}", &opts, &schedule);
 *     cvy_program_step(program, task, cvy_schedule_lr(schedule, (double)step * 128));
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_SCHEDULE_H
#define CONVOY_SCHEDULE_H

#include <convoy/base.h>

CVY_BEGIN_DECLS

/** A learning rate as a function of the samples seen. It does not change, so any thread may ask it. */
typedef struct cvy_schedule cvy_schedule;

/** What a schedule is made for; zero-initialise, set size. */
typedef struct cvy_schedule_opts {
    size_t size;
    /** The base rate, above 0; required. */
    double lr;
    /** Samples of a global batch, for durations in steps; required. */
    int64_t batch;
    /** Samples of an epoch, for durations in epochs; required. */
    int64_t epoch_samples;
    /** Length of the run in epochs, above 0; required. */
    double epochs;
    /** Factor on the rate for a large batch, as train.lr_rule makes it: a warm-up then begins at `lr`. 0: none, and a
     * warm-up begins at 0. */
    double batch_factor;
} cvy_schedule_opts;
CVY_SIZED_STRUCT(cvy_schedule_opts)

/**
 * cvy_schedule_open - make a schedule from text
 * @schedule: as train.schedule of a job: a name, "cosine", or a map in YAML, "{name: step, every: 10 epochs, factor:
 *            0.1, warmup: 5 epochs}"; NULL: constant. Durations are numbers with a unit: steps, epochs or samples
 * @opts: all but batch_factor are required
 * @schedule_out: the caller destroys it
 *
 * Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (unknown name or key: the nearest is named), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_schedule_open(const char *schedule, const cvy_schedule_opts *opts,
                                                    cvy_schedule **schedule_out);
/** The learning rate of a step before which @samples samples of all ranks were seen. Collective: no. Errors: none. */
CVY_API double cvy_schedule_lr(const cvy_schedule *schedule, double samples);
/** Destroys the object and sets the pointer to NULL; NULL is accepted. Collective: no. */
CVY_API void cvy_schedule_destroy(cvy_schedule **schedule);

CVY_END_DECLS
#endif
