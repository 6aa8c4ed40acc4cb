/*
 * job_libraries.c: the key `libraries`: the paths of extensions, made absolute.
 *
 * A path in a job file is relative to the folder of that file, and a path on the command line or in a text to the
 * current folder. The resolved job, which a run folder keeps, has absolute paths.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "job/job_table.h"

enum { LIBRARIES_MAX = 64, PATH_BYTES = 4096 };

static cvy_status make_absolute(cvy_job *job, const cvy_tree *item, char **out)
{
    const int in_file = job->is_file && strcmp(item->file, job->file) == 0;
    const int folder = in_file ? (int)(cvy_file_base_name(job->file) - job->file) : 0; /* with its slash */
    char here[PATH_BYTES] = "";
    if (item->text[0] == '/')
        return cvy_pool_strdup(job->pool, item->text, out);
    if (folder > 0 && job->file[0] == '/')
        return cvy_pool_printf(job->pool, out, "%.*s%s", folder, job->file, item->text);
    CVY_CHECK(getcwd(here, sizeof here), CVY_E_IO, "%s: libraries: the current folder cannot be found: %s",
              cvy_tree_where(item), strerror(errno));
    return cvy_pool_printf(job->pool, out, "%s/%.*s%s", here, folder, job->file, item->text);
}

cvy_status cvy_job_interpret_libraries(cvy_job *job)
{
    const cvy_tree *given = job->libraries;
    cvy_tree *list = NULL, **child = NULL;
    if (!given)
        return CVY_OK;
    const int count = given->kind == CVY_TREE_LIST ? given->count : 1;
    CVY_CHECK(given->kind != CVY_TREE_MAP && count <= LIBRARIES_MAX, CVY_E_CONFIG,
              "%s: libraries: expected a list of at most %d paths, such as [mine.so]", cvy_tree_where(given),
              LIBRARIES_MAX);
    CVY_TRY(cvy_tree_parse_text(job->pool, job->file, "[]", 2, &list));
    CVY_TRY(cvy_pool_alloc(job->pool, sizeof *child * (size_t)(count + 1), &child));
    for (int i = 0; i < count; i++) {
        const cvy_tree *item = given->kind == CVY_TREE_LIST ? given->child[i] : given;
        char *path = NULL;
        CVY_CHECK(item->kind == CVY_TREE_SCALAR && item->text && *item->text, CVY_E_CONFIG,
                  "%s: libraries: expected the path of a shared library, such as mine.so", cvy_tree_where(item));
        CVY_TRY(make_absolute(job, item, &path));
        CVY_TRY(cvy_tree_new_scalar(job->pool, item->file, path, &child[i]));
        child[i]->line = item->line;
        child[i]->column = item->column;
    }
    list->child = child;
    list->count = count;
    list->line = given->line;
    list->column = given->column;
    job->libraries = list;
    return CVY_OK;
}
