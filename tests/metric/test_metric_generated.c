/* ranks: 1 4 */
/*
 * test_metric_generated.c: the metrics that compare generated samples with true ones as a set. Maps of the same kind
 * pass. Maps with shuffled pixels have the same histogram and another spectrum; smoothed maps differ in both; a
 * generator that always gives the same map has no diversity. The order of the samples, the number of ranks and the
 * size of batches change nothing. A value that is not finite is not passed over. Sums of each element take little
 * memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>
#include <stdio.h>

#include "base/number/base_rng.h"
#include "comm/mpi/comm_mpi.h"
#include "metric/metric.h"
#include "metric/metric_samples.h"
#include "test_util.h"

enum { N = 240, S = 16, P = S * S, WAVES = 12 };

static double truth[N][P], other[N][P], shuffled[N][P], smooth[N][P], same[N][P], scaled[N][P];
static cvy_comm *all = NULL, *self = NULL;

/* exp of a sum of waves with random phases, whose strength falls with their wave number. */
static void make_map(uint64_t number, double *map)
{
    const cvy_rng rng = cvy_rng_make(5, "test.map", 0, number);
    for (int i = 0; i < P; i++)
        map[i] = 0;
    for (int k = 0; k < WAVES; k++) {
        const int ky = (int)cvy_rng_below(&rng, (uint64_t)(4 * k), 7) - 3,
                  kx = (int)cvy_rng_below(&rng, (uint64_t)(4 * k + 1), 4);
        const double phase = 6.28 * cvy_rng_uniform(&rng, (uint64_t)(4 * k + 2)),
                     size = cvy_rng_normal(&rng, (uint64_t)(4 * k + 3)) / (1 + ky * ky + kx * kx);
        for (int i = 0; i < P; i++)
            map[i] += size * cos(2 * 3.14159265358979323846 * (ky * (i / S) + kx * (i % S)) / S + phase);
    }
    for (int i = 0; i < P; i++)
        map[i] = exp(map[i]);
}

static void make_maps(void)
{
    for (int n = 0; n < N; n++) {
        make_map((uint64_t)n, truth[n]);
        make_map((uint64_t)(N + n), other[n]);
        make_map(7, same[n]);
        const cvy_rng rng = cvy_rng_make(6, "test.shuffle", 0, (uint64_t)n);
        memcpy(shuffled[n], other[n], sizeof shuffled[n]);
        for (int i = P - 1; i > 0; i--) {
            const int k = (int)cvy_rng_below(&rng, (uint64_t)i, (uint64_t)(i + 1));
            const double keep = shuffled[n][i];
            shuffled[n][i] = shuffled[n][k];
            shuffled[n][k] = keep;
        }
        for (int i = 0; i < P; i++) {
            const int y = i / S, x = i % S;
            double sum = 0;
            for (int d = 0; d < 9; d++)
                sum += other[n][(y + d / 3 + S - 1) % S * S + (x + d % 3 + S - 1) % S];
            smooth[n][i] = sum / 9;
            scaled[n][i] = 1.5 * other[n][i];
        }
    }
}

/* Measures outputs against the truth. Rank r has the samples r, r + nranks, ... */
static double measure(const char *metric, double (*output)[P], cvy_comm *comm, cvy_json *detail)
{
    cvy_metric *m = NULL;
    double value = -1;
    EXPECT_OK(cvy_metric_open(metric, &(cvy_shape){3, {1, S, S}}, &m));
    for (int n = 2 * comm->rank; m && n < N; n += 2 * comm->nranks) {
        const cvy_span out = {
            .dtype = CVY_DTYPE_F64, .ndim = 4, .dim = {2, 1, S, S}, .elems = 2 * P, .data = output[n]};
        const cvy_span target = {
            .dtype = CVY_DTYPE_F64, .ndim = 4, .dim = {2, 1, S, S}, .elems = 2 * P, .data = truth[n]};
        EXPECT_OK(cvy_metric_add(m, &(cvy_metric_rows){.n = 2, .output = &out, .target = &target}));
    }
    if (m)
        EXPECT_OK(cvy_metric_finish(m, comm, &value, detail));
    cvy_metric_destroy(&m);
    return value;
}

/* The value is between two bounds, and the same on all ranks together as on one. */
static void expect(const char *metric, double (*output)[P], double low, double high)
{
    const double one = measure(metric, output, self, NULL), merged = measure(metric, output, all, NULL);
    EXPECT(merged == one);
    if (!(one >= low && one <= high))
        TEST_FAIL("%s is %g, expected %g to %g", metric, one, low, high);
}

static void of_the_same_kind(void)
{
    expect("power_spectrum", truth, 0, 0);
    expect("power_spectrum_within", truth, 1, 1);
    expect("pixel_histogram", truth, 0, 1e-12);
    expect("pixel_histogram_within", truth, 1, 1);
    expect("diversity", truth, 1, 1);
    /* Two sets of 240 maps: a distance of 0.124 has the probability 0.05. */
    expect("power_spectrum", other, 0.02, 0.13);
    expect("power_spectrum_within", other, 0.7, 1);
    expect("pixel_histogram", other, 1e-4, 0.05);
    expect("pixel_histogram_within", other, 0.75, 1);
    expect("{name: pixel_histogram_within, range: [0, 4], bins: 20}", other, 0.75, 1);
    expect("diversity", other, 0.7, 1.4);
}

static void spoilt(void)
{
    expect("power_spectrum", shuffled, 0.5, 1);
    expect("power_spectrum_within", shuffled, 0, 0.3);
    expect("pixel_histogram", shuffled, 1e-4, 0.05);
    expect("power_spectrum_within", smooth, 0, 0.5);
    expect("pixel_histogram", smooth, 0.03, 1);
    expect("power_spectrum_within", scaled, 0, 0.5);
    expect("pixel_histogram_within", scaled, 0, 0.5);
    expect("diversity", same, 0, 0);
    expect("{name: power_spectrum_within, errors: 1000}", scaled, 1, 1);
}

/* Measures the first n outputs on this rank, in batches of this size. */
static double in_batches(const char *metric, double (*output)[P], int n, int batch)
{
    cvy_metric *m = NULL;
    double value = -1;
    EXPECT_OK(cvy_metric_open(metric, &(cvy_shape){3, {1, S, S}}, &m));
    for (int i = 0; m && i < n; i += batch) {
        const cvy_span out = {
            .dtype = CVY_DTYPE_F64, .ndim = 4, .dim = {batch, 1, S, S}, .elems = batch * P, .data = output[i]};
        cvy_span target = out;
        target.data = truth[i];
        EXPECT_OK(cvy_metric_add(m, &(cvy_metric_rows){.n = batch, .output = &out, .target = &target}));
    }
    if (m)
        EXPECT_OK(cvy_metric_finish(m, self, &value, NULL));
    cvy_metric_destroy(&m);
    return value;
}

static void any_batches(void)
{
    const double whole = in_batches("diversity", other, N, N);
    EXPECT_NEAR(in_batches("diversity", other, N, 1), whole, 1e-12);
    EXPECT_NEAR(in_batches("diversity", other, N, 8), whole, 1e-12);
    EXPECT(isnan(in_batches("diversity", other, 1, 1)));
}

static void not_finite(void)
{
    static const char *const metrics[] = {"power_spectrum", "pixel_histogram", "diversity"};
    static double bad[N][P];
    for (int k = 0; k < 2; k++) {
        memcpy(bad, other, sizeof bad);
        bad[3][5] = k ? NAN : INFINITY;
        for (int i = 0; i < CVY_COUNT(metrics); i++)
            if (!isnan(in_batches(metrics[i], bad, N, 8)))
                TEST_FAIL("%s passes over a value that is not finite", metrics[i]);
    }
}

/* r2 has four sums for each element, diversity two. An exact sum of base_exact.h would take 552 bytes. */
static void little_memory(void)
{
    static const struct {
        const char *name;
        int64_t sums;
    } of[] = {{"r2", 4}, {"diversity", 2}};
    const cvy_shape output = {3, {1, 128, 128}};
    for (int i = 0; i < CVY_COUNT(of); i++) {
        cvy_metric *m = NULL;
        const int64_t before = cvy_memory_bytes();
        EXPECT_OK(cvy_metric_open(of[i].name, &output, &m));
        const int64_t bytes = (cvy_memory_bytes() - before) / (128 * 128);
        if (bytes > of[i].sums * 64)
            TEST_FAIL("%s takes %lld bytes for each element", of[i].name, (long long)bytes);
        cvy_metric_destroy(&m);
    }
}

static void details(void)
{
    cvy_json json = {0};
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    cvy_json_open(&json, NULL, '{');
    measure("power_spectrum", other, self, &json);
    measure("{name: pixel_histogram, range: [0, 4], bins: 20}", other, self, &json);
    cvy_json_close(&json, '}');
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_tree_parse_text(pool, "detail", json.text.data, json.text.bytes, &tree));
    EXPECT_INT(cvy_tree_at(tree, "power_spectrum.wave")->count, S / 2);
    EXPECT_INT(cvy_tree_at(tree, "power_spectrum.output.mean")->count, S / 2);
    EXPECT_INT(cvy_tree_at(tree, "moments.name")->count, 4);
    const cvy_tree *from = cvy_tree_at(tree, "pixel_histogram.from"), *to = cvy_tree_at(tree, "pixel_histogram.to"),
                   *ks = cvy_tree_at(tree, "pixel_histogram.ks");
    EXPECT(from->count > 5 && from->count == to->count && from->count == ks->count);
    EXPECT_TEXT(from->child[1]->text, to->child[0]->text);
    cvy_pool_destroy(&pool);
    cvy_text_free(&json.text);
}

/* Columns {1, 2, 3, 4} and {3, 4, 5, 6}: the distributions differ most between 2 and 3, by 1/2. */
static void distances(void)
{
    const float rows[] = {1, 6, 3, 5, 4, 3, 2, 4}, bad[] = {1, 2, NAN, 3};
    cvy_samples s;
    cvy_samples_compare(rows, 4, 2, 0, 1, &s);
    EXPECT_NEAR(s.distance, 0.5, 0);
    EXPECT_NEAR(s.mean[CVY_SAMPLES_OUTPUT], 2.5, 0);
    EXPECT_NEAR(s.mean[CVY_SAMPLES_TARGET], 4.5, 0);
    EXPECT_NEAR(s.std[CVY_SAMPLES_OUTPUT], sqrt(5.0 / 3), 1e-15);
    EXPECT_NEAR(s.error, sqrt(10.0 / 3 / 4), 1e-15);
    EXPECT(cvy_samples_agree(&s, 2.2) && !cvy_samples_agree(&s, 2.1));
    EXPECT(s.p > 0.3 && s.p < 0.8);
    cvy_samples_compare(bad, 2, 2, 0, 1, &s);
    EXPECT(isnan(s.distance) && isnan(s.mean[0]) && !cvy_samples_agree(&s, 2));
}

static void what_does_not_fit(void)
{
    cvy_metric *m = NULL;
    EXPECT_FAULT(cvy_metric_open("power_spectrum", &(cvy_shape){1, {10}}, &m), CVY_E_CONFIG, "outputs that are maps");
    EXPECT_FAULT(cvy_metric_open("power_spectrum", &(cvy_shape){3, {1, 1, 8}}, &m), CVY_E_CONFIG, "1x1x8");
    EXPECT_FAULT(cvy_metric_open("{name: pixel_histogram, range: [3, 1]}", &(cvy_shape){1, {4}}, &m), CVY_E_CONFIG,
                 "do not ascend");
    EXPECT_FAULT(cvy_metric_open("{name: pixel_histogram, range: 3}", &(cvy_shape){1, {4}}, &m), CVY_E_CONFIG, "got 1");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &all));
    EXPECT_OK(cvy_comm_create_self(&self));
    make_maps();
    TEST(of_the_same_kind);
    TEST(spoilt);
    TEST(any_batches);
    TEST(not_finite);
    TEST(little_memory);
    TEST(details);
    TEST(distances);
    TEST(what_does_not_fit);
    all->ops->destroy(all);
    self->ops->destroy(self);
    const int result = test_end();
    MPI_Finalize();
    return result;
}
