/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_cifar.c: the CIFAR reader on small synthetic files: both kinds, folders and single files, truncation,
 * labels out of range. */
#include <stdio.h>

#include "test_data_support.h"

enum { PIXELS = 3072 };

static uint8_t pixel(int file, int record, int i)
{
    return (uint8_t)(file * 50 + record * 7 + i);
}

static void put_records(const char *path, int file, int count, int labels)
{
    static uint8_t record[PIXELS + 2];
    FILE *f = fopen(path, "wb");
    TRUE_THAT(f);
    for (int r = 0; r < count; r++) {
        record[0] = (uint8_t)((file + r) % 10);
        record[labels - 1] = (uint8_t)((file + r) % 10);
        for (int i = 0; i < PIXELS; i++)
            record[labels + i] = pixel(file, r, i);
        TRUE_THAT(fwrite(record, 1, (size_t)(PIXELS + labels), f) == (size_t)(PIXELS + labels));
    }
    fclose(f);
}

static void test_folder(void)
{
    cvy_dataset *d = NULL;
    static float x[PIXELS];
    int32_t label = -1;
    void *const field[] = {x, &label};
    put_records(in_scratch("data_batch_1.bin"), 1, 3, 1);
    put_records(in_scratch("data_batch_2.bin"), 2, 4, 1);
    put_records(in_scratch("test_batch.bin"), 3, 2, 1);
    put_file(in_scratch("batches.meta.txt"), "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n", 21);
    OK(open_text(scratch_folder, NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 7 && info->nclasses == 10 && info->nfield == 2);
    TRUE_THAT(strcmp(info->format, "cifar") == 0 && strcmp(info->class_name[3], "d") == 0);
    TRUE_THAT(strcmp(cvy_shape_text(&info->field[0].shape), "3x32x32") == 0 && info->field[1].dtype == CVY_DTYPE_I32);
    OK(cvy_dataset_read(d, 5, 0, field));
    TRUE_THAT(label == 4);
    for (int i = 0; i < PIXELS; i++)
        TRUE_THAT(x[i] == (float)pixel(2, 2, i) * (1.0f / 255.0f));
    FAILS(cvy_dataset_read(d, 7, 0, field), CVY_E_ARGUMENT, "sample 7 is out of range");
    cvy_dataset_destroy(&d);
    char text[512];
    snprintf(text, sizeof text, "{path: \"%s\", part: test}", scratch_folder);
    OK(open_text(text, "[{scale: 1}]", 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 2);
    OK(cvy_dataset_read(d, 1, 0, field));
    TRUE_THAT(x[9] == (float)pixel(3, 1, 9));
    cvy_dataset_destroy(&d);
}

static void test_damage(void)
{
    cvy_dataset *d = NULL;
    static float x[PIXELS];
    int32_t label = -1;
    void *const field[] = {x, &label};
    static uint8_t bytes[2 * PIXELS + 2];
    memset(bytes, 3, sizeof bytes);
    bytes[PIXELS + 1] = 200;
    put_file(in_scratch("data_batch_9.bin"), bytes, sizeof bytes);
    OK(open_text(in_scratch("data_batch_9.bin"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_FORMAT,
          "data_batch_9.bin, record 1: label 200 is out of range, expected 0 .. 9");
    cvy_dataset *part = NULL;
    FAILS(cvy_dataset_split(d, 0.5, 1, 0, &part), CVY_E_FORMAT, "record 1: label 200");
    cvy_dataset_destroy(&d);
    put_file(in_scratch("data_batch_9.bin"), bytes, sizeof bytes - 1);
    FAILS(open_text(in_scratch("data_batch_9.bin"), NULL, 0, &d), CVY_E_FORMAT, "truncated in record 1");
    put_file(in_scratch("data_batch_9.bin"), bytes, 0);
    FAILS(open_text(in_scratch("data_batch_9.bin"), NULL, 0, &d), CVY_E_FORMAT, "is empty");
    FAILS(open_text(in_scratch("nowhere"), NULL, 0, &d), CVY_E_IO, "no such file or folder");
    FAILS(open_text("{path: x, format: ciffar}", NULL, 0, &d), CVY_E_CONFIG, "did you mean 'cifar'");
    FAILS(open_text("{format: cifar}", NULL, 0, &d), CVY_E_CONFIG, "needs a path");
    char text[512];
    snprintf(text, sizeof text, "{path: \"%s\", format: cifar, patr: test}", scratch_folder);
    FAILS(open_text(text, NULL, 0, &d), CVY_E_CONFIG, "part");
}

static void test_cifar100(void)
{
    cvy_dataset *d = NULL;
    static float x[PIXELS];
    int32_t label = -1;
    void *const field[] = {x, &label};
    OK(cvy_file_make_folder(in_scratch("c100")));
    put_records(in_scratch("c100/train.bin"), 4, 3, 2);
    OK(open_text(in_scratch("c100"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 100 && cvy_dataset_describe(d)->nsamples == 3);
    OK(cvy_dataset_read(d, 2, 0, field));
    TRUE_THAT(label == 6 && x[0] == (float)pixel(4, 2, 0) * (1.0f / 255.0f));
    cvy_dataset_destroy(&d);
}

int main(void)
{
    scratch_make();
    test_folder();
    test_damage();
    test_cifar100();
    scratch_remove();
    return 0;
}
