/*
 * data_statistics.c: mean and standard deviation of each channel, for `data.normalize: auto`.
 *
 * It runs before the first step. The samples are cut into PARTS runs, whatever the number of ranks, and a rank reads
 * every nranks-th run with its own loader. Moments of planes, samples and parts are merged as in Chan, Golub and
 * LeVeque (1979), so there is no cancellation. One rank sums each part; the others add zero to it, which does not
 * change a bit.
 */
#include "data/data_statistics.h"

#include <math.h>

#include "base/machine/base_clock.h"
#include "data/data_reader.h"

enum { PARTS = 256, SLICE = 32 };

struct moments { /* moments of one channel of one part */
    double n, mean, m2;
};

struct deal {
    int64_t count, nslice; /* samples in total; slices of each part */
    int rank, nranks;
};

/* A cvy_share_fn: step k of a rank is slice k % nslice of its (k / nslice)-th part. */
static cvy_status deal_share(void *user, int64_t step, cvy_share *shares, int max, int *nshare_out)
{
    const struct deal *d = user;
    const int64_t part = step / d->nslice * d->nranks + d->rank;
    if (part >= PARTS || max < 1)
        return CVY_END;
    const int64_t begin = d->count * part / PARTS, end = d->count * (part + 1) / PARTS;
    const int64_t from = CVY_MIN(begin + step % d->nslice * SLICE, end), to = CVY_MIN(from + SLICE, end);
    shares[0] = (cvy_share){.first_position = from, .n = to - from};
    *nshare_out = 1;
    return CVY_OK;
}

static void merge(struct moments *a, const struct moments *b)
{
    const double n = a->n + b->n, delta = b->mean - a->mean;
    if (b->n == 0)
        return;
    a->mean += delta * b->n / n;
    a->m2 += b->m2 + delta * delta * a->n * b->n / n;
    a->n = n;
}

static struct moments of_plane(const float *x, int64_t n)
{
    struct moments p = {.n = (double)n};
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i];
    p.mean = sum / p.n;
    for (int64_t i = 0; i < n; i++)
        p.m2 += ((double)x[i] - p.mean) * ((double)x[i] - p.mean);
    return p;
}

static void add_rows(const cvy_rows *rows, int nchannels, int64_t plane, struct moments *part)
{
    for (int64_t row = 0; row < rows->n; row++) {
        const float *x = (const float *)rows->field[0] + row * nchannels * plane;
        for (int c = 0; c < nchannels && rows->weight[row] > 0; c++) {
            const struct moments p = of_plane(x + c * plane, plane);
            merge(&part[c], &p);
        }
    }
}

/* Computes this rank's parts, in moments[PARTS][nchannels]. */
static cvy_status sum_parts(cvy_dataset *d, const cvy_loader_opts *opts, struct deal *deal, int nchannels,
                            int64_t plane, struct moments *moments)
{
    cvy_loader *loader = NULL;
    cvy_status status = cvy_loader_create(d, opts, &loader);
    for (int64_t step = 0; status == CVY_OK; step++) {
        const cvy_rows *rows = NULL;
        status = cvy_loader_get(loader, step, &rows, NULL);
        if (status != CVY_OK)
            break;
        add_rows(rows, nchannels, plane, moments + (step / deal->nslice * deal->nranks + deal->rank) * nchannels);
        cvy_loader_release(loader, rows);
    }
    cvy_loader_destroy(&loader);
    return status == CVY_END ? CVY_OK : status;
}

static void finish(const struct moments *moments, int64_t plane, cvy_channel_statistics *s)
{
    for (int c = 0; c < s->nchannels; c++) {
        struct moments all = {0};
        for (int p = 0; p < PARTS; p++)
            merge(&all, &moments[p * s->nchannels + c]);
        s->mean[c] = all.mean;
        s->std[c] = all.m2 > 0 ? sqrt(all.m2 / all.n) : 1;
        s->nsamples = (int64_t)(all.n / (double)plane + 0.5);
    }
}

cvy_status cvy_channel_statistics_make(cvy_dataset *d, cvy_comm *comm, int64_t limit, uint64_t seed, int threads,
                                       int skip_bad, cvy_channel_statistics *out)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const cvy_shape *shape = &info->field[0].shape;
    const int64_t elems = cvy_shape_elems(shape), channels = shape->ndim > 0 ? shape->dim[0] : 1;
    cvy_channel_statistics s = {.nchannels = channels <= CVY_LIST_MAX ? (int)channels : 1};
    const int64_t plane = elems / s.nchannels, all = info->nsamples;
    struct deal deal = {.count = limit > 0 ? CVY_MIN(limit, all) : all, .rank = comm->rank, .nranks = comm->nranks};
    const double start = cvy_clock_s();
    struct moments *moments = NULL;
    deal.nslice = ((deal.count + PARTS - 1) / PARTS + SLICE - 1) / SLICE;
    const cvy_loader_opts opts = {.shuffle = deal.count < all ? CVY_SHUFFLE_ALL : CVY_SHUFFLE_NONE,
                                  .seed = seed,
                                  .threads = threads,
                                  .depth = 2,
                                  .skip_bad = skip_bad,
                                  .share = deal_share,
                                  .share_user = &deal};
    cvy_status status = cvy_mem_alloc(sizeof *moments * PARTS * (size_t)s.nchannels, &moments);
    if (status == CVY_OK)
        status = sum_parts(d, &opts, &deal, s.nchannels, plane, moments);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    CVY_TRY_OUT(comm->ops->allreduce(comm, moments, (int64_t)PARTS * s.nchannels * 3, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    finish(moments, plane, &s);
    s.seconds = cvy_clock_s() - start;
    if (s.nsamples == 0)
        CVY_FAIL_OUT(CVY_E_FORMAT, "%s: no valid sample to compute mean and standard deviation from",
                     info->path ? info->path : info->format);
    *out = s;
out:
    cvy_mem_free(&moments);
    return status;
}
