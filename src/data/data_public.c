/*
 * data_public.c: data sets and loaders of the public API (convoy/data.h). It is a thin layer over cvy_dataset and
 * cvy_loader; it knows the order of epochs and this rank's part of each batch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_public.h"

#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "base/text/base_table.h"
#include "context/context.h"
#include "data/load/data_samples.h"

enum { THREADS_MAX = 256, PREFETCH_MAX = 1024 };

/* ---- data sets ---- */

cvy_status cvy_data_parse_source(cvy_pool *pool, const char *source, cvy_tree **out)
{
    const char first = source[strspn(source, " ")];
    if (first == '{' || first == '[')
        return cvy_tree_parse_text(pool, "source", source, strlen(source), out);
    return cvy_tree_new_scalar(pool, "source", source, out);
}

static cvy_status create(cvy_data **out)
{
    CVY_TRY(cvy_handle_alloc(CVY_HANDLE_DATA, sizeof **out, out));
    const cvy_status status = cvy_pool_create(&(*out)->pool);
    if (status != CVY_OK)
        cvy_handle_free(out);
    return status;
}

static cvy_status open_source(cvy_data *d, const char *source, const cvy_data_opts *o)
{
    cvy_tree *tree = NULL, *augment = NULL;
    CVY_TRY(cvy_data_parse_source(d->pool, source, &tree));
    if (o->augment)
        CVY_TRY(cvy_tree_parse_text(d->pool, "augment", o->augment, strlen(o->augment), &augment));
    return cvy_dataset_open(tree, augment, o->random, o->seed, &d->set);
}

cvy_status cvy_data_open(const char *source, const cvy_data_opts *opts, cvy_data **data_out)
{
    CVY_ENTRY();
    cvy_data_opts o;
    cvy_data *d = NULL;
    CVY_CHECK(source && data_out, CVY_E_ARGUMENT,
              "cvy_data_open() needs a source and an output pointer for the data set");
    CVY_TRY(CVY_OPTS_READ(cvy_data_opts, opts, &o));
    CVY_TRY(create(&d));
    const cvy_status status = open_source(d, source, &o);
    if (status != CVY_OK)
        cvy_data_destroy(&d);
    else
        *data_out = d;
    return status;
}

cvy_status cvy_data_split(cvy_data *data, double share, uint64_t seed, int part, cvy_data **part_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(DATA, data));
    cvy_data *d = NULL;
    CVY_CHECK(part_out, CVY_E_ARGUMENT, "cvy_data_split() needs an output pointer for the part");
    CVY_CHECK(share > 0 && share < 1, CVY_E_ARGUMENT, "a share of %g of a data set, expected one between 0 and 1",
              share);
    CVY_CHECK(part == 0 || part == 1, CVY_E_ARGUMENT, "part %d, expected 1 (the share) or 0 (the rest)", part);
    CVY_TRY(create(&d));
    const cvy_status status = cvy_dataset_split(data->set, share, seed, part, &d->set);
    if (status != CVY_OK)
        cvy_data_destroy(&d);
    else
        *part_out = d;
    return status;
}

void cvy_data_destroy(cvy_data **data)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(DATA, data))
        return;
    cvy_dataset_destroy(&(*data)->set);
    cvy_pool_destroy(&(*data)->pool);
    cvy_handle_free(data);
}

cvy_status cvy_data_describe(const cvy_data *data, cvy_data_about *about_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(DATA, data));
    CVY_CHECK(about_out, CVY_E_ARGUMENT, "cvy_data_describe() needs an output pointer for what the data set holds");
    CVY_TRY(CVY_RESULT_CHECK(cvy_data_about, about_out));
    const cvy_dataset_info *info = cvy_dataset_describe(data->set);
    const cvy_data_about about = {.size = sizeof about,
                                  .samples = info->nsamples,
                                  .classes = info->nclasses,
                                  .fields = info->nfield,
                                  .format = info->format};
    cvy_result_write(about_out, &about, sizeof about);
    return CVY_OK;
}

cvy_status cvy_data_field(const cvy_data *data, int i, const char **name_out, cvy_dtype *dtype_out,
                          cvy_shape *shape_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(DATA, data));
    const cvy_dataset_info *info = cvy_dataset_describe(data->set);
    if (i < 0 || i >= info->nfield)
        return CVY_END;
    if (name_out)
        *name_out = info->field[i].name;
    if (dtype_out)
        *dtype_out = info->field[i].dtype;
    if (shape_out)
        *shape_out = info->field[i].shape;
    return CVY_OK;
}

const char *cvy_data_class(const cvy_data *data, int64_t label)
{
    CVY_ENTRY();
    if (CVY_KNOWN(DATA, data) != CVY_OK)
        return NULL;
    const cvy_dataset_info *info = cvy_dataset_describe(data->set);
    return info->class_name && label >= 0 && label < info->nclasses ? info->class_name[label] : NULL;
}

/* ---- loaders ---- */

struct cvy_data_loader {
    cvy_data *data;
    cvy_order order;
    cvy_loader *loader;
    const cvy_rows *rows; /* rows that the caller holds; NULL: none */
    int64_t step;         /* next step */
};

static cvy_status parse_shuffle(const char *text, cvy_shuffle *out)
{
    static const char *const words[] = {
        [CVY_SHUFFLE_NONE] = "false", [CVY_SHUFFLE_ALL] = "true", [CVY_SHUFFLE_WINDOW] = "window"};
    *out = CVY_SHUFFLE_ALL;
    for (int i = 0; text && i < CVY_COUNT(words); i++)
        if (strcmp(cvy_bool_word(text), words[i]) == 0) {
            *out = (cvy_shuffle)i;
            return CVY_OK;
        }
    CVY_CHECK(!text, CVY_E_ARGUMENT, "shuffle is '%s', expected true, window or false", text);
    return CVY_OK;
}

static cvy_status check(const cvy_data_loader_opts *o)
{
    CVY_CHECK(o->batch > 0, CVY_E_ARGUMENT, "a loader of batches of %lld samples, expected at least 1",
              (long long)o->batch);
    CVY_CHECK(o->accumulate >= 0 && o->accumulate <= CVY_SHARE_MAX && o->epochs >= 0 && o->first_step >= 0,
              CVY_E_ARGUMENT,
              "a loader with accumulate %lld, epochs %lld and first_step %lld: none may be negative, and accumulate is "
              "at most %d",
              (long long)o->accumulate, (long long)o->epochs, (long long)o->first_step, CVY_SHARE_MAX);
    CVY_CHECK(o->threads >= -1 && o->threads <= THREADS_MAX && o->prefetch >= 0 && o->prefetch <= PREFETCH_MAX,
              CVY_E_ARGUMENT, "a loader with %d threads and %d batches ahead, expected -1 .. %d and 0 .. %d",
              o->threads, o->prefetch, THREADS_MAX, PREFETCH_MAX);
    return CVY_OK;
}

static cvy_status start(cvy_data_loader *l, const cvy_comm *comm, const cvy_data_loader_opts *o)
{
    cvy_loader_opts opts = {.seed = o->seed,
                            .threads = o->threads == 0 ? 1 : CVY_MAX(o->threads, 0),
                            .depth = o->prefetch > 0 ? o->prefetch : 2,
                            .skip_bad = o->skip_bad,
                            .first_step = o->first_step,
                            .share = cvy_order_share,
                            .share_user = &l->order};
    CVY_TRY(parse_shuffle(o->shuffle, &opts.shuffle));
    l->step = o->first_step;
    l->order = cvy_order_make(cvy_dataset_describe(l->data->set)->nsamples, o->batch, CVY_MAX(o->accumulate, 1),
                              !o->keep_tail, o->epochs, INT64_MAX, comm);
    return cvy_loader_create(l->data->set, &opts, &l->loader);
}

cvy_status cvy_data_loader_create(cvy_context *context, cvy_data *data, const cvy_data_loader_opts *opts,
                                  cvy_data_loader **loader_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    CVY_TRY(CVY_LIVE(DATA, data));
    cvy_data_loader_opts o;
    cvy_data_loader *l = NULL;
    CVY_CHECK(loader_out, CVY_E_ARGUMENT, "cvy_data_loader_create() needs an output pointer for the loader");
    CVY_TRY(CVY_OPTS_READ(cvy_data_loader_opts, opts, &o));
    CVY_TRY(check(&o));
    CVY_TRY(cvy_handle_alloc(CVY_HANDLE_DATA_LOADER, sizeof *l, &l));
    l->data = data;
    const cvy_status status = start(l, context->comm, &o);
    if (status != CVY_OK)
        cvy_data_loader_destroy(&l);
    else
        *loader_out = l;
    return status;
}

void cvy_data_loader_destroy(cvy_data_loader **loader)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(DATA_LOADER, loader))
        return;
    cvy_data_loader *l = *loader;
    if (l->rows)
        cvy_loader_release(l->loader, l->rows);
    cvy_loader_destroy(&l->loader);
    cvy_handle_free(loader);
}

cvy_status cvy_data_loader_next(cvy_data_loader *l, cvy_data_batch *batch_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(DATA_LOADER, l));
    double wait_s = 0;
    CVY_CHECK(batch_out, CVY_E_ARGUMENT, "cvy_data_loader_next() needs an output pointer for the batch");
    CVY_TRY(CVY_RESULT_CHECK(cvy_data_batch, batch_out));
    if (l->rows)
        cvy_loader_release(l->loader, l->rows);
    l->rows = NULL;
    CVY_TRY(cvy_loader_get(l->loader, l->step, &l->rows, &wait_s));
    const cvy_data_batch batch = {.size = sizeof batch,
                                  .step = l->step,
                                  .epoch = l->step / l->order.steps_per_epoch,
                                  .batch = cvy_order_batch(&l->order, l->step),
                                  .rows = l->rows->n,
                                  .field = (const void *const *)l->rows->field,
                                  .sample = l->rows->id,
                                  .weight = l->rows->weight,
                                  .data = l->data};
    cvy_result_write(batch_out, &batch, sizeof batch);
    l->step++;
    return CVY_OK;
}

int64_t cvy_data_loader_steps(const cvy_data_loader *l)
{
    CVY_ENTRY();
    if (CVY_KNOWN(DATA_LOADER, l) != CVY_OK)
        return 0;
    return l->order.steps_per_epoch;
}
