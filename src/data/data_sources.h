/*
 * data_sources.h: what a source of the job file names, opened: a reader, its state and what it says of its samples.
 */
#ifndef CVY_DATA_SOURCES_H
#define CVY_DATA_SOURCES_H

#include "data/data_reader.h"

typedef struct cvy_source {
    const cvy_reader_def *reader; /* of the format, or one that stands before several */
    void *state;
    const char *path; /* for messages; NULL: none */
    cvy_reader_info info;
} cvy_source;

/* source: a path, a map {path, format, range, limit, options of the reader}, a list of these, or a map {sources: list,
 * classes, range, limit}. Everything but the readers' files lives in pool. */
cvy_status cvy_source_open(cvy_pool *pool, const cvy_tree *source, cvy_source *out);
void cvy_source_close(cvy_source *s); /* fine where nothing was opened */

/* "90%:" of a set of count samples: first to end - 1. at: for the place in messages. */
cvy_status cvy_source_range(const cvy_tree *at, int64_t count, int64_t *first_out, int64_t *end_out);

#endif
