/*
 * job.h: the job file: all settings of a run, read once, checked, with all defaults filled in.
 *
 * Before step 0, YAML and --set become a cvy_job, and model, data, graph passes and step loop read their settings from
 * it. Every key is a row of an option table: job_table.c, or program_options.c for options of the program. The parser,
 * the messages, the resolved file, --help and docs/reference/job-file.md are made from the rows. Options of an
 * operator, reader or schedule are passed on as a tree, and their owner checks them with its own table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_JOB_H
#define CVY_JOB_H

#include <convoy/job.h>
#include <convoy/program.h>

#include "base/text/base_duration.h"
#include "base/text/base_option.h"
#include "base/text/base_samples.h"
#include "base/text/base_text.h"
#include "kernel/kernel_library.h"

/* ---- sections; fields without a comment are explained by their rows ---- */

enum { CVY_TAIL_KEEP, CVY_TAIL_DROP };
enum { CVY_BALANCE_NONE, CVY_BALANCE_CLASS };
enum { CVY_CACHE_NONE, CVY_CACHE_MEMORY, CVY_CACHE_DECODED };
enum { CVY_BAD_SAMPLE_FAIL, CVY_BAD_SAMPLE_SKIP };
struct cvy_job_data {
    const cvy_tree *train, *val, *test, *roles, *augment, *normalize, *normalize_targets;
    int64_t normalize_samples;
    /* data.normalize, or data.normalize_targets, is `auto`, and its numbers are not computed yet */
    int normalize_auto, normalize_targets_auto;
    const cvy_tree *steps; /* the role of the target, augment, and the normalisation */
    const char *shuffle_text, *threads_text;
    int shuffle; /* a cvy_shuffle, from shuffle_text */
    int64_t window;
    int balance, tail, on_bad_sample;
    int64_t threads; /* -1: auto */
    int64_t prefetch, cache_limit;
    int cache;
    const char *stage;    /* NULL: files are read where they are */
    const char *sandbox;  /* auto, true or false; the sources have the word, too */
    double val_share;     /* the part of train that is set aside as val; 0: val is its own source, or NULL */
    cvy_split_spec split; /* which part */
};

typedef struct cvy_job_loss {
    const char *name;            /* name of the operator */
    const char *output, *target; /* NULL: the model's main output, the data's target */
    double weight;
    const cvy_tree *options; /* the other keys, which belong to the operator; or NULL */
} cvy_job_loss;

typedef struct cvy_job_metric {
    const char *name;
    const cvy_tree *options; /* or NULL */
    const char *title;       /* name of the score; further scores of one name have their options in it */
    int is_further;          /* 1: an earlier metric of the list has the same name */
} cvy_job_metric;

typedef struct cvy_job_group { /* a group of weights, by a pattern of their names; the first match counts */
    const char *match;
    double lr_mult, decay_mult;
    int frozen;
} cvy_job_group;

enum { CVY_INIT_ERROR, CVY_INIT_SKIP };
struct cvy_job_init { /* train.init */
    const char *from; /* a file, or the folder of a run; NULL: the job does not give train.init */
    int names;        /* a cvy_names */
    const cvy_tree *rename, *skip_tree;
    int on_mismatch;
    /* The fields below are read from the trees. */
    const char **pattern, **replacement, **skip;
    int nrename, nskip;
};

enum { CVY_STOP_AUTO, CVY_STOP_MIN, CVY_STOP_MAX };
struct cvy_job_stop {
    const char *metric;
    int64_t patience; /* epochs; 0: a lack of progress does not stop the run */
    int mode;
    double target;
    int has_target;
};

enum { CVY_LR_NONE, CVY_LR_LINEAR, CVY_LR_SQRT };
enum { CVY_DECAY_WEIGHTS, CVY_DECAY_ALL };
enum { CVY_TURNS_MAX = 16 };
typedef struct cvy_job_turn { /* a training of some weights by some losses; a step takes all turns */
    const cvy_tree *losses_tree, *train_tree, *optimizer_tree;
    int64_t every;
    double lr_mult, clip_weights; /* clip_weights 0: none */
    const char *losses, *train;   /* from the trees: names, and patterns of variables, separated by commas; NULL: all */
    const char *optimizer;        /* from the tree, with the two fields below; NULL: that of the job */
    double lr;                    /* base learning rate */
    const cvy_tree *optimizer_options; /* without name and lr; or NULL */
} cvy_job_turn;

struct cvy_job_train {
    int64_t batch, batch_per_rank; /* one of them is 0; use cvy_job_batch() */
    double epochs;                 /* 0 if steps are given */
    int64_t steps;                 /* 0 if epochs are given */
    int64_t accumulate;
    const cvy_tree *optimizer_tree, *schedule, *loss_tree, *groups_tree, *turns_tree, *metrics_tree, *stop_tree,
        *init_tree;
    int lr_rule;
    int64_t base_batch; /* 0 without an lr_rule */
    double clip_norm, clip_value, l1;
    int64_t validate_every; /* steps; 0: at the end of an epoch only */
    /* The fields below are read from the trees. */
    const char *optimizer; /* name of the operator */
    double lr;             /* base learning rate; the schedule multiplies it */
    int decay_on;
    const cvy_tree *optimizer_options; /* its own keys, without name and lr; or NULL */
    cvy_job_loss *loss;                /* NULL: a loss that suits the data, unless the model has its own */
    int nloss;
    cvy_job_group *group;
    int ngroup;
    cvy_job_turn *turn; /* [nturn]; none: a step trains all weights by all losses */
    int nturn;
    cvy_job_metric *metric; /* NULL: metrics that suit the data, unless no_metrics */
    int nmetric, no_metrics;
    struct cvy_job_stop stop;
    struct cvy_job_init init;
};

struct cvy_job_checkpoint {
    const char *every_text, *best;
    int64_t keep;
    int background;
    cvy_duration every;
};

struct cvy_job_update {
    const struct cvy_update_def *def; /* the update mode */
    /* of def->options_size bytes, in the job's pool; may be NULL if the mode has none */
    void *options;
};

enum { CVY_PARALLEL_DATA, CVY_PARALLEL_AUTO };
struct cvy_job_parallel {
    int strategy;
};
struct cvy_job_watchdog {
    const char *timeout_text;
    double timeout_s;
    int64_t replicas;
}; /* replicas: every so many steps; timeout_s and replicas: 0 is off */
enum { CVY_MLPERF_CLOSED, CVY_MLPERF_OPEN };
struct cvy_job_mlperf {    /* log.mlperf */
    const char *benchmark; /* NULL: no such log is written */
    int division;
    const char *org, *platform, *status, *metric; /* platform, metric NULL: what the run finds */
    int cache_clear;
    const cvy_tree *also; /* a map, or NULL */
};
struct cvy_job_log {
    int64_t every;
    const char *trace;
    const char *tensorboard;
    int64_t tensorboard_histograms; /* every so many epochs; 0: never */
    const cvy_tree *mlperf_tree;
    struct cvy_job_mlperf mlperf; /* from the tree */
};

typedef struct cvy_job {
    cvy_pool *pool;
    const char *file;      /* name of the file, as given */
    const char *renamed;   /* a line for each old word of the file; NULL: there is none */
    const cvy_tree *given; /* the file with overrides, before defaults; messages take line numbers from it */
    const cvy_tree *model;
    struct cvy_import *import; /* of model.onnx, or of a solver of Caffe: what was read, with the first values of the
                                  variables; else NULL */
    int64_t first_step;        /* of a state of Caffe from which the run continues; else 0 */
    char *data_absent;         /* why a network of Caffe has generated samples in place of its data; else NULL */
    const char *name;          /* by default the name of the file: "cifar10" for "examples/cifar10.yaml" */
    /* The keys that are options of the program (program/program_options.h), with their defaults. Programs are made from
     * cvy_job_program_opts(). */
    cvy_program_opts program;
    int deterministic;         /* 0: program.shards has no effect; use cvy_job_shards() */
    const char *device;        /* NULL: that of the context */
    const cvy_tree *libraries; /* a list of absolute paths; NULL: none */
    int is_file;               /* the job was read from the file `file` */
    int libraries_loaded;      /* 1: the context has them. A job that comes with weights does not load them */
    const cvy_tree *update_tree;
    struct cvy_job_update update;
    struct cvy_job_data data;
    struct cvy_job_train train;
    struct cvy_job_checkpoint checkpoint;
    struct cvy_job_parallel parallel;
    struct cvy_job_watchdog watchdog;
    struct cvy_job_log log;
} cvy_job;

/**
 * cvy_job_parse_file - reads a job file, applies overrides, and checks the job
 * @path: the YAML file
 * @sets: @nsets texts such as "train.batch=64", applied in order; the value is YAML
 * @out: the job; free it with cvy_job_destroy()
 *
 * Errors: CVY_E_IO (the file), CVY_E_CONFIG with file, line, column and, for an unknown word, the nearest known one;
 * CVY_E_MEMORY.
 */
cvy_status cvy_job_parse_file(const char *path, const char *const *sets, int nsets, cvy_job **out);
/* Parses a job from text; messages use `name` in place of the file. */
cvy_status cvy_job_parse_text(const char *name, const char *text, const char *const *sets, int nsets, cvy_job **out);
/* Makes the job of a solver of Caffe: source->caffe, with its weights and state (job_caffe.c). */
cvy_status cvy_job_parse_caffe(const cvy_job_source *source, cvy_job **out);
void cvy_job_destroy(cvy_job **job);

/* Adds the differences between the file `path` and `job`, a text from cvy_job_print(), as in "train.epochs: 1 -> 32,
 * ..". If they are equal, it adds nothing. */
cvy_status cvy_job_changes(const char *path, const char *job, cvy_text *out);
/* Whether the resolved job in the file `path` has sgd without momentum: with 0, or without the key, which is how
 * versions before 0.2 wrote the 0 that was their default. */
int cvy_job_has_no_momentum(const char *path);
/* If the job has sgd and leaves its momentum open, sets it to 0, and *changed_out to 1. */
cvy_status cvy_job_leave_out_momentum(cvy_job *job, int *changed_out);
/* Prints the whole job with all defaults as YAML, which can be parsed back to the same job. The caller frees the text
 * with cvy_mem_free(). */
cvy_status cvy_job_print(const cvy_job *job, char **text_out);
/* Computes a hash of all that must be equal on all ranks: everything but the name and the log. */
cvy_status cvy_job_hash(const cvy_job *job, uint64_t *hash_out);
/* Computes the global batch for this number of ranks. Returns CVY_E_CONFIG if a rank would have no samples. */
cvy_status cvy_job_batch(const cvy_job *job, int nranks, int64_t *batch_out);
/* The number of shards of deterministic training; 0: training is not deterministic. */
int64_t cvy_job_shards(const cvy_job *job);
/* The lengths of the axes of the grid of ranks, by cvy_axis; that of data is not set. */
void cvy_job_grid(const cvy_job *job, int64_t *length_out);
/* The options of the job's program. plan_file: see cvy_program_opts; may be NULL. The texts are the job's. */
cvy_program_opts cvy_job_program_opts(const cvy_job *job, const char *plan_file);
/* Which kernels the job allows. */
cvy_kernels cvy_job_kernels(const cvy_job *job);
/* Returns `status` unchanged. In the error text, fields of options ("opts.reduce_wire") are replaced by keys of the job
 * file. */
cvy_status cvy_job_translate(cvy_status status);
/* Changes the job as if it had `update: sync`. */
void cvy_job_update_in_sync(cvy_job *job);
/* The factor on the base learning rate for a global batch, by train.lr_rule; 0: there is no rule. */
double cvy_job_lr_factor(const cvy_job *job, int64_t batch);

/* The value of a key as YAML, "null" if it has none; a string of its own. CVY_E_ARGUMENT names the nearest key. */
cvy_status cvy_job_value(const cvy_job *job, const char *key, char **text_out);

/* List all keys: as text for --help; as the page docs/reference/job-file.md. */
cvy_status cvy_job_help(char **text_out);
cvy_status cvy_job_manual(char **text_out);

#endif
