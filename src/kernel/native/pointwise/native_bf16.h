/*
 * native_bf16.h: what convoy's own bf16 kernels share: activations as strips of channels, and their offers.
 *
 * Values are bf16 only in memory: a strip is loaded as f32, computed in f32, and rounded once when it is stored.
 * Vectors run over channels, which are last (the layout of tiles) or in blocks of 16, so one loop serves both. A plain
 * source of three or more dimensions is asked for with channels last.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_BF16_H
#define CVY_NATIVE_BF16_H

#include "base/number/base_bf16.h"
#include "kernel/native/native_common.h"

enum { CVY_STRIP_LANES = 64 };

/* [N, C, positions...] as parts of up to CVY_STRIP_LANES channels, which are adjacent at each position. Strides are in
 * elements. */
typedef struct cvy_strips {
    int64_t n, channels, positions, parts, lanes; /* lanes: of a part; the last one may have fewer */
    int64_t all_lanes;                            /* lanes of all parts, with padding */
    int64_t sample, part, position;               /* strides */
} cvy_strips;

/* layout: channels last or blocked by channels; plain for two dimensions. */
cvy_strips cvy_strips_make(const cvy_shape *shape, const cvy_layout *layout);
/* Returns CVY_NOT_APPLICABLE if source i of a node is not bf16. */
cvy_status cvy_native_bf16(const cvy_node *node, int i);
/* A layout of strips for source i: its present one if that has blocks of channels, else channels last. */
cvy_layout cvy_native_strips(const cvy_kernel_ask *ask, int i);

/* Lanes of part p. */
static inline int64_t cvy_strip_width(const cvy_strips *s, int64_t p)
{
    return CVY_MIN(s->lanes, s->all_lanes - p * s->lanes);
}

/* Calls body(.., width). Usual widths are passed as constants, so that the loops of body use whole vectors. */
#define CVY_BY_WIDTH(width, body, ...)                                                                                 \
    do {                                                                                                               \
        switch (width) {                                                                                               \
        case 64: body(__VA_ARGS__, 64); break;                                                                         \
        case 32: body(__VA_ARGS__, 32); break;                                                                         \
        case 16: body(__VA_ARGS__, 16); break;                                                                         \
        case 8: body(__VA_ARGS__, 8); break;                                                                           \
        default: body(__VA_ARGS__, width); break;                                                                      \
        }                                                                                                              \
    } while (0)

#endif
