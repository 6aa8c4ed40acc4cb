/*
 * comm_sum.c: lists of moves: making, freeing, what one costs, and the names of those who make them.
 */
#include "comm/comm_sum.h"

#include <math.h>
#include <string.h>

#include "base/base_tree.h"

enum { LINE_ELEMS = 16 };              /* of f32 in a cache line: parts begin where lines do */

cvy_status cvy_sum_build(const cvy_sum_def *def, int rank, int nranks, int64_t count, cvy_sum *out)
{
    cvy_sum sum = {0};
    const cvy_status status = nranks > 1 && count > 0 ? def->build(rank, nranks, count, &sum) : CVY_OK;
    if (status != CVY_OK)
        cvy_sum_free(&sum);
    else
        *out = sum;
    return status;
}

cvy_status cvy_sum_build_half(const cvy_sum_def *def, int rank, int nranks, int64_t count, cvy_part *part_out, cvy_sum *out)
{
    cvy_sum sum = {0};
    cvy_status status = CVY_OK;
    if (part_out)
        *part_out = (cvy_part){0, count};
    if (nranks > 1 && count > 0)
        status = part_out ? def->scatter(rank, nranks, count, &sum, part_out) : def->gather(rank, nranks, count, &sum);
    if (status != CVY_OK)
        cvy_sum_free(&sum);
    else
        *out = sum;
    return status;
}

void cvy_sum_free(cvy_sum *sum)
{
    cvy_mem_free(&sum->move);
    *sum = (cvy_sum){0};
}

cvy_status cvy_sum_move(cvy_sum *sum, cvy_move_kind kind, int round, int peer, int64_t at, int64_t count)
{
    if (count == 0)
        return CVY_OK;
    CVY_TRY(cvy_mem_reserve(&sum->move, &sum->room, sum->nmove, sizeof *sum->move));
    sum->move[sum->nmove++] = (cvy_move){kind, round, peer, at, count};
    return CVY_OK;
}

int64_t cvy_sum_part(int64_t count, int i, int n)
{
    const int64_t lines = (count + LINE_ELEMS - 1) / LINE_ELEMS;
    return CVY_MIN(count, (lines / n * i + CVY_MIN(i, lines % n)) * LINE_ELEMS);
}

double cvy_sum_cost(const cvy_sum *sum, size_t elem_bytes, const cvy_link *link)
{
    double cost = 0;
    for (int m = 0; m < sum->nmove;) {
        const int round = sum->move[m].round;
        double out = 0, in = 0, added = 0;
        for (; m < sum->nmove && sum->move[m].round == round; m++) {
            const double bytes = (double)sum->move[m].count * (double)elem_bytes;
            out += sum->move[m].kind == CVY_MOVE_SEND ? bytes : 0;
            in += sum->move[m].kind == CVY_MOVE_SEND ? 0 : bytes;
            added += sum->move[m].kind == CVY_MOVE_ADD ? bytes : 0;
        }
        cost += link->alpha_s + CVY_MAX(in, out) * link->beta_s + added * link->gamma_s;
    }
    return cost;
}

cvy_status cvy_sum_check_name(const char *name)
{
    const char *known[16] = {"auto", "library"};
    int nknown = 2, count = 0;
    const cvy_sum_def *const *def = cvy_sum_table(&count);
    for (int i = 0; i < count && nknown < CVY_COUNT(known); i++)
        known[nknown++] = def[i]->name;
    for (int i = 0; i < nknown; i++)
        if (!name || strcmp(name, known[i]) == 0)
            return CVY_OK;
    cvy_text text = {0};
    cvy_text_add_known(&text, name, known, nknown);
    const cvy_status status = cvy_error_set(CVY_E_CONFIG, "no algorithm \"%s\" to sum gradients%s", name, text.data ? text.data : "");
    cvy_text_free(&text);
    return status;
}

enum { BUCKET_LEAST = 64 << 10, BUCKET_MOST = 64 << 20, BUCKET_USUAL = 4 << 20 };

/* Pieces of s bytes of S in all pay S/s times for the fixed part of a sum, and at the end the last one is still to come, which nothing hides: what is least of
 * alpha S/s + beta s is at s = sqrt(alpha S / beta). It is flat there, so powers of two will do, which noise in the measured figures rarely changes. */
size_t cvy_sum_bucket(size_t total, size_t asked, const cvy_comm_cost *cost)
{
    const double best = cost->beta_s > 0 ? sqrt(cost->alpha_s * (double)total / cost->beta_s) : BUCKET_USUAL;
    size_t bytes = BUCKET_LEAST;
    while (bytes < BUCKET_MOST && 1.5 * (double)bytes < best)
        bytes *= 2;
    return CVY_MIN(asked ? asked : bytes, CVY_MAX(total / 4, (size_t)BUCKET_LEAST));
}

cvy_status cvy_progress_parse(const char *name, cvy_progress_by *out)
{
    static const char *const names[] = {"poll", "thread", "mpi"};
    int found = name ? -1 : 0;
    for (int i = 0; name && i < CVY_COUNT(names); i++)
        found = strcmp(names[i], name) == 0 ? i : found;
    CVY_CHECK(found >= 0, CVY_E_CONFIG, "comm.progress: '%s' is none of poll, thread, mpi", name);
    *out = (cvy_progress_by)found;
    return CVY_OK;
}
