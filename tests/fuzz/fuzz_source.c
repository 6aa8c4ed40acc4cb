/*
 * fuzz_source.c: a file of a data format, as libFuzzer makes it up: FORMAT is opened and every sample read. Whatever is in it, there is an answer or a
 * fault with a message; the sanitizers see to the rest.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/data_reader.h"

enum { SAMPLES = 32 };

static char path[128];

static void remove_file(void)
{
    char *slash = strrchr(path, '/');
    unlink(path);
    *slash = 0;
    rmdir(path);
}

static int put(const uint8_t *data, size_t size)
{
    if (!path[0]) {
        char folder[64] = "/dev/shm/convoy-fuzz-XXXXXX";
        if (!mkdtemp(folder))
            return 0;
        snprintf(path, sizeof path, "%s/%s", folder, NAME);
        atexit(remove_file);
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int done = fd >= 0 && write(fd, data, size) == (ssize_t)size;
    if (fd >= 0)
        close(fd);
    return done;
}

static void read_all(cvy_dataset *d)
{
    cvy_raw raw = {0};
    cvy_bytes room = {0}, rows = {0};
    const cvy_reader_info *info = cvy_dataset_reader_info(d);
    const int64_t n = cvy_dataset_describe(d)->nsamples, step = CVY_MAX(1, n / SAMPLES);
    for (int64_t i = 0; i < n; i += step) {
        int32_t label = 0;
        cvy_picture p;
        cvy_status status = cvy_dataset_read_raw(d, i, &raw);
        if (status == CVY_OK && raw.coding != CVY_CODING_PLAIN)
            status = cvy_picture_decode(raw.coding, raw.x.data, raw.x.bytes, info->shape.dim[0], &room, &rows, &p);
        if (status == CVY_OK && info->has_label)
            status = cvy_dataset_label(d, i, &label);
        if (status < CVY_OK && !cvy_error_text()[0])
            abort();
    }
    cvy_raw_free(&raw);
    cvy_mem_free(&room.data);
    cvy_mem_free(&rows.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_pool *pool = NULL;
    cvy_tree *source = NULL;
    cvy_dataset *d = NULL;
    char text[256];
    if (!put(data, size) || cvy_pool_create(&pool) != CVY_OK)
        return 0;
    snprintf(text, sizeof text, "{path: %s, format: %s}", path, FORMAT);
    if (cvy_tree_parse_text(pool, "source", text, strlen(text), &source) == CVY_OK && cvy_dataset_open(source, NULL, 0, 0, &d) == CVY_OK)
        read_all(d);
    cvy_dataset_destroy(&d);
    cvy_pool_destroy(&pool);
    return 0;
}
