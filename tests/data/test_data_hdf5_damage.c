/*
 * test_data_hdf5_damage.c: HDF5 files that are damaged or made to do harm: links, parts and external storage outside of
 * their folder, cycles of links, long names, shapes that overflow, chunks that unpack to far more than their bytes,
 * filters that are missing, and damage in headers and chunks: each is a fault with a message, or other numbers, and
 * never the end of the process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_hdf5.h"

#include <math.h>
#include <stdio.h>
#include <sys/wait.h>

#if CVY_HAVE_HDF5

enum { N = 21, ROW = 2 * 4 * 6 };

/* ---- links ---- */

static void add_virtual(hid_t file, const char *name, const char *part)
{
    const hid_t space = H5Screate_simple(2, (hsize_t[]){10, 3}, NULL), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(made, space, part, "x", space);
    H5Dclose(H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT));
    H5Pclose(made);
    H5Sclose(space);
}

static void expect_there(const char *options)
{
    cvy_dataset *d = NULL;
    float x[3] = {0};
    OK(open_in("links/here.h5", options, &d));
    read_x(d, 4, x);
    TRUE_THAT(x[1] == (float)value_at(13));
    cvy_dataset_destroy(&d);
}

/* A link into another file, and numbers that are kept there, must stay within the folder. */
static void test_links(void)
{
    cvy_dataset *d = NULL;
    double *v = values(30);
    char absolute[4200], outside[4200], moved[4200];
    OK(cvy_file_make_folder(in_scratch("links")));
    snprintf(absolute, sizeof absolute, "%s/there.h5", realpath(in_scratch("links"), (char[4096]){0}));
    snprintf(outside, sizeof outside, "%s/outside.h5", realpath(in_scratch("."), (char[4096]){0}));
    snprintf(moved, sizeof moved, "/no/such/folder/there.h5");
    hid_t file = new_file("links/there.h5");
    add_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    H5Fclose(file);
    file = new_file("outside.h5");
    add_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    H5Fclose(file);
    file = new_file("links/here.h5");
    H5Lcreate_external("there.h5", "x", file, "near", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("../outside.h5", "x", file, "far", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("lost.h5", "x", file, "lost", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(absolute, "x", file, "absolute", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(outside, "x", file, "farther", H5P_DEFAULT, H5P_DEFAULT);
    add_virtual(file, "parts", "there.h5");
    add_virtual(file, "parts_absolute", absolute);
    add_virtual(file, "parts_moved", moved);
    add_virtual(file, "parts_lost", "lost.h5");
    add_virtual(file, "parts_outside", outside);
    H5Fclose(file);
    expect_there("x: near");
    expect_there("x: absolute");
    expect_there("x: parts");
    expect_there("x: parts_absolute");
    expect_there("x: parts_moved");
    FAILS(open_in("links/here.h5", "x: far", &d), CVY_E_CONFIG, "has no data set \"far\" that can be read; it holds ");
    FAILS(open_in("links/here.h5", "x: far", &d), CVY_E_CONFIG,
          "far (link to x of ../outside.h5, which is outside of this folder and is not followed)");
    FAILS(open_in("links/here.h5", "x: farther", &d), CVY_E_CONFIG, "has no data set \"farther\" that can be read");
    FAILS(open_in("links/here.h5", "x: lost", &d), CVY_E_CONFIG,
          "lost (link to x of lost.h5, which is no data set that can be opened)");
    FAILS(open_in("links/here.h5", "x: parts_lost", &d), CVY_E_IO,
          "data set parts_lost is virtual, and the file of a part of it is missing: lost.h5");
    FAILS(open_in("links/here.h5", "x: parts_outside", &d), CVY_E_FORMAT,
          "data set parts_outside is virtual and reaches outside its folder: /");
    /* Names that are not given are searched among links, too, and none is passed over in silence. */
    file = new_file("links/here.h5");
    H5Lcreate_external("there.h5", "x", file, "X", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    expect_there("");
    file = new_file("links/here.h5");
    add_set(file, "other", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    H5Lcreate_external(outside, "x", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    FAILS(open_in("links/here.h5", "", &d), CVY_E_UNSUPPORTED, "data set x: link to x of");
    free(v);
}

/* Numbers that a data set keeps in another file, by the way of its header, are not read, whatever uses them. */
static void test_external(void)
{
    cvy_dataset *d = NULL;
    double *v = values(30);
    const char secret[40] = "numbers that are not in the HDF5 file";
    char path[4200];
    put_file(in_scratch("secret"), secret, sizeof secret);
    snprintf(path, sizeof path, "%s", in_scratch("secret"));
    const hid_t file = new_file("external.h5"), made = H5Pcreate(H5P_DATASET_CREATE),
                space = H5Screate_simple(1, (hsize_t[]){10}, NULL);
    add_set(file, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    H5Pset_external(made, path, 0, 40);
    H5Dclose(H5Dcreate2(file, "outside", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT));
    H5Pclose(made);
    H5Sclose(space);
    H5Fclose(file);
    static const char *const options[] = {"x: outside", "x: x, y: outside", "x: x, label: outside",
                                          "x: x, where: outside > 0"};
    for (int i = 0; i < CVY_COUNT(options); i++)
        FAILS(open_in("external.h5", options[i], &d), CVY_E_UNSUPPORTED,
              "data set outside keeps its numbers in other files");
    free(v);
}

/* Groups that contain each other, and links that lead to themselves, are no end of names. */
static void test_cycles(void)
{
    cvy_dataset *d = NULL;
    double *v = values(30);
    hid_t file = new_file("cycle.h5");
    const hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                inner = H5Gcreate2(group, "inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add_set(inner, "x", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    TRUE_THAT(H5Lcreate_hard(file, "group", inner, "outer", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
              H5Lcreate_hard(file, "/", inner, "root", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
              H5Lcreate_soft("/group/inner/soft", inner, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
              H5Lcreate_external("cycle.h5", "/again", file, "again", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Gclose(inner);
    H5Gclose(group);
    H5Fclose(file);
    FAILS(open_in("cycle.h5", "x: nothing", &d), CVY_E_CONFIG, "has no data set \"nothing\"");
    FAILS(open_in("cycle.h5", "x: nothing", &d), CVY_E_CONFIG, "group/inner/x 10x3 float32");
    FAILS(open_in("cycle.h5", "x: again", &d), CVY_E_CONFIG, "link to /again of cycle.h5, which is no data set");
    FAILS(open_in("cycle.h5", "x: group/inner/soft", &d), CVY_E_CONFIG, "has no data set \"group/inner/soft\"");
    OK(open_in("cycle.h5", "x: group/inner/outer/inner/root/group/inner/x", &d));
    cvy_dataset_destroy(&d);
    free(v);
}

/* A name may have any length, and a message has room for its beginning. */
static void test_long_names(void)
{
    enum { LETTERS = 60000 };
    cvy_dataset *d = NULL;
    double *v = values(30);
    char *name = malloc(LETTERS + 1);
    float x[3];
    memset(name, 'n', LETTERS);
    name[LETTERS] = 0;
    v[4] = NAN;
    const hid_t file = new_file("long.h5");
    add_set(file, name, (struct layout){.type = H5T_IEEE_F32LE, .ndim = 2, .dim = {10, 3}}, v);
    H5Fclose(file);
    FAILS(open_in("long.h5", "x: nothing", &d), CVY_E_CONFIG, "it holds nnnnnn");
    OK(open_in("long.h5", "", &d)); /* it is the only data set of two axes */
    FAILS(cvy_dataset_read(d, 1, 0, &(void *){x}), CVY_E_FORMAT, "long.h5, row 1: element 1 of x is nan");
    cvy_dataset_destroy(&d);
    free(name);
    free(v);
}

/* Shapes whose sizes overflow, of data sets that were never written. */
static void test_large_shapes(void)
{
    static const struct {
        const char *options, *words;
        cvy_status code;
        hsize_t x[3], y[3];
    } want[] = {
        {"x: x", "expected at most 1099511627776 in all", CVY_E_UNSUPPORTED, {(hsize_t)1 << 45, 3, 1}, {1, 1, 1}},
        {"x: x", "a sample has ", CVY_E_SHAPE, {4, (hsize_t)1 << 31, 8}, {1, 1, 1}},
        {"x: x", "", CVY_E_SHAPE, {4, (hsize_t)1 << 33, (hsize_t)1 << 33}, {1, 1, 1}},
        {"x: x, label: y", "expected one number for each sample", CVY_E_SHAPE, {10, 3, 1}, {10, (hsize_t)1 << 32, 1}},
        {"x: x, label: y", "expected one number for each sample", CVY_E_SHAPE, {10, 3, 1}, {10, 0x6db6db6db6db6db7, 7}},
    };
    cvy_dataset *d = NULL;
    for (int i = 0; i < CVY_COUNT(want); i++) {
        const hid_t file = new_file("large.h5"), made = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(made, 3, (hsize_t[]){1, 1, 1});
        for (int k = 0; k < 2; k++) {
            const hid_t space = H5Screate_simple(3, k ? want[i].y : want[i].x, NULL);
            const hid_t set = H5Dcreate2(file, k ? "y" : "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
            TRUE_THAT(set >= 0);
            H5Dclose(set);
            H5Sclose(space);
        }
        H5Pclose(made);
        H5Fclose(file);
        FAILS(open_in("large.h5", want[i].options, &d), want[i].code, want[i].words);
    }
}

/* Rows of 80 MB whose chunks are a few bytes, all of which `bytes` are written, and another set that makes the file
 * larger. */
static void put_bomb(hid_t filter, hsize_t chunk, size_t bytes, int padding)
{
    enum { WIDTH = 20 << 20 };
    const hid_t file = new_file("bomb.h5"), made = H5Pcreate(H5P_DATASET_CREATE),
                space = H5Screate_simple(2, (hsize_t[]){2, WIDTH}, NULL);
    double *v = values(padding);
    char *packed = calloc(1, bytes + 1);
    H5Pset_chunk(made, 2, (hsize_t[]){1, chunk});
    H5Pset_filter(made, (H5Z_filter_t)filter, 0, 1, (const unsigned[]){4});
    const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
    for (hsize_t at = 0; bytes > 0 && at < WIDTH; at += chunk)
        TRUE_THAT(H5Dwrite_chunk(set, H5P_DEFAULT, 0, (hsize_t[]){0, at}, bytes, packed) >= 0);
    if (padding > 0)
        add_set(file, "pad", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {(hsize_t)padding}}, v);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(made);
    H5Fclose(file);
    free(packed);
    free(v);
}

/* A set that unpacks to far more than its bytes is refused before there is memory for a row of it. */
static void test_bombs(void)
{
    cvy_dataset *d = NULL;
    put_bomb(H5Z_FILTER_DEFLATE, 20 << 20, 1000, 0);
    FAILS(open_in("bomb.h5", "x: x", &d), CVY_E_UNSUPPORTED,
          "bomb.h5: data set x: 1000 bytes unpack to 83886080, more than 300 times as many: write it without");
    put_bomb(H5Z_FILTER_DEFLATE, 1 << 20, 100, 0);
    FAILS(open_in("bomb.h5", "x: x", &d), CVY_E_UNSUPPORTED, "data set x: 2000 bytes unpack to 83886080, more than");
    put_bomb(H5Z_FILTER_NBIT, 5 << 20, 1000, 0);
    FAILS(open_in("bomb.h5", "x: x", &d), CVY_E_UNSUPPORTED, "data set x: 4000 bytes unpack to 83886080, more than");
    put_bomb(H5Z_FILTER_DEFLATE, 20 << 20, 0, 0);
    OK(open_in("bomb.h5", "x: x", &d)); /* nobody wrote a chunk */
    cvy_dataset_destroy(&d);
    put_bomb(H5Z_FILTER_DEFLATE, 20 << 20, 1000, 150000);
    OK(open_in("bomb.h5", "x: x", &d)); /* the file justifies the rows, but the chunk does not justify its own */
    float *x = malloc((size_t)80 << 20);
    FAILS(cvy_dataset_read(d, 0, 0, &(void *){x}), CVY_E_UNSUPPORTED, "chunk at row 0: 1000 bytes unpack to 83886080");
    free(x);
    cvy_dataset_destroy(&d);
}

static size_t as_it_is(unsigned flags, size_t nvalue, const unsigned *value, size_t n, size_t *room, void **data)
{
    (void)flags, (void)nvalue, (void)value, (void)room, (void)data;
    return n;
}

/* Files of h5py with compression="lzf" have a filter that only h5py brings. */
static void test_filters(void)
{
    enum { LZF = 32000 };
    static const H5Z_class2_t lzf = {H5Z_CLASS_T_VERS, LZF, 1, 1, "lzf", NULL, NULL, as_it_is};
    cvy_dataset *d = NULL;
    double *v = values(30);
    TRUE_THAT(H5Zregister(&lzf) >= 0);
    hid_t file = new_file("filter.h5");
    const hid_t space = H5Screate_simple(2, (hsize_t[]){10, 3}, NULL), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(made, 2, (hsize_t[]){5, 3});
    H5Pset_filter(made, LZF, H5Z_FLAG_OPTIONAL, 0, NULL);
    const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
    TRUE_THAT(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
    H5Dclose(set);
    H5Pclose(made);
    H5Sclose(space);
    H5Fclose(file);
    OK(open_in("filter.h5", "sandbox: false", &d)); /* the filter is known in this process only */
    cvy_dataset_destroy(&d);
    TRUE_THAT(H5Zunregister(LZF) >= 0);
    FAILS(open_in("filter.h5", "", &d), CVY_E_UNSUPPORTED,
          "filter.h5: data set x is compressed by the filter lzf (number 32000), which the HDF5 library here lacks");
    FAILS(open_in("filter.h5", "", &d), CVY_E_UNSUPPORTED, "`h5repack -f GZIP=4 IN OUT`");
    free(v);
}

/* ---- damage ---- */

/* Opens the file and reads all that can be read. Any result is accepted if the process survives. */
static void try_all(const char *path)
{
    cvy_dataset *d = NULL;
    char text[600];
    float x[ROW];
    float rest[8];
    void *const field[] = {x, rest, rest, rest};
    snprintf(text, sizeof text, "{path: \"%s\", format: hdf5}", path);
    if (open_text(text, NULL, 0, &d) != CVY_OK)
        return;
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const int fits = info->nsamples <= 1000 && cvy_shape_elems(&info->field[0].shape) <= ROW && info->nfield <= 2;
    for (int64_t i = 0; i < info->nsamples && fits; i++)
        (void)!cvy_dataset_read(d, i, 0, field);
    cvy_dataset_destroy(&d);
}

/* Runs try_all in a process of its own, because the library itself does not survive every damaged header. */
static int survives(const char *path)
{
    fflush(NULL);
    const pid_t child = fork();
    TRUE_THAT(child >= 0);
    if (child == 0) {
        alarm(20);
        try_all(path);
        _exit(0);
    }
    int code = -1;
    TRUE_THAT(waitpid(child, &code, 0) == child);
    return WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

static void test_damage(void)
{
    double *v = values(N * ROW);
    hid_t file = new_file("whole.h5");
    add_set(file, "x",
            (struct layout){.type = H5T_STD_I16LE, .ndim = 4, .dim = {N, 2, 4, 6}, .chunk = {4, 2, 4, 6}, .level = 4},
            v);
    add_set(file, "w", (struct layout){.type = H5T_IEEE_F32LE, .ndim = 1, .dim = {N}}, v);
    H5Fclose(file);
    char *data = NULL;
    size_t bytes = 0;
    cvy_dataset *d = NULL;
    OK(cvy_file_read(in_scratch("whole.h5"), 1 << 20, &data, &bytes));
    for (size_t cut = 0; cut < bytes; cut += 97) {
        put_file(in_scratch("cut.h5"), data, cut);
        TRUE_THAT(open_in("cut.h5", "", &d) < 0);
    }
    /* HDF5 1.10 reads outside its own buffers when some headers are damaged, and a sanitizer would end the process. */
    const char *sanitize = getenv("CONVOY_SANITIZE");
    const int step = sanitize && strcmp(sanitize, "ON") == 0 ? 0 : (int)bytes / 60;
    for (size_t at = 0; step > 0 && at < bytes; at += (size_t)step) {
        data[at] ^= 0x41;
        put_file(in_scratch("flip.h5"), data, bytes);
        TRUE_THAT(survives(in_scratch("flip.h5")));
        data[at] ^= 0x41;
    }
    /* Damage within a chunk is reported with its place. */
    uint8_t *chunk = memmem(data, bytes, "\x78\x5e", 2); /* a zlib stream of level 4 */
    TRUE_THAT(chunk != NULL);
    for (int i = 8; i < 24; i++)
        chunk[i] ^= 0xff;
    put_file(in_scratch("torn.h5"), data, bytes);
    OK(open_in("torn.h5", "x: [x]", &d));
    float x[ROW];
    void *const field[] = {x};
    int failed = 0;
    for (int64_t i = 0; i < N; i++)
        if (cvy_dataset_read(d, i, 0, field) != CVY_OK) {
            TRUE_THAT(strstr(cvy_error_text(), "torn.h5, row ") && strstr(cvy_error_text(), "data set x"));
            failed++;
        }
    TRUE_THAT(failed == N); /* several threads read such small chunks */
    cvy_dataset_destroy(&d);
    cvy_mem_free(&data);
    free(v);
}

int main(void)
{
    scratch_make();
    test_links();
    test_external();
    test_cycles();
    test_long_names();
    test_large_shapes();
    test_bombs();
    test_filters();
    test_damage();
    scratch_remove();
    return 0;
}

#else

int main(void)
{
    printf("skipped: this build has no HDF5\n");
    return 77;
}

#endif
