/* SPDX-License-Identifier: BSD-3-Clause */
/* measure_result.c: see measure_result.h. */
#include "measure/measure_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "measure/measure.h"

const char *cvy_bench_mode_text(cvy_bench_mode mode)
{
    switch (mode) {
    case CVY_BENCH_FORWARD: return "forward";
    case CVY_BENCH_FORWARD_BACKWARD: return "forward-backward";
    case CVY_BENCH_TRAIN: break;
    }
    return "train";
}

static int is_left_out(const cvy_result_row *row, const void *field)
{
    if (!row->is_optional)
        return 0;
    if (row->kind == CVY_RESULT_REAL)
        return !isfinite(*(const double *)field);
    return row->kind == CVY_RESULT_COUNT ? *(const int64_t *)field == 0 : *(const int *)field == 0;
}

static void add(const cvy_result_row *row, const char *key, const void *field, cvy_json *json)
{
    switch (row->kind) {
    case CVY_RESULT_TEXT: cvy_json_string(json, key, field); break;
    case CVY_RESULT_COUNT: cvy_json_int(json, key, *(const int64_t *)field); break;
    case CVY_RESULT_INT: cvy_json_int(json, key, *(const int *)field); break;
    case CVY_RESULT_BOOL: cvy_json_bool(json, key, *(const int *)field); break;
    case CVY_RESULT_REAL: cvy_json_real(json, key, *(const double *)field); break;
    case CVY_RESULT_DTYPE: cvy_json_string(json, key, cvy_dtype_text(*(const cvy_dtype *)field)); break;
    case CVY_RESULT_SHAPE: cvy_json_string(json, key, cvy_shape_text(field)); break;
    case CVY_RESULT_MODE: cvy_json_string(json, key, cvy_bench_mode_text(*(const cvy_bench_mode *)field)); break;
    case CVY_RESULT_CLOCK: cvy_json_string(json, key, "clock: nothing was computed, no loss"); break;
    }
}

void cvy_result_add(const cvy_result_row *rows, const void *result, cvy_json *json)
{
    for (; rows->name; rows++)
        if (!is_left_out(rows, (const char *)result + rows->offset))
            add(rows, rows->name, (const char *)result + rows->offset, json);
}

cvy_status cvy_result_json(const cvy_result_row *rows, const void *result, char **text_out)
{
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_result_add(rows, result, &json);
    cvy_json_close(&json, '}');
    return cvy_text_take(&json.text, text_out);
}

/* Adds a text without quotes, a real number with six digits, and other values as in JSON. */
static void add_value(const cvy_result_row *row, const void *field, cvy_text *lines)
{
    cvy_json json = {0};
    add(row, NULL, field, &json);
    const char *value = json.text.data ? json.text.data : "";
    const size_t n = strlen(value);
    if (row->kind == CVY_RESULT_TEXT)
        cvy_text_add(lines, "%s", (const char *)field);
    else if (*value == '"')
        cvy_text_add_bytes(lines, value + 1, n - 2);
    else if (strchr(value, '.'))
        cvy_text_add(lines, "%.6g", *(const double *)field);
    else
        cvy_text_add_bytes(lines, value, n);
    if (json.text.status != CVY_OK)
        lines->status = json.text.status;
    cvy_text_free(&json.text);
}

cvy_status cvy_result_lines(const cvy_result_row *rows, const void *result, char **text_out)
{
    enum { NAME_WIDTH = 26 };
    cvy_text lines = {0};
    for (; rows->name; rows++) {
        const void *field = (const char *)result + rows->offset;
        if (is_left_out(rows, field))
            continue;
        cvy_text_add(&lines, "%-*s  ", NAME_WIDTH, rows->name);
        add_value(rows, field, &lines);
        cvy_text_add(&lines, "\n");
    }
    return cvy_text_take(&lines, text_out);
}
