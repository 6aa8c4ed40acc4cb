/* SPDX-License-Identifier: BSD-3-Clause */
/* test_data_hdf5.c: the HDF5 reader: orders of axes, several data sets and files, conditions, sets that do not fit, and
 * a file made by h5py (files/make_hdf5.py). */
#include "test_data_hdf5.h"

#include <stdio.h>

#if CVY_HAVE_HDF5

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
    OK(open_in("axes.h5", "x: nhw, axes: NTF", &d)); /* a sequence of features has no axis of channels */
    TRUE_THAT(strcmp(shape_of(d), "5x4") == 0);
    cvy_dataset_destroy(&d);
    OK(open_in("axes.h5", "x: nwh, axes: NFT", &d)); /* the order is T, F */
    TRUE_THAT(strcmp(shape_of(d), "5x4") == 0);
    cvy_dataset_destroy(&d);
    OK(open_in("axes.h5", "x: nhw, axes: NTW", &d));
    TRUE_THAT(strcmp(shape_of(d), "1x5x4") == 0);
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

/* Further data have the variables of x and y in the order of the training; other names are taken as they are listed, if
 * none of them has another place. */
static void test_order_of_variables(void)
{
    static const struct {
        const char *options;
        float x, y; /* the first numbers of sample 1 */
        const char *note, *fault;
    } further[] = {
        {"x: [a, b], y: [p, q]", 6, 1, NULL, NULL},
        {"x: [b, a], y: [q, p]", 6, 1, "x is brought into the order of the training data: a, b", NULL},
        {"x: [p2, q2], y: [q, p]", 0, 1, "x is p2, q2, and that of the training data is a, b", NULL},
        {"x: [b, p2], y: [p, q]", 0, 0, NULL, "b has another place among other names"},
    };
    cvy_dataset *train = NULL, *d = NULL;
    double *value = values(24);
    const hid_t file = new_file("variables.h5");
    const struct layout row = {.ndim = 2, .dim = {4, 6}, .type = H5T_NATIVE_FLOAT},
                        one = {.ndim = 1, .dim = {4}, .type = H5T_NATIVE_FLOAT};
    for (int i = 0; i < 24; i++)
        value[i] = i;
    add_set(file, "a", row, value);
    add_set(file, "p", one, value);
    for (int i = 0; i < 24; i++)
        value[i] = 100 + i;
    add_set(file, "b", row, value);
    add_set(file, "q", one, value);
    for (int i = 0; i < 24; i++)
        value[i] = 0;
    add_set(file, "p2", row, value);
    add_set(file, "q2", row, value);
    H5Fclose(file);
    free(value);
    OK(open_in("variables.h5", further[0].options, &train));
    for (int i = 0; i < CVY_COUNT(further); i++) {
        cvy_pool *pool = NULL;
        cvy_tree *tree = NULL;
        char text[1024];
        float x[12], y[2];
        void *const field[] = {x, y};
        const cvy_data_form like = cvy_dataset_form(train);
        snprintf(text, sizeof text, "{path: \"%s\", format: hdf5, %s}", in_scratch("variables.h5"), further[i].options);
        OK(cvy_pool_create(&pool));
        OK(cvy_tree_parse_text(pool, "source", text, strlen(text), &tree));
        const cvy_status status = cvy_dataset_open_like(tree, NULL, 7, 1, &like, &d);
        if (further[i].fault) {
            FAILS(status, CVY_E_CONFIG, further[i].fault);
        } else {
            OK(status);
            OK(cvy_dataset_read(d, 1, 0, field));
            TRUE_THAT(x[0] == further[i].x && y[0] == further[i].y && y[1] == 101);
            const char *note = cvy_dataset_describe(d)->note;
            TRUE_THAT(further[i].note ? note && strstr(note, further[i].note)
                                      : !note || !strstr(note, "the training data"));
        }
        cvy_dataset_destroy(&d);
        cvy_pool_destroy(&pool);
    }
    cvy_dataset_destroy(&train);
}

/* Variables of a number each are columns, which a table has by their names, and so are labels. */
static void test_table_of_variables(void)
{
    cvy_dataset *train = NULL, *d = NULL;
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    double *value = values(2);
    float x[2];
    int32_t label = -1;
    const hid_t file = new_file("one.h5");
    const struct layout one = {.ndim = 1, .dim = {2}, .type = H5T_NATIVE_FLOAT},
                        class = {.ndim = 1, .dim = {2}, .type = H5T_NATIVE_INT};
    value[0] = 0;
    value[1] = 1;
    add_set(file, "u", one, value);
    add_set(file, "v", one, value);
    add_set(file, "label", class, value);
    H5Fclose(file);
    free(value);
    put_file(in_scratch("one.csv"), "v,label,u\n5,1,4\n", 16);
    OK(open_in("one.h5", "x: [u, v]", &train));
    const cvy_data_form like = cvy_dataset_form(train);
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "source", in_scratch("one.csv"), strlen(in_scratch("one.csv")), &tree));
    OK(cvy_dataset_open_like(tree, NULL, 7, 1, &like, &d));
    OK(cvy_dataset_read(d, 0, 0, (void *const[]){x, &label}));
    TRUE_THAT(x[0] == 4 && x[1] == 5 && label == 1);
    cvy_dataset_destroy(&d);
    cvy_dataset_destroy(&train);
    cvy_pool_destroy(&pool);
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
          "data set pair has 2 axes and is 4x2, expected one number for each sample");
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
    FAILS(open_in("bad.h5", "label: half", &d), CVY_E_FORMAT,
          "data set half, row 2: the label 2.5 is not a whole number");
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
    FAILS(open_in("mixed", "", &d), CVY_E_FORMAT, "mixed/b.h5: data set x holds uint8, but float32 in");
    put_file(in_scratch("mixed/b.h5"), "hello", 5);
    FAILS(open_in("mixed", "", &d), CVY_E_FORMAT, "mixed/b.h5: cannot be opened as an HDF5 file (HDF5: ");
    free(v);
}

/* ---- what is left out ---- */

/* Gives the layout of a data set a version that no library knows, as newer formats look to older libraries. The message
 * of the layout has the number 8, and behind 8 bytes its version, 3. */
static void make_unreadable(const char *name, const char *set)
{
    H5O_info_t info;
    uint8_t head[512];
    size_t at = 0;
    const hid_t file = H5Fopen(in_scratch(name), H5F_ACC_RDONLY, H5P_DEFAULT);
    TRUE_THAT(H5Oget_info_by_name(file, set, &info, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    FILE *f = fopen(in_scratch(name), "rb");
    TRUE_THAT(f && fseek(f, (long)info.addr, SEEK_SET) == 0 && fread(head, 1, sizeof head, f) > 64 && fclose(f) == 0);
    while (head[at] != 8 || head[at + 1] != 0 || memcmp(head + at + 5, (uint8_t[]){0, 0, 0, 3}, 4) != 0)
        TRUE_THAT(++at < sizeof head - 16);
    flip_byte(in_scratch(name), (long)info.addr + (long)at + 8);
}

static const char *note_of(const cvy_dataset *d)
{
    return cvy_dataset_describe(d)->note ? cvy_dataset_describe(d)->note : "";
}

/* A label that is an input, too, is said. */
static void test_shown_label(void)
{
    static const char *const said[][2] = {{"x: [data, label]", "the data set label is the label, and an input too"},
                                          {"x: [kind, data], label: kind", "the data set kind is the label, and an"},
                                          {"x: [kind, data]", ""}};
    double *v = values(30);
    cvy_dataset *d = NULL;
    const hid_t file = new_file("shown.h5");
    add_set(file, "data", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    add_set(file, "label", (struct layout){.type = H5T_STD_I32LE, .ndim = 1, .dim = {10}}, v);
    add_set(file, "kind", (struct layout){.type = H5T_STD_I32LE, .ndim = 1, .dim = {10}}, v);
    H5Fclose(file);
    for (int i = 0; i < CVY_COUNT(said); i++) {
        OK(open_in("shown.h5", said[i][0], &d));
        TRUE_THAT(*said[i][1] ? strstr(note_of(d), said[i][1]) != NULL : !strstr(note_of(d), "answer"));
        cvy_dataset_destroy(&d);
    }
    free(v);
}

/* A data set that cannot be opened is a fault if it has a usual name or the job names it, and otherwise a note. */
static void test_unreadable(void)
{
    static const char *const usual[] = {"weight", "label", "y", "x", "Targets"}, *const option[] = {"weight", "label",
                                                                                                    "y", "x", "y"};
    double *v = values(60);
    cvy_dataset *d = NULL;
    char words[200];
    for (int i = 0; i < CVY_COUNT(usual); i++) {
        const hid_t file = new_file("new.h5");
        add_set(file, "data", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
        add_set(file, usual[i], (struct layout){.type = H5T_STD_I32LE, .ndim = 1, .dim = {10}}, v);
        H5Fclose(file);
        make_unreadable("new.h5", usual[i]);
        snprintf(words, sizeof words, "new.h5: data set %s: cannot be opened by libhdf5", usual[i]);
        FAILS(open_in("new.h5", "", &d), CVY_E_UNSUPPORTED, words);
        TRUE_THAT(strstr(cvy_error_text(), "(HDF5: bad ") && strstr(cvy_error_text(), "h5repack"));
        snprintf(words, sizeof words, "x: data, sandbox: %s%s%s%s", i % 2 ? "true" : "false", i == 3 ? "" : ", ",
                 i == 3 ? "" : option[i], i == 3 ? "" : ": none");
        OK(open_in("new.h5", words, &d));
        snprintf(words, sizeof words, "new.h5: 1 data set is not read (%s): cannot be opened", usual[i]);
        TRUE_THAT(strstr(note_of(d), words));
        cvy_dataset_destroy(&d);
        snprintf(words, sizeof words, "x: data, %s: %s", i == 3 ? "y" : option[i], usual[i]);
        FAILS(open_in("new.h5", words, &d), CVY_E_CONFIG, "that can be read; it holds");
    }
    free(v);
}

/* Soft links are followed; one that leads nowhere is a fault if it is a weight. A second name is no second input. */
static void test_soft_links(void)
{
    double *v = values(60);
    cvy_dataset *d = NULL;
    const hid_t file = new_file("soft.h5");
    add_set(file, "run1", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    add_set(file, "w1", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {10}}, v);
    H5Lcreate_soft("/run1", file, "same", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/w1", file, "weight", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nowhere", file, "labels", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    FAILS(open_in("soft.h5", "", &d), CVY_E_UNSUPPORTED, "data set labels: link that cannot be opened");
    OK(open_in("soft.h5", "label: none", &d));
    TRUE_THAT(cvy_dataset_describe(d)->nfield == 2 && cvy_dataset_reader_info(d)->has_weight);
    cvy_dataset_destroy(&d);
    free(v);
}

/* More data sets than are listed: a weight behind them is found, and the others are counted. */
static void test_many_sets(void)
{
    double *v = values(30);
    cvy_dataset *d = NULL;
    char name[24];
    const hid_t file = new_file("many.h5");
    add_set(file, "data", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "event%04d", i);
        add_set(file, name, (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {10}}, v);
    }
    add_set(file, "weight", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {10}}, v);
    H5Fclose(file);
    OK(open_in("many.h5", "", &d));
    TRUE_THAT(cvy_dataset_reader_info(d)->has_weight &&
              strstr(note_of(d), "many.h5: 61 more data sets were not looked at"));
    cvy_dataset_destroy(&d);
    free(v);
}

/* Other files in a folder, files of two splits, and a weight that the first file lacks. */
static void test_folder_rest(void)
{
    double *v = values(30);
    cvy_dataset *d = NULL;
    OK(cvy_file_make_folder(in_scratch("rest")));
    for (int i = 0; i < 2; i++) {
        const hid_t file = new_file(i ? "rest/b_test.h5" : "rest/a_train.h5");
        add_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
        H5Fclose(file);
    }
    put_file(in_scratch("rest/more.root"), "root", 4);
    put_file(in_scratch("rest/.hidden"), "", 0);
    OK(open_in("rest", "", &d));
    TRUE_THAT(strstr(note_of(d), "a_train.h5 and b_test.h5 are read as one set: if they are splits"));
    TRUE_THAT(strstr(note_of(d), "rest: 1 file is not read (more.root): HDF5 files are"));
    cvy_dataset_destroy(&d);
    const hid_t file = H5Fopen(in_scratch("rest/b_test.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    add_set(file, "weight", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {10}}, v);
    H5Fclose(file);
    FAILS(open_in("rest", "", &d), CVY_E_FORMAT, "b_test.h5: has a data set weight, and ");
    OK(open_in("rest", "weight: none", &d));
    cvy_dataset_destroy(&d);
    free(v);
}

/* MATLAB's format 7.3: a text of 512 bytes before the HDF5 file, axes in the opposite order, and columns [1, N]. */
static void test_matlab(void)
{
    double *v = values(60);
    float x[6];
    int32_t label = -1;
    cvy_dataset *d = NULL;
    const hid_t created = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(created, 512);
    const hid_t file = H5Fcreate(in_scratch("a.mat"), H5F_ACC_TRUNC, created, H5P_DEFAULT);
    add_set(file, "X", (struct layout){.type = H5T_IEEE_F64LE, .ndim = 3, .dim = {10, 2, 3}}, v);
    add_set(file, "labels", (struct layout){.type = H5T_IEEE_F64LE, .ndim = 2, .dim = {1, 10}}, v);
    H5Fclose(file);
    H5Pclose(created);
    FILE *f = fopen(in_scratch("a.mat"), "r+b");
    TRUE_THAT(f && fputs("MATLAB 7.3 MAT-file, Platform: GLNXA64", f) >= 0 && fclose(f) == 0);
    OK(open_text(in_scratch("a.mat"), NULL, 0, &d));
    TRUE_THAT(strstr(note_of(d), "a.mat: is a file of MATLAB") &&
              strstr(note_of(d), "X is 10x2x3, of which axis 1 counts"));
    OK(cvy_dataset_read(d, 4, 0, (void *[]){x, &label}));
    TRUE_THAT(x[0] == (float)value_at(24) && x[5] == (float)value_at(29) && label == (int32_t)value_at(4));
    cvy_dataset_destroy(&d);
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
    test_axes();
    make_runs();
    test_columns();
    test_files();
    test_order_of_variables();
    test_table_of_variables();
    test_conditions();
    test_faults();
    test_shown_label();
    test_unreadable();
    test_soft_links();
    test_many_sets();
    test_folder_rest();
    test_matlab();
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
