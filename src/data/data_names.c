/*
 * data_names.c: lists of names: see data_names.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_names.h"

#include <stdio.h>
#include <string.h>

#include "base/base_index.h"

enum { SHOWN = 12, LETTERS = 24 }; /* names of a list that are shown, and bytes of each */

const char *cvy_data_names_text(const char *const *name, int64_t n, char text[CVY_DATA_NAMES_TEXT])
{
    size_t at = 0;
    text[0] = 0;
    /* a list of one more is shown whole: "and 1 more" would be as long */
    const int64_t shown = n <= SHOWN + 1 ? n : SHOWN;
    for (int64_t i = 0; i < shown; i++) {
        const char *word = *name[i] ? name[i] : "\"\"";
        const int is_long = strlen(word) > LETTERS;
        int letters = is_long ? LETTERS - 2 : LETTERS;
        while (is_long && letters > 0 && ((unsigned char)word[letters] & 0xc0) == 0x80) /* inside a letter of UTF-8 */
            letters--;
        at += (size_t)snprintf(text + at, CVY_DATA_NAMES_TEXT - at, "%s%.*s%s", i ? ", " : "", letters, word,
                               is_long ? ".." : "");
    }
    if (shown < n)
        snprintf(text + at, CVY_DATA_NAMES_TEXT - at, " and %lld more", (long long)(n - shown));
    return text;
}

cvy_status cvy_data_names_relate(const char *const *a, int64_t na, const char *const *b, int64_t nb,
                                 cvy_data_names *out)
{
    cvy_index known = {0}, seen = {0};
    cvy_status status = CVY_OK;
    int same = na == nb, found = nb <= na;
    for (int64_t i = 0; i < na && same; i++)
        same = strcmp(a[i], b[i]) == 0;
    for (int64_t i = 0; i < na && found && !same && status == CVY_OK; i++) {
        found = cvy_index_find(&known, a[i]) < 0; /* else it is there twice */
        status = cvy_index_add(&known, a[i], 0);
    }
    for (int64_t i = 0; i < nb && found && !same && status == CVY_OK; i++) {
        found = cvy_index_find(&known, b[i]) >= 0 && cvy_index_find(&seen, b[i]) < 0;
        status = cvy_index_add(&seen, b[i], 0);
    }
    cvy_index_free(&known);
    cvy_index_free(&seen);
    *out = same      ? CVY_DATA_NAMES_SAME
           : !found  ? CVY_DATA_NAMES_OTHER
           : nb < na ? CVY_DATA_NAMES_FEWER
                     : CVY_DATA_NAMES_REORDERED;
    return status;
}
