/* rows: clang asan */
/*
 * test_data_collider.c: the generated events and the classic baselines.
 *
 * Events are reproducible and both classes share the energy spectrum. The baselines are in their range. The features
 * find jets where the test put them. ROC and bootstrap are compared with known answers.
 */
#include "base/number/base_rng.h"
#include "data/generated/data_collider.h"
#include "test_data_support.h"

#include <math.h>

static float image[2][3 * 64 * 64];

static void test_reproducible(void)
{
    cvy_dataset *d = NULL, *later = NULL, *small = NULL;
    int32_t label[2];
    void *const a[] = {image[0], &label[0]}, *const b[] = {image[1], &label[1]};
    OK(open_text("collider", NULL, 0, &d));
    OK(open_text("{format: collider, first: 100, events: 10}", NULL, 0, &later));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 20000 && info->nclasses == 2 && strcmp(info->class_name[1], "signal") == 0);
    TRUE_THAT(strcmp(cvy_shape_text(&info->field[0].shape), "3x64x64") == 0 && cvy_collider_is(d));
    for (int i = 0; i < 10; i++) {
        OK(cvy_dataset_read(d, 100 + i, 0, a));
        OK(cvy_dataset_read(later, i, 9, b));
        TRUE_THAT(label[0] == label[1] && memcmp(image[0], image[1], sizeof image[0]) == 0);
        double sum = 0;
        for (int k = 0; k < 2 * 64 * 64; k++) {
            TRUE_THAT(image[0][k] >= 0 && isfinite(image[0][k]));
            sum += image[0][k];
        }
        TRUE_THAT(sum > 200);
        OK(cvy_dataset_read(d, 100 + i, 1, b));
        TRUE_THAT(memcmp(image[0], image[1], sizeof image[0]) == 0);
    }
    TRUE_THAT(cvy_dataset_hash(d) != cvy_dataset_hash(later));
    cvy_dataset_destroy(&later);
    OK(open_text("{format: collider, cells: 16, events: 3}", "[log]", 0, &small));
    OK(cvy_dataset_read(small, 2, 0, a));
    cvy_dataset_destroy(&small);
    FAILS(open_text("{format: collider, ht_min: 900, ht_max: 800}", NULL, 0, &small), CVY_E_CONFIG,
          "ht_min 900 is not below ht_max 800");
    FAILS(open_text("{format: collider, pile_up: 3}", NULL, 0, &small), CVY_E_CONFIG, "pileup");
    cvy_dataset_destroy(&d);
}

/* Two blobs of 100 and 60 GeV and nothing else. One of them crosses the seam of phi. */
static void test_features(void)
{
    float work[64 * 64], f[COLLIDER_FEATURES];
    memset(image[0], 0, sizeof image[0]);
    float *em = image[0], *had = image[0] + 64 * 64, *tracks = had + 64 * 64;
    em[30 * 64 + 0] = 50;
    em[30 * 64 + 63] = 20;
    had[31 * 64 + 0] = 30;
    had[20 * 64 + 32] = 60;
    tracks[20 * 64 + 32] = 4;
    cvy_collider_features_of(image[0], 64, 64, work, f);
    TRUE_THAT(fabs(f[COLLIDER_HT] - 160) < 0.01 && f[COLLIDER_NJET] == 2 && f[COLLIDER_NTRACK] == 4);
    TRUE_THAT(fabs(f[COLLIDER_LEAD] - 100) < 0.1 && fabs(f[COLLIDER_SECOND] - 60) < 0.1 && f[COLLIDER_FOURTH] == 0);
    TRUE_THAT(fabs(f[COLLIDER_MET] - 40) < 1 && fabs(f[COLLIDER_EM_SHARE] - 70.0 / 160) < 1e-5);
    TRUE_THAT(fabs(f[COLLIDER_DETA] - 1.0) < 0.01 && f[COLLIDER_SPHERICITY] < 0.02);
}

static double mean_of(const cvy_collider_table *t, int feature, int label, double *sd)
{
    double sum = 0, squares = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->label[i] != label)
            continue;
        const double x = t->feature[i * COLLIDER_FEATURES + feature];
        sum += x;
        squares += x * x;
        n++;
    }
    *sd = sqrt((squares / (double)n - sum * sum / (double)n / (double)n) / (double)n);
    return sum / (double)n;
}

static void make_tables(const char *train, const char *test, cvy_collider_table *t)
{
    const char *source[] = {train, test};
    for (int i = 0; i < 2; i++) {
        cvy_dataset *d = NULL;
        OK(open_text(source[i], "[log]", 0, &d));
        OK(cvy_collider_table_make(d, 0, 2, &t[i]));
        cvy_dataset_destroy(&d);
    }
}

static void test_baselines(void)
{
    cvy_collider_table t[2];
    cvy_collider_baselines b;
    cvy_comparison c;
    double sd[2];
    make_tables("{format: collider, events: 3000}", "{format: collider, events: 2000, first: 50000}", t);
    /* Both classes have the same energy but not the same number of jets. */
    const double ht = mean_of(&t[0], COLLIDER_HT, 1, &sd[1]) - mean_of(&t[0], COLLIDER_HT, 0, &sd[0]);
    TRUE_THAT(fabs(ht) < 4 * hypot(sd[0], sd[1]));
    TRUE_THAT(mean_of(&t[0], COLLIDER_NJET, 1, &sd[1]) > mean_of(&t[0], COLLIDER_NJET, 0, &sd[0]) + 1);
    OK(cvy_collider_baselines_make(&t[0], &t[1], &b));
    for (int i = 0; i < COLLIDER_BASELINES; i++) {
        const cvy_curve *curve = &b.at[i].curve;
        TRUE_THAT(curve->area > 0.75 && curve->area < 0.95);
        TRUE_THAT(curve->fpr[0] == 0 && curve->tpr[0] == 0 && curve->fpr[curve->n - 1] == 1 &&
                  curve->tpr[curve->n - 1] == 1);
        for (int64_t k = 1; k < curve->n; k++)
            TRUE_THAT(curve->fpr[k] >= curve->fpr[k - 1] && curve->tpr[k] >= curve->tpr[k - 1]);
        /* Compares the baselines with scores that know the truth, with a little noise. */
        float *oracle = malloc((size_t)b.ntest * sizeof *oracle);
        for (int64_t k = 0; k < b.ntest; k++)
            oracle[k] = (float)b.label[k] * 3 + (float)(k % 97) / 40;
        OK(cvy_collider_compare(&b, i, oracle, 50, 1, 0.01, &c));
        TRUE_THAT(fabs(c.area[1].value - curve->area) < 1e-9 && c.area_difference.value > 10 * c.area_difference.se);
        TRUE_THAT(fabs(c.efficiency[1].value - cvy_curve_at(curve, 0.01)) < 1e-6 && c.area[1].se > 0.002 &&
                  c.area[1].se < 0.02);
        free(oracle);
    }
    TRUE_THAT(b.at[COLLIDER_LINEAR10].curve.area > b.at[COLLIDER_CUTS].curve.area);
    OK(cvy_collider_table_write(&t[1], in_scratch("features.csv")));
    char *text = NULL;
    size_t bytes = 0;
    OK(cvy_file_read(in_scratch("features.csv"), 1 << 20, &text, &bytes));
    TRUE_THAT(strncmp(text, "label,ht,njet,jet1_pt,", 22) == 0);
    cvy_mem_free(&text);
    cvy_collider_baselines_free(&b);
    cvy_collider_table_free(&t[0]);
    cvy_collider_table_free(&t[1]);
}

/* Small cases computed by hand; the bootstrap's error against the formula for a proportion. */
static void test_roc(void)
{
    const float score[] = {4, 3, 3, 2, 1};
    const int32_t label[] = {1, 1, 0, 0, 1};
    cvy_curve c;
    OK(cvy_curve_of_scores(score, label, 5, &c));
    /* Pairs (signal, background): 4>3, 4>2, 3=3 (half), 3>2, 1<3, 1<2: 3.5 of 6. */
    TRUE_THAT(fabs(c.area - 3.5 / 6) < 1e-12 && c.n == 5);
    TRUE_THAT(fabs(cvy_curve_at(&c, 0.25) - 0.5) < 1e-12);
    cvy_curve_free(&c);
    enum { N = 4000 };
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    int32_t *truth = malloc(N * sizeof *truth);
    const cvy_rng rng = cvy_rng_make(3, "test", 0, 0);
    for (uint64_t i = 0; i < N; i++) {
        truth[i] = i % 2;
        a[i] = (float)(cvy_rng_uniform(&rng, 2 * i) + 0.2 * truth[i]);
        b[i] = a[i] + 1e-6f * (float)i;
    }
    cvy_comparison cmp;
    OK(cvy_paired_bootstrap(a, b, truth, N, 200, 1, 0.1, &cmp));
    /* P(x + 0.2 > y) for uniforms: 1 - 0.8^2 / 2; the efficiency at 10 %: 0.1 + 0.2. */
    TRUE_THAT(fabs(cmp.area[0].value - 0.68) < 4 * cmp.area[0].se && cmp.area[0].se > 0.004 && cmp.area[0].se < 0.016);
    TRUE_THAT(fabs(cmp.efficiency[0].value - 0.3) < 4 * cmp.efficiency[0].se);
    TRUE_THAT(cmp.area_difference.se < 0.1 * cmp.area[0].se); /* nearly the same scores: the errors cancel */
    FAILS(cvy_paired_bootstrap(a, b, truth, N, 1, 1, 0.1, &cmp), CVY_E_ARGUMENT, "replicas");
    a[7] = NAN;
    FAILS(cvy_paired_bootstrap(a, b, truth, N, 10, 1, 0.1, &cmp), CVY_E_NUMERIC, "event 7");
    free(a);
    free(b);
    free(truth);
}

int main(void)
{
    scratch_make();
    test_reproducible();
    test_features();
    test_roc();
    test_baselines();
    scratch_remove();
    return 0;
}
