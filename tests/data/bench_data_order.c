/*
 * bench_data_order.c: measures the seconds and the memory to open a data set and to shuffle one epoch of it. Run it by
 * hand:
 *
 *     convoy pack '{format: synthetic, shape: [1, 2, 2], samples: 1000000}' million
 *     bench_data_order million [share for validation] [window]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "base/machine/base_clock.h"
#include "base/machine/base_machine.h"
#include "data/load/data_order.h"
#include "test_data_support.h"

static double peak_mb(void)
{
    return 1e-6 * (double)cvy_mem_peak();
}

int main(int argc, char **argv)
{
    cvy_dataset *whole = NULL, *part = NULL;
    cvy_epoch_order *order = NULL;
    int64_t number[4096], sum = 0;
    TRUE_THAT(argc > 1);
    const double share = argc > 2 ? atof(argv[2]) : 0, base = peak_mb(), start = cvy_clock_s();
    OK(open_text(argv[1], NULL, 0, &whole));
    const double opened = cvy_clock_s();
    if (share > 0)
        OK(cvy_dataset_split(whole, share, 1, 0, &part));
    cvy_dataset *d = part ? part : whole;
    const cvy_order_opts opts = {
        .shuffle = argc > 3 ? CVY_SHUFFLE_WINDOW : CVY_SHUFFLE_ALL, .window = argc > 3 ? atoll(argv[3]) : 0, .seed = 1};
    const int64_t n = cvy_dataset_describe(d)->nsamples;
    OK(cvy_epoch_order_create(d, &opts, &order));
    for (int64_t at = 0; at < n; at += CVY_COUNT(number)) {
        const int64_t count = CVY_MIN(n - at, CVY_COUNT(number));
        cvy_epoch_order_get(order, 0, at, count, 0, count, number, NULL);
        for (int64_t i = 0; i < count; i++)
            sum += number[i];
    }
    const double end = cvy_clock_s();
    printf("%lld samples: opened in %.3f s, split and shuffled in %.3f s, %.1f MB more at the most (before: %.1f MB); "
           "sum of numbers %lld\n",
           (long long)n, opened - start, end - opened, peak_mb() - base, base, (long long)sum);
    cvy_epoch_order_destroy(&order);
    cvy_dataset_destroy(&part);
    cvy_dataset_destroy(&whole);
    return 0;
}
