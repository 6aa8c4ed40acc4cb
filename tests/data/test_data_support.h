/*
 * test_data_support.h: what the tests of src/data share: checks that print where they failed, a scratch folder, small
 * files, sources given as text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_DATA_SUPPORT_H
#define TEST_DATA_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "data/data_reader.h"

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        const cvy_status status_ = (call);                                                                             \
        if (status_ != CVY_OK) {                                                                                       \
            fprintf(stderr, "%s:%d: %s: status %d: %s\n", __FILE__, __LINE__, #call, status_, cvy_error_text());       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define TRUE_THAT(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
/* The call must fail with this code, and its message must hold these words. */
#define FAILS(call, code, words)                                                                                       \
    do {                                                                                                               \
        const cvy_status status_ = (call);                                                                             \
        if (status_ != (code) || !strstr(cvy_error_text(), (words))) {                                                 \
            fprintf(stderr, "%s:%d: %s: status %d, expected %d; message \"%s\" should hold \"%s\"\n", __FILE__,        \
                    __LINE__, #call, status_, (int)(code), cvy_error_text(), (words));                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static char scratch_folder[256];

static inline void scratch_make(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(scratch_folder, sizeof scratch_folder, "%s/convoy-test-XXXXXX", base ? base : "/tmp");
    TRUE_THAT(mkdtemp(scratch_folder) != NULL);
}

static inline void scratch_remove(void)
{
    OK(cvy_file_remove_tree(scratch_folder));
}

/* Returns the path scratch/name, in one of eight buffers that are used in turn. */
static inline const char *in_scratch(const char *name)
{
    static char ring[8][512];
    static int at;
    char *path = ring[at++ % 8];
    snprintf(path, sizeof ring[0], "%s/%s", scratch_folder, name);
    return path;
}

/* The path of tests/data/files/name, in one buffer. */
static inline const char *file_of_tests(const char *name)
{
    static char path[600];
    const char *source = getenv("CONVOY_SOURCE");
    snprintf(path, sizeof path, "%s/tests/data/files/%s", source ? source : ".", name);
    return path;
}

static inline void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    TRUE_THAT(f && fwrite(data, 1, bytes, f) == bytes);
    TRUE_THAT(fclose(f) == 0);
}

static inline void flip_byte(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    TRUE_THAT(f && fseek(f, at, at < 0 ? SEEK_END : SEEK_SET) == 0);
    const int byte = fgetc(f);
    TRUE_THAT(byte != EOF && fseek(f, -1, SEEK_CUR) == 0 && fputc(byte ^ 0x10, f) != EOF && fclose(f) == 0);
}

/* Writes a version-1 .npy file. */
static inline void put_npy(const char *path, const char *type, const char *shape, const void *data, size_t bytes)
{
    char head[128];
    const int n =
        snprintf(head + 10, sizeof head - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    const int padded = (10 + n + 1 + 63) / 64 * 64;
    memset(head + 10 + n, ' ', (size_t)(padded - 10 - n));
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (char)(padded - 10);
    head[9] = 0;
    head[padded - 1] = '\n';
    FILE *f = fopen(path, "wb");
    TRUE_THAT(f && fwrite(head, 1, (size_t)padded, f) == (size_t)padded && fwrite(data, 1, bytes, f) == bytes &&
              fclose(f) == 0);
}

/* Opens a data set from YAML texts. augment may be NULL. */
static inline cvy_status open_text(const char *source, const char *augment, int random, cvy_dataset **out)
{
    cvy_pool *pool = NULL;
    cvy_tree *s = NULL, *a = NULL;
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "source", source, strlen(source), &s));
    if (augment)
        OK(cvy_tree_parse_text(pool, "augment", augment, strlen(augment), &a));
    const cvy_status status = cvy_dataset_open(s, a, random, 7, out);
    cvy_pool_destroy(&pool);
    return status;
}

#endif
