/*
 * metrics iou and dice: how well the regions of each class overlap, for segmentation. They run after each forward pass
 * of a validation or test pass. Positions are counted over the whole data set, so a sample with a small object counts
 * little, and the result does not depend on how samples are cut into batches. A position with a NaN output is predicted
 * as no class.
 *
 *     iou    overlap / (predicted + true - overlap), of Jaccard
 *     dice   2 overlap / (predicted + true), of Dice; the F1 score of the positions
 *
 * predicted, true and overlap are the weights of the positions of a class, and of those that are rightly predicted. The
 * result is the mean over classes that occur or are predicted, without those of `leave_out`, such as the background.
 * With `per_sample` it is the mean over samples of such a mean, in which a class that neither occurs nor is predicted
 * in the sample counts as 1: the score of DeepCAM in MLPerf HPC. Detail: "iou_by_class" or "dice_by_class", null for a
 * class that neither occurs nor is predicted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "base/text/base_json.h"
#include "metric/metric_labels.h"

struct overlap {
    cvy_metric_labels labels; /* first */
    cvy_ints leave_out;
    int per_sample;
};

static const cvy_option overlap_opts[] = {
    CVY_IGNORE_LABEL_ROW,
    {"leave_out", CVY_TYPE_INTS, CVY_FIELD(overlap, leave_out), "", "0..", "",
     "classes that are not in the mean; their positions still count for the others"},
    {"per_sample", CVY_TYPE_BOOL, CVY_FIELD(overlap, per_sample), "false", "", "",
     "take the mean of each sample, in which a class that neither occurs nor is predicted counts as 1, and then the "
     "mean over samples"},
    {0},
};

/* These follow for each class: */
enum { OVERLAP, PREDICTED, TRUE_ONES, NEACH };
/* Of per_sample they follow once more, for the sample that is looked at, and then these: */
enum { SAMPLE_SCORES, SAMPLES, NSAMPLE };

static int64_t overlap_nsums(const void *options, const cvy_shape *output)
{
    const struct overlap *o = options;
    const int64_t classes = NEACH * cvy_metric_classes(output);
    return o->per_sample ? 2 * classes + NSAMPLE : classes;
}

static cvy_status overlap_check(const void *options, const cvy_shape *output)
{
    const struct overlap *o = options;
    const int64_t K = cvy_metric_classes(output);
    int64_t left = K;
    for (int i = 0; i < o->leave_out.count; i++) {
        CVY_CHECK(o->leave_out.at[i] < K, CVY_E_CONFIG, "leave_out: class %lld, expected 0 .. %lld",
                  (long long)o->leave_out.at[i], (long long)(K - 1));
        int again = 0;
        for (int k = 0; k < i; k++)
            again |= o->leave_out.at[k] == o->leave_out.at[i];
        left -= !again;
    }
    CVY_CHECK(left > 0, CVY_E_CONFIG, "leave_out names all %lld classes", (long long)K);
    return CVY_OK;
}

/* Adds the positions of sample i. */
static void add_sample(const struct overlap *o, const cvy_metric_rows *rows, int64_t i, double *sums)
{
    const int64_t P = cvy_rows_positions(rows);
    for (int64_t p = 0; p < P; p++) {
        const int64_t label = cvy_rows_label(&o->labels, rows, i, p), guess = cvy_rows_argmax(rows, i, p);
        const double weight = cvy_rows_weight(rows, i, p);
        if (label < 0)
            continue;
        sums[NEACH * label + TRUE_ONES] += weight;
        sums[NEACH * label + OVERLAP] += guess == label ? weight : 0;
        if (guess >= 0)
            sums[NEACH * guess + PREDICTED] += weight;
    }
}

/* NaN for a class that neither occurs nor is predicted, or whose negative weights prevail. */
static double score(const double *sums, int64_t k, int is_dice)
{
    const double *s = sums + NEACH * k, both = s[PREDICTED] + s[TRUE_ONES];
    if (!(both > 0 && both > s[OVERLAP]))
        return NAN;
    return is_dice ? 2 * s[OVERLAP] / both : s[OVERLAP] / (both - s[OVERLAP]);
}

static int is_left_out(const struct overlap *o, int64_t k)
{
    for (int i = 0; i < o->leave_out.count; i++)
        if (o->leave_out.at[i] == k)
            return 1;
    return 0;
}

/* absent: what a class without a score counts; NaN: it does not. */
static double mean_of_classes(const struct overlap *o, int64_t K, const double *sums, int is_dice, double absent)
{
    double sum = 0, count = 0;
    for (int64_t k = 0; k < K; k++) {
        const double own = score(sums, k, is_dice), value = isnan(own) ? absent : own;
        if (isnan(value) || is_left_out(o, k))
            continue;
        sum += value;
        count++;
    }
    return sum / count;
}

/* Adds the score of a sample whose sums are `own`, unless no position of it counts. */
static void add_score(const struct overlap *o, int64_t K, const double *own, int is_dice, double *samples)
{
    double counted = 0;
    for (int64_t k = 0; k < K; k++)
        counted += own[NEACH * k + TRUE_ONES];
    if (!(counted > 0))
        return;
    samples[SAMPLE_SCORES] += mean_of_classes(o, K, own, is_dice, 1);
    samples[SAMPLES]++;
}

static void add_rows(const struct overlap *o, const cvy_metric_rows *rows, int is_dice, double *sums)
{
    const int64_t K = CVY_MAX(cvy_rows_outputs(rows), 2);
    for (int64_t i = 0; i < rows->n && !o->per_sample; i++)
        add_sample(o, rows, i, sums);
    for (int64_t i = 0; i < rows->n && o->per_sample; i++) {
        double *own = sums + NEACH * K;
        add_sample(o, rows, i, own);
        add_score(o, K, own, is_dice, own + NEACH * K);
        for (int64_t k = 0; k < NEACH * K; k++) {
            sums[k] += own[k];
            own[k] = 0;
        }
    }
}

static void iou_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    add_rows(options, rows, 0, sums);
}

static void dice_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    add_rows(options, rows, 1, sums);
}

static double mean(const struct overlap *o, const cvy_shape *output, const double *sums, int is_dice)
{
    const int64_t K = cvy_metric_classes(output);
    const double *samples = sums + 2 * NEACH * K;
    return o->per_sample ? samples[SAMPLE_SCORES] / samples[SAMPLES] : mean_of_classes(o, K, sums, is_dice, NAN);
}

static void add_classes(const char *name, const cvy_shape *output, const double *sums, int is_dice, cvy_json *json)
{
    cvy_json_open(json, name, '[');
    for (int64_t k = 0; k < cvy_metric_classes(output); k++)
        cvy_json_real(json, NULL, score(sums, k, is_dice));
    cvy_json_close(json, ']');
}

static double iou_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                         int64_t nrows)
{
    (void)rows;
    (void)nrows;
    return mean(options, output, sums, 0);
}

static double dice_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                          int64_t nrows)
{
    (void)rows;
    (void)nrows;
    return mean(options, output, sums, 1);
}

static void overlap_why(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                        int64_t nrows, char *text, size_t room)
{
    (void)options;
    (void)output;
    (void)sums;
    (void)rows;
    (void)nrows;
    snprintf(text, room, "no class that is in the mean occurs or is predicted (leave_out)");
}

static void iou_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                       int64_t nrows, cvy_json *json)
{
    (void)options;
    (void)rows;
    (void)nrows;
    add_classes("iou_by_class", output, sums, 0, json);
}

static void dice_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                        int64_t nrows, cvy_json *json)
{
    (void)options;
    (void)rows;
    (void)nrows;
    add_classes("dice_by_class", output, sums, 1, json);
}

CVY_METRIC_DEFINE(iou) = {
    .name = "iou",
    .summary = "mean overlap of the classes' regions: intersection over union",
    .options = overlap_opts,
    .options_size = sizeof(struct overlap),
    .higher_is_better = 1,
    .wants_labels = 1,
    .check = overlap_check,
    .nsums = overlap_nsums,
    .add = iou_add,
    .finish = iou_finish,
    .why = overlap_why,
    .detail = iou_detail,
};

CVY_METRIC_DEFINE(dice) = {
    .name = "dice",
    .summary = "mean overlap of the classes' regions: Dice coefficient",
    .options = overlap_opts,
    .options_size = sizeof(struct overlap),
    .higher_is_better = 1,
    .wants_labels = 1,
    .check = overlap_check,
    .nsums = overlap_nsums,
    .add = dice_add,
    .finish = dice_finish,
    .why = overlap_why,
    .detail = dice_detail,
};
