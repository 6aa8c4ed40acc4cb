/*
 * native_winograd_plan.h: what a Winograd convolution is planned to do: the geometry of its activations and tiles, how
 * many tiles and weights are in memory at a time, and where the weights are.
 *
 * A deconvolution is the gradient of a convolution for its source, and its own gradients are a convolution and the
 * gradient of that convolution's weight. So `pass` below is always that of the convolution.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_WINOGRAD_PLAN_H
#define CVY_NATIVE_WINOGRAD_PLAN_H

#include "kernel/native/winograd/native_winograd.h"

enum { CVY_WINOGRAD_PIECE = 16 }; /* tiles of one work item that transforms a chunk of CVY_LAYER_GRAD_WEIGHT */

/* An activation, [samples, planes, depth, h, w, lanes]; pictures have a depth of 1, and series a width of 1. Some count
 * as several parts with as many planes, whose blocks of channels follow each other, so that block b is in plane
 * b % planes:
 *   - under stride 2 the longer side has four, one for each parity of rows and columns: a tile's value (y, x) is at
 *     (step y + row - shift[0], step x + column - shift[1]), where row and column are 0 or 1;
 *   - of a volume `in` has one for each slice of the filter, since the results of a slice are sums over several slices.
 */
typedef struct cvy_winograd_side {
    int64_t channels, planes, parts, blocks, depth, h, w;
    int64_t shift[2];
    int step;
} cvy_winograd_side;

typedef struct cvy_winograd_call { /* the tensors of a call, and how far it is */
    const void *in_data;
    void *out_data; /* CVY_LAYER_GRAD_WEIGHT: ddst, which is only read */
    const float *weight, *bias;
    float *dweight, *dbias, *u, *rest;
    int64_t chunk_first, chunk_tiles; /* CVY_LAYER_GRAD_WEIGHT: the chunk that is computed now */
    int adds;                         /* CVY_LAYER_GRAD_WEIGHT: u has sums of earlier chunks */
    float *sums;                      /* CVY_LAYER_GRAD_WEIGHT: sums of ddst */
    int64_t panel_first, panel_end;   /* the panels that u holds now */
} cvy_winograd_call;

typedef struct cvy_winograd {
    const cvy_winograd_isa *isa;
    const cvy_winograd_tile *tile;
    cvy_layer_pass pass;
    int threads, relu, has_bias;
    int half;                  /* activations are bf16 */
    int transposed;            /* a deconvolution */
    int nspace;                /* spatial dimensions */
    int64_t samples;           /* slices of out */
    cvy_winograd_side in, out; /* products sum over the channels of `in`; CVY_LAYER_GRAD_WEIGHT: src and ddst */
    int n[2], points;          /* points of a tile: in a row and a column; in total */
    int64_t kernel[2], slices, slice_shift; /* slices: of the filter; the first one reaches slice z - slice_shift */
    int64_t rows;                           /* tiles in one product */
    int64_t lanes, tiles_w, sample_tiles, tiles;
    int64_t chunk, nchunk; /* tiles in a chunk, of CVY_LAYER_GRAD_WEIGHT whole words of them; chunks */
    int64_t panels;        /* pairs of blocks of out; the last may be one block */
    int64_t strips, group; /* strips of tiles and panels of channels between two transforms of the destination */
    int copies; /* CVY_LAYER_GRAD_WEIGHT: so many threads have a u, a v and chunks of their own; 1: they share all */
    int64_t u_panels; /* panels that u has room for; a call handles so many at a time */
    /* The offset of a weight is the sum of the three; -1: padding of a block, or a tap that the filter does not have.
     * in_at: [in.blocks * lanes], out_at: [out.blocks * lanes], tap_at: [parts, taps]; one allocation, at in_at. */
    int64_t *in_at, *out_at, *tap_at;
    int64_t weight_floats; /* size of the variable, with padding */
    int weight_padded;     /* the variable's layout has padding */
    /* Scratch memory, in words. Forward: u, then v and m of each thread; CVY_LAYER_GRAD_WEIGHT: u of all copies, v and
     * d of all, ddst sums of all. */
    int64_t u_floats, v_floats, m_floats, bias_floats;
    cvy_winograd_call call; /* the running one */
} cvy_winograd;

/* Values in a word of u. In CVY_LAYER_GRAD_WEIGHT u is the result of the products. */
static inline int cvy_winograd_u_per_word(const cvy_winograd *s)
{
    return s->pass == CVY_LAYER_GRAD_WEIGHT ? 1 : s->isa->per_word;
}

/* These return the distance between points, in words: of u, of a strip of source tiles, and of a chunk of source or
 * ddst tiles of CVY_LAYER_GRAD_WEIGHT. It is an odd number of vectors, so that the points of one tile fall into
 * different sets of a cache. */
static inline int64_t cvy_winograd_u_step(const cvy_winograd *s)
{
    const int64_t blocks = CVY_MIN(2 * s->u_panels, s->out.blocks);
    return s->in.blocks * blocks * s->lanes * s->lanes / cvy_winograd_u_per_word(s) + s->lanes;
}

static inline int64_t cvy_winograd_strip_step(const cvy_winograd *s)
{
    return ((s->in.blocks * s->rows + s->isa->per_word - 1) / s->isa->per_word | 1) * s->lanes;
}

static inline int64_t cvy_winograd_chunk_step(const cvy_winograd *s, const cvy_winograd_side *side)
{
    return (side->blocks * s->chunk / s->isa->per_word | 1) * s->lanes;
}

/* The functions of a kernel's descriptor, for tiles with m results along the longer side of a filter of three taps or
 * more. pairs: 1: products in bf16. The state is a cvy_winograd. */
cvy_status cvy_winograd_offer(cvy_kernel_ask *ask, int m, int pairs);
cvy_status cvy_winograd_create(const cvy_kernel_ask *ask, int m, int pairs, void **state_out);
void cvy_winograd_destroy(void *state);

#endif
