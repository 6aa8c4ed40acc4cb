/*
 * program_reduce.c: how a program reduces its gradients over ranks: the options of its reductions, the size of buckets,
 * and what a plan file keeps of them.
 *
 * The plan file keeps what the measurements on this network have found, so that a resumed run adds in the same order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "program/program_reduce.h"

#include "program/program_impl.h"

static void set_options(cvy_program *p)
{
    const cvy_update_shape *shape = &p->update.shape;
    const char *name = shape->shards ? "doubling" : p->opts.reduce; /* doubling is the upper part of the shards' tree */
    p->reduce.opts =
        (cvy_allreduce_opts){.algorithm = name && strcmp(name, "auto") != 0 ? name : NULL,
                             .no_node = shape->shards || p->opts.reduce_no_node || shape->halves,
                             .halves = shape->halves,
                             .wire = p->opts.reduce_wire,
                             .threads = p->reduce.progress == CVY_PROGRESS_THREAD ? 1 : p->context->threads,
                             .progress = p->reduce.progress,
                             .newest_first = shape->newest_first};
}

static double real_of(const cvy_tree *map, const char *key)
{
    const cvy_tree *node = cvy_tree_get(map, key);
    double value = 0;
    return node && node->kind == CVY_TREE_SCALAR && cvy_text_real(node->text, &value) == CVY_OK ? value : 0;
}

/* Figures of an earlier plan are used only with the same numbers of ranks and nodes. */
static void take_saved(cvy_program *p)
{
    cvy_comm *comm = p->grid.data;
    const cvy_tree *saved = p->reduce.saved, *algorithms = saved ? cvy_tree_get(saved, "algorithms") : NULL;
    if (saved && !algorithms)
        algorithms = cvy_tree_get(saved, "ways"); /* as in plan files of earlier versions */
    if (!saved || real_of(saved, "ranks") != comm->nranks || real_of(saved, "nodes") != comm->nnodes)
        return;
    p->reduce.cost = (cvy_comm_cost){real_of(saved, "alpha_s"), real_of(saved, "beta_s_per_byte")};
    if (algorithms && algorithms->text && comm->nranks > 1)
        comm->probe->set_algorithms(comm, algorithms->text);
}

cvy_status cvy_program_size_buckets(cvy_program *p)
{
    cvy_comm *comm = p->grid.data;
    int training = 0;
    for (int i = 0; i < p->ntask; i++)
        training |= p->task[i]->training;
    set_options(p);
    take_saved(p);
    if (comm->nranks == 1 || !training || p->opts.bucket_bytes > 0 || p->reduce.cost.beta_s > 0)
        return CVY_OK;
    return comm->probe->cost(comm, &p->reduce.opts, &p->reduce.cost);
}

void cvy_program_sums_json(const cvy_program *p, cvy_json *json)
{
    const cvy_comm *comm = p->grid.data;
    char algorithms[CVY_COMM_ALGORITHMS_TEXT];
    if (comm->nranks == 1)
        return;
    comm->probe->algorithms_text(comm, &p->reduce.opts, algorithms);
    cvy_json_open(json, "sums", '{');
    cvy_json_int(json, "ranks", comm->nranks);
    cvy_json_int(json, "nodes", comm->nnodes);
    cvy_json_real(json, "alpha_s", p->reduce.cost.alpha_s);
    cvy_json_real(json, "beta_s_per_byte", p->reduce.cost.beta_s);
    cvy_json_string(json, "algorithms", algorithms);
    cvy_json_close(json, '}');
}
