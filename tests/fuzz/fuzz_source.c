/*
 * fuzz_source.c: fuzzes files of the data format FORMAT: they are opened, and samples are read in every way that
 * training and `convoy convert` do. Whatever the files hold, the result must be an answer or a fault with a message;
 * the sanitizers check the rest.
 *
 * hdf5 is run by hand only, because libhdf5 reads the headers. In version 1.10.8 a few wrong bytes make it ask for
 * gigabytes (H5T_copy called by H5Oopen), read past a message of an object header (H5D_open), or walk chunk by chunk
 * over sets that are huge according to their header. No check of ours can come before that; users are protected by
 * `sandbox`, which reads in place here, because there is no reader process beside a fuzz target.
 *
 * fits is run by hand, too, because CFITSIO reads the headers and unpacks images.
 *
 * If a format has several files, one input holds them all, see fuzz_files.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "fuzz_files.h"

#include "data/data_reader.h"

enum { SAMPLES = 64, PIXELS_MAX = 1 << 20 /* larger ones are only slow */ };

static const struct format {
    const char *name, *path; /* path: in the folder; "" is the folder itself */
    const char *file[FUZZ_FILES + 1];
} formats[] = {
    {"cifar", "data_batch_1.bin", {"data_batch_1.bin", "batches.meta.txt"}},
    {"idx", "", {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"}},
    {"npy", "", {"x.npy", "label.npy", "y.npy", "weight.npy"}},
    {"npz", "x.npz", {"x.npz"}}, /* an archive of the format npy */
    {"csv", "table.csv", {"table.csv"}},
    {"list", "list.txt", {"list.txt", "a.jpg", "b.png", "labels.txt"}},
    {"tfrecord", "x.tfrecord", {"x.tfrecord"}},
    {"lmdb", "data.mdb", {"data.mdb"}},
    {"hdf5", "x.h5", {"x.h5"}},
    {"fits", "x.fits", {"x.fits"}},
    {"pack", "", {"pack.json", "index.bin", "part-00000.cvy"}},
};
static const struct format *format;
static char source_text[512];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_make_folder();
    for (format = formats; strcmp(format->name, FORMAT) != 0; format++)
        ;
    snprintf(source_text, sizeof source_text, "{path: %s/%s, format: %s}", fuzz_folder, format->path,
             strcmp(FORMAT, "npz") == 0 ? "npy" : FORMAT);
    return 0;
}

static void expect_message(cvy_status status)
{
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
}

struct buffers {
    cvy_raw raw;
    cvy_bytes room, rows;
    void *field[CVY_FIELD_MAX];
    int whole; /* the fields have room for a sample */
};

static int make_fields(const cvy_dataset_info *info, struct buffers *b)
{
    for (int i = 0; i < info->nfield; i++) {
        const int64_t elems = cvy_shape_elems(&info->field[i].shape);
        if (elems > PIXELS_MAX ||
            cvy_mem_alloc((size_t)elems * cvy_dtype_bytes(info->field[i].dtype), &b->field[i]) != CVY_OK)
            return 0;
    }
    return 1;
}

static void read_sample(cvy_dataset *d, int64_t number, struct buffers *b)
{
    const cvy_reader_info *info = cvy_dataset_reader_info(d);
    int64_t C = 0, H = 0, W = 0;
    int32_t label = 0;
    cvy_picture p;
    cvy_status status = cvy_dataset_read_raw(d, number, &b->raw);
    expect_message(status);
    int small = status == CVY_OK;
    if (status == CVY_OK && b->raw.coding != CVY_CODING_PLAIN) {
        status = cvy_picture_read_header(b->raw.coding, b->raw.x.data, b->raw.x.bytes, &C, &H, &W);
        small = status == CVY_OK && H * W <= PIXELS_MAX;
    }
    if (small)
        status = cvy_raw_picture(&b->raw, info->shape.ndim == 3 ? info->shape.dim[0] : 1, &b->room, &b->rows, &p);
    expect_message(status);
    if (small && b->whole)
        expect_message(cvy_dataset_read(d, number, 0, b->field));
    if (info->has_label)
        expect_message(cvy_dataset_label(d, number, &label));
}

static void read_all(cvy_dataset *d)
{
    struct buffers b = {0};
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const int64_t step = CVY_MAX(1, info->nsamples / SAMPLES);
    b.whole = make_fields(info, &b);
    cvy_dataset_hash(d);
    for (int64_t i = 0; i < info->nsamples; i += step)
        read_sample(d, i, &b);
    cvy_raw_free(&b.raw);
    cvy_mem_free(&b.room.data);
    cvy_mem_free(&b.rows.data);
    for (int i = 0; i < info->nfield; i++)
        cvy_mem_free(&b.field[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_pool *pool = NULL;
    cvy_tree *source = NULL;
    cvy_dataset *d = NULL;
    fuzz_put_files(format->file, data, size);
    cvy_status status = cvy_pool_create(&pool);
    if (status == CVY_OK)
        status = cvy_tree_parse_text(pool, "source", source_text, strlen(source_text), &source);
    if (status == CVY_OK)
        status = cvy_dataset_open(source, NULL, 0, 0, &d);
    expect_message(status);
    if (status == CVY_OK)
        read_all(d);
    cvy_dataset_destroy(&d);
    cvy_pool_destroy(&pool);
    return 0;
}
