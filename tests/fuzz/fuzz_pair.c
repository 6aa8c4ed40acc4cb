/*
 * fuzz_pair.c: fuzzes two data sets that meet: the first is the training data, and the second is opened like them. If
 * the second agrees, its samples must fit into buffers of the sizes of the first, with labels among its classes.
 *
 * The first two bytes choose the formats, and the rest are the files of both, see fuzz_files.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "fuzz_files.h"

#include "data/data_reader.h"

enum { SAMPLES = 16, ELEMS_MAX = 1 << 18 /* larger ones are only slow */, FILES = 2 };

static const struct format {
    const char *name, *path; /* path: in the folder; "" is the folder itself */
    const char *file[FILES]; /* NULL: none */
} formats[] = {
    {"csv", "table.csv", {"table.csv"}},
    {"npy", "", {"x.npy", "label.npy"}},
    {"npy", "", {"x.npy", "y.npy"}},
    {"npy", "", {"x.npy", "weight.npy"}},
    {"idx", "", {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"}},
    {"list", "list.txt", {"list.txt", "a.png"}},
    {"cifar", "data_batch_1.bin", {"data_batch_1.bin", "batches.meta.txt"}},
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_make_folder();
    return 0;
}

/* Makes the folder of a set anew and adds the paths of its files to a list. */
static int add_files(const struct format *f, char set, char path[][64], const char **file, int n)
{
    char folder[300];
    snprintf(folder, sizeof folder, "%s/%c", fuzz_folder, set);
    cvy_file_remove_tree(folder);
    if (cvy_file_make_folder(folder) != CVY_OK)
        abort();
    for (int i = 0; i < FILES && f->file[i]; i++, n++) {
        snprintf(path[n], sizeof path[n], "%c/%s", set, f->file[i]);
        file[n] = path[n];
    }
    return n;
}

static cvy_status open_set(cvy_pool *pool, const struct format *f, char set, const cvy_dataset *train,
                           cvy_dataset **out)
{
    char text[512];
    cvy_tree *source = NULL;
    snprintf(text, sizeof text, "{path: %s/%c/%s, format: %s}", fuzz_folder, set, f->path, f->name);
    CVY_TRY(cvy_tree_parse_text(pool, "source", text, strlen(text), &source));
    if (!train)
        return cvy_dataset_open(source, NULL, 0, 0, out);
    const cvy_data_form like = cvy_dataset_form(train);
    return cvy_dataset_open_like(source, NULL, 0, 1, &like, out);
}

/* Reads samples of d into buffers of the sizes that the training has; a weight may be missing there. */
static void read_all(const cvy_dataset *train, cvy_dataset *d)
{
    const cvy_dataset_info *like = cvy_dataset_describe(train), *info = cvy_dataset_describe(d);
    const int64_t n = CVY_MIN(info->nsamples, SAMPLES);
    void *field[CVY_FIELD_MAX] = {0};
    int fits = 1;
    for (int f = 0; f < info->nfield; f++) {
        const cvy_field *from = f < like->nfield ? &like->field[f] : &info->field[f];
        const int64_t elems = cvy_shape_elems(&from->shape);
        fits = fits && elems <= ELEMS_MAX;
        field[f] = fits ? malloc((size_t)elems * cvy_dtype_bytes(from->dtype)) : NULL;
    }
    for (int64_t i = 0; fits && i < n; i++) {
        const cvy_status status = cvy_dataset_read(d, i, 0, field);
        if (status < CVY_OK && !cvy_error_text()[0])
            abort();
        for (int f = 0; status == CVY_OK && f < info->nfield; f++)
            if (strcmp(info->field[f].name, "label") == 0 && *(int32_t *)field[f] >= like->nclasses)
                abort();
    }
    for (int f = 0; f < info->nfield; f++)
        free(field[f]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[2 * FILES][64];
    const char *file[2 * FILES + 1] = {NULL};
    cvy_pool *pool = NULL;
    cvy_dataset *train = NULL, *d = NULL;
    if (size < 2)
        return 0;
    const struct format *a = &formats[data[0] % CVY_COUNT(formats)], *b = &formats[data[1] % CVY_COUNT(formats)];
    add_files(b, 'b', path, file, add_files(a, 'a', path, file, 0));
    fuzz_put_files(file, data + 2, size - 2);
    cvy_status status = cvy_pool_create(&pool);
    if (status == CVY_OK)
        status = open_set(pool, a, 'a', NULL, &train);
    if (status == CVY_OK)
        status = open_set(pool, b, 'b', train, &d);
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
    if (status == CVY_OK)
        read_all(train, d);
    cvy_dataset_destroy(&d);
    cvy_dataset_destroy(&train);
    cvy_pool_destroy(&pool);
    return 0;
}
