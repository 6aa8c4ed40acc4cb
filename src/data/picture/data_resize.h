/*
 * data_resize.h: a window of a picture at another size, by a separable filter.
 */
#ifndef CVY_DATA_RESIZE_H
#define CVY_DATA_RESIZE_H

#include "data/data_reader.h"

typedef enum {
    CVY_FILTER_TRIANGLE, /* linear, widened where it shrinks: Pillow's BILINEAR, torchvision's with antialias */
    CVY_FILTER_BILINEAR, /* linear between the two nearest pixels, however far it shrinks: OpenCV's INTER_LINEAR */
    CVY_FILTER_AREA      /* the mean of what a result covers: OpenCV's INTER_AREA where it shrinks */
} cvy_filter;
#define CVY_FILTER_WORDS "triangle|bilinear|area"

/* One axis: result i of n is centred on start + (i + 0.5) * step of the sources (source j covers j .. j+1); sources
 * lo .. hi-1 may be used, the outermost of them standing for what lies outside. */
typedef struct cvy_axis {
    int64_t n;
    double start, step;
    int64_t lo, hi;
} cvy_axis;

size_t cvy_resize_scratch(cvy_filter filter, const cvy_axis *y, const cvy_axis *x);
/* to: [C, y->n, x->n] of from's dtype; bytes are rounded to nearest. scratch: 64-byte aligned. Allocates nothing. */
void cvy_resize(cvy_filter filter, const cvy_picture *from, const cvy_axis *y, const cvy_axis *x, void *scratch,
                const cvy_picture *to);

#endif
