/*
 * test_data_fields.c: the generators of fields and pictures: the Fourier transform against the sum that defines it, the
 * statistics that docs/reference/data.md states, targets and classes, and samples that depend only on seed and number.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "base/number/base_fft.h"
#include "base/number/base_rng.h"
#include "test_data_support.h"

static void test_fft(void)
{
    enum { N = 8 };
    static float re[N * N], im[N * N];
    double want[2][N * N];
    cvy_pool *pool = NULL;
    cvy_fft fft;
    OK(cvy_pool_create(&pool));
    FAILS(cvy_fft_make(pool, 0, &fft), CVY_E_ARGUMENT, "expected at least 1");
    OK(cvy_fft_make(pool, N, &fft));
    const cvy_rng rng = cvy_rng_make(3, "test", 0, 0);
    for (int i = 0; i < N * N; i++) {
        re[i] = (float)cvy_rng_normal(&rng, (uint64_t)(2 * i));
        im[i] = (float)cvy_rng_normal(&rng, (uint64_t)(2 * i + 1));
    }
    for (int r = 0; r < N * N; r++) {
        want[0][r] = want[1][r] = 0;
        for (int k = 0; k < N * N; k++) {
            const double angle = 2 * 3.14159265358979323846 * ((r / N) * (k / N) + (r % N) * (k % N)) / N;
            want[0][r] += re[k] * cos(angle) - im[k] * sin(angle);
            want[1][r] += re[k] * sin(angle) + im[k] * cos(angle);
        }
    }
    cvy_fft_2d(&fft, re, im);
    for (int r = 0; r < N * N; r++) /* a sum of 64 numbers of size 1, in 6 stages */
        TRUE_THAT(fabs(re[r] - want[0][r]) < 2e-5 && fabs(im[r] - want[1][r]) < 2e-5);
    cvy_pool_destroy(&pool);
}

/* ---- cosmology ---- */

enum { SIZE = 64, CELLS = SIZE * SIZE, MAPS = 400, SHELLS = SIZE / 2, DEEP = 16 };

struct sums {
    double mean, mean2; /* of the means of maps */
    double variance, variance2;
    double power[SHELLS];
};

/* Adds a map's statistics: its mean, and the variance and the spectrum of its logarithm. */
static void add_map(const cvy_fft *fft, const float *map, struct sums *s)
{
    static float re[CELLS], im[CELLS];
    static double power[SHELLS];
    int count[SHELLS] = {0};
    double mean = 0, first = 0, second = 0;
    memset(power, 0, sizeof power);
    for (int i = 0; i < CELLS; i++) {
        TRUE_THAT(map[i] > 0 && isfinite(map[i]));
        re[i] = logf(map[i]);
        im[i] = 0;
        mean += map[i] / (double)CELLS;
        first += re[i] / (double)CELLS;
        second += (double)re[i] * re[i] / CELLS;
    }
    const double variance = second - first * first;
    s->mean += mean;
    s->mean2 += mean * mean;
    s->variance += variance;
    s->variance2 += variance * variance;
    cvy_fft_2d(fft, re, im);
    for (int i = 1; i < CELLS; i++) {
        const int y = i / SIZE, x = i % SIZE;
        const double ky = y > SIZE / 2 ? y - SIZE : y, kx = x > SIZE / 2 ? x - SIZE : x;
        const int shell = (int)(sqrt(ky * ky + kx * kx) + 0.5);
        if (shell < SHELLS) {
            /* Undoes the fall-off, and corrects k^index within a shell of width 1 to the shell's own k. */
            const double k2 = ky * ky + kx * kx, kc = 0.5 * SIZE / 2;
            power[shell] += ((double)re[i] * re[i] + (double)im[i] * im[i]) * exp(k2 / (kc * kc)) *
                            pow(k2 / ((double)shell * shell), 1);
            count[shell]++;
        }
    }
    for (int k = 1; k < SHELLS; k++)
        s->power[k] += power[k] / count[k];
}

/* The least-squares slope of log power against log k. */
static double slope_of(const double *power, int from, int to)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int k = from; k <= to; k++) {
        const double x = log(k), y = log(power[k]);
        n++;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

static void test_cosmology_statistics(void)
{
    static float map[CELLS], y[2];
    void *const field[] = {map, y};
    cvy_pool *pool = NULL;
    cvy_dataset *d = NULL;
    cvy_fft fft;
    struct sums s = {0};
    OK(cvy_pool_create(&pool));
    OK(cvy_fft_make(pool, SIZE, &fft));
    OK(open_text("{format: cosmology, samples: 400, index: -2, sigma: 0.8, seed: 5}", NULL, 0, &d));
    for (int i = 0; i < MAPS; i++) {
        OK(cvy_dataset_read(d, i, 0, field));
        TRUE_THAT(y[0] == -2 && fabs(y[1] - 0.8) < 1e-6);
        add_map(&fft, map, &s);
    }
    const double mean = s.mean / MAPS, variance = s.variance / MAPS;
    const double mean_error = sqrt((s.mean2 / MAPS - mean * mean) / MAPS);
    const double variance_error = sqrt((s.variance2 / MAPS - variance * variance) / MAPS);
    printf("mean %.4f +- %.4f, variance of the log %.4f +- %.4f, slope %.3f\n", mean, mean_error, variance,
           variance_error, slope_of(s.power, 2, 20));
    TRUE_THAT(mean_error < 0.02 && fabs(mean - 1) < 5 * mean_error);
    TRUE_THAT(variance_error < 0.02 && fabs(variance - 0.64) < 5 * variance_error);
    /* A shell's power has a relative error of (modes x maps)^-1/2: 1/70 at k = 2, where 12 waves make the shell. */
    TRUE_THAT(fabs(slope_of(s.power, 2, 20) + 2) < 0.03);
    cvy_dataset_destroy(&d);
    cvy_pool_destroy(&pool);
}

/* The power of the wave with `waves` waves along one axis of a volume. */
static double power_along(const float *volume, int axis, int waves)
{
    double re = 0, im = 0;
    for (int i = 0; i < DEEP * DEEP * DEEP; i++) {
        const int at[3] = {i / (DEEP * DEEP), i / DEEP % DEEP, i % DEEP};
        const double angle = 2 * 3.14159265358979323846 * waves * at[axis] / DEEP;
        re += logf(volume[i]) * cos(angle);
        im += logf(volume[i]) * sin(angle);
    }
    return re * re + im * im;
}

/* The power of a wave has a relative error of (3 axes x volumes)^-1/2, 1/35, and the ratio of two 1/24. */
static void test_cosmology_volumes(void)
{
    enum { VOLUMES = 400 };
    static float volume[DEEP * DEEP * DEEP], y[2];
    void *const field[] = {volume, y};
    double variance = 0, low[3] = {0}, high[3] = {0};
    cvy_dataset *d = NULL;
    OK(open_text("{format: cosmology, dimensions: 3, size: 16, samples: 400, index: -2, sigma: 0.8}", NULL, 0, &d));
    for (int i = 0; i < VOLUMES; i++) {
        double first = 0, second = 0;
        OK(cvy_dataset_read(d, i, 0, field));
        for (int k = 0; k < DEEP * DEEP * DEEP; k++) {
            first += logf(volume[k]) / (double)(DEEP * DEEP * DEEP);
            second += (double)logf(volume[k]) * logf(volume[k]) / (DEEP * DEEP * DEEP);
        }
        variance += (second - first * first) / VOLUMES;
        for (int axis = 0; axis < 3; axis++) {
            low[axis] += power_along(volume, axis, 1);
            high[axis] += power_along(volume, axis, 4);
        }
    }
    TRUE_THAT(fabs(variance - 0.64) < 0.02);
    const double want = 16 * exp((16 - 1) / 16.0); /* k^-2, and the fall-off with kc = 4 waves */
    for (int axis = 0; axis < 3; axis++)
        TRUE_THAT(fabs(low[axis] / high[axis] / want - 1) < 5 * sqrt(2.0 / VOLUMES));
    cvy_dataset_destroy(&d);
    FAILS(open_text("{format: cosmology, dimensions: 3, size: 512}", NULL, 0, &d), CVY_E_CONFIG, "at most 256");
}

/* The last channel is the map without times; the channel before it at two times has half of the logarithm. */
static void test_cosmology_times(void)
{
    static float one[16 * 16], both[2 * 16 * 16], y[2];
    void *const plain[] = {one, y}, *const grown[] = {both, y};
    cvy_dataset *d = NULL, *t = NULL;
    OK(open_text("{format: cosmology, size: 16}", NULL, 0, &d));
    OK(open_text("{format: cosmology, size: 16, times: 2}", NULL, 0, &t));
    TRUE_THAT(cvy_dataset_hash(d) != cvy_dataset_hash(t));
    OK(cvy_dataset_read(d, 3, 0, plain));
    OK(cvy_dataset_read(t, 3, 0, grown));
    TRUE_THAT(memcmp(one, both + 256, sizeof one) == 0);
    const double variance = (double)y[1] * y[1];
    for (int i = 0; i < 256; i++)
        TRUE_THAT(fabs(logf(both[i]) + variance / 8 - (logf(one[i]) + variance / 2) / 2) < 1e-5);
    cvy_dataset_destroy(&d);
    cvy_dataset_destroy(&t);
}

static void test_cosmology_sets(void)
{
    static float a[CELLS], b[CELLS], y[2], z[2];
    int32_t label = -1;
    void *const left[] = {a, y}, *const right[] = {b, z}, *const classed[] = {a, &label, y};
    cvy_dataset *d = NULL, *later = NULL;
    OK(open_text("cosmology", NULL, 0, &d));
    OK(open_text("{format: cosmology, first: 90, samples: 20}", NULL, 0, &later));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 1024 && cvy_dataset_describe(d)->nclasses == 0);
    TRUE_THAT(cvy_dataset_hash(d) != cvy_dataset_hash(later));
    double low[2] = {9, 9}, high[2] = {-9, -9};
    for (int i = 0; i < 200; i++) {
        OK(cvy_dataset_read(d, i, 0, left));
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], y[k]);
            high[k] = fmax(high[k], y[k]);
        }
        if (i < 90 || i >= 110)
            continue;
        OK(cvy_dataset_read(later, i - 90, 3, right));
        TRUE_THAT(memcmp(a, b, sizeof a) == 0 && memcmp(y, z, sizeof y) == 0);
    }
    TRUE_THAT(low[0] >= -3 && low[0] < -2.8 && high[0] <= -1 && high[0] > -1.2);
    TRUE_THAT(low[1] >= 0.5 && low[1] < 0.6 && high[1] <= 1.5 && high[1] > 1.4);
    cvy_dataset_destroy(&later);
    cvy_dataset_destroy(&d);
    OK(open_text("{format: cosmology, size: 16, classes: 4, targets: true}", NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 4 && cvy_dataset_describe(d)->nfield == 3);
    for (int i = 0; i < 40; i++) {
        OK(cvy_dataset_read(d, i, 0, classed));
        TRUE_THAT(label == i % 4 && y[0] >= -3 + 0.5 * label - 1e-6 && y[0] <= -2.5 + 0.5 * label + 1e-6);
    }
    cvy_dataset_destroy(&d);
    FAILS(open_text("{format: cosmology, size: 48}", NULL, 0, &d), CVY_E_CONFIG, "expected a power of two");
    FAILS(open_text("{format: cosmology, index: [2, 1]}", NULL, 0, &d), CVY_E_CONFIG, "a range [low, high]");
    FAILS(open_text("{format: cosmology, targets: false}", NULL, 0, &d), CVY_E_CONFIG, "needs classes");
    FAILS(open_text("{format: cosmology, index: 1, classes: 3}", NULL, 0, &d), CVY_E_CONFIG, "one number (1)");
}

/* ---- shapes ---- */

/* The mean of x is 1 inside shapes and 0 elsewhere, to five standard errors, and the noise has its deviation. The box
 * around an isolated square has only labels of it, and that around a disc has also others. */
static void test_shapes_statistics(void)
{
    static float x[CELLS], y[CELLS];
    void *const field[] = {x, y};
    cvy_dataset *d = NULL;
    double sum[2] = {0}, square[2] = {0}, count[2] = {0};
    int64_t labels[3] = {0}, full[3] = {0}, boxes[3] = {0};
    OK(open_text("{format: shapes, size: 64, samples: 100, objects: 1, noise: 0.3}", NULL, 0, &d));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), "1x64x64") == 0);
    for (int i = 0; i < 100; i++) {
        int64_t low[2] = {64, 64}, high[2] = {-1, -1}, inside = 0, kind = 0;
        OK(cvy_dataset_read(d, i, 0, field));
        for (int64_t k = 0; k < 64 * 64; k++) {
            const int in = y[k] != 0;
            const double noise = x[k] - in;
            TRUE_THAT(y[k] == 0 || y[k] == 1 || y[k] == 2);
            labels[(int)y[k]]++;
            sum[in] += noise;
            square[in] += noise * noise;
            count[in]++;
            if (!in)
                continue;
            kind = (int64_t)y[k];
            inside++;
            for (int a = 0; a < 2; a++) {
                const int64_t at = a == 0 ? k / 64 : k % 64;
                low[a] = at < low[a] ? at : low[a];
                high[a] = at > high[a] ? at : high[a];
            }
        }
        if (inside > 0 && low[0] > 0 && low[1] > 0 && high[0] < 63 && high[1] < 63) {
            boxes[kind]++;
            full[kind] += inside == (high[0] - low[0] + 1) * (high[1] - low[1] + 1);
        }
    }
    printf("labels %lld %lld %lld, boxes %lld %lld\n", (long long)labels[0], (long long)labels[1], (long long)labels[2],
           (long long)boxes[1], (long long)boxes[2]);
    TRUE_THAT(boxes[1] > 10 && full[1] == 0 && boxes[2] > 10 && full[2] == boxes[2]);
    for (int in = 0; in < 2; in++) {
        TRUE_THAT(fabs(sum[in] / count[in]) < 5 * 0.3 / sqrt(count[in]));
        TRUE_THAT(fabs(square[in] / count[in] - 0.09) < 5 * 0.09 * sqrt(2 / count[in]));
    }
    cvy_dataset_destroy(&d);
}

static void test_shapes_sets(void)
{
    static float a[CELLS], b[CELLS], y[CELLS], z[CELLS];
    void *const left[] = {a, y}, *const right[] = {b, z};
    cvy_dataset *d = NULL, *later = NULL;
    OK(open_text("{format: shapes, size: 12, dimensions: 3}", NULL, 0, &d));
    OK(open_text("{format: shapes, size: 12, dimensions: 3, first: 7, samples: 5}", NULL, 0, &later));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 1024 && strcmp(cvy_shape_text(&info->field[0].shape), "1x12x12x12") == 0);
    TRUE_THAT(strcmp(cvy_shape_text(&info->field[1].shape), "12x12x12") == 0);
    TRUE_THAT(cvy_dataset_hash(d) != cvy_dataset_hash(later));
    OK(cvy_dataset_read(d, 9, 0, left));
    OK(cvy_dataset_read(later, 2, 3, right));
    TRUE_THAT(memcmp(a, b, sizeof(float) * 12 * 12 * 12) == 0 && memcmp(y, z, sizeof(float) * 12 * 12 * 12) == 0);
    OK(cvy_dataset_read(later, 3, 0, right));
    TRUE_THAT(memcmp(a, b, sizeof(float) * 12 * 12 * 12) != 0);
    cvy_dataset_destroy(&later);
    cvy_dataset_destroy(&d);
    FAILS(open_text("{format: shapes, dimensions: 4}", NULL, 0, &d), CVY_E_CONFIG, "dimensions");
}

/* ---- pictures ---- */

static void test_pictures(void)
{
    cvy_dataset *d = NULL, *later = NULL;
    cvy_raw a = {0}, b = {0};
    OK(open_text("{format: pictures, size: [20, 50], samples: 60, classes: 12}", NULL, 0, &d));
    OK(open_text("{format: pictures, size: [20, 50], first: 30, classes: 12}", NULL, 0, &later));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nclasses == 12 && cvy_dataset_reader_info(d)->varying && strchr(info->class_name[0], '-'));
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < i; k++)
            TRUE_THAT(strcmp(info->class_name[i], info->class_name[k]) != 0);
    int64_t low = 99, high = 0;
    for (int i = 0; i < 60; i++) {
        OK(cvy_dataset_read_raw(d, i, &a));
        TRUE_THAT(a.coding == CVY_CODING_PLAIN && a.dtype == CVY_DTYPE_U8 && a.label == i % 12 && a.shape.dim[0] == 3);
        for (int k = 1; k < 3; k++) {
            low = CVY_MIN(low, a.shape.dim[k]);
            high = CVY_MAX(high, a.shape.dim[k]);
        }
        if (i < 30)
            continue;
        OK(cvy_dataset_read_raw(later, i - 30, &b));
        TRUE_THAT(cvy_shape_equal(&a.shape, &b.shape) && memcmp(a.x.data, b.x.data, a.x.bytes) == 0);
    }
    TRUE_THAT(low >= 20 && low < 24 && high <= 50 && high > 46);
    cvy_dataset_destroy(&later);
    cvy_dataset_destroy(&d);
    FAILS(open_text("{format: pictures, size: [50, 20]}", NULL, 0, &d), CVY_E_CONFIG, "a range [low, high]");
    cvy_raw_free(&a);
    cvy_raw_free(&b);
}

/* Mean colours of the classes in one half predict the class in the other half better than chance, but far from
 * perfectly. */
static void test_pictures_classes(void)
{
    enum { CLASSES = 10, EACH = 60, PIXELS = 32 * 32 };
    static double mean[CLASSES * EACH][3], centre[CLASSES][3];
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    int right = 0;
    OK(open_text("{format: pictures, size: 32, samples: 600}", NULL, 0, &d));
    for (int i = 0; i < CLASSES * EACH; i++) {
        OK(cvy_dataset_read_raw(d, i, &raw));
        for (int k = 0; k < 3 * PIXELS; k++)
            mean[i][k / PIXELS] += ((uint8_t *)raw.x.data)[k] / (double)PIXELS;
        for (int c = 0; c < 3 && i < CLASSES * EACH / 2; c++)
            centre[i % CLASSES][c] += mean[i][c] / (EACH / 2.0);
    }
    for (int i = CLASSES * EACH / 2; i < CLASSES * EACH; i++) {
        double least = INFINITY;
        int nearest = 0;
        for (int k = 0; k < CLASSES; k++) {
            double distance = 0;
            for (int c = 0; c < 3; c++)
                distance += (mean[i][c] - centre[k][c]) * (mean[i][c] - centre[k][c]);
            if (distance < least) {
                least = distance;
                nearest = k;
            }
        }
        right += nearest == i % CLASSES;
    }
    printf("classes by mean colour: %d of %d\n", right, CLASSES * EACH / 2);
    TRUE_THAT(right > 36 && right < 180); /* chance: 30, with a standard deviation of 5.2 */
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
}

static void test_pictures_jpeg(void)
{
    cvy_dataset *plain = NULL, *coded = NULL;
#if CVY_HAVE_JPEG
    static float x[2][3 * 48 * 48];
    int32_t label[2];
    void *const left[] = {x[0], &label[0]}, *const right[] = {x[1], &label[1]};
    cvy_raw raw = {0};
    OK(open_text("{format: pictures, size: 48, samples: 8, noise: 0}", NULL, 0, &plain));
    OK(open_text("{format: pictures, size: 48, samples: 8, noise: 0, encode: jpeg, quality: 97}", NULL, 0, &coded));
    for (int i = 0; i < 8; i++) {
        double off = 0;
        OK(cvy_dataset_read_raw(coded, i, &raw));
        TRUE_THAT(raw.coding == CVY_CODING_JPEG && raw.x.bytes < 3 * 48 * 48 && raw.label == i);
        OK(cvy_dataset_read(plain, i, 0, left));
        OK(cvy_dataset_read(coded, i, 0, right));
        for (int k = 0; k < 3 * 48 * 48; k++)
            off += fabs(x[0][k] - x[1][k]) * 255 / (3 * 48 * 48);
        TRUE_THAT(label[0] == label[1] && off < 12); /* JPEG stores colour at half resolution */
    }
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&plain);
    cvy_dataset_destroy(&coded);
#else
    (void)plain;
    FAILS(open_text("{format: pictures, encode: jpeg}", NULL, 0, &coded), CVY_E_UNSUPPORTED, "has no JPEG");
#endif
}

int main(void)
{
    test_fft();
    test_cosmology_statistics();
    test_cosmology_volumes();
    test_cosmology_times();
    test_cosmology_sets();
    test_shapes_statistics();
    test_shapes_sets();
    test_pictures();
    test_pictures_classes();
    test_pictures_jpeg();
    return 0;
}
