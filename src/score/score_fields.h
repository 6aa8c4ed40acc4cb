/*
 * score_fields.h: a regression whose targets are fields, with two or more axes: maps of truth, prediction and
 * difference, for the report of the run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_FIELDS_H
#define CVY_SCORE_FIELDS_H

#include "base/text/base_json.h"
#include "score/score_run.h"

/* Planes of a target: shape [H, W], [C, H, W], or [C, .., H, W], of which the middle plane of each channel is shown. */
typedef struct cvy_fields {
    int64_t channels, H, W;
    int64_t first, stride; /* of the plane of channel 0, and between channels, in elements */
    int64_t elems;         /* of a target */
} cvy_fields;

/* Whether the targets that are scored are fields, and the outputs have as many elements. */
int cvy_fields_find(const cvy_scoring *s, int64_t output_elems, cvy_fields *out);
/* "y", or "y[2]" if there are several channels. */
void cvy_fields_name(const cvy_fields *f, int64_t channel, char *text, size_t room);
/* rows: for each sample in the order of the data, the network output, then the target. Adds "fields" to the open object
 * of test.json: for each channel the worst samples and typical ones. Without PNG in this build it does nothing. Call it
 * on rank 0. */
cvy_status cvy_fields_add(const cvy_scoring *s, const cvy_fields *f, const float *rows, int64_t n, cvy_json *json);
/* The same for the maps of a generator, which belong to no true one: adds "generated", the first maps of both kinds. */
cvy_status cvy_fields_add_generated(const cvy_fields *f, const float *rows, int64_t n, cvy_json *json);

#endif
