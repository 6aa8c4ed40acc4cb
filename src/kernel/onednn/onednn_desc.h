/*
 * onednn_desc.h: oneDNN's descriptors of problems and layouts. Only onednn_api.c and onednn_desc.c include it, so only
 * they see the vendor's headers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONEDNN_DESC_H
#define CVY_ONEDNN_DESC_H

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include "kernel/onednn/onednn_api.h"

/* A borrowed memory descriptor. In version 2 its fields are public. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t cvy_onednn_md;
#else
typedef const dnnl_memory_desc_t *cvy_onednn_md;
#endif

/* Translates a status of oneDNN into one of convoy's; what: the thing that was asked for. */
cvy_status cvy_onednn_answer(dnnl_status_t status, const char *what);

#define TRY_DNNL(call, what) CVY_TRY(cvy_onednn_answer((call), (what)))
#define TRY_DNNL_OUT(call, what) CVY_TRY_OUT(cvy_onednn_answer((call), (what)))

/* A text such as "a convolution of f32, source 8x3x32x32", for messages. It is valid until the thread's next call. */
const char *cvy_onednn_problem_text(const cvy_onednn_problem *p);
/* Gets the first implementation that oneDNN offers for a problem. */
cvy_status cvy_onednn_problem_desc(const cvy_onednn_problem *p, dnnl_engine_t engine, dnnl_primitive_desc_t *out);
/* Finds the name of a descriptor's layout; returns 0 if it has none. */
int cvy_onednn_md_layout(cvy_onednn_md md, int ndim, const int64_t *dim, cvy_dtype dtype, cvy_layout *out);

#endif
