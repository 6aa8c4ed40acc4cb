/*
 * emulated.h: a GPU that is not there, for tests: a driver (backend/gpu/gpu.h) that runs the kernels on the host, and
 * is as hostile as a device may be.
 *
 * memory   An address that `alloc` returns has no access rights, so the host cannot look at it from any thread. Kernels
 *          and copies use a second mapping of the same memory, in which only live allocations can be accessed: each
 *          ends at the end of a page, so one byte too many faults, and guard bytes before it are checked. A fault names
 *          the kernel, the block and the thread.
 * kernels  They were compiled from the same text as for a real device (tools/make_kernels.sh). Threads and blocks run
 *          in ascending, descending or shuffled order; a kernel with barriers runs its threads as fibers that change
 *          there. The memory of a block is filled with NaN before each block.
 * lanes    Work is queued, and runs when the host waits, or by chance. Which lane goes on is chance too, by a seed. So
 *          a missing mark leads to other results with most seeds. A recording keeps its arguments; what a driver does
 *          not take while it records ends the process.
 *
 * faults   Tests choose the number of devices, their memory, a source that does not compile, a device that is lost.
 *
 * What the emulation finds out of place ends the process with a message that begins with "emulated device:".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EMULATED_H
#define CVY_EMULATED_H

#include "backend/gpu/gpu.h"

typedef enum {
    CVY_EMULATED_ASCENDING,
    CVY_EMULATED_DESCENDING,
    CVY_EMULATED_SHUFFLED,
    CVY_EMULATED_ANY, /* one of these by chance, for each kernel that runs */
} cvy_emulated_order;

/* What a test sets before it opens the device, or while it is open. The variable CVY_EMULATED of the environment sets
 * members when a device is first opened: "seed=3 order=descending devices=2 memory=1000000". */
typedef struct cvy_emulated_setup {
    uint64_t seed;
    int order; /* a cvy_emulated_order */
    int devices;
    int64_t memory;       /* bytes of each device; an allocation past them fails */
    int64_t lost_after;   /* the device is lost after so many launches of this process; negative: never */
    int poison;           /* memory is not zeroed, but filled with NaN */
    const char *no_build; /* a source that does not compile, and the words of the compiler */
    const char *words;
} cvy_emulated_setup;

/* What the devices of this process have done. */
typedef struct cvy_emulated_done {
    int64_t launches, copies, zeros, copied_bytes; /* that have run */
    int64_t allocations, bytes;                    /* that are live */
    int64_t peak_bytes;
    int64_t replays; /* of recordings */
} cvy_emulated_done;

extern cvy_emulated_setup cvy_emulated_setup_now;
extern cvy_emulated_done cvy_emulated_done_now;

extern CVY_BACKEND_DEFINE(emulated);
#define cvy_emulated_backend cvy_backend_emulated_def

/* Puts a function of the host into a lane, for libraries of a vendor that tests stand in for. It is called again and
 * again, under the lock of the device, until it returns 1; meanwhile other lanes go on. */
typedef int cvy_emulated_call(void *arg);
cvy_status cvy_emulated_enqueue(void *state, cvy_lane lane, cvy_emulated_call *call, void *arg);
/* Where such a function finds what is at an address of the device. */
void *cvy_emulated_memory(const void *at);
/* Runs some of the work that can run, as a device does while the host is elsewhere. Any thread may call it. */
void cvy_emulated_go_on(void *state);

/* Sets everything back to what it was when the process started, without the environment. */
void cvy_emulated_reset(void);

#endif
