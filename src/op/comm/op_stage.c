/*
 * op_stage.c: see op_stage.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/comm/op_stage.h"

cvy_status cvy_op_stage_out(const cvy_stage *stage, const void *tensor, size_t bytes, cvy_comm *comm,
                            cvy_bucket_set *buckets, cvy_messages *messages)
{
    int there = 0;
    CVY_TRY(cvy_stage_out(stage, 0, tensor, bytes));
    for (int round = 0; !there; round++) {
        CVY_TRY(cvy_stage_is_reached(stage, 0, &there));
        if (!there && buckets)
            CVY_TRY(cvy_bucket_set_progress(buckets));
        if (!there)
            CVY_TRY(comm->ops->rest(comm, round));
    }
    return cvy_messages_settle(messages);
}
