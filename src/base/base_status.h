/*
 * base_status.h: the error record, and the macros by which every function reports errors and passes them on.
 *
 * The record is per thread, like errno. So a parser can explain an error although it has no context, and two contexts
 * that two threads use never mix their messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_STATUS_H
#define CVY_BASE_STATUS_H

#include <convoy/base.h>

/* Number of bytes of the UTF-8 sequence at s; 0: it is not UTF-8 (RFC 3629: no overlong forms, no surrogates). */
int cvy_utf8_length(const unsigned char *s);
/* Records the message of an error and returns code, so that CVY_FAIL can be one expression. */
cvy_status cvy_error_set(cvy_status code, const char *fmt, ...) CVY_PRINTF(2, 3);
/* Puts "prefix: " before the recorded message, for a caller that knows the layer or the file. */
cvy_status cvy_error_prefix(cvy_status code, const char *fmt, ...) CVY_PRINTF(2, 3);

/* The macro returns the code and not the result of the call, so that the compiler sees that the status is not CVY_OK
 * and that outputs need not be set. */
#define CVY_FAIL(code, ...) return (cvy_error_set((code), __VA_ARGS__), (code))

/* For mistakes of the user; active in every build. */
#define CVY_CHECK(condition, code, ...)                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            CVY_FAIL((code), __VA_ARGS__);                                                                             \
    } while (0)

/* Passes an error on to the caller. It returns on positive statuses too, so use it if any status except CVY_OK ends the
 * function. */
#define CVY_TRY(call)                                                                                                  \
    do {                                                                                                               \
        const cvy_status try_ = (call);                                                                                \
        if (try_ != CVY_OK)                                                                                            \
            return try_;                                                                                               \
    } while (0)

/* The same if something must be released: the function has a `cvy_status status` and a label `out`. */
#define CVY_TRY_OUT(call)                                                                                              \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != CVY_OK)                                                                                          \
            goto out;                                                                                                  \
    } while (0)

#define CVY_FAIL_OUT(code, ...)                                                                                        \
    do {                                                                                                               \
        cvy_error_set((code), __VA_ARGS__);                                                                            \
        status = (code);                                                                                               \
        goto out;                                                                                                      \
    } while (0)

/* For mistakes in convoy: reported as CVY_E_INTERNAL with the place and the condition, in every build (setup code
 * only). */
#define CVY_EXPECT(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            CVY_FAIL(CVY_E_INTERNAL, "%s:%d: expected %s", __FILE__, __LINE__, #condition);                            \
    } while (0)

#define CVY_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define CVY_MAX(a, b) ((a) > (b) ? (a) : (b))
#define CVY_MIN(a, b) ((a) < (b) ? (a) : (b))

#endif
