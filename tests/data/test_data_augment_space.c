/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_augment_space.c: operations that move the positions of volumes and series: what becomes of each element, of
 * every random outcome, and that maps of y and masks go with x. */
#include "test_data_augment.h"

enum { CHANNELS = 2, MOST = CHANNELS * 6 * 6 * 6, DRAWS = 200 };

static float x[MOST], y[MOST], x_out[8 * MOST], y_out[8 * MOST], mask_out[8 * MOST];
static int32_t labels_out[8 * MOST];
static uint8_t bytes[MOST];

static int64_t space_of(const cvy_shape *s, int64_t n[3])
{
    for (int i = 0; i < 3; i++)
        n[i] = s->ndim - 3 + i < 1 ? 1 : s->dim[s->ndim - 3 + i];
    return n[0] * n[1] * n[2];
}

static cvy_reader_info info_of(int ndim, const int64_t *dim, cvy_dtype dtype)
{
    cvy_reader_info i = {.dtype = dtype, .shape = cvy_shape_make(ndim, dim), .has_y = 1, .has_weight = 1};
    i.y_shape = i.weight_shape = cvy_shape_make(ndim - 1, dim + 1);
    return i;
}

static void set_numbers(const cvy_reader_info *of)
{
    int64_t n[3];
    const int64_t plane = space_of(&of->shape, n);
    for (int64_t i = 0; i < CHANNELS * plane; i++) {
        x[i] = (float)(i + 1);
        bytes[i] = (uint8_t)(i + 1);
        y[i % plane] = (float)(i % plane + 1);
    }
}

static cvy_picture planes_of(const cvy_reader_info *of)
{
    const cvy_raw raw = {
        .dtype = of->dtype, .shape = of->shape, .x.data = of->dtype == CVY_DTYPE_U8 ? (void *)bytes : x};
    return cvy_raw_planes(&raw);
}

/* Applies the list to sample `number`; y is a field and the mask is y. Checks that both channels, y and the mask have
 * gone the same way, and gives the elements of channel 0 by their numbers in the stored sample, from 1; 0: outside. */
static void apply(const char *list, const cvy_reader_info *of, int64_t number, int64_t *from)
{
    cvy_augment *a = NULL;
    int64_t n[3], m[3];
    char text[300];
    const int64_t stored = space_of(&of->shape, m);
    snprintf(text, sizeof text, "[{target: field}, %s]", list);
    OK(make(text, 1, of, &a));
    OK(cvy_augment_apply_all(a, planes_of(of), y, y, 3, number, &turn, x_out, y_out, mask_out));
    const cvy_shape *shape = cvy_augment_shape(a);
    const int64_t plane = space_of(shape, n);
    TRUE_THAT(cvy_shape_elems(&cvy_augment_target(a)->shape) == plane &&
              cvy_shape_elems(cvy_augment_weight_shape(a)) == plane);
    for (int64_t i = 0; i < plane; i++) {
        const float by = of->dtype == CVY_DTYPE_U8 ? 255 : 1;
        const float first = x_out[i] * by, second = x_out[plane + i] * by;
        TRUE_THAT(near(y_out[i], first) && near(mask_out[i], first));
        TRUE_THAT(first == 0 ? second == 0 : near(second, first + (float)stored));
        from[i] = (int64_t)lrintf(first);
    }
    cvy_augment_destroy(&a);
}

/* The number of the element that is at (z, y, x) after a mirror of an axis. */
static int64_t mirrored(const int64_t n[3], int axis, int64_t i)
{
    int64_t at[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
    at[axis] = n[axis] - 1 - at[axis];
    return (at[0] * n[1] + at[1]) * n[2] + at[2] + 1;
}

static void test_mirror(const cvy_reader_info *of, const char *list, int axis)
{
    int64_t n[3], from[MOST];
    int seen[2] = {0};
    const int64_t plane = space_of(&of->shape, n);
    set_numbers(of);
    for (int k = 0; k < DRAWS; k++) {
        apply(list, of, k, from);
        const int is_mirrored = from[0] != 1;
        for (int64_t i = 0; i < plane; i++)
            TRUE_THAT(from[i] == (is_mirrored ? mirrored(n, axis, i) : i + 1));
        seen[is_mirrored]++;
    }
    TRUE_THAT(seen[0] > DRAWS / 4 && seen[1] > DRAWS / 4);
}

static void test_mirrors(void)
{
    const int64_t deep[] = {CHANNELS, 3, 4, 5}, line[] = {CHANNELS, 9};
    const cvy_reader_info volume = info_of(4, deep, CVY_DTYPE_F32), small = info_of(4, deep, CVY_DTYPE_U8),
                          series = info_of(2, line, CVY_DTYPE_F32);
    test_mirror(&volume, "mirror", 2);
    test_mirror(&volume, "{mirror: {axis: height}}", 1);
    test_mirror(&volume, "{mirror: {axis: depth}}", 0);
    test_mirror(&small, "{mirror: {axis: depth}}", 0);
    test_mirror(&series, "mirror", 2);
}

/* After so many quarter turns in the plane of two axes: (a, b) comes from (b, last - a) of the turn before. */
static int64_t turned(int64_t n, int a, int b, int turns, int64_t i)
{
    int64_t at[3] = {i / (n * n), i / n % n, i % n};
    for (int k = 0; k < turns; k++) {
        const int64_t from_a = at[b], from_b = n - 1 - at[a];
        at[a] = from_a;
        at[b] = from_b;
    }
    return (at[0] * n + at[1]) * n + at[2] + 1;
}

static void test_turn(const char *about, int a, int b, cvy_dtype dtype)
{
    const int64_t dim[] = {CHANNELS, 4, 4, 4};
    const cvy_reader_info of = info_of(4, dim, dtype);
    int64_t from[MOST];
    int seen[4] = {0};
    char list[80];
    snprintf(list, sizeof list, "{rotate90: {about: %s}}", about);
    set_numbers(&of);
    for (int k = 0; k < DRAWS; k++) {
        int turns = 0;
        apply(list, &of, k, from);
        while (turns < 4 && from[1] != turned(4, a, b, turns, 1))
            turns++;
        for (int64_t i = 0; i < 64 && turns < 4; i++)
            TRUE_THAT(from[i] == turned(4, a, b, turns, i));
        TRUE_THAT(turns < 4);
        seen[turns]++;
    }
    for (int turns = 0; turns < 4; turns++)
        TRUE_THAT(seen[turns] > DRAWS / 8);
}

static void test_turns(void)
{
    const int64_t flat[] = {CHANNELS, 3, 4, 5};
    const cvy_reader_info of = info_of(4, flat, CVY_DTYPE_F32);
    int64_t from[MOST], n[3] = {3, 4, 5};
    test_turn("depth", 1, 2, CVY_DTYPE_F32);
    test_turn("depth", 1, 2, CVY_DTYPE_U8);
    test_turn("height", 0, 2, CVY_DTYPE_F32);
    test_turn("width", 0, 1, CVY_DTYPE_F32);
    set_numbers(&of);
    apply("{rotate90: {about: height, share: 1}}", &of, 0, from); /* the axes differ: a half turn */
    for (int64_t i = 0; i < 60; i++)
        TRUE_THAT(from[i] == mirrored(n, 0, mirrored(n, 2, i) - 1));
}

/* ---- crops ---- */

/* Where the box begins, found by an element inside; every other element follows from it. */
static void check_box(const int64_t m[3], const int64_t n[3], const int64_t *from, int64_t at[3])
{
    int64_t inside = 0;
    while (from[inside] == 0)
        inside++;
    const int64_t e = from[inside] - 1;
    at[0] = e / (m[1] * m[2]) - inside / (n[1] * n[2]);
    at[1] = e / m[2] % m[1] - inside / n[2] % n[1];
    at[2] = e % m[2] - inside % n[2];
    for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        const int64_t z = at[0] + i / (n[1] * n[2]), r = at[1] + i / n[2] % n[1], c = at[2] + i % n[2];
        const int is_in = z >= 0 && z < m[0] && r >= 0 && r < m[1] && c >= 0 && c < m[2];
        TRUE_THAT(from[i] == (is_in ? (z * m[1] + r) * m[2] + c + 1 : 0));
    }
}

static void test_crop(const cvy_reader_info *of, const char *list, const int64_t n[3], const int64_t least[3],
                      const int64_t most[3])
{
    int64_t m[3], from[8 * MOST], at[3], low[3] = {99, 99, 99}, high[3] = {-99, -99, -99};
    space_of(&of->shape, m);
    set_numbers(of);
    for (int k = 0; k < DRAWS; k++) {
        apply(list, of, k, from);
        check_box(m, n, from, at);
        for (int i = 0; i < 3; i++) {
            low[i] = CVY_MIN(low[i], at[i]);
            high[i] = CVY_MAX(high[i], at[i]);
        }
    }
    for (int i = 0; i < 3; i++)
        TRUE_THAT(low[i] == least[i] && high[i] == most[i]);
}

static void test_crops(void)
{
    const int64_t deep[] = {CHANNELS, 4, 5, 6}, line[] = {CHANNELS, 9};
    const cvy_reader_info volume = info_of(4, deep, CVY_DTYPE_F32), small = info_of(4, deep, CVY_DTYPE_U8),
                          series = info_of(2, line, CVY_DTYPE_F32);
    const int64_t none[3] = {0};
    test_crop(&volume, "{random_crop: [2, 3, 4]}", (const int64_t[]){2, 3, 4}, none, (const int64_t[]){2, 2, 2});
    test_crop(&small, "{random_crop: 3}", (const int64_t[]){3, 3, 3}, none, (const int64_t[]){1, 2, 3});
    test_crop(&volume, "{random_crop: {pad: 1}}", (const int64_t[]){4, 5, 6}, (const int64_t[]){-1, -1, -1},
              (const int64_t[]){1, 1, 1});
    test_crop(&volume, "{center_crop: [2, 3, 4]}", (const int64_t[]){2, 3, 4}, (const int64_t[]){1, 1, 1},
              (const int64_t[]){1, 1, 1});
    test_crop(&volume, "{center_crop: [4, 5, 6]}, {mirror: no}, {rotate90: no}, {center_crop: 4}",
              (const int64_t[]){4, 4, 4}, (const int64_t[]){0, 0, 1}, (const int64_t[]){0, 0, 1});
    test_crop(&series, "{random_crop: {size: 7, pad: 2}}", (const int64_t[]){1, 1, 7}, (const int64_t[]){0, 0, -2},
              (const int64_t[]){0, 0, 4});
}

/* Zeros of a pad are zeros of the stored numbers: what shifts them before is applied before. A pad adds labels that
 * count nowhere. */
static void test_pads(void)
{
    const int64_t deep[] = {1, 2, 2, 2};
    cvy_reader_info of = info_of(4, deep, CVY_DTYPE_F32);
    cvy_augment *a = NULL;
    of.has_weight = 0;
    for (int i = 0; i < 8; i++)
        x[i] = 5, y[i] = 1;
    OK(make("[{target: {role: label_map, classes: 2}}, {mean: 3}, {random_crop: {size: 4, pad: 1}}]", 0, &of, &a));
    OK(cvy_augment_apply_both(a, planes_of(&of), y, 0, 0, &turn, x_out, labels_out));
    for (int i = 0; i < 64; i++) {
        const int z = i / 16, r = i / 4 % 4, c = i % 4, is_in = z % 3 && r % 3 && c % 3;
        TRUE_THAT(x_out[i] == (is_in ? 2 : 0) && labels_out[i] == (is_in ? 1 : CVY_LABEL_OUTSIDE));
    }
    cvy_augment_destroy(&a);
}

static void test_refused(void)
{
    const int64_t deep[] = {1, 2, 3, 4}, line[] = {3, 9};
    cvy_reader_info volume = info_of(4, deep, CVY_DTYPE_F32), series = info_of(2, line, CVY_DTYPE_F32), point = volume;
    point.y_shape = cvy_shape_make(1, (const int64_t[]){2});
    point.has_weight = 0;
    const struct {
        const char *list;
        const cvy_reader_info *of;
        const char *words;
    } row[] = {
        {"[{target: field}, {mirror: {axis: depth}}]", &series, "samples of 3x9 have no depth"},
        {"[{target: field}, rotate90]", &series, "a series of 3x9 has no two axes to turn"},
        {"[{target: field}, {random_crop: [2, 2]}]", &volume, "of a volume takes a size of one number or of three"},
        {"[{target: field}, {random_crop: [2, 2]}]", &series, "takes a size of one number, got 2"},
        {"[{target: field}, {resize: 8}]", &volume, "resize needs samples of the shape [C, H, W], these are 1x2x3x4"},
        {"[{target: field}, {random_crop: [2, 4, 4]}]", &volume, "random_crop to 4 does not fit into an axis of 3"},
        {"[{target: {role: point, order: x_y}}, mirror]", &point, "points and vectors of y go with those of pictures"},
        {"[mirror]", &volume, "how the target y of shape 2x3x4 goes with them is not known"},
    };
    cvy_augment *a = NULL;
    for (int i = 0; i < CVY_COUNT(row); i++)
        FAILS(make(row[i].list, 1, row[i].of, &a), strstr(row[i].words, "fit") ? CVY_E_SHAPE : CVY_E_CONFIG,
              row[i].words);
    FAILS(make("[{rotate90: {about: width}}]", 1, &info, &a), CVY_E_CONFIG, "about the width needs volumes");
    FAILS(make("[{mirror: {axis: depth}}]", 1, &info, &a), CVY_E_CONFIG, "have no depth");
    OK(make("[{target: {role: point, order: x_y}}, {scale: 2}]", 1, &point, &a));
    cvy_augment_destroy(&a);
}

/* Components of vectors do not turn with volumes, and names that look like them are said; a series turns nothing. */
static void test_vectors(void)
{
    static const char *const names[] = {"u10", "v10"};
    const int64_t deep[] = {CHANNELS, 2, 3, 4}, line[] = {CHANNELS, 9};
    cvy_reader_info volume = info_of(4, deep, CVY_DTYPE_F32), series = info_of(2, line, CVY_DTYPE_F32);
    cvy_augment *a = NULL;
    volume.columns = series.columns = (cvy_columns){.nx = CHANNELS, .x = names};
    volume.has_y = series.has_y = volume.has_weight = series.has_weight = 0;
    OK(make("[{mirror: {axis: depth}}]", 1, &volume, &a));
    TRUE_THAT(strstr(cvy_augment_left(a), "u10 and v10") && strstr(cvy_augment_left(a), "leave mirror out"));
    cvy_augment_destroy(&a);
    OK(make("[{input: none}, {mirror: {axis: depth}}]", 1, &volume, &a));
    TRUE_THAT(!cvy_augment_left(a));
    cvy_augment_destroy(&a);
    OK(make("[{random_crop: {pad: 1}}]", 1, &volume, &a));
    TRUE_THAT(!cvy_augment_left(a));
    cvy_augment_destroy(&a);
    OK(make("[mirror]", 1, &series, &a));
    TRUE_THAT(!cvy_augment_left(a));
    cvy_augment_destroy(&a);
}

int main(void)
{
    test_mirrors();
    test_turns();
    test_crops();
    test_pads();
    test_refused();
    test_vectors();
    cvy_augment_scratch_free(&turn);
    return 0;
}
