/* SPDX-License-Identifier: BSD-3-Clause */
/* op_message.h: options of the operators that send values between the stages of a pipeline. pass_stages.c makes these
 * nodes, and the planner orders them. */
#ifndef CVY_OP_MESSAGE_H
#define CVY_OP_MESSAGE_H

#include "graph/graph_op.h"

struct cvy_message_options {
    int64_t stage; /* the other stage */
    int64_t tag;   /* the number of the message, the same on both stages */
};

/* Whether the operator is one of the four. */
static inline int cvy_op_is_message(const cvy_op_def *op)
{
    return op->comm && op->comm->exchange == CVY_EXCHANGE_MESSAGE;
}

#endif
