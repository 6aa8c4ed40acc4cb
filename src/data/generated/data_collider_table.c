/*
 * data_collider_table.c: the ten features of all events of a data set, in memory or as text.
 *
 * After training: input of the classic baselines (data_collider_baseline.c), of the report's histograms and of
 * scripts/peer_gbt.py. Events are read as stored: the network's augmentation does not touch what the baselines see.
 */
#include "base/base_file.h"
#include "base/text/base_text.h"
#include "data/generated/data_collider.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct job { /* one thread's part: events thread, thread + nthread, .. */
    cvy_dataset *data;
    cvy_collider_table *table;
    int thread, nthread;
    cvy_status status;
    char error[512];
};

static cvy_status fill_part(struct job *j)
{
    cvy_raw raw = {0};
    cvy_bytes work = {0};
    cvy_status status = CVY_OK;
    for (int64_t i = j->thread; i < j->table->n; i += j->nthread) {
        CVY_TRY_OUT(cvy_dataset_read_raw(j->data, i, &raw));
        const int64_t neta = raw.shape.dim[1], nphi = raw.shape.dim[2];
        CVY_TRY_OUT(cvy_bytes_need(&work, (size_t)(neta * nphi) * sizeof(float)));
        cvy_collider_features_of(raw.x.data, neta, nphi, work.data, j->table->feature + i * COLLIDER_FEATURES);
        j->table->label[i] = raw.label;
    }
out:
    cvy_raw_free(&raw);
    cvy_mem_free(&work.data);
    return status;
}

static void *run_part(void *user)
{
    struct job *j = user;
    j->status = fill_part(j);
    if (j->status != CVY_OK)
        snprintf(j->error, sizeof j->error, "%s", cvy_error_text());
    return NULL;
}

/* The caller does the first part, and those whose thread could not be had. */
static cvy_status fill(cvy_dataset *d, cvy_collider_table *t, int threads)
{
    struct job job[16] = {{0}};
    pthread_t handle[16];
    int running[16] = {0};
    const int n = CVY_MAX(CVY_MIN(threads, CVY_COUNT(job)), 1);
    for (int i = 0; i < n; i++)
        job[i] = (struct job){.data = d, .table = t, .thread = i, .nthread = n};
    for (int i = 1; i < n; i++)
        running[i] = pthread_create(&handle[i], NULL, run_part, &job[i]) == 0;
    for (int i = 0; i < n; i++)
        if (!running[i])
            run_part(&job[i]);
    for (int i = 1; i < n; i++)
        if (running[i])
            pthread_join(handle[i], NULL);
    for (int i = 0; i < n; i++)
        CVY_CHECK(job[i].status == CVY_OK, job[i].status, "%s", job[i].error);
    return CVY_OK;
}

int cvy_collider_is(const cvy_dataset *d)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const cvy_reader_info *stored = cvy_dataset_reader_info(d);
    return info->nclasses == 2 && strcmp(info->class_name[0], "background") == 0 &&
           strcmp(info->class_name[1], "signal") == 0 && stored->dtype == CVY_DTYPE_F32 && stored->shape.ndim == 3 &&
           stored->shape.dim[0] == COLLIDER_CHANNELS;
}

cvy_status cvy_collider_table_make(cvy_dataset *d, int64_t limit, int threads, cvy_collider_table *out)
{
    cvy_collider_table t = {.n = cvy_dataset_describe(d)->nsamples};
    CVY_CHECK(cvy_collider_is(d), CVY_E_ARGUMENT,
              "%s: no collider events (classes background and signal, images of 3 channels)",
              cvy_dataset_describe(d)->format);
    if (limit > 0)
        t.n = CVY_MIN(t.n, limit);
    cvy_status status = cvy_mem_alloc((size_t)t.n * COLLIDER_FEATURES * sizeof *t.feature, &t.feature);
    if (status == CVY_OK)
        status = cvy_mem_alloc((size_t)t.n * sizeof *t.label, &t.label);
    if (status == CVY_OK)
        status = fill(d, &t, threads);
    if (status != CVY_OK)
        cvy_collider_table_free(&t);
    else
        *out = t;
    return status;
}

void cvy_collider_table_free(cvy_collider_table *t)
{
    cvy_mem_free(&t->feature);
    cvy_mem_free(&t->label);
    t->n = 0;
}

cvy_status cvy_collider_table_write(const cvy_collider_table *t, const char *path)
{
    cvy_text text = {0};
    cvy_text_add(&text, "label");
    for (int f = 0; f < COLLIDER_FEATURES; f++)
        cvy_text_add(&text, ",%s", cvy_collider_feature_name[f]);
    cvy_text_add(&text, "\n");
    for (int64_t i = 0; i < t->n; i++) {
        cvy_text_add(&text, "%d", t->label[i]);
        for (int f = 0; f < COLLIDER_FEATURES; f++)
            cvy_text_add(&text, ",%.7g", t->feature[i * COLLIDER_FEATURES + f]);
        cvy_text_add(&text, "\n");
    }
    const cvy_status status = text.status == CVY_OK ? cvy_file_replace(path, text.data, text.bytes) : text.status;
    cvy_text_free(&text);
    return status;
}
