/*
 * context_device.h: which device the ranks of a context compute on: the names of devices, how one is chosen, and what
 * this process could use.
 *
 * A name is "host", a driver ("opencl"), a driver with a number ("opencl:1"), or "auto". Without a number, the ranks of
 * a node take its devices in turns.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CONTEXT_DEVICE_H
#define CVY_CONTEXT_DEVICE_H

#include "base/text/base_text.h"
#include "context/context.h"

typedef struct cvy_device_use {
    cvy_space space;
    int ranks; /* that compute on this device, this one included */
} cvy_device_use;

/* Opens the device of this name on every rank; NULL: the host. Warns if ranks share a device. CVY_E_CONFIG: there is no
 * such driver or number; CVY_E_UNSUPPORTED: the driver finds no device; CVY_E_DISAGREE: "auto" has found different
 * drivers on different ranks. Collective. */
cvy_status cvy_device_open(const cvy_context *context, const char *name, cvy_device_use *out);
/* From now on the context computes there. */
void cvy_device_put(cvy_context *context, const cvy_device_use *use);
/* Opens the device of this name for the context; *before_out gets the former one, for cvy_device_return(), or nothing
 * if it is the same. CVY_E_ARGUMENT: the context has programs. Collective. */
cvy_status cvy_device_take(cvy_context *context, const char *name, cvy_device_use *before_out);
void cvy_device_return(cvy_context *context, cvy_device_use *before);

/* What a device is: "NVIDIA H200, OpenCL 3.0 CUDA, 132 units, 139.8 GiB"; "" for the host. */
typedef struct cvy_device_title {
    char text[320];
} cvy_device_title;
cvy_device_title cvy_device_title_of(const cvy_device *device);

/* Adds a line for each device of each driver, as cvy_device_list() gives it. gpus_out: how many of them are GPUs, and
 * not the processor; may be NULL. */
cvy_status cvy_device_print(cvy_text *out, int *gpus_out);
/* Adds a line for each library of a vendor that computes or sums on the devices that are there: "cudnn 9.19.0, " and
 * its file, or "nccl none: " and why it is not used. */
cvy_status cvy_device_libraries(cvy_text *out);
/* The file of the system by which a driver would reach a GPU; NULL: there is none, or this process may not use it. */
const char *cvy_device_file(void);
/* Whether the launcher has given this rank devices of its own, by a variable such as CUDA_VISIBLE_DEVICES. */
int cvy_device_is_masked(void);
/* For faults in the middle of a run, such as a device that is lost: adds device, rank and node to the message, and the
 * latest checkpoint. Returns the status. */
cvy_status cvy_device_explain(const cvy_context *context, cvy_status status);
/* Adds a line that tells where a training computes, if it is not the host by default; given: the name in the job, or
 * NULL. Says in the log if this node seems to have a GPU and nobody has asked for it or for the host. */
void cvy_device_note(const cvy_context *context, const char *given, cvy_text *notes);

#endif
