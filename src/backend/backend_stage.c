/*
 * backend_stage.c: see backend_stage.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/backend_stage.h"

cvy_status cvy_stage_make(cvy_stage *stage, const cvy_space *space, void *host, size_t bytes)
{
    *stage = (cvy_stage){.space = space, .host = host, .bytes = host ? 0 : CVY_MAX(bytes, 1)};
    cvy_status status = host ? CVY_OK : cvy_space_alloc_host(space, stage->bytes, &stage->host);
    if (status == CVY_OK)
        status = cvy_mark_create(space, &stage->made);
    if (status == CVY_OK)
        status = cvy_mark_create(space, &stage->there);
    if (status != CVY_OK)
        cvy_stage_free(stage);
    return status;
}

void cvy_stage_free(cvy_stage *stage)
{
    if (stage->there)
        (void)cvy_space_sync_all(stage->space); /* after a fault of the device nothing is under way any more */
    cvy_mark_destroy(stage->space, &stage->made);
    cvy_mark_destroy(stage->space, &stage->there);
    if (stage->bytes > 0)
        cvy_space_free_host(stage->space, &stage->host, stage->bytes);
    *stage = (cvy_stage){0};
}

cvy_status cvy_stage_follow(const cvy_stage *stage)
{
    return cvy_mark_put(stage->space, CVY_LANE_COMPUTE, stage->made);
}

static cvy_status copy(const cvy_stage *stage, void *to, const void *from, size_t bytes)
{
    CVY_TRY(cvy_mark_await(stage->space, CVY_LANE_COMM, stage->made));
    CVY_TRY(cvy_space_copy(stage->space, CVY_LANE_COMM, to, from, bytes));
    return cvy_mark_put(stage->space, CVY_LANE_COMM, stage->there);
}

cvy_status cvy_stage_out(const cvy_stage *stage, size_t at, const void *from, size_t bytes)
{
    CVY_TRY(cvy_stage_follow(stage));
    return copy(stage, stage->host + at, from, bytes);
}

cvy_status cvy_stage_in(const cvy_stage *stage, void *to, size_t at, size_t bytes)
{
    return copy(stage, to, stage->host + at, bytes);
}

cvy_status cvy_stage_is_reached(const cvy_stage *stage, int wait, int *reached_out)
{
    return cvy_mark_reached(stage->space, stage->there, wait, reached_out);
}

cvy_status cvy_stage_await(const cvy_stage *stage)
{
    return cvy_mark_await(stage->space, CVY_LANE_COMPUTE, stage->there);
}
