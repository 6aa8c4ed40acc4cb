/*
 * collider.h: the classic analysis of collider events beside a network that convoy trained on them.
 *
 *   collider_events.c     events of a data set, and the network's scores of them
 *   collider_features.c   jets and ten numbers of an event
 *   collider_cuts.c       a selection by cuts
 *   collider_linear.c     logistic regression
 *   collider_roc.c        ROC curves, and errors of two classifiers on the same events
 *   collider_check.c      errors
 *   collider_output.c     the table on the terminal, and analysis.json for the report
 *   collider.c            the command line
 *
 * The physics is described in docs/reference/collider.md. A function that cannot go on prints why and ends the program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef COLLIDER_H
#define COLLIDER_H

#include <convoy/convoy.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Channels of an event's image [3, cells in eta, cells in phi]: energies in GeV, and numbers of tracks. */
enum { CHANNEL_EM, CHANNEL_HAD, CHANNEL_TRACKS, CHANNELS };
#define ETA_MAX 3.2f /* range of pseudorapidity of the image */

enum {
    FEATURE_HT,
    FEATURE_NJET,
    FEATURE_LEAD,
    FEATURE_SECOND,
    FEATURE_FOURTH,
    FEATURE_MET,
    FEATURE_EM_SHARE,
    FEATURE_NTRACK,
    FEATURE_DETA,
    FEATURE_SPHERICITY,
    FEATURES
};
extern const char *const feature_name[FEATURES];

/* ---- faults: each ends the program with code 1 ---- */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Passes CVY_OK and CVY_END on. */
cvy_status check(cvy_status status);
/* Zeroed memory for `count` elements; the caller frees it. */
void *allocate(int64_t count, size_t size);

/* ---- events ---- */
typedef struct events {
    int64_t n;
    float *feature; /* [n, FEATURES] */
    int32_t *label; /* [n]: 1 is signal */
} events;

/* Computes the features of image [3, neta, nphi]. work: neta * nphi floats. */
void features_of(const float *image, int64_t neta, int64_t nphi, float *work, float *feature);
/* Reads all events of a data source as they are stored, without augmentation. */
events events_read(cvy_context *context, const char *source);
void events_free(events *e);
/* Writes a head line "label,ht,njet,.." and a line for each event. */
void events_write(const events *e, const char *path);
/* The network's log odds of the signal for each of the n events of a source; the caller frees them. `run` is a run
 * folder, in which a file is written and removed again. */
float *network_scores(cvy_context *context, const char *run, const char *source, int64_t n);

/* ---- ROC curves ---- */
typedef struct curve { /* from (0, 0) to (1, 1); the false-positive rate rises */
    int64_t n;
    double *fpr, *tpr;
} curve;
void curve_free(curve *c);
/* The true-positive rate at a false-positive rate, linear between points. */
double curve_at(const curve *c, double fpr);

typedef struct quality {
    double area;       /* under the ROC curve */
    double efficiency; /* the true-positive rate at the false-positive rate asked for */
} quality;

typedef struct totals {
    double signal, background;
} totals;
/* weight NULL: every event counts once. */
totals totals_of(const int32_t *label, const uint16_t *weight, int64_t n);

/* A classifier on the test events. */
typedef struct classifier {
    const char *name, *text; /* text: what it is, for the report */
    /* Its quality if event i counts weight[i] times (NULL: once). out: its curve, or NULL. */
    quality (*rate)(const struct classifier *, const uint16_t *weight, double fpr, curve *out);
    struct ranking *ranking; /* of a classifier by scores */
    struct cuts *cuts;       /* of the selection by cuts */
} classifier;
void classifier_free(classifier *c);

/* A classifier by scores: a higher score means signal. */
classifier classifier_by_score(const char *name, const char *text, const float *score, const int32_t *label, int64_t n);

typedef struct measure {
    double value, error; /* error: one standard error */
} measure;
typedef struct comparison { /* of two classifiers on the same events */
    measure area[2], area_gain;
    measure efficiency[2], efficiency_gain; /* gain: the first less the second, with the error of the pair */
} comparison;

/* Draws the events `replicas` times with replacement, each time the same ones for both classifiers. So what is hard for
 * both cancels in the error of the gain. Source: Efron and Tibshirani 1993, "An introduction to the bootstrap". */
comparison compare(const classifier *a, const classifier *b, const int32_t *label, int64_t n, int replicas,
                   uint64_t seed, double fpr);

/* ---- baselines: they are fitted to the training events and rated on the test events, which must outlive them ---- */
/* A selection HT >= a, jets >= b, leading jet <= c, scanned over a grid. The selections that no other beats on the
 * training events are kept. Their envelope on the test events is the curve. */
classifier cuts_fit(const events *train, const events *test);
/* A logistic regression on n features. */
classifier linear_fit(const char *name, const char *text, const events *train, const events *test, const int *feature,
                      int n);

/* ---- output ---- */
enum { BASELINES = 3 };
typedef struct analysis {
    const events *test;
    double fpr; /* at which efficiencies are given */
    classifier network, baseline[BASELINES];
    comparison against[BASELINES];
} analysis;

void print_table(const analysis *a);
/* Writes RUN/analysis.json, which the report page shows. checkpoint: the name of the one that gave the scores. */
void write_analysis(const analysis *a, const char *checkpoint, const char *run);

#endif
