/*
 * trainer.h: a training run at work: between the step loop (trainer.c) and the run folder (train_folder.c).
 */
#ifndef CVY_TRAINER_H
#define CVY_TRAINER_H

#include <convoy/train.h>

#include "base/base_json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_saver.h"
#include "monitor/monitor_metrics_log.h"
#include "optim/optim.h"
#include "score/scorer.h"
#include "session/session.h"
#include "train/train_request.h"

struct cvy_log_window { /* sums since the last logged step */
    double start_s, data_s, wait_s;
    double compute_s;           /* in steps, without what is exposed of communication */
    double comm_s, hidden_s;    /* exposed, with the agreement before each step; hidden behind computing */
    double slowest_s, spread_s; /* of comm_s: until the slowest rank had come; between the slowest and the fastest */
    int64_t ready;              /* sum of the steps that were ready when theirs was asked for */
    int64_t steps, samples;
    int64_t sent_bytes; /* of the communicator, when it began */
};

struct cvy_trainer_state {            /* what a checkpoint keeps besides variables and position */
    double epoch_loss, epoch_samples; /* of the epoch so far: sum of loss times samples */
    double epoch_train_s, epoch_s;    /* of it: seconds in its steps; in all, when it was saved */
    double best, stop_best;           /* NaN: none yet */
    int64_t stop_bad_epochs;
};

/* What decides which samples a step sees; a checkpoint keeps it, and a resumed run must have the same. */
typedef struct cvy_sampling {
    int64_t samples, batch, accumulate, seed, shuffle, window, balance, tail;
    char data[24];
} cvy_sampling;

typedef struct cvy_control_request { /* of any rank, known to all of them */
    int stop, save;
} cvy_control_request;

typedef struct cvy_trainer {
    cvy_session session;
    const cvy_train_opts *opts;
    cvy_order order;
    double epochs;
    struct {
        int full, tail; /* numbers in the program; tail: of an epoch's smaller last batch, -1: there is none */
        int latest;     /* the one that ran last */
    } task;
    struct {
        cvy_scorer scorer;  /* of validation data; of test data, for the curve only, if there is no validation data */
        const char *source; /* "val", "test", or NULL: neither */
        double loss;
    } validation;
    cvy_schedule *schedule;
    cvy_loader *loader;
    int64_t nbad;             /* bad samples of the loader that were reported */
    int64_t step, first_step; /* steps done; the step at which this process began */
    struct cvy_trainer_state state;
    struct cvy_log_window window;
    double last_loss, images_per_s;
    struct {
        double start_s, epoch_start_s; /* clock at the start of this process and of the epoch */
        double busy_s, sync_s;         /* of the latest step: this rank's own time, and its time in collectives */
        double data_wait_s, loop_s;    /* sums over all steps but the first: waiting for samples; everything */
        double iteration_s;            /* the longest iteration of the loop, with all that happened in it */
        double looked_s;               /* clock at the latest look at the control */
    } time;
    int is_ending, stop_early; /* the allocation ends or a stop was requested; early stopping has decided */
    struct {
        int is_new;          /* this epoch's score is the best so far */
        int is_saving;       /* a checkpoint of it is being written */
        double safe, saving; /* score of the best complete set (NaN: none), and of the one that is being written */
        int64_t lost_step;   /* step of a best set whose save failed, -1: none */
    } best;
    struct {
        cvy_saver *saver;
        int waits;                     /* a checkpoint is due, but the ranks' weights differ */
        int is_last;                   /* the save in progress is the run's last work */
        double slowest_s;              /* duration of the slowest save until it was complete; 0: none yet */
        double latest_s;               /* clock at the latest save */
        int64_t safe_step, begun_step; /* steps of the latest complete save and of the latest one begun; -1: none */
        struct {
            int64_t count, bytes; /* complete saves; size of the latest */
            int64_t timed;        /* those during which training continued */
            double stall_s;       /* sum of the times for which these blocked training */
        } done;
    } save;
    struct {
        char path[512];
        int lock;              /* file descriptor of its lock on rank 0; -1: none */
        int is_new, has_begun; /* created by this process; its first files are written */
        cvy_metrics_log *log;  /* rank 0 */
        char *plan_json;
        cvy_checkpoint resume; /* the set that the run continues from */
    } folder;
} cvy_trainer;

/* The model and the program with all its steps: training, its tail, validation; not yet planned. The session's job and
 * training data are open. */
cvy_status cvy_trainer_make_program(cvy_trainer *t, const char *plan_file);
/* What the job says of groups of weights, outputs, scores and the schedule, against the planned program; makes the
 * schedule. */
cvy_status cvy_trainer_check(cvy_trainer *t);
/* Where the run stands, with an event or NULL, to the caller's progress function; rank 0. */
void cvy_trainer_say(cvy_trainer *t, const char *event);
/* One training step with these rows, and its lines in the log. */
cvy_status cvy_trainer_step(cvy_trainer *t, const cvy_rows *rows, double waited_s, int ready);
/* ---- train_control.c: when a run saves and when it ends ---- */
/* Whether all ranks go on, and what any of them wishes. Collective; a fault of any rank is one of all. */
cvy_status cvy_trainer_agree(cvy_trainer *t, cvy_status mine, cvy_control_request *wish_out);
/* Behind the latest step: a checkpoint is due by the job; an epoch ends. */
int cvy_trainer_is_due(const cvy_trainer *t);
int cvy_trainer_ends_epoch(const cvy_trainer *t);
/* Whether all ranks come together behind the latest step in any case; whether this rank wants them to, since it was
 * told to stop or a checkpoint is due. */
int cvy_trainer_synchronises(const cvy_trainer *t);
int cvy_trainer_has_request(const cvy_trainer *t);
/* Before each look at the orders: how long a turn takes. */
void cvy_trainer_time_iteration(cvy_trainer *t);
/* When the allocation ends, a line among the notes. */
void cvy_trainer_say_end(cvy_trainer *t);
/* train_async.c: the steps from one meeting of all ranks to the next. */
cvy_status cvy_trainer_run_free(cvy_trainer *t);
/* Makes or finds the run folder, and for a resume its newest sound checkpoint. Collective. */
cvy_status cvy_trainer_open_folder(cvy_trainer *t);
/* Variables, position and sums from the checkpoint that open_folder found. Collective. */
cvy_status cvy_trainer_restore(cvy_trainer *t);
/* job.resolved.yaml, plan.json, metrics.jsonl, STATUS; after planning. */
cvy_status cvy_trainer_write_head(cvy_trainer *t);
/* ---- train_select.c: what scores decide ---- */
/* What the job wants watched is among the scores: known before the first step. */
cvy_status cvy_trainer_check_scores(const cvy_trainer *t);
/* The best checkpoint, and stopping early. */
void cvy_trainer_select(cvy_trainer *t, const cvy_scores *val);
/* ---- train_flush.c: ways to update that are not in sync all the time ---- */
/* Behind the step of this number, counted from 0: brings the weights up to date where the mode wants that now. */
cvy_status cvy_trainer_flush(cvy_trainer *t, int64_t step);
/* Steps that a run may have to do until the weights of all ranks are up to date. */
int64_t cvy_trainer_steps_to_flush(const cvy_trainer *t);
/* The way in which a step updates: a word for the log. */
const char *cvy_trainer_mode(const cvy_trainer *t, int64_t step);
/* What the mode does in this run, a line among the notes. */
void cvy_trainer_say_mode(cvy_trainer *t);
/* What a checkpoint keeps of an update that is pending, and the other way round. */
void cvy_trainer_add_pending(const cvy_trainer *t, cvy_json *json);
cvy_status cvy_trainer_restore_pending(cvy_trainer *t);

/* A line of metrics.jsonl on rank 0; frees the JSON. Without room on the disk or in memory the line is lost, with a
 * warning: the training goes on. */
void cvy_trainer_write_line(cvy_trainer *t, cvy_json *json);
cvy_sampling cvy_trainer_sampling(const cvy_trainer *t);
/* "running step 10 of 20 ..." on rank 0. */
void cvy_trainer_write_status(const cvy_trainer *t, const char *word, const char *why);

/* ---- train_save.c. All collective. A failed save is a warning while training goes on, and a fault where it is the
 * last or weights are not finite ---- */
/* Begins a save, behind the one under way; waits for its end if it is the last. */
cvy_status cvy_trainer_save(cvy_trainer *t, int last);
/* When no rank is busy with the save under way: its next stage. */
cvy_status cvy_trainer_advance_save(cvy_trainer *t);
cvy_status cvy_trainer_finish_save(cvy_trainer *t, int last);
/* What saves have cost, at the run's end. */
void cvy_trainer_say_saves(cvy_trainer *t);

/* STATUS, and the report. */
void cvy_trainer_end(cvy_trainer *t, cvy_status status);

#endif
