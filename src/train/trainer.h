/*
 * trainer.h: the state of a training run, shared by the step loop (trainer.c), the run folder (train_folder.c) and the
 * other files of this folder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TRAINER_H
#define CVY_TRAINER_H

#include <convoy/train.h>

#include "base/machine/base_cores.h"
#include "base/text/base_json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_saver.h"
#include "monitor/monitor_events.h"
#include "monitor/monitor_metrics_log.h"
#include "monitor/monitor_mlperf.h"
#include "network/network_spec.h"
#include "optim/optim.h"
#include "program/program_update.h"
#include "score/scorer.h"
#include "session/session.h"
#include "train/train_request.h"

struct cvy_log_window { /* sums since the last logged step, in seconds if named _s */
    double start_s, data_s, wait_s;
    double compute_s;        /* in steps, without exposed communication */
    double comm_s, hidden_s; /* exposed (with the agreement before each step) and overlapped communication */
    /* time waiting for the slowest rank (part of comm_s); own time of the slowest less that of the fastest */
    double slowest_s, spread_s;
    /* sum over steps: prefetched steps that were ready when the step asked for its samples */
    int64_t ready;
    int64_t steps, samples;
    int64_t sent_bytes; /* number of bytes sent when the window began */
};

/* Sums of this rank over steps. All members are of one size, so that ranks can exchange them without padding. */
typedef struct cvy_step_sums {
    double steps, stage;
    double data_s, compute_s;     /* samples; kernels */
    double axis_s[CVY_COMM_AXES]; /* waits in steps, by axis of the process grid */
    double bubble_s;              /* the part of them that waited for other stages */
    double agree_s;               /* the agreement of all ranks before each step */
} cvy_step_sums;

struct cvy_weights_seen { /* of samples, on this rank since the end of the last epoch; ranks exchange it as doubles */
    double count, below_0, sum, sum_below_0;
    double empty_steps; /* in which no sample counted */
};

struct cvy_trainer_state {            /* what a checkpoint keeps besides variables and step number */
    double epoch_loss, epoch_samples; /* of the epoch so far: sum of loss times samples; number of samples */
    double epoch_train_s, epoch_s;    /* the epoch's seconds in steps; all its seconds, as saved in the checkpoint */
    double best, stop_best;           /* best score for checkpoint.best and for train.stop; NaN: none yet */
    int64_t stop_bad_epochs;
};

/* These values decide which samples a step gets. A checkpoint keeps them, and a resumed run must have the same ones. */
typedef struct cvy_sampling {
    int64_t samples, batch, accumulate, seed, shuffle, window, balance, tail;
    char data[24];
} cvy_sampling;

/* A training of a step: of all weights by all losses, or one of train.turns. */
typedef struct cvy_trainer_turn {
    int full, tail; /* tasks of the program: of a whole batch, and of an epoch's smaller last one; tail -1: none */
    int64_t every;  /* it is taken in the steps 0, every, 2 every ... */
    double lr_mult; /* factor on the learning rate of the job */
    double *loss;   /* of the task's losses, when it was taken last; NaN before that */
} cvy_trainer_turn;

typedef struct cvy_control_request { /* requests of any rank; all ranks have the same copy */
    int stop, save;
} cvy_control_request;

/* The tasks of the program that train (train_turns.c). */
typedef struct cvy_trainer_tasks {
    int full, tail;         /* those of the first turn */
    int latest;             /* index of the task that ran last */
    cvy_trainer_turn *turn; /* [nturn], in the pool of the job */
    int nturn;
} cvy_trainer_tasks;

/* The weights of samples (train_weights.c). */
typedef struct cvy_trainer_weights {
    struct cvy_weights_seen seen;
    int said_below_0, said_empty; /* what the log has said about them */
} cvy_trainer_weights;

/* The scores after an epoch (train_validate.c). */
typedef struct cvy_trainer_validation {
    cvy_scorer scorer;  /* for validation data; without them for test data, only for the curve */
    const char *source; /* "val", "test", or NULL: neither */
    double loss;
    int is_reached;      /* the target of train.stop, in this process or before it */
    double most_diverse; /* the highest score `diversity` of this process; 0: none yet */
    uint64_t said;       /* bits: of which scores, and of the loss after them, was said that they are not finite */
} cvy_trainer_validation;

/* Samples of the training that validation has, too (train_copies.c). */
typedef struct cvy_trainer_copies {
    struct cvy_seen *train, *other; /* hashes of the samples that the first epoch and its validation read; or NULL */
    int are_said;
} cvy_trainer_copies;

/* How far a predicted time was off (train_grid.c). */
typedef struct cvy_trainer_forecast {
    double step_s;      /* predicted by `parallel: auto`; 0: nothing is left to compare */
    double taken_s[11]; /* [n]: the first steps without those that warm up */
    int n;
} cvy_trainer_forecast;

/* The samples that steps read (trainer.c). */
typedef struct cvy_trainer_data {
    cvy_loader *loader;
    cvy_field_part part[CVY_FIELD_MAX]; /* of the fields, that its rows have */
    int64_t nbad;                       /* bad samples of the loader that are already reported */
    const cvy_rows *sent;               /* of the next step, on their way to the device (train_ahead.c); or NULL */
    int sent_ready;                     /* steps that were ready when these rows were asked for */
    double ahead_s;                     /* time that sending them has taken, if the device did not compute meanwhile */
} cvy_trainer_data;

/* Where the time of this rank went (train_axes.c). */
typedef struct cvy_trainer_axes {
    cvy_step_sums window, epoch; /* since the last logged step; since the end of the last epoch */
} cvy_trainer_axes;

/* Figures of the latest step and epoch, for STATUS and the caller. */
typedef struct cvy_trainer_latest {
    double loss, images_per_s; /* of the latest step; over the latest logged steps */
    double epoch_loss;         /* mean over the latest epoch that has ended; NaN: none */
} cvy_trainer_latest;

/* Clocks and sums of seconds of the step loop (trainer.c). */
typedef struct cvy_trainer_clocks {
    double start_s, epoch_start_s; /* clock at the start of this process; clock at the start of the epoch */
    double busy_s, sync_s;         /* of the latest step: this rank's own time; its time in collectives */
    double data_wait_s, loop_s;    /* sums over all steps but the first: time waiting for samples; total time */
    double iteration_s;            /* the longest iteration of the loop, with everything that happened in it */
    double checked_s;              /* clock when the control was last read */
    double data_s;                 /* clock when the data sets were opened */
} cvy_trainer_clocks;

/* Whether other programs use the cores of this rank (train_cores.c). */
typedef struct cvy_trainer_cores {
    cvy_cores_use since;
    double next_s; /* clock when the use of the cores is looked at next; 0: never yet */
    int has_warned;
} cvy_trainer_cores;

/* The best set of weights so far (train_select.c, train_save.c). */
typedef struct cvy_trainer_best {
    int is_new;          /* this epoch's score is the best so far */
    int is_saving;       /* a checkpoint of it is being written */
    double safe, saving; /* score of the best complete set (NaN: none); of the best set being written */
    int64_t lost_step;   /* step of a best set whose save failed; -1: none */
} cvy_trainer_best;

/* What complete saves have cost. */
typedef struct cvy_trainer_saved {
    int64_t count, bytes; /* number of complete saves; size of the latest one */
    int64_t timed;        /* complete saves whose stall counts (not the last one, if there are others) */
    double stall_s;       /* sum of the times for which these saves blocked training */
} cvy_trainer_saved;

/* Checkpoints of the run (train_save.c). */
typedef struct cvy_trainer_saves {
    cvy_saver *saver;
    /* a checkpoint is due, but must wait until the weights of all ranks are equal */
    int is_due;
    int is_last; /* the save in progress is the run's last work */
    /* time from the start of a save until it was complete, for the slowest save; 0: none yet */
    double slowest_s;
    double latest_s;               /* clock at the latest save */
    int64_t safe_step, begun_step; /* step of the latest complete save; step of the latest save begun; -1: none */
    cvy_trainer_saved done;
} cvy_trainer_saves;

/* What the first weights were trained on (train_start.c). */
typedef struct cvy_trainer_start {
    cvy_checkpoint set;    /* of train.init, if that is a run */
    cvy_network_spec spec; /* what the weights were trained on with which this process begins; job NULL: not known */
    cvy_session_like like;
    cvy_text said; /* lines for the log: what differs */
} cvy_trainer_start;

/* The run folder (train_folder.c) and the files that are open in it. */
typedef struct cvy_trainer_folder {
    char path[512];
    int lock;              /* file descriptor of the folder's lock on rank 0; -1: none */
    int is_new, has_begun; /* this process created the folder; the first files are written */
    cvy_metrics_log *log;  /* only on rank 0; else NULL */
    cvy_mlperf *mlperf;    /* the same, if the job asks for it */
    cvy_events *events;    /* for TensorBoard, on rank 0; NULL: the job does not ask for them */
    int events_failed;     /* some of them could not be written, and a warning was given */
    int64_t histograms;    /* of the weights: after every so many epochs; 0: never; the same on all ranks */
    char *plan_json;
    cvy_checkpoint resume; /* the checkpoint from which the run continues */
} cvy_trainer_folder;

typedef struct cvy_trainer {
    cvy_session session;
    const cvy_train_opts *opts;
    cvy_order order;
    double epochs;
    cvy_schedule *schedule;
    int64_t step, first_step;  /* number of steps done; the step at which this process began */
    int is_ending, stop_early; /* the allocation ends or a stop was requested; early stopping ends the run */
    struct cvy_trainer_state state;
    cvy_trainer_tasks task;
    cvy_trainer_data data;
    cvy_trainer_weights weights;
    cvy_trainer_validation validation;
    cvy_trainer_copies copies;
    cvy_trainer_forecast forecast;
    struct cvy_log_window window;
    cvy_trainer_axes axes;
    cvy_trainer_latest latest;
    cvy_trainer_clocks time;
    cvy_trainer_cores cores;
    cvy_trainer_best best;
    cvy_trainer_saves save;
    cvy_trainer_start start;
    cvy_trainer_folder folder;
} cvy_trainer;

/* Makes the model, and the program with all its tasks: training, its tail batch, validation. The program is not planned
 * yet. The session's job and training data must be open. */
cvy_status cvy_trainer_make_program(cvy_trainer *t, const char *plan_file);
/* Checks the job's groups of weights, outputs, scores and schedule against the planned program, and makes the
 * schedule. */
cvy_status cvy_trainer_check(cvy_trainer *t);
/* ---- train_start.c: what the first weights were trained on ---- */
/* Finds the weights of train.init, or of the checkpoint that is resumed, and what they were trained on. The training
 * data, opened after it, have their columns and classes in that order. Collective. */
cvy_status cvy_trainer_find_start(cvy_trainer *t);
/* Compares the training data and the job with what the weights were trained on. A resume must agree; a new run notes
 * what differs, a line for each. */
cvy_status cvy_trainer_compare_start(cvy_trainer *t);
/* Checks that the network has an output for each class, also for those that the data have from the weights. */
cvy_status cvy_trainer_check_outputs(const cvy_trainer *t);
/* Fills the weights of a new run with those that the job names, after the initialisers. Collective. */
cvy_status cvy_trainer_initialise(cvy_trainer *t);
/* Runs one training step on these rows and writes its lines to the log. */
cvy_status cvy_trainer_step(cvy_trainer *t, const cvy_rows *rows, double waited_s, int ready);
/* ---- train_log.c ---- */
/* Calls the caller's progress function on rank 0 with the state of the run. event: a line of text, or NULL. */
void cvy_trainer_say(cvy_trainer *t, const char *event);
/* Writes the sums since the last logged step, and starts a new window. lr: the learning rate. */
void cvy_trainer_log_step(cvy_trainer *t, double lr);
/* The epoch of the latest step, from 1. */
int64_t cvy_trainer_epoch(const cvy_trainer *t);
/* At the end of an epoch. scores: of the validation, or NULL. skipped: bad samples. bubble: the share of the steps that
 * waited for other stages; below 0: there are none. */
void cvy_trainer_log_epoch(cvy_trainer *t, const cvy_scores *scores, int64_t skipped, double bubble);
/* ---- train_turns.c: the trainings of a step ---- */
/* Checks that turns go with the update mode and the grid. */
cvy_status cvy_trainer_check_mode(const cvy_job *job, const cvy_program *program);
/* Adds them to the program. tail: samples of an epoch's smaller last batch, 0: there is none. */
cvy_status cvy_trainer_add_turns(cvy_trainer *t, const cvy_training_opts *opts, int64_t tail);
/* Call it after planning. Returns CVY_E_CONFIG if a turn names weights that it does not train, or if turns with
 * different optimisers train the same weight. */
cvy_status cvy_trainer_check_turns(const cvy_trainer *t);
/* Fills the feeds with these rows and takes all turns that are due in this step. Adds their times to *time, and sets
 * the latest loss, which is the sum over the turns. CVY_E_NUMERIC: a loss or a gradient is not finite; weights of turns
 * before have changed. */
cvy_status cvy_trainer_take_turns(cvy_trainer *t, const cvy_rows *rows, double lr, cvy_step_time *time);
/* ---- train_ahead.c: while a device computes a step, the host prepares the next one ---- */
/* Whether the steps of this run can be prepared so. */
int cvy_trainer_can_go_ahead(const cvy_trainer *t);
/* Between the two parts of a step of this task: sends the rows of the next step, if that is one of the same task in the
 * same epoch, and if they are ready before the device is. */
cvy_status cvy_trainer_go_ahead(cvy_trainer *t, int task);
/* Gets the rows of the next step: those that were sent, or those of the loader. waited_s, ready: as cvy_loader_get()
 * and cvy_loader_ready() say. */
cvy_status cvy_trainer_get_rows(cvy_trainer *t, const cvy_rows **rows_out, double *waited_s_out, int *ready_out);
/* Adds the losses of all turns to an open object, if there are several. */
void cvy_trainer_log_turns(const cvy_trainer *t, cvy_json *json);
/* What all turns read of the rows, and the parts of the fields that the rows of this rank have. */
cvy_row_needs cvy_trainer_row_needs(const cvy_trainer *t);
void cvy_trainer_find_parts(const cvy_trainer *t, cvy_field_part part_out[CVY_FIELD_MAX]);
/* Writes the latest losses of the turns into the state of a checkpoint; restores them from there. A turn that is not
 * due in the first step after a resume has none otherwise. */
void cvy_trainer_add_turn_losses(const cvy_trainer *t, cvy_json *json);
cvy_status cvy_trainer_restore_turn_losses(cvy_trainer *t);
/* ---- train_control.c: when a run saves and when it ends ---- */
/* Exchanges faults and requests of all ranks. If any rank has a fault, all ranks return a fault. Collective. */
cvy_status cvy_trainer_agree(cvy_trainer *t, cvy_status fault, cvy_control_request *request_out);
/* After the latest step: whether the job asks for a checkpoint now; whether an epoch ends. */
int cvy_trainer_is_due(const cvy_trainer *t);
int cvy_trainer_ends_epoch(const cvy_trainer *t);
/* cvy_trainer_synchronises(): whether all ranks meet after the latest step anyway. cvy_trainer_has_request(): whether
 * this rank wants them to meet, because it was told to stop or to save, a timed checkpoint is due, or the allocation
 * ends. */
int cvy_trainer_synchronises(const cvy_trainer *t);
int cvy_trainer_has_request(const cvy_trainer *t);
/* Call it before each look at the requests. It measures how long an iteration of the loop takes. */
void cvy_trainer_time_iteration(cvy_trainer *t);
/* Adds a line to the notes that says when the allocation ends. */
void cvy_trainer_say_end(cvy_trainer *t);
/* train_async.c: runs steps until the next synchronisation of all ranks. */
cvy_status cvy_trainer_run_free(cvy_trainer *t);
/* Makes or finds the run folder; for a resume it also finds the newest sound checkpoint. Collective. */
cvy_status cvy_trainer_open_folder(cvy_trainer *t);
/* Restores variables, step number and sums from the checkpoint that cvy_trainer_open_folder() found. Collective. */
cvy_status cvy_trainer_restore(cvy_trainer *t);
/* Writes job.resolved.yaml, plan.json and STATUS, and opens metrics.jsonl. Call it after planning. */
cvy_status cvy_trainer_write_head(cvy_trainer *t);
/* ---- train_axes.c: where the time went, by axis of the process grid and by stage ---- */
/* Call it after each step. data_s: time for its samples. */
void cvy_trainer_note_axes(cvy_trainer *t, const cvy_step_time *time, double data_s);
/* Adds the figures since the last logged step as members to an open object, and starts anew. */
void cvy_trainer_log_axes(cvy_trainer *t, cvy_json *json);
/* Writes a line of metrics.jsonl for each stage. *bubble_out: on rank 0 the share of the epoch's steps in which a rank
 * waited for other stages, mean over the ranks; -1: there is no pipeline. Collective. */
cvy_status cvy_trainer_end_epoch_axes(cvy_trainer *t, int64_t epoch, double *bubble_out);
/* ---- train_grid.c ---- */
/* With `parallel: auto`: changes the job to the fastest grid. Call it before the program is made. Collective. */
cvy_status cvy_trainer_choose_grid(cvy_trainer *t);
/* Call it after each step. After some it says how far the prediction of the chosen grid was off, and writes a line of
 * metrics.jsonl. is_full: the step had a whole batch. */
void cvy_trainer_compare_forecast(cvy_trainer *t, const cvy_step_time *time, int is_full);
/* train_cores.c: after a step: warns once if other programs use the cores of this rank. */
void cvy_trainer_watch_cores(cvy_trainer *t);
/* train_weights.c: after a step: counts the weights of its rows. At the end of an epoch: says if some were negative,
 * and if steps had none. Collective. */
void cvy_trainer_note_weights(cvy_trainer *t, const cvy_rows *rows);
cvy_status cvy_trainer_say_weights(cvy_trainer *t, int64_t epoch);
/* train_defaults.c: adds lines about defaults that decide the results of this run to the notes. */
void cvy_trainer_note_defaults(cvy_trainer *t);
/* Warns if numbers that the network gets are far from what it trains well on (session_values.h); not on a resume. */
void cvy_trainer_look_at_values(cvy_trainer *t);
/* train_idle.c: warns of keys that have no effect on this training. Call it after cvy_trainer_check(). */
cvy_status cvy_trainer_say_idle(const cvy_trainer *t);
/* ---- train_validate.c: scores within an epoch ---- */
/* Whether they are due after the latest step, which does not end an epoch. */
int cvy_trainer_validates(const cvy_trainer *t);
/* train_copies.c: lets the data sets note the samples that they read, and says which are copies of others, once.
 * Collective. */
cvy_status cvy_trainer_watch_copies(cvy_trainer *t);
cvy_status cvy_trainer_compare_copies(cvy_trainer *t);
/* Scores the validation data. Collective. */
cvy_status cvy_trainer_score(cvy_trainer *t, cvy_scores *out);
/* The same, and writes the scores. Collective. */
cvy_status cvy_trainer_validate(cvy_trainer *t);
/* Checks that train.validate_every goes with the update mode. */
cvy_status cvy_trainer_check_validation(const cvy_trainer *t);
/* Adds a score of the validation data to an open object, and to a line of text. */
void cvy_trainer_add_score(const cvy_trainer *t, const char *name, double value, cvy_json *json, cvy_text *text);
/* ---- train_select.c: decisions that depend on scores ---- */
/* Checks that the scores which the job names exist, so that a wrong name is found before the first step. */
cvy_status cvy_trainer_check_scores(const cvy_trainer *t);
/* Checks that the validation has this score. where, key: for the message. *higher_out: whether higher is better. */
cvy_status cvy_trainer_need_score(const cvy_trainer *t, const char *where, const char *key, const char *metric,
                                  int *higher_out);
/* Makes the program of a job without running it, to find faults. With a metric it also plans the program, and finds
 * this score of the validation data. who: the file that names the metric, for messages. variables_out, if it is not
 * NULL: a hash of the variables of this rank; runs with the same ones can go on from each other's checkpoints.
 * Collective. */
cvy_status cvy_trainer_probe(cvy_context *context, const cvy_job_source *job, const char *who, const char *metric,
                             int *higher_out, uint64_t *variables_out);
/* Updates the best score and decides on early stopping. A score that is not finite is never better. */
void cvy_trainer_select(cvy_trainer *t, const cvy_scores *val);
/* At the end of the run: says so if no epoch had a finite score by which to choose the best checkpoint. */
void cvy_trainer_say_no_best(cvy_trainer *t);
/* Says so if generated samples have become like each other. */
void cvy_trainer_watch_diversity(cvy_trainer *t, const cvy_scores *val);
enum { CVY_EARLY_STOP_TEXT = 256 };
/* Whether early stopping has ended the run before its last step, now or before a resume. If so, `text` says why. */
int cvy_trainer_stopped_early(const cvy_trainer *t, char *text, size_t room);
/* If it has, says so, and writes a line of metrics.jsonl if this process made the last step. */
void cvy_trainer_say_early_stop(cvy_trainer *t);
/* Decides on early stopping from the scores that a checkpoint has kept. */
cvy_status cvy_trainer_restore_stop(cvy_trainer *t);
/* The score of validation with this name, with or without "val_"; "loss" is one. Returns 0 if there is none. */
int cvy_trainer_find_score(const cvy_scores *scores, const char *metric, cvy_score *out);
/* ---- train_mlperf.c: the log lines of MLPerf, if the job asks for them; all do nothing on other ranks than 0 ---- */
/* Opens mlperf.log. A new run gets the lines about the job. Call it when the run folder has begun. */
cvy_status cvy_trainer_open_mlperf(cvy_trainer *t);
/* Before a step: an epoch begins, unless it has begun. After the last step of an epoch: it ends. */
void cvy_trainer_mlperf_epoch(cvy_trainer *t, int begins);
/* Before a validation (scores NULL) and after it. */
void cvy_trainer_mlperf_validation(cvy_trainer *t, const cvy_scores *scores);
/* The training is over: because it has reached its goal (is_done), or not. */
void cvy_trainer_mlperf_stop(cvy_trainer *t, int is_done);
/* ---- train_mlperf_job.c ---- */
/* Calls add() for each key about the job, its data and its ranks, with the value as JSON. */
void cvy_trainer_mlperf_job(cvy_trainer *t, void (*add)(cvy_trainer *t, const char *key, const char *value));
/* ---- train_flush.c: update modes that do not keep all weights up to date in every step ---- */
/* Call it after the step of this number, counted from 0. It brings the weights up to date if the mode wants that
 * now. */
cvy_status cvy_trainer_flush(cvy_trainer *t, int64_t step);
/* The number of steps that a run may still have to do until the weights of all ranks are up to date. */
int64_t cvy_trainer_steps_to_flush(const cvy_trainer *t);
/* How this step updates the weights, as a word for the log. */
const char *cvy_trainer_mode(const cvy_trainer *t, int64_t step);
/* Adds a line to the notes that says what the update mode does in this run. */
void cvy_trainer_say_mode(cvy_trainer *t);
/* Writes a pending update into the state of a checkpoint; restores it from there. */
void cvy_trainer_add_pending(const cvy_trainer *t, cvy_json *json);
cvy_status cvy_trainer_restore_pending(cvy_trainer *t);

/* ---- train_events.c: events for TensorBoard ---- */
/* Opens the event file and writes the graph, if the job asks for them. Call it when the run folder has begun.
 * Collective. */
cvy_status cvy_trainer_open_events(cvy_trainer *t);
void cvy_trainer_write_scalars(cvy_trainer *t, const cvy_json *line);
/* At the end of an epoch, which is counted from 1: writes histograms of the weights if they are due. Collective. */
cvy_status cvy_trainer_write_histograms(cvy_trainer *t, int64_t epoch);
void cvy_trainer_close_events(cvy_trainer *t);

/* Writes a line of metrics.jsonl and its scalars on rank 0 and frees the JSON. If there is no room on the disk or in
 * memory, the line is lost with a warning and the training continues. */
void cvy_trainer_write_line(cvy_trainer *t, cvy_json *json);
cvy_sampling cvy_trainer_sampling(const cvy_trainer *t);
/* Writes STATUS on rank 0, as in "running step 10 of 20 ...". */
void cvy_trainer_write_status(const cvy_trainer *t, const char *word, const char *why);

/* ---- train_save.c: all functions but the last are collective. A failed save is a warning while training continues. It
 * is a fault if it is the last save, or if weights are not finite ---- */
/* Begins a save after the save in progress has ended. If it is the last one, waits for its end. */
cvy_status cvy_trainer_save(cvy_trainer *t, int last);
/* Starts the next stage of the save in progress. Call it when no rank is busy with that save. */
cvy_status cvy_trainer_advance_save(cvy_trainer *t);
cvy_status cvy_trainer_finish_save(cvy_trainer *t, int last);
/* Says at the run's end what the saves have cost, if it is noticeable. */
void cvy_trainer_say_saves(cvy_trainer *t);
/* Whether saves that blocked a run of run_s for stall_s in all are worth a line. */
int cvy_saves_are_noticeable(double stall_s, double run_s);

/* Writes the last STATUS and closes the run folder. A new folder whose run did not begin is removed. */
void cvy_trainer_end(cvy_trainer *t, cvy_status status);

#endif
