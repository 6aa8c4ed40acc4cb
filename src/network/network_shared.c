/*
 * network_shared.c: a network that some ranks hold and all ranks apply. Each rank sends its samples to one that holds
 * the network, which computes all that it gets as one batch, and sends the results back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_mem.h"
#include "context/context.h"
#include "network/network.h"

enum { TAG_SAMPLES = 1, TAG_RESULTS, NAME_BYTES = 64 };

/* What a rank asks for in a call; ranks of a group differ in n only. */
struct array {
    char name[NAME_BYTES]; /* "": the default */
    int64_t dtype, elems;  /* elems: of a sample */
    cvy_shape shape;
};

struct request {
    int64_t rank, n, nin, nout; /* rank: in the context */
    struct array in[CVY_NETWORK_ARRAYS], out[CVY_NETWORK_ARRAYS];
};

struct cvy_shared_network {
    cvy_comm *group;                                           /* the ranks that one rank serves, which is its rank 0 */
    cvy_network *network;                                      /* on that rank, else NULL. Borrowed */
    struct request *all;                                       /* on that rank [ranks of the group] */
    cvy_bytes in[CVY_NETWORK_ARRAYS], out[CVY_NETWORK_ARRAYS]; /* on that rank: of all ranks together */
};

/* ---- groups ---- */

/* The group of this rank: each rank that holds the network heads one, and the others are shared out in their order. */
static cvy_status choose_group(cvy_comm *comm, int holds, int *group_out)
{
    int *held = NULL, holders = 0, others = 0, mine = 0;
    CVY_TRY(cvy_comm_alloc(comm, sizeof *held * (size_t)comm->nranks, &held));
    cvy_status status = comm->ops->allgather(comm, &holds, sizeof holds, held);
    for (int r = 0; r < comm->nranks && status == CVY_OK; r++) {
        if (r == comm->rank)
            mine = holds ? holders : others;
        holders += held[r];
        others += !held[r];
    }
    cvy_mem_free(&held);
    CVY_TRY(status);
    CVY_CHECK(holders > 0, CVY_E_ARGUMENT, "no rank of the context holds the network: all of them gave NULL");
    *group_out = holds ? mine : (int)((int64_t)mine * holders / others);
    return CVY_OK;
}

cvy_status cvy_shared_network_create(cvy_context *context, cvy_network *network, cvy_shared_network **shared_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_shared_network *s = NULL;
    cvy_comm *comm = context->comm;
    int group = 0;
    CVY_TRY(cvy_comm_agree(comm, network ? CVY_LIVE(NETWORK, network) : CVY_OK));
    CVY_TRY(cvy_comm_agree(comm, choose_group(comm, network != NULL, &group)));
    cvy_status status = cvy_comm_agree(comm, cvy_handle_alloc(CVY_HANDLE_SHARED_NETWORK, sizeof *s, &s));
    if (status != CVY_OK) {
        cvy_handle_free(&s);
        return status;
    }
    s->network = network;
    status = cvy_comm_split(comm, group, network ? -1 : comm->rank, &s->group);
    if (status == CVY_OK) {
        status = network ? cvy_mem_alloc(sizeof *s->all * (size_t)s->group->nranks, &s->all) : CVY_OK;
        status = cvy_comm_agree(comm, status);
    }
    if (status != CVY_OK)
        cvy_shared_network_destroy(&s);
    else
        *shared_out = s;
    return status;
}

void cvy_shared_network_destroy(cvy_shared_network **shared)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(SHARED_NETWORK, shared))
        return;
    cvy_shared_network *s = *shared;
    for (int i = 0; i < CVY_NETWORK_ARRAYS; i++) {
        cvy_mem_free(&s->in[i].data);
        cvy_mem_free(&s->out[i].data);
    }
    if (s->group)
        s->group->ops->destroy(s->group);
    cvy_mem_free(&s->all);
    cvy_handle_free(shared);
}

/* ---- what ranks ask for ---- */

static cvy_status describe(const char *what, const char *name, cvy_dtype dtype, int64_t elems, int64_t n,
                           const void *data, struct array *out)
{
    const char *shown = name ? name : "";
    CVY_CHECK(strlen(shown) < NAME_BYTES, CVY_E_ARGUMENT, "%s \"%s\" has a name of more than %d letters", what, shown,
              NAME_BYTES - 1);
    CVY_CHECK((int)dtype >= 0 && dtype < CVY_DTYPE_COUNT, CVY_E_ARGUMENT, "%s \"%s\" is of dtype number %d", what,
              shown, (int)dtype);
    CVY_CHECK(elems >= 0 && (n == 0 ? elems == 0 : elems % n == 0), CVY_E_ARGUMENT,
              "%s \"%s\" is an array of %lld elements, which %lld samples cannot have", what, shown, (long long)elems,
              (long long)n);
    CVY_CHECK(data || n == 0, CVY_E_ARGUMENT, "%s \"%s\" has no data", what, shown);
    strcpy(out->name, shown);
    out->dtype = (int64_t)dtype;
    out->elems = n > 0 ? elems / n : 0;
    return CVY_OK;
}

static cvy_status make_request(int64_t n, const cvy_network_in *in, int nin, const cvy_network_out *out, int nout,
                               struct request *r)
{
    CVY_CHECK(n >= 0 && nin >= 0 && nout >= 0 && nin <= CVY_NETWORK_ARRAYS && nout <= CVY_NETWORK_ARRAYS,
              CVY_E_ARGUMENT, "%lld samples, %d inputs, %d outputs; at most %d arrays", (long long)n, nin, nout,
              CVY_NETWORK_ARRAYS);
    memset(r, 0, sizeof *r);
    r->n = n;
    r->nin = nin;
    r->nout = nout;
    for (int i = 0; i < nin; i++) {
        CVY_TRY(describe("input", in[i].name, in[i].dtype, in[i].elems, n, in[i].data, &r->in[i]));
        r->in[i].shape.ndim = in[i].shape.ndim;
        memcpy(r->in[i].shape.dim, in[i].shape.dim, sizeof *in[i].shape.dim * (size_t)CVY_NDIM_MAX);
    }
    for (int i = 0; i < nout; i++)
        CVY_TRY(describe("output", out[i].name, out[i].dtype, out[i].elems, n, out[i].data, &r->out[i]));
    return CVY_OK;
}

/* Ranks without samples do not say how large a sample is. */
static int is_same(const struct array *a, const struct array *b, int have_samples)
{
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && cvy_shape_equal(&a->shape, &b->shape) &&
           (!have_samples || a->elems == b->elems);
}

/* The serving rank gets the requests of its group. */
static cvy_status gather_requests(cvy_shared_network *s, const struct request *mine)
{
    size_t *bytes_of = NULL;
    CVY_TRY(cvy_comm_alloc(s->group, sizeof *bytes_of * (size_t)s->group->nranks, &bytes_of));
    for (int r = 0; r < s->group->nranks; r++)
        bytes_of[r] = sizeof *mine;
    const cvy_status status = s->group->ops->gatherv(s->group, mine, sizeof *mine, s->all, bytes_of, 0);
    cvy_mem_free(&bytes_of);
    return status;
}

/* On the rank that serves: checks that the requests of its group fit together, and finds one that has samples. */
static cvy_status check_requests(const cvy_shared_network *s, const struct request **with_samples)
{
    const struct request *first = &s->all[0];
    for (int r = 0; r < s->group->nranks; r++)
        if (first->n == 0 && s->all[r].n > 0)
            first = &s->all[r];
    for (int r = 0; r < s->group->nranks; r++) {
        const struct request *q = &s->all[r];
        int same = q->nin == first->nin && q->nout == first->nout;
        for (int i = 0; i < q->nin && same; i++)
            same = is_same(&q->in[i], &first->in[i], q->n > 0);
        for (int i = 0; i < q->nout && same; i++)
            same = is_same(&q->out[i], &first->out[i], q->n > 0);
        CVY_CHECK(
            same, CVY_E_DISAGREE,
            "rank %d gives other arrays than rank %d: names, dtypes and shapes of samples must be the same on ranks "
            "that one rank serves",
            (int)q->rank, (int)first->rank);
    }
    *with_samples = first;
    return CVY_OK;
}

static size_t sample_bytes(const struct array *a)
{
    return (size_t)a->elems * cvy_dtype_bytes((cvy_dtype)a->dtype);
}

/* On the rank that serves: memory for the samples of its group. */
static cvy_status make_room(cvy_shared_network *s, const struct request *spec, int64_t *total_out)
{
    int64_t total = 0;
    for (int r = 0; r < s->group->nranks; r++)
        total += s->all[r].n;
    for (int i = 0; i < spec->nin; i++)
        CVY_TRY(cvy_bytes_need(&s->in[i], (size_t)total * sample_bytes(&spec->in[i])));
    for (int i = 0; i < spec->nout; i++)
        CVY_TRY(cvy_bytes_need(&s->out[i], (size_t)total * sample_bytes(&spec->out[i])));
    *total_out = total;
    return CVY_OK;
}

/* ---- messages ---- */

/* Arrays of n samples, from sample `first` of these blocks on, as the ranges of a message. */
static int list_ranges(const struct array *array, int64_t count, char *const *block, int64_t first, int64_t n,
                       cvy_range *range)
{
    int nrange = 0;
    for (int64_t i = 0; i < count; i++)
        if (n > 0 && array[i].elems > 0)
            range[nrange++] =
                (cvy_range){block[i] + (size_t)first * sample_bytes(&array[i]), (size_t)n * sample_bytes(&array[i])};
    return nrange;
}

/* Sends or receives one message, and waits for it. */
static cvy_status transfer(cvy_comm *comm, const cvy_range *range, int nrange, int peer, int sends, int tag)
{
    cvy_message *m = NULL;
    int done = 0;
    if (nrange == 0)
        return CVY_OK;
    CVY_TRY(comm->message->create(comm, range, nrange, &m));
    cvy_status status = sends ? comm->message->send(m, peer, tag) : comm->message->receive(m, peer, tag);
    for (int round = 0; status == CVY_OK && !done; round++) {
        status = comm->message->test(m, &done, NULL);
        if (status == CVY_OK && !done)
            status = comm->ops->rest(comm, round);
    }
    comm->message->destroy(&m);
    return status;
}

/* Moves the samples or the results between the blocks of the serving rank and the arrays of its group. */
static cvy_status move(const cvy_shared_network *s, const struct request *mine, const struct request *spec, int results,
                       char *const *own, char *const *block)
{
    cvy_range range[CVY_NETWORK_ARRAYS];
    const struct array *array = results ? spec->out : spec->in;
    const int64_t count = results ? spec->nout : spec->nin;
    const int tag = results ? TAG_RESULTS : TAG_SAMPLES;
    if (!s->network)
        return transfer(s->group, range, list_ranges(array, count, own, 0, mine->n, range), 0, !results, tag);
    int64_t first = mine->n;
    for (int64_t i = 0; i < count && mine->n > 0; i++) {
        const size_t bytes = (size_t)mine->n * sample_bytes(&array[i]);
        memcpy(results ? own[i] : block[i], results ? block[i] : own[i], bytes);
    }
    for (int r = 1; r < s->group->nranks; first += s->all[r++].n)
        CVY_TRY(
            transfer(s->group, range, list_ranges(array, count, block, first, s->all[r].n, range), r, results, tag));
    return CVY_OK;
}

/* ---- a call ---- */

static cvy_status compute(cvy_shared_network *s, const struct request *spec, int64_t total)
{
    cvy_network_in in[CVY_NETWORK_ARRAYS];
    cvy_network_out out[CVY_NETWORK_ARRAYS];
    for (int i = 0; i < spec->nin; i++)
        in[i] = (cvy_network_in){.name = spec->in[i].name[0] ? spec->in[i].name : NULL,
                                 .dtype = (cvy_dtype)spec->in[i].dtype,
                                 .elems = total * spec->in[i].elems,
                                 .data = s->in[i].data,
                                 .shape = spec->in[i].shape};
    for (int i = 0; i < spec->nout; i++)
        out[i] = (cvy_network_out){.name = spec->out[i].name[0] ? spec->out[i].name : NULL,
                                   .dtype = (cvy_dtype)spec->out[i].dtype,
                                   .elems = total * spec->out[i].elems,
                                   .data = s->out[i].data};
    return total > 0 ? cvy_network_apply(s->network, total, in, (int)spec->nin, out, (int)spec->nout) : CVY_OK;
}

cvy_status cvy_shared_network_apply(cvy_shared_network *s, int64_t n, const cvy_network_in *in, int nin,
                                    const cvy_network_out *out, int nout)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(SHARED_NETWORK, s));
    struct request mine;
    const struct request *spec = &mine;
    char *own_in[CVY_NETWORK_ARRAYS], *own_out[CVY_NETWORK_ARRAYS], *in_block[CVY_NETWORK_ARRAYS],
        *out_block[CVY_NETWORK_ARRAYS];
    int64_t total = 0;
    cvy_comm *group = s->group;
    CVY_TRY(cvy_comm_agree(group, make_request(n, in, nin, out, nout, &mine)));
    mine.rank = group->whole_rank;
    CVY_TRY(gather_requests(s, &mine));
    cvy_status status = s->network ? check_requests(s, &spec) : CVY_OK;
    if (status == CVY_OK && s->network)
        status = make_room(s, spec, &total);
    CVY_TRY(cvy_comm_agree(group, status));
    for (int i = 0; i < nin; i++)
        own_in[i] = (char *)(uintptr_t)in[i].data;
    for (int i = 0; i < nout; i++)
        own_out[i] = out[i].data;
    for (int i = 0; i < CVY_NETWORK_ARRAYS; i++) {
        in_block[i] = s->in[i].data;
        out_block[i] = s->out[i].data;
    }
    CVY_TRY(move(s, &mine, spec, 0, own_in, in_block));
    CVY_TRY(cvy_comm_agree(group, s->network ? compute(s, spec, total) : CVY_OK));
    return move(s, &mine, spec, 1, own_out, out_block);
}
