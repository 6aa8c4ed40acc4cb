/*
 * kit.h: kits: studies for a centre. A kit is one folder that is copied to a cluster. It has job scripts for one node
 * up to many, predictions that are made before the measurements, and what comes of both.
 *
 *     kit.yaml             what the kit is (cvy_kit_about)
 *     studies/NAME.yaml    study files, whose numbers of ranks are those of this kit
 *     frameworks/          descriptions of frameworks; predicted.yaml is `convoy simulate` on platform.yaml
 *     platform.yaml        the machine as the predictions take it
 *     predictions.sha256   the seal: what was predicted, when, by which program; made before the first measurement
 *     results/NAME/        as the folder of a study: results-predictions.jsonl, results-nodes-N.jsonl
 *     journal/             a file for each job: when it began, which seal it found, what it measured
 *     jobs/, submit.sh ..  written by the command (cmd_study_kit.c)
 *     report.html          the page
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_KIT_H
#define CVY_KIT_H

#include <convoy/base.h>

#include "study/study.h"

enum { CVY_KIT_STUDIES = 32, CVY_KIT_NODES = 32 };

/** A study of a kit: its name, and the text of its file, in which @ranks@ and the like stand for numbers of the kit. */
typedef struct cvy_kit_study {
    const char *name, *text;
} cvy_kit_study;

/** What a kit is made of. Set size. */
typedef struct cvy_kit_opts {
    size_t size;
    /** The folder, which does not exist or is empty. Required. */
    const char *folder;
    /** Required. */
    const cvy_kit_study *study;
    int nstudy;
    /** The most nodes, and the ranks of a node. Required. */
    int64_t nodes, ranks_per_node;
    int quick;
    /** Frameworks that are compared, as a list with commas; NULL: convoy. */
    const char *peers;
    /** The descriptions of frameworks, and the program. Required. */
    const char *frameworks, *program;
    /** Published figures, as in cvy_study_opts. */
    const char *published;
    /** The text of a platform file, and its name; NULL: the first job measures it. */
    const char *platform, *platform_name;
    /** Whose job scripts the kit has. */
    const char *scheduler;
    /** The commit of this program; NULL: unknown. */
    const char *commit;
} cvy_kit_opts;
CVY_SIZED_STRUCT(cvy_kit_opts)

/** What is known of a kit. Set size. */
typedef struct cvy_kit_about {
    size_t size;
    int64_t ranks_per_node;
    int64_t nodes[CVY_KIT_NODES];           /* of its jobs, ascending */
    cvy_study_effort effort[CVY_KIT_NODES]; /* of each of these jobs, at most */
    int nnodes;
    char studies[1024]; /* their names, with commas */
    int npredicted;     /* predictions that are to be made */
} cvy_kit_about;
CVY_SIZED_STRUCT(cvy_kit_about)

/**
 * cvy_kit_create - make a kit without its job scripts
 *
 * A study that has no case for this number of nodes and ranks is left out and named in about->studies no more. A folder
 * that was made is removed after an error. Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (the folder has other
 * content; a study file; no study is left), CVY_E_IO, CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_kit_create(const cvy_kit_opts *opts, cvy_kit_about *out);

/** How to go on with a kit. Set size. */
typedef struct cvy_kit_run {
    size_t size;
    /** Required: the kit, and the program convoy. */
    const char *folder, *program;
    const char *commit;    /* of this program; NULL: unknown */
    const char *published; /* as in cvy_study_opts */
    /** The nodes of this job; 0: it is no job. */
    int64_t nodes;
    int retry;
    /** As in cvy_study_opts. */
    double begin, end;
    const volatile int *stop;
    void (*show)(void *user, const char *line);
    void *user;
} cvy_kit_run;
CVY_SIZED_STRUCT(cvy_kit_run)

/**
 * cvy_kit_predict - make the predictions of a kit, and seal them
 *
 * In a job of two nodes or more the platform is measured first, if the kit has none. Nothing is made again that is
 * there. Predictions that are sealed do not change. Collective: no. Errors: CVY_E_CONFIG (it is no kit; there is no
 * platform and no way to measure it), CVY_E_IO, CVY_E_MEMORY; CVY_STOPPED: another call continues.
 */
CVY_MUST_CHECK cvy_status cvy_kit_predict(const cvy_kit_run *run);

/**
 * cvy_kit_measure - make the measurements of a kit that need so many nodes
 *
 * If the predictions are not sealed, it makes and seals them first, as far as that is possible. A second call for the
 * same number of nodes at the same time is refused. Collective: no. Errors: CVY_E_CONFIG, CVY_E_IO, CVY_E_MEMORY;
 * CVY_STOPPED: another call continues.
 */
CVY_MUST_CHECK cvy_status cvy_kit_measure(const cvy_kit_run *run);

/** What has come back. Set size. */
typedef struct cvy_kit_result {
    size_t size;
    /** Pairs of a study and a number of nodes: complete, and all. */
    int complete, all;
    /** Measurements, and predictions with a measurement. */
    int measured, compared;
    /** The median of the absolute errors of these predictions; NaN if there is none. */
    double median_error;
    /** Not 0: the predictions are sealed and unchanged. */
    int is_sealed;
    /** Not 0: the page could be written. */
    int has_page;
} cvy_kit_result;
CVY_SIZED_STRUCT(cvy_kit_result)

/**
 * cvy_kit_collect - write the page of a kit, and an archive of the whole folder
 * @archive: the path of the archive, a .tar.gz that is replaced as a whole; NULL: only the page is written
 * @show: called with each line about what is missing; may be NULL
 *
 * A kit may have come back in part: what is missing is named on the page, too. If the page cannot be written, because
 * the disk is full, the archive is made without it. Collective: no. Errors: CVY_E_CONFIG (it
 * is no kit), CVY_E_IO, CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_kit_collect(const char *folder, const char *archive,
                                          void (*show)(void *user, const char *line), void *user, cvy_kit_result *out);

#endif
