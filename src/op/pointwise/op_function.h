/*
 * op_function.h: the number of a pointwise function (op_function.c) in the options of its gradient, and the exponent of
 * power.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_FUNCTION_H
#define CVY_OP_FUNCTION_H

typedef struct cvy_function_opts {
    int function;    /* set by infer */
    double exponent; /* of power */
} cvy_function_opts;

#endif
