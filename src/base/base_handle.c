/*
 * base_handle.c: a table of the live objects of the public API, from their address to their type.
 *
 * It is a hash table with linear probing. Writers hold a mutex. Readers hold none: an entry stays where it is until its
 * object is destroyed, and a table that has become too small stays readable after it was copied. So a reader finds an
 * object that was created before the call, whatever other threads do. There is one table for the process and not one
 * for each context, because a function that gets a wrong pointer has nothing else to ask; it is not part of
 * cvy_memory_bytes().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_handle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_mem.h"
#include "base/base_process.h"

_Static_assert(ATOMIC_POINTER_LOCK_FREE == 2, "signal handlers need atomics without locks");

enum { FIRST_BITS = 10 };

typedef struct entry {
    const void *_Atomic object; /* NULL: was never used; &removed: may be used again */
    _Atomic int type;           /* written before the object */
} entry;

typedef struct table {
    struct table *previous; /* smaller, for readers that still use it */
    int bits;
    entry *at; /* [2^bits] */
} table;

static const char removed;
static entry first_entries[1 << FIRST_BITS];
static table first = {.bits = FIRST_BITS, .at = first_entries};
static table *_Atomic current = &first;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static size_t nlive; /* under the mutex */

static const struct {
    const char *name, *argument;
} types[CVY_HANDLE_TYPES] = {
    [CVY_HANDLE_CONTEXT] = {"cvy_context", "context"},
    [CVY_HANDLE_MODEL] = {"cvy_model", "model"},
    [CVY_HANDLE_PROGRAM] = {"cvy_program", "program"},
    [CVY_HANDLE_DATA] = {"cvy_data", "data"},
    [CVY_HANDLE_DATA_LOADER] = {"cvy_data_loader", "loader"},
    [CVY_HANDLE_METRIC] = {"cvy_metric", "metric"},
    [CVY_HANDLE_NETWORK] = {"cvy_network", "network"},
    [CVY_HANDLE_SHARED_NETWORK] = {"cvy_shared_network", "shared"},
    [CVY_HANDLE_REDUCER] = {"cvy_reducer", "reducer"},
    [CVY_HANDLE_SCHEDULE] = {"cvy_schedule", "schedule"},
    [CVY_HANDLE_RESERVOIR] = {"cvy_reservoir", "reservoir"},
    [CVY_HANDLE_STREAM] = {"cvy_stream", "stream"},
    [CVY_HANDLE_TRAIN_CONTROL] = {"cvy_train_control", "control"},
};

static size_t mask_of(const table *t)
{
    return ((size_t)1 << t->bits) - 1;
}

static size_t start_of(const table *t, const void *object)
{
    return (size_t)(((uint64_t)(uintptr_t)object * 0x9E3779B97F4A7C15u) >> (64 - t->bits));
}

static const void *object_at(const entry *e)
{
    return atomic_load_explicit(&e->object, memory_order_acquire);
}

/* The entry of an object, or NULL; then *free_out, if given, is the entry that a new object gets: there is one, because
 * at least half of them hold no live object. */
static entry *find(const table *t, const void *object, entry **free_out)
{
    const size_t mask = mask_of(t);
    size_t at = start_of(t, object);
    for (size_t n = 0; n <= mask; n++, at = (at + 1) & mask) {
        entry *e = &t->at[at];
        const void *here = object_at(e);
        if (here == object)
            return e;
        if (free_out && !*free_out && (!here || here == &removed))
            *free_out = e;
        if (!here)
            break;
    }
    return NULL;
}

/* Returns whether the object is new in the table. */
static int put(const table *t, const void *object, cvy_handle_type type)
{
    entry *unused = NULL, *const known = find(t, object, &unused), *const e = known ? known : unused;
    atomic_store_explicit(&e->type, (int)type, memory_order_relaxed);
    atomic_store_explicit(&e->object, object, memory_order_release);
    return !known;
}

/* A table of twice the size becomes the current one. */
static cvy_status grow(void)
{
    table *old = atomic_load(&current), *t = malloc(sizeof *t);
    entry *at = calloc((size_t)2 << old->bits, sizeof *at);
    if (!t || !at) {
        free(t);
        free(at);
        CVY_FAIL(CVY_E_MEMORY, "cannot allocate a table of %zu objects", (size_t)1 << old->bits);
    }
    *t = (table){.previous = old, .bits = old->bits + 1, .at = at};
    for (size_t i = 0; i <= mask_of(old); i++) {
        const void *object = object_at(&old->at[i]);
        if (object && object != &removed)
            (void)put(t, object, (cvy_handle_type)atomic_load(&old->at[i].type));
    }
    atomic_store_explicit(&current, t, memory_order_release);
    return CVY_OK;
}

cvy_status cvy_handle_add(const void *object, cvy_handle_type type)
{
    CVY_TRY(cvy_process_check()); /* first: a thread that is not here may hold the lock */
    cvy_status status = CVY_OK;
    pthread_mutex_lock(&writing);
    if (nlive > mask_of(atomic_load(&current)) / 2)
        status = grow();
    if (status == CVY_OK)
        nlive += (size_t)put(atomic_load(&current), object, type);
    pthread_mutex_unlock(&writing);
    return status;
}

/* No search goes on after an unused entry, so removed ones before it become unused: searches stay short. */
void cvy_handle_remove(const void *object)
{
    pthread_mutex_lock(&writing);
    const table *t = atomic_load(&current);
    const size_t mask = mask_of(t);
    entry *e = find(t, object, NULL);
    if (e) {
        size_t at = (size_t)(e - t->at);
        atomic_store(&e->object, &removed);
        nlive--;
        if (!object_at(&t->at[(at + 1) & mask]))
            for (; object_at(&t->at[at]) == &removed; at = (at - 1) & mask)
                atomic_store(&t->at[at].object, NULL);
    }
    pthread_mutex_unlock(&writing);
}

cvy_status cvy_handle_alloc(cvy_handle_type type, size_t bytes, void *out)
{
    void *object = NULL;
    CVY_TRY(cvy_mem_alloc(bytes, &object));
    const cvy_status status = cvy_handle_add(object, type);
    if (status != CVY_OK)
        cvy_mem_free(&object);
    else
        memcpy(out, &object, sizeof object); /* the address of a pointer of any type */
    return status;
}

void cvy_handle_free(void *block)
{
    void *object;
    memcpy(&object, block, sizeof object);
    if (object)
        cvy_handle_remove(object);
    cvy_mem_free(block);
}

static cvy_handle_type type_of(const void *object)
{
    const table *t = atomic_load_explicit(&current, memory_order_acquire);
    const entry *e = object ? find(t, object, NULL) : NULL;
    return e ? (cvy_handle_type)atomic_load_explicit(&e->type, memory_order_relaxed) : CVY_HANDLE_NONE;
}

int cvy_handle_is(const void *object, cvy_handle_type type)
{
    return type_of(object) == type && cvy_process_is_ours();
}

cvy_status cvy_handle_check_known(const void *object, cvy_handle_type type, const char *argument)
{
    const cvy_handle_type found = type_of(object);
    if (found == type)
        return CVY_OK;
    const char *name = argument ? argument : types[type].argument;
    CVY_CHECK(object, CVY_E_ARGUMENT, "%s is NULL, or was destroyed: it must be a live %s", name, types[type].name);
    CVY_CHECK(found, CVY_E_ARGUMENT, "%s was destroyed, or is a wrong pointer: it must be a live %s", name,
              types[type].name);
    CVY_FAIL(CVY_E_ARGUMENT, "%s is a %s: it must be a %s", name, types[found].name, types[type].name);
}

cvy_status cvy_handle_check(const void *object, cvy_handle_type type, const char *argument)
{
    CVY_TRY(cvy_process_check());
    return cvy_handle_check_known(object, type, argument);
}
