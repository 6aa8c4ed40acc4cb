/*
 * data_convert.h: writes a data set in another format, for `convoy convert` and `convoy pack`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_CONVERT_H
#define CVY_DATA_CONVERT_H

#include "data/data.h"

typedef struct cvy_convert_opts {
    const char *format;         /* name of a writer */
    const cvy_tree *options;    /* options of the writer, a map; NULL: none */
    int64_t pieces;             /* number of pieces; 0: chosen from the size of the samples */
    int64_t resize_h, resize_w; /* pixels; 0: as they are; else decoded, resized (cover), stored as bytes */
    int check;                  /* 1: decode every picture, so that no damaged one is written */
    int skip_bad;               /* 1: leave damaged samples out and count them; 0: they are errors */
    void (*progress)(void *user, int64_t done, int64_t of); /* seldom; rank 0 reports its own samples; NULL: none */
    void *user;
} cvy_convert_opts;

typedef struct cvy_convert_report {
    int64_t nsamples, nbad, bytes;
    int64_t npieces, nkept; /* nkept: pieces that an interrupted conversion had already finished */
} cvy_convert_report;

/* Writes all samples of d to the folder `path`, as stored (without augmentation). All ranks take part. The folder must
 * be new, be empty, or hold the beginning of the same conversion, which is then completed. After an error finished
 * pieces stay for the next try. Collective; the status and the report are the same on all ranks. */
cvy_status cvy_convert(cvy_dataset *d, cvy_comm *comm, const char *path, const cvy_convert_opts *opts,
                       cvy_convert_report *report_out);

#endif
