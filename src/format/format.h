/*
 * format.h: the files that a run itself writes and reads: safetensors. (metrics.jsonl and plan.json are written with
 * the JSON writer of the base.)
 */
#ifndef CVY_FORMAT_H
#define CVY_FORMAT_H

#include "graph/graph.h"

typedef struct cvy_tensor_entry {
    const char *name;
    cvy_dtype dtype;
    cvy_shape shape;
    const void *data; /* plain, row-major */
} cvy_tensor_entry;

/* Writes a valid safetensors file (header JSON, 8-byte aligned data) aside, fsyncs, renames. meta: pairs key, value,
 * ..., NULL; may be NULL. *hash_out (may be NULL) is cvy_hash of the file's bytes, *bytes_out its size. */
cvy_status cvy_safetensors_write(const char *path, const cvy_tensor_entry *entry, int count, const char *const *meta,
                                 uint64_t *hash_out, size_t *bytes_out);

/* The same without all tensors in memory at once: fetch(user, i) says where the plain data of entry i lies, valid until
 * the next fetch; entry[i].data is not looked at. */
typedef cvy_status (*cvy_tensor_fetch_fn)(void *user, int i, const void **data_out);
cvy_status cvy_safetensors_write_fetched(const char *path, const cvy_tensor_entry *entry, int count,
                                         const char *const *meta, cvy_tensor_fetch_fn fetch, void *user,
                                         uint64_t *hash_out, size_t *bytes_out);

typedef struct cvy_safetensors cvy_safetensors;
/* Maps the file; every offset, dtype and shape of the header is checked against the file's size before use: no overlap,
 * no hole, no name twice. A dtype that cvy_dtype does not have (BF16, F16, BOOL, ...) is listed with dtype
 * CVY_DTYPE_COUNT; F16 and BF16 can be read by cvy_safetensors_read. */
cvy_status cvy_safetensors_open(const char *path, cvy_safetensors **out);
int cvy_safetensors_count(const cvy_safetensors *f);
const cvy_tensor_entry *cvy_safetensors_at(const cvy_safetensors *f,
                                           int i);                  /* data points into the mapping; may be unaligned */
const char *cvy_safetensors_dtype(const cvy_safetensors *f, int i); /* as the file has it: "F32", "BF16" */
const cvy_tensor_entry *cvy_safetensors_find(const cvy_safetensors *f, const char *name); /* NULL if absent */
int cvy_safetensors_index(const cvy_safetensors *f, const char *name);                    /* or -1 */
/* Copies tensor i to out, converted to dtype: F16, BF16, F32 and F64 become f32 or f64, other dtypes only themselves.
 * Reads with pread, so that a failing disk is a fault with path and errno, not a signal. */
cvy_status cvy_safetensors_read(const cvy_safetensors *f, int i, cvy_dtype dtype, void *out);
const char *cvy_safetensors_meta(const cvy_safetensors *f, const char *key); /* NULL if absent */
void cvy_safetensors_close(cvy_safetensors **f);

#endif
