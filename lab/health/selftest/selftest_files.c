/*
 * selftest_files.c: the folder that the self-test writes to, as a run writes to its own: files are made, synced,
 * renamed and locked, and every rank sees them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "health/selftest/selftest.h"

enum { LARGE_BYTES = 4 << 20, SMALLS = 5 };
#define LITTLE_ROOM (1 << 30)
/* Seconds: network file systems may show a new file with a delay. */
#define SEEN_WITHIN_S 5.0

/* ---- the folder ---- */

/* A run makes its folder and the folders above it. So the nearest one that exists is tried. */
static cvy_status make_folder(const char *out, char *folder, size_t room)
{
    char parent[480];
    CVY_TRY(cvy_file_nearest(out, parent, sizeof parent));
    return cvy_file_make_trial_folder(parent, "selftest", folder, room);
}

cvy_status cvy_selftest_folder_make(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    const char *out = t->opts.out && *t->opts.out ? t->opts.out : ".";
    /* A folder that cannot be made is found by the check of files, not here. */
    if (comm->rank == 0 && make_folder(out, t->folder, sizeof t->folder) != CVY_OK)
        snprintf(t->nowhere, sizeof t->nowhere, "%s", cvy_error_text());
    CVY_TRY(comm->ops->broadcast(comm, t->nowhere, sizeof t->nowhere, 0));
    return comm->ops->broadcast(comm, t->folder, sizeof t->folder, 0);
}

cvy_status cvy_selftest_folder_remove(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    cvy_status status = CVY_OK;
    if (comm->rank == 0 && *t->folder)
        status = cvy_file_remove_tree(t->folder);
    return cvy_comm_agree(comm, status);
}

/* ---- rank 0 writes ---- */

static void fill(uint64_t *data, size_t bytes)
{
    uint64_t x = 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < bytes / sizeof *data; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = x;
    }
}

static cvy_status write_large(const char *path, const void *data)
{
    const char *why = "";
    const int fd = cvy_file_open(path, O_WRONLY | O_CREAT | O_EXCL, 0666, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot create: %s", path, why);
    cvy_status status = cvy_write_all(fd, data, LARGE_BYTES, path);
    if (status == CVY_OK && cvy_file_flush(fd, path, CVY_PROTECTION_SYNC) != 0)
        status = cvy_error_set(CVY_E_IO, "%s: cannot sync: %s", path, strerror(errno));
    if (close(fd) != 0 && status == CVY_OK)
        status = cvy_error_set(CVY_E_IO, "%s: cannot close: %s", path, strerror(errno));
    return status;
}

/* Small files replace each other, as STATUS and manifests do; each must have the latest content. */
static cvy_status replace_small(const char *path)
{
    for (int i = 0; i < SMALLS; i++) {
        char *text = NULL, number = (char)('0' + i);
        size_t bytes = 0;
        CVY_TRY(cvy_file_replace(path, &number, 1));
        CVY_TRY(cvy_file_read(path, 16, &text, &bytes));
        const int same = bytes == 1 && *text == number;
        cvy_mem_free(&text);
        CVY_CHECK(same, CVY_E_IO, "%s: does not have its new content after a rename over the old file", path);
    }
    return CVY_OK;
}

/* A run locks its folder, so that no second run writes into it. Without locks it goes on without this protection. */
static void try_lock(cvy_selftest *t, const char *path)
{
    const int one = cvy_file_open(path, O_RDWR, 0, NULL), two = cvy_file_open(path, O_RDWR, 0, NULL);
    const cvy_lock first = one >= 0 && two >= 0 ? cvy_file_lock(one) : CVY_LOCK_BUSY;
    if (first == CVY_LOCK_CANNOT)
        cvy_protection_note(CVY_PROTECTION_RUN_LOCK, t->folder, errno);
    if (first == CVY_LOCK_HELD && cvy_file_lock(two) == CVY_LOCK_HELD)
        cvy_selftest_note(t, "the file system has no working locks: two runs in one folder would not be noticed");
    char text[CVY_PROTECTION_TEXT];
    while (cvy_protection_take(text))
        cvy_selftest_note(t, "%s", text);
    if (one >= 0)
        close(one);
    if (two >= 0)
        close(two);
}

static cvy_status write_files(cvy_selftest *t, const char *large, const char *small, uint64_t *data)
{
    fill(data, LARGE_BYTES);
    CVY_TRY(write_large(large, data));
    CVY_TRY(replace_small(small));
    try_lock(t, small);
    return cvy_file_sync_folder(t->folder);
}

/* ---- all ranks read ---- */

/* Whether this rank sees the large file with all its bytes; *wrong_out: the first byte that differs, -1: none. */
static int reads_large(const char *path, const char *expected, int64_t *wrong_out)
{
    const double begin_s = cvy_clock_s();
    for (;; cvy_clock_sleep(0.02)) {
        char *data = NULL;
        size_t bytes = 0;
        const int is_read = cvy_file_read(path, LARGE_BYTES, &data, &bytes) == CVY_OK && bytes == LARGE_BYTES;
        *wrong_out = -1;
        for (size_t i = 0; is_read && i < LARGE_BYTES && *wrong_out < 0; i++)
            if (data[i] != expected[i])
                *wrong_out = (int64_t)i;
        cvy_mem_free(&data);
        if ((is_read && *wrong_out < 0) || cvy_clock_s() - begin_s > SEEN_WITHIN_S)
            return is_read;
    }
}

static void read_files(cvy_selftest *t, const char *large, uint64_t *data)
{
    int64_t wrong = -1;
    fill(data, LARGE_BYTES);
    if (!reads_large(large, (const char *)data, &wrong))
        cvy_selftest_fail(t,
                          "does not see what rank 0 on %s writes in %s: the folder is not shared by the nodes: give a "
                          "shared one by --out",
                          t->host[0], t->folder);
    else if (wrong >= 0)
        cvy_selftest_fail(t, "byte %lld of %s is not read as it was written: do not trust this file system",
                          (long long)wrong, large);
}

static int64_t free_bytes(const char *folder)
{
    struct statvfs room;
    return statvfs(folder, &room) == 0 ? (int64_t)room.f_bavail * (int64_t)room.f_frsize : INT64_MAX;
}

static cvy_status try_files(cvy_selftest *t, uint64_t *data)
{
    cvy_comm *comm = t->context->comm;
    char large[600], small[600];
    snprintf(large, sizeof large, "%s/large", t->folder);
    snprintf(small, sizeof small, "%s/small", t->folder);
    const double begin_s = cvy_clock_s();
    const cvy_status status = comm->rank == 0 ? write_files(t, large, small, data) : CVY_OK;
    const double write_s = cvy_clock_s() - begin_s;
    CVY_TRY(cvy_comm_agree(comm, status));
    read_files(t, large, data);
    CVY_TRY(comm->ops->barrier(comm));
    const int64_t left = free_bytes(t->folder);
    if (left < LITTLE_ROOM)
        cvy_selftest_note(t, "only %.0f MB are free: a checkpoint of a large network does not fit",
                          1e-6 * (double)left);
    cvy_selftest_pass(t, "%s: written, synced, renamed and read back in %.2f s; %.0f GB free%s", t->folder, write_s,
                      1e-9 * (double)left, comm->nranks > 1 ? "; seen by all ranks" : "");
    return CVY_OK;
}

cvy_status cvy_selftest_files(cvy_selftest *t)
{
    uint64_t *data = NULL;
    CVY_TRY(cvy_comm_alloc(t->context->comm, LARGE_BYTES, &data));
    const cvy_status status = try_files(t, data);
    cvy_mem_free(&data);
    if (status < 0 && status != CVY_E_COMM)
        return cvy_error_set(status, "%s: give another folder by --out", cvy_error_text());
    return status;
}
