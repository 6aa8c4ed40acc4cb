/*
 * sample_splits.h: checks the axes along which operators say that they may be cut (cvy_op_def.splits, node_splits).
 *
 * A sample is cut into two parts along each axis, and its gradient operators with it. Every node that declares the axis
 * is run by its reference kernel on the parts of its sources. A cut result must equal its part of the whole result to
 * the bit. Partial sums must add up to the whole sum within eps x number of summands.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SAMPLE_SPLITS_H
#define CVY_SAMPLE_SPLITS_H

#include "sample/sample_graph.h"

typedef struct cvy_split_report {
    int64_t checks, wrong; /* nodes that were cut along an axis; how often complain was called */
    /* Called for everything that is wrong, with a sentence that names node and axis. */
    void (*complain)(void *user, const cvy_op_def *op, const cvy_sample *sample, const char *what);
    /* Called for each operator and CVY_SPLIT_* that was tried; may be NULL. */
    void (*tried)(void *user, const cvy_op_def *op, unsigned bit);
    void *user;
} cvy_split_report;

/* A part that is wrong is no fault of the call. */
cvy_status cvy_sample_check_splits(const cvy_op_def *op, const cvy_sample *sample, int training,
                                   cvy_split_report *report);

#endif
