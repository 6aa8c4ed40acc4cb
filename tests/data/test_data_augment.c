/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_augment.c: augmentation of x: each step's arithmetic, that it depends on (seed, epoch, number) alone, what
 * it does on a test set, and wrong lists of steps. */
#include "test_data_augment.h"

#include "format/format_protobuf.h"

static uint8_t bytes[N];

static void run(const char *text, int random, uint64_t epoch, int64_t number, float *out)
{
    cvy_augment *a = NULL;
    uint8_t copy[N];
    memcpy(copy, bytes, sizeof copy);
    OK(make(text, random, &info, &a));
    const cvy_picture p = {.dtype = CVY_DTYPE_U8, .C = C, .H = H, .W = W, .data = copy};
    OK(cvy_augment_apply(a, p, epoch, number, &turn, out));
    TRUE_THAT(memcmp(copy, bytes, sizeof copy) == 0);
    cvy_augment_destroy(&a);
}

static void test_values(void)
{
    float x[N];
    run("[]", 1, 0, 0, x);
    for (int i = 0; i < N; i++)
        TRUE_THAT(near(x[i], bytes[i] / 255.0));
    run("[{scale: 0.5}]", 1, 0, 0, x);
    TRUE_THAT(near(x[20], bytes[20] * 0.5));
    run("[{mean: [0.25, 0.5]}, {std: 2}]", 1, 0, 0, x);
    TRUE_THAT(near(x[3], (bytes[3] / 255.0 - 0.25) / 2) && near(x[N - 1], (bytes[N - 1] / 255.0 - 0.5) / 2));
    run("{normalize: {mean: 0.25, std: [2, 4]}}", 0, 0, 0, x);
    TRUE_THAT(near(x[3], (bytes[3] / 255.0 - 0.25) / 2) && near(x[N - 1], (bytes[N - 1] / 255.0 - 0.25) / 4));
    run("[{scale: 1}, {log: 2}]", 0, 0, 0, x);
    TRUE_THAT(near(x[9], log1p(bytes[9] / 2.0)));
}

/* A mean that f32 rounds by a tenth of the deviation: (x - mean) / std as in f64. */
static void test_far_from_zero(void)
{
    enum { M = 6 };
    const cvy_reader_info reals = {.dtype = CVY_DTYPE_F32, .shape = {1, {M}}};
    const float of[M] = {101325, 101325.0625F, 101324.9375F, 101325.0390625F, 0, 1e30F};
    float stored[M], x[M];
    cvy_augment *a = NULL;
    memcpy(stored, of, sizeof stored);
    OK(make("[{normalize: {mean: 101325.035, std: 0.05}}]", 0, &reals, &a));
    OK(cvy_augment_apply(a, (cvy_picture){.dtype = CVY_DTYPE_F32, .C = M, .H = 1, .W = 1, .data = stored}, 0, 0, &turn,
                         x));
    for (int i = 0; i < M; i++)
        TRUE_THAT(near(x[i], ((double)of[i] - 101325.035) / 0.05));
    cvy_augment_destroy(&a);
}

static void test_geometry(void)
{
    float plain[N], x[C * 11 * 11];
    run("[]", 0, 0, 0, plain);
    run("[{mirror: {share: 1}}]", 1, 0, 0, x);
    for (int r = 0; r < C * H; r++)
        for (int i = 0; i < W; i++)
            TRUE_THAT(x[r * W + i] == plain[r * W + W - 1 - i]);
    run("[{mirror: {share: 1, axis: height}}]", 1, 0, 0, x);
    for (int c = 0; c < C; c++)
        for (int y = 0; y < H; y++)
            TRUE_THAT(memcmp(&x[(c * H + y) * W], &plain[(c * H + H - 1 - y) * W], W * sizeof *x) == 0);
    run("[{mirror: {share: 1}}]", 0, 0, 0, x);
    TRUE_THAT(memcmp(x, plain, sizeof plain) == 0);
    run("[{center_crop: [3, 5]}]", 1, 0, 0, x);
    for (int c = 0; c < C; c++)
        for (int y = 0; y < 3; y++)
            TRUE_THAT(memcmp(&x[(c * 3 + y) * 5], &plain[(c * H + y + 1) * W + 1], 5 * sizeof *x) == 0);
    /* A test set's crop is central. The padding shows only if the crop is larger than the picture. */
    run("[{random_crop: {size: 11, pad: 3}}]", 0, 0, 0, x);
    for (int y = 0; y < 11; y++)
        for (int i = 0; i < 11; i++)
            TRUE_THAT(x[y * 11 + i] == (y < 3 || y >= 8 || i < 2 || i >= 9 ? 0 : plain[(y - 3) * W + i - 2]));
    run("[{random_crop: {pad: 2}}]", 0, 0, 0, x);
    TRUE_THAT(memcmp(x, plain, sizeof plain) == 0);
}

/* Every position of the crop occurs, and each shows the right window. */
static void test_random_crop(void)
{
    float plain[N], x[N];
    int seen[5][5] = {{0}};
    run("[]", 0, 0, 0, plain);
    for (int64_t number = 0; number < 400; number++) {
        int found = 0;
        run("[{random_crop: {pad: 2}}]", 1, 3, number, x);
        for (int top = 0; top < 5; top++) {
            for (int left = 0; left < 5; left++) {
                int same = 1;
                for (int y = 0; y < H && same; y++) {
                    for (int i = 0; i < W && same; i++) {
                        const int from_y = y + top - 2, from_x = i + left - 2;
                        const int inside = from_y >= 0 && from_y < H && from_x >= 0 && from_x < W;
                        same = x[y * W + i] == (inside ? plain[from_y * W + from_x] : 0);
                    }
                }
                seen[top][left] += same;
                found += same;
            }
        }
        TRUE_THAT(found == 1);
    }
    for (int i = 0; i < 25; i++)
        TRUE_THAT(seen[i / 5][i % 5] > 3);
}

static void test_reproducible(void)
{
    const char *steps = "[mirror, {random_crop: {pad: 2}}, {mean: 0.4}]";
    float a[N], b[N];
    int differ_epoch = 0, differ_number = 0, mirrored = 0;
    for (int64_t number = 0; number < 64; number++) {
        run(steps, 1, 5, number, a);
        run(steps, 1, 5, number, b);
        TRUE_THAT(memcmp(a, b, sizeof a) == 0);
        run(steps, 1, 6, number, b);
        differ_epoch += memcmp(a, b, sizeof a) != 0;
        run(steps, 1, 5, number + 64, b);
        differ_number += memcmp(a, b, sizeof a) != 0;
        run("[mirror]", 1, 0, number, a);
        mirrored += near(a[0], bytes[W - 1] / 255.0);
    }
    TRUE_THAT(differ_epoch > 50 && differ_number > 50 && mirrored > 16 && mirrored < 48);
}

/* Shrinking by two with the widened filter keeps a constant and a ramp. Enlarging keeps the values of the corners. */
static void test_resize(void)
{
    enum { S = 16 };
    static float in[S * S], out[64 * 64];
    const cvy_reader_info square = {.dtype = CVY_DTYPE_F32, .shape = {3, {1, S, S}}};
    for (int i = 0; i < S * S; i++)
        in[i] = (float)(i / S + 10 * (i % S));
    const cvy_picture p = {.dtype = CVY_DTYPE_F32, .C = 1, .H = S, .W = S, .data = in};
    cvy_augment *a = NULL;
    OK(make("[{resize: {size: 8, fit: stretch}}]", 0, &square, &a));
    OK(cvy_augment_apply(a, p, 0, 0, &turn, out));
    for (int y = 1; y < 7; y++)
        for (int x = 1; x < 7; x++)
            TRUE_THAT(near(out[y * 8 + x], 2 * y + 0.5 + 10 * (2 * x + 0.5)));
    cvy_augment_destroy(&a);
    OK(make("[{resize: [64, 32]}]", 0, &square, &a));
    OK(cvy_augment_apply(a, p, 0, 0, &turn, out));
    TRUE_THAT(strcmp(cvy_shape_text(cvy_augment_shape(a)), "1x64x32") == 0);
    TRUE_THAT(out[0] >= in[0] && out[64 * 32 - 1] <= in[S * S - 1]);
    cvy_augment_destroy(&a);
}

/* ---- steps with windows ---- */

enum { S = 64 };

/* Channel 0 holds each pixel's column and channel 1 its row, so that a result shows where it was taken from. */
static cvy_picture places(void)
{
    static float in[2 * S * S];
    for (int i = 0; i < S * S; i++) {
        in[i] = (float)(i % S) + 0.5f;
        in[S * S + i] = (float)(i / S) + 0.5f;
    }
    return (cvy_picture){.dtype = CVY_DTYPE_F32, .C = 2, .H = S, .W = S, .data = in};
}

static const cvy_reader_info of_places = {.dtype = CVY_DTYPE_F32, .shape = {3, {2, S, S}}};

static void run_places(const char *text, int random, uint64_t epoch, int64_t number, float *out)
{
    cvy_augment *a = NULL;
    OK(make(text, random, &of_places, &a));
    OK(cvy_augment_apply(a, places(), epoch, number, &turn, out));
    cvy_augment_destroy(&a);
}

/* Windows are whole pixels inside the picture, with areas and ratios as asked for, and they are spread over the
 * picture. */
static void test_random_resized_crop(void)
{
    enum { OUT = 16 };
    static float x[2 * OUT * OUT], again[2 * OUT * OUT];
    double area_sum = 0, area_least = 1, area_most = 0, left_sum = 0;
    for (int64_t number = 0; number < 400; number++) {
        run_places("[{random_resized_crop: {size: 16, filter: bilinear}}]", 1, 2, number, x);
        const float *columns = x + 5 * OUT, *lines = x + OUT * OUT + 5;
        const double step_x = columns[9] - columns[8], step_y = lines[9 * OUT] - lines[8 * OUT];
        const double left = columns[8] - 8.5 * step_x, top = lines[8 * OUT] - 8.5 * step_y;
        const double area = step_x * step_y * OUT * OUT / (S * S), ratio = step_x / step_y;
        TRUE_THAT(fabs(left - nearbyint(left)) < 1e-3 && fabs(top - nearbyint(top)) < 1e-3);
        TRUE_THAT(left > -1e-3 && top > -1e-3 && left + OUT * step_x < S + 1e-3 && top + OUT * step_y < S + 1e-3);
        TRUE_THAT(area > 0.07 && ratio > 0.7 && ratio < 1.43);
        area_sum += area;
        area_least = fmin(area_least, area);
        area_most = fmax(area_most, area);
        left_sum += left / fmax(S - OUT * step_x, 1);
        run_places("[{random_resized_crop: {size: 16, filter: bilinear}}]", 1, 2, number, again);
        TRUE_THAT(memcmp(x, again, sizeof x) == 0);
        run_places("[{random_resized_crop: {size: 16, filter: bilinear}}]", 1, 3, number, again);
        TRUE_THAT(memcmp(x, again, sizeof x) != 0);
    }
    /* Areas that do not fit are drawn again, so their mean is less than (0.08 + 1) / 2. */
    TRUE_THAT(area_sum > 0.42 * 400 && area_sum < 0.56 * 400 && area_least < 0.12 && area_most > 0.85);
    TRUE_THAT(left_sum > 0.38 * 400 && left_sum < 0.55 * 400);
    run_places("[{random_resized_crop: {size: 16, scale: 0.25, ratio: 1}}]", 1, 0, 7, x);
    TRUE_THAT(fabs(x[9] - x[8] - 2) < 1e-3);
    /* Without random choices it is the middle 7/8. */
    run_places("[{random_resized_crop: 16}]", 0, 5, 9, x);
    TRUE_THAT(fabs(x[8 * OUT + 8] - x[8 * OUT + 7] - 3.5) < 0.02 && near(x[8 * OUT + 8] + x[8 * OUT + 7], S));
    /* No window of this ratio fits, so the result is the middle, as wide as possible. */
    run_places("[{random_resized_crop: {size: 16, scale: 1, ratio: 4}}]", 1, 0, 0, x);
    TRUE_THAT(fabs(x[9] - x[8] - 4) < 1e-3 && fabs(x[OUT * OUT + 9 * OUT] - x[OUT * OUT + 8 * OUT] - 1) < 1e-3);
}

/* A crop after a resize is a window of the resized picture. */
static void test_joined(void)
{
    static float all[2 * 40 * 40], x[2 * 24 * 30];
    run_places("[{resize: 40}, {scale: 1}]", 1, 0, 0, all);
    run_places("[{resize: 40}, {center_crop: [24, 30]}, {scale: 1}]", 1, 0, 0, x);
    for (int i = 0; i < 2 * 24 * 30; i++)
        TRUE_THAT(near(x[i], all[(i / 720 * 40 + 8 + i / 30 % 24) * 40 + 5 + i % 30]));
    int differ = 0;
    for (int64_t number = 0; number < 20; number++) {
        run_places("[{resize: 40}, {random_crop: [24, 30]}, {scale: 1}]", 1, 0, number, x);
        const int left = (int)lrint((x[15] - all[15]) / 1.6), top = (int)lrint((x[720 + 300] - all[1600 + 400]) / 1.6);
        TRUE_THAT(left >= 0 && left <= 10 && top >= 0 && top <= 16);
        differ += left != 5 || top != 8;
        for (int i = 0; i < 2 * 24 * 30; i++)
            TRUE_THAT(near(x[i], all[(i / 720 * 40 + top + i / 30 % 24) * 40 + left + i % 30]));
    }
    TRUE_THAT(differ > 10);
}

/* The window asked of the decoder holds everything that the step then uses, and is no larger than necessary. */
static void test_want(void)
{
    cvy_augment *a = NULL;
    cvy_picture_window w;
    OK(make("[{random_resized_crop: 20}, mirror]", 1, &of_places, &a));
    for (int64_t number = 0; number < 100; number++) {
        TRUE_THAT(cvy_augment_window(a, 1, number, 400, 300, &w));
        TRUE_THAT(w.top >= 0 && w.left >= 0 && w.top + w.height <= 400 && w.left + w.width <= 300);
        TRUE_THAT(near((float)w.scale, fmax(20.0 / (double)w.height, 20.0 / (double)w.width)));
    }
    cvy_augment_destroy(&a);
    OK(make("[{resize: 50}, {center_crop: 40}]", 0, &of_places, &a));
    TRUE_THAT(cvy_augment_window(a, 0, 0, 200, 300, &w) && near((float)w.scale, 0.25));
    TRUE_THAT(w.top <= 20 && w.top >= 10 && w.left <= 70 && w.left >= 60 && w.top + w.height >= 180 &&
              w.left + w.width >= 230 && w.width <= 180);
    cvy_augment_destroy(&a);
    OK(make("[{random_crop: {size: 32, pad: 4}}]", 1, &of_places, &a));
    TRUE_THAT(cvy_augment_window(a, 0, 0, 32, 32, &w) && w.height >= 28 && w.height <= 32 && w.scale == 1);
    TRUE_THAT(!cvy_augment_window(a, 0, 0, 20, 90, &w)); /* it does not fit: the step itself reports it */
    cvy_augment_destroy(&a);
    static const char *const all[] = {"[]", "[mirror, {resize: 9}]", "[{resize: {size: 9, decode: full}}]"};
    for (int i = 0; i < CVY_COUNT(all); i++) {
        OK(make(all[i], 1, &of_places, &a));
        TRUE_THAT(!cvy_augment_window(a, 0, 0, 90, 90, &w));
        cvy_augment_destroy(&a);
    }
}

static void test_rotate90(void)
{
    static float x[2 * S * S], plain[N], y[N];
    int seen[4] = {0}, turned = 0;
    for (int64_t number = 0; number < 120; number++) {
        run_places("[rotate90]", 1, 0, number, x);
        const int corner = (int)x[0] + (int)x[S * S]; /* column and row of the pixel in the corner */
        const int k = corner == 0 ? 0 : corner == 2 * (S - 1) ? 2 : x[0] > x[S * S] ? 1 : 3;
        seen[k]++;
        for (int i = 0; i < S * S; i++) {
            const int row = i / S, col = i % S;
            const int from_row[] = {row, col, S - 1 - row, S - 1 - col};
            const int from_col[] = {col, S - 1 - row, S - 1 - col, row};
            TRUE_THAT((int)x[i] == from_col[k] && (int)x[S * S + i] == from_row[k]);
        }
    }
    for (int k = 0; k < 4; k++)
        TRUE_THAT(seen[k] > 12);
    run("[]", 1, 0, 0, plain);
    for (int64_t number = 0; number < 60; number++) { /* not square: turned by 180 degrees or not at all */
        run("[{rotate90: {share: 0.5}}]", 1, 0, number, y);
        int same = 1;
        for (int i = 0; i < N; i++)
            same &= y[i] == plain[i / (H * W) * H * W + H * W - 1 - i % (H * W)];
        turned += same;
        TRUE_THAT(same || memcmp(y, plain, sizeof y) == 0);
    }
    TRUE_THAT(turned > 15 && turned < 45);
    run("[rotate90]", 0, 0, 1, y);
    TRUE_THAT(memcmp(y, plain, sizeof y) == 0);
}

static void test_cutout(void)
{
    static float plain[2 * S * S], x[2 * S * S], again[2 * S * S];
    int whole = 0, first = -1, moved = 0;
    run_places("[]", 1, 0, 0, plain);
    for (int64_t number = 0; number < 50; number++) {
        run_places("[{cutout: {size: [10, 6], value: -3}}]", 1, 0, number, x);
        run_places("[{cutout: {size: [10, 6], value: -3}}]", 1, 0, number, again);
        TRUE_THAT(memcmp(x, again, sizeof x) == 0);
        int count = 0, at = -1;
        for (int i = 0; i < S * S; i++) {
            TRUE_THAT((x[i] == -3 && x[S * S + i] == -3) || (x[i] == plain[i] && x[S * S + i] == plain[S * S + i]));
            at = x[i] == -3 && at < 0 ? i : at;
            count += x[i] == -3;
        }
        TRUE_THAT(count >= 15 && count <= 60);
        whole += count == 60;
        moved += first >= 0 && at != first;
        first = at;
    }
    TRUE_THAT(whole > 25 && moved > 40);
    /* On bytes the cut-out pixels are zero. After a mean the value of cutout is in the units of that step. */
    float b[N];
    run("[{cutout: 3}]", 1, 0, 4, b);
    int zeros = 0;
    for (int i = 0; i < H * W; i++)
        zeros += b[i] == 0 && b[H * W + i] == 0;
    TRUE_THAT(zeros >= 1 && zeros <= 9);
    run("[{mean: 0.5}, {cutout: {size: 99, value: 0.25}}, {std: 2}]", 1, 0, 0, b);
    for (int i = 0; i < N; i++)
        TRUE_THAT(near(b[i], 0.125) || near(b[i], (bytes[i] / 255.0 - 0.5) / 2));
    run("[{cutout: 99}]", 0, 0, 0, b);
    TRUE_THAT(near(b[11], bytes[11] / 255.0));
}

/* Linear steps are combined into one. A step that is not linear or that writes zeros gets values after all of them. */
static void test_order_of_values(void)
{
    float x[C * 11 * 11];
    run("[{mean: 0.25}, {scale: 4}, {mean: [0.5, 1]}, {std: [2, 8]}]", 1, 0, 0, x);
    TRUE_THAT(near(x[5], ((bytes[5] - 0.25) * 4 - 0.5) / 2) && near(x[N - 2], ((bytes[N - 2] - 0.25) * 4 - 1) / 8));
    run("[{std: 0.5}, {asinh: [3, 5]}, {mean: 1}]", 1, 0, 0, x);
    TRUE_THAT(near(x[5], asinh(bytes[5] / 255.0 / 0.5 / 3) - 1));
    TRUE_THAT(near(x[N - 2], asinh(bytes[N - 2] / 255.0 / 0.5 / 5) - 1));
    run("[{scale: 2}, {log: [1, 4]}]", 1, 0, 0, x);
    TRUE_THAT(near(x[5], log1p(bytes[5] * 2.0)) && near(x[N - 2], log1p(bytes[N - 2] * 2.0 / 4)));
    run("[{scale: 0}, {mean: 3}]", 1, 0, 0, x);
    TRUE_THAT(x[0] == -3 && x[N - 1] == -3);
    run("[{mean: 0.5}, {random_crop: {size: 11, pad: 3}}, {std: 0.5}]", 0, 0, 0, x);
    TRUE_THAT(x[0] == 0 && near(x[3 * 11 + 2], (bytes[0] / 255.0 - 0.5) / 0.5));
    run("[{mean: 0.5}, {mirror: {share: 1}}]", 1, 0, 0, x);
    TRUE_THAT(near(x[0], bytes[W - 1] / 255.0 - 0.5));
    /* Real numbers far from zero keep their small differences. */
    float far[] = {1000000.25f, 1000001.5f, 999999, 1000000}, y[4];
    const cvy_reader_info vector = {.dtype = CVY_DTYPE_F32, .shape = {1, {4}}};
    const cvy_picture p = {.dtype = CVY_DTYPE_F32, .C = 4, .H = 1, .W = 1, .data = far};
    cvy_augment *a = NULL;
    OK(make("[{mean: 1e6}, {std: 2}]", 1, &vector, &a));
    OK(cvy_augment_apply(a, p, 0, 0, &turn, y));
    TRUE_THAT(y[0] == 0.125f && y[1] == 0.75f && y[2] == -0.5f && y[3] == 0 && far[0] == 1000000.25f);
    cvy_augment_destroy(&a);
}

static void test_wrong_lists(void)
{
    cvy_augment *a = NULL;
    const cvy_reader_info vector = {.dtype = CVY_DTYPE_F32, .shape = {1, {4}}};
    FAILS(make("[mirorr]", 1, &info, &a), CVY_E_CONFIG, "did you mean 'mirror'");
    FAILS(make("[{random_crop: {size: 4, padd: 1}}]", 1, &info, &a), CVY_E_CONFIG, "pad");
    FAILS(make("[{mean: [1, 2, 3]}]", 1, &info, &a), CVY_E_CONFIG, "mean has 3 values, expected 1 or 2");
    FAILS(make("[{random_crop: 9}]", 1, &info, &a), CVY_E_SHAPE,
          "random_crop of 9x9 does not fit into a picture of 5x7");
    FAILS(make("[{random_resized_crop: {size: 4, scale: [1, 0.5]}}]", 1, &info, &a), CVY_E_CONFIG,
          "scale of random_resized_crop is one number, or the least and the largest");
    FAILS(make("[{random_resized_crop: {size: 4, scale: 2}}]", 1, &info, &a), CVY_E_CONFIG, "scale");
    FAILS(make("[{asinh: [1, 2, 3]}]", 1, &info, &a), CVY_E_CONFIG, "asinh has 3 values, expected 1 or 2");
    FAILS(make("[{resize: {size: 4, filter: lanczos}}]", 1, &info, &a), CVY_E_CONFIG, "triangle|bilinear|area");
    FAILS(make("[{resize: 6}, {center_crop: 7}]", 1, &info, &a), CVY_E_SHAPE, "center_crop of 7x7 does not fit");
    FAILS(make("[{std: 0}]", 1, &info, &a), CVY_E_CONFIG, "");
    FAILS(make("[mirror]", 1, &vector, &a), CVY_E_CONFIG,
          "mirror needs samples of the shape [C, H, W], [C, D, H, W] or [C, T], these are 4");
    FAILS(make("[{mirror: true, resize: 3}]", 1, &info, &a), CVY_E_CONFIG,
          "each list item is one augmentation operation");
    OK(make("[{mean: [1, 2, 3, 4]}]", 1, &vector, &a));
    cvy_augment_destroy(&a);
}

/* Writes a BlobProto of Caffe with the values 0.5 i: as old dimensions and packed numbers, or as a shape and doubles
 * one by one. */
static void write_mean(const char *path, int64_t c, int64_t h, int64_t w, int is_new)
{
    uint8_t data[16 * N], *to = data;
    if (is_new) {
        to = cvy_wire_put_head(to, 7, 5);
        to = cvy_wire_put_head(to, 1, 3);
        to = cvy_wire_put_varint(cvy_wire_put_varint(cvy_wire_put_varint(to, (uint64_t)c), (uint64_t)h), (uint64_t)w);
    } else {
        const int64_t dim[] = {1, c, h, w};
        for (uint32_t i = 0; i < 4; i++)
            to = cvy_wire_put_varint(cvy_wire_put_key(to, i + 1, CVY_WIRE_VARINT), (uint64_t)dim[i]);
        to = cvy_wire_put_head(to, 5, (uint64_t)(4 * N));
    }
    for (int i = 0; i < N; i++) {
        const double wide = 0.5 * i;
        const float narrow = (float)wide;
        if (is_new)
            to = cvy_wire_put_key(to, 8, CVY_WIRE_64);
        memcpy(to, is_new ? (const void *)&wide : &narrow, is_new ? sizeof wide : sizeof narrow);
        to += is_new ? sizeof wide : sizeof narrow;
    }
    OK(cvy_file_replace(path, data, (size_t)(to - data)));
}

/* What Caffe does to a picture: (x - mean) * scale before the crop, which takes the mean from the same place. */
static void test_mean_file(void)
{
    float x[N];
    cvy_augment *a = NULL;
    char path[300], text[400];
    scratch_make();
    snprintf(path, sizeof path, "%s/mean.binaryproto", scratch_folder);
    for (int is_new = 0; is_new < 2; is_new++) {
        write_mean(path, C, H, W, is_new);
        snprintf(text, sizeof text, "[{mean_file: %s}]", path);
        run(text, 0, 0, 0, x);
        for (int i = 0; i < N; i++)
            TRUE_THAT(x[i] == (float)bytes[i] - 0.5F * (float)i);
        snprintf(text, sizeof text, "[{mean_file: %s}, {center_crop: [3, 5]}, {scale: 0.25}]", path);
        run(text, 0, 0, 0, x);
        for (int c = 0; c < C; c++)
            for (int i = 0; i < 15; i++) {
                const int from = (c * H + i / 5 + 1) * W + i % 5 + 1;
                TRUE_THAT(x[c * 15 + i] == ((float)bytes[from] - 0.5F * (float)from) * 0.25F);
            }
    }
    snprintf(text, sizeof text, "[{center_crop: [3, 5]}, {mean_file: %s}]", path);
    FAILS(make(text, 0, &info, &a), CVY_E_SHAPE, "pictures are 2x3x5 at this step: put it before a crop");
    FAILS(make("[{mean_file: nowhere.binaryproto}]", 0, &info, &a), CVY_E_IO, "nowhere.binaryproto");
    /* Pictures whose sizes are not known when the list is read. */
    cvy_reader_info varying = info;
    varying.varying = 1;
    snprintf(text, sizeof text, "[{mean_file: %s}]", path);
    OK(make(text, 0, &varying, &a));
    TRUE_THAT(cvy_shape_equal(cvy_augment_shape(a), &info.shape));
    FAILS(cvy_augment_apply(a, (cvy_picture){.dtype = CVY_DTYPE_U8, .C = C, .H = H - 1, .W = W, .data = bytes}, 0, 0,
                            &turn, x),
          CVY_E_SHAPE, "a picture of 4x7 with 2 channels, but the mean");
    cvy_value_step step[CVY_VALUE_STEPS_MAX];
    int nstep, moves;
    FAILS(cvy_augment_value_steps(a, 1, step, &nstep, &moves), CVY_E_UNSUPPORTED, "mean_file");
    cvy_augment_destroy(&a);
    for (size_t cut = 0; cut < 60; cut++) {
        char *data = NULL;
        size_t n = 0;
        write_mean(path, C, H, W, 0);
        OK(cvy_file_read(path, 1 << 20, &data, &n));
        OK(cvy_file_replace(path, data, cut));
        cvy_mem_free(&data);
        TRUE_THAT(make(text, 0, &info, &a) < 0);
    }
    scratch_remove();
}

static void test_reverse_channels(void)
{
    float plain[N], x[N];
    run("[]", 0, 0, 0, plain);
    run("[reverse_channels]", 0, 0, 0, x);
    for (int c = 0; c < C; c++)
        TRUE_THAT(memcmp(&x[c * H * W], &plain[(C - 1 - c) * H * W], H * W * sizeof *x) == 0);
    run("[{normalize: {mean: [0.1, 0.2]}}, reverse_channels, {std: [2, 4]}]", 0, 0, 0, x);
    TRUE_THAT(near(x[0], (bytes[H * W] / 255.0 - 0.2) / 2) && near(x[N - 1], (bytes[H * W - 1] / 255.0 - 0.1) / 4));
}

/* A table of more columns than any other list of options may have: bytes, as they are applied and as they are described
 * to other programs. */
static void test_many_channels(void)
{
    enum { COLUMNS = 300 };
    static uint8_t stored[COLUMNS];
    static float x[COLUMNS];
    char list[32 * COLUMNS], *end = list;
    const cvy_reader_info table = {.dtype = CVY_DTYPE_U8, .shape = {1, {COLUMNS}}};
    cvy_augment *a = NULL;
    end += sprintf(end, "[{normalize: {mean: [0");
    for (int i = 1; i < COLUMNS; i++)
        end += sprintf(end, ", %g", 1e-3 * i);
    end += sprintf(end, "], std: [1");
    for (int i = 1; i < COLUMNS; i++)
        end += sprintf(end, ", %g", 2.0 + i);
    sprintf(end, "]}}]");
    OK(make(list, 0, &table, &a));
    for (int i = 0; i < COLUMNS; i++)
        stored[i] = (uint8_t)(7 * i);
    OK(cvy_augment_apply(a, (cvy_picture){.dtype = CVY_DTYPE_U8, .C = COLUMNS, .H = 1, .W = 1, .data = stored}, 0, 0,
                         &turn, x));
    cvy_value_step step[CVY_VALUE_STEPS_MAX];
    int nstep = 0, moves = 1;
    OK(cvy_augment_value_steps(a, 1, step, &nstep, &moves));
    TRUE_THAT(nstep == 1 && !moves && step[0].n == COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        TRUE_THAT(near(x[i], (stored[i] - 1e-3 * i) / (i ? 2.0 + i : 1))); /* a table is no picture */
        TRUE_THAT(near(x[i], (stored[i] - step[0].shift[i]) * step[0].by[i]));
    }
    cvy_augment_destroy(&a);
    strcpy(strstr(list, ", std"), "}}]");
    FAILS(make(list, 0, &info, &a), CVY_E_CONFIG, "normalize has 300 values, expected 1 or 2");
    FAILS(make("[{normalize: {mean: [1, .nan]}}]", 0, &info, &a), CVY_E_CONFIG,
          "normalize: mean is \".nan\", expected a number");
    FAILS(make("[{std: [1, -2]}]", 0, &info, &a), CVY_E_CONFIG, "std: -2 is not more than 0");
}

/* A random crop of the size of the pictures, without a pad, cannot move; it is said for training only. */
static void test_idle(void)
{
    static const struct {
        const char *steps;
        int random, idle;
    } cases[] = {
        {"[{random_crop: {size: [5, 7]}}]", 1, 1}, {"[random_crop]", 1, 1},
        {"[{random_crop: {size: [5, 7]}}]", 0, 0}, {"[{random_crop: {size: [5, 7], pad: 1}}]", 1, 0},
        {"[{random_crop: {size: [4, 7]}}]", 1, 0}, {"[{resize: 9}, {random_crop: 9}]", 1, 1},
        {"[{resize: 9}, {random_crop: 8}]", 1, 0}, {"[{random_resized_crop: {size: [5, 7]}}]", 1, 0},
        {"[{center_crop: {size: [5, 7]}}]", 1, 0}, {"[mirror]", 1, 0},
    };
    for (size_t i = 0; i < CVY_COUNT(cases); i++) {
        cvy_augment *a = NULL;
        OK(make(cases[i].steps, cases[i].random, &info, &a));
        TRUE_THAT((strstr(cvy_augment_idle(a), "random_crop has no effect") != NULL) == cases[i].idle);
        TRUE_THAT(cases[i].idle || !*cvy_augment_idle(a));
        cvy_augment_destroy(&a);
    }
}

int main(void)
{
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)(37 * i + 11);
    test_values();
    test_far_from_zero();
    test_geometry();
    test_random_crop();
    test_reproducible();
    test_resize();
    test_random_resized_crop();
    test_joined();
    test_want();
    test_rotate90();
    test_cutout();
    test_order_of_values();
    test_wrong_lists();
    test_mean_file();
    test_reverse_channels();
    test_many_channels();
    test_idle();
    cvy_augment_scratch_free(&turn);
    return 0;
}
