/*
 * graph_shape.c: shapes, and layouts applied to shapes.
 *
 * Before the first step, the size of every buffer and every offset is computed here. A layout is a text in oneDNN's
 * notation ("aBcd16b"), so that people can read a plan and compare layouts. It is parsed only at planning time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

int64_t cvy_shape_elems(const cvy_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->ndim; i++)
        n *= s->dim[i];
    return n;
}

int cvy_shape_fits(const cvy_shape *s)
{
    const int64_t most = INT64_C(1) << 48; /* bytes and work, of many such tensors together, can then be counted */
    int64_t n = 1;
    for (int i = 0; i < s->ndim; i++) {
        if (s->dim[i] < 0 || (s->dim[i] > 0 && n > most / s->dim[i]))
            return 0;
        n *= CVY_MAX(s->dim[i], 1);
    }
    return 1;
}

int64_t cvy_shape_positions(const cvy_shape *s)
{
    int64_t n = 1;
    for (int i = 2; i < s->ndim; i++)
        n *= s->dim[i];
    return n;
}

int cvy_shape_equal(const cvy_shape *a, const cvy_shape *b)
{
    if (a->ndim != b->ndim)
        return 0;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i])
            return 0;
    return 1;
}

cvy_shape cvy_shape_make(int ndim, const int64_t *dim)
{
    cvy_shape s = {.ndim = ndim};
    for (int i = 0; i < ndim; i++)
        s.dim[i] = dim[i];
    return s;
}

const char *cvy_shape_text(const cvy_shape *s)
{
    static _Thread_local char ring[8][112];
    static _Thread_local unsigned next;
    char *text = ring[next++ % 8];
    if (s->ndim == 0)
        return "scalar";
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < s->ndim && at < sizeof(ring[0]); i++)
        at += (size_t)snprintf(text + at, sizeof(ring[0]) - at, i ? "x%lld" : "%lld", (long long)s->dim[i]);
    return text;
}

cvy_status cvy_shape_parse(const char *text, cvy_shape *out)
{
    cvy_shape s = {0};
    int64_t elems = 1;
    if (strcmp(text, "scalar") == 0 || strcmp(text, "") == 0) {
        *out = s;
        return CVY_OK;
    }
    for (const char *at = text;;) {
        char *end = NULL;
        const long long n = strtoll(at, &end, 10);
        CVY_CHECK(end != at && n >= 0 && s.ndim < CVY_NDIM_MAX && (*end == 'x' || *end == '\0'), CVY_E_ARGUMENT,
                  "shape '%s': expected up to %d sizes joined by x, like 32x3x224x224", text, CVY_NDIM_MAX);
        CVY_CHECK(n == 0 || elems <= (INT64_MAX >> 6) / n, CVY_E_ARGUMENT,
                  "shape '%s': more elements than can be counted", text);
        elems *= n;
        s.dim[s.ndim++] = n;
        if (*end == '\0')
            break;
        at = end + 1;
    }
    *out = s;
    return CVY_OK;
}

cvy_layout cvy_layout_plain(void)
{
    return (cvy_layout){""};
}

cvy_layout cvy_layout_make(const char *tag)
{
    cvy_layout layout = {""};
    snprintf(layout.tag, sizeof layout.tag, "%s", tag);
    return layout;
}

int cvy_layout_is_plain(const cvy_layout *layout)
{
    return layout->tag[0] == '\0';
}

int cvy_layout_equal(const cvy_layout *a, const cvy_layout *b)
{
    return strcmp(a->tag, b->tag) == 0;
}

/* The layout of the tensor that contains the slice. */
static cvy_layout base_of(const cvy_layout *layout)
{
    cvy_layout base = *layout;
    base.tag[strcspn(base.tag, "/")] = '\0';
    return base;
}

/* Parses the order of the outer dimensions and then the inner blocks of a tag. */
static cvy_status parse_tag(const char *tag, int ndim, int order[CVY_NDIM_MAX], cvy_blocking *b)
{
    int n = 0;
    const char *at = tag;
    if (*at == '/')
        return CVY_OK;
    for (; isalpha((unsigned char)*at); at++) {
        const int d = tolower((unsigned char)*at) - 'a';
        CVY_CHECK(d < ndim && n < ndim, CVY_E_INTERNAL, "layout '%s' does not fit %d dimensions", tag, ndim);
        order[n++] = d;
    }
    CVY_CHECK(n == ndim, CVY_E_INTERNAL, "layout '%s' does not fit %d dimensions", tag, ndim);
    while (*at && *at != '/') {
        char *end = NULL;
        const long size = strtol(at, &end, 10);
        const int d = *end ? *end - 'a' : -1;
        CVY_CHECK(size > 1 && d >= 0 && d < ndim && b->nblock < 4, CVY_E_INTERNAL, "layout '%s' is not understood",
                  tag);
        b->block_dim[b->nblock] = d;
        b->block_size[b->nblock++] = size;
        b->dim_block[d] *= size;
        at = end + 1;
    }
    return CVY_OK;
}

cvy_status cvy_blocking_make(const cvy_layout *layout, const cvy_shape *shape, cvy_blocking *out)
{
    cvy_blocking b = {.ndim = shape->ndim};
    int order[CVY_NDIM_MAX];
    for (int i = 0; i < shape->ndim; i++) {
        order[i] = i;
        b.dim[i] = shape->dim[i];
        b.dim_block[i] = 1;
    }
    if (!cvy_layout_is_plain(layout))
        CVY_TRY(parse_tag(layout->tag, shape->ndim, order, &b));
    const int64_t whole = cvy_layout_whole(layout);
    int64_t stride = 1;
    for (int i = 0; i < b.nblock; i++)
        stride *= b.block_size[i];
    for (int i = b.ndim - 1; i >= 0; i--) {
        const int d = order[i];
        const int64_t outer = (b.dim[d] + b.dim_block[d] - 1) / b.dim_block[d];
        b.padded[d] = outer * b.dim_block[d];
        b.stride[d] = stride;
        stride *= d == 1 && whole > 0 ? whole / b.dim_block[d] : outer;
    }
    b.elems = stride;
    *out = b;
    return CVY_OK;
}

int64_t cvy_blocking_offset(const cvy_blocking *b, const int64_t *at)
{
    int64_t offset = 0, rest[CVY_NDIM_MAX], inner = 1;
    for (int d = 0; d < b->ndim; d++) {
        const int64_t block = b->dim_block[d], outer = block == 1 ? at[d] : at[d] / block; /* divisions are slow */
        offset += outer * b->stride[d];
        rest[d] = at[d] - outer * block;
    }
    for (int i = b->nblock - 1; i >= 0; i--) {
        const int d = b->block_dim[i];
        offset += rest[d] % b->block_size[i] * inner;
        rest[d] /= b->block_size[i];
        inner *= b->block_size[i];
    }
    return offset;
}

cvy_layout cvy_layout_slice(const cvy_layout *of, int64_t whole)
{
    cvy_layout layout = {""};
    snprintf(layout.tag, sizeof layout.tag, "%.*s/%d", (int)strcspn(of->tag, "/"), of->tag, (int)whole);
    return layout;
}

int64_t cvy_layout_whole(const cvy_layout *layout)
{
    const char *at = strchr(layout->tag, '/');
    return at ? strtoll(at + 1, NULL, 10) : 0;
}

int64_t cvy_layout_channel_block(const cvy_layout *sliced, int ndim)
{
    const cvy_layout base = base_of(sliced), *layout = &base;
    if (cvy_layout_is_plain(layout))
        return 1;
    static const int64_t sizes[] = {16, 8, 4};
    for (int i = 0; i < CVY_COUNT(sizes); i++) {
        const cvy_layout candidate = cvy_layout_channels(ndim, sizes[i]);
        if (cvy_layout_equal(layout, &candidate))
            return sizes[i];
    }
    return 0;
}

cvy_layout cvy_layout_channels(int ndim, int64_t block)
{
    cvy_layout layout = {""};
    if (block <= 1 || ndim < 2)
        return layout;
    for (int i = 0; i < ndim; i++)
        layout.tag[i] = (char)(i == 1 ? 'B' : 'a' + i);
    snprintf(layout.tag + ndim, sizeof layout.tag - (size_t)ndim, "%db", (int)block);
    return layout;
}

cvy_layout cvy_layout_channels_last(int ndim)
{
    cvy_layout layout = {""};
    if (ndim < 3)
        return layout;
    layout.tag[0] = 'a';
    for (int i = 2; i < ndim; i++)
        layout.tag[i - 1] = (char)('a' + i);
    layout.tag[ndim - 1] = 'b';
    return layout;
}

/* n part / parts of any n, without overflow. */
static int64_t first_of(int64_t n, int part, int parts)
{
    return n / parts * part + n % parts * part / parts;
}

cvy_batch cvy_batch_share(int64_t global_n, int rank, int nranks)
{
    const int place = CVY_MIN(rank, nranks), behind = CVY_MIN(rank + 1, nranks);
    const int64_t first = first_of(global_n, place, nranks), end = first_of(global_n, behind, nranks);
    return (cvy_batch){.global_n = global_n, .first = first, .local_n = end - first, .nranks = nranks, .rank = rank};
}

int64_t cvy_tile_index(const cvy_tile *tile, const cvy_shape *part, int64_t i)
{
    int64_t index = 0, stride = 1;
    if (!tile)
        return i;
    for (int d = part->ndim - 1; d >= 0; d--) {
        index += (i % part->dim[d] + tile->first[d]) * stride;
        i /= part->dim[d];
        stride *= tile->whole.dim[d];
    }
    return index;
}
