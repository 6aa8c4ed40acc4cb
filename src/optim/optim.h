/*
 * optim.h: optimisers, learning-rate schedules, initialisers: one a file, each registered at its end.
 *
 * An optimiser is an operator with CVY_OP_ASSIGNS and CVY_OP_OPTIMIZER whose sources are, in order: weight (variable as
 * read), gradient, lr (f64 scalar feed), scale (f64 scalar: what clipping multiplies the gradient by, NULL-free: a
 * constant 1 if there is no clipping), step (i64 scalar feed, counts from 0); its infer appends its states with
 * cvy_node_state() and assigns weight and states. Its option table holds the user's options plus `weight_decay` and
 * `lr_mult`, which the optimiser pass sets for each variable.
 */
#ifndef CVY_OPTIM_H
#define CVY_OPTIM_H

#include "base/base_rng.h"
#include <convoy/schedule.h>

#include "graph/graph_op.h"

/* Appends the state variable "<weight>.<suffix>" (shape and dtype of the weight, zeros, role STATE, layout that of the
 * weight) as the next source. */
cvy_status cvy_node_state(cvy_node *node, const char *suffix);

/* ---- schedules: lr as a function of samples seen ---- */
typedef struct cvy_schedule_def {
    const char *name, *summary;
    const cvy_option *options;
    size_t options_size;
    /* Factor on the base rate, `samples` after the warm-up's start, of `total` samples in the run; epoch_samples is one
     * epoch. Durations among the options (unit "samples") have been turned into samples. */
    double (*factor)(const void *options, double samples, double total, double epoch_samples);
} cvy_schedule_def;
#define CVY_SCHEDULE_DEFINE(id) const cvy_schedule_def cvy_schedule_##id##_def
const cvy_schedule_def *const *cvy_schedule_table(int *count_out);
typedef struct cvy_schedule_run {
    double lr;           /* base rate */
    double batch_factor; /* what the global batch makes of it; the warm-up then begins at lr. 0: nothing, and it begins
                            at 0 */
    double total_samples, epoch_samples, batch;
} cvy_schedule_run;
/* tree: "cosine", or {name: step, every: 10 epochs, factor: 0.1, warmup: 5 epochs, warmup_from: 0.1}; NULL: constant.
 * Durations: "N samples|epochs|steps" or a bare number of samples; steps are turned into samples by `batch`. */
cvy_status cvy_schedule_create(const cvy_tree *tree, const cvy_schedule_run *run, cvy_schedule **out);
double cvy_schedule_warmup(const cvy_schedule *s); /* its length in samples */

/* ---- initialisers ---- */
typedef struct cvy_init_def {
    const char *name, *summary;
    const cvy_option *options;
    size_t options_size;
    int needs_fans; /* fan_in and fan_out must be known: cvy_init_fill checks it */
    /* Element i of a tensor; rng is the variable's own stream. */
    double (*value)(const void *options, const cvy_init *init, const cvy_rng *rng, uint64_t i);
} cvy_init_def;
#define CVY_INIT_DEFINE(id) const cvy_init_def cvy_init_##id##_def
const cvy_init_def *const *cvy_init_table(int *count_out);
/* Fills plain (v's dtype) with elements [first, first + n) in row-major order, from (seed, v->name, element): equal on
 * every rank without communication. */
cvy_status cvy_init_fill(const cvy_variable *v, uint64_t seed, int64_t first, int64_t n, void *plain);

#endif
