/*
 * collider_check.c: ends the program with a message if a call of convoy fails, or if there is no memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "collider.h"

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("collider: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

cvy_status check(cvy_status status)
{
    if (status < 0)
        fail("%s", cvy_error_text());
    return status;
}

void *allocate(int64_t count, size_t size)
{
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (!memory)
        fail("no memory for %lld elements of %zu bytes", (long long)count, size);
    return memory;
}
