/* ranks: 1 2 */
/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: mpich asan */
/*
 * test_data_pairs.c: training data of twelve kinds with further data of each kind that differ in one of nine ways: a
 * pair agrees, and then samples have the same numbers and classes, or it is refused with both values.
 *
 * The samples are the same numbers in all formats. Further samples are read into buffers of the sizes of the training,
 * so that a sanitizer finds a reader that writes past them. Each rank reads its part of the samples.
 */
#include <math.h>
#include <mpi.h>

#include "comm/mpi/comm_mpi.h"
#include "data/data_agrees.h"
#include "data/data_convert.h"
#include "data/picture/data_encode.h"
#include "test_data_pictures.h"

enum { N = 8, SIDE = 4, ELEMS_MAX = 3 * 5 * 5 };
enum { SAME, SIZE, CHANNELS, VECTOR, NUMBERS, NO_TARGET, WEIGHTS, MORE_CLASSES, FEWER_CLASSES, DIFFERENCES };
static const char *const difference_name[] = {"same",      "size",    "channels",     "vector",       "numbers",
                                              "no target", "weights", "more classes", "fewer classes"};

struct form {
    int C, H, W, is_vector, has_label, has_y, has_weight;
    int first_class, nclasses;
};

static struct form form_of(int difference)
{
    struct form f = {1, SIDE, SIDE, 0, 1, 0, 0, 0, 3};
    f.H += difference == SIZE;
    f.W += difference == SIZE;
    f.C = difference == CHANNELS ? 3 : 1;
    f.is_vector = difference == VECTOR;
    f.has_label = difference != NUMBERS && difference != NO_TARGET;
    f.has_y = difference == NUMBERS;
    f.has_weight = difference == WEIGHTS;
    f.first_class = difference == FEWER_CLASSES;
    f.nclasses = difference == MORE_CLASSES ? 4 : difference == FEWER_CLASSES ? 2 : 3;
    return f;
}

static uint8_t pixel(int i, int y, int x)
{
    return (uint8_t)(20 + 25 * i + 5 * y + x);
}

static int class_of(const struct form *f, int i)
{
    return f->first_class + i % f->nclasses;
}

static const char *const class_name[] = {"ant", "bee", "cat", "dog"};

/* ---- writing the sets: each gives the source as text, or 0 if its format cannot say the difference ---- */

static int put_arrays(const char *folder, const struct form *f, int bytes, char *source)
{
    static uint8_t u8[N * ELEMS_MAX];
    static float f32[N * ELEMS_MAX], y[2 * N], weight[N];
    int32_t label[N];
    char path[200], shape[60];
    const int elems = f->C * f->H * f->W;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < elems; k++) {
            u8[i * elems + k] = pixel(i, k / f->W % f->H, k % f->W);
            f32[i * elems + k] = (float)u8[i * elems + k] / 255;
        }
        label[i] = class_of(f, i);
        y[2 * i] = y[2 * i + 1] = (float)i;
        weight[i] = 1;
    }
    OK(cvy_file_make_folder(in_scratch(folder)));
    if (f->is_vector)
        snprintf(shape, sizeof shape, "%d, %d", N, elems);
    else
        snprintf(shape, sizeof shape, "%d, %d, %d, %d", N, f->C, f->H, f->W);
    snprintf(path, sizeof path, "%s/x.npy", folder);
    put_npy(in_scratch(path), bytes ? "|u1" : "<f4", shape, bytes ? (void *)u8 : f32,
            (size_t)(N * elems) * (bytes ? 1 : sizeof *f32));
    snprintf(path, sizeof path, "%s/label.npy", folder);
    if (f->has_label)
        put_npy(in_scratch(path), "<i4", "8,", label, sizeof label);
    snprintf(path, sizeof path, "%s/y.npy", folder);
    if (f->has_y)
        put_npy(in_scratch(path), "<f4", "8, 2", y, sizeof y);
    snprintf(path, sizeof path, "%s/weight.npy", folder);
    if (f->has_weight)
        put_npy(in_scratch(path), "<f4", "8,", weight, sizeof weight);
    return snprintf(source, 600, "{path: %s, format: npy}", in_scratch(folder));
}

static int put_bytes(const char *folder, const struct form *f, char *source)
{
    return put_arrays(folder, f, 1, source);
}

static int put_reals(const char *folder, const struct form *f, char *source)
{
    return put_arrays(folder, f, 0, source);
}

static int convert(const char *folder, const struct form *f, int bytes, const char *format, char *source)
{
    cvy_dataset *d = NULL;
    cvy_comm *self = NULL;
    char raw[100];
    cvy_convert_report report;
    snprintf(raw, sizeof raw, "%s.npy", folder);
    put_arrays(raw, f, bytes, source);
    OK(open_text(source, NULL, 0, &d));
    OK(cvy_comm_create_self(&self));
    const cvy_status status =
        cvy_convert(d, self, in_scratch(folder), &(cvy_convert_opts){.format = format, .pieces = 1}, &report);
    self->ops->destroy(self);
    cvy_dataset_destroy(&d);
    return status == CVY_OK ? snprintf(source, 600, "{path: %s, format: %s}", in_scratch(folder), format) : 0;
}

static int put_pack(const char *folder, const struct form *f, char *source)
{
    return convert(folder, f, 0, "pack", source);
}

static int put_tfrecord(const char *folder, const struct form *f, char *source)
{
    return convert(folder, f, 0, "tfrecord", source);
}

static int put_hdf5(const char *folder, const struct form *f, char *source)
{
    return convert(folder, f, 0, "hdf5", source);
}

static int put_lmdb(const char *folder, const struct form *f, char *source)
{
    return convert(folder, f, 1, "lmdb", source);
}

/* A table with its columns in the order of x, or with the targets first. */
static int put_table(const char *name, const struct form *f, int named, char *source)
{
    const int elems = f->C * f->H * f->W;
    char path[200];
    snprintf(path, sizeof path, "%s.csv", name);
    FILE *file = fopen(in_scratch(path), "w");
    TRUE_THAT(file);
    for (int i = -1; i < N; i++) {
        for (int k = 0; k < elems; k++)
            i < 0 ? fprintf(file, "x%d,", k) : fprintf(file, "%.9g,", pixel(i, k / f->W % f->H, k % f->W) / 255.0);
        if (f->has_label)
            i < 0   ? fputs("label,", file)
            : named ? fprintf(file, "%s,", class_name[class_of(f, i)])
                    : fprintf(file, "%d,", class_of(f, i));
        if (f->has_y)
            i < 0 ? fputs("y0,y1,", file) : fprintf(file, "%d,%d,", i, i);
        i < 0 ? fputs("w\n", file) : fputs("1\n", file);
    }
    fclose(file);
    int n = snprintf(source, 600, "{path: %s, %s: w%s", in_scratch(path), f->has_weight ? "weight" : "drop",
                     f->has_y ? ", y: [y0, y1]" : "");
    if (!f->is_vector)
        n += snprintf(source + n, 100, ", shape: [%d, %d, %d]", f->C, f->H, f->W);
    return n + snprintf(source + n, 3, "}");
}

static int put_csv(const char *name, const struct form *f, char *source)
{
    return put_table(name, f, 0, source);
}

static int put_named_csv(const char *name, const struct form *f, char *source)
{
    return put_table(name, f, 1, source);
}

static int put_idx(const char *folder, const struct form *f, char *source)
{
    uint8_t head[] = {0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, (uint8_t)f->H, 0, 0, 0, (uint8_t)f->W};
    uint8_t labels[8 + N] = {0, 0, 8, 1, 0, 0, 0, N}, x[sizeof head + N * ELEMS_MAX];
    char path[200];
    if (f->C > 1 || f->is_vector || f->has_y || f->has_weight)
        return 0;
    memcpy(x, head, sizeof head);
    for (int i = 0; i < N * f->H * f->W; i++)
        x[sizeof head + (size_t)i] = pixel(i / (f->H * f->W), i / f->W % f->H, i % f->W);
    for (int i = 0; i < N; i++)
        labels[8 + i] = (uint8_t)class_of(f, i);
    OK(cvy_file_make_folder(in_scratch(folder)));
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", folder);
    put_file(in_scratch(path), x, sizeof head + (size_t)(N * f->H * f->W));
    snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte", folder);
    if (f->has_label)
        put_file(in_scratch(path), labels, sizeof labels);
    return snprintf(source, 600, "{path: %s, format: idx}", in_scratch(folder));
}

#if CVY_HAVE_SPNG && CVY_HAVE_JPEG
/* Grey pictures, or colour pictures of the same grey. */
static void put_grey(const char *path, const struct form *f, int i)
{
    uint8_t planes[ELEMS_MAX];
    cvy_bytes rows = {0}, png = {0};
    for (int k = 0; k < f->C * f->H * f->W; k++)
        planes[k] = pixel(i, k / f->W % f->H, k % f->W);
    OK(cvy_picture_encode_png(&(cvy_picture){.dtype = CVY_DTYPE_U8, .C = f->C, .H = f->H, .W = f->W, .data = planes},
                              &rows, &png));
    put_file(path, png.data, png.bytes);
    cvy_mem_free(&rows.data);
    cvy_mem_free(&png.data);
}

static int put_folder(const char *folder, const struct form *f, char *source)
{
    char path[200];
    if (f->is_vector || f->has_y || f->has_weight)
        return 0;
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, f->has_label ? class_name[class_of(f, i)] : "");
        OK(cvy_file_make_folder(in_scratch(path)));
        snprintf(path, sizeof path, "%s/%s/%d.png", folder, f->has_label ? class_name[class_of(f, i)] : "", i);
        put_grey(in_scratch(path), f, i);
    }
    return snprintf(source, 600, "{path: %s, format: folder}", in_scratch(folder));
}

static int put_list(const char *folder, const struct form *f, char *source)
{
    char path[200], text[N * 20], *end = text;
    if (f->is_vector || f->has_y || f->has_weight)
        return 0;
    OK(cvy_file_make_folder(in_scratch(folder)));
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof path, "%s/%d.png", folder, i);
        put_grey(in_scratch(path), f, i);
        end += f->has_label ? sprintf(end, "%d.png %d\n", i, class_of(f, i)) : sprintf(end, "%d.png\n", i);
    }
    snprintf(path, sizeof path, "%s/list.txt", folder);
    put_file(in_scratch(path), text, (size_t)(end - text));
    return snprintf(source, 600, "{path: %s, format: list}", in_scratch(path));
}

/* Pictures that stay encoded. */
static int put_picture_pack(const char *folder, const struct form *f, char *source)
{
    cvy_dataset *d = NULL;
    cvy_comm *self = NULL;
    char raw[100];
    cvy_convert_report report;
    snprintf(raw, sizeof raw, "%s.list", folder);
    if (!put_list(raw, f, source))
        return 0;
    OK(open_text(source, NULL, 0, &d));
    OK(cvy_comm_create_self(&self));
    OK(cvy_convert(d, self, in_scratch(folder), &(cvy_convert_opts){.format = "pack", .pieces = 1}, &report));
    self->ops->destroy(self);
    cvy_dataset_destroy(&d);
    return snprintf(source, 600, "{path: %s, format: pack}", in_scratch(folder));
}
#else
static int put_folder(const char *folder, const struct form *f, char *source)
{
    (void)folder, (void)f, (void)source;
    return 0;
}
#define put_list put_folder
#define put_picture_pack put_folder
#endif

static const struct kind {
    const char *name;
    int (*put)(const char *name, const struct form *f, char *source);
    int is_bytes, is_encoded, is_named;
    int sorts; /* the samples are in the order of their classes */
} kinds[] = {
    {"bytes", put_bytes, 1, 0, 0, 0},
    {"reals", put_reals, 0, 0, 0, 0},
    {"csv", put_csv, 0, 0, 0, 0},
    {"named csv", put_named_csv, 0, 0, 1, 0},
    {"idx", put_idx, 1, 0, 0, 0},
    {"folder", put_folder, 1, 1, 1, 1},
    {"list", put_list, 1, 1, 0, 0},
    {"pack", put_pack, 0, 0, 0, 0},
    {"picture pack", put_picture_pack, 1, 1, 0, 0},
    {"tfrecord", put_tfrecord, 0, 0, 0, 0},
    {"hdf5", put_hdf5, 0, 0, 0, 0},
    {"lmdb", put_lmdb, 1, 0, 0, 0},
};
enum { KINDS = CVY_COUNT(kinds) };
static char source[KINDS][DIFFERENCES][600]; /* "": it cannot be written */

/* ---- pairs ---- */

/* Whether the pair must agree. */
static int expected(const struct kind *train, const struct kind *val, int difference)
{
    const int converts = difference != CHANNELS || val->is_encoded;
    const int fits = difference == SAME || difference == CHANNELS || difference == WEIGHTS ||
                     (difference == FEWER_CLASSES &&
                      train->is_named >= val->is_named); /* nobody knows which of three numbers two words are */
    return fits && converts && train->is_bytes == val->is_bytes;
}

/* Samples have the numbers and the classes that were written. */
static void check_samples(const cvy_dataset *train, cvy_dataset *d, const struct kind *val, int difference,
                          int both_named, const cvy_comm *comm)
{
    const cvy_dataset_info *like = cvy_dataset_describe(train), *info = cvy_dataset_describe(d);
    const struct form f = form_of(difference);
    void *field[CVY_FIELD_MAX] = {0};
    float weight = 0;
    TRUE_THAT(like->nfield == 2 && like->nclasses == info->nclasses && info->nsamples == N);
    for (int k = 0; k < 2; k++) /* of the sizes of the training */
        field[k] = malloc((size_t)cvy_shape_elems(&like->field[k].shape) * cvy_dtype_bytes(like->field[k].dtype));
    field[2] = &weight;
    for (int i = comm->rank; i < N; i += comm->nranks) {
        const float *x = field[0];
        OK(cvy_dataset_read(d, i, 0, field));
        const int which = val->sorts ? (int)lroundf((x[0] * 255 - 20) / 25) : i;
        const int label = *(int32_t *)field[1];
        for (int k = 0; k < SIDE * SIDE; k++)
            TRUE_THAT(fabsf(x[k] * 255 - pixel(which, k / SIDE, k % SIDE)) < 0.01f);
        if (both_named || !val->is_named)
            TRUE_THAT(label == class_of(&f, which));
    }
    free(field[0]);
    free(field[1]);
}

static int open_pair(const cvy_dataset *train, const char *text, cvy_dataset **out)
{
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    const cvy_data_form like = cvy_dataset_form(train);
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "source", text, strlen(text), &tree));
    const cvy_status status = cvy_dataset_open_like(tree, NULL, 7, 1, &like, out);
    cvy_pool_destroy(&pool);
    return status;
}

static int check_pair(const cvy_dataset *train, int a, int b, int difference, cvy_comm *comm)
{
    cvy_dataset *d = NULL;
    const cvy_status mine = open_pair(train, source[b][difference], &d);
    char text[2048];
    snprintf(text, sizeof text, "%s", mine == CVY_OK ? "" : cvy_error_text());
    TRUE_THAT(cvy_comm_agree(comm, mine) == mine);
    if ((mine == CVY_OK) != expected(&kinds[a], &kinds[b], difference) ||
        (mine != CVY_OK && !strstr(text, "training data") && !strstr(text, "trained on"))) {
        fprintf(stderr, "training %s, further data %s with %s: status %d, %s\n", kinds[a].name, kinds[b].name,
                difference_name[difference], mine, text);
        exit(1);
    }
    if (mine == CVY_OK)
        check_samples(train, d, &kinds[b], difference, kinds[a].is_named && kinds[b].is_named, comm);
    cvy_dataset_destroy(&d);
    return mine == CVY_OK;
}

static void test_pairs(cvy_comm *comm)
{
    int agree = 0, refused = 0;
    for (int k = 0; k < KINDS; k++)
        for (int difference = 0; difference < DIFFERENCES; difference++) {
            char name[40];
            const struct form f = form_of(difference);
            snprintf(name, sizeof name, "set-%d-%d", k, difference);
            if (!kinds[k].put(name, &f, source[k][difference]))
                source[k][difference][0] = 0;
        }
    for (int a = 0; a < KINDS; a++) {
        cvy_dataset *train = NULL;
        if (!source[a][SAME][0])
            continue;
        OK(open_text(source[a][SAME], NULL, 0, &train));
        for (int b = 0; b < KINDS; b++)
            for (int difference = 0; difference < DIFFERENCES; difference++)
                if (source[b][difference][0]) {
                    const int agrees = check_pair(train, a, b, difference, comm);
                    agree += agrees;
                    refused += !agrees;
                }
        cvy_dataset_destroy(&train);
    }
    if (comm->rank == 0)
        printf("%d pairs agree, %d are refused\n", agree, refused);
    TRUE_THAT(agree > 50 && refused > 100);
}

int main(int argc, char **argv)
{
    cvy_comm *comm = NULL;
    MPI_Init(&argc, &argv);
    OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &comm));
    if (access("/dev/shm", W_OK) == 0) /* conversions flush their files */
        setenv("TMPDIR", "/dev/shm", 0);
    scratch_make();
    test_pairs(comm);
    scratch_remove();
    comm->ops->destroy(comm);
    MPI_Finalize();
    return 0;
}
