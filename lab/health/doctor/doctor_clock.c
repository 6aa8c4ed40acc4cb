/*
 * doctor_clock.c: the clocks: checks that the monotonic clock goes forward on every core, that reading it is cheap,
 * and that the wall clocks of the nodes agree.
 *
 * Ranks leave a barrier at nearly the same moment. The difference of their wall clocks then is the difference of the
 * clocks plus that of the moments when they left. The smallest difference of several barriers counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/machine/base_clock.h"
#include "health/doctor/doctor.h"

enum { BARRIERS = 8, READINGS = 2000, CORES_TRIED = 64 };

struct clock_result { /* the result of one rank */
    double apart_s, read_s, set_s;
    int64_t back;
};

/* Reads the clock READINGS times on the present core. *last_s is the last reading; it is also compared with the first
 * one on the next core. */
static void read_clock(double *last_s, struct clock_result *mine)
{
    const double begin_s = cvy_clock_s();
    for (int i = 0; i < READINGS; i++) {
        const double now_s = cvy_clock_s();
        mine->back += now_s < *last_s;
        *last_s = now_s;
    }
    const double each_s = (*last_s - begin_s) / READINGS;
    /* the fastest core counts, since another process may have used a core meanwhile */
    mine->read_s = mine->read_s > 0 ? CVY_MIN(mine->read_s, each_s) : each_s;
}

/* Reads the clock on each core in turn, because their counters may differ. */
static void read_clock_on_all_cores(const cpu_set_t *mask, struct clock_result *mine)
{
    double last_s = cvy_clock_s();
    for (int i = 0, tried = 0; i < CPU_SETSIZE && tried < CORES_TRIED; i++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        if (!CPU_ISSET(i, mask) || !cvy_affinity_set(&one))
            continue;
        read_clock(&last_s, mine);
        tried++;
    }
    (void)cvy_affinity_set(mask);
    if (mine->read_s <= 0)
        read_clock(&last_s, mine);
}

static cvy_status compare_wall_clocks(cvy_doctor *d, double *all, struct clock_result *mine)
{
    cvy_comm *comm = d->context->comm;
    mine->apart_s = INFINITY;
    for (int i = 0; i < BARRIERS; i++) {
        CVY_TRY(comm->ops->barrier(comm));
        const double now_s = cvy_clock_wall_s();
        CVY_TRY(comm->ops->allgather(comm, &now_s, sizeof now_s, all));
        if (fabs(now_s - all[0]) < fabs(mine->apart_s))
            mine->apart_s = now_s - all[0];
    }
    return CVY_OK;
}

/* Takes the worst value of each kind over all ranks. */
static void sum_up(cvy_doctor_clock *c, const struct clock_result *all, int nranks)
{
    for (int r = 0; r < nranks; r++) {
        if (fabs(all[r].apart_s) > fabs(c->apart_s)) {
            c->apart_s = all[r].apart_s;
            c->apart_rank = r;
        }
        if (all[r].read_s > c->read_s) {
            c->read_s = all[r].read_s;
            c->read_rank = r;
        }
        if (fabs(all[r].set_s) > fabs(c->set_s)) {
            c->set_s = all[r].set_s;
            c->set_rank = r;
        }
        if (all[r].back > 0 && c->back == 0)
            c->back_rank = r;
        c->back += all[r].back;
    }
}

cvy_status cvy_doctor_measure_clock(cvy_doctor *d)
{
    cvy_comm *comm = d->context->comm;
    struct clock_result mine = {0}, *all = NULL;
    double *walls = NULL;
    if (comm->simulated_cores > 0)
        return CVY_OK;
    cvy_status status = cvy_pool_alloc(d->pool, sizeof *all * (size_t)comm->nranks, &all);
    if (status == CVY_OK)
        status = cvy_pool_alloc(d->pool, sizeof *walls * (size_t)comm->nranks, &walls);
    CVY_TRY(cvy_comm_agree(comm, status));
    mine.set_s = (cvy_clock_wall_s() - d->clock.begin_wall_s) - (cvy_clock_s() - d->begin_s);
    read_clock_on_all_cores(&d->topology[comm->rank].mask, &mine);
    CVY_TRY(compare_wall_clocks(d, walls, &mine));
    CVY_TRY(comm->ops->allgather(comm, &mine, sizeof mine, all));
    sum_up(&d->clock, all, comm->nranks);
    d->clock.is_known = 1;
    return CVY_OK;
}
