/*
 * job_import.c: `model: {onnx: FILE}` and other formats of networks: reads the file, and puts its layers in the place
 * of the key. From then on the job is one with `layers`, so that a run folder and its checkpoints need the file no
 * more. The values of its variables are kept: a new run begins with them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/job_table.h"
#include "model/model_import.h"

/* The job owns what was read. */
static cvy_status keep(cvy_job *job, cvy_status status, cvy_import *take)
{
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *job->import, &job->import);
    if (status == CVY_OK)
        *job->import = *take;
    else
        cvy_import_free(take);
    return status;
}

/* Adds the operation `scale: 1` to data.augment, with which bytes of the data are not divided by 255. */
static cvy_status keep_bytes(cvy_job *job)
{
    cvy_tree *list = NULL, *copy = NULL, **child = NULL;
    CVY_TRY(cvy_tree_parse_text(job->pool, "data.augment", "[{scale: 1}]", 12, &list));
    if (job->data.augment) {
        const int n = job->data.augment->count;
        CVY_TRY(cvy_tree_copy(job->pool, job->data.augment, &copy));
        CVY_TRY(cvy_pool_alloc(job->pool, sizeof *child * (size_t)(n + 1), &child));
        for (int i = 0; i < n; i++)
            child[i] = copy->child[i];
        child[n] = list->child[0];
        list->child = child;
        list->count = n + 1;
    }
    job->data.augment = list;
    return cvy_job_interpret_normalize(job);
}

/* The multipliers of the network are the groups of a job that has none. */
static cvy_status take_groups(cvy_job *job)
{
    const cvy_import *import = job->import;
    cvy_text text = {0};
    cvy_tree *list = NULL;
    if (job->train.ngroup > 0 || import->ngroup == 0)
        return CVY_OK;
    for (int i = 0; i < import->ngroup; i++) {
        const cvy_import_group *g = &import->group[i];
        cvy_text_add(&text, "%s{match: \"%s\"", i ? ", " : "[", g->match);
        if (g->frozen)
            cvy_text_add(&text, ", frozen: true}");
        else
            cvy_text_add(&text, ", lr_mult: %.9g, decay_mult: %.9g}", g->lr_mult, g->decay_mult);
    }
    cvy_text_add(&text, "]");
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_tree_parse_text(job->pool, job->file, text.data, text.bytes, &list);
    cvy_text_free(&text);
    CVY_TRY(status);
    job->train.groups_tree = list;
    return cvy_job_read_groups(job);
}

cvy_status cvy_job_read_import(cvy_job *job)
{
    cvy_import import;
    cvy_tree *model = NULL;
    const cvy_status status = cvy_import_read(job->pool, job->model, &import);
    if (status == CVY_NOT_APPLICABLE)
        return CVY_OK;
    CVY_TRY(keep(job, status, &import));
    CVY_TRY(take_groups(job));
    CVY_TRY(cvy_model_write(job->import->model, job->pool, 1, &model));
    job->model = model;
    return job->import->keeps_bytes ? keep_bytes(job) : CVY_OK;
}
