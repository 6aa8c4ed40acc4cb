/*
 * base_table.h: finds a descriptor by its name in one of the tables that tools/make_registry.sh makes. If the name is
 * wrong, the message lists what there is, or says which name was probably meant. Also the words for true and false.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_TABLE_H
#define CVY_BASE_TABLE_H

#include "base/base_status.h"

typedef struct cvy_table_query {
    const char *what;              /* what the table contains, for the message: "metric" */
    const char *hint;              /* end of the message; NULL: a list of all names */
    int (*takes)(const void *def); /* returns 1 for descriptors that may be found; NULL: all */
} cvy_table_query;

/* table: `count` pointers to descriptors, each of which begins with its name. def_out: address of a pointer to a
 * descriptor. CVY_E_CONFIG: "there is no metric 'acuracy', did you mean 'accuracy'?; there are ...". */
cvy_status cvy_table_find(const void *table, int count, const cvy_table_query *query, const char *name, void *def_out);

/* The end of a message for a wrong name: `, did you mean 'near'?`, or with quote '"' `; did you mean "near"?`. The text
 * is empty if none of the names is near. */
typedef struct cvy_name_hint {
    char text[80];
} cvy_name_hint;
cvy_name_hint cvy_hint_name(char quote, const char *word, const char *const *names, int count);

/* "true" or "false" for all words that YAML 1.1 has for them: true, yes, on, false, no, off, in lower case, Capitalised
 * or in CAPITALS. Any other text is returned as it is. */
const char *cvy_bool_word(const char *text);

#endif
