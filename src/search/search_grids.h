/*
 * search_grids.h: the process grids that a number of ranks can form, and the variants of each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SEARCH_GRIDS_H
#define CVY_SEARCH_GRIDS_H

#include "base/text/base_text.h"
#include "comm/comm_grid.h"

/* What the grids are for. */
typedef struct cvy_search_space {
    int nranks;
    int ndims;             /* spatial dimensions of a sample, 0 .. 3 */
    int64_t batch;         /* samples of a step */
    int64_t micro_batches; /* as the job asks for; 0: free */
    int64_t interleave;    /* as the job asks for; 0: free */
    int tensor_layers;     /* 1: the job says which layers a tensor axis splits */
} cvy_search_space;

typedef struct cvy_search_grid {
    int64_t length[CVY_AXES];
    int64_t micro_batches, interleave;
    int shares_samples; /* 1: a tensor axis splits some layers and shares the samples of others: tensor_layers: auto */
} cvy_search_grid;

/* Lists the grids whose product is the number of ranks: first those with few axes, the data axis alone before all
 * others. Each has the micro-batches that suit its pipeline; with a tensor axis, a grid is there twice. Returns their
 * number; out may be NULL. */
int cvy_search_list_grids(const cvy_search_space *space, cvy_search_grid *out);
enum { CVY_SEARCH_VARIANTS = 3 };
/* Lists the variants of a grid that are worth a prediction, without itself: other numbers of micro-batches, interleaved
 * stages. Returns their number. */
int cvy_search_list_variants(const cvy_search_space *space, const cvy_search_grid *grid,
                             cvy_search_grid out[CVY_SEARCH_VARIANTS]);
/* "data 2 x pipeline 2, 8 micro-batches" */
void cvy_search_grid_text(const cvy_search_grid *grid, cvy_text *out);
/* As a job file has it: "parallel: {pipeline: 2}, train.accumulate: 8". */
void cvy_search_grid_keys(const cvy_search_grid *grid, cvy_text *out);

#endif
