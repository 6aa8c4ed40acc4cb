/*
 * data_hdf5_process.c: starts the process in which libhdf5 runs, talks to it, and says how it ended.
 *
 * The process is a program of its own (convoy-hdf5), started by posix_spawn(). glibc does that without copying the page
 * tables, so the memory that an MPI library has registered with its network stays as it is, and no handler of fork()
 * runs. The program ends when the sockets close. It is not one of the children that a user's program knows, so only its
 * own number is waited for. Sources: posix_spawn(3), memfd_create(2), clock_getcpuclockid(3).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5_process.h"

#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base_file.h"

extern char **environ;

#ifndef CVY_HDF5_READER_FOLDER /* in builds that are never installed, such as the fuzz targets */
#define CVY_HDF5_READER_FOLDER ""
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum { FIRST_BYTES = 64 << 10, FD_LEAST = 10, POLL_MS = 250, END_MS = 2000 };

/* ---- shared memory ---- */

/* The pages are allocated here, because a page that cannot be allocated later ends the process that writes to it. */
static cvy_status allocate(int fd, size_t bytes)
{
    char why[CVY_WRITE_WHY];
    const int code = cvy_file_allocate(fd, bytes);
    CVY_CHECK(code == 0, CVY_E_MEMORY, "%zu bytes of memory to share with the HDF5 reader process: %s", bytes,
              cvy_write_why(fd, code, why));
    return CVY_OK;
}

static cvy_status map(cvy_area *a, size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
    CVY_CHECK(data != MAP_FAILED, CVY_E_MEMORY, "%zu bytes of memory to share with the HDF5 reader process: %s", bytes,
              strerror(errno));
    if (a->data)
        munmap(a->data, a->bytes);
    a->data = data;
    a->bytes = bytes;
    return CVY_OK;
}

static int file_without_name(const char *folder)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/convoy-hdf5-XXXXXX", folder);
    const int fd = n > 0 && (size_t)n < sizeof path ? mkostemp(path, O_CLOEXEC) : -1;
    if (fd >= 0)
        unlink(path);
    return fd;
}

static int memory_without_file(void)
{
#ifdef SYS_memfd_create
    return (int)syscall(SYS_memfd_create, "convoy-hdf5", 1u /* MFD_CLOEXEC */);
#else
    errno = ENOSYS;
    return -1;
#endif
}

cvy_status cvy_area_create_in(const char *folder, size_t bytes, cvy_area *out)
{
    cvy_area a = {.fd = folder ? file_without_name(folder) : memory_without_file()};
    CVY_CHECK(a.fd >= 0, CVY_E_IO, "%s: memory to share with the HDF5 reader process cannot be created: %s",
              folder ? folder : "memfd_create", strerror(errno));
    cvy_status status = allocate(a.fd, bytes);
    if (status == CVY_OK)
        status = map(&a, bytes);
    if (status != CVY_OK)
        cvy_area_destroy(&a);
    else
        *out = a;
    return status;
}

cvy_status cvy_area_create(size_t bytes, cvy_area *out)
{
    const char *own = getenv("TMPDIR");
    const char *const folder[] = {NULL, "/dev/shm", own && *own ? own : "/tmp", "/tmp"};
    cvy_status status = CVY_OK;
    for (int i = 0; i < CVY_COUNT(folder); i++) {
        status = cvy_area_create_in(folder[i], bytes, out);
        if (status == CVY_OK)
            break;
    }
    return status;
}

cvy_status cvy_area_open(int fd, cvy_area *out)
{
    cvy_area a = {.fd = fd};
    const cvy_status status = cvy_area_follow(&a);
    if (status == CVY_OK)
        *out = a;
    return status;
}

cvy_status cvy_area_follow(cvy_area *a)
{
    struct stat st;
    CVY_CHECK(fstat(a->fd, &st) == 0 && st.st_size > 0, CVY_E_IO, "the memory of the HDF5 reader process is gone");
    return (size_t)st.st_size > a->bytes ? map(a, (size_t)st.st_size) : CVY_OK;
}

cvy_status cvy_area_need(cvy_area *a, size_t bytes)
{
    if (bytes <= a->bytes)
        return CVY_OK;
    const size_t room = (bytes + bytes / 4 + FIRST_BYTES - 1) / FIRST_BYTES * FIRST_BYTES;
    CVY_TRY(allocate(a->fd, room));
    return map(a, room);
}

void cvy_area_forget(cvy_area *a, size_t keep)
{
#ifdef MADV_REMOVE
    if (a->data && keep < a->bytes)
        madvise(a->data + keep, a->bytes - keep, MADV_REMOVE);
#else
    (void)a, (void)keep;
#endif
}

void cvy_area_destroy(cvy_area *a)
{
    if (a->data)
        munmap(a->data, a->bytes);
    if (a->fd >= 0)
        close(a->fd);
    *a = (cvy_area){.fd = -1};
}

/* ---- messages ---- */

void cvy_h5_build_text(char text[CVY_H5_BUILD_ROOM])
{
    snprintf(text, CVY_H5_BUILD_ROOM, "%d-%zu-%zu-%zu-%zu", CVY_VERSION_NUMBER, sizeof(cvy_h5_column),
             sizeof(cvy_h5_storage), sizeof(cvy_h5_request), sizeof(struct hdf5_opts));
}

cvy_status cvy_h5_send(int fd, const void *message, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = send(fd, (const char *)message + at, bytes - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return CVY_END;
        at += (size_t)n;
    }
    return CVY_OK;
}

cvy_status cvy_h5_receive(int fd, void *message, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = recv(fd, (char *)message + at, bytes - at, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return CVY_END;
        at += (size_t)n;
    }
    return CVY_OK;
}

/* ---- the program ---- */

/* Looks for the program beside `beside`, which is an absolute path, and where an installation has it. */
static int look_beside(const char *beside, char *path, size_t room)
{
    static const char *const places[] = {"", "../libexec/convoy/", "../../libexec/convoy/", "../../../libexec/convoy/",
                                         "../../../../libexec/convoy/"}; /* lib/<machine>/convoy/<variant>/ */
    const char *slash = strrchr(beside, '/');
    if (beside[0] != '/')
        return 0;
    for (int i = 0; i < CVY_COUNT(places); i++) {
        const int n = snprintf(path, room, "%.*s%s" CVY_HDF5_READER, (int)(slash - beside) + 1, beside, places[i]);
        if (n > 0 && (size_t)n < room && access(path, X_OK) == 0)
            return 1;
    }
    return 0;
}

/* Finds the program. A relative name of a library is not trusted, since it would depend on the working directory. */
cvy_status cvy_h5_program(char *path, size_t room)
{
    const char *given = getenv("CONVOY_HDF5_READER");
    char self[PATH_MAX];
    Dl_info here;
    if (given && *given) {
        CVY_CHECK(strcmp(given, "none") != 0, CVY_NOT_APPLICABLE, "CONVOY_HDF5_READER is none");
        snprintf(path, room, "%s", given);
        return CVY_OK;
    }
    if (dladdr(__extension__(void *) cvy_h5_program, &here) != 0 && here.dli_fname &&
        look_beside(here.dli_fname, path, room))
        return CVY_OK;
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[CVY_MAX(n, 0)] = 0;
    if (n > 0 && look_beside(self, path, room))
        return CVY_OK;
    snprintf(path, room, "%s/" CVY_HDF5_READER, CVY_HDF5_READER_FOLDER);
    CVY_CHECK(access(path, X_OK) == 0, CVY_NOT_APPLICABLE,
              "the program " CVY_HDF5_READER " is neither beside libconvoy nor in %s; name it in CONVOY_HDF5_READER",
              CVY_HDF5_READER_FOLDER);
    return CVY_OK;
}

/* Moves a descriptor out of the range that the program's own ones use. */
static cvy_status move_up(int *fd)
{
    const int high = fcntl(*fd, F_DUPFD_CLOEXEC, FD_LEAST);
    CVY_CHECK(high >= 0, CVY_NOT_APPLICABLE, "no file descriptor is free: %s", strerror(errno));
    close(*fd);
    *fd = high;
    return CVY_OK;
}

/* All signals are blocked until the program has decided which it ignores. Its standard streams lead nowhere: a launcher
 * waits for the end of every copy of its own. */
static int spawn(const char *path, int socket, int area, pid_t *pid_out)
{
    char build[CVY_H5_BUILD_ROOM], parent[24], name[] = CVY_HDF5_READER;
    char *const argv[] = {name, build, parent, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t all;
    cvy_h5_build_text(build);
    snprintf(parent, sizeof parent, "%lld", (long long)getpid());
    sigfillset(&all);
    int code = posix_spawn_file_actions_init(&files);
    if (code != 0)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code == 0) {
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(&files, socket, 3);
        posix_spawn_file_actions_adddup2(&files, area, 4);
        posix_spawnattr_setsigmask(&attributes, &all);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        code = posix_spawn(pid_out, path, &files, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return code;
}

/* ---- the end of the process ---- */

static void version_text(int version, char text[16])
{
    snprintf(text, 16, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

/* Waits for the process, which was killed or has closed its socket. 0: how it ended is not known, because somebody else
 * has waited for it. */
static int reap(pid_t pid, int *how_out)
{
    for (int waited = 0; waited < END_MS; waited++) {
        const pid_t got = waitpid(pid, how_out, WNOHANG);
        if (got == pid)
            return 1;
        if (got < 0 && errno != EINTR)
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return 0;
}

/* The area stays, because it says which file was at work. */
static void close_socket(cvy_h5_process *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

/* Stops the process if it runs and is this one's child, not that of its parent before a fork(). */
static int stop(cvy_h5_process *p, int *how_out)
{
    int known = 0;
    if (p->fd >= 0 && p->owner == getpid()) {
        kill(p->pid, SIGKILL); /* nothing happens to a process that has ended */
        known = reap(p->pid, how_out);
    }
    close_socket(p);
    return known;
}

void cvy_h5_process_end(cvy_h5_process *p)
{
    int how = 0;
    stop(p, &how);
    cvy_area_destroy(&p->area);
}

/* Says how the process ended, after it has closed its socket. */
static cvy_status describe_end(cvy_h5_process *p, cvy_h5_end *end_out)
{
    static const char cure[] =
        "the file is damaged or made to do harm: leave it out, or write it anew from a good copy";
    char version[16];
    int how = 0;
    version_text(p->version, version);
    const int known = stop(p, &how);
    *end_out = !known || (WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) ? CVY_H5_KILLED : CVY_H5_CRASHED;
    if (known && *end_out == CVY_H5_KILLED)
        CVY_FAIL(CVY_E_FORMAT,
                 "the process that reads it by libhdf5 %s was killed by signal 9 from outside, by hand or for lack of "
                 "memory: the log of the kernel or of the scheduler says why",
                 version);
    if (known && WIFSIGNALED(how))
        CVY_FAIL(CVY_E_FORMAT, "libhdf5 %s crashed on it, and its reader process ended by signal %d (%s): %s", version,
                 WTERMSIG(how), strsignal(WTERMSIG(how)), cure);
    if (known)
        CVY_FAIL(CVY_E_FORMAT, "libhdf5 %s crashed on it, and its reader process ended with exit code %d: %s", version,
                 WEXITSTATUS(how), cure);
    CVY_FAIL(CVY_E_FORMAT,
             "the process that reads it by libhdf5 %s has ended, and this program, which ignores SIGCHLD or waits for "
             "all child processes, does not learn how: either the process was killed from outside, or %s",
             version, cure);
}

static double processor_s(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return -1;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits until the process answers or has ended. CVY_E_FORMAT: it has taken too much processor time. The time of the
 * clock does not count, because a file system may stall for long. */
static cvy_status wait_for(cvy_h5_process *p)
{
    struct pollfd at = {.fd = p->fd, .events = POLLIN};
    double began = -1;
    char version[16];
    for (;;) {
        const int n = poll(&at, 1, POLL_MS);
        if (n > 0 || (n < 0 && errno != EINTR))
            return CVY_OK;
        const double now = processor_s(p->pid);
        if (began < 0)
            began = now;
        if (now < 0 || now - began < (double)p->limit_s)
            continue;
        version_text(p->version, version);
        stop(p, &(int){0});
        CVY_FAIL(CVY_E_FORMAT,
                 "libhdf5 %s took more than %lld s of processor time for one request, and its reader process was "
                 "stopped: the file is damaged (an endless loop), or give more time by `sandbox_limit` of the source",
                 version, (long long)p->limit_s);
    }
}

cvy_status cvy_h5_process_call(cvy_h5_process *p, const cvy_h5_request *request, cvy_h5_reply *reply_out,
                               cvy_h5_end *end_out)
{
    *end_out = CVY_H5_RUNS;
    if (cvy_h5_send(p->fd, request, sizeof *request) != CVY_OK)
        return describe_end(p, end_out);
    const cvy_status status = wait_for(p);
    if (status != CVY_OK)
        *end_out = CVY_H5_HUNG;
    CVY_TRY(status);
    if (cvy_h5_receive(p->fd, reply_out, sizeof *reply_out) != CVY_OK)
        return describe_end(p, end_out);
    CVY_TRY(cvy_area_follow(&p->area));
    CVY_CHECK(reply_out->bytes <= p->area.bytes - CVY_H5_AT_WORK, CVY_E_FORMAT,
              "the HDF5 reader process sent %llu bytes in a memory of %zu: it is out of order",
              (unsigned long long)reply_out->bytes, p->area.bytes);
    return CVY_OK;
}

/* ---- the beginning of the process ---- */

/* The program says that it runs. */
static cvy_status greet(cvy_h5_process *p, const char *path)
{
    cvy_h5_reply hello = {0};
    int how = 0;
    CVY_TRY(wait_for(p));
    if (cvy_h5_receive(p->fd, &hello, sizeof hello) == CVY_OK) {
        p->version = hello.version;
        if (hello.bytes)
            cvy_protection_note(CVY_PROTECTION_READER_MEMORY, CVY_HDF5_READER, (int)hello.bytes);
        return CVY_OK;
    }
    const int known = stop(p, &how);
    CVY_CHECK(!known || !WIFEXITED(how) || WEXITSTATUS(how) != CVY_H5_OTHER_BUILD, CVY_NOT_APPLICABLE,
              "%s belongs to another build of convoy", path);
    CVY_FAIL(CVY_NOT_APPLICABLE, "%s ended at its start, with %s %d", path,
             known && WIFSIGNALED(how) ? "signal" : "exit code",
             !known             ? -1
             : WIFSIGNALED(how) ? WTERMSIG(how)
                                : WEXITSTATUS(how));
}

cvy_status cvy_h5_process_start(cvy_h5_process *p)
{
    char path[PATH_MAX];
    int pair[2] = {-1, -1}, code = 0;
    pid_t pid = 0;
    cvy_area area = {.fd = -1};
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_h5_program(path, sizeof path));
    CVY_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, CVY_NOT_APPLICABLE,
              "no socket can be made: %s", strerror(errno));
    CVY_TRY_OUT(cvy_area_create(FIRST_BYTES, &area));
    CVY_TRY_OUT(move_up(&pair[0]));
    CVY_TRY_OUT(move_up(&pair[1]));
    CVY_TRY_OUT(move_up(&area.fd));
    code = spawn(path, pair[1], area.fd, &pid);
    if (code != 0)
        CVY_FAIL_OUT(CVY_NOT_APPLICABLE, "%s cannot be started: %s", path, strerror(code));
    close(pair[1]);
    cvy_h5_process_end(p);
    p->pid = pid;
    p->fd = pair[0];
    p->area = area;
    p->owner = getpid();
    return greet(p, path) == CVY_OK ? CVY_OK : CVY_NOT_APPLICABLE;
out:
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
    cvy_area_destroy(&area);
    return status == CVY_E_MEMORY ? status : CVY_NOT_APPLICABLE;
}

#endif
