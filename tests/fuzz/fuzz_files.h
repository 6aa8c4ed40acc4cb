/*
 * fuzz_files.h: makes files from one input of libFuzzer. The input is cut at each "\n--8<--\n", and the pieces are
 * written to a folder of this process, which is in memory if the system has such a file system. The last file gets all
 * remaining bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef FUZZ_FILES_H
#define FUZZ_FILES_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"

#define FUZZ_CUT "\n--8<--\n"
enum { FUZZ_CUT_BYTES = sizeof FUZZ_CUT - 1, FUZZ_FILES = 5 };

static char fuzz_folder[256];

static void fuzz_remove_folder(void)
{
    cvy_file_remove_tree(fuzz_folder);
}

static inline void fuzz_make_folder(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(fuzz_folder, sizeof fuzz_folder, "%s/convoy-fuzz-XXXXXX",
             base                            ? base
             : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                             : "/tmp");
    if (!mkdtemp(fuzz_folder)) {
        perror(fuzz_folder);
        exit(1);
    }
    atexit(fuzz_remove_folder);
}

static inline void fuzz_put_file(const char *name, const uint8_t *data, size_t bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || cvy_write_all(fd, data, bytes, path) != CVY_OK) {
        perror(path);
        exit(1);
    }
    close(fd);
}

/* Cuts the input into at most `most` pieces and returns their number. */
static inline int fuzz_cut(const uint8_t *data, size_t bytes, int most, const uint8_t *piece[FUZZ_FILES],
                           size_t piece_bytes[FUZZ_FILES])
{
    int n = 0;
    for (;;) {
        const uint8_t *end = n + 1 < most ? memmem(data, bytes, FUZZ_CUT, FUZZ_CUT_BYTES) : NULL;
        piece[n] = data;
        piece_bytes[n++] = end ? (size_t)(end - data) : bytes;
        if (!end)
            return n;
        bytes -= (size_t)(end - data) + FUZZ_CUT_BYTES;
        data = end + FUZZ_CUT_BYTES;
    }
}

/* Writes the pieces to files with these names (NULL ends the list). A file without a piece does not exist. */
static inline void fuzz_put_files(const char *const *name, const uint8_t *data, size_t bytes)
{
    const uint8_t *piece[FUZZ_FILES];
    size_t piece_bytes[FUZZ_FILES];
    char path[512];
    int most = 0;
    while (most < FUZZ_FILES && name[most])
        most++;
    const int n = fuzz_cut(data, bytes, most, piece, piece_bytes);
    for (int i = 0; i < most; i++) {
        snprintf(path, sizeof path, "%s/%s", fuzz_folder, name[i]);
        if (i < n)
            fuzz_put_file(name[i], piece[i], piece_bytes[i]);
        else
            unlink(path);
    }
}

#endif
