/*
 * data_hdf5_serve.c: the loop of the reader process: it opens HDF5 files by libhdf5 and answers requests about them.
 *
 * The program convoy-hdf5 calls it. Nothing else of convoy runs in that process. Its memory is limited, because a few
 * wrong bytes make libhdf5 ask for gigabytes: then the library reports that it has no memory, and the node is spared.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5_serve.h"

#include "data/hdf5/data_hdf5_remote.h"

#if CVY_HAVE_HDF5
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

struct server {
    int fd;
    cvy_area area;
    cvy_pool *pool;
    cvy_hdf5 *h;
    cvy_reader_info info;
    struct hdf5_opts options;
    cvy_descriptions like;
    cvy_bytes places;
    size_t answered; /* bytes of data of the reply */
};

/* Limits the address space: some for the program, its libraries and what libhdf5 keeps about files, and a multiple of
 * the data of a request. Returns 0, or the errno of a system that does not limit it. */
static int limit_memory(uint64_t data_bytes)
{
#if !defined(__SANITIZE_ADDRESS__)
    const uint64_t memory_least = (uint64_t)4 << 30;
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0)
        return errno;
    const rlim_t wanted = (rlim_t)(memory_least + 4 * data_bytes);
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : CVY_MIN(wanted, limit.rlim_max);
    return setrlimit(RLIMIT_AS, &limit) == 0 ? 0 : errno;
#else
    (void)data_bytes;
    return 0;
#endif
}

static char *data_of(const struct server *s)
{
    return s->area.data + CVY_H5_AT_WORK;
}

/* Makes room for the data of the reply. */
static cvy_status room(void *user, size_t bytes, void **out)
{
    struct server *s = user;
    limit_memory(bytes);
    CVY_TRY(cvy_area_need(&s->area, CVY_H5_AT_WORK + bytes));
    s->h->at_work = s->area.data;
    s->answered = bytes;
    *out = data_of(s);
    return CVY_OK;
}

static cvy_status make_reader(struct server *s)
{
    CVY_CHECK(!s->h, CVY_E_INTERNAL, "the HDF5 reader process has a data set already");
    CVY_TRY(cvy_pool_create(&s->pool));
    CVY_TRY(cvy_pool_alloc(s->pool, sizeof *s->h, &s->h));
    s->h->pool = s->info.pool = s->pool;
    s->h->o = &s->options;
    s->h->at_work = s->area.data;
    CVY_CHECK(pthread_mutex_init(&s->h->cache.lock, NULL) == 0, CVY_E_MEMORY, "cannot make a lock");
    return CVY_OK;
}

static cvy_status open_files(struct server *s, const cvy_h5_request *request)
{
    const char *path = NULL;
    CVY_TRY(make_reader(s));
    cvy_h5_wire in = cvy_h5_wire_read(&s->area, (size_t)request->bytes, s->pool);
    cvy_h5_wire_text(&in, &path);
    cvy_h5_wire_options(&in, &s->options);
    cvy_h5_wire_descriptions(&in, &s->like);
    cvy_h5_wire_text(&in, &s->h->of_like);
    s->h->like = s->like.nx > 0 ? &s->like : NULL;
    CVY_TRY(in.status);
    CVY_CHECK(path, CVY_E_INTERNAL, "the HDF5 reader process got no path");
    CVY_TRY(cvy_h5_load(s->h, path, &s->info));
    limit_memory((uint64_t)s->h->nsamples * sizeof *s->h->selected);
    cvy_h5_wire out = cvy_h5_wire_write(&s->area);
    cvy_h5_wire_state(&out, s->h);
    cvy_h5_wire_samples(&out, s->h, &s->info);
    s->h->at_work = s->area.data;
    cvy_mem_free(&s->h->selected); /* the other process has them */
    cvy_mem_free(&s->h->label);
    cvy_groups_free(&s->h->groups);
    s->answered = out.at - CVY_H5_AT_WORK;
    return out.status;
}

static cvy_status take_state(struct server *s, const cvy_h5_request *request)
{
    CVY_TRY(make_reader(s));
    cvy_h5_wire in = cvy_h5_wire_read(&s->area, (size_t)request->bytes, s->pool);
    cvy_h5_wire_state(&in, s->h);
    return in.status;
}

static cvy_status read_places(struct server *s, const cvy_h5_request *r)
{
    void *to = NULL;
    CVY_TRY(cvy_h5_library_places(s->h, r->file, r->column, r->first, r->rows, &s->places));
    CVY_TRY(room(s, s->places.bytes, &to));
    memcpy(to, s->places.data, s->places.bytes);
    return CVY_OK;
}

static cvy_status read_rows(struct server *s, const cvy_h5_request *r)
{
    void *to = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_size_mul(s->h->column[r->column].row_bytes, (size_t)r->rows, &bytes));
    CVY_TRY(room(s, bytes, &to));
    return cvy_h5_library_rows(s->h, r->file, r->column, r->first, r->rows, to);
}

static cvy_status read_scale(struct server *s, const cvy_h5_request *r)
{
    cvy_coordinates axis;
    cvy_pool *pool = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_h5_wire out = cvy_h5_wire_write(&s->area);
    out.status = cvy_h5_library_scale(s->h, r->file, r->column, (int)r->first, pool, &axis);
    if (out.status == CVY_OK)
        cvy_h5_wire_coordinates(&out, &axis);
    s->h->at_work = s->area.data;
    s->answered = out.at - CVY_H5_AT_WORK;
    cvy_pool_destroy(&pool);
    return out.status;
}

static cvy_status answer(struct server *s, const cvy_h5_request *r)
{
    limit_memory(0);
    CVY_TRY(cvy_area_follow(&s->area));
    if (r->what == CVY_H5_OPEN)
        return open_files(s, r);
    if (r->what == CVY_H5_STATE)
        return take_state(s, r);
    s->h->at_work = s->area.data;
    if (r->what == CVY_H5_PLACES)
        return read_places(s, r);
    if (r->what == CVY_H5_ROWS)
        return read_rows(s, r);
    if (r->what == CVY_H5_SCALE)
        return read_scale(s, r);
    return cvy_h5_library_encoded(s->h, r->file, r->column, r->first, room, s);
}

static int library_version(void)
{
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    return (int)(major * 10000 + minor * 100 + release);
}

static void put_fault(struct server *s)
{
    const char *text = cvy_error_text();
    s->answered = CVY_MIN(strlen(text), s->area.bytes - CVY_H5_AT_WORK);
    memcpy(data_of(s), text, s->answered);
}

int cvy_h5_serve(int socket, int area, const char *build)
{
    struct server s = {.fd = socket};
    char own[CVY_H5_BUILD_ROOM];
    cvy_h5_request request;
    cvy_h5_build_text(own);
    if (strcmp(own, build) != 0)
        return CVY_H5_OTHER_BUILD;
    if (cvy_area_open(area, &s.area) != CVY_OK)
        return 1;
    cvy_h5_reply reply = {.version = library_version(), .bytes = (uint64_t)limit_memory(0)};
    while (cvy_h5_send(socket, &reply, sizeof reply) == CVY_OK &&
           cvy_h5_receive(socket, &request, sizeof request) == CVY_OK) {
        s.answered = 0;
        reply.status = answer(&s, &request);
        if (reply.status != CVY_OK)
            put_fault(&s);
        reply.bytes = s.answered;
    }
    return 0;
}

#else

int cvy_h5_serve(int socket, int area, const char *build)
{
    (void)socket, (void)area, (void)build;
    return 1;
}

#endif
