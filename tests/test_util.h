/*
 * test_util.h: the checks of the test programs. A failed check prints its file and line and is counted, and the test
 * goes on. A test program ends with `return test_end();`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_UTIL_H
#define CVY_TEST_UTIL_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_mem.h"

static int test_failures, test_checks; /* of this file: each is a test with a main of its own */

#define TEST(function)                                                                                                 \
    do {                                                                                                               \
        const int before_ = test_failures;                                                                             \
        function();                                                                                                    \
        printf("%s %s\n", test_failures == before_ ? "ok    " : "FAILED", #function);                                  \
    } while (0)

/* Runs a test after begin(), which prepares it, and before end(), which cleans up. */
#define TEST_WITH(begin, function, end)                                                                                \
    do {                                                                                                               \
        begin();                                                                                                       \
        TEST(function);                                                                                                \
        end();                                                                                                         \
    } while (0)

/* Counts a failed check and prints a message, given as in printf, that says what is wrong. */
#define TEST_FAIL(...)                                                                                                 \
    do {                                                                                                               \
        test_checks++, test_failures++;                                                                                \
        printf("%s:%d: ", __FILE__, __LINE__);                                                                         \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        test_checks++;                                                                                                 \
        if (!(condition)) {                                                                                            \
            test_failures++;                                                                                           \
            printf("%s:%d: expected %s\n", __FILE__, __LINE__, #condition);                                            \
        }                                                                                                              \
    } while (0)

#define EXPECT_OK(call)                                                                                                \
    do {                                                                                                               \
        const cvy_status got_ = (call);                                                                                \
        test_checks++;                                                                                                 \
        if (got_ != CVY_OK) {                                                                                          \
            test_failures++;                                                                                           \
            printf("%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, cvy_status_text(got_), cvy_error_text());         \
        }                                                                                                              \
    } while (0)

/* The call must fail with this code and its message must hold this text. */
#define EXPECT_FAULT(call, code, part)                                                                                 \
    do {                                                                                                               \
        const cvy_status got_ = (call);                                                                                \
        test_checks++;                                                                                                 \
        if (got_ != (code) || !strstr(cvy_error_text(), (part))) {                                                     \
            test_failures++;                                                                                           \
            printf("%s:%d: %s: got %s: \"%s\", expected %s: \"%s\"\n", __FILE__, __LINE__, #call,                      \
                   cvy_status_text(got_), got_ < 0 ? cvy_error_text() : "", cvy_status_text(code), (part));            \
        }                                                                                                              \
    } while (0)

#define EXPECT_INT(got, expected)                                                                                      \
    do {                                                                                                               \
        const long long got_ = (long long)(got), expected_ = (long long)(expected);                                    \
        test_checks++;                                                                                                 \
        if (got_ != expected_) {                                                                                       \
            test_failures++;                                                                                           \
            printf("%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #got, got_, expected_);                   \
        }                                                                                                              \
    } while (0)

#define EXPECT_NEAR(got, expected, tolerance)                                                                          \
    do {                                                                                                               \
        const double got_ = (got), expected_ = (expected);                                                             \
        test_checks++;                                                                                                 \
        if (!(fabs(got_ - expected_) <= (tolerance))) {                                                                \
            test_failures++;                                                                                           \
            printf("%s:%d: %s is %.17g, expected %.17g\n", __FILE__, __LINE__, #got, got_, expected_);                 \
        }                                                                                                              \
    } while (0)

#define EXPECT_TEXT(got, expected)                                                                                     \
    do {                                                                                                               \
        const char *got_ = (got), *expected_ = (expected);                                                             \
        test_checks++;                                                                                                 \
        if (!got_ || !expected_ || strcmp(got_, expected_) != 0) {                                                     \
            test_failures++;                                                                                           \
            printf("%s:%d: %s is \"%s\", expected \"%s\"\n", __FILE__, __LINE__, #got, got_ ? got_ : "(null)",         \
                   expected_ ? expected_ : "(null)");                                                                  \
        }                                                                                                              \
    } while (0)

/* Runs `call` again and again: its first allocation fails, then its second, and so on until no allocation is left to
 * fail. Each failed call must return CVY_E_MEMORY. */
#define EXPECT_SURVIVES_NO_MEMORY(call)                                                                                \
    do {                                                                                                               \
        cvy_status status_ = CVY_E_MEMORY;                                                                             \
        int64_t k_ = 1;                                                                                                \
        for (; status_ != CVY_OK && k_ < 100000; k_++) {                                                               \
            cvy_mem_fail_at(k_, 1);                                                                                    \
            status_ = (call);                                                                                          \
            cvy_mem_fail_at(0, 0);                                                                                     \
            if (status_ != CVY_OK && status_ != CVY_E_MEMORY)                                                          \
                break;                                                                                                 \
        }                                                                                                              \
        EXPECT_INT(status_, CVY_OK);                                                                                   \
        EXPECT(k_ > 2);                                                                                                \
    } while (0)

static inline int test_end(void)
{
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}

#endif
