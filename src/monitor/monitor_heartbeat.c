/*
 * monitor_heartbeat.c: see monitor_heartbeat.h. Lines are text of a fixed width. So ranks can write without
 * coordination, and people can read the file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_heartbeat.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base_file.h"

static const char *const state_name[] = {[CVY_HEARTBEAT_RUNNING] = "runs",
                                         [CVY_HEARTBEAT_ENDING] = "told",
                                         [CVY_HEARTBEAT_STALLED] = "stands",
                                         [CVY_HEARTBEAT_FINISHED] = "left"};

void cvy_heartbeat_write(int fd, const cvy_heartbeat *s)
{
    char line[CVY_HEARTBEAT_LINE + 1];
    const int n =
        snprintf(line, sizeof line, "rank %d host %s time %.3f %s step %lld met %lld still %.1f: %s", s->rank, s->host,
                 s->time, state_name[s->state], (long long)s->step, (long long)s->ncollectives, s->still_s, s->what);
    for (int i = CVY_MIN(n, CVY_HEARTBEAT_LINE - 1); i < CVY_HEARTBEAT_LINE - 1; i++)
        line[i] = ' ';
    line[CVY_HEARTBEAT_LINE - 1] = '\n';
    /* A fault is not recorded: the last heartbeat comes after the run's own fault, which would be lost. */
    (void)!pwrite(fd, line, CVY_HEARTBEAT_LINE, (off_t)s->rank * CVY_HEARTBEAT_LINE);
}

static int parse(const char *line, int rank, cvy_heartbeat *s)
{
    char state[8] = "";
    long long step = 0, met = 0;
    int at = 0;
    memset(s, 0, sizeof *s);
    s->rank = -1;
    int who = -1;
    if (sscanf(line, "rank %d host %39s time %lf %7s step %lld met %lld still %lf: %n", &who, s->host, &s->time, state,
               &step, &met, &s->still_s, &at) < 7 ||
        !at || who != rank)
        return 0;
    for (int i = 0; i < CVY_COUNT(state_name); i++)
        if (strcmp(state, state_name[i]) == 0)
            s->state = (cvy_heartbeat_state)i;
    snprintf(s->what, sizeof s->what, "%s", line + at);
    for (size_t n = strlen(s->what); n > 0 && (s->what[n - 1] == ' ' || s->what[n - 1] == '\n'); n--)
        s->what[n - 1] = 0;
    s->step = step;
    s->ncollectives = met;
    s->rank = rank;
    return 1;
}

cvy_status cvy_heartbeat_read(const char *path, int nranks, cvy_heartbeat *heartbeats_out)
{
    char line[CVY_HEARTBEAT_LINE + 1];
    const char *why = "";
    const int fd = cvy_file_open(path, O_RDONLY, 0, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s cannot be opened: %s", path, why);
    for (int r = 0; r < nranks; r++) {
        const ssize_t n = pread(fd, line, CVY_HEARTBEAT_LINE, (off_t)r * CVY_HEARTBEAT_LINE);
        line[n > 0 ? n : 0] = 0;
        parse(line, r, &heartbeats_out[r]);
    }
    close(fd);
    return CVY_OK;
}

/* ---- reading the heartbeats of all ranks ---- */

static int is_silent(const cvy_heartbeat *s, double now, double fresh_s)
{
    return s->rank >= 0 && now - s->time > fresh_s;
}

/* Orders ranks by what they have done: 0 if both have begun as many collectives. */
static int order_of_collectives(const cvy_heartbeat *a, const cvy_heartbeat *b)
{
    return (a->ncollectives > b->ncollectives) - (a->ncollectives < b->ncollectives);
}

/* 0 if both are at the same place of the same step. */
static int order_of_places(const cvy_heartbeat *a, const cvy_heartbeat *b)
{
    return a->step != b->step ? 1 : strcmp(a->what, b->what);
}

/* The only rank that differs from all others, which do not differ among themselves; -1: there is none. Of two ranks
 * neither is the odd one. */
static int odd_one(const cvy_heartbeat *heartbeat, int nranks,
                   int (*order)(const cvy_heartbeat *a, const cvy_heartbeat *b))
{
    for (int r = 0; r < nranks && nranks > 2; r++) {
        const cvy_heartbeat *other = &heartbeat[r == 0];
        int same = order(&heartbeat[r], other) != 0;
        for (int k = 0; k < nranks && same; k++)
            same = k == r || order(&heartbeat[k], other) == 0;
        if (same)
            return r;
    }
    return -1;
}

int cvy_heartbeat_suspect(const cvy_heartbeat *heartbeat, int nranks, double fresh_s, char *text, size_t room)
{
    int last = 0, first = 0;
    double now = 0; /* time of the latest heartbeat, because ranks that hang write theirs at about the same time */
    for (int r = 0; r < nranks; r++)
        now = heartbeat[r].rank >= 0 ? CVY_MAX(now, heartbeat[r].time) : now;
    for (int r = 0; r < nranks; r++) {
        if (heartbeat[r].rank < 0)
            return snprintf(text, room, "rank %d has never written a heartbeat", r);
        if (heartbeat[r].state == CVY_HEARTBEAT_FINISHED)
            return snprintf(text, room, "rank %d on %s has left at step %lld", r, heartbeat[r].host,
                            (long long)heartbeat[r].step);
        if (is_silent(&heartbeat[r], now, fresh_s))
            return snprintf(
                text, room,
                "rank %d on %s writes no heartbeat: its last one was %.1f s before the others', so it is stopped or "
                "dead, or its node is; it was at step %lld, in %s",
                r, heartbeat[r].host, now - heartbeat[r].time, (long long)heartbeat[r].step, heartbeat[r].what);
        last = heartbeat[r].ncollectives < heartbeat[last].ncollectives ? r : last;
        first = heartbeat[r].ncollectives > heartbeat[first].ncollectives ? r : first;
    }
    const int odd = odd_one(heartbeat, nranks, order_of_collectives),
              stray = odd_one(heartbeat, nranks, order_of_places);
    if (odd >= 0 && odd == first)
        return snprintf(
            text, room,
            "rank %d on %s is %lld collectives ahead of all others: it has not taken part in one; it is in %s", odd,
            heartbeat[odd].host, (long long)(heartbeat[odd].ncollectives - heartbeat[last].ncollectives),
            heartbeat[odd].what);
    if (heartbeat[last].ncollectives < heartbeat[first].ncollectives)
        return snprintf(
            text, room,
            "rank %d on %s is slow or stopped: at step %lld in %s, it has begun %lld collectives fewer than rank %d",
            last, heartbeat[last].host, (long long)heartbeat[last].step, heartbeat[last].what,
            (long long)(heartbeat[first].ncollectives - heartbeat[last].ncollectives), first);
    if (stray >= 0) /* a barrier of a node's ranks, for one, is not among the collectives that are counted */
        return snprintf(
            text, room,
            "rank %d on %s is not where all others are: it is at step %lld in %s, and they are at step %lld "
            "in %s",
            stray, heartbeat[stray].host, (long long)heartbeat[stray].step, heartbeat[stray].what,
            (long long)heartbeat[stray == 0].step, heartbeat[stray == 0].what);
    return 0;
}

int cvy_heartbeat_first_gone(const char *path, double fresh_s, char *text, size_t room)
{
    struct stat info;
    cvy_heartbeat *heartbeat = NULL;
    int first = -1, found = 0, nreasons = 0;
    double next = INFINITY; /* the earliest last heartbeat of the other ranks */
    if (stat(path, &info) != 0 || info.st_size < CVY_HEARTBEAT_LINE)
        return 0;
    const int nranks = (int)CVY_MIN(info.st_size / CVY_HEARTBEAT_LINE, 1 << 20);
    if (cvy_mem_alloc(sizeof *heartbeat * (size_t)nranks, &heartbeat) != CVY_OK ||
        cvy_heartbeat_read(path, nranks, heartbeat) != CVY_OK)
        goto out;
    for (int r = 0; r < nranks; r++)
        nreasons += heartbeat[r].rank >= 0 && heartbeat[r].state != CVY_HEARTBEAT_RUNNING;
    for (int r = 0; r < nranks; r++) {
        const int gave_no_reason =
            /* this rank gave no reason, while others were told to end or saw the run hang */
            nreasons == 0 || heartbeat[r].state == CVY_HEARTBEAT_RUNNING;
        if (heartbeat[r].rank < 0 || !gave_no_reason)
            continue;
        if (first < 0 || heartbeat[r].time < heartbeat[first].time) {
            next = first < 0 ? INFINITY : heartbeat[first].time;
            first = r;
        } else if (heartbeat[r].time < next)
            next = heartbeat[r].time;
    }
    if (first >= 0 && next - heartbeat[first].time > fresh_s) {
        char when[32];
        const time_t at = (time_t)heartbeat[first].time;
        struct tm tm;
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r(&at, &tm));
        found = snprintf(text, room,
                         "rank %d on %s wrote its last heartbeat before all others did, at %s, step %lld, in %s", first,
                         heartbeat[first].host, when, (long long)heartbeat[first].step, heartbeat[first].what);
    }
out:
    cvy_mem_free(&heartbeat);
    return found;
}
