/*
 * test_data_part.c: a part of a sample, as ranks read that share samples, is what is cut out of the whole sample: for
 * arrays of several types and axes, HDF5 files with and without chunks, generated data and joined sources; with
 * augmentation of single elements and of pictures, and with samples kept in memory. What lies outside of the part is
 * read only if the format or the augmentation needs it, or if all must be checked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "test_data_hdf5.h"

enum { ROOM = 4096 };

/* Part `at` of 2 along dimension `dim` of a field. */
static cvy_field_part half_of(const cvy_shape *whole, int dim, int at)
{
    cvy_field_part p = {.is_part = 1, .shape = *whole, .tile.whole = *whole};
    const int64_t n = whole->dim[dim], first = at ? n / 2 : 0;
    p.shape.dim[dim] = at ? n - n / 2 : n / 2;
    p.tile.first[dim] = first;
    return p;
}

static int find_y(const cvy_dataset_info *info)
{
    int y = 0;
    for (int f = 1; f < info->nfield; f++)
        if (strcmp(info->field[f].name, "y") == 0 && info->field[f].shape.ndim > 1)
            y = f;
    return y;
}

/* Compares a field with the part that is cut out of the whole. */
static void compare(const cvy_field *f, const cvy_field_part *part, const char *whole, const char *got)
{
    const size_t elem = cvy_dtype_bytes(f->dtype);
    const int64_t n = cvy_shape_elems(part->is_part ? &part->shape : &f->shape);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = part->is_part ? cvy_tile_index(&part->tile, &part->shape, i) : i;
        TRUE_THAT(memcmp(got + (size_t)i * elem, whole + (size_t)at * elem, elem) == 0);
    }
}

/* Reads sample `number` whole and in both parts along each dimension of x but the first. */
static void read_both(cvy_dataset *d, int64_t number)
{
    static _Alignas(8) char whole[CVY_FIELD_MAX][ROOM], got[CVY_FIELD_MAX][ROOM];
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    void *all[CVY_FIELD_MAX], *some[CVY_FIELD_MAX];
    const int y = find_y(info);
    for (int f = 0; f < info->nfield; f++) {
        TRUE_THAT((size_t)cvy_shape_elems(&info->field[f].shape) * cvy_dtype_bytes(info->field[f].dtype) <= ROOM);
        all[f] = whole[f];
        some[f] = got[f];
    }
    OK(cvy_dataset_read(d, number, 3, all));
    for (int dim = 1; dim < info->field[0].shape.ndim; dim++)
        for (int at = 0; at < 2; at++)
            for (int checks_all = 0; checks_all < 2; checks_all++) {
                cvy_field_part part[CVY_FIELD_MAX] = {half_of(&info->field[0].shape, dim, at)};
                if (y && info->field[y].shape.ndim > dim)
                    part[y] = half_of(&info->field[y].shape, dim, at);
                memset(got, 0x55, sizeof got);
                OK(cvy_dataset_read_parts(d, number, 3, part, checks_all, some));
                for (int f = 0; f < info->nfield; f++)
                    compare(&info->field[f], &part[f], whole[f], got[f]);
            }
}

static const char *const steps[] = {
    NULL,
    "[{normalize: {mean: 0.5, std: 3}}, {log: 2}, {scale: 2}]",
    "[{target: none}, {mirror: {}}, {cutout: {size: 2}}, {random_crop: {size: 4, pad: 1}}]",
};

/* nsteps: of the lists above; those of pictures are for [C, H, W]. */
static void check(const char *source, int nsteps)
{
    for (int k = 0; k < nsteps; k++)
        for (int kept = 0; kept < 2; kept++) {
            cvy_dataset *d = NULL;
            cvy_cache_budget *budget = NULL;
            OK(open_text(source, steps[k], 1, &d));
            OK(cvy_cache_budget_create(1 << 20, &budget));
            if (kept)
                OK(cvy_dataset_cache(d, budget, 0));
            for (int64_t i = 0; i < cvy_dataset_describe(d)->nsamples; i++)
                read_both(d, i);
            cvy_dataset_destroy(&d);
            cvy_cache_budget_destroy(&budget);
        }
}

static void test_generated(void)
{
    check("{format: synthetic, samples: 3, shape: [3, 10, 9]}", 3);
    check("{format: synthetic, samples: 3, shape: [2, 4, 5, 6], targets: 2}", 2);
    check("[{format: synthetic, samples: 2, shape: [1, 7, 6]}, {format: synthetic, samples: 3, shape: [1, 7, 6]}]", 3);
}

static void test_npy(void)
{
    enum { N = 2 * 3 * 6 * 7 };
    static float f4[N];
    static double f8[N];
    static uint8_t u1[N];
    char text[700];
    for (int i = 0; i < N; i++) {
        f8[i] = f4[i] = (float)(i % 97) + 0.5f;
        u1[i] = (uint8_t)(i % 251);
    }
    put_npy(in_scratch("f4.npy"), "<f4", "2, 3, 6, 7", f4, sizeof f4);
    put_npy(in_scratch("f8.npy"), "<f8", "2, 3, 6, 7", f8, sizeof f8);
    put_npy(in_scratch("last.npy"), "|u1", "2, 6, 7, 3", u1, sizeof u1);
    put_npy(in_scratch("none.npy"), ">i2", "6, 3, 7", f8, 6 * 3 * 7 * 2);
    snprintf(text, sizeof text, "{format: npy, x: %s, y: %s}", in_scratch("f4.npy"), in_scratch("f8.npy"));
    check(text, 3);
    snprintf(text, sizeof text, "{format: npy, x: %s, channels: last}", in_scratch("last.npy"));
    check(text, 3);
    snprintf(text, sizeof text, "{format: npy, x: %s, channels: none}", in_scratch("none.npy"));
    check(text, 2);
}

/* A number in the other half of the sample is not finite. */
static void test_only_the_part(void)
{
    enum { N = 2 * 4 * 2048 };
    static float x[N], got[N];
    cvy_dataset *d = NULL;
    void *const field[] = {got};
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 1000);
    x[5000] = NAN; /* row 2 of the first channel */
    put_npy(in_scratch("bad.npy"), "<f4", "1, 2, 4, 2048", x, sizeof x);
    OK(open_text(in_scratch("bad.npy"), NULL, 0, &d));
    const cvy_shape *whole = &cvy_dataset_describe(d)->field[0].shape;
    const cvy_field_part upper = half_of(whole, 1, 0), lower = half_of(whole, 1, 1);
    OK(cvy_dataset_read_parts(d, 0, 0, &upper, 0, field));
    TRUE_THAT(got[4095] == x[4095] && got[4096] == x[8192]);
    FAILS(cvy_dataset_read_parts(d, 0, 0, &lower, 0, field), CVY_E_FORMAT, "bad.npy, record 0: element 904 of x");
    FAILS(cvy_dataset_read_parts(d, 0, 0, &upper, 1, field), CVY_E_FORMAT, "bad.npy, record 0: element 5000 of x");
    cvy_dataset_destroy(&d);
}

static cvy_status one_each(void *user, int64_t step, cvy_share *out, int max, int *nshare_out)
{
    (void)user, (void)max;
    *nshare_out = 1;
    out[0] = (cvy_share){.first_position = step, .n = 1};
    return step < 4 ? CVY_OK : CVY_END;
}

/* A loader of parts keeps parts only. */
static void test_loader(void)
{
    int64_t bytes[2];
    cvy_dataset *d = NULL;
    OK(open_text("{format: synthetic, samples: 4, shape: [1, 64, 64]}", NULL, 0, &d));
    const cvy_shape *whole = &cvy_dataset_describe(d)->field[0].shape;
    for (int in_parts = 0; in_parts < 2; in_parts++) {
        cvy_loader_opts opts = {.threads = 0, .depth = 2, .share = one_each};
        cvy_loader *l = NULL;
        const cvy_rows *rows = NULL;
        if (in_parts)
            opts.part[0] = half_of(whole, 1, 1);
        const int64_t before = cvy_memory_bytes();
        OK(cvy_loader_create(d, &opts, &l));
        bytes[in_parts] = cvy_memory_bytes() - before;
        OK(cvy_loader_get(l, 0, &rows, NULL));
        static float x[64 * 64];
        int32_t label = 0;
        OK(cvy_dataset_read(d, rows->id[0], 0, (void *const[]){x, &label}));
        TRUE_THAT(memcmp(rows->field[0], x + in_parts * 32 * 64, (size_t)(in_parts ? 32 : 64) * 64 * sizeof *x) == 0);
        cvy_loader_release(l, rows);
        cvy_loader_destroy(&l);
    }
    TRUE_THAT(bytes[0] - bytes[1] >= 32 * 64 * (int64_t)sizeof(float));
    cvy_dataset_destroy(&d);
}

#if CVY_HAVE_HDF5
static void test_hdf5(void)
{
    static const struct layout kinds[] = {
        {.type = 0, .ndim = 4, .dim = {3, 2, 6, 7}},
        {.type = 0, .ndim = 4, .dim = {3, 2, 6, 7}, .chunk = {1, 1, 4, 3}},
        {.type = 0, .ndim = 4, .dim = {3, 2, 6, 7}, .chunk = {1, 2, 6, 7}, .level = 3, .shuffle = 1},
        {.type = 0, .ndim = 4, .dim = {3, 2, 6, 7}, .chunk = {1, 2, 2, 5}, .level = 3, .sum = 1},
        {.type = 0, .ndim = 4, .dim = {3, 2, 6, 7}, .chunk = {2, 1, 4, 4}, .level = 1},
    };
    double *const v = values(3 * 2 * 6 * 7);
    char text[700];
    for (int i = 0; i < CVY_COUNT(kinds); i++) {
        const hid_t file = new_file("part.h5"), types[] = {H5T_IEEE_F32BE, H5T_STD_U8LE, H5T_IEEE_F64LE};
        struct layout x = kinds[i], y = kinds[i];
        x.type = types[i % 3];
        y.type = H5T_STD_I16BE;
        add_set(file, "x", x, v);
        add_set(file, "again", x, v);
        add_set(file, "y", y, v);
        H5Fclose(file);
        snprintf(text, sizeof text, "{path: %s, y: y}", in_scratch("part.h5"));
        check(text, 3);
        snprintf(text, sizeof text, "{path: %s, x: [x, again], y: y}", in_scratch("part.h5"));
        check(text, 2);
        snprintf(text, sizeof text, "{path: %s, x: x, axes: NHWC}", in_scratch("part.h5"));
        check(text, 2);
    }
    free(v);
}

/* The chunk of the other half is damaged: it is not read. */
static void test_only_the_chunk(void)
{
    static float got[2 * 6 * 8];
    const struct layout l = {.type = H5T_IEEE_F32LE, .ndim = 4, .dim = {1, 2, 6, 8}, .chunk = {1, 2, 6, 4}, .sum = 1};
    double *const v = values(2 * 6 * 8);
    void *const field[] = {got};
    cvy_dataset *d = NULL;
    char text[600];
    const hid_t file = new_file("damaged.h5");
    add_set(file, "x", l, v);
    H5Fclose(file);
    flip_byte(in_scratch("damaged.h5"), -8);
    snprintf(text, sizeof text, "{path: %s}", in_scratch("damaged.h5"));
    OK(open_text(text, NULL, 0, &d));
    const cvy_shape *whole = &cvy_dataset_describe(d)->field[0].shape;
    int nread = 0;
    for (int at = 0; at < 2; at++) {
        const cvy_field_part part = half_of(whole, 2, at);
        nread += cvy_dataset_read_parts(d, 0, 0, &part, 0, field) == CVY_OK;
    }
    TRUE_THAT(nread == 1);
    cvy_dataset_destroy(&d);
    free(v);
}
#endif

int main(void)
{
    scratch_make();
    test_generated();
    test_npy();
    test_only_the_part();
    test_loader();
#if CVY_HAVE_HDF5
    test_hdf5();
    test_only_the_chunk();
#endif
    scratch_remove();
    return 0;
}
