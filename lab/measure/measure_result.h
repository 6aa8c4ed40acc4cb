/*
 * measure_result.h: describes a result of a study as a table of rows. Its JSON and its lines for people are made from
 * the same table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MEASURE_RESULT_H
#define CVY_MEASURE_RESULT_H

#include "base/text/base_json.h"

typedef enum {
    CVY_RESULT_TEXT,  /* char[] */
    CVY_RESULT_COUNT, /* int64_t */
    CVY_RESULT_INT,   /* int */
    CVY_RESULT_BOOL,  /* int */
    CVY_RESULT_REAL,  /* double */
    CVY_RESULT_DTYPE, /* cvy_dtype */
    CVY_RESULT_SHAPE, /* cvy_shape */
    CVY_RESULT_MODE,  /* cvy_bench_mode */
    CVY_RESULT_CLOCK  /* int: 1 means that nothing was computed */
} cvy_result_kind;

typedef struct cvy_result_row {
    const char *name; /* NULL ends the table */
    cvy_result_kind kind;
    size_t offset;
    int is_optional; /* left out if the value is 0, false or not finite */
} cvy_result_row;

/* The first adds the rows as members of an open object, the second makes a whole object. The caller frees the text. */
void cvy_result_add(const cvy_result_row *rows, const void *result, cvy_json *json);
cvy_status cvy_result_json(const cvy_result_row *rows, const void *result, char **text_out);
/* Writes a line for each row: the name and the value. Real numbers have six digits. The caller frees the text. */
cvy_status cvy_result_lines(const cvy_result_row *rows, const void *result, char **text_out);

#endif
