/*
 * files_inspect.c: cvy_run_inspect(): describes the contents of data sets, weights, checkpoints and
 * run folders. They need no ranks and no program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "checkpoint/checkpoint.h"
#include "data/data_described_file.h"
#include "files/files.h"
#include "files/files_inspect.h"
#include "files/files_runs.h"
#include "monitor/monitor_run_layout.h"
#include "network/network_spec.h"
#include "session/session_model.h"
#include "session/session_output.h"
#include "session/session_source.h"

/* What the output of the network is that the description in the file makes, and what its training data said of
 * themselves; weights alone have none. */
static void add_network(const char *path, cvy_text *t)
{
    cvy_network_spec spec = {0};
    cvy_model *m = NULL;
    if (cvy_network_spec_of_file(path, &spec, NULL) != CVY_OK)
        return;
    cvy_text_add(t, "  ");
    if (cvy_job_model(spec.job, NULL, &spec.data, CVY_LOSSES_NONE, &m) == CVY_OK)
        cvy_model_describe_output(m, t);
    else
        cvy_text_add(t, "what the output is, is not known: %s", cvy_error_text());
    cvy_text_add(t, "\n");
    if (spec.stored.described.nx > 0)
        cvy_text_add(t, "  trained on\n");
    cvy_descriptions_print(&spec.stored.described, t);
    cvy_model_destroy(&m);
    cvy_network_spec_end(&spec);
}

static cvy_status inspect_weights(const char *path, cvy_text *t)
{
    cvy_safetensors *f = NULL;
    int64_t elems = 0;
    CVY_TRY(cvy_safetensors_open(path, &f));
    cvy_text_add(t, "%s: safetensors, %d tensors\n", path, cvy_safetensors_count(f));
    for (int i = 0; i < cvy_safetensors_count(f); i++) {
        const cvy_tensor_entry *e = cvy_safetensors_at(f, i);
        cvy_text_add(t, "  %-40s %-5s %s\n", e->name, cvy_safetensors_dtype(f, i), cvy_shape_text(&e->shape));
        elems += cvy_shape_elems(&e->shape);
    }
    cvy_text_add(t, "%lld elements in all\n", (long long)elems);
    cvy_safetensors_close(&f);
    add_network(path, t);
    return CVY_OK;
}

static void add_state(const cvy_tree *state, cvy_text *t)
{
    for (int i = 0; state && state->kind == CVY_TREE_MAP && i < state->count; i++)
        if (state->child[i]->text)
            cvy_text_add(t, "  %-20s %s\n", state->key[i], state->child[i]->text);
}

/* Describes a set such as "…/step-00001234". Its files are checked as a resume would do it. */
static cvy_status inspect_checkpoint(cvy_pool *pool, const char *path, cvy_text *t)
{
    cvy_checkpoint c = {0};
    const char *dir = NULL;
    char *whole = NULL;
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    CVY_TRY(cvy_pool_printf(pool, &whole, "%.*s", (int)end, path));
    CVY_TRY(cvy_data_folder_of(pool, whole, &dir));
    cvy_status status = cvy_checkpoint_find(dir, cvy_file_base_name(whole), &c);
    if (status == CVY_OK) {
        cvy_text_add(t, "%s: checkpoint of step %lld, valid\n", path, (long long)c.step);
        add_state(c.state, t);
        for (int i = 0; i < c.nweights && status == CVY_OK; i++)
            status = inspect_weights(c.weights_path[i], t);
    }
    cvy_checkpoint_close(&c);
    return status;
}

static cvy_status add_file(cvy_pool *pool, const char *folder, const char *name, cvy_text *t)
{
    const char *path = NULL;
    char *data = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_data_path_join(pool, folder, name, &path));
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_file_read(path, 1 << 20, &data, &bytes));
    cvy_text_add(t, "\n%s:\n%s%s", name, data, bytes && data[bytes - 1] == '\n' ? "" : "\n");
    cvy_mem_free(&data);
    return CVY_OK;
}

static cvy_status inspect_run(cvy_pool *pool, const char *path, cvy_text *t)
{
    const char *sets = NULL;
    char dead[640];
    cvy_checkpoint c = {0};
    CVY_TRY(cvy_data_path_join(pool, path, CVY_RUN_CHECKPOINTS, &sets));
    cvy_text_add(t, "%s: run folder\n", path);
    if (cvy_run_is_folder(path))
        CVY_TRY(cvy_run_scores_text(path, t));
    cvy_text_add(t, "\n");
    const cvy_status status = cvy_checkpoint_find(sets, NULL, &c);
    for (int i = 0; i < c.nmessage; i++)
        cvy_text_add(t, "  %s\n", c.message[i]);
    if (status == CVY_OK) {
        cvy_text_add(t, "newest valid checkpoint: %s\n", c.path);
        add_state(c.state, t);
        if (c.nweights > 0)
            add_network(c.weights_path[0], t);
    } else {
        cvy_text_add(t, "no valid checkpoint\n");
    }
    cvy_checkpoint_close(&c);
    CVY_TRY(add_file(pool, path, CVY_RUN_STATUS, t));
    if (cvy_run_is_dead(path, dead, sizeof dead))
        cvy_text_add(t, "%s\n", dead);
    return add_file(pool, path, CVY_RUN_JOB, t);
}

static cvy_status inspect_data(cvy_pool *pool, const char *path, int statistics, cvy_text *t)
{
    cvy_dataset *d = NULL;
    CVY_TRY(cvy_job_open_source(pool, path, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    cvy_text_add(t, "%s: data set, format %s, %lld samples\n", path, info->format, (long long)info->nsamples);
    for (int i = 0; i < info->nfield; i++)
        cvy_text_add(t, "  %-10s %-4s %s\n", info->field[i].name, cvy_dtype_text(info->field[i].dtype),
                     cvy_shape_text(&info->field[i].shape));
    cvy_descriptions_print(&cvy_dataset_reader_info(d)->described, t);
    if (info->note)
        cvy_text_add(t, "%s\n", info->note);
    cvy_status status = CVY_OK;
    if (statistics)
        status = cvy_inspect_values(d, t);
    else
        cvy_inspect_classes(info, NULL, t);
    cvy_dataset_destroy(&d);
    return status;
}

static cvy_status inspect(cvy_pool *pool, const char *path, int statistics, cvy_text *t)
{
    if (cvy_data_has_suffix(path, ".safetensors"))
        return inspect_weights(path, t);
    if (cvy_file_is_folder(path) &&
        (cvy_data_has_file(path, CVY_RUN_CHECKPOINTS) || cvy_data_has_file(path, CVY_RUN_JOB)))
        return inspect_run(pool, path, t);
    /* the folder `checkpoints` of a run */
    if (cvy_file_is_folder(path) && cvy_data_has_file(path, "../" CVY_RUN_JOB)) {
        CVY_TRY(cvy_data_path_join(pool, path, "..", &path));
        return inspect_run(pool, path, t);
    }
    if (cvy_file_is_folder(path) && cvy_data_has_file(path, "manifest.json") && cvy_data_has_file(path, "state.json"))
        return inspect_checkpoint(pool, path, t);
    return inspect_data(pool, path, statistics, t);
}

cvy_status cvy_run_inspect(const char *path, int statistics, char **text_out)
{
    CVY_ENTRY();
    cvy_pool *pool = NULL;
    cvy_text t = {0};
    CVY_CHECK(path && text_out, CVY_E_ARGUMENT, "cvy_run_inspect() needs a path and a place for the text");
    *text_out = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = inspect(pool, path, statistics, &t);
    cvy_pool_destroy(&pool);
    status = status == CVY_OK ? t.status : status;
    if (status != CVY_OK)
        cvy_text_free(&t);
    else
        *text_out = t.data;
    return status;
}
