/*
 * program_reduce.h: how a program reduces its gradients over ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_REDUCE_H
#define CVY_PROGRAM_REDUCE_H

#include "program/program_view.h"

/* Sets program->reduce.opts, and the cost of a reduction if buckets are sized by it. Call it before graphs are made.
 * Collective. */
cvy_status cvy_program_size_buckets(cvy_program *program);
/* Adds a member to an open JSON object: what a later run needs to reduce in the same order. */
void cvy_program_sums_json(const cvy_program *program, cvy_json *json);

#endif
