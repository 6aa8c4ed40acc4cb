/*
 * comm_allreduce.c: makes and frees lists of transfers and computes their cost; checks the names of algorithms; and
 * chooses the bucket size that suits a cost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_allreduce.h"

#include <math.h>
#include <string.h>

#include "base/text/base_tree.h"

enum { LINE_ELEMS = 16 }; /* number of f32 in a cache line: parts begin at multiples of it */

cvy_status cvy_allreduce_build(const cvy_allreduce_def *def, int rank, int nranks, int64_t count,
                               cvy_transfer_list *out)
{
    cvy_transfer_list list = {0};
    const cvy_status status = nranks > 1 && count > 0 ? def->build(rank, nranks, count, &list) : CVY_OK;
    if (status != CVY_OK)
        cvy_transfer_list_free(&list);
    else
        *out = list;
    return status;
}

cvy_status cvy_allreduce_build_half(const cvy_allreduce_def *def, int rank, int nranks, int64_t count,
                                    cvy_part *part_out, cvy_transfer_list *out)
{
    cvy_transfer_list list = {0};
    cvy_status status = CVY_OK;
    if (part_out)
        *part_out = (cvy_part){0, count};
    if (nranks > 1 && count > 0)
        status =
            part_out ? def->scatter(rank, nranks, count, &list, part_out) : def->gather(rank, nranks, count, &list);
    if (status != CVY_OK)
        cvy_transfer_list_free(&list);
    else
        *out = list;
    return status;
}

void cvy_transfer_list_free(cvy_transfer_list *list)
{
    cvy_mem_free(&list->transfer);
    *list = (cvy_transfer_list){0};
}

cvy_status cvy_transfer_list_add(cvy_transfer_list *list, cvy_transfer_kind kind, int round, int peer, int64_t at,
                                 int64_t count)
{
    if (count == 0)
        return CVY_OK;
    CVY_TRY(cvy_mem_reserve(&list->transfer, &list->room, list->ntransfer, sizeof *list->transfer));
    list->transfer[list->ntransfer++] = (cvy_transfer){kind, round, peer, at, count};
    return CVY_OK;
}

int64_t cvy_allreduce_part(int64_t count, int i, int n)
{
    const int64_t lines = (count + LINE_ELEMS - 1) / LINE_ELEMS;
    return CVY_MIN(count, (lines / n * i + CVY_MIN(i, lines % n)) * LINE_ELEMS);
}

double cvy_transfer_list_cost(const cvy_transfer_list *list, size_t elem_bytes, const cvy_link *link)
{
    double cost = 0;
    for (int m = 0; m < list->ntransfer;) {
        const int round = list->transfer[m].round;
        double out = 0, in = 0, added = 0;
        for (; m < list->ntransfer && list->transfer[m].round == round; m++) {
            const double bytes = (double)list->transfer[m].count * (double)elem_bytes;
            out += list->transfer[m].kind == CVY_TRANSFER_SEND ? bytes : 0;
            in += list->transfer[m].kind == CVY_TRANSFER_SEND ? 0 : bytes;
            added += list->transfer[m].kind == CVY_TRANSFER_ADD ? bytes : 0;
        }
        cost += link->alpha_s + CVY_MAX(in, out) * link->beta_s + added * link->gamma_s;
    }
    return cost;
}

cvy_status cvy_allreduce_check_name(const char *name)
{
    const char *known[16] = {"auto", "library"};
    int nknown = 2, count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    for (int i = 0; i < count && nknown < CVY_COUNT(known); i++)
        known[nknown++] = def[i]->name;
    for (int i = 0; i < nknown; i++)
        if (!name || strcmp(name, known[i]) == 0)
            return CVY_OK;
    cvy_text text = {0};
    cvy_text_add_known(&text, name, known, nknown);
    const cvy_status status =
        cvy_error_set(CVY_E_CONFIG, "there is no all-reduce algorithm \"%s\"%s", name, text.data ? text.data : "");
    cvy_text_free(&text);
    return status;
}

enum { BUCKET_LEAST = 64 << 10, BUCKET_MOST = 64 << 20, BUCKET_USUAL = 4 << 20 };

/* With buckets of s bytes out of S, the fixed cost is paid S/s times, and the last bucket overlaps with nothing. The
 * minimum of alpha S/s + beta s is at s = sqrt(alpha S / beta). This minimum is flat, so a power of two is good enough,
 * and noise in the measured costs rarely changes it. */
size_t cvy_allreduce_bucket_bytes(size_t total, size_t asked, const cvy_comm_cost *cost)
{
    const double best = cost->beta_s > 0 ? sqrt(cost->alpha_s * (double)total / cost->beta_s) : BUCKET_USUAL;
    size_t bytes = BUCKET_LEAST;
    while (bytes < BUCKET_MOST && 1.5 * (double)bytes < best)
        bytes *= 2;
    return CVY_MIN(asked ? asked : bytes, CVY_MAX(total / 4, (size_t)BUCKET_LEAST));
}

cvy_status cvy_progress_parse(const char *name, cvy_progress_by *out)
{
    const int by_thread = name && strcmp(name, "thread") == 0;
    CVY_CHECK(!name || strcmp(name, "mpi") != 0, CVY_E_CONFIG,
              "'mpi' is gone: take poll, with the algorithm library for all-reduces of the MPI library");
    CVY_CHECK(!name || by_thread || strcmp(name, "poll") == 0, CVY_E_CONFIG, "'%s' is none of poll, thread", name);
    *out = by_thread ? CVY_PROGRESS_THREAD : CVY_PROGRESS_POLL;
    return CVY_OK;
}
