/*
 * op_clip.h: options of clip_value, for the operator and its fast kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_CLIP_H
#define CVY_OP_CLIP_H

struct cvy_clip_value {
    double limit;
};

#endif
