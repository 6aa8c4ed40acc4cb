/*
 * backend_stage.h: page-locked memory of the host through which ranks exchange tensors that the host cannot read.
 *
 * What is exchanged is copied out in the lane COMM, exchanged by the host, and copied in again in the same lane. The
 * host waits for none of these copies: it asks whether a copy has come out, and computation waits on the device for
 * what was copied in. Use:
 *
 *     cvy_stage_out(stage, at, from, bytes);       what the lane COMPUTE has made so far is copied
 *     cvy_stage_is_reached(stage, 0, &there);      from time to time; then stage->host has it
 *     cvy_stage_in(stage, to, at, bytes);
 *     cvy_stage_await(stage);                      before COMPUTE reads it
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BACKEND_STAGE_H
#define CVY_BACKEND_STAGE_H

#include "backend/backend.h"

typedef struct cvy_stage { /* zero-initialise it */
    const cvy_space *space;
    char *host;
    size_t bytes;    /* of own memory; 0: the memory is the caller's */
    cvy_mark *made;  /* in the lane COMPUTE: what may be copied */
    cvy_mark *there; /* in the lane COMM: the latest copy */
} cvy_stage;

/* host: page-locked memory of the caller; NULL: the stage gets memory of its own. If it fails, nothing is to be freed.
 */
cvy_status cvy_stage_make(cvy_stage *stage, const cvy_space *space, void *host, size_t bytes);
/* Waits for copies that are under way. Accepts a stage of zeros. */
void cvy_stage_free(cvy_stage *stage);

/* Later copies run after all that is in the lane COMPUTE now. */
cvy_status cvy_stage_follow(const cvy_stage *stage);
/* Follows what is in the lane COMPUTE, and copies to host + at. */
cvy_status cvy_stage_out(const cvy_stage *stage, size_t at, const void *from, size_t bytes);
/* Copies from host + at, after what cvy_stage_follow() or cvy_stage_out() followed last. */
cvy_status cvy_stage_in(const cvy_stage *stage, void *to, size_t at, size_t bytes);
/* Whether the latest copy is done. wait: the host waits for it. */
cvy_status cvy_stage_is_reached(const cvy_stage *stage, int wait, int *reached_out);
/* The lane COMPUTE waits for the latest copy. */
cvy_status cvy_stage_await(const cvy_stage *stage);

#endif
