/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_list.c: lists of pictures and tables of numbers: separators, labels as numbers and names, headers, columns;
 * errors are named by line and column; no flipped byte and no cut causes an invalid access. */
#include "test_data_damage.h"
#include "test_data_pictures.h"

#include <math.h>
#include <stdio.h>

#include "data/array/data_lines.h"

/* ---- text ---- */

static void put_text(const char *name, const char *text)
{
    put_file(in_scratch(name), text, strlen(text));
}

/* Returns {path: <name in the scratch folder>, format: .., options}. */
static const char *source_of(const char *format, const char *name, const char *options)
{
    static char ring[4][900];
    static int at;
    char *text = ring[at++ % 4];
    snprintf(text, sizeof ring[0], "{path: \"%s\", format: %s%s%s}", in_scratch(name), format, *options ? ", " : "",
             options);
    return text;
}

static void test_numbers(void)
{
    static const char *const good[] = {"0",        "-0",        "1",     "+2.",  "-.5",      "3.14159265358979",
                                       "1e-3",     "1E3",       "1e+22", "1e23", "4.9e-324", "1e308",
                                       "0.000001", "123456789", "1e-45", "007",  "0.1e-10",  "3.4028235e38"};
    static const char *const bad[] = {"",      ".",     "-",   "nan", "inf", "0x10", "1e",
                                      "1e999", "1.2.3", "1 2", "1k",  "--1", "e5"};
    double value = 0;
    int64_t whole = 0;
    for (int i = 0; i < CVY_COUNT(good); i++) {
        const double want = strtod(good[i], NULL);
        TRUE_THAT(cvy_line_part_real((cvy_line_part){good[i], strlen(good[i])}, &value));
        TRUE_THAT(fabs(value - want) <= 4e-16 * fabs(want) && (float)value == (float)want);
    }
    const char *digits = "12345678901234567890123.5";
    TRUE_THAT(cvy_line_part_real((cvy_line_part){digits, strlen(digits)}, &value) &&
              (float)value == (float)strtod(digits, NULL));
    for (int i = 0; i < CVY_COUNT(bad); i++)
        TRUE_THAT(!cvy_line_part_real((cvy_line_part){bad[i], strlen(bad[i])}, &value));
    TRUE_THAT(cvy_line_part_int((cvy_line_part){"-42", 3}, &whole) && whole == -42);
    TRUE_THAT(!cvy_line_part_int((cvy_line_part){"1.0", 3}, &whole) &&
              !cvy_line_part_int((cvy_line_part){"-", 1}, &whole) &&
              !cvy_line_part_int((cvy_line_part){"12345678901234567890", 20}, &whole));
}

/* ---- tables ---- */

/* Opens, checks sizes and reads sample `at`. */
static void read_table(const char *source, int64_t nsamples, int64_t nclasses, int64_t at, float *x, int32_t *label)
{
    cvy_dataset *d = NULL;
    OK(open_text(source, NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == nsamples && cvy_dataset_describe(d)->nclasses == nclasses);
    OK(cvy_dataset_read(d, at, 0, (void *const[]){x, label}));
    cvy_dataset_destroy(&d);
}

static void test_tables(void)
{
    float x[8];
    int32_t label = -1;
    cvy_dataset *d = NULL;
    put_text("iris.csv",
             "# sizes in cm\n5.1,3.5,1.4,0.2,setosa\r\n\r\n7.0, 3.2,4.7,1.4,\"versi color\"\r\n6.3,3.3,6,2.5,setosa");
    read_table(source_of("csv", "iris.csv", "label: -1"), 3, 2, 1, x, &label);
    TRUE_THAT(x[0] == 7 && x[1] == 3.2f && x[3] == 1.4f && label == 1);
    OK(open_text(source_of("csv", "iris.csv", "label: 5, classes: 3"), NULL, 0, &d));
    TRUE_THAT(strcmp(cvy_dataset_describe(d)->class_name[1], "versi color") == 0 &&
              strcmp(cvy_dataset_describe(d)->class_name[2], "2") == 0);
    cvy_dataset_destroy(&d);
    put_text("mnist.csv", "\xEF\xBB\xBFlabel,0,1,2,3\n2.0,1,2,3,4\n0,5,6,7,8\n");
    read_table(in_scratch("mnist.csv"), 2, 3, 0, x, &label);
    TRUE_THAT(label == 2 && x[0] == 1 && x[3] == 4);
    OK(open_text(source_of("csv", "mnist.csv", "shape: [1, 2, 2]"), NULL, 0, &d));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), "1x2x2") == 0);
    cvy_dataset_destroy(&d);
    put_text("semi.csv", "a;b;class\n1;2;0\n3;4;1\n");
    read_table(in_scratch("semi.csv"), 2, 2, 1, x, &label);
    TRUE_THAT(label == 1 && x[0] == 3 && x[1] == 4);
    put_text("tab.tsv", "1\t2\n3\t4\n");
    read_table(in_scratch("tab.tsv"), 2, 0, 1, x, NULL);
    TRUE_THAT(x[0] == 3 && x[1] == 4);
    put_text("truth.csv", "a,b,label\nTrue,2,0\nfalse,4,1.0\n");
    read_table(in_scratch("truth.csv"), 2, 2, 0, x, &label);
    TRUE_THAT(x[0] == 1 && x[1] == 2 && label == 0);
    read_table(in_scratch("truth.csv"), 2, 2, 1, x, &label);
    TRUE_THAT(x[0] == 0 && x[1] == 4 && label == 1);
    put_text("truth.csv", "a,b\nTRUE,FALSE\ntrue,true\n");
    read_table(in_scratch("truth.csv"), 2, 0, 0, x, NULL);
    TRUE_THAT(x[0] == 1 && x[1] == 0);
    put_text("real.csv", "a,label\n1,0.5\n2,1\n");
    OK(open_text(in_scratch("real.csv"), NULL, 0, &d));
    FAILS(cvy_dataset_read(d, 0, 0, (void *const[]){x, &label}), CVY_E_FORMAT,
          "\"0.5\" is not a label, a whole number");
    cvy_dataset_destroy(&d);
    put_text("blank.csv", "  1   2\t3\n 4 5   6  \n");
    read_table(source_of("csv", "blank.csv", "delimiter: space"), 2, 0, 1, x, NULL);
    TRUE_THAT(x[0] == 4 && x[2] == 6);
}

static void test_columns(void)
{
    cvy_dataset *d = NULL;
    float x, y[2], weight;
    put_text("t.csv", "id,mass,px,py,w\n7,1.5,10,20,0.5\n8,2.5,30,40,2\n");
    OK(open_text(source_of("csv", "t.csv", "y: [py, px], weight: w, drop: 1"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nfield == 3);
    OK(cvy_dataset_read(d, 1, 0, (void *const[]){&x, y, &weight}));
    TRUE_THAT(x == 2.5f && y[0] == 40 && y[1] == 30 && weight == 2);
    cvy_dataset_destroy(&d);
    FAILS(open_text(source_of("csv", "t.csv", "y: pz"), NULL, 0, &d), CVY_E_CONFIG, "no column \"pz\"");
    FAILS(open_text(source_of("csv", "t.csv", "y: 6"), NULL, 0, &d), CVY_E_CONFIG, "column 6 of 5");
    FAILS(open_text(source_of("csv", "t.csv", "y: px, drop: [px]"), NULL, 0, &d), CVY_E_CONFIG,
          "\"px\" is given twice");
    FAILS(open_text(source_of("csv", "t.csv", "shape: [2, 3]"), NULL, 0, &d), CVY_E_CONFIG,
          "shape has 6 elements, and 5 columns are input");
    FAILS(open_text(source_of("csv", "t.csv", "drop: [1, 2, 3, 4, 5]"), NULL, 0, &d), CVY_E_CONFIG, "remains as input");
    FAILS(open_text("{format: csv}", NULL, 0, &d), CVY_E_CONFIG, "needs a path");
}

/* Missing numbers of the input may be replaced, and numbers may have a decimal comma. */
static void test_other_numbers(void)
{
    static const char *const missing[] = {"", "NA", "n/a", "NaN", "null", "None", "?", " "};
    cvy_dataset *d = NULL;
    float x[2], y;
    int32_t label;
    char text[100];
    for (int i = 0; i < CVY_COUNT(missing); i++) {
        snprintf(text, sizeof text, "a,b,t,label\n1,2,3,0\n%s,5,6,1\n", missing[i]);
        put_text("gaps.csv", text);
        OK(open_text(source_of("csv", "gaps.csv", "y: t, missing: -9.5"), NULL, 0, &d));
        OK(cvy_dataset_read(d, 1, 0, (void *const[]){x, &label, &y}));
        TRUE_THAT(x[0] == -9.5f && x[1] == 5 && y == 6 && label == 1);
        cvy_dataset_destroy(&d);
        OK(open_text(source_of("csv", "gaps.csv", "y: t"), NULL, 0, &d));
        FAILS(cvy_dataset_read(d, 1, 0, (void *const[]){x, &label, &y}), CVY_E_FORMAT,
              "is not a number (`missing: NUMBER` of the source replaces missing numbers of the input)");
        cvy_dataset_destroy(&d);
    }
    /* A target or a label cannot be replaced. */
    put_text("gaps.csv", "a,b,t,label\n1,2,NA,0\n3,5,6,NA\n");
    OK(open_text(source_of("csv", "gaps.csv", "y: t, missing: 0"), NULL, 0, &d));
    FAILS(cvy_dataset_read(d, 0, 0, (void *const[]){x, &label, &y}), CVY_E_FORMAT,
          "column 3 (t): \"NA\" is not a number");
    TRUE_THAT(!strstr(cvy_error_text(), "missing:"));
    FAILS(cvy_dataset_read(d, 1, 0, (void *const[]){x, &label, &y}), CVY_E_FORMAT, "\"NA\" is not a label");
    cvy_dataset_destroy(&d);
    FAILS(open_text(source_of("csv", "gaps.csv", "missing: none"), NULL, 0, &d), CVY_E_CONFIG,
          "missing: none is not a number");
    put_text("comma.csv", "a;b;label\n1,5;-2,25e1;0\n,5;3;1,0\n");
    read_table(source_of("csv", "comma.csv", "decimal: \",\""), 2, 2, 0, x, &label);
    TRUE_THAT(x[0] == 1.5f && x[1] == -22.5f && label == 0);
    read_table(source_of("csv", "comma.csv", "decimal: \",\""), 2, 2, 1, x, &label);
    TRUE_THAT(x[0] == 0.5f && x[1] == 3 && label == 1);
    put_text("comma.csv", "a;b\n1,5;-2,25e1\n");
    OK(open_text(source_of("csv", "comma.csv", ""), NULL, 0, &d)); /* the header is seen all the same */
    FAILS(cvy_dataset_read(d, 0, 0, (void *const[]){x}), CVY_E_FORMAT,
          "column 1 (a): \"1,5\" is not a number (`decimal: \",\"` of the source reads it as 1.5)");
    cvy_dataset_destroy(&d);
    FAILS(open_text(source_of("csv", "comma.csv", "decimal: \",\", thousands: \",\""), NULL, 0, &d), CVY_E_CONFIG,
          "is the decimal mark, too");
    put_text("comma.csv", "1,5 2,5\n3,5 4,5\n");
    read_table(source_of("csv", "comma.csv", "decimal: \",\""), 2, 0, 1, x, NULL);
    TRUE_THAT(x[0] == 3.5f && x[1] == 4.5f);
    put_text("comma.csv", "1,5\n3.5\n");
    OK(open_text(source_of("csv", "comma.csv", "decimal: \",\""), NULL, 0, &d));
    FAILS(cvy_dataset_read(d, 1, 0, (void *const[]){x}), CVY_E_FORMAT,
          "\"3.5\" is not a number (`decimal: \".\"` of the source reads it as 3.5)");
    cvy_dataset_destroy(&d);
}

/* Whether labels are names holds for a whole table: names if at least half of them are words. A word among numbers is
 * damage, if the user does not say that labels are names. */
static void test_kinds_of_labels(void)
{
    static const struct {
        const char *lines, *options;
        int64_t nclasses;
        int32_t label[4]; /* -1: a fault */
        const char *note;
    } t[] = {
        {"1,0\n1,1\n1,x\n1,1\n", "", 2, {0, 1, -1, 1}, NULL},
        {"1,x\n1,1\n1,0\n1,1\n", "", 2, {-1, 1, 0, 1}, NULL},
        {"1,x\n1,1\n1,0\n1,1\n", "labels: names", 3, {2, 1, 0, 1}, NULL},
        {"1,3\n1,ant\n1,3\n1,bee\n", "", 3, {0, 1, 0, 2}, "column 2 has numbers and names of classes: all are taken"},
        {"1,none\n1,NA\n1,mild\n1,none\n", "", 3, {2, 0, 1, 2}, NULL}, /* a name, though it is no guess */
        {"1,NA\n1,1\n1,0\n1,0\n", "", 2, {-1, 1, 0, 0}, NULL},
        {"1,2\n1,10\n1,2\n1,10\n", "labels: names", 2, {1, 0, 1, 0}, NULL},
        {"1,ant\n1,bee\n1,1\n1,1\n", "labels: numbers", 2, {-1, -1, 1, 1}, NULL},
    };
    for (int i = 0; i < CVY_COUNT(t); i++) {
        cvy_dataset *d = NULL;
        float x = 0;
        int32_t label = 0;
        char options[80];
        snprintf(options, sizeof options, "label: 2, header: no%s%s", *t[i].options ? ", " : "", t[i].options);
        put_text("kinds.csv", t[i].lines);
        OK(open_text(source_of("csv", "kinds.csv", options), NULL, 0, &d));
        const cvy_dataset_info *info = cvy_dataset_describe(d);
        TRUE_THAT(info->nclasses == t[i].nclasses);
        TRUE_THAT(info->note && strstr(info->note, "read as a table with separator comma, no header"));
        TRUE_THAT(t[i].note ? strstr(info->note, t[i].note) != NULL : !strchr(info->note, '\n'));
        for (int k = 0; k < 4; k++) {
            if (t[i].label[k] < 0) {
                FAILS(cvy_dataset_read(d, k, 0, (void *const[]){&x, &label}), CVY_E_FORMAT, "is not a label");
            } else {
                OK(cvy_dataset_read(d, k, 0, (void *const[]){&x, &label}));
                TRUE_THAT(label == t[i].label[k]);
            }
        }
        cvy_dataset_destroy(&d);
    }
}

static void test_bad_tables(void)
{
    cvy_dataset *d = NULL;
    float x[4];
    int32_t label;
    void *const field[] = {x, &label};
    put_text("bad.csv", "a,b,label\n1,2,0\n\n1,x2,1\n1,2\n1,2,1,9\n1,2,one\n1,,0\n1,2,7\n");
    OK(open_text(source_of("csv", "bad.csv", "classes: 2"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 7);
    OK(cvy_dataset_read(d, 0, 0, field));
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_FORMAT, "bad.csv, line 4: column 2 (b): \"x2\" is not a number");
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, "bad.csv, line 5: 2 columns, expected 3");
    FAILS(cvy_dataset_read(d, 3, 0, field), CVY_E_FORMAT, "line 6: 4 columns, expected 3");
    FAILS(cvy_dataset_read(d, 4, 0, field), CVY_E_FORMAT, "line 7: column 3 (label): \"one\" is not a label");
    FAILS(cvy_dataset_read(d, 5, 0, field), CVY_E_FORMAT, "line 8: column 2 (b): \"\" is not a number");
    FAILS(cvy_dataset_read(d, 6, 0, field), CVY_E_FORMAT, "line 9: label 7 is out of range, expected 0 .. 1");
    cvy_dataset_destroy(&d);
    put_text("names.csv", "1,a\n2,b\n3,c\n");
    FAILS(open_text(source_of("csv", "names.csv", "label: 2, classes: 2"), NULL, 0, &d), CVY_E_FORMAT,
          "3 different class names");
    put_file(in_scratch("zero.csv"), "1,2\n3,\0004\n", 9);
    FAILS(open_text(source_of("csv", "zero.csv", ""), NULL, 0, &d), CVY_E_FORMAT,
          "zero.csv, line 2: holds a zero byte");
    put_text("none.csv", "# only this\n\n");
    FAILS(open_text(in_scratch("none.csv"), NULL, 0, &d), CVY_E_FORMAT, "holds no samples");
    put_text("head.csv", "a,b\n");
    FAILS(open_text(in_scratch("head.csv"), NULL, 0, &d), CVY_E_FORMAT, "holds no samples");
}

/* A damaged table gives a fault or numbers, and nothing else happens. */
static void look_at_table(const char *name, int bit, void *user)
{
    cvy_dataset *d = NULL;
    (void)bit, (void)user;
    if (open_text(in_scratch(name), NULL, 0, &d) != CVY_OK)
        return;
    TRUE_THAT(cvy_shape_elems(&cvy_dataset_describe(d)->field[0].shape) <= 64);
    for (int64_t i = 0; i < cvy_dataset_describe(d)->nsamples; i++) {
        float x[64];
        int32_t label;
        const cvy_status status = cvy_dataset_read(d, i, 0, (void *const[]){x, &label});
        TRUE_THAT(status == CVY_OK || status == CVY_E_FORMAT);
    }
    cvy_dataset_destroy(&d);
}

static void test_every_byte(void)
{
    static const char text[] = "a,b,\"c\",label\n1,2.5,-3e2,x\n# c\n4,5,6,y\n7,8,9,x\n";
    damage_each_byte("flipped.csv", text, sizeof text - 1, look_at_table, NULL);
}

/* Line numbers stay right across comments, and long lines across reads. */
static void test_many_lines(void)
{
    enum { N = 200000 };
    cvy_dataset *d = NULL;
    float x[2];
    FILE *f = fopen(in_scratch("many.csv"), "w");
    TRUE_THAT(f);
    for (int i = 0; i < N; i++)
        fprintf(f, "%s%d,%d.25\n", i % 1000 ? "" : "# a thousand\n", i, i % 977);
    fprintf(f, "%d,oops\n", N);
    TRUE_THAT(fclose(f) == 0);
    OK(open_text(source_of("csv", "many.csv", "index: input"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == N + 1);
    for (int i = 0; i < N; i += 997) {
        OK(cvy_dataset_read(d, i, 0, (void *const[]){x}));
        TRUE_THAT(x[0] == (float)i && x[1] == (float)(i % 977) + 0.25f);
    }
    FAILS(cvy_dataset_read(d, N, 0, (void *const[]){x}), CVY_E_FORMAT, "many.csv, line 200201: column 2: \"oops\"");
    cvy_dataset_destroy(&d);
}

/* ---- lists ---- */

#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
static void check_list(const char *source, int64_t nclasses, const int32_t *label)
{
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    OK(open_text(source, NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 3 && cvy_dataset_describe(d)->nclasses == nclasses);
    for (int i = 0; i < 3; i++) {
        OK(cvy_dataset_read_raw(d, i, &raw));
        TRUE_THAT(raw.coding == (i == 1 ? CVY_CODING_PNG : CVY_CODING_JPEG) && raw.label == label[i]);
    }
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
}

static void test_lists(void)
{
    const int32_t label[] = {0, 4, 1}, name[] = {1, 0, 1}, none[3] = {0};
    cvy_dataset *d = NULL;
    OK(cvy_file_make_folder(in_scratch("p/one two")));
    put_jpeg(in_scratch("p/a.jpg"), 0, 8, 8, 3);
    put_png(in_scratch("p/one two/b 1.png"), 1, 8, 8, 3);
    put_jpeg(in_scratch("p/c,d.JPG"), 2, 8, 8, 1);
    put_text("p/space.txt", "# of three\na.jpg 0\n\none two/b 1.png 4\r\nc,d.JPG   1");
    check_list(in_scratch("p/space.txt"), 5, label);
    put_text("p/comma.lst", "a.jpg,0\none two/b 1.png, 4\nc,d.JPG,1\n");
    check_list(in_scratch("p/comma.lst"), 5, label);
    put_text("p/tab.list", "a.jpg\t0\none two/b 1.png\t4\nc,d.JPG\t1\n");
    check_list(in_scratch("p/tab.list"), 5, label);
    put_text("p/reals.txt", "a.jpg 0.0\none two/b 1.png 4.\nc,d.JPG 1\n");
    check_list(in_scratch("p/reals.txt"), 5, label);
    put_text("p/names.txt", "a.jpg,red rose\none two/b 1.png,daisy\nc,d.JPG,red rose\n");
    check_list(in_scratch("p/names.txt"), 2, name);
    put_text("p/names.csv", "path,label\na.jpg,red rose\none two/b 1.png,daisy\nc,d.JPG,red rose\n");
    check_list(source_of("list", "p/names.csv", "classes: 2"), 2, name);
    put_text("p/paths.txt", "a.jpg\none two/b 1.png\nc,d.JPG\n");
    check_list(in_scratch("p/paths.txt"), 0, none);
    put_text("apart.txt", "a.jpg 0\none two/b 1.png 4\nc,d.JPG 1\n");
    char options[600];
    snprintf(options, sizeof options, "root: \"%s\", classes: 7", in_scratch("p"));
    check_list(source_of("list", "apart.txt", options), 7, label);
    put_text("p/labels.txt", "0:zero\n4:four\n");
    OK(open_text(in_scratch("p/space.txt"), NULL, 0, &d));
    TRUE_THAT(strcmp(cvy_dataset_describe(d)->class_name[4], "four") == 0 &&
              strcmp(cvy_dataset_describe(d)->class_name[1], "1") == 0);
    cvy_dataset_destroy(&d);
}

static void test_bad_lists(void)
{
    cvy_dataset *d = NULL;
    static float x[3 * 8 * 8];
    int32_t label;
    void *const field[] = {x, &label};
    char text[600];
    put_text("p/bad.txt", "a.jpg 0\nmissing one.jpg 1\n# more\na.jpg three\na.jpg\nspace.txt 1\na.jpg 9\n");
    OK(open_text(source_of("list", "p/bad.txt", "classes: 3, separator: space"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_IO, "p/missing one.jpg: cannot be opened: No such file");
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_IO, "p/bad.txt, line 2: ");
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, "bad.txt, line 4: ");
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, "has no label that is a whole number");
    FAILS(cvy_dataset_read(d, 3, 0, field), CVY_E_FORMAT, "expected PATH LABEL");
    FAILS(cvy_dataset_read(d, 4, 0, field), CVY_E_FORMAT, "is neither a JPEG nor a PNG");
    FAILS(cvy_dataset_read(d, 5, 0, field), CVY_E_FORMAT, "label 9 is out of range, expected 0 .. 2");
    cvy_dataset_destroy(&d);
    put_text("p/word.txt", "a.jpg x\na.jpg 1\na.jpg 0\n");
    OK(open_text(in_scratch("p/word.txt"), NULL, 0, &d));
    FAILS(cvy_dataset_read(d, 0, 0, field), CVY_E_FORMAT, "a whole number as most labels are (`labels: names`");
    cvy_dataset_destroy(&d);
    put_text("p/word.txt", "a.jpg 1\na.jpg x\n");
    OK(open_text(in_scratch("p/word.txt"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 1, 0, field));
    TRUE_THAT(label == 1 && strstr(cvy_dataset_describe(d)->note, "labels are numbers and names"));
    cvy_dataset_destroy(&d);
    put_text("p/out.txt", "a.jpg 0\n../p/a.jpg 1\n");
    FAILS(open_text(in_scratch("p/out.txt"), NULL, 0, &d), CVY_E_FORMAT,
          "p/out.txt, line 2: ../p/a.jpg leaves the root");
    OK(open_text(source_of("list", "p/out.txt", "outside: true"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 1, 0, field));
    cvy_dataset_destroy(&d);
    snprintf(text, sizeof text, "%s 0\n", in_scratch("p/a.jpg"));
    put_text("absolute.txt", text);
    FAILS(open_text(in_scratch("absolute.txt"), NULL, 0, &d), CVY_E_FORMAT, "leaves the root");
    OK(open_text(source_of("list", "absolute.txt", "outside: true"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    cvy_dataset_destroy(&d);
    put_text("p/gone.txt", "gone.jpg 0\n");
    FAILS(open_text(in_scratch("p/gone.txt"), NULL, 0, &d), CVY_E_IO, "p/gone.txt, line 1: ");
    put_text("p/none.txt", "\n");
    FAILS(open_text(in_scratch("p/none.txt"), NULL, 0, &d), CVY_E_FORMAT, "holds no samples");
}
#else
static void test_lists(void)
{
}
static void test_bad_lists(void)
{
}
#endif

int main(void)
{
    scratch_make();
    test_numbers();
    test_tables();
    test_columns();
    test_other_numbers();
    test_kinds_of_labels();
    test_bad_tables();
    test_every_byte();
    test_many_lines();
    test_lists();
    test_bad_lists();
    scratch_remove();
    return 0;
}
