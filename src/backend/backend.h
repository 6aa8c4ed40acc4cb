/*
 * backend.h: what a backend is: the memory that tensors lie in, and the stream on which kernels run there.
 *
 * A backend is a folder of src/backend with one descriptor, which registers itself. The host is the first one, and what
 * its slots leave out costs nothing: no copy is made and no stream exists. A context has one space, which is a backend
 * with its state; all tensors of its programs lie there. Code that runs on the host reaches tensors in two ways only:
 * cvy_space_map(), which is the pointer itself if the host may read the memory and a copy if not, and
 * cvy_space_read() and cvy_space_write().
 *
 * The executor owns the stream, and the signature of a kernel has none. A kernel of the host has no use for a stream; a
 * kernel that needs one takes it when it is created, because a plan runs on one stream for its whole life. So no kernel
 * and no call on the host pays for it.
 *
 * Kernel libraries (kernel_library.h) are a thing of their own, since several of them share the host's memory; a
 * backend names the libraries whose kernels work on its memory.
 */
#ifndef CVY_BACKEND_H
#define CVY_BACKEND_H

#include "base/base_mem.h"

typedef struct cvy_backend_def {
    const char *name, *help;
    /* What plan.kernels: auto means on this backend, as a list of kernel libraries; NULL: all of them. */
    const char *kernels;
    /* The host reads and writes the memory through the pointers that `alloc` gives. Copies and streams are then NULL.
     */
    int host_access;
    /* Of the whole space; NULL: it has none. */
    cvy_status (*open)(void **state_out);
    void (*close)(void *state);
    /* Zeroed memory, 64-byte aligned. lazily: taken page by page when first written, if the backend can. */
    cvy_status (*alloc)(void *state, size_t bytes, int lazily, void **out);
    void (*free)(void *state, void *data, size_t bytes);
    /* From the host's memory and to it. They end after the work that the stream has. */
    cvy_status (*copy_in)(void *state, void *to, const void *host, size_t bytes);
    cvy_status (*copy_out)(void *state, void *host, const void *from, size_t bytes);
    /* Around one instruction that computes, and the wait for all of them. */
    cvy_status (*stream_begin)(void *state);
    cvy_status (*stream_end)(void *state);
    cvy_status (*stream_sync)(void *state);
} cvy_backend_def;

#define CVY_BACKEND_DEFINE(id) const cvy_backend_def cvy_backend_##id##_def

const cvy_backend_def *const *cvy_backend_table(int *count_out);
const cvy_backend_def *cvy_backend_find(const char *name);

typedef struct cvy_space {
    const cvy_backend_def *backend;
    void *state;
} cvy_space;

/* name NULL: the host. CVY_E_CONFIG names the backends that there are. */
cvy_status cvy_space_open(const char *name, cvy_space *out);
cvy_status cvy_space_open_def(const cvy_backend_def *backend, cvy_space *out);
void cvy_space_close(cvy_space *space);

/* A NULL space is the host's memory. */
static inline int cvy_space_is_host(const cvy_space *space)
{
    return !space || space->backend->host_access;
}
/* out: address of any object pointer. */
cvy_status cvy_space_alloc(const cvy_space *space, size_t bytes, int lazily, void *out);
void cvy_space_free(const cvy_space *space, void *block, size_t bytes);
cvy_status cvy_space_read(const cvy_space *space, void *host, const void *from, size_t bytes);
cvy_status cvy_space_write(const cvy_space *space, void *to, const void *host, size_t bytes);

/* The memory as the host may use it until unmap: the pointer itself, or a copy of its content. */
cvy_status cvy_space_map(const cvy_space *space, void *data, size_t bytes, void *out);
/* written: the content goes back; else it must be as it was. */
cvy_status cvy_space_unmap(const cvy_space *space, void *data, size_t bytes, int written, void *mapped);

/* Around each instruction that computes; nothing on the host. */
static inline cvy_status cvy_space_begin(const cvy_space *space)
{
    return cvy_space_is_host(space) ? CVY_OK : space->backend->stream_begin(space->state);
}
static inline cvy_status cvy_space_end(const cvy_space *space)
{
    return cvy_space_is_host(space) ? CVY_OK : space->backend->stream_end(space->state);
}
static inline cvy_status cvy_space_sync(const cvy_space *space)
{
    return cvy_space_is_host(space) ? CVY_OK : space->backend->stream_sync(space->state);
}

#endif
