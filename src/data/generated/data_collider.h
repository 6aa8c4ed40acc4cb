/*
 * data_collider.h: the generated collider events, shared by their reader, the classic features and the classic
 * baselines. The physics is stated in docs/guide/collider.md and in data_collider_event.c.
 */
#ifndef CVY_DATA_COLLIDER_H
#define CVY_DATA_COLLIDER_H

#include "data/data_reader.h"

/* Channels of an event's image [3, cells in eta, cells in phi]. */
enum { COLLIDER_EM, COLLIDER_HAD, COLLIDER_TRACKS, COLLIDER_CHANNELS };
#define COLLIDER_ETA_MAX 3.2f /* of the image; tracks reach 2.5 */

typedef struct cvy_collider { /* the options of the reader; the rows in data_collider.c say what each is */
    int64_t events, first, cells, seed;
    double signal;
    double ht_min, ht_max, slope;
    double emissions;
    double cascade, resonance, boost;
    double gluons, signal_gluons;
    double pileup, pileup_jets, pileup_tracks;
    double noise;
} cvy_collider;

extern const cvy_option cvy_collider_opts[];

/* 1: signal. A function of (seed, number) alone, as the event. */
int32_t cvy_collider_label(const cvy_collider *c, int64_t number);
/* Fills image [3, cells, cells]: transverse energies in GeV and track counts. */
void cvy_collider_event(const cvy_collider *c, int64_t number, float *image);

/* ---- what an analysis without a network looks at ---- */
enum {
    COLLIDER_HT,
    COLLIDER_NJET,
    COLLIDER_LEAD,
    COLLIDER_SECOND,
    COLLIDER_FOURTH,
    COLLIDER_MET,
    COLLIDER_EM_SHARE,
    COLLIDER_NTRACK,
    COLLIDER_DETA,
    COLLIDER_SPHERICITY,
    COLLIDER_FEATURES
};
extern const char *const cvy_collider_feature_name[COLLIDER_FEATURES];
/* From an image [3, eta, phi] of any size. work: eta * phi floats. */
void cvy_collider_features_of(const float *image, int64_t neta, int64_t nphi, float *work, float *features_out);

typedef struct cvy_collider_table { /* the features of a data set's events */
    int64_t n;
    float *feature; /* [n, COLLIDER_FEATURES] */
    int32_t *label; /* [n]: 1 signal */
} cvy_collider_table;
/* Whether d can be looked at in this way: two classes, images of three channels, made by the generator or packed from
 * it. */
int cvy_collider_is(const cvy_dataset *d);
/* Reads the first `limit` events (0: all) as stored, whatever the augmentation, with so many threads (0: in the
 * caller's). */
cvy_status cvy_collider_table_make(cvy_dataset *d, int64_t limit, int threads, cvy_collider_table *out);
void cvy_collider_table_free(cvy_collider_table *t);
/* As text: a head line "label,ht,njet,..", a line an event. scripts/peer_gbt.py reads it. */
cvy_status cvy_collider_table_write(const cvy_collider_table *t, const char *path);

/* ---- ROC curves and their errors ---- */
typedef struct cvy_curve { /* from (0, 0) to (1, 1), false positives rising */
    int64_t n;
    double *fpr, *tpr;
    double area;
} cvy_curve;
void cvy_curve_free(cvy_curve *c);
/* True positives at a false-positive rate, linear between points. */
double cvy_curve_at(const cvy_curve *c, double fpr);
/* Of scores, higher meaning signal (label 1); events of equal score are one point. */
cvy_status cvy_curve_of_scores(const float *score, const int32_t *label, int64_t n, cvy_curve *out);

/* ---- the classic baselines ---- */
enum { COLLIDER_CUTS, COLLIDER_LINEAR3, COLLIDER_LINEAR10, COLLIDER_BASELINES };

typedef struct cvy_collider_baseline {
    const char *name; /* "cuts", "linear", "linear-10" */
    const char *text; /* what it is, for the report */
    cvy_curve curve;  /* on the test events */
    float *score;     /* [ntest]; for the cuts NULL: their curve is an envelope over selections */
} cvy_collider_baseline;

typedef struct cvy_collider_baselines {
    cvy_collider_baseline at[COLLIDER_BASELINES];
    int64_t ntest;
    int32_t *label;        /* [ntest] */
    struct cvy_cuts *cuts; /* the chosen selections and the test events' places in the grid */
} cvy_collider_baselines;

/* Optimises on train, evaluates on test: selections HT >= a, jets >= b, leading jet <= c over a grid, of which those
 * are kept that no other beats on the training events; a logistic regression on the same three features, and one on all
 * ten. */
cvy_status cvy_collider_baselines_make(const cvy_collider_table *train, const cvy_collider_table *test,
                                       cvy_collider_baselines *out);
void cvy_collider_baselines_free(cvy_collider_baselines *b);

typedef struct cvy_measure {
    double value, se;
} cvy_measure;
typedef struct cvy_comparison { /* first and second on the same events, and first - second with the error of the pair */
    cvy_measure area[2], area_difference;
    cvy_measure efficiency[2], efficiency_difference; /* true positives at the false-positive rate asked for */
} cvy_comparison;

/* Standard errors by resampling the events, the same resample for both: so that what both find hard cancels. */
cvy_status cvy_paired_bootstrap(const float *score_a, const float *score_b, const int32_t *label, int64_t n,
                                int replicas, uint64_t seed, double fpr, cvy_comparison *out);
/* The network's scores of the test events (in their order) against one of the baselines, the cuts' envelope included.
 */
cvy_status cvy_collider_compare(const cvy_collider_baselines *b, int baseline, const float *network_score, int replicas,
                                uint64_t seed, double fpr, cvy_comparison *out);

#endif
