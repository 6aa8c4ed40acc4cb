/*
 * data_inflate.h: decompresses zlib streams of known size, which HDF5 chunks are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_INFLATE_H
#define CVY_DATA_INFLATE_H

#include "base/base_mem.h"

/* Decompresses a whole stream to exactly out_bytes and verifies its checksum. CVY_E_FORMAT says what is wrong.
 * CVY_E_UNSUPPORTED: this build has no libdeflate. */
cvy_status cvy_inflate(const void *in, size_t in_bytes, void *out, size_t out_bytes);

#endif
