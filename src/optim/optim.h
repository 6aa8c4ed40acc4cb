/*
 * optim.h: optimisers, learning-rate schedules and initialisers. Each has its own file and registers itself at the end
 * of that file.
 *
 * An optimiser is an operator with CVY_OP_ASSIGNS and CVY_OP_OPTIMIZER. Its sources are, in this order: weight (the
 * variable as read), gradient, lr (f64 scalar feed), scale (f64 scalar by which clipping multiplies the gradient; never
 * NULL: a constant 1 without clipping), step (i64 scalar feed, counts from 0). Its infer appends its states with
 * cvy_node_state() and assigns weight and states. Its option table holds the user's options plus `weight_decay` and
 * `lr_mult`, which the optimiser pass sets for each variable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OPTIM_H
#define CVY_OPTIM_H

#include "base/number/base_rng.h"
#include "base/text/base_text.h"
#include <convoy/schedule.h>

#include "graph/graph_op.h"

/* Appends the state variable "<weight>.<suffix>" as the next source. It has role STATE and the weight's shape, dtype
 * and layout, and begins as zeros. */
cvy_status cvy_node_state(cvy_node *node, const char *suffix);

/* ---- schedules: lr as a function of samples seen ---- */
typedef struct cvy_schedule_def {
    const char *name, *summary;
    const cvy_option *options;
    size_t options_size;
    /* The factor on the base rate after `samples` samples, counted from the start of the run with the warm-up. total:
     * samples of the run; epoch_samples: of one epoch. Durations in the options (unit "samples") are already in
     * samples. */
    double (*factor)(const void *options, double samples, double total, double epoch_samples);
    cvy_status (*check)(const void *options); /* of options that do not go together; NULL: any do */
} cvy_schedule_def;
#define CVY_SCHEDULE_DEFINE(id) const cvy_schedule_def cvy_schedule_##id##_def
const cvy_schedule_def *const *cvy_schedule_table(int *count_out);
typedef struct cvy_schedule_run {
    double lr;           /* base rate */
    double batch_factor; /* factor on lr for a large batch: the warm-up begins at lr. 0: no factor, and the warm-up
                            begins at 0 */
    double total_samples, epoch_samples, batch;
} cvy_schedule_run;
/* tree: "cosine", or {name: step, every: 10 epochs, factor: 0.1, warmup: 5 epochs, warmup_from: 0.1}; NULL: constant.
 * Durations: "N samples|epochs|steps"; `batch` turns steps into samples. */
cvy_status cvy_schedule_create(const cvy_tree *tree, const cvy_schedule_run *run, cvy_schedule **out);
/* Adds a sentence if the schedule, or a time of its list, changes nothing within a training of so many steps. */
void cvy_schedule_list_idle(const cvy_schedule *s, int64_t steps, cvy_text *out);
double cvy_schedule_warmup(const cvy_schedule *s);      /* length of the warm-up in samples */
double cvy_schedule_warmup_from(const cvy_schedule *s); /* share of the rate at its start */
const char *cvy_schedule_name(const cvy_schedule *s);
/* The field of an option of the schedule, with times in samples; NULL: it has no such option of this type. */
const void *cvy_schedule_field(const cvy_schedule *s, const char *name, cvy_option_type type);

/* ---- initialisers ---- */
typedef struct cvy_init_def {
    const char *name, *summary;
    const cvy_option *options;
    size_t options_size;
    int needs_fans; /* fan_in and fan_out must be known: cvy_init_fill checks it */
    /* Value of element i of a tensor; rng is the variable's own stream. */
    double (*value)(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i);
} cvy_init_def;
#define CVY_INIT_DEFINE(id) const cvy_init_def cvy_init_##id##_def
const cvy_init_def *const *cvy_init_table(int *count_out);
/* Fills plain (v's dtype) with elements [first, first + n) in row-major order. They depend on (seed, v->name, element)
 * only, so all ranks get the same values without communication. */
cvy_status cvy_init_fill(const cvy_variable *v, uint64_t seed, int64_t first, int64_t n, void *plain);

#endif
