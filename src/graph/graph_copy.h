/*
 * graph_copy.h: strided copies: of a tensor, or of a part of it, from one layout into another.
 *
 * In a blocked layout the offset of an element is a sum of one term for each dimension. So with a table of terms for
 * each dimension and layout, any pair of layouts needs only additions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GRAPH_COPY_H
#define CVY_GRAPH_COPY_H

#include "graph/graph.h"

typedef struct cvy_offsets {     /* of the elements of a tensor in one layout */
    int64_t *term[CVY_NDIM_MAX]; /* [dim of the tensor]; all are one piece of memory, that of term[0] */
    int64_t elems;               /* of the tensor, padding included */
} cvy_offsets;
cvy_status cvy_offsets_make(const cvy_layout *layout, const cvy_shape *shape, cvy_offsets *out);
void cvy_offsets_free(cvy_offsets *offsets);

typedef struct cvy_copy {
    int ndim; /* at least 1 */
    int64_t dim[CVY_NDIM_MAX];
    /* Terms of the offsets of element 0, 1, ... along each dimension. A side whose first table is NULL has the elements
     * that are copied one after the other. */
    const int64_t *from[CVY_NDIM_MAX], *to[CVY_NDIM_MAX];
    cvy_dtype from_dtype, to_dtype; /* equal, or f32 and bf16 */
    int adds;                       /* to += from, of reals of one dtype */
} cvy_copy;
/* Copies the elements [first, first + n), in row-major order. Neither side need be aligned. It allocates nothing. */
void cvy_copy_run(const cvy_copy *c, int64_t first, int64_t n, const void *src, void *dst);

#endif
