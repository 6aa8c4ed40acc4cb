/*
 * backend.h: what a backend is: the memory in which tensors are stored, and the stream on which kernels run there.
 *
 * A backend is a folder of src/backend with one descriptor, which registers itself. The host is the default. Functions
 * that it leaves out cost nothing: no copy is made and no stream exists. A context has one space, which is a backend
 * with its state; all tensors of its programs are in it. Code on the host accesses tensors in two ways only.
 * cvy_space_map() returns the pointer itself if the host may read the memory, and a copy if not. cvy_space_read() and
 * cvy_space_write() copy.
 *
 * The executor owns the stream, and a kernel's run function has no stream argument. A kernel of the host does not use a
 * stream. A kernel that needs one takes it when it is created, because a plan runs on one stream for its whole life. So
 * streams cost nothing on the host.
 *
 * Kernel libraries (kernel_library.h) are separate from backends, since several of them use the host's memory. A
 * backend names the libraries whose kernels work on its memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BACKEND_H
#define CVY_BACKEND_H

#include "base/base_mem.h"

typedef struct cvy_backend_def {
    const char *name, *help;
    /* What plan.kernels: auto means on this backend, as a list of kernel libraries; NULL: all of them. */
    const char *kernels;
    /* The host reads and writes the memory through the pointers that `alloc` returns. Copy and stream functions are
     * then NULL. */
    int host_access;
    /* Open and close the space. NULL: it has no state. */
    cvy_status (*open)(void **state_out);
    void (*close)(void *state);
    /* Zeroed memory, 64-byte aligned. lazily: if the backend can, a page is taken only when it is first written. */
    cvy_status (*alloc)(void *state, size_t bytes, int lazily, void **out);
    void (*free)(void *state, void *data, size_t bytes);
    /* Copy from the host's memory and to it. They complete after the work that is already in the stream. */
    cvy_status (*copy_in)(void *state, void *to, const void *host, size_t bytes);
    cvy_status (*copy_out)(void *state, void *host, const void *from, size_t bytes);
    /* Called before and after each instruction that computes; sync waits for all of them. */
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

/* name NULL: the host. If there is no such backend, CVY_E_CONFIG names those that exist. */
cvy_status cvy_space_open(const char *name, cvy_space *out);
cvy_status cvy_space_open_def(const cvy_backend_def *backend, cvy_space *out);
void cvy_space_close(cvy_space *space);

/* A NULL space is the host's memory. */
static inline int cvy_space_is_host(const cvy_space *space)
{
    return !space || space->backend->host_access;
}
/* out: address of a pointer to any object type. */
cvy_status cvy_space_alloc(const cvy_space *space, size_t bytes, int lazily, void *out);
void cvy_space_free(const cvy_space *space, void *block, size_t bytes);
cvy_status cvy_space_read(const cvy_space *space, void *host, const void *from, size_t bytes);
cvy_status cvy_space_write(const cvy_space *space, void *to, const void *host, size_t bytes);

/* Gives memory that the host may use until unmap: the pointer itself, or a copy of its content. */
cvy_status cvy_space_map(const cvy_space *space, void *data, size_t bytes, void *out);
/* written: the content is copied back. If it is 0, the content must not have changed. */
cvy_status cvy_space_unmap(const cvy_space *space, void *data, size_t bytes, int written, void *mapped);

/* Called around each instruction that computes. They do nothing on the host. */
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
