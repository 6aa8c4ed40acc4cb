/*
 * data.h: data as the step loop sees it: a data set with fields, and a loader that prepares each step's rows in
 * advance.
 *
 * Background threads run this pipeline: reader (one file for each format) -> decode -> augment -> rows of a batch. A
 * sample is identified by its number in the data set. Its position in an epoch comes from a seeded permutation that is
 * computed, not stored. Its augmentation depends on (seed, epoch, number) only. So training sees the same pixels in the
 * same order with any number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_H
#define CVY_DATA_H

#include "base/text/base_samples.h"
#include "comm/comm.h"
#include "graph/graph.h"

/* The field with the number that a sample counts, and the input of a network that takes it; without it samples count
 * 1. */
#define CVY_SAMPLE_WEIGHT "weight"

#define CVY_FIELD_MAX 8
typedef struct cvy_field {
    char *name;
    cvy_dtype dtype;
    cvy_shape shape;
} cvy_field; /* one field of a sample: "x" f32 [C, H, W], "label" i32 scalar, "y", "weight" */

/* A target is stored in units of its own; training sees (y - mean) / std. The lists have a number for each channel of a
 * map, or for each number of a vector. If the target is x, and operations on it bend its values, `step` lists what is
 * undone instead. */
typedef struct cvy_scaling {
    int64_t n; /* 0: the target is not scaled */
    const double *mean, *std;
    int nstep;
    const struct cvy_value_step *step;
} cvy_scaling;
enum { CVY_SCALED_MAX = 65536 }; /* channels of x, or numbers of y, that may have a scaling of their own */
/* Gives rows of scaled targets, or of outputs that are compared with them, their own units back. y: [rows, row_elems],
 * of which a row is [n, ...]; f32 or f64. */
void cvy_scaling_undo(const cvy_scaling *s, int64_t rows, int64_t row_elems, cvy_dtype dtype, void *y);

/* The part of a field that is wanted: a range of each of its dimensions. Zero: the whole field. */
typedef struct cvy_field_part {
    int is_part;
    cvy_shape shape; /* of the part */
    cvy_tile tile;   /* the shape of the whole field, and where the part begins */
} cvy_field_part;

typedef struct cvy_dataset cvy_dataset;

typedef struct cvy_dataset_info {
    int64_t nsamples;
    int nfield;
    cvy_field field[CVY_FIELD_MAX]; /* field[0] is the input "x" */
    int64_t nclasses;               /* 0: no classes (regression) */
    const char *const *class_name;  /* nclasses names */
    const char *format;             /* name of the reader */
    const char *path;
    const char *idle_step;   /* a sentence about a random step of data.augment that changes nothing; "": none */
    const char *left_note;   /* sentences on vectors that data.augment does not turn, a line each; NULL: none */
    const char *note;        /* sentences for the log about how the source is read, a line each; NULL: none */
    int64_t target_channels; /* channels of a map "y", or numbers of a vector; 0: there is no "y" */
    cvy_scaling scaling;     /* of the target */
    int target_is_input;     /* data.roles says {x: target}: the network imitates its input */
    int may_be_left; /* augmentation moves pixels of x, and nobody has said whether the numbers of "y" go with them */
} cvy_dataset_info;

/* source: a path (the format is detected), a map {path: .., format: .., range: .., limit: .., ...reader options}, a
 * list of these, or a map {sources: list, classes: same or union, range: .., limit: ..}. augment: the job's
 * data.augment list. random: 1 for training sets; 0 keeps only the deterministic part (scale, mean, std, resize, crops
 * at the centre). */
cvy_status cvy_dataset_open(const cvy_tree *source, const cvy_tree *augment, int random, uint64_t seed,
                            cvy_dataset **out);
/* What a training has fixed: further data must have the same form. */
typedef struct cvy_data_form {
    const struct cvy_reader_info *stored; /* x, y and weight before augmentation; NULL: not known */
    const cvy_dataset_info *info;         /* fields and classes; NULL: not known */
    int x_only;                           /* 1: x alone must agree, for a prediction */
} cvy_data_form;
cvy_data_form cvy_dataset_form(const cvy_dataset *d);
/* Opens data for a network that was trained on data of this form (NULL: it is not known). Pictures are decoded to the
 * channels of the training, and classes get the numbers that they have there. What then differs is an error, with both
 * values. with_target 0: without "y", for a prediction. */
cvy_status cvy_dataset_open_like(const cvy_tree *source, const cvy_tree *augment, uint64_t seed, int with_target,
                                 const cvy_data_form *like, cvy_dataset **out);
const cvy_dataset_info *cvy_dataset_describe(const cvy_dataset *d);
/* The field that a loss compares with the output if the job names none: the first after x that is not "weight"; NULL:
 * there is none. */
const cvy_field *cvy_dataset_target(const cvy_dataset_info *info);
/* A data set with the same samples and another augmentation; the files are opened once. d comes from cvy_dataset_open()
 * and is not a part or a view; it stays open and is borrowed. */
cvy_status cvy_dataset_view(cvy_dataset *d, const cvy_tree *augment, int random, uint64_t seed, cvy_dataset **out);
/* A seeded, stratified part of d: with share 0.1, part 1 is a tenth of the samples and part 0 is the rest. d stays open
 * and is borrowed. */
cvy_status cvy_dataset_split(cvy_dataset *d, double share, uint64_t seed, int part, cvy_dataset **out);
/* A hash that identifies the data set (format, count, fields, index). Ranks compare it. */
uint64_t cvy_dataset_hash(const cvy_dataset *d);
/* Reads one sample, decoded and augmented for (epoch, number), into one buffer for each field. Thread-safe. */
cvy_status cvy_dataset_read(cvy_dataset *d, int64_t number, uint64_t epoch, void *const *field_out);
/* The same for parts of the fields, [nfield]; NULL: all are whole. No more is read than is needed, if the format can
 * and the augmentation looks at each element alone; else the sample is read whole, and the parts are cut out of it.
 * checks_all 1: it is read whole in any case, so that a fault in another part is found too. */
cvy_status cvy_dataset_read_parts(cvy_dataset *d, int64_t number, uint64_t epoch, const cvy_field_part *part,
                                  int checks_all, void *const *field_out);
void cvy_dataset_destroy(cvy_dataset **d);

/* ---- samples kept in memory (data_cache.c) ---- */
typedef struct cvy_cache_budget cvy_cache_budget; /* memory limit that the data sets of a rank share */
typedef struct cvy_cache_state {
    int64_t limit, bytes, samples;
    int full; /* something did not fit */
} cvy_cache_state;
cvy_status cvy_cache_budget_create(int64_t limit_bytes, cvy_cache_budget **out);
cvy_cache_state cvy_cache_budget_state(cvy_cache_budget *budget);
void cvy_cache_budget_destroy(cvy_cache_budget **budget); /* call it after the data sets are destroyed */
/* From now on d keeps in memory what it reads, as stored or decoded. Call it before views and parts of d are made. */
cvy_status cvy_dataset_cache(cvy_dataset *d, cvy_cache_budget *budget, int decoded);

/* ---- the order of an epoch (data_order.h) ---- */
typedef struct cvy_order_opts {
    cvy_shuffle shuffle;
    int balance; /* 1: all classes are equally frequent. The length of an epoch stays; samples repeat or are left out */
    int64_t window; /* samples of a block of a window shuffle, rounded up to whole blocks of the format; 0: the format's
                       blocks, or 256 */
    uint64_t seed;
} cvy_order_opts;

/* A run of positions in one epoch's order that this rank needs for a step. A step has one run for each micro-batch, at
 * most CVY_SHARE_MAX. */
typedef struct cvy_share {
    int64_t epoch, first_position, n;
    int64_t batch_first,
        batch_n; /* positions of the micro-batch that contains the run; batch_n 0: the run is the whole micro-batch */
} cvy_share;
/* A pure function of step. Fills at most max shares and sets *nshare_out to their number; returns CVY_END after the
 * last step. Any thread may call it. */
typedef cvy_status (*cvy_share_fn)(void *user, int64_t step, cvy_share *shares, int max, int *nshare_out);
#define CVY_SHARE_MAX 4096

/* What a rank uses of its rows; smaller values are more. In a pipeline most stages need less than all fields. */
typedef enum cvy_row_needs {
    CVY_NEEDS_FIELDS,  /* all fields */
    CVY_NEEDS_LABELS,  /* the field "label" only: other fields are not decoded */
    CVY_NEEDS_NUMBERS, /* no field: nothing is read */
} cvy_row_needs;

typedef struct cvy_loader_opts {
    cvy_shuffle shuffle; /* this and the next three: see cvy_order_opts */
    int balance;
    int64_t window;
    uint64_t seed;
    int threads; /* background threads; 0: the work runs inside cvy_loader_get */
    int depth;   /* steps prepared ahead, at least 1 */
    int held;    /* steps whose rows the caller holds at a time; 0: 1 */
    cvy_row_needs needs;
    int skip_bad; /* 1: the row of a bad sample becomes zeros with weight 0 and is counted; 0: the step fails */
    int64_t first_step;
    cvy_share_fn share;
    void *share_user;
    cvy_field_part part[CVY_FIELD_MAX]; /* rows have these parts of the fields. With skip_bad samples are read whole,
                                           so that all ranks find the same bad ones */
} cvy_loader_opts;

typedef struct cvy_loader cvy_loader;

typedef struct cvy_rows { /* a step's rows on this rank: its micro-batches, one after the other */
    int64_t n;
    void *field[CVY_FIELD_MAX]; /* [n, shape...] of the field or its part, in the data set's order of fields, NULL if
                                   not needed; valid until released */
    int64_t *id;                /* [n] sample numbers */
    int64_t *draw;  /* [n] keys of the random numbers of operators: sample numbers, and other numbers for further draws
                       of a sample in an epoch */
    double *weight; /* [n]: 1, or 0 for a skipped bad sample (the data set's own "weight" field is separate) */
    int64_t nbad;
} cvy_rows;

cvy_status cvy_loader_create(cvy_dataset *d, const cvy_loader_opts *opts, cvy_loader **out);
/* Gets the rows of `step`; steps must be asked for in order. Blocks until they are ready; *wait_s_out (may be NULL)
 * gets the seconds it waited. Returns CVY_END after the last step. */
cvy_status cvy_loader_get(cvy_loader *l, int64_t step, const cvy_rows **rows_out, double *wait_s_out);
/* Whether cvy_loader_get() would return the rows of the next step, or its fault, without waiting. Without background
 * threads it never would. */
int cvy_loader_has_next(cvy_loader *l);
/* How full the ring is: the number of steps that are ready and not yet asked for. */
int cvy_loader_ready(cvy_loader *l);
void cvy_loader_release(cvy_loader *l, const cvy_rows *rows);
int64_t cvy_loader_nbad(const cvy_loader *l);
/* The message of the latest skipped sample ("" if there is none), for the log. */
void cvy_loader_bad_text(cvy_loader *l, char *text, size_t room);
void cvy_loader_destroy(cvy_loader **l); /* joins the threads */

#endif
