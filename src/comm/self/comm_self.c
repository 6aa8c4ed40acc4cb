/*
 * comm_self.c: the communicator of one rank: every sum is what it was, nothing is ever under way.
 */
#include <string.h>

#include "base/base_mem.h"
#include "comm/comm.h"

struct cvy_request { int unused; };

static void self_destroy(cvy_comm *comm)
{
    cvy_mem_free(&comm);
}

static cvy_status self_barrier(cvy_comm *comm)
{
    (void)comm;
    return CVY_OK;
}

static cvy_status self_broadcast(cvy_comm *comm, void *data, size_t bytes, int root)
{
    (void)comm, (void)data, (void)bytes, (void)root;
    return CVY_OK;
}

static cvy_status self_allreduce(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op)
{
    (void)comm, (void)data, (void)count, (void)dtype, (void)op;
    return CVY_OK;
}

static cvy_status self_allreduce_pushing(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op, cvy_status (*push)(void *user), void *user)
{
    (void)push, (void)user;
    return self_allreduce(comm, data, count, dtype, op);
}

static cvy_status self_allgather(cvy_comm *comm, const void *mine, size_t bytes, void *all_out)
{
    (void)comm;
    if (bytes > 0)
        memcpy(all_out, mine, bytes);
    return CVY_OK;
}

static cvy_status self_gatherv(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of, int root)
{
    (void)bytes_of, (void)root;
    return self_allgather(comm, mine, bytes, all_out);
}

static cvy_status self_share(cvy_comm *comm, void *memory, size_t bytes, int *shared_out)
{
    (void)comm, (void)memory, (void)bytes;
    *shared_out = 0;
    return CVY_OK;
}

static void self_unshare(cvy_comm *comm, const void *memory)
{
    (void)comm, (void)memory;
}

static cvy_status self_common(cvy_comm *comm, size_t bytes, void **memory_out)
{
    (void)comm, (void)bytes;
    *memory_out = NULL;
    return CVY_OK;
}

static void self_common_free(cvy_comm *comm, void **memory, size_t bytes)
{
    (void)comm, (void)memory, (void)bytes;
}

static int self_all_arrived(cvy_comm *comm, const void *memory)
{
    (void)comm, (void)memory;
    return 1;
}

static cvy_status self_request_create(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_part *part_out, cvy_request **out)
{
    (void)comm, (void)data, (void)dtype;
    if (part_out)
        *part_out = (cvy_part){0, count};
    return cvy_mem_alloc(sizeof **out, out);
}

static cvy_status self_gather_create(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_request **out)
{
    return self_request_create(comm, data, count, dtype, NULL, out);
}

static cvy_status self_request_start(cvy_request *r)
{
    (void)r;
    return CVY_OK;
}

static cvy_status self_request_test(cvy_request *r, int *done_out)
{
    (void)r;
    *done_out = 1;
    return CVY_OK;
}

static void self_request_destroy(cvy_request **r)
{
    cvy_mem_free(r);
}

/* There is nobody to send to. */
static cvy_status self_message_create(cvy_comm *comm, const cvy_range *range, int nrange, cvy_message **out)
{
    (void)comm, (void)range, (void)out;
    CVY_FAIL(CVY_E_ARGUMENT, "a message of %d ranges to another rank, where there is one rank", nrange);
}

static cvy_status self_message_start(cvy_message *m, int other, int tag)
{
    (void)m, (void)tag;
    CVY_FAIL(CVY_E_ARGUMENT, "a message of rank %d, where there is one rank", other);
}

static cvy_status self_message_test(cvy_message *m, int *done_out, int *from_out)
{
    (void)m, (void)from_out;
    *done_out = 1;
    return CVY_OK;
}

static cvy_status self_message_cancel(cvy_message *m)
{
    (void)m;
    return CVY_OK;
}

static void self_message_destroy(cvy_message **m)
{
    *m = NULL;
}

static cvy_status self_rest(cvy_comm *comm, int turn)
{
    (void)comm, (void)turn;
    return CVY_OK;
}

static void self_about(const cvy_comm *comm, cvy_comm_about *out)
{
    (void)comm;
    *out = (cvy_comm_about){.threads = ""};
}

static cvy_status self_choice(cvy_comm *comm, int across, int64_t bytes, const char **name_out)
{
    (void)comm, (void)across, (void)bytes;
    *name_out = "self";
    return CVY_OK;
}

static cvy_status self_cost(cvy_comm *comm, cvy_comm_cost *out)
{
    (void)comm;
    *out = (cvy_comm_cost){0, 0};
    return CVY_OK;
}

static void self_ways(const cvy_comm *comm, char *text)
{
    (void)comm;
    text[0] = 0;
}

static void self_take_ways(cvy_comm *comm, const char *text)
{
    (void)comm, (void)text;
}

static cvy_status self_ping(cvy_comm *comm, int other, void *data, size_t bytes, double *seconds_out)
{
    (void)comm, (void)data, (void)bytes, (void)seconds_out;
    CVY_FAIL(CVY_E_ARGUMENT, "a message to rank %d, where there is one rank", other);
}

static const cvy_comm_ops self_ops = {
    .name = "self",
    .destroy = self_destroy,
    .barrier = self_barrier,
    .broadcast = self_broadcast,
    .allreduce = self_allreduce,
    .allreduce_pushing = self_allreduce_pushing,
    .allgather = self_allgather,
    .gatherv = self_gatherv,
    .share = self_share,
    .unshare = self_unshare,
    .common = self_common,
    .common_free = self_common_free,
    .arrive = self_unshare,
    .all_arrived = self_all_arrived,
    .request_create = self_request_create,
    .gather_create = self_gather_create,
    .request_start = self_request_start,
    .request_test = self_request_test,
    .request_destroy = self_request_destroy,
    .message_create = self_message_create,
    .message_send = self_message_start,
    .message_receive = self_message_start,
    .message_test = self_message_test,
    .message_cancel = self_message_cancel,
    .message_destroy = self_message_destroy,
    .rest = self_rest,
    .about = self_about,
    .choice = self_choice,
    .cost = self_cost,
    .ways = self_ways,
    .take_ways = self_take_ways,
    .ping = self_ping,
};

cvy_status cvy_comm_create_self(cvy_comm **out)
{
    cvy_comm *comm = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *comm, &comm));
    *comm = (cvy_comm){.ops = &self_ops, .rank = 0, .nranks = 1, .node_rank = 0, .node_nranks = 1, .nnodes = 1};
    *out = comm;
    return CVY_OK;
}
