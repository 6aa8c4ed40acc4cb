/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_mem.c: the error record, the allocator and pools. */
#include <stdlib.h>

#include "base/base_mem.h"
#include "test_util.h"

static void errors(void)
{
    EXPECT_INT(cvy_error_set(CVY_E_IO, "a %d", 1), CVY_E_IO);
    cvy_error_set(CVY_E_IO, "b: %s", cvy_error_text()); /* the old message is an argument of the new one */
    EXPECT_TEXT(cvy_error_text(), "b: a 1");
    cvy_error_prefix(CVY_E_IO, "layer %s", "x");
    EXPECT_TEXT(cvy_error_text(), "layer x: b: a 1");
    EXPECT_TEXT(cvy_status_text(CVY_E_SHAPE), "bad shape");
    cvy_dtype d = CVY_DTYPE_F32;
    EXPECT_OK(cvy_dtype_parse("i64", &d));
    EXPECT_INT(d, CVY_DTYPE_I64);
    EXPECT_INT(cvy_dtype_bytes(d), 8);
    EXPECT_FAULT(cvy_dtype_parse("f16", &d), CVY_E_ARGUMENT, "unknown dtype \"f16\", expected f32");
}

static void memory(void)
{
    char *p = NULL, *text = NULL;
    EXPECT_OK(cvy_mem_alloc(0, &p));
    EXPECT(p && (uintptr_t)p % 64 == 0);
    memcpy(p, "abc", 4);
    EXPECT_OK(cvy_mem_grow(&p, 4, 1000));
    EXPECT_TEXT(p, "abc");
    EXPECT_INT(p[999], 0);
    cvy_mem_free(&p);
    EXPECT(p == NULL);
    cvy_mem_free(&p);
    EXPECT_FAULT(cvy_mem_alloc(SIZE_MAX, &p), CVY_E_MEMORY, "cannot allocate 18446744073709551615 bytes");
    cvy_mem_fail_at(2, 0);
    EXPECT_OK(cvy_mem_strdup("x", &text));
    EXPECT_INT(cvy_mem_alloc(8, &p), CVY_E_MEMORY);
    EXPECT(p == NULL);
    EXPECT_OK(cvy_mem_alloc(8, &p));
    cvy_mem_fail_at(0, 0);
    cvy_mem_free(&p);
    cvy_mem_free(&text);
    const size_t bytes = ((size_t)3 << 20) + 5;
    EXPECT_OK(cvy_mem_alloc_pages(bytes, &p));
    EXPECT((uintptr_t)p % (2 << 20) == 0);
    EXPECT(p[0] == 0 && p[bytes - 1] == 0);
    p[bytes - 1] = 1;
    cvy_mem_free_pages(&p, bytes);
    EXPECT_FAULT(cvy_mem_alloc_pages((size_t)1 << 60, &p), CVY_E_MEMORY, "tensor memory");
}

/* Blocks, pages and memory that a caller maps itself are counted while they are held, to the byte. */
static void memory_is_counted(void)
{
    char *block = NULL, *pages = NULL;
    const int64_t before = cvy_memory_bytes();
    EXPECT_OK(cvy_mem_alloc(1000, &block));
    const int64_t one = cvy_memory_bytes();
    EXPECT(one >= before + 1000 && one < before + 2000);
    EXPECT_OK(cvy_mem_grow(&block, 1000, 100000));
    EXPECT(cvy_memory_bytes() >= before + 100000 && cvy_memory_bytes() < before + 101000);
    EXPECT_OK(cvy_mem_alloc_pages(3 << 20, &pages));
    EXPECT(cvy_memory_bytes() >= before + 100000 + (3 << 20));
    cvy_mem_account(64);
    cvy_mem_free(&block);
    cvy_mem_free(&block); /* it is NULL by now */
    cvy_mem_free_pages(&pages, 3 << 20);
    EXPECT_INT(cvy_memory_bytes(), before + 64);
    cvy_mem_account(-64);
    cvy_mem_fail_at(1, 1);
    EXPECT_FAULT(cvy_mem_alloc(1000, &block), CVY_E_MEMORY, "1000");
    EXPECT_FAULT(cvy_mem_alloc_pages(1000, &pages), CVY_E_MEMORY, "1000");
    cvy_mem_fail_at(0, 0);
    EXPECT_INT(cvy_memory_bytes(), before);
}

static void pools(void)
{
    cvy_pool *pool = NULL;
    char *p = NULL;
    EXPECT_OK(cvy_pool_create(&pool));
    for (int i = 0; i < 2000; i++) {
        EXPECT_OK(cvy_pool_alloc(pool, (size_t)i % 300, &p));
        if ((uintptr_t)p % 16 != 0 || (i % 300 && p[i % 300 - 1] != 0))
            EXPECT(!"aligned and zeroed");
        memset(p, 0xff, (size_t)i % 300);
    }
    EXPECT_OK(cvy_pool_alloc(pool, 5 << 20, &p));
    memset(p, 1, 5 << 20);
    EXPECT_OK(cvy_pool_printf(pool, &p, "%s-%d", "x", 7));
    EXPECT_TEXT(p, "x-7");
    cvy_pool_destroy(&pool);
    EXPECT(pool == NULL);
}

static void sizes(void)
{
    size_t bytes = 0;
    EXPECT_OK(cvy_size_mul(1000, 8, &bytes));
    EXPECT_INT(bytes, 8000);
    EXPECT_FAULT(cvy_size_mul(SIZE_MAX / 2, 3, &bytes), CVY_E_SHAPE, "more than this machine can address");
}

int main(void)
{
    TEST(errors);
    TEST(memory);
    TEST(memory_is_counted);
    TEST(pools);
    TEST(sizes);
    return test_end();
}
