/*
 * op_redistribute_device.h: a redistribute of tensors on a device, without the host: kernels pack, copy, fill and add,
 * and NCCL exchanges what is packed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_REDISTRIBUTE_DEVICE_H
#define CVY_OP_REDISTRIBUTE_DEVICE_H

#include "comm/nccl/comm_nccl.h"

typedef struct cvy_entries { /* first .. end - 1; none if end <= first */
    int64_t first, end;
} cvy_entries;

/* The tensors are matrices of `outer` rows of entries of `inner` elements. */
typedef struct cvy_device_parts_def {
    const cvy_space *space;
    cvy_comm *comm; /* that NCCL may use; NULL: nothing is exchanged */
    cvy_dtype dtype;
    int64_t outer, inner;
    cvy_entries src, dst;              /* those of this rank */
    int64_t n;                         /* of the whole dimension */
    int adds;                          /* what is received is added, f32 or bf16 */
    double fill;                       /* of entries outside 0 .. n - 1 */
    const cvy_entries *send, *receive; /* by rank of comm */
} cvy_device_parts_def;

typedef struct cvy_device_parts cvy_device_parts;

/* Collective over comm. CVY_NOT_APPLICABLE, on all ranks: NCCL cannot be used. */
cvy_status cvy_device_parts_create(const cvy_device_parts_def *def, cvy_device_parts **out);
/* Packs and sends. */
cvy_status cvy_device_parts_start(const cvy_device_parts *parts, const void *src);
/* Receives and unpacks. */
cvy_status cvy_device_parts_finish(const cvy_device_parts *parts, const void *src, void *dst);
void cvy_device_parts_destroy(cvy_device_parts **parts);

#endif
