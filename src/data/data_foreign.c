/*
 * data_foreign.c: says what a file is that no reader takes, and what to do with it: archives, compressed files,
 * pickles, and files of other programs.
 *
 * The search for a reader calls it when none was found. It looks at the name and the first bytes; nothing is unpacked
 * or run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_reader.h"

#include <string.h>

#include "base/base_file.h"

/* Suffixes are compared first, then bytes at an offset. The first row that fits counts. */
static const struct foreign {
    const char *suffix; /* NULL: any name */
    int at, bytes;      /* bytes 0: any content */
    const char *magic, *what, *cure;
} known[] = {
#define CLASSIC "convert it to NetCDF-4: nccopy -k nc4 IN OUT"
#define PICTURE "convert the pictures to PNG"
#define NUMPY "read it in Python and write its arrays by numpy.save, or as data sets of an HDF5 file"
#define UNPACK "unpack it, and name the files or the folder in it"
#define PYTORCH "save its arrays by numpy.save(NAME, tensor.numpy()); the weights of a network are exported to ONNX"
    {".onnx", 0, 0, "", "a network and no data",
     "`convoy bench --model` and `convoy time` take it, `convoy predict` applies it, and model: {onnx: FILE} in a job "
     "file trains it"},
    {".pt", 0, 0, "", "a file of PyTorch", PYTORCH},
    {".pth", 0, 0, "", "a file of PyTorch", PYTORCH},
    {".safetensors", 0, 0, "", "a file of weights and no data", "`convoy inspect` lists it"},
    {".tar.gz", 0, 2, "\x1f\x8b", "a compressed tar archive", "unpack it by tar -xzf, and name the folder"},
    {".tgz", 0, 2, "\x1f\x8b", "a compressed tar archive", "unpack it by tar -xzf, and name the folder"},
    {NULL, 257, 5, "ustar", "a tar archive", "unpack it by tar -xf, and name the folder"},
    {".tar", 0, 0, "", "a tar archive", "unpack it by tar -xf, and name the folder"},
    {NULL, 0, 2, "\x1f\x8b", "compressed by gzip", "unpack it by gunzip"},
    {NULL, 0, 3, "BZh", "compressed by bzip2", "unpack it by bunzip2"},
    {NULL, 0, 6,
     "\xfd"
     "7zXZ\0",
     "compressed by xz", "unpack it by unxz"},
    {NULL, 0, 4, "\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it by unzstd"},
    {NULL, 0, 4, "\x04\x22\x4d\x18", "compressed by lz4", "unpack it by unlz4"},
    {NULL, 0, 6, "7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK},
    {NULL, 0, 4, "Rar!", "a rar archive", UNPACK},
    {".xlsx", 0, 2, "PK", "an Excel workbook", "save the sheet as CSV"},
    {".keras", 0, 2, "PK", "a network of Keras and no data", "export it to ONNX; model: {onnx: FILE} trains it"},
    {NULL, 0, 4, "PK\3\4", "a zip archive", "unpack it by unzip, and name the files or the folder in it"},
    {NULL, 0, 4, "\xd0\xcf\x11\xe0", "an old Excel or Word document", "save the sheet as CSV"},
    {NULL, 0, 4, "PAR1", "a Parquet file", "write it as CSV, or its columns by numpy.save (pandas.read_parquet)"},
    {NULL, 0, 6, "ARROW1", "an Arrow file", "write it as CSV, or its columns by numpy.save (pyarrow)"},
    {NULL, 0, 4, "FEA1", "a Feather file", "write it as CSV, or its columns by numpy.save (pandas.read_feather)"},
    {NULL, 0, 3, "ORC", "an ORC file", "write it as CSV, or its columns by numpy.save (pyarrow.orc)"},
    {NULL, 0, 4, "Obj\1", "an Avro file", "write it as CSV"},
    {NULL, 0, 15, "SQLite format 3", "an SQLite database", "write the table as CSV: sqlite3 -header -csv FILE QUERY"},
    {NULL, 0, 5, "root\0", "a ROOT file", "write its branches as data sets of an HDF5 file (uproot and h5py)"},
    {NULL, 0, 4, "GRIB", "a GRIB file", "convert it to NetCDF-4 (cdo -f nc4 copy IN OUT, or grib_to_netcdf -k 4)"},
    {NULL, 0, 4, "\x0e\x03\x13\x01", "an HDF4 file", "convert it to HDF5 (h4toh5 IN OUT)"},
    {NULL, 0, 10, "MATLAB 5.0", "a MATLAB 5 file",
     "save it in MATLAB by save(NAME, '-v7.3'), which is HDF5, or in Python by scipy.io.loadmat and numpy.save; labels "
     "of "
     "a folder of pictures are read from it: {path: FOLDER, labels: FILE}"},
    {NULL, 0, 4, "CDF\1", "a classic NetCDF file", CLASSIC},
    {NULL, 0, 4, "CDF\2", "a classic NetCDF file", CLASSIC},
    {NULL, 0, 4, "CDF\5", "a classic NetCDF file", CLASSIC},
    {NULL, 0, 4, "II*\0", "a TIFF picture",
     PICTURE ", which may have 16 bits, or, if they are reals, to a npy or HDF5 array"},
    {NULL, 0, 4, "MM\0*", "a TIFF picture",
     PICTURE ", which may have 16 bits, or, if they are reals, to a npy or HDF5 array"},
    {NULL, 0, 4, "II+\0", "a TIFF picture",
     PICTURE ", which may have 16 bits, or, if they are reals, to a npy or HDF5 array"},
    {NULL, 0, 4, "MM\0+", "a TIFF picture",
     PICTURE ", which may have 16 bits, or, if they are reals, to a npy or HDF5 array"},
    {NULL, 8, 4, "WEBP", "a WebP picture", PICTURE},
    {NULL, 0, 4, "GIF8", "a GIF picture", PICTURE},
    {".bmp", 0, 2, "BM", "a BMP picture", PICTURE},
    {NULL, 4, 4, "jP  ", "a JPEG 2000 picture", PICTURE},
    {NULL, 4, 8, "ftypheic", "a HEIC picture", PICTURE},
    {NULL, 4, 8, "ftypavif", "an AVIF picture", PICTURE},
    {NULL, 4, 4, "ftyp", "a video", "write its frames as PNG"},
    {NULL, 8, 3, "AVI", "a video", "write its frames as PNG"},
    {".pgm", 0, 1, "P", "a PGM picture", PICTURE},
    {".ppm", 0, 1, "P", "a PPM picture", PICTURE},
    {NULL, 128, 4, "DICM", "a DICOM file", NUMPY " (pydicom)"},
    {".nii", 0, 0, "", "a NIfTI volume", NUMPY " (nibabel)"},
    {NULL, 0, 4, "NRRD", "a NRRD volume", NUMPY " (pynrrd)"},
    {".pkl", 0, 0, "", "a pickle of Python, which is not read because it may run commands", NUMPY},
    {".pickle", 0, 0, "", "a pickle of Python, which is not read because it may run commands", NUMPY},
    {NULL, 0, 2, "\x80\2", "a pickle of Python, which is not read because it may run commands", NUMPY},
    {NULL, 0, 2, "\x80\3", "a pickle of Python, which is not read because it may run commands", NUMPY},
    {NULL, 0, 2, "\x80\4", "a pickle of Python, which is not read because it may run commands", NUMPY},
    {NULL, 0, 2, "\x80\5", "a pickle of Python, which is not read because it may run commands", NUMPY},
    {".json", 0, 0, "", "a JSON file", "write a table as CSV, and arrays by numpy.save"},
    {".jsonl", 0, 0, "", "a JSON file", "write a table as CSV, and arrays by numpy.save"},
    {".rds", 0, 0, "", "a file of R", "write the table by write.csv"},
    {".png", 0, 0, "", "neither a JPEG nor a PNG, though its name says so", "write the picture anew as PNG"},
    {".jpg", 0, 0, "", "neither a JPEG nor a PNG, though its name says so", "write the picture anew as PNG"},
    {".jpeg", 0, 0, "", "neither a JPEG nor a PNG, though its name says so", "write the picture anew as PNG"},
#undef CLASSIC
#undef PICTURE
#undef NUMPY
#undef UNPACK
#undef PYTORCH
};

static const struct foreign *find(const char *path)
{
    char head[264] = {0};
    const size_t n = cvy_data_peek(path, head, sizeof head);
    for (int i = 0; i < CVY_COUNT(known); i++) {
        const struct foreign *k = &known[i];
        if ((!k->suffix || cvy_data_has_suffix(path, k->suffix)) && (size_t)(k->at + k->bytes) <= n &&
            memcmp(head + k->at, k->magic, (size_t)k->bytes) == 0)
            return k;
    }
    return NULL;
}

/* CIFAR as it is offered for Python is a folder of pickles with these names. */
static int is_python_cifar(const char *folder)
{
    return (cvy_data_has_file(folder, "batches.meta") || cvy_data_has_file(folder, "meta")) &&
           (cvy_data_has_file(folder, "data_batch_1") || cvy_data_has_file(folder, "train"));
}

static cvy_status check_file(const char *path)
{
    const char *folder = NULL;
    cvy_pool *pool = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = cvy_data_folder_of(pool, path, &folder);
    const int is_cifar = status == CVY_OK && is_python_cifar(folder);
    cvy_pool_destroy(&pool);
    CVY_TRY(status);
    const struct foreign *k = find(path);
    char head[1];
    CVY_CHECK(k || cvy_data_peek(path, head, sizeof head) > 0, CVY_E_FORMAT, "%s: is empty", path);
    CVY_CHECK(!k || !is_cifar, CVY_E_UNSUPPORTED,
              "%s: is a file of CIFAR's Python version, a pickle, which is not read because it may run commands: take "
              "the binary version (cifar-10-binary.tar.gz, cifar-100-binary.tar.gz)",
              path);
    CVY_CHECK(!k, CVY_E_UNSUPPORTED, "%s: is %s: %s", path, k->what, k->cure);
    return CVY_OK;
}

/* Says what the first file of a folder, or of the folders in it, is that is known and no data. */
static cvy_status check_files(cvy_pool *pool, const char *root, const char *folder, int depth)
{
    char **name = NULL;
    int64_t n = 0;
    const char *path = NULL;
    CVY_TRY(cvy_file_list(pool, folder, &name, &n));
    for (int64_t i = 0; i < n; i++) {
        if (name[i][0] == '.')
            continue;
        CVY_TRY(cvy_data_path_join(pool, folder, name[i], &path));
        if (cvy_file_is_folder(path)) {
            CVY_TRY(depth > 0 ? check_files(pool, root, path, depth - 1) : CVY_OK);
            continue;
        }
        const struct foreign *k = find(path);
        CVY_CHECK(!k, CVY_E_UNSUPPORTED, "%s: holds no data of a format that is read; %s is %s: %s", root, path,
                  k->what, k->cure);
    }
    return CVY_OK;
}

/* A Zarr store of version 2 or 3 is a folder with one of these files. */
static int is_zarr(const char *folder)
{
    static const char *const name[] = {".zgroup", ".zarray", ".zmetadata", "zarr.json"};
    int has = 0;
    for (int i = 0; i < CVY_COUNT(name); i++)
        has |= cvy_data_has_file(folder, name[i]);
    return has;
}

static cvy_status check_folder(cvy_pool *pool, const char *folder)
{
    CVY_CHECK(
        !is_zarr(folder), CVY_E_UNSUPPORTED,
        "%s: is a Zarr store: write it as NetCDF-4 (xarray.open_zarr(IN).to_netcdf(OUT)), or an array by numpy.save",
        folder);
    CVY_CHECK(
        !is_python_cifar(folder), CVY_E_UNSUPPORTED,
        "%s: is CIFAR's Python version, whose pickles are not read because they may run commands: take the binary "
        "version (cifar-10-binary.tar.gz, cifar-100-binary.tar.gz)",
        folder);
    return check_files(pool, folder, folder, 1);
}

cvy_status cvy_foreign_check(const char *path)
{
    cvy_pool *pool = NULL;
    if (!cvy_file_is_folder(path))
        return check_file(path);
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = check_folder(pool, path);
    cvy_pool_destroy(&pool);
    return status;
}
