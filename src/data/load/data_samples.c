/*
 * data_samples.c: which samples a rank sees in which step. This is a pure function of the step, so loaders can run
 * ahead, and a resumed run continues at the same sample, even with another number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/load/data_samples.h"
#include "comm/comm_shards.h"

cvy_order cvy_order_make(int64_t nsamples, int64_t batch, int64_t accumulate, int drop_tail, int64_t epochs_or_zero,
                         int64_t steps, const cvy_comm *comm)
{
    cvy_order o = {.nsamples = nsamples,
                   .batch = CVY_MIN(batch, nsamples),
                   .accumulate = accumulate,
                   .rank = comm->rank,
                   .nranks = comm->nranks};
    o.steps_per_epoch = drop_tail && nsamples >= o.batch ? nsamples / o.batch : (nsamples + o.batch - 1) / o.batch;
    o.last_step = epochs_or_zero ? epochs_or_zero * o.steps_per_epoch : steps;
    return o;
}

int64_t cvy_order_batch(const cvy_order *o, int64_t step)
{
    const int64_t first = step % o->steps_per_epoch * o->batch;
    return CVY_MIN(o->batch, o->nsamples - first);
}

int64_t cvy_order_samples_before(const cvy_order *o, int64_t step)
{
    const int64_t an_epoch = CVY_MIN(o->steps_per_epoch * o->batch, o->nsamples);
    return step / o->steps_per_epoch * an_epoch + step % o->steps_per_epoch * o->batch;
}

cvy_batch cvy_order_part(const cvy_order *o, int64_t n, int rank)
{
    if (!o->shards)
        return cvy_batch_share(n, rank, o->nranks);
    const cvy_part mine = cvy_shards_samples(n, o->shards, cvy_shards_of(o->shards, rank, o->nranks));
    return (cvy_batch){
        .global_n = n, .first = mine.first, .local_n = mine.end - mine.first, .nranks = o->nranks, .rank = rank};
}

/* All ranks share each micro-batch. With shards there is one micro-batch, and a rank's shards follow each other in
 * it. */
cvy_status cvy_order_share(void *order, int64_t step, cvy_share *shares, int max, int *nshare_out)
{
    const cvy_order *o = order;
    if (step >= o->last_step)
        return CVY_END;
    const int64_t n = cvy_order_batch(o, step), nmicro = o->shards ? 1 : CVY_MIN(o->accumulate, n);
    CVY_CHECK(nmicro <= max, CVY_E_CONFIG, "%lld micro-batches per step; at most %d", (long long)nmicro, max);
    int64_t position = step % o->steps_per_epoch * o->batch;
    for (int64_t m = 0; m < nmicro; m++) {
        const int64_t micro_n = n / nmicro + (m < n % nmicro);
        const cvy_batch share = cvy_order_part(o, micro_n, o->rank);
        shares[m] = (cvy_share){.epoch = step / o->steps_per_epoch,
                                .first_position = position + share.first,
                                .n = share.local_n,
                                .batch_first = position,
                                .batch_n = micro_n};
        position += micro_n;
    }
    *nshare_out = (int)nmicro;
    return CVY_OK;
}
