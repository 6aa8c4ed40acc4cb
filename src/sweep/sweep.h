/*
 * sweep.h: a search: its file, the list of its trials, which trial runs next, and its state on disk.
 *
 * The list of trials is a function of the file and its seed. Decisions are a function of the scores. So a search has
 * the same trials and the same result on any number of groups, and its state is small: the scores of each trial.
 *
 * All searches have one form. A search consists of brackets, a bracket of trials and rungs. All trials of a bracket
 * train in its first rung. When all of them have ended it, the best ones train on in the next rung. A grid, a random
 * search and a Sobol search have one bracket with one rung.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SWEEP_H
#define CVY_SWEEP_H

#include <convoy/sweep.h>

#include "base/text/base_text.h"
#include "base/text/base_tree.h"

#define CVY_SWEEP_STATE "sweep.json" /* in the folder of a search */
#define CVY_SWEEP_BEST "best.yaml"
enum { CVY_SWEEP_TRIALS_MAX = 10000, CVY_SWEEP_RUNGS_MAX = 16, CVY_SWEEP_KEYS_MAX = 32, CVY_SWEEP_PATH = 560 };
enum { CVY_SWEEP_TRIES = 3 };

/* ---- the file ---- */

enum { CVY_SWEEP_LIST, CVY_SWEEP_UNIFORM, CVY_SWEEP_LOG_UNIFORM };
typedef struct cvy_sweep_key { /* a key of the job that trials vary */
    const char *name;          /* "train.batch" */
    const char *where;         /* its place in the file, for messages */
    int kind, is_whole;        /* is_whole: values of a range are integers */
    double low, high;          /* of a range */
    int nvalues;               /* of a list, or of a range in a grid; 0: a range without points */
    const char **value;        /* YAML on one line */
} cvy_sweep_key;

enum { CVY_SWEEP_GRID, CVY_SWEEP_RANDOM, CVY_SWEEP_SOBOL, CVY_SWEEP_HALVING, CVY_SWEEP_HYPERBAND };
enum { CVY_SWEEP_GOAL_AUTO, CVY_SWEEP_GOAL_MIN, CVY_SWEEP_GOAL_MAX };
enum { CVY_SWEEP_SCORE_LAST, CVY_SWEEP_SCORE_BEST };

typedef struct cvy_sweep_spec { /* the file, with the overrides of the command line */
    cvy_pool *pool;
    const char *file;
    const char *job; /* path of the job file */
    const char **set;
    int nset;
    cvy_sweep_key *key;
    int nkey;
    int search, points;  /* points: CVY_SWEEP_RANDOM or CVY_SWEEP_SOBOL, of the two kinds of halving */
    int64_t trials, eta; /* trials: of all searches but grid and hyperband */
    int64_t min, max;    /* epochs of the first and the last rung of halving */
    int64_t seed, ranks; /* ranks: of a trial */
    const char *metric;  /* without "val_" */
    int goal, score;
    /* Texts of the parts that decide what the search is, in the order of cvy_sweep_parts: a resumed search must have
     * the same ones. */
    const char *part[6];
} cvy_sweep_spec;
extern const char *const cvy_sweep_parts[6];

/* Reads the file. sets: overrides of the command line. On an error spec->pool may exist: destroy it in any case. */
cvy_status cvy_sweep_spec_read(const char *path, const char *const *sets, int nsets, cvy_sweep_spec *spec);

/* The job with these overrides. */
cvy_job_source cvy_sweep_source(const cvy_sweep_spec *spec, const char *const *sets, int nsets);

/* ---- trials ---- */

typedef enum { CVY_TRIAL_WAITING, CVY_TRIAL_RUNNING, CVY_TRIAL_FINISHED, CVY_TRIAL_FAILED } cvy_trial_state;
typedef struct cvy_trial {
    const char **value;    /* [nkey]: YAML on one line */
    const char **set;      /* [nset]: all overrides of its job */
    int bracket, rung;     /* the last rung in which it may train */
    cvy_trial_state state; /* WAITING: to begin, to be resumed, or for a decision. FINISHED: it will not train again */
    int nscores;           /* rungs that it has ended */
    double score[CVY_SWEEP_RUNGS_MAX]; /* at the end of each rung; NaN: it has none */
    double seconds, epochs;            /* time that it has trained, epochs that it has done */
    const char *error;                 /* NULL: none */
    int64_t tries, step; /* times that it was begun and has not ended, with no step logged after this one */
} cvy_trial;

typedef struct cvy_bracket {
    int first, count;                       /* its trials */
    int nrungs, width[CVY_SWEEP_RUNGS_MAX]; /* trials of each rung */
    int64_t epochs[CVY_SWEEP_RUNGS_MAX];    /* done at the end of each rung; 0: all that the job asks for */
} cvy_bracket;

typedef struct cvy_sweep {
    cvy_sweep_spec spec;
    cvy_trial *trial;
    int ntrials, nset;
    cvy_bracket *bracket;
    int nbrackets;
    int higher; /* a higher score is better */
} cvy_sweep;

/* Makes the list of trials of sweep->spec: brackets, values, overrides. */
cvy_status cvy_sweep_plan(cvy_sweep *sweep);
/* Writes the values of trial `number`, counted from 0, of a search by points. */
cvy_status cvy_sweep_point(const cvy_sweep_spec *spec, int64_t number, const char **value);
/* The number at the share u of a range that ends at `high`, and its text. Six digits are enough: the run folder has the
 * exact value. */
double cvy_sweep_between(const cvy_sweep_key *key, double high, double u);
cvy_status cvy_sweep_print(cvy_pool *pool, const cvy_sweep_key *key, double x, const char **out);
/* Coordinate `dim` of point `number` of Sobol's sequence, as an integer over 2^32. */
enum { CVY_SOBOL_DIMS = 10 };
uint32_t cvy_sobol(int dim, uint32_t number);

/* ---- decisions ---- */

/* Notes the end of a rung of a trial. score NaN: it has none. */
void cvy_sweep_note(cvy_sweep *sweep, int trial, double score);
/* Decides what can be decided: which trials go on, and which are FINISHED. Call it after each change. Returns 1 if
 * nothing is left to do. */
int cvy_sweep_settle(cvy_sweep *sweep);
/* The next trial to train, and the epochs that it has done at the end of the rung (0: all). -1: none now. */
int cvy_sweep_next(const cvy_sweep *sweep, int64_t *epochs_out);
/* The numbers of all trials, the best one first: later rungs before earlier ones, then by score. Trials without a score
 * are last. Returns the number of trials with a score. */
int cvy_sweep_rank(const cvy_sweep *sweep, int *order);
/* Score and epochs that count for the rank: those of the trial's last rung. */
double cvy_sweep_score(const cvy_sweep *sweep, int trial);

/* ---- checks before the first trial ---- */

/* Checks that the job accepts each value, and each trial. */
cvy_status cvy_sweep_check(const cvy_sweep *sweep, int nranks);

/* ---- state ---- */

/* Writes sweep.json. */
cvy_status cvy_sweep_save(const cvy_sweep *sweep, const char *folder);
/* Reads the state of the search's trials. Trials that ran are WAITING, unless they have ended the search several times:
 * then they are FAILED. An error if the folder has another search. */
cvy_status cvy_sweep_load(cvy_sweep *sweep, const char *folder);
/* The folder of a trial, counted from 0. */
void cvy_sweep_trial_path(const char *folder, int trial, char path[CVY_SWEEP_PATH]);
/* Copies the job of the best trial to best.yaml. */
cvy_status cvy_sweep_write_best(const cvy_sweep *sweep, const char *folder, int best);
/* The score of a trial so far, from its log. epochs 0: to its end. *score_out NaN: it has none. */
cvy_status cvy_sweep_read_score(const cvy_sweep *sweep, const char *run, int64_t epochs, double *score_out,
                                double *epochs_out);

/* ---- a search that was read, for tables and pages ---- */

typedef struct cvy_sweep_row {
    int trial, rank, bracket; /* counted from 1; rank 0: the trial has no score */
    double score, epochs, seconds;
    const char *state, *error; /* error NULL: none */
    const char **value;
} cvy_sweep_row;
typedef struct cvy_sweep_summary { /* all of it is in the pool */
    const char *name, *metric, *search, *score_of;
    int higher, nkey, nrows, nranked, nfailed;
    const char **key;
    int *is_list, *is_log; /* of each key: its values were listed; they are spread evenly in their logarithm */
    cvy_sweep_row *row;    /* by rank; then trials without a score by number */
} cvy_sweep_summary;
cvy_status cvy_sweep_summary_read(cvy_pool *pool, const char *folder, cvy_sweep_summary *out);

#endif
