/*
 * exchange.c: builds without protobuf-c, which cannot read or write these formats.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/exchange.h"

cvy_status cvy_import_onnx(const char *path, cvy_import *out)
{
    return cvy_import_onnx_constants(path, CVY_ONNX_CONSTANTS_AUTO, out);
}

#if !CVY_HAVE_PROTOBUF_C
static cvy_status lacks(const char *path, const char *what)
{
    return cvy_error_set(CVY_E_UNSUPPORTED, "%s: this build of convoy cannot %s: build it with protobuf-c", path, what);
}

cvy_status cvy_import_onnx_constants(const char *path, cvy_onnx_constants constants, cvy_import *out)
{
    (void)constants;
    *out = (cvy_import){0};
    return lacks(path, "read ONNX");
}

cvy_status cvy_import_caffe(const char *path, const cvy_caffe_opts *opts, cvy_import *out)
{
    (void)opts;
    *out = (cvy_import){0};
    return lacks(path, "read Caffe");
}

cvy_status cvy_caffe_read_job(const char *path, const cvy_import_job_opts *opts, cvy_import_job *out)
{
    (void)opts;
    *out = (cvy_import_job){0};
    return lacks(path, "read Caffe's files");
}

cvy_status cvy_export_caffemodel(const char *path, const cvy_export *from, cvy_text *notes)
{
    (void)from;
    (void)notes;
    return lacks(path, "write caffemodels");
}

cvy_status cvy_export_onnx(const char *path, const cvy_export *from)
{
    (void)from;
    return lacks(path, "write ONNX");
}
#endif
