/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan minimal */
/* test_data_agrees.c: data that are opened like those of a training: pictures get its channels and labels its numbers
 * of classes; anything else that differs is an error with both values. */
#include "test_data_pictures.h"

#include "data/data_agrees.h"

/* Opens a source like the data set `train`. */
static cvy_status open_augmented(const cvy_dataset *train, const char *source, const char *augment, int x_only,
                                 cvy_dataset **out)
{
    cvy_pool *pool = NULL;
    cvy_tree *s = NULL, *a = NULL;
    cvy_data_form like = cvy_dataset_form(train);
    like.x_only = x_only;
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "source", source, strlen(source), &s));
    if (augment)
        OK(cvy_tree_parse_text(pool, "augment", augment, strlen(augment), &a));
    const cvy_status status = cvy_dataset_open_like(s, a, 7, !x_only, &like, out);
    cvy_pool_destroy(&pool);
    return status;
}

static cvy_status open_like(const cvy_dataset *train, const char *source, int x_only, cvy_dataset **out)
{
    return open_augmented(train, source, NULL, x_only, out);
}

static void expect_labels(cvy_dataset *d, const int *label, int64_t n)
{
    int32_t got = -1;
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == n);
    for (int64_t i = 0; i < n; i++) {
        OK(cvy_dataset_label(d, i, &got));
        TRUE_THAT(got == label[i]);
    }
}

static void put_text(const char *name, const char *text)
{
    put_file(in_scratch(name), text, strlen(text));
}

/* ---- channels of pictures ---- */

#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
static void put_folder(const char *name, const char *classes, int components, int side)
{
    char path[200];
    for (const char *c = classes; *c; c++) {
        snprintf(path, sizeof path, "%s/%c", name, *c);
        OK(cvy_file_make_folder(in_scratch(path)));
        snprintf(path, sizeof path, "%s/%c/0.png", name, *c);
        put_png(in_scratch(path), *c >= 'a' ? *c - 'a' : *c - '0', side, side, components);
    }
}

/* Whatever the order, the first pictures decide. */
static void test_channels(void)
{
    static const struct {
        const char *first, *second, *shape;
    } pair[] = {{"grey", "colour", "1x8x8"}, {"colour", "grey", "3x8x8"}};
    cvy_dataset *train = NULL, *d = NULL;
    char list[1200];
    put_folder("grey", "abc", 1, 8);
    put_folder("colour", "abc", 3, 8);
    put_folder("large", "abc", 3, 9);
    for (int i = 0; i < 2; i++) {
        float x[3 * 8 * 8 + 1];
        int32_t label = 0;
        void *const field[] = {x, &label};
        OK(open_text(in_scratch(pair[i].first), NULL, 0, &train));
        OK(open_like(train, in_scratch(pair[i].second), 0, &d));
        TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), pair[i].shape) == 0);
        TRUE_THAT(strstr(cvy_dataset_describe(d)->note, i == 0 ? "are read as grey" : "are read as colour"));
        x[i == 0 ? 8 * 8 : 3 * 8 * 8] = 77;
        OK(cvy_dataset_read(d, 0, 0, field));
        TRUE_THAT(x[i == 0 ? 8 * 8 : 3 * 8 * 8] == 77);
        cvy_dataset_destroy(&d);
        FAILS(open_like(train, in_scratch("large"), 0, &d), CVY_E_SHAPE, i == 0 ? "1x9x9" : "3x9x9");
        FAILS(open_like(train, in_scratch("large"), 1, &d), CVY_E_SHAPE, pair[i].shape);
        cvy_dataset_destroy(&train);
        snprintf(list, sizeof list, "[%s, %s]", in_scratch(pair[i].first), in_scratch(pair[i].second));
        OK(open_text(list, NULL, 0, &d));
        TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), pair[i].shape) == 0);
        OK(cvy_dataset_read(d, 3, 0, field));
        cvy_dataset_destroy(&d);
    }
}

/* A class that does not occur shifts no other; a class that the training lacks is named. */
static void test_class_folders(void)
{
    cvy_dataset *train = NULL, *d = NULL;
    put_folder("two", "bc", 1, 8);
    put_folder("four", "abcd", 1, 8);
    OK(open_text(in_scratch("grey"), NULL, 0, &train));
    OK(open_like(train, in_scratch("two"), 0, &d));
    expect_labels(d, (int[]){1, 2}, 2);
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 3 && strcmp(cvy_dataset_describe(d)->class_name[2], "c") == 0);
    cvy_dataset_destroy(&d);
    FAILS(open_like(train, in_scratch("four"), 0, &d), CVY_E_CONFIG,
          "four has the class \"d\", which the training data do not have: its classes are a, b, c, d, and theirs are "
          "a, b, "
          "c");
    OK(open_like(train, in_scratch("four"), 1, &d));
    cvy_dataset_destroy(&d);
    cvy_dataset_destroy(&train);
    /* Folders of numbers are in the order 0, 1, 10, 2, and without 10 their names are those of classes without names.
     */
    put_folder("ten", "0129", 1, 8);
    put_folder("nine", "012", 1, 8);
    put_folder("zeros", "02", 1, 8);
    TRUE_THAT(rename(in_scratch("ten/9"), in_scratch("ten-9")) == 0);
    TRUE_THAT(rename(in_scratch("ten-9"), in_scratch("ten/10")) == 0);
    TRUE_THAT(rename(in_scratch("zeros/0"), in_scratch("zeros-0")) == 0);
    TRUE_THAT(rename(in_scratch("zeros-0"), in_scratch("zeros/010")) == 0);
    OK(open_text(in_scratch("ten"), NULL, 0, &train));
    OK(open_like(train, in_scratch("nine"), 0, &d));
    expect_labels(d, (int[]){0, 1, 3}, 3);
    cvy_dataset_destroy(&d);
    OK(open_like(train, in_scratch("zeros"), 0, &d));
    expect_labels(d, (int[]){2, 3}, 2);
    cvy_dataset_destroy(&d);
    put_text("list.txt", "nine/0/0.png 10\nnine/2/0.png 2\n");
    OK(open_like(train, in_scratch("list.txt"), 0, &d));
    expect_labels(d, (int[]){2, 3}, 2);
    cvy_dataset_destroy(&d);
    cvy_dataset_destroy(&train);
}
#else
static void test_channels(void)
{
}
static void test_class_folders(void)
{
}
#endif

/* ---- classes ---- */

static void test_class_names(void)
{
    cvy_dataset *train = NULL, *d = NULL;
    put_text("abc.csv", "u,v,label\n1,2,ant\n3,4,bee\n5,6,cat\n7,8,ant\n");
    put_text("bc.csv", "u,v,label\n3,4,cat\n5,6,bee\n");
    put_text("bd.csv", "u,v,label\n3,4,bee\n5,6,dog\n");
    put_text("numbers.csv", "u,v,label\n3,4,1\n5,6,0\n");
    put_text("many.csv", "u,v,label\n3,4,1\n5,6,3\n");
    OK(open_text(in_scratch("abc.csv"), NULL, 0, &train));
    OK(open_like(train, in_scratch("bc.csv"), 0, &d));
    expect_labels(d, (int[]){2, 1}, 2);
    TRUE_THAT(strstr(cvy_dataset_describe(d)->note, "no sample of 1 of the 3 classes of the training data: ant"));
    cvy_dataset_destroy(&d);
    FAILS(open_like(train, in_scratch("bd.csv"), 0, &d), CVY_E_CONFIG, "bd.csv has the class \"dog\"");
    OK(open_like(train, in_scratch("numbers.csv"), 0, &d));
    expect_labels(d, (int[]){1, 0}, 2);
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 3 &&
              strstr(cvy_dataset_describe(d)->note, "class 0 is \"0\" here and \"ant\" there"));
    cvy_dataset_destroy(&d);
    FAILS(open_like(train, in_scratch("many.csv"), 0, &d), CVY_E_CONFIG,
          "many.csv are 0, 1, 2, 3, and those of the training data are ant, bee, cat: they cannot be matched by name");
    char text[1200];
    snprintf(text, sizeof text, "[{path: %s, range: \"0:1\"}, %s]", in_scratch("bc.csv"), in_scratch("abc.csv"));
    OK(open_like(train, text, 0, &d));
    expect_labels(d, (int[]){2, 0, 1, 2, 0}, 5);
    cvy_dataset_destroy(&d);
    cvy_dataset_destroy(&train);
}

/* Numbers are names like others, if all names of both sets are numbers; with words among them, too. */
static void test_number_names(void)
{
    static const struct {
        const char *train, *further;
        int label[4]; /* of the two lines of `further`, -1: it is refused with `text` */
        const char *text;
    } pairs[] = {
        /* lists of classes as those of folders 0, 1, 10, 2: sorted bytewise */
        {"1\n10\n2\nother\nother\nother\n",
         "10\n1\n",
         {1, 0},
         NULL}, /* numbers alone, which a table reads as numbers */
        {"other\n2\nother\n10\nother\n1\n", "other\n2\n", {3, 2}, NULL},
        {"2\n10\nother\nother\n1\nother\n", "2\n5\n", {-1}, "has the class \"5\""},
        {"1\n2\nother\nother\n", "0\n1\n", {-1}, "has the class \"0\""},
        {"0\n1\n2\n", "2\nother\n", {-1}, "has the class \"other\""},
        {"0\n1\n2\n", "ant\nbee\n", {-1}, "they cannot be matched by name"},
        {"0\n1\n2\n", "2\n1.0\n", {2, 1}, NULL},
    };
    cvy_dataset *train = NULL, *d = NULL;
    char text[200];
    for (int i = 0; i < CVY_COUNT(pairs); i++) {
        for (int k = 0; k < 2; k++) {
            const char *at = k ? pairs[i].further : pairs[i].train;
            int n = snprintf(text, sizeof text, "u,label\n");
            for (; *at; at += strcspn(at, "\n") + 1)
                n += snprintf(text + n, sizeof text - (size_t)n, "1,%.*s\n", (int)strcspn(at, "\n"), at);
            put_text(k ? "further.csv" : "train.csv", text);
        }
        OK(open_text(in_scratch("train.csv"), NULL, 0, &train));
        if (pairs[i].label[0] < 0) {
            FAILS(open_like(train, in_scratch("further.csv"), 0, &d), CVY_E_CONFIG, pairs[i].text);
        } else {
            OK(open_like(train, in_scratch("further.csv"), 0, &d));
            expect_labels(d, pairs[i].label, 2);
            TRUE_THAT(!pairs[i].text || strstr(cvy_dataset_describe(d)->note, pairs[i].text));
            cvy_dataset_destroy(&d);
        }
        cvy_dataset_destroy(&train);
    }
    /* A name that two classes have says nothing, but the same list is the same. */
    cvy_dataset_info twins = {.nclasses = 3, .class_name = (const char *const[]){"ant", "bee", "ant"}};
    cvy_source source = {.info = {.nclasses = 3, .class_name = twins.class_name}};
    int32_t *label = NULL;
    OK(cvy_pool_create(&source.info.pool));
    OK(cvy_source_follow_classes(&twins, &source, &label));
    TRUE_THAT(!label);
    source.info.class_name = (const char *const[]){"bee", "ant"};
    source.info.nclasses = 2;
    FAILS(cvy_source_follow_classes(&twins, &source, &label), CVY_E_CONFIG,
          "two classes \"ant\", which cannot be told");
    cvy_pool_destroy(&source.info.pool);
    /* Sources of one set. */
    put_text("words.csv", "u,label\n1,ant\n2,bee\n");
    put_text("numbers.csv", "u,label\n1,0\n2,1\n");
    snprintf(text, sizeof text, "{sources: [%s, ", in_scratch("words.csv"));
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s], classes: union}", in_scratch("numbers.csv"));
    FAILS(open_text(text, NULL, 0, &d), CVY_E_CONFIG, "are ant, bee, and those of");
}

/* ---- columns of tables ---- */

/* Opens a table like the training data and compares the numbers of its first sample: x, then y. */
static void expect_numbers(const cvy_dataset *train, const char *source, int x_only, const float *number, int n,
                           const char *note)
{
    cvy_dataset *d = NULL;
    float x[4] = {0}, y[4] = {0};
    int32_t label = -1;
    OK(open_like(train, source, x_only, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    void *field[4] = {x};
    for (int f = 1; f < info->nfield; f++)
        field[f] = strcmp(info->field[f].name, "y") == 0 ? y : (void *)&label;
    OK(cvy_dataset_read(d, 0, 0, field));
    for (int i = 0; i < n; i++)
        TRUE_THAT(number[i] == (i < 2 ? x[i] : y[i - 2]));
    TRUE_THAT(info->note &&
              (note ? strstr(info->note, note) != NULL : !strchr(info->note, '\n'))); /* one line always */
    cvy_dataset_destroy(&d);
}

static const char *with_path(const char *format, const char *name)
{
    static char text[600];
    snprintf(text, sizeof text, format, in_scratch(name));
    return text;
}

static void test_columns(void)
{
    cvy_dataset *train = NULL, *d = NULL;
    put_text("train.csv", "a,b,kind,p,q\n1,2,0,3,4\n5,6,1,7,8\n");
    put_text("other.csv", "q,kind,b,more,p,a\n4,0,2,99,3,1\n8,1,6,99,7,5\n");
    put_text("bare.csv", "b,a\n2,1\n");
    put_text("lacks.csv", "a,kind,p,q\n1,0,3,4\n");
    put_text("plain.csv", "1,2,0,3,4\n5,6,1,7,8\n");
    OK(open_text(with_path("{path: %s, label: kind, y: [p, q]}", "train.csv"), NULL, 0, &train));
    expect_numbers(train, in_scratch("other.csv"), 0, (float[]){1, 2, 3, 4}, 4, "are not read: more");
    expect_numbers(train, with_path("{path: %s, label: kind, y: [q, p], drop: [more, none]}", "other.csv"), 0,
                   (float[]){1, 2, 3, 4}, 4, NULL);
    expect_numbers(train, in_scratch("bare.csv"), 1, (float[]){1, 2}, 2, NULL);
    expect_numbers(train, with_path("{path: %s, label: 3, y: [4, 5], header: no}", "plain.csv"), 0,
                   (float[]){1, 2, 3, 4}, 4,
                   "plain.csv has no names of columns: its numbers are taken in the order of the training data, ");
    FAILS(open_like(train, in_scratch("lacks.csv"), 1, &d), CVY_E_CONFIG,
          "lacks.csv: no column \"b\": the inputs of the training data are the columns a, b, and this table has a, "
          "kind, p, "
          "q");
    FAILS(open_like(train, with_path("{path: %s, label: 2, y: [a, q]}", "other.csv"), 0, &d), CVY_E_CONFIG,
          "no column \"a\"");
    FAILS(open_like(train, with_path("{path: %s, label: 4}", "other.csv"), 0, &d), CVY_E_CONFIG,
          "column 4, the label, is \"more\" here and \"kind\" in the training data");
    FAILS(open_like(train, in_scratch("bare.csv"), 0, &d), CVY_E_CONFIG, "has no classes");
    put_text("usual.csv", "class,b,p,q,a\n0,2,3,4,1\n1,6,7,8,5\n");
    expect_numbers(train, in_scratch("usual.csv"), 0, (float[]){1, 2, 3, 4}, 4, NULL);
    cvy_dataset_destroy(&train);
    put_text("input.csv", "a,class,kind\n1,2,0\n5,6,1\n"); /* the usual name is that of an input */
    put_text("usual.csv", "class,a,label\n2,1,0\n6,5,1\n");
    OK(open_text(with_path("{path: %s, label: kind}", "input.csv"), NULL, 0, &train));
    expect_numbers(train, in_scratch("usual.csv"), 0, (float[]){1, 2}, 2, NULL);
    cvy_dataset_destroy(&train);
    OK(open_text(with_path("{path: %s, label: 3, y: [4, 5], header: no}", "plain.csv"), NULL, 0, &train));
    expect_numbers(train, with_path("{path: %s, label: kind, y: [p, q]}", "train.csv"), 0, (float[]){1, 2, 3, 4}, 4,
                   "names of the columns of the training data are not known");
    cvy_dataset_destroy(&train);
    static const char *const doubles[][2] = {{"a,b,a\n1,2,3\n", "two columns \"a\", which"},
                                             {",b,\n1,2,3\n", "two columns \"\", which"}};
    for (int i = 0; i < CVY_COUNT(doubles); i++) {
        put_text("double.csv", doubles[i][0]);
        OK(open_text(with_path("{path: %s, index: input}", "double.csv"), NULL, 0, &train));
        expect_numbers(train, in_scratch("double.csv"), 0, (float[]){1, 2}, 2, doubles[i][1]);
        cvy_dataset_destroy(&train);
    }
    put_text("twice.csv", "label,a,b,label,p,p\n1,2,3,0,4,5\n");
    FAILS(open_text(in_scratch("twice.csv"), NULL, 0, &d), CVY_E_CONFIG,
          "the columns 1 and 4 are both called \"label\": give the one that is meant by its number");
    FAILS(open_text(with_path("{path: %s, label: 4, y: p}", "twice.csv"), NULL, 0, &d), CVY_E_CONFIG,
          "the columns 5 and 6 are both called \"p\"");
    OK(open_text(with_path("{path: %s, label: 4, y: -1, drop: [label, p]}", "twice.csv"), NULL, 0, &train));
    put_text("once.csv", "p,b,a,label\n5,3,2,0\n");
    expect_numbers(train, in_scratch("once.csv"), 0, (float[]){2, 3, 5}, 3, NULL);
    FAILS(open_like(train, in_scratch("twice.csv"), 0, &d), CVY_E_CONFIG, "are both called \"p\"");
    put_text("twice.csv", "b,a,p,a,label\n3,2,5,9,0\n");
    FAILS(
        open_like(train, in_scratch("twice.csv"), 0, &d), CVY_E_CONFIG,
        "column 4 is called \"a\", as one before it, and the training data have fewer of that name: give each a name");
    cvy_dataset_destroy(&train);
    put_text("both.csv", "a,class,label\n1,2,0\n");
    static const char *const said[][2] = {{"{path: %s}", "column \"class\" is an input"},
                                          {"{path: %s, drop: class}", NULL},
                                          {"{path: %s, label: label}", NULL}};
    for (int i = 0; i < CVY_COUNT(said); i++) {
        OK(open_text(with_path(said[i][0], "both.csv"), NULL, 0, &train));
        const char *note = cvy_dataset_describe(train)->note;
        TRUE_THAT(note && (said[i][1] ? strstr(note, said[i][1]) != NULL : !strchr(note, '\n')));
        cvy_dataset_destroy(&train);
    }
    char list[1200];
    snprintf(list, sizeof list, "[%s, %s]", in_scratch("bare.csv"), in_scratch("lacks.csv"));
    FAILS(open_text(list, NULL, 0, &d), CVY_E_CONFIG, "no column \"b\"");
    put_text("turned.csv", "a,b\n1,2\n");
    snprintf(list, sizeof list, "[%s, %s]", in_scratch("bare.csv"), in_scratch("turned.csv"));
    OK(open_text(list, NULL, 0, &d));
    float x[2];
    void *const field[] = {x};
    OK(cvy_dataset_read(d, 1, 0, field));
    TRUE_THAT(x[0] == 2 && x[1] == 1);
    cvy_dataset_destroy(&d);
}

/* ---- types, shapes and fields ---- */

#define SET "format: synthetic, samples: 4, "

static void test_fields(void)
{
    cvy_dataset *train = NULL, *d = NULL;
    OK(open_text("{" SET "shape: [1, 4, 4], classes: 3}", NULL, 0, &train));
    OK(open_like(train, "{" SET "shape: [1, 4, 4], classes: 2}", 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 3);
    cvy_dataset_destroy(&d);
    FAILS(open_like(train, "{" SET "shape: [2, 4, 4], classes: 3}", 0, &d), CVY_E_SHAPE,
          "samples are 2x4x4, the network was trained on 1x4x4");
    FAILS(open_like(train, "{" SET "shape: [1, 4, 4], targets: 2}", 0, &d), CVY_E_CONFIG, "has no classes");
    OK(open_like(train, "{" SET "shape: [1, 4, 4], targets: 2}", 1, &d));
    cvy_dataset_destroy(&d);
    cvy_dataset_destroy(&train);
    OK(open_text("{" SET "shape: [4], targets: 3}", NULL, 0, &train));
    FAILS(open_like(train, "{" SET "shape: [4], targets: 2}", 0, &d), CVY_E_SHAPE,
          "\"y\" is f32 of 2, but f32 of 3 in the training data");
    cvy_dataset_destroy(&train);
    /* a target that the augmentation does not take */
    static const char *const steps[] = {"[{target: {role: label_map, classes: 2}}]",
                                        "[{target: {role: point, order: x_y}}]"};
    static const char *const targets[][2] = {{"map: [4, 4]", "map: [2, 4]"}, {"targets: 2", "targets: 3"}};
    for (int i = 0; i < CVY_COUNT(steps); i++) {
        char source[200];
        snprintf(source, sizeof source, "{" SET "shape: [1, 4, 4], classes: 2, %s}", targets[i][0]);
        OK(open_text(source, steps[i], 0, &train));
        snprintf(source, sizeof source, "{" SET "shape: [1, 4, 4], classes: 2, %s}", targets[i][1]);
        FAILS(open_augmented(train, source, steps[i], 0, &d), CVY_E_CONFIG, "synthetic: ");
        cvy_dataset_destroy(&train);
    }
}

/* Numbers that are stored as bytes are divided by 255, so they do not go with the same numbers as reals. */
static void test_bytes(void)
{
    static const uint8_t bytes[2 * 4] = {0, 10, 20, 255, 1, 2, 3, 4};
    static const float reals[2 * 4] = {0, 10, 20, 255, 1, 2, 3, 4};
    static const int32_t number[2] = {0, 1};
    cvy_dataset *train = NULL, *d = NULL;
    for (int i = 0; i < 2; i++) {
        OK(cvy_file_make_folder(in_scratch(i ? "reals" : "bytes")));
        put_npy(in_scratch(i ? "reals/x.npy" : "bytes/x.npy"), i ? "<f4" : "|u1", "2, 1, 2, 2",
                i ? (const void *)reals : bytes, i ? sizeof reals : sizeof bytes);
        put_npy(in_scratch(i ? "reals/label.npy" : "bytes/label.npy"), "<i4", "2,", number, sizeof number);
    }
    OK(open_text(in_scratch("bytes"), NULL, 0, &train));
    FAILS(open_like(train, in_scratch("reals"), 0, &d), CVY_E_CONFIG,
          "x are numbers, read as they are, but those of the training data are bytes, divided by 255");
    FAILS(open_like(train, in_scratch("reals"), 1, &d), CVY_E_CONFIG, "bytes, divided by 255");
    cvy_dataset_destroy(&train);
    OK(open_text(in_scratch("reals"), NULL, 0, &train));
    FAILS(open_like(train, in_scratch("bytes"), 0, &d), CVY_E_CONFIG, "x are bytes, divided by 255");
    cvy_dataset_destroy(&train);
}

int main(void)
{
    scratch_make();
    test_channels();
    test_class_folders();
    test_class_names();
    test_number_names();
    test_columns();
    test_fields();
    test_bytes();
    scratch_remove();
    return 0;
}
