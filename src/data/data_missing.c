/*
 * data_missing.c: see data_missing.h. Readers call it for each sample, in the loader's threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_missing.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/text/base_tree.h"

int cvy_missing_is_word(const char *text, size_t bytes)
{
    static const char *const words[] = {"",     "na",     "n/a",     "<na>",    "nan",      "nat",
                                        "null", "none",   "?",       "#n/a",    "#n/a n/a", "#na",
                                        "-nan", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"};
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strlen(words[i]) == bytes && strncasecmp(words[i], text, bytes) == 0)
            return 1;
    return 0;
}

cvy_status cvy_missing_parse(const char *text, cvy_missing *out)
{
    double value = NAN;
    const int is_mean = text && strcmp(text, "mean") == 0;
    CVY_CHECK(!text || is_mean || (cvy_text_real(text, &value) == CVY_OK && isfinite((float)value)), CVY_E_CONFIG,
              "missing: %s is neither a number nor \"mean\"", text);
    *out = (cvy_missing){.is_on = text != NULL, .is_mean = is_mean, .value = (float)value};
    return CVY_OK;
}

cvy_status cvy_missing_fill(const cvy_missing *m, int64_t channels, int64_t n, const char *what, float *x)
{
    const int64_t each = n / channels;
    for (int64_t k = 0; k < channels && m->is_on; k++, x += each) {
        double sum = 0;
        int64_t found = 0;
        for (int64_t i = 0; i < each; i++)
            if (!isnan(x[i]))
                sum += (double)x[i], found++;
        CVY_CHECK(found > 0 || !m->is_mean, CVY_E_FORMAT,
                  "all numbers of channel %lld of %s are missing, so they have no mean (`missing: mean`)", (long long)k,
                  what);
        const float value = m->is_mean ? (float)(sum / (double)found) : m->value;
        for (int64_t i = 0; i < each && found < each; i++)
            x[i] = isnan(x[i]) ? value : x[i];
    }
    return CVY_OK;
}
