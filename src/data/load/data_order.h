/*
 * data_order.h: which sample is at which position of an epoch. It is a function of (seed, epoch, position), so nothing
 * is stored for a sample, and every rank can compute its share of any step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_ORDER_H
#define CVY_DATA_ORDER_H

#include "data/data.h"

typedef struct cvy_epoch_order cvy_epoch_order;

/* With balance it reads all labels of d once. It does not keep d. */
cvy_status cvy_epoch_order_create(cvy_dataset *d, const cvy_order_opts *opts, cvy_epoch_order **out);
/* Gets the sample numbers of rows `first` .. `first + n - 1` of a batch. The batch has batch_n positions, from
 * batch_first on. Row i is position batch_first + i, except for window shuffles, which group a batch's rows by where
 * their samples are stored (see data_order.c). repeat_out (may be NULL) gets the number of the draw of each row's
 * sample: 0, and for a sample that the epoch draws several times 0, 1, 2 .. in any order. Any thread may call it. */
void cvy_epoch_order_get(cvy_epoch_order *o, uint64_t epoch, int64_t batch_first, int64_t batch_n, int64_t first,
                         int64_t n, int64_t *number_out, int64_t *repeat_out);
void cvy_epoch_order_destroy(cvy_epoch_order **o);

/* Makes the key of random numbers, such as an epoch or a sample's number, another one for each draw of a sample. Draw 0
 * leaves it. The factor is 2^64 divided by the golden ratio: its multiples lie as far apart as they can, so two pairs
 * of a key and a repeat that are all below 2^31 never give the same result. */
static inline uint64_t cvy_repeat_key(uint64_t key, int64_t repeat)
{
    return key + (uint64_t)repeat * 0x9E3779B97F4A7C15u;
}

#endif
