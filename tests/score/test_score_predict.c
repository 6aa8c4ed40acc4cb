/* ranks: 1 3 */
/*
 * test_score_predict.c: a .h5 file of predictions has a data set for each output that is asked for, the names of the
 * samples and of the classes, and the same bytes on any number of ranks; the numbers are those of .npy and .csv files.
 *
 * Also: layers that lead to a loss do not ask for targets; the training's names of data sets hold for a path alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <unistd.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "base/base_file.h"
#include "test_util.h"

#if CVY_HAVE_HDF5
#include <hdf5.h>

enum { SAMPLES = 45, CLASSES = 3, MAPS = 4, SIDE = 6 };

static const char classes_job[] = "model:\n"
                                  "  layers:\n"
                                  "    - conv: {name: maps, channels: 4, kernel: 3, pad: 1}\n"
                                  "    - relu\n"
                                  "    - fc: {name: last, channels: 3}\n"
                                  "data:\n"
                                  "  train: {format: synthetic, samples: 64, shape: [1, 6, 6], classes: 3}\n"
                                  "train: {batch: 16, epochs: 1, optimizer: {name: sgd, lr: 0.05}}\n";
static const char source[] = "{format: synthetic, samples: 45, shape: [1, 6, 6], classes: 3, seed: 7}";

/* The layer `shift` reads y and leads to a loss only. */
static const char targets_job[] = "model:\n"
                                  "  layers:\n"
                                  "    - fc: {name: answer, channels: 2}\n"
                                  "    - add: {name: shift, from: [answer, y]}\n"
                                  "    - mse: {name: far, from: [shift, y], loss_weight: 0.001}\n"
                                  "    - mse: {name: near, from: [answer, y]}\n"
                                  "  output: answer\n"
                                  "data: {train: {path: with.h5, x: flow, y: [drag, lift]}}\n"
                                  "train: {batch: 16, epochs: 1, optimizer: {name: sgd, lr: 0.01}}\n";

static cvy_context *context, *alone;

static int is_root(void)
{
    return cvy_context_rank(context) == 0;
}

static void *read_set(const char *path, const char *name, hid_t type, int ndim, hsize_t *dim)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, name, H5P_DEFAULT),
                space = H5Dget_space(set);
    void *data = NULL;
    EXPECT(H5Sget_simple_extent_ndims(space) == ndim && H5Sget_simple_extent_dims(space, dim, NULL) == ndim);
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    EXPECT(n > 0);
    data = calloc((size_t)n, 16);
    EXPECT(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return data;
}

static float *read_floats(const char *path, const char *name, int ndim, hsize_t *dim)
{
    return read_set(path, name, H5T_NATIVE_FLOAT, ndim, dim);
}

static hid_t text_type(void)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

/* The numbers of a .npy file whose header has 128 bytes. */
static float *read_npy(const char *path, size_t count)
{
    FILE *file = fopen(path, "rb");
    float *data = calloc(count, sizeof *data);
    EXPECT(file && fseek(file, 128, SEEK_SET) == 0 && fread(data, sizeof *data, count, file) == count &&
           fgetc(file) == EOF);
    if (file)
        fclose(file);
    return data;
}

static int same_files(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    EXPECT_OK(cvy_file_read(a, 1 << 24, &x, &n));
    EXPECT_OK(cvy_file_read(b, 1 << 24, &y, &m));
    const int same = x && y && n == m && memcmp(x, y, n) == 0;
    cvy_mem_free(&x);
    cvy_mem_free(&y);
    return same;
}

static cvy_predict_request request(const char *out, const char *outputs)
{
    cvy_predict_request ask = cvy_predict_request_default();
    ask.target = "run";
    ask.data = source;
    ask.out = out;
    ask.outputs = outputs;
    return ask;
}

static void test_outputs(void)
{
    const char *const both = "maps, last";
    hsize_t dim[4] = {0};
    cvy_predict_request ask = request("all.h5", both);
    EXPECT_OK(cvy_run_predict(context, &ask));
    ask = request("maps.npy", "maps");
    EXPECT_OK(cvy_run_predict(context, &ask));
    ask = request("last.npy", NULL);
    EXPECT_OK(cvy_run_predict(context, &ask));
    if (is_root()) {
        ask = request("alone.h5", both);
        EXPECT_OK(cvy_run_predict(alone, &ask));
        EXPECT(same_files("all.h5", "alone.h5"));
        float *maps = read_floats("all.h5", "maps", 4, dim),
              *maps_npy = read_npy("maps.npy", SAMPLES * MAPS * SIDE * SIDE);
        EXPECT(dim[0] == SAMPLES && dim[1] == MAPS && dim[2] == SIDE && dim[3] == SIDE);
        EXPECT(memcmp(maps, maps_npy, sizeof *maps * SAMPLES * MAPS * SIDE * SIDE) == 0);
        float *last = read_floats("all.h5", "last", 2, dim), *last_npy = read_npy("last.npy", SAMPLES * CLASSES);
        EXPECT(dim[0] == SAMPLES && dim[1] == CLASSES);
        EXPECT(memcmp(last, last_npy, sizeof *last * SAMPLES * CLASSES) == 0);
        int64_t *number = read_set("all.h5", "sample", H5T_NATIVE_INT64, 1, dim);
        EXPECT(dim[0] == SAMPLES && number[0] == 0 && number[SAMPLES - 1] == SAMPLES - 1);
        free(maps), free(maps_npy), free(last), free(last_npy), free(number);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_attributes(void)
{
    cvy_predict_request ask = request("names.h5", NULL);
    ask.names = 1;
    EXPECT_OK(cvy_run_predict(context, &ask));
    if (is_root()) {
        hsize_t dim[4] = {0};
        const hid_t type = text_type();
        char **name = read_set("names.h5", "sample", type, 1, dim), *class_name[CLASSES] = {0};
        EXPECT(dim[0] == SAMPLES && strstr(name[44], "44"));
        const hid_t file = H5Fopen("names.h5", H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, "last", H5P_DEFAULT),
                    at = H5Aopen(set, "class_names", H5P_DEFAULT);
        EXPECT(at >= 0 && H5Aread(at, type, class_name) >= 0);
        EXPECT_TEXT(class_name[2], "2");
        H5Aclose(at);
        H5Dclose(set);
        H5Fclose(file);
        H5Tclose(type);
        for (int i = 0; i < CLASSES; i++)
            H5free_memory(class_name[i]);
        for (int i = 0; i < SAMPLES; i++)
            H5free_memory(name[i]);
        free(name);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_classes(void)
{
    cvy_predict_request ask = request("classes.h5", NULL);
    ask.what = CVY_PREDICT_CLASSES;
    ask.top = 2;
    EXPECT_OK(cvy_run_predict(context, &ask));
    ask = request("shares.h5", NULL);
    ask.what = CVY_PREDICT_PROBABILITIES;
    EXPECT_OK(cvy_run_predict(context, &ask));
    if (is_root()) {
        hsize_t dim[4] = {0};
        int32_t *label = read_set("classes.h5", "class", H5T_NATIVE_INT32, 2, dim);
        EXPECT(dim[0] == SAMPLES && dim[1] == 2);
        double *share = read_set("classes.h5", "probability", H5T_NATIVE_DOUBLE, 2, dim);
        EXPECT(dim[0] == SAMPLES && dim[1] == 2);
        float *all = read_floats("shares.h5", "probability", 2, dim);
        EXPECT(dim[0] == SAMPLES && dim[1] == CLASSES);
        for (int i = 0; i < 2 * SAMPLES; i++)
            EXPECT(label[i] >= 0 && label[i] < CLASSES && (float)share[i] == all[i / 2 * CLASSES + label[i]]);
        free(label), free(share), free(all);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_refused(void)
{
    cvy_predict_request ask = request("two.npy", "maps, last");
    EXPECT_FAULT(cvy_run_predict(context, &ask), CVY_E_ARGUMENT, "holds one output, and 2 are asked for");
    ask = request("two.h5", "maps, last");
    ask.what = CVY_PREDICT_CLASSES;
    EXPECT_FAULT(cvy_run_predict(context, &ask), CVY_E_ARGUMENT, "of one output, and 2 are asked for");
    ask = request("head.h5", NULL);
    ask.header = 1;
    EXPECT_FAULT(cvy_run_predict(context, &ask), CVY_E_ARGUMENT, "only a .csv file has a header");
    ask = request("none.h5", "nothing");
    EXPECT_FAULT(cvy_run_predict(context, &ask), CVY_E_ARGUMENT, "no layer 'nothing'");
    ask = request("nowhere/all.h5", NULL);
    EXPECT(cvy_run_predict(context, &ask) == CVY_E_IO);
    ask = request("odd.txt", NULL);
    EXPECT_FAULT(cvy_run_predict(context, &ask), CVY_E_ARGUMENT, "are written as .csv, .npy, .h5 or .nc");
    EXPECT(!cvy_file_exists("two.npy") && !cvy_file_exists("two.h5"));
}

/* ---- data without targets ---- */

static void put_set(hid_t file, const char *name, hsize_t width)
{
    float data[SAMPLES * 4];
    const hsize_t dim[2] = {SAMPLES, width};
    for (hsize_t i = 0; i < SAMPLES * width; i++)
        data[i] = (float)(i * 37 % 41) / 20 - 1;
    const hid_t space = H5Screate_simple(width > 1 ? 2 : 1, dim, NULL),
                set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    EXPECT(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

static void put_file(const char *path, int with_targets)
{
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    put_set(file, "flow", 4);
    put_set(file, "other", 4);
    if (with_targets) {
        put_set(file, "drag", 1);
        put_set(file, "lift", 1);
    }
    H5Fclose(file);
}

static void test_without_targets(void)
{
    const cvy_job_source job = {.size = sizeof job, .text = targets_job};
    const cvy_train_opts train = {.size = sizeof train, .out = "targets"};
    const struct {
        const char *data, *out;
    } ask[] = {{"{path: with.h5, x: flow, y: [drag, lift]}", "with.npy"},
               {"with.h5", "path.npy"},
               {"{path: without.h5, x: flow}", "without.npy"},
               {"without.h5", "without_path.npy"}};
    if (is_root()) {
        put_file("with.h5", 1);
        put_file("without.h5", 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_OK(cvy_run_train(context, &job, &train, NULL));
    for (int i = 0; i < 4; i++) {
        cvy_predict_request r = request(ask[i].out, NULL);
        r.target = "targets";
        r.data = ask[i].data;
        EXPECT_OK(cvy_run_predict(context, &r));
        if (is_root())
            EXPECT(same_files("with.npy", ask[i].out));
    }
    cvy_network *network = NULL;
    cvy_network_about about = cvy_network_about_default();
    EXPECT_OK(cvy_network_open(alone, "targets", NULL, &network));
    EXPECT_OK(cvy_network_describe(network, &about));
    EXPECT_INT(about.inputs, 1);
    EXPECT_INT(about.parameters, 4 * 2 + 2);
    cvy_network_destroy(&network);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_no_growth(void)
{
    const int64_t before = cvy_memory_bytes();
    cvy_predict_request ask = request("again.h5", "maps, last");
    for (int i = 0; i < 3; i++)
        EXPECT_OK(cvy_run_predict(context, &ask));
    EXPECT_INT(cvy_memory_bytes(), before);
    ask.out = "nowhere/again.h5";
    EXPECT(cvy_run_predict(context, &ask) == CVY_E_IO);
    EXPECT_INT(cvy_memory_bytes(), before);
}

static void begin(void)
{
    char folder[] = "test-score-predict-XXXXXX";
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    const cvy_job_source job = {.size = sizeof job, .text = classes_job};
    const cvy_train_opts train = {.size = sizeof train, .out = "run"};
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    EXPECT(rank > 0 || mkdtemp(folder));
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT(chdir(folder) == 0);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context));
    EXPECT_OK(cvy_context_create(&opts, &alone));
    EXPECT_OK(cvy_run_train(context, &job, &train, NULL));
}

static void end(void)
{
    char here[512];
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_root() && getcwd(here, sizeof here))
        EXPECT_OK(cvy_file_remove_tree(here));
    cvy_context_destroy(&alone);
    cvy_context_destroy(&context);
}

int main(int argc, char **argv)
{
    cvy_mpi_prepare();
    MPI_Init(&argc, &argv);
    begin();
    TEST(test_outputs);
    TEST(test_attributes);
    TEST(test_classes);
    TEST(test_refused);
    TEST(test_without_targets);
    TEST(test_no_growth);
    end();
    MPI_Finalize();
    return test_end();
}

#else

int main(void)
{
    printf("skipped: this build has no HDF5\n");
    return 77;
}
#endif
