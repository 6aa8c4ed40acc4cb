/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_tables.c: what is guessed about a table is right and said: header, separator, quotes, the index of the
 * rows; numbers with groups of thousands; quoted line ends; files that are no plain text.
 */
#include "test_data_support.h"

static void put_text(const char *name, const char *text)
{
    put_file(in_scratch(name), text, strlen(text));
}

static const char *source_of(const char *name, const char *options)
{
    static char ring[4][900];
    static int at;
    char *text = ring[at++ % 4];
    snprintf(text, sizeof ring[0], "{path: \"%s\", format: csv%s%s}", in_scratch(name), *options ? ", " : "", options);
    return text;
}

/* ---- the index of the rows ---- */

/* n rows; `row` is a format of a row's number with text before and after it. */
static void put_rows(const char *name, const char *header, const char *row, int n, int first, int shuffled)
{
    FILE *f = fopen(in_scratch(name), "w");
    TRUE_THAT(f && fputs(header, f) >= 0);
    for (int i = 0; i < n; i++) {
        char text[40];
        snprintf(text, sizeof text, row, first + (shuffled ? (7 * i + 3) % n : i));
        fprintf(f, "%s,%d.5,%d,%d\n", text, (i * i) % 11, (i * 5) % 4, i % 2);
    }
    TRUE_THAT(fclose(f) == 0);
}

static void test_index(void)
{
    static const struct {
        const char *header, *row, *options;
        int n, first, shuffled;
        int64_t nx;
        const char *said;
    } t[] = {
        {",a,b,label\n", "%d", "", 30, 0, 0, 2, "column 1 has no name and counts from 0 to 29: taken for an index"},
        {",a,b,label\n", "%d", "", 30, 1, 0, 2, "counts from 1 to 30"},
        {",a,b,label\n", "%d", "", 30, 500, 0, 2, "counts from 500 to 529"},
        {",a,b,label\n", "%d", "", 30, 0, 1, 2, "has the numbers 0 to 29 in another order"},
        {",a,b,label\n", "%d", "index: input", 30, 0, 0, 3,
         "counts from 0 to 29, as a number of the row does, and is an input"},
        {"\"\",\"a\",\"b\",\"label\"\n", "\"%d\"", "", 30, 1, 0, 2, "counts from 1 to 30"},
        {"\"a\",\"b\",\"label\"\n", "\"%d\"", "", 30, 1, 0, 2, "counts from 1 to 30"},
        {"Unnamed: 0,a,b,label\n", "%d", "", 30, 0, 0, 2, "column 1 (Unnamed: 0) counts from 0 to 29: taken for"},
        {"Unnamed: 0.1,a,b,label\n", "%d", "", 30, 0, 0, 2, "column 1 (Unnamed: 0.1)"},
        {"Unnamed: zero,a,b,label\n", "%d", "", 30, 0, 0, 3, "column 1 (Unnamed: zero) counts from 0 to 29"},
        {",a,b,label\n", "%d0", "", 30, 0, 0, 2, "column 1 has no name: taken for an index"},
        {",a,b,label\n", "r%d", "", 30, 0, 0, 2, "column 1 has no name: taken for an index"},
        {"x,,b,label\n", "%d", "", 30, 0, 0, 3, "column 1 (x) counts"},
        {"id,a,b,label\n", "%d", "", 30, 0, 0, 3, "column 1 (id) counts from 0 to 29, as a number of the row does"},
        {"id,a,b,label\n", "%d", "", 30, 3, 1, 3, "column 1 (id) has the numbers 3 to 32 in another order"},
        {"ID,a,b,label\n", "%d0", "", 30, 3, 1, 3, "column 1 (ID) has whole numbers"},
        {"time,a,b,label\n", "%d", "", 30, 0, 0, 3, "column 1 (time) counts from 0 to 29"},
        {"time,a,b,label\n", "%d", "", 3, 0, 0, 3, NULL},
        {"", "%d", "label: -1", 30, 0, 0, 2, "no header, decimal point; 2 inputs: column 2, column 3"},
        {"", "%d", "label: -1", 30, 1, 1, 2, "has the numbers 1 to 30 in another order"},
        {"", "%d", "label: -1, index: input", 30, 0, 0, 3, "column 1 counts from 0 to 29, as a number of the row"},
        {"", "%d", "label: -1", 30, 5, 0, 3, "column 1 counts from 5 to 34, as a number of the row"},
        {"", "%d", "label: -1", 7, 0, 0, 3, NULL},
    };
    for (int i = 0; i < CVY_COUNT(t); i++) {
        cvy_dataset *d = NULL;
        float x[4];
        int32_t label;
        put_rows("rows.csv", t[i].header, t[i].row, t[i].n, t[i].first, t[i].shuffled);
        OK(open_text(source_of("rows.csv", t[i].options), NULL, 0, &d));
        const cvy_dataset_info *info = cvy_dataset_describe(d);
        if (cvy_shape_elems(&info->field[0].shape) != t[i].nx || info->nsamples != t[i].n)
            fprintf(stderr, "row %d: %s\n", i, info->note);
        TRUE_THAT(cvy_shape_elems(&info->field[0].shape) == t[i].nx && info->nsamples == t[i].n);
        if (t[i].said ? !strstr(info->note, t[i].said) : strstr(info->note, "index") != NULL)
            fprintf(stderr, "row %d: %s\n", i, info->note);
        TRUE_THAT(t[i].said ? strstr(info->note, t[i].said) != NULL
                            : !strstr(info->note, "index") && !strstr(info->note, "number of the row"));
        OK(cvy_dataset_read(d, 2, 0, (void *const[]){x, &label}));
        TRUE_THAT(x[t[i].nx - 2] == 4.5f && x[t[i].nx - 1] == 2 && label == 0);
        cvy_dataset_destroy(&d);
    }
    cvy_dataset *d = NULL;
    put_text("alone.csv", ",label\n0,1\n1,0\n");
    FAILS(open_text(in_scratch("alone.csv"), NULL, 0, &d), CVY_E_CONFIG, "(`index: input` of the source makes");
}

/* Further data follow the training: whether it has the column as input. */
static void test_index_of_further_data(void)
{
    static const struct {
        const char *header, *options; /* of the training */
        int64_t nx;
    } t[] = {{",a,b,label\n", "", 2},
             {",a,b,label\n", "index: input", 3},
             {"", "label: -1", 2},
             {"", "label: -1, index: input", 3}};
    for (int k = 0; k < 2 * CVY_COUNT(t); k++) {
        const int i = k / 2, many = k % 2; /* many: rows that were drawn */
        cvy_dataset *train = NULL, *d = NULL;
        cvy_pool *pool = NULL;
        cvy_tree *source = NULL;
        OK(cvy_pool_create(&pool));
        put_rows("train.csv", t[i].header, "%d", 30, 0, 0);
        put_rows("more.csv", t[i].header, many ? "%d0" : "%d", many ? 20 : 3, 40, many); /* rows of the same table */
        OK(open_text(source_of("train.csv", t[i].options), NULL, 0, &train));
        const cvy_data_form like = cvy_dataset_form(train);
        const char *text = source_of("more.csv", *t[i].header ? "" : "label: -1");
        OK(cvy_tree_parse_text(pool, "source", text, strlen(text), &source));
        OK(cvy_dataset_open_like(source, NULL, 0, 1, &like, &d));
        TRUE_THAT(cvy_shape_elems(&cvy_dataset_describe(train)->field[0].shape) == t[i].nx);
        TRUE_THAT(cvy_shape_elems(&cvy_dataset_describe(d)->field[0].shape) == t[i].nx);
        cvy_dataset_destroy(&d);
        cvy_dataset_destroy(&train);
        cvy_pool_destroy(&pool);
    }
}

/* ---- header, separator, quotes ---- */

#define REALS "1.5,2.0,2.5,3.5\n.5,.1,.5,.4\n1.0,.3,.2,.5\n.1,.7,.1,.5\n"

static void test_first_line(void)
{
    static const struct {
        const char *text, *options;
        int64_t nsamples, nx;
        const char *said;
    } t[] = {
        {"NA,2,0\n1,3,1\n2,5,0\n", "missing: 0", 3, 3, "no header"}, /* a missing number is no name */
        {"x2,2,2\n1,3,1\n2,5,0\n", "", 3, -1, ""},                   /* damage is no name */
        {"a,b,label\nNA,2,0\n1,3,1\n", "missing: 0", 2, 2, "missing numbers: \"NA\" in column 1"},
        {"a,b,label\n,2,0\nNA,3,1\n", "missing: 0", 2, 2, "missing numbers: \"NA\" in column 1"},
        {"0,1,2\n0.5,1,2\n7,1,9\n", "", 2, 3, "header in the first line"}, /* pandas without names */
        {"0,1,2\n1,2,3\n2,3,4\n", "", 3, 3, "no header"},                  /* all rows count */
        {"0,1,2\n0.5,1,2\n7,1,9\n", "header: no", 3, 3, "no header"},
        {"0,1\n1,0\n0,1\n", "", 3, 2, "no header"},
        {"0,1\n1.5,0.5\n0.5,1.0\n", "", 2, 2, "header in the first line"},
        {"400.5,401,401.5,402,402.5,403,403.5,404\n.1,.2,.1,.3,.1,.5,.2,.1\n.2,.1,.1,.3,.1,.5,.2,.1\n", "", 2, 8,
         "header"},
        {"2000,2001,2002,2003\n" REALS REALS, "", 8, 4, "header in the first line"}, /* years over reals */
        {"2000,2001.0,2002,2003\n" REALS REALS, "", 9, 4, "no header"},
        {"2000,2001,2002,2003\n" REALS REALS "1,.5,.5,.5\n", "", 10, 4, "no header"},
        {"a,Label\n1,2\n3,0\n", "", 2, 1, "label: Label (whole numbers)"},
        {"CLASS,b\n1,2\n0,4\n", "", 2, 1, "label: CLASS (whole numbers)"},
        {"label,Class,b\n1,1,2\n0,0,4\n", "", 2, 2, "column \"Class\" is an input: `drop: Class` leaves it out"},
        {"a,Target\n1,2\n3,4\n", "", 2, 2, "column \"Target\" is an input, and there is no label: `label: Target`"},
        {"a b,c\n1,2\n3,4\n", "", 2, 2, "separator comma"},
        {"\"x;y;z\",b,label\n1,2,0\n3,4,1\n", "", 2, 2, "separator comma"},
        {"a;b\n1,5;2,5\n3,5;4,5\n", "decimal: \",\"", 2, 2,
         "separator semicolon, header in the first line, decimal comma"},
        {"a|b\n1|2\n3|4\n", "", 2, 2, "separator pipe"},
        {"a|b\n1|2\n3|4\n", "delimiter: pipe", 2, 2, "separator pipe"},
        {"'a','b'\n'1','2'\n'3','4'\n", "", 2, 2, "single quotes"},
        {"#,a,b\n1,2,3\n4,5,6\n", "", 2, 3, "3 inputs: #, a, b"},
        {"# two words\n1,2,3\n4,5,6\n", "", 2, 3,
         "no header, decimal point; 3 inputs: column 1, column 2, column 3; no label; 1 line with # skipped"},
        {"a,b\n1,2\n#3,4\n5,6\n", "", 2, 2, "1 line with # skipped, of which 1 may be rows"},
        {"a,b\n1,2\n#N/A,4\n5,6\n", "missing: 0", 3, 2, "missing numbers: \"#N/A\" in column 1"},
        {"a,b\r1,2\r\r3,4\r", "", 2, 2, "lines end with a carriage return"},
        {"\xEF\xBB\xBF\"a\nb\",c\n1,2\n3,4\n", "", 2, 2, "UTF-8 with a byte order mark"},
        {"a,b,\n1,2,\n3,4,\n", "", 2, 2, "column 3 is empty, after a separator at the end of the lines"},
        {"1,2,\n3,4,\n", "", 2, 2, "column 3 is empty"},
    };
    for (int i = 0; i < CVY_COUNT(t); i++) {
        cvy_dataset *d = NULL;
        put_text("first.csv", t[i].text);
        const cvy_status status = open_text(source_of("first.csv", t[i].options), NULL, 0, &d);
        if (t[i].nx < 0) {
            TRUE_THAT(status == CVY_E_FORMAT ||
                      (status == CVY_OK && cvy_dataset_describe(d)->nsamples == t[i].nsamples));
            cvy_dataset_destroy(&d);
            continue;
        }
        OK(status);
        const cvy_dataset_info *info = cvy_dataset_describe(d);
        if (info->nsamples != t[i].nsamples || cvy_shape_elems(&info->field[0].shape) != t[i].nx ||
            !strstr(info->note, t[i].said))
            fprintf(stderr, "row %d: %s\n", i, info->note);
        TRUE_THAT(info->nsamples == t[i].nsamples && cvy_shape_elems(&info->field[0].shape) == t[i].nx &&
                  strstr(info->note, t[i].said));
        for (int64_t k = 0; k < info->nsamples; k++) {
            float x[8];
            int32_t label;
            OK(cvy_dataset_read(d, k, 0, (void *const[]){x, &label}));
        }
        cvy_dataset_destroy(&d);
    }
}

/* The first rows are not all: what only later rows show is seen, too. */
static void test_later_rows(void)
{
    cvy_dataset *d = NULL;
    FILE *f = fopen(in_scratch("late.csv"), "w");
    TRUE_THAT(f && fputs("a,b\n", f) >= 0);
    for (int i = 0; i < 20000; i++)
        fprintf(f, "%s,%d\n", i < 10000 ? "5" : "", i % 7);
    TRUE_THAT(fclose(f) == 0);
    OK(open_text(source_of("late.csv", "missing: 0"), NULL, 0, &d));
    TRUE_THAT(strstr(cvy_dataset_describe(d)->note, "missing numbers: \"\" in column 1"));
    cvy_dataset_destroy(&d);
}

/* ---- numbers ---- */

static void test_thousands(void)
{
    static const struct {
        const char *field, *options;
        double value; /* -1: refused */
        const char *advice;
    } t[] = {
        {"\"1,234\"", "thousands: \",\"", 1234, NULL},
        {"\"-1,234,567.5\"", "thousands: \",\"", -1234567.5, NULL},
        {"\"12,34,567\"", "thousands: \",\"", 1234567, NULL}, /* lakhs */
        {"12", "thousands: \",\"", 12, NULL},
        {"\"1,234e2\"", "thousands: \",\"", 123400, NULL},
        {"\"1,23\"", "thousands: \",\"", -1, "`decimal: \",\"` of the source reads it as 1.23"},
        {"\"1234,567\"", "thousands: \",\"", -1, "`decimal: \",\"` of the source reads it as 1234.567"},
        {"\",123\"", "thousands: \",\"", -1, "is not a number"},
        {"\"1,,234\"", "thousands: \",\"", -1, "is not a number"},
        {"\"1,234,\"", "thousands: \",\"", -1, "is not a number"},
        {"\"1.5,234\"", "thousands: \",\"", -1, "is not a number"},
        {"1 234.5", "thousands: space", 1234.5, NULL},
        {"1\xC2\xA0"
         "234",
         "thousands: space", 1234, NULL},
        {"1\xE2\x80\xAF"
         "234",
         "thousands: space", 1234, NULL},
        {"1'234", "thousands: apostrophe", 1234, NULL},
        {"1_234", "thousands: underscore", 1234, NULL},
        {"\"1.234,5\"", "decimal: \",\", thousands: \".\"", 1234.5, NULL},
        {"\"1,5\"", "decimal: \",\"", 1.5, NULL},
        {"\"1,234\"", "", -1, "`thousands: \",\"` of the source reads it as 1234)"},
        {"\"1,5\"", "", -1, "`decimal: \",\"` of the source reads it as 1.5)"},
        {"\"1.234,5\"", "", -1, "`decimal: \",\", thousands: \".\"` of the source reads it as 1234.5)"},
        {"1\xC2\xA0"
         "234",
         "", -1, "`thousands: space` of the source reads it as 1234)"},
        {"0x10", "", -1, "is not a number"},
        {"m/s", "", -1, "lines of units, totals and the like must be taken out"},
        {"-inf", "", -1, "is not a finite number"},
        {"2020-01-05T10:00", "", -1, "a date or a time"},
    };
    for (int i = 0; i < CVY_COUNT(t); i++) {
        cvy_dataset *d = NULL;
        char text[200];
        float x[2];
        snprintf(text, sizeof text, "a,b\n1,2\n%s,3\n4,5\n", t[i].field);
        put_text("thousands.csv", text);
        cvy_status status = open_text(source_of("thousands.csv", t[i].options), NULL, 0, &d);
        if (status == CVY_OK)
            status = cvy_dataset_read(d, 1, 0, (void *const[]){x});
        if (t[i].value == -1 ? status == CVY_OK || !strstr(cvy_error_text(), t[i].advice)
                             : status != CVY_OK || x[0] != (float)t[i].value || x[1] != 3) {
            fprintf(stderr, "%s with %s: %s\n", t[i].field, t[i].options, status ? cvy_error_text() : "another number");
            exit(1);
        }
        cvy_dataset_destroy(&d);
    }
    cvy_dataset *d = NULL;
    FAILS(open_text(source_of("thousands.csv", "thousands: \".\""), NULL, 0, &d), CVY_E_CONFIG, "is the decimal mark");
    put_text("both.csv", "a;b\n1,234;2\n5,678;3\n"); /* the separator does not say which it is */
    float x[2];
    OK(open_text(source_of("both.csv", ""), NULL, 0, &d));
    FAILS(cvy_dataset_read(d, 0, 0, (void *const[]){x}), CVY_E_FORMAT,
          "(`decimal: \",\"` of the source reads it as 1.234, and `thousands: \",\"` as 1234)");
    cvy_dataset_destroy(&d);
}

/* ---- text ---- */

static void test_quoted_lines(void)
{
    cvy_dataset *d = NULL;
    float x[2];
    int32_t label;
    put_text("lines.csv", "\"a\nfirst\",b,label\n1,2,\"one\ntwo \"\"2\"\"\"\n3,4,\"three\n\n4\"\n5,x,\"three\n\n4\"\n");
    OK(open_text(in_scratch("lines.csv"), NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 3 && info->nclasses == 2 && strcmp(info->class_name[0], "one\ntwo \"2\"") == 0);
    OK(cvy_dataset_read(d, 1, 0, (void *const[]){x, &label}));
    TRUE_THAT(x[0] == 3 && x[1] == 4 && label == 1);
    FAILS(cvy_dataset_read(d, 2, 0, (void *const[]){x, &label}), CVY_E_FORMAT,
          "lines.csv, line 8: column 2 (b): \"x\"");
    cvy_dataset_destroy(&d);
    put_text("lines.csv",
             "a,b\n1,2\n3,\"4\n5,6\n7,8\n"); /* the quote has no end: its line is refused, others are read */
    OK(open_text(in_scratch("lines.csv"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 4);
    OK(cvy_dataset_read(d, 3, 0, (void *const[]){x}));
    TRUE_THAT(x[0] == 7 && x[1] == 8);
    FAILS(cvy_dataset_read(d, 1, 0, (void *const[]){x}), CVY_E_FORMAT, "line 3: column 2 (b)");
    cvy_dataset_destroy(&d);
}

static void test_other_files(void)
{
    static const uint8_t utf16[] = {0xFF, 0xFE, 'a', 0, ',', 0, 'b', 0, '\n', 0, '1', 0, ',', 0, '2', 0, '\n', 0};
    cvy_dataset *d = NULL;
    put_file(in_scratch("wide.csv"), utf16, sizeof utf16);
    FAILS(open_text(in_scratch("wide.csv"), NULL, 0, &d), CVY_E_FORMAT, "iconv -f UTF-16 -t UTF-8");
    put_text("latin.csv", "Gr\xF6\xDF"
                          "e,b\n1,2\n");
    FAILS(open_text(in_scratch("latin.csv"), NULL, 0, &d), CVY_E_FORMAT, "the name of column 1 is not UTF-8");
    put_text("dates.csv", "a,day,city\n1,2020-01-01,Rome\n2,2020-01-02,Oslo\n");
    FAILS(open_text(in_scratch("dates.csv"), NULL, 0, &d), CVY_E_FORMAT,
          "no number in columns 2 (day: \"2020-01-01\", a date or a time), 3 (city: \"Rome\")");
    TRUE_THAT(strstr(cvy_error_text(), "`label: 2` makes a column the class, `drop: 2` leaves it out, and `group: 2`"));
    FAILS(open_text(source_of("dates.csv", "label: city"), NULL, 0, &d), CVY_E_FORMAT, "a time): `drop: 2` leaves it");
    put_text("list.csv", "path,label\np/a.png,1\np/b.png,0\n");
    FAILS(open_text(in_scratch("list.csv"), NULL, 0, &d), CVY_E_FORMAT, "a picture: `format: list` reads lists");
    OK(open_text(source_of("dates.csv", "drop: [day, city]"), NULL, 0, &d));
    cvy_dataset_destroy(&d);
    put_text("empty.csv", "a,b,\n1,2,\n3,4,\n");
    OK(open_text(source_of("empty.csv", "label: -1"), NULL, 0, &d)); /* the empty column does not count */
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 5);
    cvy_dataset_destroy(&d);
}

/* Tables with other suffixes are found by their numbers; lists of pictures stay lists. */
static void test_suffixes(void)
{
    static const struct {
        const char *name, *text, *format;
    } t[] = {{"r.txt", "\"a\" \"b\"\n\"1\" 1.5 2\n\"2\" 2.5 4\n", "csv"},
             {"n.dat", "# x y z\n 1.0 2.0 3.0\n", "csv"},
             {"e.tab", "a;b\r\n1,5;2\r\n", "csv"},
             {"names.txt", "1 2.jpg 0\n3 4.jpg 1\n", "list"},
             {"path.txt", "a/1 0\na/2 1\n", "list"}};
    for (int i = 0; i < CVY_COUNT(t); i++) {
        const cvy_reader_def *reader = NULL;
        put_text(t[i].name, t[i].text);
        OK(cvy_reader_detect(in_scratch(t[i].name), &reader));
        TRUE_THAT(strcmp(reader->name, t[i].format) == 0);
    }
}

/* What is said has one line, whatever names hold. */
static void test_one_line(void)
{
    cvy_dataset *d = NULL;
    put_text("breaks.csv", "\"a\nb\",\"c\td\"\n1,2\n3,4\n");
    OK(open_text(in_scratch("breaks.csv"), NULL, 0, &d));
    TRUE_THAT(strstr(cvy_dataset_describe(d)->note, "2 inputs: a b, c d; no label") &&
              !strchr(cvy_dataset_describe(d)->note, '\n'));
    cvy_dataset_destroy(&d);
}

int main(void)
{
    scratch_make();
    test_index();
    test_index_of_further_data();
    test_first_line();
    test_later_rows();
    test_thousands();
    test_quoted_lines();
    test_other_files();
    test_suffixes();
    test_one_line();
    scratch_remove();
    return 0;
}
