/*
 * test_metric.c: every metric against scikit-learn, on all rows at once and in uneven parts, with weights, ties,
 * missing values, positions and negative weights.
 *
 * scikit-learn 1.9 computed the numbers (roc_auc_score, roc_curve with drop_intermediate False and linear
 * interpolation, r2_score, mean_squared_error, mean_absolute_error, accuracy_score, top_k_accuracy_score,
 * balanced_accuracy_score, confusion_matrix) from the formulas below. The numbers of nll, brier, ece and coverage come
 * from their definitions in numpy.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "metric/metric.h"
#include "test_util.h"

static cvy_span span(cvy_dtype dtype, void *data, int ndim, int64_t a, int64_t b, int64_t c)
{
    cvy_span s = {.dtype = dtype, .ndim = ndim, .dim = {a, b, c}, .elems = 1, .data = data};
    for (int d = 0; d < ndim; d++)
        s.elems *= s.dim[d];
    return s;
}

/* n rows: an output [K] and a target of `width` values for each. */
struct data {
    int64_t n, K, width;
    double *output;
    void *target;
    cvy_dtype target_dtype;
    const double *weight;
};
static cvy_shape map; /* of the outputs; no axes: they are a vector */

static char reason[CVY_METRIC_WHY]; /* why the latest value is not finite */

/* Adds the rows in parts of `part` rows. */
static cvy_status measure(const char *name, const char *options, const struct data *d, int64_t part, double *value_out,
                          cvy_json *detail)
{
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    cvy_metric *m = NULL;
    cvy_comm *comm = NULL;
    cvy_status status = CVY_OK;
    const size_t target_bytes = cvy_dtype_bytes(d->target_dtype);
    CVY_TRY_OUT(cvy_comm_create_self(&comm));
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_tree_parse_text(pool, "job.yaml", options, strlen(options), &tree));
    CVY_TRY_OUT(cvy_metric_create(name, tree, map.ndim ? &map : &(cvy_shape){1, {d->K}}, &m));
    for (int again = 0; again < 2; again++) { /* after a pass, a metric is ready for the next one */
        for (int64_t i = 0; i < d->n; i += part) {
            const int64_t n = CVY_MIN(part, d->n - i);
            const cvy_span output = span(CVY_DTYPE_F64, d->output + i * d->K, 2, n, d->K, 0);
            const cvy_span target =
                span(d->target_dtype, (char *)d->target + (size_t)(i * d->width) * target_bytes, 2, n, d->width, 0);
            const cvy_metric_rows rows = {
                .n = n, .output = &output, .target = &target, .weight = d->weight ? d->weight + i : NULL};
            CVY_TRY_OUT(cvy_metric_add(m, &rows));
        }
        CVY_TRY_OUT(cvy_metric_finish(m, comm, value_out, again ? NULL : detail));
        snprintf(reason, sizeof reason, "%s", cvy_metric_why(m));
    }
out:
    cvy_metric_destroy(&m);
    cvy_pool_destroy(&pool);
    if (comm)
        comm->ops->destroy(comm);
    return status;
}

static void expect(const char *name, const char *options, const struct data *d, double expected)
{
    static const int64_t parts[] = {1000, 7, 1};
    for (int i = 0; i < CVY_COUNT(parts); i++) {
        double value = 0;
        EXPECT_OK(measure(name, options, d, parts[i], &value, NULL));
        test_checks++;
        if (fabs(value - expected) <= 1e-12)
            continue;
        test_failures++;
        printf("%s %s is %.16g, expected %.16g\n", name, options, value, expected);
    }
}

/* ---- two classes: scores with many ties ---- */

static double score[60], score_pair[120], score_weight[60];
static int32_t score_label[60];

static void make_scores(void)
{
    for (int i = 0; i < 60; i++) {
        score[i] = nearbyint(3 * sin(1.7 * i));
        score_pair[2 * i] = 5 - score[i] / 2; /* the difference of the two is score - 5 */
        score_pair[2 * i + 1] = score[i] / 2;
        score_label[i] = sin(1.7 * i) + 1.5 * sin(5.3 * i * i) > 0;
        score_weight[i] = 0.5 + i * 7 % 5 / 4.0;
    }
}

static void ranking_with_ties(void)
{
    struct data one = {60, 1, 1, score, score_label, CVY_DTYPE_I32, NULL},
                two = {60, 2, 1, score_pair, score_label, CVY_DTYPE_I32, NULL};
    make_scores();
    expect("auc", "{}", &one, 0.6984953703703705);
    expect("auc", "{}", &two, 0.6984953703703705);
    expect("auc", "positive: 0", &two, 0.6984953703703705); /* classes and scores are both exchanged */
    one.weight = two.weight = score_weight;
    expect("auc", "{}", &one, 0.6805081669691471);
    expect("efficiency_at_fpr", "fpr: 0.05", &one, 0.3081896551724138);
    expect("efficiency_at_fpr", "fpr: 0.3", &two, 0.5661637931034482);
    expect("efficiency_at_fpr", "fpr: 1", &two, 1);
}

static void roc_points(void)
{
    const struct data d = {60, 1, 1, score, score_label, CVY_DTYPE_I32, score_weight};
    cvy_json json = {0};
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    double value = 0, fpr = 0, tpr = 0;
    make_scores();
    cvy_json_open(&json, NULL, '{');
    EXPECT_OK(measure("auc", "{}", &d, 1000, &value, &json));
    cvy_json_close(&json, '}');
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_tree_parse_text(pool, "json", json.text.data, json.text.bytes, &tree));
    const cvy_tree *roc = cvy_tree_get(tree, "roc");
    EXPECT_INT(cvy_tree_get(roc, "fpr")->count, 8);
    EXPECT_INT(cvy_tree_get(roc, "threshold")->count, 8);
    EXPECT_OK(cvy_tree_real(cvy_tree_get(roc, "fpr")->child[3], &fpr));
    EXPECT_OK(cvy_tree_real(cvy_tree_get(roc, "tpr")->child[3], &tpr));
    EXPECT_NEAR(fpr, 0.27368421, 1e-8);
    EXPECT_NEAR(tpr, 0.55862069, 1e-8);
    cvy_pool_destroy(&pool);
    cvy_text_free(&json.text);
}

/* Scores that softmax makes 1 in f32 still have their rank. A curve of five thousand points is thinned. */
static void saturated_scores_and_thinning(void)
{
    enum { N = 5000 };
    static double logits[2 * N];
    static int32_t label[N];
    const struct data d = {N, 2, 1, logits, label, CVY_DTYPE_I32, NULL};
    cvy_json json = {0};
    double value = 0;
    int points = 1;
    for (int i = 0; i < N; i++) {
        logits[2 * i] = 0;
        logits[2 * i + 1] = 40 + i * 0.01;
        label[i] = i >= N / 2;
    }
    cvy_json_open(&json, NULL, '{');
    EXPECT_OK(measure("auc", "{}", &d, 1000, &value, &json));
    cvy_json_close(&json, '}');
    EXPECT_NEAR(value, 1, 1e-12);
    const char *end = json.text.data ? strstr(json.text.data, "]") : NULL;
    for (const char *at = json.text.data; at && at < end; at++)
        points += *at == ',';
    EXPECT(points > 500 && points <= 1000);
    cvy_text_free(&json.text);
}

/* ---- classes ---- */

static double logits[300];
static int32_t label[50];

static void make_classes(void)
{
    for (int i = 0; i < 50; i++) {
        for (int k = 0; k < 6; k++)
            logits[6 * i + k] = sin(1.3 * i + 2.1 * k);
        label[i] = (i * i + i / 3) % 6;
    }
}

static void classes(void)
{
    const struct data d = {50, 6, 1, logits, label, CVY_DTYPE_I32, NULL};
    cvy_json json = {0};
    double value = 0;
    make_classes();
    expect("accuracy", "{}", &d, 0.18);
    expect("top_k", "k: 3", &d, 0.58);
    expect("top_k", "k: 1", &d, 0.18);
    expect("top_k", "k: 6", &d, 1);
    expect("balanced_accuracy", "{}", &d, 0.19419191919191917);
    cvy_json_open(&json, NULL, '{');
    EXPECT_OK(measure("balanced_accuracy", "{}", &d, 1000, &value, &json));
    cvy_json_close(&json, '}');
    EXPECT(json.text.data && strstr(json.text.data, "[3, 3, 2, 2, 1, 1]"));
    cvy_text_free(&json.text);
}

static void holes_and_ignored_labels(void)
{
    double weight[4] = {1, 0, 2, 1}, output[8] = {1, 0, 0, 1, 0, 1, 1, 0};
    int32_t labels[4] = {0, -7, 1, 9};
    const struct data d = {4, 2, 1, output, labels, CVY_DTYPE_I32, weight};
    double value = 0;
    EXPECT_FAULT(measure("accuracy", "{}", &d, 4, &value, NULL), CVY_E_FORMAT,
                 "row 3 of the batch has label 9, expected 0 .. 1");
    expect("accuracy", "ignore_label: 9", &d, 1);
    expect("auc", "ignore_label: [9, 8]", &d, 1);
    weight[3] = 0;
    expect("accuracy", "{}", &d, 1);
    output[4] = NAN;
    expect("accuracy", "{}", &d, 1.0 / 3);
    EXPECT_FAULT(measure("accurcy", "{}", &d, 4, &value, NULL), CVY_E_CONFIG, "did you mean 'accuracy'?");
    EXPECT_FAULT(measure("auc", "positive: 2", &d, 4, &value, NULL), CVY_E_CONFIG, "expected 0 .. 1");
    EXPECT_FAULT(measure("rmse", "{}", &d, 4, &value, NULL), CVY_E_SHAPE, "the target has 4 elements, the output 8");
}

/* ---- probabilities ---- */

static void probabilities(void)
{
    double weight[50];
    struct data d = {50, 6, 1, logits, label, CVY_DTYPE_I32, NULL},
                one = {60, 1, 1, score, score_label, CVY_DTYPE_I32, NULL};
    make_classes();
    make_scores();
    expect("nll", "{}", &d, 1.9563338248332895);
    expect("brier", "{}", &d, 0.88314833806202198);
    expect("ece", "{}", &d, 0.12461201793411207);
    expect("ece", "temperature: 0.25", &d, 0.27804409101234151);
    expect("nll", "{}", &one, 0.80140843864143119);
    expect("brier", "{}", &one, 0.52705937666661962);
    for (int i = 0; i < 50; i++)
        weight[i] = 1 + i % 4 * 0.3;
    d.weight = weight;
    expect("nll", "temperature: 0.25", &d, 3.84206832687497);
    expect("brier", "{}", &d, 0.88444612794820099);
    expect("ece", "{temperature: 0.25, bins: 10}", &d, 0.26377084589850031);
}

/* Two samples in each of two bins. Logits that overflow an exponential have a probability, and NaN gives NaN. */
static void reliability(void)
{
    double two[8] = {0, 0, 0, 0, 2000, 0, 0, 1000};
    int32_t labels[4] = {0, 1, 0, 0};
    const struct data d = {4, 2, 1, two, labels, CVY_DTYPE_I32, NULL};
    cvy_json json = {0};
    double value = 0;
    cvy_json_open(&json, NULL, '{');
    EXPECT_OK(measure("ece", "bins: 2", &d, 3, &value, &json));
    cvy_json_close(&json, '}');
    EXPECT_NEAR(value, 0.25, 1e-15);
    EXPECT_TEXT(json.text.data ? json.text.data : "", "{\"reliability\": {\"count\": [2, 2], \"confidence\": "
                                                      "[0.5, 1], \"accuracy\": [0.5, 0.5]}}");
    cvy_text_free(&json.text);
    EXPECT_OK(measure("nll", "{}", &d, 4, &value, NULL));
    EXPECT_NEAR(value, (2 * log(2) + 0 + 1000) / 4, 1e-12);
    two[0] = NAN;
    EXPECT_OK(measure("nll", "{}", &d, 4, &value, NULL));
    EXPECT(value != value);
    EXPECT_OK(measure("ece", "{}", &d, 4, &value, NULL));
    EXPECT(value != value);
    EXPECT_FAULT(measure("ece", "temperature: 0", &d, 4, &value, NULL), CVY_E_CONFIG, "temperature");
}

static void coverage(void)
{
    double y[40], normal[80], weight[20];
    struct data d = {20, 4, 2, normal, y, CVY_DTYPE_F64, NULL};
    cvy_json json = {0};
    double value = 0;
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 2; k++) {
            y[2 * i + k] = cos(0.9 * i + 1.7 * k) * (k + 1);
            normal[4 * i + k] = 0.2 * k;
            normal[4 * i + 2 + k] = sin(i);
        }
        weight[i] = 1 + i % 3;
    }
    expect("coverage", "interval: 0.8", &d, 0.625);
    d.weight = weight;
    expect("coverage", "interval: 0.8", &d, 0.62820512820512819);
    for (int i = 0; i < 80; i++)
        normal[i] = i % 4 < 2 ? 1.1 : -0.5; /* the level 0.9 is first */
    d.weight = NULL;
    expect("coverage", "levels: [0.9, 0.1]", &d, 0.425);
    cvy_json_open(&json, NULL, '{');
    EXPECT_OK(measure("coverage", "levels: [0.9, 0.1]", &d, 20, &value, &json));
    EXPECT(json.text.data && strstr(json.text.data, "\"below\": [0.8, 0.375]"));
    cvy_text_free(&json.text);
    EXPECT_FAULT(measure("coverage", "levels: [0.1, 0.5, 0.9]", &d, 20, &value, NULL), CVY_E_CONFIG,
                 "needs 3 outputs for each target");
    EXPECT_FAULT(measure("coverage", "levels: 0.5", &d, 20, &value, NULL), CVY_E_CONFIG, "two or more levels");
}

/* ---- regression ---- */

static void regression(void)
{
    double y[60], out[60], weight[20];
    struct data d = {20, 3, 3, out, y, CVY_DTYPE_F64, NULL};
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 3; k++) {
            y[3 * i + k] = cos(0.9 * i + 1.7 * k) * (k + 1);
            out[3 * i + k] = y[3 * i + k] + 0.3 * sin(2.3 * i + k);
        }
        weight[i] = 1 + i % 3;
    }
    expect("r2", "{}", &d, 0.9608066737127551);
    d.weight = weight;
    expect("r2", "{}", &d, 0.9595946312970804);
    expect("r2", "average: variance", &d, 0.980357413807714);
    expect("rmse", "{}", &d, 0.2119627362134305);
    expect("mae", "{}", &d, 0.19096637841853584);
    for (int i = 0; i < 60; i++)
        out[i] = y[i] = 0.1;
    expect("r2", "{}", &d, 1);
    /* over positions it is a mean of them, which tables say; not if it is one number for all, nor for a vector */
    for (int i = 0; i < 3; i++) {
        cvy_json json = {0};
        double value = 0;
        map = i < 2 ? (cvy_shape){2, {1, 3}} : (cvy_shape){0};
        cvy_json_open(&json, NULL, '{');
        EXPECT_OK(measure("r2", i == 1 ? "average: variance" : "{}", &d, 20, &value, &json));
        EXPECT(json.text.data && !strstr(json.text.data, "\"r2_mean_of\": \"positions\"") == (i > 0));
        cvy_text_free(&json.text);
    }
}

/* Targets far from 0, tiny and huge: r2_score of the same numbers. */
static void far_targets(void)
{
    static const struct {
        double offset, spread, r2;
    } of[] = {
        {101325, 0.05, 0.9363003023980289}, {1e7, 0.5, 0.9363003022282994}, {-1e30, 1e24, 0.9363003023919492},
        {1e-30, 1e-36, 0.9363003024078241}, {1e9, 1, 0.936300312570912},
    };
    double y[60], out[60];
    struct data d = {60, 1, 1, out, y, CVY_DTYPE_F64, NULL};
    for (int k = 0; k < CVY_COUNT(of); k++) {
        for (int i = 0; i < 60; i++) {
            y[i] = of[k].offset + of[k].spread * (i * 37 % 61 / 61.0 - 0.5);
            out[i] = y[i] + of[k].spread * (i * 17 % 59 / 59.0 - 0.5) / 4;
        }
        expect("r2", "{}", &d, of[k].r2);
        expect("r2", "average: variance", &d, of[k].r2);
    }
}

/* Negative weights, as those of event generators: sums of signed weights, as numpy gives them. Where the weights do not
 * sum to more than 0, nothing is defined. */
static void negative_weights(void)
{
    double out[40], real[40], weight[40], value = 0;
    int32_t label[40];
    struct data classes = {40, 1, 1, out, label, CVY_DTYPE_I32, weight},
                reals = {40, 1, 1, out, real, CVY_DTYPE_F64, weight};
    for (int i = 0; i < 40; i++) {
        out[i] = sin(1.7 * i + 0.3);
        label[i] = 3 * i % 5 > 2;
        real[i] = cos(0.9 * i);
        weight[i] = i % 4 == 1 ? -0.5 : 1 + i % 3 * 0.5;
    }
    expect("accuracy", "{}", &classes, 0.6075949367088608);
    expect("auc", "{}", &classes, 0.6034255599472991);
    expect("nll", "{}", &classes, 0.7068520196900085);
    expect("mae", "{}", &reals, 0.9066878015036441);
    expect("rmse", "{}", &reals, 1.0690695447922869);
    expect("r2", "{}", &reals, -0.9911179124455327);
    for (int i = 0; i < 40; i++)
        weight[i] = i % 2 ? -1 : i == 0 ? -1 : 1;
    static const char *const names[] = {"accuracy", "balanced_accuracy",
                                        "auc",      "efficiency_at_fpr",
                                        "nll",      "brier",
                                        "ece",      "top_k",
                                        "mae",      "rmse",
                                        "r2",       "iou"};
    for (int i = 0; i < CVY_COUNT(names); i++) {
        const int is_real = i >= 8 && i <= 10;
        EXPECT_OK(measure(names[i], "{}", is_real ? &reals : &classes, 7, &value, NULL));
        test_checks++;
        if (isnan(value))
            continue;
        test_failures++;
        printf("%s is %g with weights that sum to -2\n", names[i], value);
    }
}

/* A value that is not finite has a reason, and others have none. */
static void reasons(void)
{
    static double output[] = {0.5, -1, 2, 0.25}, bad[] = {0.5, NAN, 2, 0.25}, far[] = {1, 1e200, 1, 1};
    static double two[] = {3, 0, 3, 0, 3, 0, 3, 0}, none[] = {0, 0, 0, 0}, negative[] = {1, -3, 1, -1};
    static int32_t zeros[] = {0, 0, 0, 0}, ones[] = {1, 1, 1, 1}, mixed[] = {0, 1, 1, 0};
    static double real[] = {1, 2, 3, 4};
    const struct {
        const char *metric, *options;
        struct data data;
        const char *why;
    } cases[] = {
        {"auc", "{}", {4, 1, 1, output, zeros, CVY_DTYPE_I32, NULL}, "only one class occurs: no sample that counts"},
        {"auc", "{}", {4, 1, 1, output, ones, CVY_DTYPE_I32, NULL}, "only one class occurs: all samples that count"},
        {"auc", "{positive: 0}", {4, 1, 1, output, ones, CVY_DTYPE_I32, NULL}, "no sample that counts is of class 0"},
        {"efficiency_at_fpr", "{}", {4, 1, 1, output, zeros, CVY_DTYPE_I32, NULL}, "only one class occurs"},
        {"auc", "{}", {4, 1, 1, output, mixed, CVY_DTYPE_I32, none}, "no sample counts"},
        {"auc", "{}", {4, 1, 1, output, mixed, CVY_DTYPE_I32, NULL}, ""},
        {"accuracy", "{}", {4, 2, 1, two, zeros, CVY_DTYPE_I32, none}, "no sample counts"},
        {"accuracy", "{ignore_label: [0]}", {4, 2, 1, two, zeros, CVY_DTYPE_I32, NULL}, "no sample counts"},
        {"accuracy", "{}", {4, 2, 1, two, zeros, CVY_DTYPE_I32, negative}, "sum to 0 or less"},
        {"iou", "{leave_out: [0]}", {4, 2, 1, two, zeros, CVY_DTYPE_I32, NULL}, "no class that is in the mean"},
        {"dice", "{leave_out: [0]}", {4, 2, 1, two, zeros, CVY_DTYPE_I32, NULL}, "no class that is in the mean"},
        {"r2", "{}", {4, 1, 1, output, none, CVY_DTYPE_F64, NULL}, "the targets do not vary"},
        {"r2", "average: variance", {2, 2, 2, output, none, CVY_DTYPE_F64, NULL}, "the targets do not vary"},
        {"r2", "{}", {1, 4, 4, output, real, CVY_DTYPE_F64, NULL}, "the targets do not vary"},
        {"r2", "{}", {4, 1, 1, none, none, CVY_DTYPE_F64, NULL}, ""},
        {"rmse", "{}", {4, 1, 1, bad, real, CVY_DTYPE_F64, NULL}, "are not finite"},
        {"rmse", "{}", {4, 1, 1, far, real, CVY_DTYPE_F64, NULL}, "are not finite"},
        {"rmse", "{}", {4, 1, 1, output, real, CVY_DTYPE_F64, NULL}, ""},
    };
    for (int i = 0; i < CVY_COUNT(cases); i++) {
        double value = 0;
        EXPECT_OK(measure(cases[i].metric, cases[i].options, &cases[i].data, 3, &value, NULL));
        EXPECT(isfinite(value) == !*cases[i].why && isfinite(value) == !*reason);
        if (!strstr(reason, cases[i].why))
            TEST_FAIL("%s: the reason is '%s', expected '%s'", cases[i].metric, reason, cases[i].why);
    }
}

static cvy_status measure_auc(void)
{
    const struct data d = {60, 1, 1, score, score_label, CVY_DTYPE_I32, score_weight};
    double value = 0;
    return measure("auc", "{}", &d, 7, &value, NULL);
}

static void survives_no_memory(void)
{
    make_scores();
    EXPECT_SURVIVES_NO_MEMORY(measure_auc());
}

int main(void)
{
    TEST(ranking_with_ties);
    TEST(roc_points);
    TEST(saturated_scores_and_thinning);
    TEST(classes);
    TEST(holes_and_ignored_labels);
    TEST(probabilities);
    TEST(reliability);
    TEST(coverage);
    TEST(regression);
    TEST(far_targets);
    TEST(negative_weights);
    TEST(reasons);
    TEST(survives_no_memory);
    return test_end();
}
