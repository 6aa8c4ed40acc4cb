/*
 * run_average.c: local updates: each rank trains on its own share by its own gradients, and now and then all take the average.
 *
 * Training steps are planned for a communicator of one rank: losses and batch-norm groups are of the rank's own samples, no sum crosses ranks. What training
 * changes (weights, running statistics, the optimiser's states: a momentum that belongs to weights which a rank no longer has would lead it astray) is averaged
 * through the memory of the gradients, which are used up by then: packed piece by piece, summed as gradients are in sync, and
 * written back while later pieces are on their way. Averages travel as they are, never in bf16.
 *
 * Source: McDonald, Hall and Mann 2010; Stich 2019, Local SGD Converges Fast and Communicates Little; Yu, Jin and Yang 2019 (the momentum's average).
 */
#include <string.h>

#include "comm/comm_sum.h"
#include "run/run_program.h"

enum { GRAIN = 1 << 14, PIECES_MAX = 2048 };     /* the memory of a node counts no more than twice as many sums */

struct cvy_average {
    cvy_comm *comm;
    cvy_variable **variable;
    int64_t *at;                       /* where each begins in the row of them all, in elements; one more: the end */
    int nvariable;
    cvy_dtype dtype;
    char *memory;
    int64_t span, piece;               /* elements of it, and of one sum */
    cvy_request **request;
    char *active;
    int nrequest;
    cvy_program_step_info *latest;     /* that ran since the ranks were equal; NULL: they are */
};

/* ---- what is averaged ---- */

static void mark_written(const cvy_plan *plan, char *written)
{
    for (int i = 0; i < plan->ninstr; i++)
        for (int d = 0; d < plan->instr[i].ndst; d++) {
            const int number = plan->instr[i].dst_buffer[d];
            const cvy_buffer *b = number >= 0 ? &plan->buffer[plan->buffer[number].root] : NULL;
            if (b && b->region == CVY_REGION_VARIABLE)
                written[b->value->variable->index] = 1;
        }
}

/* In the order in which variables were made, which is the same on all ranks. */
static cvy_status list_variables(const cvy_program *p, cvy_average *a)
{
    const int n = p->vars->count;
    char *written = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)n + 1, &written));
    for (int i = 0; i < p->nstep; i++)
        if (p->step[i]->training)
            mark_written(p->step[i]->plan, written);
    cvy_status status = cvy_mem_alloc(sizeof(cvy_variable *) * ((size_t)n + 1), &a->variable);
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *a->at * ((size_t)n + 1), &a->at);
    for (int i = 0; i < n && status == CVY_OK; i++) {
        cvy_variable *v = p->vars->at[i];
        if (!written[i])
            continue;
        if (v->dtype != a->dtype)
            status = cvy_error_set(CVY_E_UNSUPPORTED, "local updates average %s, but training writes %s, which is %s", cvy_dtype_text(a->dtype), v->name,
                                   cvy_dtype_text(v->dtype));
        a->variable[a->nvariable] = v;
        a->at[a->nvariable + 1] = a->at[a->nvariable] + (int64_t)(v->bytes / cvy_dtype_bytes(v->dtype));
        a->nvariable++;
    }
    cvy_mem_free(&written);
    return status;
}

/* ---- making ---- */

/* The gradients' memory, as far as all ranks have it. */
static cvy_status measure_memory(const cvy_program *p, cvy_average *a)
{
    cvy_comm *comm = p->context->comm;
    const size_t elem = cvy_dtype_bytes(a->dtype);
    const int64_t elems = a->at[a->nvariable];
    for (int i = 0; i < p->nstep; i++)
        if (p->step[i]->training)
            a->span = CVY_MAX(a->span, (int64_t)(p->step[i]->plan->step_bytes / elem));
    CVY_TRY(comm->ops->allreduce(comm, &a->span, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    a->span = CVY_MIN(a->span, (elems + 15) / 16 * 16);
    a->piece = (int64_t)(cvy_sum_bucket((size_t)a->span * elem, (size_t)p->opts.bucket_bytes, &p->cost) / elem + 15) / 16 * 16;
    a->piece = CVY_MAX(a->piece, (a->span / PIECES_MAX + 15) / 16 * 16 + 16);
    a->nrequest = (int)((a->span + a->piece - 1) / a->piece);
    return CVY_OK;
}

static cvy_status make_requests(cvy_comm *comm, cvy_average *a)
{
    const cvy_comm_sums before = comm->sums;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *a->request * (size_t)a->nrequest, &a->request));
    CVY_TRY(cvy_mem_alloc((size_t)a->nrequest, &a->active));
    comm->sums.wire = a->dtype;
    for (int i = 0; i < a->nrequest && status == CVY_OK; i++) {
        const int64_t first = i * a->piece;
        status = comm->ops->request_create(comm, a->memory + (size_t)first * cvy_dtype_bytes(a->dtype), CVY_MIN(a->piece, a->span - first), a->dtype, NULL,
                                           &a->request[i]);
    }
    comm->sums = before;
    return status;
}

cvy_status cvy_average_create(cvy_program *p)
{
    cvy_comm *comm = p->context->comm;
    CVY_TRY(cvy_comm_agree(comm, cvy_mem_alloc(sizeof *p->average, &p->average)));
    cvy_average *a = p->average;
    a->comm = comm;
    a->memory = p->arena;
    a->dtype = p->opts.dtype == CVY_DTYPE_F64 ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
    CVY_TRY(cvy_comm_agree(comm, list_variables(p, a)));
    CVY_TRY(measure_memory(p, a));
    return cvy_comm_agree(comm, comm->nranks > 1 ? make_requests(comm, a) : CVY_OK);
}

void cvy_average_destroy(cvy_average **average)
{
    cvy_average *a = *average;
    if (!a)
        return;
    for (int i = 0; i < a->nrequest && a->request; i++)
        if (a->request[i])
            a->comm->ops->request_destroy(&a->request[i]);
    cvy_mem_free(&a->variable);
    cvy_mem_free(&a->at);
    cvy_mem_free(&a->request);
    cvy_mem_free(&a->active);
    cvy_mem_free(average);
}

/* ---- steps ---- */

/* The mean over the samples of all ranks: for the log, and so that all of them see a loss that is lost. */
static cvy_status add_losses(const cvy_program *p, cvy_program_step_info *s)
{
    cvy_comm *comm = p->context->comm;
    for (int i = 0; i < s->nloss; i++) {
        const double *own = s->plan->rows > 0 ? cvy_plan_find(s->plan, s->loss_value[i], 0) : NULL;
        s->loss_mean[i] = own ? *own * (double)s->plan->rows / (double)s->batch : 0;
    }
    return comm->nranks > 1 ? comm->ops->allreduce(comm, s->loss_mean, s->nloss, CVY_DTYPE_F64, CVY_REDUCE_SUM) : CVY_OK;
}

/* A rank without samples stays as it is. */
cvy_status cvy_average_step(cvy_program *p, cvy_program_step_info *s)
{
    s->time = (cvy_step_time){0};
    if (s->norm)
        *s->norm = (double)s->plan->rows;
    if (s->plan->rows > 0)
        CVY_TRY(cvy_plan_execute(s->plan, &s->time));
    p->average->latest = s;
    const double begin = cvy_clock_s();
    CVY_TRY(add_losses(p, s));
    const double met = cvy_clock_s() - begin;
    s->time.total += met;
    s->time.exposed_comm += met;
    return CVY_OK;
}

/* ---- averaging ---- */

struct copying { const cvy_average *a; int64_t first; char *piece; int packs; double factor; };

static void write_back(const struct copying *c, void *to, const void *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (c->a->dtype == CVY_DTYPE_F64)
            ((double *)to)[i] = ((const double *)from)[i] * c->factor;
        else
            ((float *)to)[i] = (float)(((const float *)from)[i] * c->factor);
}

/* Elements first to last of a piece, which go through parts of some variables. */
static void copy_range(int64_t first, int64_t last, void *arg)
{
    const struct copying *c = arg;
    const cvy_average *a = c->a;
    const size_t elem = cvy_dtype_bytes(a->dtype);
    int low = 0, high = a->nvariable;
    while (high - low > 1) {           /* the variable in which the range begins */
        const int middle = (low + high) / 2;
        if (a->at[middle] <= c->first + first)
            low = middle;
        else
            high = middle;
    }
    for (; first < last; low++) {
        const int64_t in = c->first + first - a->at[low], n = CVY_MIN(last - first, a->at[low + 1] - a->at[low] - in);
        char *own = (char *)a->variable[low]->data + (size_t)in * elem, *packed = c->piece + (size_t)first * elem;
        if (c->packs)
            memcpy(packed, own, (size_t)n * elem);
        else
            write_back(c, own, packed, n);
        first += n;
    }
}

/* Between the variables and piece i of the memory, in the round that begins at `round` in the row of all variables. */
static void copy_piece(const cvy_program *p, int64_t round, int i, int packs)
{
    const cvy_average *a = p->average;
    const int64_t at = i * a->piece, first = round + at, n = CVY_MIN(CVY_MIN(a->piece, a->span - at), a->at[a->nvariable] - first);
    struct copying c = {a, first, a->memory + (size_t)at * cvy_dtype_bytes(a->dtype), packs, 1.0 / p->context->comm->nranks};
    if (n > 0)
        cvy_parallel_for(p->context->threads, n, GRAIN, copy_range, &c);
}

static cvy_status push(cvy_comm *comm, cvy_average *a)
{
    for (int i = 0; i < a->nrequest; i++) {
        int done = 0;
        if (a->active[i])
            CVY_TRY(comm->ops->request_test(a->request[i], &done));
        a->active[i] = (char)(a->active[i] && !done);
    }
    return CVY_OK;
}

static cvy_status average_round(cvy_program *p, int64_t round)
{
    cvy_comm *comm = p->context->comm;
    cvy_average *a = p->average;
    const int64_t left = CVY_MIN(a->span, a->at[a->nvariable] - round);
    const int npieces = (int)((left + a->piece - 1) / a->piece);
    for (int i = 0; i < npieces; i++) {
        copy_piece(p, round, i, 1);
        CVY_TRY(comm->ops->request_start(a->request[i]));
        a->active[i] = 1;
        CVY_TRY(push(comm, a));
    }
    for (int i = 0; i < npieces; i++) {
        for (int turn = 0; a->active[i]; turn++) {
            CVY_TRY(push(comm, a));
            CVY_TRY(comm->ops->rest(comm, turn));
        }
        copy_piece(p, round, i, 0);
    }
    return CVY_OK;
}

cvy_status cvy_average_settle(cvy_program *p)
{
    cvy_average *a = p->average;
    cvy_program_step_info *s = a->latest;
    const double begin = cvy_clock_s();
    if (!s)
        return CVY_OK;
    for (int64_t round = 0; p->context->comm->nranks > 1 && round < a->at[a->nvariable]; round += a->span)
        CVY_TRY(average_round(p, round));
    for (int i = 0; i < a->nvariable; i++)
        a->variable[i]->written++;
    a->latest = NULL;
    const double met = cvy_clock_s() - begin;
    s->time.total += met;
    s->time.exposed_comm += met;
    return CVY_OK;
}

int cvy_program_is_settled(const cvy_program *p)
{
    return !p->average || !p->average->latest;
}
