/*
 * bench_data_sandbox.c: makes the sets of scripts/compare_sandbox.sh.
 *
 * bench_data_sandbox FOLDER SAMPLES
 *     makes plain.h5 (contiguous rows), gzip.h5 (compressed chunks of 16 samples) and checked.h5 (chunks of 16 samples
 *     with a checksum, which only libhdf5 reads): x [n, 3, 64, 64] f32 and label [n]
 */
#include "test_data_support.h"

#if CVY_HAVE_HDF5
#include <hdf5.h>

enum { ELEMS = 3 * 64 * 64, CHUNK = 16 };

static void make(const char *folder, const char *name, int64_t n, int chunked, int gzip)
{
    char path[512];
    float *row = malloc(CHUNK * ELEMS * sizeof *row);
    int *label = malloc((size_t)n * sizeof *label);
    TRUE_THAT(row && label);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), list = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t dim[4] = {(hsize_t)n, 3, 64, 64}, chunk[4] = {CHUNK, 3, 64, 64};
    if (chunked)
        H5Pset_chunk(list, 4, chunk);
    if (gzip) {
        H5Pset_shuffle(list);
        H5Pset_deflate(list, 1);
    } else if (chunked) {
        H5Pset_fletcher32(list);
    }
    const hid_t space = H5Screate_simple(4, dim, NULL), memory = H5Screate_simple(4, chunk, NULL);
    const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    TRUE_THAT(set >= 0);
    for (int64_t first = 0; first + CHUNK <= n; first += CHUNK) {
        const hsize_t start[4] = {(hsize_t)first};
        for (int64_t i = 0; i < (int64_t)CHUNK * ELEMS; i++)
            row[i] = (float)((first * 31 + i * i % 1009 + i / 7) % 4096) / 64;
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, chunk, NULL);
        TRUE_THAT(H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, row) >= 0);
    }
    for (int64_t i = 0; i < n; i++)
        label[i] = (int)(i % 10);
    const hid_t line = H5Screate_simple(1, dim, NULL);
    const hid_t labels = H5Dcreate2(file, "label", H5T_STD_I32LE, line, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(H5Dwrite(labels, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, label) >= 0);
    H5Dclose(labels);
    H5Dclose(set);
    H5Sclose(line);
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(list);
    TRUE_THAT(H5Fclose(file) >= 0);
    free(row);
    free(label);
}

int main(int argc, char **argv)
{
    const int64_t n = argc == 3 ? atoll(argv[2]) / CHUNK * CHUNK : 0;
    if (n <= 0) {
        fprintf(stderr, "usage: %s FOLDER SAMPLES\n", argv[0]);
        return 2;
    }
    make(argv[1], "plain.h5", n, 0, 0);
    make(argv[1], "gzip.h5", n, 1, 1);
    make(argv[1], "checked.h5", n, 1, 0);
    return 0;
}

#else

int main(void)
{
    fprintf(stderr, "this build has no HDF5\n");
    return 2;
}

#endif
