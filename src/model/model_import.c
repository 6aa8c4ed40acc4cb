/*
 * model_import.c: finds the format of a foreign network, reads the network, and cvy_model_from_file().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/model_import.h"

#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"

/* ---- what was read ---- */

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

void cvy_import_job_free(cvy_import_job *job)
{
    cvy_text_free(&job->text);
    cvy_text_free(&job->notes);
    cvy_text_free(&job->absent);
    cvy_import_free(&job->import);
    *job = (cvy_import_job){0};
}

/* ---- the format of a file ---- */

static const char *suffix_of(const cvy_importer_def *def, int written)
{
    return written ? def->written : def->suffix;
}

static const cvy_importer_def *of_suffix(const char *path, int written)
{
    int n = 0;
    const cvy_importer_def *const *def = cvy_importer_table(&n);
    for (int i = 0; i < n; i++)
        if (cvy_data_has_suffix(path, suffix_of(def[i], written)))
            return def[i];
    return NULL;
}

const cvy_importer_def *cvy_importer_of_file(const char *path)
{
    return of_suffix(path, 0);
}

const cvy_importer_def *cvy_importer_of_written(const char *path)
{
    return of_suffix(path, 1);
}

cvy_label cvy_importer_suffixes(int written)
{
    cvy_label out = {""};
    int n = 0;
    const cvy_importer_def *const *def = cvy_importer_table(&n);
    for (int i = 0; i < n; i++) {
        const size_t used = strlen(out.text);
        const char *between = i == 0 ? "" : i < n - 1 ? ", " : " or ";
        snprintf(out.text + used, sizeof out.text - used, "%s%s", between, suffix_of(def[i], written));
    }
    return out;
}

/* ---- reading ---- */

static const cvy_importer_def *of_keys(const cvy_tree *keys)
{
    int n = 0;
    const cvy_importer_def *const *def = cvy_importer_table(&n);
    for (int i = 0; i < n && keys && keys->kind == CVY_TREE_MAP; i++)
        if (cvy_tree_get(keys, def[i]->name))
            return def[i];
    return NULL;
}

cvy_status cvy_import_read(cvy_pool *pool, const cvy_tree *keys, cvy_import *out)
{
    const cvy_importer_def *def = of_keys(keys);
    void *options = NULL;
    *out = (cvy_import){0};
    if (!def)
        return CVY_NOT_APPLICABLE;
    const cvy_tree *file = cvy_tree_get(keys, def->name);
    CVY_CHECK(file->text && *file->text, CVY_E_CONFIG, "%s: model.%s is the path of a file", cvy_tree_where(file),
              def->name);
    CVY_TRY(cvy_pool_alloc(pool, def->options_size, &options));
    CVY_TRY(cvy_options_parse(pool, "model", def->options, keys, NULL, options, def->options_size));
    return def->read(keys, options, out);
}

/* A path in quotes, as a job file has it. */
static cvy_status quote(cvy_pool *pool, const char *path, char **out)
{
    cvy_tree *name = NULL;
    char *text = NULL;
    CVY_TRY(cvy_tree_new_scalar(pool, path, path, &name));
    name->quoted = 1;
    CVY_TRY(cvy_tree_print_line(name, &text));
    const cvy_status status = cvy_pool_strdup(pool, text, out);
    cvy_mem_free(&text);
    return status;
}

cvy_status cvy_import_applied_keys(cvy_pool *pool, const char *path, const char *weights, char **text_out)
{
    const cvy_importer_def *def = cvy_importer_of_file(path);
    char *file = NULL, *values = NULL, *text = NULL;
    CVY_TRY(quote(pool, path, &file));
    CVY_TRY(cvy_pool_printf(pool, &text, "%s: %s", def->name, file));
    if (def->weights) {
        CVY_TRY(quote(pool, weights, &values));
        CVY_TRY(cvy_pool_printf(pool, &text, "%s, %s: %s", text, def->weights, values));
    }
    return cvy_pool_printf(pool, text_out, "{%s%s%s}", text, def->applied ? ", " : "",
                           def->applied ? def->applied : "");
}

cvy_status cvy_import_read_file(cvy_pool *pool, const char *path, const char *options, cvy_import *out)
{
    const cvy_importer_def *def = cvy_importer_of_file(path);
    char *file = NULL, *text = NULL;
    cvy_tree *keys = NULL;
    CVY_CHECK(def, CVY_E_ARGUMENT, "%s: a network is read from a file whose name ends with %s", path,
              cvy_importer_suffixes(0).text);
    CVY_TRY(quote(pool, path, &file));
    CVY_TRY(cvy_pool_printf(pool, &text, "{%s: %s%s%s}", def->name, file, options && *options ? ", " : "",
                            options ? options : ""));
    CVY_TRY(cvy_tree_parse_text(pool, path, text, strlen(text), &keys));
    return cvy_import_read(pool, keys, out);
}

cvy_status cvy_model_from_file(const char *path, const char *options, cvy_model **model_out)
{
    CVY_ENTRY();
    cvy_import import = {0};
    cvy_pool *pool = NULL;
    CVY_CHECK(path && *path && model_out, CVY_E_ARGUMENT,
              "cvy_model_from_file() needs a path and a place for the model");
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = cvy_import_read_file(pool, path, options, &import);
    if (status == CVY_OK) {
        *model_out = import.model;
        import.model = NULL;
    }
    cvy_import_free(&import);
    cvy_pool_destroy(&pool);
    return status;
}
