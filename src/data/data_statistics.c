/*
 * data_statistics.c: mean and standard deviation of each channel, for `auto` of data.normalize and
 * data.normalize_targets.
 *
 * It runs before the first step. The samples are cut into `nparts` runs, whatever the number of ranks, and a rank reads
 * every nranks-th run with its own loader. Moments of planes, samples and parts are merged (base_moments.h). One rank
 * sums each part; the others add zero to it, which does not change a bit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_statistics.h"

#include <string.h>

#include "base/number/base_moments.h"
#include "data/data_reader.h"

enum { PARTS_MIN = 8, PARTS_MAX = 256, SLICE = 32 };
enum { MOMENTS = 1 << 21 }; /* of all parts, of which very many channels have fewer: 48 MiB on each rank */

struct deal {
    int64_t count, nparts, nslice; /* samples in total; parts; slices of each part */
    int rank, nranks;
};

/* A cvy_share_fn: step k of a rank is slice k % nslice of its (k / nslice)-th part. */
static cvy_status deal_share(void *user, int64_t step, cvy_share *shares, int max, int *nshare_out)
{
    const struct deal *d = user;
    const int64_t part = step / d->nslice * d->nranks + d->rank;
    if (part >= d->nparts || max < 1)
        return CVY_END;
    const int64_t begin = d->count * part / d->nparts, end = d->count * (part + 1) / d->nparts;
    const int64_t from = CVY_MIN(begin + step % d->nslice * SLICE, end), to = CVY_MIN(from + SLICE, end);
    shares[0] = (cvy_share){.first_position = from, .n = to - from};
    *nshare_out = 1;
    return CVY_OK;
}

/* The field of the weights, if it has one for each element of y, or for each position: then those of weight 0 do not
 * count. Else 0. */
static int mask_of(const cvy_dataset_info *info, const cvy_channel_statistics *f)
{
    const int64_t elems = cvy_shape_elems(&info->field[f->field].shape);
    for (int i = 1; i < info->nfield; i++) {
        const int64_t n = cvy_shape_elems(&info->field[i].shape);
        if (strcmp(info->field[i].name, CVY_SAMPLE_WEIGHT) == 0 && n > 1 && (n == elems || n == elems / f->nchannels))
            return strcmp(info->field[f->field].name, "y") == 0 ? i : 0;
    }
    return 0;
}

struct pass { /* a pass over the data: statistics of some fields */
    const cvy_dataset_info *info;
    const cvy_channel_statistics *field;
    int nfield;
    int64_t nchannels;    /* of all fields */
    int64_t nparts;       /* fewer, if there are very many channels */
    cvy_moments *moments; /* [nparts][nchannels] */
    int64_t nrows;        /* that count */
};

static void add_field(const struct pass *p, const cvy_channel_statistics *f, const cvy_rows *rows, cvy_moments *part)
{
    const int64_t elems = cvy_shape_elems(&p->info->field[f->field].shape), plane = elems / f->nchannels;
    const int mask = mask_of(p->info, f);
    const int64_t each = mask > 0 ? cvy_shape_elems(&p->info->field[mask].shape) : 0;
    for (int64_t row = 0; row < rows->n; row++) {
        const float *x = (const float *)rows->field[f->field] + row * elems,
                    *weight = mask > 0 ? (const float *)rows->field[mask] + row * each : NULL;
        for (int64_t c = 0; c < f->nchannels && rows->weight[row] > 0; c++) {
            const cvy_moments m = cvy_moments_of_f32(x + c * plane, weight ? weight + c * plane % each : NULL, plane);
            cvy_moments_merge(&part[c], &m);
        }
    }
}

static void add_rows(struct pass *p, const cvy_rows *rows, cvy_moments *part)
{
    for (int64_t row = 0; row < rows->n; row++)
        p->nrows += rows->weight[row] > 0;
    for (int i = 0; i < p->nfield; i++) {
        add_field(p, &p->field[i], rows, part);
        part += p->field[i].nchannels;
    }
}

/* Computes this rank's parts. */
static cvy_status sum_parts(cvy_dataset *d, const cvy_loader_opts *opts, const struct deal *deal, struct pass *pass)
{
    cvy_loader *loader = NULL;
    cvy_status status = cvy_loader_create(d, opts, &loader);
    for (int64_t step = 0; status == CVY_OK; step++) {
        const cvy_rows *rows = NULL;
        status = cvy_loader_get(loader, step, &rows, NULL);
        if (status != CVY_OK)
            break;
        const int64_t part = step / deal->nslice * deal->nranks + deal->rank;
        add_rows(pass, rows, pass->moments + part * pass->nchannels);
        cvy_loader_release(loader, rows);
    }
    cvy_loader_destroy(&loader);
    return status == CVY_END ? CVY_OK : status;
}

/* Combines the parts. Returns whether any number counts. */
static int finish(const struct pass *p, int64_t first, cvy_channel_statistics *f)
{
    int found = 0;
    for (int64_t c = 0; c < f->nchannels; c++) {
        cvy_moments all = {0};
        for (int64_t part = 0; part < p->nparts; part++)
            cvy_moments_merge(&all, &p->moments[part * p->nchannels + first + c]);
        f->mean[c] = all.mean;
        f->std[c] = cvy_moments_std(&all);
        found |= all.n > 0;
    }
    return found;
}

static cvy_status make_lists(cvy_pool *pool, struct pass *p, cvy_channel_statistics *fields)
{
    for (int i = 0; i < p->nfield; i++) {
        cvy_channel_statistics *f = &fields[i];
        p->nchannels += f->nchannels;
        CVY_TRY(cvy_pool_alloc(pool, sizeof *f->mean * (size_t)f->nchannels, &f->mean));
        CVY_TRY(cvy_pool_alloc(pool, sizeof *f->std * (size_t)f->nchannels, &f->std));
    }
    p->nparts = CVY_MIN(CVY_MAX(MOMENTS / p->nchannels, PARTS_MIN), PARTS_MAX);
    return cvy_mem_alloc(sizeof *p->moments * (size_t)(p->nparts * p->nchannels), &p->moments);
}

cvy_status cvy_channel_statistics_make(cvy_dataset *d, cvy_comm *comm, const cvy_statistics_opts *opts, cvy_pool *pool,
                                       cvy_channel_statistics *fields, int count, int64_t *nsamples_out)
{
    struct pass pass = {.info = cvy_dataset_describe(d), .field = fields, .nfield = count};
    const int64_t all = pass.info->nsamples;
    struct deal deal = {
        .count = opts->limit > 0 ? CVY_MIN(opts->limit, all) : all, .rank = comm->rank, .nranks = comm->nranks};
    int64_t first = 0;
    int found = 1;
    cvy_status status = make_lists(pool, &pass, fields);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    deal.nparts = pass.nparts;
    deal.nslice = ((deal.count + deal.nparts - 1) / deal.nparts + SLICE - 1) / SLICE;
    const cvy_loader_opts loader = {.shuffle = deal.count < all ? CVY_SHUFFLE_ALL : CVY_SHUFFLE_NONE,
                                    .seed = opts->seed,
                                    .threads = opts->threads,
                                    .depth = 2,
                                    .skip_bad = opts->skip_bad,
                                    .share = deal_share,
                                    .share_user = &deal};
    CVY_TRY_OUT(cvy_comm_agree(comm, sum_parts(d, &loader, &deal, &pass)));
    CVY_TRY_OUT(
        comm->ops->allreduce(comm, pass.moments, pass.nparts * pass.nchannels * 3, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    CVY_TRY_OUT(comm->ops->allreduce(comm, &pass.nrows, 1, CVY_DTYPE_I64, CVY_REDUCE_SUM));
    *nsamples_out = pass.nrows;
    for (int i = 0; i < count; i++) {
        found &= finish(&pass, first, &fields[i]);
        first += fields[i].nchannels;
    }
    if (!found)
        CVY_FAIL_OUT(CVY_E_FORMAT, "%s: no valid sample to compute mean and standard deviation from",
                     pass.info->path ? pass.info->path : pass.info->format);
out:
    cvy_mem_free(&pass.moments);
    return status;
}
