/*
 * gpu_vendor.h: NVIDIA's libraries above the driver: cuDNN and NCCL. They are loaded if they are there, and nothing
 * needs them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_VENDOR_H
#define CVY_GPU_VENDOR_H

#include "base/text/base_text.h"

typedef enum { CVY_VENDOR_CUDNN, CVY_VENDOR_NCCL, CVY_VENDORS } cvy_vendor_name;

typedef struct cvy_vendor {
    void *library;    /* of dlopen */
    const char *path; /* its file */
    char version[24]; /* "9.19.0" */
    char why[600];    /* a sentence: why it is not used, and where it was looked for; "": it is used */
} cvy_vendor;

/* A library, which the first call loads. */
const cvy_vendor *cvy_vendor_load(cvy_vendor_name name);
/* Writes the address of a function to *out, which is a pointer to a function. If there is none, the library is not
 * used: 0, and `why` says so. Called only before others use the library. */
int cvy_vendor_find(cvy_vendor_name name, const char *function, void *out);
/* Adds a line for each: "cudnn 9.19.0, /usr/lib/libcudnn.so.9", or "nccl none: ", why, and what is used instead. */
void cvy_vendors_print(cvy_text *out);

#endif
