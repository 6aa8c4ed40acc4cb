/*
 * backend.h: what a backend is: the memory in which tensors are stored, and the lanes on which work is done there.
 *
 * A backend is a file or a folder of src/backend with one descriptor, which registers itself. The host is the default.
 * A context has one space, which is a backend with its state; all tensors of its programs are in it. Code on the host
 * accesses tensors in two ways only. cvy_space_map() returns the pointer itself if the host may read the memory, and a
 * copy if not. cvy_space_read() and cvy_space_write() copy.
 *
 * Work on a space that the host cannot read is asynchronous. It is put into one of three lanes: what is in one lane
 * runs in the order in which it was put there; lanes run beside each other. A mark is a place in a lane: another lane,
 * or the host, can wait for it. The host waits only where it reads a result.
 *
 * The executor owns the lanes, and a kernel's run function has no argument for them: a kernel of a space puts its work
 * into the lane COMPUTE of the space that it was created for. So lanes cost nothing on the host.
 *
 * Kernel libraries (kernel_library.h) are separate from backends: several of them use the host's memory, and one of
 * them works on every GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BACKEND_H
#define CVY_BACKEND_H

#include "base/base_mem.h"

typedef enum {
    CVY_LANE_COMPUTE, /* kernels, the inputs of a step */
    CVY_LANE_COPY,    /* what the host reads and writes */
    CVY_LANE_COMM,    /* exchanges with other ranks */
    CVY_LANES,        /* their number */
} cvy_lane;

typedef struct cvy_mark cvy_mark;           /* of a backend: a place in a lane */
typedef struct cvy_recording cvy_recording; /* of a backend: work that can be put into the lane COMPUTE as a whole */

/* Where a space is opened. */
typedef struct cvy_place {
    int device;    /* its number; -1: node_rank modulo the number of devices */
    int node_rank; /* of this process among the ranks of its compute node */
} cvy_place;

/* What a device is, for messages, plans and reports. */
typedef struct cvy_device {
    char name[128], architecture[32], driver[96]; /* "NVIDIA H200", "sm_90", "CUDA 13.0" */
    int number, count;                            /* of this device; of all devices that this process sees */
    char id[64];                                  /* what no other device of the node has; "": unknown */
    int is_processor;          /* 1: the host's processor does the work (PoCL): `device: auto` does not take it */
    int units;                 /* multiprocessors or compute units */
    int64_t bytes, bytes_left; /* of its memory; of these, not in use; -1: unknown */
} cvy_device;

struct cvy_gpu_driver;

typedef struct cvy_backend_def {
    const char *name, *help;
    /* The host reads and writes the memory through the pointers that `alloc` returns. All slots from alloc_host on are
     * NULL then. */
    int host_access;
    const struct cvy_gpu_driver *gpu; /* gpu/gpu.h: how kernels get onto the device; NULL: the host runs them */
    /* How many devices this process sees; the text says in a sentence why there are none. NULL: one. */
    int (*count)(char *why, size_t room);
    /* Open and close the space. NULL: it has no state. */
    cvy_status (*open)(const struct cvy_backend_def *self, const cvy_place *place, void **state_out);
    void (*close)(void *state);
    void (*about)(void *state, cvy_device *out);
    /* Zeroed memory, 64-byte aligned. lazily: if the backend can, a page is taken only when it is first written. */
    cvy_status (*alloc)(void *state, size_t bytes, int lazily, void **out);
    void (*free)(void *state, void *data, size_t bytes);

    /* The host's memory that the device can reach (page-locked). Only such memory may be given to `copy`. */
    cvy_status (*alloc_host)(void *state, size_t bytes, void **out);
    void (*free_host)(void *state, void *data, size_t bytes);
    /* These put work into a lane and return. Host memory must stay as it is until the work is done. */
    cvy_status (*copy)(void *state, cvy_lane lane, void *to, const void *from, size_t bytes);
    cvy_status (*zero)(void *state, cvy_lane lane, void *data, size_t bytes);
    /* sum[i] += part[i], f32 or f64. */
    cvy_status (*add)(void *state, cvy_lane lane, cvy_dtype dtype, int64_t n, void *sum, const void *part);
    /* Marks. `mark` puts one into a lane, again for each use; `await` lets a lane wait for its latest place; `reached`
     * asks whether it is reached (wait: the host waits until it is). A mark that was never put is reached. elapsed:
     * seconds between two reached marks. */
    cvy_status (*mark_create)(void *state, cvy_mark **out);
    void (*mark_destroy)(void *state, cvy_mark *mark);
    cvy_status (*mark)(void *state, cvy_lane lane, cvy_mark *mark);
    cvy_status (*await)(void *state, cvy_lane lane, cvy_mark *mark);
    cvy_status (*reached)(void *state, cvy_mark *mark, int wait, int *reached_out);
    cvy_status (*elapsed)(void *state, cvy_mark *from, cvy_mark *to, double *s_out);
    /* The host waits for all work of a lane. A fault of work that was put there earlier may be returned here. */
    cvy_status (*finish)(void *state, cvy_lane lane);

    /* Recordings; NULL: the backend has none. After record_begin, work for the lane COMPUTE is kept and not done. Only
     * kernels, copies within the device and zeroes may be put there until record_end, and the host may not wait.
     * record_end: `what` names the work in messages; parts: how many pieces of work it has. It ends the recording also
     * if it fails. replay puts all of it into the lane, with the arguments that it had. CVY_NOT_APPLICABLE: the driver
     * cannot do it, and nothing was put into the lane. */
    cvy_status (*record_begin)(void *state);
    cvy_status (*record_end)(void *state, const char *what, cvy_recording **out, int *parts_out);
    cvy_status (*replay)(void *state, cvy_recording *recording);
    void (*recording_destroy)(void *state, cvy_recording *recording);
} cvy_backend_def;

#define CVY_BACKEND_DEFINE(id) const cvy_backend_def cvy_backend_##id##_def

const cvy_backend_def *const *cvy_backend_table(int *count_out);
const cvy_backend_def *cvy_backend_find(const char *name);

typedef struct cvy_space {
    const cvy_backend_def *backend;
    void *state;
} cvy_space;

/* name NULL: the host. If there is no such backend, CVY_E_CONFIG names those that exist. place NULL: the only rank. */
cvy_status cvy_space_open(const char *name, const cvy_place *place, cvy_space *out);
cvy_status cvy_space_open_def(const cvy_backend_def *backend, const cvy_place *place, cvy_space *out);
void cvy_space_close(cvy_space *space);

/* A NULL space is the host's memory. */
static inline int cvy_space_is_host(const cvy_space *space)
{
    return !space || space->backend->host_access;
}
/* out: address of a pointer to any object type. */
cvy_status cvy_space_alloc(const cvy_space *space, size_t bytes, int lazily, void *out);
void cvy_space_free(const cvy_space *space, void *block, size_t bytes);
/* Memory of the host for copies to and from the space: page-locked, or whole pages if the host reads tensors anyway. */
cvy_status cvy_space_alloc_host(const cvy_space *space, size_t bytes, void *out);
void cvy_space_free_host(const cvy_space *space, void *block, size_t bytes);

/* Copies that are complete on return, after all that is in the lane COMPUTE. `host` is any memory of the host. */
cvy_status cvy_space_read(const cvy_space *space, void *host, const void *from, size_t bytes);
cvy_status cvy_space_write(const cvy_space *space, void *to, const void *host, size_t bytes);

/* Gives memory that the host may use until unmap: the pointer itself, or a copy of its content. */
cvy_status cvy_space_map(const cvy_space *space, void *data, size_t bytes, void *out);
/* written: the content is copied back. If it is 0, the content must not have changed. */
cvy_status cvy_space_unmap(const cvy_space *space, void *data, size_t bytes, int written, void *mapped);

/* Put into a lane of a space that the host cannot read; done at once on the host. */
cvy_status cvy_space_copy(const cvy_space *space, cvy_lane lane, void *to, const void *from, size_t bytes);
cvy_status cvy_space_zero(const cvy_space *space, cvy_lane lane, void *data, size_t bytes);

/* A mark of the host is always reached. */
cvy_status cvy_mark_create(const cvy_space *space, cvy_mark **out);
void cvy_mark_destroy(const cvy_space *space, cvy_mark **mark);
cvy_status cvy_mark_put(const cvy_space *space, cvy_lane lane, cvy_mark *mark);
cvy_status cvy_mark_await(const cvy_space *space, cvy_lane lane, cvy_mark *mark);
cvy_status cvy_mark_reached(const cvy_space *space, cvy_mark *mark, int wait, int *reached_out);
cvy_status cvy_mark_elapsed(const cvy_space *space, cvy_mark *from, cvy_mark *to, double *s_out);

/* The host waits for the lane COMPUTE, or for all lanes. They do nothing on the host. */
cvy_status cvy_space_sync(const cvy_space *space);
cvy_status cvy_space_sync_all(const cvy_space *space);

/* What the device of a space is; nothing is known of the host. */
void cvy_space_about(const cvy_space *space, cvy_device *out);
/* Bytes that can still be allocated there; of the host, as base_machine.h says. -1: unknown. */
int64_t cvy_space_left(const cvy_space *space);

#endif
