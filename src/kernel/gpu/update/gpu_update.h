/*
 * gpu_update.h: what the kernels of the optimisers share: the formulas, for one weight (gpu_update.c) and for many
 * weights by one launch (gpu_update_group.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_UPDATE_H
#define CVY_GPU_UPDATE_H

#include "backend/gpu/device.h"

enum { UPDATE_THREADS = 256, UPDATE_PARTS = 512, UPDATE_WORK = 4 }; /* UPDATE_WORK: elements of a thread at a time */
enum {
    UPDATE_SGD,
    UPDATE_ADAM,
    UPDATE_ADAMW,
    UPDATE_RMSPROP,
    UPDATE_ADAGRAD,
    UPDATE_ADADELTA,
    UPDATE_LARS,
    UPDATE_LAMB
};
struct update {
    i64 n;
    double lr_mult, average, weight_decay, eps;
    double a, b; /* sgd: momentum; adam, lamb: beta1, beta2; rmsprop: alpha, momentum; adagrad: lr_decay; adadelta: rho;
                    lars: momentum, trust coefficient */
    double log_a, log_b;             /* adam, lamb */
    double of_gradient, of_momentum; /* sgd: the shares of both in a step */
    float limit;                     /* largest magnitude of a weight; 0: none */
    int f;                           /* UPDATE_* */
    int states;                      /* bit k: state k is there */
    int has_average, has_shadow;
    int flag;   /* sgd: lr_inside; adam: eps_hat; lars, lamb: the weight has a trust ratio */
    int parts;  /* lars, lamb: of the squares */
    int blocks; /* of the update */
};

#ifdef CVY_DEVICE

/* The scalars of a step. */
struct update_now {
    float scale, rate, inside, into, keep, mean, root, eps, average;
};

/* The states of an optimiser that has less stay 0. */
struct update_element {
    float weight, gradient, state0, state1, state2;
};

INLINE double update_trust(struct update u, double weight_squares, double other_squares)
{
    if (u.f == UPDATE_LAMB)
        return weight_squares > 0 && other_squares > 0 ? SQRT_D(weight_squares) / SQRT_D(other_squares) : 1;
    const double weight = SQRT_D(weight_squares), below = SQRT_D(other_squares) + u.weight_decay * weight;
    return weight > 0 && below > 0 ? u.b * weight / below : 1;
}

/* trust: a factor on the learning rate. */
INLINE struct update_now update_begin(struct update u, double lr, double scale, double step, double trust)
{
    struct update_now now;
    const double rate = lr * u.lr_mult * trust, most = step / (step + 10);
    now.scale = (float)scale;
    now.rate = (float)rate;
    now.average = (float)(u.average < most ? u.average : most);
    now.inside = now.keep = now.mean = now.root = 1;
    now.into = (float)u.weight_decay;
    now.eps = (float)u.eps;
    if (u.f == UPDATE_ADAM || u.f == UPDATE_ADAMW || u.f == UPDATE_LAMB) {
        const double mean = 1 / (1 - EXP_D((step + 1) * u.log_a)), root = 1 / SQRT_D(1 - EXP_D((step + 1) * u.log_b));
        now.mean = (float)mean;
        now.root = (float)root;
        if (u.f != UPDATE_LAMB) {
            now.rate = (float)(rate * mean);
            now.eps = u.flag ? now.eps * now.root : now.eps;
        }
        if (u.f == UPDATE_ADAMW) {
            now.into = 0;
            now.keep = (float)(1 - rate * u.weight_decay);
        }
    } else if (u.f == UPDATE_SGD && u.flag) {
        now.inside = now.rate;
        now.rate = 1;
    } else if (u.f == UPDATE_ADAGRAD) {
        now.rate = (float)(rate / (1 + step * u.a));
    } else if (u.f == UPDATE_LARS) {
        now.scale = (float)(rate * scale);
        now.into = (float)(rate * u.weight_decay);
    }
    return now;
}

INLINE struct update_element update_moments(struct update u, struct update_element e, float g)
{
    e.state0 = (float)u.a * e.state0 + (float)(1 - u.a) * g;
    e.state1 = (float)u.b * e.state1 + (float)(1 - u.b) * g * g;
    return e;
}

INLINE float lamb_direction(struct update u, struct update_now now, struct update_element e)
{
    return e.state0 * now.mean / (SQRT(e.state1) * now.root + now.eps) + (float)u.weight_decay * e.weight;
}

INLINE struct update_element update_rmsprop(struct update u, struct update_now now, struct update_element e, float g)
{
    const float alpha = (float)u.a, rest = (float)(1 - u.a);
    e.state0 = alpha * e.state0 + rest * g * g;
    if (u.states & 2)
        e.state1 = alpha * e.state1 + rest * g;
    const float left = e.state0 - e.state1 * e.state1;
    e.state2 = (float)u.b * e.state2 + g / (SQRT(left > 0 ? left : 0.0f) + now.eps);
    e.weight -= now.rate * e.state2;
    return e;
}

INLINE struct update_element update_adadelta(struct update u, struct update_now now, struct update_element e, float g)
{
    const float rho = (float)u.a, rest = (float)(1 - u.a);
    e.state0 = rho * e.state0 + rest * g * g;
    const float d = g * SQRT(e.state1 + now.eps) / SQRT(e.state0 + now.eps);
    e.state1 = rho * e.state1 + rest * d * d;
    e.weight -= now.rate * d;
    return e;
}

INLINE struct update_element update_one(struct update u, struct update_now now, struct update_element e)
{
    const float g = now.inside * (now.scale * e.gradient + now.into * e.weight);
    switch (u.f) {
    case UPDATE_SGD:
        e.state0 = (float)u.a * e.state0 + g;
        e.weight -= now.rate * ((float)u.of_gradient * g + (float)u.of_momentum * e.state0);
        break;
    case UPDATE_ADAM:
    case UPDATE_ADAMW:
        e = update_moments(u, e, g);
        e.weight = now.keep * e.weight - now.rate * e.state0 / (SQRT(e.state1) * now.root + now.eps);
        break;
    case UPDATE_RMSPROP: e = update_rmsprop(u, now, e, g); break;
    case UPDATE_ADAGRAD:
        e.state0 += g * g;
        e.weight -= now.rate * g / (SQRT(e.state0) + now.eps);
        break;
    case UPDATE_ADADELTA: e = update_adadelta(u, now, e, g); break;
    case UPDATE_LARS:
        e.state0 = (float)u.a * e.state0 + g;
        e.weight -= e.state0;
        break;
    default:
        e = update_moments(u, e, now.scale * e.gradient);
        e.weight -= now.rate * lamb_direction(u, now, e);
        break;
    }
    if (u.limit > 0)
        e.weight = e.weight > u.limit ? u.limit : e.weight < -u.limit ? -u.limit : e.weight;
    return e;
}

/* What an optimiser does not have is not read or written. */
struct update_memory {
    GLOBAL const float *weight, *gradient, *state0, *state1, *state2, *average;
    GLOBAL float *weight_out, *state0_out, *state1_out, *state2_out, *average_out;
    GLOBAL u16 *shadow;
};

INLINE struct update_element update_load(struct update u, struct update_memory m, i64 i)
{
    struct update_element e;
    e.weight = m.weight[i];
    e.gradient = m.gradient[i];
    e.state0 = u.states & 1 ? m.state0[i] : 0;
    e.state1 = u.states & 2 ? m.state1[i] : 0;
    e.state2 = u.states & 4 ? m.state2[i] : 0;
    return e;
}

INLINE void update_store(struct update u, struct update_now now, struct update_memory m, i64 i, struct update_element e)
{
    m.weight_out[i] = e.weight;
    if (u.states & 1)
        m.state0_out[i] = e.state0;
    if (u.states & 2)
        m.state1_out[i] = e.state1;
    if (u.states & 4)
        m.state2_out[i] = e.state2;
    if (u.has_average)
        m.average_out[i] = now.average * m.average[i] + (1 - now.average) * e.weight;
    if (u.has_shadow)
        m.shadow[i] = bf16_of(e.weight);
}

/* The share of block number `block` of `blocks`. A thread loads several elements before it stores one, so that more of
 * memory's delay is hidden. */
INLINE void update_range(struct update u, struct update_now now, struct update_memory m, i64 block, i64 blocks)
{
    const i64 step = blocks * THREADS;
    for (i64 i = block * THREADS + THREAD; i < u.n; i += UPDATE_WORK * step) {
        struct update_element e[UPDATE_WORK];
        for (int k = 0; k < UPDATE_WORK; k++)
            if (i + k * step < u.n)
                e[k] = update_load(u, m, i + k * step);
        for (int k = 0; k < UPDATE_WORK; k++)
            if (i + k * step < u.n)
                update_store(u, now, m, i + k * step, update_one(u, now, e[k]));
    }
}

/* The sums of a thread: squares of the weight, and of its gradient (lars) or its direction (lamb). */
struct update_sums {
    double weights, others;
};

INLINE struct update_sums update_squares_range(struct update u, double scale, double step, struct update_memory m,
                                               i64 block, i64 blocks)
{
    const struct update_now now = update_begin(u, 1, scale, step, 1);
    struct update_sums sums;
    sums.weights = sums.others = 0;
    for (i64 i = block * THREADS + THREAD; i < u.n; i += blocks * THREADS) {
        struct update_element e;
        e.weight = m.weight[i];
        double other = m.gradient[i];
        if (u.f == UPDATE_LAMB) {
            e.state0 = m.state0[i];
            e.state1 = m.state1[i];
            other = lamb_direction(u, now, update_moments(u, e, now.scale * m.gradient[i]));
        } else {
            other *= scale;
        }
        sums.weights += (double)e.weight * e.weight;
        sums.others += other * other;
    }
    return sums;
}

/* A thread's share of the sums of all blocks. */
INLINE struct update_sums update_parts(struct update u, GLOBAL const double *part)
{
    struct update_sums sums;
    sums.weights = sums.others = 0;
    for (int p = THREAD; p < u.parts; p += THREADS) {
        sums.weights += part[2 * p];
        sums.others += part[2 * p + 1];
    }
    return sums;
}

#else
#include "kernel/gpu/gpu_common.h"
#include "kernel/kernel_library.h"

enum { CVY_GPU_UPDATE_STATES = 3 };

/* The state of the kernel of an update. */
typedef struct cvy_gpu_update {
    cvy_gpu_kernel update, squares, sum;
    int *hold; /* cvy_gpu_hold() */
    struct update u;
    int nstate, slot[CVY_GPU_UPDATE_STATES]; /* the number that each state of the node has in struct update_element */
    int shadow_at;                           /* destination that is the bf16 copy of the weight */
    struct cvy_gpu_update_group *group;      /* the updates that this one runs, of which it is the first */
    const void *led;                         /* the weight, if another update runs this one */
} cvy_gpu_update;

/* The tensors of a call; the weight is in the place of what there is not. */
typedef struct cvy_gpu_update_tensors {
    void *from[CVY_GPU_UPDATE_STATES + 1], *to[CVY_GPU_UPDATE_STATES + 1]; /* states, then the average */
    void *shadow;
} cvy_gpu_update_tensors;
cvy_gpu_update_tensors cvy_gpu_update_tensors_of(const cvy_gpu_update *c, void *const *src, void *const *dst);

/* The run of all kernels of updates, by which a group knows them. */
cvy_status cvy_gpu_update_run(void *state, void *const *src, void *const *dst, void *scratch);

/* Of the library (kernel_library.h). */
cvy_status cvy_gpu_update_join(const cvy_space *space, const cvy_kernel_call *calls, int n);
cvy_status cvy_gpu_update_group_run(const struct cvy_gpu_update_group *group);
void cvy_gpu_update_group_free(struct cvy_gpu_update_group **group);

#endif
#endif
