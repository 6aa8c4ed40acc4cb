/* ranks: 2 3 */
/*
 * test_op_redistribute.c: ranks of an axis exchange parts of a tensor in any layout: halos of a sliding window, their
 * gradient and gathers give the elements of the whole tensor, whether tensors are plain, blocked by channels or have
 * channels last, and also if ranks have different layouts. A start and a wait give the same as one node.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "comm/comm_grid.h"
#include "comm/comm_underway.h"
#include "context/context.h"
#include "op/comm/op_redistribute.h"
#include "test_util.h"

static cvy_context *all;

enum { N = 2, C = 5, H = 11, W = 3, ROOM = 4 * N * 8 * (H + 4) * W };

static double whole(const int64_t *at)
{
    return (double)(((at[0] * C + at[1]) * H + at[2]) * W + at[3]) + 1;
}

/* How many ranks have entry h of the whole in their window. */
static int count_windows(const struct cvy_redistribute *o, int64_t h)
{
    int n = 0;
    for (int p = 0; p < o->parts; p++) {
        int64_t first, end;
        cvy_slide_range(&o->slide, p, o->parts, &first, &end);
        n += h >= first && h < end;
    }
    return n;
}

/* Fills a tensor of entries first .. end - 1 of the height, or counts the elements that are not `times` the whole's. */
static int64_t each(const cvy_layout *layout, int64_t first, int64_t end, float *data, const struct cvy_redistribute *o,
                    int fill)
{
    const cvy_shape shape = {4, {N, C, end - first, W}};
    cvy_blocking b;
    int64_t wrong = 0;
    EXPECT_OK(cvy_blocking_make(layout, &shape, &b));
    EXPECT(b.elems <= ROOM);
    for (int64_t i = 0; i < cvy_shape_elems(&shape); i++) {
        int64_t at[4], rest = i;
        for (int d = 3; d >= 0; d--) {
            at[d] = rest % shape.dim[d];
            rest /= shape.dim[d];
        }
        float *x = &data[cvy_blocking_offset(&b, at)];
        at[2] += first;
        const int inside = at[2] >= 0 && at[2] < H;
        if (fill)
            *x = inside ? (float)whole(at) : 3;
        else
            wrong += *x != (float)(!inside ? 0 : whole(at) * (o->from == CVY_HAS_WINDOW ? count_windows(o, at[2]) : 1));
    }
    return wrong;
}

static void exchange(cvy_graph *g, const struct cvy_redistribute *o, const cvy_layout *layout, int in_halves)
{
    static float from[ROOM], to[ROOM];
    static int number;
    char name[40];
    cvy_comm *over[CVY_AXIS_SETS] = {0};
    cvy_underway_set underway = {0};
    cvy_value *src = NULL, *token_of[2] = {0};
    cvy_node *node = NULL, *wait = NULL;
    void *state = NULL, *waits = NULL, *token = NULL;
    int64_t first, end;
    cvy_has_range(o, o->from, o->me, &first, &end);
    snprintf(name, sizeof name, "x%d", number++);
    EXPECT_OK(cvy_graph_new_value(g, name, CVY_DTYPE_F32, &(cvy_shape){4, {N, C, end - first, W}}, &src));
    EXPECT_OK(cvy_graph_add_parsed(g, cvy_op_find(in_halves ? "redistribute_start" : "redistribute"), name, name, o,
                                   &src, 1, CVY_PHASE_MICRO, &node));
    token_of[0] = src;
    token_of[1] = node->dst[0];
    memset(from, 0, sizeof from);
    memset(to, 0x55, sizeof to);
    each(layout, first, end, from, o, 1);
    over[CVY_AXIS_BIT(CVY_AXIS_SPACE0)] = all->comm;
    const cvy_span spans[] = {{.dtype = CVY_DTYPE_F32, .data = from}, {.dtype = CVY_DTYPE_F32, .data = to}};
    const cvy_comm_binding binding = {.comm = all->comm,
                                      .grid = over,
                                      .space = &all->space,
                                      .src = &spans[0],
                                      .dst = &spans[1],
                                      .src_layout = layout,
                                      .exchanges = &underway};
    EXPECT(node->op->comm->takes_layout(node, layout));
    EXPECT_OK(node->op->comm->create(node, &binding, &state));
    for (int again = 0; again < 2; again++) {
        EXPECT_OK(
            node->op->comm->run(state, (void *const[]){from}, (void *const[]){in_halves ? (void *)&token : to}, NULL));
        if (!in_halves)
            continue;
        EXPECT(underway.first != NULL);
        EXPECT_OK(cvy_underway_progress(&underway));
        if (!wait) {
            EXPECT_OK(cvy_graph_add_parsed(g, cvy_op_find("redistribute_wait"), "wait", name, o, token_of, 2,
                                           CVY_PHASE_MICRO, &wait));
            EXPECT_OK(wait->op->comm->create(wait, &binding, &waits));
        }
        EXPECT_OK(wait->op->comm->run(waits, (void *const[]){from, &token}, (void *const[]){to}, NULL));
        EXPECT(underway.first == NULL);
    }
    cvy_has_range(o, o->to, o->me, &first, &end);
    EXPECT(each(layout, first, end, to, o, 0) == 0);
    if (wait)
        wait->op->comm->destroy(&waits);
    node->op->comm->destroy(&state);
}

int main(int argc, char **argv)
{
    static const char *const layouts[] = {"", "aBcd8b", "acdb", "aBcd4b"};
    static const cvy_has ways[][2] = {{CVY_HAS_SHARE, CVY_HAS_WINDOW},
                                      {CVY_HAS_WINDOW, CVY_HAS_SHARE},
                                      {CVY_HAS_SHARE, CVY_HAS_WHOLE},
                                      {CVY_HAS_WHOLE, CVY_HAS_SHARE}};
    cvy_vars *vars = NULL;
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    EXPECT_OK(cvy_vars_create(&vars));
    const int parts = cvy_context_nranks(all), me = all->comm->rank;
    for (int in_halves = 0; in_halves < 2; in_halves++)
        for (int w = 0; w < CVY_COUNT(ways); w++)
            for (int l = 0; l < CVY_COUNT(layouts); l++)
                for (int differ = 0; differ < 2; differ++) {
                    const struct cvy_redistribute o = {.axis = CVY_AXIS_SPACE0,
                                                       .dim = 2,
                                                       .n = H,
                                                       .parts = parts,
                                                       .me = me,
                                                       .from = ways[w][0],
                                                       .to = ways[w][1],
                                                       .slide = {.results = H, .stride = 1, .pad = 2, .reach = 5}};
                    const cvy_layout layout = cvy_layout_make(layouts[(l + differ * me) % CVY_COUNT(layouts)]);
                    cvy_graph *g = NULL;
                    EXPECT_OK(cvy_graph_create(vars, &(cvy_graph_opts){.name = "g", .dtype = CVY_DTYPE_F32}, &g));
                    exchange(g, &o, &layout, in_halves);
                    cvy_graph_destroy(&g);
                }
    cvy_vars_destroy(&vars);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
