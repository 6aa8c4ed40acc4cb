/*
 * new_job_look.c: finds out what the data of a new job are: sources, shapes, and what can be learned from them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/base_file.h"
#include "data/data_reader.h"
#include "files/new_job/new_job.h"
#include "session/session_source.h"

enum { LOOKED_AT = 64 }; /* samples that are read */

static const char *const tasks[] = {"classify", "regress", "segment"};

/* ---- sources ---- */

static cvy_status line_of(cvy_pool *pool, const cvy_tree *tree, const char **out)
{
    char *text = NULL, *copy = NULL;
    CVY_TRY(cvy_tree_print_line(tree, &text));
    const cvy_status status = cvy_pool_strdup(pool, text, &copy);
    cvy_mem_free(&text);
    *out = copy;
    return status;
}

static cvy_status line_of_path(cvy_pool *pool, const char *folder, const char *name, const char **out)
{
    const char *path = NULL;
    cvy_tree *tree = NULL;
    CVY_TRY(cvy_data_path_join(pool, folder, name, &path));
    CVY_TRY(cvy_tree_new_scalar(pool, "new", path, &tree));
    return line_of(pool, tree, out);
}

/* The first of the names that is a folder or file in `folder`, or NULL. */
static const char *first_of(const char *folder, const char *const *names)
{
    for (; *names; names++)
        if (cvy_data_has_file(folder, *names))
            return *names;
    return NULL;
}

/* Of a folder with train and val or test in it, these are the sources. *train_out: what to open. */
static cvy_status take_parts(cvy_pool *pool, const char *source, cvy_new_job *job, const char **train_out)
{
    static const char *const val[] = {"val", "valid", "validation", NULL}, *const test[] = {"test", NULL};
    *train_out = source;
    if (!cvy_file_is_folder(source) || !cvy_data_has_file(source, "train"))
        return CVY_OK;
    const char *v = first_of(source, val), *e = first_of(source, test);
    if (!v && !e)
        return CVY_OK;
    if (v)
        CVY_TRY(line_of_path(pool, source, v, &job->val));
    if (e)
        CVY_TRY(line_of_path(pool, source, e, &job->test));
    return cvy_data_path_join(pool, source, "train", train_out);
}

/* Formats whose folder also has test data, under the option `part`. */
static cvy_status find_test(cvy_pool *pool, const char *source, cvy_new_job *job)
{
    cvy_tree *tree = NULL, *path = NULL, *part = NULL;
    cvy_dataset *d = NULL;
    if ((strcmp(job->format, "cifar") != 0 && strcmp(job->format, "idx") != 0) || !cvy_file_is_folder(source))
        return CVY_OK;
    CVY_TRY(cvy_tree_new_map(pool, "new", &tree));
    CVY_TRY(cvy_tree_new_scalar(pool, "new", source, &path));
    CVY_TRY(cvy_tree_set(pool, tree, "path", path));
    CVY_TRY(cvy_tree_new_scalar(pool, "new", "test", &part));
    CVY_TRY(cvy_tree_set(pool, tree, "part", part));
    if (cvy_dataset_open(tree, NULL, 0, 0, &d) != CVY_OK)
        return CVY_OK;
    cvy_dataset_destroy(&d);
    return line_of(pool, tree, &job->test);
}

/* ---- samples ---- */

/* The values of a map are labels if all of them are 0 to 254, or 255. */
static int take_labels(const float *y, int64_t n, cvy_new_job *job)
{
    for (int64_t i = 0; i < n; i++) {
        if (y[i] < 0 || y[i] > 255 || y[i] != floorf(y[i]))
            return 0;
        if (y[i] == 255)
            job->map_ignores = 1;
        else
            job->map_classes = CVY_MAX(job->map_classes, (int64_t)y[i] + 1);
    }
    return 1;
}

static int index_of(const cvy_dataset_info *info, const char *name)
{
    for (int i = 0; i < info->nfield; i++)
        if (strcmp(info->field[i].name, name) == 0)
            return i;
    return -1;
}

static cvy_status read_samples(cvy_dataset *d, void *const *field, cvy_new_job *job)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const int y = index_of(info, "y");
    const int64_t n = CVY_MIN(info->nsamples, LOOKED_AT);
    int labels = job->y_is_map && !job->is_turned; /* a label_map has the positions of x as the data have them */
    for (int64_t i = 0; i < n; i++) {
        const cvy_status status = cvy_dataset_read(d, i * info->nsamples / n, 0, field);
        if (status != CVY_OK && !job->is_picture)
            return status;
        if (status != CVY_OK) { /* another size, or damaged, which the training would say */
            job->varies = 1;
            continue;
        }
        if (labels)
            labels = take_labels(field[y], cvy_shape_elems(&info->field[y].shape), job);
    }
    if (!labels)
        job->map_classes = job->map_ignores = 0;
    return CVY_OK;
}

static cvy_status look_at_samples(cvy_pool *pool, cvy_dataset *d, cvy_new_job *job)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    void *field[CVY_FIELD_MAX] = {0};
    for (int i = 0; i < info->nfield; i++)
        CVY_TRY(cvy_pool_alloc(
            pool, (size_t)cvy_shape_elems(&info->field[i].shape) * cvy_dtype_bytes(info->field[i].dtype), &field[i]));
    return read_samples(d, field, job);
}

/* ---- what it is ---- */

/* Whether y has the positions of x: [H, W] or [C, H, W] for [C, H, W], [T] or [C, T] for [C, T]. */
static int is_map(const cvy_shape *x, const cvy_shape *y)
{
    const int positions = x->ndim - 1, first = y->ndim - positions;
    int same = positions >= 1 && (first == 0 || first == 1) && cvy_shape_elems(y) > 1;
    for (int i = 0; same && i < positions; i++)
        same = y->dim[first + i] == x->dim[1 + i];
    return same;
}

static int is_picture(const char *format, const cvy_shape *x)
{
    static const char *const formats[] = {"cifar", "folder", "idx", "list", "lmdb", "pack", "pictures", "tfrecord"};
    int found = 0;
    for (int i = 0; i < CVY_COUNT(formats); i++)
        found |= strcmp(formats[i], format) == 0;
    return found && x->ndim == 3 && (x->dim[0] == 1 || x->dim[0] == 3);
}

/* Whether x is [T, F]: the option `axes` of the source has features and no channels; or y has a number for each entry
 * of the first axis, which is longer than the second one. y NULL: there is none. */
static int is_sequence(const cvy_tree *source, const cvy_shape *x, const cvy_shape *y)
{
    const cvy_tree *axes = source->kind == CVY_TREE_MAP ? cvy_tree_get(source, "axes") : NULL;
    if (x->ndim != 2)
        return 0;
    if (axes && axes->text)
        return strchr(axes->text, 'F') && !strchr(axes->text, 'C');
    return y && y->ndim == 1 && y->dim[0] == x->dim[0] && x->dim[0] > x->dim[1];
}

static cvy_status describe(cvy_pool *pool, cvy_dataset *d, const cvy_tree *source, cvy_new_job *job)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const int y = index_of(info, "y");
    char *format = NULL;
    CVY_TRY(cvy_pool_strdup(pool, info->format, &format));
    job->format = format;
    job->nsamples = info->nsamples;
    job->x = info->field[0].shape;
    job->is_turned = is_sequence(source, &job->x, y > 0 ? &info->field[y].shape : NULL);
    if (job->is_turned)
        job->x = (cvy_shape){2, {job->x.dim[1], job->x.dim[0]}};
    job->nclasses = index_of(info, "label") > 0 ? info->nclasses : 0;
    job->is_picture = is_picture(format, &job->x);
    job->has_y = y > 0;
    if (job->has_y) {
        job->y = info->field[y].shape;
        job->y_is_map = is_map(&job->x, &job->y);
    }
    CVY_CHECK(info->nsamples > 1, CVY_E_FORMAT, "%s: %lld samples, expected at least 2 to train with", info->path,
              (long long)info->nsamples);
    CVY_CHECK(job->x.ndim >= 1, CVY_E_UNSUPPORTED, "%s: x is a single number, expected at least one axis", info->path);
    return look_at_samples(pool, d, job);
}

/* The task for which the data are made, or an error if they fit none. */
static cvy_status choose_task(const char *source, cvy_new_job *job)
{
    CVY_CHECK(job->nclasses > 0 || job->has_y, CVY_E_CONFIG,
              "%s: samples have only x, and neither a label nor a target y, so there is nothing to learn: name them by "
              "options of the source, such as '{path: %s, label: NAME}' (docs/reference/data.md lists the options)",
              source, source);
    job->task = job->nclasses > 0 ? CVY_NEW_CLASSIFY : job->map_classes > 1 ? CVY_NEW_SEGMENT : CVY_NEW_REGRESS;
    return CVY_OK;
}

static cvy_status check_task(const char *source, cvy_new_job *job, const char *task)
{
    int at = 0;
    while (at < CVY_COUNT(tasks) && strcmp(tasks[at], task) != 0)
        at++;
    CVY_CHECK(at < CVY_COUNT(tasks), CVY_E_ARGUMENT, "a job for '%s', expected classify, regress or segment", task);
    job->task = (cvy_new_task)at;
    CVY_CHECK(
        job->task != CVY_NEW_CLASSIFY || job->nclasses > 0, CVY_E_CONFIG,
        "%s: samples have no label, so they cannot be classified: try --for %s, or name the label by an option of "
        "the source",
        source, job->map_classes > 1 ? "segment" : "regress");
    CVY_CHECK(
        job->task != CVY_NEW_REGRESS || job->has_y, CVY_E_CONFIG,
        "%s: samples have no target y of numbers, so there is nothing to fit: try --for classify, or name y by an "
        "option of the source",
        source);
    CVY_CHECK(
        job->task != CVY_NEW_SEGMENT || job->y_is_map, CVY_E_CONFIG,
        "%s: samples have no target y with a value for each position of x (%s), so there is nothing to segment by: "
        "try --for %s",
        source, cvy_shape_text(&job->x), job->nclasses > 0 ? "classify" : "regress");
    CVY_CHECK(
        job->task != CVY_NEW_SEGMENT || (job->map_classes > 1 && job->y.ndim == job->x.ndim - 1), CVY_E_CONFIG,
        "%s: y is no map of labels (%s): expected whole numbers 0 to 254, or 255 for positions that do not count, "
        "of the positions of x; try --for regress",
        source, cvy_shape_text(&job->y));
    return CVY_OK;
}

/* The size to which pictures are brought, by the first one. A network for 224 pixels needs thousands of pictures. */
static int64_t size_for(const cvy_shape *x, int64_t nsamples)
{
    const int64_t least = CVY_MIN(x->dim[1], x->dim[2]);
    return least >= 160 && nsamples >= 5000 ? 224 : least >= 80 ? 96 : least >= 48 ? 64 : 32;
}

static cvy_status decide(const char *source, const char *task, cvy_new_job *job)
{
    CVY_TRY(task ? check_task(source, job, task) : choose_task(source, job));
    CVY_CHECK(job->task != CVY_NEW_CLASSIFY || job->nclasses > 1, CVY_E_CONFIG,
              "%s: all samples are of one class, so there is nothing to tell apart", source);
    job->size = job->varies ? size_for(&job->x, job->nsamples) : 0;
    if (job->task == CVY_NEW_CLASSIFY)
        job->outputs = job->nclasses;
    else if (job->task == CVY_NEW_SEGMENT)
        job->outputs = job->map_classes;
    else if (job->y_is_map)
        job->outputs = job->y.ndim == job->x.ndim ? job->y.dim[0] : 1;
    else
        job->outputs = cvy_shape_elems(&job->y);
    return CVY_OK;
}

cvy_status cvy_new_job_look(cvy_pool *pool, const char *source, const char *task, cvy_new_job *out)
{
    const char *train = NULL;
    cvy_tree *tree = NULL;
    cvy_dataset *d = NULL;
    *out = (cvy_new_job){0};
    CVY_TRY(take_parts(pool, source, out, &train));
    CVY_TRY(cvy_job_parse_source(pool, train, &tree));
    CVY_TRY(line_of(pool, tree, &out->train));
    CVY_TRY(cvy_dataset_open(tree, NULL, 0, 0, &d));
    cvy_status status = describe(pool, d, tree, out);
    if (status == CVY_OK)
        status = decide(source, task, out);
    cvy_dataset_destroy(&d);
    if (status == CVY_OK && !out->test)
        status = find_test(pool, train, out);
    return status;
}
