/*
 * base_mem.h: the library's allocator (every allocation goes through it, so that tests can fail the k-th one) and a
 * pool that is freed whole.
 */
#ifndef CVY_BASE_MEM_H
#define CVY_BASE_MEM_H

#include "base/base_status.h"

/* Zeroed memory, 64-byte aligned; *out is written only on success. bytes 0 gives a valid pointer. CVY_E_MEMORY names
 * the bytes. Frees with cvy_mem_free. */
cvy_status cvy_mem_alloc(size_t bytes, void *out); /* out: address of any object pointer */
/* Grows a block made by cvy_mem_alloc to new_bytes, keeping old_bytes of content, zeroing the rest; *block is unchanged
 * on failure. */
cvy_status cvy_mem_grow(void *block, size_t old_bytes, size_t new_bytes);
/* Room for one more element in a growing array: *array holds *room elements of elem_bytes, of which count are used;
 * doubles where it is full. */
cvy_status cvy_mem_reserve(void *array, int *room, int count, size_t elem_bytes);
/* Frees the block that *block points to and sets it to NULL; NULL content is fine. block: address of any object
 * pointer. */
void cvy_mem_free(void *block);
/* The product of two sizes; CVY_E_SHAPE on overflow. */
cvy_status cvy_size_mul(size_t a, size_t b, size_t *out);
cvy_status cvy_mem_strdup(const char *text, char **out);
/* A formatted string of its own. */
cvy_status cvy_mem_printf(char **out, const char *fmt, ...) CVY_PRINTF(2, 3);

/* Tests only: the k-th allocation from now (1 is the next) fails, and every later one if `for_good`; 0 turns it off.
 * Counts across threads. */
void cvy_mem_fail_at(int64_t k, int for_good);
int64_t cvy_mem_count(void);

/* Counts memory that a caller maps (bytes > 0) or unmaps (bytes < 0) itself in what cvy_memory_bytes() reports. */
void cvy_mem_account(int64_t bytes);

/* Tensor memory: large, 2 MiB aligned with huge pages asked for where the system allows, zeroed (so that pages are
 * faulted in before the first step). */
cvy_status cvy_mem_alloc_pages(size_t bytes, void *out);
/* The same, taken page by page when it is first written: for who mostly does not. */
cvy_status cvy_mem_map_pages(size_t bytes, void *out);
/* Gives back the pages that lie wholly in a range of such memory; they are zero from then on. */
void cvy_mem_drop_pages(void *data, size_t bytes);
/* block: address of any object pointer, which becomes NULL; bytes as allocated. */
void cvy_mem_free_pages(void *block, size_t bytes);

/* A pool: many small objects that die together (a graph, a parsed file). */
typedef struct cvy_pool cvy_pool;
cvy_status cvy_pool_create(cvy_pool **out);
void cvy_pool_destroy(cvy_pool **pool);
/* Zeroed, 16-byte aligned, lives as long as the pool. */
cvy_status cvy_pool_alloc(cvy_pool *pool, size_t bytes, void *out);
cvy_status cvy_pool_printf(cvy_pool *pool, char **out, const char *fmt, ...) CVY_PRINTF(3, 4);
cvy_status cvy_pool_strdup(cvy_pool *pool, const char *text, char **out);

#endif
