/*
 * job_print.c: the job with all its defaults as a tree, as text for the run folder, and as a hash that ranks compare.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/text/base_table.h"
#include "job/job_table.h"

cvy_status cvy_job_tree(const cvy_job *job, cvy_pool *pool, int whole, cvy_tree **out)
{
    cvy_tree *root = NULL;
    const cvy_option *rows = NULL;
    cvy_job top = *job;
    top.name = whole ? job->name : NULL;
    top.libraries = whole ? job->libraries : NULL; /* nodes may have copies in other places; contents are compared */
    CVY_TRY(cvy_job_rows(pool, "", &rows));
    CVY_TRY(cvy_options_tree(pool, rows, &top, &root));
    for (const cvy_job_section *s = cvy_job_sections; s->name; s++) {
        cvy_tree *section = NULL;
        if (!whole && strcmp(s->name, "log") == 0)
            continue;
        CVY_TRY(cvy_job_rows(pool, s->name, &rows));
        CVY_TRY(cvy_options_tree(pool, rows, job, &section));
        CVY_TRY(cvy_tree_set(pool, root, s->name, section));
    }
    *out = root;
    return CVY_OK;
}

static cvy_status print(const cvy_job *job, int whole, char **text_out)
{
    cvy_pool *pool = NULL;
    cvy_tree *root = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = cvy_job_tree(job, pool, whole, &root);
    if (status == CVY_OK)
        status = cvy_tree_print(root, text_out);
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_job_print(const cvy_job *job, char **text_out)
{
    return print(job, 1, text_out);
}

/* Checks that the job file has this key, which may be without a value: "data.test", or "model" at the top. */
static cvy_status check_key(cvy_pool *pool, const char *key)
{
    enum { KEYS_MAX = 64 };
    const char *dot = strchr(key, '.'), *name = dot ? dot + 1 : key, *names[KEYS_MAX];
    const cvy_option *rows = NULL;
    char section[32];
    int count = 0;
    snprintf(section, sizeof section, "%.*s", dot ? (int)(dot - key) : 0, key);
    CVY_TRY(cvy_job_rows(pool, section, &rows));
    for (; rows->name && count < KEYS_MAX; rows++) {
        if (strcmp(rows->name, name) == 0)
            return CVY_OK;
        names[count++] = rows->name;
    }
    return cvy_error_set(CVY_E_ARGUMENT, "a job has no key \"%s\"%s", key, cvy_hint_name('"', name, names, count).text);
}

static cvy_status print_key(cvy_pool *pool, const cvy_tree *root, const char *key, char **text_out)
{
    const cvy_tree *node = cvy_tree_at(root, key);
    if (node)
        return cvy_tree_print_line(node, text_out);
    CVY_TRY(check_key(pool, key));
    return cvy_mem_strdup("null", text_out);
}

cvy_status cvy_job_value(const cvy_job *job, const char *key, char **text_out)
{
    cvy_pool *pool = NULL;
    cvy_tree *root = NULL;
    *text_out = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = cvy_job_tree(job, pool, 1, &root);
    if (status == CVY_OK)
        status = print_key(pool, root, key, text_out);
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_job_hash(const cvy_job *job, uint64_t *hash_out)
{
    char *text = NULL;
    CVY_TRY(print(job, 0, &text));
    *hash_out = cvy_hash(text, strlen(text));
    cvy_mem_free(&text);
    return CVY_OK;
}
