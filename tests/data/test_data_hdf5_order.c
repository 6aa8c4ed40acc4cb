/* SPDX-License-Identifier: BSD-3-Clause */
/* test_data_hdf5_order.c: window shuffles of HDF5 files, whose blocks are the chunks of each file.
 *
 * It covers files that end within a chunk, different chunk sizes, a condition or range that takes some of the samples,
 * and an additional source without chunks. An epoch has each sample once and is the same for any number of ranks, and
 * no block is spread over two windows. */
#include <stdio.h>

#include "test_data_hdf5.h"

#include "data/load/data_order.h"

#if CVY_HAVE_HDF5

enum { SIDE = 32, PIXELS = SIDE * SIDE, WINDOW = 16 }; /* a row has 4 KB, sixteen are as large as the smallest block */

/* Writes x, whose pixels all hold the row's number counted from `first`, and met: 0, 1, 2, 0, ... If chunk is 0, the
 * data sets are contiguous. */
static void put_rows(const char *name, int64_t first, int64_t rows, int64_t chunk)
{
    double *x = malloc((size_t)(rows * PIXELS) * sizeof *x), *met = malloc((size_t)rows * sizeof *met);
    TRUE_THAT(x && met);
    for (int64_t i = 0; i < rows * PIXELS; i++)
        x[i] = (double)(first + i / PIXELS);
    for (int64_t i = 0; i < rows; i++)
        met[i] = (double)((first + i) % 3);
    const hid_t file = new_file(name);
    add_set(file, "x",
            (struct layout){.type = H5T_IEEE_F32LE,
                            .ndim = 4,
                            .dim = {(hsize_t)rows, 1, SIDE, SIDE},
                            .chunk = {(hsize_t)chunk, 1, SIDE, SIDE},
                            .level = 1},
            x);
    add_set(file, "met", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {(hsize_t)rows}}, met);
    H5Fclose(file);
    free(x);
    free(met);
}

static const int64_t file_rows[] = {500, 333, 250}, file_chunk[] = {16, 16, 24};
enum { ROWS = 500 + 333 + 250, PLAIN = 300, MOST = ROWS + PLAIN };

static void make_files(void)
{
    int64_t first = 0;
    OK(cvy_file_make_folder(in_scratch("set")));
    for (int f = 0; f < 3; f++) {
        char name[32];
        snprintf(name, sizeof name, "set/%d.h5", f);
        put_rows(name, first, file_rows[f], file_chunk[f]);
        first += file_rows[f];
    }
    put_rows("plain.h5", ROWS, PLAIN, 0);
}

/* Returns the chunk of a row, counted over all files. */
static int64_t chunk_of(int64_t row)
{
    int64_t first = 0, chunks = 0;
    for (int f = 0; f < 3; f++) {
        if (row < first + file_rows[f])
            return chunks + (row - first) / file_chunk[f];
        first += file_rows[f];
        chunks += (file_rows[f] + file_chunk[f] - 1) / file_chunk[f];
    }
    return chunks + (row - first) / CVY_BLOCK_DEFAULT; /* for the file without chunks */
}

/* Finds the row of each sample from its pixels. */
static void find_rows(cvy_dataset *d, int64_t *row)
{
    float x[PIXELS];
    for (int64_t i = 0; i < cvy_dataset_describe(d)->nsamples; i++) {
        read_x(d, i, x);
        row[i] = (int64_t)x[PIXELS - 1];
    }
}

/* A new block begins exactly where the chunk of the row changes. */
static void check_blocks(cvy_dataset *d, const int64_t *row)
{
    cvy_blocks b;
    int64_t k = 0;
    OK(cvy_dataset_blocks(d, &b));
    for (int64_t i = 0; i < cvy_dataset_describe(d)->nsamples; i++)
        if (i == 0 || chunk_of(row[i]) != chunk_of(row[i - 1]))
            TRUE_THAT(k < b.count && b.first[k++] == i);
    TRUE_THAT(k == b.count);
    cvy_mem_free(&b.first);
}

static void get_epoch(cvy_epoch_order *o, uint64_t epoch, int64_t n, int64_t batch, int nranks, int64_t *out)
{
    for (int64_t from = 0; from < n; from += batch) {
        const int64_t count = CVY_MIN(batch, n - from);
        for (int r = 0; r < nranks; r++) {
            const int64_t a = count * r / nranks, b = count * (r + 1) / nranks;
            cvy_epoch_order_get(o, epoch, from, count, a, b - a, out + from + a, NULL);
        }
    }
}

/* Checks that the epoch is made of windows, each with all samples of at most 16 blocks. Returns the number of
 * windows. */
static int64_t count_windows(cvy_dataset *d, const int64_t *number)
{
    const int64_t n = cvy_dataset_describe(d)->nsamples;
    static int64_t block_of[MOST], length[MOST];
    static char seen[MOST];
    cvy_blocks b;
    int64_t windows = 0, blocks = 0, sum = 0;
    OK(cvy_dataset_blocks(d, &b));
    memset(seen, 0, sizeof seen);
    memset(length, 0, sizeof length);
    for (int64_t i = 0, k = -1; i < n; i++) {
        k += k + 1 < b.count && i == b.first[k + 1];
        block_of[i] = k;
        length[k]++;
    }
    for (int64_t place = 0; place < n; place++) {
        const int64_t k = block_of[number[place]];
        blocks += !seen[k];
        sum += seen[k] ? 0 : length[k];
        seen[k] = 1;
        TRUE_THAT(blocks <= WINDOW);
        if (sum == place + 1) { /* all blocks that were begun are complete */
            windows++;
            blocks = 0;
        }
    }
    cvy_mem_free(&b.first);
    return windows;
}

static void check_order(cvy_dataset *d)
{
    const int64_t n = cvy_dataset_describe(d)->nsamples;
    static int64_t one[MOST], many[MOST], before[MOST];
    cvy_epoch_order *o = NULL;
    cvy_blocks b;
    OK(cvy_dataset_blocks(d, &b));
    OK(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_WINDOW, .seed = 5}, &o));
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        char seen[MOST] = {0};
        get_epoch(o, epoch, n, 50, 1, one);
        for (int64_t i = 0; i < n; i++) {
            TRUE_THAT(one[i] >= 0 && one[i] < n && !seen[one[i]]);
            seen[one[i]] = 1;
        }
        TRUE_THAT(count_windows(d, one) >= (b.count + WINDOW - 1) / WINDOW);
        for (int nranks = 2; nranks <= 5; nranks++) {
            get_epoch(o, epoch, n, 50, nranks, many);
            TRUE_THAT(memcmp(one, many, (size_t)n * sizeof *one) == 0);
        }
        TRUE_THAT(epoch == 0 || memcmp(one, before, (size_t)n * sizeof *one) != 0);
        memcpy(before, one, sizeof before);
    }
    get_epoch(o, 2, n, 50, 3, many); /* an epoch that was left and is needed again, as when a batch lies in two */
    get_epoch(o, 0, n, 50, 3, one);
    get_epoch(o, 2, n, 50, 3, one);
    TRUE_THAT(memcmp(one, many, (size_t)n * sizeof *one) == 0);
    cvy_epoch_order_destroy(&o);
    cvy_mem_free(&b.first);
}

static void check_source(const char *source, int64_t nsamples)
{
    static int64_t row[MOST];
    cvy_dataset *d = NULL, *part = NULL;
    OK(open_text(source, NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == nsamples);
    find_rows(d, row);
    check_blocks(d, row);
    check_order(d);
    OK(cvy_dataset_split(d, 0.25, 3, 0, &part));
    find_rows(part, row);
    check_blocks(part, row);
    check_order(part);
    cvy_dataset_destroy(&part);
    cvy_dataset_destroy(&d);
}

static void test_sources(void)
{
    char text[2048];
    const char *set = in_scratch("set"), *plain = in_scratch("plain.h5");
    check_source(set, ROWS);
    snprintf(text, sizeof text, "{path: %s, format: hdf5, where: met > 1}", set);
    check_source(text, ROWS / 3);
    snprintf(text, sizeof text, "{path: %s, format: hdf5, range: \"21:900\"}", set);
    check_source(text, 879);
    snprintf(text, sizeof text, "{path: %s, format: hdf5, where: met < 2, range: \"10%%:\", limit: 600}", set);
    check_source(text, 600);
    snprintf(text, sizeof text, "[%s, %s]", set, plain);
    check_source(text, MOST);
}

/* data.window: several blocks of the format make one larger block, which stays whole. */
static void test_larger_blocks(void)
{
    static int64_t number[ROWS], low[ROWS], high[ROWS];
    cvy_dataset *d = NULL;
    cvy_epoch_order *o = NULL;
    int64_t far = 0;
    OK(open_text(in_scratch("set"), NULL, 0, &d));
    OK(cvy_epoch_order_create(d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_WINDOW, .window = 40, .seed = 1}, &o));
    get_epoch(o, 0, ROWS, 32, 1, number);
    for (int64_t i = 0; i < ROWS; i++)
        low[i] = ROWS, high[i] = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        const int64_t k = chunk_of(number[i]);
        low[k] = CVY_MIN(low[k], i);
        high[k] = CVY_MAX(high[k], i);
    }
    for (int64_t k = 0; k < chunk_of(ROWS); k++)
        far = CVY_MAX(far, high[k] - low[k] + 1);
    TRUE_THAT(far > WINDOW * 24 && far <= WINDOW * (40 + 23)); /* more than with windows of single chunks */
    cvy_epoch_order_destroy(&o);
    cvy_dataset_destroy(&d);
}

int main(void)
{
    scratch_make();
    make_files();
    test_sources();
    test_larger_blocks();
    scratch_remove();
    return 0;
}

#else

int main(void)
{
    return 77; /* this build has no HDF5 */
}

#endif
