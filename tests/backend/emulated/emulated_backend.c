/*
 * emulated_backend.c: the driver of the emulated device: the slots of backend.h and gpu.h over its parts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/emulated/emulated_parts.h"

struct device {
    cvy_gpu gpu; /* first */
    emulated_queues queues;
};

static const cvy_emulated_setup setup_at_start = {
    .seed = 1, .order = CVY_EMULATED_ANY, .devices = 1, .memory = (int64_t)8 << 30, .lost_after = -1};
cvy_emulated_setup cvy_emulated_setup_now = {
    .seed = 1, .order = CVY_EMULATED_ANY, .devices = 1, .memory = (int64_t)8 << 30, .lost_after = -1};
cvy_emulated_done cvy_emulated_done_now;

/* One for all devices: kernels of all of them use the same variables. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static cvy_status unlocked(cvy_status status)
{
    pthread_mutex_unlock(&lock);
    return status;
}
#define LOCKED(call) (pthread_mutex_lock(&lock), unlocked(call))

unsigned emulated_chance(unsigned n)
{
    uint64_t *s = &cvy_emulated_setup_now.seed;
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((*s >> 33) % n);
}

void cvy_emulated_reset(void)
{
    cvy_emulated_setup_now = setup_at_start;
}

/* ---- the environment ---- */

static int order_of(const char *name)
{
    return strcmp(name, "ascending") == 0    ? CVY_EMULATED_ASCENDING
           : strcmp(name, "descending") == 0 ? CVY_EMULATED_DESCENDING
           : strcmp(name, "shuffled") == 0   ? CVY_EMULATED_SHUFFLED
                                             : CVY_EMULATED_ANY;
}

static void set_member(const char *key, const char *value)
{
    cvy_emulated_setup *s = &cvy_emulated_setup_now;
    if (strcmp(key, "seed") == 0)
        s->seed = strtoull(value, NULL, 10);
    else if (strcmp(key, "order") == 0)
        s->order = order_of(value);
    else if (strcmp(key, "devices") == 0)
        s->devices = atoi(value);
    else if (strcmp(key, "memory") == 0)
        s->memory = strtoll(value, NULL, 10);
    else if (strcmp(key, "lost_after") == 0)
        s->lost_after = strtoll(value, NULL, 10);
    else if (strcmp(key, "poison") == 0)
        s->poison = atoi(value);
    else if (strcmp(key, "no_build") == 0) {
        s->no_build = value;
        s->words = "error: use of undeclared identifier 'planted'";
    } else
        emulated_fail("CVY_EMULATED has no member \"%s\"", key);
}

static void read_environment(void)
{
    static char text[400];
    const char *given = getenv("CVY_EMULATED");
    static int is_read;
    if (is_read++ || !given)
        return;
    snprintf(text, sizeof text, "%s", given);
    for (char *key = strtok(text, " "); key; key = strtok(NULL, " ")) {
        char *value = strchr(key, '=');
        if (!value)
            emulated_fail("CVY_EMULATED: \"%s\" has no value", key);
        *value++ = 0;
        set_member(key, value);
    }
}

/* ---- the device ---- */

static int device_count(char *why, size_t room)
{
    read_environment();
    if (cvy_emulated_setup_now.devices == 0)
        snprintf(why, room, "the setup of the test says so");
    return cvy_emulated_setup_now.devices;
}

static void device_about(void *state, cvy_device *out)
{
    const struct device *d = state;
    *out = d->gpu.device;
    out->bytes = cvy_emulated_setup_now.memory;
    out->bytes_left = out->bytes - emulated_memory_bytes(d->gpu.device.number);
}

static cvy_status device_open(const cvy_backend_def *self, const cvy_place *place, void **state_out)
{
    struct device *d = NULL;
    int number = 0;
    CVY_TRY(cvy_gpu_number(self, place, &number));
    CVY_TRY(emulated_memory_open());
    CVY_TRY(cvy_mem_alloc(sizeof *d, &d));
    d->gpu.device = (cvy_device){.number = number, .count = cvy_emulated_setup_now.devices, .units = 4};
    snprintf(d->gpu.device.name, sizeof d->gpu.device.name, "emulated device %d", number);
    snprintf(d->gpu.device.architecture, sizeof d->gpu.device.architecture, "host");
    snprintf(d->gpu.device.driver, sizeof d->gpu.device.driver, "emulation of the tests");
    cvy_gpu_begin(&d->gpu, self);
    *state_out = d;
    return CVY_OK;
}

static void device_close(void *state)
{
    struct device *d = state;
    cvy_gpu_end(&d->gpu);
    emulated_drop(&d->queues);
    if (emulated_memory_bytes(d->gpu.device.number) > 0 && d->gpu.device.count == 1)
        emulated_fail("the device is closed while %lld bytes in %lld allocations are not freed",
                      (long long)cvy_emulated_done_now.bytes, (long long)cvy_emulated_done_now.allocations);
    cvy_mem_free(&d);
}

static cvy_status check_lost(struct device *d)
{
    const int64_t after = cvy_emulated_setup_now.lost_after;
    if (after >= 0 && cvy_emulated_done_now.launches >= after)
        d->queues.lost = 1;
    if (!d->queues.lost)
        return CVY_OK;
    emulated_drop(&d->queues);
    return cvy_error_set(CVY_E_UNSUPPORTED, "%s is lost", d->gpu.device.name);
}

/* While work is recorded, drivers refuse what would make the host wait. */
static void check_not_recording(const struct device *d, const char *what)
{
    if (d->queues.recording)
        emulated_fail("%s while work is recorded", what);
}

/* ---- memory ---- */

static cvy_status alloc_locked(struct device *d, size_t bytes, void **out)
{
    check_not_recording(d, "memory is allocated");
    const int64_t left = cvy_emulated_setup_now.memory - emulated_memory_bytes(d->gpu.device.number);
    CVY_CHECK((int64_t)bytes <= left, CVY_E_MEMORY, "%s has no %zu bytes left: %lld of %lld are free",
              d->gpu.device.name, bytes, (long long)left, (long long)cvy_emulated_setup_now.memory);
    return emulated_memory_alloc(d->gpu.device.number, bytes, out);
}

static cvy_status device_alloc(void *state, size_t bytes, int lazily, void **out)
{
    (void)lazily;
    return LOCKED(alloc_locked(state, bytes, out));
}

static void check_unused(struct device *d, const void *data, size_t bytes, const char *what)
{
    check_not_recording(d, "memory is freed");
    if (emulated_is_used(&d->queues, data, bytes))
        emulated_fail("%s of %zu bytes is freed while work in a lane uses it", what, bytes);
}

static void device_free(void *state, void *data, size_t bytes)
{
    pthread_mutex_lock(&lock);
    check_unused(state, data, bytes, "memory of the device");
    emulated_memory_free(data, bytes);
    pthread_mutex_unlock(&lock);
}

static cvy_status device_alloc_host(void *state, size_t bytes, void **out)
{
    (void)state;
    return LOCKED(emulated_host_alloc(bytes, out));
}

static void device_free_host(void *state, void *data, size_t bytes)
{
    pthread_mutex_lock(&lock);
    check_unused(state, data, bytes, "page-locked memory");
    emulated_host_free(data, bytes);
    pthread_mutex_unlock(&lock);
}

/* ---- work ---- */

static cvy_status copy_locked(struct device *d, cvy_lane lane, void *to, const void *from, size_t bytes)
{
    const int number = d->gpu.device.number;
    const int to_device = emulated_memory_has(number, to, bytes);
    const int from_device = emulated_memory_has(number, from, bytes);
    CVY_TRY(check_lost(d));
    CVY_CHECK(to_device || emulated_host_has(to, bytes), CVY_E_INTERNAL,
              "emulated device: a copy of %zu bytes goes to memory that is neither an allocation of the device nor "
              "page-locked",
              bytes);
    CVY_CHECK(from_device || emulated_host_has(from, bytes), CVY_E_INTERNAL,
              "emulated device: a copy of %zu bytes comes from memory that is neither an allocation of the device nor "
              "page-locked",
              bytes);
    CVY_CHECK(to_device || from_device, CVY_E_INTERNAL,
              "emulated device: a copy of %zu bytes has both ends on the host", bytes);
    return emulated_put_copy(&d->queues, lane, to, from, bytes);
}

static cvy_status device_copy(void *state, cvy_lane lane, void *to, const void *from, size_t bytes)
{
    return LOCKED(copy_locked(state, lane, to, from, bytes));
}

static cvy_status zero_locked(struct device *d, cvy_lane lane, void *data, size_t bytes)
{
    CVY_TRY(check_lost(d));
    CVY_CHECK(emulated_memory_has(d->gpu.device.number, data, bytes), CVY_E_INTERNAL,
              "emulated device: %zu bytes to be zeroed are in no allocation", bytes);
    return emulated_put_zero(&d->queues, lane, data, bytes);
}

static cvy_status device_zero(void *state, cvy_lane lane, void *data, size_t bytes)
{
    return LOCKED(zero_locked(state, lane, data, bytes));
}

static cvy_status device_mark_create(void *state, cvy_mark **out)
{
    (void)state;
    return emulated_mark_create(out);
}

static void device_mark_destroy(void *state, cvy_mark *mark)
{
    (void)state;
    pthread_mutex_lock(&lock);
    emulated_mark_destroy(mark);
    pthread_mutex_unlock(&lock);
}

static cvy_status device_mark(void *state, cvy_lane lane, cvy_mark *mark)
{
    struct device *d = state;
    return LOCKED(emulated_put_mark(&d->queues, lane, mark));
}

static cvy_status device_await(void *state, cvy_lane lane, cvy_mark *mark)
{
    struct device *d = state;
    return LOCKED(emulated_put_await(&d->queues, lane, mark));
}

static cvy_status reached_locked(struct device *d, cvy_mark *mark, int wait, int *reached_out)
{
    check_not_recording(d, "the host asks for a mark");
    CVY_TRY(check_lost(d));
    CVY_TRY(emulated_reached(&d->queues, mark, wait, reached_out));
    return check_lost(d);
}

static cvy_status device_reached(void *state, cvy_mark *mark, int wait, int *reached_out)
{
    return LOCKED(reached_locked(state, mark, wait, reached_out));
}

static cvy_status device_elapsed(void *state, cvy_mark *from, cvy_mark *to, double *s_out)
{
    (void)state;
    return LOCKED(emulated_elapsed(from, to, s_out));
}

static cvy_status finish_locked(struct device *d, cvy_lane lane)
{
    check_not_recording(d, "the host waits for a lane");
    CVY_TRY(check_lost(d));
    CVY_TRY(emulated_finish(&d->queues, lane));
    return check_lost(d);
}

static cvy_status device_finish(void *state, cvy_lane lane)
{
    return LOCKED(finish_locked(state, lane));
}

static cvy_status record_begin_locked(struct device *d)
{
    CVY_TRY(check_lost(d));
    return emulated_record_begin(&d->queues);
}

static cvy_status device_record_begin(void *state)
{
    return LOCKED(record_begin_locked(state));
}

static cvy_status record_end_locked(struct device *d, cvy_recording **out, int *parts_out)
{
    CVY_TRY(check_lost(d));
    emulated_record_end(&d->queues, out, parts_out);
    return CVY_OK;
}

static cvy_status device_record_end(void *state, const char *what, cvy_recording **out, int *parts_out)
{
    (void)what;
    return LOCKED(record_end_locked(state, out, parts_out));
}

static cvy_status replay_locked(struct device *d, const cvy_recording *recording)
{
    CVY_TRY(check_lost(d));
    cvy_emulated_done_now.replays++;
    return emulated_replay(&d->queues, recording);
}

static cvy_status device_replay(void *state, cvy_recording *recording)
{
    return LOCKED(replay_locked(state, recording));
}

static void device_recording_destroy(void *state, cvy_recording *recording)
{
    (void)state;
    pthread_mutex_lock(&lock);
    emulated_recording_free(recording);
    pthread_mutex_unlock(&lock);
}

cvy_status cvy_emulated_enqueue(void *state, cvy_lane lane, cvy_emulated_call *call, void *arg)
{
    struct device *d = state;
    return LOCKED(emulated_put_call(&d->queues, lane, call, arg));
}

void *cvy_emulated_memory(const void *at)
{
    return emulated_memory_at(at);
}

void cvy_emulated_go_on(void *state)
{
    struct device *d = state;
    pthread_mutex_lock(&lock);
    emulated_go_on(&d->queues);
    pthread_mutex_unlock(&lock);
}

/* ---- kernels ---- */

static cvy_status device_build(void *state, const cvy_gpu_source *source, cvy_dtype act, void **module_out)
{
    const cvy_emulated_setup *s = &cvy_emulated_setup_now;
    (void)state;
    CVY_CHECK(!s->no_build || strcmp(s->no_build, source->name) != 0, CVY_NOT_APPLICABLE, "%s", s->words);
    for (int i = 0; cvy_emulated_modules[i]; i++)
        if (strcmp(cvy_emulated_modules[i]->source, source->name) == 0 && cvy_emulated_modules[i]->act == act) {
            *module_out = (void *)(uintptr_t)cvy_emulated_modules[i];
            return CVY_OK;
        }
    return cvy_error_set(CVY_NOT_APPLICABLE, "the emulation was built without the source %s", source->name);
}

static void device_unbuild(void *state, void *module)
{
    (void)state, (void)module;
}

/* The handle is the kernel of the table; its module is found again by that. */
static cvy_status device_find(void *state, void *module, const char *name, void **kernel_out)
{
    const struct cvy_emulated_module *m = module;
    (void)state;
    for (int i = 0; i < m->nkernel; i++)
        if (strcmp(m->kernels[i].name, name) == 0) {
            *kernel_out = (void *)(uintptr_t)&m->kernels[i];
            return CVY_OK;
        }
    return cvy_error_set(CVY_E_INTERNAL, "%s has no kernel \"%s\"", m->source, name);
}

static const struct cvy_emulated_module *module_of(const struct cvy_emulated_kernel *kernel)
{
    for (int i = 0; cvy_emulated_modules[i]; i++) {
        const struct cvy_emulated_module *m = cvy_emulated_modules[i];
        if (kernel >= m->kernels && kernel < m->kernels + m->nkernel)
            return m;
    }
    return NULL;
}

/* Takes a copy of the arguments, and checks them against the parameters. */
static cvy_status take_args(struct device *d, emulated_launch *l, const cvy_gpu_arg *args)
{
    size_t used = 0;
    for (int i = 0; i < l->nargs; i++) {
        const size_t bytes = l->kernel->bytes[i] ? l->kernel->bytes[i] : sizeof(void *);
        CVY_CHECK(args[i].bytes == l->kernel->bytes[i], CVY_E_INTERNAL,
                  "kernel %s, argument %d: its parameter has %zu bytes, %zu were given (0: a pointer)", l->kernel->name,
                  i, l->kernel->bytes[i], args[i].bytes);
        used = (used + 15) / 16 * 16;
        CVY_CHECK(used + bytes <= sizeof l->values, CVY_E_INTERNAL, "kernel %s has too many arguments",
                  l->kernel->name);
        l->at[i] = l->values + used;
        memcpy(l->at[i], args[i].at, bytes);
        used += bytes;
        if (args[i].bytes)
            continue;
        memcpy(&l->pointer[i], args[i].at, sizeof l->pointer[i]);
        CVY_CHECK(!l->pointer[i] || emulated_memory_has(d->gpu.device.number, l->pointer[i], 1), CVY_E_INTERNAL,
                  "kernel %s of %s, argument %d: %p is not in memory of the device%s", l->kernel->name,
                  l->module->source, i, l->pointer[i],
                  emulated_host_has(l->pointer[i], 1) ? " but in page-locked memory of the host" : "");
        const void *there = emulated_memory_at(l->pointer[i]);
        memcpy(l->at[i], &there, sizeof there);
    }
    return CVY_OK;
}

static cvy_status launch_locked(struct device *d, cvy_lane lane, const struct cvy_emulated_kernel *kernel,
                                const int grid[3], int threads, const cvy_gpu_arg *args, int nargs)
{
    emulated_launch *l = NULL;
    CVY_TRY(check_lost(d));
    CVY_CHECK(threads >= 1 && threads <= EMULATED_THREADS, CVY_E_INTERNAL, "kernel %s: %d threads", kernel->name,
              threads);
    CVY_CHECK(nargs == kernel->nargs, CVY_E_INTERNAL, "kernel %s has %d parameters; %d arguments were given",
              kernel->name, kernel->nargs, nargs);
    CVY_CHECK(nargs <= EMULATED_ARGS, CVY_E_INTERNAL, "kernel %s has too many parameters", kernel->name);
    CVY_TRY(cvy_mem_alloc(sizeof *l, &l));
    *l = (emulated_launch){.module = module_of(kernel), .kernel = kernel, .threads = threads, .nargs = nargs};
    memcpy(l->grid, grid, sizeof l->grid);
    cvy_status status = take_args(d, l, args);
    if (status == CVY_OK)
        return emulated_put_launch(&d->queues, lane, l);
    cvy_mem_free(&l);
    return status;
}

static cvy_status device_launch(void *state, cvy_lane lane, void *kernel, const int grid[3], int threads,
                                const cvy_gpu_arg *args, int nargs)
{
    return LOCKED(launch_locked(state, lane, kernel, grid, threads, args, nargs));
}

static const cvy_gpu_driver driver = {
    .build = device_build, .unbuild = device_unbuild, .find = device_find, .launch = device_launch};

CVY_BACKEND_DEFINE(emulated) = {
    .name = "emulated",
    .help = "for tests: a GPU that is not there",
    .gpu = &driver,
    .count = device_count,
    .open = device_open,
    .close = device_close,
    .about = device_about,
    .alloc = device_alloc,
    .free = device_free,
    .alloc_host = device_alloc_host,
    .free_host = device_free_host,
    .copy = device_copy,
    .zero = device_zero,
    .add = cvy_gpu_add,
    .mark_create = device_mark_create,
    .mark_destroy = device_mark_destroy,
    .mark = device_mark,
    .await = device_await,
    .reached = device_reached,
    .elapsed = device_elapsed,
    .finish = device_finish,
    .record_begin = device_record_begin,
    .record_end = device_record_end,
    .replay = device_replay,
    .recording_destroy = device_recording_destroy,
};
