/*
 * event_histogram.c: writes histograms. A run of empty buckets becomes one bucket. Source: histogram.proto of
 * TensorFlow.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/tensorboard/event.h"

/* Fills end and count of the buckets to write, and returns their number. */
static size_t pack(const cvy_histogram *h, double *end, double *count)
{
    size_t n = 0;
    int last = CVY_HISTOGRAM_BUCKETS - 1;
    while (last > 0 && h->count[last] == 0)
        last--;
    for (int i = 0; i <= last; i++) {
        const int is_run = n > 0 && h->count[i] == 0 && count[n - 1] == 0;
        n += !is_run;
        end[n - 1] = cvy_histogram_end(i);
        count[n - 1] = (double)h->count[i];
    }
    return n;
}

cvy_status cvy_events_add_histogram(cvy_events *e, int64_t step, const char *tag, const cvy_histogram *h)
{
    Cvy__Tb__SummaryValue value = CVY__TB__SUMMARY_VALUE__INIT, *values[] = {&value};
    Cvy__Tb__HistogramProto histo = CVY__TB__HISTOGRAM_PROTO__INIT;
    double *end = NULL;
    if (!e || h->max < h->min)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(2 * sizeof *end * CVY_HISTOGRAM_BUCKETS, &end));
    histo.n_bucket = histo.n_bucket_limit = pack(h, end, end + CVY_HISTOGRAM_BUCKETS);
    histo.bucket_limit = end;
    histo.bucket = end + CVY_HISTOGRAM_BUCKETS;
    for (int i = 0; i < CVY_HISTOGRAM_BUCKETS; i++)
        histo.num += (double)h->count[i];
    histo.min = h->min;
    histo.max = h->max;
    histo.sum = h->sum;
    histo.sum_squares = h->sum_squares;
    value.tag = (char *)(uintptr_t)tag;
    value.value_case = CVY__TB__SUMMARY_VALUE__VALUE_HISTO;
    value.histo = &histo;
    const cvy_status status = cvy_event_write_summary(e, step, values, 1);
    cvy_mem_free(&end);
    return status;
}
