/*
 * job_import.c: `model: {onnx: FILE}`: reads the file, and puts its layers in the place of the key. From then on the
 * job is one with `layers`, so that a run folder and its checkpoints need the file no more. The values of its variables
 * are kept: a new run begins with them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/exchange.h"
#include "job/job_table.h"

static cvy_status at_key(cvy_status status, const cvy_tree *key)
{
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", cvy_tree_where(key));
}

cvy_status cvy_job_read_import(cvy_job *job)
{
    const cvy_tree *file = job->model && job->model->kind == CVY_TREE_MAP ? cvy_tree_get(job->model, "onnx") : NULL;
    cvy_tree *model = NULL;
    if (!file)
        return CVY_OK;
    CVY_CHECK(file->text && *file->text && job->model->count == 1, CVY_E_CONFIG,
              "%s: model.onnx is the path of a file, and stands alone", cvy_tree_where(file));
    CVY_TRY(cvy_mem_alloc(sizeof *job->import, &job->import));
    CVY_TRY(at_key(cvy_import_onnx(file->text, job->import), file));
    CVY_TRY(cvy_model_write(job->import->model, job->pool, 1, &model));
    job->model = model;
    return CVY_OK;
}
