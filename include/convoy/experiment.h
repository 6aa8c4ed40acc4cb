/**
 * @file experiment.h
 * Studies: many measurements of networks, batches, threads, ranks and frameworks that one file declares, with a report.
 *
 * Each measurement is a command of its own (convoy bench, or that of another framework), so a fault of one leaves the
 * others alone. Results are lines of results.jsonl in the study's folder. A study that was interrupted goes on where it
 * was. docs/guide/studies.md describes study files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_EXPERIMENT_H
#define CONVOY_EXPERIMENT_H

#include <convoy/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to run a study. Set size. */
typedef struct cvy_study_opts {
    size_t size;
    /** The study file: its name in messages, and its text. Required. */
    const char *name, *text;
    /** The folder for results and report; it is made if it does not exist. Required. */
    const char *out;
    /** The folder with the descriptions of frameworks, and the program convoy. Required. */
    const char *frameworks, *program;
    /** These frameworks, as a list with commas, instead of those of the study file; NULL: those of the file. */
    const char *only;
    /** Not NULL: published figures, as studies/published.csv. Those of the study that the file names in `published` are
     * copied into the folder, and shown beside the results. */
    const char *published;
    /** Not 0: the smaller axes that the study file gives for a quick look. */
    int quick;
    /** Not 0: measurements that failed are made again. */
    int retry;
    /** Not NULL: the study ends after the current measurement's process is ended, as soon as *stop is not 0. A signal
     * handler may set it. */
    const volatile int *stop;
    /** Not NULL: called with each line of progress, without a newline, and with user. */
    void (*show)(void *user, const char *line);
    void *user;
} cvy_study_opts;
CVY_SIZED_STRUCT(cvy_study_opts)

/** What has become of a study. Set size. */
typedef struct cvy_study_result {
    size_t size;
    /** Measurements of the study: in all, made now, made before, failed, and left out because a framework is not
     * installed or cannot do what the case asks, or because there are too few cores. */
    int64_t total, measured, earlier, failed, skipped;
} cvy_study_result;
CVY_SIZED_STRUCT(cvy_study_result)

/**
 * cvy_run_study - make all measurements of a study that are not in its folder yet
 * @out: its size is the caller's; written also if the study was stopped
 *
 * The folder also gets a copy of the study file, study.yaml. A measurement that fails is a line with its error, and the
 * rest goes on. Results of another machine in the same folder stay, and count as those of another machine.
 *
 * Collective: no; call it on one process outside of MPI. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG with file, line and
 * column, CVY_E_IO, CVY_E_MEMORY; CVY_STOPPED: *stop was set, and all results are saved.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_study(const cvy_study_opts *opts, cvy_study_result *out);

/**
 * cvy_report_study - write the report of a study
 * @folder: as in cvy_run_study()
 *
 * It writes report.html and results.csv into the folder: medians over the repeats, their range, and figures.
 *
 * Collective: no. Errors: CVY_E_IO, CVY_E_FORMAT, CVY_E_CONFIG, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_report_study(const char *folder);

#ifdef __cplusplus
}
#endif

#endif
