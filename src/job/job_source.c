/*
 * job_source.c: a data source as the command names it.
 */
#include "job/job_source.h"

#include <string.h>

cvy_status cvy_job_parse_source(cvy_pool *pool, const char *source, cvy_tree **out)
{
    const char first = source[strspn(source, " ")];
    if (first == '{' || first == '[')
        return cvy_tree_parse_text(pool, "source", source, strlen(source), out);
    return cvy_tree_new_scalar(pool, "source", source, out);
}

cvy_status cvy_job_open_source(cvy_pool *pool, const char *source, cvy_dataset **out)
{
    cvy_tree *tree = NULL;
    CVY_TRY(cvy_job_parse_source(pool, source, &tree));
    return cvy_dataset_open(tree, NULL, 0, 0, out);
}
