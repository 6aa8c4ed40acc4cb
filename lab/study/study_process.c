/*
 * study_process.c: runs a command in a process group of its own, keeps what it writes, and ends it in time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/machine/base_clock.h"
#include "study/study_file.h"

#ifdef __APPLE__
#include <crt_externs.h>
#define environ (*_NSGetEnviron()) /* a library of macOS has no other access to it */
#else
extern char **environ;
#endif

enum { KEEP = 1 << 20, LOOK_MS = 50, GRACE_S = 5 };

struct stream {
    int fd;
    cvy_text text;
};

/* The end of a long output is kept. */
static void keep(cvy_text *text, const char *data, size_t bytes)
{
    cvy_text_add_bytes(text, data, bytes);
    if (text->bytes <= 2 * (size_t)KEEP)
        return;
    memmove(text->data, text->data + text->bytes - KEEP, KEEP + 1);
    text->bytes = KEEP;
}

/* Reads what there is. */
static void drain(struct stream *s)
{
    char data[4096];
    ssize_t n = 0;
    while (s->fd >= 0 && (n = read(s->fd, data, sizeof data)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;
        keep(&s->text, data, (size_t)n);
    }
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

static cvy_status open_pipe(int end[2])
{
    CVY_CHECK(pipe(end) == 0, CVY_E_IO, "a pipe cannot be made: %s", strerror(errno));
    for (int i = 0; i < 2; i++)
        fcntl(end[i], F_SETFD, FD_CLOEXEC);
    fcntl(end[0], F_SETFL, O_NONBLOCK);
    return CVY_OK;
}

/* Starts the command in a group of its own, with the signals of a command that a shell starts: none is blocked or
 * ignored, but SIGHUP if nohup has started this one. Returns an errno. */
static int start(const char *const *word, int out, int err, pid_t *child)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t set;
    int code = posix_spawn_file_actions_init(&files);
    if (code)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (!code) {
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
        sigemptyset(&set);
        posix_spawnattr_setsigmask(&attributes, &set);
        sigfillset(&set);
        sigdelset(&set, SIGHUP);
        posix_spawnattr_setsigdefault(&attributes, &set);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        code = posix_spawnp(child, word[0], &files, &attributes, (char *const *)(uintptr_t)word, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return code;
}

/* Ends the group: first it may clean up, later it may not. */
static void end_group(pid_t child, double *asked_s)
{
    const double now_s = cvy_clock_s();
    if (*asked_s == 0)
        kill(-child, SIGTERM);
    else if (now_s - *asked_s > GRACE_S)
        kill(-child, SIGKILL);
    *asked_s = *asked_s == 0 ? now_s : *asked_s;
}

/* CVY_E_UNSUPPORTED: the command has ended, but the system, or other code of this program, has taken its exit code. */
static cvy_status follow(pid_t child, struct stream s[2], double limit_s, const volatile int *stop,
                         cvy_process_result *out)
{
    const double begin_s = cvy_clock_s();
    double asked_s = 0;
    int code = 0;
    pid_t ended = 0;
    while (ended == 0) {
        struct pollfd look[2] = {{.fd = s[0].fd, .events = POLLIN}, {.fd = s[1].fd, .events = POLLIN}};
        poll(look, 2, LOOK_MS);
        drain(&s[0]);
        drain(&s[1]);
        out->timed_out |= cvy_clock_s() - begin_s > limit_s;
        out->stopped |= stop && *stop;
        if (out->timed_out || out->stopped)
            end_group(child, &asked_s);
        ended = waitpid(child, &code, WNOHANG);
    }
    const int error = errno;
    kill(-child, SIGKILL); /* what it left running */
    drain(&s[0]);
    drain(&s[1]);
    out->seconds = cvy_clock_s() - begin_s;
    out->code = WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
    CVY_CHECK(
        ended == child, CVY_E_UNSUPPORTED,
        "whether a command succeeded cannot be known: waitpid() fails: %s; this program ignores SIGCHLD, or waits "
        "for all child processes elsewhere: give SIGCHLD its default action, and wait for its own children by number",
        strerror(error));
    return CVY_OK;
}

static cvy_status close_streams(struct stream s[2], cvy_status status, cvy_process_result *out)
{
    for (int i = 0; i < 2; i++) {
        if (s[i].fd >= 0)
            close(s[i].fd);
        cvy_text_add(&s[i].text, "%s", ""); /* so that there is a text */
        status = status == CVY_OK ? s[i].text.status : status;
    }
    out->out = s[0].text.data;
    out->err = s[1].text.data;
    return status;
}

cvy_status cvy_process_run(const char *const *word, double limit_s, const volatile int *stop, cvy_process_result *out)
{
    int end[2][2] = {{-1, -1}, {-1, -1}};
    *out = (cvy_process_result){0};
    CVY_TRY(open_pipe(end[0]));
    cvy_status status = open_pipe(end[1]);
    pid_t child = 0;
    const int code = status == CVY_OK ? start(word, end[0][1], end[1][1], &child) : 0;
    struct stream s[2] = {{.fd = end[0][0]}, {.fd = end[1][0]}};
    for (int i = 0; i < 2; i++)
        if (end[i][1] >= 0)
            close(end[i][1]);
    if (status == CVY_OK && !code)
        status = follow(child, s, limit_s, stop, out);
    if (code) { /* as a shell says it */
        out->code = 127;
        cvy_text_add(&s[1].text, "%s: %s\n", word[0], strerror(code));
    }
    return close_streams(s, status, out);
}
