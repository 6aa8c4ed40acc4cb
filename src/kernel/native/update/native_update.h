/*
 * native_update.h: what the fast optimisers share. They accept any layout, if weight, gradient and states have the same
 * one. Padding lanes stay zero.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_UPDATE_H
#define CVY_NATIVE_UPDATE_H

#include "kernel/native/native_math.h"
#include "optim/optim_update.h"

typedef struct cvy_native_update {
    const void *options; /* of the node, not owned */
    int64_t elems;       /* with padding */
    int threads;
    cvy_update_scalars now; /* of the running call, like the pointers below */
    const float *weight, *gradient, *state[3];
    float *weight_out, *state_out[3];
    cvy_range_fn range;
    int adapts;   /* of lars and lamb: the weight has a trust ratio */
    float limit;  /* largest magnitude of a weight; 0: none */
    double decay; /* of the running average of the weight; 0: there is none */
    float keep;   /* share of the old average in the new one, in this call */
    const float *average;
    float *average_out;
    int shadow_at; /* destination that is the bf16 shadow copy of the weight; 0: none */
    cvy_bf16 *shadow;
} cvy_native_update;

/* Sums of squares of a weight, and of its gradient or step. */
typedef struct cvy_squares {
    double weight, step;
} cvy_squares;
/* Adds up the squares of the elements first .. end-1; it may also compute other results for them. */
typedef void (*cvy_squares_fn)(const cvy_native_update *u, int64_t first, int64_t end, cvy_squares *out);

cvy_status cvy_native_update_offer(cvy_kernel_ask *ask);
cvy_status cvy_native_update_create(const cvy_kernel_ask *ask, void **state_out);
void cvy_native_update_destroy(void *state);
/* The offer of an update that needs squares: it also asks for scratch memory. */
cvy_status cvy_native_update_offer_squares(cvy_kernel_ask *ask);

/* Of an operator that sums the squares alone (NAME_squares of an optimiser). */
cvy_status cvy_native_squares_offer(cvy_kernel_ask *ask);
cvy_status cvy_native_squares_create(const cvy_kernel_ask *ask, void **state_out);
cvy_status cvy_native_squares_run(cvy_native_update *u, int nstate, cvy_squares_fn squares, void *const *src,
                                  void *const *dst, void *scratch);

/* A run has these steps. Stores the pointers and scalars of this call in u. */
void cvy_native_update_begin(cvy_native_update *u, double lr_mult, int nstate, void *const *src, void *const *dst);
/* Sums squares over all elements. Sums over pieces of fixed size are added in order, so the result does not depend on
 * the number of threads. Padding lanes are zero and add nothing. */
cvy_squares cvy_native_update_squares(cvy_native_update *u, cvy_squares_fn squares, void *scratch);
/* Runs range over all elements. */
cvy_status cvy_native_update_end(cvy_native_update *u, cvy_range_fn range);
/* Begin and end, for updates without squares. */
cvy_status cvy_native_update_run(cvy_native_update *u, double lr_mult, int nstate, void *const *src, void *const *dst,
                                 cvy_range_fn range);

/* Updates the elements first .. first + n - 1 with the gradient [n], for a kernel that computes it in parts. Call it
 * between begin and the end of a run, instead of end; u->range must be set. */
void cvy_native_update_part(const cvy_native_update *u, int64_t first, int64_t n, const float *gradient);

/* The loop of sgd. */
cvy_range_fn cvy_native_sgd_range(const struct cvy_sgd *o);

#endif
