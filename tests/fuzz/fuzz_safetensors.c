/*
 * fuzz_safetensors.c: files of weights, as libFuzzer makes them up.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    cvy_safetensors *f = NULL;
    snprintf(path, sizeof path, "/dev/shm/convoy-fuzz-%ld.safetensors", (long)getpid());
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int done = fd >= 0 && write(fd, data, size) == (ssize_t)size;
    if (fd >= 0)
        close(fd);
    if (done && cvy_safetensors_open(path, &f) < CVY_OK && !cvy_error_text()[0])
        abort();
    for (int i = 0; f && i < cvy_safetensors_count(f); i++)
        if (!cvy_safetensors_at(f, i)->name)
            abort();
    cvy_safetensors_close(&f);
    unlink(path);
    return 0;
}
