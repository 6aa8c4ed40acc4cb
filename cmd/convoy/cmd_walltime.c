/*
 * cmd_walltime.c: reads times as schedulers write them, and finds when this allocation ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "cmd_launch.h"

enum { APART_S = 60 }; /* ends of one job that are further apart are those of two */

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
            "convoy: warning: the end of the allocation by %s=%s was %.0f s ago (%s), so it does not count: it is of "
            "another job, or the limit was extended; unset it, or give the time that is left by --walltime\n",
            variable, text, begin - end, at);
    return 1;
}

/* An end in seconds since 1970. *end_out: 0 if the variable is not set, or if it is past. */
static int read_end(const char *variable, double begin, double *end_out)
{
    const char *text = getenv(variable);
    char *rest = NULL;
    *end_out = 0;
    if (!text || !*text)
        return 0;
    const double end = strtod(text, &rest);
    if (*rest || !(end > 1e9 && end < 1e11)) {
        cmd_error(
            "%s=%s is not a time: expected seconds since 1970, as `date +%%s` prints them%s; --walltime gives the "
            "time that is left instead",
            variable, text, !*rest && end >= 1e11 ? " (are these milliseconds?)" : "");
        return CMD_EXIT_USAGE;
    }
    *end_out = is_past(variable, text, end, begin) ? 0 : end;
    return 0;
}

/* Torque gives the length of the job. It begins with its session; if that is unknown, now. */
static int read_length(const char *variable, double begin, double *end_out)
{
    const char *text = getenv(variable);
    char *rest = NULL;
    *end_out = 0;
    if (!text || !*text)
        return 0;
    const double lasts = strtod(text, &rest), since = cmd_launch_session_begin();
    if (*rest || !(lasts > 0 && lasts < 1e9)) {
        cmd_error("%s=%s is not a time: expected seconds; --walltime gives the time instead", variable, text);
        return CMD_EXIT_USAGE;
    }
    const double end = (since > 0 && since < begin ? since : begin) + lasts;
    *end_out = is_past(variable, text, end, begin) ? 0 : end;
    return 0;
}

/* A job that is submitted from another one inherits CONVOY_JOB_END. */
static void compare_ends(double begin, double end)
{
    const char *text = getenv("SLURM_JOB_END_TIME");
    const double other = text ? strtod(text, NULL) : 0;
    if (other > begin && fabs(other - end) > APART_S && cmd_launch_rank() == 0)
        cmd_note("convoy: warning: the allocation ends by CONVOY_JOB_END, which is %.0f s %s than SLURM_JOB_END_TIME: "
                 "unset the one that belongs to another job\n",
                 fabs(other - end), end < other ? "earlier" : "later");
}

int cmd_end_time(const char *walltime, double begin, double *end_out, const char **source_out)
{
    /* `convoy jobscript` sets the first, Slurm from 23.02 on the second. */
    static const struct {
        const char *variable;
        int (*read)(const char *variable, double begin, double *end_out);
    } known[] = {{"CONVOY_JOB_END", read_end}, {"SLURM_JOB_END_TIME", read_end}, {"PBS_WALLTIME", read_length}};
    int64_t seconds = 0;
    *end_out = 0;
    *source_out = NULL;
    if (walltime && !cmd_read_walltime(walltime, &seconds)) {
        cmd_error("--walltime is '%s', expected HH:MM:SS, D-HH:MM:SS or minutes", walltime);
        return CMD_EXIT_USAGE;
    }
    if (walltime) {
        *end_out = begin + (double)seconds;
        *source_out = "--walltime";
        return 0;
    }
    for (int i = 0; i < CMD_COUNT(known) && *end_out <= 0; i++) {
        const int code = known[i].read(known[i].variable, begin, end_out);
        if (code)
            return code;
        *source_out = *end_out > 0 ? known[i].variable : NULL;
    }
    if (*source_out && strcmp(*source_out, known[0].variable) == 0)
        compare_ends(begin, *end_out);
    return 0;
}
