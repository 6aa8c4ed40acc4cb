/*
 * monitor_owner.c: see monitor_owner.h. The file appears under its name by O_EXCL, which network file systems keep. It
 * is taken away by rename(), which only one of several processes can do.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "monitor/monitor_run_layout.h"

/* A process; the time of its start, in ticks since the system's, because numbers are used again. */
struct process {
    long pid;
    long long start; /* 0: not known */
    char host[128];
};

static long long start_of(long pid)
{
    enum { START_FIELD = 20 }; /* counted after the name, which may contain blanks */
    char path[64], *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (!cvy_file_exists(path) || cvy_file_read(path, 4096, &text, &bytes) != CVY_OK)
        return 0;
    const char *at = strrchr(text, ')');
    for (int i = 0; at && i < START_FIELD; i++)
        at = strchr(at + 1, ' ');
    const long long start = at ? strtoll(at, NULL, 10) : 0;
    cvy_mem_free(&text);
    return start;
}

static struct process myself(void)
{
    struct process p = {.pid = (long)getpid()};
    p.start = start_of(p.pid);
    if (gethostname(p.host, sizeof p.host - 1) != 0 || !p.host[0])
        snprintf(p.host, sizeof p.host, "?");
    return p;
}

/* Returns 0 if there is no such file, or nothing to understand in it. */
static int read_owner(const char *path, struct process *out)
{
    char *text = NULL;
    size_t bytes = 0;
    *out = (struct process){0};
    if (!cvy_file_exists(path) || cvy_file_read(path, 4096, &text, &bytes) != CVY_OK)
        return 0;
    const int found = sscanf(text, "process %ld started %lld host %127s", &out->pid, &out->start, out->host) == 3;
    cvy_mem_free(&text);
    return found && out->pid > 0;
}

static cvy_owner_state state_of(const struct process *p)
{
    const struct process me = myself();
    if (strcmp(p->host, me.host) != 0)
        return CVY_OWNER_ELSEWHERE;
    const long long start = start_of(p->pid);
    const int lives = (kill((pid_t)p->pid, 0) == 0 || errno == EPERM) && (!start || !p->start || start == p->start);
    return lives ? CVY_OWNER_LIVES : CVY_OWNER_GONE;
}

cvy_owner_state cvy_owner_look(const char *folder)
{
    char path[CVY_RUN_PATH];
    struct process p;
    cvy_run_path(folder, CVY_RUN_OWNER, path);
    return read_owner(path, &p) ? state_of(&p) : CVY_OWNER_NONE;
}

/* Writes the file if there is none; 1 also if that is impossible for another reason. */
static int create(const char *path)
{
    const struct process me = myself();
    char text[256];
    const int fd = cvy_file_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666, NULL);
    if (fd < 0)
        return errno != EEXIST;
    const int n = snprintf(text, sizeof text, "process %ld started %lld host %s\n", me.pid, me.start, me.host);
    (void)!cvy_write_all(fd, text, (size_t)n, path);
    close(fd);
    return 1;
}

/* Takes the file of another process away. If a third process has put its own there meanwhile, it comes back. */
static int take_away(const char *path)
{
    char aside[CVY_RUN_PATH + 32];
    struct process p;
    snprintf(aside, sizeof aside, "%s.aside-%ld", path, (long)getpid());
    if (rename(path, aside) != 0)
        return errno == ENOENT;
    if (read_owner(aside, &p) && state_of(&p) == CVY_OWNER_LIVES) {
        (void)!rename(aside, path);
        return 0;
    }
    unlink(aside);
    return 1;
}

int cvy_owner_take(const char *folder)
{
    char path[CVY_RUN_PATH];
    cvy_run_path(folder, CVY_RUN_OWNER, path);
    if (create(path))
        return 1;
    return cvy_owner_look(folder) != CVY_OWNER_LIVES && take_away(path) && create(path);
}

void cvy_owner_drop(const char *folder)
{
    char path[CVY_RUN_PATH];
    struct process p;
    cvy_run_path(folder, CVY_RUN_OWNER, path);
    if (read_owner(path, &p) && p.pid == (long)getpid() && state_of(&p) == CVY_OWNER_LIVES)
        unlink(path);
}
