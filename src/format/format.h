/*
 * format.h: the files that a run itself writes and reads: safetensors. (metrics.jsonl and plan.json are written with the JSON writer of the base.)
 */
#ifndef CVY_FORMAT_H
#define CVY_FORMAT_H

#include "graph/graph.h"

typedef struct cvy_tensor_entry {
    const char *name;
    cvy_dtype dtype;
    cvy_shape shape;
    const void *data;                  /* plain, row-major */
} cvy_tensor_entry;

/* Writes a valid safetensors file (header JSON, 8-byte aligned data) aside, fsyncs, renames. meta: pairs key, value, ..., NULL; may be NULL.
 * *hash_out (may be NULL) is cvy_hash of the file's bytes, *bytes_out its size. */
cvy_status cvy_safetensors_write(const char *path, const cvy_tensor_entry *entry, int count, const char *const *meta, uint64_t *hash_out, size_t *bytes_out);

typedef struct cvy_safetensors cvy_safetensors;
/* Maps or reads the file; every offset, dtype and shape of the header is checked against the file's size before use; unknown dtypes (BF16, F16) are listed but not readable
 * except F16 and BF16 to f32. */
cvy_status cvy_safetensors_open(const char *path, cvy_safetensors **out);
int cvy_safetensors_count(const cvy_safetensors *f);
const cvy_tensor_entry *cvy_safetensors_at(const cvy_safetensors *f, int i);         /* data points into the mapping; may be unaligned */
const cvy_tensor_entry *cvy_safetensors_find(const cvy_safetensors *f, const char *name);
const char *cvy_safetensors_meta(const cvy_safetensors *f, const char *key);         /* NULL if absent */
void cvy_safetensors_close(cvy_safetensors **f);

#endif
