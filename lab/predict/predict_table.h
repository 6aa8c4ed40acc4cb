/*
 * predict_table.h: what the search for a process grid has found, as a table for people and as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PREDICT_TABLE_H
#define CVY_PREDICT_TABLE_H

#include "search/search.h"

/* The table of the best `shown` grids, and why others fall out. */
void cvy_predict_table(const cvy_search *search, const cvy_search_opts *opts, int shown, cvy_text *out);
/* All candidates as a JSON object. */
cvy_status cvy_predict_json(const cvy_search *search, const cvy_search_opts *opts, char **text_out);

#endif
