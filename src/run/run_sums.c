/*
 * run_sums.c: how a program sums its gradients over ranks: what the communicator is told, how large buckets are, and what of it a plan keeps.
 *
 * What the trials on this network have found is kept in the plan, so that a run that goes on sums as it did.
 */
#include <string.h>

#include "run/run_program.h"

cvy_status cvy_program_read_progress(cvy_program *p)
{
    const char *way = p->opts.reduce ? p->opts.reduce : "auto";
    CVY_TRY(cvy_progress_parse(p->opts.reduce_progress, &p->progress));
    CVY_CHECK(p->progress != CVY_PROGRESS_MPI || strcmp(way, "auto") == 0 || strcmp(way, "library") == 0, CVY_E_CONFIG,
              "comm.progress: mpi leaves sums to the MPI library, so comm.algorithm must be auto or library, not %s", way);
    return CVY_OK;
}

void cvy_program_say_sums(const cvy_program *p)
{
    const char *name = p->opts.shards ? "doubling" : p->progress == CVY_PROGRESS_MPI ? "library" : p->opts.reduce; /* the upper part of the shards' tree */
    p->context->comm->sums = (cvy_comm_sums){.algorithm = name && strcmp(name, "auto") != 0 ? name : NULL,
                                             .no_node = p->opts.shards || p->opts.reduce_no_node || p->progress == CVY_PROGRESS_MPI || cvy_program_is_sharded(p),
                                             .halves = cvy_program_is_sharded(p),
                                             .wire = p->opts.reduce_wire,
                                             .threads = p->progress == CVY_PROGRESS_THREAD ? 1 : p->context->threads,
                                             .progress = p->progress, .newest_first = p->late};
}

static double real_of(const cvy_tree *map, const char *key)
{
    const cvy_tree *node = cvy_tree_get(map, key);
    double value = 0;
    return node && node->kind == CVY_TREE_SCALAR && cvy_text_real(node->text, &value) == CVY_OK ? value : 0;
}

/* Kept figures count on the same ranks and nodes only. */
static void take_kept(cvy_program *p)
{
    cvy_comm *comm = p->context->comm;
    const cvy_tree *kept = p->kept_sums, *ways = kept ? cvy_tree_get(kept, "ways") : NULL;
    if (!kept || real_of(kept, "ranks") != comm->nranks || real_of(kept, "nodes") != comm->nnodes)
        return;
    p->cost = (cvy_comm_cost){real_of(kept, "alpha_s"), real_of(kept, "beta_s_per_byte")};
    if (ways && ways->text)
        comm->ops->take_ways(comm, ways->text);
}

cvy_status cvy_program_size_buckets(cvy_program *p)
{
    cvy_comm *comm = p->context->comm;
    int training = 0;
    for (int i = 0; i < p->nstep; i++)
        training |= p->step[i]->training;
    cvy_program_say_sums(p);
    take_kept(p);
    if (comm->nranks == 1 || !training || p->opts.bucket_bytes > 0 || p->cost.beta_s > 0)
        return CVY_OK;
    return comm->ops->cost(comm, &p->cost);
}

void cvy_program_sums_json(const cvy_program *p, cvy_json *json)
{
    const cvy_comm *comm = p->context->comm;
    char ways[CVY_COMM_WAYS_TEXT];
    if (comm->nranks == 1)
        return;
    comm->ops->ways(comm, ways);
    cvy_json_open(json, "sums", '{');
    cvy_json_int(json, "ranks", comm->nranks);
    cvy_json_int(json, "nodes", comm->nnodes);
    cvy_json_real(json, "alpha_s", p->cost.alpha_s);
    cvy_json_real(json, "beta_s_per_byte", p->cost.beta_s);
    cvy_json_string(json, "ways", ways);
    cvy_json_close(json, '}');
}
