/*
 * monitor_run_layout.c: see monitor_run_layout.h. The watchdog writes nothing when it ends a run, because the file
 * system may be what hangs. So the program that next reads the folder reports what happened.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_run_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_mem.h"
#include "base/base_protection.h"
#include "base/text/base_text.h"
#include "monitor/monitor_heartbeat.h"
#include "monitor/monitor_owner.h"
#include "monitor/monitor_watchdog.h"

void cvy_run_path(const char *run, const char *file, char path[CVY_RUN_PATH])
{
    snprintf(path, CVY_RUN_PATH, "%s/%s", run, file);
}

/* Moves *at behind the word if the text goes on with it. */
static int skip(const char **at, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0)
        return 0;
    *at += n;
    return 1;
}

static int read_count(const char **at, int64_t *out)
{
    char *end = NULL;
    *out = strtoll(*at, &end, 10);
    if (end == *at || *out < 0)
        return 0;
    *at = end;
    return 1;
}

int cvy_run_status_parse(const char *text, cvy_run_status *out)
{
    static const char *const words[] = {"running", "stopped", "finished", "failed"};
    const char *at = text;
    int i = 0;
    *out = (cvy_run_status){0};
    while (i < CVY_COUNT(words) && !skip(&at, words[i]))
        i++;
    if (i == CVY_COUNT(words) || !skip(&at, " step ") || !read_count(&at, &out->step) || !skip(&at, " of ") ||
        !read_count(&at, &out->steps) || !skip(&at, " at "))
        return 0;
    snprintf(out->word, sizeof out->word, "%s", words[i]);
    size_t n = strcspn(at, " \n");
    const char *rest = at + n;
    n -= n > 0 && at[n - 1] == ':';
    snprintf(out->time, sizeof out->time, "%.*s", (int)CVY_MIN(n, sizeof out->time - 1), at);
    if (*rest == ' ')
        snprintf(out->why, sizeof out->why, "%.*s", (int)CVY_MIN(strcspn(rest + 1, "\n"), sizeof out->why - 1),
                 rest + 1);
    return 1;
}

int cvy_run_status_is_early(const cvy_run_status *status)
{
    return strcmp(status->word, "finished") == 0 && status->why[0] != 0;
}

/* Whether this process may use the folder. */
static int take(const char *folder, int fd)
{
    const cvy_lock lock = cvy_file_lock(fd);
    if (lock != CVY_LOCK_CANNOT)
        return lock == CVY_LOCK_HELD;
    cvy_protection_note(CVY_PROTECTION_RUN_LOCK, folder, errno);
    return cvy_owner_take(folder);
}

/* The lock ends with the process. It is on a file that is open for writing, because NFS and Lustre keep locks of
 * folders within a node. */
cvy_status cvy_run_lock(const char *folder, int *lock_out, char **warning_out)
{
    enum { TRIES = 30 };
    const struct timespec pause = {0, 100 * 1000 * 1000};
    char path[CVY_RUN_PATH];
    cvy_text warning = {0};
    cvy_run_path(folder, CVY_RUN_LOCK, path);
    const char *why = "";
    *lock_out = cvy_file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0666, &why);
    if (*lock_out < 0) {
        cvy_text_add(&warning, "%s: cannot open the lock file: %s; a second run in this folder would not be refused",
                     path, why);
        *warning_out = warning.data;
        return warning.status;
    }
    for (int i = 0; !take(folder, *lock_out); i++) {
        CVY_CHECK(i < TRIES, CVY_E_IO,
                  "%s: another run uses this folder; wait until it has ended, or name another folder with --out",
                  folder);
        nanosleep(&pause, NULL);
    }
    return CVY_OK;
}

void cvy_run_unlock(const char *folder, int *lock)
{
    if (*lock < 0)
        return;
    cvy_owner_drop(folder);
    close(*lock);
    *lock = -1;
}

int cvy_run_is_lock(const char *name)
{
    return strcmp(name, CVY_RUN_LOCK) == 0 || strncmp(name, CVY_RUN_OWNER, sizeof CVY_RUN_OWNER - 1) == 0;
}

/* Takes a shared lock for a moment. A run that starts in this moment tries again. Without locks the process that is
 * named in the folder is known to be gone, or nothing is known. */
static int is_unlocked(const char *run)
{
    char path[CVY_RUN_PATH];
    cvy_run_path(run, CVY_RUN_LOCK, path);
    const int fd = cvy_file_open(path, O_RDONLY, 0, NULL);
    const cvy_lock lock = fd >= 0 ? cvy_file_lock_shared(fd) : CVY_LOCK_BUSY;
    if (fd >= 0)
        close(fd);
    return lock == CVY_LOCK_HELD || (lock == CVY_LOCK_CANNOT && cvy_owner_look(run) == CVY_OWNER_GONE);
}

int cvy_run_is_dead(const char *run, char *text, size_t room)
{
    char path[CVY_RUN_PATH], *status = NULL, first[320] = "";
    size_t bytes = 0;
    cvy_run_path(run, CVY_RUN_STATUS, path);
    const int runs = cvy_file_exists(path) && cvy_file_read(path, 4096, &status, &bytes) == CVY_OK &&
                     strncmp(status, "running", 7) == 0 && is_unlocked(run);
    if (runs) {
        status[strcspn(status, "\n")] = 0;
        cvy_run_path(run, CVY_HEARTBEAT_FILE, path);
        const int found = cvy_heartbeat_first_gone(path, cvy_watchdog_fresh_s(INFINITY), first, sizeof first);
        snprintf(text, room,
                 "the run has ended, although STATUS says \"%s\": it was killed, or its watchdog ended it%s%s", status,
                 found ? "; " : "", found ? first : "");
    }
    cvy_mem_free(&status);
    return runs;
}
