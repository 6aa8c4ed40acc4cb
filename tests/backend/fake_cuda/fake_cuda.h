/*
 * fake_cuda.h: what the fake libcuda gives to fakes of other libraries of the vendor, which put their work into its
 * streams. It is exported beside the driver's functions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_FAKE_CUDA_H
#define CVY_FAKE_CUDA_H

#include "backend/gpu/gpu_cuda_api.h"

/* Puts a function of the host into a stream. It is called, by any thread, until it returns 1: then it is done, and what
 * is behind it in the stream goes on. It must not call the driver. */
cvy_cu_result fake_cuda_enqueue(cvy_cu_stream stream, int (*call)(void *arg), void *arg);
/* Where such a function finds what is at an address of the device. */
void *fake_cuda_memory(const void *at);
/* Runs some of the work in all streams, as a device does while the host is elsewhere. It does nothing if the host has
 * called the driver since the last time. */
void fake_cuda_go_on(void);

#endif
