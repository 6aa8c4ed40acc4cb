/*
 * emulated_parts.h: the parts of the emulated device, for each other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EMULATED_PARTS_H
#define CVY_EMULATED_PARTS_H

#include "backend/emulated/emulated.h"
#include "backend/emulated/emulated_kernel.h"

enum { EMULATED_ARGS = 32, EMULATED_THREADS = 256 };

/* Ends the process: something is wrong that a real device would not have told. */
void emulated_fail(const char *fmt, ...) CVY_PRINTF(1, 2) __attribute__((noreturn));

/* A random number below n, by the seed. */
unsigned emulated_chance(unsigned n);

/* ---- memory (emulated_memory.c) ---- */

cvy_status emulated_memory_open(void);
cvy_status emulated_memory_alloc(int device, size_t bytes, void **out);
void emulated_memory_free(void *data, size_t bytes);
/* Whether a range is in one live allocation of the device (-1: of any). */
int emulated_memory_has(int device, const void *data, size_t bytes);
/* Where kernels and copies find what is at an address of the device. */
void *emulated_memory_at(const void *data);
int64_t emulated_memory_bytes(int device);

cvy_status emulated_host_alloc(size_t bytes, void **out);
void emulated_host_free(void *data, size_t bytes);
int emulated_host_has(const void *data, size_t bytes);

/* ---- kernels (emulated_run.c) ---- */

/* Runs a whole grid. args: the address of each argument, as the kernel takes it. */
void emulated_run(const struct cvy_emulated_module *module, const struct cvy_emulated_kernel *kernel, const int grid[3],
                  int threads, void *const *args);
/* Says which kernel, block and thread run now, if any; a signal handler may call it. */
size_t emulated_run_where(char *text, size_t room);

/* ---- lanes (emulated_lanes.c) ---- */

typedef struct emulated_launch {
    const struct cvy_emulated_module *module;
    const struct cvy_emulated_kernel *kernel;
    int grid[3], threads, nargs;
    void *at[EMULATED_ARGS]; /* pointers are translated; others: where the value is, in `values` */
    const void *pointer[EMULATED_ARGS];
    char values[1024];
} emulated_launch;

struct emulated_work;
typedef struct emulated_queues {
    struct emulated_work *first[CVY_LANES], *last[CVY_LANES];
    int policy;  /* which lanes go on, until the host waits again */
    int64_t put; /* how much work was put */
    int lost;
    cvy_recording *recording; /* takes the work for the lane COMPUTE; NULL: none is made */
} emulated_queues;

cvy_status emulated_put_launch(emulated_queues *q, cvy_lane lane, emulated_launch *launch); /* takes it over */
cvy_status emulated_put_copy(emulated_queues *q, cvy_lane lane, void *to, const void *from, size_t bytes);
cvy_status emulated_put_zero(emulated_queues *q, cvy_lane lane, void *data, size_t bytes);
cvy_status emulated_put_call(emulated_queues *q, cvy_lane lane, cvy_emulated_call *call, void *arg);
/* Runs some of the work that can run. */
void emulated_go_on(emulated_queues *q);
cvy_status emulated_put_mark(emulated_queues *q, cvy_lane lane, cvy_mark *mark);
cvy_status emulated_put_await(emulated_queues *q, cvy_lane lane, cvy_mark *mark);
cvy_status emulated_finish(emulated_queues *q, cvy_lane lane);
cvy_status emulated_reached(emulated_queues *q, cvy_mark *mark, int wait, int *reached_out);
cvy_status emulated_elapsed(cvy_mark *from, cvy_mark *to, double *s_out);
cvy_status emulated_mark_create(cvy_mark **out);
void emulated_mark_destroy(cvy_mark *mark);
/* Whether work that waits in a queue uses a part of this memory. */
int emulated_is_used(const emulated_queues *q, const void *data, size_t bytes);
/* Forgets all work, and a recording that is being made. */
void emulated_drop(emulated_queues *q);
/* Recordings: work is kept in place of a queue, and copied into it, with its arguments, by each replay. */
cvy_status emulated_record_begin(emulated_queues *q);
void emulated_record_end(emulated_queues *q, cvy_recording **out, int *parts_out);
cvy_status emulated_replay(emulated_queues *q, const cvy_recording *recording);
void emulated_recording_free(cvy_recording *recording);

#endif
