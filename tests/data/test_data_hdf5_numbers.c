/*
 * test_data_hdf5_numbers.c: the HDF5 reader gives the numbers that were written, for every type, layout and filter, and
 * to several threads at once; damaged streams and checksums are found.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_hdf5.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "data/data_half.h"
#include "data/data_inflate.h"

#if CVY_HAVE_HDF5

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

/* Booleans are 0 and 1, as pictures, vectors and labels; bytes of pictures are divided by 255, those of vectors not. */
static void test_booleans_and_bytes(void)
{
    static const double mask[] = {0, 1, 1, 0, 1, 0, 0, 1}, bytes[] = {0, 51, 255, 1, 2, 3, 4, 5}, flag[] = {1, 0};
    const hid_t file = new_file("kinds.h5"), boolean = truth();
    const struct layout picture = {.ndim = 4, .dim = {2, 1, 2, 2}}, vector = {.ndim = 2, .dim = {2, 4}},
                        each = {.ndim = 1, .dim = {2}};
    static const struct {
        const char *x;
        float second;
    } want[] = {{"mask", 1}, {"masks", 1}, {"bits", 1}, {"picture", 51 / 255.0F}, {"vector", 51}, {"flags", 51}};
    cvy_dataset *d = NULL;
    float x[4];
    int32_t label = -1;
    const struct {
        const char *name;
        struct layout l;
        hid_t type;
        const double *value;
    } set[] = {{"mask", vector, boolean, mask},         {"masks", picture, boolean, mask},
               {"bits", vector, H5T_STD_I8LE, mask},    {"picture", picture, H5T_STD_U8LE, bytes},
               {"vector", vector, H5T_STD_U8LE, bytes}, {"flags", picture, H5T_STD_U8LE, bytes},
               {"label", each, boolean, flag}};
    for (int i = 0; i < CVY_COUNT(set); i++) {
        struct layout l = set[i].l;
        l.type = set[i].type;
        add_set(file, set[i].name, l, set[i].value);
    }
    const hid_t flags = H5Dopen2(file, "flags", H5P_DEFAULT), one = H5Screate(H5S_SCALAR);
    H5Aclose(H5Acreate2(flags, "flag_meanings", H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(one);
    H5Dclose(flags);
    H5Tclose(boolean);
    H5Fclose(file);
    for (int i = 0; i < CVY_COUNT(want); i++) {
        char options[40];
        snprintf(options, sizeof options, "x: %s", want[i].x);
        OK(open_in("kinds.h5", options, &d));
        OK(cvy_dataset_read(d, 0, 0, (void *[]){x, &label}));
        TRUE_THAT(x[0] == 0 && fabsf(x[1] - want[i].second) < 1e-7F && label == 1);
        cvy_dataset_destroy(&d);
    }
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

int main(void)
{
    scratch_make();
    test_numbers();
    test_booleans_and_bytes();
    test_inflate();
    test_half_bits();
    test_half();
    test_threads();
    test_checksums();
    scratch_remove();
    return 0;
}

#else

int main(void)
{
    printf("skipped: this build has no HDF5\n");
    return 77;
}

#endif
