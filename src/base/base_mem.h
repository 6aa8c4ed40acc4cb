/*
 * base_mem.h: the library's allocator, and a pool that is freed as a whole. Every allocation goes through this
 * allocator, so that tests can make the k-th one fail.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_MEM_H
#define CVY_BASE_MEM_H

#include "base/base_status.h"

/* Zeroed memory, 64-byte aligned; *out is written only on success. bytes 0 gives a valid pointer. CVY_E_MEMORY: the
 * message has the number of bytes. Free it with cvy_mem_free. */
cvy_status cvy_mem_alloc(size_t bytes, void *out); /* out: address of any object pointer */
/* Grows a block from cvy_mem_alloc to new_bytes. It keeps the first old_bytes and zeroes the rest; *block is unchanged
 * on failure. */
cvy_status cvy_mem_grow(void *block, size_t old_bytes, size_t new_bytes);
/* Makes room for one more element in a growing array: *array holds *room elements of elem_bytes, of which count are
 * used. The room doubles when the array is full. */
cvy_status cvy_mem_reserve(void *array, int *room, int count, size_t elem_bytes);
/* Gives back the room of a growing array that was never used. */
cvy_status cvy_mem_trim(void *array, int *room, int count, size_t elem_bytes);
/* Frees the block that *block points to and sets *block to NULL; *block may be NULL. block: address of any object
 * pointer. */
void cvy_mem_free(void *block);
/* The product of two sizes; CVY_E_SHAPE on overflow. */
cvy_status cvy_size_mul(size_t a, size_t b, size_t *out);
cvy_status cvy_mem_strdup(const char *text, char **out);
/* Allocates a formatted string. Free it with cvy_mem_free. */
cvy_status cvy_mem_printf(char **out, const char *fmt, ...) CVY_PRINTF(2, 3);

/* Only for tests: the k-th allocation from now (1 is the next) fails, and with `for_good` every later one too; 0 turns
 * it off. Allocations of all threads count. */
void cvy_mem_fail_at(int64_t k, int for_good);
int64_t cvy_mem_count(void);

/* Includes memory that a caller maps (bytes > 0) or unmaps (bytes < 0) itself in the result of cvy_memory_bytes(). */
void cvy_mem_account(int64_t bytes);

/* Tensor memory: large, 2 MiB aligned, with huge pages if the system allows them. It is zeroed, so that page faults
 * happen before the first step. */
cvy_status cvy_mem_alloc_pages(size_t bytes, void *out);
/* The same, but each page is allocated when it is first written, for callers that write only a small part. */
cvy_status cvy_mem_map_pages(size_t bytes, void *out);
/* Writes a zero to each page of memory that is zero, so that the system provides it now, near the calling thread. */
void cvy_mem_touch(void *data, size_t bytes);
/* Returns the pages that are completely inside a range of such memory to the system; they are zero from then on. */
void cvy_mem_drop_pages(void *data, size_t bytes);
/* block: address of any object pointer; the pointer becomes NULL. bytes: as allocated. */
void cvy_mem_free_pages(void *block, size_t bytes);

/* A pool: many small objects that are freed together (a graph, a parsed file). */
typedef struct cvy_pool cvy_pool;
cvy_status cvy_pool_create(cvy_pool **out);
void cvy_pool_destroy(cvy_pool **pool);
/* Zeroed memory, 16-byte aligned, which is valid as long as the pool. */
cvy_status cvy_pool_alloc(cvy_pool *pool, size_t bytes, void *out);
cvy_status cvy_pool_printf(cvy_pool *pool, char **out, const char *fmt, ...) CVY_PRINTF(3, 4);
cvy_status cvy_pool_strdup(cvy_pool *pool, const char *text, char **out);

#endif
