/*
 * data_order.h: which sample stands at which place of an epoch: a function of (seed, epoch, place), so that nothing is
 * stored for a sample and any rank knows its share of any step.
 */
#ifndef CVY_DATA_ORDER_H
#define CVY_DATA_ORDER_H

#include "data/data.h"

typedef struct cvy_epoch_order cvy_epoch_order;

/* balance reads all labels of d, once; nothing else is kept of d. */
cvy_status cvy_epoch_order_create(cvy_dataset *d, const cvy_order_opts *opts, cvy_epoch_order **out);
/* Numbers of rows `first` .. `first + n - 1` of the batch that has the `batch_n` places from batch_first. Row i is
 * place batch_first + i, but for window shuffles, which put a batch's samples near to each other (data_order.c says
 * how). Any thread. */
void cvy_epoch_order_get(cvy_epoch_order *o, uint64_t epoch, int64_t batch_first, int64_t batch_n, int64_t first,
                         int64_t n, int64_t *number_out);
void cvy_epoch_order_destroy(cvy_epoch_order **o);

#endif
