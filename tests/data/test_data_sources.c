/*
 * test_data_sources.c: several sources as one: the order of samples, what must agree, classes in another order or
 * merged, ranges and limits of one source and of several, and hashes that differ.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "test_data_support.h"

enum { PIXELS = 3072 };

/* Writes a folder in CIFAR's format with `count` samples: label (first + i) % 10, all pixels `mark` + i. */
static void put_set(const char *folder, const char *names, int mark, int first, int count)
{
    static uint8_t record[PIXELS + 1];
    char path[600];
    OK(cvy_file_make_folder(folder));
    snprintf(path, sizeof path, "%s/data_batch_1.bin", folder);
    FILE *f = fopen(path, "wb");
    TRUE_THAT(f);
    for (int i = 0; i < count; i++) {
        memset(record, mark + i, sizeof record);
        record[0] = (uint8_t)((first + i) % 10);
        TRUE_THAT(fwrite(record, 1, sizeof record, f) == sizeof record);
    }
    fclose(f);
    snprintf(path, sizeof path, "%s/batches.meta.txt", folder);
    put_file(path, names, strlen(names));
}

/* Replaces "%A", "%B", "%C" in a text by the folders of the three sets. */
static const char *with_folders(const char *text)
{
    static char ring[4][2048];
    static int next;
    char *out = ring[next++ % 4];
    size_t n = 0;
    for (; *text; text++) {
        if (text[0] == '%' && text[1] >= 'A' && text[1] <= 'C')
            n += (size_t)snprintf(out + n, 2048 - n, "\"%s/%c\"", scratch_folder, *++text);
        else
            out[n++] = *text;
    }
    out[n] = 0;
    return out;
}

static cvy_status open_sets(const char *text, cvy_dataset **out)
{
    return open_text(with_folders(text), "[{scale: 1}]", 0, out);
}

/* Samples are recognised by their pixels: those of A start at 0, of B at 100, of C at 200. */
static void expect(const char *source, const int *mark, const int *label, int64_t n)
{
    cvy_dataset *d = NULL;
    static float x[PIXELS];
    int32_t got = -1, alone = -1;
    void *const field[] = {x, &got};
    OK(open_sets(source, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == n);
    for (int64_t i = 0; i < n; i++) {
        OK(cvy_dataset_read(d, i, 0, field));
        OK(cvy_dataset_label(d, i, &alone));
        TRUE_THAT(x[0] == (float)mark[i] && x[PIXELS - 1] == x[0] && alone == got);
        TRUE_THAT(!label || got == label[i]);
    }
    FAILS(cvy_dataset_read(d, n, 0, field), CVY_E_ARGUMENT, "out of range");
    cvy_dataset_destroy(&d);
}

static void test_order(void)
{
    expect("[%A, %B]", (int[]){0, 1, 2, 3, 100, 101, 102}, NULL, 7);
    expect("{sources: [%B, %A, %B]}", (int[]){100, 101, 102, 0, 1, 2, 3, 100, 101, 102}, NULL, 10);
    expect("[[%A, %B], {path: %A, limit: 1}]", (int[]){0, 1, 2, 3, 100, 101, 102, 0}, NULL, 8);
}

static void test_ranges(void)
{
    cvy_dataset *d = NULL;
    expect("{path: %A, range: \"1:3\"}", (int[]){1, 2}, NULL, 2);
    expect("{path: %A, range: \"0:75%\"}", (int[]){0, 1, 2}, NULL, 3);
    expect("{path: %A, range: \"75%:\"}", (int[]){3}, NULL, 1);
    expect("{path: %A, range: \":2\"}", (int[]){0, 1}, NULL, 2);
    expect("{path: %A, limit: 3}", (int[]){0, 1, 2}, NULL, 3);
    expect("{path: %A, limit: 99}", (int[]){0, 1, 2, 3}, NULL, 4);
    expect("{path: %A, range: \"1:\", limit: 2}", (int[]){1, 2}, NULL, 2);
    expect("[{path: %A, range: \"50%:\"}, {path: %B, limit: 1}]", (int[]){2, 3, 100}, NULL, 3);
    expect("{sources: [%A, %B], range: \"2:6\", limit: 3}", (int[]){2, 3, 100}, NULL, 3);
    FAILS(open_sets("{path: %A, range: \"3\"}", &d), CVY_E_CONFIG, "expected \"first:end\"");
    FAILS(open_sets("{path: %A, range: \"1:9\"}", &d), CVY_E_CONFIG, "samples 1 to 9 of a set of 4");
    FAILS(open_sets("{path: %A, range: \"2:2\"}", &d), CVY_E_CONFIG, "it is empty or goes past");
    FAILS(open_sets("{path: %A, range: \"x:2\"}", &d), CVY_E_CONFIG, "\"x\" is neither a number");
    FAILS(open_sets("{path: %A, range: \"0:120%\"}", &d), CVY_E_CONFIG, "between 0% and 100%");
    FAILS(open_sets("{path: %A, limit: 0}", &d), CVY_E_CONFIG, "at least 1");
}

/* A range and the rest of the set have every sample once, wherever the cut is. */
static void test_complement(void)
{
    for (int percent = 10; percent < 100; percent += 5) {
        cvy_dataset *head = NULL, *tail = NULL;
        char text[200];
        snprintf(text, sizeof text, "{format: synthetic, samples: 37, range: \"0:%d%%\"}", percent);
        OK(open_text(text, NULL, 0, &head));
        snprintf(text, sizeof text, "{format: synthetic, samples: 37, range: \"%d%%:\"}", percent);
        OK(open_text(text, NULL, 0, &tail));
        TRUE_THAT(cvy_dataset_describe(head)->nsamples + cvy_dataset_describe(tail)->nsamples == 37);
        cvy_dataset_destroy(&head);
        cvy_dataset_destroy(&tail);
    }
}

/* C has A's classes in another order, and one new class. */
static void test_classes(void)
{
    cvy_dataset *d = NULL;
    FAILS(open_sets("[%A, %C]", &d), CVY_E_CONFIG, "the class \"new\"");
    OK(open_sets("{sources: [%A, %C], classes: union}", &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nclasses == 11 && strcmp(info->class_name[10], "new") == 0);
    cvy_dataset_destroy(&d);
    /* C's samples have its labels 0, 1, 2: "b", "new", "c" of b new c d e f g h i j. */
    expect("{sources: [%A, %C], classes: union}", (int[]){0, 1, 2, 3, 200, 201, 202}, (int[]){0, 1, 2, 3, 1, 10, 2}, 7);
    put_set(in_scratch("C"), "j\ni\nh\ng\nf\ne\nd\nc\nb\na\n", 200, 0, 3);
    expect("[%A, %C]", (int[]){0, 1, 2, 3, 200, 201, 202}, (int[]){0, 1, 2, 3, 9, 8, 7}, 7);
}

static void test_fields(void)
{
    cvy_dataset *d = NULL;
    FAILS(open_text("[{format: synthetic, shape: [3, 8, 8]}, {format: synthetic, shape: [1, 8, 8]}]", NULL, 0, &d),
          CVY_E_CONFIG, "of 1x8x8 in synthetic");
    FAILS(open_text("[{format: synthetic}, {format: synthetic, targets: 2}]", NULL, 0, &d), CVY_E_CONFIG,
          "same fields");
    FAILS(open_text("{path: [a.npy, b.npy], format: npy}", NULL, 0, &d), CVY_E_CONFIG,
          "path is one file, folder or pattern; write several as a list of sources");
    FAILS(open_text("[]", NULL, 0, &d), CVY_E_CONFIG, "at least one");
    FAILS(open_text("[{format: synthetic}, {format: synthetc}]", NULL, 0, &d), CVY_E_CONFIG, "did you mean");
    FAILS(open_text("{sources: [{format: synthetic}], clases: union}", NULL, 0, &d), CVY_E_CONFIG, "clases");
}

static uint64_t hash_of(const char *source)
{
    cvy_dataset *d = NULL;
    OK(open_sets(source, &d));
    const uint64_t hash = cvy_dataset_hash(d);
    cvy_dataset_destroy(&d);
    return hash;
}

static void test_hash(void)
{
    const char *const sources[] = {"%A",
                                   "%B",
                                   "[%A, %B]",
                                   "[%B, %A]",
                                   "{path: %A, limit: 2}",
                                   "{path: %A, range: \"1:3\"}",
                                   "{path: %A, range: \"2:4\"}"};
    for (int i = 0; i < CVY_COUNT(sources); i++)
        for (int k = 0; k <= i; k++)
            TRUE_THAT((hash_of(sources[i]) == hash_of(sources[k])) == (i == k));
    TRUE_THAT(hash_of("{path: %A, limit: 4}") == hash_of("%A"));
}

/* One set with two augmentations. */
static void test_view(void)
{
    cvy_dataset *d = NULL, *view = NULL;
    static float x[PIXELS];
    int32_t label = -1;
    void *const field[] = {x, &label};
    OK(open_sets("[%A, %B]", &d));
    OK(cvy_dataset_view(d, NULL, 0, 7, &view));
    OK(cvy_dataset_read(view, 4, 0, field));
    TRUE_THAT(x[0] == 100.0f * (1.0f / 255.0f) && cvy_dataset_hash(view) == cvy_dataset_hash(d));
    cvy_dataset_destroy(&view);
    OK(cvy_dataset_read(d, 4, 0, field));
    TRUE_THAT(x[0] == 100.0f);
    cvy_dataset_destroy(&d);
}

int main(void)
{
    scratch_make();
    put_set(in_scratch("A"), "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", 0, 0, 4);
    put_set(in_scratch("B"), "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", 100, 5, 3);
    put_set(in_scratch("C"), "b\nnew\nc\nd\ne\nf\ng\nh\ni\nj\n", 200, 0, 3);
    test_order();
    test_ranges();
    test_complement();
    test_fields();
    test_hash();
    test_view();
    test_classes();
    scratch_remove();
    return 0;
}
