/*
 * op_clip.h: options of the clipping operators, for their fast kernels.
 */
#ifndef CVY_OP_CLIP_H
#define CVY_OP_CLIP_H

struct cvy_clip_value {
    double limit;
};

#endif
