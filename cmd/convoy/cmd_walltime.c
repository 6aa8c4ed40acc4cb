/*
 * cmd_walltime.c: reads times as schedulers write them, and finds when this allocation ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"

/* Reads a number of at most nine digits that is followed by `end`, and moves *text past both. -1: there is none. */
static int64_t read_part(const char **text, char end)
{
    int64_t value = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9' && at - *text < 9; at++)
        value = 10 * value + (*at - '0');
    if (at == *text || *at != end)
        return -1;
    *text = at + (*at != 0);
    return value;
}

int cmd_read_walltime(const char *text, int64_t *seconds_out)
{
    int64_t days = 0, part[3] = {0};
    const char *dash = strchr(text, '-');
    int n = 1;
    if (dash && (days = read_part(&text, '-')) < 0)
        return 0;
    for (const char *c = text; *c; c++)
        n += *c == ':';
    if (n > 3 || (n == 2 && !dash)) /* 2:30 means minutes to one scheduler, and hours to most people */
        return 0;
    for (int i = 0; i < n; i++)
        if ((part[i] = read_part(&text, i + 1 < n ? ':' : 0)) < 0 || (i > 0 && part[i] >= 60))
            return 0;
    if (dash) /* D-HH, D-HH:MM, D-HH:MM:SS */
        *seconds_out = ((days * 24 + part[0]) * 60 + part[1]) * 60 + part[2];
    else if (n == 1) /* minutes */
        *seconds_out = part[0] * 60;
    else
        *seconds_out = (part[0] * 60 + part[1]) * 60 + part[2];
    return *seconds_out > 0;
}

/* Whether the end that this variable gives is past when the run begins; if so, says that it does not count: the shell
 * is older than the job that set it, or the time limit was extended. */
static int is_past(const char *variable, const char *text, double end, double begin)
{
    char at[32] = "?";
    const time_t seconds = (time_t)end;
    struct tm tm;
    if (end > begin)
        return 0;
    if (localtime_r(&seconds, &tm))
        strftime(at, sizeof at, "%Y-%m-%d %H:%M:%S", &tm);
    if (cmd_launch_rank() == 0)
        cmd_note(
            "convoy: warning: %s=%s was %.0f s ago (%s), so it is not taken as the end of the allocation: it is of "
            "another job, or the limit was extended; unset it, or give the time that is left by --walltime\n",
            variable, text, begin - end, at);
    return 1;
}

int cmd_end_time(const char *walltime, double begin, double *end_out)
{
    /* Seconds since 1970. `convoy jobscript` sets the first, Slurm from 23.02 on the second. */
    static const char *const ends[] = {"CONVOY_JOB_END", "SLURM_JOB_END_TIME"};
    int64_t seconds = 0;
    *end_out = 0;
    if (walltime && !cmd_read_walltime(walltime, &seconds)) {
        cmd_error("--walltime is '%s', expected HH:MM:SS, D-HH:MM:SS or minutes", walltime);
        return CMD_EXIT_USAGE;
    }
    if (walltime) {
        *end_out = begin + (double)seconds;
        return 0;
    }
    for (int i = 0; i < CMD_COUNT(ends); i++) {
        const char *text = getenv(ends[i]);
        if (!text || !*text)
            continue;
        char *rest = NULL;
        *end_out = strtod(text, &rest);
        if (*rest || !(*end_out > 1e9 && *end_out < 1e11)) {
            cmd_error(
                "%s=%s is not a time: expected seconds since 1970, as `date +%%s` prints them%s; --walltime gives the "
                "time that is left instead",
                ends[i], text, !*rest && *end_out >= 1e11 ? " (are these milliseconds?)" : "");
            return CMD_EXIT_USAGE;
        }
        if (!is_past(ends[i], text, *end_out, begin))
            return 0;
        *end_out = 0;
    }
    const char *limit = getenv("PBS_WALLTIME"); /* Torque: the length in seconds; it does not say when the job began */
    if (!limit || !*limit)
        return 0;
    char *rest = NULL;
    const double lasts = strtod(limit, &rest);
    if (*rest || !(lasts > 0 && lasts < 1e9)) {
        cmd_error("PBS_WALLTIME=%s is not a time: expected seconds; --walltime gives the time instead", limit);
        return CMD_EXIT_USAGE;
    }
    *end_out = begin + lasts;
    return 0;
}
