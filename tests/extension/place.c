/*
 * place.c: a library with one partitioning pass, right or with the fault that is named by a macro, for the tests in
 * this folder. The right one checks what it sees, puts the layers before "late" on stage 1 and the others on stage 2,
 * and splits "late" over a tensor axis.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/operator.h>

#include <stdio.h>
#include <string.h>

static int refuse(cvy_partition_graph *g, const char *what)
{
    snprintf(g->message, sizeof g->message, "%s", what);
    return 1;
}

/* The network of pass.sh. */
static int sees_the_network(cvy_partition_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->nlayer; i++) {
        const cvy_partition_layer *l = &g->layer[i];
        for (int k = 0; k < l->nsrc; k++)
            if (l->src[k] < 0 || l->src[k] >= i)
                return 0;
        if (strcmp(l->name, "first") == 0)
            n += strcmp(l->op, "conv") == 0 && l->nsrc == 0 && l->weight_bytes == 4 * (4 * 3 * 3 * 3 + 4) &&
                 l->flop > 0 && l->result.ndim == 4 && l->result.dim[1] == 4 &&
                 l->result_bytes == 4 * l->result.dim[0] * 4 * 8 * 8;
        if (strcmp(l->name, "join") == 0)
            n += l->nsrc == 2 && l->weight_bytes == 0;
        if (strcmp(l->name, "late") == 0)
            n += l->weight_bytes == 4 * (4 * 4 * 8 * 8 + 4);
    }
    return n == 3 && g->nstages == 2 && g->nmicro == 4;
}

static int place(cvy_partition_graph *g)
{
    int stage = 1;
    if (!sees_the_network(g))
        return refuse(g, "it sees another network");
#ifdef GIVES_UP
    return refuse(g, "it gives up");
#elif defined NO_REASON
    return 7;
#elif defined NO_LAYER
    return g->set_stage(g, g->nlayer, 1);
#elif defined NO_STAGE
    (void)g->set_stage(g, 0, 3); /* its answer is ignored */
    return 0;
#elif defined TWICE
    return g->set_stage(g, 0, 1) || g->set_stage(g, 0, 2);
#elif defined ONE_STAGE
    for (int i = 0; i < g->nlayer; i++)
        (void)g->set_stage(g, i, 1);
    return 0;
#elif defined BACKWARDS
    for (int i = 0; i < g->nlayer; i++)
        (void)g->set_stage(g, i, i == 0 ? 1 : i == 1 ? 2 : 1);
    return 0;
#endif
    for (int i = 0; i < g->nlayer; i++) {
        stage = strcmp(g->layer[i].name, "late") == 0 ? 2 : stage;
        if (g->set_stage(g, i, stage) != 0)
            return 1;
    }
    return 0;
}

/* Splits "late" by channels. */
static int split_late(cvy_partition_graph *g)
{
    int can = 0;
    if (g->nparts != 2 || g->ndata != 1)
        return refuse(g, "it sees another grid");
#ifdef SPLITS_RELU
    (void)g->split_channels(g, 1); /* its answer is ignored */
#elif defined PLACES
    return g->set_stage(g, 0, 1);
#endif
    for (int i = 0; i < g->nlayer; i++) {
        can += g->layer[i].can_split;
        if (strcmp(g->layer[i].name, "late") == 0 && g->split_channels(g, i) != 0)
            return 1;
    }
    return can == 3 ? 0 : refuse(g, "other layers can be split");
}

static const cvy_partition pass = {
#ifndef NO_SIZE
    .size = sizeof pass,
#endif
    .name = "late",
    .summary = "stage 2 begins with the layer late",
#ifndef NO_RUN
    .run = place,
    .split = split_late,
#endif
};
static const cvy_partition *const passes[] = {&pass, NULL};
static const cvy_extension extension = {.abi = CVY_EXTENSION_ABI,
                                        .version = CVY_VERSION_NUMBER,
                                        .size = sizeof extension,
                                        .name = "place",
                                        .partitions = passes};

const cvy_extension *convoy_extension(void)
{
    return &extension;
}
