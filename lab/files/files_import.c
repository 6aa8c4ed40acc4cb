/*
 * files_import.c: cvy_run_import(): a solver or a network of Caffe as files: job.yaml and weights.safetensors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/job.h>

#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_opts.h"
#include "files/files.h"
#include "model/model_import.h"

#define JOB_FILE "job.yaml"
#define WEIGHTS_FILE "weights.safetensors"

typedef struct files {
    cvy_pool *pool;
    const char *job, *weights; /* weights NULL: none are written */
    const char *init;          /* what the job names as train.init */
} files;

static cvy_status name_files(const cvy_import_opts *o, files *f)
{
    const char *folder = o->out ? o->out : ".";
    cvy_text init = {0};
    char *copy = NULL;
    CVY_TRY(cvy_data_path_join(f->pool, folder, JOB_FILE, &f->job));
    if (!o->weights)
        return CVY_OK;
    CVY_TRY(cvy_data_path_join(f->pool, folder, WEIGHTS_FILE, &f->weights));
    cvy_text_add(&init, "{from: ");
    cvy_text_add_quoted(&init, o->out ? f->weights : WEIGHTS_FILE);
    cvy_text_add(&init, ", on_mismatch: skip}   # of %s", o->weights);
    const cvy_status status = init.status == CVY_OK ? cvy_pool_strdup(f->pool, init.data, &copy) : init.status;
    cvy_text_free(&init);
    f->init = copy;
    return status;
}

static cvy_status write_files(const cvy_import_opts *o, const files *f, const cvy_import_job *job, cvy_text *out)
{
    if (f->weights) {
        CVY_TRY(cvy_safetensors_write(f->weights, job->import.tensor, job->import.ntensor, NULL, NULL, NULL));
        cvy_text_add(out, "%s has %d arrays of %s\n", f->weights, job->import.ntensor, o->weights);
    }
    CVY_TRY(cvy_file_replace(f->job, job->text.data, job->text.bytes));
    cvy_text_add(out, "%s has the job\n", f->job);
    if (job->notes.bytes)
        cvy_text_add_bytes(out, job->notes.data, job->notes.bytes);
    return out->status;
}

/* Nothing is written before all is read. */
static cvy_status import(const char *path, const cvy_import_opts *o, files *f, cvy_text *out)
{
    cvy_import_job job = {0};
    cvy_status status = CVY_OK;
    CVY_TRY(name_files(o, f));
    CVY_TRY(cvy_file_check_new(f->job, o->replace));
    if (f->weights)
        CVY_TRY(cvy_file_check_new(f->weights, o->replace));
    const cvy_import_job_opts opts = {.weights = o->weights, .init = f->init, .input = o->input};
    CVY_TRY_OUT(cvy_importer_find("caffe")->read_job(path, &opts, &job));
    if (o->out)
        CVY_TRY_OUT(cvy_file_make_folder(o->out));
    CVY_TRY_OUT(write_files(o, f, &job, out));
out:
    cvy_import_job_free(&job);
    return status;
}

cvy_status cvy_run_import(const char *path, const cvy_import_opts *opts, char **text_out)
{
    CVY_ENTRY();
    cvy_import_opts own;
    files f = {0};
    cvy_text out = {0};
    CVY_CHECK(text_out, CVY_E_ARGUMENT, "cvy_run_import() needs an output pointer");
    CVY_CHECK(path && *path, CVY_E_ARGUMENT, "an import needs a file, and the name of this one is empty");
    CVY_TRY(CVY_OPTS_READ(cvy_import_opts, opts, &own));
    cvy_status status = cvy_pool_create(&f.pool);
    if (status == CVY_OK)
        status = import(path, &own, &f, &out);
    cvy_pool_destroy(&f.pool);
    if (status == CVY_OK)
        *text_out = out.data;
    else
        cvy_text_free(&out);
    return status;
}
