/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_records.c: measures what it costs to open a set of many small samples. Opening is one pass over the records
 * that finds their positions and labels. The default is a million TFRecords and a million lines. The files are made
 * first and are then in the page cache. The program prints seconds, best of three, and the memory that the open set
 * holds.
 *
 * bench_records [samples] */
#include <stdio.h>

#include "base/machine/base_clock.h"
#include "base/machine/base_machine.h"
#include "test_data_support.h"

#include "data/tfrecord/data_example.h"
#include "data/tfrecord/data_tfrecord.h"

static void make_records(const char *path, int64_t n)
{
    FILE *f = fopen(path, "wb");
    TRUE_THAT(f);
    for (int64_t i = 0; i < n; i++) {
        static uint8_t record[512];
        const float x[] = {(float)i, 1, 2, 3, 4, 5, 6, 7};
        const int64_t label = i % 1000;
        const cvy_new_feature feature[] = {{"x", CVY_FEATURE_FLOATS, x, 8},
                                           {"image/class/label", CVY_FEATURE_INTS, &label, 1},
                                           {"image/class/text", CVY_FEATURE_BYTES, "some name", 9}};
        const size_t bytes = cvy_example_bytes(feature, 3);
        cvy_tfrecord_put(record, bytes, 8);
        cvy_tfrecord_put(record + 8, cvy_tfrecord_crc(record, 8), 4);
        cvy_example_put(feature, 3, record + 12);
        cvy_tfrecord_put(record + 12 + bytes, cvy_tfrecord_crc(record + 12, bytes), 4);
        TRUE_THAT(fwrite(record, 1, bytes + 16, f) == bytes + 16);
    }
    TRUE_THAT(fclose(f) == 0);
}

static void make_lines(const char *path, int64_t n)
{
    FILE *f = fopen(path, "w");
    TRUE_THAT(f);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, "%lld,1.25,2.5,3.75,-4,5e-3,6,7,%lld\n", (long long)i, (long long)(i % 1000));
    TRUE_THAT(fclose(f) == 0);
}

static void time_opening(const char *what, const char *source, int64_t n)
{
    double best = 1e9;
    cvy_dataset *d = NULL;
    cvy_mem_peak_reset();
    const int64_t before = cvy_mem_peak();
    for (int i = 0; i < 3; i++) {
        const double start = cvy_clock_s();
        OK(open_text(source, NULL, 0, &d));
        best = CVY_MIN(best, cvy_clock_s() - start);
        TRUE_THAT(cvy_dataset_describe(d)->nsamples == n && cvy_dataset_describe(d)->nclasses == CVY_MIN(n, 1000));
        cvy_dataset_destroy(&d);
    }
    printf("%-8s samples %lld open_s %.3f peak_mb %.1f\n", what, (long long)n, best,
           (double)(cvy_mem_peak() - before) / 1e6);
}

int main(int argc, char **argv)
{
    const int64_t n = argc > 1 ? atoll(argv[1]) : 1000000;
    char source[600];
    scratch_make();
    make_records(in_scratch("set.tfrecord"), n);
    time_opening("tfrecord", in_scratch("set.tfrecord"), n);
    make_lines(in_scratch("set.csv"), n);
    snprintf(source, sizeof source, "{path: \"%s\", label: -1}", in_scratch("set.csv"));
    time_opening("csv", source, n);
    scratch_remove();
    return 0;
}
