/*
 * onednn_desc.h: problems and layouts as oneDNN describes them: between onednn_api.c and the vendor's headers, which
 * stay in these two.
 */
#ifndef CVY_ONEDNN_DESC_H
#define CVY_ONEDNN_DESC_H

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include "kernel/onednn/onednn_api.h"

/* A borrowed memory descriptor, open in version 2. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t cvy_onednn_md;
#else
typedef const dnnl_memory_desc_t *cvy_onednn_md;
#endif

/* A status of oneDNN as one of ours; what: was asked for. */
cvy_status cvy_onednn_answer(dnnl_status_t status, const char *what);

#define TRY_DNNL(call, what) CVY_TRY(cvy_onednn_answer((call), (what)))
#define TRY_DNNL_OUT(call, what) CVY_TRY_OUT(cvy_onednn_answer((call), (what)))

/* "a convolution of f32, source 8x3x32x32", for messages; the thread's own, until its next. */
const char *cvy_onednn_problem_text(const cvy_onednn_problem *p);
/* oneDNN's answer to a problem, the first implementation that it offers. */
cvy_status cvy_onednn_problem_desc(const cvy_onednn_problem *p, dnnl_engine_t engine, dnnl_primitive_desc_t *out);
/* The name of a descriptor's layout; 0 where it has none. */
int cvy_onednn_md_layout(cvy_onednn_md md, int ndim, const int64_t *dim, cvy_dtype dtype, cvy_layout *out);

#endif
