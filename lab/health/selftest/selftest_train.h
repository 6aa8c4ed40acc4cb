/*
 * selftest_train.h: the small network of the self-test, and its steps: for the checks of training and of checkpoints.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SELFTEST_TRAIN_H
#define CVY_SELFTEST_TRAIN_H

#include "health/selftest/selftest.h"
#include "measure/measure_bench.h"

/* Opens and plans a training of the small network on the ranks of `context`. deterministic: with shards for so many
 * ranks; 0: without. more: further lines of the job in YAML, or "". Call cvy_bench_close() afterwards, also after a
 * fault. Collective. */
cvy_status cvy_selftest_train_open(cvy_context *context, int64_t deterministic_ranks, const char *more, cvy_bench *b);
/* Runs steps and gives the mean loss of the first one and of the last one. Collective. */
cvy_status cvy_selftest_train_steps(const cvy_selftest *t, cvy_bench *b, int64_t n, double *first_out,
                                    double *last_out);
/* A hash of the bits of all variables of this rank that are weights, or of all variables. Not collective. */
cvy_status cvy_selftest_train_hash(const cvy_bench *b, int all, uint64_t *hash_out);

#endif
