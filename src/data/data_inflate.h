/*
 * data_inflate.h: decompresses streams of known size: zlib's, which HDF5 chunks are, and deflated members of gzip and
 * zip files; and whole files of gzip or zlib whose size is not known. Compresses to gzip.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_INFLATE_H
#define CVY_DATA_INFLATE_H

#include "data/data_reader.h"

/* Decompresses a whole zlib stream to exactly out_bytes and verifies its checksum. CVY_E_FORMAT says what is wrong.
 * CVY_E_UNSUPPORTED: this build has no libdeflate. */
cvy_status cvy_inflate(const void *in, size_t in_bytes, void *out, size_t out_bytes);
/* Decompresses a zlib stream of unknown size; bytes after its end are ignored. */
cvy_status cvy_inflate_any(const void *in, size_t in_bytes, cvy_bytes *out);

typedef enum { CVY_INFLATE_GZIP, CVY_INFLATE_RAW, CVY_INFLATE_ZLIB } cvy_inflate_kind;
/* Unpacks `packed` bytes of a file at `offset` into an anonymous file in memory of exactly `bytes`, whose checksum is
 * verified: gzip's own, or `crc` of a raw deflated stream. out->path is that of the file; the caller closes *out. Other
 * errors as above, and CVY_E_UNSUPPORTED for far more memory than the packed bytes justify. */
cvy_status cvy_inflate_file(const cvy_data_file *from, cvy_inflate_kind kind, int64_t offset, int64_t packed,
                            int64_t bytes, uint32_t crc, cvy_data_file *out);
/* The same for a whole file of gzip, which knows its size. Closes *file and replaces it. */
cvy_status cvy_inflate_gzip(cvy_data_file *file);
/* Unpacks a whole file of gzip, with any number of members, or of zlib, neither of which need say its size, into an
 * anonymous file in memory. out and errors as of cvy_inflate_file(). */
typedef struct cvy_inflate_ask {
    cvy_inflate_kind kind;
    int64_t bytes; /* without compression, if known; else -1 */
    int64_t most;  /* bytes of memory that it may take; -1: not known */
} cvy_inflate_ask;
cvy_status cvy_inflate_stream(const cvy_data_file *from, const cvy_inflate_ask *ask, cvy_data_file *out);
/* Compresses to a member of gzip, which begins at out->data; out->bytes is its size. */
cvy_status cvy_deflate_gzip(const void *in, size_t bytes, cvy_bytes *out);
/* CVY_E_UNSUPPORTED for far more memory than the packed bytes justify: data that are made to fill it. cure: what to do
 * if that is right. Arrays of measurements shrink to a tenth. */
enum { CVY_INFLATE_LARGE = 1 << 26, CVY_INFLATE_RATIO_MAX = 300 };
cvy_status cvy_inflate_check_ratio(int64_t packed, int64_t bytes, const char *cure);
/* Whether the file begins as gzip's do. */
int cvy_is_gzip(const char *path);

#endif
