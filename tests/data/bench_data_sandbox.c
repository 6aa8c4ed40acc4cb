/*
 * bench_data_sandbox.c: compares reading HDF5 files by libhdf5 in a process of its own (sandbox: true) with reading in
 * place.
 *
 * bench_data_sandbox FOLDER SAMPLES ROUNDS
 *     makes plain.h5 (contiguous rows), gzip.h5 (compressed chunks of 16 samples), checked.h5 (chunks of 16 samples
 *     with a checksum) and lists.h5 (a list of 8 kB for each sample, as encoded pictures are
 *     kept); reads all samples in order by one thread, in turns in both modes; prints the medians of the rounds, and
 *     the ratio of the modes in each round: median, least and largest
 *
 * A number is the time for one sample after the files are open: by the clock, and of the processor in both processes.
 * The latter still tells something if other programs run. CONVOY_HDF5_READER names the reader process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_support.h"

#include <dirent.h>
#include <time.h>

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

static void make_lists(const char *folder, int64_t n)
{
    enum { BYTES = 8192 };
    char path[512];
    unsigned char bytes[BYTES] = {0xff, 0xd8, 0xff};
    const int64_t shape[3] = {3, 64, 64};
    const hsize_t rows = (hsize_t)n, three = 3;
    snprintf(path, sizeof path, "%s/lists.h5", folder);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), type = H5Tvlen_create(H5T_STD_U8LE);
    const hid_t space = H5Screate_simple(1, &rows, NULL), axes = H5Screate_simple(1, &three, NULL);
    const hid_t set = H5Dcreate2(file, "encoded", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t at = H5Acreate2(set, "shape", H5T_STD_I64LE, axes, H5P_DEFAULT, H5P_DEFAULT);
    hvl_t *list = malloc((size_t)n * sizeof *list);
    TRUE_THAT(list && H5Awrite(at, H5T_NATIVE_INT64, shape) >= 0);
    for (int64_t i = 0; i < n; i++)
        list[i] = (hvl_t){BYTES, bytes};
    TRUE_THAT(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, list) >= 0);
    H5Aclose(at);
    H5Dclose(set);
    H5Sclose(axes);
    H5Sclose(space);
    H5Tclose(type);
    TRUE_THAT(H5Fclose(file) >= 0);
    free(list);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    TRUE_THAT(clock_gettime(clock, &t) == 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processor time of this process and of its reader process. */
static double processor_s(void)
{
    double sum = seconds(CLOCK_PROCESS_CPUTIME_ID);
    DIR *folder = opendir("/proc");
    for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder)) {
        char path[300], name[64] = "";
        int pid = 0, parent = 0;
        clockid_t clock;
        snprintf(path, sizeof path, "/proc/%.200s/stat", e->d_name);
        FILE *f = atoi(e->d_name) > 0 ? fopen(path, "r") : NULL;
        if (f && fscanf(f, "%d (%63[^)]) %*c %d", &pid, name, &parent) == 3 && parent == (int)getpid() &&
            strcmp(name, "convoy-hdf5") == 0 && clock_getcpuclockid(pid, &clock) == 0)
            sum += seconds(clock);
        if (f)
            fclose(f);
    }
    if (folder)
        closedir(folder);
    return sum;
}

static void read_all(const char *folder, const char *name, int sandbox, double *clock_out, double *processor_out)
{
    char text[700];
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    snprintf(text, sizeof text, "{path: \"%s/%s\", format: hdf5, sandbox: %s}", folder, name,
             sandbox ? "true" : "false");
    OK(open_text(text, NULL, 0, &d));
    const int64_t n = cvy_dataset_describe(d)->nsamples;
    OK(cvy_dataset_read_raw(d, 0, &raw)); /* opens the file, and makes the buffers */
    const double clock = seconds(CLOCK_MONOTONIC), processor = processor_s();
    for (int64_t i = 0; i < n; i++)
        OK(cvy_dataset_read_raw(d, i, &raw));
    *processor_out = (processor_s() - processor) / (double)n;
    *clock_out = (seconds(CLOCK_MONOTONIC) - clock) / (double)n;
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { ROUNDS_MAX = 1000 };

static void print(const char *what, double *here, double *there, int n)
{
    static double ratio[ROUNDS_MAX];
    for (int i = 0; i < n; i++)
        ratio[i] = there[i] / here[i];
    qsort(ratio, (size_t)n, sizeof *ratio, by_value);
    qsort(here, (size_t)n, sizeof *here, by_value);
    qsort(there, (size_t)n, sizeof *there, by_value);
    printf(" %s %.1f us, %.1f us, ratio %.3f (%.3f to %.3f)", what, 1e6 * here[n / 2], 1e6 * there[n / 2], ratio[n / 2],
           ratio[0], ratio[n - 1]);
}

static void compare(const char *folder, const char *name, int rounds)
{
    static double clock[2][ROUNDS_MAX], processor[2][ROUNDS_MAX];
    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < 2; k++) {
            const int sandbox = (i + k) % 2;
            read_all(folder, name, sandbox, &clock[sandbox][i], &processor[sandbox][i]);
        }
    printf("%s, in place and in a process:", name);
    print("clock", clock[0], clock[1], rounds);
    print("; processor", processor[0], processor[1], rounds);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char *const sets[] = {"plain.h5", "gzip.h5", "checked.h5", "lists.h5"};
    const int64_t n = argc == 4 ? atoll(argv[2]) / CHUNK * CHUNK : 0;
    const int rounds = argc == 4 ? atoi(argv[3]) : 0;
    if (n <= 0 || rounds <= 0 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: %s FOLDER SAMPLES ROUNDS\n", argv[0]);
        return 2;
    }
    make(argv[1], "plain.h5", n, 0, 0);
    make(argv[1], "gzip.h5", n, 1, 1);
    make(argv[1], "checked.h5", n, 1, 0);
    make_lists(argv[1], n);
    for (int i = 0; i < CVY_COUNT(sets); i++)
        compare(argv[1], sets[i], rounds);
    return 0;
}

#else

int main(void)
{
    fprintf(stderr, "this build has no HDF5\n");
    return 2;
}

#endif
