/* SPDX-License-Identifier: BSD-3-Clause */
/* op_redistribute.h: options of redistribute. pass_split.c makes these nodes. */
#ifndef CVY_OP_REDISTRIBUTE_H
#define CVY_OP_REDISTRIBUTE_H

#include "graph/graph_op.h"

/* Which entries of a dimension the ranks of an axis have. */
typedef enum {
    CVY_HAS_WHOLE,  /* each rank has all of them */
    CVY_HAS_SHARE,  /* rank p of P has floor(n p / P) .. floor(n (p+1) / P) - 1 */
    CVY_HAS_WINDOW, /* each rank has the entries that its share of the results of a sliding window needs: shares
                       overlap, and may begin before entry 0 and end after entry n - 1 */
} cvy_has;

/* Result y of a sliding window needs the entries y stride - pad .. y stride - pad + reach - 1. A window of a transposed
 * convolution is the other way around: entry x belongs to the results x stride - pad .. x stride - pad + reach - 1. */
typedef struct cvy_slide {
    int64_t results, stride, pad, reach;
    int transposed;
} cvy_slide;

struct cvy_redistribute {
    int axis;      /* of the grid: a cvy_axis */
    int dim;       /* of the tensor */
    int64_t n;     /* entries of the whole dimension */
    int parts, me; /* ranks of the axis; this rank */
    cvy_has from, to;
    cvy_slide slide; /* of the side that has windows */
    double fill;     /* of entries outside 0 .. n - 1, if `to` has windows */
};

/* What a part has of n entries that the ranks of an axis share, as a fraction of all. */
static inline double cvy_part_fraction(const cvy_node_part *part, int64_t n)
{
    return (double)(cvy_share_first(n, part->number + 1, part->parts) - cvy_share_first(n, part->number, part->parts)) /
           (double)n;
}

/* The entries first .. end - 1 that a part has. */
void cvy_has_range(const struct cvy_redistribute *o, cvy_has has, int part, int64_t *first_out, int64_t *end_out);
/* The same for a window; n is not needed. */
void cvy_slide_range(const cvy_slide *slide, int part, int parts, int64_t *first_out, int64_t *end_out);

#endif
