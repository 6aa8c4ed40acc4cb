/*
 * session.h: what train, test and predict have in common: a job that is open on all ranks, with its data, its model
 * and its program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SESSION_H
#define CVY_SESSION_H

#include <convoy/job.h>

#include "base/text/base_text.h"
#include "context/context_device.h"
#include "data/data.h"
#include "data/data_split.h"
#include "data/load/data_samples.h"
#include "data/load/data_stage.h"
#include "job/job.h"
#include "metric/metric.h"
#include "model/model.h"
#include "monitor/monitor_watchdog.h"
#include "program/program_view.h"
#include "session/session_like.h"
#include "session/session_model.h"

enum { CVY_SOURCE_TRAIN, CVY_SOURCE_VAL, CVY_SOURCE_TEST, CVY_SOURCE_COUNT };

typedef struct cvy_session {
    cvy_context *context;
    cvy_job *job;
    cvy_dataset *train, *val, *test; /* NULL: the job has none, or it was not asked for */
    cvy_dataset *base;               /* data.train; it is opened once */
    /* views of `base` of which train and val are parts: with random augmentation, and without */
    cvy_dataset *whole[2];
    cvy_split split; /* of `base`, if data.val is a part of it */
    /* the job's sources, or their copies on this node; NULL: the job has no such source */
    const cvy_tree *from[CVY_SOURCE_COUNT];
    cvy_stage *stage;        /* NULL: nothing is copied to the node */
    cvy_cache_budget *cache; /* NULL: no samples are kept in memory */
    cvy_text notes;          /* lines for the log: what was done with the data */
    cvy_model *model;
    cvy_program *program;
    int is_watched;               /* set it before opening: the job's watchdog then runs from the start */
    const atomic_int *stop_flag;  /* for the watchdog: flag that is set when a signal tells this rank to end; or NULL */
    cvy_watchdog *watchdog;       /* NULL: off */
    const cvy_session_like *like; /* set it before opening training data; or NULL */
    const char *kernels;          /* set it before opening: these will be used in place of plan.kernels; or NULL */
    int keeps_device;             /* set it before opening: the context's device computes, whatever the job says */
    cvy_device_use device_before; /* that of the context, if the job has another one */
    int ignores_libraries;        /* set it before opening: the job came with weights, so it must not run code */
    int has_weights;              /* samples have weights: those of the data, or 0 for skipped samples */
} cvy_session;

/* Reads the job from a file or from a text. */
cvy_status cvy_job_read(const cvy_job_source *source, cvy_job **out);
/* Reads the job on every rank. If ranks have different jobs, that is an error which names the first key that differs.
 * Collective. */
cvy_status cvy_session_open_job(cvy_context *context, const cvy_job_source *source, cvy_session *s);
/* The first opens train (with random augmentation) and val. The second opens one source for scoring, with or without
 * labels (source NULL: data.test); trained: the form of the training data, NULL: not known. reads 0: no samples will be
 * read, so the values for data.normalize: auto are not computed. Collective. */
cvy_status cvy_session_open_training_data(cvy_session *s, int reads);
cvy_status cvy_session_open_test_data(cvy_session *s, const char *source, const cvy_data_form *trained);
/* Logs what the reader says about how the data are read, for commands that have no list of notes. */
void cvy_session_log_note(const cvy_context *context, const cvy_dataset *d);
/* The number of threads of a loader: data.threads, or the cores that compute threads leave free, 1 .. 8. */
int cvy_session_data_threads(const cvy_context *context, const cvy_job *job);
/* Returns an error that names the rank, if a rank opened other data than rank 0. Collective. */
cvy_status cvy_session_compare(const cvy_session *s);
/* Returns CVY_E_DISAGREE, and names the rank, if `value` on that rank is not the same as on rank 0. Collective. */
cvy_status cvy_session_same(const cvy_session *s, const char *what, uint64_t value);
/* Warns of layers of the model that lead neither to its output nor to a loss: no step computes them. */
cvy_status cvy_session_report_unused(const cvy_session *s);
void cvy_session_close(cvy_session *s);

/* Copies a step's rows into its feeds and converts them to the dtype of the feed. A field of the data set goes to the
 * input of the same name, if the step has that input. part: those that the loader of the rows was given. */
cvy_status cvy_session_fill(const cvy_session *s, int step, const cvy_dataset_info *data, const cvy_rows *rows,
                            const cvy_field_part *part);

#endif
