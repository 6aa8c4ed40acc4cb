/*
 * base_text.h: a growing text, and a search for the name that is nearest to a misspelt word.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_TEXT_H
#define CVY_BASE_TEXT_H

#include "base/base_mem.h"

typedef struct cvy_text {
    char *data;
    size_t bytes, room;
    cvy_status status;
} cvy_text; /* status keeps the first error */
void cvy_text_add(cvy_text *t, const char *fmt, ...) CVY_PRINTF(2, 3);
void cvy_text_add_bytes(cvy_text *t, const char *data, size_t bytes);
/* A score for people: four decimals, or five digits if these would hide a small or a large number. */
void cvy_text_add_score(cvy_text *t, double value);
void cvy_text_add_real(cvy_text *t, double value); /* with as few digits as are needed to read back the same value */
void cvy_text_add_ints(cvy_text *t, const int64_t *at, int n); /* "[1, 2]" */
void cvy_text_add_quoted(cvy_text *t, const char *value);      /* in double quotes, so that JSON and YAML can read it */
void cvy_text_free(cvy_text *t);
/* Hands the text over to a caller who frees it, or frees it and returns its error; *out then is NULL. */
cvy_status cvy_text_take(cvy_text *t, char **out);

/* Whether a list has this entry. One of `separators` stands between entries; spaces around an entry do not count. */
int cvy_text_lists(const char *list, const char *separators, const char *entry);

/* The nearest name by edit distance, or NULL if no name is near. */
const char *cvy_text_nearest(const char *word, const char *const *names, int count);
/* Adds ", did you mean 'near'?; there are one, two" for a word that is not one of the names. */
void cvy_text_add_known(cvy_text *t, const char *word, const char *const *names, int count);

#endif
