/* SPDX-License-Identifier: BSD-3-Clause */
/* time.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_TIME_H
#define DARWIN_TIME_H
#include <sys/types.h>
typedef unsigned long clock_t;
typedef enum {
    CLOCK_REALTIME = 0,
    CLOCK_MONOTONIC = 6,
    CLOCK_PROCESS_CPUTIME_ID = 12,
    CLOCK_THREAD_CPUTIME_ID = 16
} clockid_t;
struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
struct tm {
    int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
    long tm_gmtoff;
    char *tm_zone;
};
int clock_gettime(clockid_t, struct timespec *);
int nanosleep(const struct timespec *, struct timespec *);
time_t time(time_t *);
time_t mktime(struct tm *);
time_t timegm(struct tm *);
struct tm *gmtime_r(const time_t *, struct tm *);
struct tm *localtime_r(const time_t *, struct tm *);
size_t strftime(char *, size_t, const char *, const struct tm *);
double difftime(time_t, time_t);
#endif
