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
 * their samples are stored (see data_order.c). Any thread may call it. */
void cvy_epoch_order_get(cvy_epoch_order *o, uint64_t epoch, int64_t batch_first, int64_t batch_n, int64_t first,
                         int64_t n, int64_t *number_out);
void cvy_epoch_order_destroy(cvy_epoch_order **o);

#endif
