/*
 * job_baseline.c: see job_baseline.h. Data without baselines: nothing is found, nothing is written.
 */
#include "job/job_baseline.h"

cvy_status cvy_baselines_find(const cvy_scoring *s, const float *rows, int64_t n, int64_t row_elems, cvy_baselines *out)
{
    (void)s, (void)rows, (void)n, (void)row_elems;
    out->impl = NULL;
    return CVY_OK;
}

void cvy_baselines_add_network(const cvy_baselines *b, cvy_json *json)
{
    (void)b, (void)json;
}

void cvy_baselines_add(const cvy_baselines *b, cvy_json *json)
{
    (void)b, (void)json;
}

void cvy_baselines_free(cvy_baselines *b)
{
    b->impl = NULL;
}
