/*
 * program_choices.c: what a plan file keeps of a program: the kernel of each node, and how a pipeline is cut.
 *
 * Each stage knows the kernels of its own nodes. Names of nodes are unique in the whole graph, so one map holds those
 * of all stages. The first stage, which writes the file, gathers them once, after planning.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "program/program_impl.h"
#include "program/program_tune.h"

static const char *kernel_of(const cvy_call *call)
{
    return call->kernel ? call->kernel->name : "reference";
}

static const cvy_lowered *lowered_of(const cvy_program *p, int task)
{
    return p->task[task]->plan->lowered[p->task[task]->nmicro - 1];
}

/* ---- all stages ---- */

/* Format: the name of each node, a NUL, its kernel, a NUL. */
static cvy_status pack(const cvy_lowered *u, cvy_text *out)
{
    for (int i = 0; i < u->ncall; i++)
        if (cvy_call_runs_node(&u->call[i])) {
            cvy_text_add_bytes(out, u->call[i].node->name, strlen(u->call[i].node->name) + 1);
            cvy_text_add_bytes(out, kernel_of(&u->call[i]), strlen(kernel_of(&u->call[i])) + 1);
        }
    return out->status;
}

static cvy_status gather(cvy_program *p, cvy_comm *comm, const cvy_text *mine, size_t *bytes_of)
{
    const size_t bytes = mine->bytes;
    size_t all = 0;
    CVY_TRY(comm->ops->allgather(comm, &bytes, sizeof bytes, bytes_of));
    for (int r = 0; r < comm->nranks; r++)
        all += bytes_of[r];
    CVY_TRY(cvy_comm_agree(comm, comm->rank == 0 ? cvy_mem_alloc(all + 1, &p->pipeline.choices) : CVY_OK));
    p->pipeline.choices_bytes = comm->rank == 0 ? all : 0;
    return comm->ops->gatherv(comm, mine->data ? mine->data : "", bytes, p->pipeline.choices, bytes_of, 0);
}

cvy_status cvy_program_gather_choices(cvy_program *p)
{
    cvy_comm *comm = p->grid.pipeline;
    cvy_text mine = {0};
    size_t *bytes_of = NULL;
    if (!comm)
        return CVY_OK;
    cvy_status status = pack(lowered_of(p, 0), &mine);
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *bytes_of * (size_t)comm->nranks, &bytes_of);
    status = cvy_comm_agree(comm, status);
    if (status == CVY_OK)
        status = gather(p, comm, &mine, bytes_of);
    cvy_mem_free(&bytes_of);
    cvy_text_free(&mine);
    return cvy_comm_agree(p->context->comm, status);
}

/* Some nodes of the update phase are on all stages; the first one counts. */
static cvy_status print_all(const cvy_program *p, cvy_json *json)
{
    const char *end = p->pipeline.choices + p->pipeline.choices_bytes;
    cvy_index seen = {0};
    cvy_status status = CVY_OK;
    for (const char *name = p->pipeline.choices, *kernel; name < end && status == CVY_OK;
         name = kernel + strlen(kernel) + 1) {
        kernel = name + strlen(name) + 1;
        if (cvy_index_find(&seen, name) >= 0)
            continue;
        cvy_json_string(json, name, kernel);
        status = cvy_index_add(&seen, name, 0);
    }
    cvy_index_free(&seen);
    return status;
}

/* ---- printing ---- */

/* Adds the nodes of a task that are not among those seen. */
static cvy_status print_task(const cvy_program *p, int task, cvy_index *seen, cvy_json *json)
{
    const cvy_lowered *u = lowered_of(p, task);
    for (int i = 0; i < u->ncall; i++) {
        const cvy_call *call = &u->call[i];
        if (!cvy_call_runs_node(call) || cvy_index_find(seen, call->node->name) >= 0)
            continue;
        cvy_json_string(json, call->node->name, kernel_of(call));
        CVY_TRY(cvy_index_add(seen, call->node->name, 0));
    }
    return CVY_OK;
}

/* With turns, the nodes of all of them. */
cvy_status cvy_program_choices_json(const cvy_program *p, int task, cvy_json *json)
{
    cvy_index seen = {0};
    if (task == 0 && p->pipeline.choices)
        return print_all(p, json);
    cvy_status status = print_task(p, task, &seen, json);
    for (int i = 0; i < p->ntask && p->task[task]->label && status == CVY_OK; i++)
        if (i != task && cvy_program_is_turn(p, i))
            status = print_task(p, i, &seen, json);
    cvy_index_free(&seen);
    return status;
}

void cvy_program_cut_json(const cvy_program *p, cvy_json *json)
{
    const cvy_grid *grid = &p->grid;
    if (grid->nstages == 1)
        return;
    cvy_json_open(json, "pipeline", '{');
    cvy_json_int(json, "stages", p->pipeline.nstages);
    cvy_json_int(json, "interleave", p->pipeline.nchunks);
    cvy_json_int(json, "ranks_each", grid->ndata);
    cvy_json_open(json, "first_layers", '[');
    for (int s = 0; s < p->pipeline.nstages; s++)
        cvy_json_string(json, NULL, p->pipeline.layer.text[p->pipeline.first[s]]);
    cvy_json_close(json, ']');
    cvy_json_close(json, '}');
}
