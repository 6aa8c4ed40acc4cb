/*
 * data_units.h: units of measurement as files spell them: whether two are the same, and how numbers are converted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_UNITS_H
#define CVY_DATA_UNITS_H

typedef enum {
    CVY_UNITS_SAME,      /* perhaps in another spelling: "m s-1" and "m/s" */
    CVY_UNITS_CONVERTED, /* number * factor + offset */
    CVY_UNITS_OTHER      /* they measure something else, or one of them is not known */
} cvy_units_relation;

/* Relates the units in which numbers are to those in which they are wanted. factor_out and offset_out are 1 and 0
 * unless they are to be converted. */
cvy_units_relation cvy_units_relate(const char *from, const char *to, double *factor_out, double *offset_out);

#endif
