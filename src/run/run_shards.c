/*
 * run_shards.c: deterministic training: the same bits on any number of ranks and threads.
 *
 * A step is computed in shards, the same ones whatever ranks there are (comm/comm_shards.h): each is planned for its own samples alone, as a micro-batch of
 * the rank that has it, so the same kernels run on the same numbers wherever that is. What shards add up (gradients, losses, statistics) is summed as one
 * binary tree: a rank's own subtree by the schedule (plan_schedule.c), the rest by the sum "doubling" over ranks. Kernels are chosen by preference, as if
 * there were one thread, and run on one where their sums would be split among threads (plan_select.c).
 */
#include <string.h>

#include "comm/comm_shards.h"
#include "run/run_program.h"

/* ---- options ---- */

cvy_status cvy_program_read_shards(cvy_program *p)
{
    const cvy_program_opts *o = &p->opts;
    const cvy_comm *comm = p->context->comm;
    const struct { int given; const char *what; } others[] = {
        {o->update.mode != CVY_UPDATE_SYNC, "an update other than sync, the sums of which are made in another order"},
        {o->overlap_forward, "comm.overlap: forward"},
        {o->reduce_wire == CVY_DTYPE_BF16, "comm.wire: bf16, which rounds what is sent and not what stays on a rank"},
        {o->reduce && strcmp(o->reduce, "auto") != 0 && strcmp(o->reduce, "doubling") != 0, "a comm.algorithm other than doubling, which adds in another order"},
        {p->progress == CVY_PROGRESS_MPI, "comm.progress: mpi, which leaves the order of sums to the MPI library"},
        {o->plan_file != NULL, "a plan file: kernels are chosen by preference"},
        {p->planning != CVY_PLANNING_ESTIMATE, "planning by measurement, which chooses by times that differ from run to run"},
        {p->by_clock, "kernels: clock, which compute nothing: take deterministic: false for it, which has the same shapes; else"},
    };
    if (!o->shards)
        return CVY_OK;
    CVY_TRY(cvy_shards_check(o->shards, comm->nranks));
    for (int i = 0; i < CVY_COUNT(others); i++)
        CVY_CHECK(!others[i].given, CVY_E_CONFIG, "deterministic training does not go with %s: leave it out", others[i].what);
    p->shards = cvy_shards_of(o->shards, comm->rank, comm->nranks);
    return CVY_OK;
}

cvy_batch cvy_program_shard(const cvy_program *p, const cvy_program_step_info *s, int64_t shard)
{
    return cvy_batch_share(s->batch, (int)shard, (int)p->opts.shards);
}

/* ---- outputs: each micro-batch has its own ---- */

static size_t row_bytes(const cvy_program_step_info *s, int m, int output)
{
    const cvy_value *v = cvy_graph_find(s->plan->unit[m]->graph, s->output_value[output]);
    size_t bytes = cvy_dtype_bytes(cvy_plan_outside_dtype(v->dtype));
    for (int d = 1; d < v->shape.ndim; d++)
        bytes *= (size_t)v->shape.dim[d];
    return bytes;
}

cvy_status cvy_program_allocate_outputs(cvy_program_step_info *s)
{
    for (int i = 0; i < s->noutput && s->nmicro > 1; i++) {
        s->gathered_bytes[i] = CVY_MAX(row_bytes(s, 0, i) * (size_t)s->plan->rows, 64);
        CVY_TRY(cvy_mem_alloc_pages(s->gathered_bytes[i], &s->gathered[i]));
    }
    return CVY_OK;
}

void cvy_program_free_outputs(cvy_program_step_info *s)
{
    for (int i = 0; i < s->noutput; i++)
        if (s->gathered[i])
            cvy_mem_free_pages(&s->gathered[i], s->gathered_bytes[i]);
}

void cvy_program_gather_output(const cvy_program_step_info *s, int output)
{
    for (int m = 0; m < s->nmicro && s->gathered[output]; m++) {
        const size_t row = row_bytes(s, m, output), bytes = row * (size_t)s->plan->unit[m]->graph->batch.local_n;
        const void *from = cvy_plan_find_part(s->plan, s->output_value[output], m);
        if (bytes > 0 && from)
            memcpy((char *)s->gathered[output] + row * (size_t)s->plan->first_row[m], from, bytes);
    }
}

/* ---- losses ---- */

int cvy_program_loss_parts(const cvy_program_step_info *s)
{
    return s->plan->opts.micro_sums == CVY_MICRO_APART ? s->nmicro : 1;
}

const double *cvy_program_loss_part(const cvy_program_step_info *s, int loss, int part)
{
    if (cvy_program_loss_parts(s) > 1)
        return cvy_plan_find_part(s->plan, s->loss_value[loss], part);
    return cvy_plan_find(s->latest ? s->latest : s->plan, s->loss_value[loss], 0);
}

/* ---- what it costs ---- */

/* Memory that sums of subtrees take besides the gradients themselves. */
static size_t partial_bytes(const cvy_plan *plan)
{
    size_t bytes = 0;
    int levels = 0;
    while (2 << levels <= plan->nmicro)
        levels++;
    for (int i = 0; i < plan->nbuffer; i++)
        bytes += plan->buffer[i].region == CVY_REGION_STEP ? plan->buffer[i].bytes : 0;
    return bytes * (size_t)levels;
}

static void count_kernels(const cvy_unit *u, int *all_out, int *alone_out)
{
    *all_out = *alone_out = 0;
    for (int c = 0; c < u->ncall; c++)
        if (u->call[c].kind == CVY_CALL_KERNEL) {
            (*all_out)++;
            *alone_out += u->call[c].ask.threads == 1;
        }
}

void cvy_program_say_shards(const cvy_program *p, int step, cvy_text *out)
{
    const cvy_program_step_info *s = p->step[step];
    if (!p->opts.shards)
        return;
    const long long least = (long long)(s->batch / p->opts.shards), most = (long long)((s->batch + p->opts.shards - 1) / p->opts.shards);
    int all = 0, alone = 0;
    count_kernels(s->plan->unit[0], &all, &alone);
    cvy_text_add(out, "deterministic: %lld shards of %lld", (long long)p->opts.shards, least);
    if (most > least)
        cvy_text_add(out, " or %lld", most);
    cvy_text_add(out, " samples, %d on this rank", s->nmicro);
    if (s->nmicro > 1)
        cvy_text_add(out, ", %.1f MB for their partial sums", 1e-6 * (double)partial_bytes(s->plan));
    if (p->context->threads > 1)
        cvy_text_add(out, "; one thread in place of %d for %d of %d kernels, the sums of which would be split", p->context->threads, alone, all);
    cvy_text_add(out, "; kernels by preference, sums by doubling in f32 (what that costs: convoy bench with and without it)\n");
}
