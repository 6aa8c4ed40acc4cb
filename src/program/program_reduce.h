/*
 * program_reduce.h: how a program reduces its gradients over ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_REDUCE_H
#define CVY_PROGRAM_REDUCE_H

#include "program/program_view.h"

/* Sets program->reduce: whether NCCL sums, the options, and the cost of a reduction if buckets are sized by it. Call it
 * before graphs are made. Collective. */
cvy_status cvy_program_size_buckets(cvy_program *program);
/* Writes by what ranks exchange the tensors of a device, and why not by NCCL; returns 0 if they exchange none. */
int cvy_program_say_exchanges(const cvy_program *program, char *text, size_t room);
/* After the plans are bound: says that of gradients in the log. */
void cvy_program_note_sums(const cvy_program *program);
/* Adds a member to an open JSON object: what a later run needs to reduce in the same order. */
void cvy_program_sums_json(const cvy_program *program, cvy_json *json);

#endif
