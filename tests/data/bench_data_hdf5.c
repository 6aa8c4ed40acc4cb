/*
 * bench_data_hdf5.c: makes HDF5 files of calorimeter showers and measures how fast they are read.
 *
 * bench_data_hdf5 make FOLDER SAMPLES FILES [FIRST]
 *     makes images [n, 16, 64, 64] f16 in gzip chunks of 64, targets [n, 3], weights [n] and quality [n];
 *     docs/guide/your-data.md uses them
 * bench_data_hdf5 read FOLDER THREADS SECONDS
 *     reads with the library in order, 64 rows at a time, as h5py does; then with the reader in windows of shuffled
 *     samples, on so many threads
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_clock.h"
#include "base/machine/base_machine.h"
#include "base/number/base_rng.h"
#include "data/load/data_order.h"
#include "test_data_support.h"

#include <math.h>
#include <pthread.h>

#if CVY_HAVE_HDF5
#include <hdf5.h>
#include <stdio.h>

enum { LAYERS = 16, SIDE = 64, CELLS = LAYERS * SIDE * SIDE, CHUNK = 64, REACH = 6 };

/* ---- showers ---- */

/* Rounds to the nearest half. All values here are 0 or normal numbers. */
static uint16_t half_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (bits < 113u << 23)
        return 0;
    return (uint16_t)((bits + 0xfffu + (bits >> 13 & 1u) - (112u << 23)) >> 13);
}

/* A shower in a calorimeter. The network is to find its energy and position. */
static void make_shower(int64_t number, uint16_t *cell, float *target)
{
    const cvy_rng rng = cvy_rng_make(1, "shower", 0, (uint64_t)number);
    uint64_t at = 3;
    target[0] = (float)(0.2 + 0.8 * cvy_rng_uniform(&rng, 0));
    target[1] = (float)(1.4 * cvy_rng_uniform(&rng, 1) - 0.7);
    target[2] = (float)(1.4 * cvy_rng_uniform(&rng, 2) - 0.7);
    const int row = (int)lrintf(32 + 28 * target[1]), column = (int)lrintf(32 + 28 * target[2]);
    memset(cell, 0, CELLS * sizeof *cell);
    for (int layer = 0; layer < LAYERS; layer++) {
        const double depth = (layer + 0.5) / 5, share = target[0] * depth * exp(1 - depth);
        const double width = 2 * (1 + 0.12 * layer) * (1 + 0.12 * layer);
        for (int r = -REACH; r <= REACH; r++)
            for (int c = -REACH; c <= REACH; c++) {
                if (row + r < 0 || row + r >= SIDE || column + c < 0 || column + c >= SIDE)
                    continue;
                const double energy = share * exp(-(r * r + c * c) / width) + 0.02 * cvy_rng_uniform(&rng, at++);
                cell[(layer * SIDE + row + r) * SIDE + column + c] = half_of((float)energy);
            }
    }
}

static hid_t half_type(void)
{
    const hid_t t = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(t, 15, 10, 5, 0, 10);
    H5Tset_size(t, 2);
    H5Tset_ebias(t, 15);
    return t;
}

static void put_numbers(hid_t file, const char *name, int64_t n, int64_t each, const float *value)
{
    const hsize_t dim[2] = {(hsize_t)n, (hsize_t)each};
    const hid_t space = H5Screate_simple(each > 1 ? 2 : 1, dim, NULL);
    const hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

static void make_file(const char *path, int64_t first, int64_t n)
{
    const hsize_t dim[4] = {(hsize_t)n, LAYERS, SIDE, SIDE},
                  chunk[4] = {(hsize_t)CVY_MIN(n, CHUNK), LAYERS, SIDE, SIDE};
    float *target = malloc((size_t)n * 3 * sizeof *target), *number = malloc((size_t)n * 2 * sizeof *number);
    uint16_t *cell = malloc((size_t)CHUNK * CELLS * sizeof *cell);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), type = half_type();
    const hid_t space = H5Screate_simple(4, dim, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    TRUE_THAT(file >= 0 && target && number && cell);
    H5Pset_chunk(list, 4, chunk);
    H5Pset_deflate(list, 1);
    const hid_t set = H5Dcreate2(file, "images", type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    for (int64_t at = 0; at < n; at += CHUNK) {
        const hsize_t start[4] = {(hsize_t)at}, count[4] = {(hsize_t)CVY_MIN(n - at, CHUNK), LAYERS, SIDE, SIDE};
        const hid_t memory = H5Screate_simple(4, count, NULL);
        for (int64_t i = 0; i < (int64_t)count[0]; i++) {
            const cvy_rng rng = cvy_rng_make(2, "shower", 0, (uint64_t)(first + at + i));
            make_shower(first + at + i, cell + i * CELLS, target + 3 * (at + i));
            number[at + i] = 0.5f + target[3 * (at + i)];
            number[n + at + i] = (float)cvy_rng_uniform(&rng, 0);
        }
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        TRUE_THAT(H5Dwrite(set, type, memory, space, H5P_DEFAULT, cell) >= 0);
        H5Sclose(memory);
    }
    H5Dclose(set);
    put_numbers(file, "targets", n, 3, target);
    put_numbers(file, "weights", n, 1, number);
    put_numbers(file, "quality", n, 1, number + n);
    H5Pclose(list);
    H5Sclose(space);
    H5Tclose(type);
    TRUE_THAT(H5Fclose(file) >= 0);
    free(target);
    free(number);
    free(cell);
}

static void make(const char *folder, int64_t samples, int64_t files, int64_t start)
{
    OK(cvy_file_make_folder(folder));
    for (int64_t k = 0; k < files; k++) {
        char path[4096];
        const int64_t first = samples / files * k + CVY_MIN(k, samples % files);
        snprintf(path, sizeof path, "%s/run%02lld.h5", folder, (long long)k);
        make_file(path, start + first, samples / files + (k < samples % files));
    }
}

/* ---- reading ---- */

static double in_order(const char *folder, double seconds)
{
    cvy_pool *pool = NULL;
    char **name = NULL;
    int64_t n = 0, done = 0;
    void *cell = malloc((size_t)CHUNK * CELLS * 2);
    const double began = cvy_clock_s();
    OK(cvy_pool_create(&pool));
    OK(cvy_file_list(pool, folder, &name, &n));
    for (int64_t k = 0; k < n; k++) {
        const char *path = NULL;
        OK(cvy_data_path_join(pool, folder, name[k], &path));
        const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, "images", H5P_DEFAULT);
        const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
        hsize_t dim[4];
        H5Sget_simple_extent_dims(space, dim, NULL);
        for (hsize_t at = 0; at < dim[0] && cvy_clock_s() - began < seconds; at += CHUNK) {
            const hsize_t start[4] = {at}, count[4] = {CVY_MIN(dim[0] - at, CHUNK), LAYERS, SIDE, SIDE};
            const hid_t memory = H5Screate_simple(4, count, NULL);
            H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
            TRUE_THAT(H5Dread(set, type, memory, space, H5P_DEFAULT, cell) >= 0);
            H5Sclose(memory);
            done += (int64_t)count[0];
        }
        H5Tclose(type);
        H5Sclose(space);
        H5Dclose(set);
        H5Fclose(file);
    }
    cvy_pool_destroy(&pool);
    free(cell);
    return (double)done / (cvy_clock_s() - began);
}

struct run {
    cvy_dataset *d;
    cvy_epoch_order *order;
    pthread_mutex_t lock;
    int64_t next;
    double until;
};

static void *read_windows(void *user)
{
    enum { BATCH = 256 };
    struct run *r = user;
    float y[8], w, *x = malloc(CELLS * sizeof *x);
    void *const field[] = {x, y, &w};
    const int64_t n = cvy_dataset_describe(r->d)->nsamples;
    int64_t number = 0;
    while (cvy_clock_s() < r->until) {
        pthread_mutex_lock(&r->lock);
        const int64_t place = r->next++, first = place / BATCH * BATCH;
        pthread_mutex_unlock(&r->lock);
        if (place >= n)
            break;
        cvy_epoch_order_get(r->order, 0, first, CVY_MIN(BATCH, n - first), place - first, 1, &number, NULL);
        OK(cvy_dataset_read(r->d, number, 0, field));
    }
    free(x);
    return NULL;
}

static double in_windows(const char *folder, int threads, double seconds)
{
    struct run r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread[64];
    char text[4200];
    snprintf(text, sizeof text, "{path: \"%s\", format: hdf5}", folder);
    OK(open_text(text, NULL, 0, &r.d));
    OK(cvy_epoch_order_create(r.d, &(cvy_order_opts){.shuffle = CVY_SHUFFLE_WINDOW, .seed = 1}, &r.order));
    const double began = cvy_clock_s();
    r.until = began + seconds;
    for (int i = 0; i < threads; i++)
        TRUE_THAT(pthread_create(&thread[i], NULL, read_windows, &r) == 0);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    const double speed = (double)r.next / (cvy_clock_s() - began);
    printf("%lld blocks\n", (long long)cvy_dataset_reader_info(r.d)->blocks.count);
    cvy_epoch_order_destroy(&r.order);
    cvy_dataset_destroy(&r.d);
    return speed;
}

int main(int argc, char **argv)
{
    if ((argc == 5 || argc == 6) && strcmp(argv[1], "make") == 0) {
        make(argv[2], atoll(argv[3]), atoll(argv[4]), argc == 6 ? atoll(argv[5]) : 0);
    } else if (argc == 5 && strcmp(argv[1], "read") == 0) {
        const double seconds = atof(argv[4]), library = in_order(argv[2], seconds);
        cvy_mem_peak_reset();
        const double ours = in_windows(argv[2], (int)CVY_MIN(CVY_MAX(atoll(argv[3]), 1), 64), seconds);
        printf("the library in order %.0f samples/s, shuffled in windows %.0f samples/s: %.2f; peak %.0f MB\n", library,
               ours, ours / library, (double)cvy_mem_peak() / 1e6);
    } else {
        fprintf(stderr, "usage: %s make FOLDER SAMPLES FILES [FIRST] | read FOLDER THREADS SECONDS\n", argv[0]);
        return 2;
    }
    return 0;
}

#else

int main(void)
{
    fprintf(stderr, "HDF5 is not part of this build\n");
    return 77;
}

#endif
