/*
 * study_file.h: what the parts of `convoy study` share: a study file, its cases, frameworks, and results.
 *
 * A study has experiments. An experiment has axes, such as batch and framework, each with a list of values. A case has
 * one value of each axis, and is measured `repeats` times by a command of its own, which prints a JSON object. A result
 * is a line of results.jsonl: the case, the number of the repeat, and what the command printed, or why it failed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_STUDY_FILE_H
#define CVY_STUDY_FILE_H

#include "base/text/base_json.h"
#include "base/text/base_tree.h"
#include "study/study.h"

enum { CVY_AXES_MAX = 24, CVY_CASES_MAX = 20000, CVY_FIGURES_MAX = 64, CVY_MARKS_MAX = 8, CVY_STUDY_WORDS = 128 };

typedef struct cvy_study_axis {
    /* model, batch, ..; a name with a dot is a key of the job, set.KEY one without a dot, env.NAME a variable of the
     * environment, arg.NAME an option of the command */
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
    double once_s;   /* a case whose first measurement took longer is not repeated */
    int oversubscribes;
    const char *show, *show_label; /* the number of the results that the table has, and its name and unit */
    const char *target;            /* "val_accuracy >= 0.7": when a curve gets there; or NULL */
} cvy_experiment;

/* A published figure that is drawn at an x: the rows of published.csv with this metric. */
typedef struct cvy_figure_mark {
    const char *metric, *network; /* network: NULL: of any network */
    const char *panel;            /* only in charts whose name has this text; NULL: in all */
    double x;
} cvy_figure_mark;

typedef struct cvy_figure {                                     /* names of axes; NULL: none */
    const char *title, *of, *x, *x_label, *y, *y_label, *lines; /* x, y: "curve.NAME", see cvy_figure_curve() */
    const char *panels[CVY_AXES_MAX];                           /* a chart for each combination of their values */
    int npanels, log_x, log_y;
    cvy_figure_mark mark[CVY_MARKS_MAX];
    int nmark;
    enum { CVY_FIGURE_VALUE, CVY_FIGURE_SPEEDUP, CVY_FIGURE_EFFICIENCY } as;
} cvy_figure;

/* A part of the study's folder that a command makes before the measurements. */
typedef struct cvy_study_target {
    const char *name;  /* relative to the folder */
    const char **word; /* of the command; NULL ends the list */
} cvy_study_target;

typedef struct cvy_study_spec {
    cvy_pool *pool;
    const char *file;      /* for messages */
    const cvy_tree *jobs;  /* names and jobs, or NULL */
    const cvy_tree *names; /* axes, and what their values are called on the page; or NULL */
    cvy_study_target *target;
    int ntarget;
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

/* What words may stand for besides the values of axes: ${NAME} is the path that the user gives for NAME. */
typedef struct cvy_study_paths {
    const char *out;          /* ${out}: the folder of the study */
    const char *const *given; /* [ngiven]: "NAME=PATH" */
    int ngiven;
    int64_t nodes; /* of the job, which has files of its own; 0: it is none */
} cvy_study_paths;

/* A program that trains: convoy itself, or a peer, which frameworks/NAME.yaml describes. */
typedef struct cvy_framework {
    const char *name, *summary, *install; /* name: of the file; or FILE:VARIANT, such as simulated:cori-like */
    const char *python;                   /* the variable of the environment that names its interpreter */
    const char *variant;                  /* what {variant} stands for; NULL: the description has none */
    int is_predicted;                     /* its results are predictions */
    int is_exact;                         /* a case has the same result each time */
    int needs_cores;                      /* for all ranks and threads */
    int64_t most_ranks;                   /* that it can have; 0: any number */
    int64_t ranks_per_node;               /* at most; 0: all ranks are on this machine */
    int64_t node_ranks;                   /* the ranks of a node that its predictions are for */
    const char *folder, *program;         /* of the adapters; convoy */
    cvy_study_paths paths;
    const char **command, **set, **arg, **device, **ignores, **version; /* words, and ignores axes; NULL ends a list.
                                                                 {batch} stands for the value of an axis */
    const char *found;                                                  /* its version, if it is installed */
    const char *missing;                                                /* why not, otherwise */
} cvy_framework;

/* ---- study_read.c ---- */
/* Reads a study from text, which is named `file` in messages. `quick`: what the members `quick` say counts. */
cvy_status cvy_study_read(cvy_pool *pool, const char *file, const char *text, int quick, cvy_study_spec *out);

/* Reads a list of words; NULL ends *out. */
cvy_status cvy_study_read_words(cvy_pool *pool, const char *where, const char *name, const cvy_tree *list,
                                const char ***out);
/* ---- study_read_figures.c ---- */
/* The experiment of this name; NULL: there is none. */
const cvy_experiment *cvy_study_experiment(const cvy_study_spec *spec, const char *name);
cvy_status cvy_study_read_figures(cvy_study_spec *spec, const cvy_tree *list);
/* "curve" or "step_curve": the lists of the results, over epochs or steps, of which x is one; NULL: x is an axis. */
const char *cvy_figure_curve(const cvy_figure *f);

/* ---- study_prepare.c ---- */
/* Replaces each ${NAME}. CVY_E_UNSUPPORTED: nobody has given its path. */
cvy_status cvy_study_fill(cvy_pool *pool, const cvy_study_paths *paths, const char *text, const char **out);
/* Writes the jobs of the study into the folder, as jobs/NAME.yaml; a job that needs a path that is not given is left
 * out. */
cvy_status cvy_study_write_jobs(const cvy_study_spec *spec, const cvy_study_paths *paths);
/* The word for the value of the axis `job`: the path of one of these jobs, or the value. */
cvy_status cvy_study_job_path(cvy_pool *pool, const cvy_study_paths *paths, const char *value, const char **out);
/* The folder of a measurement's files, which is empty at its beginning and removed at its end. */
cvy_status cvy_study_scratch(cvy_pool *pool, const cvy_study_paths *paths, const char **out);

/* ---- study_cases.c ---- */
/* Lists the cases of all experiments, those of one experiment together. The last axis changes fastest, and `framework`
 * faster than all others, so that what is compared is measured close together. In the pool of the spec. */
cvy_status cvy_study_cases(const cvy_study_spec *spec, cvy_case **out, int *count_out);
/* The value of an axis, or NULL. */
const char *cvy_case_value(const cvy_case *c, const char *axis);
/* The value of the axis `ranks`; 1 if it has none. */
int64_t cvy_case_ranks(const cvy_case *c);
/* The value of the axis `threads`; 1 if it has none, and for `all`: then the ranks share the cores. */
int64_t cvy_case_threads(const cvy_case *c);

/* ---- study_command.c ---- */
/* Reads NAME.yaml of the folder; of NAME:VARIANT too. */
cvy_status cvy_framework_read(cvy_pool *pool, const char *folder, const char *program, const cvy_study_paths *paths,
                              const char *name, cvy_framework *out);
/* The same, and asks for the version. */
cvy_status cvy_framework_open(cvy_pool *pool, const char *folder, const char *program, const cvy_study_paths *paths,
                              const char *name, const volatile int *stop, cvy_framework *out);
/* The ranks of a case on each node, or on the first ones. */
int64_t cvy_framework_ranks_here(const cvy_framework *f, const cvy_case *c);
/* The global batch of a case; 0: it has none. */
int64_t cvy_case_batch(const cvy_case *c);
/* The nodes that a case needs with so many ranks on each. */
int64_t cvy_framework_nodes(const cvy_framework *f, const cvy_case *c, int64_t ranks_per_node);
/* The words of the command that measures a case for this time, from 1, in pool; NULL ends the list. Variables of the
 * environment are words NAME=VALUE after `env`. CVY_E_UNSUPPORTED: the framework cannot be told the value of an axis.
 */
cvy_status cvy_case_command(cvy_pool *pool, const cvy_framework *f, const cvy_case *c, int64_t repeat,
                            const char *const **out);
/* A word of this command for readers on other machines: absolute paths of the program, interpreter, adapters, data and
 * folder of the study become `convoy`, `python3`, `frameworks`, ${NAME}, and relative paths. */
cvy_status cvy_case_shown_word(cvy_pool *pool, const cvy_framework *f, const char *word, const char **out);

/* The words of a command that makes a part of the folder. {target} stands for its path, {program} for convoy. */
cvy_status cvy_target_command(cvy_pool *pool, const cvy_study_paths *paths, const char *program,
                              const cvy_study_target *target, const char *path, const char *const **out);

/* ---- study_process.c ---- */
typedef struct cvy_process_result {
    char *out, *err; /* what it wrote, the last part if it is long; the caller frees both with cvy_mem_free */
    int code;        /* exit code; 128 + the signal that ended it */
    int timed_out, stopped;
    double seconds;
} cvy_process_result;
/* Runs a command to its end, or ends it after limit_s or when *stop is not 0. CVY_E_UNSUPPORTED: its exit code cannot
 * be known, because this program ignores SIGCHLD or has taken it elsewhere. */
cvy_status cvy_process_run(const char *const *word, double limit_s, const volatile int *stop, cvy_process_result *out);

/* ---- study_results.c ---- */
typedef struct cvy_study_result_line {
    const char *key, *experiment, *machine, *framework; /* machine: what identifies it; framework: its version */
    int64_t repeat;
    int is_predicted;
    const char *error;
    int is_quick;                /* made with --quick */
    double seconds;              /* that the command took */
    const cvy_tree *values;      /* of the axes */
    const cvy_tree *environment; /* the machine */
    const cvy_tree *result;      /* what the command printed; NULL if it failed */
} cvy_study_result_line;
typedef struct cvy_study_results {
    cvy_study_result_line *line;
    int n, room;
} cvy_study_results;
/* The file of a folder for results: of predictions alone; of a job with `nodes` nodes, or 0: of no job. */
cvy_status cvy_study_results_path(cvy_pool *pool, const char *folder, cvy_study_part part, int64_t nodes, char **out);
/* Reads all such files of a folder. A last line that is cut off, as by a kill or a full disk, is left out. */
cvy_status cvy_study_results_read(cvy_pool *pool, const char *folder, cvy_study_results *out);
/* Cuts such a line from the file. Only the process that appends to it may do so. */
cvy_status cvy_study_results_mend(const char *path);
/* Appends a line and makes it durable. */
cvy_status cvy_study_results_add(const char *path, const char *line);

#endif
