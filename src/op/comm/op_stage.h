/*
 * op_stage.h: how an operator that exchanges a tensor of a device gets it into the host's memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_STAGE_H
#define CVY_OP_STAGE_H

#include "backend/backend_stage.h"
#include "comm/comm_messages.h"
#include "reduce/reduce_bucket.h"

/* Copies the tensor to stage->host and waits for it, because all exchanges begin in the order of the plan: messages
 * that were started before are then on their way. While the host waits, there is progress on the buckets; NULL: on
 * none. */
cvy_status cvy_op_stage_out(const cvy_stage *stage, const void *tensor, size_t bytes, cvy_comm *comm,
                            cvy_bucket_set *buckets, cvy_messages *messages);

#endif
