/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_arrays.c: the npy and IDX readers on small synthetic files: types, byte orders, layouts of channels,
 * targets, and damaged or unusual files. */
#include "test_data_support.h"

#include <math.h>
#include <stdio.h>

static void test_npy_regression(void)
{
    cvy_dataset *d = NULL;
    const double x[] = {1, 2, 3, 4};
    const float y[] = {0, -1, -2, -3}, weight[] = {1, 0.5f, 2, 0};
    float got_x, got_y, got_w;
    void *const field[] = {&got_x, &got_y, &got_w};
    OK(cvy_file_make_folder(in_scratch("line")));
    put_npy(in_scratch("line/x.npy"), "<f8", "4,", x, sizeof x);
    put_npy(in_scratch("line/y.npy"), "<f4", "4,", y, sizeof y);
    put_npy(in_scratch("line/weight.npy"), "<f4", "4,", weight, sizeof weight);
    OK(open_text(in_scratch("line"), NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 4 && info->nfield == 3 && info->nclasses == 0 && strcmp(info->format, "npy") == 0);
    TRUE_THAT(strcmp(info->field[1].name, "y") == 0 && strcmp(cvy_shape_text(&info->field[1].shape), "1") == 0);
    TRUE_THAT(strcmp(info->field[2].name, "weight") == 0 && info->field[2].shape.ndim == 0);
    for (int i = 0; i < 4; i++) {
        OK(cvy_dataset_read(d, i, 0, field));
        TRUE_THAT(got_x == (float)x[i] && got_y == y[i] && got_w == weight[i]);
    }
    cvy_dataset_destroy(&d);
}

static void test_npy_pictures(void)
{
    enum { N = 3, H = 4, W = 5, C = 2 };
    cvy_dataset *d = NULL;
    uint8_t last[N][H][W][C];
    const int64_t label[N] = {2, 0, 1};
    static float x[C * H * W];
    int32_t got = -1;
    void *const field[] = {x, &got};
    for (int i = 0; i < (int)sizeof last; i++)
        ((uint8_t *)last)[i] = (uint8_t)(7 * i);
    OK(cvy_file_make_folder(in_scratch("hwc")));
    put_npy(in_scratch("hwc/x.npy"), "|u1", "3, 4, 5, 2", last, sizeof last);
    put_npy(in_scratch("hwc/label.npy"), "<i8", "3,", label, sizeof label);
    char text[512];
    snprintf(text, sizeof text, "{path: \"%s\", channels: last}", in_scratch("hwc"));
    OK(open_text(text, NULL, 0, &d));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), "2x4x5") == 0 &&
              cvy_dataset_describe(d)->nclasses == 3);
    OK(cvy_dataset_read(d, 1, 0, field));
    TRUE_THAT(got == 0);
    for (int c = 0; c < C; c++)
        for (int y = 0; y < H; y++)
            for (int i = 0; i < W; i++)
                TRUE_THAT(x[(c * H + y) * W + i] == (float)last[1][y][i][c] * (1.0f / 255.0f));
    cvy_dataset_destroy(&d);
    /* Big-endian 16-bit grey pictures without an axis for channels; the files are given by name. */
    uint8_t big[2][2][3][2] = {{{{1, 2}}}};
    snprintf(text, sizeof text, "{format: npy, x: \"%s\", channels: none}", in_scratch("grey.npy"));
    put_npy(in_scratch("grey.npy"), ">i2", "2, 2, 3", big, sizeof big);
    OK(open_text(text, NULL, 0, &d));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), "1x2x3") == 0);
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(x[0] == 258);
    cvy_dataset_destroy(&d);
}

/* mirror would change x and leave y, so the set cannot be opened without y's role; with it both are mirrored. */
static void test_npy_maps(void)
{
    cvy_dataset *d = NULL;
    const float x[] = {1, 2, 3, 4, 5, 6}, y[] = {10, 20, 30, 40, 50, 60};
    float got_x[6], got_y[6];
    void *const field[] = {got_x, got_y};
    OK(cvy_file_make_folder(in_scratch("map")));
    put_npy(in_scratch("map/x.npy"), "<f4", "1, 1, 2, 3", x, sizeof x);
    put_npy(in_scratch("map/y.npy"), "<f4", "1, 2, 3", y, sizeof y);
    FAILS(open_text(in_scratch("map"), "[{mirror: {share: 1}}]", 1, &d), CVY_E_CONFIG,
          "mirror moves the pixels of x, but how the target y of shape 2x3 goes with them is not known");
    OK(open_text(in_scratch("map"), "[{scale: 2}]", 1, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    for (int i = 0; i < 6; i++)
        TRUE_THAT(got_x[i] == 2 * x[i] && got_y[i] == y[i]);
    cvy_dataset_destroy(&d);
    OK(open_text(in_scratch("map"), "[{target: field}, {mirror: {share: 1}}]", 1, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    for (int i = 0; i < 6; i++)
        TRUE_THAT(got_x[i] == x[i / 3 * 3 + 2 - i % 3] && got_y[i] == y[i / 3 * 3 + 2 - i % 3]);
    cvy_dataset_destroy(&d);
}

/* f16 is read exactly, in both byte orders, with subnormal numbers; infinity is found as in f32. */
static void test_npy_half(void)
{
    const uint16_t little[2][4] = {{0x3C00, 0xC000, 0x0001, 0x7BFF}, {0x3555, 0x8000, 0x0400, 0x7C00}},
                   big[4] = {0x003C, 0x00C0, 0x0100, 0xFF7B};
    const float want[4] = {1, -2, 0x1p-24f, 65504};
    float x[4];
    void *const field[] = {x};
    cvy_dataset *d = NULL;
    put_npy(in_scratch("half.npy"), "<f2", "2, 4", little, sizeof little);
    OK(open_text(in_scratch("half.npy"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(memcmp(x, want, sizeof x) == 0);
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_FORMAT, "half.npy, record 1: element 3 of x is inf");
    cvy_dataset_destroy(&d);
    put_npy(in_scratch("half.npy"), ">f2", "1, 4", big, sizeof big);
    OK(open_text(in_scratch("half.npy"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(memcmp(x, want, sizeof x) == 0);
    cvy_dataset_destroy(&d);
}

static void read_one(const char *source, const char *augment, int64_t at, void *const *field)
{
    cvy_dataset *d = NULL;
    OK(open_text(source, augment, 0, &d));
    OK(cvy_dataset_read(d, at, 0, field));
    cvy_dataset_destroy(&d);
}

/* Arrays of a folder that have other names are not read, and the log says so. */
static void test_npy_rest(void)
{
    const float x[2] = {1, 2};
    cvy_dataset *d = NULL;
    OK(cvy_file_make_folder(in_scratch("rest")));
    put_npy(in_scratch("rest/x.npy"), "<f4", "2, 1", x, sizeof x);
    put_npy(in_scratch("rest/x_test.npy"), "<f4", "2, 1", x, sizeof x);
    put_npy(in_scratch("rest/weights.npy"), "<f4", "2,", x, sizeof x);
    OK(open_text(in_scratch("rest"), NULL, 0, &d));
    TRUE_THAT(strstr(cvy_dataset_describe(d)->note, "rest: 2 arrays are not read (weights.npy, x_test.npy)"));
    cvy_dataset_destroy(&d);
}

/* Booleans are 0 and 1, also in pictures and as labels, and any byte but 0 is true. */
static void test_npy_booleans(void)
{
    const uint8_t mask[8] = {0, 1, 1, 0, 1, 1, 0, 255}, truth[2] = {1, 0};
    float x[4] = {0}, weight = -1;
    int32_t label = -1;
    OK(cvy_file_make_folder(in_scratch("truth")));
    put_npy(in_scratch("truth/x.npy"), "|b1", "2, 1, 2, 2", mask, sizeof mask);
    put_npy(in_scratch("truth/label.npy"), "|b1", "2,", truth, sizeof truth);
    put_npy(in_scratch("truth/weight.npy"), "|b1", "2,", truth, sizeof truth);
    read_one(in_scratch("truth"), NULL, 1, (void *[]){x, &label, &weight});
    TRUE_THAT(x[0] == 1 && x[1] == 1 && x[2] == 0 && x[3] == 1 && label == 0 && weight == 0);
}

/* Bytes of pictures are divided by 255; bytes of a vector are numbers, and the log says so once. */
static void test_bytes(void)
{
    static const struct {
        const char *shape;
        int is_picture;
    } kind[] = {{"1, 12", 0},   {"1, 1, 12", 0},   {"1, 12, 1, 1", 0},
                {"1, 3, 4", 1}, {"1, 1, 3, 4", 1}, {"1, 2, 3, 2", 1}};
    const uint8_t bytes[12] = {0, 51, 255, 1};
    cvy_dataset *d = NULL;
    float x[12];
    for (int i = 0; i < CVY_COUNT(kind); i++) {
        put_npy(in_scratch("bytes.npy"), "|u1", kind[i].shape, bytes, sizeof bytes);
        OK(open_text(in_scratch("bytes.npy"), NULL, 0, &d));
        OK(cvy_dataset_read(d, 0, 0, (void *[]){x}));
        const char *note = cvy_dataset_describe(d)->note;
        const float unit = kind[i].is_picture ? 1.0f / 255.0f : 1;
        TRUE_THAT(x[1] == 51 * unit && x[2] == 255 * unit);
        TRUE_THAT(kind[i].is_picture ? !note : note && strstr(note, "they are numbers, 0 .. 255"));
        cvy_dataset_destroy(&d);
    }
    read_one(in_scratch("bytes.npy"), "[{scale: 1}]", 0, (void *[]){x});
    TRUE_THAT(x[2] == 255);
    put_npy(in_scratch("bytes.npy"), "|u1", "1, 12", bytes, sizeof bytes);
    read_one(in_scratch("bytes.npy"), "[{mean: 5}]", 0, (void *[]){x});
    TRUE_THAT(x[1] == 46); /* in the units of the data */
}

/* Labels that are reals are taken if they are whole. */
static void test_npy_real_labels(void)
{
    const float x[3] = {0};
    const double whole[3] = {0, 2, 1}, broken[3] = {0, 1.5, 1}, none[3] = {0, 1, NAN};
    cvy_dataset *d = NULL;
    float got;
    int32_t label;
    OK(cvy_file_make_folder(in_scratch("reals")));
    put_npy(in_scratch("reals/x.npy"), "<f4", "3, 1", x, sizeof x);
    put_npy(in_scratch("reals/label.npy"), "<f8", "3,", whole, sizeof whole);
    read_one(in_scratch("reals"), NULL, 1, (void *[]){&got, &label});
    TRUE_THAT(label == 2);
    put_npy(in_scratch("reals/label.npy"), "<f8", "3,", broken, sizeof broken);
    FAILS(open_text(in_scratch("reals"), NULL, 0, &d), CVY_E_FORMAT,
          "label.npy, record 1: the label 1.5 is not a whole number");
    put_npy(in_scratch("reals/label.npy"), "<f8", "3,", none, sizeof none);
    FAILS(open_text(in_scratch("reals"), NULL, 0, &d), CVY_E_FORMAT, "label.npy, record 2: the label nan");
}

/* Types that are no numbers are named, with what to do. */
static void test_npy_types(void)
{
    static const char *const type[][2] = {
        {"|O", "Python objects"}, {"<U3", "text"}, {"|S4", "text"}, {"<M8[ns]", "times"}, {"<c16", "complex numbers"},
    };
    const uint8_t bytes[64] = {0};
    cvy_dataset *d = NULL;
    for (int i = 0; i < CVY_COUNT(type); i++) {
        put_npy(in_scratch("type.npy"), type[i][0], "1, 2", bytes, sizeof bytes);
        FAILS(open_text(in_scratch("type.npy"), NULL, 0, &d), CVY_E_UNSUPPORTED, type[i][1]);
        TRUE_THAT(strstr(cvy_error_text(), type[i][0]) != NULL);
    }
    put_npy(in_scratch("type.npy"), "|V8", "1, 2", bytes, sizeof bytes);
    FAILS(open_text(in_scratch("type.npy"), NULL, 0, &d), CVY_E_UNSUPPORTED, "records of several fields");
}

/* Axes would be read in the wrong order. */
static void test_npy_fortran(void)
{
    const float x[6] = {1, 2, 3, 4, 5, 6};
    const long order = 10 + (long)strlen("{'descr': '<f4', 'fortran_order': ");
    cvy_dataset *d = NULL;
    put_npy(in_scratch("fortran.npy"), "<f4", "2, 3", x, sizeof x);
    FILE *f = fopen(in_scratch("fortran.npy"), "r+b");
    TRUE_THAT(f && fseek(f, order, SEEK_SET) == 0 && fwrite("True ", 1, 5, f) == 5 && fclose(f) == 0);
    FAILS(open_text(in_scratch("fortran.npy"), NULL, 0, &d), CVY_E_UNSUPPORTED,
          "is in Fortran order; save it by numpy.ascontiguousarray");
}

static void test_npy_damage(void)
{
    cvy_dataset *d = NULL;
    const float x[6] = {0};
    const int32_t label[3] = {0, 5, -1};
    static float got[2];
    int32_t l;
    void *const field[] = {got, &l};
    OK(cvy_file_make_folder(in_scratch("bad")));
    put_npy(in_scratch("bad/x.npy"), "<f4", "3, 2", x, 20);
    FAILS(open_text(in_scratch("bad"), NULL, 0, &d), CVY_E_FORMAT, "bad/x.npy: truncated in record 2");
    put_npy(in_scratch("bad/x.npy"), "<c8", "3, 2", x, sizeof x);
    FAILS(open_text(in_scratch("bad"), NULL, 0, &d), CVY_E_UNSUPPORTED, "element type '<c8'");
    put_npy(in_scratch("bad/x.npy"), "<f4", "3, 2", x, sizeof x);
    put_npy(in_scratch("bad/label.npy"), "<i4", "2,", label, 8);
    FAILS(open_text(in_scratch("bad"), NULL, 0, &d), CVY_E_FORMAT, "label.npy: 2 records, expected 3");
    put_npy(in_scratch("bad/label.npy"), "<f4", "3, 2", x, 24);
    FAILS(open_text(in_scratch("bad"), NULL, 0, &d), CVY_E_FORMAT, "labels of 2, expected one number for each sample");
    put_npy(in_scratch("bad/label.npy"), "<i4", "3,", label, sizeof label);
    char text[512];
    snprintf(text, sizeof text, "{path: \"%s\", classes: 4}", in_scratch("bad"));
    OK(open_text(text, NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_FORMAT,
          "bad/x.npy, record 1: label 5 is out of range, expected 0 .. 3");
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, "record 2: label -1");
    cvy_dataset_destroy(&d);
    const int32_t huge[3] = {0, INT32_MAX, 1};
    put_npy(in_scratch("bad/label.npy"), "<i4", "3,", huge, sizeof huge);
    FAILS(open_text(in_scratch("bad"), NULL, 0, &d), CVY_E_FORMAT,
          "label.npy: holds a label 2147483647, expected less than");
    put_file(in_scratch("bad/x.npy"), "\x93NUMPY\x01\x00\xff\xff{'descr'", 18);
    FAILS(open_text(in_scratch("bad"), NULL, 0, &d), CVY_E_FORMAT, "the header is damaged or truncated");
    put_file(in_scratch("bad/x.npy"), "hello, world, hello", 19);
    FAILS(open_text(in_scratch("bad"), NULL, 0, &d), CVY_E_FORMAT, "is not a .npy file");
    FAILS(open_text("{format: npy}", NULL, 0, &d), CVY_E_CONFIG, "needs a path");
}

static void put_idx(const char *path, int ndim, const int *dim, const void *data, size_t bytes)
{
    uint8_t head[16] = {0, 0, 8, (uint8_t)ndim};
    for (int i = 0; i < ndim; i++)
        head[4 * i + 7] = (uint8_t)dim[i];
    FILE *f = fopen(path, "wb");
    const size_t lead = (size_t)(4 + 4 * ndim);
    TRUE_THAT(f && fwrite(head, 1, lead, f) == lead && fwrite(data, 1, bytes, f) == bytes && fclose(f) == 0);
}

static void test_idx(void)
{
    enum { N = 3, H = 4, W = 5 };
    cvy_dataset *d = NULL;
    uint8_t pixels[N * H * W], labels[N] = {7, 0, 3};
    char text[512];
    static float x[H * W];
    int32_t got = -1;
    void *const field[] = {x, &got};
    for (int i = 0; i < N * H * W; i++)
        pixels[i] = (uint8_t)(3 * i);
    OK(cvy_file_make_folder(in_scratch("mnist")));
    put_idx(in_scratch("mnist/train-images-idx3-ubyte"), 3, (int[]){N, H, W}, pixels, sizeof pixels);
    put_idx(in_scratch("mnist/train-labels-idx1-ubyte"), 1, (int[]){N}, labels, sizeof labels);
    OK(open_text(in_scratch("mnist"), NULL, 0, &d));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), "1x4x5") == 0 &&
              cvy_dataset_describe(d)->nclasses == 8);
    OK(cvy_dataset_read(d, 2, 0, field));
    TRUE_THAT(got == 3 && x[7] == (float)pixels[2 * H * W + 7] * (1.0f / 255.0f));
    cvy_dataset_destroy(&d);
    put_idx(in_scratch("mnist/t10k-images-idx3-ubyte"), 3, (int[]){N, H, W}, pixels, sizeof pixels);
    OK(open_text(in_scratch("mnist"), NULL, 0, &d));
    TRUE_THAT(
        strstr(cvy_dataset_describe(d)->note, "mnist: t10k-images-idx3-ubyte is not read: `part: test` reads it"));
    cvy_dataset_destroy(&d);
    snprintf(text, sizeof text, "{path: \"%s\", part: train}", in_scratch("mnist"));
    OK(open_text(text, NULL, 0, &d));
    TRUE_THAT(!cvy_dataset_describe(d)->note);
    cvy_dataset_destroy(&d);
    TRUE_THAT(unlink(in_scratch("mnist/t10k-images-idx3-ubyte")) == 0);
    OK(open_text(in_scratch("mnist/train-images-idx3-ubyte"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 8);
    cvy_dataset_destroy(&d);
    snprintf(text, sizeof text, "{path: \"%s\", part: test}", in_scratch("mnist"));
    FAILS(open_text(text, NULL, 0, &d), CVY_E_IO, "holds no t10k-images-idx3-ubyte");
    put_idx(in_scratch("mnist/train-images-idx3-ubyte"), 3, (int[]){N, H, W}, pixels, sizeof pixels - 1);
    FAILS(open_text(in_scratch("mnist"), NULL, 0, &d), CVY_E_FORMAT, "train-images-idx3-ubyte: truncated in record 2");
    put_idx(in_scratch("mnist/train-images-idx3-ubyte"), 3, (int[]){N - 1, H, W}, pixels, sizeof pixels);
    FAILS(open_text(in_scratch("mnist"), NULL, 0, &d), CVY_E_FORMAT, "3 labels for the 2 pictures");
    TRUE_THAT(unlink(in_scratch("mnist/train-images-idx3-ubyte")) == 0);
    put_file(in_scratch("mnist/train-images-idx3-ubyte.gz"), "\x1f\x8b\x08\x00\x00", 5);
    FAILS(open_text(in_scratch("mnist"), NULL, 0, &d), CVY_HAVE_LIBDEFLATE ? CVY_E_FORMAT : CVY_E_UNSUPPORTED, "gzip");
}

/* Files as they are downloaded: one sentence says what each is and what to do; a folder is known by what is in it. */
static void test_foreign(void)
{
    static const struct {
        const char *name, *head, *words;
        size_t bytes;
    } file[] = {
        {"a.tar", "file", "is a tar archive: unpack it by tar -xf", 4},
        {"b.tgz", "\x1f\x8b\x08", "is a compressed tar archive", 3},
        {"c.gz", "\x1f\x8b\x08", "is compressed by gzip: unpack it by gunzip", 3},
        {"d.bin.xz",
         "\xfd"
         "7zXZ\0",
         "is compressed by xz", 6},
        {"e.zip", "PK\3\4", "is a zip archive: unpack it by unzip", 4},
        {"f.pt", "PK\3\4", "is a file of PyTorch", 4},
        {"g", "\x80\4", "is a pickle of Python, which is not read because it may run commands", 2},
        {"h.pkl", "(dp0", "is a pickle of Python", 4},
        {"i.parquet", "PAR1", "is a Parquet file: write it as CSV", 4},
        {"j.mat", "MATLAB 5.0 MAT-file, Platform", "is a MATLAB 5 file: save it in MATLAB by save(NAME, '-v7.3')", 29},
        {"k.webp", "RIFF\0\0\0\0WEBPVP8 ", "is a WebP picture: convert the pictures to PNG", 16},
        {"l.gif", "GIF89a", "is a GIF picture", 6},
        {"m.nii", "\\\1\0\0", "is a NIfTI volume: read it in Python", 4},
        {"n.root", "root\0", "is a ROOT file", 5},
        {"o.json", "{}", "is a JSON file", 2},
        {"p.dat", "", "is empty", 0},
    };
    cvy_dataset *d = NULL;
    char name[64], words[160];
    for (int i = 0; i < CVY_COUNT(file); i++) {
        put_file(in_scratch(file[i].name), file[i].head, file[i].bytes);
        snprintf(words, sizeof words, "%s: %s", file[i].name, file[i].words);
        FAILS(open_text(in_scratch(file[i].name), NULL, 0, &d), file[i].bytes ? CVY_E_UNSUPPORTED : CVY_E_FORMAT,
              words);
        if (file[i].bytes == 0)
            continue;
        for (int depth = 0; depth < 2; depth++) { /* in a folder, and in a folder of a class */
            snprintf(name, sizeof name, "in%d-%d/class", i, depth);
            OK(cvy_file_make_folder(in_scratch(name)));
            snprintf(name, sizeof name, "in%d-%d%s/%s", i, depth, depth ? "/class" : "", file[i].name);
            put_file(in_scratch(name), file[i].head, file[i].bytes);
            snprintf(name, sizeof name, "in%d-%d", i, depth);
            FAILS(open_text(in_scratch(name), NULL, 0, &d), CVY_E_UNSUPPORTED, words + strlen(file[i].name) + 2);
        }
    }
    OK(cvy_file_make_folder(in_scratch("store.zarr/t2m")));
    put_file(in_scratch("store.zarr/.zgroup"), "{}", 2);
    FAILS(open_text(in_scratch("store.zarr"), NULL, 0, &d), CVY_E_UNSUPPORTED, "is a Zarr store: write it as NetCDF-4");
    /* texts that begin like the files of a program */
    put_file(in_scratch("passwd"), "root:x:0:0", 10);
    FAILS(open_text(in_scratch("passwd"), NULL, 0, &d), CVY_E_FORMAT, "not in any format that is known");
    put_file(in_scratch("notes"), "CDF of x", 8);
    FAILS(open_text(in_scratch("notes"), NULL, 0, &d), CVY_E_FORMAT, "not in any format that is known");
    OK(cvy_file_make_folder(in_scratch("cifar-100-python")));
    put_file(in_scratch("cifar-100-python/meta"), "\x80\2", 2);
    put_file(in_scratch("cifar-100-python/train"), "\x80\2", 2);
    FAILS(open_text(in_scratch("cifar-100-python"), NULL, 0, &d), CVY_E_UNSUPPORTED, "take the binary version");
    FAILS(open_text(in_scratch("cifar-100-python/train"), NULL, 0, &d), CVY_E_UNSUPPORTED, "take the binary version");
}

int main(void)
{
    scratch_make();
    test_npy_regression();
    test_npy_pictures();
    test_npy_maps();
    test_npy_half();
    test_npy_booleans();
    test_npy_rest();
    test_bytes();
    test_npy_real_labels();
    test_npy_types();
    test_npy_fortran();
    test_npy_damage();
    test_idx();
    test_foreign();
    scratch_remove();
    return 0;
}
