/* SPDX-License-Identifier: BSD-3-Clause */
/* test_data_mask.c: weights of positions, in .npy and HDF5 files, go with the pixels of x through mirrors and crops,
 * come from the cache as they were read, and let targets of weight 0 be missing; what does not fit is named. */
#include <math.h>

#include "data/load/data_cache.h"
#include "test_data_hdf5.h"

enum { N = 3, H = 4, W = 6, P = H * W };

static float x[N][P], y[N][P], weight[N][P];

/* The weight of a position follows from x there, so that they can be compared after any move. */
static float weight_of(float value)
{
    return (float)((int)value % 3);
}

static void make_samples(void)
{
    for (int n = 0; n < N; n++)
        for (int p = 0; p < P; p++) {
            x[n][p] = (float)(n * P + p);
            weight[n][p] = weight_of(x[n][p]);
            y[n][p] = weight[n][p] == 0 ? NAN : -x[n][p];
        }
}

static void put_samples(const char *shape)
{
    put_npy(in_scratch("m/x.npy"), "<f4", "3, 1, 4, 6", x, sizeof x);
    put_npy(in_scratch("m/y.npy"), "<f4", "3, 4, 6", y, sizeof y);
    put_npy(in_scratch("m/weight.npy"), "<f4", shape, weight, sizeof weight);
}

/* Reads all samples of an epoch, and checks that target and weight lie on x. */
static void check_samples(cvy_dataset *d, uint64_t epoch)
{
    static float a[P], b[P], c[P];
    void *const field[] = {a, b, c};
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const int64_t elems = cvy_shape_elems(&info->field[0].shape);
    TRUE_THAT(info->nfield == 3 && strcmp(info->field[2].name, "weight") == 0);
    TRUE_THAT(cvy_shape_elems(&info->field[2].shape) == elems);
    for (int n = 0; n < N; n++) {
        OK(cvy_dataset_read(d, n, epoch, field));
        for (int64_t p = 0; p < elems; p++) {
            TRUE_THAT(c[p] == weight_of(a[p]));
            TRUE_THAT(b[p] == (c[p] == 0 ? 0 : -a[p]));
        }
    }
}

static void test_npy(void)
{
    static const char *const augment[] = {
        NULL, "[{target: field}, mirror, {mirror: {axis: height}}, {random_crop: {size: [3, 4]}}]"};
    put_samples("3, 4, 6");
    for (int i = 0; i < CVY_COUNT(augment); i++) {
        cvy_dataset *d = NULL;
        cvy_cache_budget *budget = NULL;
        OK(open_text(in_scratch("m"), augment[i], 1, &d));
        OK(cvy_cache_budget_create(1 << 20, &budget));
        OK(cvy_dataset_cache(d, budget, 0));
        for (uint64_t epoch = 0; epoch < 4; epoch++)
            check_samples(d, epoch);
        TRUE_THAT(cvy_cache_budget_state(budget).samples == N);
        cvy_dataset_destroy(&d);
        cvy_cache_budget_destroy(&budget);
    }
}

static void test_hdf5(void)
{
#if CVY_HAVE_HDF5
    static double wide[3][N * P];
    char text[600];
    cvy_dataset *d = NULL;
    for (int i = 0; i < N * P; i++) {
        wide[0][i] = x[i / P][i % P];
        wide[1][i] = -x[i / P][i % P];
        wide[2][i] = weight[i / P][i % P];
    }
    const hid_t file = new_file("m.h5");
    add_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 4, .dim = {N, 1, H, W}}, wide[0]);
    add_set(file, "y", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 3, .dim = {N, H, W}}, wide[1]);
    add_set(file, "sea", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 3, .dim = {N, H, W}}, wide[2]);
    H5Fclose(file);
    snprintf(text, sizeof text, "{path: \"%s\", x: x, y: y, weight: sea}", in_scratch("m.h5"));
    OK(open_text(text, "[{target: field}, mirror]", 1, &d));
    static float a[P], b[P], c[P];
    void *const field[] = {a, b, c};
    for (uint64_t epoch = 0; epoch < 4; epoch++)
        for (int n = 0; n < N; n++) {
            OK(cvy_dataset_read(d, n, epoch, field));
            for (int p = 0; p < P; p++)
                TRUE_THAT(c[p] == weight_of(a[p]) && b[p] == (c[p] == 0 ? 0 : -a[p]));
        }
    cvy_dataset_destroy(&d);
#endif
}

static void test_what_is_refused(void)
{
    static float a[P], b[P], c[P];
    void *const field[] = {a, b, c};
    cvy_dataset *d = NULL;
    weight[1][2] = -1;
    put_samples("3, 4, 6");
    OK(open_text(in_scratch("m"), NULL, 0, &d));
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_FORMAT, "record 1: element 2 of weight is -1, expected 0 or more");
    cvy_dataset_destroy(&d);
    weight[1][2] = weight_of(x[1][2]);
    y[2][1] = NAN;
    put_samples("3, 4, 6");
    OK(open_text(in_scratch("m"), NULL, 0, &d));
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, "element 1 of y is nan");
    cvy_dataset_destroy(&d);
    put_samples("3, 24");
    FAILS(open_text(in_scratch("m"), "[{target: field}, mirror]", 1, &d), CVY_E_CONFIG,
          "the weights of 24 do not go with them");
}

int main(void)
{
    scratch_make();
    OK(cvy_file_make_folder(in_scratch("m")));
    make_samples();
    test_npy();
    test_hdf5();
    test_what_is_refused();
    scratch_remove();
    return 0;
}
