/*
 * data_convert.h: one data set into another format: `convoy convert`, and `convoy pack`.
 */
#ifndef CVY_DATA_CONVERT_H
#define CVY_DATA_CONVERT_H

#include "data/data.h"

typedef struct cvy_convert_opts {
    const char *format;         /* of a writer */
    const cvy_tree *options;    /* the writer's, a map; NULL: none */
    int64_t pieces;             /* 0: chosen by the size of the samples */
    int64_t resize_h, resize_w; /* 0: as they are; else decoded, resized (cover), stored as bytes */
    int check;                  /* decode every picture, so that no damaged one is written */
    int skip_bad;               /* leave damaged samples out and count them; else they are faults */
    void (*progress)(void *user, int64_t done, int64_t of); /* seldom, on rank 0, of its own samples; NULL: none */
    void *user;
} cvy_convert_opts;

typedef struct cvy_convert_report {
    int64_t nsamples, nbad, bytes;
    int64_t npieces, nkept; /* kept: there already, from a conversion that was cut off */
} cvy_convert_report;

/* Writes all samples of d, as stored (its augmentation is not applied), to the folder `path`, all ranks helping.
 * It must be new, empty, or hold the beginning of the same conversion, which is then completed. After a fault
 * finished pieces stay, for the next try. Collective; the same status and report on all ranks. */
cvy_status cvy_convert(cvy_dataset *d, cvy_comm *comm, const char *path, const cvy_convert_opts *opts,
                       cvy_convert_report *report_out);

#endif
