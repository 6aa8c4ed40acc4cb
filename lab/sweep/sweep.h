/*
 * sweep.h: hyperparameter searches: many trainings of one job with other values of its keys.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SWEEP_H
#define CVY_SWEEP_H

#include <convoy/train.h>

/** Called on rank 0 with a line about the search: a trial has ended, a stop is near. The text is valid during the
 * call. */
typedef void (*cvy_sweep_line_fn)(void *user, const char *line);

/** Options of cvy_run_sweep(); zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_sweep_opts {
    size_t size;
    /** The folder of the search. It gets sweep.json, best.yaml and a run folder trial-NNNN for each trial. */
    const char *out;
    /** 1: continue the search in `out`. */
    int resume;
    /** Keys that override the job in all trials, after those of the sweep file: "train.epochs=4". */
    const char *const *sets;
    int nsets;
    /** Requests to the search, or NULL. A stop is passed on to all trials that run. Borrowed until the call ends. */
    cvy_train_control *control;
    /** When the batch system ends the job, s since 1970 (rank 0's value counts). 0: no limit. */
    double end_time;
    /** May be NULL. */
    cvy_sweep_line_fn line;
    /** Given to `line`. */
    void *user;
    /** 1: continue the search in `out`, and train its failed trials again. */
    int retry;
    /** Who says when the job ends, for messages, such as "SLURM_JOB_END_TIME"; NULL: unknown. */
    const char *end_source;
} cvy_sweep_opts;
CVY_SIZED_STRUCT(cvy_sweep_opts)

/** The result of a search. Set size; the library fills the rest, the same on all ranks. */
typedef struct cvy_sweep_result {
    size_t size;
    /** All trials; those that have ended with a score; those that have failed. */
    int64_t trials, scored, failed;
    /** Number of the best trial, from 1; 0: none has a score. */
    int64_t best;
    /** Its score. */
    double score;
    /** Ranks that were in no group: they did not train. */
    int64_t idle_ranks;
} cvy_sweep_result;
CVY_SIZED_STRUCT(cvy_sweep_result)

/**
 * cvy_run_sweep - train a job with many values of its keys, and rank the results
 * @context: all ranks of the search; they are split into groups, and each group trains one trial at a time
 * @path: the sweep file (docs/guide/studies.md); equal on all ranks
 * @opts: its field `out` is required
 * @result_out: written on success and with CVY_STOPPED; may be NULL
 *
 * Rank 0 hands trials to groups as they become free. The state of the search is in OUT/sweep.json, which is replaced as
 * a whole after each change. A trial that fails is noted there with its error, and the others go on; a member of a
 * population that fails becomes a copy of another one. An error in the
 * middle of a step on a group of several ranks ends all ranks; so does a failed exchange. Collective: yes. Threads: one
 * call at a time on a context. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (sweep file, or a job that refuses a value; found
 * before the first trial), CVY_E_IO, CVY_E_DISAGREE, CVY_E_COMM, CVY_E_MEMORY. CVY_STOPPED: a stop was requested or the
 * time limit is near; all trials are saved, and the search can be resumed.
 */
CVY_MUST_CHECK cvy_status cvy_run_sweep(cvy_context *context, const char *path, const cvy_sweep_opts *opts,
                                        cvy_sweep_result *result_out);

/**
 * cvy_sweep_table - the ranking of a search as a table for a terminal
 * @folder: the folder of a search, which may have ended or not
 * @rows: the most trials that are listed; 0: all
 * @text_out: the table; the caller releases it with cvy_text_release()
 *
 * Collective: no; call it on one rank. Errors: CVY_E_IO, CVY_E_FORMAT (sweep.json), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_sweep_table(const char *folder, int rows, char **text_out);

#endif
