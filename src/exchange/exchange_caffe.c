/*
 * exchange_caffe.c: the memory of a job that was made of a solver of Caffe, and builds without protobuf-c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/exchange_caffe.h"

void cvy_caffe_job_free(cvy_caffe_job *job)
{
    cvy_text_free(&job->text);
    cvy_text_free(&job->notes);
    cvy_text_free(&job->absent);
    cvy_import_free(&job->import);
    *job = (cvy_caffe_job){0};
}

#if !CVY_HAVE_PROTOBUF_C
cvy_status cvy_caffe_read_job(const char *path, const cvy_caffe_job_opts *opts, cvy_caffe_job *out)
{
    (void)opts;
    *out = (cvy_caffe_job){0};
    return cvy_error_set(CVY_E_UNSUPPORTED,
                         "%s: this build of convoy cannot read Caffe's files: build it with protobuf-c", path);
}
#endif
