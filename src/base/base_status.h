/*
 * base_status.h: the error record, and the macros by which every function reports and passes on faults.
 *
 * The record is per thread, as errno is: a parser deep down can explain a fault without a context in its hands, and two
 * contexts used by two threads never mix their messages. A helper thread's message is carried over by
 * cvy_error_capture() and _raise().
 */
#ifndef CVY_BASE_STATUS_H
#define CVY_BASE_STATUS_H

#include <convoy/base.h>

/* Records the message of a fault, prefixed by nothing; returns code, so that CVY_FAIL can be one expression. */
cvy_status cvy_error_set(cvy_status code, const char *fmt, ...) CVY_PRINTF(2, 3);
/* Puts "prefix: " before the recorded message (a caller that knows the layer or the file adds it). */
cvy_status cvy_error_prefix(cvy_status code, const char *fmt, ...) CVY_PRINTF(2, 3);

/* The code is named again behind the call, so that the compiler sees that the answer is not CVY_OK and outputs need not
 * be set. */
#define CVY_FAIL(code, ...) return (cvy_error_set((code), __VA_ARGS__), (code))

/* For the user's mistakes; always on. */
#define CVY_CHECK(condition, code, ...)                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            CVY_FAIL((code), __VA_ARGS__);                                                                             \
    } while (0)

/* Passes a fault on to the caller; positive answers pass too, so use it where any answer but CVY_OK ends the function.
 */
#define CVY_TRY(call)                                                                                                  \
    do {                                                                                                               \
        const cvy_status try_ = (call);                                                                                \
        if (try_ != CVY_OK)                                                                                            \
            return try_;                                                                                               \
    } while (0)

/* The same where something must be released: the function has a `cvy_status status` and a label `out`. */
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

/* For our own mistakes: reported as CVY_E_INTERNAL with place and condition, in every build (setup paths only). */
#define CVY_EXPECT(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            CVY_FAIL(CVY_E_INTERNAL, "%s:%d: expected %s", __FILE__, __LINE__, #condition);                            \
    } while (0)

#define CVY_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define CVY_MAX(a, b) ((a) > (b) ? (a) : (b))
#define CVY_MIN(a, b) ((a) < (b) ? (a) : (b))

#endif
