/* SPDX-License-Identifier: BSD-3-Clause */
/* test_data_hdf5_write.c: the HDF5 writer: what it wrote is read back, plain and encoded, in pieces; a writer that is
 * stopped leaves nothing. */
#include <stdio.h>

#include "test_data_support.h"

#include "data/data_writer.h"

#if CVY_HAVE_HDF5

static void write_pieces(const char *folder, const cvy_reader_info *info, const char *const *names, int64_t compress,
                         cvy_raw *raw, int64_t n, int64_t npieces)
{
    const cvy_writer_def *def = NULL;
    cvy_pool *pool = NULL;
    void *state = NULL;
    int64_t samples = 0, bytes = 0;
    OK(cvy_writer_by_name("hdf5", &def));
    OK(cvy_pool_create(&pool));
    OK(cvy_file_make_folder(folder));
    const cvy_writer_args args = {
        .pool = pool, .path = folder, .options = &compress, .npieces = npieces, .info = info, .class_name = names};
    OK(def->open(&args, &state));
    for (int64_t p = 0; p < npieces; p++) {
        const int64_t first = p * n / npieces, end = (p + 1) * n / npieces;
        TRUE_THAT(!def->has_piece(state, p));
        OK(def->begin_piece(state, p, end - first + 1)); /* one sample is left out */
        TRUE_THAT(!def->has_piece(state, p));
        for (int64_t i = first; i < end; i++)
            OK(def->write(state, i, &raw[i]));
        OK(def->end_piece(state));
        TRUE_THAT(def->has_piece(state, p));
    }
    OK(def->finish(state, &samples, &bytes));
    TRUE_THAT(samples == n && bytes > 0);
    def->close(state);
    cvy_pool_destroy(&pool);
}

static void fill(cvy_raw *raw, int64_t i, cvy_dtype dtype, cvy_shape shape)
{
    const int64_t elems = cvy_shape_elems(&shape);
    *raw = (cvy_raw){.dtype = dtype, .shape = shape, .label = (int32_t)(i % 2), .weight = 0.5f * (float)i};
    OK(cvy_bytes_need(&raw->x, (size_t)elems * cvy_dtype_bytes(dtype)));
    OK(cvy_bytes_need(&raw->y, 3 * sizeof(float)));
    for (int64_t e = 0; e < elems; e++) {
        if (dtype == CVY_DTYPE_U8)
            ((uint8_t *)raw->x.data)[e] = (uint8_t)(i * 31 + e);
        else
            ((float *)raw->x.data)[e] = (float)(i * 1000 + e) / 8;
    }
    for (int e = 0; e < 3; e++)
        ((float *)raw->y.data)[e] = (float)(10 * i + e);
}

static void check_same(cvy_dataset *d, const cvy_raw *raw, int64_t n)
{
    cvy_raw got = {0};
    for (int64_t i = n - 1; i >= 0; i--) {
        OK(cvy_dataset_read_raw(d, i, &got));
        TRUE_THAT(got.coding == raw[i].coding && got.x.bytes == raw[i].x.bytes &&
                  memcmp(got.x.data, raw[i].x.data, got.x.bytes) == 0);
        TRUE_THAT(got.label == raw[i].label && got.weight == raw[i].weight &&
                  memcmp(got.y.data, raw[i].y.data, 12) == 0);
        if (got.coding == CVY_CODING_PLAIN)
            TRUE_THAT(got.dtype == raw[i].dtype && cvy_shape_equal(&got.shape, &raw[i].shape));
    }
    cvy_raw_free(&got);
}

static void test_writer(void)
{
    enum { M = 11 };
    static const char *const names[] = {"cat", "dog"};
    cvy_raw raw[M];
    cvy_dataset *d = NULL;
    for (int turn = 0; turn < 3; turn++) {
        const cvy_dtype dtype = turn == 1 ? CVY_DTYPE_F32 : CVY_DTYPE_U8;
        const cvy_shape shape = {3, {3, 70, 80}};
        const cvy_reader_info info = {.nsamples = M,
                                      .dtype = dtype,
                                      .shape = shape,
                                      .varying = turn == 2,
                                      .has_label = 1,
                                      .has_y = 1,
                                      .has_weight = 1,
                                      .y_shape = {1, {3}},
                                      .nclasses = 2};
        char name[32];
        snprintf(name, sizeof name, "written%d", turn);
        for (int64_t i = 0; i < M; i++) {
            const cvy_shape own = {3, {3, 5 + i, 7}};
            fill(&raw[i], i, dtype, turn == 2 ? own : shape);
            if (turn == 2 && i % 2 == 0) { /* the beginning of a JPEG is enough to be copied as one */
                raw[i].coding = CVY_CODING_JPEG;
                memcpy(raw[i].x.data, "\xff\xd8\xff\xe0", 4);
            }
        }
        write_pieces(in_scratch(name), &info, names, turn, raw, M, 3);
        OK(open_text(in_scratch(name), NULL, 0, &d));
        const cvy_dataset_info *got = cvy_dataset_describe(d);
        TRUE_THAT(got->nsamples == M && got->nclasses == 2 && strcmp(got->class_name[1], "dog") == 0 &&
                  got->nfield == 4);
        check_same(d, raw, M);
        cvy_dataset_destroy(&d);
        for (int i = 0; i < M; i++)
            cvy_raw_free(&raw[i]);
    }
    TRUE_THAT(unlink(in_scratch("written0/convoy-00001-of-00003.h5")) == 0);
    FAILS(open_text(in_scratch("written0"), NULL, 0, &d), CVY_E_FORMAT, "holds 2 of 3 pieces");
}

/* A writer that is closed in the middle of a piece leaves no file. */
static void test_writer_stops(void)
{
    const cvy_writer_def *def = NULL;
    cvy_pool *pool = NULL;
    void *state = NULL;
    cvy_raw raw, other;
    char **name = NULL;
    int64_t n = -1, compress = 0;
    const cvy_reader_info info = {.nsamples = 4, .shape = {1, {5}}};
    OK(cvy_writer_by_name("hdf5", &def));
    OK(cvy_pool_create(&pool));
    OK(cvy_file_make_folder(in_scratch("stopped")));
    fill(&raw, 0, CVY_DTYPE_F32, (cvy_shape){1, {5}});
    fill(&other, 1, CVY_DTYPE_F32, (cvy_shape){1, {6}});
    const cvy_writer_args args = {
        .pool = pool, .path = in_scratch("stopped"), .options = &compress, .npieces = 1, .info = &info};
    OK(def->open(&args, &state));
    OK(def->begin_piece(state, 0, 4));
    OK(def->write(state, 0, &raw));
    FAILS(def->write(state, 1, &other), CVY_E_UNSUPPORTED, "sample 1 is f32 of 6, expected f32 of 5");
    def->close(state);
    OK(cvy_file_list(pool, in_scratch("stopped"), &name, &n));
    TRUE_THAT(n == 0);
    cvy_raw_free(&raw);
    cvy_raw_free(&other);
    cvy_pool_destroy(&pool);
}

int main(void)
{
    scratch_make();
    test_writer();
    test_writer_stops();
    scratch_remove();
    return 0;
}

#else

int main(void)
{
    return 77; /* this build has no HDF5 */
}

#endif
