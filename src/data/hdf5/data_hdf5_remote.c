/*
 * data_hdf5_remote.c: the HDF5 reader whose library runs in a process of its own.
 *
 * libhdf5 1.10 reads beyond its memory, or never returns, if a file is damaged. In a process of its own it takes only
 * itself along: the sample, or the data set that was being opened, is at fault, with a message, and another process is
 * started for the next request. The process opens the files and answers what data_hdf5_library.c asks. Contiguous rows
 * and most chunks are still read and unpacked here, so they cost what they did. A data set that has nothing but
 * contiguous rows needs no process after it is open. Threads ask one after the other, as they do for the library's
 * lock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5_remote.h"

#if CVY_HAVE_HDF5
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"

enum { FAULTS_MAX = 3, FORGET_BYTES = 32 << 20 };

struct cvy_h5_remote {
    pthread_mutex_t lock; /* protects what follows */
    cvy_h5_process process;
    uint8_t *faults; /* [nfile]: how often each file has ended the process */
    char last[512];  /* how the last of them did */
};

/* ---- one request ---- */

/* Turns a fault that the process reports into an error of this process. The text lies in memory that the process can
 * write, so it is copied first. */
static cvy_status take_fault(const cvy_h5_process *p, const cvy_h5_reply *reply)
{
    char text[4096];
    const size_t n = CVY_MIN((size_t)reply->bytes, sizeof text - 1);
    memcpy(text, p->area.data + CVY_H5_AT_WORK, n);
    text[n] = 0;
    const int known = reply->status >= CVY_E_DISAGREE && reply->status < CVY_OK;
    return cvy_error_set(known ? (cvy_status)reply->status : CVY_E_FORMAT, "%s", text);
}

/* Gives a new process the data set that a former one has opened. */
static cvy_status send_state(cvy_hdf5 *h)
{
    cvy_h5_process *p = &h->remote->process;
    cvy_h5_wire w = cvy_h5_wire_write(&p->area);
    cvy_h5_reply reply;
    cvy_h5_end end = CVY_H5_RUNS;
    cvy_h5_wire_state(&w, h);
    CVY_TRY(w.status);
    const cvy_h5_request request = {.what = CVY_H5_STATE, .bytes = w.at - CVY_H5_AT_WORK};
    CVY_TRY(cvy_h5_process_call(p, &request, &reply, &end));
    return reply.status == CVY_OK ? CVY_OK : take_fault(p, &reply);
}

/* Sees to it that a process runs which this process has started, and not its parent before a fork(). */
static cvy_status need_process(cvy_hdf5 *h)
{
    cvy_h5_process *p = &h->remote->process;
    if (p->fd >= 0 && p->owner == getpid())
        return CVY_OK;
    cvy_h5_process_end(p);
    cvy_status status = cvy_h5_process_start(p);
    if (status == CVY_OK)
        status = send_state(h);
    if (status != CVY_OK)
        cvy_h5_process_end(p);
    CVY_CHECK(status == CVY_OK, CVY_E_MEMORY, /* not the fault of a sample, which could be left out */
              "no other process for libhdf5 can be started: %s (`sandbox: false` of the source reads without one)",
              cvy_error_text());
    return CVY_OK;
}

/* Asks the process; the caller holds the lock. reply_out->bytes of data are in the area. If somebody has killed the
 * process, another one is asked once more. */
static cvy_status ask(cvy_hdf5 *h, const cvy_h5_request *request, cvy_h5_reply *reply_out)
{
    struct cvy_h5_remote *r = h->remote;
    uint8_t *faults = &r->faults[request->file];
    cvy_h5_end end = CVY_H5_KILLED;
    cvy_status status = CVY_OK;
    CVY_CHECK(
        *faults < FAULTS_MAX, CVY_E_FORMAT,
        "the file has ended the process that reads it by libhdf5 several times, or by an endless loop, and is not "
        "read any more: leave it out, or write it anew from a good copy; the last time: %s",
        r->last);
    for (int i = 0; i < 2 && end == CVY_H5_KILLED; i++) {
        CVY_TRY(need_process(h));
        status = cvy_h5_process_call(&r->process, request, reply_out, &end);
    }
    if (status != CVY_OK) {
        *faults = end == CVY_H5_HUNG ? FAULTS_MAX : (uint8_t)(*faults + 1);
        snprintf(r->last, sizeof r->last, "%s", cvy_error_text());
    }
    CVY_TRY(status);
    return reply_out->status == CVY_OK ? CVY_OK : take_fault(&r->process, reply_out);
}

/* ---- opening ---- */

/* Data sets whose rows are all read by position need the library no more. */
static int needs_library(const cvy_hdf5 *h)
{
    for (int64_t i = 0; i < h->nfile; i++)
        for (int k = 0; k < h->ncolumn; k++)
            if (h->file[i].storage[k].kind != CVY_H5_PLAIN)
                return 1;
    return 0;
}

/* The file at which the process ended, or the source if it has not yet begun to open one. */
static void file_at_work(const cvy_h5_process *p, const char *path, char text[CVY_H5_AT_WORK])
{
    memcpy(text, p->area.data, CVY_H5_AT_WORK);
    text[CVY_H5_AT_WORK - 1] = 0;
    if (!*text)
        snprintf(text, CVY_H5_AT_WORK, "%s", path);
}

static cvy_status send_open(cvy_h5_process *p, const cvy_hdf5 *h, const char *path, cvy_h5_request *request)
{
    struct hdf5_opts o = *h->o;
    cvy_h5_wire w = cvy_h5_wire_write(&p->area);
    cvy_h5_wire_text(&w, &path);
    cvy_h5_wire_options(&w, &o);
    cvy_descriptions like = h->like ? *h->like : (cvy_descriptions){0};
    const char *of_like = h->of_like;
    cvy_h5_wire_descriptions(&w, &like);
    cvy_h5_wire_text(&w, &of_like);
    *request = (cvy_h5_request){.what = CVY_H5_OPEN, .bytes = w.at - CVY_H5_AT_WORK};
    return w.status;
}

/* The names in lists are read by the other process; without this they would count as unknown. */
static void mark_used(const cvy_tree *names)
{
    for (int i = 0; names && names->kind == CVY_TREE_LIST && i < names->count; i++)
        names->child[i]->used = 1;
}

static cvy_status open_files(cvy_hdf5 *h, const char *path, cvy_reader_info *info)
{
    cvy_h5_process *p = &h->remote->process;
    cvy_h5_request request;
    cvy_h5_reply reply = {0};
    cvy_h5_end end = CVY_H5_RUNS;
    char at_work[CVY_H5_AT_WORK];
    CVY_TRY(send_open(p, h, path, &request));
    cvy_status status = cvy_h5_process_call(p, &request, &reply, &end);
    if (status != CVY_OK) {
        file_at_work(p, path, at_work);
        return cvy_error_prefix(status, "%s", at_work);
    }
    if (reply.status != CVY_OK)
        return take_fault(p, &reply);
    mark_used(h->o->x);
    mark_used(h->o->y);
    cvy_h5_wire w = cvy_h5_wire_read(&p->area, reply.bytes, h->pool);
    cvy_h5_wire_state(&w, h);
    cvy_h5_wire_samples(&w, h, info);
    CVY_TRY(w.status);
    if (h->o->metadata == CVY_H5_METADATA_CHECK)
        info->described = h->described;
    return cvy_h5_wire_check(h, info);
}

void cvy_h5_remote_close(cvy_hdf5 *h)
{
    if (!h->remote)
        return;
    cvy_h5_process_end(&h->remote->process);
    pthread_mutex_destroy(&h->remote->lock);
    cvy_mem_free(&h->remote);
}

static cvy_status create(cvy_hdf5 *h)
{
    struct cvy_h5_remote *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    r->process = (cvy_h5_process){.fd = -1, .area = {.fd = -1}, .limit_s = h->o->sandbox_limit};
    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        cvy_mem_free(&r);
        CVY_FAIL(CVY_E_MEMORY, "cannot make a lock");
    }
    h->remote = r;
    return CVY_OK;
}

cvy_status cvy_h5_remote_load(cvy_hdf5 *h, const char *path, cvy_reader_info *info)
{
    CVY_TRY(create(h));
    cvy_h5_process *p = &h->remote->process;
    cvy_status status = cvy_h5_process_start(p);
    if (status == CVY_NOT_APPLICABLE && h->o->sandbox == CVY_H5_SANDBOX_ON)
        CVY_FAIL(
            CVY_E_IO,
            "%s: sandbox: true, but no process for libhdf5 can be started: %s (`sandbox: false` reads without one)",
            path, cvy_error_text());
    if (status == CVY_NOT_APPLICABLE)
        cvy_h5_remote_close(h);
    CVY_TRY(status);
    CVY_TRY(open_files(h, path, info));
    CVY_TRY(cvy_pool_alloc(h->pool, (size_t)h->nfile, &h->remote->faults));
    if (!needs_library(h))
        cvy_h5_process_end(p);
    else
        cvy_area_forget(&p->area, FORGET_BYTES);
    return CVY_OK;
}

/* ---- reading ---- */

/* Asks for so many bytes of data. what: for the message, "the places of chunks". */
static cvy_status ask_bytes(cvy_hdf5 *h, const cvy_h5_request *request, const char *what, size_t bytes, void *out)
{
    cvy_h5_reply reply;
    pthread_mutex_lock(&h->remote->lock);
    cvy_status status = ask(h, request, &reply);
    if (status == CVY_OK && reply.bytes != bytes)
        status = cvy_error_set(CVY_E_FORMAT, "the HDF5 reader process sent %llu bytes for %s, expected %zu",
                               (unsigned long long)reply.bytes, what, bytes);
    if (status == CVY_OK)
        memcpy(out, h->remote->process.area.data + CVY_H5_AT_WORK, bytes);
    pthread_mutex_unlock(&h->remote->lock);
    return status;
}

cvy_status cvy_h5_remote_places(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, cvy_bytes *out)
{
    const cvy_h5_request request = {
        .what = CVY_H5_PLACES, .column = column, .file = file, .first = first, .rows = rows};
    size_t bytes = 0;
    CVY_TRY(cvy_h5_places_bytes(cvy_h5_column_in(h, file, column), &h->file[file].storage[column], rows, &bytes));
    CVY_TRY(cvy_bytes_need(out, bytes));
    return ask_bytes(h, &request, "the places of chunks", bytes, out->data);
}

cvy_status cvy_h5_remote_rows(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, void *out)
{
    const cvy_h5_request request = {.what = CVY_H5_ROWS, .column = column, .file = file, .first = first, .rows = rows};
    return ask_bytes(h, &request, "rows", (size_t)rows * h->column[column].row_bytes, out);
}

cvy_status cvy_h5_remote_scale(cvy_hdf5 *h, int64_t file, int column, int axis, cvy_pool *pool, cvy_coordinates *out)
{
    const cvy_h5_request request = {.what = CVY_H5_SCALE, .column = column, .file = file, .first = axis};
    cvy_coordinates got = {0};
    cvy_h5_reply reply;
    pthread_mutex_lock(&h->remote->lock);
    cvy_status status = ask(h, &request, &reply);
    if (status == CVY_OK) {
        cvy_h5_wire w = cvy_h5_wire_read(&h->remote->process.area, (size_t)reply.bytes, pool);
        cvy_h5_wire_coordinates(&w, &got);
        status = w.status;
    }
    pthread_mutex_unlock(&h->remote->lock);
    if (status == CVY_OK)
        *out = got;
    return status;
}

cvy_status cvy_h5_remote_encoded(cvy_hdf5 *h, int64_t file, int column, int64_t row, cvy_bytes *out)
{
    const cvy_h5_request request = {.what = CVY_H5_ENCODED, .column = column, .file = file, .first = row, .rows = 1};
    cvy_h5_reply reply;
    pthread_mutex_lock(&h->remote->lock);
    cvy_status status = ask(h, &request, &reply);
    if (status == CVY_OK)
        status = cvy_bytes_need(out, (size_t)reply.bytes);
    if (status == CVY_OK && reply.bytes > 0)
        memcpy(out->data, h->remote->process.area.data + CVY_H5_AT_WORK, (size_t)reply.bytes);
    pthread_mutex_unlock(&h->remote->lock);
    return status;
}

#endif
