/*
 * convoy/convert.h: conversion between file formats, of data sets and of the weights of a run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_CONVERT_H
#define CONVOY_CONVERT_H

#include <convoy/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What to convert, and into which format. Zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_convert_request {
    size_t size;
    /** The data set: a path, or a map in YAML: {path: ..., format: ..., options}. */
    const char *source;
    /** A folder that is new, empty, or holds the beginning of the same conversion. */
    const char *destination;
    /** "pack" (NULL), "tfrecord", "lmdb", "hdf5", "folder" ... */
    const char *format;
    /** Options of the format as YAML text, or NULL. */
    const char *options;
    /** Number of files; 0: chosen by the size of the data. */
    int64_t parts;
    /** Pictures are resized to this; 0: they stay as they are. */
    int64_t height, width;
    /** 1: pictures are not decoded to check whether they are valid. */
    int unchecked;
    /** 1: damaged samples are left out and counted; 0: they are faults. */
    int skip_bad;
    /** Called on rank 0 from time to time with the number of its own samples that are done, and of all its samples; or
     * NULL. */
    void (*progress)(void *user, int64_t done, int64_t of);
    /** Given to `progress`. */
    void *user;
} cvy_convert_request;
CVY_SIZED_STRUCT(cvy_convert_request)

/**
 * cvy_run_convert - write a data set in another format
 * @request: equal on all ranks
 * @report_out: one line: samples, classes, bytes, parts, damaged samples, time (rank 0; NULL on others); the caller
 *              releases it with cvy_text_release()
 *
 * Encoded pictures stay encoded, so nothing is lost and nothing grows. The parts are distributed over the ranks and do
 * not depend on their number. A conversion that was interrupted continues when it is requested again. Collective: yes.
 * Errors: CVY_E_CONFIG, CVY_E_IO, CVY_E_FORMAT, CVY_E_UNSUPPORTED (what the format cannot hold), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_convert(cvy_context *context, const cvy_convert_request *request,
                                                  char **report_out);

/**
 * cvy_run_export - write a run's weights and running statistics as one safetensors file, after checking the checkpoint
 * @run: the run folder
 * @which: "best", "step-1234", or NULL: the best one if one is recorded, else the newest valid one
 * @out: the file; it is written whole or not at all
 * @replace: 1: if the file exists already, it is replaced; 0: that is an error
 * @step_out: the training step of the checkpoint
 * @notes_out: a line for each newer checkpoint that is damaged and was skipped, or NULL; the caller releases it
 *             with cvy_text_release(). May be NULL itself
 *
 * Collective: no. Errors: CVY_E_IO (no such checkpoint; @out exists), CVY_E_FORMAT (damaged), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_export(const char *run, const char *which, const char *out, int replace,
                                                 int64_t *step_out, char **notes_out);

/** The data formats that this build reads and writes: two lines, "reads" and "writes", each followed by names. The
 * caller releases the text with cvy_text_release(). Collective: no. Errors: CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_formats(char **text_out);

#ifdef __cplusplus
}
#endif
#endif
