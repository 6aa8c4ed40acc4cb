/* SPDX-License-Identifier: BSD-3-Clause */
/* test_data_hdf5.c: the HDF5 reader: kinds of numbers, layouts, orders of axes, several files, conditions, damaged
 * files, and a file made by h5py (files/make_hdf5.py). */
#include "test_data_hdf5.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#include "data/data_half.h"
#include "data/hdf5/data_inflate.h"

#if CVY_HAVE_HDF5

/* ---- numbers and layouts ---- */

enum { N = 21, ROW = 2 * 4 * 6 };

static void check_rows(const char *name)
{
    cvy_dataset *d = NULL;
    float x[ROW];
    OK(open_in(name, "", &d));
    TRUE_THAT(strcmp(shape_of(d), "2x4x6") == 0 && cvy_dataset_describe(d)->nsamples == N);
    for (int64_t k = 0; k < 2 * N; k++) {
        const int64_t i = k * 8 % N;
        read_x(d, i, x);
        for (int e = 0; e < ROW; e++)
            TRUE_THAT(x[e] == (float)value_at(i * ROW + e));
    }
    cvy_dataset_destroy(&d);
}

static void test_numbers(void)
{
    double *v = values(N * ROW);
    const hid_t f16 = half();
    const hid_t type[] = {H5T_STD_I8LE,  H5T_STD_U16LE,  H5T_STD_I16BE,  H5T_STD_U32LE,  H5T_STD_I32BE,  H5T_STD_U64LE,
                          H5T_STD_I64LE, H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE, f16};
    const struct layout layout[] = {
        {.ndim = 4, .dim = {N, 2, 4, 6}},
        {.ndim = 4, .dim = {N, 2, 4, 6}, .chunk = {4, 2, 4, 6}},
        {.ndim = 4, .dim = {N, 2, 4, 6}, .chunk = {4, 2, 4, 6}, .level = 4},
        {.ndim = 4, .dim = {N, 2, 4, 6}, .chunk = {5, 2, 4, 6}, .level = 1, .shuffle = 1},
        {.ndim = 4, .dim = {N, 2, 4, 6}, .chunk = {5, 1, 3, 4}, .level = 1, .shuffle = 1},
        {.ndim = 4, .dim = {N, 2, 4, 6}, .chunk = {1, 2, 4, 6}, .shuffle = 1},
    };
    for (int t = 0; t < CVY_COUNT(type); t++)
        for (int k = 0; k < CVY_COUNT(layout); k++) {
            struct layout l = layout[k];
            l.type = type[t];
            const hid_t file = new_file("one.h5");
            add_set(file, "x", l, v);
            H5Fclose(file);
            check_rows("one.h5");
        }
    H5Tclose(f16);
    free(v);
}

/* A stream made by zlib: complete, cut short, with a wrong size, and with damage in each byte after the header. Only
 * the byte whose upper bits are padding is left out. */
static void test_inflate(void)
{
    enum { PADDED = 8 };
    static const uint8_t packed[] = {0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x06, 0x2c, 0x02, 0x15};
    char text[16] = {0};
    if (!CVY_HAVE_LIBDEFLATE) {
        FAILS(cvy_inflate(packed, sizeof packed, text, 5), CVY_E_UNSUPPORTED, "libdeflate");
        return;
    }
    OK(cvy_inflate(packed, sizeof packed, text, 5));
    TRUE_THAT(memcmp(text, "hello", 5) == 0);
    FAILS(cvy_inflate(packed, sizeof packed, text, 4), CVY_E_FORMAT, "more than 4");
    FAILS(cvy_inflate(packed, sizeof packed, text, 6), CVY_E_FORMAT, "unpack to 5, expected 6");
    FAILS(cvy_inflate(packed, sizeof packed - 1, text, 5), CVY_E_FORMAT, "damaged");
    for (size_t i = 2; i < sizeof packed; i++) {
        uint8_t damaged[sizeof packed];
        memcpy(damaged, packed, sizeof packed);
        damaged[i] ^= 0x10;
        TRUE_THAT(i == PADDED || cvy_inflate(damaged, sizeof packed, text, 5) == CVY_E_FORMAT);
    }
}

/* Both implementations give the same for all 65536 bit patterns, except that the CPU's instruction may choose another
 * NaN. */
static void test_half_bits(void)
{
    enum { ALL = 65536 };
    static uint16_t half_bits[ALL];
    static float fast[ALL], slow[ALL];
    for (int i = 0; i < ALL; i++)
        half_bits[i] = (uint16_t)i;
    cvy_half_to_f32(half_bits, ALL - 3, cvy_half_is_fast(), fast);
    cvy_half_to_f32(half_bits, ALL - 3, 0, slow);
    for (int i = 0; i < ALL - 3; i++)
        TRUE_THAT(isnan(slow[i]) ? isnan(fast[i]) : memcmp(&fast[i], &slow[i], sizeof fast[i]) == 0);
    TRUE_THAT(slow[1] == 0x1p-24f && slow[0x3c00] == 1 && slow[0x7bff] == 65504 && isinf(slow[0x7c00]) &&
              isnan(slow[0x7c01]));
}

static void test_half(void)
{
    static const double v[] = {
        0, -0.0, 1, -2.5, 65504, 6.103515625e-05, 5.9604644775390625e-08, -3.0 / (1 << 24), 0.333251953125};
    float x[CVY_COUNT(v)];
    cvy_dataset *d = NULL;
    const hid_t file = new_file("half.h5"), f16 = half();
    add_set(file, "x", (struct layout){.type = f16, .ndim = 2, .dim = {1, CVY_COUNT(v)}}, v);
    H5Fclose(file);
    H5Tclose(f16);
    OK(open_in("half.h5", "", &d));
    read_x(d, 0, x);
    for (int i = 0; i < CVY_COUNT(v); i++)
        TRUE_THAT(x[i] == (float)v[i] && !signbit(x[i]) == !signbit(v[i]));
    cvy_dataset_destroy(&d);
}

/* The cache holds a third of the chunks. Several threads read rows of all chunks at once and must get the right
 * values. */
static void *read_many(void *user)
{
    cvy_dataset *d = user;
    float *x = malloc(64 * 64 * sizeof *x);
    void *const field[] = {x};
    for (int64_t k = 0; k < 150; k++) {
        const int64_t i = k * 37 % 200;
        OK(cvy_dataset_read(d, i, 0, field));
        for (int e = 0; e < 64 * 64; e += 97)
            TRUE_THAT(x[e] == (float)value_at(i * 64 * 64 + e));
    }
    free(x);
    return NULL;
}

static void test_threads(void)
{
    double *v = values(200 * 64 * 64);
    cvy_dataset *d = NULL;
    pthread_t thread[3];
    const hid_t file = new_file("large.h5");
    add_set(file, "x",
            (struct layout){
                .type = H5T_IEEE_F32LE, .ndim = 4, .dim = {200, 1, 64, 64}, .chunk = {8, 1, 64, 64}, .level = 1},
            v);
    H5Fclose(file);
    OK(open_in("large.h5", "cache_mb: 1", &d));
    TRUE_THAT(cvy_dataset_reader_info(d)->blocks.count == 25 && cvy_dataset_reader_info(d)->blocks.first[24] == 192);
    for (int i = 0; i < 3; i++)
        TRUE_THAT(pthread_create(&thread[i], NULL, read_many, d) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    cvy_dataset_destroy(&d);
    free(v);
}

/* ---- axes ---- */

static void test_axes(void)
{
    double *v = values(6 * 5 * 4 * 3);
    float x[60];
    cvy_dataset *d = NULL;
    hid_t file = new_file("axes.h5");
    const hid_t u8 = H5T_STD_U8LE, f32 = H5T_IEEE_F32LE;
    add_set(file, "nhwc", (struct layout){.type = f32, .ndim = 4, .dim = {6, 5, 4, 3}}, v);
    add_set(file, "hwn", (struct layout){.type = f32, .ndim = 3, .dim = {5, 4, 6}}, v);
    add_set(file, "hwnc",
            (struct layout){.type = f32, .ndim = 4, .dim = {5, 4, 6, 3}, .chunk = {2, 4, 4, 2}, .level = 1}, v);
    add_set(file, "nhw", (struct layout){.type = u8, .ndim = 3, .dim = {6, 5, 4}}, v);
    add_set(file, "nwh", (struct layout){.type = u8, .ndim = 3, .dim = {6, 4, 5}}, v);
    add_set(file, "flat", (struct layout){.type = f32, .ndim = 1, .dim = {6}}, v);
    H5Fclose(file);
    OK(open_in("axes.h5", "x: nhwc", &d)); /* three channels last after five rows: guessed */
    TRUE_THAT(strcmp(shape_of(d), "3x5x4") == 0);
    read_x(d, 2, x);
    for (int e = 0; e < 60; e++) /* e counts c, h, w */
        TRUE_THAT(x[e] == (float)value_at(2 * 60 + (e % 20) * 3 + e / 20));
    cvy_dataset_destroy(&d);
    OK(open_in("axes.h5", "x: nhwc, axes: NCHW", &d));
    TRUE_THAT(strcmp(shape_of(d), "5x4x3") == 0);
    cvy_dataset_destroy(&d);
    OK(open_in("axes.h5", "x: hwn, axes: HWN", &d));
    TRUE_THAT(strcmp(shape_of(d), "1x5x4") == 0 && cvy_dataset_describe(d)->nsamples == 6);
    read_x(d, 4, x);
    for (int e = 0; e < 20; e++)
        TRUE_THAT(x[e] == (float)value_at(e * 6 + 4));
    cvy_dataset_destroy(&d);
    OK(open_in("axes.h5", "x: hwnc, axes: HWNC", &d));
    TRUE_THAT(strcmp(shape_of(d), "3x5x4") == 0);
    read_x(d, 5, x);
    for (int e = 0; e < 60; e++)
        TRUE_THAT(x[e] == (float)value_at((e % 20) * 18 + 5 * 3 + e / 20));
    cvy_dataset_destroy(&d);
    OK(open_in("axes.h5", "x: nhw", &d));
    TRUE_THAT(strcmp(shape_of(d), "1x5x4") == 0 && cvy_dataset_reader_info(d)->dtype == CVY_DTYPE_U8);
    read_x(d, 1, x);
    TRUE_THAT(x[7] == (float)value_at(27) * (1.0f / 255.0f));
    cvy_dataset_destroy(&d);
    OK(open_in("axes.h5", "x: nwh, axes: NWH", &d));
    TRUE_THAT(strcmp(shape_of(d), "1x5x4") == 0);
    read_x(d, 1, x);
    TRUE_THAT(x[7] == (float)value_at(20 + 3 * 5 + 1) * (1.0f / 255.0f)); /* h 1, w 3 */
    cvy_dataset_destroy(&d);
    OK(open_in("axes.h5", "x: flat", &d));
    TRUE_THAT(strcmp(shape_of(d), "1") == 0);
    cvy_dataset_destroy(&d);
    FAILS(open_in("axes.h5", "x: nhwc, axes: NHW", &d), CVY_E_SHAPE,
          "data set nhwc is 6x5x4x3: 4 axes, but axes is NHW");
    FAILS(open_in("axes.h5", "x: nhwc, axes: NHWQ", &d), CVY_E_CONFIG, "axes: NHWQ: \"Q\"");
    FAILS(open_in("axes.h5", "x: nhwc, axes: CHWD", &d), CVY_E_CONFIG, "one axis must be N");
    FAILS(open_in("axes.h5", "", &d), CVY_E_CONFIG, "which data set is the input?");
    free(v);
}

/* ---- several data sets, several files ---- */

/* Makes files a, b and c with 4, 0 and 3 rows: pictures of two channels, one more channel, two features, targets,
 * labels. */
static void make_runs(void)
{
    static const int rows[] = {4, 0, 3};
    const hid_t yes = truth();
    int64_t row = 0;
    OK(cvy_file_make_folder(in_scratch("runs")));
    for (int f = 0; f < 3; f++) {
        char name[32];
        double v[4 * 2 * 3 * 3], met[4], label[4], keep[4], y[8];
        const hsize_t n = (hsize_t)rows[f];
        snprintf(name, sizeof name, "runs/%c.h5", 'a' + f);
        for (int i = 0; i < (int)CVY_COUNT(v); i++)
            v[i] = (double)(row * 18 + i);
        for (int i = 0; i < 4; i++) {
            met[i] = (double)((row + i) * 10);
            label[i] = (double)((row + i) % 3);
            keep[i] = (row + i) % 2 == 0;
            y[2 * i] = (double)(row + i);
            y[2 * i + 1] = -(double)(row + i);
        }
        const hid_t file = new_file(name);
        H5Gclose(H5Gcreate2(file, "events", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        add_set(file, "x",
                (struct layout){
                    .type = H5T_IEEE_F32LE, .ndim = 4, .dim = {n, 2, 3, 3}, .chunk = {n ? 2 : 0, 2, 3, 3}, .level = 1},
                v);
        add_set(file, "events/more", (struct layout){.type = H5T_STD_I16LE, .ndim = 3, .dim = {n, 3, 3}}, v);
        add_set(file, "events/met", (struct layout){.type = H5T_IEEE_F64LE, .ndim = 1, .dim = {n}}, met);
        add_set(file, "events/keep", (struct layout){.type = yes, .ndim = 1, .dim = {n}}, keep);
        add_set(file, "pair", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {n, 2}}, y);
        add_set(file, "third", (struct layout){.type = H5T_STD_I64LE, .ndim = 2, .dim = {n, 1}}, met);
        add_set(file, "w", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {n}, .chunk = {n ? 3 : 0}}, met);
        const hid_t labels = put_set(
            file, "label",
            (struct layout){.type = H5T_STD_I64LE, .ndim = 1, .dim = {n}, .chunk = {n ? 2 : 0}, .level = 1}, label);
        const char *const names[] = {"photon", "pion", "k\xc3\xa4on"};
        const hid_t text = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &(hsize_t){3}, NULL);
        H5Tset_size(text, H5T_VARIABLE);
        const hid_t at = H5Acreate2(labels, "class_names", text, space, H5P_DEFAULT, H5P_DEFAULT);
        TRUE_THAT(H5Awrite(at, text, names) >= 0);
        H5Aclose(at);
        H5Sclose(space);
        H5Tclose(text);
        H5Dclose(labels);
        H5Fclose(file);
        row += rows[f];
    }
    H5Tclose(yes);
}

static void test_columns(void)
{
    cvy_dataset *d = NULL;
    float x[27], y[3], weight;
    int32_t label;
    void *const field[] = {x, &label, y, &weight};
    OK(open_in("runs", "x: [x, events/more], y: [pair, third], weight: w", &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 7 && strcmp(shape_of(d), "3x3x3") == 0 && info->nclasses == 3 && info->nfield == 4 &&
              strcmp(info->class_name[2], "k\xc3\xa4on") == 0 &&
              strcmp(cvy_shape_text(&info->field[2].shape), "3") == 0);
    for (int i = 0; i < 7; i++) {
        OK(cvy_dataset_read(d, i, 0, field));
        for (int e = 0; e < 18; e++)
            TRUE_THAT(x[e] == (float)(i * 18 + e));
        for (int e = 0; e < 9; e++) /* `more` of a file begins with its row's number times 18 */
            TRUE_THAT(x[18 + e] == (float)((i < 4 ? 0 : 72) + (i < 4 ? i : i - 4) * 9 + e));
        TRUE_THAT(label == i % 3 && y[0] == (float)i && y[1] == (float)-i && y[2] == (float)(10 * i) &&
                  weight == (float)(10 * i));
    }
    FAILS(cvy_dataset_read(d, 7, 0, field), CVY_E_ARGUMENT, "out of range");
    cvy_dataset_destroy(&d);
}

static void test_files(void)
{
    cvy_dataset *d = NULL;
    int32_t label = -1;
    OK(open_in("runs/[ac].h5", "label: none", &d)); /* a pattern */
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 7 && cvy_dataset_describe(d)->nclasses == 0);
    cvy_dataset_destroy(&d);
    OK(open_in("runs", "class_per_file: true, y: pair", &d));
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 3 && strcmp(cvy_dataset_describe(d)->class_name[2], "c") == 0);
    OK(cvy_dataset_label(d, 5, &label));
    TRUE_THAT(label == 2);
    cvy_dataset_destroy(&d);
    FAILS(open_in("runs/*.hdf5", "", &d), CVY_E_IO, "no file matches this pattern");
    FAILS(open_in("runs/z.h5", "", &d), CVY_E_IO, "no such file or folder");
    OK(open_text(in_scratch("runs"), NULL, 0, &d)); /* the format is found from the content */
    TRUE_THAT(strcmp(cvy_dataset_describe(d)->format, "hdf5") == 0);
    cvy_dataset_destroy(&d);
}

static void test_conditions(void)
{
    cvy_dataset *d = NULL;
    float x[18];
    int32_t label = -1;
    OK(open_in("runs", "where: \"events/met >= 20 and not events/met == 40\", mask: events/keep", &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 2); /* rows 2 and 6 of 0, 2, 4, 6 */
    read_x(d, 1, x);
    OK(cvy_dataset_label(d, 1, &label));
    TRUE_THAT(x[0] == 6 * 18 && label == 0);
    cvy_dataset_destroy(&d);
    FAILS(open_in("runs", "where: events/met > 1000", &d), CVY_E_FORMAT,
          "none of the 7 rows is selected by where: events/met > 1000");
    FAILS(open_in("runs", "where: met > 1", &d), CVY_E_CONFIG,
          "a.h5: has no data set \"met\" that can be read; it holds events/keep 4 bool");
    FAILS(open_in("runs", "where: met >", &d), CVY_E_CONFIG, "condition \"met >\"");
    FAILS(open_in("runs", "where: pair > 1", &d), CVY_E_SHAPE,
          "data set pair has 2 axes and 2 numbers per sample, expected one");
}

/* ---- what is wrong ---- */

static void test_faults(void)
{
    cvy_dataset *d = NULL;
    double *v = values(400);
    const hid_t text = H5Tcopy(H5T_C_S1), f32 = H5T_IEEE_F32LE;
    H5Tset_size(text, 8);
    hid_t file = new_file("bad.h5");
    add_set(file, "x", (struct layout){.type = f32, .ndim = 2, .dim = {10, 3}}, v);
    add_set(file, "short", (struct layout){.type = f32, .ndim = 1, .dim = {9}}, v);
    add_set(file, "half", (struct layout){.type = f32, .ndim = 1, .dim = {10}},
            (double[]){0, 1, 2.5, 0, 0, 0, 0, 0, 0, 0});
    add_set(file, "class", (struct layout){.type = f32, .ndim = 1, .dim = {10}},
            (double[]){0, 1, 2, 0, 0, 0, 0, 0, 0, -1});
    add_set(file, "wide", (struct layout){.type = f32, .ndim = 3, .dim = {10, 2, 2}}, v);
    const hid_t space = H5Screate_simple(1, &(hsize_t){10}, NULL), one = H5Screate(H5S_SCALAR);
    H5Dclose(H5Dcreate2(file, "names", text, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "single", f32, one, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Sclose(one);
    H5Tclose(text);
    H5Fclose(file);
    FAILS(open_in("bad.h5", "x: nothing", &d), CVY_E_CONFIG,
          "bad.h5: has no data set \"nothing\" that can be read; it holds class 10 float32, half 10 float32, names 10 "
          "text");
    FAILS(open_in("bad.h5", "weight: short", &d), CVY_E_SHAPE, "data set short is 9: 9 samples, but x has 10");
    FAILS(open_in("bad.h5", "label: short", &d), CVY_E_SHAPE, "data set short has 9 numbers for 10 samples");
    FAILS(open_in("bad.h5", "label: half", &d), CVY_E_FORMAT, "data set half, row 2: 2.5 is not the number of a class");
    FAILS(open_in("bad.h5", "weight: x", &d), CVY_E_SHAPE, "data set x has 3 numbers per sample, expected one");
    FAILS(open_in("bad.h5", "y: names", &d), CVY_E_UNSUPPORTED, "data set names holds text, expected numbers");
    FAILS(open_in("bad.h5", "x: single", &d), CVY_E_SHAPE, "data set single has 0 axes");
    FAILS(open_in("bad.h5", "x: [x, wide]", &d), CVY_E_SHAPE, "they cannot be joined as channels");
    FAILS(open_in("bad.h5", "x: []", &d), CVY_E_CONFIG, "x is an empty list");
    FAILS(open_in("bad.h5", "label: class, class_per_file: true", &d), CVY_E_CONFIG, "exclude each other");
    OK(open_in("bad.h5", "label: class, classes: 2", &d));
    float x[3];
    int32_t label;
    void *const field[] = {x, &label};
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, "bad.h5, row 2: label 2 is out of range, expected 0 .. 1");
    FAILS(cvy_dataset_read(d, 9, 0, field), CVY_E_FORMAT, "bad.h5, row 9: label -1");
    cvy_dataset_destroy(&d);
    /* Files of one set must have the same form. */
    OK(cvy_file_make_folder(in_scratch("mixed")));
    file = new_file("mixed/a.h5");
    add_set(file, "x", (struct layout){.type = f32, .ndim = 2, .dim = {10, 3}}, v);
    H5Fclose(file);
    file = new_file("mixed/b.h5");
    add_set(file, "x", (struct layout){.type = f32, .ndim = 2, .dim = {10, 4}}, v);
    H5Fclose(file);
    FAILS(open_in("mixed", "", &d), CVY_E_SHAPE, "mixed/b.h5: data set x is 10x4, other samples than the 10x3 of");
    file = new_file("mixed/b.h5");
    add_set(file, "x", (struct layout){.type = H5T_STD_U8LE, .ndim = 2, .dim = {10, 3}}, v);
    H5Fclose(file);
    FAILS(open_in("mixed", "", &d), CVY_E_FORMAT, "mixed/b.h5: data set x holds uint8, but other numbers in");
    put_file(in_scratch("mixed/b.h5"), "hello", 5);
    FAILS(open_in("mixed", "", &d), CVY_E_FORMAT, "mixed/b.h5: cannot be opened as an HDF5 file (HDF5: ");
    free(v);
}

static void add_virtual(hid_t file, const char *name, const char *part)
{
    const hid_t space = H5Screate_simple(2, (hsize_t[]){10, 3}, NULL), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(made, space, part, "x", space);
    H5Dclose(H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT));
    H5Pclose(made);
    H5Sclose(space);
}

static void expect_there(const char *options)
{
    cvy_dataset *d = NULL;
    float x[3] = {0};
    OK(open_in("links/here.h5", options, &d));
    read_x(d, 4, x);
    TRUE_THAT(x[1] == (float)value_at(13));
    cvy_dataset_destroy(&d);
}

/* A link into another file, and numbers that are kept there, must stay within the folder. */
static void test_links(void)
{
    cvy_dataset *d = NULL;
    double *v = values(30);
    char absolute[4200], outside[4200], moved[4200];
    OK(cvy_file_make_folder(in_scratch("links")));
    snprintf(absolute, sizeof absolute, "%s/there.h5", realpath(in_scratch("links"), (char[4096]){0}));
    snprintf(outside, sizeof outside, "%s/outside.h5", realpath(in_scratch("."), (char[4096]){0}));
    snprintf(moved, sizeof moved, "/no/such/folder/there.h5");
    hid_t file = new_file("links/there.h5");
    add_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    H5Fclose(file);
    file = new_file("outside.h5");
    add_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    H5Fclose(file);
    file = new_file("links/here.h5");
    H5Lcreate_external("there.h5", "x", file, "near", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("../outside.h5", "x", file, "far", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("lost.h5", "x", file, "lost", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(absolute, "x", file, "absolute", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(outside, "x", file, "farther", H5P_DEFAULT, H5P_DEFAULT);
    add_virtual(file, "parts", "there.h5");
    add_virtual(file, "parts_absolute", absolute);
    add_virtual(file, "parts_moved", moved);
    add_virtual(file, "parts_lost", "lost.h5");
    add_virtual(file, "parts_outside", outside);
    H5Fclose(file);
    expect_there("x: near");
    expect_there("x: absolute");
    expect_there("x: parts");
    expect_there("x: parts_absolute");
    expect_there("x: parts_moved");
    FAILS(open_in("links/here.h5", "x: far", &d), CVY_E_CONFIG, "has no data set \"far\" that can be read; it holds ");
    FAILS(open_in("links/here.h5", "x: far", &d), CVY_E_CONFIG,
          "far (link to x of ../outside.h5, which is outside of this folder and is not followed)");
    FAILS(open_in("links/here.h5", "x: farther", &d), CVY_E_CONFIG, "has no data set \"farther\" that can be read");
    FAILS(open_in("links/here.h5", "x: lost", &d), CVY_E_CONFIG,
          "lost (link to x of lost.h5, which is no data set that can be opened)");
    FAILS(open_in("links/here.h5", "x: parts_lost", &d), CVY_E_IO,
          "data set parts_lost is virtual, and the file of a part of it is missing: lost.h5");
    FAILS(open_in("links/here.h5", "x: parts_outside", &d), CVY_E_FORMAT,
          "data set parts_outside is virtual and reaches outside its folder: /");
    /* Names that are not given are searched among links, too, and none is passed over in silence. */
    file = new_file("links/here.h5");
    H5Lcreate_external("there.h5", "x", file, "X", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    expect_there("");
    file = new_file("links/here.h5");
    add_set(file, "other", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    H5Lcreate_external(outside, "x", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    FAILS(open_in("links/here.h5", "", &d), CVY_E_CONFIG, "has no data set \"x\" that can be read; it holds other");
    free(v);
}

static size_t as_it_is(unsigned flags, size_t nvalue, const unsigned *value, size_t n, size_t *room, void **data)
{
    (void)flags, (void)nvalue, (void)value, (void)room, (void)data;
    return n;
}

/* Files of h5py with compression="lzf" have a filter that only h5py brings. */
static void test_filters(void)
{
    enum { LZF = 32000 };
    static const H5Z_class2_t lzf = {H5Z_CLASS_T_VERS, LZF, 1, 1, "lzf", NULL, NULL, as_it_is};
    cvy_dataset *d = NULL;
    double *v = values(30);
    TRUE_THAT(H5Zregister(&lzf) >= 0);
    hid_t file = new_file("filter.h5");
    const hid_t space = H5Screate_simple(2, (hsize_t[]){10, 3}, NULL), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(made, 2, (hsize_t[]){5, 3});
    H5Pset_filter(made, LZF, H5Z_FLAG_OPTIONAL, 0, NULL);
    const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
    TRUE_THAT(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
    H5Dclose(set);
    H5Pclose(made);
    H5Sclose(space);
    H5Fclose(file);
    OK(open_in("filter.h5", "sandbox: false", &d)); /* the filter is known in this process only */
    cvy_dataset_destroy(&d);
    TRUE_THAT(H5Zunregister(LZF) >= 0);
    FAILS(open_in("filter.h5", "", &d), CVY_E_UNSUPPORTED,
          "filter.h5: data set x is compressed by the filter lzf (number 32000), which the HDF5 library here lacks");
    FAILS(open_in("filter.h5", "", &d), CVY_E_UNSUPPORTED, "`h5repack -f GZIP=4 IN OUT`");
    free(v);
}

/* ---- checksums ---- */

static void read_checked(const struct layout *l, const double *v)
{
    const int elems = (int)l->dim[1], rows = (int)l->dim[0];
    float *x = malloc((size_t)elems * sizeof *x);
    char *data = NULL;
    size_t bytes = 0;
    cvy_dataset *d = NULL;
    const hid_t file = new_file("sum.h5");
    add_set(file, "x", *l, v);
    H5Fclose(file);
    OK(open_in("sum.h5", "", &d));
    for (int i = 0; i < rows && d; i++) {
        OK(cvy_dataset_read(d, i, 0, (void *const[]){x}));
        for (int k = 0; k < elems; k++)
            TRUE_THAT(x[k] == (float)v[i * elems + k]);
    }
    cvy_dataset_destroy(&d);
    /* One bit of the last chunk, which is the last part of the file. */
    OK(cvy_file_read(in_scratch("sum.h5"), 1 << 20, &data, &bytes));
    data[bytes - 9] ^= 0x10;
    put_file(in_scratch("sum.h5"), data, bytes);
    OK(open_in("sum.h5", "", &d));
    FAILS(cvy_dataset_read(d, rows - 1, 0, (void *const[]){x}), CVY_E_FORMAT, "its checksum is ");
    cvy_dataset_destroy(&d);
    cvy_mem_free(&data);
    free(x);
}

static void test_checksums(void)
{
    enum { ELEMS = 777 };
    double *v = values(6 * ELEMS);
    for (int i = 0; i < 6 * ELEMS; i++)
        v[i] = i % 7 == 0 ? -1 : (double)(i * 31 % 127); /* -1: bytes of 255 */
    const struct layout l = {.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {6, ELEMS}, .chunk = {2, ELEMS}, .sum = 1};
    for (int how = 0; how < 4; how++) {
        struct layout with = l;
        with.shuffle = how & 1;
        with.level = how & 2 ? 4 : 0;
        read_checked(&with, v);
    }
    struct layout odd = l;
    odd.type = H5T_STD_I8LE;
    odd.chunk[0] = 1;
    read_checked(&odd, v);
    free(v);
}

/* ---- damage ---- */

/* Opens the file and reads all that can be read. Any result is accepted if the process survives. */
static void try_all(const char *path)
{
    cvy_dataset *d = NULL;
    char text[600];
    float x[ROW];
    float rest[8];
    void *const field[] = {x, rest, rest, rest};
    snprintf(text, sizeof text, "{path: \"%s\", format: hdf5}", path);
    if (open_text(text, NULL, 0, &d) != CVY_OK)
        return;
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const int fits = info->nsamples <= 1000 && cvy_shape_elems(&info->field[0].shape) <= ROW && info->nfield <= 2;
    for (int64_t i = 0; i < info->nsamples && fits; i++)
        (void)!cvy_dataset_read(d, i, 0, field);
    cvy_dataset_destroy(&d);
}

/* Runs try_all in a process of its own, because the library itself does not survive every damaged header. */
static int survives(const char *path)
{
    fflush(NULL);
    const pid_t child = fork();
    TRUE_THAT(child >= 0);
    if (child == 0) {
        alarm(20);
        try_all(path);
        _exit(0);
    }
    int code = -1;
    TRUE_THAT(waitpid(child, &code, 0) == child);
    return WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

static void test_damage(void)
{
    double *v = values(N * ROW);
    hid_t file = new_file("whole.h5");
    add_set(file, "x",
            (struct layout){.type = H5T_STD_I16LE, .ndim = 4, .dim = {N, 2, 4, 6}, .chunk = {4, 2, 4, 6}, .level = 4},
            v);
    add_set(file, "w", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {N}}, v);
    H5Fclose(file);
    char *data = NULL;
    size_t bytes = 0;
    cvy_dataset *d = NULL;
    OK(cvy_file_read(in_scratch("whole.h5"), 1 << 20, &data, &bytes));
    for (size_t cut = 0; cut < bytes; cut += 97) {
        put_file(in_scratch("cut.h5"), data, cut);
        TRUE_THAT(open_in("cut.h5", "", &d) < 0);
    }
    /* HDF5 1.10 reads outside its own buffers when some headers are damaged, and a sanitizer would end the process. */
    const char *sanitize = getenv("CONVOY_SANITIZE");
    const int step = sanitize && strcmp(sanitize, "ON") == 0 ? 0 : (int)bytes / 60;
    for (size_t at = 0; step > 0 && at < bytes; at += (size_t)step) {
        data[at] ^= 0x41;
        put_file(in_scratch("flip.h5"), data, bytes);
        TRUE_THAT(survives(in_scratch("flip.h5")));
        data[at] ^= 0x41;
    }
    /* Damage within a chunk is reported with its place. */
    uint8_t *chunk = memmem(data, bytes, "\x78\x5e", 2); /* a zlib stream of level 4 */
    TRUE_THAT(chunk != NULL);
    for (int i = 8; i < 24; i++)
        chunk[i] ^= 0xff;
    put_file(in_scratch("torn.h5"), data, bytes);
    OK(open_in("torn.h5", "x: [x]", &d));
    float x[ROW];
    void *const field[] = {x};
    int failed = 0;
    for (int64_t i = 0; i < N; i++)
        if (cvy_dataset_read(d, i, 0, field) != CVY_OK) {
            TRUE_THAT(strstr(cvy_error_text(), "torn.h5, row ") && strstr(cvy_error_text(), "data set x"));
            failed++;
        }
    TRUE_THAT(failed == N); /* several threads read such small chunks */
    cvy_dataset_destroy(&d);
    cvy_mem_free(&data);
    free(v);
}

/* ---- files made by other programs ---- */

static void test_h5py(void)
{
    const char *source = getenv("CONVOY_SOURCE");
    char text[1024];
    cvy_dataset *d = NULL;
    float x[24];
    if (!source)
        return;
    snprintf(text, sizeof text,
             "{path: \"%s/tests/data/files/h5py.h5\", x: images, y: targets, weight: none, label: kind}", source);
    OK(open_text(text, NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 10 && strcmp(shape_of(d), "2x3x4") == 0 && info->nclasses == 3 &&
              strcmp(info->class_name[1], "muon") == 0);
    float y[3];
    int32_t label;
    void *const field[] = {x, &label, y};
    for (int i = 0; i < 10; i++) {
        OK(cvy_dataset_read(d, i, 0, field));
        for (int e = 0; e < 24; e++)
            TRUE_THAT(x[e] == (float)(i * 24 + e - 100) / 8);
        TRUE_THAT(label == i % 3 && y[0] == (float)i && y[1] == (float)i / 2 && y[2] == (float)-i);
    }
    cvy_dataset_destroy(&d);
    snprintf(text, sizeof text,
             "{path: \"%s/tests/data/files/h5py.h5\", x: rgb, label: none, mask: good, where: \"met > 30\"}", source);
    OK(open_text(text, NULL, 0, &d)); /* met is 10 times the row, every other row is good: 4, 6, 8 */
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 3 && strcmp(shape_of(d), "3x5x6") == 0);
    float rgb[90];
    read_x(d, 1, rgb);
    TRUE_THAT(rgb[31] == (float)((6 * 90 + 1 * 3 + 1) % 256) * (1.0f / 255.0f)); /* channel 1, position 1 */
    cvy_dataset_destroy(&d);
}

int main(void)
{
    scratch_make();
    test_numbers();
    test_inflate();
    test_half_bits();
    test_half();
    test_threads();
    test_axes();
    test_checksums();
    make_runs();
    test_columns();
    test_files();
    test_conditions();
    test_faults();
    test_links();
    test_filters();
    test_damage();
    test_h5py();
    scratch_remove();
    return 0;
}

#else

int main(void)
{
    cvy_dataset *d = NULL;
    scratch_make();
    put_file(in_scratch("x.h5"), "\x89HDF\r\n\x1a\n", 8);
    FAILS(open_text(in_scratch("x.h5"), NULL, 0, &d), CVY_E_UNSUPPORTED, "HDF5 is not part of this build");
    scratch_remove();
    return 0;
}

#endif
