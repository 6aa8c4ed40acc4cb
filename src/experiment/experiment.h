/*
 * experiment.h: what the parts of `convoy study` share: a study file, its cases, frameworks, and results.
 *
 * A study has experiments. An experiment has axes, such as batch and framework, each with a list of values. A case has
 * one value of each axis, and is measured `repeats` times by a command of its own, which prints a JSON object. A result
 * is a line of results.jsonl: the case, the number of the repeat, and what the command printed, or why it failed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EXPERIMENT_H
#define CVY_EXPERIMENT_H

#include <convoy/experiment.h>

#include "base/text/base_json.h"
#include "base/text/base_tree.h"

enum { CVY_AXES_MAX = 24, CVY_CASES_MAX = 20000, CVY_FIGURES_MAX = 64 };

typedef struct cvy_study_axis {
    /* model, batch, ..; a name with a dot is a key of the job, set.KEY one without a dot, env.NAME a variable of the
     * environment */
    const char *name;
    const char **value;
    int nvalue;
} cvy_study_axis;

typedef struct cvy_experiment {
    const char *name;
    cvy_study_axis axis[CVY_AXES_MAX];
    int naxis;
    int64_t repeats;
    int64_t seconds; /* of timed steps, for each repeat */
    double limit_s;  /* after which a command is ended */
    int oversubscribes;
} cvy_experiment;

typedef struct cvy_figure { /* names of axes; NULL: none */
    const char *title, *of, *x, *y, *y_label, *lines;
    const char *panels[CVY_AXES_MAX]; /* a chart for each combination of their values */
    int npanels, log_x, log_y;
    enum { CVY_FIGURE_VALUE, CVY_FIGURE_SPEEDUP, CVY_FIGURE_EFFICIENCY } as;
} cvy_figure;

typedef struct cvy_study_spec {
    cvy_pool *pool;
    const char *file; /* for messages */
    const char *title, *question, *source, *meaning, *published;
    cvy_experiment *experiment;
    int nexperiment;
    cvy_figure figure[CVY_FIGURES_MAX];
    int nfigure;
} cvy_study_spec;

/* One combination of values, in the order of its experiment's axes. */
typedef struct cvy_case {
    const cvy_experiment *of;
    const char **value;
    const char *key; /* "throughput model=vgg-a batch=16 ..": the same in every file with the same values */
} cvy_case;

/* A program that trains: convoy itself, or a peer, which frameworks/NAME.yaml describes. */
typedef struct cvy_framework {
    const char *name, *summary, *install;
    int is_predicted;                       /* its results are predictions */
    int needs_cores;                        /* for all ranks and threads */
    const char *folder, *program;           /* of the adapters; convoy */
    const char **command, **set, **version; /* words; NULL ends the list. {batch} stands for the value of an axis */
    const char *found;                      /* its version, if it is installed */
    const char *missing;                    /* why not, otherwise */
} cvy_framework;

/* ---- experiment_read.c ---- */
/* Reads a study from text, which is named `file` in messages. `quick`: what the members `quick` say counts. */
cvy_status cvy_study_read(cvy_pool *pool, const char *file, const char *text, int quick, cvy_study_spec *out);

/* ---- experiment_cases.c ---- */
/* Lists the cases of all experiments, those of one experiment together. The last axis changes fastest, and `framework`
 * faster than all others, so that what is compared is measured close together. In the pool of the spec. */
cvy_status cvy_study_cases(const cvy_study_spec *spec, cvy_case **out, int *count_out);
/* The value of an axis, or NULL. */
const char *cvy_case_value(const cvy_case *c, const char *axis);

/* ---- experiment_command.c ---- */
/* Reads NAME.yaml of the folder, and asks for the version. */
cvy_status cvy_framework_open(cvy_pool *pool, const char *folder, const char *program, const char *name,
                              const volatile int *stop, cvy_framework *out);
/* The words of the command that measures a case, in pool; NULL ends the list. Variables of the environment are words
 * NAME=VALUE after `env`. CVY_E_UNSUPPORTED: the framework cannot be told the value of an axis. */
cvy_status cvy_case_command(cvy_pool *pool, const cvy_framework *f, const cvy_case *c, const char *const **out);

/* ---- experiment_process.c ---- */
typedef struct cvy_process_result {
    char *out, *err; /* what it wrote, the last part if it is long; the caller frees both with cvy_mem_free */
    int code;        /* exit code; 128 + the signal that ended it */
    int timed_out, stopped;
    double seconds;
} cvy_process_result;
/* Runs a command to its end, or ends it after limit_s or when *stop is not 0. */
cvy_status cvy_process_run(const char *const *word, double limit_s, const volatile int *stop, cvy_process_result *out);

/* ---- experiment_results.c ---- */
typedef struct cvy_study_result_line {
    const char *key, *experiment, *machine, *framework; /* machine: what identifies it; framework: its version */
    int64_t repeat;
    int is_predicted;
    const char *error;
    const cvy_tree *values;      /* of the axes */
    const cvy_tree *environment; /* the machine */
    const cvy_tree *result;      /* what the command printed; NULL if it failed */
} cvy_study_result_line;
typedef struct cvy_study_results {
    cvy_study_result_line *line;
    int n, room;
} cvy_study_results;
/* Reads results.jsonl of a folder. A last line that is cut off, as by a kill, is left out and cut from the file. */
cvy_status cvy_study_results_read(cvy_pool *pool, const char *folder, cvy_study_results *out);
/* Appends a line and makes it durable. */
cvy_status cvy_study_results_add(const char *folder, const char *line);

#endif
