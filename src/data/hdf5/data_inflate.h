/*
 * data_inflate.h: unpacks zlib streams of known size, as HDF5 packs its chunks.
 */
#ifndef CVY_DATA_INFLATE_H
#define CVY_DATA_INFLATE_H

#include "base/base_mem.h"

/* Unpacks a whole stream to exactly out_bytes and checks its checksum. CVY_E_FORMAT says what is wrong;
 * CVY_E_UNSUPPORTED: a build without libdeflate. */
cvy_status cvy_inflate(const void *in, size_t in_bytes, void *out, size_t out_bytes);

#endif
