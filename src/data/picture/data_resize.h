/*
 * data_resize.h: resizes a window of a picture with a separable filter.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_RESIZE_H
#define CVY_DATA_RESIZE_H

#include "data/data_reader.h"

typedef enum {
    CVY_FILTER_TRIANGLE, /* linear; wider when it shrinks: Pillow's BILINEAR, torchvision with antialias */
    CVY_FILTER_BILINEAR, /* linear between the two nearest pixels, for any scale: OpenCV's INTER_LINEAR */
    CVY_FILTER_AREA,     /* mean of the area that a result covers: OpenCV's INTER_AREA when it shrinks */
    CVY_FILTER_NEAREST   /* the pixel that contains the result's centre */
} cvy_filter;
#define CVY_FILTER_WORDS "triangle|bilinear|area|nearest"

/* One axis. Result i of n is centred on start + (i + 0.5) * step in the source, where pixel j covers j .. j+1. Only
 * pixels lo .. hi-1 are used: the weights of a result are normalised over them, and a result completely outside takes
 * the nearest of them. */
typedef struct cvy_resize_axis {
    int64_t n;
    double start, step;
    int64_t lo, hi;
} cvy_resize_axis;

size_t cvy_resize_scratch(cvy_filter filter, const cvy_resize_axis *y, const cvy_resize_axis *x);
/* to: [C, y->n, x->n] with from's dtype; bytes are rounded to nearest. scratch is 64-byte aligned and has
 * cvy_resize_scratch() bytes. It allocates no memory. */
void cvy_resize(cvy_filter filter, const cvy_picture *from, const cvy_resize_axis *y, const cvy_resize_axis *x,
                void *scratch, const cvy_picture *to);

#endif
