/*
 * sweep_copy.c: members of a population that become copies of others get their run folders: the checkpoints, and the
 * log that tells how the weights came to be.
 *
 * Nothing changes a file of a checkpoint after it was written, so the copy has hard links to the same files. It costs
 * no time and no room, and either run may delete its links. The log is continued in its place, so it is copied.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "monitor/monitor_run_layout.h"
#include "sweep/sweep_search.h"

static cvy_status copy_bytes(int in, const char *from, int out, const char *to)
{
    enum { BLOCK = 1 << 20 };
    char *block = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc(BLOCK, &block));
    for (;;) {
        const ssize_t n = read(in, block, BLOCK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            CVY_FAIL_OUT(CVY_E_IO, "%s: cannot read: %s", from, strerror(errno));
        if (n == 0)
            break;
        CVY_TRY_OUT(cvy_write_all(out, block, (size_t)n, to));
    }
    if (cvy_file_flush(out, to, CVY_PROTECTION_SYNC) != 0)
        CVY_FAIL_OUT(CVY_E_IO, "%s: cannot make the file durable: %s", to, strerror(errno));
out:
    cvy_mem_free(&block);
    return status;
}

static cvy_status copy_file(const char *from, const char *to)
{
    int out = -1;
    cvy_status status = CVY_OK;
    const char *why = "";
    const int in = cvy_file_open(from, O_RDONLY, 0, &why);
    if (in < 0)
        CVY_FAIL_OUT(CVY_E_IO, "%s: cannot open: %s", from, why);
    out = cvy_file_create(to, 0666, &why);
    if (out < 0)
        CVY_FAIL_OUT(CVY_E_IO, "%s: cannot create: %s", to, why);
    CVY_TRY_OUT(copy_bytes(in, from, out, to));
out:
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) != 0 && status == CVY_OK)
        status = cvy_error_set(CVY_E_IO, "%s: cannot close: %s", to, strerror(errno));
    return status;
}

/* A file system may have no hard links, or not between these folders. */
static cvy_status link_file(const char *from, const char *to)
{
    return link(from, to) == 0 ? CVY_OK : copy_file(from, to);
}

static cvy_status link_tree(cvy_pool *pool, const char *from, const char *to)
{
    char **names = NULL;
    int64_t count = 0;
    CVY_TRY(cvy_file_make_folder(to));
    CVY_TRY(cvy_file_list(pool, from, &names, &count));
    for (int64_t i = 0; i < count; i++) {
        char *source = NULL, *destination = NULL;
        CVY_TRY(cvy_pool_printf(pool, &source, "%s/%s", from, names[i]));
        CVY_TRY(cvy_pool_printf(pool, &destination, "%s/%s", to, names[i]));
        CVY_TRY(cvy_file_is_folder(source) ? link_tree(pool, source, destination) : link_file(source, destination));
    }
    return cvy_file_sync_folder(to);
}

static cvy_status copy_run(cvy_pool *pool, const char *folder, int parent, int child)
{
    char from[CVY_SWEEP_PATH], to[CVY_SWEEP_PATH], source[CVY_RUN_PATH], destination[CVY_RUN_PATH];
    cvy_sweep_trial_path(folder, parent, from);
    cvy_sweep_trial_path(folder, child, to);
    if (cvy_file_exists(to))
        CVY_TRY(cvy_file_remove_tree(to));
    cvy_run_path(from, CVY_RUN_CHECKPOINTS, source);
    cvy_run_path(to, CVY_RUN_CHECKPOINTS, destination);
    CVY_TRY(link_tree(pool, source, destination));
    cvy_run_path(from, CVY_RUN_METRICS, source);
    cvy_run_path(to, CVY_RUN_METRICS, destination);
    CVY_TRY(copy_file(source, destination));
    return cvy_file_sync_folder(to);
}

static cvy_status copy_rung(const cvy_sweep *s, cvy_pool *pool, const char *folder, int rung)
{
    for (int i = 0; i < s->ntrials; i++) {
        const int parent = s->trial[i].generation[rung].parent;
        if (parent < 0)
            continue;
        const cvy_status status = copy_run(pool, folder, parent, i);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "trial %d becomes a copy of trial %d", i + 1, parent + 1);
    }
    return CVY_OK;
}

cvy_status cvy_sweep_copy_runs(cvy_sweep *s, const char *folder)
{
    cvy_pool *pool = NULL;
    cvy_status status = CVY_OK;
    if (s->spec.search != CVY_SWEEP_POPULATION)
        return CVY_OK;
    CVY_TRY(cvy_pool_create(&pool));
    while (s->copied < s->trial[0].rung && status == CVY_OK) {
        status = copy_rung(s, pool, folder, s->copied + 1);
        if (status == CVY_OK)
            s->copied++;
    }
    cvy_pool_destroy(&pool);
    return status;
}
