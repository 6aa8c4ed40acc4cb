/*
 * data_inflate.c: see data_inflate.h. libdeflate decompresses and verifies. It is several times as fast as zlib, which
 * the HDF5 library uses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_inflate.h"

#if CVY_HAVE_LIBDEFLATE
#include <libdeflate.h>

cvy_status cvy_inflate(const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    CVY_CHECK(d, CVY_E_MEMORY, "libdeflate cannot start");
    size_t used = 0, got = 0;
    const enum libdeflate_result result = libdeflate_zlib_decompress_ex(d, in, in_bytes, out, out_bytes, &used, &got);
    libdeflate_free_decompressor(d);
    CVY_CHECK(result != LIBDEFLATE_BAD_DATA, CVY_E_FORMAT, "%zu bytes do not unpack to %zu: they are damaged", in_bytes,
              out_bytes);
    CVY_CHECK(result != LIBDEFLATE_INSUFFICIENT_SPACE, CVY_E_FORMAT, "%zu bytes unpack to more than %zu", in_bytes,
              out_bytes);
    CVY_CHECK(result == LIBDEFLATE_SUCCESS && got == out_bytes, CVY_E_FORMAT, "%zu bytes unpack to %zu, expected %zu",
              in_bytes, got, out_bytes);
    return CVY_OK;
}
#else
cvy_status cvy_inflate(const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    (void)in, (void)in_bytes, (void)out, (void)out_bytes;
    CVY_FAIL(CVY_E_UNSUPPORTED, "libdeflate is not part of this build");
}
#endif
