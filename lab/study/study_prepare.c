/*
 * study_prepare.c: what is there before the measurements: paths that the user gives, and the jobs of the study as
 * files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_file.h"
#include "study/study_file.h"

/* The path of NAME, which has n bytes; NULL: it is not given. */
static const char *path_of(const cvy_study_paths *paths, const char *name, size_t n)
{
    if (n == 3 && strncmp(name, "out", 3) == 0)
        return paths->out;
    for (int i = 0; i < paths->ngiven; i++)
        if (strncmp(paths->given[i], name, n) == 0 && paths->given[i][n] == '=')
            return paths->given[i] + n + 1;
    return NULL;
}

cvy_status cvy_study_fill(cvy_pool *pool, const cvy_study_paths *paths, const char *text, const char **out)
{
    cvy_text filled = {0};
    char *copy = NULL;
    for (const char *at = text; *at;) {
        const char *end = at[0] == '$' && at[1] == '{' ? strchr(at, '}') : NULL;
        if (!end) {
            const size_t n = 1 + strcspn(at + 1, "$");
            cvy_text_add_bytes(&filled, at, n);
            at += n;
            continue;
        }
        const int n = (int)(end - at - 2);
        const char *path = path_of(paths, at + 2, (size_t)n);
        if (!path) {
            cvy_text_free(&filled);
            CVY_FAIL(CVY_E_UNSUPPORTED, "the study needs the path of %.*s: --data %.*s=PATH", n, at + 2, n, at + 2);
        }
        cvy_text_add(&filled, "%s", path);
        at = end + 1;
    }
    cvy_status status = filled.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(pool, filled.data ? filled.data : "", &copy);
    cvy_text_free(&filled);
    *out = copy;
    return status;
}

static cvy_status name_job(cvy_pool *pool, const cvy_study_paths *paths, const char *name, char **out)
{
    return cvy_pool_printf(pool, out, "%s/jobs/%s.yaml", paths->out, name);
}

static cvy_status write_job(const cvy_study_spec *spec, const cvy_study_paths *paths, int i)
{
    char *text = NULL, *path = NULL;
    const char *filled = NULL;
    CVY_TRY(cvy_tree_print(spec->jobs->child[i], &text));
    cvy_status status = cvy_study_fill(spec->pool, paths, text, &filled);
    cvy_mem_free(&text);
    if (status == CVY_E_UNSUPPORTED)
        return CVY_OK;
    CVY_TRY(status);
    CVY_TRY(name_job(spec->pool, paths, spec->jobs->key[i], &path));
    return cvy_file_replace(path, filled, strlen(filled));
}

cvy_status cvy_study_write_jobs(const cvy_study_spec *spec, const cvy_study_paths *paths)
{
    char *folder = NULL;
    if (!spec->jobs)
        return CVY_OK;
    CVY_TRY(cvy_pool_printf(spec->pool, &folder, "%s/jobs", paths->out));
    CVY_TRY(cvy_file_make_folder(folder));
    for (int i = 0; i < spec->jobs->count; i++)
        CVY_TRY(write_job(spec, paths, i));
    return CVY_OK;
}

cvy_status cvy_study_job_path(cvy_pool *pool, const cvy_study_paths *paths, const char *value, const char **out)
{
    char *path = NULL;
    *out = value;
    if (strchr(value, '/') || strstr(value, ".yaml"))
        return CVY_OK;
    CVY_TRY(name_job(pool, paths, value, &path));
    CVY_CHECK(cvy_file_exists(path), CVY_E_UNSUPPORTED, "the job %s is not in the study, or needs a path: --data",
              value);
    *out = path;
    return CVY_OK;
}

cvy_status cvy_study_scratch(cvy_pool *pool, const cvy_study_paths *paths, const char **out)
{
    char *path = NULL;
    const cvy_status status =
        paths->nodes > 0 ? cvy_pool_printf(pool, &path, "%s/scratch-nodes-%lld", paths->out, (long long)paths->nodes)
                         : cvy_pool_printf(pool, &path, "%s/scratch", paths->out);
    *out = path;
    return status;
}
