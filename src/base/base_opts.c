/*
 * base_opts.c: reads and writes the sized structs of the public API.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_opts.h"

/* If a size exceeds the library's own size by more than this, it does not come from a newer header; the field was never
 * set. */
enum { NEWER_BYTES_MAX = 4096 };

static cvy_status check_size(const char *type, const void *given, size_t own_size, size_t *size_out)
{
    size_t size = 0;
    memcpy(&size, given, sizeof size);
    CVY_CHECK(size != 0, CVY_E_ARGUMENT,
              "the size of %s is 0: start from %s_default(), or zero the struct and set its size to sizeof(%s)", type,
              type, type);
    CVY_CHECK(size > sizeof size && size <= own_size + NEWER_BYTES_MAX, CVY_E_ARGUMENT,
              "the size of %s is %zu, and this library's is %zu: start from %s_default(), or zero the struct and set "
              "its size to sizeof(%s)",
              type, size, own_size, type, type);
    *size_out = size;
    return CVY_OK;
}

cvy_status cvy_opts_read(const char *type, const void *given, void *own, size_t own_size)
{
    const unsigned char *bytes = given;
    size_t size = own_size;
    memset(own, 0, own_size);
    if (given) {
        CVY_TRY(check_size(type, given, own_size, &size));
        for (size_t i = own_size; i < size; i++)
            CVY_CHECK(bytes[i] == 0, CVY_E_ARGUMENT,
                      "%s has %zu bytes and this library, version %s, knows %zu: a field that only a newer version has "
                      "is set (byte %zu); leave it at zero, or use the library that the headers belong to",
                      type, size, cvy_version(), own_size, i);
        memcpy(own, given, CVY_MIN(size, own_size));
    }
    memcpy(own, &own_size, sizeof own_size);
    return CVY_OK;
}

cvy_status cvy_result_check(const char *type, const void *given, size_t own_size)
{
    size_t size = 0;
    return given ? check_size(type, given, own_size, &size) : CVY_OK;
}

void cvy_result_write(void *given, const void *own, size_t own_size)
{
    size_t size = 0;
    if (!given)
        return;
    memcpy(&size, given, sizeof size);
    memset((char *)given + sizeof size, 0, size - sizeof size);
    memcpy((char *)given + sizeof size, (const char *)own + sizeof size, CVY_MIN(size, own_size) - sizeof size);
}
