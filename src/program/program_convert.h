/*
 * program_convert.h: copies arrays from one dtype to another.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_CONVERT_H
#define CVY_PROGRAM_CONVERT_H

#include "graph/graph_op.h"

/* Copies n elements, and converts them if the dtypes differ; integers must fit. */
void cvy_copy_elems(const void *from, cvy_dtype from_dtype, void *to, cvy_dtype to_dtype, int64_t n);

/* Whether an array of the caller fits. bf16 does not occur outside: real inputs and outputs have the program's dtype,
 * f32 or f64. name: for messages. */
cvy_status cvy_convert_check(const char *name, cvy_dtype dtype, cvy_dtype own);

/* Copies n elements of the caller, of a dtype that fits; integers out of range are a fault. */
cvy_status cvy_convert_elems(const char *name, const void *from, cvy_dtype dtype, void *to, cvy_dtype to_dtype,
                             int64_t n);

#endif
