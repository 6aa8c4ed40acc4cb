/*
 * data_sources.h: opens a source of the job file: its reader, the reader's state, and the description of its samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_SOURCES_H
#define CVY_DATA_SOURCES_H

#include "data/data_reader.h"

typedef struct cvy_source {
    const cvy_reader_def *reader; /* reader of the format, or one that combines several sources */
    void *state;
    const char *path; /* for messages; NULL: none */
    cvy_reader_info info;
} cvy_source;

/* source: a path, a map {path, format, range, limit, options of the reader}, a list of these, or a map {sources: list,
 * classes, range, limit}. like: the form of the training data, which the source follows, or NULL. All memory is in
 * pool; cvy_source_close() closes the readers' files. */
cvy_status cvy_source_open(cvy_pool *pool, const cvy_tree *source, const cvy_data_form *like, cvy_source *out);
void cvy_source_close(cvy_source *s); /* allowed if nothing was opened */

/* Parses a range such as "90%:" of a set of count samples: it is samples first .. end - 1. at: the node with the text;
 * messages name its line. */
cvy_status cvy_source_range(const cvy_tree *at, int64_t count, int64_t *first_out, int64_t *end_out);

#endif
