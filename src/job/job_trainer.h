/*
 * job_trainer.h: a training run at work: between the step loop (job_trainer.c) and the run folder (job_folder.c).
 */
#ifndef CVY_JOB_TRAINER_H
#define CVY_JOB_TRAINER_H

#include "job/job_session.h"
#include "optim/optim.h"
#include "run/run_checkpoint.h"
#include "run/run_metrics_log.h"
#include "run/run_saver.h"

struct cvy_window {                    /* sums since the last logged step */
    double start_s, data_s, wait_s;
    double compute_s;                  /* in steps, without what is exposed of communication */
    double comm_s, hidden_s;           /* exposed, with the agreement before each step; hidden behind computing */
    double slowest_s, spread_s;        /* of comm_s: until the slowest rank had come; between the slowest and the fastest */
    int64_t ready;                     /* sum of the steps that were ready when theirs was asked for */
    int64_t steps, samples;
    int64_t sent_bytes;                /* of the communicator, when it began */
};

struct cvy_trainer_state {             /* what a checkpoint keeps besides variables and position */
    double epoch_loss, epoch_samples;  /* of the epoch so far: sum of loss times samples */
    double epoch_train_s, epoch_s;     /* of it: seconds in its steps; in all, when it was saved */
    double best, stop_best;            /* NaN: none yet */
    int64_t stop_bad_epochs;
};

/* What decides which samples a step sees; a checkpoint keeps it, and a resumed run must have the same. */
typedef struct cvy_course { int64_t samples, batch, accumulate, seed, shuffle, window, balance, tail; char data[24]; } cvy_course;

typedef struct cvy_wish {              /* of any rank, known to all of them */
    int stop, save;
} cvy_wish;

typedef struct cvy_trainer {
    cvy_session session;
    const cvy_train_opts *opts;
    cvy_order order;
    double epochs;
    int step_full, step_tail;          /* of the program */
    cvy_scorer score;                  /* of validation data, or for the curve only of test data where there is none */
    const char *scored;                /* "val", "test", or NULL: neither */
    cvy_schedule *schedule;
    cvy_loader *loader;
    int64_t nbad;                      /* of it, reported */
    int64_t step, first_step;          /* done; where this process began */
    int latest;                        /* program step that ran last */
    struct cvy_trainer_state state;
    struct cvy_window window;
    double last_loss, val_loss, images_per_s, start_s, epoch_start_s;
    double busy_s, met_s;              /* of the latest step: this rank's own time, and that in which it met others */
    double waited_s, looped_s;         /* for samples; in all steps but the first */
    double turn_s, looked_s;           /* the longest turn of the loop, with all that fell into it; the clock at the latest look at the orders */
    double save_s;                     /* of the slowest save until it was safe; 0: none yet */
    int is_ending;                     /* the allocation ends */
    int is_new_best, stop_early;
    struct { double safe, saving; int is_saving; int64_t lost_step; } best; /* scores of the best set that is safe (NaN: none), and of one under way; where one was lost, -1: nowhere */
    int save_waits;                    /* a checkpoint is due, and the ranks' weights differ */
    /* the run folder */
    char out[512];
    int lock;                          /* of the folder, on rank 0; -1: none */
    int is_new_folder, has_begun;      /* made by this process; its head is written */
    cvy_metrics_log *log;              /* rank 0 */
    char *plan_json;
    cvy_saver *saver;
    double saved_s;                    /* the clock at the latest save */
    int64_t saved_step, asked_step;    /* of the latest save that is safe, and that was begun; -1: none */
    struct { int64_t count, bytes, timed; double stall_s; } saves; /* that are safe; bytes of the latest; sum over those that training went on behind */
    int is_ending_by_save;             /* the save at hand is the run's last work */
    cvy_checkpoint resume;
} cvy_trainer;

/* The model and the program with all its steps: training, its tail, validation; not yet planned. The session's job and training data are open. */
cvy_status cvy_trainer_make_program(cvy_trainer *t, const char *plan_file);
/* What the job says of groups of weights, outputs, scores and the schedule, against the planned program; makes the schedule. */
cvy_status cvy_trainer_check(cvy_trainer *t);
/* Where the run stands, with an event or NULL, to the caller's progress function; rank 0. */
void cvy_trainer_say(cvy_trainer *t, const char *event);
/* One training step with these rows, and its lines in the log. */
cvy_status cvy_trainer_step(cvy_trainer *t, const cvy_rows *rows, double waited_s, int ready);
/* ---- job_orders.c: when a run saves and when it ends ---- */
/* Whether all ranks go on, and what any of them wishes. Collective; a fault of any rank is one of all. */
cvy_status cvy_trainer_agree(cvy_trainer *t, cvy_status mine, cvy_wish *wish_out);
/* Behind the latest step: a checkpoint is due by the job; an epoch ends. */
int cvy_trainer_is_due(const cvy_trainer *t);
int cvy_trainer_ends_epoch(const cvy_trainer *t);
/* Whether all ranks come together behind the latest step in any case; whether this rank wants them to, since it was told to stop or a checkpoint is due. */
int cvy_trainer_meets(const cvy_trainer *t);
int cvy_trainer_wishes(const cvy_trainer *t);
/* Before each look at the orders: how long a turn takes. */
void cvy_trainer_time_turn(cvy_trainer *t);
/* When the allocation ends, a line among the notes. */
void cvy_trainer_say_end(cvy_trainer *t);
/* job_trainer_free.c: the steps from one meeting of all ranks to the next. */
cvy_status cvy_trainer_run_free(cvy_trainer *t);
/* Makes or finds the run folder, and for a resume its newest sound checkpoint. Collective. */
cvy_status cvy_trainer_open_folder(cvy_trainer *t);
/* Variables, position and sums from the checkpoint that open_folder found. Collective. */
cvy_status cvy_trainer_restore(cvy_trainer *t);
/* job.resolved.yaml, plan.json, metrics.jsonl, STATUS; after planning. */
cvy_status cvy_trainer_write_head(cvy_trainer *t);
/* ---- job_judge.c: what scores decide ---- */
/* What the job wants watched is among the scores: known before the first step. */
cvy_status cvy_trainer_check_scores(const cvy_trainer *t);
/* The best checkpoint, and stopping early. */
void cvy_trainer_judge(cvy_trainer *t, const cvy_scores *val);
/* ---- job_settle.c: ways to update that are not in sync all the time ---- */
/* Behind the step of this number, counted from 0: brings the weights up to date where the mode wants that now. */
cvy_status cvy_trainer_settle(cvy_trainer *t, int64_t step);
/* The way in which a step updates: a word for the log. */
const char *cvy_trainer_mode(const cvy_trainer *t, int64_t step);
/* What the mode does in this run, a line among the notes. */
void cvy_trainer_say_mode(cvy_trainer *t);
/* What a checkpoint keeps of an update that is pending, and the other way round. */
void cvy_trainer_add_pending(const cvy_trainer *t, cvy_json *json);
cvy_status cvy_trainer_restore_pending(cvy_trainer *t);

/* A line of metrics.jsonl on rank 0; frees the JSON. Without room on the disk or in memory the line is lost, with a warning: the training goes on. */
void cvy_trainer_write_line(cvy_trainer *t, cvy_json *json);
cvy_course cvy_trainer_course(const cvy_trainer *t);
/* "running step 10 of 20 ..." on rank 0. */
void cvy_trainer_write_status(const cvy_trainer *t, const char *word, const char *why);

/* ---- job_save.c. All collective. A failed save is a warning while training goes on, and a fault where it is the last or weights are not finite ---- */
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
