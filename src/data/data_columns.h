/*
 * data_columns.h: the names of columns and variables in a description: of the weights of a run, of a packed set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_COLUMNS_H
#define CVY_DATA_COLUMNS_H

#include "base/text/base_json.h"
#include "data/data_reader.h"

/* Adds "columns" of a table, one for each number of x, or "variables" that are joined as x and y; nothing if no names
 * are known. */
void cvy_columns_write(const cvy_reader_info *info, cvy_json *json);
/* Reads them; older descriptions have none. Names are in root's pool; info has the shape of x. */
cvy_status cvy_columns_read(cvy_pool *pool, const cvy_tree *root, cvy_reader_info *info);

#endif
