/*
 * job_print.c: the job with all its defaults as a tree, as text for the run folder, and as a hash that ranks compare.
 */
#include <stdio.h>
#include <string.h>

#include "base/base_hash.h"
#include "job/job_table.h"

cvy_status cvy_job_tree(const cvy_job *job, cvy_pool *pool, int whole, cvy_tree **out)
{
    cvy_tree *root = NULL;
    cvy_job top = *job;
    top.name = whole ? job->name : NULL;
    CVY_TRY(cvy_options_tree(pool, cvy_job_top_rows, &top, &root));
    for (const cvy_job_section *s = cvy_job_sections; s->name; s++) {
        cvy_tree *section = NULL;
        if (!whole && strcmp(s->name, "log") == 0)
            continue;
        CVY_TRY(cvy_options_tree(pool, s->rows, (const char *)job + s->offset, &section));
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

/* Prints the child of `node` with the name that follows in `path`, or `node` itself at the end of the path. */
static cvy_status print_at(const cvy_tree *node, const char *whole, const char *path, char **text_out)
{
    char name[64];
    const char *near = NULL;
    if (!*path)
        return cvy_tree_print(node, text_out);
    const size_t length = strcspn(path, ".");
    snprintf(name, sizeof name, "%.*s", (int)length, path);
    const cvy_tree *child = node->kind == CVY_TREE_MAP ? cvy_tree_get(node, name) : NULL;
    if (child)
        return print_at(child, whole, path + length + (path[length] == '.'), text_out);
    if (node->kind == CVY_TREE_MAP)
        near = cvy_text_nearest(name, node->key, node->count);
    CVY_FAIL(CVY_E_ARGUMENT, "a job has no key \"%s\"%s%s%s", whole, near ? "; did you mean \"" : "", near ? near : "",
             near ? "\"?" : "");
}

cvy_status cvy_job_value(const cvy_job *job, const char *key, char **text_out)
{
    cvy_pool *pool = NULL;
    cvy_tree *root = NULL;
    *text_out = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = cvy_job_tree(job, pool, 1, &root);
    if (status == CVY_OK)
        status = print_at(root, key, key, text_out);
    if (status == CVY_OK)
        (*text_out)[strlen(*text_out) - 1] = 0; /* the newline at the end */
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
