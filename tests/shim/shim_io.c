/*
 * shim_io.c: replaces file operations of the C library (LD_PRELOAD) and injects a fault into one of them.
 *
 * It counts the operations on paths below one folder. One of them fails, is interrupted, writes less, hangs, or kills
 * the process. It can keep a log of all operations with all that was written, from which replay.c makes the disk that a
 * loss of power leaves.
 *
 * Environment:
 *   SHIM_IO_DIR    absolute path of the folder; without it nothing is done
 *   SHIM_IO_RANK   the rank that is affected (as Open MPI's and MPICH's launchers number them); all if not set
 *   SHIM_IO_FROM   counting begins at the first operation whose path contains this text
 *   SHIM_IO_AT     the number of the operation that is affected, from 1
 *   SHIM_IO_FAULT  ENOSPC, EDQUOT, EIO: it fails
 *                  EINTR: it fails, if it is one that a signal can interrupt
 *                  short: half of a write is done
 *                  kill-before, kill-amid (half of a write is done), kill-after: the process is killed
 *                  hang: only pread is counted, and from that one on none returns
 *   SHIM_IO_LOG    file for the log; what was written goes to a second file with the suffix ".data"
 *
 * Counted operations are: opening for writing, opening of folders, write, pwrite, ftruncate, fsync, fdatasync, rename,
 * unlink, mkdir, rmdir, and closing what was counted when it was opened. The shim does not see what stdio writes,
 * because the C library calls itself there; replay.c would notice, because its files would not equal those on the disk.
 * A lock allows one operation at a time, so that the log has the order in which they were done: saves are written by a
 * thread of their own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FDS 4096
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum fault { NONE, FAIL, INTERRUPT, SHORT, KILL_BEFORE, KILL_AMID, KILL_AFTER, HANG };

static const struct {
    const char *name;
    enum fault fault;
    int error;
} faults[] = {
    {"ENOSPC", FAIL, ENOSPC},    {"EDQUOT", FAIL, EDQUOT},      {"EIO", FAIL, EIO},
    {"EINTR", INTERRUPT, EINTR}, {"short", SHORT, 0},           {"kill-before", KILL_BEFORE, 0},
    {"kill-amid", KILL_AMID, 0}, {"kill-after", KILL_AFTER, 0}, {"hang", HANG, 0},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char dir[PATH_MAX], from[256];
static enum fault fault;
static int fault_error, begun;
static long calls, hit_at;
static int log_fd = -1, data_fd = -1;
static long long data_bytes;
static atomic_char tracked[FDS]; /* open for writing, or a folder, and below dir */

/* ---- settings ---- */

static int is_meant(void)
{
    const char *wanted = getenv("SHIM_IO_RANK"), *mine = getenv("OMPI_COMM_WORLD_RANK");
    mine = mine ? mine : getenv("PMI_RANK");
    return !wanted || strcmp(wanted, mine ? mine : "0") == 0;
}

static void open_log(const char *path)
{
    char data[PATH_MAX + 8];
    snprintf(data, sizeof data, "%s.data", path);
    log_fd = REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0666);
    data_fd = REAL(open)(data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0666);
}

static void read_settings(void)
{
    const char *at = getenv("SHIM_IO_AT"), *name = getenv("SHIM_IO_FAULT"), *path = getenv("SHIM_IO_LOG"),
               *begin = getenv("SHIM_IO_FROM");
    if (!getenv("SHIM_IO_DIR") || !is_meant())
        return;
    snprintf(dir, sizeof dir, "%s", getenv("SHIM_IO_DIR"));
    snprintf(from, sizeof from, "%s", begin ? begin : "");
    hit_at = at ? atol(at) : 0;
    for (int i = 0; name && i < COUNT(faults); i++)
        if (strcmp(name, faults[i].name) == 0) {
            fault = faults[i].fault;
            fault_error = faults[i].error;
        }
    if (path)
        open_log(path);
}

/* ---- paths ---- */

static int is_below(const char *path)
{
    const size_t n = strlen(dir);
    return n > 0 && strncmp(path, dir, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* Finds the path of a descriptor. Returns 0 if it is not below dir. */
static int path_of(int fd, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    return is_below(path);
}

/* Finds the full path of a name given to a call. Returns 0 if it is not below dir. */
static int path_at(int folder_fd, const char *name, char path[PATH_MAX])
{
    char folder[PATH_MAX] = "";
    pthread_once(&once, read_settings);
    if (!dir[0])
        return 0;
    if (name[0] != '/' && folder_fd == AT_FDCWD && !getcwd(folder, sizeof folder))
        return 0;
    if (name[0] != '/' && folder_fd != AT_FDCWD && !path_of(folder_fd, folder))
        return 0;
    const int n = snprintf(path, PATH_MAX, "%s%s%s", folder, name[0] == '/' ? "" : "/", name);
    return n < PATH_MAX && is_below(path);
}

static int is_tracked(int fd, char path[PATH_MAX])
{
    if (fd < 0 || fd >= FDS || !atomic_load(&tracked[fd]))
        return 0;
    if (path_of(fd, path))
        return 1;
    atomic_store(&tracked[fd], 0); /* closed by the C library itself, and opened again as another file */
    return 0;
}

static void track(int fd, int is_ours)
{
    if (fd >= 0 && fd < FDS)
        atomic_store(&tracked[fd], (char)is_ours);
}

/* ---- one operation ---- */

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    char line[2 * PATH_MAX + 128];
    va_list args;
    if (log_fd < 0)
        return;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (void)!REAL(write)(log_fd, line, (size_t)n);
}

static void note_write(const char *path, const void *data, ssize_t bytes, long long offset)
{
    if (log_fd < 0 || bytes <= 0)
        return;
    (void)!REAL(write)(data_fd, data, (size_t)bytes);
    note("%ld write %s %lld %lld %lld\n", calls, path, offset, (long long)bytes, data_bytes);
    data_bytes += bytes;
}

/* Counts the operation and takes the lock. Returns what is to happen to the operation. */
static enum fault enter(const char *op, const char *path, int can_interrupt)
{
    pthread_mutex_lock(&lock);
    begun |= strstr(path, from) != NULL;
    calls += begun;
    const int is_write = strstr(op, "write") != NULL;
    if (!begun || calls != hit_at || fault == HANG || (fault == INTERRUPT && !can_interrupt) ||
        ((fault == SHORT || fault == KILL_AMID) && !is_write))
        return NONE;
    dprintf(STDERR_FILENO, "shim_io: operation %ld %s %s\n", calls, op, path);
    if (fault == KILL_BEFORE)
        kill(getpid(), SIGKILL);
    return fault;
}

static void leave(enum fault what)
{
    const int error = errno;
    if (what == KILL_AFTER || what == KILL_AMID)
        kill(getpid(), SIGKILL);
    pthread_mutex_unlock(&lock);
    errno = error;
}

static int fails(enum fault what)
{
    if (what != FAIL && what != INTERRUPT)
        return 0;
    errno = fault_error;
    return 1;
}

/* ---- open and close ---- */

static int open_counted(int folder_fd, const char *name, int flags, mode_t mode, const char *path)
{
    struct stat stat;
    const int is_folder = (flags & O_DIRECTORY) != 0, is_new = (flags & O_CREAT) && lstat(path, &stat) != 0;
    const enum fault what = enter(is_folder ? "opendir" : "open", path, 1);
    const int fd = fails(what) ? -1 : REAL(openat)(folder_fd, name, flags, mode);
    if (fd >= 0)
        note("%ld %s %s\n", calls,
             is_folder         ? "opendir"
             : is_new          ? "create"
             : flags & O_TRUNC ? "empty"
                               : "open",
             path);
    track(fd, 1);
    leave(what);
    return fd;
}

static int open_any(int folder_fd, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];
    const int is_counted = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_DIRECTORY)) && path_at(folder_fd, name, path);
    if (is_counted)
        return open_counted(folder_fd, name, flags, mode, path);
    const int fd = REAL(openat)(folder_fd, name, flags, mode);
    track(fd, 0);
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

int open(const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_any(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_any(AT_FDCWD, name, flags, mode);
}

int openat(int folder_fd, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_any(folder_fd, name, flags, mode);
}

/* open without O_CREAT is compiled to these calls under _FORTIFY_SOURCE. */
int __open_2(const char *name, int flags)
{
    return open_any(AT_FDCWD, name, flags, 0);
}

int __openat_2(int folder_fd, const char *name, int flags)
{
    return open_any(folder_fd, name, flags, 0);
}

/* A close that fails has closed the file all the same, as on Linux. */
int close(int fd)
{
    char path[PATH_MAX];
    if (!is_tracked(fd, path))
        return REAL(close)(fd);
    const enum fault what = enter("close", path, 1);
    track(fd, 0);
    int result = REAL(close)(fd);
    note("%ld close %s\n", calls, path);
    if (fails(what))
        result = -1;
    leave(what);
    return result;
}

/* ---- contents ---- */

ssize_t write(int fd, const void *data, size_t bytes)
{
    char path[PATH_MAX];
    if (!is_tracked(fd, path))
        return REAL(write)(fd, data, bytes);
    const enum fault what = enter("write", path, 1);
    const ssize_t n =
        fails(what) ? -1 : REAL(write)(fd, data, (what == SHORT || what == KILL_AMID) && bytes > 1 ? bytes / 2 : bytes);
    if (n > 0)
        note_write(path, data, n, (long long)lseek(fd, 0, SEEK_CUR) - n);
    leave(what);
    return n;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    char path[PATH_MAX];
    if (!is_tracked(fd, path))
        return REAL(pwrite)(fd, data, bytes, offset);
    const enum fault what = enter("pwrite", path, 1);
    const ssize_t n =
        fails(what)
            ? -1
            : REAL(pwrite)(fd, data, (what == SHORT || what == KILL_AMID) && bytes > 1 ? bytes / 2 : bytes, offset);
    note_write(path, data, n, (long long)offset);
    leave(what);
    return n;
}

int ftruncate(int fd, off_t bytes)
{
    char path[PATH_MAX];
    if (!is_tracked(fd, path))
        return REAL(ftruncate)(fd, bytes);
    const enum fault what = enter("ftruncate", path, 1);
    const int result = fails(what) ? -1 : REAL(ftruncate)(fd, bytes);
    if (result == 0)
        note("%ld truncate %s %lld\n", calls, path, (long long)bytes);
    leave(what);
    return result;
}

/* Hangs as a file system does that has lost its server. */
static void hang(int fd)
{
    static atomic_long reads;
    char path[PATH_MAX];
    pthread_once(&once, read_settings);
    if (fault != HANG || !path_of(fd, path) || !strstr(path, from) || atomic_fetch_add(&reads, 1) + 1 < hit_at)
        return;
    dprintf(STDERR_FILENO, "shim_io: hang in pread of %s\n", path);
    for (;;)
        pause();
}

ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
    hang(fd);
    return REAL(pread)(fd, data, bytes, offset);
}

static int sync_counted(int fd, int (*real)(int))
{
    char path[PATH_MAX];
    if (!is_tracked(fd, path))
        return real(fd);
    const enum fault what = enter("fsync", path, 1);
    const int result = fails(what) ? -1 : real(fd);
    if (result == 0)
        note("%ld fsync %s\n", calls, path);
    leave(what);
    return result;
}

int fsync(int fd)
{
    return sync_counted(fd, REAL(fsync));
}

int fdatasync(int fd)
{
    return sync_counted(fd, REAL(fdatasync));
}

/* ---- names ---- */

int rename(const char *old_name, const char *new_name)
{
    char old_path[PATH_MAX], new_path[PATH_MAX];
    if (!path_at(AT_FDCWD, old_name, old_path) || !path_at(AT_FDCWD, new_name, new_path))
        return REAL(rename)(old_name, new_name);
    const enum fault what = enter("rename", old_path, 0);
    const int result = fails(what) ? -1 : REAL(rename)(old_name, new_name);
    if (result == 0)
        note("%ld rename %s %s\n", calls, old_path, new_path);
    leave(what);
    return result;
}

int mkdir(const char *name, mode_t mode)
{
    char path[PATH_MAX];
    if (!path_at(AT_FDCWD, name, path))
        return REAL(mkdir)(name, mode);
    const enum fault what = enter("mkdir", path, 0);
    const int result = fails(what) ? -1 : REAL(mkdir)(name, mode);
    if (result == 0)
        note("%ld mkdir %s\n", calls, path);
    leave(what);
    return result;
}

int unlinkat(int folder_fd, const char *name, int flags)
{
    char path[PATH_MAX];
    if (!path_at(folder_fd, name, path))
        return REAL(unlinkat)(folder_fd, name, flags);
    const char *op = flags & AT_REMOVEDIR ? "rmdir" : "unlink";
    const enum fault what = enter(op, path, 0);
    const int result = fails(what) ? -1 : REAL(unlinkat)(folder_fd, name, flags);
    if (result == 0)
        note("%ld %s %s\n", calls, op, path);
    leave(what);
    return result;
}

int unlink(const char *name)
{
    return unlinkat(AT_FDCWD, name, 0);
}

int rmdir(const char *name)
{
    return unlinkat(AT_FDCWD, name, AT_REMOVEDIR);
}
