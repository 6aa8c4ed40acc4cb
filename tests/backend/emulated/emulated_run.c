/*
 * emulated_run.c: runs the blocks and threads of a kernel one after another, in an order of choice.
 *
 * A kernel without barriers runs its threads in a loop. Else each thread is a fiber with a stack of its own, and all of
 * a block go on from barrier to barrier.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/emulated/emulated_fiber.h"
#include "backend/emulated/emulated_parts.h"

/* The same as in backend/gpu/device.h, for kernels. */
struct cvy_emulated {
    int thread, threads, block, block_y, block_z, blocks;
} cvy_emulated;
void cvy_emulated_barrier(void);
void *cvy_emulated_at(uint64_t address);

static struct {
    const struct cvy_emulated_module *module;
    const struct cvy_emulated_kernel *kernel; /* NULL: none runs */
    void *const *args;
    emulated_fiber fiber[EMULATED_THREADS], scheduler;
} run;

size_t emulated_run_where(char *text, size_t room)
{
    text[0] = 0;
    if (!run.kernel)
        return 0;
    return (size_t)snprintf(text, room, "kernel %s of %s (%s), block %d %d %d, thread %d of %d", run.kernel->name,
                            run.module->source, cvy_dtype_text(run.module->act), cvy_emulated.block,
                            cvy_emulated.block_y, cvy_emulated.block_z, cvy_emulated.thread, cvy_emulated.threads);
}

void *cvy_emulated_at(uint64_t address)
{
    const void *data = (const void *)(uintptr_t)address;
    if (!emulated_memory_has(-1, data, 1))
        emulated_fail("the address %p of a table is in no allocation", data);
    return emulated_memory_at(data);
}

/* ---- orders ---- */

/* A permutation of 0 .. n - 1: each place is `step` after the one before, modulo n. */
struct order {
    int64_t n, at, step;
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t c = a % b;
        a = b;
        b = c;
    }
    return a;
}

static struct order make_order(int kind, int64_t n)
{
    struct order o = {n, 0, 1};
    if (kind == CVY_EMULATED_DESCENDING)
        o = (struct order){n, n - 1, n - 1};
    if (kind == CVY_EMULATED_SHUFFLED) {
        o.at = emulated_chance((unsigned)n);
        o.step = n < 3 ? 1 : 1 + emulated_chance((unsigned)n - 1);
        while (common_divisor(o.step, n) != 1)
            o.step = o.step % n + 1;
    }
    return o;
}

static int64_t order_next(struct order *o)
{
    const int64_t at = o->at;
    o->at += o->step;
    o->at -= o->at >= o->n ? o->n : 0;
    return at;
}

/* ---- a block ---- */

static void call_thread(int thread)
{
    cvy_emulated.thread = thread;
    run.kernel->call(run.args);
}

void emulated_fiber_body(int thread)
{
    call_thread(thread);
}

void cvy_emulated_barrier(void)
{
    if (!run.kernel->waits)
        emulated_fail("tools/make_kernels.sh has seen no barrier in this kernel");
    emulated_fiber_switch(&run.fiber[cvy_emulated.thread], &run.scheduler);
}

/* All threads go on to their next barrier, again and again. */
static void run_fibers(int kind, int n)
{
    for (int i = 0; i < n; i++)
        emulated_fiber_make(&run.fiber[i], i, &run.scheduler);
    for (int left = n; left;) {
        struct order o = make_order(kind, n);
        for (int k = 0; k < n; k++) {
            const int i = (int)order_next(&o);
            if (run.fiber[i].is_done)
                continue;
            cvy_emulated.thread = i;
            emulated_fiber_switch(&run.scheduler, &run.fiber[i]);
            left -= run.fiber[i].is_done;
        }
        if (left && left < n)
            emulated_fail("%d threads of a block have ended while %d wait at a barrier", n - left, left);
    }
}

static void run_block(int kind)
{
    const int n = cvy_emulated.threads;
    if (run.module->shared_begin)
        memset(run.module->shared_begin, 0xff, (size_t)(run.module->shared_end - run.module->shared_begin));
    if (run.kernel->waits) {
        run_fibers(kind, n);
        return;
    }
    struct order o = make_order(kind, n);
    for (int k = 0; k < n; k++)
        call_thread((int)order_next(&o));
}

void emulated_run(const struct cvy_emulated_module *module, const struct cvy_emulated_kernel *kernel, const int grid[3],
                  int threads, void *const *args)
{
    const int64_t blocks = (int64_t)grid[0] * grid[1] * grid[2];
    int kind = cvy_emulated_setup_now.order;
    if (kind == CVY_EMULATED_ANY)
        kind = (int)emulated_chance(CVY_EMULATED_ANY);
    run.module = module;
    run.kernel = kernel;
    run.args = args;
    cvy_emulated = (struct cvy_emulated){.threads = threads, .blocks = grid[0]};
    struct order o = make_order(kind, blocks);
    for (int64_t k = 0; k < blocks; k++) {
        const int64_t at = order_next(&o);
        cvy_emulated.block = (int)(at % grid[0]);
        cvy_emulated.block_y = (int)(at / grid[0] % grid[1]);
        cvy_emulated.block_z = (int)(at / grid[0] / grid[1]);
        run_block(kind);
    }
    run.kernel = NULL;
    cvy_emulated_done_now.launches++;
}
