/*
 * send_start, send_wait, receive_start, receive_wait: messages between the stages of a pipeline. A receive is started
 * before the value is needed and waited for where it is first read; a send is started where the value is made, and its
 * wait keeps the memory until it is sent. They are tested by tests/program/test_program_stages.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/comm/op_message.h"

#include "base/base_mem.h"
#include "comm/comm_messages.h"
#include "graph/graph_op.h"
#include "reduce/reduce_bucket.h"

struct message {
    cvy_messages *set;
    cvy_bucket_set *buckets;
    int number; /* in the set */
};

static void message_destroy(void **state)
{
    cvy_mem_free(state);
}

static cvy_status message_create(const cvy_node *node, const cvy_comm_binding *binding, void **state_out)
{
    const struct cvy_message_options *options = node->options;
    const cvy_op_comm *comm = node->op->comm;
    const cvy_message_key key = {.receives = comm->receives, .tag = (int)options->tag, .micro = binding->micro};
    const cvy_span *value = comm->starts && comm->receives ? &binding->dst[0] : &binding->src[0];
    struct message *m = NULL;
    CVY_CHECK(binding->messages, CVY_E_INTERNAL, "%s: the plan has no pipeline", node->name);
    if (comm->starts)
        CVY_TRY(cvy_messages_add(binding->messages, &key, (int)options->stage, value->data,
                                 (size_t)value->elems * cvy_dtype_bytes(value->dtype)));
    const int number = cvy_messages_find(binding->messages, &key);
    CVY_CHECK(number >= 0, CVY_E_INTERNAL, "%s waits for a message that is not started before it", node->name);
    CVY_TRY(cvy_mem_alloc(sizeof *m, &m));
    *m = (struct message){binding->messages, binding->buckets, number};
    *state_out = m;
    return CVY_OK;
}

static cvy_status start_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct message *m = state;
    (void)src, (void)dst, (void)scratch;
    return cvy_messages_start(m->set, m->number);
}

/* Meanwhile it makes progress on reductions too, because ranks of the data axis may need this rank's part in them. */
static cvy_status wait_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct message *m = state;
    (void)src, (void)dst, (void)scratch;
    for (int round = 0; cvy_messages_is_active(m->set, m->number); round++) {
        CVY_TRY(cvy_messages_progress(m->set));
        if (cvy_messages_is_active(m->set, m->number)) {
            CVY_TRY(cvy_bucket_set_progress(m->buckets));
            CVY_TRY(m->set->comm->ops->rest(m->set->comm, round));
        }
    }
    return cvy_messages_await(m->set, m->number);
}

#define MESSAGE_COMM(from_other, does, runs)                                                                           \
    {                                                                                                                  \
        .exchange = CVY_EXCHANGE_MESSAGE, .receives = from_other, .does = 1, .create = message_create, .run = runs,    \
        .destroy = message_destroy, .axis = CVY_COMM_PIPELINE                                                          \
    }

static const cvy_op_comm send_start_comm = MESSAGE_COMM(0, starts, start_run);
static const cvy_op_comm send_wait_comm = MESSAGE_COMM(0, waits, wait_run);
static const cvy_op_comm receive_start_comm = MESSAGE_COMM(1, starts, start_run);
static const cvy_op_comm receive_wait_comm = MESSAGE_COMM(1, waits, wait_run);

static const cvy_option message_opts[] = {
    {"stage", CVY_TYPE_INT, CVY_FIELD(cvy_message_options, stage), "0", "0..", "", "the other stage"},
    {"tag", CVY_TYPE_INT, CVY_FIELD(cvy_message_options, tag), "0", "0..15999", "", "number of the message"},
    {0},
};

/* The destination is a token: it carries no data. */
static cvy_status token_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, CVY_DTYPE_I32, &(cvy_shape){0});
}

/* pass_stages.c sets the destination: the value that another stage makes. */
static cvy_status receive_infer(cvy_node *node)
{
    (void)node;
    return CVY_OK;
}

#define MESSAGE_OP(op, what, sources, infers)                                                                          \
    {                                                                                                                  \
        .name = #op, .summary = what, .options = message_opts, .options_size = sizeof(struct cvy_message_options),     \
        .nsrc_min = sources, .nsrc_max = sources, .ndst = 1, .flags = CVY_OP_COMM | CVY_OP_HIDDEN, .infer = infers,    \
        .comm = &op##_comm,                                                                                            \
    }

CVY_OP_DEFINE(send_start) = MESSAGE_OP(send_start, "starts to send a value to another stage", 1, token_infer);
CVY_OP_DEFINE(send_wait) = MESSAGE_OP(send_wait, "waits until a value has been sent", 1, token_infer);
CVY_OP_DEFINE(receive_start) = MESSAGE_OP(receive_start, "starts to receive a value from another stage", 0,
                                          receive_infer);
CVY_OP_DEFINE(receive_wait) = MESSAGE_OP(receive_wait, "waits until a value has been received", 1, token_infer);
