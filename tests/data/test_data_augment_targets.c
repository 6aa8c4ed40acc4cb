/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_augment_targets.c: a target follows x under augmentation by its role, or is refused if it has none: fields,
 * maps of labels, points and vectors; its normalisation; volumes. */
#include "test_data_augment.h"

/* An operation that moves pixels would move x away from a target that is a map; operations on values would not. */
static void test_maps_as_targets(void)
{
    static const char *const moving[] = {"mirror",
                                         "rotate90",
                                         "random_crop: {size: 4, pad: 1}",
                                         "center_crop: 4",
                                         "resize: 4",
                                         "random_crop: [4, 6]",
                                         "random_resized_crop: 4"};
    static const char *const allowed[] = {
        "[{mirror: no}, {rotate90: no}, {mirror: {share: 0}}]",
        "[{scale: 2}, {log: 1}, {asinh: 2}, {mean: 1}, {std: 2}, {normalize: {mean: 1}}, {cutout: 2}]"};
    cvy_reader_info map = info, vector = info;
    cvy_augment *a = NULL;
    char list[64], words[200];
    map.has_y = vector.has_y = 1;
    map.y_shape = (cvy_shape){2, {H, W}};
    vector.y_shape = (cvy_shape){1, {W}};
    for (int i = 0; i < CVY_COUNT(moving); i++) {
        snprintf(list, sizeof list, "[{std: 2}, {%s%s}]", moving[i], strchr(moving[i], ':') ? "" : ": true");
        snprintf(
            words, sizeof words,
            "%.*s moves the pixels of x, but how the target y of shape 5x7 goes with them is not known: say what y "
            "is by data.roles",
            (int)strcspn(moving[i], ":"), moving[i]);
        FAILS(make(list, 1, &map, &a), CVY_E_CONFIG, words);
        TRUE_THAT(strncmp(cvy_error_text(), "job.yaml:1:", 11) == 0);
        OK(make(list, 1, &vector, &a));
        cvy_augment_destroy(&a);
    }
    for (int i = 0; i < CVY_COUNT(allowed); i++) {
        OK(make(allowed[i], 1, &map, &a));
        cvy_augment_destroy(&a);
    }
    OK(make("[mirror, rotate90]", 0, &map, &a)); /* a test set leaves them out */
    cvy_augment_destroy(&a);
    FAILS(make("[{random_crop: 4}]", 0, &map, &a), CVY_E_CONFIG, "random_crop moves");
}

enum { SIDE = 6, PLANE = SIDE * SIDE };

/* Runs a list on a square picture of reals and its target. Returns the shape of the target. */
static cvy_shape run_target(const char *text, uint64_t epoch, const float *x, int y_ndim, const int64_t *y_dim,
                            const float *y, float *x_out, void *y_out)
{
    const cvy_reader_info of = {
        .dtype = CVY_DTYPE_F32, .shape = {3, {1, SIDE, SIDE}}, .has_y = 1, .y_shape = cvy_shape_make(y_ndim, y_dim)};
    const cvy_picture p = {.dtype = CVY_DTYPE_F32, .C = 1, .H = SIDE, .W = SIDE, .data = (void *)(uintptr_t)x};
    cvy_augment *a = NULL;
    OK(make(text, 1, &of, &a));
    OK(cvy_augment_apply_both(a, p, y, epoch, 3, &turn, x_out, y_out));
    const cvy_shape shape = cvy_augment_target(a)->shape;
    cvy_augment_destroy(&a);
    return shape;
}

/* y has two channels: x itself, and minus x. Whatever is done to x is done to them, by the same random numbers. */
static void test_fields_follow(void)
{
    static const char *const lists[] = {"[{target: field}, mirror, rotate90, {random_crop: {size: 4, pad: 2}}]",
                                        "[{target: field}, rotate90, {resize: {size: [4, 9], fit: stretch}}, mirror]",
                                        "[{target: field}, {random_resized_crop: {size: 5, filter: area}}]",
                                        "[{target: field}, {resize: 8}, {center_crop: 3}]"};
    float x[PLANE], y[2 * PLANE], x_out[100], y_out[200];
    for (int i = 0; i < PLANE; i++) {
        x[i] = y[i] = (float)(i * i % 17);
        y[PLANE + i] = -x[i];
    }
    for (int k = 0; k < CVY_COUNT(lists); k++) {
        int moved = 0;
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
            const cvy_shape shape =
                run_target(lists[k], epoch, x, 3, (const int64_t[]){2, SIDE, SIDE}, y, x_out, y_out);
            const int64_t n = shape.dim[1] * shape.dim[2];
            for (int64_t i = 0; i < n; i++)
                TRUE_THAT(y_out[i] == x_out[i] && y_out[n + i] == -x_out[i]);
            moved += memcmp(x_out, x, sizeof *x * (size_t)CVY_MIN(n, PLANE)) != 0;
        }
        TRUE_THAT(moved > 5);
    }
    /* the shape follows crops; a field without an axis of channels is one channel */
    const cvy_shape flat = run_target(lists[0], 1, x, 2, (const int64_t[]){SIDE, SIDE}, y, x_out, y_out);
    TRUE_THAT(flat.ndim == 2 && flat.dim[0] == 4 && flat.dim[1] == 4 && memcmp(x_out, y_out, 16 * sizeof *x) == 0);
}

/* Labels are never mixed, and become integers; what a pad adds, and labels that are ignored, are -1. */
static void test_label_maps(void)
{
    const cvy_reader_info of = {
        .dtype = CVY_DTYPE_F32, .shape = {3, {1, SIDE, SIDE}}, .has_y = 1, .y_shape = {2, {SIDE, SIDE}}};
    static const char list[] = "[{target: {role: label_map, classes: 8, ignore: [100]}}, {random_resized_crop: {size: "
                               "9}}, {random_crop: {pad: 1}}]";
    float x[PLANE], y[PLANE], x_out[100];
    int32_t y_out[100];
    int outside = 0, labels = 0;
    cvy_augment *a = NULL;
    for (int i = 0; i < PLANE; i++)
        x[i] = y[i] = (float)(i % 2 ? 7 : i % 3 ? 0 : 100);
    OK(make(list, 1, &of, &a));
    TRUE_THAT(cvy_augment_target(a)->dtype == CVY_DTYPE_I32 && cvy_augment_target(a)->nclasses == 8);
    cvy_augment_destroy(&a);
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        run_target(list, epoch, x, 2, (const int64_t[]){SIDE, SIDE}, y, x_out, y_out);
        for (int i = 0; i < 81; i++) {
            TRUE_THAT(y_out[i] == 7 || y_out[i] == 0 || y_out[i] == -1);
            outside += y_out[i] == -1;
            labels += y_out[i] == 7;
        }
    }
    TRUE_THAT(outside > 100 && labels > 200);
    const cvy_picture p = {.dtype = CVY_DTYPE_F32, .C = 1, .H = SIDE, .W = SIDE, .data = x};
    OK(make("[{target: {role: label_map, classes: 8}}]", 1, &of, &a));
    FAILS(cvy_augment_apply_both(a, p, y, 0, 0, &turn, x_out, y_out), CVY_E_FORMAT,
          "element 0 of y is 100, expected a label 0 .. 7; name labels that no class has by ignore");
    y[0] = 2.5f;
    FAILS(cvy_augment_apply_both(a, p, y, 0, 0, &turn, x_out, y_out), CVY_E_FORMAT, "element 0 of y is 2.5");
    cvy_augment_destroy(&a);
}

/* The same point as one of a list of points, and as two numbers among others. */
static void check_forms(const char *list, uint64_t epoch, const float *x, const float *point, const float *moved)
{
    const float points[] = {0, 0, point[0], point[1]}, numbers[] = {55, point[1], 77, point[0]};
    float x_out[12 * 18], out[4];
    char text[256];
    run_target(list, epoch, x, 2, (const int64_t[]){2, 2}, points, x_out, out);
    TRUE_THAT(out[2] == moved[0] && out[3] == moved[1]);
    const char *end = strchr(list, '}');
    snprintf(text, sizeof text, "%.*s, components: [3, 1]%s", (int)(end - list), list, end);
    run_target(text, epoch, x, 1, (const int64_t[]){4}, numbers, x_out, out);
    TRUE_THAT(out[0] == 55 && out[1] == moved[1] && out[2] == 77 && out[3] == moved[0]);
}

/* The only bright pixel of x, and a target that has its position. */
static void test_points_follow(void)
{
    static const char *const lists[] = {
        "[{target: {role: point, order: row_column}}, mirror, rotate90, {random_crop: "
        "{pad: 2}}, {mirror: {axis: height}}]",
        "[{target: {role: point, order: x_y}}, rotate90, {resize: {size: [12, 18], fit: "
        "stretch, filter: nearest}}, mirror]"};
    float x[PLANE] = {0}, y[2], x_out[12 * 18], y_out[2];
    for (int k = 0; k < 2; k++) {
        int seen = 0;
        for (uint64_t epoch = 0; epoch < 40; epoch++) {
            const int row = (int)(epoch % SIDE), column = (int)(epoch / SIDE % SIDE), W = k == 0 ? SIDE : 18;
            const int h = k == 0 ? 1 : 2, w = k == 0 ? 1 : 3;
            memset(x, 0, sizeof x);
            x[row * SIDE + column] = 1;
            y[k] = (float)row;
            y[1 - k] = (float)column;
            run_target(lists[k], epoch, x, 1, (const int64_t[]){2}, y, x_out, y_out);
            check_forms(lists[k], epoch, x, y, y_out);
            const double top = (double)y_out[k] - (h - 1) / 2.0, left = (double)y_out[1 - k] - (w - 1) / 2.0;
            const int r = (int)lrint(top), c = (int)lrint(left);
            TRUE_THAT(fabs(top - r) < 1e-5 && fabs(left - c) < 1e-5);
            if (r < 0 || c < 0 || r >= (k == 0 ? SIDE : 12) || c >= W)
                continue; /* cropped away */
            for (int i = 0; i < h * w; i++)
                TRUE_THAT(x_out[(r + i / w) * W + c + i % w] == 1);
            seen++;
        }
        TRUE_THAT(seen > 20);
    }
}

/* x is a hill; y is its slope, as numbers or as a field. Mirrors change the sign of one component; a rotation exchanges
 * both. */
static void test_vectors_turn(void)
{
    float x[PLANE], y[3 * PLANE], x_out[PLANE], y_out[3 * PLANE];
    for (int i = 0; i < PLANE; i++) {
        x[i] = (float)(3 * (i / SIDE) - 5 * (i % SIDE)); /* slope: 3 down, -5 to the right */
        y[i] = 100;
        y[PLANE + i] = -5;
        y[2 * PLANE + i] = 3;
    }
    int turned = 0;
    for (uint64_t epoch = 0; epoch < 30; epoch++) {
        const float two[] = {-5, 3};
        float two_out[2];
        run_target("[{target: {role: vector, order: x_y, components: [1, 2]}}, mirror, rotate90]", epoch, x, 3,
                   (const int64_t[]){3, SIDE, SIDE}, y, x_out, y_out);
        const float right = x_out[1] - x_out[0], down = x_out[SIDE] - x_out[0];
        for (int i = 0; i < PLANE; i++)
            TRUE_THAT(y_out[i] == 100 && y_out[PLANE + i] == right && y_out[2 * PLANE + i] == down);
        run_target("[{target: {role: vector, order: x_y}}, mirror, rotate90]", epoch, x, 1, (const int64_t[]){2}, two,
                   x_out, two_out);
        TRUE_THAT(two_out[0] == right && two_out[1] == down);
        turned += right != -5;
    }
    TRUE_THAT(turned > 15);
    /* a resize does not change a vector */
    const float down_right[] = {3, -5};
    float same[2];
    run_target("[{target: {role: vector, order: row_column}}, {resize: 3}]", 0, x, 1, (const int64_t[]){2}, down_right,
               x_out, same);
    TRUE_THAT(same[0] == 3 && same[1] == -5);
}

static void test_scaling(void)
{
    const cvy_reader_info of = {
        .dtype = CVY_DTYPE_F32, .shape = {3, {1, SIDE, SIDE}}, .has_y = 1, .y_shape = {3, {2, SIDE, SIDE}}};
    float x[PLANE] = {0}, y[2 * PLANE], x_out[PLANE], y_out[2 * PLANE];
    cvy_augment *a = NULL;
    for (int i = 0; i < 2 * PLANE; i++)
        y[i] = (float)(1e6 + i);
    run_target("[{normalize_target: {mean: [1.0e+6, 4], std: [2, 1.0e+6]}}]", 0, x, 3, (const int64_t[]){2, SIDE, SIDE},
               y, x_out, y_out);
    for (int i = 0; i < PLANE; i++)
        TRUE_THAT(y_out[i] == (float)(i / 2.0) && near(y_out[PLANE + i], (1e6 + PLANE + i - 4) / 1e6));
    OK(make("[{normalize_target: {mean: [1.0e+6, 4], std: [2, 1.0e+6]}}]", 0, &of, &a));
    cvy_scaling_undo(&cvy_augment_target(a)->scaling, 1, 2 * PLANE, CVY_DTYPE_F32, y_out);
    for (int i = 0; i < 2 * PLANE; i++)
        TRUE_THAT(fabs(y_out[i] - y[i]) <= 0.125);
    cvy_augment_destroy(&a);
    FAILS(make("[{normalize_target: {mean: [1, 2, 3], std: 1}}]", 0, &of, &a), CVY_E_CONFIG,
          "mean has 3 numbers, but the target y of 2x6x6 needs 2");
    FAILS(make("[{normalize_target: {mean: 0, std: [1, 0]}}]", 0, &of, &a), CVY_E_CONFIG, "std is 0, expected more");
    /* samples to predict have no target */
    OK(make("[{target: field}, mirror, {normalize_target: {mean: 0, std: 1}}]", 0, &info, &a));
    cvy_augment_destroy(&a);
}

static void test_wrong_roles(void)
{
    const struct {
        const char *list;
        int ndim;
        int64_t dim[3];
        const char *words;
    } wrong[] = {
        {"[{target: field}]", 1, {W}, "field: y is 7, expected the height and width of x, which is 2x5x7"},
        {"[{target: field}]", 2, {H, W + 1}, "field: y is 5x8, expected the height and width of x"},
        {"[{target: point}]", 1, {2}, "a point needs its order: row_column (the vertical number first) or x_y"},
        {"[{target: {role: point, order: x_y}}]", 1, {3}, "y is 3: say which two of its 3 numbers they are"},
        {"[{target: {role: point, order: x_y}}]", 3, {2, H, W}, "expected a list of numbers, or of points [K, 2]"},
        {"[{target: {role: vector, order: x_y}}]", 2, {H, W}, "expected a list of numbers, or a field [C, H, W]"},
        {"[{target: {role: vector, order: x_y, components: [0, 3]}}]", 1, {3}, "component 3, but y is 3"},
        {"[{target: {role: vector, order: x_y, components: [0, 0]}}]", 1, {3}, "component 0 is named twice"},
        {"[{target: {role: vector, order: x_y, components: 1}}]", 1, {3}, "expected pairs of indices"},
        {"[{target: {role: field, components: [0, 1]}}]", 3, {2, H, W}, "belong to points and vectors"},
        {"[{target: label_map}]", 2, {H, W}, "a label_map needs its number of classes"},
        {"[{target: {role: label_map, classes: 2}}]", 3, {2, H, W}, "expected one label for each pixel"},
        {"[{target: {role: field, classes: 2}}]", 2, {H, W}, "classes and ignore belong to a label_map"},
        {"[{target: {role: label_map, classes: 2}}, {normalize_target: {mean: 0, std: 1}}]",
         2,
         {H, W},
         "y is a map of labels, which have no mean"},
        {"[{target: map}]", 2, {H, W}, "\"map\""},
    };
    cvy_augment *a = NULL;
    for (int i = 0; i < CVY_COUNT(wrong); i++) {
        cvy_reader_info of = info;
        of.has_y = 1;
        of.y_shape = cvy_shape_make(wrong[i].ndim, wrong[i].dim);
        FAILS(make(wrong[i].list, 1, &of, &a), CVY_E_CONFIG, wrong[i].words);
    }
    cvy_reader_info pictures = info;
    pictures.varying = pictures.has_y = 1;
    pictures.y_shape = (cvy_shape){2, {H, W}};
    FAILS(make("[{target: field}, mirror]", 1, &pictures, &a), CVY_E_CONFIG, "the sizes of the pictures are not known");
}

/* Volumes have labels and fields, too. Their positions do not move, and a target of other sizes is refused. */
static void test_roles_of_volumes(void)
{
    const struct {
        const char *list;
        cvy_shape y, becomes;
        cvy_dtype dtype;
        int64_t nchannels;
    } right[] = {
        {"[{target: {role: label_map, classes: 3}}]", {3, {4, 2, 3}}, {3, {4, 2, 3}}, CVY_DTYPE_I32, 1},
        {"[{target: {role: label_map, classes: 3}}]", {4, {1, 4, 2, 3}}, {3, {4, 2, 3}}, CVY_DTYPE_I32, 1},
        {"[{target: field}]", {3, {4, 2, 3}}, {3, {4, 2, 3}}, CVY_DTYPE_F32, 1},
        {"[{target: field}]", {4, {5, 4, 2, 3}}, {4, {5, 4, 2, 3}}, CVY_DTYPE_F32, 5},
    };
    cvy_reader_info of = info;
    cvy_augment *a = NULL;
    of.dtype = CVY_DTYPE_F32;
    of.shape = (cvy_shape){4, {2, 4, 2, 3}};
    of.has_y = 1;
    for (int i = 0; i < CVY_COUNT(right); i++) {
        of.y_shape = right[i].y;
        OK(make(right[i].list, 1, &of, &a));
        const cvy_target_info *t = cvy_augment_target(a);
        TRUE_THAT(cvy_shape_equal(&t->shape, &right[i].becomes));
        TRUE_THAT(t->dtype == right[i].dtype && t->nchannels == right[i].nchannels);
        cvy_augment_destroy(&a);
    }
    of.y_shape = (cvy_shape){3, {4, 2, 2}};
    FAILS(make("[{target: field}]", 1, &of, &a), CVY_E_CONFIG,
          "y is 4x2x2, expected the positions of x, which is 2x4x2x3");
    of.y_shape = (cvy_shape){4, {2, 4, 2, 3}};
    FAILS(make("[{target: {role: label_map, classes: 3}}]", 1, &of, &a), CVY_E_CONFIG,
          "expected one label for each position of x");
}

int main(void)
{
    test_maps_as_targets();
    test_fields_follow();
    test_label_maps();
    test_points_follow();
    test_vectors_turn();
    test_scaling();
    test_wrong_roles();
    test_roles_of_volumes();
    cvy_augment_scratch_free(&turn);
    return 0;
}
