/*
 * gpu_cache.c: keeps compiled kernels in files, for drivers that do not keep them themselves.
 *
 * A file is $XDG_CACHE_HOME/convoy/kernels/<key>.bin. The key is a hash of all that the code depends on, so a file is
 * never out of date. It begins with a hash of its content; a damaged or truncated one is ignored, and written again.
 * That a file cannot be written is no fault: the next start compiles again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/gpu/gpu.h"
#include "base/base_file.h"
#include "base/base_hash.h"

enum { LIMIT = 64 << 20 };
static const char magic[8] = "convoyK1";

struct head {
    char magic[8];
    uint64_t hash;
};

/* NULL: there is no folder for caches. */
static cvy_status path_of(const char *key, int makes, char **out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[512] = "", path[600];
    *out = NULL;
    if (cache && cache[0] == '/')
        snprintf(folder, sizeof folder, "%s", cache);
    else if (home && home[0] == '/')
        snprintf(folder, sizeof folder, "%s/.cache", home);
    if (!folder[0] || strlen(folder) > 400)
        return CVY_OK;
    static const char *const steps[] = {"", "/convoy", "/convoy/kernels"};
    for (int i = 0; i < CVY_COUNT(steps) && makes; i++) {
        snprintf(path, sizeof path, "%s%s", folder, steps[i]);
        CVY_TRY(cvy_file_make_folder(path));
    }
    return cvy_mem_printf(out, "%s/convoy/kernels/%016llx.bin", folder, (unsigned long long)cvy_hash(key, strlen(key)));
}

int cvy_gpu_cache_find(const char *key, char **code_out, size_t *bytes_out)
{
    struct head head;
    char *path = NULL, *file = NULL;
    size_t bytes = 0;
    int found = path_of(key, 0, &path) == CVY_OK && path && cvy_file_read(path, LIMIT, &file, &bytes) == CVY_OK &&
                bytes > sizeof head;
    if (found) {
        memcpy(&head, file, sizeof head);
        bytes -= sizeof head;
        found = memcmp(head.magic, magic, sizeof magic) == 0 && head.hash == cvy_hash(file + sizeof head, bytes) &&
                cvy_mem_alloc(bytes, code_out) == CVY_OK;
    }
    if (found) {
        memcpy(*code_out, file + sizeof head, bytes);
        *bytes_out = bytes;
    }
    cvy_mem_free(&file);
    cvy_mem_free(&path);
    return found;
}

void cvy_gpu_cache_keep(const char *key, const char *code, size_t bytes)
{
    struct head head = {.hash = cvy_hash(code, bytes)};
    char *path = NULL, *file = NULL;
    memcpy(head.magic, magic, sizeof magic);
    if (path_of(key, 1, &path) == CVY_OK && path && cvy_mem_alloc(sizeof head + bytes, &file) == CVY_OK) {
        memcpy(file, &head, sizeof head);
        memcpy(file + sizeof head, code, bytes);
        (void)cvy_file_replace(path, file, sizeof head + bytes);
    }
    cvy_mem_free(&file);
    cvy_mem_free(&path);
}
