/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_file.c: opens files. Only regular ones, because a FIFO of such a name would make the command wait for ever. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"

/* A pipe is read if the shell has given it to the process. */
static int is_given(const char *path)
{
    return strcmp(path, "/dev/stdin") == 0 || strcmp(path, "/dev/stdout") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

int cmd_open(const char *path, int flags, unsigned mode)
{
    struct stat s;
    if (is_given(path))
        return open(path, flags | O_CLOEXEC, mode);
    const int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, mode);
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode))
        return fd;
    if (fd >= 0) {
        close(fd);
        errno = EINVAL; /* it is a FIFO, a device or a folder */
    }
    return -1;
}

FILE *cmd_open_stream(const char *path, const char *how)
{
    const int fd = cmd_open(path, how[0] == 'w' ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0666);
    FILE *file = fd >= 0 ? fdopen(fd, how) : NULL;
    if (fd >= 0 && !file)
        close(fd);
    return file;
}
