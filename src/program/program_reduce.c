/*
 * program_reduce.c: how a program reduces its gradients over ranks: by NCCL or by the host, the options of its
 * reductions, the size of buckets, and what a plan file keeps of them.
 *
 * The plan file keeps what the measurements on this network have found, so that a resumed run adds in the same order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
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

/* Whether NCCL exchanges tensors of a device. All ranks find the same, because a rank must not mix both ways with
 * others. A named algorithm is one of the host, and so is the order of additions of deterministic training. */
static cvy_status choose_sums(cvy_program *p)
{
    cvy_program_reduce *r = &p->reduce;
    cvy_comm *comm = p->context->comm;
    const cvy_space *space = &p->context->space;
    r->opts.staged = 1;
    if (cvy_space_is_host(space) || comm->nranks == 1 || comm->pretended)
        return CVY_OK;
    r->by_choice = 1;
    if (p->update.shape.shards)
        snprintf(r->why_staged, sizeof r->why_staged, "deterministic training fixes the order of additions");
    else if (r->opts.algorithm)
        snprintf(r->why_staged, sizeof r->why_staged, "comm.algorithm is %s", r->opts.algorithm);
    else if (p->update.shape.comm->nranks == 1 && !cvy_grid_splits(&p->grid))
        snprintf(r->why_staged, sizeof r->why_staged, "ranks exchange averages of weights, which the host adds");
    else if (!cvy_nccl_may(space, comm, NULL))
        snprintf(r->why_staged, sizeof r->why_staged, "%s has no library of exchanges", p->context->device);
    else
        r->by_choice = 0;
    if (!r->by_choice)
        CVY_TRY(cvy_nccl_look(comm, space, r->why_staged, sizeof r->why_staged, &r->nccl_version));
    r->opts.staged = r->why_staged[0] != 0;
    return CVY_OK;
}

/* The name by which a plan file knows the figures: those of NCCL say nothing about the host's reductions. */
static const char *sums_by(const cvy_program *p)
{
    return p->reduce.opts.staged ? "host" : "nccl";
}

/* Figures of an earlier plan are used only with the same numbers of ranks and nodes. */
static void take_saved(cvy_program *p)
{
    cvy_comm *comm = p->grid.data;
    const cvy_tree *saved = p->reduce.saved, *algorithms = saved ? cvy_tree_get(saved, "algorithms") : NULL;
    const cvy_tree *by = saved ? cvy_tree_get(saved, "by") : NULL;
    if (saved && !algorithms)
        algorithms = cvy_tree_get(saved, "ways"); /* as in plan files of earlier versions */
    if (!saved || real_of(saved, "ranks") != comm->nranks || real_of(saved, "nodes") != comm->nnodes ||
        strcmp(by && by->text ? by->text : "host", sums_by(p)) != 0)
        return;
    p->reduce.cost = (cvy_comm_cost){real_of(saved, "alpha_s"), real_of(saved, "beta_s_per_byte")};
    if (algorithms && algorithms->text && comm->nranks > 1)
        comm->probe->set_algorithms(comm, algorithms->text);
}

/* All ranks of the data axis have found that they can use NCCL. */
static cvy_status measure_nccl(cvy_program *p)
{
    const int is_narrow = p->reduce.opts.wire == CVY_DTYPE_BF16;
    CVY_TRY(cvy_nccl_open(p->grid.data, &p->context->space, &p->reduce.nccl));
    return cvy_nccl_measure(p->reduce.nccl, is_narrow, &p->reduce.cost);
}

cvy_status cvy_program_size_buckets(cvy_program *p)
{
    cvy_comm *comm = p->grid.data;
    int training = 0;
    for (int i = 0; i < p->ntask; i++)
        training |= p->task[i]->training;
    set_options(p);
    CVY_TRY(choose_sums(p));
    take_saved(p);
    if (comm->nranks == 1 || !training || p->opts.bucket_bytes > 0 || p->reduce.cost.beta_s > 0)
        return CVY_OK;
    return p->reduce.opts.staged ? comm->probe->cost(comm, &p->reduce.opts, &p->reduce.cost) : measure_nccl(p);
}

/* The axes of the grid as "data: 2 ranks, tensor: 2 ranks". */
static void say_axes(const cvy_program *p, char *text, size_t room)
{
    int n = 0;
    text[0] = 0;
    for (int a = 0; a < CVY_AXES; a++)
        if (p->grid.length[a] > 1 && a != CVY_AXIS_PIPELINE && n < (int)room)
            n += snprintf(text + n, room - (size_t)n, "%s%s: %d ranks", n ? ", " : "", cvy_axis_name((cvy_axis)a),
                          p->grid.length[a]);
}

int cvy_program_say_exchanges(const cvy_program *p, char *text, size_t room)
{
    const cvy_program_reduce *r = &p->reduce;
    char axes[160];
    say_axes(p, axes, sizeof axes);
    if (r->why_staged[0])
        snprintf(text, room, "through the host's memory%s: %s", r->by_choice ? "" : ", not by NCCL", r->why_staged);
    else if (r->nccl_version && axes[0])
        snprintf(text, room, "by NCCL %d.%d.%d (%s)%s", r->nccl_version / 10000, r->nccl_version % 10000 / 100,
                 r->nccl_version % 100, axes,
                 p->grid.nstages > 1 ? "; messages of the pipeline go through the host's memory" : "");
    else
        return 0;
    return 1;
}

static int sums_gradients(const cvy_program *p)
{
    int n = 0;
    for (int i = 0; i < p->ntask; i++)
        for (int b = 0; p->task[i]->training && b < p->task[i]->plan->buckets->n; b++)
            n += p->task[i]->plan->buckets->bucket[b].comm->nranks > 1;
    return n > 0;
}

void cvy_program_note_sums(const cvy_program *p)
{
    char text[700];
    if (!cvy_program_say_exchanges(p, text, sizeof text) || (!sums_gradients(p) && !cvy_grid_splits(&p->grid)))
        return;
    if (p->reduce.why_staged[0] && !p->reduce.by_choice)
        cvy_log(p->context, CVY_LOG_WARN, "gradients are summed through the host's memory, not by NCCL: %s",
                p->reduce.why_staged);
    else
        cvy_log(p->context, CVY_LOG_INFO, "%s %s", sums_gradients(p) ? "gradients are summed" : "tensors are exchanged",
                text);
}

void cvy_program_sums_json(const cvy_program *p, cvy_json *json)
{
    const cvy_comm *comm = p->grid.data;
    char algorithms[CVY_COMM_ALGORITHMS_TEXT];
    if (comm->nranks == 1)
        return;
    comm->probe->algorithms_text(comm, &p->reduce.opts, algorithms);
    cvy_json_open(json, "sums", '{');
    if (!p->reduce.opts.staged)
        cvy_json_string(json, "by", sums_by(p));
    cvy_json_int(json, "ranks", comm->nranks);
    cvy_json_int(json, "nodes", comm->nnodes);
    cvy_json_real(json, "alpha_s", p->reduce.cost.alpha_s);
    cvy_json_real(json, "beta_s_per_byte", p->reduce.cost.beta_s);
    cvy_json_string(json, "algorithms", algorithms);
    cvy_json_close(json, '}');
}
