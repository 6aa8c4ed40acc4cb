/*
 * data_collider_roc.h: ROC curves under weights, between data_collider_roc.c and the baselines.
 */
#ifndef CVY_DATA_COLLIDER_ROC_H
#define CVY_DATA_COLLIDER_ROC_H

#include "data/generated/data_collider.h"

struct roc_totals {
    double signal, background;
};
struct roc_result {
    double area, efficiency;
};

/* Events from the highest score on; last_of_tie[i]: the next one has another score. */
struct roc_order {
    int64_t n;
    int32_t *event;
    uint8_t *last_of_tie;
};

cvy_status roc_order(const float *score, int64_t n, struct roc_order *out);
void roc_order_free(struct roc_order *o);
/* weight NULL: every event once. */
struct roc_totals roc_totals(const int32_t *label, const uint16_t *weight, int64_t n);
struct roc_result roc_walk(const struct roc_order *o, const int32_t *label, const uint16_t *weight, double fpr,
                           cvy_curve *curve);
/* How often each event is drawn in a replica. */
void roc_resample(int64_t n, uint64_t seed, int replica, uint16_t *weight);

/* A classifier whose curve can be had for any weights. */
typedef struct roc_result (*roc_judge_fn)(const void *user, const uint16_t *weight, double fpr);
struct roc_scores {
    struct roc_order order;
    const int32_t *label;
};
struct roc_result roc_judge_scores(const void *user, const uint16_t *weight, double fpr);

cvy_status roc_compare(roc_judge_fn a, const void *user_a, roc_judge_fn b, const void *user_b, const int32_t *label,
                       int64_t n, int replicas, uint64_t seed, double fpr, cvy_comparison *out);

#endif
