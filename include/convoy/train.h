/*
 * convoy/train.h: a whole training from a job file, into a run folder, as `convoy train` does it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_TRAIN_H
#define CONVOY_TRAIN_H

#include <convoy/job.h>

CVY_BEGIN_DECLS

/** Progress of a run. Given to the progress callback on rank 0 after a step; valid during the call. */
typedef struct cvy_progress {
    size_t size;
    /** Training steps that are done, and their total number. */
    int64_t step, steps;
    /** Epochs that are done, with a fraction for the current one, and their total number. */
    double epoch, epochs;
    /** Loss of the latest logged step; NaN before the first. */
    double loss;
    /** Samples per second of all ranks over the latest steps. */
    double images_per_s;
    /** Seconds since the start, and estimated seconds to the end. */
    double elapsed_s, left_s;
    /** NULL for a step; else a sentence: "epoch 3: train loss ..., val accuracy ...", "checkpoint saved". */
    const char *event;
} cvy_progress;
typedef void (*cvy_progress_fn)(void *user, const cvy_progress *progress);

/**
 * cvy_train_control - requests to a run while it is running
 *
 * The caller creates one, gives it to cvy_run_train(), and makes requests from a signal handler, from another thread
 * or from the progress callback, on any rank. The run checks for requests before each step. A control serves one run
 * at a time.
 */
typedef struct cvy_train_control cvy_train_control;

/** What a request asks for. */
typedef enum cvy_train_request {
    /** All ranks save after the current step, and the run returns CVY_STOPPED. */
    CVY_TRAIN_STOP,
    /** All ranks save after the current step, and the run continues. */
    CVY_TRAIN_SAVE
} cvy_train_request;

/** Makes a control without requests; the caller destroys it after the run. Collective: no. Errors: CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_train_control_create(cvy_train_control **control_out);
/** Destroys the object and sets the pointer to NULL; NULL is accepted. Collective: no. */
CVY_API void cvy_train_control_destroy(cvy_train_control **control);
/** Makes a request. Async-signal-safe; any thread. Collective: no, one rank is enough. Errors: none. */
CVY_API void cvy_train_control_request(cvy_train_control *control, cvy_train_request request);
/** Whether all ranks know that the run will stop and are about to save: 1 or 0. Async-signal-safe; any thread.
 * Collective: no. */
CVY_API int cvy_train_control_is_stopping(const cvy_train_control *control);
/** The longest time so far between two checks for requests, s, or that which a pass over the validation data is
 * expected to take, if that is longer; 0 before the second check. Async-signal-safe; any thread. Collective: no. */
CVY_API double cvy_train_control_longest_s(const cvy_train_control *control);

/** Options of cvy_run_train(); zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_train_opts {
    size_t size;
    /** The run folder. NULL: runs/<job>-NNN with the next free number. */
    const char *out;
    /** 1: continue in `out` from its newest valid checkpoint. */
    int resume;
    /** A plan.json whose choices of kernels are used; NULL: kernels are chosen anew. */
    const char *plan_file;
    /** Requests to this run, or NULL. Borrowed until the run ends. */
    cvy_train_control *control;
    /** When the batch system ends the job, s since 1970 (rank 0's value counts): the run saves and stops before. 0: no
     * limit. */
    double end_time;
    /** Called on rank 0 after a step; may be NULL. */
    cvy_progress_fn progress;
    /** Given to `progress`. */
    void *user;
    /** Who says when the job ends, for messages, such as "SLURM_JOB_END_TIME"; NULL: unknown. */
    const char *end_source;
} cvy_train_opts;
CVY_SIZED_STRUCT(cvy_train_opts)

/** The result of a training. Set size; the library fills the rest. */
typedef struct cvy_train_result {
    size_t size;
    /** The run folder. */
    char out[512];
    /** Training steps, those before a resume included. */
    int64_t steps;
    /** Wall-clock time, s; training loss, the mean over the latest epoch, or over its steps if it did not end; latest
     * validation loss; NaN if there is none. */
    double seconds, train_loss, val_loss;
    /** 1: the job names data for a test. */
    int has_test;
    /** Training steps of this call. */
    int64_t new_steps;
} cvy_train_result;
CVY_SIZED_STRUCT(cvy_train_result)

/**
 * cvy_run_train - train what a job file describes, into a run folder
 * @context: the ranks that train
 * @job: the job; borrowed, equal on all ranks
 * @opts: NULL for the defaults
 * @result_out: written on success and with CVY_STOPPED; may be NULL
 *
 * Writes job.resolved.yaml, plan.json, metrics.jsonl, checkpoints/ and STATUS; `convoy report` makes a page of
 * them. Collective: yes. Threads: one call at a time on a context. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG, CVY_E_IO (an
 * existing folder without resume; a full disk), CVY_E_FORMAT (data), CVY_E_SHAPE, CVY_E_DISAGREE (ranks were started
 * with different jobs), CVY_E_NUMERIC, CVY_E_COMM, CVY_E_MEMORY. CVY_STOPPED: a stop was requested or the time limit
 * is near; everything is saved.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_train(cvy_context *context, const cvy_job_source *job,
                                                const cvy_train_opts *opts, cvy_train_result *result_out);

CVY_END_DECLS
#endif
