/*
 * job.h: the job file: everything that a run is told, read once, checked, with all defaults filled in.
 *
 * Before step 0: YAML and --set -> cvy_job -> model, data, graph passes and step loop take what is theirs. Every key is
 * a row of an option table (job_table.c), which makes the parser, the messages, the resolved file, --help and
 * docs/reference/job-file.md. What belongs to an operator, reader or schedule is passed through as a tree; its owner
 * checks it by its own table.
 */
#ifndef CVY_JOB_H
#define CVY_JOB_H

#include <convoy/program.h>

#include "base/base_duration.h"
#include "base/base_option.h"
#include "base/base_text.h"
#include "kernel/kernel_library.h"

/* ---- sections; the fields without comment are explained by their rows ---- */

enum { CVY_TAIL_KEEP, CVY_TAIL_DROP };
enum { CVY_BALANCE_NONE, CVY_BALANCE_CLASS };
enum { CVY_CACHE_NONE, CVY_CACHE_MEMORY, CVY_CACHE_DECODED };
enum { CVY_BAD_SAMPLE_FAIL, CVY_BAD_SAMPLE_SKIP };
struct cvy_job_data {
    const cvy_tree *train, *val, *test, *augment, *normalize;
    int64_t normalize_samples;
    int normalize_auto;    /* the numbers are still to be found */
    const cvy_tree *steps; /* augment, with the normalisation behind it */
    const char *shuffle_text, *threads_text;
    int shuffle; /* a cvy_shuffle, by shuffle_text */
    int64_t window;
    int balance, tail, on_bad_sample;
    int64_t threads; /* -1: auto */
    int64_t prefetch, cache_limit;
    int cache, stage_keep;
    const char *stage; /* NULL: read where the files are */
    double val_share;  /* val is this part of train; 0: val is a source of its own, or NULL */
};

typedef struct cvy_job_loss {
    const char *name;            /* the operator */
    const char *output, *target; /* NULL: the model's main output, the data's target */
    double weight;
    const cvy_tree *options; /* what is left for the operator, or NULL */
} cvy_job_loss;

typedef struct cvy_job_metric {
    const char *name;
    const cvy_tree *options; /* or NULL */
} cvy_job_metric;

typedef struct cvy_job_group { /* of weights, by the pattern of their names; the first match counts */
    const char *match;
    double lr_mult, decay_mult;
    int frozen;
} cvy_job_group;

enum { CVY_STOP_AUTO, CVY_STOP_MIN, CVY_STOP_MAX };
struct cvy_job_stop {
    const char *metric;
    int64_t patience; /* epochs; 0: never stop early */
    int mode;
};

enum { CVY_TRAIN_F32, CVY_TRAIN_F64, CVY_TRAIN_BF16 };
enum { CVY_LR_NONE, CVY_LR_LINEAR, CVY_LR_SQRT };
enum { CVY_DECAY_WEIGHTS, CVY_DECAY_ALL };
struct cvy_job_train {
    const char *preset;
    int64_t batch, batch_per_rank; /* one of them is 0; cvy_job_batch() knows */
    double epochs;                 /* 0 where steps are given */
    int64_t steps;                 /* 0 where epochs are given */
    int64_t seed, accumulate;
    int dtype_word, precise;
    const cvy_tree *optimizer_tree, *schedule, *loss_tree, *groups_tree, *metrics_tree, *stop_tree;
    int lr_rule;
    int64_t base_batch; /* 0 without an lr_rule */
    double clip_norm, clip_value;
    const char *init;
    /* made from the trees: */
    cvy_dtype dtype;
    const char *optimizer; /* the operator */
    double lr;             /* base rate, which the schedule multiplies */
    int decay_on;
    const cvy_tree *optimizer_options; /* without name and lr, or NULL */
    cvy_job_loss *loss;                /* none: what suits the data, unless the model has its own */
    int nloss;
    cvy_job_group *group;
    int ngroup;
    cvy_job_metric *metric; /* none: what suits the data */
    int nmetric;
    struct cvy_job_stop stop;
};

struct cvy_job_checkpoint {
    const char *every_text, *best;
    int64_t keep;
    int background;
    cvy_duration every;
};

enum { CVY_NORM_GROUP_SAMPLES, CVY_NORM_GROUP_BATCH, CVY_NORM_GROUP_RANK, CVY_NORM_GROUP_SHARD };
struct cvy_job_batch_norm {
    const char *group_text;
    int group_by;
    int64_t group; /* samples, where group_by is SAMPLES */
};

struct cvy_job_plan {
    int64_t memory_limit; /* bytes a rank, 0: none */
    const cvy_tree *passes_off_tree;
    const char *kernels_text;
    cvy_kernels kernels;
    int planning;
    double clock_scale, clock_noise;
    const char *wisdom;
    int passes_all_off;
    const char **pass_off;
    int npass_off;
};

struct cvy_job_comm { /* bucket_bytes 0: auto */
    const char *bucket_text;
    int64_t bucket_bytes;
    const char *overlap_text;
    int overlap, forward; /* with backward, and with the next forward too */
    int blocking, wire, node_memory;
    const char *algorithm, *progress;
};
struct cvy_job_update {
    const struct cvy_update_def *def; /* the mode */
    void *options;                    /* of def->options_size bytes, in the job's pool; NULL: it has none */
};

struct cvy_job_parallel {
    int strategy;
};
struct cvy_job_watchdog {
    const char *timeout_text;
    double timeout_s;
    int64_t replicas;
}; /* 0: off */
struct cvy_job_log {
    int64_t every;
    const char *trace;
};

typedef struct cvy_job {
    cvy_pool *pool;
    const char *file;      /* as given */
    const char *renamed;   /* a line for each word that has another name now; NULL: there is none */
    const cvy_tree *given; /* the file with its overrides, before defaults: for the places in messages */
    const cvy_tree *model;
    const char *name; /* the file's, if not given: "cifar10" of "examples/cifar10.yaml" */
    int deterministic;
    int64_t deterministic_shards; /* cvy_job_shards() knows whether they count */
    const cvy_tree *update_tree;
    struct cvy_job_update update;
    struct cvy_job_data data;
    struct cvy_job_train train;
    struct cvy_job_checkpoint checkpoint;
    struct cvy_job_batch_norm batch_norm;
    struct cvy_job_plan plan;
    struct cvy_job_comm comm;
    struct cvy_job_parallel parallel;
    struct cvy_job_watchdog watchdog;
    struct cvy_job_log log;
} cvy_job;

/**
 * cvy_job_parse_file - read, override, check
 * @path: YAML
 * @sets: "train.batch=64": nsets of them, applied in order; the value is YAML
 * @out: the job; end it with cvy_job_destroy
 *
 * Errors: CVY_E_IO (the file), CVY_E_CONFIG with file, line, column and, for a word that is not known, the nearest
 * known one; CVY_E_MEMORY.
 */
cvy_status cvy_job_parse_file(const char *path, const char *const *sets, int nsets, cvy_job **out);
/* The same from text; name stands for the file in messages. */
cvy_status cvy_job_parse_text(const char *name, const char *text, const char *const *sets, int nsets, cvy_job **out);
void cvy_job_destroy(cvy_job **job);

/* Adds in what `job`, as cvy_job_print gives it, differs from the file `path` ("train.epochs: 1 -> 32, .."); nothing
 * where they are equal. */
cvy_status cvy_job_changes(const char *path, const char *job, cvy_text *out);
/* The whole job with all defaults as YAML, which parses back to the same job; a string of its own. */
cvy_status cvy_job_print(const cvy_job *job, char **text_out);
/* Hash of what must agree over ranks: all but the name and the log. */
cvy_status cvy_job_hash(const cvy_job *job, uint64_t *hash_out);
/* The global batch for so many ranks; CVY_E_CONFIG if a rank would have none of it. */
cvy_status cvy_job_batch(const cvy_job *job, int nranks, int64_t *batch_out);
/* Shards of deterministic training; 0: it is not. */
int64_t cvy_job_shards(const cvy_job *job);
/* Passes a fault on; fields of cvy_program_opts in its text ("opts.reduce_wire") become keys of the job file. */
cvy_status cvy_job_translate(cvy_status status);
/* What the job says of updates, as options of a program. */
cvy_update cvy_job_update_opts(const cvy_job *job);
/* As if the job said update: sync. */
void cvy_job_update_in_sync(cvy_job *job);
/* What a global batch makes of the base rate by train.lr_rule; 0 without one. */
double cvy_job_lr_factor(const cvy_job *job, int64_t batch);

/* All keys: as text for --help, as the page docs/reference/job-file.md. */
cvy_status cvy_job_help(char **text_out);
cvy_status cvy_job_manual(char **text_out);

#endif
