/*
 * comm_grid.c: arranges ranks as a grid; see comm_grid.h for the order of the axes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_grid.h"

#include "base/base_mem.h"
#include "comm/pretend/comm_pretend.h"

/* From the axis whose neighbours have neighbouring numbers to the one whose neighbours are farthest apart. */
static const cvy_axis inner_first[CVY_AXES] = {CVY_AXIS_SPACE2, CVY_AXIS_SPACE1, CVY_AXIS_SPACE0,
                                               CVY_AXIS_TENSOR, CVY_AXIS_DATA,   CVY_AXIS_PIPELINE};

const char *cvy_axis_name(cvy_axis axis)
{
    static const char *const names[CVY_AXES] = {"data", "pipeline", "tensor", "space0", "space1", "space2"};
    return names[axis];
}

/* Saturates: a product that is too large fits no number of ranks. */
static int64_t product_without_data(const int64_t *length)
{
    int64_t product = 1;
    for (int a = 0; a < CVY_AXES; a++)
        if (a != CVY_AXIS_DATA)
            product = length[a] > INT32_MAX / product ? INT32_MAX : product * length[a];
    return product;
}

static void add_lengths(const int64_t *length, cvy_text *text)
{
    const char *between = "";
    for (int a = 0; a < CVY_AXES; a++)
        if (a != CVY_AXIS_DATA && length[a] != 1) {
            const char *name = a >= CVY_AXIS_SPACE0 ? "spatial" : cvy_axis_name((cvy_axis)a); /* as in the job */
            cvy_text_add(text, "%s%s %lld", between, name, (long long)length[a]);
            between = " x ";
        }
}

cvy_status cvy_grid_check(const int64_t *length, int nranks)
{
    cvy_text grid = {0}, fits = {0};
    const int64_t product = product_without_data(length);
    int positive = 1;
    for (int a = 0; a < CVY_AXES; a++)
        positive = positive && (a == CVY_AXIS_DATA || length[a] >= 1);
    if (positive && product <= nranks && nranks % product == 0)
        return CVY_OK;
    for (int n = 1; n <= nranks; n++)
        if (nranks % n == 0)
            cvy_text_add(&fits, "%s%d", n == 1 ? "" : n == nranks ? " or " : ", ", n);
    add_lengths(length, &grid);
    cvy_error_set(CVY_E_CONFIG,
                  "a grid of %s on %d rank%s: the number of ranks must be a multiple of the product, and the data axis "
                  "takes the rest; with %d rank%s the product can be %s",
                  grid.data ? grid.data : "1", nranks, nranks == 1 ? "" : "s", nranks, nranks == 1 ? "" : "s",
                  fits.data ? fits.data : "1");
    cvy_text_free(&grid);
    cvy_text_free(&fits);
    return CVY_E_CONFIG;
}

cvy_status cvy_grid_arrange(cvy_comm *all, const int64_t *length, cvy_grid *out)
{
    CVY_TRY(cvy_grid_check(length, all->nranks));
    *out = (cvy_grid){.all = all};
    for (int a = 0; a < CVY_AXES; a++)
        out->length[a] = (int)length[a];
    out->length[CVY_AXIS_DATA] = all->nranks / (int)product_without_data(length);
    for (int i = 0, rest = all->rank; i < CVY_AXES; i++) {
        const cvy_axis a = inner_first[i];
        out->at[a] = rest % out->length[a];
        rest /= out->length[a];
    }
    out->nstages = out->length[CVY_AXIS_PIPELINE];
    out->stage = out->at[CVY_AXIS_PIPELINE];
    out->ndata = out->length[CVY_AXIS_DATA];
    out->data_rank = out->at[CVY_AXIS_DATA];
    out->data = out->ndata == all->nranks ? all : NULL;
    return CVY_OK;
}

/* Ranks with the same color differ along the axes of the set only. */
static int color_of(const cvy_grid *g, unsigned set)
{
    int color = 0;
    for (int a = 0; a < CVY_AXES; a++)
        color = color * g->length[a] + (set & CVY_AXIS_BIT(a) ? 0 : g->at[a]);
    return color;
}

int cvy_grid_rank(const cvy_grid *g, const int *at)
{
    int rank = 0;
    for (int i = CVY_AXES - 1; i >= 0; i--)
        rank = rank * g->length[inner_first[i]] + at[inner_first[i]];
    return rank;
}

int cvy_grid_members(const cvy_grid *g, unsigned set, int *ranks)
{
    int n = 0;
    for (int r = 0; r < g->all->nranks; r++) {
        int is_member = 1;
        for (int i = 0, rest = r; i < CVY_AXES; i++) {
            const cvy_axis a = inner_first[i];
            is_member = is_member && (set & CVY_AXIS_BIT(a) || rest % g->length[a] == g->at[a]);
            rest /= g->length[a];
        }
        if (is_member)
            ranks[n++] = r;
    }
    return n;
}

/* Ranks that do not exist cannot say in which communicator they are, so their numbers are computed. */
static cvy_status make_pretended(cvy_grid *g, unsigned set, cvy_comm **out)
{
    int *ranks = NULL, n = 0, mine = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *ranks * (size_t)g->all->nranks, &ranks));
    n = cvy_grid_members(g, set, ranks);
    while (ranks[mine] != g->all->rank)
        mine++;
    const cvy_status status = cvy_comm_create_pretended_part(g->all, ranks, n, mine, out);
    cvy_mem_free(&ranks);
    return status;
}

/* Axes of length 1 change nothing. */
static unsigned without_short(const cvy_grid *g, unsigned set)
{
    for (int a = 0; a < CVY_AXES; a++)
        if (g->length[a] == 1)
            set &= ~CVY_AXIS_BIT(a);
    return set;
}

static cvy_status make(cvy_grid *g, unsigned set)
{
    const unsigned needed = without_short(g, set);
    int nranks = 1;
    for (int a = 0; a < CVY_AXES; a++)
        nranks *= needed & CVY_AXIS_BIT(a) ? g->length[a] : 1;
    if (!g->over[needed] && nranks == g->all->nranks)
        g->over[needed] = g->all;
    if (!g->over[needed]) {
        CVY_TRY(g->all->pretended ? make_pretended(g, needed, &g->over[needed])
                                  : cvy_comm_split(g->all, color_of(g, needed), g->all->rank, &g->over[needed]));
        g->is_own[needed] = 1;
        if (!(needed & CVY_AXIS_BIT(CVY_AXIS_DATA)) && g->all->simulated_nodes > 1)
            g->over[needed]->simulated_nodes = 1; /* the nodes that are not simulated are farther along the data axis */
    }
    g->over[set] = g->over[needed];
    return CVY_OK;
}

cvy_status cvy_grid_connect(cvy_grid *g)
{
    if (g->over[CVY_AXIS_BIT(CVY_AXIS_DATA)])
        return CVY_OK;
    for (int a = 0; a < CVY_AXES; a++)
        if (a == CVY_AXIS_DATA || g->length[a] > 1)
            CVY_TRY(make(g, CVY_AXIS_BIT(a)));
    g->data = g->over[CVY_AXIS_BIT(CVY_AXIS_DATA)];
    g->pipeline = g->over[CVY_AXIS_BIT(CVY_AXIS_PIPELINE)];
    return CVY_OK;
}

cvy_status cvy_grid_join(cvy_grid *g, uint64_t wanted)
{
    int64_t bits[CVY_AXIS_SETS];
    for (int s = 0; s < CVY_AXIS_SETS; s++)
        bits[s] = wanted >> s & 1;
    CVY_TRY(g->all->ops->allreduce(g->all, bits, CVY_AXIS_SETS, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    for (int s = 1; s < CVY_AXIS_SETS; s++)
        if (bits[s])
            CVY_TRY(make(g, (unsigned)s));
    return CVY_OK;
}

void cvy_grid_disconnect(cvy_grid *g)
{
    for (int s = 0; s < CVY_AXIS_SETS; s++)
        if (g->is_own[s])
            g->over[s]->ops->destroy(g->over[s]);
    for (int s = 0; s < CVY_AXIS_SETS; s++) {
        g->over[s] = NULL;
        g->is_own[s] = 0;
    }
    g->pipeline = g->data = NULL;
}
