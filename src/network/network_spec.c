/*
 * network_spec.c: writes and reads the description of a trained network: see network_spec.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "network/network_spec.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/text/base_json.h"
#include "checkpoint/checkpoint.h"
#include "data/data_columns.h"
#include "data/data_described_file.h"
#include "job/job_table.h"
#include "model/model_import.h"

/* The version of the layout; a later one is refused. */
enum { LAYOUT = 1 };
/* A description that each file of weights has stays short: more names of columns are left out. */
enum { COLUMNS_MAX = 16384 };

/* ---- writing ---- */

static void add_form(cvy_json *json, cvy_dtype dtype, const cvy_shape *shape)
{
    cvy_json_string(json, "dtype", cvy_dtype_text(dtype));
    cvy_json_open(json, "shape", '[');
    for (int i = 0; i < shape->ndim; i++)
        cvy_json_int(json, NULL, shape->dim[i]);
    cvy_json_close(json, ']');
}

static void add_data(cvy_json *json, const cvy_reader_info *stored, const cvy_dataset_info *data)
{
    cvy_json_open(json, "input", '{');
    add_form(json, stored->dtype, &stored->shape);
    cvy_json_bool(json, "varying", stored->varying);
    cvy_json_close(json, '}');
    if (stored->has_y) {
        cvy_json_open(json, "target", '{');
        add_form(json, CVY_DTYPE_F32, &stored->y_shape);
        for (int i = 0; i < CVY_CF_COUNT; i++)
            if (stored->y_cf[i])
                cvy_json_string(json, cvy_cf_name[i], stored->y_cf[i]);
        if (stored->y_name)
            cvy_json_string(json, "name", stored->y_name);
        cvy_json_open(json, "axes", '[');
        for (int i = 0; i < stored->y_shape.ndim; i++)
            cvy_json_string(json, NULL, stored->y_axis[i] ? stored->y_axis[i] : "");
        cvy_json_close(json, ']');
        cvy_json_close(json, '}');
    }
    cvy_json_open(json, "fields", '[');
    for (int i = 1; i < data->nfield; i++) {
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "name", data->field[i].name);
        add_form(json, data->field[i].dtype, &data->field[i].shape);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
    cvy_json_int(json, "classes", data->nclasses);
    cvy_json_open(json, "class_names", '[');
    for (int64_t i = 0; data->class_name && i < data->nclasses; i++)
        cvy_json_string(json, NULL, data->class_name[i]);
    cvy_json_close(json, ']');
    if (stored->columns.nx + stored->columns.ny <= COLUMNS_MAX)
        cvy_columns_write(stored, json);
    cvy_descriptions_write(&stored->described, json);
}

/* temperature: 0: none. */
static cvy_status write_spec(const cvy_job *job, const cvy_reader_info *stored, const cvy_dataset_info *data,
                             double temperature, cvy_text *out)
{
    cvy_json json = {0};
    char *text = NULL;
    CVY_TRY(cvy_job_print(job, &text));
    cvy_json_open(&json, NULL, '{');
    cvy_json_int(&json, "layout", LAYOUT);
    cvy_json_string(&json, "version", cvy_version());
    cvy_json_string(&json, "job", text);
    add_data(&json, stored, data);
    if (temperature > 0)
        cvy_json_real(&json, "temperature", temperature);
    cvy_json_close(&json, '}');
    cvy_mem_free(&text);
    *out = json.text;
    return json.text.status;
}

cvy_status cvy_network_spec_write(const cvy_job *job, cvy_dataset *data, cvy_text *out)
{
    return write_spec(job, cvy_dataset_reader_info(data), cvy_dataset_describe(data), 0, out);
}

cvy_status cvy_network_spec_print(const cvy_network_spec *s, cvy_text *out)
{
    return write_spec(s->job, &s->stored, &s->data, s->temperature, out);
}

/* ---- reading ---- */

static cvy_status read_text(const cvy_tree *map, const char *key, const char **out)
{
    const cvy_tree *node = cvy_tree_get(map, key);
    CVY_CHECK(node && node->text, CVY_E_FORMAT, "it has no \"%s\"", key);
    *out = node->text;
    return CVY_OK;
}

static cvy_status read_form(const cvy_tree *map, cvy_dtype *dtype_out, cvy_shape *shape_out)
{
    const cvy_tree *list = cvy_tree_get(map, "shape");
    const char *dtype = NULL;
    cvy_shape shape = {0};
    size_t elems = 1;
    CVY_TRY(read_text(map, "dtype", &dtype));
    CVY_TRY(cvy_dtype_parse(dtype, dtype_out));
    CVY_CHECK(list && list->kind == CVY_TREE_LIST && list->count < CVY_NDIM_MAX, CVY_E_FORMAT,
              "it has no \"shape\" of at most %d numbers", CVY_NDIM_MAX - 1);
    for (; shape.ndim < list->count; shape.ndim++) {
        int64_t dim = 0;
        CVY_TRY(cvy_tree_int(list->child[shape.ndim], &dim));
        CVY_CHECK(dim > 0 && dim <= INT_MAX, CVY_E_FORMAT, "a shape has the number %lld", (long long)dim);
        CVY_TRY(cvy_size_mul(elems, (size_t)dim, &elems));
        shape.dim[shape.ndim] = dim;
    }
    CVY_CHECK(elems <= INT_MAX, CVY_E_FORMAT, "a shape has %zu elements", elems);
    *shape_out = shape;
    return CVY_OK;
}

static cvy_status read_fields(cvy_network_spec *s, const cvy_tree *list)
{
    static char x[] = "x";
    CVY_CHECK(list && list->kind == CVY_TREE_LIST && list->count < CVY_FIELD_MAX, CVY_E_FORMAT,
              "it has no \"fields\", a list of less than %d", CVY_FIELD_MAX);
    s->data.field[0] = (cvy_field){.name = x, .dtype = CVY_DTYPE_F32};
    s->data.nfield = 1;
    for (int i = 0; i < list->count; i++) {
        cvy_field *field = &s->data.field[s->data.nfield];
        const char *name = NULL;
        CVY_TRY(read_text(list->child[i], "name", &name));
        CVY_TRY(read_form(list->child[i], &field->dtype, &field->shape));
        CVY_TRY(cvy_pool_strdup(s->pool, name, &field->name));
        s->data.nfield++;
    }
    return CVY_OK;
}

static cvy_status read_classes(cvy_network_spec *s, const cvy_tree *root)
{
    const cvy_tree *count = cvy_tree_get(root, "classes"), *names = cvy_tree_get(root, "class_names");
    const char **name = NULL;
    CVY_CHECK(count && names && names->kind == CVY_TREE_LIST, CVY_E_FORMAT,
              "it has no \"classes\" and \"class_names\"");
    CVY_TRY(cvy_tree_int(count, &s->data.nclasses));
    CVY_CHECK(s->data.nclasses >= 0 && s->data.nclasses <= INT_MAX &&
                  (names->count == 0 || names->count == s->data.nclasses),
              CVY_E_FORMAT, "it has %lld classes and %d names of classes", (long long)s->data.nclasses, names->count);
    if (names->count == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(s->pool, sizeof *name * (size_t)names->count, &name));
    for (int i = 0; i < names->count; i++)
        name[i] = names->child[i]->text ? names->child[i]->text : "";
    s->data.class_name = name;
    return CVY_OK;
}

/* The target before augmentation. Files of versions that did not move targets have none; theirs is among the fields. */
static cvy_status read_target(cvy_network_spec *s, const cvy_tree *root)
{
    const cvy_tree *target = cvy_tree_get(root, "target");
    cvy_dtype dtype = CVY_DTYPE_F32;
    if (!target)
        return CVY_OK;
    s->stored.has_y = 1;
    for (int i = 0; i < CVY_CF_COUNT; i++) {
        const cvy_tree *node = cvy_tree_get(target, cvy_cf_name[i]);
        s->stored.y_cf[i] = node ? node->text : NULL; /* in s->pool, as the whole tree is */
    }
    s->stored.y_name = cvy_tree_text_at(target, "name");
    const cvy_tree *axes = cvy_tree_get(target, "axes");
    for (int i = 0; axes && axes->kind == CVY_TREE_LIST && i < CVY_MIN(axes->count, CVY_NDIM_MAX); i++)
        s->stored.y_axis[i] = axes->child[i]->text && *axes->child[i]->text ? axes->child[i]->text : NULL;
    return read_form(target, &dtype, &s->stored.y_shape);
}

/* The field "y" after augmentation, and the classes of a map of labels. */
static void follow_target(cvy_network_spec *s, const cvy_target_info *target)
{
    if (!s->stored.has_y)
        return;
    for (int i = 1; i < s->data.nfield; i++)
        if (strcmp(s->data.field[i].name, "y") == 0) {
            s->data.field[i].dtype = target->dtype;
            s->data.field[i].shape = target->shape;
        }
    if (target->nclasses > 0 && target->nclasses != s->data.nclasses) {
        s->data.nclasses = target->nclasses;
        s->data.class_name = NULL;
    }
}

/* Sets the shapes of x and y to those after the job's augmentation, of which only the part without random numbers is
 * done. */
static cvy_status follow_augmentation(cvy_network_spec *s)
{
    cvy_augment *augment = NULL;
    CVY_TRY(cvy_augment_create(s->job->data.steps, 0, s->job->program.seed, &s->stored, &augment));
    s->data.field[0].shape = *cvy_augment_shape(augment);
    follow_target(s, cvy_augment_target(augment));
    cvy_augment_destroy(&augment);
    return CVY_OK;
}

static cvy_status read_temperature(cvy_network_spec *s, const cvy_tree *root)
{
    const cvy_tree *node = cvy_tree_get(root, "temperature");
    if (!node)
        return CVY_OK;
    CVY_TRY(cvy_tree_real(node, &s->temperature));
    CVY_CHECK(s->temperature > 0 && isfinite(s->temperature), CVY_E_FORMAT, "its temperature is %g, expected above 0",
              s->temperature);
    return CVY_OK;
}

static cvy_status read_spec(cvy_network_spec *s, const char *where, const char *text)
{
    cvy_tree *root = NULL;
    const cvy_tree *input = NULL, *varying = NULL, *layout = NULL;
    const char *job = NULL;
    char *path = NULL;
    int64_t version = 0;
    CVY_TRY(cvy_pool_create(&s->pool));
    const cvy_status parsed = cvy_tree_parse_text(s->pool, where, text, strlen(text), &root);
    if (parsed != CVY_OK)
        return parsed == CVY_E_CONFIG ? CVY_E_FORMAT : parsed; /* nobody wrote it by hand: the file is damaged */
    layout = cvy_tree_get(root, "layout");
    CVY_CHECK(layout, CVY_E_FORMAT, "it has no \"layout\"");
    CVY_TRY(cvy_tree_int(layout, &version));
    CVY_CHECK(version == LAYOUT, CVY_E_UNSUPPORTED, "its layout is %lld, and this version of convoy (%s) reads %d",
              (long long)version, cvy_version(), LAYOUT);
    CVY_TRY(read_text(root, "job", &job));
    CVY_TRY(cvy_job_parse_text(where, job, NULL, 0, &s->job));
    input = cvy_tree_get(root, "input");
    varying = input ? cvy_tree_get(input, "varying") : NULL;
    CVY_CHECK(varying, CVY_E_FORMAT, "it has no \"input\"");
    CVY_TRY(read_form(input, &s->stored.dtype, &s->stored.shape));
    CVY_TRY(cvy_tree_bool(varying, &s->stored.varying));
    CVY_CHECK(s->stored.dtype == CVY_DTYPE_U8 || s->stored.dtype == CVY_DTYPE_F32, CVY_E_FORMAT,
              "its input is %s, expected u8 or f32", cvy_dtype_text(s->stored.dtype));
    CVY_TRY(read_target(s, root));
    CVY_TRY(cvy_columns_read(s->pool, root, &s->stored)); /* strings are in s->pool, as the whole tree is */
    CVY_TRY(cvy_descriptions_read(s->pool, root, &s->stored.described));
    CVY_TRY(read_fields(s, cvy_tree_get(root, "fields")));
    CVY_TRY(read_classes(s, root));
    CVY_TRY(read_temperature(s, root));
    CVY_TRY(cvy_pool_strdup(s->pool, where, &path));
    s->data.path = path;
    s->knows_training = 1;
    return follow_augmentation(s);
}

cvy_status cvy_network_spec_read(const char *where, const char *text, cvy_network_spec *out)
{
    cvy_network_spec s = {0};
    const cvy_status status = read_spec(&s, where, text);
    if (status != CVY_OK) {
        cvy_network_spec_end(&s);
        return cvy_error_prefix(status, "%s: the description of the network", where);
    }
    *out = s;
    return CVY_OK;
}

cvy_status cvy_network_spec_of_file(const char *path, cvy_network_spec *out, int64_t *step_out)
{
    cvy_safetensors *file = NULL;
    int64_t step = -1;
    CVY_TRY(cvy_safetensors_open(path, &file));
    const char *spec = cvy_safetensors_meta(file, CVY_META_NETWORK), *text = cvy_safetensors_meta(file, "step");
    if (step_out)
        *step_out = text && cvy_text_int(text, &step) == CVY_OK ? step : -1;
    const cvy_status status = spec ? cvy_network_spec_read(path, spec, out) : CVY_NOT_APPLICABLE;
    cvy_safetensors_close(&file);
    return status;
}

static cvy_status read_text_of_file(const char *path, cvy_pool *pool, const char **text_out)
{
    cvy_safetensors *file = NULL;
    char *copy = NULL;
    CVY_TRY(cvy_safetensors_open(path, &file));
    const char *spec = cvy_safetensors_meta(file, CVY_META_NETWORK);
    const cvy_status status = spec ? cvy_pool_strdup(pool, spec, &copy) : CVY_OK;
    cvy_safetensors_close(&file);
    *text_out = copy;
    return status;
}

cvy_status cvy_network_spec_text_on_ranks(cvy_comm *comm, const char *path, cvy_pool *pool, const char **text_out)
{
    const char *text = NULL;
    CVY_TRY(cvy_comm_agree(comm, comm->rank == 0 ? read_text_of_file(path, pool, &text) : CVY_OK));
    CVY_TRY(cvy_checkpoint_share_text(comm, pool, &text));
    *text_out = text;
    return CVY_OK;
}

/* ---- from the data ---- */

static cvy_status copy_names(cvy_pool *pool, const char *const *from, int64_t n, const char *const **out)
{
    const char **name = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *name * (size_t)CVY_MAX(n, 1), &name));
    for (int64_t i = 0; i < n; i++)
        CVY_TRY(cvy_pool_strdup(pool, from[i], (char **)&name[i]));
    *out = name;
    return CVY_OK;
}

static cvy_status copy_columns(cvy_pool *pool, const cvy_columns *from, cvy_columns *to)
{
    if (!from->x)
        return CVY_OK;
    *to = *from;
    CVY_TRY(copy_names(pool, from->x, from->nx, &to->x));
    CVY_TRY(copy_names(pool, from->y, from->ny, &to->y));
    if (from->label)
        CVY_TRY(cvy_pool_strdup(pool, from->label, (char **)&to->label));
    return from->weight ? cvy_pool_strdup(pool, from->weight, (char **)&to->weight) : CVY_OK;
}

static cvy_status copy_data(cvy_network_spec *s, cvy_dataset *data)
{
    const cvy_dataset_info *info = cvy_dataset_describe(data);
    const cvy_reader_info *stored = cvy_dataset_reader_info(data);
    s->stored = (cvy_reader_info){.dtype = stored->dtype,
                                  .shape = stored->shape,
                                  .varying = stored->varying,
                                  .has_y = stored->has_y,
                                  .y_shape = stored->y_shape};
    s->data = *info;
    s->data.scaling = (cvy_scaling){0}; /* it belongs to the data set */
    s->knows_training = 1;
    s->data.path = s->job->file;
    s->data.format = NULL;
    s->data.class_name = NULL;
    for (int i = 0; i < CVY_CF_COUNT; i++)
        if (stored->y_cf[i])
            CVY_TRY(cvy_pool_strdup(s->pool, stored->y_cf[i], (char **)&s->stored.y_cf[i]));
    if (stored->y_name)
        CVY_TRY(cvy_pool_strdup(s->pool, stored->y_name, (char **)&s->stored.y_name));
    for (int i = 0; i < CVY_NDIM_MAX; i++)
        if (stored->y_axis[i])
            CVY_TRY(cvy_pool_strdup(s->pool, stored->y_axis[i], (char **)&s->stored.y_axis[i]));
    for (int i = 0; i < info->nfield; i++)
        CVY_TRY(cvy_pool_strdup(s->pool, info->field[i].name, &s->data.field[i].name));
    CVY_TRY(copy_columns(s->pool, &stored->columns, &s->stored.columns));
    CVY_TRY(cvy_descriptions_copy(s->pool, &stored->described, &s->stored.described));
    return info->class_name ? copy_names(s->pool, info->class_name, info->nclasses, &s->data.class_name) : CVY_OK;
}

cvy_status cvy_network_spec_of_job(cvy_job **job_take, cvy_network_spec *out)
{
    cvy_network_spec s = {.job = *job_take};
    cvy_dataset *data = NULL;
    cvy_status status = cvy_pool_create(&s.pool);
    if (status == CVY_OK)
        status = cvy_dataset_open(s.job->data.train, s.job->data.steps, 0, s.job->program.seed, &data);
    if (status == CVY_OK)
        status = copy_data(&s, data);
    cvy_dataset_destroy(&data);
    if (status != CVY_OK) {
        cvy_pool_destroy(&s.pool);
        return status;
    }
    *job_take = NULL;
    *out = s;
    return CVY_OK;
}

/* ---- from a network of another format ---- */

static cvy_status describe_import(cvy_network_spec *s, const char *path, const char *weights)
{
    char *text = NULL;
    CVY_TRY(cvy_pool_create(&s->pool));
    CVY_TRY(cvy_import_applied_keys(s->pool, path, weights, &text));
    /* a job names data, which nobody opens here */
    CVY_TRY(cvy_pool_printf(
        s->pool, &text, "model: %s\ndata: {train: none}\ntrain: {epochs: 1, optimizer: {name: sgd, lr: 0.1}}\n", text));
    CVY_TRY(cvy_job_parse_text(path, text, NULL, 0, &s->job));
    const cvy_model *model = s->job->import->model;
    CVY_CHECK(model->ninput <= CVY_COUNT(s->data.field), CVY_E_UNSUPPORTED, "%s: the network has %d inputs, at most %d",
              path, model->ninput, CVY_COUNT(s->data.field));
    s->stored = (cvy_reader_info){.dtype = s->job->import->x_is_bytes ? CVY_DTYPE_U8 : CVY_DTYPE_F32,
                                  .shape = model->input[0].sample_shape};
    for (int i = 0; i < model->ninput; i++) {
        s->data.field[i] = (cvy_field){.dtype = CVY_DTYPE_F32, .shape = model->input[i].sample_shape};
        CVY_TRY(cvy_pool_strdup(s->pool, model->input[i].name, &s->data.field[i].name));
    }
    s->data.nfield = model->ninput;
    return cvy_pool_strdup(s->pool, path, (char **)(uintptr_t)&s->data.path);
}

/* A file that convoy wrote has the whole description: its data section is used, with the layers that the file has. */
static cvy_status take_description(const char *path, cvy_network_spec *s)
{
    cvy_network_spec whole = {0};
    cvy_tree *model = NULL;
    if (!s->job->import->network)
        return CVY_OK;
    CVY_TRY(cvy_network_spec_read(path, s->job->import->network, &whole));
    const cvy_status status = cvy_model_write(s->job->import->model, whole.job->pool, 1, &model);
    if (status != CVY_OK) {
        cvy_network_spec_end(&whole);
        return status;
    }
    whole.job->model = model;
    whole.job->import = s->job->import; /* it owns texts of the model */
    s->job->import = NULL;
    cvy_network_spec_end(s);
    *s = whole;
    return CVY_OK;
}

cvy_status cvy_network_spec_of_import(const char *path, const char *weights, cvy_network_spec *out)
{
    cvy_network_spec s = {0};
    cvy_status status = describe_import(&s, path, weights);
    if (status == CVY_OK)
        status = take_description(path, &s);
    if (status != CVY_OK)
        cvy_network_spec_end(&s);
    else
        *out = s;
    return status;
}

cvy_data_form cvy_network_spec_form(const cvy_network_spec *s)
{
    return (cvy_data_form){.stored = &s->stored, .info = s->knows_training ? &s->data : NULL};
}

cvy_status cvy_network_spec_set_job(cvy_network_spec *s, cvy_job **job_take)
{
    cvy_job *own = s->job;
    s->job = *job_take;
    const cvy_status status = follow_augmentation(s);
    if (status != CVY_OK) {
        s->job = own;
        return status;
    }
    cvy_job_destroy(&own);
    *job_take = NULL;
    return CVY_OK;
}

void cvy_network_spec_end(cvy_network_spec *s)
{
    cvy_job_destroy(&s->job);
    cvy_pool_destroy(&s->pool);
    *s = (cvy_network_spec){0};
}
