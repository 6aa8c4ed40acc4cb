/*
 * base_text.h: a growing text, and the nearest of some names to a word that was misspelt.
 */
#ifndef CVY_BASE_TEXT_H
#define CVY_BASE_TEXT_H

#include "base/base_mem.h"

typedef struct cvy_text {
    char *data;
    size_t bytes, room;
    cvy_status status;
} cvy_text; /* status keeps the first failure */
void cvy_text_add(cvy_text *t, const char *fmt, ...) CVY_PRINTF(2, 3);
void cvy_text_add_bytes(cvy_text *t, const char *data, size_t bytes);
void cvy_text_add_real(cvy_text *t, double value);        /* as few digits as read back the same */
void cvy_text_add_quoted(cvy_text *t, const char *value); /* in double quotes, as JSON and YAML both read it */
void cvy_text_free(cvy_text *t);

/* The nearest name by edit distance, or NULL if none is near. */
const char *cvy_text_nearest(const char *word, const char *const *names, int count);
/* Adds ", did you mean 'near'?; there are one, two" for a word that is not among the names. */
void cvy_text_add_known(cvy_text *t, const char *word, const char *const *names, int count);

#endif
