/*
 * doctor_files.c: the file system that a run would write to. Rank 0 writes there as for a checkpoint, and every rank
 * checks whether it sees the files.
 *
 * A file of 64 MiB is written in pieces, with fsync after each one, so that with a slow disk the test still ends in
 * time. Small files replace each other as STATUS and manifests do: temporary file, fsync, rename, fsync of the folder.
 * A folder that cannot be written is a finding, not an error.
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
#include "base/machine/base_system.h"
#include "health/doctor/doctor.h"
#include "measure/measure_bench.h"

enum { PIECE = 8 << 20, PIECES = 8, SMALL = 4096, SMALLS = 7 };
/* Part of the time for all measurements. */
#define WRITE_SHARE 0.15
/* Seconds: network file systems may show a new file with a delay. */
#define SEEN_WITHIN_S 3.0

/* Fills in bytes that no file system can compress, different ones in each piece. */
static void fill(uint64_t *data, size_t bytes, int piece)
{
    uint64_t x = 0x9E3779B97F4A7C15u * (uint64_t)(piece + 1);
    for (size_t i = 0; i < bytes / sizeof *data; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = x;
    }
}

static cvy_status write_pieces(cvy_doctor *d, int fd, const char *path, uint64_t *data)
{
    cvy_doctor_files *f = &d->files;
    for (int i = 0; i < PIECES && f->write_s < WRITE_SHARE * d->seconds; i++) {
        fill(data, PIECE, i);
        const double begin_s = cvy_clock_s();
        CVY_TRY(cvy_write_all(fd, data, PIECE, path));
        CVY_CHECK(cvy_file_flush(fd, path, CVY_PROTECTION_SYNC) == 0, CVY_E_IO, "%s: cannot sync: %s", path,
                  strerror(errno));
        f->write_s += cvy_clock_s() - begin_s;
        f->bytes += PIECE;
    }
    cvy_file_forget(fd);
    return CVY_OK;
}

static cvy_status read_pieces(cvy_doctor_files *f, int fd, const char *path, uint64_t *data, uint64_t *expected)
{
    for (int64_t at = 0; at < f->bytes; at += PIECE) {
        const double begin_s = cvy_clock_s();
        CVY_TRY(cvy_pread_all(fd, data, PIECE, at, path));
        f->read_s += cvy_clock_s() - begin_s;
        fill(expected, PIECE, (int)(at / PIECE));
        for (size_t i = 0; i < PIECE / sizeof *data && f->wrong_at < 0; i++)
            if (data[i] != expected[i])
                f->wrong_at = at + (int64_t)(i * sizeof *data);
    }
    return CVY_OK;
}

static cvy_status try_large(cvy_doctor *d, const char *path, uint64_t *data)
{
    const char *why = "";
    int fd = cvy_file_open(path, O_WRONLY | O_CREAT | O_EXCL, 0666, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot create: %s", path, why);
    cvy_status status = write_pieces(d, fd, path, data);
    close(fd);
    CVY_TRY(status);
    fd = cvy_file_open(path, O_RDONLY, 0, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot open: %s", path, why);
    status = read_pieces(&d->files, fd, path, data, data + PIECE / sizeof *data);
    close(fd);
    return status;
}

static cvy_status try_small(cvy_doctor_files *f, const char *path, const void *data)
{
    double seconds[SMALLS];
    for (int i = 0; i < SMALLS; i++) {
        const double begin_s = cvy_clock_s();
        CVY_TRY(cvy_file_replace(path, data, SMALL));
        seconds[i] = cvy_clock_s() - begin_s;
    }
    f->small_s = cvy_median(seconds, SMALLS);
    return CVY_OK;
}

/* A run locks a file of its folder. */
static cvy_status try_lock(const cvy_doctor *d, const char *path)
{
    const char *why = "";
    const int fd = cvy_file_open(path, O_RDWR, 0, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot open: %s", path, why);
    if (cvy_file_lock(fd) == CVY_LOCK_CANNOT)
        cvy_protection_note(CVY_PROTECTION_RUN_LOCK, d->files.folder, errno);
    close(fd);
    return CVY_OK;
}

/* Runs rank 0's tests in its own folder, and leaves a file "seen" there for all ranks. */
static cvy_status try_folder(cvy_doctor *d, const char *folder)
{
    uint64_t *data = NULL;
    struct statvfs room;
    char path[600];
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc((size_t)2 * PIECE, &data));
    snprintf(path, sizeof path, "%s/large", folder);
    CVY_TRY_OUT(try_large(d, path, data));
    snprintf(path, sizeof path, "%s/small", folder);
    CVY_TRY_OUT(try_small(&d->files, path, data));
    snprintf(path, sizeof path, "%s/seen", folder);
    CVY_TRY_OUT(cvy_file_replace(path, folder, strlen(folder)));
    CVY_TRY_OUT(try_lock(d, path));
    d->files.free_bytes = INT64_MAX;
    if (statvfs(folder, &room) == 0)
        d->files.free_bytes = (int64_t)room.f_bavail * (int64_t)room.f_frsize;
    else
        cvy_protection_note(CVY_PROTECTION_FREE_SPACE, d->files.folder, errno);
    d->files.is_known = 1;
out:
    cvy_mem_free(&data);
    return status;
}

/* A run makes its folder and the folders above it. So the nearest one that exists is tried. */
static cvy_status make_folder(cvy_doctor *d, char *folder, size_t room)
{
    char parent[480], *tried = NULL;
    CVY_TRY(cvy_file_nearest(d->files.folder, parent, sizeof parent));
    CVY_TRY(cvy_pool_strdup(d->pool, parent, &tried));
    d->files.folder = tried;
    return cvy_file_make_trial_folder(tried, "doctor", folder, room);
}

/* Whether this rank sees the file "seen", which contains the name of its folder. */
static int sees(const char *folder)
{
    const double begin_s = cvy_clock_s();
    char path[600];
    snprintf(path, sizeof path, "%s/seen", folder);
    for (;;) {
        char *text = NULL;
        size_t bytes = 0;
        const int is_read = cvy_file_read(path, SMALL, &text, &bytes) == CVY_OK;
        const int same = is_read && bytes == strlen(folder) && memcmp(text, folder, bytes) == 0;
        cvy_mem_free(&text);
        if (same || cvy_clock_s() - begin_s > SEEN_WITHIN_S)
            return same;
        cvy_clock_sleep(0.02);
    }
}

static cvy_status ask_all(cvy_doctor *d, const char *folder)
{
    cvy_comm *comm = d->context->comm;
    int *all = NULL;
    CVY_TRY(cvy_comm_agree(comm, cvy_pool_alloc(d->pool, sizeof *all * (size_t)comm->nranks, &all)));
    const int mine = sees(folder);
    CVY_TRY(comm->ops->allgather(comm, &mine, sizeof mine, all));
    for (int r = comm->nranks - 1; r >= 0; r--)
        if (!all[r]) {
            d->files.nunseen++;
            d->files.unseen_rank = r;
        }
    return CVY_OK;
}

cvy_status cvy_doctor_measure_files(cvy_doctor *d)
{
    cvy_comm *comm = d->context->comm;
    char folder[512] = "", seen[512] = "";
    cvy_status status = CVY_OK;
    if (comm->simulated_cores > 0)
        return CVY_OK;
    if (comm->rank == 0) {
        status = make_folder(d, folder, sizeof folder);
        if (status == CVY_OK)
            status = try_folder(d, folder);
        if (status == CVY_OK)
            memcpy(seen, folder, sizeof seen);
        else
            snprintf(d->files.fault, sizeof d->files.fault, "%s", cvy_error_text());
    }
    CVY_TRY(comm->ops->broadcast(comm, seen, sizeof seen, 0));
    if (*seen)
        status = ask_all(d, seen);
    else
        status = CVY_OK;
    if (*folder && cvy_file_remove_tree(folder) != CVY_OK && !*d->files.fault)
        snprintf(d->files.fault, sizeof d->files.fault, "%s", cvy_error_text());
    return status;
}
