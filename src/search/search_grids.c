/*
 * search_grids.c: lists process grids; see search_grids.h.
 *
 * Factors of the number of ranks go to the axes in all ways. A spatial axis needs a dimension of the sample, and each
 * rank of the data axis a sample.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "search/search_grids.h"

#include <string.h>

/* ---- micro-batches ---- */

enum { MICRO_USUAL = 4, MICRO_FEW = 2, MICRO_MANY = 8 }; /* for each stage of a pipeline */

/* A micro-batch has at least one sample for each rank of the data axis. */
static int64_t micro_batches(const cvy_search_space *s, const cvy_search_grid *g, int64_t each)
{
    const int64_t most = CVY_MAX(s->batch / g->length[CVY_AXIS_DATA], 1), nstages = g->length[CVY_AXIS_PIPELINE];
    if (s->micro_batches > 0)
        return s->micro_batches;
    return nstages == 1 ? 1 : CVY_MIN(each * nstages, most);
}

int cvy_search_list_variants(const cvy_search_space *s, const cvy_search_grid *grid,
                             cvy_search_grid out[CVY_SEARCH_VARIANTS])
{
    static const int64_t each[] = {MICRO_FEW, MICRO_MANY};
    int n = 0;
    if (grid->length[CVY_AXIS_PIPELINE] == 1)
        return 0;
    for (int i = 0; i < CVY_COUNT(each); i++) {
        out[n] = *grid;
        out[n].micro_batches = micro_batches(s, grid, each[i]);
        n += out[n].micro_batches != grid->micro_batches;
    }
    if (s->interleave == 0 && grid->micro_batches % grid->length[CVY_AXIS_PIPELINE] == 0) {
        out[n] = *grid;
        out[n++].interleave = 2;
    }
    return n;
}

/* ---- grids ---- */

struct listing {
    const cvy_search_space *space;
    cvy_search_grid *out;
    int n, naxes; /* of the grids that are wanted now: axes longer than 1 */
};

static void add(struct listing *l, const cvy_search_grid *grid)
{
    const int nways = grid->length[CVY_AXIS_TENSOR] > 1 && !l->space->tensor_layers ? 2 : 1;
    int naxes = 0;
    for (int a = 0; a < CVY_AXES; a++)
        naxes += grid->length[a] > 1;
    for (int way = 0; way < nways && naxes == l->naxes; way++, l->n++) {
        if (!l->out)
            continue;
        l->out[l->n] = *grid;
        l->out[l->n].micro_batches = micro_batches(l->space, grid, MICRO_USUAL);
        l->out[l->n].interleave = CVY_MAX(l->space->interleave, 1);
        l->out[l->n].shares_samples = way;
    }
}

/* Gives what is left to the data axis last, and as much as possible to it first. */
static void share(struct listing *l, cvy_search_grid *grid, int axis, int64_t left)
{
    if (axis == CVY_AXES) {
        grid->length[CVY_AXIS_DATA] = left;
        if (left <= l->space->batch)
            add(l, grid);
        return;
    }
    for (int64_t n = 1; n <= left; n++) {
        if (left % n != 0 || (n > 1 && axis >= CVY_AXIS_SPACE0 + l->space->ndims))
            continue;
        grid->length[axis] = n;
        share(l, grid, axis + 1, left / n);
    }
    grid->length[axis] = 1;
}

int cvy_search_list_grids(const cvy_search_space *space, cvy_search_grid *out)
{
    struct listing l = {.space = space, .out = out};
    for (l.naxes = 0; l.naxes <= CVY_AXES; l.naxes++) {
        cvy_search_grid grid = {.length = {1, 1, 1, 1, 1, 1}};
        share(&l, &grid, CVY_AXIS_PIPELINE, space->nranks);
    }
    return l.n;
}

/* ---- text ---- */

void cvy_search_grid_text(const cvy_search_grid *g, cvy_text *out)
{
    static const cvy_axis order[] = {CVY_AXIS_DATA, CVY_AXIS_PIPELINE, CVY_AXIS_TENSOR};
    const char *between = "";
    const int64_t *space = &g->length[CVY_AXIS_SPACE0];
    for (int i = 0; i < CVY_COUNT(order); i++)
        if (g->length[order[i]] > 1) {
            cvy_text_add(out, "%s%s %lld%s", between, cvy_axis_name(order[i]), (long long)g->length[order[i]],
                         order[i] == CVY_AXIS_TENSOR && g->shares_samples ? " (auto)" : "");
            between = " x ";
        }
    if (space[0] * space[1] * space[2] > 1) {
        cvy_text_add(out, "%sspatial %lldx%lld", between, (long long)space[0], (long long)space[1]);
        if (space[2] > 1)
            cvy_text_add(out, "x%lld", (long long)space[2]);
        between = " x ";
    }
    if (!*between)
        cvy_text_add(out, "data 1");
    if (g->micro_batches > 1)
        cvy_text_add(out, ", %lld micro-batches", (long long)g->micro_batches);
    if (g->interleave > 1)
        cvy_text_add(out, ", interleave %lld", (long long)g->interleave);
}

void cvy_search_grid_keys(const cvy_search_grid *g, cvy_text *out)
{
    const int64_t *space = &g->length[CVY_AXIS_SPACE0];
    const char *between = "";
    cvy_text_add(out, "parallel: {");
    if (g->length[CVY_AXIS_PIPELINE] > 1) {
        cvy_text_add(out, "pipeline: %lld", (long long)g->length[CVY_AXIS_PIPELINE]);
        if (g->interleave > 1)
            cvy_text_add(out, ", interleave: %lld", (long long)g->interleave);
        between = ", ";
    }
    if (g->length[CVY_AXIS_TENSOR] > 1) {
        cvy_text_add(out, "%stensor: %lld%s", between, (long long)g->length[CVY_AXIS_TENSOR],
                     g->shares_samples ? ", tensor_layers: auto" : "");
        between = ", ";
    }
    if (space[0] * space[1] * space[2] > 1) {
        cvy_text_add(out, "%sspatial: [%lld, %lld", between, (long long)space[0], (long long)space[1]);
        cvy_text_add(out, space[2] > 1 ? ", %lld]" : "]", (long long)space[2]);
    }
    cvy_text_add(out, "}");
    if (g->micro_batches > 1)
        cvy_text_add(out, ", train.accumulate: %lld", (long long)g->micro_batches);
}
