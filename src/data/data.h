/*
 * data.h: data as the step loop sees it: a data set with fields and a loader that has each step's share ready in time.
 *
 * reader (one format a file) -> decode -> augment -> batch rows, in background threads. A sample is known by its number
 * in the data set; its place in an epoch is a seeded permutation that is computed, not stored; what augmentation does
 * to it depends on (seed, epoch, number) only. So every rank count sees the same pixels in the same order.
 */
#ifndef CVY_DATA_H
#define CVY_DATA_H

#include "comm/comm.h"
#include "graph/graph.h"

#define CVY_FIELD_MAX 8
typedef struct cvy_field {
    char *name;
    cvy_dtype dtype;
    cvy_shape shape;
} cvy_field; /* one sample's; "x" f32 [C, H, W], "label" i32 scalar, "y", "weight" */

typedef struct cvy_dataset cvy_dataset;

typedef struct cvy_dataset_info {
    int64_t nsamples;
    int nfield;
    cvy_field field[CVY_FIELD_MAX]; /* field[0] is the input "x" */
    int64_t nclasses;               /* 0: no classes (regression) */
    const char *const *class_name;  /* nclasses names */
    const char *format;             /* reader's name */
    const char *path;
} cvy_dataset_info;

/* source: a path (format found by looking), a map {path: .., format: .., range: .., limit: .., ...reader options}, a
 * list of these, or a map {sources: list, classes: same or union, range: .., limit: ..}; augment: the job's
 * data.augment list for training sets, with random == 0 only its deterministic part (scale, mean, std, resize, centre
 * crop). */
cvy_status cvy_dataset_open(const cvy_tree *source, const cvy_tree *augment, int random, uint64_t seed,
                            cvy_dataset **out);
const cvy_dataset_info *cvy_dataset_describe(const cvy_dataset *d);
/* The same samples with another augmentation, opened once. d is a set that was opened, no part or view; it stays open
 * and is borrowed. */
cvy_status cvy_dataset_view(cvy_dataset *d, const cvy_tree *augment, int random, uint64_t seed, cvy_dataset **out);
/* A seeded, stratified part: share 0.1 gives the tenth (part 1) or the rest (part 0). d stays open and is borrowed. */
cvy_status cvy_dataset_split(cvy_dataset *d, double share, uint64_t seed, int part, cvy_dataset **out);
/* A hash of what the data set is (format, count, fields, index): ranks compare it. */
uint64_t cvy_dataset_hash(const cvy_dataset *d);
/* One sample, decoded and augmented as for (epoch, number), into one buffer a field. Thread-safe. */
cvy_status cvy_dataset_read(cvy_dataset *d, int64_t number, uint64_t epoch, void *const *field_out);
void cvy_dataset_destroy(cvy_dataset **d);

/* ---- samples kept in memory (data_cache.c) ---- */
typedef struct cvy_cache_room cvy_cache_room; /* what a rank's data sets may hold together */
typedef struct cvy_cache_state {
    int64_t limit, bytes, samples;
    int full; /* something did not fit */
} cvy_cache_state;
cvy_status cvy_cache_room_create(int64_t limit_bytes, cvy_cache_room **out);
cvy_cache_state cvy_cache_room_state(cvy_cache_room *room);
void cvy_cache_room_destroy(cvy_cache_room **room); /* after the data sets */
/* Keeps what d reads from now on, as stored or decoded. Before views and parts of d are made. */
cvy_status cvy_dataset_cache(cvy_dataset *d, cvy_cache_room *room, int decoded);

/* ---- the order of an epoch (data_order.h) ---- */
typedef enum cvy_shuffle { /* the values stand in checkpoints */
                           CVY_SHUFFLE_NONE = 0,
                           CVY_SHUFFLE_ALL = 1,
                           CVY_SHUFFLE_WINDOW = 2
} cvy_shuffle;
typedef struct cvy_order_opts {
    cvy_shuffle shuffle;
    int balance;    /* classes are equally frequent: an epoch is as long as before, samples repeat or are left out */
    int64_t window; /* samples of a block of a window shuffle, in whole blocks of the format; 0: the format's, or 256 */
    uint64_t seed;
} cvy_order_opts;

/* What this rank needs of one step: up to CVY_SHARE_MAX runs of places in one epoch's order (one run a micro-batch). */
typedef struct cvy_share {
    int64_t epoch, first_place, n;
    int64_t batch_first,
        batch_n; /* places of the micro-batch that the run is a part of; batch_n 0: of the run itself */
} cvy_share;
/* Pure function of step: fills shares, *nshare_out of them (at most max); CVY_END after the last step. Called from any
 * thread. */
typedef cvy_status (*cvy_share_fn)(void *user, int64_t step, cvy_share *shares, int max, int *nshare_out);
#define CVY_SHARE_MAX 4096

typedef struct cvy_loader_opts {
    cvy_shuffle shuffle; /* these four: as in cvy_order_opts */
    int balance;
    int64_t window;
    uint64_t seed;
    int threads;  /* background threads; 0: the work runs inside cvy_loader_get */
    int depth;    /* ready steps kept ahead, at least 1 */
    int skip_bad; /* the row becomes zeros with weight 0 and is counted; else the step fails */
    int64_t first_step;
    cvy_share_fn share;
    void *share_user;
} cvy_loader_opts;

typedef struct cvy_loader cvy_loader;

typedef struct cvy_rows { /* a step's rows on this rank, all micro-batches one after the other */
    int64_t n;
    void *field[CVY_FIELD_MAX]; /* [n, shape...], in the data set's order of fields; valid until released */
    int64_t *id;                /* [n] sample numbers */
    double *weight; /* [n]: 1, or 0 for a skipped bad sample (the data set's own "weight" field is separate) */
    int64_t nbad;
} cvy_rows;

cvy_status cvy_loader_create(cvy_dataset *d, const cvy_loader_opts *opts, cvy_loader **out);
/* Rows of `step` (asked for in order). Blocks until they are ready; *wait_s_out gets the seconds it waited. CVY_END
 * after the last. */
cvy_status cvy_loader_get(cvy_loader *l, int64_t step, const cvy_rows **rows_out, double *wait_s_out);
/* How full the ring is: steps that are ready and were not asked for yet. */
int cvy_loader_ready(cvy_loader *l);
void cvy_loader_release(cvy_loader *l, const cvy_rows *rows);
int64_t cvy_loader_nbad(const cvy_loader *l);
/* The message of the latest sample that was skipped ("" if none), for the log. */
void cvy_loader_bad_text(cvy_loader *l, char *text, size_t room);
void cvy_loader_destroy(cvy_loader **l); /* joins the threads */

#endif
