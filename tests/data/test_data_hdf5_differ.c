/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_hdf5_differ.c: the HDF5 reader, with its own reader of chunks, gives the numbers that libhdf5 gives: files
 * with random shapes, chunks, types, filters, formats, fill values and chunks that are missing, not filtered at the
 * edge, or written without some filter. CONVOY_HDF5_SEEDS says how many (120); CONVOY_HDF5_FILES names a folder of
 * files with a data set x to compare instead, in which files may also be refused (tests/data/hdf5_options.py makes
 * some). */
#include "test_data_hdf5.h"

#include <stdio.h>

#include "data/data_index.h"

#if CVY_HAVE_HDF5

enum { AXES_MAX = 5 };

/* ---- reading in two ways ---- */

/* Reads x as libhdf5 does. Returns 0 if it cannot. */
static int read_by_library(const char *path, int *ndim, hsize_t *dim, double **out)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT),
                set = file < 0 ? -1 : H5Dopen2(file, "x", H5P_DEFAULT);
    int good = 0;
    *out = NULL;
    if (set >= 0) {
        const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
        /* of one byte; the library does not convert them to reals */
        const int is_truth = H5Tget_class(type) == H5T_ENUM || H5Tget_class(type) == H5T_BITFIELD;
        const hssize_t n = H5Sget_simple_extent_npoints(space);
        *ndim = H5Sget_simple_extent_dims(space, dim, NULL);
        *out = calloc((size_t)n + 1, sizeof **out);
        good = H5Dread(set, is_truth ? type : H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, *out) >= 0;
        for (hssize_t i = n - 1; i >= 0 && good && is_truth; i--)
            (*out)[i] = ((const int8_t *)*out)[i];
        H5Tclose(type);
        H5Sclose(space);
        H5Dclose(set);
    }
    if (file >= 0)
        H5Fclose(file);
    return good;
}

typedef enum { SAME, REFUSED, OTHER } verdict;

/* Reads all samples, in an order that jumps, and compares them with the numbers of the library; want NULL: it could not
 * read them. */
static verdict compare_samples(cvy_dataset *d, int64_t rows, int64_t elems, const double *want)
{
    float *x = malloc((size_t)elems * sizeof *x + 1);
    verdict found = cvy_dataset_describe(d)->nsamples == rows ? SAME : OTHER;
    for (int64_t k = 0; k < 2 * rows && found == SAME; k++) {
        const int64_t i = k * 7 % rows;
        if (cvy_dataset_read(d, i, 0, (void *[]){x}) != CVY_OK)
            found = REFUSED;
        for (int64_t e = 0; e < elems && found == SAME && want; e++)
            if (x[e] != (float)want[i * elems + e]) {
                cvy_error_set(CVY_E_INTERNAL, "sample %lld, number %lld: %g, but libhdf5 reads %g", (long long)i,
                              (long long)e, (double)x[e], want[i * elems + e]);
                found = OTHER;
            }
    }
    free(x);
    if (found == SAME && !want) {
        cvy_error_set(CVY_E_INTERNAL, "it is read, but libhdf5 does not read it");
        found = OTHER;
    }
    return found;
}

static verdict compare(const char *path, int *readable_out)
{
    static const char *const axes[AXES_MAX + 1] = {
        "", "", "axes: NF, ", "axes: NHW, ", "axes: NCHW, ", "axes: NCDHW, "};
    hsize_t dim[H5S_MAX_RANK] = {0};
    double *want = NULL;
    int ndim = 0;
    char text[1024];
    cvy_dataset *d = NULL;
    const int readable = *readable_out = read_by_library(path, &ndim, dim, &want);
    snprintf(text, sizeof text,
             "{path: \"%s\", format: hdf5, x: x, %sy: none, label: none, weight: none, sandbox: false}", path,
             readable && ndim <= AXES_MAX ? axes[ndim] : "");
    verdict found = open_text(text, "[{scale: 1}]", 0, &d) == CVY_OK ? SAME : REFUSED;
    if (found == SAME) {
        int64_t elems = 1;
        for (int i = 1; i < ndim; i++)
            elems *= (int64_t)dim[i];
        found = compare_samples(d, (int64_t)dim[0], elems, readable ? want : NULL);
    }
    cvy_dataset_destroy(&d);
    free(want);
    return found;
}

/* ---- random files ---- */

static uint64_t state;

static int below(int bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)bound);
}

struct form {
    int ndim, chunked, nfilter;
    hsize_t dim[AXES_MAX], most[AXES_MAX], chunk[AXES_MAX], elems, chunk_elems;
};

static struct form random_form(void)
{
    struct form f = {.ndim = 1 + below(AXES_MAX), .chunked = below(5) > 0, .elems = 1, .chunk_elems = 1};
    const int unlimited = f.chunked ? below(4) : 0; /* axes that may grow: another index of chunks for 0, 1 and more */
    for (int i = 0; i < f.ndim; i++) {
        f.dim[i] = (hsize_t)(i == 0 ? 1 + below(40) : 1 + below(7));
        f.most[i] = i < unlimited ? H5S_UNLIMITED : f.dim[i];
        f.chunk[i] = (hsize_t)(1 + below((int)f.dim[i] + (i < unlimited ? 3 : 0)));
        if (below(6) == 0)
            f.chunk[i] = f.dim[i];
        f.elems *= f.dim[i];
        f.chunk_elems *= f.chunk[i];
    }
    return f;
}

static hid_t random_type(void)
{
    const hid_t type[] = {H5T_STD_U8LE,   H5T_STD_I8LE,   H5T_STD_U16BE, H5T_STD_I16LE,  H5T_STD_U32LE,
                          H5T_STD_I32BE,  H5T_STD_U64LE,  H5T_STD_I64LE, H5T_IEEE_F32LE, H5T_IEEE_F32BE,
                          H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_NATIVE_B8};
    const int k = below(CVY_COUNT(type) + 2);
    return k == CVY_COUNT(type) ? half() : k > CVY_COUNT(type) ? truth() : H5Tcopy(type[k]);
}

static void add_filters(struct form *f, hid_t made, hid_t type)
{
    const H5T_class_t class = H5Tget_class(type);
    const int packs = below(12); /* szip behind these gives other numbers at each read, also by the library alone */
    unsigned config = 0;
    if (packs == 0 && class == H5T_INTEGER)
        f->nfilter += H5Pset_scaleoffset(made, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT) >= 0;
    else if (packs == 1)
        f->nfilter += H5Pset_nbit(made) >= 0;
    if (below(2))
        f->nfilter += H5Pset_shuffle(made) >= 0;
    if (packs > 1 && below(10) == 0 && H5Zget_filter_info(H5Z_FILTER_SZIP, &config) >= 0 &&
        (config & H5Z_FILTER_CONFIG_ENCODE_ENABLED) && f->chunk_elems >= 16 && class != H5T_ENUM)
        f->nfilter += H5Pset_szip(made, H5_SZIP_NN_OPTION_MASK, 8) >= 0;
    else if (below(2))
        f->nfilter += H5Pset_deflate(made, (unsigned)below(10)) >= 0;
    if (below(3) == 0)
        f->nfilter += H5Pset_fletcher32(made) >= 0;
}

static hid_t creation(struct form *f, hid_t type)
{
    const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
    const uint8_t fill[8] = {1};
    if (f->chunked) {
        H5Pset_chunk(made, f->ndim, f->chunk);
        if (below(3) > 0)
            add_filters(f, made, type);
        if (below(3) == 0)
            H5Pset_chunk_opts(made, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    } else if (below(3) == 0) {
        H5Pset_layout(made, H5D_COMPACT);
    }
    if (below(2) && H5Tget_class(type) == H5T_INTEGER)
        H5Pset_fill_value(made, type, fill);
    else if (f->chunked && below(4) == 0)
        H5Pset_fill_value(made, type, NULL); /* chunks that were never written are zeros then */
    if (below(3) == 0)
        H5Pset_alloc_time(made, H5D_ALLOC_TIME_EARLY);
    return made;
}

/* Writes the numbers, or those of some rows only; then perhaps a whole chunk without its filters. */
static void write_some(hid_t set, const struct form *f, hid_t type)
{
    hsize_t start[AXES_MAX] = {0}, count[AXES_MAX];
    const int is_plain = H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_FLOAT;
    double *v = values((int64_t)f->elems);
    for (hsize_t i = 0; i < f->elems && !is_plain; i++)
        ((uint8_t *)v)[i] = (uint8_t)(i % 2);
    memcpy(count, f->dim, sizeof count);
    if (below(4) == 0) {
        start[0] = (hsize_t)below((int)f->dim[0]);
        count[0] = 1 + (hsize_t)below((int)(f->dim[0] - start[0]));
    }
    const hid_t space = H5Dget_space(set), memory = H5Screate_simple(f->ndim, count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    TRUE_THAT(H5Dwrite(set, is_plain ? H5T_NATIVE_DOUBLE : type, memory, space, H5P_DEFAULT, v) >= 0);
    H5Sclose(memory);
    H5Sclose(space);
    if (f->nfilter > 0 && below(3) == 0) {
        const size_t bytes = (size_t)f->chunk_elems * H5Tget_size(type);
        uint8_t *raw = calloc(bytes, 1);
        const hsize_t first[AXES_MAX] = {0};
        for (size_t i = 0; i < bytes; i += H5Tget_size(type))
            raw[i] = (uint8_t)(H5Tget_class(type) == H5T_INTEGER && i % 3);
        H5Dwrite_chunk(set, H5P_DEFAULT, (1u << f->nfilter) - 1, first, bytes, raw);
        free(raw);
    }
    free(v);
}

/* Returns 0 if the library does not make such a data set, as with some filters of some types. */
static int make_file(const char *path)
{
    const H5F_libver_t format[] = {H5F_LIBVER_EARLIEST, H5F_LIBVER_V18, H5F_LIBVER_LATEST};
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), created = H5Pcreate(H5P_FILE_CREATE);
    struct form f = random_form();
    H5Pset_libver_bounds(access, format[below(3)], H5F_LIBVER_LATEST);
    if (below(8) == 0)
        H5Pset_userblock(created, 512);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, created, access), type = random_type();
    const hid_t space = H5Screate_simple(f.ndim, f.dim, f.most), made = creation(&f, type);
    const hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, made, H5P_DEFAULT);
    TRUE_THAT(file >= 0);
    if (set >= 0 && below(8) > 0)
        write_some(set, &f, type);
    if (set >= 0)
        H5Dclose(set);
    H5Pclose(made);
    H5Sclose(space);
    H5Tclose(type);
    H5Fclose(file);
    H5Pclose(created);
    H5Pclose(access);
    return set >= 0;
}

/* ---- many files ---- */

static void compare_random(int count)
{
    int made = 0, readable = 0;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int seed = 0; seed < count; seed++) {
        state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
        if (!make_file(in_scratch("random.h5")))
            continue;
        made++;
        const verdict found = compare(in_scratch("random.h5"), &readable);
        if (found != (readable ? SAME : REFUSED)) {
            fprintf(stderr, "seed %d: %s\n", seed, cvy_error_text());
            exit(1);
        }
    }
    TRUE_THAT(made >= count * 3 / 4);
}

static int is_any(const char *name)
{
    return name[0] != '.';
}

static void compare_folder(const char *folder)
{
    cvy_pool *pool = NULL;
    const char **path = NULL;
    int64_t n = 0, of[3] = {0};
    int readable = 0;
    OK(cvy_pool_create(&pool));
    OK(cvy_data_files(pool, folder, is_any, "file", &path, &n, NULL));
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int64_t i = 0; i < n; i++) {
        const verdict found = compare(path[i], &readable);
        if (found != SAME)
            printf("%s: %s: %s\n", found == OTHER ? "other" : "refused", path[i], cvy_error_text());
        of[found]++;
    }
    printf("%lld files: %lld the same, %lld refused, %lld other\n", (long long)n, (long long)of[SAME],
           (long long)of[REFUSED], (long long)of[OTHER]);
    cvy_pool_destroy(&pool);
    TRUE_THAT(of[OTHER] == 0);
}

int main(void)
{
    const char *folder = getenv("CONVOY_HDF5_FILES"), *count = getenv("CONVOY_HDF5_SEEDS");
    scratch_make();
    if (folder)
        compare_folder(folder);
    else
        compare_random(count ? atoi(count) : 120);
    scratch_remove();
    return 0;
}

#else
int main(void)
{
    puts("HDF5 is not part of this build");
    return 77;
}
#endif
