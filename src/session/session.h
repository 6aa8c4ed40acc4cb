/*
 * session.h: what train, test and predict have in common: a job opened on all ranks: its data, its model, its program.
 */
#ifndef CVY_SESSION_H
#define CVY_SESSION_H

#include <convoy/job.h>

#include "base/base_text.h"
#include "data/data.h"
#include "data/data_samples.h"
#include "data/data_stage.h"
#include "job/job.h"
#include "metric/metric.h"
#include "monitor/monitor_watchdog.h"
#include "program/program.h"
#include "session/session_model.h"

enum { CVY_SOURCE_TRAIN, CVY_SOURCE_VAL, CVY_SOURCE_TEST, CVY_SOURCE_COUNT };

typedef struct cvy_session {
    cvy_context *context;
    cvy_job *job;
    cvy_dataset *train, *val, *test; /* NULL where the job has none or it was not asked for */
    cvy_dataset *base;               /* data.train, opened once */
    cvy_dataset *whole[2]; /* views of it that train and val are shares of, with and without random augmentation */
    const cvy_tree
        *from[CVY_SOURCE_COUNT]; /* the job's sources, or copies of them on this node; NULL: none of its own */
    cvy_stage *stage;            /* NULL: nothing is copied */
    cvy_cache_room *cache;       /* NULL: nothing is kept */
    cvy_text notes;              /* a line each: what was done with the data, for the log */
    cvy_model *model;
    cvy_program *program;
    int is_watched;         /* set before opening: with the job's watchdog from there on */
    const atomic_int *told; /* for it: set where a signal tells this rank to end; or NULL */
    cvy_watchdog *watchdog; /* NULL: off */
    int weighs;             /* samples have weights: the data's own, or 0 for those skipped */
} cvy_session;

/* The job of a file, or of a text. */
cvy_status cvy_job_read(const cvy_job_source *source, cvy_job **out);
/* Reads the job on every rank and refuses ranks with another one, naming the first key that differs. Collective. */
cvy_status cvy_session_open_job(cvy_context *context, const cvy_job_source *source, cvy_session *s);
/* Opens train (random augmentation) and val, or one labelled or unlabelled source for scoring (source NULL: data.test).
 * reads 0: nothing will be read, so what data.normalize: auto stands for is not looked for. Collective. */
cvy_status cvy_session_open_training_data(cvy_session *s, int reads);
cvy_status cvy_session_open_test_data(cvy_session *s, const char *source);
/* Threads of a loader: as the job says, or the cores that compute threads leave, 1 .. 8. */
int cvy_session_data_threads(const cvy_session *s);
/* Ranks that opened other data than rank 0 are refused, named. Collective. */
cvy_status cvy_session_compare(const cvy_session *s);
/* A set to score against that has other classes than the training data, or in another order, is refused: its labels
 * would mean something else. */
cvy_status cvy_session_check_classes(const char *const *known, int64_t nknown, const cvy_dataset_info *data);
/* CVY_E_DISAGREE naming the rank where `value` is another than on rank 0. Collective. */
cvy_status cvy_session_same(const cvy_session *s, const char *what, uint64_t value);
void cvy_session_close(cvy_session *s);

/* Copies a step's rows into its feeds, converting to their dtype; field f of the data set feeds the input of its name,
 * if the step has it. */
cvy_status cvy_session_fill(const cvy_session *s, int step, const cvy_dataset_info *data, const cvy_rows *rows);

#endif
