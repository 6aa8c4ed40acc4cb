/*
 * base_status.c: the error record of the calling thread, and the texts of statuses and dtypes.
 *
 * Nothing here allocates, so that a lack of memory can be reported like any other error.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_printable.h"
#include "base/base_status.h"

#define WORD(number) #number
#define VERSION_TEXT(major, minor, patch) WORD(major) "." WORD(minor) "." WORD(patch)

enum { MESSAGE_BYTES = 2048 };

static _Thread_local char message[MESSAGE_BYTES];

const char *cvy_error_text(void)
{
    return message;
}

int cvy_utf8_length(const unsigned char *s)
{
    const int n = s[0] < 0x80                   ? 1
                  : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                  : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                  : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF0 && s[1] < 0x90) ||
        (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}

static void set_message(char *fresh)
{
    cvy_make_printable(fresh);
    memcpy(message, fresh, strlen(fresh) + 1);
}

cvy_status cvy_error_set(cvy_status code, const char *fmt, ...)
{
    char fresh[MESSAGE_BYTES]; /* a separate buffer, because an argument may be the current message */
    va_list args;
    va_start(args, fmt);
    vsnprintf(fresh, sizeof fresh, fmt, args);
    va_end(args);
    set_message(fresh);
    return code;
}

cvy_status cvy_error_prefix(cvy_status code, const char *fmt, ...)
{
    char fresh[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    const int wanted = vsnprintf(fresh, sizeof fresh, fmt, args);
    va_end(args);
    const size_t used = wanted < 0 ? 0 : CVY_MIN((size_t)wanted, sizeof fresh - 1);
    snprintf(fresh + used, sizeof fresh - used, ": %.*s", MESSAGE_BYTES - 3, message);
    set_message(fresh);
    return code;
}

const char *cvy_status_text(cvy_status status)
{
    switch (status) {
    case CVY_OK: return "ok";
    case CVY_END: return "end";
    case CVY_NOT_APPLICABLE: return "not applicable";
    case CVY_STOPPED: return "stopped";
    case CVY_E_ARGUMENT: return "bad argument";
    case CVY_E_SHAPE: return "bad shape";
    case CVY_E_CONFIG: return "bad configuration";
    case CVY_E_IO: return "file error";
    case CVY_E_FORMAT: return "bad format";
    case CVY_E_MEMORY: return "out of memory";
    case CVY_E_COMM: return "communication error";
    case CVY_E_UNSUPPORTED: return "unsupported";
    case CVY_E_NUMERIC: return "not finite";
    case CVY_E_INTERNAL: return "internal error";
    case CVY_E_DISAGREE: return "ranks disagree";
    }
    return "unknown status";
}

const char *cvy_version(void)
{
    return VERSION_TEXT(CVY_VERSION_MAJOR, CVY_VERSION_MINOR, CVY_VERSION_PATCH);
}

int cvy_version_number(void)
{
    return CVY_VERSION_NUMBER;
}

static const struct {
    const char *text;
    size_t bytes;
} dtypes[CVY_DTYPE_COUNT] = {
    [CVY_DTYPE_F32] = {"f32", 4}, [CVY_DTYPE_F64] = {"f64", 8}, [CVY_DTYPE_I64] = {"i64", 8},
    [CVY_DTYPE_I32] = {"i32", 4}, [CVY_DTYPE_U8] = {"u8", 1},   [CVY_DTYPE_BF16] = {"bf16", 2},
};

static int dtype_is_known(cvy_dtype dtype)
{
    return (int)dtype >= 0 && (int)dtype < CVY_DTYPE_COUNT;
}

size_t cvy_dtype_bytes(cvy_dtype dtype)
{
    return dtype_is_known(dtype) ? dtypes[dtype].bytes : 0;
}

const char *cvy_dtype_text(cvy_dtype dtype)
{
    return dtype_is_known(dtype) ? dtypes[dtype].text : "unknown";
}

cvy_status cvy_dtype_parse(const char *text, cvy_dtype *dtype_out)
{
    CVY_ENTRY();
    CVY_CHECK(text, CVY_E_ARGUMENT, "no dtype given, expected f32, f64, i64, i32, u8 or bf16");
    CVY_CHECK(dtype_out, CVY_E_ARGUMENT, "cvy_dtype_parse() needs a place for the dtype");
    for (int i = 0; i < CVY_DTYPE_COUNT; i++)
        if (strcmp(text, dtypes[i].text) == 0) {
            *dtype_out = (cvy_dtype)i;
            return CVY_OK;
        }
    CVY_FAIL(CVY_E_ARGUMENT, "unknown dtype \"%s\", expected f32, f64, i64, i32, u8 or bf16", text);
}
