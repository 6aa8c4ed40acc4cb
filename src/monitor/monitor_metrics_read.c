/*
 * monitor_metrics_read.c: reads metrics.jsonl into tables of numbers: for steps, epochs and stages.
 *
 * A run of a million steps has a million lines, so this is a scanner for flat JSON objects and builds no tree. A line
 * that cannot be parsed (the last one of a killed run) is skipped. A run may append lines while this reads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_metrics_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_mem.h"

#define METRICS_BYTES_MAX ((size_t)1 << 30)
#define PAIRS_MAX CVY_FRAME_COLUMNS

struct pair {
    char key[48];
    double value;
};

struct line {
    char kind[16];
    struct pair pair[PAIRS_MAX];
    int npair;
};

static const char *skip_space(const char *c)
{
    while (*c == ' ' || *c == '\t' || *c == '\r')
        c++;
    return c;
}

/* Copies a quoted string into text, truncated to its room; of an escape it keeps the character after the backslash.
 * Returns the position after the string, or NULL if there is none. */
static const char *scan_string(const char *c, char *text, size_t room)
{
    size_t used = 0;
    if (*c++ != '"')
        return NULL;
    for (; *c && *c != '"'; c++) {
        if (*c == '\\' && c[1])
            c++;
        if (used + 1 < room)
            text[used++] = *c;
    }
    text[used] = 0;
    return *c == '"' ? c + 1 : NULL;
}

/* Reads a value that is not a string: a number, or else NaN (null, true). A nested value returns NULL, which ends the
 * line. */
static const char *scan_value(const char *c, double *value)
{
    char *end = NULL;
    *value = strtod(c, &end);
    if (end != c)
        return end;
    *value = NAN;
    const size_t n = strspn(c, "abcdefghijklmnopqrstuvwxyz");
    return n ? c + n : NULL;
}

/* Reads {"key": value, ...}. Returns 1 if that is the whole line. */
static int scan_line(const char *c, struct line *line)
{
    char key[48], text[48];
    line->npair = 0;
    line->kind[0] = 0;
    c = skip_space(c);
    if (*c++ != '{')
        return 0;
    for (;;) {
        double value = NAN;
        c = scan_string(skip_space(c), key, sizeof key);
        if (!c || *(c = skip_space(c)) != ':')
            return 0;
        c = skip_space(c + 1);
        if (*c == '"') {
            c = scan_string(c, text, sizeof text);
            if (strcmp(key, "kind") == 0)
                snprintf(line->kind, sizeof line->kind, "%.15s", text);
        } else {
            c = scan_value(c, &value);
            if (line->npair < PAIRS_MAX) {
                snprintf(line->pair[line->npair].key, sizeof line->pair[0].key, "%s", key);
                line->pair[line->npair++].value = value;
            }
        }
        if (!c)
            return 0;
        c = skip_space(c);
        if (*c == '}')
            return *skip_space(c + 1) == 0;
        if (*c++ != ',')
            return 0;
    }
}

/* ---- tables ---- */

static int column_index(const cvy_frame *f, const char *name)
{
    for (int i = 0; i < f->ncol; i++)
        if (strcmp(f->name[i], name) == 0)
            return i;
    return -1;
}

static cvy_status grow(cvy_frame *f)
{
    const int64_t room = f->room ? 2 * f->room : 256;
    for (int i = 0; i < f->ncol; i++)
        CVY_TRY(cvy_mem_grow(&f->at[i], sizeof(double) * (size_t)f->nrow, sizeof(double) * (size_t)room));
    f->room = room;
    return CVY_OK;
}

static cvy_status add_column(cvy_frame *f, const char *name, int *index_out)
{
    double *column = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *column * (size_t)f->room, &column));
    for (int64_t i = 0; i < f->room; i++)
        column[i] = NAN;
    snprintf(f->name[f->ncol], sizeof f->name[0], "%s", name);
    f->at[f->ncol] = column;
    *index_out = f->ncol++;
    return CVY_OK;
}

static double pair_value(const struct line *line, const char *key)
{
    for (int i = 0; i < line->npair; i++)
        if (strcmp(line->pair[i].key, key) == 0)
            return line->pair[i].value;
    return NAN;
}

static cvy_status add_row(cvy_frame *f, const struct line *line, const char *key)
{
    const int key_column = column_index(f, key);
    if (key_column >= 0 && f->nrow > 0 && f->at[key_column][f->nrow - 1] == pair_value(line, key))
        f->nrow--;
    if (f->nrow == f->room)
        CVY_TRY(grow(f));
    for (int i = 0; i < f->ncol; i++)
        f->at[i][f->nrow] = NAN;
    for (int i = 0; i < line->npair; i++) {
        int column = column_index(f, line->pair[i].key);
        if (column < 0 && f->ncol == CVY_FRAME_COLUMNS)
            continue;
        if (column < 0)
            CVY_TRY(add_column(f, line->pair[i].key, &column));
        f->at[column][f->nrow] = line->pair[i].value;
    }
    f->nrow++;
    return CVY_OK;
}

cvy_status cvy_frames_read(const char *path, cvy_frame *steps, cvy_frame *epochs, cvy_frame *stages)
{
    char *text = NULL;
    size_t bytes = 0;
    struct line line;
    CVY_TRY(cvy_file_read(path, METRICS_BYTES_MAX, &text, &bytes));
    cvy_status status = CVY_OK;
    for (char *at = text, *end; status == CVY_OK && at < text + bytes; at = end + 1) {
        end = memchr(at, '\n', (size_t)(text + bytes - at));
        if (!end)
            break; /* an unfinished line */
        *end = 0;
        if (!scan_line(at, &line))
            continue;
        if (strcmp(line.kind, "step") == 0)
            status = add_row(steps, &line, "step");
        else if (strcmp(line.kind, "epoch") == 0)
            status = add_row(epochs, &line, "epoch");
        else if (stages && strcmp(line.kind, "stage") == 0)
            status = add_row(stages, &line, "stage");
    }
    cvy_mem_free(&text);
    return status;
}

void cvy_frame_free(cvy_frame *frame)
{
    for (int i = 0; i < frame->ncol; i++)
        cvy_mem_free(&frame->at[i]);
    memset(frame, 0, sizeof *frame);
}

/* A logged step has the rate since the step logged before it. Rows without a number of samples count as equal. */
double cvy_frame_speed(const cvy_frame *steps)
{
    const double *rate = cvy_frame_column(steps, "images_per_s"), *at = cvy_frame_column(steps, "samples");
    double samples = 0, seconds = 0, before = 0;
    for (int64_t i = 0; rate && i < steps->nrow; i++) {
        const double n = at ? at[i] - before : 1;
        before = at && isfinite(at[i]) ? at[i] : before;
        if (!(n > 0) || !(rate[i] > 0) || !isfinite(n / rate[i]))
            continue;
        samples += n;
        seconds += n / rate[i];
    }
    return seconds > 0 ? samples / seconds : NAN;
}

const double *cvy_frame_column(const cvy_frame *frame, const char *name)
{
    const int i = column_index(frame, name);
    for (int64_t k = 0; i >= 0 && k < frame->nrow; k++)
        if (isfinite(frame->at[i][k]))
            return frame->at[i];
    return NULL;
}
