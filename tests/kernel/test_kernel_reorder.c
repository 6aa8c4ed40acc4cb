/*
 * test_kernel_reorder.c: reorders between pairs of layouts: the result is compared with each element's offset, and the
 * way back with the original.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "graph/graph_copy.h"
#include "kernel/kernel.h"

struct pair {
    const char *shape, *from, *to;
};

static const struct pair pairs[] = {
    {"2x19x5x4", "", "aBcd16b"},
    {"2x19x5x4", "aBcd16b", "aBcd8b"},
    {"3x7x6", "", "aBc8b"},
    {"2x3x2x3x4", "", "aBcde16b"},
    {"20x18x3x3", "", "ABcd16b16a"},
    {"20x18x3x3", "ABcd16b16a", "ABcd16a16b"},
    {"20x3x5x5", "", "Acdb16a"},
    {"33x70", "", "AB16b64a"},
    {"17x9", "", "ba"},
    {"6x5x3x3", "", "bacd"},
    {"2x19x5x4", "aBcd16b", "aBcd16b"},
    {"7", "", ""},
    {"scalar", "", ""},
    {"0x3x2x2", "", "aBcd16b"},
};

static int failed;

static void expect(int condition, const struct pair *p, cvy_dtype dtype, const char *what)
{
    if (!condition) {
        printf("FAILED %s %s '%s' -> '%s': %s\n", cvy_dtype_text(dtype), p->shape, p->from, p->to, what);
        failed = 1;
    }
}

static void position_of(const cvy_shape *s, int64_t i, int64_t *at)
{
    for (int d = s->ndim - 1; d >= 0; d--) {
        at[d] = i % s->dim[d];
        i /= s->dim[d];
    }
}

/* Sets each logical element to its index plus one. Padding stays zero. */
static cvy_status numbered(cvy_dtype dtype, const cvy_shape *shape, const cvy_layout *layout, cvy_span *out)
{
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(layout, shape, &b));
    *out = (cvy_span){.dtype = dtype, .elems = b.elems};
    CVY_TRY(cvy_mem_alloc((size_t)b.elems * cvy_dtype_bytes(dtype) + 64, &out->data));
    for (int64_t i = 0; i < cvy_shape_elems(shape); i++) {
        int64_t at[CVY_NDIM_MAX] = {0};
        position_of(shape, i, at);
        cvy_set(out, cvy_blocking_offset(&b, at), (double)(i % 251 + 1));
    }
    return CVY_OK;
}

static cvy_status check(const struct pair *p, cvy_dtype dtype, int threads)
{
    cvy_shape shape;
    cvy_reorder *reorder = NULL;
    cvy_span src, want, got;
    const cvy_layout from = cvy_layout_make(p->from), to = cvy_layout_make(p->to);
    CVY_TRY(cvy_shape_parse(p->shape, &shape));
    CVY_TRY(numbered(dtype, &shape, &from, &src));
    CVY_TRY(numbered(dtype, &shape, &to, &want));
    CVY_TRY(numbered(dtype, &shape, &to, &got));
    const size_t bytes = (size_t)got.elems * cvy_dtype_bytes(dtype);
    memset(got.data, 0x55, bytes + 64);
    CVY_TRY(cvy_reorder_create(NULL, &shape, &(cvy_memory_format){dtype, from}, &(cvy_memory_format){dtype, to},
                               threads, &reorder));
    for (int run = 0; run < 2; run++) {
        cvy_reorder_run(reorder, src.data, got.data);
        expect(memcmp(got.data, want.data, bytes) == 0, p, dtype, "elements or padding differ");
        expect(((char *)got.data)[bytes] == 0x55, p, dtype, "wrote behind the end");
    }
    cvy_reorder_destroy(&reorder);
    expect(reorder == NULL, p, dtype, "destroy leaves the pointer");
    cvy_mem_free(&src.data);
    cvy_mem_free(&want.data);
    cvy_mem_free(&got.data);
    return CVY_OK;
}

/* Copies the elements from `first` on into plain order, and then adds them to the copy. */
static cvy_status check_part(const struct pair *p, cvy_dtype dtype, int64_t first)
{
    const cvy_layout layout = cvy_layout_make(p->to), plain = cvy_layout_plain();
    cvy_copy c = {.from_dtype = dtype, .to_dtype = dtype};
    cvy_shape shape;
    cvy_span src, want, got;
    cvy_offsets offsets;
    CVY_TRY(cvy_shape_parse(p->shape, &shape));
    CVY_TRY(numbered(dtype, &shape, &layout, &src));
    CVY_TRY(numbered(dtype, &shape, &plain, &want));
    CVY_TRY(numbered(dtype, &shape, &plain, &got));
    CVY_TRY(cvy_offsets_make(&layout, &shape, &offsets));
    c.ndim = shape.ndim;
    memcpy(c.dim, shape.dim, sizeof c.dim);
    memcpy(c.from, offsets.term, sizeof c.from);
    for (int times = 1; times <= 2; times++) {
        cvy_copy_run(&c, first, want.elems - first, src.data, got.data);
        for (int64_t i = first; i < want.elems; i++)
            expect(cvy_get(&got, i - first) == times * cvy_get(&want, i), p, dtype, "a part differs");
        c.adds = cvy_dtype_is_real(dtype);
        if (!c.adds)
            break;
    }
    cvy_offsets_free(&offsets);
    cvy_mem_free(&src.data);
    cvy_mem_free(&want.data);
    cvy_mem_free(&got.data);
    return CVY_OK;
}

int main(void)
{
    static const int64_t first[] = {0, 1, 7};
    for (int i = 0; i < CVY_COUNT(pairs); i++)
        for (int dtype = 0; dtype < CVY_DTYPE_COUNT; dtype++)
            for (int k = 0; k < CVY_COUNT(first) && strcmp(pairs[i].shape, "scalar") != 0; k++)
                if (check_part(&pairs[i], (cvy_dtype)dtype, first[k]) != CVY_OK)
                    expect(0, &pairs[i], (cvy_dtype)dtype, cvy_error_text());
    for (int i = 0; i < CVY_COUNT(pairs); i++)
        for (int dtype = 0; dtype < CVY_DTYPE_COUNT; dtype++)
            for (int threads = 1; threads <= 2; threads++)
                if (check(&pairs[i], (cvy_dtype)dtype, threads) != CVY_OK)
                    expect(0, &pairs[i], (cvy_dtype)dtype, cvy_error_text());
    return failed;
}
