/*
 * data_described_file.h: what files say of their variables, in the description of the weights of a run, in that of a
 * packed set, and as text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_DESCRIBED_FILE_H
#define CVY_DATA_DESCRIBED_FILE_H

#include "base/text/base_json.h"
#include "data/data_described.h"

/* Adds "described": units, axes and coordinates of the variables of x and y; nothing if nothing is known. Of an axis
 * with many coordinates CVY_COORDINATES_KEPT are kept. */
void cvy_descriptions_write(const cvy_descriptions *d, cvy_json *json);
/* Reads them; older descriptions have none. The content is not trusted: CVY_E_FORMAT. Texts are in root's pool. */
cvy_status cvy_descriptions_read(cvy_pool *pool, const cvy_tree *root, cvy_descriptions *out);
/* Copies them into pool, with no more coordinates than a file keeps. */
cvy_status cvy_descriptions_copy(cvy_pool *pool, const cvy_descriptions *d, cvy_descriptions *out);
/* Adds a line for each variable of which something is known, with its units, its axes and their direction. */
void cvy_descriptions_print(const cvy_descriptions *d, cvy_text *out);

#endif
