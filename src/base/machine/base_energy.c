/*
 * base_energy.c: reads RAPL's counters as files: powercap/intel-rapl:N/energy_uj and max_energy_range_uj of package N.
 * AMD's processors have the same files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_energy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns whether there is such a number. */
static int read_number(const char *folder, int package, const char *file, double *out)
{
    char path[512];
    snprintf(path, sizeof path, "%.400s/intel-rapl:%d/%s", folder, package, file);
    FILE *f = fopen(path, "r");
    const int found = f && fscanf(f, "%lf", out) == 1;
    if (f)
        fclose(f);
    return found;
}

cvy_energy cvy_energy_read(void)
{
    const char *named = getenv("CONVOY_POWERCAP"), *folder = named ? named : "/sys/class/powercap";
    cvy_energy e = {.n = 0};
    double energy_uj = 0, range_uj = 0;
    while (e.n < CVY_ENERGY_PACKAGES && read_number(folder, e.n, "energy_uj", &energy_uj) &&
           read_number(folder, e.n, "max_energy_range_uj", &range_uj)) {
        e.joules[e.n] = 1e-6 * energy_uj;
        e.range[e.n] = 1e-6 * range_uj;
        e.n++;
    }
    return e;
}

double cvy_energy_between(const cvy_energy *from, const cvy_energy *to)
{
    double sum = 0;
    if (from->n == 0 || to->n != from->n)
        return NAN;
    for (int i = 0; i < from->n; i++) {
        const double used = to->joules[i] - from->joules[i];
        sum += used < 0 ? used + from->range[i] : used;
    }
    return sum;
}
