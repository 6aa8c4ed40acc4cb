/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan minimal */
/* test_data_packed.c: .npz archives and IDX files compressed by gzip are read as they are downloaded: arrays chosen by
 * usual names and splits, or named; damaged archives, archives made to fill the memory, and encrypted ones are
 * refused. */
#include "test_data_support.h"

#include <stdio.h>

static const char *source_of(const char *path, const char *options)
{
    static char text[900];
    snprintf(text, sizeof text, "{path: \"%s\", format: npy%s%s}", path, *options ? ", " : "", options);
    return text;
}

static const char *note_of(const cvy_dataset *d)
{
    return cvy_dataset_describe(d)->note ? cvy_dataset_describe(d)->note : "";
}

/* Arrays that are stored: labels of reals, weights, bytes of pictures. */
static void test_plain(void)
{
    float x[6], weight = 0;
    int32_t label = -1;
    cvy_dataset *d = NULL;
    OK(open_text(file_of_tests("plain.npz"), NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 4 && info->nclasses == 2 && info->nfield == 3 && strcmp(info->format, "npy") == 0);
    TRUE_THAT(
        strstr(note_of(d), "plain.npz: of the arrays of the archive x is images, label is label, weight is weight"));
    OK(cvy_dataset_read(d, 1, 0, (void *[]){x, &label, &weight}));
    TRUE_THAT(x[0] == 60 * (1.0f / 255.0f) && x[5] == 110 * (1.0f / 255.0f) && label == 1 && weight == 2);
    cvy_dataset_destroy(&d);
    OK(open_text(source_of(file_of_tests("plain.npz"), "label: none, weight: none, y: weight"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nfield == 2 && strcmp(cvy_dataset_describe(d)->field[1].name, "y") == 0);
    cvy_dataset_destroy(&d);
    FAILS(open_text(source_of(file_of_tests("plain.npz"), "x: image"), NULL, 0, &d), CVY_E_CONFIG,
          "the archive has no array image; it holds images, label, weight");
    FAILS(open_text(source_of(file_of_tests("plain.npz"), "part: test"), NULL, 0, &d), CVY_E_CONFIG,
          "which array of the archive is the input?");
}

/* Arrays that are deflated, of two splits. A y of integers is labels. */
static void test_splits(void)
{
    float x[6];
    int32_t label = -1;
    cvy_dataset *d = NULL;
    if (!CVY_HAVE_LIBDEFLATE) {
        FAILS(open_text(file_of_tests("splits.npz"), NULL, 0, &d), CVY_E_UNSUPPORTED, "libdeflate is not part");
        return;
    }
    OK(open_text(file_of_tests("splits.npz"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 4 && cvy_dataset_describe(d)->nclasses == 3);
    TRUE_THAT(strstr(note_of(d), "x is x_train, y is y_train") &&
              strstr(note_of(d), "splits.npz: 3 arrays are not read (x_test, y_test, extra)"));
    OK(cvy_dataset_read(d, 3, 0, (void *[]){x, &label}));
    TRUE_THAT(x[0] == 18 && x[5] == 23 && label == 1);
    cvy_dataset_destroy(&d);
    OK(open_text(source_of(file_of_tests("splits.npz"), "part: test"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 1, 0, (void *[]){x, &label}));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 2 && x[1] == -7 && label == 0);
    cvy_dataset_destroy(&d);
    FAILS(open_text(source_of(file_of_tests("splits.npz"), "part: val"), NULL, 0, &d), CVY_E_CONFIG,
          "which array of the archive is the input?");
    FAILS(open_text(source_of(file_of_tests("splits.npz"), "x: x_train, y: extra"), NULL, 0, &d), CVY_E_FORMAT,
          "splits.npz, array extra: 3 records, expected 4 as in");
}

static void look(const char *name)
{
    float x[64];
    int32_t label;
    float weight;
    cvy_dataset *d = NULL;
    if (open_text(source_of(in_scratch(name), ""), NULL, 0, &d) != CVY_OK) {
        TRUE_THAT(cvy_error_text()[0]);
        return;
    }
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    if (cvy_shape_elems(&info->field[0].shape) <= 64 && info->nfield <= 3 && info->nsamples <= 64)
        for (int64_t i = 0; i < info->nsamples; i++)
            (void)cvy_dataset_read(d, i, 0, (void *[]){x, &label, &weight});
    cvy_dataset_destroy(&d);
}

/* A bit of each byte flipped, and every third length cut: an answer or a message. */
static void test_damage(void)
{
    static const char *const name[] = {"plain.npz", "splits.npz"};
    for (int i = 0; i < CVY_COUNT(name); i++) {
        char *data = NULL;
        size_t bytes = 0;
        OK(cvy_file_read(file_of_tests(name[i]), 1 << 16, &data, &bytes));
        for (size_t at = 0; at < bytes; at++) {
            data[at] ^= (char)(1 << at % 8);
            put_file(in_scratch("damaged.npz"), data, bytes);
            data[at] ^= (char)(1 << at % 8);
            look("damaged.npz");
            if (at % 3 > 0)
                continue;
            put_file(in_scratch("damaged.npz"), data, at);
            look("damaged.npz");
        }
        cvy_mem_free(&data);
    }
}

/* The directory says that an array has 8 GB, or is encrypted. */
static void test_hostile(void)
{
    char *data = NULL;
    size_t bytes = 0, at = 0;
    cvy_dataset *d = NULL;
    OK(cvy_file_read(file_of_tests("splits.npz"), 1 << 16, &data, &bytes));
    while (memcmp(data + at, "PK\1\2", 4) != 0)
        at++;
    memset(data + at + 24, 0xfe, 4); /* its size */
    put_file(in_scratch("bomb.npz"), data, bytes);
    FAILS(open_text(in_scratch("bomb.npz"), NULL, 0, &d), CVY_E_UNSUPPORTED,
          CVY_HAVE_LIBDEFLATE ? "more than 300 times as many: it may be truncated" : "libdeflate");
    data[at + 8] |= 1;
    put_file(in_scratch("bomb.npz"), data, bytes);
    FAILS(open_text(in_scratch("bomb.npz"), NULL, 0, &d), CVY_E_UNSUPPORTED, "is encrypted");
    cvy_mem_free(&data);
    put_file(in_scratch("short.npz"), "PK\5\6", 4);
    FAILS(open_text(in_scratch("short.npz"), NULL, 0, &d), CVY_E_FORMAT, "too short for a .npz file");
    put_file(in_scratch("none.npz"), "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    FAILS(open_text(in_scratch("none.npz"), NULL, 0, &d), CVY_E_FORMAT, "holds no array");
}

/* Files of several compressed parts, as bgzip makes them and `cat` joins them: one of no bytes before or behind. */
static void test_parts(const char *data, size_t bytes, const char *source)
{
    static const char none[] = "\x1f\x8b\x08\0\0\0\0\0\0\xff\3\0\0\0\0\0\0\0\0"; /* ends with another 0 */
    static const char *const words[] = {"bytes follow the first compressed part: unpack it by gunzip",
                                        "or has several compressed parts"};
    char both[400];
    cvy_dataset *d = NULL;
    TRUE_THAT(bytes + sizeof none <= sizeof both);
    for (int i = 0; i < 2; i++) {
        memcpy(both + (i == 0 ? sizeof none : 0), data, bytes);
        memcpy(both + (i == 0 ? 0 : bytes), none, sizeof none);
        put_file(in_scratch("mixed/train-images-idx3-ubyte.gz"), both, bytes + sizeof none);
        FAILS(open_text(source, NULL, 0, &d), CVY_E_FORMAT, words[i]);
    }
}

/* MNIST as it is downloaded; the labels may be unpacked already. */
static void test_gzip(void)
{
    float x[20];
    int32_t label = -1;
    char *data = NULL, text[700];
    size_t bytes = 0;
    cvy_dataset *d = NULL;
    if (!CVY_HAVE_LIBDEFLATE) {
        FAILS(open_text(file_of_tests("idx-gz"), NULL, 0, &d), CVY_E_UNSUPPORTED, "unpack it by gunzip");
        return;
    }
    OK(open_text(file_of_tests("idx-gz"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 3 && cvy_dataset_describe(d)->nclasses == 8);
    TRUE_THAT(strstr(note_of(d), "train-images-idx3-ubyte.gz: is compressed by gzip"));
    OK(cvy_dataset_read(d, 2, 0, (void *[]){x, &label}));
    TRUE_THAT(x[0] == 40 * (1.0f / 255.0f) && x[19] == 59 * (1.0f / 255.0f) && label == 3);
    cvy_dataset_destroy(&d);
    OK(cvy_file_make_folder(in_scratch("mixed")));
    OK(cvy_file_read(file_of_tests("idx-gz/train-images-idx3-ubyte.gz"), 1 << 16, &data, &bytes));
    put_file(in_scratch("mixed/train-images-idx3-ubyte.gz"), data, bytes);
    put_file(in_scratch("mixed/train-labels-idx1-ubyte"), "\0\0\x08\1\0\0\0\3\1\2\0", 11);
    OK(open_text(in_scratch("mixed/train-images-idx3-ubyte.gz"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 1, 0, (void *[]){x, &label}));
    TRUE_THAT(label == 2);
    cvy_dataset_destroy(&d);
    snprintf(text, sizeof text, "{path: \"%s\", format: idx}", in_scratch("mixed"));
    for (size_t cut = 0; cut < bytes; cut++) {
        put_file(in_scratch("mixed/train-images-idx3-ubyte.gz"), data, cut);
        TRUE_THAT(open_text(text, NULL, 0, &d) < CVY_OK && cvy_error_text()[0]);
    }
    test_parts(data, bytes, text);
    memset(data + bytes - 4, 0xfe, 4); /* the size that gzip notes */
    put_file(in_scratch("mixed/train-images-idx3-ubyte.gz"), data, bytes);
    FAILS(open_text(text, NULL, 0, &d), CVY_E_UNSUPPORTED, "more than 300 times as many: it may be truncated");
    cvy_mem_free(&data);
}

int main(void)
{
    scratch_make();
    test_plain();
    test_splits();
    test_damage();
    test_hostile();
    test_gzip();
    scratch_remove();
    return 0;
}
