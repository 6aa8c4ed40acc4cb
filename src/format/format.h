/*
 * format.h: safetensors, the file format which a run writes and reads itself. (The JSON writer in base writes
 * metrics.jsonl and plan.json.)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_FORMAT_H
#define CVY_FORMAT_H

#include "graph/graph.h"

typedef struct cvy_tensor_entry {
    const char *name;
    cvy_dtype dtype;
    cvy_shape shape;
    const void *data; /* contiguous, row-major */
} cvy_tensor_entry;

/* Writes a valid safetensors file (header JSON, 8-byte aligned data) under a temporary name, fsyncs it and renames it.
 * meta: pairs key, value, ..., NULL; may be NULL. *hash_out (may be NULL) is cvy_hash of the file's bytes, *bytes_out
 * its size. */
cvy_status cvy_safetensors_write(const char *path, const cvy_tensor_entry *entry, int count, const char *const *meta,
                                 uint64_t *hash_out, size_t *bytes_out);

/* Does the same without having all tensors in memory at once. fetch(user, i) returns the contiguous data of entry i,
 * which stay valid until the next fetch; entry[i].data is not used. */
typedef cvy_status (*cvy_tensor_fetch_fn)(void *user, int i, const void **data_out);
cvy_status cvy_safetensors_write_fetched(const char *path, const cvy_tensor_entry *entry, int count,
                                         const char *const *meta, cvy_tensor_fetch_fn fetch, void *user,
                                         uint64_t *hash_out, size_t *bytes_out);

typedef struct cvy_safetensors cvy_safetensors;
/* Maps the file. Every offset, dtype and shape of the header is checked against the file's size before use; overlaps,
 * holes and duplicate names are errors. A dtype that cvy_dtype does not have (BF16, F16, BOOL, ...) is listed with
 * dtype CVY_DTYPE_COUNT; F16 and BF16 can be read by cvy_safetensors_read. */
cvy_status cvy_safetensors_open(const char *path, cvy_safetensors **out);
int cvy_safetensors_count(const cvy_safetensors *f);
const cvy_tensor_entry *cvy_safetensors_at(const cvy_safetensors *f,
                                           int i);                  /* data points into the mapping; may be unaligned */
const char *cvy_safetensors_dtype(const cvy_safetensors *f, int i); /* its name in the file: "F32", "BF16" */
const cvy_tensor_entry *cvy_safetensors_find(const cvy_safetensors *f, const char *name); /* NULL if absent */
int cvy_safetensors_index(const cvy_safetensors *f, const char *name);                    /* -1 if absent */
/* Copies tensor i to out, converted to dtype: F16, BF16, F32 and F64 can become f32 or f64, other dtypes only
 * themselves. It uses pread, so that a failing disk is an error with path and errno, not a signal. */
cvy_status cvy_safetensors_read(const cvy_safetensors *f, int i, cvy_dtype dtype, void *out);
const char *cvy_safetensors_meta(const cvy_safetensors *f, const char *key); /* NULL if absent */
void cvy_safetensors_close(cvy_safetensors **f);

#endif
