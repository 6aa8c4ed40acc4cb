/*
 * server_worker.c: a worker's side of a step with parameter servers: its plan is executed as in sync, but a bucket is
 * sent to its owner where its reduction would start, and the worker waits for new weights where it would wait for the
 * sum.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "update/server/server_impl.h"

#include "program/program_impl.h"

cvy_status cvy_worker_start(void *server_plan, int bucket)
{
    cvy_server_plan *sp = server_plan;
    cvy_server_bucket *b = &sp->bucket[bucket];
    b->asked = 0;
    return sp->server->comm->message->send(b->gradient, b->owner, cvy_server_tag(bucket));
}

/* New weights must not arrive while backward still reads the old ones, and sums must not arrive in memory that is still
 * being sent. In a simulation messages have no memory, and only a wait can tell that one was sent. */
static cvy_status ask(cvy_server_plan *sp, int bucket)
{
    const cvy_comm *comm = sp->server->comm;
    const cvy_comm_message_ops *message = comm->message;
    cvy_server_bucket *b = &sp->bucket[bucket];
    int sent = 0;
    CVY_TRY(message->test(b->gradient, &sent, NULL));
    if ((!sent && comm->simulated_cores == 0) || atomic_load_explicit(&sp->plan->at, memory_order_relaxed) < b->ready)
        return CVY_OK;
    b->asked = 1;
    return message->receive(b->answer, b->owner, cvy_server_tag(bucket));
}

cvy_status cvy_worker_test(void *server_plan, int bucket, int *done_out)
{
    cvy_server_plan *sp = server_plan;
    const cvy_comm_message_ops *message = sp->server->comm->message;
    cvy_server_bucket *b = &sp->bucket[bucket];
    int sent = 0;
    *done_out = 0;
    if (!b->asked)
        CVY_TRY(ask(sp, bucket));
    if (b->asked)
        CVY_TRY(message->test(b->gradient, &sent, NULL));
    if (sent)
        CVY_TRY(message->test(b->answer, done_out, NULL));
    for (int w = 0; w < b->nweight && *done_out; w++)
        b->weight[w]->written++;
    return CVY_OK;
}
