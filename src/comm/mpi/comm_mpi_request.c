/*
 * comm_mpi_request.c: a non-blocking reduction of one range. It goes through the node's shared memory if the range is
 * in it, otherwise by messages among all ranks. The caller or the progress thread tests it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/mpi/comm_mpi_request.h"

#include "comm/mpi/comm_mpi_impl.h"
#include "comm/mpi/comm_mpi_thread.h"

/* Finds the progress thread if opts ask for it. In a simulation there is none here; plan_clock.c simulates it. */
static cvy_status find_thread(cvy_mpi *mpi, const cvy_allreduce_opts *opts, cvy_request *r)
{
    return opts->progress == CVY_PROGRESS_THREAD && !mpi->simulated.folded ? cvy_progress_thread_need(mpi, &r->thread)
                                                                           : CVY_OK;
}

static cvy_status choose(cvy_comm *comm, const cvy_allreduce_opts *opts, const cvy_group_range *range,
                         cvy_part *part_out, cvy_request *r)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    const size_t bytes = (size_t)range->count * cvy_dtype_bytes(range->dtype);
    cvy_node_window *window = opts->no_node ? NULL : cvy_node_window_find(mpi, range->data, bytes);
    const int by_node = window && window->nslots < CVY_WINDOW_SLOTS, half = opts->halves && part_out;
    cvy_allreduce_opts by_messages = *opts;
    /* Reductions through the node and reductions among all ranks must not mix: ranks would begin them in different
     * orders and wait for each other's slots. */
    CVY_CHECK(by_node || half || (!window && !part_out), CVY_E_UNSUPPORTED,
              "gradients in more than %d buckets: set opts.bucket_bytes higher", CVY_WINDOW_SLOTS - 1);
    CVY_TRY(find_thread(mpi, opts, r));
    if (opts->progress == CVY_PROGRESS_THREAD)
        by_messages.threads = 1;
    if (half)
        return cvy_group_half_create(mpi, &mpi->all, &by_messages, range, part_out, &r->group);
    return by_node ? cvy_node_reduction_create(comm, window, &by_messages, range, part_out, &r->node)
                   : cvy_group_reduction_create(mpi, &mpi->all, &by_messages, range, &r->group);
}

/* Completes a new request. It takes ownership of r. */
static cvy_status finish(cvy_comm *comm, cvy_request *r, cvy_status status, cvy_request **out)
{
    if (status != CVY_OK) {
        cvy_mem_free(&r);
        return status;
    }
    r->comm = comm;
    r->sent_bytes = r->node ? cvy_node_reduction_sent(r->node) : cvy_group_reduction_sent(r->group);
    *out = r;
    return CVY_OK;
}

static cvy_status request_create(cvy_comm *comm, const cvy_allreduce_opts *opts, void *data, int64_t count,
                                 cvy_dtype dtype, cvy_part *part_out, cvy_request **out)
{
    const cvy_dtype wire = dtype == CVY_DTYPE_F32 && opts->wire == CVY_DTYPE_BF16 ? CVY_DTYPE_BF16 : dtype;
    const cvy_group_range range = {data, count, dtype, wire};
    cvy_request *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    r->bytes = (size_t)count * cvy_dtype_bytes(dtype);
    return finish(comm, r, choose(comm, opts, &range, part_out, r), out);
}

static cvy_status request_create_gather(cvy_comm *comm, const cvy_allreduce_opts *opts, void *data, int64_t count,
                                        cvy_dtype dtype, cvy_request **out)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    const cvy_group_range range = {data, count, dtype, dtype};
    cvy_request *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    cvy_status status = find_thread(mpi, opts, r);
    if (status == CVY_OK)
        status = cvy_group_half_create(mpi, &mpi->all, opts, &range, NULL, &r->group);
    return finish(comm, r, status, out);
}

cvy_status cvy_mpi_request_start_now(cvy_request *r)
{
    if (r->node)
        cvy_node_reduction_start(r->node);
    return r->group ? cvy_group_reduction_start(r->group) : CVY_OK;
}

cvy_status cvy_mpi_request_test_now(cvy_request *r, int *done_out)
{
    return r->node ? cvy_node_reduction_progress(r->node, done_out) : cvy_group_reduction_progress(r->group, done_out);
}

static cvy_status request_start(cvy_request *r)
{
    r->comm->sent_bytes += r->sent_bytes;
    atomic_fetch_add_explicit(&r->comm->ncollectives, 1, memory_order_relaxed);
    if (r->thread) {
        cvy_progress_thread_start(r->thread, r);
        return CVY_OK;
    }
    cvy_simulated_sum_node(cvy_mpi_of(r->comm), r->bytes);
    cvy_mpi_lock(cvy_mpi_of(r->comm));
    const cvy_status status = cvy_mpi_request_start_now(r);
    cvy_mpi_unlock(cvy_mpi_of(r->comm));
    return status;
}

static cvy_status request_test(cvy_request *r, int *done_out)
{
    if (r->thread)
        return cvy_progress_thread_test(r->thread, r, done_out);
    cvy_mpi_lock(cvy_mpi_of(r->comm));
    const cvy_status status = cvy_mpi_request_test_now(r, done_out);
    cvy_mpi_unlock(cvy_mpi_of(r->comm));
    return status;
}

static void request_destroy(cvy_request **r)
{
    if (*r) {
        cvy_node_reduction_destroy(&(*r)->node);
        cvy_group_reduction_destroy(&(*r)->group);
    }
    cvy_mem_free(r);
}

const cvy_comm_reduce_ops cvy_mpi_reduce_ops = {
    .create = request_create,
    .create_gather = request_create_gather,
    .start = request_start,
    .test = request_test,
    .destroy = request_destroy,
};
