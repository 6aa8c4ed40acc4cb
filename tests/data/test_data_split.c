/*
 * test_data_split.c: the part of the training data that data.val sets aside: no group is on both sides, the share is as
 * near as whole groups allow, and the choice depends on the values of the groups and the seed, not on their order.
 *
 * Groups come from tables, HDF5 files (numbers, texts of both kinds, times), NumPy arrays, TFRecords and paths, also of
 * several sources and ranges. It also covers the end of a series, with a gap, and values that are missing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_dataset.h"
#include <math.h>

#include "data/data_split.h"
#include "data/tfrecord/data_example.h"
#include "data/tfrecord/data_tfrecord.h"
#include "test_data_hdf5.h"

enum { GROUPS = 20, EACH = 20, N = GROUPS * EACH };

/* The group of sample i; samples of a group do not follow each other. */
static int group_of(int i)
{
    return (i * 7 + i / EACH) % GROUPS;
}

static int label_of(int i)
{
    return (group_of(i) * 5 + 3) % 7 % 2;
}

static const char *source_text(const char *form)
{
    static char text[2048];
    snprintf(text, sizeof text, form, scratch_folder, scratch_folder, scratch_folder);
    return text;
}

/* Splits the source; checks that each group of group_of() is on one side, of which there are `nval` for validation. */
static void split_groups(const char *form, const cvy_split_spec *spec, int nval, uint8_t in[GROUPS])
{
    cvy_dataset *d = NULL, *val = NULL, *train = NULL;
    cvy_split s = {0};
    cvy_text notes = {0};
    int side[GROUPS], found = 0;
    OK(open_text(source_text(form), NULL, 0, &d));
    TRUE_THAT(d->info.nsamples == N);
    OK(cvy_split_make(d, spec, 3, &notes, &s));
    memset(side, -1, sizeof side);
    for (int i = 0; i < N; i++) {
        int *of = &side[group_of(i)];
        TRUE_THAT(*of < 0 || *of == s.side[i]);
        *of = s.side[i];
    }
    for (int g = 0; g < GROUPS; g++) {
        found += side[g] == CVY_SIDE_VAL;
        in[g] = side[g] == CVY_SIDE_VAL;
    }
    if (found != nval) {
        fprintf(stderr, "%s: %d groups, expected %d: %s\n", form, found, nval, notes.data);
        exit(1);
    }
    OK(cvy_dataset_side(d, &s, CVY_SIDE_VAL, &val));
    OK(cvy_dataset_side(d, &s, CVY_SIDE_TRAIN, &train));
    TRUE_THAT(val->info.nsamples == nval * EACH && train->info.nsamples == N - nval * EACH);
    cvy_dataset_destroy(&val);
    cvy_dataset_destroy(&train);
    cvy_dataset_destroy(&d);
    cvy_split_free(&s);
    cvy_text_free(&notes);
}

static void refused(const char *form, const cvy_split_spec *spec, const char *words)
{
    cvy_dataset *d = NULL;
    cvy_split s = {0};
    const cvy_status status = open_text(source_text(form), NULL, 0, &d);
    if (status == CVY_OK)
        FAILS(cvy_split_make(d, spec, 3, NULL, &s), CVY_E_CONFIG, words);
    else if (!strstr(cvy_error_text(), words)) {
        fprintf(stderr, "\"%s\" should hold \"%s\"\n", cvy_error_text(), words);
        exit(1);
    }
    cvy_dataset_destroy(&d);
}

/* ---- choosing ---- */

/* Sizes of groups, the share, and how many samples are nearest to it. */
static void test_nearest(void)
{
    static const struct {
        int size[6];
        double share;
        int best;
    } row[] = {{{50, 30, 20}, 0.2, 20},     {{50, 30, 10, 10}, 0.2, 20},     {{90, 10}, 0.3, 10},   {{2, 98}, 0.4, 2},
               {{40, 30, 20, 10}, 0.5, 50}, {{7, 7, 7, 7, 7, 65}, 0.28, 28}, {{98, 1, 1}, 0.97, 98}};
    for (int r = 0; r < CVY_COUNT(row); r++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            int32_t group[100], label[100] = {0};
            uint64_t key[6];
            uint8_t in[6];
            int n = 0, ngroup = 0, sum = 0;
            for (; ngroup < 6 && row[r].size[ngroup]; ngroup++) {
                key[ngroup] = (seed + 1) * (uint64_t)(ngroup + 7) * 0x9E3779B97F4A7C15u;
                for (int i = 0; i < row[r].size[ngroup]; i++)
                    group[n++] = ngroup;
            }
            TRUE_THAT(n == 100);
            OK(cvy_split_choose(group, label, n, ngroup, 1, key, row[r].share, in));
            for (int g = 0; g < ngroup; g++)
                sum += in[g] ? row[r].size[g] : 0;
            if (sum != row[r].best) {
                fprintf(stderr, "row %d, seed %d: %d samples, expected %d\n", r, (int)seed, sum, row[r].best);
                exit(1);
            }
        }
}

/* Each class has its share: four classes in 40 groups of one class each. */
static void test_classes(void)
{
    int32_t group[400], label[400];
    uint64_t key[40];
    uint8_t in[40];
    for (int i = 0; i < 400; i++) {
        group[i] = i % 40;
        label[i] = i % 4;
    }
    for (int g = 0; g < 40; g++)
        key[g] = (uint64_t)(g + 3) * 0x9E3779B97F4A7C15u;
    OK(cvy_split_choose(group, label, 400, 40, 4, key, 0.2, in));
    for (int c = 0; c < 4; c++) {
        int n = 0;
        for (int g = 0; g < 40; g++)
            n += in[g] && g % 4 == c;
        TRUE_THAT(n == 2);
    }
}

/* ---- formats ---- */

/* Writes a table of these samples; order: of its lines. */
static void put_table(const char *name, int first, int end, int step)
{
    FILE *f = fopen(in_scratch(name), "w");
    TRUE_THAT(f);
    fprintf(f, "a,patient,b,label\n");
    for (int k = first; k < end; k++) {
        const int i = first + (k - first) * step % (end - first);
        fprintf(f, "%d,\"P-%d\",%d,%d\n", i, group_of(i), -i, label_of(i));
    }
    fclose(f);
}

static void test_tables(void)
{
    const cvy_split_spec spec = {.share = 0.2, .group = "patient"};
    uint8_t in[GROUPS], again[GROUPS];
    cvy_dataset *d = NULL;
    cvy_split s = {0};
    put_table("t.csv", 0, N, 1);
    put_table("mixed.csv", 0, N, 7);
    split_groups("{path: %s/t.csv, group: patient}", &spec, 4, in);
    split_groups("{path: %s/t.csv, group: 2, group_input: false}", &spec, 4, again);
    TRUE_THAT(memcmp(in, again, sizeof in) == 0);
    /* the same lines in another order: the same groups */
    OK(open_text(source_text("{path: %s/mixed.csv, group: patient}"), NULL, 0, &d));
    TRUE_THAT(d->info.field[0].shape.dim[0] == 2);
    OK(cvy_split_make(d, &spec, 3, NULL, &s));
    for (int k = 0; k < N; k++)
        TRUE_THAT(s.side[k] == (in[group_of(k * 7 % N)] ? CVY_SIDE_VAL : CVY_SIDE_TRAIN));
    cvy_split_free(&s);
    cvy_dataset_destroy(&d);
    /* several sources and a range of one */
    put_table("part1.csv", 0, 100, 1);
    put_table("part2.csv", 100, 250, 1);
    put_table("part3.csv", 250, N, 1);
    split_groups("[{path: %s/part1.csv, group: patient}, {path: %s/t.csv, range: \"100:250\", group: patient}, {path: "
                 "%s/part3.csv, group: patient}]",
                 &spec, 4, again);
    TRUE_THAT(memcmp(in, again, sizeof in) == 0);
    /* groups by the names of files */
    const cvy_split_spec by_path = {.share = 0.25, .pattern = "/part([0-9])\\.csv"};
    OK(open_text(source_text("{sources: [{path: %s/part1.csv, drop: patient}, {path: %s/part2.csv, drop: patient}, "
                             "{path: %s/part3.csv, drop: patient}], classes: union}"),
                 NULL, 0, &d));
    OK(cvy_split_make(d, &by_path, 3, NULL, &s));
    for (int i = 0; i < N; i++)
        TRUE_THAT(s.side[i] == (i < 100 ? CVY_SIDE_VAL : CVY_SIDE_TRAIN));
    cvy_split_free(&s);
    cvy_dataset_destroy(&d);
}

static void test_arrays(void)
{
    static float x[N][2];
    static int32_t wide[N][4];
    static char narrow[N][4];
    static int64_t number[N];
    const cvy_split_spec spec = {.share = 0.2, .group = "patient"};
    uint8_t in[GROUPS], again[GROUPS];
    for (int i = 0; i < N; i++) {
        char text[8];
        x[i][0] = (float)i;
        snprintf(text, sizeof text, "P%02d", group_of(i));
        memcpy(narrow[i], text, 4);
        for (int k = 0; k < 4; k++)
            wide[i][k] = text[k];
        wide[i][0] = 0x416; /* a letter of two bytes */
        number[i] = group_of(i) - 5;
    }
    OK(cvy_file_make_folder(in_scratch("npy")));
    put_npy(in_scratch("npy/x.npy"), "<f4", "400, 2", x, sizeof x);
    put_npy(in_scratch("npy/patient.npy"), "<U4", "400,", wide, sizeof wide);
    split_groups("{path: %s/npy, group: patient}", &spec, 4, in);
    put_npy(in_scratch("npy/other.npy"), "|S4", "400, 1", narrow, sizeof narrow);
    split_groups("{path: %s/npy, group: other.npy}", &spec, 4, in);
    put_npy(in_scratch("npy/patient.npy"), "<i8", "400,", number, sizeof number);
    split_groups("{path: %s/npy, group: patient}", &spec, 4, again);
    put_npy(in_scratch("npy/patient.npy"), "<i8", "200, 2", number, sizeof number);
    refused("{path: %s/npy, group: patient}", &spec, "200 records, expected 400");
    put_npy(in_scratch("npy/patient.npy"), "|O", "400,", number, sizeof number);
    refused("{path: %s/npy, group: patient}", &spec, "Python objects");
    refused("{path: %s/npy, group: absent}", &spec, "absent");
}

static void test_records(void)
{
    static uint8_t record[512];
    const cvy_split_spec spec = {.share = 0.2, .group = "who"};
    uint8_t in[GROUPS], again[GROUPS];
    for (int kind = 0; kind < 4; kind++) { /* text, integers, floats; without the feature */
        FILE *f = fopen(in_scratch("t.tfrecord"), "wb");
        TRUE_THAT(f);
        for (int i = 0; i < N; i++) {
            char text[8];
            uint8_t head[12], foot[4];
            const int64_t whole = group_of(i);
            const float x = (float)i, real = (float)whole;
            snprintf(text, sizeof text, "P%d", group_of(i));
            const cvy_new_feature feature[] = {{"x", CVY_FEATURE_FLOATS, &x, 1},
                                               kind == 0
                                                   ? (cvy_new_feature){"who", CVY_FEATURE_BYTES, text, strlen(text)}
                                               : kind == 1 ? (cvy_new_feature){"who", CVY_FEATURE_INTS, &whole, 1}
                                                           : (cvy_new_feature){"who", CVY_FEATURE_FLOATS, &real, 1}};
            const int n = kind == 3 && i == 7 ? 1 : 2;
            const size_t bytes = cvy_example_bytes(feature, n);
            TRUE_THAT(bytes <= sizeof record);
            cvy_example_put(feature, n, record);
            cvy_tfrecord_put(head, bytes, 8);
            cvy_tfrecord_put(head + 8, cvy_tfrecord_crc(head, 8), 4);
            cvy_tfrecord_put(foot, cvy_tfrecord_crc(record, bytes), 4);
            TRUE_THAT(fwrite(head, 12, 1, f) == 1 && fwrite(record, bytes, 1, f) == 1 && fwrite(foot, 4, 1, f) == 1);
        }
        fclose(f);
        if (kind < 3)
            split_groups("{path: %s/t.tfrecord, group: who}", &spec, 4, kind == 2 ? again : in);
        if (kind == 2)
            TRUE_THAT(memcmp(in, again, sizeof in) == 0); /* 7 and 7.0 */
    }
    refused("{path: %s/t.tfrecord, group: who}", &spec, "1 of 400 samples have no value of who, the first is");
    refused("{path: %s/t.tfrecord}", &spec, "has no option `group`");
}

#if CVY_HAVE_HDF5
static void put_texts(hid_t file, const char *name, int variable)
{
    static char text[N][6], *at[N];
    const hsize_t rows = N;
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &rows, NULL);
    H5Tset_size(type, variable ? H5T_VARIABLE : 6);
    const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "P-%d", group_of(i));
        at[i] = text[i];
    }
    TRUE_THAT(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, variable ? (void *)at : (void *)text) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
}

static void put_text_attribute(hid_t set, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(text) + 1);
    const hid_t at = H5Acreate2(set, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(H5Awrite(at, type, text) >= 0);
    H5Aclose(at);
    H5Sclose(space);
    H5Tclose(type);
}

static void test_hdf5(void)
{
    static double x[N * 2], number[N], hour[N], bad[N];
    const hid_t file = new_file("t.h5");
    const cvy_split_spec spec = {.share = 0.2, .group = "g"};
    cvy_split_spec month = spec, wrong = spec;
    uint8_t in[GROUPS], again[GROUPS];
    month.by = CVY_SPLIT_BY_MONTH;
    wrong.by = CVY_SPLIT_BY_YEAR;
    for (int i = 0; i < N; i++) {
        x[i] = i;
        number[i] = group_of(i);
        hour[i] = 24 * (31 * group_of(i) - 40 + i % 5) + 7; /* months with 31 days, as if there were no others */
        bad[i] = i == 11 ? NAN : 1;
    }
    add_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {N, 2}}, x);
    add_set(file, "number", (struct layout){.type = H5T_STD_I16BE, .ndim = 2, .dim = {N, 1}}, number);
    add_set(file, "bad", (struct layout){.type = H5T_IEEE_F64LE, .ndim = 1, .dim = {N}}, bad);
    const hid_t time = put_set(file, "time", (struct layout){.type = H5T_IEEE_F64LE, .ndim = 1, .dim = {N}}, hour);
    put_text_attribute(time, "units", "hours since 2001-03-01 00:00:00");
    H5Dclose(time);
    put_texts(file, "fixed", 0);
    put_texts(file, "any", 1);
    H5Fclose(file);
    for (int sandbox = 0; sandbox < 2; sandbox++) {
        char form[5][200];
        static const char *const name[] = {"number", "fixed", "any", "bad", "absent"};
        for (int i = 0; i < 5; i++)
            snprintf(form[i], sizeof form[i], "{path: %%s/t.h5, group: %s, sandbox: %s}", name[i],
                     sandbox ? "auto" : "false");
        split_groups(form[0], &spec, 4, in);
        split_groups(form[1], &spec, 4, in);
        split_groups(form[2], &spec, 4, again);
        TRUE_THAT(memcmp(in, again, sizeof in) == 0);
        refused(form[3], &spec, "1 of 400 samples have no value of g, the first is");
        refused(form[4], &spec, "absent");
        refused(form[0], &wrong, "is no date such as 2019-03-31");
    }
    cvy_dataset *d = NULL;
    cvy_split s = {0};
    cvy_text notes = {0};
    OK(open_text(source_text("{path: %s/t.h5, group: time}"), NULL, 0, &d));
    OK(cvy_split_make(d, &month, 3, &notes, &s));
    TRUE_THAT(strstr(notes.data, " groups by g: "));
    cvy_split_free(&s);
    cvy_text_free(&notes);
    cvy_dataset_destroy(&d);
}
#else
static void test_hdf5(void)
{
}
#endif

static void test_dates(void)
{
    static const struct {
        const char *units, *calendar, *text;
        double value;
    } row[] = {
        {"days since 2000-01-01", NULL, "2000-02-29T00:00:00", 59},
        {"days since 2000-01-01", NULL, "1999-12-31T18:00:00", -0.25},
        {"hours since 1582-10-04 00:00", "standard", "1582-10-15T01:00:00", 25},
        {"days since 1582-10-04", "proleptic_gregorian", "1582-10-05T00:00:00", 1},
        {"days since 2001-02-28", "noleap", "2004-03-01T00:00:00", 365 * 3 + 1},
        {"days since 2001-02-28", "360_day", "2001-02-30T00:00:00", 2},
        {"seconds since 1970-01-01", NULL, "2038-01-19T03:14:08", 2147483648.0},
    };
    char text[40];
    for (int i = 0; i < CVY_COUNT(row); i++)
        if (!cvy_time_text(row[i].units, row[i].calendar, row[i].value, text, sizeof text) ||
            strcmp(text, row[i].text) != 0) {
            fprintf(stderr, "%g %s: %s, expected %s\n", row[i].value, row[i].units, text, row[i].text);
            exit(1);
        }
    TRUE_THAT(!cvy_time_text("days since 2000-01-01", NULL, 1e300, text, sizeof text) &&
              !cvy_time_text("K", NULL, 1, text, sizeof text) &&
              !cvy_time_text("days since 2000-01-01", "lunar", 1, text, sizeof text));
}

/* ---- ends of a series ---- */

static void expect_end(const char *source, const cvy_split_spec *spec, int first_val, int end_val, int nnone)
{
    cvy_dataset *d = NULL;
    cvy_split s = {0};
    int none = 0;
    OK(open_text(source, NULL, 0, &d));
    OK(cvy_split_make(d, spec, 3, NULL, &s));
    for (int i = 0; i < N; i++) {
        TRUE_THAT((s.side[i] == CVY_SIDE_VAL) == (i >= first_val && i < end_val));
        none += s.side[i] == CVY_SIDE_NONE;
    }
    TRUE_THAT(none == nnone);
    cvy_split_free(&s);
    cvy_dataset_destroy(&d);
}

static void test_ends(void)
{
    FILE *f = fopen(in_scratch("s.csv"), "w");
    TRUE_THAT(f);
    fprintf(f, "day,x,late,one\n");
    for (int i = 0; i < N; i++)
        fprintf(f, "2001-%02d-%02d,%d,%d,1\n", 1 + i / 7 / 28, 1 + i / 7 % 28, i, (i + 100) % N);
    fclose(f);
    char source[3][300];
    snprintf(source[0], sizeof source[0], "{path: %s/s.csv, group: day}", scratch_folder);
    snprintf(source[1], sizeof source[1], "{path: %s/s.csv, group: late, drop: day}", scratch_folder);
    snprintf(source[2], sizeof source[2], "{path: %s/s.csv, group: one, drop: day}", scratch_folder);
    expect_end(source[0], &(cvy_split_spec){.share = 0.1, .where = CVY_SPLIT_LAST}, 360, N, 0);
    expect_end(source[0], &(cvy_split_spec){.share = 0.1, .where = CVY_SPLIT_FIRST, .gap = 5}, 0, 40, 5);
    /* a day has seven samples, which stay together: the border next to 360 is 357 */
    expect_end(source[0], &(cvy_split_spec){.share = 0.1, .where = CVY_SPLIT_LAST, .order = "day"}, 357, N, 0);
    expect_end(source[1], &(cvy_split_spec){.share = 0.1, .where = CVY_SPLIT_LAST, .order = "late", .gap = 9}, 260, 300,
               9);
    cvy_dataset *d = NULL; /* the order of texts is said */
    cvy_split s = {0};
    cvy_text notes = {0};
    OK(open_text(source[0], NULL, 0, &d));
    OK(cvy_split_make(d, &(cvy_split_spec){.share = 0.1, .where = CVY_SPLIT_LAST, .order = "day"}, 3, &notes, &s));
    TRUE_THAT(strstr(notes.data, "in the order of the texts of day, from \"2001-01-01\" to \"2001-03-02\""));
    cvy_text_free(&notes);
    cvy_split_free(&s);
    cvy_dataset_destroy(&d);
    static const char days[] = "day,x\n31/1/2019,1\n1/2/2019,2\n";
    put_file(in_scratch("days.csv"), days, sizeof days - 1);
    refused("{path: %s/days.csv, group: day}", &(cvy_split_spec){.share = 0.5, .where = CVY_SPLIT_LAST, .order = "day"},
            "\"31/1/2019\" of day is a date");
    refused("{path: %s/s.csv, group: one, drop: day}",
            &(cvy_split_spec){.share = 0.1, .where = CVY_SPLIT_LAST, .order = "one"}, "have the same value of one");
    refused("{path: %s/s.csv, drop: day}", &(cvy_split_spec){.share = 0.1, .where = CVY_SPLIT_LAST, .gap = 400},
            "leaves one part of the 400 samples empty");
}

static void test_refused(void)
{
    const cvy_split_spec spec = {.share = 0.2, .group = "one"};
    refused("{path: %s/s.csv, group: one, drop: day}", &spec, "all 400 samples belong to one group, \"1\"");
    refused("{path: %s/s.csv, group: two}", &spec, "no column \"two\"");
    refused("{path: %s/s.csv, drop: day}", &(cvy_split_spec){.share = 0.2, .pattern = "patient([0-9]+)"},
            "its path has no match of \"patient([0-9]+)\"");
    refused("{path: %s/s.csv, drop: day}", &(cvy_split_spec){.share = 0.2, .pattern = "(("},
            "is no regular expression");
    refused("{path: %s/s.csv, drop: day}", &(cvy_split_spec){.share = 0.2, .pattern = "s(x*)"},
            "matches an empty part");
    refused("{format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}", &spec,
            "format synthetic have no columns");
    put_file(in_scratch("m.csv"), "g,x\na,1\nNA,2\n,3\nb,4\n", 20);
    refused("{path: %s/m.csv, group: g}", &spec, "2 of 4 samples have no value of one, the first is");
}

int main(void)
{
    scratch_make();
    test_nearest();
    test_classes();
    test_tables();
    test_arrays();
    test_records();
    test_hdf5();
    test_dates();
    test_ends();
    test_refused();
    scratch_remove();
    return 0;
}
