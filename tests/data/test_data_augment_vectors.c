/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_augment_vectors.c: components of vectors in x turn with the picture as those of y do, to the bit, by index
 * and by name; a step before a turn that changes their directions is refused; vectors that stay are said. */
#include "test_data_augment.h"

enum { SIDE = 6, PLANE = SIDE * SIDE };

static cvy_reader_info square(int64_t channels)
{
    return (cvy_reader_info){.dtype = CVY_DTYPE_F32,
                             .shape = {3, {channels, SIDE, SIDE}},
                             .has_y = 1,
                             .y_shape = {3, {channels, SIDE, SIDE}}};
}

static cvy_shape run(const char *text, const cvy_reader_info *of, uint64_t epoch, const float *x, float *x_out,
                     float *y_out)
{
    const cvy_picture p = {
        .dtype = CVY_DTYPE_F32, .C = of->shape.dim[0], .H = SIDE, .W = SIDE, .data = (void *)(uintptr_t)x};
    cvy_augment *a = NULL;
    OK(make(text, 1, of, &a));
    OK(cvy_augment_apply_both(a, p, x, epoch, 3, &turn, x_out, y_out));
    const cvy_shape shape = *cvy_augment_shape(a);
    cvy_augment_destroy(&a);
    return shape;
}

/* y is x. Whatever turns one turns the other, and no bit differs. */
static void test_both_turn_alike(void)
{
    static const char *const pair[] = {"order: x_y, components: [1, 2]", "order: row_column, components: [2, 1]",
                                       "order: x_y, components: [3, 0, 1, 2]",
                                       "order: x_y, components: [1, 2], vertical: up"};
    static const char *const steps[] = {"mirror",
                                        "{mirror: {axis: height}}",
                                        "rotate90",
                                        "mirror, rotate90, {mirror: {axis: height}}, rotate90",
                                        "{center_crop: 4}, rotate90, mirror",
                                        "rotate90, {resize: {size: 9, filter: nearest}}, mirror",
                                        "{cutout: 2}, {scale: 1}, mirror"};
    const cvy_reader_info of = square(4);
    float x[4 * PLANE], x_out[4 * 81], y_out[4 * 81];
    char text[320];
    for (int i = 0; i < 4 * PLANE; i++)
        x[i] = (float)(i * i % 23) - 11.37f;
    for (int k = 0; k < CVY_COUNT(pair); k++)
        for (int s = 0; s < CVY_COUNT(steps); s++) {
            int turned = 0;
            snprintf(text, sizeof text, "[{target: {role: vector, %s}}, {input: {role: vector, %s}}, %s]", pair[k],
                     pair[k], steps[s]);
            for (uint64_t epoch = 0; epoch < 12; epoch++) {
                const cvy_shape shape = run(text, &of, epoch, x, x_out, y_out);
                const size_t bytes = sizeof *x * (size_t)cvy_shape_elems(&shape);
                if (!strstr(text, "cutout")) /* which makes holes in x alone */
                    TRUE_THAT(memcmp(x_out, y_out, bytes) == 0);
                turned += memcmp(x_out, x, sizeof *x) != 0;
            }
            TRUE_THAT(turned > 2);
        }
}

/* x is a hill and its slope: after any turn the slope is that of the hill as it lies then. */
static void test_slope_of_a_hill(void)
{
    static const char *const list[] = {
        "[{input: {role: vector, order: x_y, components: [1, 2]}}, mirror, rotate90, {mirror: {axis: height}}]",
        "[{input: {role: vector, order: row_column, components: [2, 1], vertical: up}}, rotate90, mirror]",
        "[{input: {role: vector, order: x_y, components: [u10, v10]}}, mirror, rotate90, {random_crop: 4}]"};
    static const char *const name[] = {"z", "u10", "v10"};
    cvy_reader_info of = square(3);
    float x[3 * PLANE], x_out[3 * PLANE];
    of.has_y = 0;
    of.columns = (cvy_columns){.nx = 3, .x = name};
    for (int k = 0; k < CVY_COUNT(list); k++) {
        const int up = strstr(list[k], "up") ? -1 : 1;
        int turned = 0;
        for (int i = 0; i < PLANE; i++) {
            x[i] = (float)(3 * (i / SIDE) - 5 * (i % SIDE)); /* slope: 3 down, -5 to the right */
            x[PLANE + i] = -5;
            x[2 * PLANE + i] = (float)(up * 3);
        }
        for (uint64_t epoch = 0; epoch < 30; epoch++) {
            const cvy_shape shape = run(list[k], &of, epoch, x, x_out, NULL);
            const int64_t side = shape.dim[1], plane = side * side;
            const float right = x_out[1] - x_out[0], down = x_out[side] - x_out[0];
            for (int64_t i = 0; i < plane; i++)
                TRUE_THAT(x_out[plane + i] == right && x_out[2 * plane + i] == (float)up * down);
            turned += right != -5;
        }
        TRUE_THAT(turned > 10);
    }
}

/* A normalisation after the turn sees the turned numbers: as if they were turned beforehand and stored. */
static void test_values_after_a_turn(void)
{
    cvy_reader_info of = square(2);
    float x[2 * PLANE], turned[2 * PLANE], both[2 * PLANE], x_out[2 * PLANE];
    of.has_y = 0;
    for (int i = 0; i < 2 * PLANE; i++)
        x[i] = (float)(i % 13) * 0.37f - 1.1f;
    for (uint64_t epoch = 0; epoch < 10; epoch++) {
        static const char rest[] = "{normalize: {mean: [0.3, -0.7], std: [1.7, 0.6]}}, {asinh: [0.3, 2]}]";
        char list[256];
        snprintf(list, sizeof list, "[{input: {role: vector, order: x_y}}, rotate90, mirror, %s", rest);
        run(list, &of, epoch, x, both, NULL);
        run("[{input: {role: vector, order: x_y}}, rotate90, mirror]", &of, epoch, x, turned, NULL);
        snprintf(list, sizeof list, "[%s", rest);
        run(list, &of, epoch, turned, x_out, NULL);
        for (int i = 0; i < 2 * PLANE; i++)
            TRUE_THAT(both[i] == x_out[i]);
    }
    /* without randomness nothing turns */
    cvy_augment *a = NULL;
    const cvy_picture p = {.dtype = CVY_DTYPE_F32, .C = 2, .H = SIDE, .W = SIDE, .data = x};
    OK(make("[{input: {role: vector, order: x_y}}, rotate90, mirror]", 0, &of, &a));
    for (uint64_t epoch = 0; epoch < 10; epoch++) {
        OK(cvy_augment_apply(a, p, epoch, 3, &turn, x_out));
        TRUE_THAT(memcmp(x_out, x, sizeof x) == 0);
    }
    cvy_augment_destroy(&a);
}

/* A number that is not finite stays in its component. */
static void test_not_finite(void)
{
    const cvy_reader_info of = square(2);
    float x[2 * PLANE] = {0}, x_out[2 * PLANE], y_out[2 * PLANE];
    x[0] = INFINITY;
    for (uint64_t epoch = 0; epoch < 10; epoch++) {
        run("[{target: {role: vector, order: x_y}}, {input: {role: vector, order: x_y}}, mirror, rotate90]", &of, epoch,
            x, x_out, y_out);
        int inf = 0;
        for (int i = 0; i < 2 * PLANE; i++) {
            TRUE_THAT(!isnan(x_out[i]) && x_out[i] == y_out[i]);
            inf += isinf(x_out[i]) != 0;
        }
        TRUE_THAT(inf == 1);
    }
}

static void test_wrong_roles(void)
{
    static const char *const name[] = {"t", "u10", "v10"}, *const twice[] = {"t", "u", "u"};
    cvy_reader_info of = square(3), bytes = of, series = of, named = of, joined = of, two = of;
    cvy_augment *a = NULL;
    bytes.dtype = CVY_DTYPE_U8;
    series.shape = (cvy_shape){2, {3, 9}};
    named.columns = (cvy_columns){.nx = 3, .x = name};
    joined.columns = (cvy_columns){.nx = 2, .x = name};
    two.columns = (cvy_columns){.nx = 3, .x = twice};
    const struct {
        const char *list;
        const cvy_reader_info *of;
        const char *words;
    } wrong[] = {
        {"[{input: vector}]", &of, "a vector needs its order: row_column"},
        {"[{input: {role: vector, order: x_y}}]", &of,
         "vector: x is 3x6x6: say which two of its 3 channels they are, as in {role: vector, components: [0, 1]}"},
        {"[{input: {role: vector, order: x_y, components: [0, 3]}}]", &of, "component 3, but x is 3x6x6"},
        {"[{input: {role: vector, order: x_y, components: [0, -1]}}]", &of, "component -1, but x is 3x6x6"},
        {"[{input: {role: vector, order: x_y, components: [0, 1, 2]}}]", &of, "3 components, expected pairs"},
        {"[{input: {role: vector, order: x_y, components: [1, 1]}}]", &of, "component 1 is named twice"},
        {"[{input: {role: vector, order: x_y, components: [u10, v10]}}]", &of,
         "component u10, but the source has no names for the numbers of x"},
        {"[{input: {role: vector, order: x_y, components: [u10, w10]}}]", &named,
         "x has no component w10 among t, u10, v10"},
        {"[{input: {role: vector, order: x_y, components: [u10, v10]}}]", &joined, "2 names are joined to 3 channels"},
        {"[{input: {role: vector, order: x_y, components: [u, t]}}]", &two, "two numbers of x are called u"},
        {"[{input: {role: vector, order: x_y, components: [0, {a: 1}]}}]", &of, "components is a list of indices or"},
        {"[{input: {role: vector, order: x_y, components: [0, 1]}}]", &bytes, "x is bytes, 0 to 255, which have no"},
        {"[{input: {role: vector, order: x_y, components: [0, 1]}}]", &series, "x is 3x9, expected a picture"},
        {"[{input: {role: none, order: x_y}}]", &of, "order, components and vertical belong to the role vector"},
        {"[{input: none}, {input: target}]", &of, "x has two roles"},
        {"[{target: none}, mirror, {input: none}]", &of, "the role of x stands after mirror, which it is about"},
        {"[{target: {role: point, order: x_y, vertical: up}}]", &of, "expected a list of numbers, or of points"},
        {"[{target: {role: field, vertical: up}}]", &of, "order, components and vertical belong to points and vectors"},
    };
    for (int i = 0; i < CVY_COUNT(wrong); i++)
        FAILS(make(wrong[i].list, 1, wrong[i].of, &a), CVY_E_CONFIG, wrong[i].words);
    /* names of y, which are not needed where nothing is turned */
    static const char list[] = "[{target: {role: vector, order: x_y, components: [v10, t]}}, {input: none}, mirror]";
    of.columns = (cvy_columns){.nx = 3, .x = name, .ny = 3, .y = name};
    OK(make(list, 1, &of, &a));
    cvy_augment_destroy(&a);
    OK(make(list, 0, &joined, &a));
    cvy_augment_destroy(&a);
}

/* What may stand before an operation that turns. */
static void test_steps_before_a_turn(void)
{
    static const char *const refused[] = {"{mean: 1}",        "{normalize: {mean: [0, 0.5]}}",
                                          "{std: [1, 2]}",    "{asinh: [1, 2]}",
                                          "reverse_channels", "{cutout: {size: 2, value: 1}}"};
    static const char *const allowed[] = {"{std: 2}",   "{scale: 3}",  "{log: 2}",
                                          "{asinh: 2}", "{cutout: 2}", "{random_crop: 4}"};
    cvy_reader_info of = square(2);
    cvy_augment *a = NULL;
    char list[256];
    of.has_y = 0;
    for (int i = 0; i < CVY_COUNT(refused); i++) {
        snprintf(list, sizeof list, "[{input: {role: vector, order: x_y}}, %s, rotate90]", refused[i]);
        FAILS(make(list, 1, &of, &a), CVY_E_CONFIG, "rotate90 turns the vectors of x, but");
        snprintf(list, sizeof list, "[{input: {role: vector, order: x_y}}, %s, {rotate90: false}]", refused[i]);
        OK(make(list, 1, &of, &a));
        cvy_augment_destroy(&a);
    }
    OK(make("[{input: {role: vector, order: x_y}}, {std: [1, 2]}, mirror]", 1, &of, &a)); /* exchanges nothing */
    cvy_augment_destroy(&a);
    for (int i = 0; i < CVY_COUNT(allowed); i++) {
        snprintf(list, sizeof list, "[{input: {role: vector, order: x_y}}, %s, rotate90]", allowed[i]);
        OK(make(list, 1, &of, &a));
        cvy_augment_destroy(&a);
    }
}

/* Which lists of roles and names say that something stays. */
static void test_notes(void)
{
    static const char *const wind[] = {"t", "u10", "v10"}, *const plain[] = {"t", "urban", "vegetation"},
                             *const axes[] = {"flux_x", "flux_y", "rho"}, *const one[] = {"t", "q", "uas"};
    const struct {
        const char *roles;
        const char *const *x, *const *y;
        const char *words; /* NULL: nothing is said */
    } row[] = {
        {"{target: {role: vector, order: x_y, components: [0, 1]}}", NULL, NULL,
         "mirror turns the vectors of y, and the 3 channels of x stay as they are: "},
        {"{target: {role: vector, order: x_y, components: [0, 1]}}", wind, NULL, "among them u10 and v10"},
        {"{target: {role: vector, order: x_y, components: [0, 1]}}, {input: none}", NULL, NULL, NULL},
        {"{target: {role: vector, order: x_y, components: [0, 1]}}, {input: {role: vector, order: x_y, components: [0, "
         "1]}}",
         wind, NULL, NULL},
        {"{target: field}, {input: {role: vector, order: x_y, components: [0, 1]}}", NULL, NULL,
         "mirror turns the vectors of x, and y keeps its values"},
        {"{target: none}, {input: {role: vector, order: x_y, components: [0, 1]}}", NULL, NULL, NULL},
        {"{target: field}", NULL, NULL, NULL},
        {"{target: field}", plain, NULL, NULL},
        {"{target: field}", wind, NULL, "channels u10 and v10, which by name are components"},
        {"{target: field}", axes, NULL, "channels flux_x and flux_y"},
        {"{target: field}", one, NULL, "channel uas, which by name is a component"},
        {"{target: field}, {input: target}", wind, NULL, "{x: {role: none, target: true}}"},
        {"{target: field}, {input: {role: none, target: true}}", wind, NULL, NULL},
        {"{target: field}, {input: none}", wind, wind, "and y, of which u10 and v10 by name are components"},
        {"{target: none}, {input: none}", wind, wind, NULL},
    };
    cvy_augment *a = NULL;
    char list[256];
    for (int i = 0; i < CVY_COUNT(row); i++) {
        cvy_reader_info of = square(3);
        of.columns = (cvy_columns){.nx = row[i].x ? 3 : 0, .x = row[i].x, .ny = row[i].y ? 3 : 0, .y = row[i].y};
        snprintf(list, sizeof list, "[%s, mirror]", row[i].roles);
        OK(make(list, 1, &of, &a));
        const char *left = cvy_augment_left(a);
        const int is_right = row[i].words ? left && strstr(left, row[i].words) != NULL : !left;
        if (!is_right)
            fprintf(stderr, "row %d: %s\n", i, left ? left : "nothing is said");
        TRUE_THAT(is_right);
        cvy_augment_destroy(&a);
        OK(make(list, 0, &of, &a)); /* nothing is turned */
        TRUE_THAT(!cvy_augment_left(a));
        cvy_augment_destroy(&a);
    }
    /* one target that is a component alone */
    cvy_reader_info of = square(3);
    of.y_shape = (cvy_shape){3, {1, SIDE, SIDE}};
    of.y_name = "v10";
    OK(make("[{target: field}, rotate90]", 1, &of, &a));
    TRUE_THAT(cvy_augment_left(a) && strstr(cvy_augment_left(a), "v10 by name is a component"));
    cvy_augment_destroy(&a);
}

/* Rotations of maps whose first row is in the north ask which way the vertical component counts; names may be those of
 * the file's variables. */
static void test_rows_from_the_north(void)
{
    static const char vector[] = "{input: {role: vector, order: x_y, components: [0, 1]%s}}, {target: none}, %s";
    const double north[SIDE] = {50, 40, 30, 20, 10, 0}, south[SIDE] = {0, 10, 20, 30, 40, 50};
    cvy_described x[3] = {{.name = "u10", .ndim = 3}, {.name = "v10", .ndim = 3}, {.name = "t2m", .ndim = 3}};
    cvy_reader_info of = square(3);
    const struct {
        const char *vertical, *steps;
        const double *rows;
        int is_said;
    } row[] = {{"", "rotate90", north, 1},
               {"", "mirror", north, 0},
               {"", "rotate90", south, 0},
               {"", "rotate90", NULL, 0},
               {", vertical: up", "rotate90", north, 0},
               {", vertical: down", "rotate90", north, 0}};
    cvy_augment *a = NULL;
    char list[200], text[220];
    of.described = (cvy_descriptions){.nx = 3, .x = x};
    for (int i = 0; i < CVY_COUNT(row); i++) {
        x[0].axis[1] = (cvy_coordinates){.name = "lat", .n = SIDE, .value = row[i].rows};
        snprintf(list, sizeof list, vector, row[i].vertical, row[i].steps);
        snprintf(text, sizeof text, "[%s]", list);
        OK(make(text, 1, &of, &a));
        const char *left = cvy_augment_left(a);
        TRUE_THAT(row[i].is_said ? left && strstr(left, "rows begin in the north (lat 50 to 0)") != NULL : !left);
        cvy_augment_destroy(&a);
    }
    OK(make("[{target: none}, mirror]", 1, &of, &a));
    TRUE_THAT(cvy_augment_left(a) && strstr(cvy_augment_left(a), "channels u10 and v10, which by name"));
    cvy_augment_destroy(&a);
}

int main(void)
{
    test_both_turn_alike();
    test_slope_of_a_hill();
    test_values_after_a_turn();
    test_not_finite();
    test_wrong_roles();
    test_steps_before_a_turn();
    test_notes();
    test_rows_from_the_north();
    cvy_augment_scratch_free(&turn);
    return 0;
}
