/*
 * base_handle.h: which objects of the public API are alive, and of which type they are. Public functions ask before
 * they follow a pointer that they are given.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_HANDLE_H
#define CVY_BASE_HANDLE_H

#include "base/base_status.h"

/* The opaque types of include/convoy/. */
typedef enum cvy_handle_type {
    CVY_HANDLE_NONE = 0,
    CVY_HANDLE_CONTEXT,
    CVY_HANDLE_MODEL,
    CVY_HANDLE_PROGRAM,
    CVY_HANDLE_DATA,
    CVY_HANDLE_DATA_LOADER,
    CVY_HANDLE_METRIC,
    CVY_HANDLE_NETWORK,
    CVY_HANDLE_SHARED_NETWORK,
    CVY_HANDLE_REDUCER,
    CVY_HANDLE_SCHEDULE,
    CVY_HANDLE_RESERVOIR,
    CVY_HANDLE_STREAM,
    CVY_HANDLE_TRAIN_CONTROL,
    CVY_HANDLE_TYPES
} cvy_handle_type;

/* cvy_mem_alloc() and cvy_mem_free() for an object that is alive in between. */
cvy_status cvy_handle_alloc(cvy_handle_type type, size_t bytes, void *out);
void cvy_handle_free(void *block);

/* The same for an object in the caller's memory. CVY_E_MEMORY. */
cvy_status cvy_handle_add(const void *object, cvy_handle_type type);
void cvy_handle_remove(const void *object);

/* Whether the pointer is a live object of this type; no object is alive in a process in which the library may not work
 * (base_process.h). Without a lock; any thread, and signal handlers. */
int cvy_handle_is(const void *object, cvy_handle_type type);
/* The same as a status: CVY_E_ARGUMENT with a message that names the argument, or that of cvy_process_check().
 * argument: NULL for the name that the public headers give to arguments of this type. */
cvy_status cvy_handle_check(const void *object, cvy_handle_type type, const char *argument);
/* Without cvy_process_check(): what a fork of the process has copied may be read. */
cvy_status cvy_handle_check_known(const void *object, cvy_handle_type type, const char *argument);

#define CVY_LIVE(TYPE, object) cvy_handle_check((object), CVY_HANDLE_##TYPE, NULL)
/* For functions that return a number or a text of the object and no status: in a fork they say what holds. */
#define CVY_KNOWN(TYPE, object) cvy_handle_check_known((object), CVY_HANDLE_##TYPE, NULL)
/* For destroy functions, which get the address of the pointer. */
#define CVY_IS_LIVE_AT(TYPE, address) ((address) && cvy_handle_is(*(address), CVY_HANDLE_##TYPE))

#endif
