/*
 * session_source.c: a data source as it is written on the command line.
 */
#include "session/session_source.h"

#include "data/data_public.h"

cvy_status cvy_job_parse_source(cvy_pool *pool, const char *source, cvy_tree **out)
{
    return cvy_data_parse_source(pool, source, out);
}

cvy_status cvy_job_open_source(cvy_pool *pool, const char *source, cvy_dataset **out)
{
    cvy_tree *tree = NULL;
    CVY_TRY(cvy_job_parse_source(pool, source, &tree));
    return cvy_dataset_open(tree, NULL, 0, 0, out);
}
