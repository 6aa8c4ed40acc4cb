/*
 * base_util.h: the small services of the base: counter-based random numbers, hash, clock, log, files, JSON writer.
 */
#ifndef CVY_BASE_UTIL_H
#define CVY_BASE_UTIL_H

#include <stdio.h>

#include "base/base_mem.h"

/* ---- random numbers: Philox 4x32-10 (Salmon et al. 2011), a pure function of key and counter, so any thread, rank or layout gets the same ---- */
typedef struct { uint32_t key[2]; uint32_t stream[2]; } cvy_rng;
/* A stream of its own for (seed, name, a, b): name is a layer or purpose, a and b are step or epoch and sample. */
cvy_rng cvy_rng_make(uint64_t seed, const char *name, uint64_t a, uint64_t b);
uint64_t cvy_rng_name(const char *name);                                       /* hash of a name, to make streams without the text */
cvy_rng cvy_rng_make_hashed(uint64_t seed, uint64_t name, uint64_t a, uint64_t b);
void cvy_rng_block(const cvy_rng *rng, uint64_t counter, uint32_t out[4]);     /* four words of block `counter` */
uint32_t cvy_rng_u32(const cvy_rng *rng, uint64_t index);                      /* word index & 3 of block index >> 2 */
double cvy_rng_uniform(const cvy_rng *rng, uint64_t index);                    /* [0, 1), 53 bits; own block per index */
double cvy_rng_normal(const cvy_rng *rng, uint64_t index);                     /* Box-Muller; own block per index */
uint64_t cvy_rng_below(const cvy_rng *rng, uint64_t index, uint64_t bound);    /* 0 .. bound-1 */

/* ---- a random permutation of 0 .. count-1 that is computed, not stored (a Feistel network with cycle walking): place -> element ---- */
typedef struct { uint64_t count; uint32_t half_bits; uint64_t key; } cvy_permutation;
cvy_permutation cvy_permutation_make(uint64_t seed, uint64_t epoch, uint64_t count);
uint64_t cvy_permutation_at(const cvy_permutation *p, uint64_t place);

/* ---- hash: XXH3-64 where libxxhash is built in, else CRC-32C; cvy_hash_name() says which, files record it ---- */
typedef struct cvy_hasher { uint64_t opaque[80]; } cvy_hasher;                 /* streaming state, no heap */
void cvy_hash_begin(cvy_hasher *h);
void cvy_hash_add(cvy_hasher *h, const void *data, size_t bytes);
uint64_t cvy_hash_end(cvy_hasher *h);
uint64_t cvy_hash(const void *data, size_t bytes);
const char *cvy_hash_name(void);                                               /* "xxh3" or "crc32c" */
uint32_t cvy_crc32c(uint32_t crc, const void *data, size_t bytes);             /* always there: packed sets and manifests may use it */
/* Hash by the named method, for files written by another build; CVY_E_UNSUPPORTED if not built in. */
cvy_status cvy_hash_by_name(const char *name, const void *data, size_t bytes, uint64_t *out);

/* ---- clock ---- */
double cvy_clock_s(void);                       /* monotonic seconds */
double cvy_clock_wall_s(void);                  /* seconds since 1970 by the wall clock, which may be set */
void cvy_clock_sleep(double seconds);           /* by cvy_clock_s; at least so long, mostly some 50 us longer */
void cvy_clock_text(char text[32]);             /* UTC, ISO 8601 */

/* ---- files ---- */
cvy_status cvy_file_read(const char *path, size_t limit_bytes, char **data_out, size_t *bytes_out);   /* NUL added; data freed by cvy_mem_free */
/* open(), goes on where a signal interrupts it; -1: errno says why. */
int cvy_file_open(const char *path, int flags, unsigned mode);
cvy_status cvy_file_cut(int fd, int64_t bytes, const char *path);               /* to so many bytes, in spite of signals */
/* Writes path whole or not at all: aside, fsync, rename, fsync of the folder. Survives short writes and EINTR; path and errno are named. */
cvy_status cvy_file_replace(const char *path, const void *data, size_t bytes);
/* A stream of the same manner: write to *stream_out, then commit or drop. */
typedef struct cvy_file_aside { FILE *stream; char *path, *aside; } cvy_file_aside;
cvy_status cvy_file_aside_open(const char *path, cvy_file_aside *out);
cvy_status cvy_file_aside_commit(cvy_file_aside *file);
void cvy_file_aside_drop(cvy_file_aside *file);
/* What was written as `aside` is made durable and gets its name: fsync, close (*fd becomes -1), rename, fsync of the folder. */
cvy_status cvy_file_settle(int *fd, const char *aside, const char *path);
cvy_status cvy_file_make_folder(const char *path);                             /* with parents, each synced into its own; an existing folder is fine */
cvy_status cvy_file_sync_folder(const char *path);
cvy_status cvy_file_remove_tree(const char *path);                             /* does not follow links */
int cvy_file_exists(const char *path);
int cvy_file_is_folder(const char *path);
/* Names in a folder, sorted bytewise, without . and ..; all in pool. */
cvy_status cvy_file_list(cvy_pool *pool, const char *path, char ***names_out, int64_t *count_out);
cvy_status cvy_write_all(int fd, const void *data, size_t bytes, const char *path);
cvy_status cvy_pwrite_all(int fd, const void *data, size_t bytes, int64_t offset, const char *path);
cvy_status cvy_pread_all(int fd, void *data, size_t bytes, int64_t offset, const char *path);   /* short file: CVY_E_FORMAT naming offset and size */

/* ---- text buffer and JSON writer ---- */
typedef struct cvy_text { char *data; size_t bytes, room; cvy_status status; } cvy_text;   /* status keeps the first failure */
void cvy_text_add(cvy_text *t, const char *fmt, ...) CVY_PRINTF(2, 3);
void cvy_text_add_bytes(cvy_text *t, const char *data, size_t bytes);
void cvy_text_add_real(cvy_text *t, double value);                             /* as few digits as read back the same */
void cvy_text_add_quoted(cvy_text *t, const char *value);                       /* in double quotes, as JSON and YAML both read it */
void cvy_text_free(cvy_text *t);
/* JSON: commas are placed by the writer; key NULL inside lists. Reals print with 17 digits where needed; NaN and Inf become null. */
typedef struct cvy_json { cvy_text text; int depth; uint64_t comma; } cvy_json;
void cvy_json_open(cvy_json *j, const char *key, char bracket);                /* '{' or '[' */
void cvy_json_close(cvy_json *j, char bracket);                                /* '}' or ']' */
void cvy_json_string(cvy_json *j, const char *key, const char *value);
void cvy_json_int(cvy_json *j, const char *key, int64_t value);
void cvy_json_real(cvy_json *j, const char *key, double value);
void cvy_json_bool(cvy_json *j, const char *key, int value);

/* Checked narrowing. */
cvy_status cvy_size_mul(size_t a, size_t b, size_t *out);                      /* CVY_E_SHAPE on overflow */

#endif
