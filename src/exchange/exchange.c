/*
 * exchange.c: the result of reading a foreign network, and builds without the formats.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/exchange.h"

cvy_status cvy_import_add_tensor(cvy_import *i, const cvy_tensor_entry *tensor)
{
    CVY_TRY(cvy_mem_reserve(&i->tensor, &i->tensor_room, i->ntensor, sizeof *i->tensor));
    i->tensor[i->ntensor++] = *tensor;
    return CVY_OK;
}

void cvy_import_free(cvy_import *i)
{
    cvy_model_destroy(&i->model);
    cvy_mem_free(&i->tensor);
    cvy_mem_free(&i->group);
    cvy_text_free(&i->notes);
    cvy_pool_destroy(&i->pool);
    *i = (cvy_import){0};
}

cvy_status cvy_import_onnx(const char *path, cvy_import *out)
{
    return cvy_import_onnx_constants(path, CVY_ONNX_CONSTANTS_AUTO, out);
}

#if !CVY_HAVE_PROTOBUF_C
cvy_status cvy_import_onnx_constants(const char *path, cvy_onnx_constants constants, cvy_import *out)
{
    (void)constants;
    *out = (cvy_import){0};
    return cvy_error_set(CVY_E_UNSUPPORTED, "%s: this build of convoy cannot read ONNX: build it with protobuf-c",
                         path);
}

cvy_status cvy_import_caffe(const char *path, const cvy_caffe_opts *opts, cvy_import *out)
{
    (void)opts;
    *out = (cvy_import){0};
    return cvy_error_set(CVY_E_UNSUPPORTED, "%s: this build of convoy cannot read Caffe: build it with protobuf-c",
                         path);
}

cvy_status cvy_export_caffemodel(const char *path, const cvy_export_caffe *from, cvy_text *notes)
{
    (void)from;
    (void)notes;
    return cvy_error_set(CVY_E_UNSUPPORTED,
                         "%s: this build of convoy cannot write caffemodels: build it with protobuf-c", path);
}

cvy_status cvy_export_onnx(const char *path, const cvy_export *from)
{
    (void)from;
    return cvy_error_set(CVY_E_UNSUPPORTED, "%s: this build of convoy cannot write ONNX: build it with protobuf-c",
                         path);
}
#endif
