/*
 * job_session.h: what train, test and predict have in common: a job opened on all ranks: its data, its model, its program.
 */
#ifndef CVY_JOB_SESSION_H
#define CVY_JOB_SESSION_H

#include <convoy/run.h>

#include "data/data.h"
#include "data/data_stage.h"
#include "job/job.h"
#include "job/job_model.h"
#include "metric/metric.h"
#include "run/run_program.h"
#include "run/run_watchdog.h"

enum { CVY_SOURCE_TRAIN, CVY_SOURCE_VAL, CVY_SOURCE_TEST, CVY_SOURCE_COUNT };

typedef struct cvy_session {
    cvy_context *context;
    cvy_job *job;
    cvy_dataset *train, *val, *test;           /* NULL where the job has none or it was not asked for */
    cvy_dataset *base;                         /* data.train, opened once */
    cvy_dataset *whole[2];                     /* views of it that train and val are shares of, with and without random augmentation */
    const cvy_tree *from[CVY_SOURCE_COUNT];    /* the job's sources, or copies of them on this node; NULL: none of its own */
    cvy_stage *stage;                          /* NULL: nothing is copied */
    cvy_cache_room *cache;                     /* NULL: nothing is kept */
    cvy_text notes;                            /* a line each: what was done with the data, for the log */
    cvy_model *model;
    cvy_program *program;
    int is_watched;                            /* set before opening: with the job's watchdog from there on */
    const volatile int *told;                  /* for it: set where a signal tells this rank to end; or NULL */
    cvy_watchdog *watchdog;                    /* NULL: off */
    int weighs;                                /* samples have weights: the data's own, or 0 for those skipped */
} cvy_session;

/* The job of a file, or of a text. */
cvy_status cvy_job_read(const cvy_job_source *source, cvy_job **out);
/* Reads the job on every rank and refuses ranks with another one, naming the first key that differs. Collective. */
cvy_status cvy_session_open_job(cvy_context *context, const cvy_job_source *source, cvy_session *s);
/* Opens train (random augmentation) and val, or one labelled or unlabelled source for scoring (source NULL: data.test). reads 0: nothing will be read,
 * so what data.normalize: auto stands for is not looked for. Collective. */
cvy_status cvy_session_open_training_data(cvy_session *s, int reads);
cvy_status cvy_session_open_test_data(cvy_session *s, const char *source);
/* Threads of a loader: as the job says, or the cores that compute threads leave, 1 .. 8. */
int cvy_session_data_threads(const cvy_session *s);
/* Ranks that opened other data than rank 0 are refused, named. Collective. */
cvy_status cvy_session_compare(const cvy_session *s);
/* A set to score against that has other classes than the training data, or in another order, is refused: its labels would mean something else. */
cvy_status cvy_session_check_classes(const char *const *known, int64_t nknown, const cvy_dataset_info *data);
/* CVY_E_DISAGREE naming the rank where `value` is another than on rank 0. Collective. */
cvy_status cvy_session_same(const cvy_session *s, const char *what, uint64_t value);
void cvy_session_close(cvy_session *s);

/* Copies a step's rows into its feeds, converting to their dtype; field f of the data set feeds the input of its name, if the step has it. */
cvy_status cvy_session_fill(const cvy_session *s, int step, const cvy_dataset_info *data, const cvy_rows *rows);

/* ---- the order of samples: an epoch is cut into batches, a batch into micro-batches, a micro-batch into the ranks' shares ---- */
typedef struct cvy_order {
    int64_t nsamples, batch, accumulate;
    int64_t steps_per_epoch;                   /* the tail batch included, unless it is dropped */
    int64_t last_step;                         /* end of the run */
    int rank, nranks;
    int64_t shards;                            /* of deterministic training, each with a micro-batch of its own; 0: none */
} cvy_order;
cvy_order cvy_order_make(int64_t nsamples, int64_t batch, int64_t accumulate, int drop_tail, int64_t epochs_or_zero, int64_t steps, const cvy_comm *comm);
int64_t cvy_order_batch(const cvy_order *o, int64_t step);                     /* global samples of this step */
cvy_batch cvy_order_part(const cvy_order *o, int64_t n, int rank);             /* a rank's samples of n that the ranks share */
int64_t cvy_order_samples_before(const cvy_order *o, int64_t step);            /* global samples seen before it */
cvy_status cvy_order_share(void *order, int64_t step, cvy_share *shares, int max, int *nshare_out);   /* a cvy_share_fn */

/* ---- scoring a data set with forward steps ---- */
typedef struct cvy_scorer {                    /* a pass over one data set with the program's forward steps */
    cvy_session *session;
    cvy_dataset *data;
    cvy_order order;
    int step_full, step_tail;                  /* of the program; -1: not needed */
    int labelled;                              /* targets and losses are there */
    int all_metrics;                           /* also those that the job does not name but a report shows */
} cvy_scorer;
/* Adds the forward steps; before the program is planned. model: with losses where the data is labelled, without otherwise. */
cvy_status cvy_scorer_add(cvy_session *s, cvy_dataset *data, const cvy_model *model, int labelled, cvy_scorer *out);

typedef struct cvy_score { const char *name; double value; int higher_is_better; } cvy_score;
typedef struct cvy_scores {
    double loss;                               /* NaN where the data is not labelled */
    cvy_score at[16];
    int count;
    int64_t nsamples, nskipped;                /* skipped: bad samples, with data.on_bad_sample: skip */
    double seconds;
} cvy_scores;
/* Which scores a pass gives, without their values: so that a metric that does not fit is known before the training. After planning. */
cvy_status cvy_scorer_names(const cvy_scorer *scorer, cvy_scores *out);
/* Gives each sample's output row, on its own rank, in order of places. */
typedef cvy_status (*cvy_output_fn)(void *user, const cvy_rows *rows, const cvy_span *output);
/* One pass, every sample once. detail (rank 0; may be NULL) gets each metric's members; output may be NULL. Collective. */
cvy_status cvy_scorer_run(cvy_scorer *scorer, cvy_scores *out, cvy_json *detail, cvy_output_fn output, void *user);

#endif
