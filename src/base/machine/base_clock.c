/*
 * base_clock.c: monotonic seconds for measuring; the seconds of the wall clock, which can be compared with those of
 * other machines; and the date in UTC, for logs and file names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_clock.h"

#include <time.h>

static double read_clock_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double cvy_clock_s(void)
{
    return read_clock_s(CLOCK_MONOTONIC);
}

double cvy_clock_wall_s(void)
{
    return read_clock_s(CLOCK_REALTIME);
}

void cvy_clock_sleep(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    if (seconds > 0)
        nanosleep(&left, NULL);
}

void cvy_clock_text(char text[32])
{
    struct tm utc;
    const time_t now = time(NULL);
    if (!gmtime_r(&now, &utc) || strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        text[0] = 0;
}
