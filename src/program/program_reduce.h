/*
 * program_reduce.h: how a program reduces its gradients over ranks.
 */
#ifndef CVY_PROGRAM_REDUCE_H
#define CVY_PROGRAM_REDUCE_H

#include "program/program.h"

/* Checks the option. */
cvy_status cvy_program_read_progress(cvy_program *program);
/* Sets program->reduce.opts, and the cost of a reduction if buckets are sized by it. Collective; before graphs are
 * made. */
cvy_status cvy_program_size_buckets(cvy_program *program);
/* A member of an open JSON object: what a later run needs to sum as this one does. */
void cvy_program_sums_json(const cvy_program *program, cvy_json *json);

#endif
