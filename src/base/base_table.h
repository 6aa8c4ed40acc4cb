/*
 * base_table.h: finds a descriptor by its name in one of the tables of tools/make_registry.sh, and says what there is
 * if the name is wrong.
 */
#ifndef CVY_BASE_TABLE_H
#define CVY_BASE_TABLE_H

#include "base/base_status.h"

typedef struct cvy_table_query {
    const char *what;              /* what the table holds, for the message: "metric" */
    const char *hint;              /* ends the message in place of the list of all names; NULL: the list */
    int (*takes)(const void *def); /* which descriptors count; NULL: all */
} cvy_table_query;

/* table: `count` pointers to descriptors, each of which begins with its name. def_out: address of a pointer to one of
 * them. CVY_E_CONFIG: "there is no metric 'acuracy', did you mean 'accuracy'?; there are ...". */
cvy_status cvy_table_find(const void *table, int count, const cvy_table_query *query, const char *name, void *def_out);

#endif
