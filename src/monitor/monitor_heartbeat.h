/*
 * monitor_heartbeat.h: the board of a run: a file in its folder in which each rank keeps one line, of when it gave its
 * last sign and what it did then.
 *
 * Written by the watchdog's thread every few seconds, never in the step. When a run stands still, the lines of all
 * ranks tell which one is behind; when it has died, the next start reads who gave the last sign first. Where the folder
 * is not shared by all nodes, other nodes' lines are missing.
 */
#ifndef CVY_MONITOR_HEARTBEAT_H
#define CVY_MONITOR_HEARTBEAT_H

#include "base/base_status.h"

#define CVY_HEARTBEAT_FILE "ranks"
enum { CVY_HEARTBEAT_LINE = 192 }; /* bytes of a line: rank r's begins at r times this */

typedef enum {
    CVY_HEARTBEAT_RUNNING,
    CVY_HEARTBEAT_ENDING,
    CVY_HEARTBEAT_STALLED,
    CVY_HEARTBEAT_FINISHED
} cvy_heartbeat_state; /* told: to end, by a signal */

typedef struct cvy_heartbeat {
    int rank;
    char host[40];
    double time; /* s since 1970 */
    cvy_heartbeat_state state;
    int64_t step, met; /* steps done; sums and other collectives that it has come to */
    double still_s;    /* since it last moved */
    char what[80];
} cvy_heartbeat;

/* Faults are no matter of the run's: they leave the board without this line. */
cvy_status cvy_heartbeat_write(int fd, const cvy_heartbeat *sign);
/* The lines of `nranks` ranks; those that are missing have rank -1. */
cvy_status cvy_heartbeat_read(const char *path, int nranks, cvy_heartbeat *sign_out);
/* Which rank holds the others up; fresh_s: how much older than the latest sign that of a living rank may be. 0 where
 * they do not tell. */
int cvy_heartbeat_suspect(const cvy_heartbeat *sign, int nranks, double fresh_s, char *text, size_t room);
/* Of a run that ended without a word: the rank whose signs ended first, by more than fresh_s, or that alone was not
 * told to end. 0 where they do not tell. */
int cvy_heartbeat_first_gone(const char *path, double fresh_s, char *text, size_t room);

#endif
