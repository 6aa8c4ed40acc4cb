/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_mat.c: MAT-files of level 5: arrays of all types in both byte orders, files of scipy, every byte damaged;
 * and folders of pictures whose labels and splits stand in such files, as those of Oxford's 102 flowers. */
#include "test_data_damage.h"
#include "test_data_pictures.h"

#include <stdio.h>

#include "data/array/data_mat.h"
#include "data/array/data_numbers.h"

/* ---- files made by hand ---- */

static uint8_t made[1 << 12];
static size_t made_bytes;
static int big_endian;

static void put(uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        made[made_bytes++] = (uint8_t)(value >> 8 * (big_endian ? bytes - 1 - i : i));
}

static void begin(int big)
{
    big_endian = big;
    made_bytes = 128;
    memset(made, ' ', 128);
    memcpy(made, "MATLAB 5.0 MAT-file", 19);
    memcpy(made + 124, big ? "\1\0MI" : "\0\1IM", 4);
}

/* An array of `n` equal numbers, whose class and type are given. */
static void put_array(int class, int type, int type_size, const char *name, int n, uint64_t bits)
{
    const int data = n * type_size, filled = data <= 4 ? 0 : (data + 7) / 8 * 8;
    put(14, 4);
    put((uint64_t)(16 + 16 + 16 + 8 + filled), 4);
    put(6, 4), put(8, 4), put((uint64_t) class, 4), put(0, 4); /* flags */
    put(5, 4), put(8, 4), put(1, 4), put((uint64_t)n, 4);      /* axes: 1 x n */
    put(1, 4), put(8, 4), memset(made + made_bytes, 0, 8);     /* name */
    memcpy(made + made_bytes, name, strlen(name)), made_bytes += 8;
    if (data <= 4)
        put((uint64_t)data << 16 | (uint64_t)type, 4);
    else
        put((uint64_t)type, 4), put((uint64_t)data, 4);
    const size_t start = made_bytes;
    for (int i = 0; i < n; i++)
        put(bits, type_size);
    memset(made + made_bytes, 0, 8);
    made_bytes = start + (size_t)(data <= 4 ? 4 : filled);
}

static void check(const char *name, double value)
{
    cvy_pool *pool = NULL;
    cvy_mat_array a;
    OK(cvy_pool_create(&pool));
    OK(cvy_mat_read(pool, in_scratch("made.mat"), name, "x", &a));
    TRUE_THAT(a.n == 3 && strcmp(a.name, name) == 0);
    for (int i = 0; i < 3; i++)
        TRUE_THAT(a.value[i] == value);
    cvy_pool_destroy(&pool);
}

static void test_types(void)
{
    static const struct {
        int class, type, size;
        const char *name;
        uint64_t bits;
        double value;
    } row[] = {
        {8, 1, 1, "i8", 0xff, -1},
        {6, 2, 1, "u8", 0xff, 255}, /* doubles that are stored as bytes */
        {10, 3, 2, "i16", 0x8000, -32768},
        {11, 4, 2, "u16", 0x8000, 32768},
        {12, 5, 4, "i32", 0xfffffffe, -2},
        {13, 6, 4, "u32", 0xfffffffe, 4294967294.0},
        {7, 7, 4, "f32", 0x3fc00000, 1.5},
        {6, 9, 8, "f64", 0xc004000000000000, -2.5},
        {14, 12, 8, "i64", 0xffffffffffffff00, -256},
        {15, 13, 8, "u64", 0x100, 256},
    };
    for (int big = 0; big < 2; big++) {
        begin(big);
        for (int i = 0; i < CVY_COUNT(row); i++)
            put_array(row[i].class, row[i].type, row[i].size, row[i].name, 3, row[i].bits);
        put_file(in_scratch("made.mat"), made, made_bytes);
        for (int i = 0; i < CVY_COUNT(row); i++)
            check(row[i].name, row[i].value);
    }
}

static cvy_status read_made(const char *name)
{
    cvy_pool *pool = NULL;
    cvy_mat_array a;
    OK(cvy_pool_create(&pool));
    put_file(in_scratch("made.mat"), made, made_bytes);
    const cvy_status status = cvy_mat_read(pool, in_scratch("made.mat"), name, "labels", &a);
    cvy_pool_destroy(&pool);
    return status;
}

static void test_refused(void)
{
    begin(0);
    FAILS(read_made(NULL), CVY_E_FORMAT, "has no array of real numbers");
    put_array(6, 9, 8, "a", 3, 0);
    OK(read_made(NULL)); /* the only one */
    put_array(6, 9, 8, "b", 3, 0);
    FAILS(read_made(NULL), CVY_E_CONFIG, "has the arrays a, b: say which one, as in FILE:a");
    FAILS(read_made("c"), CVY_E_CONFIG, "has no array of real numbers c; it has a, b");
    put_array(6, 9, 8, "labels", 3, 0);
    OK(read_made(NULL));
    made[128 + 4] = 0xff; /* the size of the first matrix */
    made[128 + 7] = 0xff;
    FAILS(read_made(NULL), CVY_E_FORMAT, "are left: truncated or damaged");
    begin(0);
    put_array(6, 9, 8, "a", 3, 0);
    made[128 + 8 + 16 + 12] = 0x7f; /* the length of the second axis */
    FAILS(read_made(NULL), CVY_E_FORMAT, "array a: 24 bytes of numbers for 127 numbers: damaged");
    begin(0);
    put_array(6, 11, 8, "a", 3, 0);
    FAILS(read_made(NULL), CVY_E_FORMAT, "numbers of the unknown type 11");
    memcpy(made, "MATLAB 7.3", 10);
    FAILS(read_made(NULL), CVY_E_UNSUPPORTED, "version 7.3");
    memcpy(made, "anything at all", 15);
    FAILS(read_made(NULL), CVY_E_FORMAT, "is no MAT-file of MATLAB 5");
}

static void look(const char *name, int bit, void *user)
{
    cvy_pool *pool = NULL;
    cvy_mat_array a;
    (void)bit, (void)user;
    OK(cvy_pool_create(&pool));
    if (cvy_mat_read(pool, in_scratch(name), NULL, "labels", &a) == CVY_OK)
        TRUE_THAT(a.n >= 0 && a.n < 1000 && a.value);
    cvy_pool_destroy(&pool);
}

/* No byte may lead to an access outside of the file. */
static void test_damage(void)
{
    begin(0);
    put_array(6, 2, 1, "labels", 3, 7);
    put_array(6, 9, 8, "b", 2, 7);
    damage_each_byte("damaged.mat", made, made_bytes, look, NULL);
}

/* ---- folders of pictures ---- */

#if CVY_HAVE_SPNG
static cvy_status open_flowers(const char *options, cvy_dataset **out)
{
    char text[2000];
    snprintf(text, sizeof text, "{path: \"%s\", %s}", in_scratch("jpg"), options);
    return open_text(text, NULL, 0, out);
}

static void check_labels(cvy_dataset *d, int n, const int *which, const int *label)
{
    char name[1024];
    int32_t got = -1;
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == n);
    for (int i = 0; i < n; i++) {
        char want[32];
        OK(cvy_dataset_label(d, i, &got));
        cvy_dataset_where(d, i, name, sizeof name);
        snprintf(want, sizeof want, "image_%05d.png", which[i]);
        TRUE_THAT(got == label[i] && strstr(name, want));
    }
}

static void put_flowers(void)
{
    OK(cvy_file_make_folder(in_scratch("jpg")));
    for (int i = 1; i <= 7; i++) {
        char name[40];
        snprintf(name, sizeof name, "jpg/image_%05d.png", i);
        put_png(in_scratch(name), i, 8, 8, 3);
    }
}

static void test_text(void)
{
    static const int all[] = {1, 2, 3, 4, 5, 6, 7}, from_0[] = {0, 1, 2, 0, 1, 2, 0};
    cvy_dataset *d = NULL;
    char options[640];
    put_file(in_scratch("labels"), "0\n1\n2\n0\n1\n2\n0\n", 14);
    snprintf(options, sizeof options, "labels: \"%s\"", in_scratch("labels"));
    OK(open_flowers(options, &d));
    check_labels(d, 7, all, from_0);
    cvy_dataset_destroy(&d);
    put_file(in_scratch("labels"), "0\n1\n2\n0\n1\n2\n", 12);
    FAILS(open_flowers(options, &d), CVY_E_FORMAT, "has 6 labels, and there are 7 pictures");
    put_file(in_scratch("labels"), "0\n1\n2\n0\n1\n2\n-1\n", 15);
    FAILS(open_flowers(options, &d), CVY_E_FORMAT, "number 7: label -1, expected 0 to");
    put_file(in_scratch("labels"), "0\n1\n2\n0\nred\n2\n0\n", 16);
    FAILS(open_flowers(options, &d), CVY_E_FORMAT, "line 5: \"red\" is no whole number");
    snprintf(options, sizeof options, "ids: \"%s\"", in_scratch("ids"));
    put_file(in_scratch("ids"), "7\n1\n7\n", 6);
    FAILS(open_flowers(options, &d), CVY_E_FORMAT, "number 3: 7, expected each of 1 to 7 at most once");
    put_file(in_scratch("ids"), "8\n", 2);
    FAILS(open_flowers(options, &d), CVY_E_FORMAT, "number 1: 8, expected each of 1 to 7");
    put_file(in_scratch("ids"), "# none\n", 7);
    FAILS(open_flowers(options, &d), CVY_E_FORMAT, "has no number");
    put_file(in_scratch("ids"), "7\n1\n", 4);
    OK(open_flowers(options, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 2 && cvy_dataset_describe(d)->nclasses == 0);
    cvy_dataset_destroy(&d);
    TRUE_THAT(rename(in_scratch("jpg/image_00007.png"), in_scratch("jpg/image_10.png")) == 0 &&
              rename(in_scratch("jpg/image_00006.png"), in_scratch("jpg/image_9.png")) == 0);
    FAILS(open_flowers(options, &d), CVY_E_FORMAT, "image_10.png stands before image_9.png");
}

#if CVY_HAVE_LIBDEFLATE
static void test_flowers(void)
{
    static const int all[] = {1, 2, 3, 4, 5, 6, 7}, label[] = {2, 0, 1, 1, 0, 2, 0}, tested[] = {3, 4, 7},
                     tested_label[] = {1, 1, 0};
    cvy_dataset *d = NULL;
    char options[1400], labels[640], ids[620];
    snprintf(labels, sizeof labels, "labels: \"%s\"", file_of_tests("flowers/imagelabels.mat"));
    snprintf(ids, sizeof ids, "%s", file_of_tests("flowers/setid.mat"));
    OK(open_flowers(labels, &d));
    check_labels(d, 7, all, label);
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 3 && strstr(cvy_dataset_describe(d)->note, "counted from 1"));
    const uint64_t hash = cvy_dataset_hash(d);
    cvy_dataset_destroy(&d);
    snprintf(options, sizeof options, "%s, ids: \"%s:tstid\"", labels, ids);
    OK(open_flowers(options, &d));
    check_labels(d, 3, tested, tested_label);
    TRUE_THAT(cvy_dataset_hash(d) != hash && cvy_dataset_describe(d)->nclasses == 3);
    cvy_dataset_destroy(&d);
    snprintf(options, sizeof options, "%s, ids: \"%s\"", labels, ids);
    FAILS(open_flowers(options, &d), CVY_E_CONFIG, "has the arrays trnid, valid, tstid: say which one");
    snprintf(options, sizeof options, "%s, first_label: 0", labels);
    OK(open_flowers(options, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 4);
    cvy_dataset_destroy(&d);
    snprintf(options, sizeof options, "%s, first_label: 2", labels);
    FAILS(open_flowers(options, &d), CVY_E_FORMAT, "number 2: label 1, expected 2 to");
    snprintf(options, sizeof options, "labels: \"%s:half\"", file_of_tests("flowers/others.mat"));
    FAILS(open_flowers(options, &d), CVY_E_FORMAT, "number 1 of array half: the label 1.5 is not a whole number");
    snprintf(options, sizeof options, "labels: \"%s:text\"", file_of_tests("flowers/others.mat"));
    FAILS(open_flowers(options, &d), CVY_E_CONFIG, "no array of real numbers text; it has half, f4, i8, flag, none");
}

/* Files of scipy, compressed: nothing that is changed may lead to an access outside. */
static void test_compressed(void)
{
    char *data = NULL;
    size_t bytes = 0;
    OK(cvy_file_read(file_of_tests("flowers/imagelabels.mat"), 1 << 16, &data, &bytes));
    damage_each_byte("damaged.mat", data, bytes, look, NULL);
    cvy_mem_free(&data);
}
#endif
#endif

int main(void)
{
    scratch_make();
    test_types();
    test_refused();
    test_damage();
#if CVY_HAVE_SPNG
    put_flowers();
#if CVY_HAVE_LIBDEFLATE
    test_flowers();
    test_compressed();
#endif
    test_text();
#endif
    scratch_remove();
    return 0;
}
