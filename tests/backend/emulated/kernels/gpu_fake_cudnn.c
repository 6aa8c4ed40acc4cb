/*
 * gpu_fake_cudnn.c: convolutions by plain loops, for the cuDNN of the tests (backend/fake_cudnn/fake_cudnn.c). The
 * product knows nothing of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

/* Tensors as cuDNN has them: [n, channels, positions], strides in elements; an axis that is not there has one place. */
struct fake_conv {
    int pass, sum, widen, round; /* pass: 0 forward, 1 of the source, 2 of the weight; round: f32 operands to TF32 */
    int bias, relu, times;       /* bias: `extra` is added; times: how often the sums are made, to take longer */
    i64 src[5], weight[5], dst[5];
    i64 src_by[5], weight_by[5], dst_by[5];
    i64 stride[3], pad[3], dilation[3];
    i64 elems; /* of the result */
};

#ifdef CVY_DEVICE

INLINE float tf32(float x, int round)
{
    return round ? FLOAT_OF(BITS_OF(x) & 0xffffe000u) : x;
}

INLINE i64 fake_place(const i64 *at, const i64 *by)
{
    i64 place = 0;
    for (int d = 0; d < 5; d++)
        place += at[d] * by[d];
    return place;
}

/* The products of one tap at one position of dst, for source channel `in` and destination channel `out`; 0 outside. */
INLINE double fake_product(GLOBAL const act *a, GLOBAL const act *b, const i64 *pa, const i64 *pb, const i64 *by_a,
                           const i64 *by_b, int round)
{
    return (double)tf32(GET(a, fake_place(pa, by_a)), round) * tf32(GET(b, fake_place(pb, by_b)), round);
}

/* Each thread computes results one after the other, and goes through all places of the other two tensors that meet. */
KERNEL(fake_conv)(GLOBAL act *src, GLOBAL act *weight, GLOBAL act *dst, GLOBAL float *extra, struct fake_conv c)
{
    FOR_EACH (work, c.elems * c.times) {
        const i64 i = work / c.times;
        const i64 *dim = c.pass == 0 ? c.dst : c.pass == 1 ? c.src : c.weight;
        const i64 in = c.weight[1], out = c.weight[0] / (c.src[1] / c.weight[1]);
        i64 at[5], left = i;
        double sum = 0;
        for (int d = 4; d >= 0; d--) {
            at[d] = left % dim[d];
            left /= dim[d];
        }
        /* n, k, channel in the group, taps, and positions of dst: those that the result fixes have one value. */
        const i64 group = c.pass == 1 ? at[1] / in : at[c.pass == 0] / out;
        const i64 n0 = c.pass == 2 ? 0 : at[0], n1 = c.pass == 2 ? c.src[0] : at[0] + 1;
        const i64 k0 = c.pass == 1 ? group * out : at[c.pass == 0], k1 = c.pass == 1 ? k0 + out : k0 + 1;
        const i64 j0 = c.pass == 0 ? 0 : c.pass == 1 ? at[1] % in : at[1], j1 = c.pass == 0 ? in : j0 + 1;
        const i64 taps = c.pass == 2 ? 1 : c.weight[2] * c.weight[3] * c.weight[4];
        const i64 places = c.pass == 2 ? c.dst[2] * c.dst[3] * c.dst[4] : 1;
        for (i64 n = n0; n < n1; n++)
            for (i64 k = k0; k < k1; k++)
                for (i64 t = 0; t < taps; t++)
                    for (i64 p = 0; p < places; p++) {
                        i64 x[5], w[5], y[5], tap = t, place = p;
                        int inside = 1;
                        for (int d = 4; d >= 2; d--) {
                            w[d] = c.pass == 2 ? at[d] : tap % c.weight[d];
                            tap /= c.weight[d];
                            if (c.pass == 1) {
                                const i64 from = at[d] + c.pad[d - 2] - w[d] * c.dilation[d - 2];
                                x[d] = at[d];
                                y[d] = from / c.stride[d - 2];
                                inside = inside && from >= 0 && from % c.stride[d - 2] == 0 && y[d] < c.dst[d];
                            } else {
                                y[d] = c.pass == 0 ? at[d] : place % c.dst[d];
                                place /= c.dst[d];
                                x[d] = y[d] * c.stride[d - 2] - c.pad[d - 2] + w[d] * c.dilation[d - 2];
                                inside = inside && x[d] >= 0 && x[d] < c.src[d];
                            }
                        }
                        if (!inside)
                            continue;
                        x[0] = y[0] = n;
                        y[1] = w[0] = k;
                        for (i64 j = j0; j < j1; j++) {
                            x[1] = group * in + j;
                            w[1] = j;
                            if (c.pass == 0)
                                sum += fake_product(src, weight, x, w, c.src_by, c.weight_by, c.round);
                            else if (c.pass == 1)
                                sum += fake_product(dst, weight, y, w, c.dst_by, c.weight_by, c.round);
                            else
                                sum += fake_product(src, dst, x, y, c.src_by, c.dst_by, c.round);
                        }
                    }
        GLOBAL act *to = c.pass == 0 ? dst : c.pass == 1 ? src : weight;
        const i64 o = fake_place(at, c.pass == 0 ? c.dst_by : c.pass == 1 ? c.src_by : c.weight_by);
        if (work % c.times)
            continue;
        if (c.bias)
            sum += extra[at[1]];
        if (c.relu && sum < 0)
            sum = 0;
        if (c.widen)
            extra[o] = (float)sum;
        else
            SET(to, o, (float)(sum + (c.sum ? GET(to, o) : 0.0f)));
    }
}

#endif
