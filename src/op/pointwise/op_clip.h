/*
 * op_clip.h: options of clip_value, clip_scale and l1_gradient, for the operators and their fast kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_CLIP_H
#define CVY_OP_CLIP_H

struct cvy_clip_value {
    double limit;
};

struct cvy_clip_scale {
    double max_norm;
};

struct cvy_l1_gradient {
    double by;
};

#endif
