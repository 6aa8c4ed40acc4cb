/*
 * base_hash.h: checksums: XXH3-64 if libxxhash is built in, otherwise CRC-32C. cvy_hash_name() says which; files record
 * it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_HASH_H
#define CVY_BASE_HASH_H

#include "base/base_status.h"

typedef struct cvy_hasher {
    uint64_t opaque[80];
} cvy_hasher; /* the state of a hash over several blocks of data; it allocates nothing */
void cvy_hash_begin(cvy_hasher *h);
void cvy_hash_add(cvy_hasher *h, const void *data, size_t bytes);
uint64_t cvy_hash_end(cvy_hasher *h);
uint64_t cvy_hash(const void *data, size_t bytes);
const char *cvy_hash_name(void); /* "xxh3" or "crc32c" */
/* CRC-32C exists in every build, so packed data sets and manifests may use it. */
uint32_t cvy_crc32c(uint32_t crc, const void *data, size_t bytes);
/* Hash by the method of this name, for files from another build. CVY_E_UNSUPPORTED: the method is not built in. */
cvy_status cvy_hash_by_name(const char *name, const void *data, size_t bytes, uint64_t *out);

#endif
