/*
 * sweep_search.h: a search: its file, the list of its trials, which trial runs next, and its state on disk.
 *
 * The list of trials is a function of the file and its seed. Decisions are a function of the scores. So a search has
 * the same trials and the same result on any number of groups, and its state is small: the scores of each trial.
 *
 * All searches have one form. A search consists of brackets, a bracket of trials and rungs. All trials of a bracket
 * train in its first rung. When all of them have ended it, the search decides which ones train on in the next rung:
 * the best ones (successive halving), or all of them, the worst as copies of the best ones (population). A grid, a
 * random search and a Sobol search have one bracket with one rung.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SWEEP_SEARCH_H
#define CVY_SWEEP_SEARCH_H

#include "base/text/base_text.h"
#include "base/text/base_tree.h"
#include "sweep/sweep.h"

#define CVY_SWEEP_STATE "sweep.json" /* in the folder of a search */
#define CVY_SWEEP_BEST "best.yaml"
enum { CVY_SWEEP_TRIALS_MAX = 10000, CVY_SWEEP_RUNGS_MAX = 1000, CVY_SWEEP_KEYS_MAX = 32, CVY_SWEEP_FACTORS_MAX = 16 };
enum { CVY_SWEEP_OUT_MAX = 500, CVY_SWEEP_PATH = 560 }; /* bytes of the folder of a search, and of a path into it */
enum { CVY_SWEEP_METRIC = 128 };                        /* bytes of the name of a metric */
enum { CVY_SWEEP_TRIES = 5 };

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

enum {
    CVY_SWEEP_GRID,
    CVY_SWEEP_RANDOM,
    CVY_SWEEP_SOBOL,
    CVY_SWEEP_HALVING,
    CVY_SWEEP_HYPERBAND,
    CVY_SWEEP_POPULATION
};
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
    int search, points;  /* points: CVY_SWEEP_RANDOM or CVY_SWEEP_SOBOL, of the searches with rungs */
    int64_t trials, eta; /* trials: of all searches but grid and hyperband */
    int64_t min, max;    /* epochs of the first rung (of a population: of each rung), and of a whole training */
    double share;        /* of a population: of its members that become copies at the end of a rung */
    double factor[CVY_SWEEP_FACTORS_MAX];
    int nfactor;
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
/* sweep_space.c: the map of keys and values; the overrides of all trials, those of the file before the others. */
cvy_status cvy_sweep_read_space(cvy_sweep_spec *spec, const cvy_tree *space);
cvy_status cvy_sweep_read_sets(cvy_sweep_spec *spec, const cvy_tree *map, const char *const *sets, int nsets);
/* Prints a node as YAML on one line, behind `before`. NULL gives no text. */
cvy_status cvy_sweep_print_node(cvy_pool *pool, const char *before, const cvy_tree *node, const char **out);

/* The job with these overrides. */
cvy_job_source cvy_sweep_source(const cvy_sweep_spec *spec, const char *const *sets, int nsets);

/* ---- trials ---- */

typedef enum { CVY_TRIAL_WAITING, CVY_TRIAL_RUNNING, CVY_TRIAL_FINISHED, CVY_TRIAL_FAILED } cvy_trial_state;
typedef struct cvy_generation { /* of a member of a population, in one rung */
    int parent;                 /* the trial that it became a copy of when the rung began; -1: it went on itself */
    const char **value;         /* [nkey] */
} cvy_generation;
typedef struct cvy_trial {
    double *place;          /* [nkey]: the number of a range, or the index of a value that is listed */
    const char **value;     /* [nkey]: the same as YAML on one line */
    const char **set;       /* [nset]: all overrides of its job */
    int bracket, rung;      /* rung: the last one in which it may train */
    cvy_trial_state state;  /* WAITING: to begin, to be resumed, or for a decision. FINISHED: it will not train again */
    int nscores;            /* rungs that it has ended */
    double *score;          /* [rungs]: at the end of each rung; NaN: it has none */
    double seconds, epochs; /* time that it has trained, epochs that it has done */
    const char *error;      /* the latest; NULL: none */
    int64_t tries, step;    /* times that it was begun and has not ended, with no step logged after this one */
    cvy_generation *generation; /* [rungs], of which rung + 1 are known; NULL: the search is no population */
} cvy_trial;

typedef struct cvy_bracket {
    int first, count;    /* its trials */
    int nrungs, decided; /* rungs; how many of them have ended for all trials */
    int *width;          /* [nrungs]: trials of each rung */
    int64_t *epochs;     /* [nrungs]: done at the end of each rung; 0: all that the job asks for */
} cvy_bracket;

typedef struct cvy_sweep {
    cvy_sweep_spec spec;
    cvy_trial *trial;
    int ntrials, nset;
    cvy_bracket *bracket;
    int nbrackets;
    int higher; /* a higher score is better */
    int copied; /* of a population: the last rung for which run folders were copied */
} cvy_sweep;

/* Makes the list of trials of sweep->spec: brackets, values, overrides. */
cvy_status cvy_sweep_plan(cvy_sweep *sweep);
/* Gives a trial these values. place: [nkey]. */
cvy_status cvy_sweep_place(cvy_sweep *sweep, int trial, const double *place);
/* Writes the places of the values of trial `number`, counted from 0, of a search by points. */
void cvy_sweep_point(const cvy_sweep_spec *spec, int64_t number, double *place);
/* The number at the share u of a range that ends at `high`. */
double cvy_sweep_between(const cvy_sweep_key *key, double high, double u);
/* The text of a number of a range. Six digits are enough: the run folder has the exact value. */
cvy_status cvy_sweep_print(cvy_pool *pool, const cvy_sweep_key *key, double x, const char **out);
/* Coordinate `dim` of point `number` of Sobol's sequence, as an integer over 2^32. */
enum { CVY_SOBOL_DIMS = 10 };
uint32_t cvy_sobol(int dim, uint32_t number);

/* ---- decisions ---- */

/* Notes the end of a rung of a trial. score NaN: it has none. */
void cvy_sweep_note(cvy_sweep *sweep, int trial, double score);
/* Notes that a trial has failed. A member of a population may become a copy of another member at the end of the rung,
 * and goes on then. */
cvy_status cvy_sweep_note_failure(cvy_sweep *sweep, int trial, const char *error);
/* Decides what can be decided: which trials go on, with which values, and which are FINISHED. Call it after each
 * change. *done_out: nothing is left to do. */
cvy_status cvy_sweep_settle(cvy_sweep *sweep, int *done_out);
/* sweep_population.c: begins this rung of a population, all of whose members have ended the one before. */
cvy_status cvy_sweep_evolve(cvy_sweep *sweep, int rung);
/* The next trial to train, and the epochs that it has done at the end of the rung (0: all). -1: none now. */
int cvy_sweep_next(const cvy_sweep *sweep, int64_t *epochs_out);
/* Lets failed trials wait again, with the scores that they had. Returns their number. */
int cvy_sweep_retry(cvy_sweep *sweep);
/* Whether trial a was better than b at the end of a rung. Trials without a score are last; equal ones go by number. */
int cvy_sweep_is_better(const cvy_sweep *sweep, int a, int b, int rung);
/* The numbers of all trials, the best one first: later rungs before earlier ones, then by score. Trials without a score
 * are last. *nscored_out: the number of trials with a score. */
cvy_status cvy_sweep_rank(const cvy_sweep *sweep, int *order, int *nscored_out);
/* Score that counts for the rank: that of the trial's last rung. */
double cvy_sweep_score(const cvy_sweep *sweep, int trial);

/* ---- checks before the first trial ---- */

/* Checks that the job accepts each value, and each trial. */
cvy_status cvy_sweep_check(const cvy_sweep *sweep, int nranks);

/* ---- state ---- */

/* Reads sweep.json into the pool: all of it, and its list of trials. */
cvy_status cvy_sweep_state_read(cvy_pool *pool, const char *folder, const cvy_tree **root_out,
                                const cvy_tree **trials_out);
/* The state of a trial in this list, a cvy_trial_state; -1: it has none. */
int cvy_sweep_state_of(const cvy_tree *node);

/* Writes sweep.json. */
cvy_status cvy_sweep_save(const cvy_sweep *sweep, const char *folder);
/* Reads the state of the search's trials. Trials that ran are WAITING, unless they have ended the search several times:
 * then they are FAILED. An error if the folder has another search, or if processes of an earlier start still train. */
cvy_status cvy_sweep_load(cvy_sweep *sweep, const char *folder);
/* The folder of a trial, counted from 0. */
void cvy_sweep_trial_path(const char *folder, int trial, char path[CVY_SWEEP_PATH]);
/* sweep_copy.c: gives the members of a population the run folders of those whose copies they became, for all rungs
 * that were decided since. Until the state is saved it may be called again, because the parents do not train before
 * that. */
cvy_status cvy_sweep_copy_runs(cvy_sweep *sweep, const char *folder);
/* Copies the job of the best trial to best.yaml. */
cvy_status cvy_sweep_write_best(const cvy_sweep *sweep, const char *folder, int best);
/* The score of a trial so far, from its log. epochs 0: to its end. *score_out NaN: it has none. */
cvy_status cvy_sweep_read_score(const cvy_sweep *sweep, const char *run, int64_t epochs, double *score_out,
                                double *epochs_out);

/* ---- a search that was read, for tables and pages ---- */

typedef struct cvy_sweep_ancestor { /* a rung of a member of a population */
    int parent;                     /* counted from 1; 0: it went on itself */
    double epochs, score;           /* at the end of the rung; NaN: it has none */
    const char **value;
} cvy_sweep_ancestor;
typedef struct cvy_sweep_row {
    int trial, rank, bracket; /* counted from 1; rank 0: the trial has no score */
    double score, epochs, seconds;
    const char *state, *error; /* error NULL: none */
    const char **value;
    cvy_sweep_ancestor *line; /* [nline] */
    int nline;                /* 0: the search is no population */
} cvy_sweep_row;
typedef struct cvy_sweep_summary { /* all of it is in the pool */
    const char *name, *metric, *search, *score_of;
    int higher, nkey, nrows, nranked, nfailed;
    const char **key;
    int *is_list, *is_log; /* of each key: its values were listed; they are spread evenly in their logarithm */
    cvy_sweep_row *row;    /* by rank; then trials without a score by number */
} cvy_sweep_summary;
cvy_status cvy_sweep_summary_read(cvy_pool *pool, const char *folder, cvy_sweep_summary *out);
/* sweep_edge.c: adds a line if the best trial has the smallest or the largest number of a key that was tried. */
void cvy_sweep_add_edge(const cvy_sweep_summary *s, int key, cvy_text *text);

#endif
