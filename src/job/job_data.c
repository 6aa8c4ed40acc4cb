/*
 * job_data.c: cvy_run_pack(), cvy_run_inspect(), cvy_run_features(), cvy_run_keys(): data sets and files by themselves, without ranks or a program.
 */
#include <convoy/run.h>

#include <string.h>

#include "data/data_collider.h"
#include "job/job.h"
#include "run/run_checkpoint.h"

/* A path, or in YAML a map "{path: ..., format: ...}" or a list of sources. */
static cvy_status open_source(cvy_pool *pool, const char *source, cvy_dataset **out)
{
    cvy_tree *tree = NULL;
    const char first = source[strspn(source, " ")];
    if (first == '{' || first == '[')
        CVY_TRY(cvy_tree_parse_text(pool, "source", source, strlen(source), &tree));
    else
        CVY_TRY(cvy_tree_new_scalar(pool, "source", source, &tree));
    return cvy_dataset_open(tree, NULL, 0, 0, out);
}

static cvy_status pack(cvy_pool *pool, const char *source, const char *destination, int skip_bad, char **report_out)
{
    const cvy_pack_opts opts = {.skip_bad = skip_bad, .check = 1};
    cvy_dataset *d = NULL;
    cvy_pack_report r = {0};
    CVY_TRY(open_source(pool, source, &d));
    const int64_t nclasses = cvy_dataset_describe(d)->nclasses;
    cvy_status status = cvy_pack_write(d, destination, &opts, &r);
    cvy_dataset_destroy(&d);
    CVY_TRY(status);
    return cvy_mem_printf(report_out, "%s: %lld samples of %lld classes in %d file%s, %.1f MB, %lld bad samples left out\n", destination,
                          (long long)r.nsamples, (long long)nclasses, r.nparts, r.nparts == 1 ? "" : "s", 1e-6 * (double)r.bytes, (long long)r.nbad);
}

cvy_status cvy_run_pack(const char *source, const char *destination, int skip_bad, char **report_out)
{
    cvy_pool *pool = NULL;
    *report_out = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = pack(pool, source, destination, skip_bad, report_out);
    cvy_pool_destroy(&pool);
    return status;
}

/* ---- inspect ---- */

static cvy_status join(cvy_pool *pool, const char *folder, const char *name, char **out)
{
    return cvy_pool_printf(pool, out, "%s/%s", folder, name);
}

static int holds(cvy_pool *pool, const char *folder, const char *name)
{
    char *path = NULL;
    return join(pool, folder, name, &path) == CVY_OK && cvy_file_exists(path);
}

static int ends_with(const char *text, const char *tail)
{
    const size_t n = strlen(text), k = strlen(tail);
    return n >= k && strcmp(text + n - k, tail) == 0;
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
    return CVY_OK;
}

static void add_state(const cvy_tree *state, cvy_text *t)
{
    for (int i = 0; state && state->kind == CVY_TREE_MAP && i < state->count; i++)
        if (state->child[i]->text)
            cvy_text_add(t, "  %-20s %s\n", state->key[i], state->child[i]->text);
}

/* A set "…/step-00001234": its files are checked, as a resume would. */
static cvy_status inspect_checkpoint(cvy_pool *pool, const char *path, cvy_text *t)
{
    cvy_checkpoint c = {0};
    char *dir = NULL;
    const size_t n = strlen(path);
    size_t end = n;
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t slash = end;
    while (slash > 0 && path[slash - 1] != '/')
        slash--;
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(pool, &dir, "%.*s", slash > 1 ? (int)slash - 1 : 1, slash ? path : "."));
    CVY_TRY(cvy_pool_printf(pool, &name, "%.*s", (int)(end - slash), path + slash));
    cvy_status status = cvy_checkpoint_find(dir, name, &c);
    if (status == CVY_OK) {
        cvy_text_add(t, "%s: checkpoint of step %lld, sound\n", path, (long long)c.step);
        add_state(c.state, t);
        status = inspect_weights(c.weights_path, t);
    }
    cvy_checkpoint_close(&c);
    return status;
}

static cvy_status add_file(cvy_pool *pool, const char *folder, const char *name, cvy_text *t)
{
    char *path = NULL, *data = NULL;
    size_t bytes = 0;
    CVY_TRY(join(pool, folder, name, &path));
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_file_read(path, 1 << 20, &data, &bytes));
    cvy_text_add(t, "\n%s:\n%s%s", name, data, bytes && data[bytes - 1] == '\n' ? "" : "\n");
    cvy_mem_free(&data);
    return CVY_OK;
}

static cvy_status inspect_run(cvy_pool *pool, const char *path, cvy_text *t)
{
    char *sets = NULL;
    cvy_checkpoint c = {0};
    CVY_TRY(join(pool, path, "checkpoints", &sets));
    cvy_text_add(t, "%s: run folder\n", path);
    const cvy_status status = cvy_checkpoint_find(sets, NULL, &c);
    for (int i = 0; i < c.nmessage; i++)
        cvy_text_add(t, "  %s\n", c.message[i]);
    if (status == CVY_OK) {
        cvy_text_add(t, "newest sound checkpoint: %s\n", c.path);
        add_state(c.state, t);
    } else {
        cvy_text_add(t, "no sound checkpoint\n");
    }
    cvy_checkpoint_close(&c);
    CVY_TRY(add_file(pool, path, "STATUS", t));
    return add_file(pool, path, "job.resolved.yaml", t);
}

static cvy_status inspect_data(cvy_pool *pool, const char *path, cvy_text *t)
{
    cvy_dataset *d = NULL;
    CVY_TRY(open_source(pool, path, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    cvy_text_add(t, "%s: data set, format %s, %lld samples\n", path, info->format, (long long)info->nsamples);
    for (int i = 0; i < info->nfield; i++)
        cvy_text_add(t, "  %-10s %-4s %s\n", info->field[i].name, cvy_dtype_text(info->field[i].dtype), cvy_shape_text(&info->field[i].shape));
    if (info->nclasses > 0)
        cvy_text_add(t, "%lld classes:", (long long)info->nclasses);
    for (int64_t i = 0; i < CVY_MIN(info->nclasses, 20) && info->class_name; i++)
        cvy_text_add(t, " %s", info->class_name[i]);
    cvy_text_add(t, info->nclasses > 20 ? " ...\n" : info->nclasses > 0 ? "\n" : "");
    cvy_dataset_destroy(&d);
    return CVY_OK;
}

static cvy_status inspect(cvy_pool *pool, const char *path, cvy_text *t)
{
    if (ends_with(path, ".safetensors"))
        return inspect_weights(path, t);
    if (cvy_file_is_folder(path) && (holds(pool, path, "checkpoints") || holds(pool, path, "job.resolved.yaml")))
        return inspect_run(pool, path, t);
    if (cvy_file_is_folder(path) && holds(pool, path, "manifest.json") && holds(pool, path, "weights.safetensors"))
        return inspect_checkpoint(pool, path, t);
    return inspect_data(pool, path, t);
}

cvy_status cvy_run_inspect(const char *path, char **text_out)
{
    cvy_pool *pool = NULL;
    cvy_text t = {0};
    *text_out = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = inspect(pool, path, &t);
    cvy_pool_destroy(&pool);
    status = status == CVY_OK ? t.status : status;
    if (status != CVY_OK)
        cvy_text_free(&t);
    else
        *text_out = t.data;
    return status;
}

static cvy_status features(cvy_pool *pool, const char *source, const char *file)
{
    cvy_dataset *d = NULL;
    cvy_collider_table table = {0};
    CVY_TRY(open_source(pool, source, &d));
    cvy_status status = cvy_collider_table_make(d, 0, 1, &table);
    if (status == CVY_OK)
        status = cvy_collider_table_write(&table, file);
    cvy_collider_table_free(&table);
    cvy_dataset_destroy(&d);
    return status;
}

cvy_status cvy_run_features(const char *source, const char *file)
{
    cvy_pool *pool = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = features(pool, source, file);
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_run_keys(char **text_out)
{
    return cvy_job_help(text_out);
}
