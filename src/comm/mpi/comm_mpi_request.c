/*
 * comm_mpi_request.c: a non-blocking sum of one range: through the node's memory where the range lies in it, else by messages among all.
 */
#include <stdatomic.h>

#include "comm/mpi/comm_mpi_impl.h"

static cvy_status choose(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_part *part_out, cvy_request *r)
{
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    const cvy_dtype wire = dtype == CVY_DTYPE_F32 && comm->sums.wire == CVY_DTYPE_BF16 ? CVY_DTYPE_BF16 : dtype;
    cvy_window *window = comm->sums.no_node ? NULL : cvy_window_find(mpi, data, (size_t)count * cvy_dtype_bytes(dtype));
    const int by_node = window && window->nslots < CVY_WINDOW_SLOTS;
    const int half = comm->sums.halves && part_out;
    /* Sums of the node and sums among all must not mix: ranks would begin them in different orders, and wait for each other's places. */
    CVY_CHECK(by_node || half || (!window && !part_out), CVY_E_UNSUPPORTED, "gradients in more than %d buckets: set comm.bucket higher", CVY_WINDOW_SLOTS - 1);
    mpi->newest_first = comm->sums.newest_first;
    if (comm->sums.progress == CVY_PROGRESS_THREAD && !mpi->folded) /* a simulated one is in the clock: plan_clock.c */
        CVY_TRY(cvy_pusher_need(mpi));
    mpi->add_threads = comm->sums.progress == CVY_PROGRESS_THREAD ? 1 : comm->sums.threads;
    r->pusher = comm->sums.progress == CVY_PROGRESS_THREAD ? mpi->pusher : NULL;
    if (half)
        return cvy_group_half_create(mpi, &mpi->all, comm->sums.algorithm, data, count, dtype, wire, part_out, &r->all);
    return by_node ? cvy_node_sum_create(comm, window, data, count, dtype, wire, part_out, &r->node)
                   : cvy_group_sum_create(mpi, &mpi->all, comm->sums.algorithm, data, count, dtype, wire, &r->all);
}

/* Takes r over. */
static cvy_status finish(cvy_comm *comm, cvy_request *r, cvy_status status, cvy_request **out)
{
    if (status != CVY_OK) {
        cvy_mem_free(&r);
        return status;
    }
    r->comm = comm;
    r->sent_bytes = r->node ? cvy_node_sum_sent(r->node) : cvy_group_sum_sent(r->all);
    *out = r;
    return CVY_OK;
}

cvy_status cvy_mpi_request_create(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_part *part_out, cvy_request **out)
{
    cvy_request *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    return finish(comm, r, choose(comm, data, count, dtype, part_out, r), out);
}

cvy_status cvy_mpi_gather_create(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_request **out)
{
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    cvy_request *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    if (comm->sums.progress == CVY_PROGRESS_THREAD && !mpi->folded) {
        const cvy_status status = cvy_pusher_need(mpi);
        if (status != CVY_OK)
            return finish(comm, r, status, out);
        r->pusher = mpi->pusher;
    }
    return finish(comm, r, cvy_group_half_create(mpi, &mpi->all, comm->sums.algorithm, data, count, dtype, dtype, NULL, &r->all), out);
}

cvy_status cvy_mpi_request_start_now(cvy_request *r)
{
    if (r->node)
        cvy_node_sum_start(r->node);
    return r->all ? cvy_group_sum_start(r->all) : CVY_OK;
}

cvy_status cvy_mpi_request_test_now(cvy_request *r, int *done_out)
{
    return r->node ? cvy_node_sum_progress(r->node, done_out) : cvy_group_sum_progress(r->all, done_out);
}

cvy_status cvy_mpi_request_start(cvy_request *r)
{
    r->comm->sent_bytes += r->sent_bytes;
    atomic_fetch_add_explicit(&r->comm->met, 1, memory_order_relaxed);
    if (!r->pusher)
        return cvy_mpi_request_start_now(r);
    cvy_pusher_hand(r->pusher, r);
    return CVY_OK;
}

cvy_status cvy_mpi_request_test(cvy_request *r, int *done_out)
{
    return r->pusher ? cvy_pusher_look(r->pusher, r, done_out) : cvy_mpi_request_test_now(r, done_out);
}

void cvy_mpi_request_destroy(cvy_request **r)
{
    if (*r) {
        cvy_node_sum_destroy(&(*r)->node);
        cvy_group_sum_destroy(&(*r)->all);
    }
    cvy_mem_free(r);
}
